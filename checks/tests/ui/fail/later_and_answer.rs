//! Handlers that take `Later`, and answer in another way than by it.

use sprat::{Later, Status, routes};

struct App;
struct Missing;

fn status(_: &mut App, later: Later<App>) -> Status {
    later.answer("later");
    Status::ACCEPTED
}

fn result(_: &mut App, _: Later<App>) -> Result<(), Missing> {
    Err(Missing)
}

mod answers_twice {
    use super::*;
    routes! { Api for App { GET "/" => status(later), } }
}

mod error_without_answer {
    use super::*;
    routes! { Api for App { GET "/" => result(later), } }
}

fn main() {}
