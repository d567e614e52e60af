//! actix-web with its own routes and extractors, one worker.

use std::future::{ready, Ready};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::{error, get, post, web, App, FromRequest, HttpRequest, HttpResponse, HttpServer};
use peer_common::{
    addr, is_bearer, listening, Created, OwnedResource, HEALTH, HELLO, UNAUTHORIZED,
};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// There is a bearer token.
struct Bearer;

impl FromRequest for Bearer {
    type Error = actix_web::Error;
    type Future = Ready<Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let token = request.headers().get(AUTHORIZATION);
        ready(if token.is_some_and(|t| is_bearer(t.as_bytes())) {
            Ok(Bearer)
        } else {
            let answer = HttpResponse::Unauthorized()
                .content_type(JSON)
                .body(UNAUTHORIZED);
            Err(error::InternalError::from_response("no token", answer).into())
        })
    }
}

#[get("/")]
async fn hello() -> HttpResponse {
    HttpResponse::Ok().content_type(TEXT).body(HELLO)
}

#[get("/health")]
async fn health() -> HttpResponse {
    HttpResponse::Ok().content_type(TEXT).body(HEALTH)
}

#[get("/version")]
async fn version() -> HttpResponse {
    let body = r#"{"server":"actix-web"}"#;
    HttpResponse::Ok().content_type(JSON).body(body)
}

#[post("/api/v1/resource/{id}")]
async fn create(
    _: Bearer,
    id: web::Path<u64>,
    data: web::Json<OwnedResource>,
) -> web::Json<Created<OwnedResource>> {
    web::Json(Created::new(id.into_inner(), data.into_inner()))
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let addr = addr();
    let server = HttpServer::new(|| {
        App::new()
            .service(hello)
            .service(create)
            .service(health)
            .service(version)
    })
    .workers(1)
    .backlog(4096)
    // The default of 5 s would close an idle herd.
    .keep_alive(Duration::from_secs(75))
    .bind(&addr)?;
    listening(&addr);
    server.run().await
}
