//! A second parser of requests, written from the RFCs alone: no cleverness, no streaming, allocates for everything.
//!
//! Where the crate stops at the first rule that is broken, this one lists them all.

use sprat::internals::Decision;
use sprat::{Framing, Limits, Reject, Version};

use super::framing;
use super::naive::decode_chunked;

/// What is known about the bytes so far.
#[derive(Debug)]
pub enum Seen<T> {
    /// It may still become anything.
    Partial,
    /// It breaks each of these rules.
    Refused(Vec<Reject>),
    Whole(T),
}

/// A field line, without white space around its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub value: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Head {
    pub len: usize,
    pub method: String,
    pub target: String,
    pub version: Version,
    pub fields: Vec<Field>,
    pub decision: Decision,
}

/// A request with its body. `None` for a body whose chunks are malformed.
#[derive(Clone, Debug)]
pub struct Message {
    pub head: Head,
    pub body: Option<Vec<u8>>,
    pub len: usize,
}

/// The request at the start of `bytes`. Bodies have no limits here.
pub fn message(bytes: &[u8], limits: &Limits) -> Seen<Message> {
    let head = match head(bytes, limits) {
        Seen::Whole(head) => head,
        Seen::Refused(rules) => return Seen::Refused(rules),
        Seen::Partial => return Seen::Partial,
    };
    let rest = &bytes[head.len..];
    let body = match head.decision.framing {
        Framing::NoBody => Some((Vec::new(), 0)),
        Framing::Length(len) if len > rest.len() as u64 => return Seen::Partial,
        Framing::Length(len) => Some((rest[..len as usize].to_vec(), len as usize)),
        Framing::Chunked => match decode_chunked(rest) {
            Ok(None) => return Seen::Partial,
            Ok(decoded) => decoded,
            Err(()) => None,
        },
    };
    let (body, body_len) = body.map_or((None, 0), |(body, len)| (Some(body), len));
    Seen::Whole(Message { len: head.len + body_len, head, body })
}

/// The head at the start of `bytes`, up to its blank line.
pub fn head(bytes: &[u8], limits: &Limits) -> Seen<Head> {
    let end = find(bytes, b"\r\n\r\n").map(|at| at + 4);
    let text = &bytes[..end.unwrap_or(bytes.len())];
    let mut broken = Vec::new();
    if text.first().is_some_and(|&b| !is_token(&[b])) {
        broken.push(Reject::FirstByte);
    }
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'\n' if at == 0 || text[at - 1] != b'\r' => broken.push(Reject::BareLf),
            b'\r' if text.get(at + 1).is_some_and(|&next| next != b'\n') => broken.push(Reject::BareCr),
            b'\t' | b'\r' | b'\n' | b' '..=b'~' | 0x80.. => {}
            _ => broken.push(Reject::HeadControlByte),
        }
    }
    let max = limits.head_bytes_max;
    if end.map_or(text.len() >= max, |end| end > max) {
        let start = &text[..max];
        broken.push(match find(start, b"\r\n") {
            Some(_) => Reject::HeadTooLarge,
            None if start.contains(&b' ') => Reject::TargetTooLong,
            None => Reject::MethodTooLong,
        });
    }
    match end {
        _ if !broken.is_empty() => Seen::Refused(broken),
        Some(_) => whole_head(text, limits),
        None => Seen::Partial,
    }
}

/// Lines that all end in CRLF, the last one empty.
fn whole_head(text: &[u8], limits: &Limits) -> Seen<Head> {
    let line_end = find(text, b"\r\n").unwrap_or(0);
    let line: String = text[..line_end].iter().map(|&b| char::from(b)).collect();
    let words: Vec<&str> = line.split(' ').collect();
    let version_of = |word: &str| match word.strip_prefix("HTTP/").map(str::as_bytes) {
        Some([major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9']) => Some((major - b'0', minor - b'0')),
        _ => None,
    };
    let mut broken = Vec::new();
    let version = match words.last().and_then(|word| version_of(word)) {
        Some((1, 0)) => Version::Http10,
        Some((1, _)) => Version::Http11,
        Some(_) => return Seen::Refused(vec![Reject::VersionUnsupported, Reject::RequestLine]),
        None => return Seen::Refused(vec![Reject::Version, Reject::RequestLine]),
    };
    let &[method, target, _] = &words[..] else {
        return Seen::Refused(vec![Reject::RequestLine, Reject::Version]);
    };
    if !is_token(method.as_bytes()) || target.is_empty() || target.contains('\t') {
        broken.push(Reject::RequestLine);
    }
    if target.chars().count() > limits.target_bytes_max {
        broken.push(Reject::TargetTooLong);
    }
    if !target.is_ascii() {
        broken.extend([Reject::RequestLine, Reject::TargetByte]);
    }
    broken.extend(target_faults(method, target));

    let Some(fields) = field_lines(&text[line_end + 2..]) else {
        broken.push(Reject::FieldName);
        // As many as there are lines, be they fields or not.
        if text.windows(2).filter(|two| two == b"\r\n").count() - 2 > limits.fields_max {
            broken.push(Reject::TooManyFields);
        }
        return Seen::Refused(broken);
    };
    if fields.len() > limits.fields_max {
        broken.push(Reject::TooManyFields);
    }
    let hosts: Vec<_> = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("host")).collect();
    match &hosts[..] {
        [] if version == Version::Http11 => broken.push(Reject::HostMissing),
        [] => {}
        [host] if is_host(&host.value) => {}
        [_] => broken.push(Reject::Host),
        _ => broken.extend([Reject::HostTwice, Reject::Host]),
    }
    match framing::naive(version, &fields) {
        Ok(decision) if broken.is_empty() => {
            let (method, target) = (method.to_owned(), target.to_owned());
            Seen::Whole(Head { len: text.len(), method, target, version, fields, decision })
        }
        Ok(_) => Seen::Refused(broken),
        Err(rules) => Seen::Refused([broken, rules].concat()),
    }
}

/// The field lines of a header section, blank line included (RFC 9112 5); `None` if one of them is none.
pub fn field_lines(section: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    let mut rest = section;
    loop {
        let end = find(rest, b"\r\n")?;
        let line = &rest[..end];
        rest = &rest[end + 2..];
        if line.is_empty() {
            return rest.is_empty().then_some(fields);
        }
        let colon = line.iter().position(|&b| b == b':')?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if !is_token(name) || value.iter().any(|&b| b != b'\t' && (b < b' ' || b == 0x7f)) {
            return None;
        }
        let name = String::from_utf8(name.to_vec()).ok()?;
        fields.push(Field { name, value: trimmed(value).to_vec() });
    }
}

/// RFC 9112 3.2 and RFC 3986, and what this server forbids beyond them.
fn target_faults(method: &str, target: &str) -> Vec<Reject> {
    if method == "CONNECT" {
        let is_authority = target.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !port.is_empty() && !port.contains(']') && is_host(target.as_bytes())
        });
        return if is_authority { vec![] } else { vec![Reject::Target] };
    }
    if target.starts_with('/') {
        return path_faults(target);
    }
    if (method, target) == ("OPTIONS", "*") {
        return vec![];
    }
    let Some((scheme, rest)) = target.split_once("://") else { return vec![Reject::Target] };
    if !["http", "https"].contains(&&*scheme.to_ascii_lowercase()) {
        return vec![Reject::Target];
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return vec![Reject::Userinfo];
    }
    if authority.is_empty() || authority.starts_with(':') || !is_host(authority.as_bytes()) {
        return vec![Reject::Target];
    }
    // However many slashes a path begins with, they break no rule.
    path_faults(&format!("/{}", rest[authority.len()..].trim_start_matches('/')))
}

fn path_faults(target: &str) -> Vec<Reject> {
    let mut broken = Vec::new();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let everywhere = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/%".contains(c);
    if !path.chars().all(everywhere) || !query.chars().all(|c| everywhere(c) || "?[]{}|\\^`".contains(c)) {
        broken.push(Reject::TargetByte);
    }
    let escapes = path.match_indices('%').map(|(at, _)| path.get(at + 1..at + 3));
    let mut digits = escapes.map(|two| two.is_some_and(|two| two.chars().all(|c| c.is_ascii_hexdigit())));
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    if !digits.all(|good| good) || decoded.contains(&0) || String::from_utf8(decoded).is_err() {
        broken.push(Reject::TargetEscape);
    }
    let plain = path.replace("%2e", ".").replace("%2E", ".");
    if plain.split('/').any(|segment| matches!(segment.split(';').next(), Some("." | ".."))) {
        broken.push(Reject::DotSegment);
    }
    broken
}

/// `uri-host [ ":" port ]` (RFC 9110 7.2, RFC 3986 3.2.2), without a comma.
pub fn is_host(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+;=".contains(c);
    let (name, port) = match text.strip_prefix('[') {
        Some(literal) => {
            let Some((address, port)) = literal.split_once(']') else { return false };
            let future = || match address.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.')) {
                Some((version, name)) => {
                    let hex = !version.is_empty() && version.chars().all(|c| c.is_ascii_hexdigit());
                    hex && !name.is_empty() && name.chars().all(|c| c == ':' || unreserved(c))
                }
                None => false,
            };
            if address.parse::<std::net::Ipv6Addr>().is_err() && !future() {
                return false;
            }
            ("", port)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port_is_good = port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.chars().all(|c| c.is_ascii_digit()));
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let escape = rest.get(1..3).is_some_and(|two| two.chars().all(|c| c.is_ascii_hexdigit()));
        rest = match c {
            '%' if escape => &rest[3..],
            c if unreserved(c) => &rest[1..],
            _ => return false,
        };
    }
    port_is_good
}

/// `1*tchar` (RFC 9110 5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

pub fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
