//! What the function of a row is made of: how it takes its arguments, and the two moments at which it is called.
//!
//! Public for `routes!` only. The types are written so that the compiler puts its caret on the argument that is wrong.

use std::marker::PhantomData;

use crate::rejection::Rejection;
use crate::request::{Finish, FromParam, FromRequest, PARAMS_MAX, Params, Parts, Request, Supply, Takes};
use crate::response::Sent;
use crate::status::Status;

/// The moment at which a row is called.
#[derive(Debug)]
pub enum Moment<'r, 'h> {
    /// The head is there, and the body is not read yet.
    Head(&'h Request<'r>, &'h Params<'r>),
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

/// What a row says about the head.
#[inline(always)]
pub fn head(done: Result<Done<'_>, Rejection>) -> Result<bool, Rejection> {
    match done {
        Ok(Done::Head(wants_body)) => Ok(wants_body),
        Ok(Done::Whole(_)) => unreachable!("a row was asked about the head"),
        Err(rejection) => Err(rejection),
    }
}

/// The answer of a row.
#[inline(always)]
pub fn whole(done: Result<Done<'_>, Rejection>) -> Result<Sent<'_>, Rejection> {
    match done {
        Ok(Done::Whole(sent)) => Ok(sent),
        Ok(Done::Head(_)) => unreachable!("a row was asked for an answer"),
        Err(rejection) => Err(rejection),
    }
}

/// An argument whose type the handler decides.
#[derive(Debug)]
pub struct Slot<T>(PhantomData<fn() -> T>);

impl<T> Slot<T> {
    pub const NEW: Slot<T> = Slot(PhantomData);
}

/// Where an argument comes from: a parameter of the path, by its place, or else the request.
///
/// `of` is the one place that asks something of the type of an argument, so a wrong type is one error.
#[derive(Debug)]
pub struct Source<const PLACE: usize>;

/// The place of an argument that is no parameter.
pub const NO_PARAM: usize = usize::MAX;

macro_rules! param_sources {
    ($($place:literal)*) => {$(
        impl Source<$place> {
            #[inline(always)]
            pub fn of<'r, T: FromParam<'r>>(_: Slot<T>) -> FromPath<'r, T> {
                FromPath { place: $place, parse: T::from_param, expected: T::EXPECTED }
            }
        }
    )*};
}

param_sources! { 0 1 2 3 4 5 6 7 }

const _: () = assert!(PARAMS_MAX == 8, "each place has its source");

impl Source<NO_PARAM> {
    #[inline(always)]
    pub fn of<'r, S, T: FromRequest<'r, S, Takes = K>, K: Takes>(_: Slot<T>) -> FromHead<'r, S, T, K> {
        FromHead { check: T::check, make: T::from_request }
    }
}

/// How to take a path parameter.
#[derive(Debug)]
pub struct FromPath<'r, T> {
    place: usize,
    parse: fn(&'r str) -> Option<T>,
    expected: &'static str,
}

impl<'r, T> FromPath<'r, T> {
    #[inline(always)]
    fn parse(&self, params: &Params<'r>, name: &'static str) -> Result<T, Rejection> {
        match (self.parse)(params.get(self.place)) {
            Some(value) => Ok(value),
            None => Err(wrong_param(name, self.expected)),
        }
    }

    #[inline(always)]
    pub fn check<S>(
        &self,
        _: &Request<'r>,
        params: &Params<'r>,
        _: &mut S,
        name: &'static str,
    ) -> Result<bool, Rejection> {
        match self.parse(params, name) {
            Ok(_) => Ok(false),
            Err(rejection) => Err(rejection),
        }
    }

    #[inline(always)]
    pub fn take<S, P: Whole<'r>>(self, parts: P, _: &mut S, name: &'static str) -> Result<(T, P), Rejection> {
        match self.parse(parts.params(), name) {
            Ok(value) => Ok((value, parts)),
            Err(rejection) => Err(rejection),
        }
    }
}

/// How to take an argument that uses up `K` of the request.
#[derive(Debug)]
pub struct FromHead<'r, S, T, K: Takes> {
    check: fn(&Request<'_>, &mut S) -> Result<(), Rejection>,
    make: fn(&Request<'r>, K::Part<'r>, &mut S) -> Result<T, Rejection>,
}

impl<'r, S, T, K: Takes> FromHead<'r, S, T, K> {
    #[inline(always)]
    pub fn check(
        &self,
        request: &Request<'r>,
        _: &Params<'r>,
        state: &mut S,
        _: &'static str,
    ) -> Result<bool, Rejection> {
        match (self.check)(request, state) {
            Ok(()) => Ok(K::BODY),
            Err(rejection) => Err(rejection),
        }
    }

    #[inline(always)]
    pub fn take<P: Supply<'r, K> + Whole<'r>>(
        self,
        parts: P,
        state: &mut S,
        _: &'static str,
    ) -> Result<(T, P::Left), Rejection> {
        let request = parts.request();
        let (part, left) = parts.supply();
        match (self.make)(&request, part, state) {
            Ok(value) => Ok((value, left)),
            Err(rejection) => Err(rejection),
        }
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

/// What a handler returned, and what is left to answer with. One value, as the caret of an error in either is to stand
/// at the handler.
#[derive(Debug)]
pub struct Answered<R, P> {
    answer: R,
    parts: P,
}

impl<R, P> Answered<R, P> {
    #[inline(always)]
    pub fn new(answer: R, parts: P) -> Answered<R, P> {
        Answered { answer, parts }
    }
}

/// Ends a row.
#[inline(always)]
pub fn finish<'r, R, P: Finish<'r, R>>(answered: Answered<R, P>) -> Sent<'r> {
    answered.parts.finish(answered.answer)
}
