//! Writes answers: one status-line, checked fields, one unambiguous framing (RFC 9112 section 6).
//!
//! A handler returns a value that knows how to write itself ([`Respond`]), or takes the writer ([`Response`]) and
//! returns the proof that it finished ([`Sent`]). Bytes go to the end of the loop's write buffer; nothing is sent here.

mod constant;
mod mapped;
mod respond;

use std::marker::PhantomData;
use std::sync::Arc;

use crate::head::is_token_byte;
use crate::method::Methods;
use crate::output::{Borrowed, COPY_BYTES_MAX, Mark, Output};
use crate::reject::Reject;
use crate::rejection::Rejection;
use crate::status::Status;

pub use constant::{Constant, ConstantHead, constant_head};
pub use mapped::{Mapped, Refusing};
pub use respond::{Html, Redirect, Respond, Static, WithField};

/// What the request decides about its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// HEAD: the head as for GET, and no content.
    pub(crate) head_only: bool,
    /// HTTP/1.0: `Connection: keep-alive` has to be said.
    pub(crate) http10: bool,
    /// Whether the connection stays open after this answer.
    pub(crate) persistent: bool,
}

/// What a handler asked of its connection, beside the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// To close it after the answer.
    Close,
    /// To wait: the answer comes later.
    Later,
    /// Nothing, and the answer is a [`Rejection`](crate::Rejection), which lies beside it.
    Rejected,
    /// Nothing, and the answer is this alone. Not made a rejection before a mapper asks: that would allocate.
    Refused(Status, &'static str),
}

/// The content type of an answer that gave none: its field line, and the name of the field that follows, padded so that
/// it is copied by a few stores of fixed size.
#[derive(Debug)]
pub(crate) struct MediaType {
    padded: [u8; 64],
    len: usize,
}

impl MediaType {
    const fn new(line_and_length: &str) -> MediaType {
        let (mut padded, len) = ([0; 64], line_and_length.len());
        padded.split_at_mut(len).0.copy_from_slice(line_and_length.as_bytes());
        MediaType { padded, len }
    }
}

macro_rules! media_type {
    ($name:ident = $text:literal) => {
        pub(crate) static $name: MediaType = MediaType::new(concat!("Content-Type: ", $text, "\r\nContent-Length: "));
    };
}

media_type! { TEXT = "text/plain; charset=utf-8" }
media_type! { BYTES = "application/octet-stream" }
#[cfg(feature = "json")]
media_type! { JSON = "application/json" }

/// Proof that an answer was written to its end. Only a finished [`Response`] makes one, and it cannot outlive the
/// request, so that forgetting to answer, or answering twice, does not compile.
#[must_use = "return it: it is the proof that the request was answered"]
#[derive(Debug)]
pub struct Sent<'r>(PhantomData<fn(&'r ()) -> &'r ()>);

/// The writer of one answer: status, then fields, then content.
///
/// Fields are checked: a name that is no token, a value with CR, LF or NUL, and a field that belongs to the server
/// (`Content-Length`, `Transfer-Encoding`, `Connection`, `Date`) turn the whole answer into a 500, so that nothing a
/// handler passes on can split a response (RFC 9112 11.1).
///
/// ```
/// use sprat::{Response, Sent, Status};
/// fn created<'r>(_: &mut (), response: Response<'r>) -> Sent<'r> {
///     response.status(Status::CREATED).field("Location", "/things/7").text("made")
/// }
/// # sprat::routes! { Api for () { POST "/" => created(response), } }
/// # let answer = sprat::testing::Client::new(Api, ()).post("/", b"");
/// # assert_eq!((answer.status(), answer.field("location")), (201, Some("/things/7")));
/// ```
#[derive(Debug)]
pub struct Response<'r> {
    output: &'r mut Output,
    asked: &'r mut Asked,
    facts: Facts,
    mark: Mark,
    status: Option<Status>,
    /// A content type stands among the field lines already.
    typed: bool,
    /// Why a field was refused.
    failed: Option<&'static str>,
}

impl<'r> Response<'r> {
    pub(crate) fn new(output: &'r mut Output, asked: &'r mut Asked, facts: Facts) -> Response<'r> {
        let mark = output.mark();
        Response { output, asked, facts, mark, status: None, typed: false, failed: None }
    }

    /// Sets the status, unless it was set before: what wraps an answer decides, as in `(Status, T)`. Default 200.
    ///
    /// A refusal ([`Rejection`], a [`Status`] from 400 on, `None`) keeps its own under one that is no error.
    #[must_use]
    pub fn status(mut self, status: Status) -> Response<'r> {
        self.status.get_or_insert(status);
        self
    }

    /// Adds a field line. `Content-Type` given here replaces the one that the content would have had.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Response<'r> {
        let value = value.as_ref();
        if let Some(fault) = field_fault(name, value) {
            self.failed = Some(fault);
            return self;
        }
        if name.eq_ignore_ascii_case("content-type") {
            if self.typed {
                return self;
            }
            self.typed = true;
        }
        let lines = &mut self.output.field_lines;
        lines.reserve(name.len() + value.len() + 4);
        lines.extend_from_slice(name.as_bytes());
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(value);
        lines.extend_from_slice(b"\r\n");
        self
    }

    /// The same as a field of that name; the first one given stays.
    #[must_use]
    pub fn content_type(self, media_type: &str) -> Response<'r> {
        self.field("Content-Type", media_type)
    }

    /// Closes the connection after this answer, and says so in it.
    #[must_use]
    pub fn close(mut self) -> Response<'r> {
        *self.asked = Asked::Close;
        self.facts.persistent = false;
        self
    }

    /// Finishes with text: `text/plain; charset=utf-8`.
    pub fn text(self, text: &str) -> Sent<'r> {
        self.copied(&TEXT, text.as_bytes())
    }

    /// Finishes with bytes: `application/octet-stream` unless a type was given.
    pub fn body(self, bytes: &[u8]) -> Sent<'r> {
        self.copied(&BYTES, bytes)
    }

    /// Finishes with bytes that are sent from where they are if they are many.
    pub fn body_static(self, bytes: &'static [u8]) -> Sent<'r> {
        self.borrowed(&BYTES, Borrowed::Static(bytes))
    }

    /// Finishes with bytes that are shared with the sender, not copied, if they are many.
    pub fn body_shared(self, bytes: Arc<[u8]>) -> Sent<'r> {
        self.borrowed(&BYTES, Borrowed::Shared(bytes))
    }

    /// Finishes without content: `Content-Length: 0`, or no framing at all where the status has none.
    pub fn empty(mut self) -> Sent<'r> {
        if !self.begin() {
            return self.fail();
        }
        if !self.ends_without_content() {
            self.output.bytes.extend_from_slice(b"Content-Length: 0\r\n\r\n");
        }
        Sent(PhantomData)
    }

    /// Finishes with what `write` appends, without an intermediate buffer: the length is patched in behind it.
    ///
    /// # Errors
    /// What `write` returns; then nothing of this answer is left, and the request is answered with 500.
    #[cfg(feature = "json")]
    pub(crate) fn written<E>(
        mut self,
        media_type: &'static MediaType,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Sent<'r> {
        if !self.begin() {
            return self.fail();
        }
        if self.ends_without_content() {
            return Sent(PhantomData);
        }
        self.begin_length(media_type);
        let out = &mut self.output.bytes;
        // White space around a field value means nothing (RFC 9110 5.5); leading zeros do to some parsers.
        out.extend_from_slice(b"          \r\n\r\n");
        let start = out.len();
        if write(out).is_err() {
            return self.fail_by("the content cannot be written as what it is to be");
        }
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(out.len() - start).as_bytes();
        let hole_end = start - 4;
        match out.get_mut(hole_end - digits.len()..hole_end) {
            Some(hole) if digits.len() <= 10 => hole.copy_from_slice(digits),
            _ => return self.fail_by("the content is longer than ten digits can say"),
        }
        if self.facts.head_only {
            out.truncate(start);
        }
        Sent(PhantomData)
    }

    /// Finishes with content that stays valid only for now.
    #[inline]
    fn copied(mut self, media_type: &'static MediaType, bytes: &[u8]) -> Sent<'r> {
        if !self.begin() {
            return self.fail();
        }
        if self.ends_without_content() {
            return Sent(PhantomData);
        }
        self.begin_length(media_type);
        self.end_length(bytes.len());
        if !self.facts.head_only {
            self.output.bytes.extend_from_slice(bytes);
        }
        Sent(PhantomData)
    }

    fn borrowed(mut self, media_type: &'static MediaType, content: Borrowed) -> Sent<'r> {
        if content.as_slice().len() <= COPY_BYTES_MAX {
            return self.copied(media_type, content.as_slice());
        }
        if !self.begin() {
            return self.fail();
        }
        if self.ends_without_content() {
            return Sent(PhantomData);
        }
        self.begin_length(media_type);
        self.end_length(content.as_slice().len());
        if !self.facts.head_only {
            self.output.push_borrowed(content);
        }
        Sent(PhantomData)
    }

    /// Finishes without an answer: it comes later, through the ticket that was taken from the lane.
    #[cold]
    pub(crate) fn wait(self) -> Sent<'r> {
        *self.asked = Asked::Later;
        Sent(PhantomData)
    }

    /// Writes the head of an answer in parts. `Err` if that cannot be; then a 500 is written.
    pub(crate) fn begin_stream(mut self) -> Result<Sent<'r>, Sent<'r>> {
        if self.status.is_some_and(|status| !status.has_content()) {
            return Err(self.fail_by("a status without content cannot be answered in parts"));
        }
        if !self.begin() {
            return Err(self.fail());
        }
        let framing: &[u8] = if self.facts.http10 { b"\r\n" } else { b"Transfer-Encoding: chunked\r\n\r\n" };
        self.output.bytes.extend_from_slice(framing);
        Ok(Sent(PhantomData))
    }

    /// Finishes an answer whose wire bytes were made at compile time. It has only the fields that all answers have.
    #[inline]
    pub(crate) fn constant(self, constant: &Constant) -> Sent<'r> {
        let Output { bytes: out, date, field_lines, .. } = &mut *self.output;
        out.extend_from_slice(constant.head);
        if !field_lines.is_empty() {
            out.append(field_lines);
        }
        out.extend_from_slice(date.as_bytes());
        out.extend_from_slice(connection_line(self.facts));
        out.extend_from_slice(b"\r\n");
        if !self.facts.head_only {
            out.extend_from_slice(constant.content);
        }
        Sent(PhantomData)
    }

    /// Writes status-line, Date, Connection and the fields so far. False if a field was refused.
    #[inline(always)]
    fn begin(&mut self) -> bool {
        if self.failed.is_some() {
            return false;
        }
        let Output { bytes: out, date, field_lines, .. } = &mut *self.output;
        match self.status {
            None | Some(Status::OK) => out.extend_from_slice(date.after_ok()),
            Some(status) => {
                write_status_line(out, status);
                out.extend_from_slice(date.as_bytes());
            }
        }
        match (self.facts.persistent, self.facts.http10) {
            (true, false) => {}
            _ => out.extend_from_slice(connection_line(self.facts)),
        }
        if !field_lines.is_empty() {
            out.extend_from_slice(field_lines);
            field_lines.clear();
        }
        true
    }

    /// Ends the head of an answer whose status has no content: without framing, or with a zero (RFC 9110 8.6, 15.3.6).
    #[inline]
    fn ends_without_content(&mut self) -> bool {
        match self.status {
            None => return false,
            Some(status) if status.has_content() => return false,
            Some(Status::RESET_CONTENT) => self.output.bytes.extend_from_slice(b"Content-Length: 0\r\n\r\n"),
            Some(_) => self.output.bytes.extend_from_slice(b"\r\n"),
        }
        true
    }

    /// Writes the content type, unless one was given, and the name of the length.
    #[inline]
    fn begin_length(&mut self, media_type: &'static MediaType) {
        let out = &mut self.output.bytes;
        if self.typed {
            return out.extend_from_slice(b"Content-Length: ");
        }
        let end = out.len() + media_type.len;
        out.extend_from_slice(&media_type.padded);
        out.truncate(end);
    }

    #[inline]
    fn end_length(&mut self, len: usize) {
        let out = &mut self.output.bytes;
        let (tens, ones) = (b'0' + (len / 10 % 10) as u8, b'0' + (len % 10) as u8);
        match len {
            10..100 => out.extend_from_slice(&[tens, ones, b'\r', b'\n', b'\r', b'\n']),
            _ => {
                out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
                out.extend_from_slice(b"\r\n\r\n");
            }
        }
    }

    /// A field was refused: 500 instead.
    #[cold]
    fn fail(self) -> Sent<'r> {
        let why = self.failed.unwrap_or_default();
        self.fail_by(why)
    }

    /// The answer cannot be sent as it is: 500 instead.
    #[cold]
    fn fail_by(self, why: &'static str) -> Sent<'r> {
        self.output.roll_back(self.mark);
        self.output.fault = Some(why);
        // Not the refusal that could not be written: a mapper is asked about this one.
        if *self.asked != Asked::Close {
            *self.asked = Asked::Nothing;
        }
        Reject::HandlerFailed.respond(Response::new(self.output, self.asked, self.facts))
    }

    /// What wraps a refusal becomes part of it, so that a mapper has it too: the fields, and the status if that is an
    /// error.
    pub(crate) fn unwrap_into(&mut self, rejection: &mut Rejection) {
        let status = self.status.take().filter(|status| status.code() >= 400);
        let fields = self.output.take_own_fields().unwrap_or_default();
        self.typed &= self.output.has_own_fields();
        rejection.wrap(status, fields);
    }

    /// Keeps the refusal that is being written, for a mapper to say it in other words.
    pub(crate) fn keep(&mut self, rejection: Rejection) {
        if *self.asked == Asked::Nothing {
            *self.asked = Asked::Rejected;
            self.output.source = Some(Box::new(rejection));
        }
    }

    /// Finishes with a status and a sentence, for a mapper to say in other words.
    pub(crate) fn refuse_alone(self, status: Status, sentence: &'static str) -> Sent<'r> {
        if self.status.is_some() || self.output.has_own_fields() {
            return Rejection::text(status, sentence).respond(self);
        }
        if *self.asked == Asked::Nothing {
            *self.asked = Asked::Refused(status, sentence);
        }
        self.status(status).text(sentence)
    }

    /// 405 with `Allow` (RFC 9110 15.5.6).
    pub(crate) fn method_not_allowed(self, allow: Methods) -> Sent<'r> {
        self.allow(allow).status(Status::METHOD_NOT_ALLOWED).text(METHOD_NOT_ALLOWED)
    }

    /// 404: no pattern matches.
    pub(crate) fn no_route(self) -> Sent<'r> {
        self.status(Status::NOT_FOUND).text(NO_ROUTE)
    }

    /// The answer to OPTIONS that a table gives by itself: 204 with `Allow`.
    pub(crate) fn options(self, allow: Methods) -> Sent<'r> {
        self.allow(allow).status(Status::NO_CONTENT).empty()
    }

    fn allow(self, allow: Methods) -> Response<'r> {
        write_methods("Allow", allow, &mut self.output.field_lines);
        self
    }
}

/// Writes a field line that lists methods.
#[inline(never)]
pub(crate) fn write_methods(name: &str, methods: Methods, lines: &mut Vec<u8>) {
    lines.extend_from_slice(name.as_bytes());
    let mut before: &[u8] = b": ";
    for method in methods.iter() {
        lines.extend_from_slice(before);
        lines.extend_from_slice(method.as_str().as_bytes());
        before = b", ";
    }
    lines.extend_from_slice(b"\r\n");
}

/// What 404 and 405 say of their own accord.
pub(crate) const NO_ROUTE: &str = "no route matches this path";
pub(crate) const METHOD_NOT_ALLOWED: &str = "the method is not allowed on this path";

/// `Connection` is said only where it changes what the version implies (RFC 9112 9.3).
#[inline]
fn connection_line(facts: Facts) -> &'static [u8] {
    match (facts.persistent, facts.http10) {
        (true, false) => b"",
        (false, _) => b"Connection: close\r\n",
        (true, true) => b"Connection: keep-alive\r\n",
    }
}

fn write_status_line(out: &mut Vec<u8>, status: Status) {
    if let Some(line) = status.line() {
        out.extend_from_slice(line.as_bytes());
        return;
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status.code()).as_bytes());
    // A reason phrase may be empty, the blank before it may not be missing (RFC 9112 4).
    out.extend_from_slice(b" \r\n");
}

/// Why a field cannot be written: its name is no token, its value holds a control byte, or the server writes it itself.
fn field_fault(name: &str, value: &[u8]) -> Option<&'static str> {
    let reserved = ["content-length", "transfer-encoding", "connection", "date", "keep-alive", "upgrade", "trailer"];
    let is_sendable = |b: u8| b == b'\t' || (planted!("response") && b == b'\n') || (b >= 0x20 && b != 0x7f);
    if name.is_empty() || !name.bytes().all(is_token_byte) {
        Some("a field has a name that is no token")
    } else if !value.iter().all(|&b| is_sendable(b)) {
        Some("a field has a value with a control byte")
    } else if reserved.iter().any(|r| name.eq_ignore_ascii_case(r)) {
        Some("a field is one that the server writes itself")
    } else {
        None
    }
}
