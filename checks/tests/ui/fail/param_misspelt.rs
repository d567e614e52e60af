use sprat::routes;
struct App;
fn show(_: &mut App, id: u64) -> String { id.to_string() }
routes! {
    Api for App {
        GET "/things/{id}" => show(idd),
    }
}
fn main() {}
