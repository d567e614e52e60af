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
    /// Any other token. No row can have it, so it is answered with 405 or 404, and still framed like the rest.
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
        // As numbers: a pattern of bytes is compared byte by byte.
        const fn word<const N: usize>(token: &[u8; N]) -> u64 {
            let mut word = [0; 8];
            word.split_at_mut(N).0.copy_from_slice(token);
            u64::from_le_bytes(word)
        }
        macro_rules! one_of {
            ($len:literal: $($method:ident = $name:literal),+) => {
                match token.first_chunk::<$len>() {
                    Some(token) => match word(token) {
                        $(known if known == const { word($name) } => Method::$method,)+
                        _ => Method::Other,
                    },
                    None => Method::Other,
                }
            };
        }
        match token.len() {
            3 => one_of!(3: Get = b"GET", Put = b"PUT"),
            4 => one_of!(4: Post = b"POST", Head = b"HEAD"),
            5 => one_of!(5: Patch = b"PATCH", Trace = b"TRACE"),
            6 => one_of!(6: Delete = b"DELETE"),
            7 => one_of!(7: Options = b"OPTIONS", Connect = b"CONNECT"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_its_token_and_no_other() {
        for method in Method::NAMED {
            let token = method.as_str().as_bytes();
            assert_eq!(Method::from_token(token), method);
            for at in 0..token.len() {
                for bit in 0..8 {
                    let mut other = token.to_vec();
                    other[at] ^= 1 << bit;
                    assert_eq!(Method::from_token(&other), Method::Other, "{}", other.escape_ascii());
                }
                assert_eq!(Method::from_token(&token[..at]), Method::Other);
            }
            assert_eq!(Method::from_token(&[token, b"S"].concat()), Method::Other);
            assert_eq!(Method::from_token(&[token, b"\0"].concat()), Method::Other);
        }
    }
}
