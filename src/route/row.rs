//! What the function of a row is made of: how it takes its arguments, and the two moments at which it is called.
//!
//! Public for `routes!` only. The types are written so that the compiler puts its caret on the argument that is wrong.

// Nothing of this is anybody's to use.
#![allow(missing_docs)]

use std::marker::PhantomData;

use crate::rejection::Rejection;
use crate::request::{Deferred, FromParam, FromRequest, PARAMS_MAX, Params, Parts, Request, Supply, Taken, Takes};
use crate::response::{Respond, Response, Sent};
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

/// What an argument that is no parameter has to be: [`FromRequest`], under another name.
///
/// Asked for that trait itself, the compiler would list the types that implement it, and draw the whole table beside
/// the row. Here there is one implementation, and that is not recommended: half the lines.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from a request",
    label = "this argument is no path parameter, so its type must implement `sprat::FromRequest`",
    note = "a path parameter stands in braces in the pattern, under the name of the argument",
    note = "`Json<T>`, `Query<T>` and `Form<T>` need `#[derive(Deserialize)]` on `T`, and `Option<T>` needs \
            `sprat::Optional`"
)]
pub trait Argument<'r, S: ?Sized>: FromRequest<'r, S> {}

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, T: FromRequest<'r, S>> Argument<'r, S> for T {}

/// What a path parameter has to be: [`FromParam`], for the same reason.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from a path",
    label = "this argument is a path parameter, so its type must implement `sprat::FromParam`",
    note = "integers, `bool`, `char`, `&str`, `String` and `sprat::Rest` do"
)]
pub trait Param<'r>: FromParam<'r> {}

#[diagnostic::do_not_recommend]
impl<'r, T: FromParam<'r>> Param<'r> for T {}

/// The place of an argument that is no parameter.
pub const NO_PARAM: usize = usize::MAX;

macro_rules! param_sources {
    ([] $($of:tt)*) => {};
    ([$place:literal $($places:literal)*] $($of:tt)*) => {
        impl Source<$place> {
            #[inline(always)]
            $($of)* {
                FromPath { place: $place, parse: T::from_param, expected: T::EXPECTED }
            }
        }
        param_sources! { [$($places)*] $($of)* }
    };
}

// The signature is handed in, for then a wrong type is no error "in this macro", which would be three lines more.
param_sources! { [0 1 2 3 4 5 6 7] pub fn of<'r, T: Param<'r>>(_: Slot<T>) -> FromPath<'r, T> }

const _: () = assert!(PARAMS_MAX == 8, "each place has its source");

impl Source<NO_PARAM> {
    #[inline(always)]
    pub fn of<'r, S, T: Argument<'r, S, Takes = K>, K: Takes>(_: Slot<T>) -> FromHead<'r, S, T, K> {
        FromHead { check: T::check, make: T::from_request }
    }
}

/// The place of an argument that is no parameter, while one of nearly the same name is taken by nobody.
pub const MISSPELT: usize = usize::MAX - 1;

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "the name of an argument is not that of the parameter in the pattern",
    label = "no parameter has this name, and one with nearly the same name is taken by no argument"
)]
pub trait Spelt {}

impl Source<MISSPELT> {
    pub fn of<'r, T: Spelt>(_: Slot<T>) -> FromPath<'r, T> {
        FromPath { place: 0, parse: |_| None, expected: "" }
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

/// Whether a handler may return `R` where `Self` is left to answer with.
///
/// There is one rule for each writer that is left, and these are recommended, so the compiler goes on to say which of the
/// three traits below `R` lacks, in the words for that case. What it is asked for is [`Ending`], for it would list the
/// types that implement the trait it is asked for.
pub trait Answer<'r, R> {
    fn end(self, answer: R) -> Sent<'r>;
}

/// [`Answer`], under another name.
pub trait Ending<'r, R>: Answer<'r, R> {}

impl<'r, R, P: Answer<'r, R>> Ending<'r, R> for P {}

impl<'r, B, R: Returned> Answer<'r, R> for Parts<'r, B, Response<'r>> {
    #[inline(always)]
    fn end(self, answer: R) -> Sent<'r> {
        answer.respond(self.writer)
    }
}

impl<'r, B, R: ReturnedByWriter<'r>> Answer<'r, R> for Parts<'r, B, Taken> {
    #[inline(always)]
    fn end(self, answer: R) -> Sent<'r> {
        answer.into_sent()
    }
}

impl<'r, B, R: ReturnedByLater> Answer<'r, R> for Parts<'r, B, Deferred<'r>> {
    #[inline(always)]
    fn end(self, answer: R) -> Sent<'r> {
        answer.settle(self)
    }
}

/// What a handler has to return that takes neither the writer nor `Later`: [`Respond`], under another name, as
/// [`Argument`] is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what this handler must return",
    label = "this handler must return an answer: text, bytes, `Json<T>`, `Status`, `(Status, T)`, `Result<T, E>`, \
             `Option<T>`, `()`",
    note = "`Json<T>` needs `T: Serialize` (`#[derive(Serialize)]` of serde)",
    note = "of `Result<T, E>` both must be answers: for an `E` of your own implement `From<E> for Rejection` and return \
            `Result<T, Rejection>`, or implement `Respond for E`",
    note = "handlers are not async: what takes long is answered by `sprat::Later`",
    note = "implement `sprat::Respond` to answer with your own type"
)]
pub trait Returned: Respond {}

#[diagnostic::do_not_recommend]
impl<R: Respond> Returned for R {}

/// What a handler has to return that takes the writer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what this handler must return",
    label = "this handler takes the writer `Response`, so it must return the `Sent` that the writer ends with"
)]
pub trait ReturnedByWriter<'r> {
    fn into_sent(self) -> Sent<'r>;
}

#[diagnostic::do_not_recommend]
impl<'r> ReturnedByWriter<'r> for Sent<'r> {
    #[inline(always)]
    fn into_sent(self) -> Sent<'r> {
        self
    }
}

/// What a handler has to return that takes `Later`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what this handler must return",
    label = "this handler takes `Later` or what is made of it, so it must return nothing or `Result<(), E>`",
    note = "the answer is given to `Later`; an `Err(E)` is answered at once, so `E` must be an answer, as `Rejection` is"
)]
pub trait ReturnedByLater {
    fn settle<'r, B>(self, parts: Parts<'r, B, Deferred<'r>>) -> Sent<'r>;
}

#[diagnostic::do_not_recommend]
impl ReturnedByLater for () {
    fn settle<'r, B>(self, parts: Parts<'r, B, Deferred<'r>>) -> Sent<'r> {
        parts.wait()
    }
}

#[diagnostic::do_not_recommend]
impl<E: Respond> ReturnedByLater for Result<(), E> {
    fn settle<'r, B>(self, parts: Parts<'r, B, Deferred<'r>>) -> Sent<'r> {
        match self {
            Ok(()) => parts.wait(),
            Err(error) => parts.refuse(error),
        }
    }
}

/// Ends a row.
#[inline(always)]
pub fn finish<'r, R, P: Ending<'r, R>>(answered: Answered<R, P>) -> Sent<'r> {
    answered.parts.end(answered.answer)
}
