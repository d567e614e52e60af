use sprat::{Response, Sent, routes};
struct App;
fn answer<'r>(_: &mut App, response: Response<'r>) -> Sent<'r> { let _ = response.text("one"); response.text("two") }
routes! {
    Api for App {
        GET "/" => answer(response),
    }
}
fn main() {}
