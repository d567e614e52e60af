//! Criterion benches of the parts of sprat, each beside others' ways of doing the same.
//!
//! `cargo bench -p sprat-bench` runs all of them, `cargo bench -p sprat-bench -- head` those with `head` in their name. One
//! program holds them all: with whole-program optimisation each further one would take as long to link.

use std::time::Duration;

use criterion::Criterion;

mod body;
mod connection;
mod head;
mod json;
mod response;
mod routing;

fn main() {
    // Short enough that all of them run in some minutes, long enough to tell a few percent apart on a quiet machine.
    let mut c = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    head::heads(&mut c);
    body::framing(&mut c);
    body::chunked(&mut c);
    routing::routing(&mut c);
    response::responses(&mut c);
    json::json(&mut c);
    connection::connection(&mut c);
    c.final_summary();
}
