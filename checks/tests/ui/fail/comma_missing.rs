//! Two lines without a comma between them. The text names the second.

use sprat::routes;

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

routes! { Inner for App { GET "/" => hello(), } }

mod between_rows {
    use super::*;
    routes! { Api for App { GET "/" => hello() GET "/b" => hello(), } }
}

mod behind_options {
    use super::*;
    routes! { Api for App { GET "/a" => hello(), GET "/b" => hello() [body_max = 1] GET "/c" => hello(), } }
}

mod behind_a_constant {
    use super::*;
    routes! { Api for App { GET "/" => const text("hello") "/in" => Inner } }
}

mod behind_a_group {
    use super::*;
    routes! { Api for App { "/in" => Inner GET "/" => hello() } }
}

mod between_groups {
    use super::*;
    routes! { Api for App { "/in" => Inner "/other" => Inner } }
}

fn main() {}
