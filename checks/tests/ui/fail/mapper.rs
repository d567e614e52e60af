//! Mappers of errors that are none. `tests/ui/pass/options.rs` has the right ones.

use sprat::{Rejection, routes};

struct App;
struct Thing;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn without_state(error: Rejection) -> Rejection {
    error
}

fn by_reference(_: &mut App, error: &Rejection) -> String {
    error.message().to_owned()
}

fn no_answer(_: &mut App, _: Rejection) -> Thing {
    Thing
}

mod arguments {
    use super::*;
    routes! { Api for App [errors = without_state] { GET "/" => hello(), } }
}

mod reference {
    use super::*;
    routes! { Api for App { GET "/" => hello() [errors = by_reference], } }
}

mod answer {
    use super::*;
    routes! { Api for App [errors = no_answer] { GET "/" => hello(), } }
}

fn main() {}
