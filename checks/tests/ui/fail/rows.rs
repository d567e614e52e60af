//! Rows that can never match or do not fit their handler. `tests/ui/pass/patterns.rs` has the right ones.

use sprat::routes;

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn two(_: &mut App, a: u64, b: u64) -> String {
    (a + b).to_string()
}

routes! { Inner for App { GET "/a" => hello(), } }

mod method_unknown {
    use super::*;
    routes! { Api for App { FETCH "/a" => hello(), } }
}

mod method_in_small_letters {
    use super::*;
    routes! { Api for App { get "/a" => hello(), } }
}

mod connect {
    use super::*;
    routes! { Api for App { CONNECT "/a" => hello(), } }
}

mod unused_parameter {
    use super::*;
    routes! { Api for App { GET "/things/{id}" => hello(), } }
}

mod unused_rest {
    use super::*;
    routes! { Api for App { GET "/files/{*path}" => hello(), } }
}

mod argument_twice {
    use super::*;
    routes! { Api for App { GET "/things/{id}" => two(id, id), } }
}

mod prefix_without_slash {
    use super::*;
    routes! { Api for App { "a" => super::Inner, } }
}

mod prefix_with_slash_at_the_end {
    use super::*;
    routes! { Api for App { "/a/" => super::Inner, } }
}

mod prefix_with_parameter {
    use super::*;
    routes! { Api for App { "/a/{b}" => super::Inner, } }
}

mod prefix_that_breaks_the_grammar {
    use super::*;
    routes! { Api for App { "/a?b" => super::Inner, } }
}

fn main() {}
