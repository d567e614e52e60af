//! What every Rust peer shares: the resource's types, its two checks, its fixed answers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub const HELLO: &str = "Hello, World!";
pub const HEALTH: &str = "ok";
pub const UNAUTHORIZED: &str = r#"{"error":"Unauthorized"}"#;
pub const NOT_FOUND: &str = r#"{"error":"Not Found"}"#;
pub const INVALID_ID: &str = r#"{"error":"Invalid id"}"#;
pub const INVALID_BODY: &str = r#"{"error":"Invalid body"}"#;
pub const RESOURCE_PREFIX: &str = "/api/v1/resource/";

/// The body of the POST, borrowed from the request where it has no escapes.
#[derive(Deserialize, Serialize)]
pub struct Resource<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    pub active: bool,
}

/// The same, for frameworks whose extractors give owned values.
#[derive(Deserialize, Serialize)]
pub struct OwnedResource {
    pub name: String,
    pub active: bool,
}

/// The answer to the POST.
#[derive(Serialize)]
pub struct Created<T> {
    pub status: &'static str,
    pub id: u64,
    pub data: T,
}

impl<T> Created<T> {
    pub fn new(id: u64, data: T) -> Self {
        Created {
            status: "success",
            id,
            data,
        }
    }
}

/// A `u64` in digits alone (`str::parse` would take a sign as well).
pub fn id(text: &str) -> Option<u64> {
    if text.starts_with('+') {
        return None;
    }
    text.parse().ok()
}

/// Whether the value of an `Authorization` field carries a bearer token.
pub fn is_bearer(value: &[u8]) -> bool {
    value.len() > 7 && value[..7].eq_ignore_ascii_case(b"bearer ")
}

/// Prints the line that says the server listens.
pub fn listening(addr: &str) {
    println!("listening on {addr}");
}

/// The first argument, `127.0.0.1:PORT`.
pub fn addr() -> String {
    std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".into())
}
