//! `Option<X>` and `Result<X, Rejection>` of every extractor `X`.

use std::net::{IpAddr, SocketAddr};

use crate::rejection::Rejection;
use crate::request::{Body, FromRequest, RawQuery, Request, Takes};

/// An argument that a request may do without: it can be asked for as `Option<X>`.
///
/// `Option<X>` is `None` only when the thing is absent. What is there and malformed is refused as `X` itself would
/// refuse it. A handler that wants to see every refusal takes `Result<X, Rejection>`.
///
/// | `X` | absent is |
/// |---|---|
/// | [`Bearer`](crate::Bearer), [`Basic`](crate::Basic) | no Authorization field; another scheme is refused |
/// | [`Header`](crate::Header) | no such field |
/// | [`Cookies`](crate::Cookies) | no Cookie field |
/// | `Query<T>`, [`RawQuery`] | no `?` in the request-target |
/// | `Json<T>`, `Form<T>`, [`Body`], `&[u8]`, `Vec<u8>` | no body, or one without content |
/// | [`SocketAddr`], [`IpAddr`] | a connection without a peer address |
///
/// An extractor of your own says what absent means for it:
///
/// ```
/// use sprat::{FromRequest, Nothing, Optional, Rejection, Request, Status};
/// struct Tenant<'r>(&'r str);
/// impl<'r, S> FromRequest<'r, S> for Tenant<'r> {
///     type Takes = Nothing;
///     fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
///         match request.field("tenant") {
///             Some(name) if !name.is_empty() => Ok(Tenant(name)),
///             _ => Err(Rejection::json(Status::BAD_REQUEST, "invalid_tenant", "name a tenant")),
///         }
///     }
/// }
/// impl Optional for Tenant<'_> {
///     fn is_absent(request: &Request<'_>) -> bool {
///         request.fields().get("tenant").is_none()
///     }
/// }
/// fn whose<'r>(_: &mut (), tenant: Option<Tenant<'r>>) -> &'r str {
///     tenant.map_or("nobody's", |tenant| tenant.0)
/// }
/// # sprat::routes! { Api for () { GET "/" => whose(tenant), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # assert_eq!(client.get("/").text(), "nobody's");
/// # assert_eq!(client.request(sprat::Method::Get, "/").field("Tenant", "").send().status(), 400);
/// # assert_eq!(client.request(sprat::Method::Get, "/").field("Tenant", "a").send().text(), "a");
/// ```
#[diagnostic::on_unimplemented(
    message = "`Option<{Self}>` cannot be taken from a request",
    label = "nothing says when a `{Self}` is absent",
    note = "implement `sprat::Optional` for it, or take `Result<{Self}, sprat::Rejection>`"
)]
pub trait Optional {
    /// Whether the head shows that the thing is not there.
    fn is_absent(request: &Request<'_>) -> bool;
}

/// `None` when the thing is absent. What is malformed is refused.
#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, X: FromRequest<'r, S> + Optional> FromRequest<'r, S> for Option<X> {
    type Takes = X::Takes;

    #[inline]
    fn check(request: &Request<'_>, state: &mut S) -> Result<(), Rejection> {
        if X::is_absent(request) { Ok(()) } else { X::check(request, state) }
    }

    #[inline]
    fn from_request(
        request: &Request<'r>,
        part: <Self::Takes as Takes>::Part<'r>,
        state: &mut S,
    ) -> Result<Self, Rejection> {
        // Chunks without content are seen only now.
        if X::is_absent(request) || <X::Takes as Takes>::is_absent(&part) {
            return Ok(None);
        }
        X::from_request(request, part, state).map(Some)
    }
}

/// Every refusal of `X`, for the handler to answer.
///
/// The handler has to run, so nothing can be refused before the body: the `check` of `X` runs here instead, once,
/// right before its `from_request`. A stateful guard still counts once. Limits of the server are not refusals of
/// `X`: a body beyond `body_max` is answered with 413 all the same.
#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, X: FromRequest<'r, S>> FromRequest<'r, S> for Result<X, Rejection> {
    type Takes = X::Takes;

    #[inline]
    fn from_request(
        request: &Request<'r>,
        part: <Self::Takes as Takes>::Part<'r>,
        state: &mut S,
    ) -> Result<Self, Rejection> {
        match X::check(request, state) {
            Ok(()) => Ok(X::from_request(request, part, state)),
            Err(rejection) => Ok(Err(rejection)),
        }
    }
}

/// `Option<Result<X, Rejection>>` tells apart what is absent, what is refused and what is there.
#[diagnostic::do_not_recommend]
impl<X: Optional> Optional for Result<X, Rejection> {
    fn is_absent(request: &Request<'_>) -> bool {
        X::is_absent(request)
    }
}

#[diagnostic::do_not_recommend]
impl Optional for RawQuery<'_> {
    fn is_absent(request: &Request<'_>) -> bool {
        request.query().is_none()
    }
}

macro_rules! absent_without_a_body {
    ($($body:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Optional for $body {
            fn is_absent(request: &Request<'_>) -> bool {
                !request.has_body()
            }
        }
    )*};
}

absent_without_a_body! { Body<'_> &[u8] &mut [u8] Vec<u8> }

macro_rules! absent_without_a_peer {
    ($($address:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Optional for $address {
            fn is_absent(request: &Request<'_>) -> bool {
                request.peer().is_none()
            }
        }
    )*};
}

absent_without_a_peer! { SocketAddr IpAddr }
