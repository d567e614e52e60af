//! Bearer tokens (RFC 6750).

use std::fmt;

use super::authorization::{credentials, is_token68, unauthorized};
use super::constant_time::constant_time_eq;
use super::optional::Optional;
use crate::rejection::Rejection;
use crate::request::{FromRequest, Nothing, Request};

/// The token of `Authorization: Bearer <token>`.
///
/// The scheme is taken in any letter case, followed by one or more blanks and exactly one token (`token68`, RFC 9110
/// 11.2). Anything else is answered on the head, before the body is read: no such field, another scheme, no token, two
/// tokens, two fields. The answer is 401 with `WWW-Authenticate: Bearer` and the body `{"error":"Unauthorized"}`.
///
/// Whether it is the *right* token is for the handler to say:
///
/// ```
/// use sprat::{Bearer, Rejection};
/// struct App { secret: String }
/// fn hello(app: &mut App, auth: Bearer<'_>) -> Result<&'static str, Rejection> {
///     if auth.matches(&app.secret) { Ok("hello") } else { Err(Bearer::unauthorized()) }
/// }
/// # sprat::routes! { Api for App { GET "/" => hello(auth), } }
/// # let mut client = sprat::testing::Client::new(Api, App { secret: "tok".into() });
/// # let mut ask = |auth| client.request(sprat::Method::Get, "/").field("Authorization", auth).send();
/// # assert_eq!(ask("bearer tok").text(), "hello");
/// # let answer = ask("Bearer TOK");
/// # assert_eq!((answer.status(), answer.text()), (401, r#"{"error":"Unauthorized"}"#));
/// # assert_eq!(answer.field("www-authenticate"), Some("Bearer"));
/// ```
///
/// or for an extractor of your own, which then refuses before the body is read, too:
///
/// ```
/// use sprat::{Bearer, FromRequest, Nothing, Rejection, Request};
/// struct App { secret: String, refused: u64 }
/// struct Authorized;
/// impl<'r> FromRequest<'r, App> for Authorized {
///     type Takes = Nothing;
///     fn check(request: &Request<'_>, app: &mut App) -> Result<(), Rejection> {
///         if Bearer::read(request)?.matches(&app.secret) {
///             return Ok(());
///         }
///         app.refused += 1;
///         Err(Bearer::unauthorized())
///     }
///     fn from_request(_: &Request<'r>, (): (), _: &mut App) -> Result<Self, Rejection> {
///         Ok(Authorized)
///     }
/// }
/// fn upload(_: &mut App, _: Authorized, body: &[u8]) -> String { format!("{} bytes", body.len()) }
/// # sprat::routes! { Api for App { POST "/" => upload(auth, body), } }
/// # let mut client = sprat::testing::Client::new(Api, App { secret: "tok".into(), refused: 0 });
/// # let mut link = client.connect();
/// # link.send(b"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOK\r\nContent-Length: 9\r\n\r\n");
/// # assert_eq!((link.answers()[0].status(), link.state().refused), (401, 1));
/// ```
#[derive(Clone, Copy)]
pub struct Bearer<'r> {
    token: &'r [u8],
}

impl<'r> Bearer<'r> {
    /// The token of a request, for extractors that build on it.
    ///
    /// # Errors
    /// [`Bearer::unauthorized`], for whatever is not exactly one token.
    #[inline]
    pub fn read(request: &Request<'r>) -> Result<Bearer<'r>, Rejection> {
        match credentials(request, b"bearer") {
            Some(token) if is_token68(token) => Ok(Bearer { token }),
            _ => Err(Bearer::unauthorized()),
        }
    }

    /// The refusal of a request without a token, or with a wrong one (RFC 6750 3).
    #[cold]
    pub fn unauthorized() -> Rejection {
        unauthorized("Bearer")
    }

    /// The token. Compare it with [`matches`](Bearer::matches), not with `==`.
    pub fn token(&self) -> &'r str {
        std::str::from_utf8(self.token).unwrap_or_default()
    }

    /// Whether this is the token, letter for letter. Takes the same time for every wrong token of the right length.
    #[must_use]
    pub fn matches(&self, secret: impl AsRef<[u8]>) -> bool {
        constant_time_eq(self.token, secret.as_ref())
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized> FromRequest<'r, S> for Bearer<'r> {
    type Takes = Nothing;

    #[inline]
    fn check(request: &Request<'_>, _: &mut S) -> Result<(), Rejection> {
        Bearer::read(request).map(|_| ())
    }

    #[inline]
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        // The bytes of the token were checked on the head.
        credentials(request, b"bearer").map(|token| Bearer { token }).ok_or_else(Bearer::unauthorized)
    }
}

#[diagnostic::do_not_recommend]
impl Optional for Bearer<'_> {
    fn is_absent(request: &Request<'_>) -> bool {
        request.fields().get("authorization").is_none()
    }
}

/// Without the token, which does not belong in logs.
impl fmt::Debug for Bearer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer").finish_non_exhaustive()
    }
}
