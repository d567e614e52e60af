use sprat::{Response, routes};
struct App;
fn answer(_: &mut App, response: Response<'_>) { let _ = response; }
routes! {
    Api for App {
        GET "/" => answer(response),
    }
}
fn main() {}
