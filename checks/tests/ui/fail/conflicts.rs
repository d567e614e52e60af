//! Two rows that match the same requests. `tests/ui/pass/patterns.rs` has their neighbours that do not.

use sprat::routes;

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

routes! { Inner for App { GET "/c/{_x}" => hello(), } }
routes! { Other for App { GET "/{_z}" => hello(), } }

mod same {
    use super::*;
    routes! { Api for App { GET "/a" => hello(), POST "/a" => hello(), GET "/a" => hello(), } }
}

mod by_another_name {
    use super::*;
    routes! { Api for App { GET "/{_a}/b" => hello(), GET "/{_b}/b" => hello(), } }
}

mod rests {
    use super::*;
    routes! { Api for App { GET "/b/{*_a}" => hello(), GET "/b/{*_b}" => hello(), } }
}

mod in_a_group {
    use super::*;
    routes! { Api for App { "/b" => super::Inner, GET "/b/c/{_y}" => hello(), } }
}

mod between_groups {
    use super::*;
    routes! { Api for App { "/b" => super::Inner, "/b/c" => super::Other, } }
}

mod group_twice {
    use super::*;
    routes! { Api for App { "/b" => super::Inner, "/b" => super::Inner, } }
}

fn main() {}
