use sprat::{Response, Sent, routes};
struct App;
fn answer<'r>(_: &mut App, one: Response<'r>, two: Response<'r>) -> Sent<'r> { let _ = two; one.text("hello") }
routes! {
    Api for App {
        GET "/" => answer(one, two),
    }
}
fn main() {}
