//! The whole server over a real socket allocates nothing for a request on a warm connection.
//!
//! Server and client share a thread, so that the counter of one thread sees all that the server does; the client writes
//! and reads with buffers that it has already.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sprat::{Bearer, Body, Json, Query, Running, Server, Status, routes};
use sprat_checks::counting::{Counting, count};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Deserialize, Serialize)]
struct Resource<'r> {
    name: &'r str,
    active: bool,
}

#[derive(Deserialize)]
struct Page<'r> {
    size: u32,
    after: &'r str,
}

routes! {
    Api for () {
        GET  "/"                  => hello(),
        GET  "/const"             => const text("constant"),
        GET  "/echo-path/{id}"    => number(id),
        GET  "/name/{name}"       => name(name),
        GET  "/page"              => page(query),
        POST "/resource/{id}"     => create(id, token, body),
        POST "/echo"              => echo(body),
        GET  "/teapot"            => teapot(),
    }
}

fn hello(_: &mut ()) -> &'static str {
    "Hello, World!"
}
fn number(_: &mut (), id: u64) -> (Status, &'static str) {
    (Status::OK, if id == 42 { "the answer" } else { "a number" })
}
fn name<'r>(_: &mut (), name: &'r str) -> &'r str {
    name
}
fn page<'r>(_: &mut (), Query(page): Query<Page<'r>>) -> &'r str {
    if page.size == 20 { page.after } else { "" }
}
fn create<'r>(_: &mut (), _: u64, _: Bearer<'r>, Json(data): Json<Resource<'r>>) -> Json<Resource<'r>> {
    Json(data)
}
fn echo<'r>(_: &mut (), body: Body<'r>) -> Body<'r> {
    body
}
fn teapot(_: &mut ()) -> Option<Status> {
    Status::new(418)
}

struct Lab {
    server: Running<()>,
    client: TcpStream,
    answer: Vec<u8>,
}

impl Lab {
    fn new() -> Lab {
        let server = Server::bind("127.0.0.1:0").unwrap().start(Api, ()).unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        Lab { server, client, answer: vec![0; 64 << 10] }
    }

    /// Sends and waits for the answer: its length.
    fn exchange(&mut self, request: &[u8]) -> usize {
        self.client.write_all(request).unwrap();
        for _ in 0..1000 {
            self.server.poll_once(Some(Duration::from_millis(10))).unwrap();
            if let Ok(n) = self.client.read(&mut self.answer) {
                return n;
            }
        }
        panic!("no answer");
    }
}

/// The answer has this status, and after some of them the next hundred cost no allocation.
#[track_caller]
fn costs_nothing(request: &str, status: &str) {
    let mut lab = Lab::new();
    for _ in 0..20 {
        let len = lab.exchange(request.as_bytes());
        let line = String::from_utf8_lossy(&lab.answer[..len.min(32)]).into_owned();
        assert!(line.starts_with(&format!("HTTP/1.1 {status}")), "{request:?} was answered with {line:?}");
    }
    let before = count();
    for _ in 0..100 {
        lab.exchange(request.as_bytes());
    }
    assert_eq!(count() - before, 0, "for 100 of {request:?}");
}

#[test]
fn a_get_costs_no_allocation() {
    costs_nothing("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "200");
    costs_nothing("GET /const HTTP/1.1\r\nHost: x\r\n\r\n", "200");
    costs_nothing("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "200");
    costs_nothing("GET /teapot HTTP/1.1\r\nHost: x\r\n\r\n", "418");
}

#[test]
fn a_path_parameter_costs_no_allocation_escaped_or_not() {
    costs_nothing("GET /echo-path/42 HTTP/1.1\r\nHost: x\r\n\r\n", "200");
    costs_nothing("GET /name/alice HTTP/1.1\r\nHost: x\r\n\r\n", "200");
    costs_nothing("GET /name/al%69ce%2F HTTP/1.1\r\nHost: x\r\n\r\n", "200");
    costs_nothing("GET /page?size=20&after=alice HTTP/1.1\r\nHost: x\r\n\r\n", "200");
}

#[test]
fn what_no_route_matches_costs_no_allocation() {
    costs_nothing("GET /nothing/here HTTP/1.1\r\nHost: x\r\n\r\n", "404");
    costs_nothing("DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", "405");
    costs_nothing("OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n", "204");
}

#[test]
fn a_body_costs_no_allocation() {
    let json = "POST /resource/42 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nContent-Type: application/json\r\n\
                Content-Length: 30\r\n\r\n{\"name\":\"alice\",\"active\":true}";
    costs_nothing(json, "200");
    costs_nothing(&json.replacen("alice", r"al\ne", 1), "200");
    costs_nothing("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "200");
    costs_nothing("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200");
}

#[test]
fn sixteen_requests_at_once_and_a_browsers_head_cost_no_allocation() {
    costs_nothing(&"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(16), "200");
    let fields: String = (0..40).map(|n| format!("X-Field-{n}: a value of some length\r\n")).collect();
    costs_nothing(&format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}Connection: keep-alive\r\n\r\n"), "200");
}
