//! What a server has to tell beside its answers: events with levels, and counters.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::connection::CloseReason;
use crate::method::Method;

/// How much an event matters. Ordered: `Debug` is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What happens all day, peers' mistakes and port scanners included.
    Debug,
    /// Start and stop.
    Info,
    /// The server cannot do all that is asked of it.
    Warn,
    /// A defect in a handler.
    Error,
}

/// Something that happened in a server; see [`Server::on_event`](crate::Server::on_event).
///
/// Its text is one line without a line end, and never holds a peer's bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// The listener is ready.
    #[non_exhaustive]
    Listening {
        /// Where. None for listeners without an internet address.
        address: Option<SocketAddr>,
        /// The file of a unix-domain listener.
        path: Option<&'e Path>,
        /// The most connections at a time: `Limits::connections_max`, or less if the descriptor limit asks for it.
        connections_max: usize,
    },
    /// How much memory the server can come to hold, by its limits, whatever its peers do; told at the start. See
    /// [`Limits::worst_case_bytes`](crate::Limits::worst_case_bytes).
    #[non_exhaustive]
    MemoryCeiling {
        /// For one connection.
        bytes_per_connection: usize,
        /// For all of them, and the loop.
        bytes: usize,
    },
    /// A connection ended.
    #[non_exhaustive]
    Closed {
        /// Where it came from.
        peer: Option<SocketAddr>,
        /// Why it ended.
        reason: CloseReason,
    },
    /// A handler panicked, and its client got a 500; or an observer did, and the answer went out.
    #[non_exhaustive]
    HandlerPanicked {
        /// Method and pattern of its row, or of the last row that was called for the same connection in the same turn.
        /// None for work that ran elsewhere, and for what was called when it was done.
        route: Option<(Method, &'static str)>,
        /// Whose request it was.
        peer: Option<SocketAddr>,
    },
    /// What a [`Caller`](crate::Caller) had called panicked.
    CallPanicked,
    /// An answer could not be written as its handler wanted it, so its client got a 500 instead.
    #[non_exhaustive]
    AnswerFailed {
        /// Method and pattern of its row, or of the last row that was called for the same connection in the same turn.
        /// None for an answer that came later, and for one without a row.
        route: Option<(Method, &'static str)>,
        /// What was wrong with it.
        fault: &'static str,
    },
    /// A handler held up the loop for longer than [`Server::stall_threshold`](crate::Server::stall_threshold).
    #[non_exhaustive]
    Stalled {
        /// Method and pattern of its row. None for what runs between requests (answers that come later), and where it was
        /// one of several requests that were served together.
        route: Option<(Method, &'static str)>,
        /// How long nobody else was served.
        took: Duration,
    },
    /// The connection limit is reached. Further connections wait in the system's queue until one closes.
    #[non_exhaustive]
    Full {
        /// How many there are.
        open: usize,
    },
    /// The system has no descriptor or no memory for another connection. The server tries again when one closes,
    /// and several times a second.
    #[non_exhaustive]
    AcceptPaused {
        /// What the system said.
        error: &'e io::Error,
    },
    /// Shutdown began: handlers see it, and the listener is open for a while yet.
    #[non_exhaustive]
    Draining {
        /// How many connections there are.
        open: usize,
    },
    /// The listener is closed, and connections end with their next answer.
    #[non_exhaustive]
    Closing {
        /// How many connections there are.
        open: usize,
    },
    /// Shutdown is complete.
    #[non_exhaustive]
    Stopped {
        /// How many connections had to be cut off at the deadline.
        aborted: usize,
    },
}

impl Event<'_> {
    /// How much it matters.
    pub fn level(&self) -> Level {
        match self {
            Event::Closed { .. } | Event::MemoryCeiling { .. } => Level::Debug,
            Event::Listening { .. } | Event::Draining { .. } | Event::Closing { .. } => Level::Info,
            Event::Stopped { aborted: 0, .. } => Level::Info,
            Event::Stalled { .. } | Event::Full { .. } | Event::AcceptPaused { .. } | Event::Stopped { .. } => {
                Level::Warn
            }
            Event::HandlerPanicked { .. } | Event::CallPanicked | Event::AnswerFailed { .. } => Level::Error,
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Listening { address: Some(address), connections_max, .. } => {
                write!(f, "listening on {address}, for {connections_max} connections")
            }
            // In quotes and escaped, so that it stays one line.
            Event::Listening { path: Some(path), connections_max, .. } => {
                write!(f, "listening on {path:?}, for {connections_max} connections")
            }
            Event::Listening { connections_max, .. } => {
                write!(f, "listening on a local socket, for {connections_max} connections")
            }
            Event::MemoryCeiling { bytes_per_connection, bytes } => {
                write!(f, "at most {bytes} bytes are held, and {bytes_per_connection} for one connection")
            }
            Event::Closed { peer, reason } => write!(f, "{} closed: {reason}", Peer(*peer)),
            Event::HandlerPanicked { route: Some((method, pattern)), peer } => {
                write!(f, "{} {pattern} panicked on a request from {}", method.as_str(), Peer(*peer))
            }
            Event::HandlerPanicked { route: None, peer } => {
                write!(f, "a handler panicked on a request from {}", Peer(*peer))
            }
            Event::CallPanicked => f.write_str("what another thread had called panicked"),
            Event::AnswerFailed { route: Some((method, pattern)), fault } => {
                write!(f, "{} {pattern} was answered with 500: {fault}", method.as_str())
            }
            Event::AnswerFailed { route: None, fault } => write!(f, "a request was answered with 500: {fault}"),
            Event::Stalled { route: Some((method, pattern)), took } => {
                write!(f, "{} {pattern} held up the loop for {} ms", method.as_str(), took.as_millis())
            }
            Event::Stalled { route: None, took } => write!(f, "the loop was held up for {} ms", took.as_millis()),
            Event::Full { open } => write!(f, "all {open} places for connections are taken; more have to wait"),
            Event::AcceptPaused { error } => write!(f, "no connection can be accepted for now: {error}"),
            Event::Draining { open } => write!(f, "shutdown was announced, {open} connections are open"),
            Event::Closing { open } => write!(f, "shutdown began, {open} connections are open"),
            Event::Stopped { aborted: 0 } => f.write_str("shutdown is complete"),
            Event::Stopped { aborted } => write!(f, "shutdown is complete, {aborted} connections were cut off"),
        }
    }
}

struct Peer(Option<SocketAddr>);

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("a local peer"),
        }
    }
}

/// Counters of a server since it started; see [`Running::stats`](crate::Running::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections taken.
    pub accepted: u64,
    /// Connections that are open now.
    pub open: usize,
    /// Requests answered, by handlers or without one. Messages refused for a broken rule do not count.
    pub requests: u64,
    /// Handlers that panicked, observers, and what a [`Caller`](crate::Caller) had called.
    pub panics: u64,
    /// Answers that could not be written as their handlers wanted them.
    pub faults: u64,
    /// How often a handler held up the loop for longer than the threshold.
    pub stalls: u64,
    /// Requests answered with 503 because the pool had no room for their work, or did not get to it in time.
    pub refused_work: u64,
    /// How often accepting had to pause for lack of descriptors or memory.
    pub accept_pauses: u64,
    /// Bytes that connections hold in buffers for partial requests.
    pub held_bytes: usize,
}
