use sprat::{Json, routes};
struct App;
struct Order { item: String }
fn order(_: &mut App) -> Json<Order> { Json(Order { item: String::new() }) }
routes! {
    Api for App {
        GET "/order" => order(),
    }
}
fn main() {}
