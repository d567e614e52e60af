//! The option `cors`: known-faults row 20 and its whole kind.

use std::time::Duration;

use sprat::testing::{Answer, Client};
use sprat::{Bearer, Cors, Later, Limits, Method, Respond, Status, routes};

#[derive(Default)]
struct App {
    tickets: Vec<Later<App>>,
}

const A: &str = "http://a";
const PAGES: Cors = Cors::of(&[A, "https://b.example:8443"])
    .credentials()
    .fields(&["Authorization", "Content-Type"])
    .expose(&["X-Total"])
    .max_age(600);

routes! {
    Api for App [cors = PAGES] {
        GET     "/"                      => hello(),
        POST    "/api/v1/resource/{id}"  => resource(token, id, body) [body_max = 8],
        GET     "/api/v1/resource/{id}"  => show(id),
        GET     "/version"               => const text("1"),
        GET     "/public"                => hello() [cors = Cors::any()],
        POST    "/public"                => hello(),
        OPTIONS "/asked"                 => hello(),
        GET     "/panic"                 => panics(),
        GET     "/bad"                   => bad(),
        GET     "/later"                 => later(ticket),
    }
}

routes! {
    Off for App {
        GET  "/"      => hello(),
        POST "/"      => off::resource(token, body),
        "/on"         => On,
    }
}

routes! { On for App [cors = PAGES] { GET "/x" => hello(), GET "/const" => const text("c"), } }

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn show(_: &mut App, id: u64) -> impl Respond {
    id.to_string().field("X-Total", "1")
}

fn resource(_: &mut App, _: Bearer<'_>, id: u64, body: Vec<u8>) -> String {
    format!("{id} {}", body.len())
}

mod off {
    use super::*;
    pub fn resource(_: &mut App, _: Bearer<'_>, body: Vec<u8>) -> String {
        body.len().to_string()
    }
}

fn panics(_: &mut App) -> &'static str {
    panic!("on purpose")
}

fn bad(_: &mut App) -> impl Respond {
    "split".field("X", "a\r\nb")
}

fn later(app: &mut App, ticket: Later<App>) {
    app.tickets.push(ticket);
}

fn client() -> Client<App> {
    Client::new(Api, App::default())
}

fn preflight(client: &mut Client<App>, target: &str, origin: &str, method: &str) -> Answer {
    client
        .request(Method::Options, target)
        .field("Origin", origin)
        .field("Access-Control-Request-Method", method)
        .field("Access-Control-Request-Headers", "authorization")
        .send()
}

fn from(client: &mut Client<App>, method: Method, target: &str, origin: &str) -> Answer {
    client.request(method, target).field("Origin", origin).send()
}

#[track_caller]
fn allows(answer: &Answer, status: u16, origin: &str) {
    assert_eq!(answer.status(), status);
    assert_eq!(answer.field("access-control-allow-origin"), Some(origin));
    assert_eq!(answer.fields().iter().filter(|(name, _)| name.eq_ignore_ascii_case("vary")).count(), 1);
    assert_eq!(answer.field("vary"), Some("Origin"));
}

#[track_caller]
fn says_nothing(answer: &Answer, status: u16) {
    assert_eq!(answer.status(), status);
    let named = answer.fields().iter().find(|(name, _)| name.to_ascii_lowercase().starts_with("access-control"));
    assert_eq!(named, None);
}

#[test]
fn a_preflight_is_204_with_the_allow_fields_and_needs_no_token() {
    let answer = preflight(&mut client(), "/api/v1/resource/1", A, "POST");
    allows(&answer, 204, A);
    assert_eq!(answer.field("access-control-allow-methods"), Some("GET, HEAD, POST"));
    assert_eq!(answer.field("access-control-allow-headers"), Some("Authorization, Content-Type"));
    assert_eq!(answer.field("access-control-allow-credentials"), Some("true"));
    assert_eq!(answer.field("access-control-max-age"), Some("600"));
    assert_eq!(answer.field("access-control-expose-headers"), None);
    assert_eq!(answer.field("content-length"), None);
}

#[test]
fn every_origin_of_the_list_is_allowed_and_its_neighbour_is_not() {
    let mut client = client();
    allows(&preflight(&mut client, "/", "https://b.example:8443", "GET"), 204, "https://b.example:8443");
    for other in
        ["https://b.example:8444", "http://b.example:8443", "https://b.example", "http://A", "null", "http://a/"]
    {
        let answer = preflight(&mut client, "/", other, "GET");
        says_nothing(&answer, 204);
        assert_eq!(answer.field("vary"), Some("Origin"));
    }
}

#[test]
fn two_origins_are_none() {
    let twice = client().request(Method::Get, "/").field("Origin", A).field("Origin", A).send();
    says_nothing(&twice, 200);
    allows(&from(&mut client(), Method::Get, "/", A), 200, A);
}

#[test]
fn every_answer_carries_the_origin() {
    let mut client = client();
    let answer = from(&mut client, Method::Get, "/", A);
    allows(&answer, 200, A);
    assert_eq!(answer.field("access-control-expose-headers"), Some("X-Total"));
    assert_eq!(answer.field("access-control-allow-methods"), None);
    let answer = from(&mut client, Method::Get, "/api/v1/resource/7", A);
    allows(&answer, 200, A);
    assert_eq!((answer.text(), answer.field("x-total")), ("7", Some("1")));
    let answer = from(&mut client, Method::Get, "/version", A);
    allows(&answer, 200, A);
    assert_eq!(answer.text(), "1");
    allows(&from(&mut client, Method::Head, "/version", A), 200, A);
    allows(&from(&mut client, Method::Options, "/", A), 204, A);
    allows(&from(&mut client, Method::Get, "/api/v1/resource/x", A), 400, A);
    allows(&from(&mut client, Method::Post, "/api/v1/resource/1", A), 401, A);
    allows(&from(&mut client, Method::Get, "/none", A), 404, A);
    let answer = from(&mut client, Method::Delete, "/", A);
    allows(&answer, 405, A);
    assert_eq!(answer.field("allow"), Some("GET, HEAD, OPTIONS"));
    allows(&from(&mut client, Method::Get, "/bad", A), 500, A);
    allows(&from(&mut client, Method::Get, "/panic", A), 500, A);
}

#[test]
fn a_body_that_is_too_large_by_one_byte_is_refused_with_the_origin() {
    let mut client = client();
    let mut send = |body: &[u8]| {
        client
            .request(Method::Post, "/api/v1/resource/1")
            .field("Origin", A)
            .field("Authorization", "Bearer t")
            .body(body)
            .send()
    };
    allows(&send(b"12345678"), 200, A);
    allows(&send(b"123456789"), 413, A);
}

#[test]
fn what_breaks_in_the_middle_of_a_body_carries_the_origin() {
    let head = "POST /api/v1/resource/1 HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\nAuthorization: Bearer t\r\n";
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n");
    for (rest, status) in
        [("4\r\n1234\r\n0\r\n\r\n", 200), ("5\r\n12345\r\n0\r\n\r\n", 413), ("4;\r\n", 400), ("x\r\n", 400)]
    {
        let mut client = client();
        let mut link = client.connect();
        link.send(chunked.as_bytes());
        link.send(rest.as_bytes());
        allows(&link.answers()[0], status, A);
    }
    let mut client = client();
    let mut link = client.connect();
    link.send(chunked.as_bytes());
    link.advance(Limits::DEFAULT.body_timeout + Duration::from_secs(1));
    allows(&link.answers()[0], 408, A);
}

#[test]
fn an_answer_that_comes_later_carries_the_origin() {
    let mut client = client();
    let mut link = client.connect();
    let request = b"GET /later HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n";
    link.send(request);
    let ticket = link.state().tickets.pop().unwrap();
    ticket.answer((Status::OK, "late"));
    link.work();
    let answers = link.answers();
    allows(&answers[0], 200, A);
    assert_eq!(answers[0].text(), "late");
    // The next one on the connection has its own.
    says_nothing(&answers[1], 200);
    assert_eq!(answers[1].field("vary"), Some("Origin"));

    let mut client = self::client();
    let mut link = client.connect();
    link.send(request);
    link.advance(Limits::DEFAULT.answer_timeout + Duration::from_secs(1));
    allows(&link.answers()[0], 503, A);
}

#[test]
fn a_request_without_an_origin_gets_vary_alone() {
    for (target, status) in [("/", 200), ("/none", 404), ("/version", 200)] {
        let answer = client().get(target);
        says_nothing(&answer, status);
        assert_eq!(answer.field("vary"), Some("Origin"));
    }
}

#[test]
fn nothing_is_said_when_it_is_off() {
    let mut client = Client::new(Off, App::default());
    let answer = preflight(&mut client, "/", A, "POST");
    says_nothing(&answer, 204);
    assert_eq!((answer.field("vary"), answer.field("allow")), (None, Some("GET, HEAD, POST, OPTIONS")));
    for (method, target, status) in
        [(Method::Get, "/", 200), (Method::Post, "/", 401), (Method::Delete, "/", 405), (Method::Get, "/none", 404)]
    {
        let answer = from(&mut client, method, target, A);
        says_nothing(&answer, status);
        assert_eq!(answer.field("vary"), None);
    }
}

#[test]
fn a_table_inside_another_keeps_its_policy() {
    let mut client = Client::new(Off, App::default());
    allows(&from(&mut client, Method::Get, "/on/x", A), 200, A);
    allows(&from(&mut client, Method::Get, "/on/const", A), 200, A);
    allows(&from(&mut client, Method::Post, "/on/x", A), 405, A);
    allows(&preflight(&mut client, "/on/x", A, "GET"), 204, A);
    says_nothing(&from(&mut client, Method::Get, "/on/none", A), 404);
}

#[test]
fn a_policy_for_all_is_the_same_for_everyone() {
    let mut client = client();
    for answer in [client.get("/public"), from(&mut client, Method::Get, "/public", "https://else.example")] {
        assert_eq!((answer.status(), answer.field("access-control-allow-origin")), (200, Some("*")));
        assert_eq!((answer.field("vary"), answer.field("access-control-allow-credentials")), (None, None));
    }
}

#[test]
fn a_preflight_lists_the_methods_of_one_policy() {
    let mut client = client();
    let answer = preflight(&mut client, "/public", "https://else.example", "GET");
    assert_eq!(answer.field("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.field("access-control-allow-methods"), Some("GET, HEAD"));
    let answer = preflight(&mut client, "/public", A, "POST");
    allows(&answer, 204, A);
    assert_eq!(answer.field("access-control-allow-methods"), Some("POST"));
}

#[test]
fn a_preflight_is_answered_before_a_row_for_options_which_has_the_rest() {
    let mut client = client();
    let answer = preflight(&mut client, "/asked", A, "OPTIONS");
    allows(&answer, 204, A);
    let answer = from(&mut client, Method::Options, "/asked", A);
    allows(&answer, 200, A);
    assert_eq!(answer.text(), "hello");
}

#[test]
fn a_preflight_without_its_method_is_a_plain_options() {
    let answer = client().request(Method::Options, "/").field("Origin", A).send();
    allows(&answer, 204, A);
    assert_eq!(
        (answer.field("allow"), answer.field("access-control-allow-methods")),
        (Some("GET, HEAD, OPTIONS"), None)
    );
}

#[test]
fn a_preflight_for_an_unknown_path_is_404_with_the_origin() {
    allows(&preflight(&mut client(), "/none", A, "GET"), 404, A);
}

#[test]
fn one_policy_does_not_leak_into_the_next_answer() {
    let mut client = Client::new(Off, App::default());
    let mut link = client.connect();
    link.send(
        b"GET /on/x HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n\r\n\
          GET / HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n\r\n\
          POST /on/x HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\nContent-Length: 1\r\n\r\nx\
          POST / HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\nContent-Length: 0\r\n\r\n",
    );
    let answers = link.answers_to(&[Method::Get, Method::Get, Method::Post, Method::Post]);
    allows(&answers[0], 200, A);
    says_nothing(&answers[1], 200);
    allows(&answers[2], 405, A);
    says_nothing(&answers[3], 401);
}

routes! {
    Beside for App {
        POST    "/x" => hello() [cors = PAGES],
        OPTIONS "/x" => hello(),
        OPTIONS "/y" => hello(),
    }
}

#[test]
fn a_preflight_is_answered_though_a_row_for_options_without_a_policy_is_there() {
    let mut client = Client::new(Beside, App::default());
    allows(&preflight(&mut client, "/x", A, "POST"), 204, A);
    let answer = from(&mut client, Method::Options, "/x", A);
    assert_eq!((answer.status(), answer.text()), (200, "hello"));
    // Where nothing has a policy it is a request as any other.
    let answer = preflight(&mut client, "/y", A, "POST");
    assert_eq!((answer.status(), answer.text()), (200, "hello"));
    says_nothing(&answer, 200);
}
