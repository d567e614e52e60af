//! The option `observe`: who is told of which answers, when, and what of them.

use std::time::Duration;

use sprat::testing::{Client, Link};
use sprat::{Bearer, Cors, Exchange, Later, Limits, Method, Status, Stream, StreamHead, routes};

#[derive(Default)]
struct App {
    told: Vec<String>,
    handled: u32,
    later: Vec<Later<App>>,
    streams: Vec<Stream>,
}

routes! {
    Api for App [observe = App::note] {
        GET  "/users/{id}" => user(id),
        GET  "/const"      => const text("constant"),
        POST "/echo"       => echo(body) [body_max = 8],
        GET  "/secret"     => secret(token),
        GET  "/panic"      => panics(),
        GET  "/large"      => large(),
        GET  "/nothing"    => nothing(),
        GET  "/later"      => later(ticket),
        POST "/later"      => later_with(ticket, body),
        GET  "/stream"     => stream(ticket),
        GET  "/health"     => user_count() [observe = quiet],
        GET  "/cors"       => nothing() [cors = Cors::any()],
        GET  "/closure"    => nothing() [observe = |app: &mut App, _: &Exchange<'_>| app.told.push("closure".into())],
        "/group"           => Group,
        "/own"             => Own,
    }
}

routes! { Group for App { GET "/{id}" => user(id), } }
routes! { Own for App [observe = App::note_own] { GET "/{id}" => user(id), } }
routes! { Plain for App { GET "/users/{id}" => user(id), GET "/told/{id}" => user(id) [observe = App::note], } }
routes! { Broken for App [observe = broken] { GET "/users/{id}" => user(id), } }

impl App {
    fn note(&mut self, exchange: &Exchange<'_>) {
        let request = match exchange.request() {
            Some(request) => format!("{} {}", request.method().as_str(), request.target()),
            None => "-".to_owned(),
        };
        let (status, route, handled) = (exchange.status().code(), exchange.route().unwrap_or("-"), self.handled);
        self.told.push(format!("{request} {route} {status} after {handled}"));
    }

    fn note_own(&mut self, exchange: &Exchange<'_>) {
        self.told.push(format!("own {}", exchange.route().unwrap_or("-")));
    }
}

fn quiet(_: &mut App, _: &Exchange<'_>) {}

fn broken(_: &mut App, _: &Exchange<'_>) {
    panic!("on purpose")
}

fn user(app: &mut App, id: u64) -> String {
    app.handled += 1;
    id.to_string()
}

fn user_count(app: &mut App) -> String {
    app.handled.to_string()
}

fn echo<'r>(_: &mut App, body: &'r [u8]) -> &'r [u8] {
    body
}

fn secret(_: &mut App, _: Bearer<'_>) -> &'static str {
    "secret"
}

fn panics(_: &mut App) -> &'static str {
    panic!("on purpose")
}

fn large(_: &mut App) -> Vec<u8> {
    vec![b'x'; 100_000]
}

fn nothing(_: &mut App) {}

fn later(app: &mut App, ticket: Later<App>) {
    app.later.push(ticket);
}

fn later_with(app: &mut App, ticket: Later<App>, _: &[u8]) {
    app.later.push(ticket);
}

fn stream(app: &mut App, ticket: Later<App>) {
    app.streams.push(ticket.stream(StreamHead::new("text/plain")));
}

fn client() -> Client<App> {
    Client::new(Api, App::default())
}

fn told(client: &mut Client<App>) -> Vec<String> {
    std::mem::take(&mut client.state().told)
}

/// A connection of its own, and what was told of it.
fn told_of(send: impl FnOnce(&mut Link<App, &mut Client<App>>)) -> Vec<String> {
    let mut client = client();
    send(&mut client.connect());
    told(&mut client)
}

#[test]
fn every_kind_of_answer_is_told_once_with_its_row_and_its_status() {
    let mut client = client();
    for (method, target, of) in [
        (Method::Get, "/users/7?a=1", "GET /users/7?a=1 /users/{id} 200 after 1"),
        (Method::Head, "/users/7", "HEAD /users/7 /users/{id} 200 after 2"),
        (Method::Get, "/users/x", "GET /users/x /users/{id} 400 after 2"),
        (Method::Get, "/const", "GET /const /const 200 after 2"),
        (Method::Get, "/nothing", "GET /nothing /nothing 204 after 2"),
        (Method::Get, "/cors", "GET /cors /cors 204 after 2"),
        (Method::Get, "/secret", "GET /secret /secret 401 after 2"),
        (Method::Get, "/panic", "GET /panic /panic 500 after 2"),
        (Method::Get, "/large", "GET /large /large 200 after 2"),
        (Method::Get, "/none", "GET /none - 404 after 2"),
        (Method::Post, "/const", "POST /const - 405 after 2"),
        (Method::Options, "/const", "OPTIONS /const - 204 after 2"),
        (Method::Options, "*", "OPTIONS * - 204 after 2"),
        (Method::Get, "/group/1", "GET /group/1 /group/{id} 200 after 3"),
    ] {
        client.request(method, target).send();
        assert_eq!(told(&mut client), [of]);
    }
    client.post("/echo", b"12345678");
    client.post("/echo", b"123456789");
    assert_eq!(told(&mut client), ["POST /echo /echo 200 after 3", "POST /echo /echo 413 after 3"]);
    let preflight = client.request(Method::Options, "/cors").field("Origin", "https://a.example");
    preflight.field("Access-Control-Request-Method", "GET").send();
    assert_eq!(told(&mut client), ["OPTIONS /cors - 204 after 3"]);
}

#[test]
fn a_row_a_group_and_a_table_have_observers_of_their_own() {
    let mut client = client();
    for target in ["/health", "/own/1", "/own/x/y", "/closure"] {
        client.get(target);
    }
    assert_eq!(told(&mut client), ["own /own/{id}", "GET /own/x/y - 404 after 1", "closure"]);
    let mut plain = Client::new(Plain, App::default());
    for target in ["/users/1", "/told/1", "/none"] {
        plain.get(target);
    }
    assert_eq!(told(&mut plain), ["GET /told/1 /told/{id} 200 after 2"]);
}

#[test]
fn what_is_refused_before_it_is_a_request_is_told_without_one() {
    let of = |bytes: &[u8]| told_of(|link| link.send(bytes));
    assert_eq!(of(b"GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n"), ["GET /users/1 /users/{id} 200 after 1"]);
    assert_eq!(of(b"GET /users/1 HTTP/1.1\r\nHost : x\r\n\r\n"), ["- - 400 after 0"]);
    assert_eq!(of(b"GET /users/1 HTTP/1.1\r\nGost: x\r\n\r\n"), ["- - 400 after 0"]);
    assert_eq!(of(b"GET /users/1 HTTP/3.1\r\nHost: x\r\n\r\n"), ["- - 505 after 0"]);
    assert_eq!(of(b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"), ["CONNECT x:1 - 501 after 0"]);
    let late = told_of(|link| {
        link.send(b"GET /users/1 HT");
        link.advance(Limits::DEFAULT.head_timeout);
    });
    assert_eq!(late, ["- - 408 after 0"]);
}

#[test]
fn requests_that_come_together_or_in_pieces_are_told_in_order() {
    const BYTES: &[u8] = b"GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n\
        POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
        GET /const HTTP/1.1\r\nHost: x\r\n\r\n";
    let of = ["GET /users/1 /users/{id} 200 after 1", "POST /echo /echo 200 after 1", "GET /const /const 200 after 1"];
    assert_eq!(told_of(|link| link.send(BYTES)), of);
    assert_eq!(told_of(|link| link.send_bytewise(BYTES)), of);
    for cut in 1..BYTES.len() {
        assert_eq!(told_of(|link| link.send_split(BYTES, &[cut])), of);
    }
}

#[test]
fn a_body_that_is_refused_is_told_with_its_request() {
    let start = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab";
    let told = |rest: &[u8]| {
        told_of(|link| {
            link.send(start);
            link.send(rest);
        })
    };
    assert_eq!(told(b"c\r\n0\r\n\r\n"), ["POST /echo /echo 200 after 0"]);
    assert_eq!(told(b"c\n0\r\n\r\n"), ["POST /echo /echo 400 after 0"]);
    assert_eq!(told(b"c\r\n6\r\n"), ["POST /echo /echo 413 after 0"]);
    let late = told_of(|link| {
        link.send(start);
        link.advance(Limits::DEFAULT.body_timeout);
    });
    assert_eq!(late, ["POST /echo /echo 408 after 0"]);
}

#[test]
fn an_answer_that_comes_later_is_told_when_it_comes_with_the_whole_head_of_its_request() {
    routes! { Late for Log [observe = note] { GET "/{id}" => keep(ticket, id), POST "/{id}" => keep_with(ticket, id, body), } }
    #[derive(Default)]
    struct Log {
        told: Vec<String>,
        kept: Vec<Later<Log>>,
    }
    fn keep(log: &mut Log, ticket: Later<Log>, _: u64) {
        log.kept.push(ticket);
    }
    fn keep_with(log: &mut Log, ticket: Later<Log>, _: u64, _: &[u8]) {
        log.kept.push(ticket);
    }
    fn note(log: &mut Log, exchange: &Exchange<'_>) {
        let request = exchange.request().unwrap();
        let agent = request.field("User-Agent").unwrap_or("none");
        let (status, waited) = (exchange.status().code(), exchange.waited().as_millis());
        log.told.push(format!("{} {} {agent} {status} {waited}", request.method().as_str(), request.target()));
    }
    let mut client = Client::new(Late, Log::default());
    let mut link = client.connect();
    let get = b"GET /1?a HTTP/1.1\r\nHost: x\r\nUser-Agent:a \t\r\n\r\n";
    link.send(&[get.as_slice(), b"POST /2 HTTP/1.0\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n1"].concat());
    link.advance(Duration::from_millis(20));
    assert!(link.state().told.is_empty(), "it is not answered");
    link.state().kept.pop().unwrap().answer("1");
    link.work();
    assert_eq!(std::mem::take(&mut link.state().told), ["GET /1?a a 200 20"]);
    link.advance(Duration::from_millis(300));
    link.send(b"2");
    link.advance(Duration::from_millis(50));
    drop(link.state().kept.pop());
    link.work();
    assert_eq!(link.state().told, ["POST /2 none 500 350"]);
}

#[test]
fn an_answer_that_does_not_come_in_time_is_told_and_one_whose_client_left_is_not() {
    let late = told_of(|link| {
        link.send(b"POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1");
        link.advance(Limits::DEFAULT.answer_timeout);
    });
    assert_eq!(late, ["POST /later /later 503 after 0"]);
    let left = told_of(|link| {
        link.send(b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        link.close_write();
        link.state().later.clear();
        link.work();
    });
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_answer_in_parts_is_told_when_it_begins_and_not_again() {
    let mut client = client();
    let mut link = client.connect();
    link.send(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    link.work();
    assert_eq!(link.state().told, ["GET /stream /stream 200 after 0"]);
    let stream = link.state().streams.pop().unwrap();
    stream.send("part").unwrap();
    stream.end();
    link.work();
    link.send(b"GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(link.state().told.len(), 2);
    assert_eq!(link.answers()[0].text(), "part");
}

#[test]
fn a_body_was_waited_for_also_while_the_answer_before_it_was_blocked() {
    routes! { Blocked for Vec<u128> [observe = note] { GET "/large" => large(), POST "/echo" => echo(body), } }
    fn large(_: &mut Vec<u128>) -> Vec<u8> {
        vec![b'x'; 30_000]
    }
    fn echo<'r>(_: &mut Vec<u128>, body: &'r [u8]) -> &'r [u8] {
        body
    }
    fn note(waits: &mut Vec<u128>, exchange: &Exchange<'_>) {
        waits.push(exchange.waited().as_millis());
    }
    let mut client = Client::new(Blocked, Vec::new());
    let mut link = client.connect();
    link.take_at_most(1000);
    let large = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n".as_slice();
    link.send(&[large, b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1"].concat());
    link.advance(Duration::from_secs(4));
    link.take_at_most(usize::MAX);
    link.advance(Duration::from_secs(1));
    link.send(b"2");
    assert_eq!(*link.state(), [0, 5000]);
}

#[test]
fn the_length_of_an_answer_is_what_goes_over_the_wire() {
    routes! { Sized for Vec<usize> [observe = note] { GET "/{n}" => bytes(n), GET "/const" => const text("abc"), } }
    fn bytes(_: &mut Vec<usize>, n: usize) -> Vec<u8> {
        vec![b'x'; n]
    }
    fn note(lens: &mut Vec<usize>, exchange: &Exchange<'_>) {
        lens.push(exchange.answer_len());
    }
    let mut client = Client::new(Sized, Vec::new());
    for target in ["/0", "/10", "/16384", "/16385", "/1000000", "/const", "/x", "/"] {
        let mut link = client.connect();
        link.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        let len = link.received().len();
        assert_eq!(std::mem::take(link.state()), [len]);
        link.send(format!("HEAD {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        let len = link.received().len() - len;
        assert_eq!(std::mem::take(link.state()), [len]);
    }
}

#[test]
fn an_observer_that_panics_harms_no_answer_and_is_counted() {
    let mut client = Client::new(Broken, App::default());
    let mut link = client.connect();
    link.send(b"GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\nGET /users/2 HTTP/1.1\r\nHost: x\r\n\r\n");
    let texts: Vec<_> = link.answers().iter().map(|answer| (answer.status(), answer.text().to_owned())).collect();
    assert_eq!(texts, [(200, "1".to_owned()), (200, "2".to_owned())]);
    assert!(link.closed().is_none());
}

#[test]
fn the_text_of_an_exchange_is_one_line_without_the_query() {
    routes! { Lines for Vec<String> [observe = note] { GET "/{*_rest}" => status(), } }
    fn status(_: &mut Vec<String>) -> Status {
        Status::NO_CONTENT
    }
    fn note(lines: &mut Vec<String>, exchange: &Exchange<'_>) {
        lines.push(exchange.to_string());
    }
    let mut client = Client::new(Lines, Vec::new()).with_peer("[2001:db8::1]:9".parse().unwrap());
    client.get("/a?key=secret");
    client.get("/a\"b");
    client.connect().send(b"nonsense\r\n\r\n");
    let lines = client.state();
    assert!(lines[0].starts_with("2001:db8::1 \"GET /a\" 204 ") && lines[0].split(' ').count() == 5, "{}", lines[0]);
    assert!(lines[1].starts_with("2001:db8::1 \"GET /a\\\"b\" ") || lines[1].contains(" - 400 "), "{}", lines[1]);
    assert!(lines[2].starts_with("2001:db8::1 - 400 "), "{}", lines[2]);
}
