//! Captured requests: what benches, budgets and ladder feed to servers.

use crate::ladder::BROWSER_FIELDS;
use crate::peers::check::{RESOURCE, RESOURCE_BODY, RESOURCE_FIELDS};

/// A request with nothing but Host: 43 bytes, as a terse client sends it.
pub fn get() -> Vec<u8> {
    format!("GET / HTTP/1.1\r\n{HOST}\r\n").into_bytes()
}

/// A browser's request: 430 bytes, 9 fields.
pub fn browser() -> Vec<u8> {
    with_fields("GET /", BROWSER_FIELDS.iter().map(|field| (*field).to_owned()), 430)
}

/// A request that came through several proxies: 1.5 KB, 40 fields.
pub fn proxied() -> Vec<u8> {
    let names = ["X-Request-Id", "X-Forwarded-For", "X-B3-TraceId", "Via", "X-Envoy-Decorator-Operation", "Forwarded"];
    let field = |n: usize| format!("{}-{n}: value-{n:04}", names[n % names.len()]);
    with_fields("GET /api/v1/resource/42", (0..39).map(field), 1536)
}

/// The resource's POST.
pub fn post() -> Vec<u8> {
    let [kind, token] = RESOURCE_FIELDS;
    let len = RESOURCE_BODY.len();
    format!("POST {RESOURCE} HTTP/1.1\r\n{HOST}{kind}\r\n{token}\r\nContent-Length: {len}\r\n\r\n{RESOURCE_BODY}")
        .into_bytes()
}

/// A request of the budgets and the machine's benches, by its name: its bytes, and how many requests they are.
pub fn by_name(name: &str) -> Option<(Vec<u8>, u64)> {
    match name {
        "get" => Some((get(), 1)),
        "post" => Some((post(), 1)),
        "browser" => Some((browser(), 1)),
        "get-pipelined-16" => Some((get().repeat(16), 16)),
        "post-pipelined-16" => Some((post().repeat(16), 16)),
        _ => None,
    }
}

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 5] = ["get", "post", "browser", "get-pipelined-16", "post-pipelined-16"];

const HOST: &str = "Host: server.local:3000\r\n";

/// A head of exactly this length: the last field is lengthened.
fn with_fields(start: &str, fields: impl Iterator<Item = String>, len: usize) -> Vec<u8> {
    let mut head = format!("{start} HTTP/1.1\r\n{HOST}");
    for field in fields {
        head.push_str(&field);
        head.push_str("\r\n");
    }
    head.truncate(head.len() - 2);
    while head.len() + 4 < len {
        head.push('a');
    }
    head.push_str("\r\n\r\n");
    head.into_bytes()
}

/// A chunked body: this much content in chunks of this size.
pub fn chunked(content_len: usize, chunk_len: usize) -> Vec<u8> {
    let content: Vec<u8> = (0..content_len).map(|n| b'a' + (n % 26) as u8).collect();
    let mut body = Vec::new();
    for chunk in content.chunks(chunk_len) {
        body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    body
}

/// A JSON array of objects like the resource's, at least this long: 32 bytes are one object.
pub fn json(len: usize) -> String {
    let mut text = String::from("[");
    for n in 0.. {
        if n > 0 {
            text.push(',');
        }
        text.push_str(if n % 2 == 0 { RESOURCE_BODY } else { r#"{"name":"bob","active":false}"# });
        if text.len() + 1 >= len {
            break;
        }
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_as_long_as_they_are_said_to_be() {
        let fields = |head: &[u8]| head.split(|&b| b == b'\n').count() - 3;
        assert_eq!((get().len(), fields(&get())), (43, 1));
        assert_eq!((browser().len(), fields(&browser())), (430, 9));
        assert_eq!((proxied().len(), fields(&proxied())), (1536, 40));
        assert_eq!(json(32).len(), 32);
    }

    #[test]
    fn the_machine_answers_each_of_them() {
        for name in NAMES {
            let (bytes, requests) = by_name(name).unwrap();
            let mut replay = sprat::internals::Replay::new(crate::app::Api, crate::app::App::default());
            let mut sent = Vec::new();
            replay.receive(&bytes, |bytes| sent.extend_from_slice(bytes));
            assert_eq!(memchr::memmem::find_iter(&sent, b"HTTP/1.1 200 OK\r\n").count() as u64, requests, "{name}");
        }
    }
}
