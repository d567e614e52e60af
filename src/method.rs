//! Request methods (RFC 9110 section 9, RFC 5789) and sets of them.
//!
//! Plain data. A method is case-sensitive: `get` is [`Method::Other`].

/// The method of a request.
///
/// ```
/// use sprat::Method;
/// assert_eq!(Method::from_token(b"GET"), Method::Get);
/// assert_eq!(Method::from_token(b"get"), Method::Other);
/// assert_eq!(Method::Post.as_str(), "POST");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Method {
    /// RFC 9110 9.3.1.
    Get,
    /// RFC 9110 9.3.2. Answered from the GET row when a table has no row of its own for it.
    Head,
    /// RFC 9110 9.3.3.
    Post,
    /// RFC 9110 9.3.4.
    Put,
    /// RFC 5789.
    Patch,
    /// RFC 9110 9.3.5.
    Delete,
    /// RFC 9110 9.3.7. Answered from the table when it has no row of its own for it.
    Options,
    /// RFC 9110 9.3.8.
    Trace,
    /// RFC 9110 9.3.6. Never served: an origin server offers no tunnels.
    Connect,
    /// Any other token. It is refused with 405 or 501, and still framed like the rest.
    Other,
}

impl Method {
    /// The methods that have a name here, in the order in which `Allow` lists them.
    pub const NAMED: [Method; 9] = [
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Patch,
        Method::Delete,
        Method::Options,
        Method::Trace,
        Method::Connect,
    ];

    /// The method that this token names; [`Method::Other`] for all tokens that are not standard.
    #[inline(always)]
    pub const fn from_token(token: &[u8]) -> Method {
        match token {
            b"GET" => Method::Get,
            b"POST" => Method::Post,
            b"HEAD" => Method::Head,
            b"PUT" => Method::Put,
            b"PATCH" => Method::Patch,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        }
    }

    /// The token, in capitals. `(other)` for [`Method::Other`], whose own token is not kept.
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Connect => "CONNECT",
            Method::Other => "(other)",
        }
    }
}

/// A set of methods, as the `Allow` field lists it.
///
/// ```
/// use sprat::{Method, Methods};
/// let allow = Methods::NONE.with(Method::Post).with(Method::Get);
/// assert!(allow.contains(Method::Post) && !allow.contains(Method::Put));
/// assert_eq!(allow.iter().map(Method::as_str).collect::<Vec<_>>(), ["GET", "POST"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Methods(u16);

impl Methods {
    /// The empty set.
    pub const NONE: Methods = Methods(0);

    /// This set and one more method. [`Method::Other`] has no name to list and is left out.
    pub const fn with(self, method: Method) -> Methods {
        match method {
            Method::Other => self,
            _ => Methods(self.0 | 1 << method as u16),
        }
    }

    /// All methods of both sets.
    pub const fn union(self, other: Methods) -> Methods {
        Methods(self.0 | other.0)
    }

    /// Whether the method is in the set.
    pub const fn contains(self, method: Method) -> bool {
        self.0 & 1 << method as u16 != 0
    }

    /// Whether the set has no method.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The methods in the order of [`Method::NAMED`].
    pub fn iter(self) -> impl Iterator<Item = Method> {
        Method::NAMED.into_iter().filter(move |m| self.contains(*m))
    }
}
