//! `GET /version`.

use serde::Serialize;
use sprat::Json;

use crate::config::Backend;
use crate::routes::App;

#[derive(Serialize)]
pub struct Version {
    name: &'static str,
    version: &'static str,
    database: &'static str,
}

pub fn version(app: &mut App) -> Json<Version> {
    let database = match app.config.database {
        Backend::Sqlite(_) => "sqlite",
        Backend::Postgres(_) => "postgres",
    };
    Json(Version { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), database })
}
