use sprat::{Body, routes};
struct App;
fn put(_: &mut App, body: Body<'_>) -> String { body.len().to_string() }
routes! {
    Api for App {
        PUT "/things/{id}" => put(body),
    }
}
fn main() {}
