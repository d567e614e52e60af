use sprat::routes;
struct App;
fn show(_: &mut App) -> String { String::new() }
routes! {
    Api for App {
        GET "/things/{id}" => show(id),
    }
}
fn main() {}
