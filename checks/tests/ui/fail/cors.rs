//! Policies that no browser would follow. `tests/ui/pass/options.rs` has the right ones.

use sprat::{Cors, routes};

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

mod credentials_for_all {
    use super::*;
    routes! { Api for App [cors = Cors::any().credentials()] { GET "/" => hello(), } }
}

mod slash_at_the_end {
    use super::*;
    routes! { Api for App [cors = Cors::of(&["https://a.example/"])] { GET "/" => hello(), } }
}

mod star_among_the_fields {
    use super::*;
    routes! { Api for App { GET "/" => hello() [cors = Cors::any().fields(&["*"])], } }
}

mod no_policy {
    use super::*;
    routes! { Api for App { GET "/" => hello() [cors = true], } }
}

fn main() {}
