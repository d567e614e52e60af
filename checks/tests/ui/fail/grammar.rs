//! Lines that are no rows. Each says which row, and what it lacks.

use sprat::routes;

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

mod no_arguments {
    use super::*;
    routes! { Api for App { GET "/a" => hello, } }
}

mod no_method {
    use super::*;
    routes! { Api for App { "/a" => hello(), } }
}

mod pattern_for_an_argument {
    use super::*;
    routes! { Api for App { POST "/a" => hello(Json(body)), } }
}

mod two_handlers {
    use super::*;
    routes! { Api for App { GET "/a" => hello world(), } }
}

mod constant_without_content {
    use super::*;
    routes! { Api for App { GET "/a" => const text, } }
}

mod option_unknown {
    use super::*;
    routes! { Api for App { POST "/a" => hello() [body_maximum = 1], } }
}

mod option_without_value {
    use super::*;
    routes! { Api for App { POST "/a" => hello() [body_max], } }
}

mod option_of_a_table_unknown {
    use super::*;
    routes! { Api for App [error = hello] { GET "/a" => hello(), } }
}

mod option_of_a_group_without_value {
    use super::*;
    routes! { Inner for App { GET "/a" => hello(), } }
    routes! { Api for App { "/in" => Inner [cors], } }
}

mod thirteen_arguments {
    use super::*;
    routes! { Api for App { GET "/a" => hello(a, b, c, d, e, f, g, h, i, j, k, l, m), } }
}

mod closure {
    use super::*;
    routes! { Api for App { GET "/" => hello(), GET "/a" => |_: &mut App| "hello", } }
}

mod closure_that_moves {
    use super::*;
    routes! { Api for App { GET "/a" => move || "hello", } }
}

mod type_arguments {
    use super::*;
    routes! { Api for App { GET "/a" => super::hello::<u8>(), } }
}

mod semicolon {
    use super::*;
    routes! { Api for App { GET "/a" => hello(); GET "/b" => hello(); } }
}

mod pattern_that_is_no_literal {
    use super::*;
    routes! { Api for App { GET "/a" => hello(), GET PATTERN => hello(), } }
}

fn main() {}
