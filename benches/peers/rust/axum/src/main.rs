//! axum with its own router and extractors, on tokio's current-thread runtime.

use std::io;

use axum::extract::{FromRequestParts, Path};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use peer_common::{
    addr, is_bearer, listening, Created, OwnedResource, HEALTH, HELLO, UNAUTHORIZED,
};
use tokio::net::TcpSocket;

type Text = ([(HeaderName, &'static str); 1], &'static str);

fn json(body: &'static str) -> Text {
    ([(CONTENT_TYPE, "application/json")], body)
}

/// There is a bearer token.
struct Bearer;

impl<S: Sync> FromRequestParts<S> for Bearer {
    type Rejection = (StatusCode, Text);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        match parts.headers.get(AUTHORIZATION) {
            Some(value) if is_bearer(value.as_bytes()) => Ok(Bearer),
            _ => Err((StatusCode::UNAUTHORIZED, json(UNAUTHORIZED))),
        }
    }
}

async fn create(
    _: Bearer,
    Path(id): Path<u64>,
    Json(data): Json<OwnedResource>,
) -> Json<Created<OwnedResource>> {
    Json(Created::new(id, data))
}

async fn serve(addr: &str) -> io::Result<()> {
    let app = Router::new()
        .route("/", get(|| async { HELLO }))
        .route("/api/v1/resource/{id}", post(create))
        .route("/health", get(|| async { HEALTH }))
        .route("/version", get(|| async { json(r#"{"server":"axum"}"#) }));
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_nodelay(true)?; // inherited by what it accepts
    socket.bind(addr.parse().map_err(io::Error::other)?)?;
    let listener = socket.listen(4096)?;
    listening(addr);
    axum::serve(listener, app).await
}

fn main() -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve(&addr()))
}
