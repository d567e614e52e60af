//! hyper's own `http1::Builder` with `pipeline_flush`, on tokio's current-thread runtime.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, AUTHORIZATION, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use peer_common::{
    addr, id, is_bearer, listening, Created, Resource, HEALTH, HELLO, INVALID_BODY, INVALID_ID,
    NOT_FOUND, RESOURCE_PREFIX, UNAUTHORIZED,
};
use tokio::net::TcpSocket;

const VERSION: &str = r#"{"server":"hyper"}"#;

type Answer = Response<Full<Bytes>>;

fn answer(status: StatusCode, media: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn text(body: &'static str) -> Answer {
    answer(StatusCode::OK, "text/plain; charset=utf-8", body)
}

fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, "application/json", body)
}

async fn create(request: Request<Incoming>) -> Answer {
    let token = request.headers().get(AUTHORIZATION);
    if !token.is_some_and(|t| is_bearer(t.as_bytes())) {
        return json(StatusCode::UNAUTHORIZED, UNAUTHORIZED);
    }
    let Some(id) = id(&request.uri().path()[RESOURCE_PREFIX.len()..]) else {
        return json(StatusCode::BAD_REQUEST, INVALID_ID);
    };
    let Ok(body) = request.into_body().collect().await else {
        return json(StatusCode::BAD_REQUEST, INVALID_BODY);
    };
    let body = body.to_bytes();
    let Ok(data) = serde_json::from_slice::<Resource>(&body) else {
        return json(StatusCode::UNPROCESSABLE_ENTITY, INVALID_BODY);
    };
    match serde_json::to_vec(&Created::new(id, data)) {
        Ok(body) => json(StatusCode::OK, body),
        Err(_) => json(StatusCode::INTERNAL_SERVER_ERROR, "{}"),
    }
}

async fn route(request: Request<Incoming>) -> Result<Answer, Infallible> {
    Ok(match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => text(HELLO),
        (&Method::POST, path) if path.starts_with(RESOURCE_PREFIX) => create(request).await,
        (&Method::GET, "/health") => text(HEALTH),
        (&Method::GET, "/version") => json(StatusCode::OK, VERSION),
        _ => json(StatusCode::NOT_FOUND, NOT_FOUND),
    })
}

async fn serve(addr: &str) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_nodelay(true)?; // inherited by what it accepts
    socket.bind(addr.parse().map_err(io::Error::other)?)?;
    let listener = socket.listen(4096)?;
    listening(addr);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                eprintln!("accept: {e}");
                tokio::task::yield_now().await;
                continue;
            }
        };
        tokio::spawn(async move {
            let _ = http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service_fn(route))
                .await;
        });
    }
}

fn main() -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?
        .block_on(serve(&addr()))
}
