//! One field of the head, by its name.

use std::fmt;
use std::marker::PhantomData;

use super::optional::Optional;
use crate::rejection::Rejection;
use crate::request::{FromRequest, Nothing, Request};
use crate::status::Status;

/// The name of a field, as a type, for [`Header`]. Those of the RFCs stand in [`fields`](crate::fields).
pub trait FieldName {
    /// How it is spelt. Found in any letter case.
    const NAME: &'static str;

    /// Whether its value is a list, so that it may come on several lines (RFC 9110 5.3). Of a field that is none, a
    /// second line is refused.
    const LIST: bool = false;
}

/// One field, named by a type: `Header<UserAgent>`.
///
/// 400 when it is missing, when its value is no UTF-8, and when it comes twice without being a list; the body names
/// the field: `{"error":"invalid_field","message":"...","path":"X-Api-Version"}`. `Option<Header<_>>` is `None` when it
/// is missing.
///
/// ```
/// use sprat::{FieldName, Header, fields::UserAgent};
/// enum ApiVersion {}
/// impl FieldName for ApiVersion {
///     const NAME: &'static str = "X-Api-Version";
/// }
/// fn hello(_: &mut (), version: Header<'_, ApiVersion>, agent: Option<Header<'_, UserAgent>>) -> String {
///     format!("version {version} for {}", agent.map_or("nobody", |agent| agent.as_str()))
/// }
/// # sprat::routes! { Api for () { GET "/" => hello(version, agent), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # let answer = client.get("/");
/// # assert_eq!(answer.text(), r#"{"error":"invalid_field","message":"the field is missing","path":"X-Api-Version"}"#);
/// # let answer = client.request(sprat::Method::Get, "/").field("x-api-version", "2").send();
/// # assert_eq!(answer.text(), "version 2 for nobody");
/// ```
#[doc(alias = "field")]
pub struct Header<'r, N> {
    value: &'r str,
    request: Request<'r>,
    name: PhantomData<fn() -> N>,
}

impl<'r, N: FieldName> Header<'r, N> {
    /// The field of a request, for extractors that build on it.
    ///
    /// # Errors
    /// 400 that names the field.
    pub fn read(request: &Request<'r>) -> Result<Header<'r, N>, Rejection> {
        let mut lines = request.fields().get_all(N::NAME);
        let Some(value) = lines.next() else { return Err(invalid(N::NAME, "the field is missing")) };
        if !N::LIST && lines.next().is_some() {
            return Err(invalid(N::NAME, "the field comes more than once"));
        }
        match std::str::from_utf8(value) {
            Ok(value) if lines.all(|line| std::str::from_utf8(line).is_ok()) => {
                Ok(Header { value, request: *request, name: PhantomData })
            }
            _ => Err(invalid(N::NAME, "the field is not UTF-8")),
        }
    }

    /// The elements of a list, over all its lines: what stands between commas, without white space and empty ones.
    ///
    /// A comma in a quoted string counts as any other: fields that hold such have a grammar of their own.
    pub fn elements(&self) -> impl Iterator<Item = &'r str> + use<'r, N> {
        let lines = self.request.fields().get_all(N::NAME);
        let elements = lines.flat_map(|line| std::str::from_utf8(line).unwrap_or_default().split(','));
        elements.map(str::trim_ascii).filter(|element| !element.is_empty())
    }
}

impl<'r, N> Header<'r, N> {
    /// The value; of a list on several lines, that of the first.
    pub fn as_str(&self) -> &'r str {
        self.value
    }
}

impl<N> Clone for Header<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Header<'_, N> {}

impl<N> fmt::Display for Header<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.value)
    }
}

impl<N: FieldName> fmt::Debug for Header<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", N::NAME, self.value)
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, N: FieldName> FromRequest<'r, S> for Header<'r, N> {
    type Takes = Nothing;

    fn check(request: &Request<'_>, _: &mut S) -> Result<(), Rejection> {
        Header::<N>::read(request).map(|_| ())
    }

    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Header::read(request)
    }
}

#[diagnostic::do_not_recommend]
impl<N: FieldName> Optional for Header<'_, N> {
    fn is_absent(request: &Request<'_>) -> bool {
        request.fields().get(N::NAME).is_none()
    }
}

#[cold]
fn invalid(name: &'static str, message: &'static str) -> Rejection {
    Rejection::json(Status::BAD_REQUEST, "invalid_field", message).at(name)
}
