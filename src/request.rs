//! What a handler can ask for: the head, path parameters, the body, the writer; and how arguments are taken.
//!
//! `routes!` resolves each argument of a handler by its name (a path parameter, [`FromParam`]) or by its type
//! ([`FromRequest`]). A typestate on [`Parts`] lets the body and the writer be taken once.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::head::{Fields, Head, Known, Version};
use crate::later::{Lane, TicketPart};
use crate::method::Method;
use crate::rejection::Rejection;
use crate::response::{Respond, Response, Sent};
use crate::status::Status;
use crate::target::{self, Form, Target};

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

/// Uses up the writer. The handler then returns [`Sent`].
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

/// An argument taken from a path segment by its name.
///
/// `{name}` hands over one segment, percent-decoded; `{*rest}` hands over the undecoded remainder. What does not parse
/// is answered with 400 and the parameter's name.
///
/// ```
/// use sprat::FromParam;
/// #[derive(Debug, PartialEq)]
/// struct Hex(u32);
/// impl<'r> FromParam<'r> for Hex {
///     const EXPECTED: &'static str = "a hexadecimal number";
///     fn from_param(text: &'r str) -> Option<Hex> {
///         let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
///         u32::from_str_radix(text, 16).ok().filter(|_| digits).map(Hex)
///     }
/// }
/// assert_eq!(Hex::from_param("ff"), Some(Hex(255)));
/// assert_eq!(Hex::from_param("+ff"), None);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from a path",
    label = "this argument is a path parameter, so its type must implement `sprat::FromParam`",
    note = "integers, `bool`, `char`, `&str`, `String` and `sprat::Rest` do"
)]
pub trait FromParam<'r>: Sized {
    /// What the parameter must be, to follow "expected " in the body of the 400.
    const EXPECTED: &'static str;

    /// The value, if the text is one.
    fn from_param(text: &'r str) -> Option<Self>;
}

macro_rules! integer_params {
    ($($int:ident)*) => {$(
        /// Digits, and a minus if the type has one. Rust's own parser would also take `+5`.
        #[diagnostic::do_not_recommend]
        impl<'r> FromParam<'r> for $int {
            const EXPECTED: &'static str = concat!("a whole number in digits (", stringify!($int), ")");
            #[inline]
            fn from_param(text: &'r str) -> Option<$int> {
                if text.starts_with('+') { None } else { text.parse().ok() }
            }
        }
    )*};
}

integer_params! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_param(text: &'r str) -> Option<bool> {
        text.parse().ok()
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for char {
    const EXPECTED: &'static str = "one character";
    fn from_param(text: &'r str) -> Option<char> {
        text.parse().ok()
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for &'r str {
    const EXPECTED: &'static str = "text";
    #[inline]
    fn from_param(text: &'r str) -> Option<&'r str> {
        Some(text)
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for String {
    const EXPECTED: &'static str = "text";
    fn from_param(text: &'r str) -> Option<String> {
        Some(text.to_owned())
    }
}

/// The remainder of a path that `{*rest}` took: undecoded, since `%2F` is not a `/`.
///
/// ```
/// use sprat::Rest;
/// fn file(_: &mut (), path: Rest<'_>) -> String {
///     path.segments().collect::<Vec<_>>().join(" > ")
/// }
/// # sprat::routes! { Api for () { GET "/files/{*path}" => file(path), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/files/a/b%2Fc").text(), "a > b/c");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest<'r>(pub &'r str);

impl<'r> Rest<'r> {
    /// The remainder as it was sent, without the slash before it. Possibly empty.
    ///
    /// No segment is a dot segment as it stands, but `%2F` and `%2E` are not decoded, and it may begin with a slash: it is
    /// not a path of files. See [`relative_path`](Rest::relative_path).
    pub fn as_str(&self) -> &'r str {
        self.0
    }

    /// The remainder as a path below a folder of yours; `None` if it could lead out of it: if a segment is empty, or is
    /// after decoding a dot segment, or holds a slash, a backslash, a NUL or, on Windows, a colon.
    ///
    /// Links in that folder are followed, wherever they lead.
    ///
    /// ```
    /// use sprat::Rest;
    /// fn file(_: &mut (), path: Rest<'_>) -> Option<Vec<u8>> {
    ///     let path = std::path::Path::new("/srv/www").join(path.relative_path()?);
    ///     std::fs::read(path).ok()
    /// }
    /// # sprat::routes! { Api for () { GET "/files/{*path}" => file(path), } }
    /// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/files/..%2f..%2fetc%2fpasswd").status(), 404);
    /// assert_eq!(Rest("css/a%20b.css").relative_path(), Some("css/a b.css".into()));
    /// assert_eq!(Rest("/etc/passwd").relative_path(), None);
    /// assert_eq!(Rest("..%2fpasswd").relative_path(), None);
    /// ```
    pub fn relative_path(&self) -> Option<PathBuf> {
        let leads_out = |segment: &String| {
            matches!(segment.as_str(), "" | "." | "..")
                || segment.contains(['/', '\\', '\0'])
                || (cfg!(windows) && segment.contains(':'))
        };
        let segments = self.segments().map(|segment| (!leads_out(&segment)).then_some(segment));
        segments.collect()
    }

    /// The segments, each percent-decoded: one may be empty, `..`, or hold a slash. None for an empty remainder.
    pub fn segments(&self) -> impl Iterator<Item = String> + use<'r> {
        let segments = (!self.0.is_empty()).then(|| self.0.split('/'));
        segments.into_iter().flatten().map(|segment| {
            let mut decoded = Vec::with_capacity(segment.len());
            // The escapes of a path are checked before it is routed, so nothing is lost here.
            crate::target::decode(segment, &mut decoded);
            String::from_utf8_lossy(&decoded).into_owned()
        })
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for Rest<'r> {
    const EXPECTED: &'static str = "a path";
    fn from_param(text: &'r str) -> Option<Rest<'r>> {
        Some(Rest(text))
    }
}

/// The most path parameters of one pattern.
pub const PARAMS_MAX: usize = 8;

/// The path parameters of a matched request, by their place in the pattern.
#[derive(Clone, Copy, Debug)]
pub struct Params<'r> {
    /// The path, or, where it had to be decoded, the decoded parameters behind each other.
    pub(crate) text: &'r str,
    pub(crate) spans: &'r Spans,
}

/// Start and end of each parameter in [`Params::text`].
pub(crate) type Spans = [(u32, u32); PARAMS_MAX];

impl<'r> Params<'r> {
    /// The text of the parameter at this place.
    #[inline]
    pub fn get(&self, place: usize) -> &'r str {
        let (start, end) = self.spans.get(place).copied().unwrap_or_default();
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// Taken already; see [`Parts`].
#[derive(Debug)]
pub struct Taken;

/// The writer of a request that is answered later, unless its handler refuses it at once.
#[derive(Debug)]
pub struct Deferred<'r>(Response<'r>);

/// A request in the parts that arguments are taken from. `B` is [`Body`] or `Taken`, `W` is [`Response`] or `Taken`.
#[derive(Debug)]
pub struct Parts<'r, B = Body<'r>, W = Response<'r>> {
    pub(crate) request: Request<'r>,
    pub(crate) params: &'r Params<'r>,
    pub(crate) body: B,
    pub(crate) writer: W,
    pub(crate) lane: &'r mut Lane,
}

impl<'r, B, W> Parts<'r, B, W> {
    /// The head.
    #[inline]
    pub fn request(&self) -> Request<'r> {
        self.request
    }

    /// The path parameters.
    #[inline]
    pub fn params(&self) -> &'r Params<'r> {
        self.params
    }
}

/// Hands over a part, and what is left. The body and the writer can be handed over once.
#[diagnostic::on_unimplemented(
    message = "the body, or the writer, is taken by two arguments",
    label = "this argument needs what an argument before it has taken",
    note = "one argument can take the body, and one the writer"
)]
pub trait Supply<'r, T: Takes> {
    /// The parts without what was handed over.
    type Left;
    /// Hands it over.
    fn supply(self) -> (T::Part<'r>, Self::Left);
}

#[diagnostic::do_not_recommend]
impl<'r, B, W> Supply<'r, Nothing> for Parts<'r, B, W> {
    type Left = Self;
    #[inline]
    fn supply(self) -> ((), Self) {
        ((), self)
    }
}

#[diagnostic::do_not_recommend]
impl<'r, W> Supply<'r, TheBody> for Parts<'r, Body<'r>, W> {
    type Left = Parts<'r, Taken, W>;
    #[inline]
    fn supply(self) -> (Body<'r>, Self::Left) {
        let Parts { request, params, body, writer, lane } = self;
        (body, Parts { request, params, body: Taken, writer, lane })
    }
}

#[diagnostic::do_not_recommend]
impl<'r, B> Supply<'r, TheWriter> for Parts<'r, B, Response<'r>> {
    type Left = Parts<'r, B, Taken>;
    #[inline]
    fn supply(self) -> (Response<'r>, Self::Left) {
        let Parts { request, params, body, writer, lane } = self;
        (writer, Parts { request, params, body, writer: Taken, lane })
    }
}

#[diagnostic::do_not_recommend]
impl<'r, B> Supply<'r, TheLater> for Parts<'r, B, Response<'r>> {
    type Left = Parts<'r, B, Deferred<'r>>;
    fn supply(self) -> (TicketPart, Self::Left) {
        let Parts { request, params, body, writer, lane } = self;
        let ticket = lane.new_ticket();
        (TicketPart(ticket), Parts { request, params, body, writer: Deferred(writer), lane })
    }
}

/// Turns what a handler returned into the proof that it answered.
pub trait Finish<'r, R> {
    /// Writes the answer, unless it was written.
    fn finish(self, answer: R) -> Sent<'r>;
}

#[diagnostic::do_not_recommend]
impl<'r, B, R: Respond> Finish<'r, R> for Parts<'r, B, Response<'r>> {
    #[inline]
    fn finish(self, answer: R) -> Sent<'r> {
        answer.respond(self.writer)
    }
}

#[diagnostic::do_not_recommend]
impl<'r, B> Finish<'r, Sent<'r>> for Parts<'r, B, Taken> {
    #[inline]
    fn finish(self, answer: Sent<'r>) -> Sent<'r> {
        answer
    }
}

#[diagnostic::do_not_recommend]
impl<'r, B> Finish<'r, ()> for Parts<'r, B, Deferred<'r>> {
    fn finish(self, (): ()) -> Sent<'r> {
        self.writer.0.wait()
    }
}

/// An error is answered at once, and the right to answer later is void.
#[diagnostic::do_not_recommend]
impl<'r, B, E: Respond> Finish<'r, Result<(), E>> for Parts<'r, B, Deferred<'r>> {
    fn finish(self, answer: Result<(), E>) -> Sent<'r> {
        match answer {
            Ok(()) => self.writer.0.wait(),
            Err(error) => {
                self.lane.void();
                error.respond(self.writer.0)
            }
        }
    }
}
