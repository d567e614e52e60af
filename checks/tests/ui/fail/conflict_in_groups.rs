use sprat::routes;
struct App;
fn hello(_: &mut App) -> &'static str { "hello" }
routes! {
    Inner for App {
        GET "/b/{_x}" => hello(),
    }
}
routes! {
    Api for App {
        GET "/a/b/{_y}" => hello(),
        "/a" => Inner,
    }
}
fn main() {}
