//! A world of one's own below the loop: sockets in memory, a clock that stands still until it is moved, and errors on
//! demand. Counts the calls.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::connection::Tick;
use crate::server::net::{Net, Ready, Token};

/// What tests hold of the world; the loop holds the same.
#[derive(Clone, Debug, Default)]
pub(super) struct World(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    now_ms: Cell<u64>,
    unix_ms: Cell<u64>,
    /// Connections and errors that `accept` will return.
    backlog: RefCell<VecDeque<Result<Peer, i32>>>,
    events: RefCell<Vec<Ready>>,
    listening: Cell<bool>,
    shutdown: Cell<Option<Duration>>,
    waited: Cell<Option<Duration>>,
    told_nothing: Cell<bool>,
    counts: Cell<Counts>,
}

/// Calls that the loop made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) waits: usize,
    pub(super) accepts: usize,
    pub(super) registrations: usize,
    pub(super) recvs: usize,
    pub(super) sends: usize,
    pub(super) shutdowns: usize,
    pub(super) closes: usize,
    pub(super) clock_reads: usize,
    pub(super) unix_clock_reads: usize,
}

impl World {
    /// With a listener, at second 1,000,000,000 since 1970.
    pub(super) fn new() -> World {
        let world = World::default();
        world.0.listening.set(true);
        world.0.unix_ms.set(1_000_000_000_000);
        world
    }

    pub(super) fn net(&self) -> FakeNet {
        FakeNet { world: self.clone() }
    }

    /// A peer connects; the listener tells.
    pub(super) fn connect(&self) -> Peer {
        let peer = Peer::default();
        self.0.backlog.borrow_mut().push_back(Ok(peer.clone()));
        self.tell_listener();
        peer
    }

    /// A peer connects, and the listener does not tell.
    pub(super) fn queue(&self, peer: &Peer) {
        self.0.backlog.borrow_mut().push_back(Ok(peer.clone()));
    }

    /// The next `accept` fails with this error number.
    pub(super) fn fail_accept(&self, errno: i32) {
        self.0.backlog.borrow_mut().push_back(Err(errno));
    }

    pub(super) fn tell_listener(&self) {
        self.tell(Token::LISTENER, true, false, false);
    }

    pub(super) fn tell(&self, token: Token, readable: bool, writable: bool, read_closed: bool) {
        self.0.events.borrow_mut().push(Ready { token, readable, writable, read_closed });
    }

    /// Tells that a peer's socket is readable.
    pub(super) fn tell_readable(&self, peer: &Peer) {
        self.tell(peer.token(), true, false, peer.0.eof.get());
    }

    pub(super) fn advance(&self, ms: u64) {
        self.0.now_ms.set(self.0.now_ms.get() + ms);
        self.0.unix_ms.set(self.0.unix_ms.get() + ms);
    }

    pub(super) fn set_unix_time(&self, seconds: u64) {
        self.0.unix_ms.set(seconds * 1000);
    }

    pub(super) fn ask_for_shutdown(&self, delay: Duration) {
        self.0.shutdown.set(Some(delay));
        self.tell(Token::COMMAND, true, false, false);
    }

    pub(super) fn is_listening(&self) -> bool {
        self.0.listening.get()
    }

    /// How long the last wait was allowed to take.
    pub(super) fn waited(&self) -> Option<Duration> {
        self.0.waited.get()
    }

    /// Whether the last wait would have taken its time: nothing was to be told, and nothing else to be done.
    pub(super) fn is_quiet(&self) -> bool {
        self.0.told_nothing.get() && self.waited() != Some(Duration::ZERO)
    }

    pub(super) fn counts(&self) -> Counts {
        self.0.counts.get()
    }

    fn count(&self, add: impl FnOnce(&mut Counts)) {
        let mut counts = self.0.counts.get();
        add(&mut counts);
        self.0.counts.set(counts);
    }
}

/// One end of a connection: what the peer sends and takes. The loop's socket is the other end.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer(Rc<PeerInner>);

#[derive(Debug, Default)]
struct PeerInner {
    sent: RefCell<VecDeque<u8>>,
    eof: Cell<bool>,
    reset: Cell<bool>,
    taken: RefCell<Vec<u8>>,
    /// The next call is interrupted.
    interrupted: Cell<bool>,
    /// How many bytes the socket takes before it blocks; none is all of them.
    room: Cell<Option<usize>>,
    token: Cell<Option<Token>>,
    watches_writable: Cell<bool>,
    write_shut: Cell<bool>,
    closed: Cell<bool>,
    was_reset: Cell<bool>,
}

impl Peer {
    pub(super) fn send(&self, bytes: impl AsRef<[u8]>) {
        self.0.sent.borrow_mut().extend(bytes.as_ref());
    }

    pub(super) fn close_write(&self) {
        self.0.eof.set(true);
    }

    /// All further calls on the socket fail.
    pub(super) fn reset(&self) {
        self.0.reset.set(true);
    }

    pub(super) fn interrupt_next_recv(&self) {
        self.0.interrupted.set(true);
    }

    /// Takes this many more bytes, then no more.
    pub(super) fn take_at_most(&self, room: usize) {
        self.0.room.set(Some(room));
    }

    pub(super) fn take_all(&self) {
        self.0.room.set(None);
    }

    /// What came since the last call.
    pub(super) fn taken(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.taken.borrow_mut())).expect("answers are text here")
    }

    /// Bytes that the loop has not read.
    pub(super) fn unread_len(&self) -> usize {
        self.0.sent.borrow().len()
    }

    pub(super) fn token(&self) -> Token {
        self.0.token.get().expect("the socket is registered")
    }

    pub(super) fn is_registered(&self) -> bool {
        self.0.token.get().is_some()
    }

    pub(super) fn watches_writable(&self) -> bool {
        self.0.watches_writable.get()
    }

    pub(super) fn is_write_shut(&self) -> bool {
        self.0.write_shut.get()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.closed.get()
    }

    pub(super) fn was_reset(&self) -> bool {
        self.0.was_reset.get()
    }
}

#[derive(Debug)]
pub(super) struct FakeNet {
    world: World,
}

fn would_block<T>() -> io::Result<T> {
    Err(io::ErrorKind::WouldBlock.into())
}

impl Net for FakeNet {
    type Socket = Peer;

    const SHORT_READ_DRAINS: bool = true;

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Ready>) -> io::Result<()> {
        self.world.count(|counts| counts.waits += 1);
        self.world.0.waited.set(timeout);
        self.world.0.told_nothing.set(self.world.0.events.borrow().is_empty());
        events.append(&mut self.world.0.events.borrow_mut());
        Ok(())
    }

    fn accept(&mut self) -> io::Result<(Peer, Option<SocketAddr>)> {
        self.world.count(|counts| counts.accepts += 1);
        assert!(self.world.is_listening(), "accept on a closed listener");
        match self.world.0.backlog.borrow_mut().pop_front() {
            Some(Ok(peer)) => Ok((peer, None)),
            Some(Err(errno)) => Err(io::Error::from_raw_os_error(errno)),
            None => would_block(),
        }
    }

    fn close_listener(&mut self) {
        self.world.0.listening.set(false);
    }

    fn register(&mut self, socket: &mut Peer, token: Token, writable: bool) -> io::Result<()> {
        self.world.count(|counts| counts.registrations += 1);
        assert!(!socket.is_registered(), "registered twice");
        socket.0.token.set(Some(token));
        socket.0.watches_writable.set(writable);
        Ok(())
    }

    fn watch_writable(&mut self, socket: &mut Peer, token: Token) -> io::Result<()> {
        self.world.count(|counts| counts.registrations += 1);
        assert_eq!(socket.token(), token);
        assert!(!socket.0.watches_writable.replace(true), "asked for twice");
        Ok(())
    }

    fn recv(&mut self, socket: &mut Peer, space: &mut [u8]) -> io::Result<usize> {
        self.world.count(|counts| counts.recvs += 1);
        assert!(!socket.is_closed() && !space.is_empty());
        if socket.0.reset.get() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if socket.0.interrupted.take() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut sent = socket.0.sent.borrow_mut();
        let n = sent.len().min(space.len());
        if n == 0 && !socket.0.eof.get() {
            return would_block();
        }
        for (byte, space) in sent.drain(..n).zip(space) {
            *space = byte;
        }
        Ok(n)
    }

    fn send(&mut self, socket: &mut Peer, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.world.count(|counts| counts.sends += 1);
        assert!(!socket.is_closed() && !socket.is_write_shut());
        if socket.0.reset.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        let n = socket.0.room.get().map_or(offered, |room| room.min(offered));
        if n == 0 {
            return would_block();
        }
        socket.0.room.set(socket.0.room.get().map(|room| room - n));
        let mut taken = socket.0.taken.borrow_mut();
        taken.extend(slices.iter().flat_map(|slice| slice.iter()).take(n));
        Ok(n)
    }

    fn shutdown_write(&mut self, socket: &mut Peer) -> io::Result<()> {
        self.world.count(|counts| counts.shutdowns += 1);
        socket.0.write_shut.set(true);
        Ok(())
    }

    fn close(&mut self, socket: Peer, reset: bool) {
        self.world.count(|counts| counts.closes += 1);
        assert!(!socket.0.closed.replace(true), "closed twice");
        socket.0.was_reset.set(reset);
    }

    fn shutdown_asked(&mut self) -> Option<Duration> {
        self.world.0.shutdown.take()
    }

    fn now(&mut self) -> Tick {
        self.world.count(|counts| counts.clock_reads += 1);
        Tick(self.world.0.now_ms.get())
    }

    fn unix_time(&mut self) -> Duration {
        self.world.count(|counts| counts.unix_clock_reads += 1);
        Duration::from_millis(self.world.0.unix_ms.get())
    }
}
