//! The table that the benches and budgets serve from: the routes that every peer serves.

use serde::{Deserialize, Serialize};
use sprat::{Bearer, Json, routes};

/// The state.
#[derive(Debug, Default)]
pub struct App {
    /// Requests that created something.
    pub created: u64,
}

#[derive(Deserialize, Serialize)]
struct Resource<'r> {
    name: &'r str,
    active: bool,
}

#[derive(Serialize)]
struct Created<'r> {
    status: &'static str,
    id: u64,
    data: Resource<'r>,
}

routes! {
    /// The routes.
    pub Api for App {
        GET  "/"                     => hello(),
        POST "/api/v1/resource/{id}" => create(id, auth, body),
    }
}

fn hello(_: &mut App) -> &'static str {
    "Hello, World!"
}

fn create<'r>(app: &mut App, id: u64, _: Bearer<'r>, Json(data): Json<Resource<'r>>) -> Json<Created<'r>> {
    app.created += 1;
    Json(Created { status: "success", id, data })
}
