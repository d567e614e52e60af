use sprat::routes;
struct App;
routes! {
    Api for App {
        GET "/" => hello(),
    }
}
fn main() {}
