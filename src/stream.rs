//! Answers in parts: what a producer holds of one, server-sent events, and one message to many.
//!
//! Parts go to the loop as letters (see `later`); how they are framed is the machine's affair.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::later::{Content, Ticket, TicketPart};
use crate::rejection::Rejection;
use crate::request::{FromRequest, Request, TheLater};
use crate::response::{Response, Sent};
use crate::status::Status;

/// How an answer in parts begins: status, media type, fields.
///
/// ```
/// use sprat::{Later, StreamHead, routes};
///
/// routes! { Api for () { GET "/numbers.csv" => numbers(later), } }
///
/// fn numbers(_: &mut (), later: Later<()>) {
///     let stream = later.stream(StreamHead::new("text/csv").field("Cache-Control", "no-store"));
///     std::thread::spawn(move || {
///         for number in 0..1000 {
///             // Waits while the client is slow; an error once it has left.
///             if stream.send_blocking(format!("{number}\r\n"), std::time::Duration::from_secs(30)).is_err() {
///                 return;
///             }
///         }
///         stream.end();
///     });
/// }
/// ```
#[derive(Clone, Debug)]
pub struct StreamHead {
    status: Status,
    media_type: Cow<'static, str>,
    fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    room: usize,
    /// Server-sent events: say something at least so often.
    pub(crate) keep_alive: Option<Duration>,
}

impl StreamHead {
    /// 200 and this media type.
    pub fn new(media_type: impl Into<Cow<'static, str>>) -> StreamHead {
        StreamHead {
            status: Status::OK,
            media_type: media_type.into(),
            fields: Vec::new(),
            room: ROOM_DEFAULT,
            keep_alive: None,
        }
    }

    /// The status; it must be one that has content.
    #[must_use]
    pub fn status(mut self, status: Status) -> StreamHead {
        self.status = status;
        self
    }

    /// Adds a field, checked as in [`Response::field`]: one that cannot be written makes the answer a 500.
    #[must_use]
    pub fn field(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> StreamHead {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// How many bytes may wait for the client before [`Stream::send`] refuses more. Default 64 KiB.
    #[must_use]
    pub fn room(mut self, bytes: usize) -> StreamHead {
        self.room = bytes;
        self
    }

    /// Writes it. `Err` if it cannot be written; then 500 is.
    pub(crate) fn write<'r>(&self, response: Response<'r>) -> Result<Sent<'r>, Sent<'r>> {
        let mut response = response.status(self.status);
        for (name, value) in &self.fields {
            response = response.field(name, value.as_bytes());
        }
        response.content_type(&self.media_type).begin_stream()
    }
}

const ROOM_DEFAULT: usize = 64 << 10;

/// Why a part was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The client has left, or its connection ended in another way. More parts are in vain.
    Closed,
    /// Too much waits for the client already; see [`StreamHead::room`].
    Full,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StreamError::Closed => "the client has left",
            StreamError::Full => "the client is slower than the stream",
        })
    }
}

impl std::error::Error for StreamError {}

/// An answer that goes out in parts, each at once; made by [`Later::stream`](crate::Later::stream).
///
/// It is chunked on HTTP/1.1 and ends with the connection on HTTP/1.0. It can be kept in the state or moved to another
/// thread. Dropped without [`end`](Stream::end), it breaks off: the connection closes, and an HTTP/1.1 client sees that
/// the content is not whole.
#[derive(Debug)]
pub struct Stream {
    ticket: Arc<Ticket>,
    room: usize,
    ended: bool,
}

impl Stream {
    pub(crate) fn begin(ticket: Arc<Ticket>, head: StreamHead) -> Stream {
        let room = head.room;
        ticket.post(Content::Begin(Box::new(head)));
        Stream { ticket, room, ended: false }
    }

    /// Sends a part, and tells how many bytes wait for the client now, this part included. Sends nothing if it is empty.
    ///
    /// # Errors
    /// `Full` if the part has no room beside what waits already (one part always has), `Closed` once the client left.
    pub fn send(&self, part: impl Into<Vec<u8>>) -> Result<usize, StreamError> {
        let part = part.into();
        self.admit(part.len()).map(|()| self.post(part))
    }

    /// As [`send`](Stream::send), but waits for room. Not in the server's thread: nothing would make room meanwhile.
    ///
    /// # Errors
    /// `Full` if there was none in that time, `Closed` once the client left.
    pub fn send_blocking(&self, part: impl Into<Vec<u8>>, timeout: Duration) -> Result<usize, StreamError> {
        let part = part.into();
        let mut admitted = Err(StreamError::Full);
        self.ticket.wait_until(timeout, || {
            admitted = self.admit(part.len());
            admitted != Err(StreamError::Full)
        });
        admitted.map(|()| self.post(part))
    }

    /// Sends a part that was admitted.
    fn post(&self, part: Vec<u8>) -> usize {
        if !part.is_empty() {
            self.ticket.post(Content::Part(Part::Owned(part)));
        }
        self.ticket.waiting()
    }

    /// Counts a part that is about to be sent.
    fn admit(&self, len: usize) -> Result<(), StreamError> {
        match self.is_closed() {
            true => Err(StreamError::Closed),
            false if self.ticket.reserve(len, self.room) => Ok(()),
            false => Err(StreamError::Full),
        }
    }

    /// Bytes that wait for the client.
    pub fn waiting(&self) -> usize {
        self.ticket.waiting()
    }

    /// Whether nobody takes parts any more.
    pub fn is_closed(&self) -> bool {
        self.ticket.is_closed()
    }

    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn number(&self) -> u64 {
        self.ticket.number
    }

    /// Ends the answer. The connection goes on with the next request.
    pub fn end(mut self) {
        self.ended = true;
        self.ticket.post(Content::End);
    }

    /// Breaks off because the client is too slow.
    fn give_up(mut self) {
        self.ended = true;
        self.ticket.post(Content::TooSlow);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.ended {
            self.ticket.post(Content::Abort);
        }
    }
}

/// A part of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Owned(Vec<u8>),
    /// A chunk with its framing, shared by all who get it, and where its content stands in it.
    Framed(Arc<[u8]>, Range<usize>),
}

impl Part {
    fn framed(content: &[u8]) -> Part {
        let mut bytes = format!("{:x}\r\n", content.len()).into_bytes();
        let start = bytes.len();
        bytes.extend_from_slice(content);
        let end = bytes.len();
        bytes.extend_from_slice(b"\r\n");
        Part::Framed(bytes.into(), start..end)
    }

    /// Bytes of content.
    pub(crate) fn len(&self) -> usize {
        match self {
            Part::Owned(bytes) => bytes.len(),
            Part::Framed(_, content) => content.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A stream of server-sent events (`text/event-stream`), as `EventSource` in a browser reads them.
///
/// A handler takes it as an argument, and returns nothing. While nothing is sent, a comment goes out every 15 seconds,
/// so that proxies keep the connection and a client that is gone is noticed. When the server shuts down, the stream
/// ends: clients connect again by themselves, to whoever listens then.
///
/// The answer carries `Cache-Control: no-store`, and `X-Accel-Buffering: no` so that nginx passes events on at once.
///
/// ```
/// use sprat::{Broadcast, EventStream, Message, Status, routes};
///
/// #[derive(Default)]
/// struct App { feed: Broadcast, sent: u64 }
///
/// routes! {
///     Api for App {
///         GET  "/feed" => feed(events),
///         POST "/feed" => publish(text),
///     }
/// }
///
/// fn feed(app: &mut App, events: EventStream) {
///     let missed = events.last_event_id().and_then(|id| id.parse().ok()).is_some_and(|id: u64| id < app.sent);
///     if missed {
///         let _ = events.send(&Message::new("you missed something"));
///     }
///     app.feed.subscribe(events);
/// }
///
/// fn publish(app: &mut App, text: Vec<u8>) -> Status {
///     app.sent += 1;
///     app.feed.send_event(&Message::new(String::from_utf8_lossy(&text)).id(app.sent.to_string()));
///     Status::ACCEPTED
/// }
/// # let mut client = sprat::testing::Client::new(Api, App::default());
/// # assert_eq!(client.post("/feed", b"x").status(), 202);
/// ```
#[derive(Debug)]
pub struct EventStream {
    stream: Stream,
    last_event_id: Option<String>,
}

impl EventStream {
    /// Sends an event at once, and tells how many bytes wait for the client now.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub fn send(&self, message: &Message<'_>) -> Result<usize, StreamError> {
        self.stream.send(message.to_bytes())
    }

    /// The id of the last event that the client got before its connection broke, if it says so.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// Bytes that wait for the client.
    pub fn waiting(&self) -> usize {
        self.stream.waiting()
    }

    /// Whether the client is gone.
    pub fn is_closed(&self) -> bool {
        self.stream.is_closed()
    }

    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn number(&self) -> u64 {
        self.stream.number()
    }

    /// Ends the stream. A browser connects again, unless it was told otherwise in an event.
    pub fn end(self) {
        self.stream.end();
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for EventStream {
    type Takes = TheLater;
    fn from_request(request: &Request<'r>, ticket: TicketPart, _: &mut S) -> Result<Self, Rejection> {
        let last_event_id = request.field("last-event-id").filter(|id| !id.is_empty()).map(str::to_owned);
        let mut head = StreamHead::new("text/event-stream").field("Cache-Control", "no-store");
        // nginx would collect events until its buffer is full.
        head = head.field("X-Accel-Buffering", "no");
        head.keep_alive = Some(KEEP_ALIVE);
        Ok(EventStream { stream: Stream::begin(ticket.0, head), last_event_id })
    }
}

impl From<EventStream> for Stream {
    fn from(events: EventStream) -> Stream {
        events.stream
    }
}

/// Proxies give up after 30 to 60 seconds of silence.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One server-sent event.
///
/// ```
/// let message = sprat::Message::new("two\nlines").event("note").id("7");
/// assert_eq!(message.to_bytes(), b"event: note\nid: 7\ndata: two\ndata: lines\n\n");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Message<'m> {
    data: Cow<'m, str>,
    event: Option<Cow<'m, str>>,
    id: Option<Cow<'m, str>>,
    retry: Option<Duration>,
}

impl<'m> Message<'m> {
    /// With this data. Its lines, however they end, arrive as lines that end in LF.
    pub fn new(data: impl Into<Cow<'m, str>>) -> Message<'m> {
        Message { data: data.into(), ..Message::default() }
    }

    /// The type of the event; `message` if none is given. What follows a line end or a NUL is left out.
    #[must_use]
    pub fn event(mut self, event: impl Into<Cow<'m, str>>) -> Message<'m> {
        self.event = Some(event.into());
        self
    }

    /// What the client will say in `Last-Event-ID`. What follows a line end or a NUL is left out.
    #[must_use]
    pub fn id(mut self, id: impl Into<Cow<'m, str>>) -> Message<'m> {
        self.id = Some(id.into());
        self
    }

    /// How long the client waits before it connects again.
    #[must_use]
    pub fn retry(mut self, after: Duration) -> Message<'m> {
        self.retry = Some(after);
        self
    }

    /// As it goes over the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = String::with_capacity(self.data.len() + 64);
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\n"] {
                text.push_str(part);
            }
        };
        for (name, value) in [("event", &self.event), ("id", &self.id)] {
            if let Some(value) = value {
                line(name, value.split(['\r', '\n', '\0']).next().unwrap_or_default());
            }
        }
        if let Some(retry) = self.retry {
            line("retry", &retry.as_millis().to_string());
        }
        for data in self.data.replace("\r\n", "\n").split(['\r', '\n']) {
            line("data", data);
        }
        text.push('\n');
        text.into_bytes()
    }
}

/// One message to many streams, without a copy for each of them.
///
/// A subscriber for whom too much waits ([`StreamHead::room`], 64 KiB by default) is dropped, alone: its connection is
/// closed with [`CloseReason::StreamTooSlow`](crate::CloseReason::StreamTooSlow). See [`EventStream`] for an example.
#[derive(Debug, Default)]
pub struct Broadcast {
    subscribers: Vec<Stream>,
}

/// Whom a message reached; see [`Broadcast::send`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Subscribers that it is on its way to.
    pub reached: usize,
    /// Subscribers dropped because they were too slow.
    pub too_slow: usize,
    /// Subscribers that had left.
    pub left: usize,
}

impl Broadcast {
    /// Nobody yet.
    pub fn new() -> Broadcast {
        Broadcast::default()
    }

    /// Adds one that gets all messages from now on.
    pub fn subscribe(&mut self, stream: impl Into<Stream>) {
        // Now and then, so that those who left are not kept until the next message.
        if self.subscribers.len() == self.subscribers.capacity() {
            self.subscribers.retain(|stream| !stream.is_closed());
        }
        self.subscribers.push(stream.into());
    }

    /// How many there are, without those who left.
    pub fn subscribers(&self) -> usize {
        self.subscribers.iter().filter(|stream| !stream.is_closed()).count()
    }

    /// Sends a part to all.
    pub fn send(&mut self, part: impl AsRef<[u8]>) -> Delivery {
        let part = Part::framed(part.as_ref());
        let mut delivery = Delivery::default();
        if part.is_empty() {
            return delivery;
        }
        let mut tickets = Vec::with_capacity(self.subscribers.len());
        let mut at = 0;
        while let Some(stream) = self.subscribers.get(at) {
            match stream.admit(part.len()) {
                Ok(()) => {
                    tickets.push(Arc::clone(&stream.ticket));
                    at += 1;
                }
                Err(StreamError::Closed) => {
                    delivery.left += 1;
                    self.subscribers.swap_remove(at);
                }
                Err(StreamError::Full) => {
                    delivery.too_slow += 1;
                    self.subscribers.swap_remove(at).give_up();
                }
            }
        }
        delivery.reached = tickets.len();
        Ticket::post_parts(tickets, &part);
        delivery
    }

    /// Sends a server-sent event to all.
    pub fn send_event(&mut self, message: &Message<'_>) -> Delivery {
        self.send(message.to_bytes())
    }

    /// Ends all streams.
    pub fn end(&mut self) {
        self.subscribers.drain(..).for_each(Stream::end);
    }
}
