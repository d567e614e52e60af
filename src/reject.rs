//! Why a message was refused by the core: one status and one fixed sentence for each rule.

use crate::status::Status;

macro_rules! rejects {
    ($($(#[$doc:meta])* $name:ident = $status:ident $sentence:literal,)*) => {
        /// A rule of HTTP, or a limit, that a request broke. Never holds the peer's bytes.
        ///
        /// ```
        /// use sprat::{Reject, Status};
        /// assert_eq!(Reject::HostMissing.status(), Status::BAD_REQUEST);
        /// assert_eq!(Reject::HostMissing.sentence(), "an HTTP/1.1 request needs a Host field (RFC 9112 3.2)");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reject {
            $($(#[$doc])* $name,)*
        }

        impl Reject {
            /// The status of the answer.
            pub const fn status(self) -> Status {
                match self { $(Reject::$name => Status::$status,)* }
            }

            /// The body of the answer: the rule, in one sentence, lower case and without a full stop.
            pub const fn sentence(self) -> &'static str {
                match self { $(Reject::$name => $sentence,)* }
            }

            /// Every rule, for tests and documents.
            pub const ALL: &[Reject] = &[$(Reject::$name,)*];
        }
    };
}

rejects! {
    /// A PROXY header was to come first, and what came is none.
    Proxy = BAD_REQUEST "the PROXY protocol header is missing or malformed",
    /// A byte before the request-line that no method starts with: a TLS hello, a blank, a second empty line.
    FirstByte = BAD_REQUEST "a request starts with a method (RFC 9112 3)",
    /// LF without CR before it.
    BareLf = BAD_REQUEST "a line of the head ends in LF without CR (RFC 9112 2.2)",
    /// CR without LF behind it.
    BareCr = BAD_REQUEST "a CR in the head is not followed by LF (RFC 9112 2.2)",
    /// NUL or another control byte in the head.
    HeadControlByte = BAD_REQUEST "the head holds a control byte (RFC 9110 5.5)",
    /// Not `method SP request-target SP HTTP-version`.
    RequestLine = BAD_REQUEST "the request-line is not 'method target version' (RFC 9112 3)",
    /// No `HTTP/d.d` at the end of the request-line.
    Version = BAD_REQUEST "the request-line does not end in an HTTP version (RFC 9112 2.3)",
    /// A well-formed version that is not 1.x.
    VersionUnsupported = HTTP_VERSION_NOT_SUPPORTED "only HTTP/1.0 and HTTP/1.1 are served here",
    /// A name that is no token: also a blank before the colon, a folded line, a missing colon.
    FieldName = BAD_REQUEST "a field line is not a token, a colon and a value, or is folded (RFC 9112 5)",
    /// A value with a byte that no field value has.
    FieldValue = BAD_REQUEST "a field value holds a byte that it may not hold (RFC 9110 5.5)",
    /// More than `head_bytes_max`.
    HeadTooLarge = REQUEST_HEADER_FIELDS_TOO_LARGE "the head is larger than this server takes",
    /// More than `fields_max` field lines.
    TooManyFields = REQUEST_HEADER_FIELDS_TOO_LARGE "the head has more fields than this server takes",
    /// More than `target_bytes_max`.
    TargetTooLong = URI_TOO_LONG "the request-target is longer than this server takes",
    /// A method that goes on and on.
    MethodTooLong = NOT_IMPLEMENTED "the method is longer than any that is known here",
    /// Not one of the four forms, or a form that does not go with the method.
    Target = BAD_REQUEST "the request-target has no valid form for this method (RFC 9112 3.2)",
    /// A byte that RFC 3986 does not allow there.
    TargetByte = BAD_REQUEST "the request-target holds a byte that must be percent-encoded (RFC 3986 2)",
    /// `%` without two hexadecimal digits, `%00`, or bytes that are no UTF-8.
    TargetEscape = BAD_REQUEST "the path holds a percent-escape that is malformed, not UTF-8, or NUL (RFC 3986 2.1)",
    /// `.` or `..`, plain or escaped.
    DotSegment = BAD_REQUEST "the path holds a dot segment (RFC 3986 5.2.4)",
    /// `http://user@host/`.
    Userinfo = BAD_REQUEST "the request-target holds user information (RFC 9110 4.2.4)",
    /// HTTP/1.1 without Host.
    HostMissing = BAD_REQUEST "an HTTP/1.1 request needs a Host field (RFC 9112 3.2)",
    /// Two Host lines.
    HostTwice = BAD_REQUEST "a request has at most one Host field (RFC 9112 3.2)",
    /// Not `host [":" port]`.
    Host = BAD_REQUEST "the Host field is not a host with an optional port (RFC 9112 3.2)",
    /// Not `1*DIGIT`.
    ContentLength = BAD_REQUEST "Content-Length is not a number in digits (RFC 9110 8.6)",
    /// Two Content-Length lines, or a list in one.
    ContentLengthTwice = BAD_REQUEST "a request has at most one Content-Length (RFC 9112 6.3)",
    /// Both framings at once.
    BothFramings = BAD_REQUEST "Content-Length and Transfer-Encoding exclude each other (RFC 9112 6.1)",
    /// Not a list of tokens, or `chunked` in a wrong place.
    TransferEncoding = BAD_REQUEST "Transfer-Encoding is not 'chunked' alone (RFC 9112 6.1)",
    /// Two Transfer-Encoding lines.
    TransferEncodingTwice = BAD_REQUEST "a request has at most one Transfer-Encoding (RFC 9112 6.1)",
    /// In HTTP/1.0.
    TransferEncodingVersion = BAD_REQUEST "HTTP/1.0 has no Transfer-Encoding (RFC 9112 6.1)",
    /// Any coding but chunked.
    TransferCoding = NOT_IMPLEMENTED "no transfer coding but chunked is known here (RFC 9112 6.1)",
    /// Anything but `100-continue`.
    Expectation = EXPECTATION_FAILED "no expectation but 100-continue is known here (RFC 9110 10.1.1)",
    /// More than `body_bytes_max`.
    BodyTooLarge = CONTENT_TOO_LARGE "the content is larger than this server takes here",
    /// More than `bodies_bytes_max` in all.
    BodiesTooLarge = SERVICE_UNAVAILABLE "too much content is being received at the moment",
    /// Not `1*16HEXDIG`.
    ChunkSize = BAD_REQUEST "a chunk-size is not 1 to 16 hexadecimal digits with CRLF behind them (RFC 9112 7.1)",
    /// Grammar of a chunk extension.
    ChunkExtension = BAD_REQUEST "a chunk extension is malformed (RFC 9112 7.1.1)",
    /// Longer than `chunk_line_bytes_max` or, all together, `chunk_extension_bytes_max`.
    ChunkLineTooLong = BAD_REQUEST "a chunk-size line, or the sum of the extensions, is longer than this server takes",
    /// Not CRLF behind a chunk-size line or chunk-data.
    ChunkEnd = BAD_REQUEST "a chunk, or its chunk-size line, does not end in CRLF (RFC 9112 7.1)",
    /// Far more framing than data.
    ChunkOverhead = BAD_REQUEST "the chunks are far too small for the content",
    /// Grammar of the trailer section.
    Trailer = BAD_REQUEST "a trailer field is malformed (RFC 9112 7.1.2)",
    /// More than `trailer_bytes_max` or `fields_max`.
    TrailerTooLarge = REQUEST_HEADER_FIELDS_TOO_LARGE "the trailer section is larger than this server takes",
    /// The head did not come in time.
    HeadTimeout = REQUEST_TIMEOUT "the head did not arrive in time",
    /// The body did not come in time.
    BodyTimeout = REQUEST_TIMEOUT "the content did not arrive in time",
    /// The peer stopped sending in the middle of a request.
    Truncated = BAD_REQUEST "the connection ended before the request did",
    /// The handler promised an answer, and it was not there in time.
    AnswerTimeout = SERVICE_UNAVAILABLE "the answer was not ready in time",
    /// CONNECT.
    Connect = NOT_IMPLEMENTED "no tunnels are offered here (RFC 9110 9.3.6)",
    /// The handler panicked, or wrote an answer that cannot be sent.
    HandlerFailed = INTERNAL_SERVER_ERROR "the server failed to answer this request",
}
