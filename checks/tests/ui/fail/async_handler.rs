use sprat::routes;
struct App;
async fn hello(_: &mut App) -> String { "hello".to_owned() }
routes! {
    Api for App {
        GET "/" => hello(),
    }
}
fn main() {}
