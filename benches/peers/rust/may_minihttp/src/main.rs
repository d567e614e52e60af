//! may_minihttp, one worker. It has no router, so the paths are matched by hand.
//!
//! Known of it, and visible in the check: a `Content-Length` that is no number panics its coroutine,
//! `Connection: close` is ignored, and the reason phrase of 200 is `Ok`.

use std::io::{self, BufRead, Read};

use bytes::BufMut;
use may_minihttp::{HttpServer, HttpService, Request, Response};
use peer_common::{
    addr, id, is_bearer, listening, Created, Resource, HEALTH, HELLO, INVALID_BODY, INVALID_ID,
    NOT_FOUND, RESOURCE_PREFIX, UNAUTHORIZED,
};

const TEXT: &str = "Content-Type: text/plain; charset=utf-8";
const JSON: &str = "Content-Type: application/json";

#[derive(Clone)]
struct Peer;

fn text(response: &mut Response, body: &'static str) -> io::Result<()> {
    response.header(TEXT).body(body);
    Ok(())
}

fn refuse(
    response: &mut Response,
    code: usize,
    reason: &'static str,
    body: &'static str,
) -> io::Result<()> {
    response.status_code(code, reason).header(JSON).body(body);
    Ok(())
}

fn create(request: Request, response: &mut Response) -> io::Result<()> {
    let (mut token, mut length) = (false, 0);
    for field in request.headers() {
        if field.name.eq_ignore_ascii_case("authorization") {
            token = is_bearer(field.value);
        } else if field.name.eq_ignore_ascii_case("content-length") {
            let value = std::str::from_utf8(field.value).unwrap_or_default();
            length = value.parse().unwrap_or(0);
        }
    }
    let id = id(&request.path()[RESOURCE_PREFIX.len()..]);
    // Dropping the body reader skips what was not read of the body.
    let mut body = request.body();
    if !token {
        return refuse(response, 401, "Unauthorized", UNAUTHORIZED);
    }
    let Some(id) = id else {
        return refuse(response, 400, "Bad Request", INVALID_ID);
    };
    let mut whole = Vec::new();
    let mut bytes = body.fill_buf()?;
    if bytes.len() < length {
        body.read_to_end(&mut whole)?;
        bytes = &whole;
    }
    let Ok(data) = serde_json::from_slice::<Resource>(bytes) else {
        return refuse(response, 422, "Unprocessable Entity", INVALID_BODY);
    };
    response.header(JSON);
    serde_json::to_writer(response.body_mut().writer(), &Created::new(id, data))?;
    Ok(())
}

impl HttpService for Peer {
    fn call(&mut self, request: Request, response: &mut Response) -> io::Result<()> {
        match (request.method(), request.path()) {
            ("GET", "/") => text(response, HELLO),
            ("POST", path) if path.starts_with(RESOURCE_PREFIX) => create(request, response),
            ("GET", "/health") => text(response, HEALTH),
            ("GET", "/version") => {
                response.header(JSON).body(r#"{"server":"may_minihttp"}"#);
                Ok(())
            }
            _ => {
                drop(request.body());
                refuse(response, 404, "Not Found", NOT_FOUND)
            }
        }
    }
}

fn main() -> io::Result<()> {
    // Pool and stack (in words) as in the crate's own benchmark programs.
    may::config()
        .set_workers(1)
        .set_pool_capacity(1000)
        .set_stack_size(0x1000);
    let addr = addr();
    let server = HttpServer(Peer).start(&addr)?;
    listening(&addr);
    server
        .join()
        .map_err(|_| io::Error::other("the server panicked"))
}
