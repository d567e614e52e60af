//! The value of a Set-Cookie field (RFC 6265 4.1 and its successor draft, 6265bis).

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::date::imf_fixdate;
use crate::head::is_token_byte;

/// When a browser sends a cookie along with requests that other sites cause (6265bis 4.1.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// Never.
    Strict,
    /// When the user follows a link. What browsers do with cookies that do not say.
    Lax,
    /// Always. Needs [`SetCookie::secure`].
    None,
}

/// A cookie to be set: the value of a Set-Cookie field.
///
/// ```
/// use std::time::Duration;
/// use sprat::{Respond, SameSite, SetCookie};
/// fn log_in(_: &mut ()) -> impl Respond {
///     let session = SetCookie::new("__Host-session", "a3fWa")
///         .path("/")
///         .secure()
///         .http_only()
///         .same_site(SameSite::Lax)
///         .max_age(Duration::from_secs(3600));
///     "welcome".field("Set-Cookie", session)
/// }
/// # sprat::routes! { Api for () { POST "/login" => log_in(), } }
/// # let answer = sprat::testing::Client::new(Api, ()).post("/login", b"");
/// # assert_eq!(answer.field("set-cookie"),
/// #     Some("__Host-session=a3fWa; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=3600"));
/// ```
///
/// Each attribute is given at most once, and everything is checked: what a browser would read otherwise than it was
/// meant, or silently drop, is a [`fault`](SetCookie::fault). As with any field that cannot be written, an answer with
/// such a cookie becomes a 500, so nothing that a handler passes on can add attributes or split the answer.
#[derive(Clone, Debug)]
pub struct SetCookie {
    text: String,
    name_len: usize,
    attributes: u16,
    fault: Option<&'static str>,
}

const PATH: u16 = 1;
const PATH_IS_ROOT: u16 = 1 << 1;
const DOMAIN: u16 = 1 << 2;
const MAX_AGE: u16 = 1 << 3;
const EXPIRES: u16 = 1 << 4;
const SECURE: u16 = 1 << 5;
const HTTP_ONLY: u16 = 1 << 6;
const SAME_SITE: u16 = 1 << 7;
const SAME_SITE_NONE: u16 = 1 << 8;
const PARTITIONED: u16 = 1 << 9;

/// Browsers drop a cookie whose name and value are longer than this together (6265bis 5.6).
const PAIR_BYTES_MAX: usize = 4096;

impl SetCookie {
    /// A cookie that lasts until the browser is closed and goes to the host that set it, below the path that set it.
    ///
    /// The name is a token. The value is `cookie-octet`s, possibly in quotes: visible ASCII without `"`, `,`, `;` and
    /// `\`. Encode what may hold others, for example in base 64.
    pub fn new(name: &str, value: &str) -> SetCookie {
        let octets = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        let fault = if name.is_empty() || !name.bytes().all(is_token_byte) {
            Some("the name of a cookie is a token (RFC 6265 4.1.1)")
        } else if !octets.bytes().all(is_cookie_octet) {
            Some("the value of a cookie holds a byte that it may not hold (RFC 6265 4.1.1)")
        } else if name.len() + value.len() > PAIR_BYTES_MAX {
            Some("the name and the value of a cookie are longer than 4096 bytes together")
        } else {
            None
        };
        let mut text = String::with_capacity(name.len() + value.len() + 96);
        // What is at fault is never sent, so it need not be kept.
        if fault.is_none() {
            text.extend([name, "=", value]);
        }
        SetCookie { text, name_len: name.len(), attributes: 0, fault }
    }

    /// Deletes the cookie. Path and domain have to be those that it was set with.
    pub fn removal(name: &str) -> SetCookie {
        SetCookie::new(name, "").max_age(Duration::ZERO)
    }

    /// Sends it to this path and what is below it.
    #[must_use]
    pub fn path(mut self, path: &str) -> SetCookie {
        if path == "/" {
            self.attributes |= PATH_IS_ROOT;
        }
        if !path.starts_with('/') || !path.bytes().all(is_attribute_byte) {
            self.blame("the path of a cookie begins with '/' and holds no ';' and no control byte");
        }
        self.attribute(PATH, "; Path=", path)
    }

    /// Sends it to this domain and those below it, instead of to this host alone.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> SetCookie {
        let is_host_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        if domain.is_empty() || !domain.bytes().all(is_host_byte) {
            self.blame("the domain of a cookie is a host name");
        }
        self.attribute(DOMAIN, "; Domain=", domain)
    }

    /// Keeps it for this long, in whole seconds; zero deletes it. Browsers keep nothing for more than 400 days.
    #[must_use]
    pub fn max_age(self, age: Duration) -> SetCookie {
        self.attribute(MAX_AGE, "; Max-Age=", &age.as_secs().to_string())
    }

    /// Keeps it until then. [`max_age`](SetCookie::max_age) says the same without a clock, and wins over it.
    #[must_use]
    pub fn expires(self, time: SystemTime) -> SetCookie {
        self.attribute(EXPIRES, "; Expires=", &imf_fixdate(time))
    }

    /// Sends it over https only.
    #[must_use]
    pub fn secure(self) -> SetCookie {
        self.attribute(SECURE, "; Secure", "")
    }

    /// Hides it from scripts.
    #[must_use]
    pub fn http_only(self) -> SetCookie {
        self.attribute(HTTP_ONLY, "; HttpOnly", "")
    }

    /// Whether it goes along with requests from other sites.
    #[must_use]
    pub fn same_site(mut self, same_site: SameSite) -> SetCookie {
        if same_site == SameSite::None {
            self.attributes |= SAME_SITE_NONE;
        }
        let text = match same_site {
            SameSite::Strict => "Strict",
            SameSite::Lax => "Lax",
            SameSite::None => "None",
        };
        self.attribute(SAME_SITE, "; SameSite=", text)
    }

    /// Keeps it apart for each site that embeds this one (CHIPS). Needs [`secure`](SetCookie::secure).
    #[must_use]
    pub fn partitioned(self) -> SetCookie {
        self.attribute(PARTITIONED, "; Partitioned", "")
    }

    /// Why browsers would drop or misread this cookie, if they would. The rules that need several attributes:
    ///
    /// - `__Secure-` in front of a name demands Secure; `__Host-` demands Secure, `Path=/` and no Domain
    ///   (6265bis 4.1.3). Browsers compare them in any letter case.
    /// - `SameSite=None` and Partitioned demand Secure.
    pub fn fault(&self) -> Option<&'static str> {
        let has = |attribute| self.attributes & attribute != 0;
        let name = self.text.as_bytes().get(..self.name_len).unwrap_or_default();
        let begins = |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        if self.fault.is_some() {
            self.fault
        } else if begins(b"__Host-") && (!has(SECURE) || !has(PATH_IS_ROOT) || has(DOMAIN)) {
            Some("a __Host- cookie has Secure, Path=/ and no Domain")
        } else if begins(b"__Secure-") && !has(SECURE) {
            Some("a __Secure- cookie has Secure")
        } else if has(SAME_SITE_NONE) && !has(SECURE) {
            Some("a SameSite=None cookie has Secure")
        } else if has(PARTITIONED) && !has(SECURE) {
            Some("a Partitioned cookie has Secure")
        } else {
            None
        }
    }

    fn attribute(mut self, attribute: u16, name: &str, value: &str) -> SetCookie {
        if self.attributes & attribute != 0 {
            self.blame("an attribute of a cookie is given twice");
        }
        self.attributes |= attribute;
        if self.fault.is_none() {
            self.text.extend([name, value]);
        }
        self
    }

    /// The first fault stays.
    fn blame(&mut self, fault: &'static str) {
        self.fault.get_or_insert(fault);
    }
}

/// The value of the field; a single line feed, which no field takes, if the cookie has a fault.
impl AsRef<[u8]> for SetCookie {
    fn as_ref(&self) -> &[u8] {
        if self.fault().is_some() { b"\n" } else { self.text.as_bytes() }
    }
}

/// The value of the field, or the fault.
impl fmt::Display for SetCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.fault().unwrap_or(&self.text))
    }
}

/// `cookie-octet` (RFC 6265 4.1.1).
fn is_cookie_octet(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

/// `av-octet` (RFC 6265bis 4.1.1).
fn is_attribute_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b';'
}
