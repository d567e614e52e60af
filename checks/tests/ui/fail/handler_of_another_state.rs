use sprat::routes;
struct App;
struct Other;
fn hello(_: &mut Other) -> &'static str { "hello" }
routes! {
    Api for App {
        GET "/" => hello(),
    }
}
fn main() {}
