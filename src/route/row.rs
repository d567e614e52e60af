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

/// The place of an argument whose type the handler decides.
#[derive(Debug)]
pub struct Slot<T>(PhantomData<fn() -> T>);

impl<T> Slot<T> {
    pub const NEW: Slot<T> = Slot(PhantomData);

    /// With what is left to take the argument from.
    #[inline(always)]
    pub fn of<P>(self, parts: P) -> Ask<T, P> {
        Ask { slot: self, parts }
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Slot<T> {
        *self
    }
}

impl<T> Copy for Slot<T> {}

/// The place of an argument, and what is left to take it from. One value, so that the caret of an error in either of
/// its types stands at the argument.
#[derive(Debug)]
pub struct Ask<T, P> {
    slot: Slot<T>,
    parts: P,
}

/// Where an argument comes from: a parameter of the path, by its place, or else the request.
#[derive(Clone, Copy, Debug)]
pub struct Source<const PLACE: usize>;

/// The place of an argument that is no parameter.
pub const NO_PARAM: usize = usize::MAX;

macro_rules! param_sources {
    ($($place:literal)*) => {$(
        impl Source<$place> {
            #[inline(always)]
            pub fn check<'r, S, T: FromParam<'r>>(
                self,
                _: Slot<T>,
                _: &Request<'r>,
                params: &Params<'r>,
                _: &mut S,
                name: &'static str,
            ) -> Result<bool, Rejection> {
                match T::from_param(params.get($place)) {
                    Some(_) => Ok(false),
                    None => Err(wrong_param(name, T::EXPECTED)),
                }
            }

            #[inline(always)]
            pub fn take<'r, S, T: FromParam<'r>, P: Whole<'r>>(
                self,
                ask: Ask<T, P>,
                _: &mut S,
                name: &'static str,
            ) -> Result<(T, P), Rejection> {
                let _ = ask.slot;
                match T::from_param(ask.parts.params().get($place)) {
                    Some(value) => Ok((value, ask.parts)),
                    None => Err(wrong_param(name, T::EXPECTED)),
                }
            }
        }
    )*};
}

param_sources! { 0 1 2 3 4 5 6 7 }

const _: () = assert!(PARAMS_MAX == 8, "each place has its source");

impl Source<NO_PARAM> {
    #[inline(always)]
    pub fn check<'r, S, T: FromRequest<'r, S>>(
        self,
        _: Slot<T>,
        request: &Request<'r>,
        _: &Params<'r>,
        state: &mut S,
        _: &'static str,
    ) -> Result<bool, Rejection> {
        match T::check(request, state) {
            Ok(()) => Ok(<T::Takes as Takes>::BODY),
            Err(rejection) => Err(rejection),
        }
    }

    #[inline(always)]
    pub fn take<'r, S, T: FromRequest<'r, S>, P: Supply<'r, T::Takes> + Whole<'r>>(
        self,
        ask: Ask<T, P>,
        state: &mut S,
        _: &'static str,
    ) -> Result<(T, P::Left), Rejection> {
        let request = ask.parts.request();
        let (part, left) = ask.parts.supply();
        match T::from_request(&request, part, state) {
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

/// Ends a row with what its handler returned.
#[inline(always)]
pub fn finish<'r, P: Finish<'r, R>, R>(parts: P, answer: R) -> Sent<'r> {
    parts.finish(answer)
}
