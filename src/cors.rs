//! Cross-origin requests: which pages may read the answers of a table (the Fetch standard, section 3.2).
//!
//! A policy is a constant. It writes field lines and decides nothing else: which requests are answered, and when the
//! lines are written, is up to `connection`.

use crate::method::{Method, Methods};
use crate::request::Request;
use crate::response::write_methods;

/// Which pages of other origins may read the answers of a table or a row: the option `cors` of
/// [`routes!`](crate::routes).
///
/// ```
/// use sprat::{Bearer, Cors, routes};
///
/// const PAGES: Cors = Cors::of(&["https://app.example", "http://localhost:5173"])
///     .fields(&["Authorization", "Content-Type"])
///     .expose(&["Retry-After"])
///     .max_age(600);
///
/// routes! {
///     Api for () [cors = PAGES] {
///         GET  "/me" => me(token),
///         POST "/me" => me(token),
///     }
/// }
/// fn me<'r>(_: &mut (), token: Bearer<'r>) -> &'r str { token.token() }
///
/// # let mut client = sprat::testing::Client::new(Api, ());
/// // A browser asks first, without the token.
/// let answer = client.request(sprat::Method::Options, "/me")
///     .field("Origin", "https://app.example")
///     .field("Access-Control-Request-Method", "POST")
///     .field("Access-Control-Request-Headers", "authorization")
///     .send();
/// assert_eq!(answer.status(), 204);
/// assert_eq!(answer.field("access-control-allow-origin"), Some("https://app.example"));
/// assert_eq!(answer.field("access-control-allow-methods"), Some("GET, HEAD, POST"));
/// assert_eq!(answer.field("access-control-allow-headers"), Some("Authorization, Content-Type"));
/// // Then it lets the page see every answer, also those that refuse.
/// let answer = client.request(sprat::Method::Get, "/me").field("Origin", "https://app.example").send();
/// assert_eq!((answer.status(), answer.field("access-control-allow-origin")), (401, Some("https://app.example")));
/// // Pages of other origins see nothing.
/// let answer = client.request(sprat::Method::Get, "/me").field("Origin", "https://evil.example").send();
/// assert_eq!(answer.field("access-control-allow-origin"), None);
/// ```
///
/// # What is answered
///
/// - **A preflight**, which is OPTIONS with `Origin` and `Access-Control-Request-Method`, gets 204 before any argument
///   of a row is looked at, so it needs no token, and no row for OPTIONS sees it. `Access-Control-Allow-Methods` holds
///   the methods that the table has for this path with the same policy. The policy is that of the row for the method
///   that is asked for.
/// - **Every other answer** of those rows carries the origin: handlers' and constant ones, later ones and streams,
///   refusals of arguments (400, 401, 415, 422), and those of the server itself that come after the route was found (408,
///   413, 500, 503). 404 and 405 carry that of the table, or for 405 that of the path. A request that is refused before
///   it is routed, because its head is malformed, gets no such fields.
/// - `Vary: Origin` is in all of them, allowed or not, unless the policy is [`Cors::any`]: that answer is the same for
///   everyone.
///
/// A policy blocks no request: a page that may not read the answer can still send it. It is no protection against CSRF
/// where cookies are the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cors {
    /// None: all.
    origins: Option<&'static [&'static str]>,
    credentials: bool,
    fields: &'static [&'static str],
    exposed: &'static [&'static str],
    max_age_seconds: Option<u32>,
}

impl Cors {
    /// Pages of every origin: `Access-Control-Allow-Origin: *`.
    ///
    /// ```
    /// # use sprat::{Cors, routes};
    /// const PUBLIC: Cors = Cors::any();
    /// routes! { Api for () { GET "/version" => const text("1") [cors = PUBLIC], } }
    /// # let answer = sprat::testing::Client::new(Api, ()).get("/version");
    /// # assert_eq!((answer.text(), answer.field("access-control-allow-origin")), ("1", Some("*")));
    /// ```
    pub const fn any() -> Cors {
        Cors { origins: None, credentials: false, fields: &[], exposed: &[], max_age_seconds: None }
    }

    /// Pages of these origins only, each written as browsers send it: `https://app.example`, with the port if it is not
    /// that of the scheme, in lower case, without a slash at the end.
    ///
    /// ```
    /// const PAGES: sprat::Cors = sprat::Cors::of(&["https://app.example", "http://localhost:5173"]);
    /// # let _ = PAGES;
    /// ```
    ///
    /// # Panics
    /// If an origin is not of that form. In a constant, which `routes!` asks for, that is a build error:
    ///
    /// ```compile_fail,E0080
    /// const PAGES: sprat::Cors = sprat::Cors::of(&["https://app.example/"]);
    /// ```
    #[track_caller]
    pub const fn of(origins: &'static [&'static str]) -> Cors {
        let mut at = 0;
        while at < origins.len() {
            assert!(
                is_origin(origins[at].as_bytes()),
                "an origin is `scheme://host` or `scheme://host:port`, in lower case and without a slash at the end"
            );
            at += 1;
        }
        Cors { origins: Some(origins), ..Cors::any() }
    }

    /// Lets pages send cookies and other credentials that the browser keeps. An `Authorization` field that a page sets
    /// itself is none of these: it is one of the [`fields`](Cors::fields).
    ///
    /// ```
    /// const PAGES: sprat::Cors = sprat::Cors::of(&["https://app.example"]).credentials();
    /// # let _ = PAGES;
    /// ```
    ///
    /// # Panics
    /// If the policy is for every origin: browsers refuse that, and rightly so.
    ///
    /// ```compile_fail,E0080
    /// const PAGES: sprat::Cors = sprat::Cors::any().credentials();
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn credentials(self) -> Cors {
        assert!(self.origins.is_some(), "credentials are for origins that are named: `Cors::of(..)`");
        Cors { credentials: true, ..self }
    }

    /// The fields that pages may send, beside those that they always may. `Authorization` and a `Content-Type` of JSON
    /// have to be named.
    ///
    /// ```
    /// const PAGES: sprat::Cors = sprat::Cors::any().fields(&["Authorization", "Content-Type"]);
    /// # let _ = PAGES;
    /// ```
    ///
    /// # Panics
    /// If a name is no field name.
    #[must_use]
    #[track_caller]
    pub const fn fields(self, names: &'static [&'static str]) -> Cors {
        check_names(names);
        Cors { fields: names, ..self }
    }

    /// The fields of answers that pages may read, beside those that they always may.
    ///
    /// ```
    /// const PAGES: sprat::Cors = sprat::Cors::any().expose(&["Retry-After", "RateLimit"]);
    /// # let _ = PAGES;
    /// ```
    ///
    /// # Panics
    /// If a name is no field name.
    #[must_use]
    #[track_caller]
    pub const fn expose(self, names: &'static [&'static str]) -> Cors {
        check_names(names);
        Cors { exposed: names, ..self }
    }

    /// For how many seconds a browser need not ask again. Without it, five.
    ///
    /// ```
    /// const PAGES: sprat::Cors = sprat::Cors::any().max_age(600);
    /// # let _ = PAGES;
    /// ```
    #[must_use]
    pub const fn max_age(self, seconds: u32) -> Cors {
        Cors { max_age_seconds: Some(seconds), ..self }
    }
}

/// What the machine asks of a policy.
///
/// A trait, so that a program without a policy holds none of the code: only `routes!` makes a [`Cors`] into one of
/// these.
pub trait CrossOrigin: Sync {
    /// Writes the field lines of an answer; of one to a preflight if it is told which methods are allowed.
    fn write(&self, request: Request<'_>, preflight: Option<Methods>, lines: &mut Vec<u8>);

    /// Whether it is the same as another.
    fn is_same(&self, other: &dyn CrossOrigin) -> bool;

    /// The policy itself, to be compared.
    fn as_cors(&self) -> &Cors;
}

impl CrossOrigin for Cors {
    fn write(&self, request: Request<'_>, preflight: Option<Methods>, lines: &mut Vec<u8>) {
        match self.origins {
            None => push(lines, "Access-Control-Allow-Origin", b"*"),
            Some(origins) => {
                push(lines, "Vary", b"Origin");
                let mut sent = request.fields().get_all("origin");
                // Two lines are no browser's.
                let (Some(origin), None) = (sent.next(), sent.next()) else { return };
                let is_it = |allowed: &[u8]| allowed == origin || (planted!("cors") && origin.starts_with(allowed));
                if !origins.iter().any(|allowed| is_it(allowed.as_bytes())) {
                    return;
                }
                push(lines, "Access-Control-Allow-Origin", origin);
                if self.credentials {
                    push(lines, "Access-Control-Allow-Credentials", b"true");
                }
            }
        }
        let Some(methods) = preflight else {
            return push_list(lines, "Access-Control-Expose-Headers", self.exposed);
        };
        if !methods.is_empty() {
            write_methods("Access-Control-Allow-Methods", methods, lines);
        }
        push_list(lines, "Access-Control-Allow-Headers", self.fields);
        if let Some(seconds) = self.max_age_seconds {
            push(lines, "Access-Control-Max-Age", seconds.to_string().as_bytes());
        }
    }

    fn is_same(&self, other: &dyn CrossOrigin) -> bool {
        self == other.as_cors()
    }

    fn as_cors(&self) -> &Cors {
        self
    }
}

/// The method that a preflight asks for.
pub(crate) fn preflighted(request: Request<'_>) -> Option<Method> {
    if request.method() != Method::Options {
        return None;
    }
    request.fields().get("origin")?;
    request.fields().get("access-control-request-method").map(Method::from_token)
}

fn push(lines: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        lines.extend_from_slice(part);
    }
}

fn push_list(lines: &mut Vec<u8>, name: &str, values: &[&str]) {
    if !values.is_empty() {
        push(lines, name, values.join(", ").as_bytes());
    }
}

#[track_caller]
const fn check_names(names: &[&str]) {
    let mut at = 0;
    while at < names.len() {
        let name = names[at].as_bytes();
        assert!(!name.is_empty(), "the name of a field is not empty");
        let mut byte = 0;
        while byte < name.len() {
            // Of the bytes of a token those that names are made of. `*` is none: browsers take it literally where
            // credentials are sent, and never for Authorization.
            assert!(
                matches!(name[byte], b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z'),
                "the name of a field holds letters, digits, `-` and `_` only"
            );
            byte += 1;
        }
        at += 1;
    }
}

/// `scheme "://" host [ ":" port ]` (RFC 6454 6.2), as far as a wrong one would never match.
const fn is_origin(text: &[u8]) -> bool {
    let mut scheme_len = 0;
    while scheme_len < text.len() && matches!(text[scheme_len], b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.') {
        scheme_len += 1;
    }
    let host = scheme_len + 3;
    if scheme_len == 0 || host >= text.len() {
        return false;
    }
    if text[scheme_len] != b':' || text[scheme_len + 1] != b'/' || text[scheme_len + 2] != b'/' {
        return false;
    }
    let mut at = host;
    while at < text.len() {
        if !matches!(text[at], b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' | b'[' | b']') {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_origin;

    #[test]
    fn an_origin_is_written_as_browsers_send_it() {
        for origin in
            ["http://a", "https://app.example", "http://localhost:5173", "http://[::1]:80", "tauri://localhost"]
        {
            assert!(is_origin(origin.as_bytes()), "{origin}");
        }
        for other in
            ["", "*", "null", "app.example", "http:/a", "http://", "http://a/", "http://A", "Http://a", "http://a b"]
        {
            assert!(!is_origin(other.as_bytes()), "{other}");
        }
    }
}
