//! Chooses the row for a request: a table of rows, and the search in it.

use crate::method::{Method, Methods};
use crate::rejection::Rejection;
use crate::request::{Parts, Request, Spans};
use crate::response::{Constant, Sent};

/// A table of routes for the state type `S`. Made by [`routes!`](crate::routes), not by hand.
pub trait Table<S: 'static> {
    /// The rows, proven and ready to be searched.
    const ROUTES: &'static Routes<S>;
}

/// Runs the guards of a row on the head. Returns whether the handler wants the body.
pub type Check<S> = for<'a> fn(&Request<'a>, &mut S) -> Result<bool, Rejection>;

/// Takes the arguments of a row, calls its handler and writes its answer.
pub type Call<S> = for<'r> fn(Parts<'r>, &mut S) -> Result<Sent<'r>, Rejection>;

/// One row.
#[derive(Debug)]
pub struct Row<S: 'static> {
    pub(crate) method: Method,
    pub(crate) pattern: &'static str,
    pub(crate) answer: Answer<S>,
    /// `[body_max = N]`: instead of `Limits::body_bytes_max`.
    pub(crate) body_bytes_max: Option<usize>,
}

/// What a row answers with.
#[derive(Debug)]
pub enum Answer<S: 'static> {
    /// `path::to::handler(args)`.
    Handler { check: Check<S>, call: Call<S> },
    /// `const text(EXPR)`.
    Constant(&'static Constant),
}

/// All rows of a table.
#[derive(Debug)]
pub struct Routes<S: 'static> {
    rows: &'static [Row<S>],
}

/// What the table says about a method and a path.
#[derive(Debug)]
pub(crate) enum Found<S: 'static> {
    /// The most specific row that has the method (for HEAD: or GET).
    Row(&'static Row<S>),
    /// OPTIONS on a known path without a row of its own.
    Options(Methods),
    /// A known path, and no row with the method. HEAD is listed with GET, OPTIONS always.
    MethodNotAllowed(Methods),
    NotFound,
}

impl<S: 'static> Routes<S> {
    /// Searches. `escaped` says whether the path holds a `%`. Writes where the parameters stand in `path` to `spans`.
    pub(crate) fn find(&'static self, method: Method, path: &str, escaped: bool, spans: &mut Spans) -> Found<S> {
        let _ = (method, path, escaped, spans, self.rows);
        Found::NotFound
    }

    /// All methods of the table, for `OPTIONS *`.
    pub(crate) fn methods(&self) -> Methods {
        Methods::NONE
    }
}
