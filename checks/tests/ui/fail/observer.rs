//! Observers that are none. `tests/ui/pass/options.rs` has the right ones.

use sprat::{Exchange, routes};

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn without_state(exchange: &Exchange<'_>) {
    println!("{exchange}");
}

fn by_value(_: &mut App, exchange: Exchange<'_>) {
    println!("{exchange}");
}

fn with_answer(_: &mut App, exchange: &Exchange<'_>) -> String {
    exchange.to_string()
}

mod arguments {
    use super::*;
    routes! { Api for App [observe = without_state] { GET "/" => hello(), } }
}

mod value {
    use super::*;
    routes! { Api for App { GET "/" => hello() [observe = by_value], } }
}

mod answer {
    use super::*;
    routes! { Api for App [observe = with_answer] { GET "/" => hello(), } }
}

fn main() {}
