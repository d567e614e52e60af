//! Nothing that a user can call by a common name changes what a table means, and nothing in it warns.
#![deny(warnings)]
#![deny(missing_docs, unused_qualifications, unreachable_pub, non_camel_case_types, non_snake_case, elided_lifetimes_in_paths)]
#![deny(missing_debug_implementations, missing_copy_implementations, single_use_lifetimes, unused_results, trivial_casts)]
#![forbid(unsafe_code)]
#![allow(dead_code)]

extern crate sprat as web;

use web::testing::Client;

mod sprat {}
mod core {}
mod std {}
mod alloc {}

struct Ok;
struct Err;
struct Vec;
struct Option;
struct Some;
struct Result;
struct Method;
struct Request;
struct Response;
struct Rejection;
struct Table;
struct Row;
struct Routes;
struct Copy;
struct Clone;
struct Debug;
#[allow(non_camel_case_types)]
struct str;
#[allow(non_camel_case_types)]
struct bool;
#[allow(non_camel_case_types)]
struct u8;
#[allow(non_camel_case_types)]
struct usize;

fn method(_: &mut App) -> &'static ::std::primitive::str {
    "method"
}

fn state(state: &mut App) -> String {
    state.0.to_string()
}

fn parts(_: &mut App, parts: u64) -> String {
    parts.to_string()
}

fn body(_: &mut App, body: web::Body<'_>, state: web::Method) -> String {
    format!("{} {}", state.as_str(), body.len())
}

fn request(_: &mut App, r#type: ::std::primitive::u8, request: web::Request<'_>) -> String {
    format!("{type} {}", request.path())
}

const GET: () = ();
const POST: () = ();
static CONTENT: &::std::primitive::str = "from a static";
const COPY: &::std::primitive::str = "from a constant";

macro_rules! stringify {
    ($($any:tt)*) => {
        ()
    };
}

macro_rules! concat {
    ($($any:tt)*) => {
        ()
    };
}

struct App(::std::primitive::usize);

web::routes! {
    Api for App {
        GET "/method" => method(),
        GET "/state" => state(),
        GET "/parts/{parts}" => parts(parts),
        POST "/body" => body(body, state) [body_max = 4096],
        GET "/type/{type}" => request(r#type, request),
        GET "/constant" => const text(COPY),
    }
}

fn main() {
    let _ = (GET, POST, CONTENT, stringify!(a), concat!("a", "b"));
    let mut client = Client::new(Api, App(7));
    assert_eq!(client.get("/method").text(), "method");
    assert_eq!(client.get("/state").text(), "7");
    assert_eq!(client.get("/parts/12").text(), "12");
    assert_eq!(client.post("/body", b"abc").text(), "POST 3");
    assert_eq!(client.get("/type/3").text(), "3 /type/3");
    assert_eq!(client.get("/constant").text(), "from a constant");
}
