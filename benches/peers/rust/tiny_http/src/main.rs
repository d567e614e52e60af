//! tiny_http with one thread that answers. Its own thread pool reads the connections.

use std::error::Error;
use std::io::Cursor;

use peer_common::{
    addr, id, is_bearer, listening, Created, Resource, HEALTH, HELLO, INVALID_BODY, INVALID_ID,
    NOT_FOUND, RESOURCE_PREFIX, UNAUTHORIZED,
};
use tiny_http::{Header, Method, Request, Response, Server};

type Answer = Response<Cursor<Vec<u8>>>;

fn json(status: u16, body: impl Into<Vec<u8>>) -> Answer {
    let media = Header::from_bytes("Content-Type", "application/json").expect("a valid field");
    Response::from_data(body)
        .with_status_code(status)
        .with_header(media)
}

fn create(request: &mut Request) -> Answer {
    let token = request
        .headers()
        .iter()
        .find(|h| h.field.equiv("Authorization"));
    if !token.is_some_and(|t| is_bearer(t.value.as_bytes())) {
        return json(401, UNAUTHORIZED);
    }
    let Some(id) = id(&request.url()[RESOURCE_PREFIX.len()..]) else {
        return json(400, INVALID_ID);
    };
    let mut body = Vec::new();
    if request.as_reader().read_to_end(&mut body).is_err() {
        return json(400, INVALID_BODY);
    }
    let Ok(data) = serde_json::from_slice::<Resource>(&body) else {
        return json(422, INVALID_BODY);
    };
    match serde_json::to_vec(&Created::new(id, data)) {
        Ok(body) => json(200, body),
        Err(_) => json(500, "{}"),
    }
}

fn route(request: &mut Request) -> Answer {
    match (request.method(), request.url()) {
        (Method::Get, "/") => Response::from_string(HELLO),
        (Method::Post, path) if path.starts_with(RESOURCE_PREFIX) => create(request),
        (Method::Get, "/health") => Response::from_string(HEALTH),
        (Method::Get, "/version") => json(200, r#"{"server":"tiny_http"}"#),
        _ => json(404, NOT_FOUND),
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let addr = addr();
    let server = Server::http(&addr)?;
    listening(&addr);
    for mut request in server.incoming_requests() {
        let answer = route(&mut request);
        let _ = request.respond(answer); // the peer may have gone
    }
    Ok(())
}
