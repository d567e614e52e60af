//! Reads a request-target (RFC 9112 3.2) and the Host field (RFC 9110 7.2): which form, which path, which query.
//!
//! Pure and borrowed. The query stays raw; the path stays as it was sent, with every escape checked, and is decoded
//! segment by segment where a route asks for it. Chooses no route.

use crate::head::{Head, Version};
use crate::method::Method;
use crate::reject::Reject;

/// The four forms of a request-target (RFC 9112 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `/path?query`.
    Origin,
    /// `http://host/path?query`, as proxies get it.
    Absolute,
    /// `host:port`, with CONNECT only.
    Authority,
    /// `*`, with OPTIONS only.
    Asterisk,
}

/// A request-target that passed the grammar, in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'r> {
    pub(crate) form: Form,
    /// Begins with `/` in origin-form and absolute-form, is `*` in asterisk-form.
    pub(crate) path: &'r str,
    pub(crate) query: Option<&'r str>,
    /// Whether some segment of the path has to be decoded before it is compared.
    pub(crate) escaped: bool,
}

impl<'r> Target<'r> {
    /// Origin-form, with nothing to it but a path: what [`is_plain`] is about.
    #[inline(always)]
    pub(crate) fn plain(path: &'r str) -> Target<'r> {
        Target { form: Form::Origin, path, query: None, escaped: false }
    }
}

/// Whether the request-target of a head is of the commonest kind, a path without a query, an escape or a dot. Then
/// there is nothing to read; see [`Target::plain`]. `host` is as for [`read`].
#[inline(always)]
pub(crate) fn is_plain(head: &Head<'_>, host: Option<&[u8]>) -> bool {
    let target = head.target.as_bytes();
    // No early end: the loop is shorter without one, and most targets are short.
    let seen = target.iter().fold(0, |seen, &byte| seen | CLASS[byte as usize]);
    target.first() == Some(&b'/')
        && seen & (NOT_IN_PATH | PERCENT | DOT) == 0
        && (host.is_some() || head.version == Version::Http10)
        && head.method != Method::Connect
}

/// Reads the request-target of a head. Fills the caller's `Target`, which is too large to return by value cheaply.
/// `host` is as for [`read`].
#[inline(always)]
pub(crate) fn read_into<'p, 'r>(
    head: &Head<'r>,
    host: Option<&[u8]>,
    place: &'p mut Option<Target<'r>>,
) -> Result<&'p Target<'r>, Reject> {
    match is_plain(head, host) {
        true => Ok(place.insert(Target::plain(head.target))),
        false => Ok(place.insert(read(head, host)?)),
    }
}

/// Reads the request-target of a head. `host` is its Host field, whose grammar [`check_host`] knows.
#[inline(never)]
pub(crate) fn read<'r>(head: &Head<'r>, host: Option<&[u8]>) -> Result<Target<'r>, Reject> {
    if host.is_none() && head.version == Version::Http11 {
        return Err(Reject::HostMissing);
    }
    let target = head.target;
    match (target.as_bytes().first(), head.method) {
        (_, Method::Connect) => authority(target),
        (Some(b'/'), _) => origin(Form::Origin, target),
        (Some(b'*'), Method::Options) if target == "*" => {
            Ok(Target { form: Form::Asterisk, path: "*", query: None, escaped: false })
        }
        _ => absolute(target),
    }
}

/// `absolute-path [ "?" query ]`.
fn origin(form: Form, target: &str) -> Result<Target<'_>, Reject> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let seen = |text: &str| text.bytes().fold(0, |seen, byte| seen | CLASS[byte as usize]);
    let in_path = seen(path);
    if in_path & NOT_IN_PATH != 0 || query.is_some_and(|query| seen(query) & NOT_IN_QUERY != 0) {
        return Err(Reject::TargetByte);
    }
    let escaped = in_path & PERCENT != 0;
    if escaped {
        check_escapes(path)?;
    }
    if in_path & (DOT | PERCENT) != 0 {
        check_dot_segments(path)?;
    }
    Ok(Target { form, path, query, escaped })
}

/// The host that a request is for: that of its target, where it names one, else that of the Host field
/// (RFC 9112 3.2.2).
pub(crate) fn host<'r>(head: &Head<'r>, form: Form, host: Option<&'r [u8]>) -> Option<&'r str> {
    match form {
        Form::Origin | Form::Asterisk => std::str::from_utf8(host?).ok(),
        Form::Absolute => {
            let (_, rest) = head.target.split_once("://")?;
            rest.get(..rest.find(['/', '?']).unwrap_or(rest.len()))
        }
        Form::Authority => Some(head.target),
    }
}

/// `http://host[:port][/path][?query]`.
#[cold]
fn absolute(target: &str) -> Result<Target<'_>, Reject> {
    let (scheme, rest) = target.split_once("://").ok_or(Reject::Target)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(Reject::Target);
    }
    let authority_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(authority_len);
    if authority.contains('@') {
        return Err(Reject::Userinfo);
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(Reject::Target);
    }
    check_host(authority.as_bytes()).map_err(|_| Reject::Target)?;
    match rest.as_bytes().first() {
        Some(b'/') => origin(Form::Absolute, rest),
        // An empty path is the path "/" (RFC 9110 4.2.3).
        None => origin(Form::Absolute, "/"),
        Some(b'?') => Ok(Target { query: origin(Form::Absolute, rest)?.query, ..origin(Form::Absolute, "/")? }),
        Some(_) => Err(Reject::TargetByte),
    }
}

/// `uri-host ":" port`, the only form that CONNECT takes.
#[cold]
fn authority(target: &str) -> Result<Target<'_>, Reject> {
    match target.rsplit_once(':') {
        // Digits, for the last colon of `[::1]` has no port behind it.
        Some((name, port)) if !name.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            check_host(target.as_bytes()).map_err(|_| Reject::Target)?;
            Ok(Target { form: Form::Authority, path: "", query: None, escaped: false })
        }
        _ => Err(Reject::Target),
    }
}

/// `Host = uri-host [ ":" port ]`, possibly empty (RFC 9110 7.2, RFC 3986 3.2.2).
pub(crate) fn check_host(value: &[u8]) -> Result<(), Reject> {
    // From the end: digits, then perhaps a colon. What is before it is the name.
    let digits = value.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let name = match value[..value.len() - digits] {
        [ref name @ .., b':'] => name,
        _ => value,
    };
    let seen = name.iter().fold(0, |seen, &byte| seen | CLASS[byte as usize]);
    if seen & (NOT_IN_HOST | PERCENT) == 0 { Ok(()) } else { check_unusual_host(name) }
}

/// A name with an escape, or an address in brackets.
#[cold]
fn check_unusual_host(name: &[u8]) -> Result<(), Reject> {
    if name.first() == Some(&b'[') {
        return if ip_literal_len(name) == Some(name.len()) { Ok(()) } else { Err(Reject::Host) };
    }
    for (at, &byte) in name.iter().enumerate() {
        let class = CLASS[byte as usize];
        if class & NOT_IN_HOST != 0 || (class & PERCENT != 0 && !is_escape(&name[at..])) {
            return Err(Reject::Host);
        }
    }
    Ok(())
}

/// `"[" ( IPv6address / IPvFuture ) "]"`: its length.
#[cold]
fn ip_literal_len(value: &[u8]) -> Option<usize> {
    let end = value.iter().position(|&b| b == b']')?;
    let inside = std::str::from_utf8(value.get(1..end)?).ok()?;
    let future = || {
        let (version, address) = inside.strip_prefix(['v', 'V'])?.split_once('.')?;
        let hex = !version.is_empty() && version.bytes().all(|b| b.is_ascii_hexdigit());
        let plain = !address.is_empty()
            && address.bytes().all(|b| b == b':' || CLASS[b as usize] & (NOT_IN_HOST | PERCENT) == 0);
        (hex && plain).then_some(())
    };
    (inside.parse::<std::net::Ipv6Addr>().is_ok() || future().is_some()).then_some(end + 1)
}

/// Every `%` is followed by two hexadecimal digits, none escapes NUL, and the whole is UTF-8 once decoded.
///
/// What is not escaped is ASCII, so all bytes of a character beyond it stand behind each other, each escaped: characters
/// are decoded one by one, without room for the whole.
#[cold]
fn check_escapes(path: &str) -> Result<(), Reject> {
    let mut rest = path.as_bytes();
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        rest = &rest[at..];
        let mut character = [0; 4];
        for len in 1..=character.len() {
            let [b'%', high, low, after @ ..] = rest else { return Err(Reject::TargetEscape) };
            let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low)) else { return Err(Reject::TargetEscape) };
            character[len - 1] = high << 4 | low;
            rest = after;
            match std::str::from_utf8(&character[..len]) {
                Ok("\0") => return Err(Reject::TargetEscape),
                Ok(_) => break,
                // More of it may follow.
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Reject::TargetEscape),
            }
        }
    }
    Ok(())
}

/// No segment is `.` or `..`, escaped or not: they mean other things to other parties (RFC 3986 5.2.4).
#[cold]
fn check_dot_segments(path: &str) -> Result<(), Reject> {
    let is_dot = |segment: &str| {
        // Only `.` and `%2e` decode to a dot, so a dot segment has at most six bytes.
        let mut rest = segment;
        let mut dots = 0;
        while let Some(next) =
            rest.strip_prefix('.').or_else(|| rest.strip_prefix("%2e")).or_else(|| rest.strip_prefix("%2E"))
        {
            rest = next;
            dots += 1;
        }
        // `;` begins parameters for some servers, which then see a dot segment.
        (rest.is_empty() || rest.starts_with(';')) && (dots == 1 || dots == 2)
    };
    if path.split('/').any(is_dot) { Err(Reject::DotSegment) } else { Ok(()) }
}

/// Appends the percent-decoded bytes of `text`; `None` if an escape is broken. Decodes once.
pub(crate) fn decode(text: &str, to: &mut Vec<u8>) -> Option<()> {
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            to.push(if planted!("target") && *first == b'+' { b' ' } else { *first });
            continue;
        }
        let [high, low, after @ ..] = rest else { return None };
        to.push(hex_value(*high)? << 4 | hex_value(*low)?);
        rest = after;
    }
    Some(())
}

fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// The value of one hexadecimal digit.
pub(crate) const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

// What a byte means to the grammars of RFC 3986, one bit each, so that one look-up a byte serves all of them.
const NOT_IN_PATH: u8 = 1;
const NOT_IN_QUERY: u8 = 2;
const NOT_IN_HOST: u8 = 4;
const PERCENT: u8 = 8;
const DOT: u8 = 16;

/// `pchar = unreserved / pct-encoded / sub-delims / ":" / "@"`; paths add `/`, queries `/` and `?`.
///
/// Queries may also hold ``[ ] { } | \ ^ ` `` raw: the URL standard of the browsers sends them so, and refusing
/// `?filter[name]=x` would refuse a page's own requests. Paths may not, and nothing may hold `"`, `<`, `>`, `#`.
const CLASS: [u8; 256] = {
    let mut class = [NOT_IN_PATH | NOT_IN_QUERY | NOT_IN_HOST; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        let unreserved = b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
        let sub_delim = matches!(b, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=');
        if unreserved || sub_delim || b == b'%' {
            class[byte] = 0;
        } else if matches!(b, b':' | b'@' | b'/') {
            class[byte] = NOT_IN_HOST;
        } else if matches!(b, b'?' | b'[' | b']' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`') {
            class[byte] = NOT_IN_HOST | NOT_IN_PATH;
        }
        byte += 1;
    }
    // A list of hosts is how two Host fields look once a proxy has joined them.
    class[b',' as usize] |= NOT_IN_HOST;
    class[b'%' as usize] |= PERCENT;
    class[b'.' as usize] |= DOT;
    class
};
