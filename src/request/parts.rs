//! The typestate that lets the body and the writer of a request be taken once.

use super::{Body, Nothing, Params, Request, Takes, TheBody, TheLater, TheWriter};
use crate::later::{Lane, TicketPart};
use crate::response::{Respond, Response, Sent};

/// Taken already; see [`Parts`].
#[derive(Debug)]
pub struct Taken;

/// The writer of a request that is answered later, unless its handler refuses it at once.
#[derive(Debug)]
pub struct Deferred<'r>(Response<'r>);

/// A request in the parts that arguments are taken from. `B` is [`Body`] or `Taken`, `W` is [`Response`] or `Taken`.
#[derive(Debug)]
pub struct Parts<'r, B = Body<'r>, W = Response<'r>> {
    pub(crate) request: Request<'r>,
    pub(crate) params: &'r Params<'r>,
    pub(crate) body: B,
    pub(crate) writer: W,
    pub(crate) lane: &'r mut Lane,
}

impl<'r, B, W> Parts<'r, B, W> {
    /// The head.
    #[inline]
    pub fn request(&self) -> Request<'r> {
        self.request
    }

    /// The path parameters.
    #[inline]
    pub fn params(&self) -> &'r Params<'r> {
        self.params
    }
}

/// Hands over a part, and what is left. The body and the writer can be handed over once.
#[diagnostic::on_unimplemented(
    message = "the body, or the writer, is taken by two arguments",
    label = "this argument needs what an argument before it has taken",
    note = "one argument can take the body, and one the writer"
)]
pub trait Supply<'r, T: Takes> {
    /// The parts without what was handed over.
    type Left;
    /// Hands it over.
    fn supply(self) -> (T::Part<'r>, Self::Left);
}

#[diagnostic::do_not_recommend]
impl<'r, B, W> Supply<'r, Nothing> for Parts<'r, B, W> {
    type Left = Self;
    #[inline]
    fn supply(self) -> ((), Self) {
        ((), self)
    }
}

#[diagnostic::do_not_recommend]
impl<'r, W> Supply<'r, TheBody> for Parts<'r, Body<'r>, W> {
    type Left = Parts<'r, Taken, W>;
    #[inline]
    fn supply(self) -> (Body<'r>, Self::Left) {
        let Parts { request, params, body, writer, lane } = self;
        (body, Parts { request, params, body: Taken, writer, lane })
    }
}

#[diagnostic::do_not_recommend]
impl<'r, B> Supply<'r, TheWriter> for Parts<'r, B, Response<'r>> {
    type Left = Parts<'r, B, Taken>;
    #[inline]
    fn supply(self) -> (Response<'r>, Self::Left) {
        let Parts { request, params, body, writer, lane } = self;
        (writer, Parts { request, params, body, writer: Taken, lane })
    }
}

#[diagnostic::do_not_recommend]
impl<'r, B> Supply<'r, TheLater> for Parts<'r, B, Response<'r>> {
    type Left = Parts<'r, B, Deferred<'r>>;
    fn supply(self) -> (TicketPart, Self::Left) {
        let Parts { request, params, body, writer, lane } = self;
        let ticket = lane.new_ticket();
        (TicketPart(ticket), Parts { request, params, body, writer: Deferred(writer), lane })
    }
}

impl<'r, B> Parts<'r, B, Deferred<'r>> {
    /// The answer comes later.
    pub(crate) fn wait(self) -> Sent<'r> {
        self.writer.0.wait()
    }

    /// This is the answer after all, and the right to answer later is void.
    pub(crate) fn refuse(self, error: impl Respond) -> Sent<'r> {
        self.lane.void();
        error.respond(self.writer.0)
    }
}
