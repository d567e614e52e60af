use sprat::routes;
struct App;
struct Id(u64);
fn show(_: &mut App, id: Id) -> String { id.0.to_string() }
routes! {
    Api for App {
        GET "/" => const text("hello"),
        GET "/things/{id}" => show(id),
    }
}
fn main() {}
