//! `Option` and `Result` of extractors, and the two moments.

use sprat::testing::Client;
use sprat::{
    Bearer, Body, Cookies, FromRequest, Method, Nothing, Optional, RawQuery, Rejection, Request, Respond, Status,
    routes,
};

use crate::get;

/// A guard with a memory: it counts, and refuses every request that says so.
struct Counted(u32);

#[derive(Default)]
struct App {
    checked: u32,
    made: u32,
}

impl<'r> FromRequest<'r, App> for Counted {
    type Takes = Nothing;
    fn check(request: &Request<'_>, app: &mut App) -> Result<(), Rejection> {
        app.checked += 1;
        match request.field("refuse") {
            Some("check") => Err(Rejection::text(Status::TOO_MANY_REQUESTS, "refused by check")),
            _ => Ok(()),
        }
    }
    fn from_request(request: &Request<'r>, (): (), app: &mut App) -> Result<Self, Rejection> {
        app.made += 1;
        match request.field("refuse") {
            Some("make") => Err(Rejection::text(Status::CONFLICT, "refused by from_request")),
            _ => Ok(Counted(app.checked)),
        }
    }
}

impl Optional for Counted {
    fn is_absent(request: &Request<'_>) -> bool {
        request.fields().get("absent").is_some()
    }
}

routes! {
    Guards for App {
        POST "/plain" => plain(counted, body),
        POST "/option" => option(counted, body),
        POST "/result" => result(counted, body),
        POST "/option-result" => option_result(counted, body),
        POST "/result-option" => result_option(counted, body),
    }
}

fn plain(_: &mut App, counted: Counted, body: &[u8]) -> String {
    format!("{} {}", counted.0, body.len())
}

fn option(_: &mut App, counted: Option<Counted>, body: &[u8]) -> String {
    format!("{:?} {}", counted.map(|c| c.0), body.len())
}

fn result(_: &mut App, counted: Result<Counted, Rejection>, body: &[u8]) -> String {
    match counted {
        Ok(counted) => format!("{} {}", counted.0, body.len()),
        Err(rejection) => format!("{} {} {}", rejection.status().code(), rejection.message(), body.len()),
    }
}

fn option_result(app: &mut App, counted: Option<Result<Counted, Rejection>>, body: &[u8]) -> impl Respond {
    counted.map(|counted| result(app, counted, body))
}

fn result_option(app: &mut App, counted: Result<Option<Counted>, Rejection>, body: &[u8]) -> impl Respond {
    counted.transpose().map(|counted| result(app, counted, body))
}

/// Sends the head alone, then the body. Returns the answers' statuses and texts, and what the guard counted.
fn walk(target: &str, field: &str) -> (Vec<(u16, String)>, usize, (u32, u32)) {
    let mut client = Client::new(Guards, App::default());
    let mut link = client.connect();
    link.send(format!("POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n{field}\r\n").as_bytes());
    let early = link.answers().len();
    link.send(b"abc");
    let answers = link.answers().iter().map(|a| (a.status(), a.text().to_owned())).collect();
    let counted = (link.state().checked, link.state().made);
    (answers, early, counted)
}

#[test]
fn a_plain_argument_is_refused_on_the_head() {
    assert_eq!(walk("/plain", ""), (vec![(200, "1 3".into())], 0, (1, 1)));
    assert_eq!(walk("/plain", "Refuse: check\r\n"), (vec![(429, "refused by check".into())], 1, (1, 0)));
    assert_eq!(walk("/plain", "Refuse: make\r\n"), (vec![(409, "refused by from_request".into())], 0, (1, 1)));
}

#[test]
fn an_option_is_none_only_when_the_thing_is_absent_and_its_guard_runs_at_most_once() {
    assert_eq!(walk("/option", ""), (vec![(200, "Some(1) 3".into())], 0, (1, 1)));
    assert_eq!(walk("/option", "Refuse: check\r\n"), (vec![(429, "refused by check".into())], 1, (1, 0)));
    assert_eq!(walk("/option", "Refuse: make\r\n"), (vec![(409, "refused by from_request".into())], 0, (1, 1)));
    assert_eq!(walk("/option", "Absent: 1\r\n"), (vec![(200, "None 3".into())], 0, (0, 0)));
    assert_eq!(walk("/option", "Absent: 1\r\nRefuse: check\r\n"), (vec![(200, "None 3".into())], 0, (0, 0)));
}

#[test]
fn a_result_gets_every_refusal_once_the_body_is_there_and_its_guard_runs_exactly_once() {
    assert_eq!(walk("/result", ""), (vec![(200, "1 3".into())], 0, (1, 1)));
    assert_eq!(walk("/result", "Refuse: check\r\n"), (vec![(200, "429 refused by check 3".into())], 0, (1, 0)));
    assert_eq!(walk("/result", "Refuse: make\r\n"), (vec![(200, "409 refused by from_request 3".into())], 0, (1, 1)));
}

#[test]
fn options_and_results_nest_either_way() {
    for target in ["/option-result", "/result-option"] {
        assert_eq!(walk(target, ""), (vec![(200, "1 3".into())], 0, (1, 1)));
        assert_eq!(walk(target, "Refuse: check\r\n"), (vec![(200, "429 refused by check 3".into())], 0, (1, 0)));
        assert_eq!(walk(target, "Absent: 1\r\n").0[0].0, 404);
    }
}

#[test]
fn an_optional_token_is_refused_when_it_is_malformed() {
    routes! { Tokens for () { GET "/" => token(auth), } }
    fn token<'r>(_: &mut (), auth: Option<Bearer<'r>>) -> &'r str {
        auth.map_or("none", |auth| auth.token())
    }
    assert_eq!(get(Tokens, &[]).text(), "none");
    assert_eq!(get(Tokens, &[("Authorization", "Bearer a")]).text(), "a");
    assert_eq!(get(Tokens, &[("Authorization", "Bearer")]).status(), 401);
    assert_eq!(get(Tokens, &[("Authorization", "Basic a")]).status(), 401);
    assert_eq!(get(Tokens, &[("Authorization", "")]).status(), 401);
}

#[test]
fn the_refusal_that_a_result_holds_can_be_answered() {
    routes! { Tokens for () { GET "/" => token(auth), } }
    fn token(_: &mut (), auth: Result<Bearer<'_>, Rejection>) -> Result<&'static str, Rejection> {
        auth.map(|_| "welcome")
    }
    let answer = get(Tokens, &[("Authorization", "Bearer")]);
    assert_eq!((answer.status(), answer.field("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(get(Tokens, &[("Authorization", "Bearer a")]).text(), "welcome");
}

routes! {
    Bodies for () {
        POST "/body" => body(body),
        POST "/slice" => slice(body),
        POST "/vec" => vec(body),
        POST "/result" => result_body(body),
    }
}

fn body(_: &mut (), body: Option<Body<'_>>) -> String {
    format!("{:?}", body.map(|body| body.len()))
}

fn slice(_: &mut (), body: Option<&[u8]>) -> String {
    format!("{:?}", body.map(<[u8]>::len))
}

fn vec(_: &mut (), body: Option<Vec<u8>>) -> String {
    format!("{:?}", body.map(|body| body.len()))
}

fn result_body(_: &mut (), body: Result<Vec<u8>, Rejection>) -> String {
    format!("{:?}", body.ok())
}

#[test]
fn a_body_is_absent_when_it_holds_nothing() {
    for target in ["/body", "/slice", "/vec"] {
        let mut client = Client::new(Bodies, ());
        let mut link = client.connect();
        let head = format!("POST {target} HTTP/1.1\r\nHost: x\r\n");
        for rest in [
            "\r\n",
            "Content-Length: 0\r\n\r\n",
            "Content-Length: 000\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Content-Length: 1\r\n\r\na",
            "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        ] {
            link.send(format!("{head}{rest}").as_bytes());
        }
        let answers = link.answers();
        let texts: Vec<_> = answers.iter().map(|answer| answer.text()).collect();
        assert_eq!(texts, ["None", "None", "None", "None", "Some(1)", "Some(1)"], "{target}");
    }
    assert_eq!(Client::new(Bodies, ()).post("/result", b"").text(), "Some([])");
}

#[test]
fn absence_of_the_small_things() {
    routes! { Small for () { GET "/" => small(query, cookies, peer, ip), } }
    fn small(
        _: &mut (),
        query: Option<RawQuery<'_>>,
        cookies: Option<Cookies<'_>>,
        peer: Option<std::net::SocketAddr>,
        ip: Option<std::net::IpAddr>,
    ) -> String {
        format!("{query:?} {cookies:?} {peer:?} {ip:?}")
    }
    let mut client = Client::new(Small, ());
    assert_eq!(client.get("/").text(), "None None None None");
    let mut client = client.with_peer("192.0.2.1:80".parse().unwrap());
    let answer = client.request(Method::Get, "/?").field("Cookie", "a=secret").send();
    assert_eq!(answer.text(), "Some(RawQuery(\"\")) Some([\"a\"]) Some(192.0.2.1:80) Some(192.0.2.1)");
}

#[test]
fn the_address_of_a_peer_that_has_none_is_a_500() {
    routes! { Ips for () { GET "/" => ip(ip), } }
    fn ip(_: &mut (), ip: std::net::IpAddr) -> String {
        ip.to_string()
    }
    assert_eq!(get(Ips, &[]).status(), 500);
    assert_eq!(Client::new(Ips, ()).with_peer("[::1]:80".parse().unwrap()).get("/").text(), "::1");
}
