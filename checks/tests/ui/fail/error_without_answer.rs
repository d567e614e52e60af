use sprat::routes;
struct App;
struct Missing;
fn user(_: &mut App, id: u64) -> Result<String, Missing> { if id == 0 { Err(Missing) } else { Ok(id.to_string()) } }
routes! {
    Api for App {
        GET "/users/{id}" => user(id),
    }
}
fn main() {}
