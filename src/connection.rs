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
//! while one is partial, so an idle connection holds none. An answer that is made elsewhere arrives as a letter that
//! carries a ticket number; a letter for any ticket but the one that is waited for is ignored.

mod answer;
mod close_reason;
mod late;
mod observe;
mod serve;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::chunked::Decoder;
use crate::framing::Decision;
use crate::held::{Held, PADDING_LEN, Pool};
use crate::later::{Lane, Ticket};
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::output::{Output, Unsent};
use crate::reject::Reject;
use crate::response::{Facts, Respond};
use crate::route::{Routes, Row};
use crate::stream::Part;
use crate::target;

pub use close_reason::CloseReason;
use late::KEEP_ALIVE_COMMENT;

/// A moment, in milliseconds of the driver's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// The moment this much later.
    pub fn after(self, duration: Duration) -> Tick {
        Tick(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long it is since an earlier moment.
    fn since(self, earlier: Tick) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
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
    /// When its head was whole. The pace begins anew where output was blocked.
    since: Tick,
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
    /// A body that its answer does not wait for, none of which is passed over yet.
    unread: Unread,
    /// Field lines that its answer begins with, whatever it is.
    common: Box<[u8]>,
    /// The number of its row, if that has a mapper or an observer.
    row: Option<usize>,
    /// What an observer is to be told of it.
    remembered: Option<observe::Remembered>,
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
    /// Send a comment after this much silence.
    keep_alive: Option<Duration>,
    /// Bytes of parts and of output that its ticket counts, and that came here.
    counted: usize,
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
    /// It is answered, and this many bytes after its head are consumed.
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

    /// While output was blocked the peer may not have been read, so its next deadline starts when the output drains. A
    /// step produces output only when it is complete, so each step is extended at most once.
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
            Phase::Streaming(_) => {
                self.recount();
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

    /// Whether it waits for an answer that is made elsewhere, and of which nothing is written.
    pub(crate) fn waits_for_head(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_))
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
        let remembered = match &self.phase {
            Phase::Waiting(waiting) => waiting.remembered.as_ref().map_or(0, |remembered| remembered.held_bytes()),
            _ => 0,
        };
        self.held.capacity() + self.unsent.as_ref().map_or(0, |unsent| unsent.held_bytes()) + remembered
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

const _: () = assert!(READ_BUFFER_LEN <= u32::MAX as usize);

// What `Limits::worst_case_bytes_per_connection` counts for it leaves room for the socket, the timer and the lists.
const _: () = assert!(size_of::<Connection>() + size_of::<Receiving>() + size_of::<Unsent>() <= 512);
