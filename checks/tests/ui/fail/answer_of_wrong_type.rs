use sprat::routes;
struct App;
struct Thing;
fn show(_: &mut App) -> Thing { Thing }
routes! {
    Api for App {
        GET "/thing" => show(),
    }
}
fn main() {}
