//! Arguments that are taken from a request by their type.

use std::net::{IpAddr, SocketAddr};

use super::{Body, Request};
use crate::head::Fields;
use crate::later::TicketPart;
use crate::method::Method;
use crate::rejection::Rejection;
use crate::response::Response;
use crate::status::Status;

/// What an argument uses up, as the associated type [`FromRequest::Takes`].
pub trait Takes {
    /// What is handed over.
    type Part<'r>;
    /// Whether the body has to be received for it.
    const BODY: bool;

    /// Whether the part turned out to be empty (chunks without content). See [`Optional`](crate::Optional).
    #[inline]
    fn is_absent(part: &Self::Part<'_>) -> bool {
        let _ = part;
        false
    }
}

/// Looks at the head and uses nothing up.
#[derive(Debug)]
pub enum Nothing {}

/// Uses up the body. One argument of a handler can.
#[derive(Debug)]
pub enum TheBody {}

/// Uses up the writer. The handler then returns [`Sent`](crate::Sent).
#[derive(Debug)]
pub enum TheWriter {}

/// Uses up the writer, for an answer that comes later. The handler then returns nothing, or `Result<(), E>` to answer
/// at once with an error. See [`Later`](crate::Later).
#[derive(Debug)]
pub enum TheLater {}

impl Takes for TheLater {
    type Part<'r> = TicketPart;
    const BODY: bool = false;
}

impl Takes for Nothing {
    type Part<'r> = ();
    const BODY: bool = false;
}

impl Takes for TheBody {
    type Part<'r> = Body<'r>;
    const BODY: bool = true;
    #[inline]
    fn is_absent(part: &Body<'_>) -> bool {
        part.is_empty()
    }
}

impl Takes for TheWriter {
    type Part<'r> = Response<'r>;
    const BODY: bool = false;
}

/// An argument taken from a request by its type.
///
/// It has two moments. [`check`](FromRequest::check) runs exactly once, on the head, before the body is read: guards,
/// limits and authentication refuse there, before an upload and before `100 Continue`.
/// [`from_request`](FromRequest::from_request) makes the value, once the body is whole.
///
/// ```
/// use sprat::{FromRequest, Nothing, Rejection, Request, Status};
/// struct Agent<'r>(&'r str);
/// impl<'r, S> FromRequest<'r, S> for Agent<'r> {
///     type Takes = Nothing;
///     fn check(request: &Request<'_>, _: &mut S) -> Result<(), Rejection> {
///         match request.field("user-agent") {
///             Some(_) => Ok(()),
///             None => Err(Rejection::text(Status::BAD_REQUEST, "say who you are")),
///         }
///     }
///     fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
///         Ok(Agent(request.field("user-agent").unwrap_or_default()))
///     }
/// }
/// fn hello(_: &mut (), agent: Agent<'_>) -> String { format!("hello, {}", agent.0) }
/// # sprat::routes! { Api for () { GET "/" => hello(agent), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/").status(), 400);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from a request",
    label = "this argument is no path parameter, so its type must implement `sprat::FromRequest`",
    note = "a path parameter stands in braces in the pattern, under the name of the argument",
    note = "`Json<T>`, `Query<T>` and `Form<T>` need `#[derive(Deserialize)]` on `T`, and `Option<T>` needs \
            `sprat::Optional`"
)]
pub trait FromRequest<'r, S: ?Sized>: Sized {
    /// [`Nothing`], [`TheBody`], [`TheWriter`] or [`TheLater`].
    type Takes: Takes;

    /// Whether the request can be refused by its head already. The default refuses nothing.
    ///
    /// # Errors
    /// The answer; then neither the body is read nor the handler run.
    #[inline]
    fn check(request: &Request<'_>, state: &mut S) -> Result<(), Rejection> {
        let _ = (request, state);
        Ok(())
    }

    /// Makes the value.
    ///
    /// # Errors
    /// The answer; then the handler does not run.
    fn from_request(
        request: &Request<'r>,
        part: <Self::Takes as Takes>::Part<'r>,
        state: &mut S,
    ) -> Result<Self, Rejection>;
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for Request<'r> {
    type Takes = Nothing;
    #[inline]
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Ok(*request)
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for Fields<'r> {
    type Takes = Nothing;
    #[inline]
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Ok(request.fields())
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for Method {
    type Takes = Nothing;
    #[inline]
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Ok(request.method())
    }
}

/// The raw query, empty if there is none.
///
/// ```
/// fn search<'r>(_: &mut (), sprat::RawQuery(query): sprat::RawQuery<'r>) -> &'r str { query }
/// # sprat::routes! { Api for () { GET "/" => search(query), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/?q=%20").text(), "q=%20");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawQuery<'r>(pub &'r str);

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for RawQuery<'r> {
    type Takes = Nothing;
    #[inline]
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Ok(RawQuery(request.query().unwrap_or_default()))
    }
}

/// The address of the peer. 500 where there is none; ask for `Option<SocketAddr>` to serve unix sockets too.
#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for SocketAddr {
    type Takes = Nothing;
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        request
            .peer()
            .ok_or_else(|| Rejection::text(Status::INTERNAL_SERVER_ERROR, "this connection has no peer address"))
    }
}

/// The address of the peer without its port. 500 where there is none.
#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for IpAddr {
    type Takes = Nothing;
    fn from_request(request: &Request<'r>, (): (), state: &mut S) -> Result<Self, Rejection> {
        SocketAddr::from_request(request, (), state).map(|peer| peer.ip())
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for Body<'r> {
    type Takes = TheBody;
    #[inline]
    fn from_request(_: &Request<'r>, body: Body<'r>, _: &mut S) -> Result<Self, Rejection> {
        Ok(body)
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for &'r [u8] {
    type Takes = TheBody;
    #[inline]
    fn from_request(_: &Request<'r>, body: Body<'r>, _: &mut S) -> Result<Self, Rejection> {
        Ok(body.into_slice())
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for &'r mut [u8] {
    type Takes = TheBody;
    #[inline]
    fn from_request(_: &Request<'r>, body: Body<'r>, _: &mut S) -> Result<Self, Rejection> {
        Ok(body.into_slice())
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for Vec<u8> {
    type Takes = TheBody;
    fn from_request(_: &Request<'r>, body: Body<'r>, _: &mut S) -> Result<Self, Rejection> {
        Ok(body.as_slice().to_vec())
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for Response<'r> {
    type Takes = TheWriter;
    #[inline]
    fn from_request(_: &Request<'r>, writer: Response<'r>, _: &mut S) -> Result<Self, Rejection> {
        Ok(writer)
    }
}
