use sprat::routes;
struct App;
fn hello(_: &mut App) -> &'static str { "hello" }
routes! {
    Api for App {
        GET "/" => hello,
    }
}
fn main() {}
