//! Patterns that break the grammar. Each names method and pattern; `tests/ui/pass/patterns.rs` has the right ones.

use sprat::routes;

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

mod no_slash {
    use super::*;
    routes! { Api for App { GET "hello" => hello(), } }
}

mod empty {
    use super::*;
    routes! { Api for App { GET "" => hello(), } }
}

mod query {
    use super::*;
    routes! { Api for App { GET "/a?b" => hello(), } }
}

mod fragment {
    use super::*;
    routes! { Api for App { GET "/a#b" => hello(), } }
}

mod escape {
    use super::*;
    routes! { Api for App { POST "/a%20b" => hello(), } }
}

mod blank {
    use super::*;
    routes! { Api for App { GET "/a b" => hello(), } }
}

mod control {
    use super::*;
    routes! { Api for App { GET "/a\tb" => hello(), } }
}

mod bracket {
    use super::*;
    routes! { Api for App { GET "/a[b]" => hello(), } }
}

mod empty_segment {
    use super::*;
    routes! { Api for App { GET "/a//b" => hello(), } }
}

mod two_slashes_at_the_end {
    use super::*;
    routes! { Api for App { GET "/a//" => hello(), } }
}

mod dot {
    use super::*;
    routes! { Api for App { GET "/a/./b" => hello(), } }
}

mod dots {
    use super::*;
    routes! { Api for App { GET "/a/..;x" => hello(), } }
}

mod half_a_segment {
    use super::*;
    routes! { Api for App { GET "/a/{b}.json" => const text("x"), } }
}

mod unclosed {
    use super::*;
    routes! { Api for App { GET "/a/{b" => const text("x"), } }
}

mod no_name {
    use super::*;
    routes! { Api for App { GET "/a/{}" => const text("x"), } }
}

mod no_identifier {
    use super::*;
    routes! { Api for App { GET "/a/{b-c}" => const text("x"), } }
}

mod name_twice {
    use super::*;
    routes! { Api for App { GET "/a/{b}/c/{b}" => const text("x"), } }
}

mod rest_inside {
    use super::*;
    routes! { Api for App { GET "/a/{*b}/c" => const text("x"), } }
}

mod nine_parameters {
    use super::*;
    routes! { Api for App { GET "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}" => const text("x"), } }
}

mod too_many_segments {
    use super::*;
    routes! { Api for App { GET "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a" => const text("x"), } }
}

fn main() {}
