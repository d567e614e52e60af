//! `GET /health`: whether this instance takes requests. It asks no database: one that is down would take all instances
//! out of the balancer at once, and those whose tokens only need to be refused, too.

use serde::Serialize;
use sprat::{Json, Request, Status};

use crate::routes::App;

#[derive(Serialize)]
pub struct Health {
    status: &'static str,
}

pub fn health(_: &mut App, request: Request<'_>) -> (Status, Json<Health>) {
    if request.is_draining() {
        return (Status::SERVICE_UNAVAILABLE, Json(Health { status: "draining" }));
    }
    (Status::OK, Json(Health { status: "ok" }))
}
