//! The routes that explored clients ask for. Answers follow from the request alone.

use crate::request::{Body, FromRequest, Nothing, Request};
use crate::response::{Respond, Response, Sent, Static};
use crate::{EventStream, Later, Rejection, Status, routes};

use super::backstage::{Kind, Shared};

#[derive(Default)]
pub(super) struct App {
    /// Where answers are made that come later.
    pub(super) backstage: Shared,
}

routes! {
    /// See the module.
    pub(super) Api for App {
        GET  "/id/{n}"     => number(n),
        GET  "/long/{n}"   => long(n),
        GET  "/fixed"      => fixed(),
        GET  "/constant"   => const text("constant"),
        GET  "/close/{n}"  => closes(n, response),
        GET  "/panic/{n}"  => panics(n),
        POST "/echo"       => echo(body),
        POST "/small"      => echo(body) [body_max = 64],
        POST "/ignore/{n}" => number(n),
        POST "/guarded"    => guarded(guard, body),
        GET  "/later/{n}"  => later(later, n),
        POST "/later/{n}"  => later(later, n),
        POST "/late-echo/{n}" => late_echo(later, n, text),
        GET  "/pool/{n}"   => pool(later, n),
        GET  "/stream/{n}" => stream(later, n),
        GET  "/events/{n}" => events(events, n),
        GET  "/feed/{n}"   => feed(events, n),
    }
}

pub(super) const FIXED: &[u8] = &[b'f'; 40_000];

/// The largest content of `/long/{n}`.
pub(super) const LONG_MAX: u64 = 150_000;

/// What `/long/{n}` answers: its length and every byte depend on the number.
pub(super) fn long_content(n: u64) -> Vec<u8> {
    let len = n % LONG_MAX;
    (0..len).map(|at| b'a' + ((at ^ (at >> 7) ^ n) % 26) as u8).collect()
}

fn number(_: &mut App, n: u64) -> String {
    n.to_string()
}

fn long(_: &mut App, n: u64) -> Vec<u8> {
    long_content(n)
}

fn fixed(_: &mut App) -> impl Respond {
    Static(FIXED)
}

fn closes<'r>(_: &mut App, n: u64, response: Response<'r>) -> Sent<'r> {
    response.close().text(&n.to_string())
}

fn panics(_: &mut App, n: u64) -> &'static str {
    // Without the panic hook, whose output would drown everything else.
    std::panic::resume_unwind(Box::new(n))
}

fn echo<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {
    body
}

pub(super) struct Guard;

impl<'r> FromRequest<'r, App> for Guard {
    type Takes = Nothing;
    fn check(request: &Request<'_>, _: &mut App) -> Result<(), Rejection> {
        match request.field("x-key") {
            Some("k") => Ok(()),
            _ => Err(Rejection::text(Status::UNAUTHORIZED, "no key")),
        }
    }
    fn from_request(_: &Request<'r>, (): (), _: &mut App) -> Result<Guard, Rejection> {
        Ok(Guard)
    }
}

fn guarded<'r>(_: &mut App, _: Guard, body: Body<'r>) -> Body<'r> {
    body
}

/// What the routes answer that answer later.
pub(super) fn late_content(n: u64) -> Vec<u8> {
    let more = if n.is_multiple_of(8) { (n >> 3) % 20_000 } else { 0 };
    format!("late {n} ").into_bytes().into_iter().chain((0..more).map(|at| b'a' + ((at ^ n) % 26) as u8)).collect()
}

/// How such a route refuses at once.
pub(super) const REFUSAL: (Status, &str) = (Status::CONFLICT, "refused at once");

type Refused = Result<(), (Status, &'static str)>;

fn later(app: &mut App, later: Later<App>, n: u64) -> Refused {
    app.backstage.take(Kind::Later, n, later, late_content(n))
}

fn late_echo(app: &mut App, later: Later<App>, n: u64, text: Vec<u8>) -> Refused {
    app.backstage.take(Kind::Later, n, later, text)
}

fn pool(app: &mut App, later: Later<App>, n: u64) -> Refused {
    app.backstage.take(Kind::Pool, n, later, late_content(n))
}

fn stream(app: &mut App, later: Later<App>, n: u64) -> Refused {
    app.backstage.take(Kind::Stream, n, later, Vec::new())
}

fn events(app: &mut App, events: EventStream, n: u64) {
    app.backstage.take_events(n, events);
}

fn feed(app: &mut App, events: EventStream, n: u64) {
    app.backstage.take_subscriber(n, events);
}
