//! Finds the end of a head and reads it: request-line and fields, borrowed from the receive buffer.
//!
//! Pure. [`scan`] looks only at bytes that are new, so a peer that drips costs linear work, and refuses what no head
//! can hold as soon as it comes. [`parse`] runs once the blank line is there. What the fields mean for the end of
//! the message is decided in `framing`; what the request-target means, in `target`.

use std::mem::MaybeUninit;

use crate::limits::Limits;
use crate::method::Method;
use crate::reject::Reject;

/// HTTP-version (RFC 9112 2.3). HTTP/1.2 to 1.9 are read as 1.1 (RFC 9110 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0: closes unless asked to stay.
    Http10,
    /// HTTP/1.1: stays unless asked to close.
    Http11,
}

/// The request-line and the header section of one request, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Head<'r> {
    pub(crate) method: Method,
    pub(crate) target: &'r str,
    pub(crate) version: Version,
    pub(crate) fields: Fields<'r>,
}

impl Head<'_> {
    /// The head as text, no longer than it came, which is read as the same.
    #[cold]
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let version = if self.version == Version::Http10 { "HTTP/1.0" } else { "HTTP/1.1" };
        let mut bytes = format!("{} {} {version}\r\n", self.method.as_str(), self.target).into_bytes();
        for (name, value) in self.fields.iter() {
            for part in [name.as_bytes(), b":", value, b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

/// The fields that the core obeys and those that most handlers ask for, found in one pass that also refuses the
/// repeated ones of the first kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known<'r> {
    pub(crate) host: Option<&'r [u8]>,
    pub(crate) content_length: Option<&'r [u8]>,
    pub(crate) transfer_encoding: Option<&'r [u8]>,
    pub(crate) expect: Expect,
    pub(crate) authorization: Single<'r>,
    pub(crate) content_type: Single<'r>,
    /// `Content-Encoding` lists something else than `identity`, on any of its lines.
    pub(crate) content_coded: bool,
    /// `Connection` lists `close`, on any of its lines and in any letter case.
    pub(crate) close: bool,
    /// `Connection` lists `keep-alive`.
    pub(crate) keep_alive: bool,
}

/// What `Expect` lists, on all its lines: the greatest of its elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expect {
    #[default]
    Nothing,
    Continue,
    Unknown,
}

/// A field that should come once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Single<'r> {
    #[default]
    Absent,
    Once(&'r [u8]),
    Repeated,
}

impl<'r> Single<'r> {
    #[inline]
    fn note(&mut self, value: &'r [u8]) {
        *self = match self {
            Single::Absent => Single::Once(value),
            _ => Single::Repeated,
        };
    }
}

/// The field lines of a head, in the order they came.
///
/// ```
/// # use sprat::{routes, Request};
/// # struct App;
/// fn agent(_: &mut App, request: Request<'_>) -> String {
///     let fields = request.fields();
///     format!("{} fields, agent {:?}", fields.len(), fields.get("User-Agent"))
/// }
/// # routes! { Api for App { GET "/" => agent(request), } }
/// # let mut client = sprat::testing::Client::new(Api, App);
/// # assert!(client.get("/").text().starts_with("1 fields, agent None"));
/// ```
#[derive(Clone, Copy)]
pub struct Fields<'r>(&'r [httparse::Header<'r>]);

impl<'r> Fields<'r> {
    /// The value of the first field with this name, in any letter case, without white space around it.
    pub fn get(&self, name: &str) -> Option<&'r [u8]> {
        self.0.iter().find(|f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value)
    }

    /// The values of all fields with this name, in order.
    pub fn get_all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'r [u8]> + use<'r, 'n> {
        self.0.iter().filter(move |f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value)
    }

    /// Names, as they were spelt, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'r str, &'r [u8])> + use<'r> {
        self.0.iter().map(|f| (f.name, f.value))
    }

    /// How many field lines there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no field line.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|(n, v)| (n, String::from_utf8_lossy(v)))).finish()
    }
}

/// Room for this many fields stands ready on the stack; a head with more is parsed again into a `Vec`.
pub(crate) const SLOTS_READY: usize = 64;

/// Uninitialised room for fields. httparse fills it and hands back only what it filled.
pub(crate) type Slot<'r> = MaybeUninit<httparse::Header<'r>>;

/// Goes on looking for the end of a head in `bytes`, of which the first `scanned` were looked at before.
///
/// Returns the length of the head, blank line included, or `None` if its end is not there yet; then all of `bytes`
/// have been scanned, except a CR at the very end, whose LF may still come (see [`scanned_len`]).
///
/// Refuses a bare LF, a bare CR, a control byte other than HTAB, a first byte that starts no token, and a head beyond
/// the limit, each at its own byte: how the bytes were split never shows.
#[inline]
pub(crate) fn scan(bytes: &[u8], scanned: usize, head_bytes_max: usize) -> Result<Option<usize>, Reject> {
    if let (0, Some(&first)) = (scanned, bytes.first())
        && !is_token_byte(first)
    {
        return Err(Reject::FirstByte);
    }
    let window = &bytes[..bytes.len().min(head_bytes_max)];
    let mut at = scanned;
    loop {
        at += plain_prefix_len(window.get(at..).unwrap_or_default());
        match (window.get(at), window.get(at + 1)) {
            (Some(b'\r'), Some(b'\n')) => {
                if window[..at].ends_with(b"\n") {
                    return Ok(Some(at + 2));
                }
                at += 2;
            }
            (Some(b'\r'), None) if window.len() < head_bytes_max => return Ok(None),
            (Some(b'\r'), Some(_)) => return Err(Reject::BareCr),
            (Some(b'\n'), _) => return Err(Reject::BareLf),
            (Some(b'\t'), _) => at += 1,
            (Some(b'\r') | None, None) if window.len() == head_bytes_max => return Err(too_large(window)),
            (None, _) => return Ok(None),
            (Some(_), _) => return Err(Reject::HeadControlByte),
        }
    }
}

/// Where a CRLF CRLF within the limit ends: at `guess` if one does, else the first. The head ends there unless one of
/// its lines ends otherwise.
///
/// A wrong guess only costs time: whoever parses the head sees that it ends before.
#[inline]
pub(crate) fn find_blank_line(bytes: &[u8], guess: usize, head_bytes_max: usize) -> Option<usize> {
    let window = &bytes[..bytes.len().min(head_bytes_max)];
    if window.get(..guess).is_some_and(|head| head.ends_with(b"\r\n\r\n")) {
        return Some(guess);
    }
    search_blank_line(window)
}

/// Looks for CR and, two bytes on, CR again: without branches, so that it is done on many bytes at a time.
fn search_blank_line(window: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let mut at = 0;
    while let Some(block) = window[at..].first_chunk::<{ BLOCK + 2 }>() {
        let pairs = block[..BLOCK].iter().zip(&block[2..]);
        let found = pairs.fold(0, |found, (&one, &other)| found | (u8::from(one == b'\r') & u8::from(other == b'\r')));
        if found != 0 {
            break;
        }
        at += BLOCK;
    }
    // The next one is near, or is not there.
    while at < window.len() {
        at += plain_prefix_len(&window[at..]);
        match window[at..] {
            [b'\r', b'\n', b'\r', b'\n', ..] => return Some(at + 4),
            [b'\r', b'\n', ..] => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// How far [`scan`] came in bytes that hold no end of a head yet: everything but a CR at the end.
pub(crate) fn scanned_len(bytes: &[u8]) -> usize {
    if planted!("head") {
        return bytes.len();
    }
    bytes.len() - usize::from(bytes.ends_with(b"\r"))
}

/// Which of its parts made a head too large: the method, the request-target, or the fields.
#[cold]
fn too_large(window: &[u8]) -> Reject {
    let line_end = window.iter().position(|&b| b == b'\r');
    match (line_end, window.contains(&b' ')) {
        (Some(end), _) if end + 1 < window.len() => Reject::HeadTooLarge,
        (_, true) => Reject::TargetTooLong,
        (_, false) => Reject::MethodTooLong,
    }
}

/// How many bytes from the start are neither control bytes nor DEL. Eight at a time.
#[inline]
fn plain_prefix_len(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        // A borrow can mark a byte wrongly only above one that is marked rightly, so the lowest mark is exact.
        let below_blank = word.wrapping_sub(ONES * 0x20) & !word;
        let del = word ^ (ONES * 0x7f);
        let is_del = del.wrapping_sub(ONES) & !del;
        let marks = (below_blank | is_del) & HIGH;
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + bytes[at..].iter().position(|&b| b < 0x20 || b == 0x7f).unwrap_or(bytes.len() - at)
}

/// Reads a whole head, blank line included, as [`scan`] measured it. `slots` is room for the fields.
///
/// `Err(Reject::TooManyFields)` when `slots` are fewer than the fields: the caller decides whether to try with more.
#[inline]
pub(crate) fn parse<'h, 'r: 'h>(
    bytes: &'r [u8],
    slots: &'h mut [Slot<'r>],
    limits: &Limits,
) -> Result<(Head<'h>, Known<'h>), Reject> {
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, slots) {
        // A head that ends before the blank line that `scan` found, or after it, would be a fault of one of the two.
        Ok(httparse::Status::Complete(n)) if n == bytes.len() => {}
        Ok(_) => return Err(Reject::RequestLine),
        Err(error) => return Err(reject(error, bytes)),
    }
    let mut known = Known::default();
    let head = head(bytes, request, &mut known, limits)?;
    Ok((head, known))
}

/// What httparse found, in our terms.
#[inline(always)]
fn head<'h, 'r: 'h>(
    bytes: &[u8],
    request: httparse::Request<'h, 'r>,
    known: &mut Known<'h>,
    limits: &Limits,
) -> Result<Head<'h>, Reject> {
    let httparse::Request { method: Some(method), path: Some(target), version: Some(minor), headers: fields } = request
    else {
        return Err(Reject::RequestLine);
    };
    if target.len() > limits.target_bytes_max {
        return Err(Reject::TargetTooLong);
    }
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let method = Method::from_token(method.as_bytes());
    find_known(bytes, fields, known)?;
    Ok(Head { method, target, version, fields: Fields(fields) })
}

/// Reads a whole head from the start of `bytes` in one go, without a scan before: its length and the head.
///
/// `None` for everything unusual, be it partial, malformed or too large. Then [`scan`] and [`parse`] find out what it
/// is, so that a refusal does not depend on how the bytes were split.
#[inline(always)]
pub(crate) fn parse_at_once<'h, 'r: 'h>(
    bytes: &'r [u8],
    slots: &'h mut [Slot<'r>],
    known: &mut Known<'h>,
    limits: &Limits,
) -> Option<(usize, Head<'h>)> {
    let mut request = httparse::Request::new(&mut []);
    let Ok(httparse::Status::Complete(len)) = request.parse_with_uninit_headers(bytes, slots) else { return None };
    // httparse skips empty lines before a request; `scan` does not.
    if len > limits.head_bytes_max || !matches!(bytes, [b'A'..=b'Z', ..]) {
        return None;
    }
    Some((len, head(&bytes[..len], request, known, limits).ok()?))
}

/// Makes `HTTP/1.2` to `HTTP/1.9` read as HTTP/1.1, which is what RFC 9110 6.2 asks for. Returns whether it did.
///
/// Done to the received byte, since httparse knows 1.0 and 1.1 only; nobody looks at that byte again.
#[cold]
pub(crate) fn lower_version(head: &mut [u8]) -> bool {
    let Some(end) = head.iter().position(|&b| b == b'\r') else { return false };
    match head[..end].last_chunk_mut::<9>() {
        Some([b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'2'..=b'9']) => {
            *minor = b'1';
            true
        }
        _ => false,
    }
}

/// One pass over the fields: by length first, then by bytes. Fills the caller's `Known`, which is too large to return
/// by value cheaply.
///
/// Refuses a line that ends in LF without CR, which httparse takes. LF is nowhere else in a head that it took, so it is
/// enough to look before each name and at the end: a fraction of the work of looking at every byte.
#[inline(always)]
fn find_known<'r>(head: &[u8], fields: &'r [httparse::Header<'r>], known: &mut Known<'r>) -> Result<(), Reject> {
    let start = head.as_ptr() as usize;
    if !head.ends_with(b"\r\n\r\n") {
        return Err(Reject::BareLf);
    }
    for field in fields {
        let name = field.name.as_bytes();
        let at = name.as_ptr() as usize - start;
        if head.get(at.wrapping_sub(2)..at) != Some(b"\r\n") {
            return Err(Reject::BareLf);
        }
        match name.len() {
            4 if is_name(name, b"host") => once(&mut known.host, field.value, Reject::HostTwice)?,
            6 if is_name(name, b"expect") => known.expect = known.expect.max(read_expect(field.value)),
            10 if is_name(name, b"connection") => read_connection(field.value, known),
            12 if is_name(name, b"content-type") => known.content_type.note(field.value),
            13 if is_name(name, b"authorization") => known.authorization.note(field.value),
            14 if is_name(name, b"content-length") => {
                once(&mut known.content_length, field.value, Reject::ContentLengthTwice)?;
            }
            16 if is_name(name, b"content-encoding") => known.content_coded |= is_coded(field.value),
            17 if is_name(name, b"transfer-encoding") => {
                once(&mut known.transfer_encoding, field.value, Reject::TransferEncodingTwice)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a field name, or a name of letters in a value, is this one, in any letter case.
///
/// All bytes at once, unlike `eq_ignore_ascii_case`: bit 5 makes a letter small, and no other byte that a head may hold
/// becomes a letter or a hyphen by it.
#[inline(always)]
pub(crate) fn is_name<const N: usize>(name: &[u8], small: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name) else { return false };
    name.iter().zip(small).fold(0, |differs, (&byte, &small)| differs | ((byte | 0x20) ^ small)) == 0
}

/// `Connection = #connection-option` (RFC 9110 7.6.1).
fn read_connection(value: &[u8], known: &mut Known<'_>) {
    for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
        known.close |= option.eq_ignore_ascii_case(b"close");
        known.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    }
}

/// `Content-Encoding = #content-coding` (RFC 9110 8.4). `identity` is not to be sent, but means what it says.
fn is_coded(value: &[u8]) -> bool {
    let mut codings = value.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|coding| !coding.is_empty());
    codings.any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// `Expect = #expectation` (RFC 9110 10.1.1). Two in one line are the same as two lines, and empty elements are none.
fn read_expect(value: &[u8]) -> Expect {
    let elements = value.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty());
    let meaning = |element: &[u8]| match element.eq_ignore_ascii_case(b"100-continue") {
        true => Expect::Continue,
        false => Expect::Unknown,
    };
    elements.map(meaning).max().unwrap_or_default()
}

fn once<'r>(place: &mut Option<&'r [u8]>, value: &'r [u8], twice: Reject) -> Result<(), Reject> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) if planted!("smuggling") => Ok(()),
        Some(_) => Err(twice),
    }
}

/// Puts httparse's finding in the words of the RFCs.
#[cold]
fn reject(error: httparse::Error, head: &[u8]) -> Reject {
    match error {
        httparse::Error::HeaderName => Reject::FieldName,
        httparse::Error::HeaderValue => Reject::FieldValue,
        httparse::Error::TooManyHeaders => Reject::TooManyFields,
        // `scan` has refused every line that does not end in CRLF, so NewLine means a version with something behind it.
        httparse::Error::Version | httparse::Error::NewLine => version_reject(head),
        _ => Reject::RequestLine,
    }
}

/// 505 for a well-formed version that is not 1.x (RFC 9110 15.6.6), 400 for what is no version.
fn version_reject(head: &[u8]) -> Reject {
    let line = head.split(|&b| b == b'\r').next().unwrap_or_default();
    match line.rsplit(|&b| b == b' ').next() {
        // A version that is known stands behind something that is not: two blanks, for one.
        Some(b"HTTP/1.0" | b"HTTP/1.1") => Reject::RequestLine,
        Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Reject::VersionUnsupported
        }
        _ => Reject::Version,
    }
}

/// `tchar` (RFC 9110 5.6.2).
#[inline]
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
        || byte.is_ascii_alphanumeric()
}
