//! The right twins of `deserialize_missing`, `lifetime_missing`, `rate_key_missing` and `param_misspelt`.

use serde::Deserialize;
use sprat::{FromRequest, Json, Limited, LimitedBy, Nothing, RateLimit, Rejection, Request, routes};

struct App(RateLimit<Tenant>);

#[derive(Deserialize)]
struct Order<'r> {
    item: &'r str,
    count: u32,
}

fn order(_: &mut App, Json(order): Json<Order<'_>>) -> String {
    format!("{} {}", order.item, order.count)
}

#[derive(Hash, PartialEq, Eq)]
struct Tenant(String);

impl<'r> FromRequest<'r, App> for Tenant {
    type Takes = Nothing;
    fn from_request(request: &Request<'r>, (): (), _: &mut App) -> Result<Tenant, Rejection> {
        Ok(Tenant(request.path().to_owned()))
    }
}

struct PerTenant;

impl LimitedBy<App> for PerTenant {
    type Key = Tenant;
    fn limit(app: &mut App) -> &mut RateLimit<Tenant> {
        &mut app.0
    }
}

fn list(_: &mut App, _: Limited<PerTenant>) -> &'static str {
    "all"
}

fn show(_: &mut App, id: u64) -> String {
    id.to_string()
}

routes! {
    Api for App {
        POST "/orders" => order(body),
        GET "/list" => list(limit),
        GET "/things/{id}" => show(id),
    }
}

fn main() {
    let _ = Api;
}
