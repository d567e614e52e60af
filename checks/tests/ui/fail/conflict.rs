use sprat::routes;
struct App;
fn show(_: &mut App, id: u64) -> String { id.to_string() }
fn name(_: &mut App, name: &str) -> String { name.to_owned() }
routes! {
    Api for App {
        GET "/things/{id}" => show(id),
        POST "/things/{id}" => show(id),
        GET "/things/{name}" => name(name),
    }
}
fn main() {}
