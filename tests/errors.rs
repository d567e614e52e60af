//! The option `errors`: refusals in words of the table's own, of a row's, of a group's.

use std::time::Duration;

use sprat::testing::{Answer, Client};
use sprat::{Bearer, Html, Later, Limits, Method, Reject, Rejection, Respond, Status, StreamHead, routes};

#[derive(Default)]
struct App {
    mapped: u32,
    later: Vec<Later<App>>,
}

impl App {
    /// One form for all: status, message and what else is known.
    fn errors(&mut self, error: Rejection) -> impl Respond {
        self.mapped += 1;
        let code = error.error().unwrap_or("-").to_owned();
        (error.status(), format!("mapped {} {code}: {}", error.status().code(), error.message()))
    }
}

routes! {
    Api for App [errors = App::errors] {
        GET  "/plain"        => plain(),
        GET  "/users/{id}"   => user(id),
        POST "/echo"         => echo(body) [body_max = 8],
        GET  "/secret"       => secret(token),
        GET  "/page"         => secret(token) [errors = page],
        POST "/json"         => json(error),
        GET  "/own/{kind}"   => own(kind),
        GET  "/status/{of}"  => status(of),
        GET  "/note/{at}"    => note(at),
        GET  "/panic"        => panics(),
        GET  "/later"        => later(ticket),
        GET  "/const"        => const text("constant"),
        GET  "/as/{status}"  => under(status),
        GET  "/with/{kind}"  => with_field(kind),
        GET  "/none-as"      => none_under(),
        GET  "/bad-field"    => bad_field(),
        GET  "/fresh"        => fresh(),
        GET  "/head"         => stream_head(ticket),
        "/group"             => Group,
        "/grouped"           => Group [errors = page],
        "/bare"              => Own,
    }
}

routes! { Group for App { GET "/{id}" => user(id), } }
routes! { Own for App [errors = silent] { GET "/{id}" => user(id), } }
routes! { Bare for App { GET "/users/{id}" => user(id), GET "/row/{id}" => user(id) [errors = App::errors], } }
routes! { Clumsy for App [errors = clumsy] { GET "/users/{id}" => user(id), GET "/secret" => secret(token), } }
routes! { Broken for App [errors = broken] { GET "/users/{id}" => user(id), } }

fn plain(_: &mut App) -> &'static str {
    "plain"
}

fn user(_: &mut App, id: u64) -> String {
    id.to_string()
}

fn echo<'r>(_: &mut App, body: &'r [u8]) -> &'r [u8] {
    body
}

fn secret(_: &mut App, _: Bearer<'_>) -> &'static str {
    "secret"
}

struct Never;
impl<'r, S> sprat::FromRequest<'r, S> for Never {
    type Takes = sprat::TheBody;
    fn from_request(_: &sprat::Request<'r>, _: sprat::Body<'r>, _: &mut S) -> Result<Never, Rejection> {
        Err(Rejection::json(Status::UNPROCESSABLE_CONTENT, "invalid_body", "no good").at("a.b"))
    }
}

fn json(_: &mut App, _: Never) -> &'static str {
    "never"
}

/// Refusals that the handler itself returns.
fn own(_: &mut App, kind: &str) -> Result<&'static str, Rejection> {
    match kind {
        "fine" => Ok("fine"),
        "busy" => Err(Rejection::from(Reject::BodiesTooLarge)),
        _ => Err(Rejection::json(Status::CONFLICT, "taken", "the name is taken").field("X-Name", "ada")),
    }
}

fn status(_: &mut App, of: u16) -> Status {
    Status::new(of).unwrap_or(Status::OK)
}

fn note(_: &mut App, at: usize) -> Option<&'static str> {
    ["note"].get(at).copied()
}

/// A refusal under a status that wraps it.
fn under(_: &mut App, status: u16) -> (Status, Result<&'static str, Rejection>) {
    (Status::new(status).unwrap(), Err(Rejection::text(Status::CONFLICT, "no")))
}

/// Refusals of all kinds with a field around them.
fn with_field(_: &mut App, kind: &str) -> impl Respond {
    let answer = match kind {
        "fine" => Ok(Some(Status::OK)),
        "none" => Ok(None),
        "status" => Ok(Some(Status::FORBIDDEN)),
        _ => Err(Rejection::text(Status::CONFLICT, "no").field("X-Own", "1")),
    };
    answer.field("X-Request-ID", "7")
}

fn none_under(_: &mut App) -> (Status, Option<&'static str>) {
    (Status::CREATED, None)
}

fn bad_field(_: &mut App) -> impl Respond {
    Err::<(), _>(Rejection::text(Status::CONFLICT, "no")).field("X-Request-ID", "a\r\nb")
}

fn fresh(_: &mut App) -> Result<&'static str, Rejection> {
    Err(Rejection::text(Status::NOT_MODIFIED, "").field("ETag", "\"a\""))
}

fn stream_head(_: &mut App, ticket: Later<App>) {
    ticket.stream(StreamHead::new("text/plain").field("X-A", "a\r\nb"));
}

fn panics(_: &mut App) -> &'static str {
    panic!("on purpose")
}

fn later(app: &mut App, ticket: Later<App>) {
    app.later.push(ticket);
}

fn page(_: &mut App, error: Rejection) -> (Status, Html<String>) {
    (error.status(), Html(format!("<h1>{}</h1>", error.message())))
}

/// Gives no status, and keeps quiet.
fn silent(_: &mut App, _: Rejection) -> &'static str {
    "no"
}

/// Forgets the status, and adds a field.
fn clumsy(_: &mut App, error: Rejection) -> impl Respond {
    format!("{{{}}}", error.message()).field("Content-Type", "application/json")
}

fn broken(_: &mut App, _: Rejection) -> &'static str {
    panic!("on purpose")
}

fn client() -> Client<App> {
    Client::new(Api, App::default())
}

#[track_caller]
fn says(answer: &Answer, status: u16, text: &str) {
    assert_eq!((answer.status(), answer.text()), (status, text));
}

#[test]
fn what_is_not_refused_is_not_mapped() {
    let mut client = client();
    says(&client.get("/plain"), 200, "plain");
    says(&client.get("/users/7"), 200, "7");
    says(&client.get("/const"), 200, "constant");
    says(&client.post("/echo", b"12345678"), 200, "12345678");
    assert_eq!(client.state().mapped, 0);
}

#[test]
fn a_bad_path_parameter_is_mapped() {
    says(&client().get("/users/x"), 400, "mapped 400 -: path parameter id: expected a whole number in digits (u64)");
}

#[test]
fn a_body_beyond_the_limit_of_its_row_is_mapped_and_one_byte_less_is_served() {
    let mut client = client();
    says(&client.post("/echo", b"12345678"), 200, "12345678");
    says(&client.post("/echo", b"123456789"), 413, "mapped 413 -: the content is larger than this server takes here");
}

#[test]
fn chunks_beyond_the_limit_are_mapped_when_they_come_later_too() {
    let mut client = client();
    let mut link = client.connect();
    link.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n");
    link.send(b"5\r\n12345\r\n0\r\n\r\n");
    says(&link.answers()[0], 413, "mapped 413 -: the content is larger than this server takes here");
    assert!(link.closed().is_some() || link.is_write_shut());
}

#[test]
fn a_body_that_does_not_come_in_time_is_mapped() {
    let mut client = client();
    let mut link = client.connect();
    link.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1");
    link.advance(Limits::DEFAULT.body_timeout + Duration::from_secs(1));
    says(&link.answers()[0], 408, "mapped 408 -: the content did not arrive in time");
}

#[test]
fn a_refusal_of_credentials_is_mapped_and_keeps_its_challenge() {
    let answer = client().get("/secret");
    says(&answer, 401, "mapped 401 Unauthorized: ");
    assert_eq!(answer.field("www-authenticate"), Some("Bearer"));
}

#[test]
fn a_refusal_of_a_body_is_mapped() {
    says(&client().post("/json", b"{}"), 422, "mapped 422 invalid_body: no good");
}

#[test]
fn a_refusal_that_a_handler_returns_is_mapped() {
    let mut client = client();
    says(&client.get("/own/fine"), 200, "fine");
    let answer = client.get("/own/name");
    says(&answer, 409, "mapped 409 taken: the name is taken");
    assert_eq!(answer.field("x-name"), Some("ada"));
    says(&client.get("/status/409"), 409, "mapped 409 -: Conflict");
    says(&client.get("/status/200"), 200, "OK");
    says(&client.get("/note/0"), 200, "note");
    says(&client.get("/note/1"), 404, "mapped 404 -: nothing is found here");
    says(&client.get("/own/busy"), 503, "mapped 503 -: too much content is being received at the moment");
}

#[test]
fn an_unknown_path_and_a_wrong_method_are_mapped_and_allow_stays() {
    let mut client = client();
    says(&client.get("/none"), 404, "mapped 404 -: no route matches this path");
    let answer = client.post("/plain", b"");
    says(&answer, 405, "mapped 405 -: the method is not allowed on this path");
    assert_eq!(answer.field("allow"), Some("GET, HEAD, OPTIONS"));
    let answer = client.request(Method::Options, "/plain").send();
    assert_eq!((answer.status(), answer.field("allow")), (204, Some("GET, HEAD, OPTIONS")));
}

#[test]
fn a_request_that_breaks_a_rule_of_http_is_mapped() {
    let mut client = client();
    let mut link = client.connect();
    link.send(b"GET /plain HTTP/1.1\r\n\r\n");
    says(&link.answers()[0], 400, "mapped 400 -: an HTTP/1.1 request needs a Host field (RFC 9112 3.2)");
}

#[test]
fn a_panic_is_mapped_and_the_connection_ends() {
    let mut client = client();
    let answer = client.get("/panic");
    says(&answer, 500, "mapped 500 -: the server failed to answer this request");
    assert_eq!(answer.field("connection"), Some("close"));
}

#[test]
fn an_answer_that_does_not_come_is_mapped() {
    let mut client = client();
    let mut link = client.connect();
    link.send(b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    link.advance(Limits::DEFAULT.answer_timeout + Duration::from_secs(1));
    says(&link.answers()[0], 503, "mapped 503 -: the answer was not ready in time");
}

#[test]
fn a_row_and_a_group_replace_the_mapper_of_the_table() {
    let mut client = client();
    let answer = client.get("/page");
    says(&answer, 401, "<h1></h1>");
    assert_eq!(answer.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.field("www-authenticate"), Some("Bearer"));
    assert!(client.get("/group/x").text().starts_with("mapped 400"));
    assert!(client.get("/grouped/x").text().starts_with("<h1>path parameter id"));
    // A table that says it for itself keeps its word in another.
    says(&client.get("/bare/x"), 400, "no");
}

#[test]
fn a_table_without_a_mapper_answers_as_ever() {
    let mut client = Client::new(Bare, App::default());
    says(&client.get("/users/x"), 400, "path parameter id: expected a whole number in digits (u64)");
    assert!(client.get("/row/x").text().starts_with("mapped 400"));
    says(&client.get("/none"), 404, "no route matches this path");
}

#[test]
fn an_error_that_a_mapper_gives_no_status_keeps_its_own() {
    let mut client = Client::new(Clumsy, App::default());
    let answer = client.get("/users/x");
    says(&answer, 400, "{path parameter id: expected a whole number in digits (u64)}");
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(client.get("/secret").status(), 401);
    says(&client.get("/users/1"), 200, "1");
}

#[test]
fn a_mapper_that_panics_is_a_500_and_the_end_of_the_connection() {
    let mut client = Client::new(Broken, App::default());
    let mut link = client.connect();
    link.send(b"GET /users/x HTTP/1.1\r\nHost: x\r\n\r\nGET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n");
    let answers = link.answers();
    assert_eq!(answers.len(), 1);
    says(&answers[0], 500, "the server failed to answer this request");
    assert_eq!(answers[0].field("connection"), Some("close"));
    drop(link);
    says(&client.get("/users/1"), 200, "1");
}

#[test]
fn a_mapped_answer_keeps_the_connection_and_the_order() {
    let mut client = client();
    let mut link = client.connect();
    link.send(b"GET /users/x HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\n\r\nGET /plain HTTP/1.1\r\nHost: x\r\n\r\n");
    let statuses: Vec<u16> = link.answers().iter().map(Answer::status).collect();
    assert_eq!(statuses, [400, 404, 200]);
    assert!(link.closed().is_none());
}

#[test]
fn a_refusal_keeps_its_status_under_one_that_is_no_error() {
    let mut client = client();
    says(&client.get("/as/201"), 409, "mapped 409 -: no");
    says(&client.get("/as/418"), 418, "mapped 418 -: no");
    says(&client.get("/none-as"), 404, "mapped 404 -: nothing is found here");
    let mut plain = Client::new(Unmapped, App::default());
    says(&plain.get("/as/201"), 409, "no");
    says(&plain.get("/as/418"), 418, "no");
    says(&plain.get("/none-as"), 404, "nothing is found here");
}

routes! {
    Unmapped for App {
        GET "/as/{status}"  => under(status),
        GET "/with/{kind}"  => with_field(kind),
        GET "/none-as"      => none_under(),
    }
}

#[test]
fn a_field_around_a_refusal_goes_with_it_to_the_mapper_and_stays() {
    for (mut client, is_mapped) in [(client(), true), (Client::new(Unmapped, App::default()), false)] {
        for (kind, status, text) in
            [("none", 404, "nothing is found here"), ("status", 403, "Forbidden"), ("x", 409, "no")]
        {
            let answer = client.get(&format!("/with/{kind}"));
            let text = if is_mapped { format!("mapped {status} -: {text}") } else { text.to_owned() };
            says(&answer, status, &text);
            assert_eq!(answer.fields().iter().filter(|(name, _)| name == "X-Request-ID").count(), 1);
            assert_eq!(answer.field("x-own"), (kind == "x").then_some("1"));
        }
        let answer = client.get("/with/fine");
        says(&answer, 200, "OK");
        assert_eq!(answer.field("x-request-id"), Some("7"));
    }
}

#[test]
fn a_refusal_that_cannot_be_written_is_mapped_as_500() {
    says(&client().get("/bad-field"), 500, "mapped 500 -: the server failed to answer this request");
}

#[test]
fn a_status_without_content_is_not_mapped() {
    let answer = client().get("/fresh");
    says(&answer, 304, "");
    assert_eq!((answer.field("etag"), answer.field("content-length")), (Some("\"a\""), None));
}

#[test]
fn a_stream_that_cannot_begin_is_mapped() {
    says(&client().get("/head"), 500, "mapped 500 -: the server failed to answer this request");
}
