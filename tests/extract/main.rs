//! Extractors, from outside: what each takes, and what it refuses, with an accepted neighbour one byte away.

mod credentials;
mod fields;
#[cfg(feature = "json")]
mod json;
mod moments;
mod set_cookie;
#[cfg(feature = "json")]
mod urlencoded;

use sprat::testing::{Answer, Client};
use sprat::{Method, Table};

/// GET / with these fields.
#[track_caller]
fn get<T: Table<()>>(table: T, fields: &[(&str, &str)]) -> Answer {
    let mut client = Client::new(table, ());
    fields.iter().fold(client.request(Method::Get, "/"), |request, (name, value)| request.field(name, value)).send()
}
