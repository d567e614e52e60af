use sprat::routes;
struct App;
struct Other;
fn hello(_: &mut Other) -> &'static str { "hello" }
routes! {
    Inner for Other {
        GET "/" => hello(),
    }
}
routes! {
    Api for App {
        "/inner" => Inner,
    }
}
fn main() {}
