//! Final status codes (RFC 9110 section 15).

/// A final status code, 200 to 599. Interim (1xx) answers are the server's own business.
///
/// As an answer a bare `Status` has its reason phrase as a short text body; 204 and 304 have none.
///
/// ```
/// use sprat::Status;
/// assert_eq!(Status::NOT_FOUND.code(), 404);
/// assert_eq!(Status::new(418).unwrap().reason(), "Unknown");
/// assert!(Status::new(101).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u16);

macro_rules! statuses {
    ($($name:ident = $code:literal $reason:literal,)*) => {
        impl Status {
            $(#[doc = concat!("`", $code, " ", $reason, "`.")]
            pub const $name: Status = Status($code);)*

            /// The reason phrase of the registered codes, `Unknown` for the others.
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "Unknown",
                }
            }

            /// The whole status-line with its CRLF, for the registered codes.
            pub(crate) const fn line(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n")),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    OK = 200 "OK",
    CREATED = 201 "Created",
    ACCEPTED = 202 "Accepted",
    NON_AUTHORITATIVE_INFORMATION = 203 "Non-Authoritative Information",
    NO_CONTENT = 204 "No Content",
    RESET_CONTENT = 205 "Reset Content",
    PARTIAL_CONTENT = 206 "Partial Content",
    MULTIPLE_CHOICES = 300 "Multiple Choices",
    MOVED_PERMANENTLY = 301 "Moved Permanently",
    FOUND = 302 "Found",
    SEE_OTHER = 303 "See Other",
    NOT_MODIFIED = 304 "Not Modified",
    TEMPORARY_REDIRECT = 307 "Temporary Redirect",
    PERMANENT_REDIRECT = 308 "Permanent Redirect",
    BAD_REQUEST = 400 "Bad Request",
    UNAUTHORIZED = 401 "Unauthorized",
    PAYMENT_REQUIRED = 402 "Payment Required",
    FORBIDDEN = 403 "Forbidden",
    NOT_FOUND = 404 "Not Found",
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed",
    NOT_ACCEPTABLE = 406 "Not Acceptable",
    REQUEST_TIMEOUT = 408 "Request Timeout",
    CONFLICT = 409 "Conflict",
    GONE = 410 "Gone",
    LENGTH_REQUIRED = 411 "Length Required",
    PRECONDITION_FAILED = 412 "Precondition Failed",
    CONTENT_TOO_LARGE = 413 "Content Too Large",
    URI_TOO_LONG = 414 "URI Too Long",
    UNSUPPORTED_MEDIA_TYPE = 415 "Unsupported Media Type",
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable",
    EXPECTATION_FAILED = 417 "Expectation Failed",
    MISDIRECTED_REQUEST = 421 "Misdirected Request",
    UNPROCESSABLE_CONTENT = 422 "Unprocessable Content",
    UPGRADE_REQUIRED = 426 "Upgrade Required",
    PRECONDITION_REQUIRED = 428 "Precondition Required",
    TOO_MANY_REQUESTS = 429 "Too Many Requests",
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large",
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error",
    NOT_IMPLEMENTED = 501 "Not Implemented",
    BAD_GATEWAY = 502 "Bad Gateway",
    SERVICE_UNAVAILABLE = 503 "Service Unavailable",
    GATEWAY_TIMEOUT = 504 "Gateway Timeout",
    HTTP_VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported",
    INSUFFICIENT_STORAGE = 507 "Insufficient Storage",
}

impl Status {
    /// The status with this code, if it is a final one (200 to 599).
    pub const fn new(code: u16) -> Option<Status> {
        match code {
            200..=599 => Some(Status(code)),
            _ => None,
        }
    }

    /// The three digits as a number.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Whether an answer with this status can have content: not 204, 205 or 304 (RFC 9110 6.4.1, 15.3.6).
    pub const fn has_content(self) -> bool {
        !matches!(self.0, 204 | 205 | 304)
    }
}
