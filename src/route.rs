//! Chooses the row for a request: a table of rows, proven by the compiler, and the search in it.
//!
//! [`pattern`] is the grammar, [`trie`] the search, [`build`] what [`routes!`](crate::routes) expands to. Decides
//! nothing about the answer but which row makes it.

pub mod build;
#[cfg(test)]
mod naive;
#[cfg(any(test, feature = "internals"))]
pub mod owned;
mod pattern;
pub mod row;
#[cfg(test)]
mod tests;
mod trie;

use crate::method::{Method, Methods};
use crate::rejection::Rejection;
use crate::request::{Params, Parts, Request, Spans};
use crate::response::{Constant, Sent};
use trie::{Match, Trie};

/// A table of routes for the state type `S`. Made by [`routes!`](crate::routes), not by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no table of routes for the state `{S}`",
    label = "a table is made by `routes! {{ Name for State {{ .. }} }}`, with the same state"
)]
pub trait Table<S: 'static> {
    /// The rows, proven and ready to be searched.
    const ROUTES: &'static Routes<S>;
}

/// Looks at the arguments of a row in order: parameters have to parse, and the guards run on the head. Returns whether
/// the handler wants the body.
pub type Check<S> = for<'r> fn(&Request<'r>, &Params<'r>, &mut S) -> Result<bool, Rejection>;

/// Takes the arguments of a row, calls its handler and writes its answer.
pub type Call<S> = for<'r> fn(Parts<'r>, &mut S) -> Result<Sent<'r>, Rejection>;

/// One row.
pub struct Row<S: 'static> {
    pub(crate) method: Method,
    pub(crate) pattern: &'static str,
    pub(crate) answer: Answer<S>,
    /// `[body_max = N]`: instead of `Limits::body_bytes_max`.
    pub(crate) body_bytes_max: Option<usize>,
}

// Not derived, here and below: that would ask the same of the state.
impl<S: 'static> Clone for Row<S> {
    fn clone(&self) -> Row<S> {
        *self
    }
}

impl<S: 'static> Copy for Row<S> {}

impl<S: 'static> std::fmt::Debug for Row<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.method.as_str(), self.pattern)
    }
}

/// What a row answers with.
pub enum Answer<S: 'static> {
    /// `path::to::handler(args)`. Nothing is to be checked before the call if all arguments are path parameters.
    Handler { check: Option<Check<S>>, call: Call<S> },
    /// `const text(EXPR)`.
    Constant(&'static Constant),
}

impl<S: 'static> Clone for Answer<S> {
    fn clone(&self) -> Answer<S> {
        *self
    }
}

impl<S: 'static> Copy for Answer<S> {}

/// All rows of a table.
pub struct Routes<S: 'static> {
    rows: &'static [Row<S>],
    trie: Trie<'static>,
    methods: Methods,
}

impl<S: 'static> std::fmt::Debug for Routes<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.rows).finish()
    }
}

/// What the table says about a method and a path.
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
    #[inline]
    pub(crate) fn find(&'static self, method: Method, path: &str, escaped: bool, spans: &mut Spans) -> Found<S> {
        let allow = match self.trie.find(method, path, escaped, spans) {
            // The numbers of rows begin at 1, for 0 is "none".
            Match::Row(number) => match self.rows.get(usize::from(number) - 1) {
                Some(row) => return Found::Row(row),
                None => return Found::NotFound,
            },
            Match::No(allow) => allow,
        };
        if allow.is_empty() {
            Found::NotFound
        } else if method == Method::Options {
            Found::Options(allow)
        } else {
            Found::MethodNotAllowed(allow)
        }
    }

    /// All methods of the table, for `OPTIONS *`.
    pub(crate) fn methods(&self) -> Methods {
        self.methods
    }
}
