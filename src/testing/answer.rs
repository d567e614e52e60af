//! Answers, taken apart as strictly as a client could: from bytes that may end anywhere.
//!
//! Knows no connection: whether more can come is its callers' affair.

use std::borrow::Cow;
use std::fmt;

/// An answer, taken apart.
///
/// ```
/// use sprat::{routes, testing::Client};
/// routes! { Api for () { GET "/" => const text("hello"), } }
/// let answer = Client::new(Api, ()).get("/");
/// assert_eq!((answer.status(), answer.field("content-length"), answer.text()), (200, Some("5"), "hello"));
/// assert!(format!("{answer:?}").ends_with(r#"body: "hello" }"#));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first field with this name, in any letter case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All fields, in order.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// The content.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The content as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the content is UTF-8")
    }

    /// The content as JSON, read as a `T` by the parser behind [`Json`](crate::Json), whatever its Content-Type is.
    ///
    /// ```
    /// use serde::Serialize;
    /// use sprat::{Json, routes, testing::Client};
    ///
    /// #[derive(Serialize)]
    /// struct Point { x: u32, y: u32 }
    /// routes! { Api for () { GET "/" => point(), } }
    /// fn point(_: &mut ()) -> Json<Point> { Json(Point { x: 1, y: 2 }) }
    ///
    /// let point: std::collections::BTreeMap<String, u32> = Client::new(Api, ()).get("/").json();
    /// assert_eq!((point["x"], point["y"]), (1, 2));
    /// ```
    ///
    /// # Panics
    /// If it is no JSON, or does not fit `T`; the text shows where, and the whole answer.
    #[cfg(feature = "json")]
    #[track_caller]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        // The parser writes where it reads.
        let mut bytes = self.body.clone();
        let len = bytes.len();
        match crate::json::parse(&mut bytes, len, &mut crate::json::Tape::default()) {
            Ok(value) => value,
            Err(error) => {
                let (path, wanted) = (error.path().to_string(), std::any::type_name::<T>());
                let place = if path.is_empty() { path } else { format!(" at {path}") };
                let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
                panic!("the content is no `{wanted}`: {}{place}{detail}: {self:?}", error.sentence())
            }
        }
    }
}

/// With the body as text, where it is UTF-8.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Answer");
        shown.field("status", &self.status).field("fields", &self.fields);
        match std::str::from_utf8(&self.body) {
            Ok(text) => shown.field("body", &text),
            Err(_) => shown.field("body", &format_args!("b\"{}\"", self.body.escape_ascii())),
        };
        shown.finish()
    }
}

/// What can be wrong with bytes that are to be answers.
#[derive(Debug)]
pub(crate) struct Fault {
    what: Cow<'static, str>,
    /// Nothing is wrong with what is there: more has to come of content in chunks.
    pub(crate) is_open_stream: bool,
    shown: String,
}

impl Fault {
    fn new(what: impl Into<Cow<'static, str>>, bytes: &[u8]) -> Fault {
        Fault { what: what.into(), is_open_stream: false, shown: bytes.escape_ascii().to_string() }
    }

    /// The same, with a word on what to do.
    pub(crate) fn advise(mut self, advice: &str) -> Fault {
        self.what = format!("{}; {advice}", self.what).into();
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.shown)
    }
}

/// Where an answer stands in what came.
pub(crate) struct Place<'b> {
    pub(crate) status: u16,
    /// A handler may send bytes beyond ASCII in a field value, in whatever encoding (RFC 9110 5.5).
    head: Cow<'b, str>,
    /// As it came: if it is chunked, with its chunk-sizes.
    content: &'b [u8],
    is_chunked: bool,
    /// Whether it has come to its end. Content that ends with the connection has, at any time.
    pub(crate) is_whole: bool,
    /// Up to its end, or to the end of what came.
    pub(crate) len: usize,
}

impl Place<'_> {
    pub(crate) fn to_answer(&self) -> Answer {
        let lines = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        let fields = lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        let mut body = Vec::new();
        if self.is_chunked {
            // Those that break a rule were found with the place.
            let _ = walk_chunks(self.content, |data| body.extend_from_slice(data));
        } else {
            body.extend_from_slice(self.content);
        }
        Answer { status: self.status, fields, body }
    }
}

/// The next answer, interim or final. None if its head is not whole.
pub(crate) fn next_answer(bytes: &[u8], head_only: bool) -> Result<Option<Place<'_>>, Fault> {
    let Some(head_len) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return Ok(None) };
    let fault = |what: &str, line: &str| Err(Fault::new(format!("{what}: {line}"), bytes));
    let head = String::from_utf8_lossy(&bytes[..head_len]);
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status: u16 = match status_line.strip_prefix("HTTP/1.1 ").and_then(|line| line.split_once(' ')) {
        Some((code, _)) if code.len() == 3 && code.bytes().all(|digit| digit.is_ascii_digit()) => {
            code.parse().unwrap_or_default()
        }
        _ => return fault("no status-line", status_line),
    };
    let (mut length, mut is_chunked, mut closes) = (None, false, false);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { return fault("no field line", line) };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") && length.is_none() {
            let Ok(len) = value.parse::<usize>() else { return fault("no length", value) };
            length = Some(len);
        }
        is_chunked |= name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked");
        closes |= name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close");
    }
    let content = &bytes[head_len + 4..];
    let has_content = status >= 200 && !matches!(status, 204 | 304) && !head_only;
    let (len, is_whole) = match length {
        _ if !has_content => (0, true),
        Some(_) if is_chunked => return fault("two framings", &head),
        Some(len) => (len.min(content.len()), len <= content.len()),
        None if is_chunked => walk_chunks(content, |_| ())?,
        None if closes => (content.len(), true),
        None => return fault("an answer without a length", &head),
    };
    let is_chunked = is_chunked && has_content;
    let len_whole = head_len + 4 + len;
    Ok(Some(Place { status, content: &content[..len], is_chunked, is_whole, len: len_whole, head }))
}

/// Hands over the content of each chunk, also of one that is not whole. Returns how long they are together, and
/// whether the last one was among them.
fn walk_chunks<'b>(bytes: &'b [u8], mut each: impl FnMut(&'b [u8])) -> Result<(usize, bool), Fault> {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(size_len) = rest.windows(2).position(|w| w == b"\r\n") else { return Ok((bytes.len(), false)) };
        let digits = std::str::from_utf8(&rest[..size_len]).unwrap_or_default();
        let size = match usize::from_str_radix(digits, 16) {
            Ok(size) if !digits.starts_with('+') => size,
            _ => return Err(Fault::new("no chunk-size", rest)),
        };
        let data = &rest[size_len + 2..];
        each(&data[..size.min(data.len())]);
        let end = match data.get(size..) {
            Some([b'\r', b'\n', ..]) => size_len + 2 + size + 2,
            None | Some([] | [b'\r']) => return Ok((bytes.len(), false)),
            Some(_) => return Err(Fault::new("a chunk longer than its chunk-size", rest)),
        };
        at += end;
        if size == 0 {
            return Ok((at, true));
        }
    }
}

/// Takes answers apart, strictly: whatever a client could stumble over is a fault, and so is what is not whole.
pub(crate) fn read_answers(bytes: &[u8], is_head: impl Fn(usize) -> bool) -> Result<Vec<Answer>, Fault> {
    let mut answers = Vec::new();
    let mut finals = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(place) = next_answer(rest, is_head(finals))? else { return Err(Fault::new("half a head", rest)) };
        if !place.is_whole {
            let what = if place.is_chunked { "a stream that has not ended" } else { "half an answer" };
            return Err(Fault { is_open_stream: place.is_chunked, ..Fault::new(what, rest) });
        }
        finals += usize::from(place.status >= 200);
        answers.push(place.to_answer());
        rest = &rest[place.len..];
    }
    Ok(answers)
}

/// The last answer, as far as it has come. None without a head.
pub(crate) fn read_last(bytes: &[u8]) -> Result<Option<Answer>, Fault> {
    let mut last = None;
    let mut rest = bytes;
    while let Some(place) = next_answer(rest, false)? {
        rest = &rest[place.len..];
        last = Some(place);
    }
    Ok(last.map(|place| place.to_answer()))
}

/// As [`read_answers`]; a fault is a panic.
#[track_caller]
pub(crate) fn parse_answers(bytes: &[u8], is_head: impl Fn(usize) -> bool) -> Vec<Answer> {
    match read_answers(bytes, is_head) {
        Ok(answers) => answers,
        Err(fault) => panic!("{fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    #[track_caller]
    fn fault(bytes: &str) -> String {
        read_answers(bytes.as_bytes(), |_| false).expect_err("it is wrong").what.into_owned()
    }

    #[test]
    fn an_answer_is_whole_at_its_last_byte_and_no_earlier() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_owned(),
            format!("{CHUNKED}1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"),
        ] {
            for len in 0..answer.len() {
                let place = next_answer(&answer.as_bytes()[..len], false).expect("nothing is wrong");
                assert!(!place.is_some_and(|place| place.is_whole), "{len}");
                assert!(len == 0 || read_answers(&answer.as_bytes()[..len], |_| false).is_err());
            }
            let twice = answer.repeat(2);
            let place = next_answer(twice.as_bytes(), false).expect("nothing is wrong").expect("a head");
            assert!(place.is_whole && place.len == answer.len());
            assert_eq!(place.to_answer().text(), "hi");
            assert_eq!(parse_answers(twice.as_bytes(), |_| false).len(), 2);
        }
    }

    #[test]
    fn what_has_come_of_a_stream_is_its_content_without_the_chunks() {
        let come = |chunks: &str| read_last(format!("{CHUNKED}{chunks}").as_bytes()).expect("nothing is wrong");
        let text = |chunks| come(chunks).expect("a head").text().to_owned();
        assert_eq!(text(""), "");
        assert_eq!(text("2"), "");
        assert_eq!(text("2\r\na"), "a");
        assert_eq!(text("2\r\nab\r"), "ab");
        assert_eq!(text("2\r\nab\r\n1\r\nc\r\n0\r\n"), "abc");
        assert_eq!(text("2\r\nab\r\n0\r\n\r\n"), "ab");
        assert_eq!(text("0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsec"), "sec");
        assert!(read_last(b"HTTP/1.1 200 OK\r\n").expect("nothing is wrong").is_none());
    }

    #[test]
    fn what_a_client_could_stumble_over_is_a_fault() {
        assert_eq!(fault("HTTP/1.1 200 OK\r\n"), "half a head");
        assert_eq!(fault("HTTP/1.1 2e0 OK\r\n\r\n"), "no status-line: HTTP/1.1 2e0 OK");
        assert_eq!(fault("HTTP/1.1 200 OK\r\nX\r\n\r\n"), "no field line: X");
        assert_eq!(fault("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), "no length: x");
        assert_eq!(fault("HTTP/1.1 200 OK\r\n\r\n"), "an answer without a length: HTTP/1.1 200 OK");
        assert_eq!(fault("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"), "half an answer");
        assert_eq!(fault(&format!("{CHUNKED}1\r\nhi\r\n")), "a chunk longer than its chunk-size");
        assert_eq!(fault(&format!("{CHUNKED}+1\r\nh\r\n")), "no chunk-size");
        assert_eq!(fault(&format!("{CHUNKED}1\r\nh\r\n")), "a stream that has not ended");
        let both = CHUNKED.replace("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n");
        assert!(fault(&both).starts_with("two framings"));
    }

    #[test]
    fn content_ends_with_the_connection_or_is_not_there() {
        let answers = parse_answers(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it", |_| false);
        assert_eq!(answers[0].text(), "all of it");
        let heads =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        let answers = parse_answers(heads, |at| at == 0);
        assert_eq!(answers.iter().map(Answer::status).collect::<Vec<_>>(), [100, 200, 204]);
    }

    #[test]
    fn debug_shows_text_as_text_and_bytes_as_bytes() {
        let answer = |body: &[u8]| Answer { status: 200, fields: Vec::new(), body: body.to_vec() };
        assert_eq!(format!("{:?}", answer(b"{\"a\":1}")), r#"Answer { status: 200, fields: [], body: "{\"a\":1}" }"#);
        assert_eq!(format!("{:?}", answer(b"\xff\x00a")), r#"Answer { status: 200, fields: [], body: b"\xff\x00a" }"#);
    }
}
