//! A table that has all refusals said as JSON, also those that the server makes on its own account.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sprat::testing::Client;
use sprat::{ByAddress, Later, Limited, LimitedBy, Method, Offload, RateLimit, Rejection, Server, Status, routes};

struct App {
    limit: RateLimit<ByAddress>,
}

struct Once;

impl LimitedBy<App> for Once {
    type Key = ByAddress;
    fn limit(app: &mut App) -> &mut RateLimit<ByAddress> {
        &mut app.limit
    }
}

static GATE: AtomicBool = AtomicBool::new(false);

fn in_json(_: &mut App, error: Rejection) -> Rejection {
    error.into_json()
}

routes! {
    Plain for App {
        GET "/id/{id}" => id(id),
    }
}

routes! {
    Api for App [errors = in_json] {
        GET  "/id/{id}"  => id(id),
        GET  "/limited"  => limited(limit),
        GET  "/teapot"   => teapot(),
        GET  "/made"     => made(),
        GET  "/panic"    => fail(),
        GET  "/jobs"     => work(later),
        GET  "/mine"     => mine(),
        POST "/small"    => small(body) [body_max = 4],
    }
}

fn id(_: &mut App, id: u64) -> String {
    id.to_string()
}

fn limited(_: &mut App, _: Limited<Once>) -> &'static str {
    "in"
}

fn teapot(_: &mut App) -> Status {
    Status::CONFLICT
}

fn made(_: &mut App) -> Status {
    Status::CREATED
}

fn fail(_: &mut App) -> &'static str {
    panic!("as asked for")
}

fn work(_: &mut App, later: Later<App>) {
    let wait = || {
        while !GATE.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    later.offload(wait, |_, ()| "done");
}

fn mine(_: &mut App) -> Rejection {
    Rejection::text(Status::FORBIDDEN, "only for \"members\"")
}

fn small(_: &mut App, body: Vec<u8>) -> Vec<u8> {
    body
}

fn app() -> App {
    App { limit: RateLimit::new(1, Duration::from_secs(60)) }
}

fn client() -> Client<App> {
    Client::new(Api, app()).with_peer(([192, 0, 2, 1], 9).into())
}

#[track_caller]
fn says(target: &str, status: u16, text: &str) {
    let answer = client().get(target);
    assert_eq!((answer.status(), answer.text()), (status, text));
    assert_eq!(answer.field("content-type"), Some("application/json"));
}

#[test]
fn what_no_handler_says_is_json_if_asked_for() {
    says("/none", 404, r#"{"error":"not_found","message":"no route matches this path"}"#);
    let expected = "path parameter id: expected a whole number in digits (u64)";
    says("/id/x", 400, &format!(r#"{{"error":"bad_request","message":"{expected}"}}"#));
    says("/teapot", 409, r#"{"error":"conflict","message":"Conflict"}"#);
    says("/mine", 403, r#"{"error":"forbidden","message":"only for \"members\""}"#);
    let failed = r#"{"error":"internal_server_error","message":"the server failed to answer this request"}"#;
    says("/panic", 500, failed);
    says("/a/../b", 400, r#"{"error":"bad_request","message":"the path holds a dot segment (RFC 3986 5.2.4)"}"#);
}

#[test]
fn fields_of_a_refusal_stay() {
    let mut client = client();
    assert_eq!(client.get("/limited").status(), 200);
    let refused = client.get("/limited");
    assert_eq!(refused.text(), r#"{"error":"too_many_requests","message":"too many requests"}"#);
    assert_eq!(refused.field("retry-after"), Some("60"));
    let wrong = client.request(Method::Delete, "/teapot").send();
    assert_eq!((wrong.status(), wrong.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert_eq!(wrong.text(), r#"{"error":"method_not_allowed","message":"the method is not allowed on this path"}"#);
    let large = client.post("/small", b"12345");
    assert_eq!(
        large.text(),
        r#"{"error":"content_too_large","message":"the content is larger than this server takes here"}"#
    );
    let head = client.request(Method::Head, "/none").send();
    assert_eq!((head.status(), head.field("content-length"), head.body()), (404, Some("60"), &b""[..]));
}

#[test]
fn what_is_no_error_stays_as_it_is_and_so_does_all_if_not_asked_for() {
    assert_eq!(client().get("/made").text(), "Created");
    let answer = Client::new(Plain, app()).get("/none");
    assert_eq!(
        (answer.text(), answer.field("content-type")),
        ("no route matches this path", Some("text/plain; charset=utf-8"))
    );
}

#[test]
fn a_pool_without_room_says_so_in_json() {
    let offload = Offload { threads: 1, queue: 0, ..Offload::DEFAULT };
    let server = Server::bind("127.0.0.1:0").expect("a free port").offload(offload);
    let (address, handle) = (server.local_addr().expect("an address"), server.handle());
    let thread = std::thread::spawn(move || server.serve(Api, app()));
    let ask = || {
        let mut stream = TcpStream::connect(address).expect("a listener");
        stream.write_all(b"GET /jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("room");
        stream
    };
    let read = |mut stream: TcpStream| {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    // Whichever of the two comes second finds no room, and its answer opens the gate for the first.
    let (first, second) = (ask(), ask());
    first.set_nonblocking(true).expect("a socket");
    second.set_nonblocking(true).expect("a socket");
    let refused_second = loop {
        match (first.peek(&mut [0]), second.peek(&mut [0])) {
            (_, Ok(_)) => break true,
            (Ok(_), _) => break false,
            _ => {}
        }
    };
    GATE.store(true, Ordering::SeqCst);
    first.set_nonblocking(false).expect("a socket");
    second.set_nonblocking(false).expect("a socket");
    let (refused, done) = if refused_second { (second, first) } else { (first, second) };
    let refused = read(refused);
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains(r#"{"error":"service_unavailable","message":"#), "{refused}");
    assert!(read(done).ends_with("done"));
    handle.shutdown();
    thread.join().expect("no panic").expect("it ends well");
}

#[test]
fn over_a_socket_a_broken_head_is_refused_in_json() {
    let server = Server::bind("127.0.0.1:0").expect("a free port");
    let (address, handle) = (server.local_addr().expect("an address"), server.handle());
    let thread = std::thread::spawn(move || server.serve(Api, app()));
    let mut stream = TcpStream::connect(address).expect("a listener");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("room");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("\r\nContent-Type: application/json\r\n"), "{answer}");
    assert!(
        answer
            .ends_with(r#"{"error":"bad_request","message":"an HTTP/1.1 request needs a Host field (RFC 9112 3.2)"}"#)
    );
    handle.shutdown();
    thread.join().expect("no panic").expect("it ends well");
}
