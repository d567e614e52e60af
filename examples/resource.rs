//! A JSON API with a bearer token: `cargo run --release --example resource [ADDRESS]`, then
//!
//! ```sh
//! curl -i localhost:3000/api/v1/resource/42 -H 'Authorization: Bearer any' --json '{"name":"alice","active":true}'
//! ```

use serde::{Deserialize, Serialize};
use sprat::{Bearer, Json, Server, routes};

/// The state: plain, and owned by the server's one thread.
pub struct App {
    /// How many resources were created.
    pub created: u64,
}

/// What a client sends. It borrows from the receive buffer: nothing is copied before it is answered.
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

#[derive(Serialize)]
struct Version {
    name: &'static str,
    version: &'static str,
    created: u64,
}

routes! {
    /// The public API. Any token opens it; see `Bearer` for how to compare one.
    pub Api for App {
        GET  "/"                     => const text("Hello, World!"),
        POST "/api/v1/resource/{id}" => create(id, auth, body) [body_max = 65536],
        GET  "/health"               => const text("ok"),
        GET  "/version"              => version(),
    }
}

fn create<'r>(app: &mut App, id: u64, _: Bearer<'r>, Json(data): Json<Resource<'r>>) -> Json<Created<'r>> {
    app.created += 1;
    Json(Created { status: "success", id, data })
}

fn version(app: &mut App) -> Json<Version> {
    Json(Version { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), created: app.created })
}

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let server = Server::bind(address)?.shutdown_on_signals();
    println!("listening on http://{}", server.local_addr()?);
    server.serve(Api, App { created: 0 })
}
