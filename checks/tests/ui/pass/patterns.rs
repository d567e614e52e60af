//! The right twins of the patterns, rows and conflicts that do not compile.
#![deny(warnings)]

use sprat::{Method, routes};

struct App;

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn two(_: &mut App, a: u64, b: u64) -> String {
    (a + b).to_string()
}

routes! { Inner for App { GET "/c/{_x}" => hello(), } }

routes! {
    Api for App {
        GET "/hello" => hello(),
        GET "/" => hello(),
        GET "/a/b/" => hello(),
        GET "/a.b/..." => hello(),
        POST "/a-b/~!$&'()*+,;=:@" => hello(),
        GET "/über" => hello(),
        GET "/a/{b}/{c}" => two(b, c),
        GET "/rest/{*_b}" => hello(),
        GET "/{_a}/{_b}/{_c}/{_d}/{_e}/{_f}/{_g}/{_h}" => hello(),
        GET "/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1" => hello(),
        HEAD "/head" => hello(),
        PUT "/hello" => hello(),
        PATCH "/hello" => hello(),
        DELETE "/hello" => hello(),
        OPTIONS "/hello" => hello(),
        TRACE "/hello" => hello() [],
        GET "/same" => hello(),
        POST "/same" => hello(),
        GET "/same/" => hello(),
        GET "/same/{_x}" => hello(),
        GET "/same/{*_x}" => hello(),
        "/in" => Inner,
        "/in/c" => Inner,
        GET "/in/c/d" => hello(),
    }
}

fn main() {
    let mut client = sprat::testing::Client::new(Api, App);
    assert_eq!(client.get("/a/1/2").text(), "3");
    assert_eq!(client.get("/%C3%BCber").text(), "hello");
    assert_eq!(client.get("/rest/").text(), "hello");
    assert_eq!(client.get("/in/c/x").text(), "hello");
    assert_eq!(client.get("/in/c/c/x").text(), "hello");
    let answer = client.request(Method::Post, "/in/c/d").send();
    assert_eq!((answer.status(), answer.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
}
