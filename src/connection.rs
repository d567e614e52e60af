//! One connection as a pure state machine: bytes in, bytes out, time as an argument.
//!
//! ```text
//!   (behind a trusted balancer, a PROXY header comes first, once)
//!
//!              whole request                         body missing
//!        +------------------------+        +--------------------------------+
//!        v                        |        v                                |
//!   +--------+  head is whole: parse, frame, route, check   +------+  body is whole: parse, route
//!   |  Head  |--------------------------------------------->| Body |-----------------+
//!   +--------+                                              +------+                 |
//!     ^   ^  |  refused early, body unread    +------+                               |
//!     |   |  +------------------------------->| Skip |                               |
//!     |   +-----------------------------------+------+                               |
//!     +------------------------------------------------------------------------------+
//!        any of them:  last answer -> Closing --flushed--> Linger --> Closed
//!
//!   +------+  the handler takes `Later`  +---------+  begin   +-----------+
//!   | Head |---------------------------->| Waiting |--------->| Streaming |     nothing behind the request is looked
//!   +------+                             +---------+          +-----------+     at before its answer is written
//!      ^                  answered, timed out |       ended, broken off |
//!      +--------------------------------------+-------------------------+
//! ```
//!
//! A driver (the loop, the test client, a simulator, a fuzzer) asks for [`recv_space`](Connection::recv_space), fills it,
//! calls a `handle_` function, calls [`transmit`](Connection::transmit), and does what [`next`](Connection::next) says.
//!
//! The machine never names a socket and never asks a clock. The same bytes get the same answers, however they are
//! split. A message that is whole on arrival is served from the driver's read buffer; the connection owns bytes only
//! while one is partial, so an idle connection holds none. An answer that is made elsewhere comes as a letter with the
//! number of a ticket; a letter for any other ticket than the one that is waited for does nothing.

use std::any::Any;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::chunked::Decoder;
use crate::cors::{self, CrossOrigin};
use crate::framing::{self, Decision, Framing};
use crate::head::{self, Head, Known, SLOTS_READY, Version};
use crate::held::{Held, PADDING_LEN, Pool};
use crate::later::{Answer as LateAnswer, Content, Lane, Ticket};
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::method::Method;
use crate::output::{Borrowed, COPY_BYTES_MAX, Mark, Output, Unsent};
use crate::proxy::{self, Proxied};
use crate::reject::Reject;
use crate::rejection::Rejection;
use crate::request::{Body, Params, Parts, Received, Request, Spans};
use crate::response::{self, Asked, Facts, METHOD_NOT_ALLOWED, Mapped, NO_ROUTE, Refusing, Respond, Response, Sent};
use crate::route::{Answer, Call, Found, MapErrors, Routes, Row};
use crate::status::Status;
use crate::stream::{Part, StreamHead};
use crate::target::{self, Form, Target};

/// A moment, in milliseconds of the driver's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// The moment this much later.
    pub fn after(self, duration: Duration) -> Tick {
        Tick(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Why a connection was closed.
///
/// ```
/// use sprat::CloseReason;
/// assert!(CloseReason::IdleTimeout.to_string().contains("idle"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed between two requests.
    PeerClosed,
    /// The peer reset the connection, or the socket failed.
    PeerReset,
    /// The request said `Connection: close`, or was HTTP/1.0 without `keep-alive`.
    AskedByPeer,
    /// The handler asked for it.
    AskedByHandler,
    /// The answer was early, and the body too long to be skipped.
    BodyUnread,
    /// A message broke this rule or limit; it was answered before the close.
    Rejected(Reject),
    /// The handler panicked; 500 was answered.
    HandlerPanicked,
    /// No byte came after accept.
    FirstByteTimeout,
    /// No request came after an answer.
    IdleTimeout,
    /// It was idle, and all places were taken: one who waited to be accepted has its place (RFC 9112 9.5).
    PlaceNeeded,
    /// The peer did not take its answers.
    WriteTimeout,
    /// The peer left while its answer was being made elsewhere, or was being streamed.
    PeerLeft,
    /// The producer of a stream dropped it before its end.
    StreamAborted,
    /// The peer took a stream more slowly than it was made.
    StreamTooSlow,
    /// The server is shutting down.
    Drained,
    /// The server was shut down and its deadline passed.
    DrainTimeout,
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CloseReason::PeerClosed => "the peer closed",
            CloseReason::PeerReset => "the peer reset the connection",
            CloseReason::AskedByPeer => "the peer asked for it",
            CloseReason::AskedByHandler => "the handler asked for it",
            CloseReason::BodyUnread => "a body was left unread",
            CloseReason::Rejected(reject) => reject.sentence(),
            CloseReason::HandlerPanicked => "the handler panicked",
            CloseReason::FirstByteTimeout => "no byte came",
            CloseReason::IdleTimeout => "idle for too long",
            CloseReason::PlaceNeeded => "idle, and its place was needed",
            CloseReason::WriteTimeout => "the peer did not take its answers",
            CloseReason::PeerLeft => "the peer left before its answer was whole",
            CloseReason::StreamAborted => "a stream was broken off",
            CloseReason::StreamTooSlow => "the peer was slower than its stream",
            CloseReason::Drained => "the server is shutting down",
            CloseReason::DrainTimeout => "the server's shutdown deadline passed",
        })
    }
}

/// What a loop shares among its connections.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) output: Output,
    pub(crate) pool: Pool,
    /// Decoded path parameters of the request being served.
    decoded: String,
    /// The Host field that was checked last. Clients send the same one with every request.
    checked_host: Vec<u8>,
    /// Where the last head with a body behind it ended. Clients send heads of the same length, most often.
    head_len: usize,
    #[cfg(feature = "json")]
    tape: crate::json::Tape,
    /// Where handlers get the right to answer later.
    pub(crate) lane: Lane,
    /// Shutdown has begun: handlers can see it.
    pub(crate) draining: bool,
    /// Shutdown has come to the connections: answers close.
    pub(crate) closing: bool,
    /// Requests answered since the start.
    pub(crate) requests: u64,
    /// Handlers that panicked since the start.
    pub(crate) panics: u64,
    /// Requests refused since the start because the pool had no room for their work.
    pub(crate) refused_work: u64,
}

impl Workspace {
    pub(crate) fn new(unix_seconds: u64) -> Workspace {
        Workspace {
            output: Output::new(unix_seconds),
            pool: Pool::default(),
            decoded: String::new(),
            checked_host: Vec::new(),
            head_len: 0,
            #[cfg(feature = "json")]
            tape: crate::json::Tape::default(),
            lane: Lane::default(),
            draining: false,
            closing: false,
            requests: 0,
            panics: 0,
            refused_work: 0,
        }
    }
}

impl Workspace {
    /// Checks the grammar of a Host field, unless it was checked just before.
    #[inline]
    fn check_host(&mut self, host: Option<&[u8]>) -> Result<(), Reject> {
        match host {
            Some(host) if !is_same(host, &self.checked_host) => {
                target::check_host(host)?;
                self.checked_host.clear();
                self.checked_host.extend_from_slice(host);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether two short texts are the same, without a call for the most common lengths.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    const HALF: usize = 16;
    match one.len() {
        len if len != other.len() => false,
        8..HALF => one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk(),
        HALF..=32 => one.first_chunk::<HALF>() == other.first_chunk() && one.last_chunk::<HALF>() == other.last_chunk(),
        _ => one == other,
    }
}

/// What the machine needs from its driver to make a step.
pub(crate) struct Turn<'t, S: 'static> {
    pub(crate) workspace: &'t mut Workspace,
    pub(crate) routes: &'static Routes<S>,
    pub(crate) state: &'t mut S,
    pub(crate) limits: &'t Limits,
    pub(crate) now: Tick,
    /// The last row whose guards or handler ran.
    pub(crate) ran: Option<&'static Row<S>>,
}

/// What the driver has to do once it has transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Stay,
    /// Shut down the write side and go on reading: what comes is dropped.
    ShutdownWrite,
    /// Close the socket.
    Close(CloseReason),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Connection {
    phase: Phase,
    held: Held,
    unsent: Option<Box<Unsent>>,
    peer: Option<SocketAddr>,
    /// When the current wait began: accept, last answer, first byte of a head, shutdown of the write side.
    since: Tick,
    /// When the peer last took output, while `unsent` is there.
    unsent_since: Tick,
    /// The peer will send no more.
    eof: bool,
    /// A turn's budget ended before the held input did.
    more: bool,
    /// Something was answered on this connection.
    served: bool,
}

#[derive(Debug)]
enum Phase {
    /// Before the PROXY header that has to come first, or inside it.
    Proxy {
        begun: bool,
    },
    /// Between two requests, or inside a head, of which `scanned` bytes were looked at.
    Head {
        scanned: usize,
        begun: bool,
        empty_line: bool,
    },
    /// Inside a body that its handler waits for.
    Body(Box<Receiving>),
    /// Inside a body that nobody waits for; its request is answered.
    Skip(Box<Skipping>),
    /// Its handler took [`Later`](crate::Later); nothing of the answer is written.
    Waiting(Box<Waiting>),
    /// The head of an answer in parts is written.
    Streaming(Box<Streaming>),
    /// The last answer is written.
    Closing {
        reason: CloseReason,
        linger: bool,
    },
    /// The last answer is sent, our side is shut down, and the peer's input is dropped.
    Linger {
        reason: CloseReason,
        dropped: usize,
    },
    Closed(CloseReason),
}

/// A request whose head is checked and whose body is not whole. Both lie in `held`, so nothing is borrowed here.
#[derive(Debug)]
struct Receiving {
    head_len: usize,
    decision: Decision,
    body_bytes_max: usize,
    decoder: Decoder,
    /// Chunked: where the decoded content ends, from the start of the head.
    content_end: usize,
    pace: Pace,
}

#[derive(Debug)]
struct Skipping {
    /// Bytes of a body by length; none for chunks.
    left: Option<u64>,
    decoder: Decoder,
    pace: Pace,
}

/// A request that is answered later.
#[derive(Debug)]
struct Waiting {
    ticket: Arc<Ticket>,
    facts: Facts,
    linger: bool,
    body_unread: bool,
    /// A body that its answer does not wait for, none of which is passed over yet.
    unread: Unread,
    /// Field lines that its answer begins with, whatever it is.
    common: Box<[u8]>,
    /// The number of its row, if that has a mapper.
    row: Option<usize>,
}

impl Drop for Waiting {
    /// However it ends, who holds the ticket can know.
    fn drop(&mut self) {
        self.ticket.close();
    }
}

/// A request whose answer goes out in parts.
#[derive(Debug)]
struct Streaming {
    waiting: Waiting,
    /// Say something at least so often.
    keep_alive: Option<Duration>,
}

/// How fast a body comes.
#[derive(Clone, Copy, Debug)]
struct Pace {
    started: Tick,
    received: u64,
}

impl Pace {
    /// Grace, then the least rate, and the longest time in all.
    fn deadline(&self, limits: &Limits) -> Tick {
        let earned = self.received.saturating_mul(1000) / u64::from(limits.body_bytes_per_second_min.max(1));
        let by_rate = self.started.after(limits.body_grace).after(Duration::from_millis(earned));
        by_rate.min(self.started.after(limits.body_timeout))
    }
}

/// How far one request was served.
enum Served {
    /// It is answered, and so many bytes behind its head are used up.
    Body(usize),
    /// Its body is not whole. Lengths count from the start of the body.
    Waits(Box<Receiving>),
}

/// What is to be done about a body that its answer did not wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Nothing,
    Length(u64),
    Chunked,
    /// Too long, or perhaps never sent: the connection cannot go on.
    Close,
}

const BETWEEN: Phase = Phase::Head { scanned: 0, begun: false, empty_line: false };

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

// ---- the driver's side -------------------------------------------------------------------------------------------

impl Connection {
    pub(crate) fn new(peer: Option<SocketAddr>, now: Tick) -> Connection {
        Connection {
            phase: BETWEEN,
            held: Held::default(),
            unsent: None,
            peer,
            since: now,
            unsent_since: now,
            eof: false,
            more: false,
            served: false,
        }
    }

    /// A connection from a balancer that is trusted: before anything else it has to say whom it speaks for.
    pub(crate) fn behind_proxy(peer: Option<SocketAddr>, now: Tick) -> Connection {
        Connection { phase: Phase::Proxy { begun: false }, ..Connection::new(peer, now) }
    }

    /// The address the connection came from, or that its PROXY header named.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Where the next bytes go: into the loop's read buffer, or behind the partial message that is held.
    ///
    /// `read` has [`PADDING_LEN`] bytes more than are ever received into it; see `held`.
    #[inline]
    pub(crate) fn recv_space<'a>(&'a mut self, read: &'a mut [u8], pool: &mut Pool) -> &'a mut [u8] {
        if self.held.is_empty() {
            let len = read.len().saturating_sub(PADDING_LEN);
            return &mut read[..len];
        }
        self.held.recv_space(pool)
    }

    /// `n` bytes were received into [`recv_space`](Connection::recv_space). Not for `n == 0`; see `handle_eof`.
    #[inline]
    pub(crate) fn handle_recv<S>(&mut self, n: usize, read: &mut [u8], turn: &mut Turn<'_, S>) {
        if self.held.is_empty() {
            let mut requests_left = turn.limits.requests_per_turn;
            let start = self.serve_whole_ones(read, n, &mut requests_left, turn);
            if start == n && matches!(self.phase, Phase::Head { .. }) {
                return;
            }
            let kept = self.serve(read, start..n, n, requests_left, turn);
            if !kept.is_empty() {
                self.hold(&read[kept], turn);
            }
        } else {
            self.held.received(n);
            self.serve_held(n, turn);
        }
    }

    /// The peer will send nothing more. What it sent is still answered (RFC 9112 9.6).
    pub(crate) fn handle_eof<S>(&mut self, turn: &mut Turn<'_, S>) {
        self.eof = true;
        self.serve_held(0, turn);
    }

    /// Goes on with held input after a budget ended; see [`can_go_on`](Connection::can_go_on).
    pub(crate) fn handle_resume<S>(&mut self, turn: &mut Turn<'_, S>) {
        self.serve_held(0, turn);
    }

    /// The socket failed. After a last answer that is no news: the reason to close stays the one that it had.
    #[cold]
    pub(crate) fn handle_reset(&mut self) {
        self.phase = match self.phase {
            Phase::Linger { reason, .. } | Phase::Closed(reason) => Phase::Closed(reason),
            _ => Phase::Closed(CloseReason::PeerReset),
        };
    }

    /// Looks at the clock. Does nothing before [`deadline`](Connection::deadline).
    pub(crate) fn handle_timeout<S>(&mut self, turn: &mut Turn<'_, S>) {
        if self.deadline(turn.limits).is_none_or(|deadline| turn.now < deadline) {
            return;
        }
        if self.unsent.is_some() {
            self.phase = Phase::Closed(CloseReason::WriteTimeout);
            return;
        }
        match &self.phase {
            Phase::Proxy { begun: true } => self.refuse_late(Reject::HeadTimeout, turn),
            Phase::Proxy { begun: false } => self.phase = Phase::Closed(CloseReason::FirstByteTimeout),
            Phase::Head { begun: true, .. } => self.refuse_late(Reject::HeadTimeout, turn),
            Phase::Head { begun: false, .. } if self.served => self.phase = Phase::Closed(CloseReason::IdleTimeout),
            Phase::Head { begun: false, .. } => self.phase = Phase::Closed(CloseReason::FirstByteTimeout),
            Phase::Body(_) => self.refuse_late(Reject::BodyTimeout, turn),
            Phase::Skip(_) => {
                // Its answer is out, and must not be destroyed by a reset.
                self.phase = Phase::Closing { reason: CloseReason::Rejected(Reject::BodyTimeout), linger: true };
            }
            Phase::Waiting(_) => {
                self.answer_late(turn, Box::new(|_, response| Reject::AnswerTimeout.respond(response)))
            }
            Phase::Streaming(_) => {
                self.write_part(Part::Owned(KEEP_ALIVE_COMMENT.to_vec()), turn);
            }
            Phase::Closing { reason, .. } | Phase::Linger { reason, .. } => self.phase = Phase::Closed(*reason),
            Phase::Closed(_) => {}
        }
    }

    /// Offers the output of this turn, and what earlier turns left, to `send`, which returns how much it took.
    ///
    /// # Errors
    /// What `send` returned, except `WouldBlock`: then the rest waits here.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        output: &mut Output,
        now: Tick,
        mut send: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        if self.unsent.is_none() {
            if output.is_empty() {
                return Ok(());
            }
            let (sent, offered) = if output.is_plain() {
                (or_blocked(send(&[IoSlice::new(&output.bytes)]))?, output.bytes.len())
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                let filled = output.slices(&mut slices);
                let slices = &slices[..filled];
                (or_blocked(send(slices))?, slices.iter().map(|slice| slice.len()).sum())
            };
            if sent == output.len() {
                output.clear();
                return Ok(());
            }
            self.unsent_since = now;
            output.move_rest(sent, self.unsent.insert(Box::default()));
            if sent < offered {
                return Ok(());
            }
            // More segments than one call takes, and the socket is not full: no event would come to send the rest.
        }
        self.transmit_unsent(output, now, send)
    }

    #[cold]
    fn transmit_unsent(
        &mut self,
        output: &mut Output,
        now: Tick,
        mut send: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let Some(unsent) = &mut self.unsent else { return Ok(()) };
        output.move_rest(0, unsent);
        while !unsent.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let filled = unsent.slices(&mut slices);
            let sent = or_blocked(send(&slices[..filled]))?;
            if sent == 0 {
                return Ok(());
            }
            unsent.advance(sent);
            self.unsent_since = now;
        }
        self.unsent = None;
        self.restart_wait(now);
        Ok(())
    }

    /// While output waited the peer was perhaps not read, so its time for the next step begins when that ends. No step
    /// makes output before it is complete, so this happens once for each at most.
    fn restart_wait(&mut self, now: Tick) {
        match &mut self.phase {
            Phase::Proxy { .. } | Phase::Head { .. } => self.since = now,
            Phase::Body(receiving) => receiving.pace.started = now,
            Phase::Skip(skipping) => skipping.pace.started = now,
            Phase::Waiting(_) | Phase::Streaming(_) => {}
            Phase::Closing { .. } | Phase::Linger { .. } | Phase::Closed(_) => {}
        }
    }

    /// What to do now that output was offered to the socket.
    #[inline]
    pub(crate) fn next(&mut self, now: Tick) -> Next {
        match self.phase {
            Phase::Closed(reason) => Next::Close(reason),
            Phase::Closing { reason, linger } if self.unsent.is_none() => {
                if !linger || self.eof {
                    self.phase = Phase::Closed(reason);
                    return Next::Close(reason);
                }
                self.phase = Phase::Linger { reason, dropped: 0 };
                self.since = now;
                Next::ShutdownWrite
            }
            Phase::Streaming(ref streaming) => {
                streaming.waiting.ticket.set_unsent(self.unsent_len());
                Next::Stay
            }
            _ => Next::Stay,
        }
    }

    /// When [`handle_timeout`](Connection::handle_timeout) has something to do, unless something happens before.
    #[inline]
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<Tick> {
        if self.unsent.is_some() {
            return Some(self.unsent_since.after(limits.write_timeout));
        }
        match &self.phase {
            Phase::Head { begun: true, .. } | Phase::Proxy { begun: true } => {
                Some(self.since.after(limits.head_timeout))
            }
            Phase::Head { begun: false, .. } if self.served => Some(self.since.after(limits.idle_timeout)),
            Phase::Head { begun: false, .. } | Phase::Proxy { begun: false } => {
                Some(self.since.after(limits.first_byte_timeout))
            }
            Phase::Body(receiving) => Some(receiving.pace.deadline(limits)),
            Phase::Skip(skipping) => Some(skipping.pace.deadline(limits)),
            Phase::Waiting(_) => Some(self.since.after(limits.answer_timeout)),
            Phase::Streaming(streaming) => streaming.keep_alive.map(|pause| self.since.after(pause)),
            Phase::Linger { .. } => Some(self.since.after(limits.linger_timeout)),
            Phase::Closing { .. } | Phase::Closed(_) => None,
        }
    }

    /// Whether input is welcome. Not while too much output waits, nor while held input does.
    #[inline]
    pub(crate) fn wants_read(&self, limits: &Limits) -> bool {
        match self.phase {
            Phase::Head { .. } | Phase::Body(_) | Phase::Skip(_) | Phase::Proxy { .. } => {
                !self.eof && !self.more && self.unsent_len() < limits.output_bytes_max
            }
            Phase::Linger { .. } => true,
            Phase::Waiting(_) | Phase::Streaming(_) | Phase::Closing { .. } | Phase::Closed(_) => false,
        }
    }

    /// Whether output waits for the socket.
    #[inline]
    pub(crate) fn wants_write(&self) -> bool {
        self.unsent.is_some()
    }

    /// Whether held input can be served now: a budget ended, and the peer has taken enough of its answers.
    #[inline]
    pub(crate) fn can_go_on(&self, limits: &Limits) -> bool {
        self.more && self.unsent_len() <= limits.output_bytes_max / 2
    }

    /// Whether it waits for a request of which nothing has come, and owes nothing.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Head { begun: false, .. } | Phase::Proxy { begun: false })
            && self.held.is_empty()
            && self.unsent.is_none()
    }

    /// Whether it waits for an answer, or for more of one, that is made elsewhere.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_) | Phase::Streaming(_))
    }

    /// The number of the ticket that it waits for, and whether its answer has begun.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn ticket_number(&self) -> Option<(u64, bool)> {
        match &self.phase {
            Phase::Waiting(waiting) => Some((waiting.ticket.number, false)),
            Phase::Streaming(streaming) => Some((streaming.waiting.ticket.number, true)),
            _ => None,
        }
    }

    /// Since when it waits for a request: its last answer, or accept.
    pub(crate) fn idle_since(&self) -> Option<Tick> {
        self.is_idle().then_some(self.since)
    }

    /// Bytes of memory held beside the struct itself.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.capacity() + self.unsent.as_ref().map_or(0, |unsent| unsent.held_bytes())
    }

    /// The part of it that came from the pool.
    pub(crate) fn input_capacity(&self) -> usize {
        self.held.capacity()
    }

    /// Whether a budget stopped it: input that could be served is held.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn is_behind(&self) -> bool {
        self.more
    }

    /// Gives its memory back to the loop. The last call.
    pub(crate) fn release(&mut self, pool: &mut Pool) {
        std::mem::take(&mut self.held).recycle(pool);
    }

    fn unsent_len(&self) -> usize {
        self.unsent.as_ref().map_or(0, |unsent| unsent.len())
    }
}

/// A send that would block took nothing.
#[inline]
fn or_blocked(sent: io::Result<usize>) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        sent => sent,
    }
}

/// The most segments of one `writev`.
const SLICES_MAX: usize = 16;

// ---- from bytes to requests --------------------------------------------------------------------------------------

impl Connection {
    /// Serves from the connection's own buffer. `fresh` bytes of it are new.
    fn serve_held<S>(&mut self, fresh: usize, turn: &mut Turn<'_, S>) {
        let mut held = std::mem::take(&mut self.held);
        let filled = held.range();
        let kept = self.serve(held.buffer(), filled, fresh, turn.limits.requests_per_turn, turn);
        if kept.is_empty() {
            held.recycle(&mut turn.workspace.pool);
        } else {
            held.keep(kept);
            self.held = held;
        }
    }

    /// Takes over the unfinished message at the end of the read buffer.
    fn hold<S>(&mut self, bytes: &[u8], turn: &mut Turn<'_, S>) {
        self.held = Held::copy_of(bytes, &mut turn.workspace.pool);
    }

    /// Serves `buffer[filled]`, and returns what of it has to be kept for later.
    fn serve<S>(
        &mut self,
        buffer: &mut [u8],
        filled: Range<usize>,
        fresh: usize,
        mut requests_left: usize,
        turn: &mut Turn<'_, S>,
    ) -> Range<usize> {
        let Range { mut start, mut end } = filled;
        self.more = false;
        match &mut self.phase {
            Phase::Body(receiving) => receiving.pace.received += fresh as u64,
            Phase::Skip(skipping) => skipping.pace.received += fresh as u64,
            _ => {}
        }
        loop {
            match &mut self.phase {
                Phase::Head { scanned, begun, empty_line } => {
                    if start == end {
                        if self.eof {
                            self.phase = Phase::Closing { reason: CloseReason::PeerClosed, linger: false };
                        }
                        break;
                    }
                    let output_len = turn.workspace.output.len() + self.unsent.as_ref().map_or(0, |u| u.len());
                    if requests_left == 0 || output_len > turn.limits.output_bytes_max {
                        self.more = true;
                        break;
                    }
                    let window = &buffer[start..end];
                    if window[0] == b'\r' && !*empty_line && !*begun {
                        // One empty line before a request is skipped (RFC 9112 2.2); it begins none.
                        match window.get(1) {
                            Some(b'\n') => {
                                *empty_line = true;
                                start += 2;
                                continue;
                            }
                            None if !self.eof => break,
                            _ => {}
                        }
                    }
                    match head::scan(window, *scanned, turn.limits.head_bytes_max) {
                        Ok(Some(head_len)) => {
                            requests_left -= 1;
                            (start, end) = self.serve_request(buffer, start, end, head_len, turn);
                        }
                        Ok(None) if self.eof => self.refuse_window(Reject::Truncated, &buffer[start..end], turn),
                        Ok(None) => {
                            *scanned = head::scanned_len(window);
                            if !*begun {
                                *begun = true;
                                self.since = turn.now;
                            }
                            break;
                        }
                        Err(reject) => self.refuse_window(reject, &buffer[start..end], turn),
                    }
                }
                Phase::Body(_) => {
                    let whole;
                    (start, end, whole) = self.serve_body(buffer, start, end, turn);
                    if !whole {
                        break;
                    }
                }
                Phase::Skip(_) => {
                    start = self.skip(buffer, start, end, turn);
                    if start == end && matches!(self.phase, Phase::Skip(_)) {
                        if self.eof {
                            self.phase = Phase::Closing { reason: CloseReason::PeerClosed, linger: false };
                        }
                        break;
                    }
                }
                Phase::Waiting(_) | Phase::Streaming(_) => {
                    if self.eof && !turn.limits.answer_half_closed {
                        self.phase = Phase::Closed(CloseReason::PeerLeft);
                    }
                    break;
                }
                Phase::Proxy { begun } => {
                    if start == end {
                        if self.eof {
                            self.phase = Phase::Closing { reason: CloseReason::PeerClosed, linger: false };
                        }
                        break;
                    }
                    match proxy::parse(&buffer[start..end]) {
                        Ok(Some(Proxied { len, source })) => {
                            start += len;
                            self.peer = source.or(self.peer);
                            self.phase = BETWEEN;
                        }
                        Ok(None) if self.eof => self.refuse(Reject::Truncated, false, turn),
                        Ok(None) => {
                            if !*begun {
                                *begun = true;
                                self.since = turn.now;
                            }
                            break;
                        }
                        Err(reject) => self.refuse(reject, false, turn),
                    }
                }
                Phase::Closing { reason, linger } => {
                    // Input behind the last request: closing now would answer it with a reset.
                    *linger |= start < end && *reason != CloseReason::PeerClosed;
                    start = end;
                    break;
                }
                Phase::Linger { reason, dropped } => {
                    *dropped += end - start;
                    if self.eof || *dropped > turn.limits.linger_bytes_max {
                        self.phase = Phase::Closed(*reason);
                    }
                    start = end;
                    break;
                }
                Phase::Closed(_) => {
                    start = end;
                    break;
                }
            }
        }
        start..end
    }

    /// Whole and ordinary requests that stand one behind the other at the start of `buffer[..end]`. Returns where they
    /// end.
    ///
    /// All that most connections ever do, each head parsed once and nothing scanned before. Whatever else there is, be it
    /// partial or malformed, [`serve`](Connection::serve) takes up where this leaves off.
    #[inline(always)]
    fn serve_whole_ones<S>(
        &mut self,
        buffer: &mut [u8],
        end: usize,
        requests_left: &mut usize,
        turn: &mut Turn<'_, S>,
    ) -> usize {
        let mut start = 0;
        while let Some(&first) = buffer[start..end].first()
            && matches!(self.phase, Phase::Head { scanned: 0, begun: false, .. })
            && *requests_left > 0
            && turn.workspace.output.len() <= turn.limits.output_bytes_max
            && self.unsent.is_none()
        {
            // Other methods have bodies, most often.
            let used = match first {
                b'G' | b'H' => self.serve_without_body(&buffer[start..end], turn),
                _ => self.serve_with_body(&mut buffer[start..], end - start, turn),
            };
            let Some(used) = used else { break };
            start += used;
            *requests_left -= 1;
        }
        start
    }

    /// A request without a body, from the window that it begins. Returns its length, or `None` if it is not that.
    #[inline(always)]
    fn serve_without_body<S>(&mut self, window: &[u8], turn: &mut Turn<'_, S>) -> Option<usize> {
        let mut slots = [const { MaybeUninit::uninit() }; SLOTS_READY];
        let ready = SLOTS_READY.min(turn.limits.fields_max);
        let mut known = Known::default();
        let (head_len, head) = head::parse_at_once(window, &mut slots[..ready], &mut known, turn.limits)?;
        let decision = framing::decide(head.version, &known).ok()?;
        if decision.framing != Framing::NoBody {
            return None;
        }
        turn.workspace.check_host(known.host).ok()?;
        let (plain, unusual);
        let target = if target::is_plain(&head, known.host) {
            plain = Target::plain(head.target);
            &plain
        } else {
            unusual = target::read(&head, known.host).ok()?;
            &unusual
        };
        let asked = self.received(&head, &known, target, &decision, turn);
        self.serve_asked(&asked, &decision, &mut [], 0, turn);
        Some(head_len)
    }

    /// A request whose body, by length, is in the window as well. Returns the length of both, or `None` if it is not
    /// that. The head is split off first, so that it can stay borrowed while the body is changed.
    #[inline(never)]
    fn serve_with_body<S>(&mut self, buffer: &mut [u8], available: usize, turn: &mut Turn<'_, S>) -> Option<usize> {
        let guess = turn.workspace.head_len;
        let head_len = head::find_blank_line(&buffer[..available], guess, turn.limits.head_bytes_max)?;
        let received = available - head_len;
        let (head_bytes, rest) = buffer.split_at_mut(head_len);
        let mut slots = [const { MaybeUninit::uninit() }; SLOTS_READY];
        let ready = SLOTS_READY.min(turn.limits.fields_max);
        let mut known = Known::default();
        let (parsed_len, head) = head::parse_at_once(head_bytes, &mut slots[..ready], &mut known, turn.limits)?;
        turn.workspace.head_len = parsed_len;
        let decision = framing::decide(head.version, &known).ok()?;
        let is_whole = match decision.framing {
            Framing::NoBody => true,
            Framing::Length(len) => len <= received as u64,
            Framing::Chunked => false,
        };
        if parsed_len != head_len || !is_whole {
            return None;
        }
        turn.workspace.check_host(known.host).ok()?;
        let (plain, unusual);
        let target = if target::is_plain(&head, known.host) {
            plain = Target::plain(head.target);
            &plain
        } else {
            unusual = target::read(&head, known.host).ok()?;
            &unusual
        };
        let asked = self.received(&head, &known, target, &decision, turn);
        match self.serve_asked(&asked, &decision, rest, received, turn) {
            Served::Body(used) => Some(head_len + used),
            Served::Waits(receiving) => {
                self.wait_for_body(receiving, head_len);
                Some(0)
            }
        }
    }

    fn wait_for_body(&mut self, mut receiving: Box<Receiving>, head_len: usize) {
        receiving.head_len = head_len;
        receiving.content_end += head_len;
        self.phase = Phase::Body(receiving);
    }

    /// One request whose head is whole. Returns the bounds of what is left in the buffer.
    fn serve_request<S>(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        end: usize,
        head_len: usize,
        turn: &mut Turn<'_, S>,
    ) -> (usize, usize) {
        let received = end - start - head_len;
        let (head_bytes, rest) = buffer[start..].split_at_mut(head_len);
        let served = with_head(head_bytes, turn.limits, |parsed| match parsed {
            Ok(Parsed { head, known, target, decision }) => {
                let asked = self.received(&head, &known, &target, &decision, turn);
                self.serve_asked_seldom(&asked, &decision, rest, received, turn)
            }
            Err((reject, head_only)) => self.refused(reject, head_only, turn),
        });
        match served {
            Served::Body(used) => (start + head_len + used, end),
            Served::Waits(receiving) => {
                let kept_end = match receiving.decision.framing {
                    Framing::Chunked => start + head_len + receiving.content_end,
                    _ => end,
                };
                self.wait_for_body(receiving, head_len);
                (start, kept_end)
            }
        }
    }

    /// As [`serve_asked`](Connection::serve_asked), which is inlined where requests are whole on arrival.
    #[inline(never)]
    fn serve_asked_seldom<S>(
        &mut self,
        asked: &Received<'_>,
        decision: &Decision,
        rest: &mut [u8],
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        self.serve_asked(asked, decision, rest, received, turn)
    }

    /// One request whose head is parsed: route, guards, body, handler. `rest` follows the head, and `received` bytes
    /// of it are there.
    #[inline(always)]
    fn serve_asked<S>(
        &mut self,
        asked: &Received<'_>,
        decision: &Decision,
        rest: &mut [u8],
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let request = Request(asked);
        let facts = self.facts(asked.head, decision, turn);
        let mut spans = Spans::default();
        let row = match find(request, &mut spans, turn.routes) {
            Ok(Found::Row(row)) => row,
            Ok(missing) if turn.routes.has_options() => {
                return self.answer_missing(missing, request, decision, facts, received, turn);
            }
            Ok(missing) => {
                return self.answer_early(decision, facts, received, turn, |response| match missing {
                    Found::Options(allow) => response.options(allow),
                    Found::MethodNotAllowed(allow) => response.method_not_allowed(allow),
                    _ => response.no_route(),
                });
            }
            Err(reject) => return self.refused(reject, facts.head_only, turn),
        };
        if let Some(cors) = row.cors
            && !turn.workspace.output.has_common()
        {
            return self.serve_with_cors(cors(), row, asked, decision, rest, received, turn);
        }
        let (check, call) = match &row.answer {
            Answer::Handler { check, call } => (*check, *call),
            Answer::Constant(constant) => {
                return self.answer_early(decision, facts, received, turn, |response| response.constant(constant));
            }
        };
        turn.ran = Some(row);
        let wants_body = match check {
            None => false,
            Some(check) => {
                let mut spans = spans;
                let params = params(row, request.0.target, &mut spans, &mut turn.workspace.decoded);
                let state = &mut *turn.state;
                match catch_unwind(AssertUnwindSafe(|| check(&request, &params, state))) {
                    Ok(Ok(wants_body)) => wants_body,
                    Ok(Err(rejection)) => {
                        return self.reject_early(row.errors, rejection, decision, facts, received, turn);
                    }
                    Err(_panic) => return self.answer_panic(row.errors, facts, turn),
                }
            }
        };
        if !wants_body {
            let unread = unread(decision, turn.limits);
            let facts = Facts { persistent: facts.persistent && unread != Unread::Close, ..facts };
            let wish = run(row, call, request, &mut spans, (&mut [], 0), facts, turn);
            self.finish(wish, facts, decision.framing != Framing::NoBody, unread == Unread::Close, turn);
            return self.pass_over(unread, received, turn);
        }
        let body_bytes_max = row.body_bytes_max.unwrap_or(turn.limits.body_bytes_max);
        let mut decoder = Decoder::new();
        // Where the content ends, counted from the start of the body, and, if the body is whole, where it ends.
        let (content_len, body_len) = match decision.framing {
            Framing::NoBody => (0, Some(0)),
            Framing::Length(len) => match usize::try_from(len) {
                Ok(len) if len <= body_bytes_max => (len, (len <= received).then_some(len)),
                _ => return self.refused_by(row.errors, Reject::BodyTooLarge, facts.head_only, turn),
            },
            Framing::Chunked => match decoder.decode(&mut rest[..received], 0, 0, body_bytes_max, turn.limits) {
                Ok(decoded) => (decoded.content_end, decoded.done.then_some(decoded.raw_start)),
                Err(reject) => return self.refused_by(row.errors, reject, facts.head_only, turn),
            },
        };
        let Some(body_len) = body_len else {
            if decision.expects_continue && received == 0 {
                if has_no_room_for(content_len, turn) {
                    return self.refused_by(row.errors, Reject::BodiesTooLarge, facts.head_only, turn);
                }
                turn.workspace.output.bytes.extend_from_slice(CONTINUE);
            }
            let pace = Pace { started: turn.now, received: received as u64 };
            let receiving =
                Receiving { head_len: 0, decision: *decision, body_bytes_max, decoder, content_end: content_len, pace };
            return Served::Waits(Box::new(receiving));
        };
        let wish = run(row, call, request, &mut spans, (rest, content_len), facts, turn);
        self.finish(wish, facts, false, false, turn);
        Served::Body(body_len)
    }

    /// Goes on with a body. Returns the bounds of what is left, and whether there is something to go on with.
    fn serve_body<S>(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        end: usize,
        turn: &mut Turn<'_, S>,
    ) -> (usize, usize, bool) {
        let Phase::Body(receiving) = &mut self.phase else { return (start, end, true) };
        let Receiving { head_len, decision, body_bytes_max, .. } = **receiving;
        let whole = match decision.framing {
            Framing::NoBody => Some((0, head_len)),
            Framing::Length(len) => {
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                (len <= end - start - head_len).then(|| (len, head_len + len))
            }
            Framing::Chunked => {
                let content_end = receiving.content_end;
                let window = &mut buffer[start..end];
                match receiving.decoder.decode(window, content_end, content_end, body_bytes_max, turn.limits) {
                    Ok(decoded) if decoded.done => Some((decoded.content_end - head_len, decoded.raw_start)),
                    Ok(decoded) => {
                        receiving.content_end = decoded.content_end;
                        None
                    }
                    Err(reject) => {
                        self.refuse_body(reject, &mut buffer[start..end], head_len, turn);
                        return (start, end, true);
                    }
                }
            }
        };
        let Some((content_len, used)) = whole else {
            if self.eof {
                self.refuse_body(Reject::Truncated, &mut buffer[start..end], head_len, turn);
                return (start, end, true);
            }
            let kept_end = if decision.framing == Framing::Chunked { start + receiving.content_end } else { end };
            if has_no_room_for(end - start, turn) {
                self.refuse_body(Reject::BodiesTooLarge, &mut buffer[start..end], head_len, turn);
                return (start, end, true);
            }
            return (start, kept_end, false);
        };
        self.phase = BETWEEN;
        let (head_bytes, rest) = buffer[start..].split_at_mut(head_len);
        with_head(head_bytes, turn.limits, |parsed| {
            // The head was parsed and routed before with the same outcome; only the borrows are new.
            let Ok(Parsed { head, known, target, decision }) = parsed else { return };
            let asked = self.received(&head, &known, &target, &decision, turn);
            let request = Request(&asked);
            let facts = self.facts(asked.head, &decision, turn);
            let mut spans = Spans::default();
            let Ok(Found::Row(row)) = find(request, &mut spans, turn.routes) else { return };
            let Answer::Handler { call, .. } = &row.answer else { return };
            turn.ran = Some(row);
            if let Some(cors) = row.cors {
                begin_cors(cors(), request, &mut turn.workspace.output);
            }
            let wish = run(row, *call, request, &mut spans, (rest, content_len), facts, turn);
            self.finish(wish, facts, false, false, turn);
            if row.cors.is_some() {
                turn.workspace.output.clear_common();
            }
        });
        (start + used, end, true)
    }

    /// Drops what is there of a body that nobody wants.
    fn skip<S>(&mut self, buffer: &mut [u8], start: usize, end: usize, turn: &mut Turn<'_, S>) -> usize {
        let Phase::Skip(skipping) = &mut self.phase else { return start };
        if let Some(left) = &mut skipping.left {
            let take = usize::try_from(*left).unwrap_or(usize::MAX).min(end - start);
            *left -= take as u64;
            if *left == 0 {
                self.go_between(turn.now);
            }
            return start + take;
        }
        match skipping.decoder.decode(&mut buffer[start..end], 0, 0, turn.limits.linger_bytes_max, turn.limits) {
            Ok(decoded) if decoded.done => {
                self.go_between(turn.now);
                start + decoded.raw_start
            }
            Ok(_) => end,
            Err(reject) => {
                // Its answer is out, so there is none for this.
                self.phase = Phase::Closing { reason: CloseReason::Rejected(reject), linger: true };
                end
            }
        }
    }

    /// The next request may begin. What was skipped was no idle time.
    fn go_between(&mut self, now: Tick) {
        self.phase = BETWEEN;
        self.since = now;
    }

    /// Goes past a body that was answered before it was read.
    #[inline]
    fn pass_over<S>(&mut self, unread: Unread, received: usize, turn: &mut Turn<'_, S>) -> Served {
        if unread == Unread::Nothing {
            return Served::Body(0);
        }
        if let Phase::Waiting(waiting) = &mut self.phase {
            waiting.unread = unread;
        }
        if !matches!(self.phase, Phase::Head { .. }) {
            return Served::Body(0);
        }
        let left = match unread {
            Unread::Nothing | Unread::Close => return Served::Body(0),
            Unread::Length(len) if len <= received as u64 => return Served::Body(len as usize),
            Unread::Length(len) if planted!("connection") => Some(len - received as u64),
            Unread::Length(len) => Some(len),
            Unread::Chunked => None,
        };
        let pace = Pace { started: turn.now, received: received as u64 };
        self.phase = Phase::Skip(Box::new(Skipping { left, decoder: Decoder::new(), pace }));
        Served::Body(0)
    }
}

// ---- from requests to answers ------------------------------------------------------------------------------------

/// A head that passed every rule that needs no route.
struct Parsed<'h> {
    head: Head<'h>,
    known: Known<'h>,
    target: Target<'h>,
    decision: Decision,
}

/// Parses a head and hands it on; or the rule it breaks, and whether it is a HEAD request's.
#[inline]
fn with_head<R>(bytes: &mut [u8], limits: &Limits, then: impl FnOnce(Result<Parsed<'_>, (Reject, bool)>) -> R) -> R {
    let mut slots = [const { MaybeUninit::uninit() }; SLOTS_READY];
    let ready = SLOTS_READY.min(limits.fields_max);
    match head::parse(bytes, &mut slots[..ready], limits) {
        Ok((head, known)) => then(understand(head, &known)),
        Err(reject) => with_unusual_head(reject, bytes, limits, then),
    }
}

/// More fields than are ready, a version that has to be lowered, or a head that is refused.
#[cold]
fn with_unusual_head<R>(
    reject: Reject,
    bytes: &mut [u8],
    limits: &Limits,
    then: impl FnOnce(Result<Parsed<'_>, (Reject, bool)>) -> R,
) -> R {
    let lowered = reject == Reject::VersionUnsupported && head::lower_version(bytes);
    if lowered || (reject == Reject::TooManyFields && limits.fields_max > SLOTS_READY) {
        let mut slots = Vec::new();
        slots.resize_with(limits.fields_max, MaybeUninit::uninit);
        return match head::parse(bytes, &mut slots, limits) {
            Ok((head, known)) => then(understand(head, &known)),
            Err(reject) => then(Err((reject, bytes.starts_with(b"HEAD ")))),
        };
    }
    then(Err((reject, bytes.starts_with(b"HEAD "))))
}

#[inline]
fn understand<'h>(head: Head<'h>, known: &Known<'h>) -> Result<Parsed<'h>, (Reject, bool)> {
    let refused = |reject| (reject, head.method == Method::Head);
    if let Some(host) = known.host {
        target::check_host(host).map_err(refused)?;
    }
    let target = target::read(&head, known.host).map_err(refused)?;
    let decision = framing::decide(head.version, known).map_err(refused)?;
    Ok(Parsed { head, known: *known, target, decision })
}

#[inline]
fn find<S>(request: Request<'_>, spans: &mut Spans, routes: &'static Routes<S>) -> Result<Found<S>, Reject> {
    let &Target { form, path, escaped, .. } = request.0.target;
    match form {
        Form::Origin | Form::Absolute => Ok(routes.find(request.0.head.method, path, escaped, spans)),
        Form::Asterisk => Ok(Found::Options(routes.methods())),
        Form::Authority => Err(Reject::Connect),
    }
}

/// The path parameters: where they stand in the path, or, if they are escaped, decoded one behind the other.
#[inline]
fn params<'w, S>(row: &Row<S>, target: &Target<'w>, spans: &'w mut Spans, decoded: &'w mut String) -> Params<'w> {
    if !target.escaped {
        return Params { text: target.path, spans };
    }
    decode_params(row.pattern, target.path, spans, decoded)
}

#[cold]
fn decode_params<'w>(pattern: &str, path: &str, spans: &'w mut Spans, decoded: &'w mut String) -> Params<'w> {
    let mut bytes = std::mem::take(decoded).into_bytes();
    bytes.clear();
    for (span, name) in spans.iter_mut().zip(pattern.split('{').skip(1)) {
        let raw = path.get(span.0 as usize..span.1 as usize).unwrap_or_default();
        let start = bytes.len() as u32;
        if name.starts_with('*') {
            // A decoded %2F could not be told from a slash.
            bytes.extend_from_slice(raw.as_bytes());
        } else {
            target::decode(raw, &mut bytes);
        }
        *span = (start, bytes.len() as u32);
    }
    // `target::read` refused paths that do not decode to UTF-8.
    *decoded = String::from_utf8(bytes).unwrap_or_default();
    Params { text: decoded, spans }
}

/// What a handler did to its connection.
enum Wish {
    Stay,
    Close,
    Panicked,
    /// The answer comes later, for the ticket that was taken from the lane.
    Wait,
}

/// Calls the handler of a row. Whatever it does, there is one answer in the output afterwards.
#[inline(always)]
fn run<S>(
    row: &Row<S>,
    call: Call<S>,
    request: Request<'_>,
    spans: &mut Spans,
    (padded, len): (&mut [u8], usize),
    facts: Facts,
    turn: &mut Turn<'_, S>,
) -> Wish {
    let Workspace {
        output,
        decoded,
        #[cfg(feature = "json")]
        tape,
        lane,
        ..
    } = &mut *turn.workspace;
    let params = params(row, request.0.target, spans, decoded);
    let mark = output.mark();
    let mut asked = Asked::Nothing;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let body = Body {
            padded,
            len,
            #[cfg(feature = "json")]
            tape,
        };
        let writer = Response::new(output, &mut asked, facts);
        call(Parts { request, params: &params, body, writer, lane: &mut *lane }, turn.state).err()
    }));
    match outcome {
        Ok(None) if asked == Asked::Nothing => Wish::Stay,
        Ok(None) if asked == Asked::Later => Wish::Wait,
        Ok(None) if asked == Asked::Close => Wish::Close,
        Ok(None) => say_again(row.errors, asked, turn.state, output, mark, facts),
        Ok(Some(rejection)) => {
            lane.void();
            output.roll_back(mark);
            write_rejection(row.errors, rejection, turn.state, output, facts)
        }
        Err(_panic) => {
            lane.void();
            output.roll_back(mark);
            write_refusal(row.errors, Reject::HandlerFailed, facts.head_only, turn.state, output);
            Wish::Panicked
        }
    }
}

/// Answers with a refusal, in the words of a mapper if there is one.
#[cold]
#[inline(never)]
fn write_rejection<S>(
    errors: Option<MapErrors<S>>,
    rejection: Rejection,
    state: &mut S,
    output: &mut Output,
    facts: Facts,
) -> Wish {
    let Some(errors) = errors else {
        let _ = rejection.respond(Response::new(output, &mut Asked::Nothing, facts));
        return Wish::Stay;
    };
    match errors(state, rejection, Refusing { output, facts }) {
        Mapped::Answered => Wish::Stay,
        Mapped::Closing => Wish::Close,
        Mapped::Panicked => {
            write_refusal(None, Reject::HandlerFailed, facts.head_only, state, output);
            Wish::Panicked
        }
    }
}

/// Whatever else a handler's answer is: a refusal, which the mapper says in its own words too.
#[cold]
#[inline(never)]
fn say_again<S>(
    errors: Option<MapErrors<S>>,
    asked: Asked,
    state: &mut S,
    output: &mut Output,
    mark: Mark,
    facts: Facts,
) -> Wish {
    let source = output.source.take();
    let rejection = match asked {
        Asked::Rejected => source.and_then(|source| source.downcast().ok()).map(|rejection| *rejection),
        Asked::Refused(status, sentence) if errors.is_some() => Some(Rejection::text(status, sentence)),
        _ => None,
    };
    match (errors, rejection) {
        (Some(errors), Some(rejection)) => {
            output.roll_back(mark);
            write_rejection(Some(errors), rejection, state, output, facts)
        }
        _ => Wish::Stay,
    }
}

/// A final answer that names a rule.
#[cold]
#[inline(never)]
fn write_refusal<S>(errors: Option<MapErrors<S>>, reject: Reject, head_only: bool, state: &mut S, output: &mut Output) {
    let facts = Facts { head_only, http10: false, persistent: false };
    write_rejection(errors, Rejection::from(reject), state, output, facts);
}

/// From here on, whatever answers the request carries its policy.
#[cold]
#[inline(never)]
fn begin_cors(cors: &dyn CrossOrigin, request: Request<'_>, output: &mut Output) {
    cors.write(request, None, output.common_mut());
    output.set_common();
}

/// Whether the bodies of all connections together are beyond their bound, and this one counts among them: what fits
/// into the read buffer does not, so that those who hold large bodies cannot keep others from sending small ones.
#[cold]
fn has_no_room_for<S>(len: usize, turn: &Turn<'_, S>) -> bool {
    len > READ_BUFFER_LEN && turn.workspace.pool.held_bytes() > turn.limits.bodies_bytes_max
}

/// A body that its answer does not wait for is skipped if that is cheap and certain, else the connection ends.
fn unread(decision: &Decision, limits: &Limits) -> Unread {
    match decision.framing {
        Framing::NoBody | Framing::Length(0) => Unread::Nothing,
        // Told a final status, such a client may send the body or not: what comes next could be either.
        _ if decision.expects_continue => Unread::Close,
        Framing::Length(len) if len > limits.linger_bytes_max as u64 => Unread::Close,
        Framing::Length(len) => Unread::Length(len),
        Framing::Chunked => Unread::Chunked,
    }
}

impl Connection {
    #[inline(always)]
    fn received<'h, S>(
        &self,
        head: &'h Head<'h>,
        known: &'h Known<'h>,
        target: &'h Target<'h>,
        decision: &Decision,
        turn: &Turn<'_, S>,
    ) -> Received<'h> {
        let (has_body, draining, now_ms) = (decision.has_body(), turn.workspace.draining, turn.now.0);
        Received { head, known, target, has_body, peer: self.peer, draining, now_ms }
    }

    #[inline]
    fn facts<S>(&self, head: &Head<'_>, decision: &Decision, turn: &Turn<'_, S>) -> Facts {
        Facts {
            head_only: head.method == Method::Head,
            http10: head.version == Version::Http10,
            persistent: decision.persistent && !turn.workspace.closing,
        }
    }

    /// Answers without the body, and goes past it.
    #[inline]
    fn answer_early<S>(
        &mut self,
        decision: &Decision,
        facts: Facts,
        received: usize,
        turn: &mut Turn<'_, S>,
        write: impl FnOnce(Response<'_>) -> Sent<'_>,
    ) -> Served {
        let unread = unread(decision, turn.limits);
        let facts = Facts { persistent: facts.persistent && unread != Unread::Close, ..facts };
        let mut asked = Asked::Nothing;
        let _ = write(Response::new(&mut turn.workspace.output, &mut asked, facts));
        let wish = if asked == Asked::Close { Wish::Close } else { Wish::Stay };
        self.finish(wish, facts, unread != Unread::Nothing, unread == Unread::Close, turn);
        self.pass_over(unread, received, turn)
    }

    /// Answers with a refusal, without the body, and goes past it.
    #[cold]
    #[inline(never)]
    fn reject_early<S>(
        &mut self,
        errors: Option<MapErrors<S>>,
        rejection: Rejection,
        decision: &Decision,
        facts: Facts,
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let unread = unread(decision, turn.limits);
        let facts = Facts { persistent: facts.persistent && unread != Unread::Close, ..facts };
        let wish = write_rejection(errors, rejection, turn.state, &mut turn.workspace.output, facts);
        self.finish(wish, facts, unread != Unread::Nothing, unread == Unread::Close, turn);
        self.pass_over(unread, received, turn)
    }

    /// Answers a request that no row is for, in a table that has a mapper or a policy.
    #[cold]
    #[inline(never)]
    fn answer_missing<S>(
        &mut self,
        missing: Found<S>,
        request: Request<'_>,
        decision: &Decision,
        facts: Facts,
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let Target { path, escaped, .. } = request.0.target;
        let preflight = cors::preflighted(request);
        let lines = turn.workspace.output.common_mut();
        if let Some((cors, methods)) = turn.routes.cors(preflight.unwrap_or(request.method()), path, *escaped) {
            let is_preflight = preflight.is_some() && matches!(missing, Found::Options(_));
            cors.write(request, is_preflight.then_some(methods), lines);
        }
        let rejection = match missing {
            Found::MethodNotAllowed(allow) => {
                // With the lines that stay whatever a mapper does, for a 405 without it breaks a rule.
                response::write_methods("Allow", allow, lines);
                Some(Rejection::text(Status::METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED))
            }
            Found::NotFound => Some(Rejection::text(Status::NOT_FOUND, NO_ROUTE)),
            Found::Options(_) | Found::Row(_) => None,
        };
        turn.workspace.output.set_common();
        let served = match (rejection, missing) {
            (Some(rejection), _) => self.reject_early(turn.routes.errors(), rejection, decision, facts, received, turn),
            (None, Found::Options(allow)) => {
                self.answer_early(decision, facts, received, turn, |response| response.options(allow))
            }
            (None, _) => unreachable!("a row is missing that is there"),
        };
        turn.workspace.output.clear_common();
        served
    }

    /// As [`serve_asked`](Connection::serve_asked), for a row with a policy.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn serve_with_cors<S>(
        &mut self,
        cors: &'static dyn CrossOrigin,
        row: &'static Row<S>,
        asked: &Received<'_>,
        decision: &Decision,
        rest: &mut [u8],
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let request = Request(asked);
        let facts = self.facts(asked.head, decision, turn);
        if cors::preflighted(request).is_some() {
            let allow = turn.routes.allow(asked.target.path, asked.target.escaped);
            return self.answer_missing(Found::Options(allow), request, decision, facts, received, turn);
        }
        begin_cors(cors, request, &mut turn.workspace.output);
        let served = match &row.answer {
            Answer::Constant(constant) => {
                self.answer_early(decision, facts, received, turn, |response| response.constant_with_fields(constant))
            }
            Answer::Handler { .. } => self.serve_asked_seldom(asked, decision, rest, received, turn),
        };
        turn.workspace.output.clear_common();
        served
    }

    #[cold]
    #[inline(never)]
    fn answer_panic<S>(&mut self, errors: Option<MapErrors<S>>, facts: Facts, turn: &mut Turn<'_, S>) -> Served {
        write_refusal(errors, Reject::HandlerFailed, facts.head_only, turn.state, &mut turn.workspace.output);
        self.finish(Wish::Panicked, facts, true, false, turn);
        Served::Body(0)
    }

    /// The answer is written: on to the next request, or to the end. `linger` if the peer may still be sending.
    #[inline(always)]
    fn finish<S>(&mut self, wish: Wish, facts: Facts, linger: bool, body_unread: bool, turn: &mut Turn<'_, S>) {
        turn.workspace.requests += 1;
        self.served = true;
        self.since = turn.now;
        if let (Wish::Stay, true, Phase::Head { scanned, begun, empty_line }) =
            (&wish, facts.persistent, &mut self.phase)
        {
            // The same as the assignment below, which would also have to look for something to drop.
            (*scanned, *begun, *empty_line) = (0, false, false);
            return;
        }
        self.finish_unusual(wish, facts, linger, body_unread, turn);
    }

    #[cold]
    fn finish_unusual<S>(&mut self, wish: Wish, facts: Facts, linger: bool, body_unread: bool, turn: &mut Turn<'_, S>) {
        let linger = linger || self.unsent_len() + turn.workspace.output.len() > ANSWER_BYTES_AT_ONCE;
        self.phase = match wish {
            Wish::Stay if facts.persistent => BETWEEN,
            Wish::Stay if body_unread => Phase::Closing { reason: CloseReason::BodyUnread, linger },
            Wish::Stay if turn.workspace.closing => Phase::Closing { reason: CloseReason::Drained, linger },
            Wish::Stay => Phase::Closing { reason: CloseReason::AskedByPeer, linger },
            Wish::Close => Phase::Closing { reason: CloseReason::AskedByHandler, linger },
            Wish::Panicked => {
                turn.workspace.panics += 1;
                Phase::Closing { reason: CloseReason::HandlerPanicked, linger: true }
            }
            Wish::Wait => match turn.workspace.lane.taken.take() {
                Some(ticket) => {
                    let row = turn.ran.filter(|row| row.errors.is_some()).map(|row| turn.routes.number_of(row));
                    let (unread, common) = (Unread::Nothing, turn.workspace.output.common());
                    Phase::Waiting(Box::new(Waiting { ticket, facts, linger, body_unread, unread, common, row }))
                }
                None => unreachable!("a handler waits without a ticket"),
            },
        };
    }

    /// Answers a message that broke a rule, and ends. Nothing behind it is looked at.
    #[cold]
    fn refuse<S>(&mut self, reject: Reject, head_only: bool, turn: &mut Turn<'_, S>) {
        self.refuse_by(turn.routes.errors(), reject, head_only, turn);
    }

    #[cold]
    #[inline(never)]
    fn refuse_by<S>(&mut self, errors: Option<MapErrors<S>>, reject: Reject, head_only: bool, turn: &mut Turn<'_, S>) {
        write_refusal(errors, reject, head_only, turn.state, &mut turn.workspace.output);
        self.phase = Phase::Closing { reason: CloseReason::Rejected(reject), linger: true };
    }

    #[cold]
    fn refused<S>(&mut self, reject: Reject, head_only: bool, turn: &mut Turn<'_, S>) -> Served {
        self.refuse(reject, head_only, turn);
        Served::Body(0)
    }

    #[cold]
    fn refused_by<S>(
        &mut self,
        errors: Option<MapErrors<S>>,
        reject: Reject,
        head_only: bool,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        self.refuse_by(errors, reject, head_only, turn);
        Served::Body(0)
    }

    /// The rest of a message did not come in time.
    #[cold]
    fn refuse_late<S>(&mut self, reject: Reject, turn: &mut Turn<'_, S>) {
        let mut held = std::mem::take(&mut self.held);
        let filled = held.range();
        let window = &mut held.buffer()[filled];
        match &self.phase {
            Phase::Body(receiving) => self.refuse_body(reject, window, receiving.head_len, turn),
            _ => self.refuse_window(reject, window, turn),
        }
        held.recycle(&mut turn.workspace.pool);
    }

    /// Refuses a body. Its head was parsed and routed before, so its row is known.
    #[cold]
    #[inline(never)]
    fn refuse_body<S>(&mut self, reject: Reject, window: &mut [u8], head_len: usize, turn: &mut Turn<'_, S>) {
        if !turn.routes.has_options() {
            return self.refuse_window(reject, window, turn);
        }
        let head_bytes = window.get_mut(..head_len).unwrap_or_default();
        with_head(head_bytes, turn.limits, |parsed| {
            let Ok(Parsed { head, known, target, decision }) = parsed else { return };
            let asked = self.received(&head, &known, &target, &decision, turn);
            let request = Request(&asked);
            let Ok(Found::Row(row)) = find(request, &mut Spans::default(), turn.routes) else { return };
            if let Some(cors) = row.cors {
                begin_cors(cors(), request, &mut turn.workspace.output);
            }
            self.refuse_by(row.errors, reject, head.method == Method::Head, turn);
            turn.workspace.output.clear_common();
        });
        if matches!(self.phase, Phase::Body(_)) {
            self.refuse_window(reject, window, turn);
        }
    }

    #[cold]
    fn refuse_window<S>(&mut self, reject: Reject, window: &[u8], turn: &mut Turn<'_, S>) {
        self.refuse(reject, window.starts_with(b"HEAD "), turn);
    }
}

// ---- answers that are made elsewhere -----------------------------------------------------------------------------

impl Connection {
    /// A letter came for the ticket of this number.
    #[cold]
    pub(crate) fn handle_letter<S>(&mut self, number: u64, content: Content, turn: &mut Turn<'_, S>) {
        let streams = match &self.phase {
            Phase::Waiting(waiting) if waiting.ticket.number == number => false,
            Phase::Streaming(streaming) if streaming.waiting.ticket.number == number => true,
            _ => return,
        };
        match content {
            Content::Answer(answer) => self.answer_late(turn, answer),
            Content::Call(call) => {
                // If it panics, the right to answer is dropped with it, and its letter follows.
                let state: &mut dyn Any = turn.state;
                let _ = catch_unwind(AssertUnwindSafe(|| call(state)));
            }
            Content::Begin(head) => self.begin_stream(*head, turn),
            Content::Part(part) => self.write_part(part, turn),
            Content::End => self.end_stream(turn),
            Content::Abort if streams => {
                self.phase = Phase::Closing { reason: CloseReason::StreamAborted, linger: false };
            }
            Content::TooSlow => self.phase = Phase::Closed(CloseReason::StreamTooSlow),
            Content::Dropped { panicking } => {
                turn.workspace.panics += u64::from(panicking);
                self.answer_late(turn, Box::new(|_, response| Reject::HandlerFailed.respond(response)));
            }
            Content::Busy => {
                turn.workspace.refused_work += 1;
                self.answer_late(turn, Box::new(|_, response| busy(response)));
            }
            Content::Abort => {}
        }
    }

    /// The peer sends no more, and what it sent is not read while its answer is made elsewhere.
    #[cold]
    pub(crate) fn handle_hangup(&mut self, limits: &Limits) {
        if self.is_waiting() && !limits.answer_half_closed {
            self.phase = Phase::Closed(CloseReason::PeerLeft);
        }
    }

    /// The server shuts down: streams that have no end of their own end.
    #[cold]
    pub(crate) fn handle_drain<S>(&mut self, turn: &mut Turn<'_, S>) {
        if matches!(&self.phase, Phase::Streaming(streaming) if streaming.keep_alive.is_some()) {
            self.end_stream(turn);
        }
    }

    /// Answers the request that waits, and goes on with what came behind it.
    #[cold]
    fn answer_late<S>(&mut self, turn: &mut Turn<'_, S>, answer: LateAnswer) {
        let Phase::Waiting(waiting) = &self.phase else { return };
        let facts = Facts { persistent: waiting.facts.persistent && !turn.workspace.closing, ..waiting.facts };
        let errors = waiting.row.and_then(|row| turn.routes.errors_of(row));
        let output = &mut turn.workspace.output;
        output.common_mut().extend_from_slice(&waiting.common);
        output.set_common();
        let mark = output.mark();
        let mut asked = Asked::Nothing;
        let state: &mut dyn Any = turn.state;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _ = answer(state, Response::new(output, &mut asked, facts));
        }));
        let wish = match outcome {
            Ok(()) if asked == Asked::Close => Wish::Close,
            Ok(()) => say_again(errors, asked, turn.state, &mut turn.workspace.output, mark, facts),
            Err(_panic) => {
                let output = &mut turn.workspace.output;
                output.roll_back(mark);
                write_refusal(errors, Reject::HandlerFailed, facts.head_only, turn.state, output);
                Wish::Panicked
            }
        };
        turn.workspace.output.clear_common();
        self.finish_late(wish, facts, turn);
    }

    fn finish_late<S>(&mut self, wish: Wish, facts: Facts, turn: &mut Turn<'_, S>) {
        let (linger, body_unread, unread) = match &self.phase {
            Phase::Waiting(waiting) => (waiting.linger, waiting.body_unread, waiting.unread),
            Phase::Streaming(streaming) => {
                let Waiting { linger, body_unread, unread, .. } = streaming.waiting;
                (linger, body_unread, unread)
            }
            _ => return,
        };
        self.phase = BETWEEN;
        self.finish(wish, facts, linger, body_unread, turn);
        // It was counted when its handler ran.
        turn.workspace.requests -= 1;
        let _ = self.pass_over(unread, 0, turn);
        self.serve_held(0, turn);
    }

    #[cold]
    fn begin_stream<S>(&mut self, head: StreamHead, turn: &mut Turn<'_, S>) {
        let Phase::Waiting(waiting) = &mut self.phase else { return };
        let facts = &mut waiting.facts;
        facts.persistent &= !turn.workspace.closing && !facts.http10;
        let facts = *facts;
        turn.workspace.output.common_mut().extend_from_slice(&waiting.common);
        turn.workspace.output.set_common();
        let written = head.write(Response::new(&mut turn.workspace.output, &mut Asked::Nothing, facts)).is_ok();
        turn.workspace.output.clear_common();
        if !written || facts.head_only {
            return self.finish_late(Wish::Stay, facts, turn);
        }
        self.since = turn.now;
        if let Phase::Waiting(waiting) = std::mem::replace(&mut self.phase, BETWEEN) {
            self.phase = Phase::Streaming(Box::new(Streaming { waiting: *waiting, keep_alive: head.keep_alive }));
        }
    }

    #[cold]
    fn write_part<S>(&mut self, part: Part, turn: &mut Turn<'_, S>) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        self.since = turn.now;
        // An empty chunk would be the last.
        if part.is_empty() {
            return;
        }
        let chunked = !streaming.waiting.facts.http10;
        let output = &mut turn.workspace.output;
        match part {
            Part::Framed(bytes, _) if chunked && bytes.len() > SHARED_BYTES_MIN => {
                output.push_borrowed(Borrowed::Shared(bytes));
            }
            Part::Framed(bytes, _) if chunked => output.bytes.extend_from_slice(&bytes),
            Part::Framed(bytes, content) => output.bytes.extend_from_slice(bytes.get(content).unwrap_or_default()),
            Part::Owned(bytes) => {
                if chunked && planted!("later") {
                    output.bytes.extend_from_slice(format!("{}\r\n", bytes.len()).as_bytes());
                } else if chunked {
                    output.bytes.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
                }
                if bytes.len() > COPY_BYTES_MAX {
                    output.push_borrowed(Borrowed::Owned(bytes));
                } else {
                    output.bytes.extend_from_slice(&bytes);
                }
                if chunked {
                    output.bytes.extend_from_slice(b"\r\n");
                }
            }
        }
    }

    #[cold]
    fn end_stream<S>(&mut self, turn: &mut Turn<'_, S>) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        let facts = streaming.waiting.facts;
        if !facts.http10 {
            turn.workspace.output.bytes.extend_from_slice(b"0\r\n\r\n");
        }
        // Not ended by a shutdown that came since: the head has promised to go on, and what the peer has sent behind it
        // would be lost. The connection is idle now, and is closed as such.
        self.finish_late(Wish::Stay, facts, turn);
    }
}

/// What is on its way as soon as it is sent, for it fits into the first window of TCP (RFC 6928). Of a longer last answer
/// the system may hold the rest for a while, and would drop it if the peer, be it only with an empty line, sent something
/// to a socket that is closed (RFC 9112 9.6). So such connections are closed in stages, which costs two more calls.
const ANSWER_BYTES_AT_ONCE: usize = 14 << 10;

/// A shared part up to this size is copied for each peer: that costs less than a segment of its own.
const SHARED_BYTES_MIN: usize = 512;

/// What an event stream says while there is nothing to say.
const KEEP_ALIVE_COMMENT: &[u8] = b":\n\n";

/// There is no room for more work.
fn busy(response: Response<'_>) -> Sent<'_> {
    Rejection::text(Status::SERVICE_UNAVAILABLE, "the server has more work than it can do at the moment")
        .with_field("Retry-After", "1")
        .respond(response)
}

const _: () = assert!(READ_BUFFER_LEN <= u32::MAX as usize);

// What `Limits::worst_case_bytes_per_connection` counts for it leaves room for the socket, the timer and the lists.
const _: () = assert!(size_of::<Connection>() + size_of::<Receiving>() + size_of::<Unsent>() <= 512);
