use serde::Deserialize;
use sprat::{Json, routes};
struct App;
#[derive(Deserialize)]
struct Order { item: &str, count: u32 }
fn order(_: &mut App, Json(order): Json<Order>) -> String { format!("{} {}", order.item, order.count) }
routes! {
    Api for App {
        POST "/orders" => order(body),
    }
}
fn main() {}
