//! What a handler can take and return, and in which order it is refused.
#![deny(warnings)]

use std::net::SocketAddr;

use sprat::testing::Client;
use sprat::{
    Body, FromParam, FromRequest, Method, Nothing, RawQuery, Rejection, Request, Respond, Response, Rest, Sent, Status,
    TheBody, routes,
};

struct App {
    name: String,
    guarded: usize,
}

struct Id(u64);

impl<'r> FromParam<'r> for Id {
    const EXPECTED: &'static str = "an id";
    fn from_param(text: &'r str) -> Option<Id> {
        text.parse().ok().map(Id)
    }
}

/// A guard that refuses unless a field is there, and counts how often it is asked.
struct Guard;

impl<'r> FromRequest<'r, App> for Guard {
    type Takes = Nothing;
    fn check(request: &Request<'_>, app: &mut App) -> Result<(), Rejection> {
        app.guarded += 1;
        match request.field("pass") {
            Some(_) => Ok(()),
            None => Err(Rejection::text(Status::UNAUTHORIZED, "no pass")),
        }
    }
    fn from_request(_: &Request<'r>, (): (), _: &mut App) -> Result<Guard, Rejection> {
        Ok(Guard)
    }
}

/// An own type over the body.
struct Len(usize);

impl<'r, S> FromRequest<'r, S> for Len {
    type Takes = TheBody;
    fn from_request(_: &Request<'r>, body: Body<'r>, _: &mut S) -> Result<Len, Rejection> {
        Ok(Len(body.len()))
    }
}

fn params(_: &mut App, a: u64, b: &str, c: String, d: bool, e: char, f: Id, g: i8, h: Rest<'_>) -> String {
    format!("{a} {b} {c} {d} {e} {} {g} {}", f.0, h.as_str())
}

fn from_state<'a>(app: &'a mut App) -> &'a str {
    &app.name
}

fn borrowed<'r>(_: &mut App, name: &'r str, RawQuery(query): RawQuery<'r>, body: Body<'r>) -> Result<&'r [u8], &'r str> {
    if name == query { Ok(body.into_slice()) } else { Err(name) }
}

fn id_then_guard(_: &mut App, id: u64, _: Guard, len: Len) -> String {
    format!("{id} {}", len.0)
}

fn guard_then_id(app: &mut App, _: Guard, id: u64) -> String {
    format!("{id} {}", app.guarded)
}

fn writer<'r>(_: &mut App, response: Response<'r>, id: u8, body: &'r [u8]) -> Sent<'r> {
    response.status(Status::CREATED).field("id", id.to_string()).body(body)
}

fn peer(_: &mut App, peer: Option<SocketAddr>, method: Method) -> String {
    format!("{peer:?} {}", method.as_str())
}

fn any_state<S>(_: &mut S) -> impl Respond {
    (Status::ACCEPTED, "generic").field("Cache-Control", "no-store")
}

fn shared(app: &App) -> String {
    app.name.clone()
}

fn nothing(_: &mut App, _: u64, _: Nowhere) {}

/// Takes no part of the request.
struct Nowhere;

impl<'r, S> FromRequest<'r, S> for Nowhere {
    type Takes = Nothing;
    fn from_request(_: &Request<'r>, (): (), _: &mut S) -> Result<Nowhere, Rejection> {
        Err(Rejection::text(Status::CONFLICT, "nowhere"))
    }
}

fn many(_: &mut App, a: Nothing2, b: Nothing2, c: Nothing2, d: Nothing2, e: Nothing2, f: Nothing2, g: Nothing2, h: Nothing2, i: Nothing2, j: Nothing2, k: Nothing2, l: Nothing2) -> String {
    [a, b, c, d, e, f, g, h, i, j, k, l].map(|Nothing2(c)| c).iter().collect()
}

struct Nothing2(char);

impl<'r, S> FromRequest<'r, S> for Nothing2 {
    type Takes = Nothing;
    fn from_request(_: &Request<'r>, (): (), _: &mut S) -> Result<Nothing2, Rejection> {
        Ok(Nothing2('x'))
    }
}

routes! {
    Api for App {
        GET "/params/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{*h}" => params(a, b, c, d, e, f, g, h),
        GET "/state" => from_state(),
        POST "/borrowed/{name}" => borrowed(name, query, body),
        POST "/id-guard/{id}" => id_then_guard(id, guard, len),
        GET "/guard-id/{id}" => guard_then_id(guard, id),
        PUT "/writer/{id}" => writer(response, id, body),
        DELETE "/peer" => peer(peer, method),
        PATCH "/generic" => any_state(),
        GET "/shared" => shared(),
        GET "/nothing/{_id}/{n}" => nothing(n, nowhere),
        GET "/many" => many(a, b, c, d, e, f, g, h, i, j, k, l,),
    }
}

fn main() {
    let mut client = Client::new(Api, App { name: "app".to_owned(), guarded: 0 });
    assert_eq!(client.get("/params/1/b/c%20c/true/%C3%A9/6/-7/h/h%20").text(), "1 b c c true é 6 -7 h/h%20");
    assert_eq!(client.get("/state").text(), "app");
    assert_eq!(client.post("/borrowed/x?x", b"content").text(), "content");
    assert_eq!(client.post("/borrowed/x?y", b"content").text(), "x");

    let answer = client.post("/id-guard/+5", b"abc");
    assert_eq!(
        (answer.status(), answer.text()),
        (400, "path parameter id: expected a whole number in digits (u64)")
    );
    let answer = client.post("/id-guard/5", b"abc");
    assert_eq!((answer.status(), answer.text()), (401, "no pass"));
    let answer = client.get("/guard-id/x");
    assert_eq!((answer.status(), answer.text()), (401, "no pass"));

    let answer = client.get("/params/1/b/c/yes/e/6/7/");
    assert_eq!((answer.status(), answer.text()), (400, "path parameter d: expected true or false"));

    assert_eq!(client.request(Method::Delete, "/peer").send().text(), "None DELETE");
    assert_eq!(client.get("/shared").text(), "app");
    assert_eq!(client.get("/nothing/x/2").text(), "nowhere");
    assert_eq!(client.get("/nothing/x/y").text(), "path parameter n: expected a whole number in digits (u64)");
    assert_eq!(client.get("/many").text(), "xxxxxxxxxxxx");
}
