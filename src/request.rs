//! What a handler can ask for: the head, path parameters, the body, the writer; and how arguments are taken.
//!
//! `routes!` resolves each argument of a handler by its name (a path parameter, [`FromParam`]) or by its type
//! ([`FromRequest`]). A typestate on [`Parts`] lets the body and the writer be taken once.

mod from_param;
mod from_request;
mod parts;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::head::{Fields, Head, Known, Version};
use crate::method::Method;
use crate::response::{Respond, Response, Sent};
use crate::target::{self, Form, Target};

pub(crate) use from_param::Spans;
pub use from_param::{FromParam, PARAMS_MAX, Params, Rest};
pub use from_request::{FromRequest, Nothing, RawQuery, Takes, TheBody, TheLater, TheWriter};
pub use parts::{Deferred, Parts, Supply, Taken};

/// A request without its body: a view that is free to copy.
///
/// ```
/// use sprat::Request;
/// fn whoami(_: &mut (), request: Request<'_>) -> String {
///     format!("{} {} {:?}", request.method().as_str(), request.path(), request.query())
/// }
/// # sprat::routes! { Api for () { GET "/who" => whoami(request), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/who?a=1").text(), "GET /who Some(\"a=1\")");
/// ```
#[derive(Clone, Copy)]
pub struct Request<'r>(pub(crate) &'r Received<'r>);

/// What is known of a request before its body.
#[derive(Debug)]
pub(crate) struct Received<'r> {
    pub(crate) head: &'r Head<'r>,
    pub(crate) known: &'r Known<'r>,
    pub(crate) target: &'r Target<'r>,
    pub(crate) has_body: bool,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) draining: bool,
    /// Milliseconds of the loop's clock.
    pub(crate) now_ms: u64,
}

impl<'r> Request<'r> {
    /// The method.
    pub fn method(&self) -> Method {
        self.0.head.method
    }

    /// The request-target as it was sent (RFC 9112 3.2).
    pub fn target(&self) -> &'r str {
        self.0.head.target
    }

    /// Which of the four forms the request-target has.
    pub fn form(&self) -> Form {
        self.0.target.form
    }

    /// The path as it was sent, escapes and all. Path parameters are decoded.
    pub fn path(&self) -> &'r str {
        self.0.target.path
    }

    /// What follows the first `?`, raw.
    pub fn query(&self) -> Option<&'r str> {
        self.0.target.query
    }

    /// The host that is asked for, with its port: from an absolute-form target, else from the Host field.
    pub fn host(&self) -> Option<&'r str> {
        target::host(self.0.head, self.0.target.form, self.0.known.host)
    }

    /// The version that the client speaks.
    pub fn version(&self) -> Version {
        self.0.head.version
    }

    /// All field lines.
    pub fn fields(&self) -> Fields<'r> {
        self.0.head.fields
    }

    /// The value of the first field with this name, if it is text.
    pub fn field(&self, name: &str) -> Option<&'r str> {
        std::str::from_utf8(self.0.head.fields.get(name)?).ok()
    }

    /// The address of the peer, taken at accept, or named by a balancer that is trusted; see
    /// [`Server::proxy_protocol`](crate::Server::proxy_protocol). None on a unix socket and in the test client.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.0.peer
    }

    /// Whether the head announces a body. False for `Content-Length: 0`; chunks may still turn out to hold nothing.
    pub fn has_body(&self) -> bool {
        self.0.has_body
    }

    /// The time since some moment before the server's start, by a clock that never goes back. Read once for all requests
    /// that are served together, and exact to a millisecond: good for limits and caches, not for measurements.
    pub fn now(&self) -> Duration {
        Duration::from_millis(self.0.now_ms)
    }

    /// Whether shutdown has begun. A readiness route answers 503 from then on.
    pub fn is_draining(&self) -> bool {
        self.0.draining
    }
}

/// Not derived: values of fields, and queries, are credentials too often to stand in a log.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fields().iter().map(|(name, _)| name).collect();
        let (method, path, peer) = (self.method(), self.path(), self.peer());
        f.debug_struct("Request")
            .field("method", &method)
            .field("path", &path)
            .field("fields", &names)
            .field("peer", &peer)
            .finish_non_exhaustive()
    }
}

/// The content of a request: whole, contiguous, and the handler's to change.
///
/// As an answer it is sent back as it is.
///
/// ```
/// use sprat::Body;
/// fn shout<'r>(_: &mut (), mut body: Body<'r>) -> Body<'r> {
///     body.as_mut_slice().make_ascii_uppercase();
///     body
/// }
/// # sprat::routes! { Api for () { POST "/" => shout(body), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).post("/", b"hey").text(), "HEY");
/// ```
#[derive(Debug)]
pub struct Body<'r> {
    /// The content and whatever lies behind it in the buffer. JSON is parsed in place and may look that far.
    pub(crate) padded: &'r mut [u8],
    pub(crate) len: usize,
    #[cfg(feature = "json")]
    pub(crate) tape: &'r mut crate::json::Tape,
}

impl<'r> Body<'r> {
    /// The content.
    pub fn as_slice(&self) -> &[u8] {
        &self.padded[..self.len]
    }

    /// The content, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.padded[..self.len]
    }

    /// The content for as long as the request lives.
    pub fn into_slice(self) -> &'r mut [u8] {
        &mut self.padded[..self.len]
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no content, which is the same as no body.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Body<'_> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.body(self.as_slice())
    }
}
