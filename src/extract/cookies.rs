//! Cookies as browsers send them (RFC 6265 4.2 and 5.4).

use std::fmt;

use super::optional::Optional;
use crate::head::Fields;
use crate::rejection::Rejection;
use crate::request::{FromRequest, Nothing, Request};

/// The cookies of a request, borrowed. Never refuses: whatever a browser or an old cookie holds, the rest can be read.
///
/// - Several Cookie fields count as one, in order.
/// - A pair without `=` is a value without a name, as browsers mean it: its name is `""`.
/// - White space around a name and a value is dropped. Quotes belong to the value, and stay. Nothing is decoded.
/// - Empty pairs and pairs that are no UTF-8 are passed over.
///
/// Of two cookies with one name, browsers send the one with the longer path first; [`get`](Cookies::get) finds that.
///
/// ```
/// use sprat::Cookies;
/// fn hello<'r>(_: &mut (), cookies: Cookies<'r>) -> &'r str {
///     cookies.get("name").unwrap_or("stranger")
/// }
/// # sprat::routes! { Api for () { GET "/" => hello(cookies), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # assert_eq!(client.get("/").text(), "stranger");
/// # let answer = client.request(sprat::Method::Get, "/").field("Cookie", "a=b; name=alice").send();
/// # assert_eq!(answer.text(), "alice");
/// ```
#[derive(Clone, Copy)]
pub struct Cookies<'r> {
    fields: Fields<'r>,
}

impl<'r> Cookies<'r> {
    /// The cookies of a request, for extractors that build on them.
    pub fn read(request: &Request<'r>) -> Cookies<'r> {
        Cookies { fields: request.fields() }
    }

    /// The value of the first cookie with this name. Names have a letter case.
    pub fn get(&self, name: &str) -> Option<&'r str> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'r str, &'r str)> + use<'r> {
        self.fields.get_all("cookie").flat_map(|line| line.split(|&b| b == b';')).filter_map(pair)
    }
}

fn pair(bytes: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(bytes).ok()?.trim_ascii();
    if text.is_empty() {
        return None;
    }
    let (name, value) = text.split_once('=').unwrap_or(("", text));
    let value = if planted!("cookies") { value.trim_matches('"') } else { value };
    Some((name.trim_ascii_end(), value.trim_ascii_start()))
}

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized> FromRequest<'r, S> for Cookies<'r> {
    type Takes = Nothing;

    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Ok(Cookies::read(request))
    }
}

#[diagnostic::do_not_recommend]
impl Optional for Cookies<'_> {
    fn is_absent(request: &Request<'_>) -> bool {
        request.fields().get("cookie").is_none()
    }
}

/// Names without values, which do not belong in logs.
impl fmt::Debug for Cookies<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}
