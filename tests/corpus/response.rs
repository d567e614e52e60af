//! Reads a server's answers, strictly: a client more lenient than this one must never be needed.

use std::borrow::Cow;

use super::case::Case;
use super::visible::visible_start;

/// One whole answer.
pub struct Response<'r> {
    pub status: u16,
    pub version: Version,
    pub fields: Vec<Field<'r>>,
    pub content: Cow<'r, [u8]>,
    /// The content had no other end than the close of the connection.
    pub is_until_close: bool,
    /// The whole message.
    pub bytes: &'r [u8],
}

#[derive(Clone, Copy)]
pub struct Field<'r> {
    pub name: &'r [u8],
    /// Without the whitespace around it.
    pub value: &'r [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
}

impl<'r> Response<'r> {
    pub fn values_of(&self, name: &str) -> Vec<&'r [u8]> {
        values_of(&self.fields, name)
    }

    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    pub fn announces_close(&self) -> bool {
        let options = self.values_of("connection");
        options.iter().flat_map(|value| value.split(|&b| b == b',')).any(|o| trim(o).eq_ignore_ascii_case(b"close"))
    }
}

/// Walks over the answers in received bytes, interim ones among them.
///
/// It needs the case, for an answer to HEAD looks like one with content and only the request tells them apart.
pub struct Answers<'c, 'r> {
    case: &'c Case,
    /// What has not been walked over yet.
    pub rest: &'r [u8],
    pub final_count: usize,
    closed: bool,
}

impl<'c, 'r> Answers<'c, 'r> {
    pub fn new(case: &'c Case, received: &'r [u8], closed: bool) -> Self {
        Answers { case, rest: received, final_count: 0, closed }
    }

    /// The next whole answer; `None` if there is none in `rest`.
    pub fn next(&mut self) -> Result<Option<Response<'r>>, String> {
        let to_head = self.case.is_to_head(self.final_count);
        let Some(response) = parse(self.rest, to_head, self.closed)? else { return Ok(None) };
        self.rest = &self.rest[response.bytes.len()..];
        self.final_count += usize::from(!response.is_interim());
        Ok(Some(response))
    }
}

/// The answer at the start of `received`, or `None` if more bytes may complete it.
///
/// After a close nothing more can come: then an answer cut short is an error.
pub fn parse(received: &[u8], to_head: bool, closed: bool) -> Result<Option<Response<'_>>, String> {
    if received.is_empty() {
        return Ok(None);
    }
    check_start(received)?;
    let Some(head_len) = find(received, b"\r\n\r\n").map(|at| at + 4) else {
        return match closed {
            true => Err(format!("the connection closed inside a response head: {}", visible_start(received))),
            false if received.len() > HEAD_BYTES_MAX => Err("a response head without end".into()),
            false => Ok(None),
        };
    };
    let (head, after) = received.split_at(head_len);
    let lines = &head[..head_len - 2];
    let line_len = find(lines, b"\r\n").expect("the blank line was found") + 2;
    let (version, status) = parse_status_line(&lines[..line_len - 2])?;
    let fields = parse_fields(&lines[line_len..])?;

    let framing = decide_framing(&fields, version, status, to_head)?;
    let taken = match framing {
        Framing::NoContent => Some((Cow::Borrowed(&after[..0]), 0)),
        Framing::Length(len) => after.get(..len).map(|content| (Cow::Borrowed(content), len)),
        Framing::Chunked => decode_chunks(after)?.map(|(content, len)| (Cow::Owned(content), len)),
        Framing::UntilClose => closed.then_some((Cow::Borrowed(after), after.len())),
    };
    match taken {
        Some((content, len)) => Ok(Some(Response {
            status,
            version,
            fields,
            content,
            is_until_close: framing == Framing::UntilClose,
            bytes: &received[..head_len + len],
        })),
        None if closed => Err(format!("the connection closed after {} content bytes of {framing:?}", after.len())),
        None => Ok(None),
    }
}

/// Complains about the first byte that is not HTTP, instead of waiting for a blank line that may never come.
fn check_start(received: &[u8]) -> Result<(), String> {
    let fits = [b"HTTP/1.1 ", b"HTTP/1.0 "].iter().any(|start| received.iter().zip(*start).all(|(a, b)| a == b));
    if fits { Ok(()) } else { Err(format!("not a status-line: {}", visible_start(received))) }
}

/// status-line = HTTP-version SP status-code SP [ reason-phrase ] (RFC 9112 4). The second SP is not optional.
fn parse_status_line(line: &[u8]) -> Result<(Version, u16), String> {
    let error = || format!("bad status-line: {}", visible_start(line));
    let version = if line.starts_with(b"HTTP/1.0 ") { Version::Http10 } else { Version::Http11 };
    let (code, reason) = line.get(9..).and_then(|rest| rest.split_first_chunk::<3>()).ok_or_else(error)?;
    let is_code = matches!(code[0], b'1'..=b'5') && code.iter().all(u8::is_ascii_digit);
    if !is_code || reason.first() != Some(&b' ') || !reason.iter().all(|&b| is_field_byte(b)) {
        return Err(error());
    }
    Ok((version, code.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'))))
}

/// field-line = field-name ":" OWS field-value OWS, each ended by CRLF (RFC 9112 5). No folds.
fn parse_fields(mut lines: &[u8]) -> Result<Vec<Field<'_>>, String> {
    let mut fields = Vec::new();
    while !lines.is_empty() {
        let len = find(lines, b"\r\n").expect("a field section ends in CRLF");
        let line = &lines[..len];
        let error = |what: &str| format!("{what}: {}", visible_start(line));
        let colon = line.iter().position(|&b| b == b':').ok_or_else(|| error("a field line without a colon"))?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        // A fold begins with whitespace, so it fails here.
        if !is_token(name) {
            return Err(error("a field-name that is no token"));
        }
        if !value.iter().all(|&b| is_field_byte(b)) {
            return Err(error("a control byte in a field-value"));
        }
        fields.push(Field { name, value: trim(value) });
        lines = &lines[len + 2..];
    }
    Ok(fields)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    NoContent,
    Length(usize),
    Chunked,
    UntilClose,
}

/// RFC 9112 6.3, without any of the latitude it leaves to recipients.
fn decide_framing(fields: &[Field<'_>], version: Version, status: u16, to_head: bool) -> Result<Framing, String> {
    let lengths = values_of(fields, "content-length");
    let codings = values_of(fields, "transfer-encoding");
    let framing = match (&lengths[..], &codings[..]) {
        ([], []) => Framing::UntilClose,
        ([length], []) => Framing::Length(parse_length(length)?),
        ([], [coding]) if !coding.eq_ignore_ascii_case(b"chunked") => {
            return Err(format!("unknown Transfer-Encoding {}", visible_start(coding)));
        }
        ([], [_]) if version == Version::Http10 => return Err("Transfer-Encoding in an HTTP/1.0 response".into()),
        ([], [_]) => Framing::Chunked,
        ([], _) | (_, []) => return Err("a framing field stands there twice".into()),
        _ => return Err("both Content-Length and Transfer-Encoding".into()),
    };
    if (status < 200 || status == 204) && framing != Framing::UntilClose {
        return Err(format!("a framing field in a {status} response"));
    }
    let has_no_content = to_head || status < 200 || status == 204 || status == 304;
    Ok(if has_no_content { Framing::NoContent } else { framing })
}

/// Content-Length = 1*DIGIT (RFC 9110 8.6); we read at most 18 digits.
fn parse_length(value: &[u8]) -> Result<usize, String> {
    let is_length = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let text = is_length.then(|| std::str::from_utf8(value).expect("digits are UTF-8"));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| format!("bad Content-Length {}", visible_start(value)))
}

/// The content of a chunked body and the bytes it took, trailer section included; `None` if it is not whole.
fn decode_chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut content = Vec::new();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(line_len) = find(&rest[..rest.len().min(CHUNK_LINE_BYTES_MAX)], b"\r\n") else {
            if rest.len() >= CHUNK_LINE_BYTES_MAX {
                return Err(format!("a chunk-size line without end: {}", visible_start(rest)));
            }
            return Ok(None);
        };
        let size = parse_chunk_size(&rest[..line_len])?;
        at += line_len + 2;
        if size == 0 {
            break;
        }
        let Some(data) = bytes[at..].get(..size + 2) else { return Ok(None) };
        if !data.ends_with(b"\r\n") {
            return Err(format!("no CRLF after chunk-data: {}", visible_start(&data[size..])));
        }
        content.extend_from_slice(&data[..size]);
        at += size + 2;
    }
    let trailer = &bytes[at..];
    let trailer_len = match trailer.starts_with(b"\r\n") {
        true => 2,
        false => match find(trailer, b"\r\n\r\n") {
            Some(end) => end + 4,
            None => return Ok(None),
        },
    };
    parse_fields(&trailer[..trailer_len - 2])?;
    Ok(Some((content, at + trailer_len)))
}

/// chunk-size = 1*HEXDIG (RFC 9112 7.1), then nothing or a chunk-ext; we read at most 15 digits.
fn parse_chunk_size(line: &[u8]) -> Result<usize, String> {
    let digits = line.split(|&b| b == b';').next().expect("a split gives one part at least");
    let is_size = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    if !is_size || !line.iter().all(|&b| is_field_byte(b)) {
        return Err(format!("bad chunk-size line: {}", visible_start(line)));
    }
    let text = std::str::from_utf8(digits).expect("hex digits are UTF-8");
    usize::from_str_radix(text, 16).map_err(|_| "chunk-size exceeds usize".into())
}

pub fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// HTAB, SP, VCHAR or obs-text: the bytes a field-value or a reason-phrase is made of.
fn is_field_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Not `trim_ascii`: it takes away line ends and form feeds too, which would hide them from the checks.
pub fn trim(value: &[u8]) -> &[u8] {
    let is_solid = |&b: &u8| b != b' ' && b != b'\t';
    let start = value.iter().position(is_solid).unwrap_or(value.len());
    let end = value.iter().rposition(is_solid).map_or(start, |last| last + 1);
    &value[start..end]
}

fn values_of<'r>(fields: &[Field<'r>], name: &str) -> Vec<&'r [u8]> {
    let wanted = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes()));
    wanted.map(|field| field.value).collect()
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

const HEAD_BYTES_MAX: usize = 64 * 1024;
const CHUNK_LINE_BYTES_MAX: usize = 1024;
