//! The server: a listener, a loop, and the ways to start and stop them. Everything with sockets, clocks, threads and
//! signals is here; what HTTP means is not.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::later::Caller;
use crate::limits::Limits;
use crate::route::{Routes, Table};

mod event;
pub(crate) mod event_loop;
pub(crate) mod net;
pub(crate) mod offload;
#[cfg(unix)]
mod signals;
mod sockets;
#[cfg(test)]
mod tests;
pub(crate) mod timers;
mod trusted;
#[cfg(unix)]
mod unix;
mod workers;

pub use event::{Event, Level, Stats};
use event_loop::{EventLoop, Hook};
pub use offload::Offload;
use sockets::{Listener, Mailbox, Sockets};
use trusted::Trusted;

/// How to listen on an address; see [`Server::bind_with`].
///
/// ```no_run
/// use sprat::{Listen, Server};
/// let server = Server::bind_with("[::]:3000", &Listen { reuse_port: true, ..Listen::DEFAULT })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Connections that the system holds until they are accepted. It may cap the number (Linux: at
    /// `net.core.somaxconn`). Default 1024.
    pub backlog: u32,
    /// Lets other processes listen on the same address at the same time (`SO_REUSEPORT`), if all of them ask for it.
    /// Linux spreads connections over them. When one of them stops, connections that the system has queued for it are
    /// lost, unless `net.ipv4.tcp_migrate_req` is set; handing one listener over to the next process
    /// ([`Server::from_listener`]) loses none. Default false: a second process gets an error.
    pub reuse_port: bool,
    /// Whether a listener on `[::]` is for IPv6 alone. Default false: it takes IPv4 as well, on every system, and
    /// shows IPv4 peers with their IPv4 address.
    pub ipv6_only: bool,
}

impl Listen {
    /// The defaults named at each field.
    pub const DEFAULT: Listen = Listen { backlog: 1024, reuse_port: false, ipv6_only: false };
}

impl Default for Listen {
    fn default() -> Listen {
        Listen::DEFAULT
    }
}

/// A server that listens, and is not started yet.
///
/// From [`bind`](Server::bind) on, the system queues connections; they are answered once it is started, by
/// [`serve`](Server::serve) or [`start`](Server::start).
///
/// ```no_run
/// use sprat::{Server, routes};
///
/// routes! {
///     Api for u64 { GET "/" => count(), }
/// }
///
/// fn count(requests: &mut u64) -> String {
///     *requests += 1;
///     format!("request {requests}")
/// }
///
/// fn main() -> std::io::Result<()> {
///     Server::bind("127.0.0.1:3000")?.shutdown_on_signals().serve(Api, 0)
/// }
/// ```
pub struct Server {
    sockets: Sockets,
    limits: Limits,
    hook: Option<Hook>,
    /// How long after a signal the listeners close; none if signals are not ours.
    signal_delay: Option<Duration>,
    trusted: Trusted,
    offload: Offload,
    stall_threshold: Duration,
    /// How it listens, if its listener was made here.
    listen: Option<Listen>,
}

impl Server {
    /// Listens on an address, with [`Listen::DEFAULT`]. Port 0 lets the system choose; see
    /// [`local_addr`](Server::local_addr). Of several addresses the first that works is taken.
    ///
    /// ```
    /// let server = sprat::Server::bind("127.0.0.1:0")?;
    /// assert_ne!(server.local_addr()?.port(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// The address cannot be had: `AddrInUse` if another process listens there, `PermissionDenied`, or another. The
    /// text names the address.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Server> {
        Server::bind_with(address, &Listen::DEFAULT)
    }

    /// Listens on an address, with these options.
    ///
    /// # Errors
    /// As for [`bind`](Server::bind).
    pub fn bind_with(address: impl ToSocketAddrs, options: &Listen) -> io::Result<Server> {
        let mut server = Server::from_listener(sockets::bind(address.to_socket_addrs()?, options)?)?;
        server.listen = Some(options.clone());
        Ok(server)
    }

    /// Takes over a listener that was made elsewhere, or was inherited. It is made non-blocking, and `TCP_NODELAY` is
    /// set on it.
    ///
    /// One listener that is handed from process to process loses no connection in a restart: the new process accepts
    /// while the old one drains. A parent can give it to its child as standard input, without any `unsafe`:
    ///
    /// ```no_run
    /// use std::net::TcpListener;
    /// use std::os::fd::{AsFd, OwnedFd};
    /// use std::process::Command;
    ///
    /// # fn parent(listener: &TcpListener) -> std::io::Result<()> {
    /// let listener = listener.as_fd().try_clone_to_owned()?;
    /// Command::new("the-server").stdin(listener).spawn()?;
    /// # Ok(()) }
    /// # fn child() -> std::io::Result<()> {
    /// // And in the child:
    /// let listener = TcpListener::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    /// let server = sprat::Server::from_listener(listener)?;
    /// # Ok(()) }
    /// ```
    ///
    /// ```
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let server = sprat::Server::from_listener(listener)?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// The listener cannot be set up.
    pub fn from_listener(listener: TcpListener) -> io::Result<Server> {
        Server::over(Listener::tcp(listener)?)
    }

    fn over(listener: Listener) -> io::Result<Server> {
        Ok(Server {
            sockets: Sockets::new(listener)?,
            limits: Limits::DEFAULT,
            hook: None,
            signal_delay: None,
            trusted: Trusted::default(),
            offload: Offload::DEFAULT,
            stall_threshold: STALL_THRESHOLD,
            listen: None,
        })
    }

    /// Listens on a unix-domain socket at this path. [`Request::peer`](crate::Request::peer) is None there.
    ///
    /// A socket file that a server left behind when it was killed is replaced: whether somebody listens there is found
    /// out by connecting. Nothing but such a file is ever deleted. It is removed when the listener closes, by a
    /// shutdown or because the server is dropped, unless something else stands in its place by then. So do not hand
    /// this listener over to another process; bind it outside, and take it by
    /// [`from_unix_listener`](Server::from_unix_listener).
    ///
    /// Who may connect is whoever may write to the file, and may search the folders above it. Its permissions are
    /// what the process's umask leaves of 0777; `std::fs::set_permissions` after this call changes them, though not
    /// for who connected before. A folder that only authorised users may search leaves no such gap.
    /// Two servers that start at the same moment over the same dead file can both believe that it is theirs.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("sprat-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// let path = folder.join("api.sock");
    /// let server = sprat::Server::bind_unix(&path)?;
    /// assert!(sprat::Server::bind_unix(&path).unwrap_err().to_string().contains("another process listens there"));
    /// drop(server);
    /// assert!(!path.exists());
    /// # std::fs::remove_dir_all(&folder)?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// `AddrInUse` if another process listens there, `AlreadyExists` if something else than a socket is there, or
    /// another. The text names the path.
    #[cfg(unix)]
    pub fn bind_unix(path: impl AsRef<Path>) -> io::Result<Server> {
        let (listener, file) = unix::bind(path.as_ref())?;
        Server::over(Listener::unix(listener, Some(file))?)
    }

    /// Takes over a listener of a unix-domain socket that was made elsewhere, or was inherited. It is made
    /// non-blocking. Its file, if it has one, is not ours, and stays.
    ///
    /// # Errors
    /// The listener cannot be set up.
    #[cfg(unix)]
    pub fn from_unix_listener(listener: UnixListener) -> io::Result<Server> {
        Server::over(Listener::unix(listener, None)?)
    }

    /// Takes over the listeners that a service manager opened for this process: systemd's socket activation, by the
    /// variables `LISTEN_FDS` and `LISTEN_PID`. `None` if there are none, so that a program can bind by itself then.
    ///
    /// The manager keeps the sockets open while the service restarts, so that connections wait instead of failing.
    /// All of them are listened on, TCP and unix alike; a file of theirs is not removed. The variables are taken out
    /// of the environment: call this once, before other threads are started. A missing `LISTEN_PID` passes.
    ///
    /// ```
    /// use sprat::Server;
    /// let server = match Server::from_env()? {
    ///     Some(server) => server,
    ///     None => Server::bind("127.0.0.1:0")?,
    /// };
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` if one of the descriptors is no listener of a stream. The text names it.
    #[cfg(all(unix, feature = "listenfd"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "listenfd")))]
    pub fn from_env() -> io::Result<Option<Server>> {
        let mut server: Option<Server> = None;
        for listener in sockets::from_env()? {
            let one = Server::over(listener)?;
            server = Some(match server {
                None => one,
                Some(server) => server.and(one),
            });
        }
        Ok(server)
    }

    /// Listens where `other` does as well. What else was set on `other` does not count, and a [`Handle`] of it stops
    /// nothing.
    ///
    /// Connections from all listeners count towards one [`Limits::connections_max`]. The listeners are asked in turn,
    /// so that none of them can keep another waiting.
    ///
    /// ```
    /// use sprat::Server;
    /// let server = Server::bind("127.0.0.1:0")?.and(Server::bind("127.0.0.1:0")?);
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn and(mut self, mut other: Server) -> Server {
        self.sockets.take_listeners(&mut other.sockets);
        // Workers would not know how to listen there once more.
        self.listen = None;
        self
    }

    /// The address that it listens on; the first one if there are several.
    ///
    /// # Errors
    /// It listens on unix-domain sockets only, or the system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.sockets.local_addr()
    }

    /// Replaces [`Limits::DEFAULT`]. Limits that make no sense are an error at the start.
    ///
    /// ```
    /// use sprat::{Limits, Server};
    /// let limits = Limits { body_bytes_max: 16 << 20, ..Limits::DEFAULT };
    /// let server = Server::bind("127.0.0.1:0")?.limits(limits);
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Server {
        self.limits = limits;
        self
    }

    /// Has this function called for each [`Event`], in the server's thread. There is no log otherwise, but for what `observe`
    /// is told of answers; see [`routes!`](crate::routes#observing).
    ///
    /// If it panics, as `eprintln!` does when nobody reads standard error, that event is lost and the server goes on.
    ///
    /// ```
    /// use std::io::Write;
    /// use sprat::{Level, Server};
    /// let server = Server::bind("127.0.0.1:0")?.on_event(|event| {
    ///     if event.level() >= Level::Info {
    ///         let _ = writeln!(std::io::stderr(), "{event}");
    ///     }
    /// });
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn on_event(mut self, hook: impl FnMut(&Event<'_>) + Send + 'static) -> Server {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Expects a PROXY protocol header (version 1 or 2) at the start of each connection from these peers, which are
    /// balancers, and of no other. [`Request::peer`](crate::Request::peer) is then the address that the header names,
    /// or the connection's own where it names none (`LOCAL`, `UNKNOWN`).
    ///
    /// Each is an address, a prefix, or `unix` for the peers of unix-domain listeners. Whoever can connect from one of
    /// them can claim any address: do not name more than the balancers. From a trusted peer the header has to come,
    /// whole within [`Limits::head_timeout`]; anything else is 400. From all others a header is a bad request.
    ///
    /// ```
    /// use sprat::Server;
    /// let server = Server::bind("127.0.0.1:0")?.proxy_protocol(["10.0.0.0/8", "fd00::/8", "192.168.1.7"])?;
    /// let error = Server::bind("127.0.0.1:0")?.proxy_protocol(["10.0.0.1/8"]).unwrap_err();
    /// assert_eq!(error.to_string(), "trusted peer \"10.0.0.1/8\": bits are set beyond the prefix");
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput`: one of them is not as above. The text names it.
    pub fn proxy_protocol(mut self, trusted: impl IntoIterator<Item = impl AsRef<str>>) -> io::Result<Server> {
        for peer in trusted {
            let peer = peer.as_ref();
            self.trusted.add(peer).map_err(|rule| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("trusted peer {peer:?}: {rule}"))
            })?;
        }
        Ok(self)
    }

    /// Has SIGTERM and SIGINT do what [`Handle::shutdown`] does, from the start on. A second signal ends the process
    /// at once, with status 128 plus its number.
    ///
    /// Not the default, because signals belong to the whole process. It works for process 1 of a container too, where
    /// a signal without a handler does nothing. The handlers are not taken away again: after the last server that
    /// asked for them, a signal ends the process. Unix only; an error at the start elsewhere.
    #[must_use]
    pub fn shutdown_on_signals(self) -> Server {
        self.shutdown_on_signals_after(Duration::ZERO)
    }

    /// The same by way of [`Handle::shutdown_after`]: for this long after the first signal a readiness route can fail
    /// while all else goes on. Where a balancer has to find out first, this is its time to do so.
    #[must_use]
    pub fn shutdown_on_signals_after(mut self, delay: Duration) -> Server {
        self.signal_delay = Some(delay);
        self
    }

    /// Replaces [`Offload::DEFAULT`]: the threads for [`Later::offload`](crate::Later::offload).
    #[must_use]
    pub fn offload(mut self, offload: Offload) -> Server {
        self.offload = offload;
        self
    }

    /// How long a handler may keep the loop from everybody else before it is counted ([`Stats::stalls`]) and told with
    /// its route ([`Event::Stalled`]). Default 50 ms. Such work belongs in [`Later::offload`](crate::Later::offload).
    ///
    /// It costs one look at the clock for each turn of the loop, not for each request. So if several requests shared a
    /// turn, a stall is reported without a route. After a second one of these within a minute, the clock is read per
    /// connection for the next minute, and a stall then names its route, unless the connection itself had several
    /// requests in that turn.
    /// [`Duration::MAX`] switches it off.
    #[must_use]
    pub fn stall_threshold(mut self, threshold: Duration) -> Server {
        self.stall_threshold = threshold;
        self
    }

    /// A handle that stops the server, from any thread, before or after the start.
    pub fn handle(&self) -> Handle {
        Handle { mailbox: self.sockets.mailbox() }
    }

    /// Starts without a loop: for programs that have one of their own. See [`Running::poll_once`].
    ///
    /// # Errors
    /// `InvalidInput` if a limit makes no sense; the text names it. Otherwise an error of the system.
    pub fn start<T: Table<S>, S: 'static>(self, table: T, state: S) -> io::Result<Running<S>> {
        // A table is a name for its rows.
        let _ = table;
        self.start_rows(T::ROUTES, state, 1)
    }

    /// Starts one of `loops` loops that share the descriptors of the process.
    fn start_rows<S: 'static>(self, routes: &'static Routes<S>, state: S, loops: usize) -> io::Result<Running<S>> {
        let Server { mut sockets, limits, hook, signal_delay, trusted, offload, stall_threshold, .. } = self;
        limits.check().map_err(|rule| io::Error::new(io::ErrorKind::InvalidInput, format!("Limits: {rule}")))?;
        sockets.listen(signal_delay)?;
        let connections_max = sockets::descriptors_max().map_or(usize::MAX, connections_for) / loops;
        let places: Vec<_> = sockets.places().collect();
        let mailbox = sockets.mailbox();
        let mut events = EventLoop::new(sockets, routes, state, limits, connections_max, hook);
        events.trust(trusted);
        events.configure(offload, stall_threshold);
        for place in &places {
            events.tell_listening(place.address, place.path.as_deref());
        }
        events.tell_memory_ceiling();
        Ok(Running { events, mailbox })
    }

    /// Starts, and serves until shutdown is complete.
    ///
    /// Handlers run in this thread, one at a time: while one of them computes or waits, nobody else is served.
    ///
    /// # Errors
    /// As for [`start`](Server::start); later only if the system refuses to wait for events. After a shutdown, even
    /// one that had to cut connections off, it is `Ok`.
    pub fn serve<T: Table<S>, S: 'static>(self, table: T, state: S) -> io::Result<()> {
        let mut running = self.start(table, state)?;
        while running.poll_once(None)? {}
        Ok(())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}

const STALL_THRESHOLD: Duration = Duration::from_millis(50);

/// Some descriptors are left to the program, but never more than half of them.
fn connections_for(descriptors: usize) -> usize {
    descriptors.saturating_sub(64).max(descriptors / 2)
}

/// A server that was started, and runs whenever it is polled.
///
/// Dropping it closes all its connections at once.
///
/// ```
/// use std::time::Duration;
/// use sprat::{Server, routes};
///
/// routes! {
///     Api for u64 { GET "/" => count(), }
/// }
/// fn count(requests: &mut u64) -> &'static str {
///     *requests += 1;
///     "counted"
/// }
///
/// let mut running = Server::bind("127.0.0.1:0")?.start(Api, 0)?;
/// for _ in 0..3 {
///     running.poll_once(Some(Duration::from_millis(1)))?;
///     // ... whatever else the program has to do
/// }
/// assert_eq!(running.state(), &0);
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Running<S: 'static> {
    events: EventLoop<Sockets, S>,
    mailbox: Arc<Mailbox>,
}

impl<S: 'static> Running<S> {
    /// Waits until there is something to do, at most this long (None: as long as it takes), and does it: one turn,
    /// bounded for each connection. Returns false once shutdown is complete, and from then on.
    ///
    /// Timeouts of connections are looked at here only: poll no later than [`timeout`](Running::timeout) says, or a few
    /// times a second.
    ///
    /// # Errors
    /// The system refuses to wait for events.
    pub fn poll_once(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let goes_on = self.events.turn(timeout);
        if self.mailbox.has_questions() {
            self.mailbox.answer_questions(self.events.stats());
        }
        goes_on
    }

    /// How long the next poll can wait, as the last one left it. Zero: something is to be done at once. None: only the
    /// descriptor can tell.
    ///
    /// With it, a program that waits for descriptors by itself need not wait in [`poll_once`](Running::poll_once). On Linux
    /// a `Running` has a descriptor, which is readable when a poll has something to do:
    ///
    #[cfg_attr(target_os = "linux", doc = "```")]
    #[cfg_attr(not(target_os = "linux"), doc = "```ignore")]
    /// use std::time::Duration;
    /// use rustix::event::{PollFd, PollFlags, Timespec, poll};
    /// use rustix::io::retry_on_intr;
    /// use sprat::{Server, routes};
    ///
    /// routes! { Api for u64 { GET "/" => count(), } }
    /// fn count(requests: &mut u64) -> String { *requests += 1; requests.to_string() }
    ///
    /// let mut running = Server::bind("127.0.0.1:0")?.start(Api, 0)?;
    /// # let handle = running.handle();
    /// # std::thread::spawn(move || handle.shutdown());
    /// // ... beside other descriptors of the program
    /// while running.poll_once(Some(Duration::ZERO))? {
    ///     let timeout = running.timeout().map(|time| Timespec::try_from(time).expect("it is short"));
    ///     // Not interrupted by a signal, which is an event.
    ///     retry_on_intr(|| poll(&mut [PollFd::new(&running, PollFlags::IN)], timeout.as_ref()))?;
    /// }
    /// # std::io::Result::Ok(())
    /// ```
    pub fn timeout(&self) -> Option<Duration> {
        self.events.timeout(None)
    }

    /// The state that handlers work on.
    pub fn state(&self) -> &S {
        self.events.state()
    }

    /// The state that handlers work on, between two turns.
    pub fn state_mut(&mut self) -> &mut S {
        self.events.state_mut()
    }

    /// For other threads, to have closures called with the state.
    pub fn caller(&mut self) -> Caller<S> {
        self.events.caller()
    }

    /// Ends the server, and hands the state back.
    pub fn into_state(self) -> S {
        self.events.into_state()
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The listener is closed, or the system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.events.net().local_addr()
    }

    /// Counters since the start.
    pub fn stats(&self) -> Stats {
        self.events.stats()
    }

    /// A handle that stops the server, from any thread or from a handler.
    pub fn handle(&self) -> Handle {
        Handle { mailbox: Arc::clone(&self.mailbox) }
    }
}

/// See [`Running::timeout`].
#[cfg(any(target_os = "linux", target_os = "android"))]
impl<S: 'static> AsFd for Running<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.net().as_fd()
    }
}

/// Stops a server, from wherever it is sent.
///
/// ```
/// use sprat::{Server, routes};
///
/// routes! {
///     Api for () { GET "/" => hello(), }
/// }
/// fn hello(_: &mut ()) -> &'static str {
///     "hello"
/// }
///
/// let server = Server::bind("127.0.0.1:0")?;
/// let handle = server.handle();
/// let thread = std::thread::spawn(move || server.serve(Api, ()));
/// handle.shutdown();
/// thread.join().expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct Handle {
    mailbox: Arc<Mailbox>,
}

impl Handle {
    /// Begins to shut down, without waiting for it.
    ///
    /// Connections that wait in the listener's queue are taken, and it closes. Idle connections close, but for a
    /// request that has arrived already; one that was answered less than half a second ago keeps the remainder of that
    /// half second to send its next request. Requests that are being received are finished, answers carry
    /// `Connection: close`. Whatever is left after [`Limits::drain_timeout`] is cut off. Then
    /// [`serve`](Server::serve) returns.
    pub fn shutdown(&self) {
        self.shutdown_after(Duration::ZERO);
    }

    /// Asks the server for its counters; those of all workers, added up. None if it does not answer within a second.
    ///
    /// Not from a handler: its loop would wait for itself.
    pub fn stats(&self) -> Option<Stats> {
        let mut sum = Stats::default();
        for question in self.mailbox.ask_for_stats() {
            sum = sum + question.wait(Duration::from_secs(1))?;
        }
        Some(sum)
    }

    /// Announces a shutdown. [`Request::is_draining`](crate::Request::is_draining) is true at once, so that a readiness
    /// route can fail and balancers look elsewhere; all else goes on for this long, then it is as
    /// [`shutdown`](Handle::shutdown). Of several delays the one that ends first counts.
    ///
    /// From half of the delay on answers carry `Connection: close`, so that whoever is active has left before the end:
    /// a connection closed while it seems idle could lose a request that is on its way.
    pub fn shutdown_after(&self, delay: Duration) {
        self.mailbox.ask_for_shutdown(delay);
    }
}
