//! [`Net`] over mio, and how listeners are made. The only file that names mio or socket2.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::{AsFd as _, BorrowedFd};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Waker};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::net::{Net, Ready, Token};
#[cfg(unix)]
use super::signals::Signals;
#[cfg(unix)]
use super::unix::SocketFile;
use super::{Listen, Stats};
use crate::connection::Tick;
use crate::later::locked;

/// Events taken from the system at a time. More wait there; they are not lost.
const EVENTS_PER_WAIT: usize = 256;

/// What the system holds of a connection's output that it has not sent yet. Without a bound the kernel takes megabytes,
/// and for minutes a slow reader cannot be told from one that does not read.
#[cfg(target_os = "linux")]
const NOT_SENT_BYTES_MAX: u32 = 128 << 10;

/// Sockets of the operating system.
#[derive(Debug)]
pub(crate) struct Sockets {
    poll: Poll,
    events: Events,
    listeners: Vec<Listener>,
    /// The one that is asked first for the next connection, so that none has to wait for another.
    next_listener: usize,
    mailbox: Arc<Mailbox>,
    #[cfg(unix)]
    signals: Option<SignalPipe>,
    /// How long after a signal the listeners close.
    signal_delay: Duration,
    started: Instant,
}

/// The end of a pipe that signals write to.
#[cfg(unix)]
#[derive(Debug)]
struct SignalPipe {
    arrivals: mio::net::UnixStream,
    _handlers: Signals,
}

/// What connections come from.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    /// With the file that is removed when it closes, if it is ours.
    #[cfg(unix)]
    Unix {
        listener: mio::net::UnixListener,
        _file: Option<SocketFile>,
    },
}

/// Where a listener is found.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) path: Option<PathBuf>,
}

impl Listener {
    pub(crate) fn tcp(listener: std::net::TcpListener) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        // Accepted sockets inherit both, so that no call for each of them is needed.
        SockRef::from(&listener).set_tcp_nodelay(true)?;
        #[cfg(target_os = "linux")]
        // It works without, as where the kernel is a sandbox that does not know it.
        let _ = SockRef::from(&listener).set_tcp_notsent_lowat(NOT_SENT_BYTES_MAX);
        Ok(Listener::Tcp(TcpListener::from_std(listener)))
    }

    #[cfg(unix)]
    pub(crate) fn unix(listener: UnixListener, file: Option<SocketFile>) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        Ok(Listener::Unix { listener: mio::net::UnixListener::from_std(listener), _file: file })
    }

    fn register(&mut self, registry: &Registry) -> io::Result<()> {
        // They share a token: whichever it is, all are asked.
        let (token, interest) = (mio_token(Token::LISTENER), Interest::READABLE);
        match self {
            Listener::Tcp(listener) => registry.register(listener, token, interest),
            #[cfg(unix)]
            Listener::Unix { listener, .. } => registry.register(listener, token, interest),
        }
    }

    fn place(&self) -> Place {
        match self {
            Listener::Tcp(listener) => Place { address: listener.local_addr().ok(), path: None },
            #[cfg(unix)]
            Listener::Unix { listener, .. } => {
                let path = listener.local_addr().ok().and_then(|address| address.as_pathname().map(PathBuf::from));
                Place { address: None, path }
            }
        }
    }

    fn accept(&self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                if cfg!(not(target_os = "linux")) {
                    // Not inherited everywhere. The connection works without.
                    let _ = stream.set_nodelay(true);
                }
                // An IPv4 peer of a dual-stack listener is shown as what it is.
                Ok((stream, Some(SocketAddr::new(peer.ip().to_canonical(), peer.port()))))
            }
            #[cfg(unix)]
            Listener::Unix { listener, .. } => {
                let (stream, _) = listener.accept()?;
                // All that is called on it from here on (recv, send, shutdown, close) is the same for a stream of
                // either family, so that the loop has one type of socket and no branch for each call.
                let stream = std::net::TcpStream::from(OwnedFd::from(stream));
                Ok((TcpStream::from_std(stream), None))
            }
        }
    }
}

impl Sockets {
    /// Over a listener that is set up already. It is registered by [`listen`](Sockets::listen).
    pub(crate) fn new(listener: Listener) -> io::Result<Sockets> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), mio_token(Token::COMMAND))?;
        Ok(Sockets {
            poll,
            events: Events::with_capacity(EVENTS_PER_WAIT),
            listeners: vec![listener],
            next_listener: 0,
            mailbox: Arc::new(Mailbox::new(waker)),
            #[cfg(unix)]
            signals: None,
            signal_delay: Duration::ZERO,
            started: Instant::now(),
        })
    }

    /// Takes the listeners of others, which have not started, as well.
    pub(crate) fn take_listeners(&mut self, others: &mut Sockets) {
        self.listeners.append(&mut others.listeners);
    }

    /// Starts to accept, and, if so wished, to shut down this long after a signal. Events come from here on.
    pub(crate) fn listen(&mut self, signal_delay: Option<Duration>) -> io::Result<()> {
        for listener in &mut self.listeners {
            listener.register(self.poll.registry())?;
        }
        if let Some(delay) = signal_delay {
            self.signal_delay = delay;
            self.listen_for_signals()?;
        }
        Ok(())
    }

    #[cfg(unix)]
    fn listen_for_signals(&mut self) -> io::Result<()> {
        let (mut arrivals, wake) = mio::net::UnixStream::pair()?;
        self.poll.registry().register(&mut arrivals, mio_token(Token::COMMAND), Interest::READABLE)?;
        self.signals = Some(SignalPipe { arrivals, _handlers: Signals::new(&wake.into())? });
        Ok(())
    }

    #[cfg(not(unix))]
    fn listen_for_signals(&mut self) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no SIGTERM"))
    }

    #[cfg(unix)]
    fn signal_arrived(&mut self) -> bool {
        let Some(signals) = &mut self.signals else { return false };
        let mut arrived = false;
        // The pipe is not closed while its handlers live, so this ends with an error.
        while signals.arrivals.read(&mut [0; 64]).is_ok_and(|n| n > 0) {
            arrived = true;
        }
        arrived
    }

    #[cfg(not(unix))]
    fn signal_arrived(&mut self) -> bool {
        false
    }

    /// The first internet address.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        if self.listeners.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the listener is closed"));
        }
        let no_address = || io::Error::new(io::ErrorKind::AddrNotAvailable, "the listener has no internet address");
        self.places().find_map(|place| place.address).ok_or_else(no_address)
    }

    /// Readable when there are events.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.registry().as_fd()
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.listeners.iter().map(Listener::place)
    }

    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }
}

/// Where other threads leave their wishes.
#[derive(Debug)]
pub(crate) struct Mailbox {
    waker: Waker,
    /// The soonest shutdown that was asked for.
    shutdown_ms: AtomicU64,
    /// Who wants to know the counters, unless they have given up.
    questions: Mutex<Vec<Weak<Question>>>,
    asked: AtomicBool,
    /// Those of the other workers, which get the same wishes.
    others: Mutex<Vec<Arc<Mailbox>>>,
}

/// Somebody waits for the counters of a loop. (A channel of the standard library would add nine kilobytes to each server.)
#[derive(Debug, Default)]
pub(crate) struct Question {
    answer: Mutex<Option<Stats>>,
    answered: Condvar,
}

impl Question {
    /// None if there is no answer after this long.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<Stats> {
        let waited = self.answered.wait_timeout_while(locked(&self.answer), timeout, |answer| answer.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

const NOTHING: u64 = u64::MAX;

impl Mailbox {
    fn new(waker: Waker) -> Mailbox {
        Mailbox {
            waker,
            shutdown_ms: AtomicU64::new(NOTHING),
            questions: Mutex::default(),
            asked: AtomicBool::new(false),
            others: Mutex::default(),
        }
    }

    /// From now on the other one gets all wishes too, and now the one that is there.
    pub(crate) fn link(&self, other: Arc<Mailbox>) {
        let mut others = locked(&self.others);
        match self.shutdown_ms.load(Ordering::Acquire) {
            NOTHING => {}
            delay_ms => other.ask_for_shutdown(Duration::from_millis(delay_ms)),
        }
        others.push(other);
    }

    /// Where the counters will come from, those of the other workers included.
    pub(crate) fn ask_for_stats(&self) -> Vec<Arc<Question>> {
        let question = Arc::new(Question::default());
        let mut questions = locked(&self.questions);
        // A loop that has ended answers none.
        questions.retain(|question| question.strong_count() > 0);
        questions.push(Arc::downgrade(&question));
        drop(questions);
        self.asked.store(true, Ordering::Release);
        self.wake();
        let mut questions = vec![question];
        for other in &*locked(&self.others) {
            questions.append(&mut other.ask_for_stats());
        }
        questions
    }

    #[inline]
    pub(crate) fn has_questions(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    pub(crate) fn answer_questions(&self, stats: Stats) {
        self.asked.store(false, Ordering::Release);
        for question in locked(&self.questions).drain(..).filter_map(|question| question.upgrade()) {
            *locked(&question.answer) = Some(stats);
            question.answered.notify_all();
        }
    }

    pub(crate) fn ask_for_shutdown(&self, delay: Duration) {
        let others = locked(&self.others);
        others.iter().for_each(|other| other.ask_for_shutdown(delay));
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(NOTHING).min(NOTHING - 1);
        self.shutdown_ms.fetch_min(delay_ms, Ordering::AcqRel);
        self.wake();
    }

    fn wake(&self) {
        // It fails only once the loop is gone, or out of memory in the kernel; the wish stands for the next turn.
        let _ = self.waker.wake();
    }
}

impl Net for Sockets {
    type Socket = TcpStream;

    const SHORT_READ_DRAINS: bool = cfg!(any(target_os = "linux", target_os = "android"));

    #[inline]
    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Ready>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            waited => waited?,
        }
        events.extend(self.events.iter().map(|event| {
            let token = Token(event.token().0 as u64);
            let (readable, writable) = (event.is_readable(), event.is_writable());
            if !(event.is_error() || event.is_read_closed() || event.is_write_closed()) {
                return Ready { token, readable, writable, read_closed: false };
            }
            // Errors and hang-ups: whatever is called next on the socket tells.
            let failed = event.is_error() || event.is_write_closed();
            Ready { token, readable: true, writable: writable || failed, read_closed: true }
        }));
        Ok(())
    }

    fn accept(&mut self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        for _ in 0..self.listeners.len() {
            let at = self.next_listener % self.listeners.len();
            self.next_listener = at + 1;
            match self.listeners[at].accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                accepted => return accepted,
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn close_listener(&mut self) {
        self.listeners.clear();
    }

    fn register(&mut self, socket: &mut TcpStream, token: Token, writable: bool) -> io::Result<()> {
        let interest = if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        self.poll.registry().register(socket, mio_token(token), interest)
    }

    fn watch_writable(&mut self, socket: &mut TcpStream, token: Token) -> io::Result<()> {
        self.poll.registry().reregister(socket, mio_token(token), Interest::READABLE | Interest::WRITABLE)
    }

    #[inline]
    fn recv(&mut self, socket: &mut TcpStream, space: &mut [u8]) -> io::Result<usize> {
        socket.read(space)
    }

    #[inline]
    fn send(&mut self, socket: &mut TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [slice] => socket.write(slice),
            slices => socket.write_vectored(slices),
        }
    }

    fn shutdown_write(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        socket.shutdown(Shutdown::Write)
    }

    fn close(&mut self, socket: TcpStream, reset: bool) {
        if reset {
            // If it fails, the system goes on trying to deliver; the connection is gone for us either way.
            let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
        }
        // Closing takes a socket out of the poll by itself: one call.
        drop(socket);
    }

    fn shutdown_asked(&mut self) -> Option<Duration> {
        let by_signal = self.signal_arrived().then_some(self.signal_delay);
        let by_handle = match self.mailbox.shutdown_ms.swap(NOTHING, Ordering::AcqRel) {
            NOTHING => None,
            delay_ms => Some(Duration::from_millis(delay_ms)),
        };
        // One event tells of both.
        [by_signal, by_handle].into_iter().flatten().min()
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let mailbox = self.mailbox();
        Box::new(move || mailbox.wake())
    }

    #[inline]
    fn now(&mut self) -> Tick {
        let elapsed = self.started.elapsed();
        Tick(elapsed.as_secs() * 1000 + u64::from(elapsed.subsec_millis()))
    }

    fn unix_time(&mut self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

fn mio_token(token: Token) -> mio::Token {
    mio::Token(token.0 as usize)
}

// A token is an index and a generation of 32 bits each.
const _: () = assert!(usize::BITS >= 64, "sprat needs 64-bit pointers");

/// A listener on the first of these addresses that can be had.
pub(crate) fn bind(addresses: impl Iterator<Item = SocketAddr>, options: &Listen) -> io::Result<std::net::TcpListener> {
    let mut failed = None;
    for address in addresses {
        match bind_one(address, options) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = Some(explain(address, error)),
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no address to listen on")))
}

fn bind_one(address: SocketAddr, options: &Listen) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // Said in any case: what is the default differs between systems, and by configuration.
        socket.set_only_v6(options.ipv6_only)?;
    }
    #[cfg(unix)]
    {
        // A restart need not wait for old connections to time out. On Unix this does not let two listeners share a
        // port, as it would on Windows.
        socket.set_reuse_address(true)?;
        if options.reuse_port {
            socket.set_reuse_port(true)?;
        }
    }
    #[cfg(not(unix))]
    if options.reuse_port {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no port sharing"));
    }
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

fn explain(address: SocketAddr, error: io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => "; another process listens there",
        io::ErrorKind::PermissionDenied if address.port() < 1024 => "; ports below 1024 need a privilege",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}{hint}"))
}

/// Connects to a unix-domain socket, without waiting, and lets go of it.
#[cfg(unix)]
pub(crate) fn probe_unix(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&socket2::SockAddr::unix(path)?)
}

/// The listeners that this process was started with, by LISTEN_FDS. The only use of listenfd.
#[cfg(all(unix, feature = "listenfd"))]
pub(crate) fn from_env() -> io::Result<Vec<Listener>> {
    let mut inherited = listenfd::ListenFd::from_env();
    let mut listeners = Vec::new();
    for index in 0..inherited.len() {
        let listener = match inherited.take_tcp_listener(index) {
            Ok(Some(listener)) if is_listening(&listener)? => Listener::tcp(listener)?,
            // It is another kind of socket, perhaps.
            _ => match inherited.take_unix_listener(index) {
                Ok(Some(listener)) if is_listening(&listener)? => Listener::unix(listener, None)?,
                _ => {
                    let text = format!("descriptor {index} of LISTEN_FDS is no listener of TCP or unix streams");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
            },
        };
        listeners.push(listener);
    }
    Ok(listeners)
}

#[cfg(all(unix, feature = "listenfd"))]
fn is_listening(socket: &impl std::os::fd::AsFd) -> io::Result<bool> {
    // Asked of Linux only; elsewhere accept will tell.
    #[cfg(target_os = "linux")]
    return SockRef::from(socket).is_listener();
    #[cfg(not(target_os = "linux"))]
    return Ok(true);
}

/// How many descriptors this process may have open, where that can be found out.
pub(crate) fn descriptors_max() -> Option<usize> {
    // Not getrlimit: that is a call into C, and a dependency to make it safe, for one number at the start.
    if !cfg!(target_os = "linux") {
        return None;
    }
    parse_descriptors_max(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

fn parse_descriptors_max(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_limit_is_the_soft_one() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max processes             63303                63303                processes \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(parse_descriptors_max(limits), Some(1024));
        assert_eq!(parse_descriptors_max("Max open files            unlimited            unlimited"), None);
        assert_eq!(parse_descriptors_max(""), None);
    }
}
