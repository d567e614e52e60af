//! Faults that servers of this kind were found to have, each as what a client does and what has to come of it. In
//! process; what needs sockets or processes is in `server` and `hostile`.
#![cfg(feature = "json")]

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sprat::testing::{Answer, Client};
use sprat::{Bearer, Body, CloseReason, Json, Limits, Method, Rejection, Respond, Status, routes};

#[derive(Default)]
struct App {
    created: u64,
}

#[derive(Deserialize, Serialize)]
struct Resource<'r> {
    name: &'r str,
    active: bool,
}

#[derive(Serialize)]
struct Created<'r> {
    status: &'static str,
    id: u64,
    data: Resource<'r>,
}

routes! {
    Api for App {
        GET  "/"                     => hello(),
        POST "/"                     => hello(),
        GET  "/echo-path/{id}"       => echo_path(id),
        GET  "/a/{id}"               => echo_path(id),
        GET  "/a/new"                => const text("new"),
        GET  "/b/new"                => const text("new"),
        GET  "/b/{id}"               => echo_path(id),
        POST "/echo"                 => echo(body),
        POST "/api/v1/resource/{id}" => create(id, auth, body),
        GET  "/metrics"              => metrics(),
        GET  "/split/{case}"         => split(case),
        GET  "/panic/{id}"           => panics(id),
    }
}

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn echo_path(_: &mut App, id: u64) -> String {
    id.to_string()
}

fn echo<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {
    body
}

fn create<'r>(
    app: &mut App,
    id: u64,
    auth: Bearer<'r>,
    Json(data): Json<Resource<'r>>,
) -> Result<Json<Created<'r>>, Rejection> {
    if !auth.matches("tok") {
        return Err(Bearer::unauthorized());
    }
    app.created += 1;
    Ok(Json(Created { status: "success", id, data }))
}

fn metrics(_: &mut App) -> impl Respond {
    "up 1\n".field("Content-Type", "text/plain; version=0.0.4")
}

fn split(_: &mut App, case: u64) -> impl Respond {
    let (name, value) = [
        ("X-Field", "v\r\nSet-Cookie: a=1"),
        ("X-Field", "v\nSet-Cookie: a=1"),
        ("X-Field", "v\0"),
        ("X Field", "v"),
        ("X-Field:", "v"),
        ("", "v"),
    ][case as usize];
    "hello".field(name, value)
}

fn panics(app: &mut App, id: u64) -> String {
    app.created += 1;
    assert_ne!(id, 13, "as asked for");
    id.to_string()
}

fn client() -> Client<App> {
    Client::new(Api, App::default())
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// Sends bytes, whole and one by one, and gives the statuses that come back, and whether it is closed then.
#[track_caller]
fn statuses(input: impl AsRef<[u8]>) -> (Vec<u16>, bool) {
    let run = |bytewise: bool| {
        let mut client = client();
        let mut link = client.connect();
        if bytewise {
            link.send_bytewise(input.as_ref());
        } else {
            link.send(input.as_ref());
        }
        let statuses: Vec<_> = link.answers().iter().map(Answer::status).filter(|status| *status != 100).collect();
        (statuses, link.is_write_shut())
    };
    let (whole, bytewise) = (run(false), run(true));
    assert_eq!(whole, bytewise, "{}", input.as_ref().escape_ascii());
    whole
}

/// It is refused with this status and closed, and the GET behind it is not answered.
#[track_caller]
fn refuses(input: &str, status: u16) {
    assert_eq!(statuses(format!("{input}{GET}")), (vec![status], true), "{input:?}");
}

/// It is answered with this status, and so is the GET behind it.
#[track_caller]
fn serves(input: &str, status: u16) {
    assert_eq!(statuses(format!("{input}{GET}")), (vec![status, 200], false), "{input:?}");
}

fn echo_with(lines: &str, body: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: x\r\n{lines}\r\n{body}")
}

// ---- message framing ---------------------------------------------------------------------------------------------

#[test]
fn both_framings_at_once_are_refused_and_nothing_behind_is_answered() {
    refuses(&echo_with("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400);
    refuses(&echo_with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), 400);
}

#[test]
fn a_blank_before_the_colon_is_refused() {
    for line in
        ["Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", "Content-Length : 5", "Content-Length\t:5"]
    {
        refuses(&echo_with(&format!("{line}\r\n"), ""), 400);
    }
    serves(&echo_with("Content-Length: 5\r\n", "hello"), 200);
}

#[test]
fn a_content_length_that_is_no_plain_number_is_refused() {
    for value in ["+5", "-5", "5x", "", "0x5", "5, 5", "5 5", "18446744073709551621"] {
        let (statuses, closed) =
            statuses(format!("{}{GET}", echo_with(&format!("Content-Length: {value}\r\n"), "hello")));
        let status = if value.len() > 10 { 413 } else { 400 };
        assert!(closed && (statuses == [400] || statuses == [status]), "{value:?}: {statuses:?}");
    }
    refuses(&echo_with("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), 400);
}

#[test]
fn a_transfer_encoding_is_chunked_or_refused() {
    serves(&echo_with("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), 200);
    serves(&echo_with("Transfer-Encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), 200);
    let body = "5\r\nhello\r\n0\r\n\r\n";
    for (coding, status) in
        [("gzip", 400), ("gzip, chunked", 501), ("chunked, gzip", 400), ("xchunked", 400), ("chunked, chunked", 400)]
    {
        refuses(&echo_with(&format!("Transfer-Encoding: {coding}\r\n"), body), status);
    }
    refuses(&format!("POST /echo HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}"), 400);
}

#[test]
fn a_host_comes_once_in_1_1_and_is_not_needed_in_1_0() {
    refuses("GET / HTTP/1.1\r\n\r\n", 400);
    refuses("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400);
    assert_eq!(statuses("GET / HTTP/1.0\r\n\r\n"), (vec![200], true));
}

// ---- keep-alive, pipelining, answers -----------------------------------------------------------------------------

#[test]
fn a_body_that_nobody_reads_is_no_request() {
    let body = "GET /echo-path/1 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(500);
    let post = |path: &str| format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    serves(&post("/"), 200);
    serves(&post("/none"), 404);
    serves(&post("/a/new"), 405);
    serves(&post("/api/v1/resource/1"), 401);
}

#[test]
fn a_pipeline_is_answered_in_order_and_a_body_is_data() {
    let body = "GET / HTTP/1.1\r\n\r\n";
    let mut client = client();
    let mut link = client.connect();
    let echo = echo_with(&format!("Content-Length: {}\r\n", body.len()), body);
    link.send(format!("{GET}{echo}GET /echo-path/7 HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    let texts: Vec<_> = link.answers().iter().map(|answer| answer.text().to_owned()).collect();
    assert_eq!(texts, ["hello", body, "7"]);
}

#[test]
fn persistence_follows_version_and_connection() {
    let ask = |request: &str| {
        let mut client = client();
        let mut link = client.connect();
        link.send(request.as_bytes());
        (link.answers()[0].field("connection").map(str::to_owned), link.is_write_shut())
    };
    let (close, keep) = (Some("close".to_owned()), Some("keep-alive".to_owned()));
    assert_eq!(ask("GET / HTTP/1.0\r\nHost: x\r\n\r\n"), (close.clone(), true));
    assert_eq!(ask("GET / HTTP/1.0\r\nHost: x\r\nConnection: Keep-Alive\r\n\r\n"), (keep, false));
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, CLOSE\r\n\r\n"), (close, true));
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n"), (None, false));
}

#[test]
fn a_pooled_connection_serves_after_a_minute_under_the_default_limits() {
    let mut client = client();
    let mut link = client.connect();
    link.send(GET.as_bytes());
    link.advance(Duration::from_secs(61));
    link.send(echo_with("Content-Length: 5\r\n", "hello").as_bytes());
    assert_eq!(link.answers().len(), 2);
    assert!(Limits::DEFAULT.idle_timeout >= Duration::from_secs(75));
    link.advance(Limits::DEFAULT.idle_timeout);
    assert_eq!(link.closed(), Some(CloseReason::IdleTimeout));
}

#[test]
fn an_answer_to_head_has_no_content_and_every_other_has_a_length() {
    let mut client = client();
    let mut link = client.connect();
    link.send(format!("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n{GET}GET /none HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    // The strict reader of answers takes any byte too many or too few for a fault.
    let answers = link.answers_to(&[Method::Head, Method::Get, Method::Get]);
    let seen: Vec<_> =
        answers.iter().map(|answer| (answer.status(), answer.field("content-length").is_some())).collect();
    assert_eq!(seen, [(200, true), (200, true), (404, true)]);
    assert_eq!((answers[0].body().len(), answers[1].text()), (0, "hello"));
}

// ---- clients, proxies, scanners ----------------------------------------------------------------------------------

#[test]
fn an_upload_that_waits_is_told_to_go_on_at_once() {
    let head = |version: &str, token: &str| {
        format!("POST /echo HTTP/{version}\r\nHost: x\r\nExpect: {token}\r\nContent-Length: 5\r\n\r\n")
    };
    for token in ["100-continue", "100-Continue", "100-CONTINUE"] {
        let mut client = client();
        let mut link = client.connect();
        link.send(head("1.1", token).as_bytes());
        assert_eq!(link.received(), b"HTTP/1.1 100 Continue\r\n\r\n");
        link.send(b"hello");
        assert_eq!(link.answers().last().map(|answer| answer.text().to_owned()), Some("hello".into()));
    }
    for whole in [format!("{}hello", head("1.1", "100-continue")), format!("{}hello", head("1.0", "100-continue"))] {
        let mut client = client();
        let mut link = client.connect();
        link.send(whole.as_bytes());
        assert!(link.received().starts_with(b"HTTP/1.1 200 "));
    }
    let mut client = client();
    let mut link = client.connect();
    link.send(head("1.0", "100-continue").as_bytes());
    assert_eq!(link.received(), b"");
}

#[test]
fn an_upgrade_that_is_not_offered_is_ignored() {
    let lines = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\nContent-Length: 5\r\n";
    serves(&echo_with(lines, "hello"), 200);
}

#[test]
fn heads_of_browsers_behind_proxies_pass_and_oversized_ones_are_named() {
    for count in [17, 33, 60] {
        serves(&format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-Field: value\r\n".repeat(count)), 200);
    }
    serves(&format!("GET / HTTP/1.1\r\nHost: x\r\nCookie: {}\r\n\r\n", "c".repeat(6000)), 200);
    refuses(&format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-Field: value\r\n".repeat(200)), 431);
    refuses(&format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "t".repeat(100_000)), 414);
}

#[test]
fn a_path_parameter_that_is_no_number_is_400() {
    for id in ["%zz", "%E0", "-1", "+5", "1e3", "0x10", "18446744073709551616", "%20", "1%00"] {
        let (statuses, _) = statuses(format!("GET /echo-path/{id} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!(statuses, [400], "{id}");
    }
    // Nothing at all is no segment, so no pattern matches.
    assert_eq!(client().get("/echo-path/").status(), 404);
    assert_eq!(client().get("/echo-path/18446744073709551615").text(), "18446744073709551615");
}

#[test]
fn the_scheme_of_a_token_has_no_case_and_the_token_has() {
    let ask = |auth: &str| {
        let mut client = client();
        let request = client.request(Method::Post, "/api/v1/resource/1").field("Authorization", auth);
        let answer = request.field("Content-Type", "application/json").body(r#"{"name":"a","active":true}"#).send();
        (answer.status(), answer.field("www-authenticate").map(str::to_owned))
    };
    for auth in ["bearer tok", "BEARER  tok", "Bearer tok"] {
        assert_eq!(ask(auth), (200, None), "{auth}");
    }
    for auth in ["Bearer", "Basic tok", "Bearer TOK", "Bearer tok tok", "Bearertok"] {
        assert_eq!(ask(auth), (401, Some("Bearer".into())), "{auth}");
    }
}

#[test]
fn a_proxy_line_that_nobody_asked_for_is_a_bad_request() {
    refuses("PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n", 400);
    let (statuses, closed) =
        statuses(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x05\x06\x07\x08\0\x09\0\x50");
    assert_eq!((statuses, closed), (vec![400], true));
}

#[test]
fn every_answer_with_content_says_what_it_is() {
    let mut client = client();
    assert_eq!(client.get("/").field("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(client.get("/none").field("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(client.get("/echo-path/x").field("content-type"), Some("text/plain; charset=utf-8"));
    // A scraper of metrics wants this one.
    let answer = client.get("/metrics");
    let types: Vec<_> = answer.fields().iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type")).collect();
    assert_eq!(types.len(), 1);
    assert_eq!(answer.field("content-type"), Some("text/plain; version=0.0.4"));
    let answer = client.post("/api/v1/resource/1", b"{}");
    assert_eq!((answer.status(), answer.field("content-type")), (401, Some("application/json")));
}

#[test]
fn probes_get_what_they_can_use() {
    let mut client = client();
    let answer = client.request(Method::Delete, "/").send();
    assert_eq!((answer.status(), answer.field("allow")), (405, Some("GET, HEAD, POST, OPTIONS")));
    let answer = client.request(Method::Head, "/").send();
    assert_eq!((answer.status(), answer.body()), (200, &b""[..]));
    assert_eq!(client.post("/none", b"").status(), 404);
    let mut link = client.connect();
    link.send(b"OPTIONS / HTTP/1.0\r\n\r\n");
    let answer = &link.answers()[0];
    assert!(answer.status() == 204 || answer.status() == 200, "{answer:?}");
    assert_eq!(answer.field("allow"), Some("GET, HEAD, POST, OPTIONS"));
    let (statuses, _) = statuses("FOO / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(statuses == [405] || statuses == [501], "{statuses:?}");
}

#[test]
fn paths_match_whole_and_literals_win_in_any_order() {
    let mut client = client();
    for path in ["/echo-pathx/1", "/echo-path/1/2", "/echo-path"] {
        assert_eq!(client.get(path).status(), 404, "{path}");
    }
    for (path, text) in [
        ("/echo-path/1?x=2", "1"),
        ("/?probe=1", "hello"),
        ("/a/new", "new"),
        ("/b/new", "new"),
        ("/a/1", "1"),
        ("/b/1", "1"),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status(), answer.text()), (200, text), "{path}");
    }
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

fn post_json(client: &mut Client<App>, media_type: Option<&str>, body: &[u8]) -> Answer {
    let request = client.request(Method::Post, "/api/v1/resource/1").field("Authorization", "Bearer tok");
    match media_type {
        Some(media_type) => request.field("Content-Type", media_type).body(body).send(),
        None => request.body(body).send(),
    }
}

#[track_caller]
fn refuses_json(body: &[u8], status: u16) {
    let mut client = client();
    let answer = post_json(&mut client, Some("application/json"), body);
    assert_eq!(answer.status(), status, "{}", body[..body.len().min(80)].escape_ascii());
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert!(answer.text().len() < 300);
    assert_eq!((client.get("/").status(), client.state().created), (200, 0));
}

#[test]
fn text_that_is_no_unicode_is_refused() {
    for filler in [0, 300] {
        let filler = "f".repeat(filler);
        let bad: [&[u8]; 5] = [br"\uDE71", br"\uD83D", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf"];
        for bad in bad {
            let body = [br#"{"name":""#, filler.as_bytes(), bad, filler.as_bytes(), br#"","active":true}"#].concat();
            refuses_json(&body, 400);
        }
    }
}

#[test]
fn what_is_no_json_is_400_and_what_has_another_shape_422() {
    for body in ["", " ", "{", r#"{"name":"a","active":true}x"#, r#"{"name":"a","active":true,}"#, "nul"] {
        refuses_json(body.as_bytes(), 400);
    }
    for body in ["[]", r#""s""#, "null", r#"{"name":"a"}"#, r#"{"name":1,"active":true}"#] {
        refuses_json(body.as_bytes(), 422);
    }
    // The connection can be used on.
    serves(
        "POST /api/v1/resource/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tok\r\nContent-Length: 1\r\n\r\n{",
        400,
    );
}

#[test]
fn deep_nesting_is_refused_and_overflows_no_stack() {
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    refuses_json(nested.as_bytes(), 400);
    refuses_json(format!(r#"{{"name":"a","x":{nested},"active":true}}"#).as_bytes(), 400);
}

#[test]
fn a_key_that_comes_twice_is_refused() {
    refuses_json(br#"{"name":"a","active":false,"active":true}"#, 400);
    refuses_json(br#"{"name":"a","active":false,"\u0061ctive":true}"#, 400);
}

#[test]
fn media_types_are_taken_as_senders_write_them_and_others_are_415() {
    let body = br#"{"name":"a","active":true}"#;
    let mut client = client();
    for media_type in [
        None,
        Some("application/json"),
        Some("Application/JSON;charset=UTF-8"),
        Some("application/json; utf-8"),
        Some("application/json;"),
    ] {
        assert_eq!(post_json(&mut client, media_type, body).status(), 200, "{media_type:?}");
    }
    for media_type in ["text/plain", "application/json; charset=utf-16", "application/xml"] {
        assert_eq!(post_json(&mut client, Some(media_type), body).status(), 415, "{media_type}");
    }
}

#[test]
fn content_that_is_coded_is_415_before_it_is_sent_and_says_which_coding_is_taken() {
    let mut client = client();
    for (coding, status) in [("identity", 100), ("gzip", 415), ("identity, br", 415)] {
        for media_type in ["", "Content-Type: application/json\r\n"] {
            let mut link = client.connect();
            link.send(
                format!(
                    "POST /api/v1/resource/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tok\r\n{media_type}\
                     Content-Encoding: {coding}\r\nExpect: 100-continue\r\nContent-Length: 26\r\n\r\n"
                )
                .as_bytes(),
            );
            let sent = String::from_utf8_lossy(link.received()).into_owned();
            assert!(sent.starts_with(&format!("HTTP/1.1 {status} ")), "{coding}: {sent}");
            assert_eq!(sent.contains("\r\nAccept-Encoding: identity\r\n"), status == 415, "{sent}");
        }
    }
}

// ---- handlers ------------------------------------------------------------------------------------------------------

#[test]
fn a_field_that_would_split_the_answer_is_not_written() {
    let mut client = client();
    for case in 0..6 {
        let answer = client.get(&format!("/split/{case}"));
        assert_eq!((answer.status(), answer.field("set-cookie")), (500, None), "case {case}");
    }
}

#[test]
fn a_panic_is_a_500_and_the_state_is_as_the_handler_left_it() {
    let mut client = client();
    assert_eq!(client.get("/panic/1").text(), "1");
    let answer = client.get("/panic/13");
    assert_eq!((answer.status(), answer.field("connection")), (500, Some("close")));
    assert_eq!((client.get("/panic/2").text(), client.state().created), ("2", 3));
    assert_eq!(client.get("/").status(), Status::OK.code());
}
