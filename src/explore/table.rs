//! The routes that explored clients ask for. Answers follow from the request alone.

use crate::request::{Body, FromRequest, Nothing, Request};
use crate::response::{Respond, Response, Sent, Static};
use crate::{Rejection, Status, routes};

pub(super) struct App;

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
