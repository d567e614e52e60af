//! What the function of a row is made of: how it takes its arguments, and the two moments at which it is called.
//!
//! Public for `routes!` only. The types are written so that the compiler puts its caret on the argument that is wrong.

use std::marker::PhantomData;

use crate::rejection::Rejection;
use crate::request::{Finish, FromParam, FromRequest, Params, Parts, Request, Supply, Takes};
use crate::response::Sent;
use crate::status::Status;

/// The moment at which a row is called.
#[derive(Debug)]
pub enum Moment<'r, 'h> {
    /// The head is there, and the body is not read yet.
    Head(&'h Request<'r>),
    /// All is there.
    Whole(Parts<'r>),
}

/// What a row did in its moment.
#[derive(Debug)]
pub enum Done<'r> {
    /// Whether it wants the body.
    Head(bool),
    /// It answered.
    Whole(Sent<'r>),
}

impl<'r> Done<'r> {
    #[inline(always)]
    pub fn head(self) -> Result<bool, Rejection> {
        match self {
            Done::Head(wants_body) => Ok(wants_body),
            Done::Whole(_) => unreachable!("a row was asked about the head"),
        }
    }

    #[inline(always)]
    pub fn whole(self) -> Result<Sent<'r>, Rejection> {
        match self {
            Done::Whole(sent) => Ok(sent),
            Done::Head(_) => unreachable!("a row was asked for an answer"),
        }
    }
}

/// The place of an argument whose type the handler decides.
#[derive(Debug)]
pub struct Slot<T>(PhantomData<fn() -> T>);

impl<T> Slot<T> {
    pub const NEW: Slot<T> = Slot(PhantomData);
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Slot<T> {
        *self
    }
}

impl<T> Copy for Slot<T> {}

/// The place of an argument, and what is left to take it from.
#[derive(Debug)]
pub struct Ask<T, P> {
    slot: Slot<T>,
    parts: P,
}

impl<T, P> Ask<T, P> {
    #[inline(always)]
    pub fn new(slot: Slot<T>, parts: P) -> Ask<T, P> {
        Ask { slot, parts }
    }
}

/// Where an argument comes from: the path, or else the request.
#[derive(Debug)]
pub struct Source<const PARAM: bool>;

impl Source<true> {
    #[inline(always)]
    pub fn check<'r, S, T: FromParam<'r>>(_: Slot<T>, _: &Request<'_>, _: &mut S) -> Result<bool, Rejection> {
        Ok(false)
    }

    #[inline(always)]
    pub fn take<'r, S, T: FromParam<'r>, P: Whole<'r>>(
        ask: Ask<T, P>,
        _: &mut S,
        place: usize,
        name: &'static str,
    ) -> Result<(T, P), Rejection> {
        let _ = ask.slot;
        match T::from_param(ask.parts.params().get(place)) {
            Some(value) => Ok((value, ask.parts)),
            None => Err(wrong_param(name, T::EXPECTED)),
        }
    }
}

impl Source<false> {
    #[inline(always)]
    pub fn check<'r, S, T: FromRequest<'r, S>>(
        _: Slot<T>,
        head: &Request<'_>,
        state: &mut S,
    ) -> Result<bool, Rejection> {
        T::check(head, state)?;
        Ok(<T::Takes as Takes>::BODY)
    }

    #[inline(always)]
    pub fn take<'r, S, T: FromRequest<'r, S>, P: Supply<'r, T::Takes> + Whole<'r>>(
        ask: Ask<T, P>,
        state: &mut S,
        _: usize,
        _: &'static str,
    ) -> Result<(T, P::Left), Rejection> {
        let request = ask.parts.request();
        let (part, left) = ask.parts.supply();
        Ok((T::from_request(&request, part, state)?, left))
    }
}

/// What every argument can see.
pub trait Whole<'r> {
    fn request(&self) -> Request<'r>;
    fn params(&self) -> &'r Params<'r>;
}

impl<'r, B, W> Whole<'r> for Parts<'r, B, W> {
    #[inline(always)]
    fn request(&self) -> Request<'r> {
        self.request
    }

    #[inline(always)]
    fn params(&self) -> &'r Params<'r> {
        self.params
    }
}

#[cold]
#[inline(never)]
fn wrong_param(name: &'static str, expected: &'static str) -> Rejection {
    let name = name.strip_prefix("r#").unwrap_or(name);
    Rejection::text(Status::BAD_REQUEST, format!("path parameter {name}: expected {expected}"))
}

/// Ends a row with what its handler returned.
#[inline(always)]
pub fn finish<'r, P: Finish<'r, R>, R>(parts: P, answer: R) -> Sent<'r> {
    parts.finish(answer)
}
