use sprat::{Json, routes};
struct App;
struct Order { item: String, count: u32 }
fn order(_: &mut App, Json(order): Json<Order>) -> String { format!("{} {}", order.item, order.count) }
routes! {
    Api for App {
        POST "/orders" => order(body),
    }
}
fn main() {}
