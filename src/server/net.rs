//! The seam below the loop: everything that the loop asks of the world.
//!
//! The loop is generic over [`Net`]. `sockets` implements it with mio; a simulator can implement it with a seed and a
//! virtual clock, and then decides every event, error, short count and moment that the loop will ever see.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use crate::connection::Tick;

/// Whom an event is for: the index of a slot, and which of its owners in turn, so that a late event for a closed
/// connection cannot reach the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) u64);

impl Token {
    pub(crate) const LISTENER: Token = Token(u64::MAX);
    /// [`Net::shutdown_asked`] has something to say.
    pub(crate) const COMMAND: Token = Token(u64::MAX - 1);
    /// No event: the owner of letters for the state, and of no connection.
    pub(crate) const STATE: Token = Token(u64::MAX - 2);

    #[inline]
    pub(crate) fn new(index: u32, generation: u32) -> Token {
        Token(u64::from(generation) << 32 | u64::from(index))
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// An event. Errors and hang-ups make a socket readable and writable, so that the next call on it tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: Token,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer sends no more: read to the end of file, however short the reads are.
    pub(crate) read_closed: bool,
}

/// Sockets, events and clocks. All sockets are non-blocking; an event comes once, when something changes.
pub(crate) trait Net {
    type Socket: fmt::Debug;

    /// Whether a read shorter than its buffer means that the next one would block, and that the event for what comes
    /// then is certain; and the same of a short send. Not where events re-arm only after a call that would block.
    const SHORT_READ_DRAINS: bool;

    /// Waits for events, at most this long, and appends them.
    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Ready>) -> io::Result<()>;

    /// The next connection of the listener, and where it comes from.
    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)>;

    /// Stops listening.
    fn close_listener(&mut self);

    /// Asks for events of a socket, for the first time: when it is readable, and if so wished when it is writable.
    fn register(&mut self, socket: &mut Self::Socket, token: Token, writable: bool) -> io::Result<()>;

    /// Asks for events when it is writable too, from now on. If it is already, the event comes at once.
    fn watch_writable(&mut self, socket: &mut Self::Socket, token: Token) -> io::Result<()>;

    fn recv(&mut self, socket: &mut Self::Socket, space: &mut [u8]) -> io::Result<usize>;

    fn send(&mut self, socket: &mut Self::Socket, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    fn shutdown_write(&mut self, socket: &mut Self::Socket) -> io::Result<()>;

    /// Closes. With `reset`, output that the peer has not taken is dropped instead of being kept by the system.
    fn close(&mut self, socket: Self::Socket, reset: bool);

    /// How soon somebody outside wants the listener to close, if anybody does. Each wish is told once.
    fn shutdown_asked(&mut self) -> Option<Duration>;

    /// What other threads call to make [`wait`](Net::wait) return: there are letters. Not needed where a turn follows
    /// anyway.
    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        Box::new(|| {})
    }

    /// A clock that never goes back.
    fn now(&mut self) -> Tick;

    /// The time since 1970-01-01, by a clock that may go anywhere.
    fn unix_time(&mut self) -> Duration;
}

/// Whether an error of `accept` is about the connection that would have been accepted: the next one may be fine.
/// Anything else (no descriptors, no memory) is about the process, and trying again at once would not help.
pub(crate) fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    // accept(2): Linux passes on errors that are already pending on the new socket. EPROTO has no kind of its own.
    const EPROTO: i32 = 71;
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::Interrupted
            | Kind::PermissionDenied
            | Kind::NetworkDown
            | Kind::NetworkUnreachable
            | Kind::HostUnreachable
            | Kind::TimedOut
    ) || (cfg!(target_os = "linux") && error.raw_os_error() == Some(EPROTO))
}
