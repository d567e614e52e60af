//! User and password (RFC 7617).

use std::fmt;
use std::marker::PhantomData;

use super::authorization::{credentials, unauthorized};
use super::base64;
use super::constant_time::constant_time_eq;
use super::optional::Optional;
use crate::rejection::Rejection;
use crate::request::{FromRequest, Nothing, Request};

/// The name of what a user and a password open. Browsers show it, and keep passwords by it.
pub trait Realm {
    /// Its name: visible ASCII and blanks, without `"` and `\`. Anything else does not compile.
    const NAME: &'static str;
}

/// The realm `restricted`, for servers that need no name.
#[derive(Clone, Copy, Debug)]
pub enum Restricted {}

impl Realm for Restricted {
    const NAME: &'static str = "restricted";
}

/// The user and the password of `Authorization: Basic <base 64>`.
///
/// Whatever is no `user:password` in strict base 64 and UTF-8, or holds a control character, is answered on the head:
/// 401, `WWW-Authenticate: Basic realm="...", charset="UTF-8"`, and the body `{"error":"Unauthorized"}`. The realm is
/// named by the second word of the type.
///
/// ```
/// use sprat::{Basic, Realm, Rejection};
/// enum Admin {}
/// impl Realm for Admin {
///     const NAME: &'static str = "admin";
/// }
/// fn enter(_: &mut (), auth: Basic<Admin>) -> Result<String, Rejection> {
///     if !auth.matches("root", "hunter2") {
///         return Err(Basic::<Admin>::unauthorized());
///     }
///     Ok(format!("hello, {}", auth.user()))
/// }
/// # sprat::routes! { Api for () { GET "/" => enter(auth), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # let mut ask = |auth| client.request(sprat::Method::Get, "/").field("Authorization", auth).send();
/// # assert_eq!(ask("Basic cm9vdDpodW50ZXIy").text(), "hello, root");
/// # assert_eq!(ask("Basic cm9vdDpodW50ZXIz").field("www-authenticate"), Some("Basic realm=\"admin\", charset=\"UTF-8\""));
/// ```
pub struct Basic<R = Restricted> {
    /// `user:password`.
    text: String,
    user_len: usize,
    realm: PhantomData<fn() -> R>,
}

impl<R: Realm> Basic<R> {
    /// The user and the password of a request, for extractors that build on it.
    ///
    /// # Errors
    /// [`Basic::unauthorized`].
    pub fn read(request: &Request<'_>) -> Result<Basic<R>, Rejection> {
        let decoded = credentials(request, b"basic").and_then(base64::decode);
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| !text.contains(is_control));
        // The user cannot hold a colon; the password can.
        match text.and_then(|text| Some((text.find(':')?, text))) {
            Some((user_len, text)) => Ok(Basic { text, user_len, realm: PhantomData }),
            None => Err(Basic::<R>::unauthorized()),
        }
    }

    /// The refusal of a request without a user and a password, or with wrong ones.
    #[cold]
    pub fn unauthorized() -> Rejection {
        const { assert!(is_quotable(R::NAME), "a realm is made of visible ASCII and blanks, without quotes") };
        unauthorized(format!("Basic realm=\"{}\", charset=\"UTF-8\"", R::NAME))
    }
}

impl<R> Basic<R> {
    /// Who it claims to be.
    pub fn user(&self) -> &str {
        self.text.get(..self.user_len).unwrap_or_default()
    }

    /// The password. Compare it with [`matches`](Basic::matches), not with `==`.
    pub fn password(&self) -> &str {
        self.text.get(self.user_len + 1..).unwrap_or_default()
    }

    /// Whether it is this user with this password, in a time that tells no more than their lengths.
    #[must_use]
    pub fn matches(&self, user: &str, password: &str) -> bool {
        let same_user = constant_time_eq(self.user().as_bytes(), user.as_bytes());
        let same_password = constant_time_eq(self.password().as_bytes(), password.as_bytes());
        // Not &&: a wrong user takes as long as a wrong password.
        same_user & same_password
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, R: Realm> FromRequest<'r, S> for Basic<R> {
    type Takes = Nothing;

    fn check(request: &Request<'_>, _: &mut S) -> Result<(), Rejection> {
        Basic::<R>::read(request).map(|_| ())
    }

    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Basic::read(request)
    }
}

#[diagnostic::do_not_recommend]
impl<R> Optional for Basic<R> {
    fn is_absent(request: &Request<'_>) -> bool {
        request.fields().get("authorization").is_none()
    }
}

/// Without the password, which does not belong in logs.
impl<R> fmt::Debug for Basic<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Basic").field("user", &self.user()).finish_non_exhaustive()
    }
}

/// `CTL` (RFC 7617 2), which for UTF-8 means U+0000 to U+001F and U+007F.
fn is_control(c: char) -> bool {
    c.is_ascii_control()
}

const fn is_quotable(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !matches!(bytes[at], b' '..=b'~') || matches!(bytes[at], b'"' | b'\\') {
            return false;
        }
        at += 1;
    }
    true
}
