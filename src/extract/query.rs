//! The query as a value of any type that serde can read.

use serde::Deserialize;

use super::optional::Optional;
use super::urlencoded;
use crate::rejection::Rejection;
use crate::request::{FromRequest, Nothing, Request};
use crate::status::Status;

/// The query of the request-target, read as `T`: usually a struct with one field a key.
///
/// ```
/// use serde::Deserialize;
/// use sprat::Query;
/// #[derive(Deserialize)]
/// struct Search {
///     q: String,
///     page: Option<u32>,
///     #[serde(default)]
///     tag: Vec<String>,
/// }
/// fn search(_: &mut (), Query(search): Query<Search>) -> String {
///     format!("{} on page {} with {}", search.q, search.page.unwrap_or(1), search.tag.join(" and "))
/// }
/// # sprat::routes! { Api for () { GET "/" => search(query), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # assert_eq!(client.get("/?q=red+fish&tag=a&tag=b%26c").text(), "red fish on page 1 with a and b&c");
/// # let answer = client.get("/?q=fish&page=%2B5");
/// # assert_eq!((answer.status(), answer.text()), (400,
/// #     r#"{"error":"invalid_query","message":"expected a whole number in digits (u32)","path":"page"}"#));
/// ```
///
/// What fits into what, in a query as in a [`Form`](crate::Form):
///
/// | type | text |
/// |---|---|
/// | integers | digits, after a minus if the type has one; no `+5` |
/// | `f32`, `f64` | `-1.5`, `2e3`; no `inf`, no `nan`; digits from the twentieth on do not count |
/// | `bool` | `true`, `false` |
/// | `String`, `char`, enums without content | the text, one character, the name of a variant |
/// | `&'r str` | text in which nothing had to be decoded; **500** otherwise: take `Cow<'r, str>` with `#[serde(borrow)]` |
/// | `Option<X>` | `None` if the key is missing; an empty value is a value |
/// | `Vec<X>`, `[X; N]`, sets | every value of a key that is repeated. Needs `#[serde(default)]` if the key may be missing |
/// | anything else, if the key is repeated | refused |
/// | `Vec<(K, V)>` in place of a struct | all pairs in order |
/// | a map in place of a struct | keys and values |
///
/// `#[serde(flatten)]` works for text and for maps of text: serde hides the types of flattened fields from formats, so
/// a flattened number is not recognised. Unknown keys are ignored, unless the type denies them.
///
/// A query that does not fit is answered with 400 and
/// `{"error":"invalid_query","message":"missing field","path":"q"}`, once the body is there: the type may borrow from
/// the request, and is made only then. A query has at most 1000 pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<T>(pub T);

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, T: Deserialize<'r>> FromRequest<'r, S> for Query<T> {
    type Takes = Nothing;

    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        let query = request.query().unwrap_or_default();
        // Always 400, as for a path parameter: a query is a part of the request-target.
        let refused = |fault: urlencoded::Fault| fault.into_rejection(Status::BAD_REQUEST, "invalid_query");
        urlencoded::from_query(query).map(Query).map_err(refused)
    }
}

#[diagnostic::do_not_recommend]
impl<T> Optional for Query<T> {
    fn is_absent(request: &Request<'_>) -> bool {
        request.query().is_none()
    }
}
