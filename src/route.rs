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

use std::ptr;

use crate::cors::CrossOrigin;
use crate::exchange::Observe;
use crate::method::{Method, Methods};
use crate::rejection::Rejection;
use crate::request::{Params, Parts, Request, Spans};
use crate::response::{Constant, Mapped, Refusing, Sent};
use trie::{Match, Trie};

/// A table of routes for the state type `S`. Made by [`routes!`](crate::routes), not by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a route table for the state `{S}`",
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

/// Says a refusal in words of the table's own, and writes that.
pub type MapErrors<S> = fn(&mut S, Rejection, Refusing<'_>) -> Mapped;

/// The policy for pages of other origins, when it is needed.
pub type Policy = fn() -> &'static dyn CrossOrigin;

/// One row.
pub struct Row<S: 'static> {
    pub(crate) method: Method,
    pub(crate) pattern: &'static str,
    pub(crate) answer: Answer<S>,
    pub(crate) options: Options<S>,
    /// Whether there is nothing to be done for it but to run it: no policy, no observer, and no preflight can be for it.
    pub(crate) is_plain: bool,
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

/// What stands in brackets behind a row, a group or the name of a table. A row has those of its group and its table too,
/// where it has none of its own.
pub struct Options<S: 'static> {
    /// `[body_max = N]`: instead of `Limits::body_bytes_max`.
    pub(crate) body_bytes_max: Option<usize>,
    /// `[errors = mapper]`.
    pub(crate) errors: Option<MapErrors<S>>,
    /// `[cors = POLICY]`.
    pub(crate) cors: Option<Policy>,
    /// `[observe = function]`.
    pub(crate) observe: Option<Observe<S>>,
}

impl<S: 'static> Clone for Options<S> {
    fn clone(&self) -> Options<S> {
        *self
    }
}

impl<S: 'static> Copy for Options<S> {}

/// All rows of a table.
pub struct Routes<S: 'static> {
    rows: &'static [Row<S>],
    trie: Trie<'static>,
    methods: Methods,
    /// For requests that no row is for.
    options: Options<S>,
    /// Whether any row has a mapper, a policy or an observer, or the table.
    has_options: bool,
}

impl<S: 'static> std::fmt::Debug for Routes<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.rows).finish()
    }
}

/// What the table says about a method and a path.
#[allow(clippy::enum_variant_names)] // It reads as what it says: found, or not found.
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

    /// The mapper for requests that no row is for.
    pub(crate) fn errors(&self) -> Option<MapErrors<S>> {
        self.options.errors
    }

    /// Who is told of answers to requests that no row is for.
    pub(crate) fn observer(&self) -> Option<Observe<S>> {
        self.options.observe
    }

    /// Whether a request that no row is for may need a mapper, a policy or an observer.
    pub(crate) fn has_options(&self) -> bool {
        self.has_options
    }

    /// The methods of the rows for a path, and those that follow from them.
    #[cold]
    pub(crate) fn allow(&'static self, path: &str, escaped: bool) -> Methods {
        // No row is for this method.
        match self.find(Method::Other, path, escaped, &mut Spans::default()) {
            Found::MethodNotAllowed(allow) => allow,
            _ => Methods::NONE,
        }
    }

    /// The policy for a path, and the methods that are under it there: that of the row for `method`, or, if there is
    /// none, of the first row that there is; or of the table.
    #[cold]
    pub(crate) fn cors(
        &'static self,
        method: Method,
        path: &str,
        escaped: bool,
    ) -> Option<(&'static dyn CrossOrigin, Methods)> {
        let mut spans = Spans::default();
        let mut find = |method| match self.find(method, path, escaped, &mut spans) {
            Found::Row(row) => Some(row),
            _ => None,
        };
        let allow = self.allow(path, escaped);
        let policy = match find(method).or_else(|| allow.iter().find_map(&mut find)) {
            Some(row) => row.options.cors?(),
            None => self.options.cors?(),
        };
        let mut methods = Methods::NONE;
        for method in allow.iter() {
            if find(method).and_then(|row| row.options.cors).is_some_and(|other| other().is_same(policy)) {
                methods = methods.with(method);
            }
        }
        Some((policy, methods))
    }

    /// The number of a row, by which it is found again.
    #[cold]
    pub(crate) fn number_of(&self, row: &Row<S>) -> usize {
        // Not searched for: a table may have a thousand.
        let number = (ptr::from_ref(row).addr().wrapping_sub(self.rows.as_ptr().addr())) / size_of::<Row<S>>();
        // One of another table is found nowhere.
        if self.rows.get(number).is_some_and(|other| ptr::eq(other, row)) { number } else { usize::MAX }
    }

    /// The row of this number.
    #[cold]
    pub(crate) fn row(&self, number: usize) -> Option<&'static Row<S>> {
        self.rows.get(number)
    }

    /// The mapper of the row of this number.
    #[cold]
    pub(crate) fn errors_of(&self, number: usize) -> Option<MapErrors<S>> {
        self.row(number).and_then(|row| row.options.errors)
    }

    /// All methods of the table, for `OPTIONS *`.
    pub(crate) fn methods(&self) -> Methods {
        self.methods
    }
}
