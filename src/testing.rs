//! A test client without sockets: the same connection machine and the same table, over bytes in memory.
//!
//! [`Client`] sends whole requests and hands back [`Answer`]s. [`Link`] is one raw connection: bytes go in as you split
//! them, the clock is yours, and you see every byte that comes back and why the connection was closed. [`Simulation`]
//! goes further down: the event loop of a real server, with many scripted clients that drip, stall or reset.
//!
//! ```
//! use sprat::{routes, testing::Client};
//!
//! struct App { visits: u32 }
//! routes! { Api for App { GET "/visits" => visits(), } }
//! fn visits(app: &mut App) -> String { app.visits += 1; app.visits.to_string() }
//!
//! let mut client = Client::new(Api, App { visits: 41 });
//! assert_eq!(client.get("/visits").text(), "42");
//! assert_eq!(client.get("/none").status(), 404);
//!
//! let mut link = client.connect();
//! link.send_bytewise(b"GET /visits HTTP/1.1\r\nHost: x\r\n\r\n");
//! assert_eq!(link.answers()[0].text(), "43");
//! ```

mod answer;
mod peer;
mod random;
mod script;
mod simulation;
mod world;

use std::borrow::BorrowMut;
use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::{CloseReason, Connection, Next, Tick, Turn, Workspace};
use crate::held::PADDING_LEN;
use crate::later::{Job, Lane, Outside, locked};
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::method::Method;
use crate::route::{Routes, Table};
use crate::server::offload::{Offload, Pool};

#[cfg(any(test, feature = "internals"))]
pub(crate) use {
    answer::parse_answers,
    peer::{Log, Outlook, Peer, Way},
    random::Random,
    script::{Reading, Step},
    simulation::Driver,
    world::{Chaos, Outage, Outsiders, World},
};

pub use answer::Answer;
pub use script::Script;
pub use simulation::{ClientId, Outcome, Simulation};

use answer::{Fault, read_answers, read_last};

/// Sends requests to a table and its state. See the [module](self).
pub struct Client<S: 'static> {
    routes: &'static Routes<S>,
    state: S,
    limits: Limits,
    workspace: Workspace,
    read: Vec<u8>,
    now: Tick,
    peer: Option<SocketAddr>,
    pool: Pool,
    bell: Arc<Bell>,
    holds_work: bool,
    /// Connections so far: each is an owner of tickets of its own.
    links: u64,
    behind_proxy: bool,
}

impl<S: 'static> Client<S> {
    /// A client of this table. Its clock stands at 2000-01-01 00:00:00 GMT until it is advanced.
    pub fn new<T: Table<S>>(table: T, state: S) -> Client<S> {
        let _ = table;
        let pool = Pool::new(Offload::DEFAULT);
        pool.drive_by_hand();
        let mut workspace = Workspace::new(UNIX_SECONDS_AT_START);
        let bell = Arc::new(Bell::default());
        workspace.lane = Lane::new(Box::new(Inside { pool: pool.clone(), bell: Arc::clone(&bell) }));
        Client {
            routes: T::ROUTES,
            state,
            limits: Limits::DEFAULT,
            workspace,
            read: vec![0; READ_BUFFER_LEN + PADDING_LEN],
            now: Tick(0),
            peer: None,
            pool,
            bell,
            holds_work: false,
            links: 0,
            behind_proxy: false,
        }
    }

    /// The same client with a pool of this size. No thread is started in any case: offloaded work is done by the calls
    /// that send requests, at their end.
    #[must_use]
    pub fn with_offload(self, offload: Offload) -> Client<S> {
        self.pool.configure(offload);
        self
    }

    /// From now on offloaded work waits for [`Link::work`].
    pub fn hold_work(&mut self) {
        self.holds_work = true;
    }

    /// The same client under other limits.
    ///
    /// # Panics
    /// If the limits contradict each other; see [`Limits::check`].
    #[must_use]
    #[track_caller]
    pub fn with_limits(mut self, limits: Limits) -> Client<S> {
        if let Err(rule) = limits.check() {
            panic!("{rule}");
        }
        self.limits = limits;
        self
    }

    /// The same client, whose connections come from this address.
    #[must_use]
    pub fn with_peer(mut self, peer: SocketAddr) -> Client<S> {
        self.peer = Some(peer);
        self
    }

    /// The same client, whose connections have to begin with a PROXY header.
    #[cfg(test)]
    pub(crate) fn behind_proxy(mut self) -> Client<S> {
        self.behind_proxy = true;
        self
    }

    /// The state that handlers see.
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// Lets time pass between connections.
    pub fn advance(&mut self, by: Duration) {
        self.now = self.now.after(by);
        self.workspace.output.date.set(UNIX_SECONDS_AT_START + self.now.0 / 1000);
    }

    /// From now on [`Request::is_draining`](crate::Request::is_draining) holds, as after a `shutdown_after`.
    pub fn announce_shutdown(&mut self) {
        self.workspace.draining = true;
    }

    /// From now on answers close their connections too.
    pub fn begin_shutdown(&mut self) {
        self.workspace.draining = true;
        self.workspace.closing = true;
    }

    /// GET on a connection of its own.
    ///
    /// # Panics
    /// As [`Outgoing::send`], also below.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Answer {
        self.request(Method::Get, target).send()
    }

    /// POST on a connection of its own.
    #[track_caller]
    pub fn post(&mut self, target: &str, body: &[u8]) -> Answer {
        self.request(Method::Post, target).body(body).send()
    }

    /// PUT on a connection of its own.
    ///
    /// ```
    /// use sprat::{routes, testing::Client};
    ///
    /// routes! {
    ///     Api for String {
    ///         PUT    "/" => put(body),
    ///         PATCH  "/" => patch(body),
    ///         DELETE "/" => String::clear(),
    ///     }
    /// }
    /// fn put(text: &mut String, body: Vec<u8>) { *text = String::from_utf8_lossy(&body).into_owned(); }
    /// fn patch(text: &mut String, body: Vec<u8>) { text.push_str(&String::from_utf8_lossy(&body)); }
    ///
    /// let mut client = Client::new(Api, String::new());
    /// assert_eq!(client.put("/", b"one").status(), 204);
    /// assert_eq!(client.patch("/", b" two").status(), 204);
    /// assert_eq!(client.state(), "one two");
    /// assert_eq!(client.delete("/").status(), 204);
    /// assert_eq!(client.state(), "");
    /// ```
    #[track_caller]
    pub fn put(&mut self, target: &str, body: &[u8]) -> Answer {
        self.request(Method::Put, target).body(body).send()
    }

    /// PATCH on a connection of its own.
    #[track_caller]
    pub fn patch(&mut self, target: &str, body: &[u8]) -> Answer {
        self.request(Method::Patch, target).body(body).send()
    }

    /// DELETE on a connection of its own.
    #[track_caller]
    pub fn delete(&mut self, target: &str) -> Answer {
        self.request(Method::Delete, target).send()
    }

    /// A request to be completed with fields and a body, and sent on a connection of its own.
    ///
    /// # Panics
    /// With [`Method::Other`], which is no token; see [`request_token`](Client::request_token).
    #[track_caller]
    pub fn request(&mut self, method: Method, target: &str) -> Outgoing<'_, S> {
        assert!(method != Method::Other, "`Method::Other` is no token; `Client::request_token` takes one of your own");
        self.request_token(method.as_str(), target)
    }

    /// A request with any token for its method.
    ///
    /// ```
    /// use sprat::{routes, testing::Client};
    /// routes! { Api for () { GET "/" => const text("hello"), } }
    /// let mut client = Client::new(Api, ());
    /// assert_eq!(client.request_token("PROPFIND", "/").send().status(), 405);
    /// assert_eq!(client.request_token("get", "/").send().status(), 405);
    /// assert_eq!(client.request_token("GET", "/").send().status(), 200);
    /// ```
    pub fn request_token(&mut self, token: &str, target: &str) -> Outgoing<'_, S> {
        let head = format!("{token} {target} HTTP/1.1\r\nHost: test.local\r\n").into_bytes();
        Outgoing { client: self, method: Method::from_token(token.as_bytes()), head, body: None }
    }

    /// Opens a raw connection: to send bytes in pieces, to stay after the first answer, or to see a stream come.
    ///
    /// A link borrows its client. For a stream, or an answer that another request causes, change the state by
    /// [`Link::state`] and call [`Link::work`]; or use a [`Simulation`] with two clients. For an answer from a thread of
    /// your own call [`Link::wait`]. What has come of a stream is in [`Link::partial`].
    pub fn connect(&mut self) -> Link<S, &mut Client<S>> {
        Link::new(self)
    }

    /// Opens a raw connection that owns its client, to be kept in a struct or handed on.
    pub fn into_link(self) -> Link<S, Client<S>> {
        Link::new(self)
    }
}

impl<S> std::fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("limits", &self.limits).field("now", &self.now).finish_non_exhaustive()
    }
}

/// Rung when there is something for the machine to do, by whatever thread; see [`Link::wait`].
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *locked(&self.rung) = true;
        self.changed.notify_one();
    }

    /// Waits until it is rung, at most so long; if it was rung since the last time, not at all.
    fn wait(&self, at_most: Duration) {
        let waited = self.changed.wait_timeout_while(locked(&self.rung), at_most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// A pool without threads, and a bell for who waits outside of the machine.
struct Inside {
    pool: Pool,
    bell: Arc<Bell>,
}

impl Outside for Inside {
    fn wake(&self) {
        self.bell.ring();
    }

    fn submit(&self, job: Job) -> Result<(), Job> {
        self.pool.submit(job)?;
        self.bell.ring();
        Ok(())
    }

    fn close(&self) {
        self.pool.close();
    }
}

/// The second at which the clocks of tests begin: 2000-01-01.
const UNIX_SECONDS_AT_START: u64 = 946_684_800;

/// A request that is being put together; see [`Client::request`].
pub struct Outgoing<'c, S: 'static> {
    client: &'c mut Client<S>,
    method: Method,
    head: Vec<u8>,
    body: Option<Vec<u8>>,
}

impl<S> Outgoing<'_, S> {
    /// Adds a field line, as it is.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.head.extend_from_slice(name.as_bytes());
        self.head.extend_from_slice(b": ");
        self.head.extend_from_slice(value.as_ref());
        self.head.extend_from_slice(b"\r\n");
        self
    }

    /// Sets the body and, when it is sent, its Content-Length.
    #[must_use]
    pub fn body(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.body = Some(bytes.as_ref().to_vec());
        self
    }

    /// Sets the body to this value, written as JSON, and adds `Content-Type: application/json`.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use sprat::{Json, Method, routes, testing::Client};
    ///
    /// #[derive(Serialize, Deserialize, Debug, PartialEq)]
    /// struct Order { item: String, count: u32 }
    /// routes! { Api for () { POST "/orders" => order(body), } }
    /// fn order(_: &mut (), Json(order): Json<Order>) -> Json<Order> { Json(order) }
    ///
    /// let order = Order { item: "milk".into(), count: 2 };
    /// let answer = Client::new(Api, ()).request(Method::Post, "/orders").json(&order).send();
    /// assert_eq!(answer.json::<Order>(), order);
    /// ```
    ///
    /// # Panics
    /// If it cannot be written as JSON.
    #[cfg(feature = "json")]
    #[must_use]
    #[track_caller]
    pub fn json(self, value: &(impl serde::Serialize + ?Sized)) -> Self {
        let mut body = Vec::new();
        if let Err(error) = crate::json::write(&mut body, value) {
            panic!("the body cannot be written as JSON: {error}");
        }
        self.field("Content-Type", "application/json").body(body)
    }

    /// The bytes that `send` would send.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        if let Some(body) = &self.body {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(body);
        } else {
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    /// Sends it, and hands back its final answer.
    ///
    /// # Panics
    /// If there is not exactly one, well-formed and whole.
    #[track_caller]
    pub fn send(self) -> Answer {
        let bytes = self.to_bytes();
        let mut link = self.client.connect();
        link.send(&bytes);
        let mut answers = match read_answers(link.received(), |_| self.method == Method::Head) {
            Ok(answers) => answers,
            Err(fault) if fault.is_open_stream && link.closed().is_none() => {
                panic!(
                    "{}",
                    fault.advise("open the connection by `Client::connect`, and look at it by `Link::partial`")
                )
            }
            Err(fault) => panic!("{fault}"),
        };
        answers.retain(|answer| answer.status() >= 200);
        match (answers.pop(), answers.len()) {
            (Some(answer), 0) => answer,
            (None, _) if link.received().is_empty() && link.closed().is_none() => {
                panic!(
                    "no answer yet: a request that waits for one (`Later`) needs `Client::connect`, and `Link::wait` \
                     where a thread of your own answers"
                )
            }
            (None, _) => panic!("no answer: {}", link.received().escape_ascii()),
            (Some(_), more) => {
                panic!("{} answers instead of one: {}", more + 1, link.received().escape_ascii())
            }
        }
    }
}

impl<S> std::fmt::Debug for Outgoing<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_bytes().escape_ascii())
    }
}

/// One raw connection; see [`Client::connect`]. `C` is the client, borrowed or owned.
pub struct Link<S: 'static, C: BorrowMut<Client<S>>> {
    /// Dropped before the state, which may join threads that wait for room in a stream.
    connection: Connection,
    client: C,
    state: PhantomData<S>,
    owner: u64,
    received: Vec<u8>,
    /// Sent, and not yet read by the server, as in a socket's receive queue.
    queue: VecDeque<u8>,
    queue_ends: bool,
    /// How many more bytes the peer takes.
    window: usize,
    eof: bool,
    write_shut: bool,
    closed: Option<CloseReason>,
}

impl<S, C: BorrowMut<Client<S>>> Link<S, C> {
    fn new(mut client: C) -> Link<S, C> {
        let Client { peer, now, links, behind_proxy, .. } = client.borrow_mut();
        *links += 1;
        let connect = if *behind_proxy { Connection::behind_proxy } else { Connection::new };
        Link {
            owner: *links,
            connection: connect(*peer, *now),
            client,
            state: PhantomData,
            received: Vec::new(),
            queue: VecDeque::new(),
            queue_ends: false,
            window: usize::MAX,
            eof: false,
            write_shut: false,
            closed: None,
        }
    }

    /// Sends bytes in one piece. While the server does not read, they wait as they would in a socket.
    pub fn send(&mut self, bytes: &[u8]) {
        self.queue.extend(bytes);
        self.pump();
    }

    /// Lets the server read what waits, as long as it wants to.
    fn pump(&mut self) {
        while !self.queue.is_empty()
            && self.closed.is_none()
            && self.connection.wants_read(&self.client.borrow().limits)
        {
            let Client { read, workspace, .. } = self.client.borrow_mut();
            let space = self.connection.recv_space(read, &mut workspace.pool);
            let n = self.queue.read(space).unwrap_or(0);
            self.step(|connection, read, turn| connection.handle_recv(n, read, turn));
        }
        if self.queue_ends && self.queue.is_empty() && !self.eof {
            self.eof = true;
            self.step(|connection, _, turn| connection.handle_eof(turn));
        }
    }

    /// Sends bytes one at a time.
    pub fn send_bytewise(&mut self, bytes: &[u8]) {
        bytes.chunks(1).for_each(|byte| self.send(byte));
    }

    /// Sends bytes cut at these offsets.
    pub fn send_split(&mut self, bytes: &[u8], cuts: &[usize]) {
        let mut from = 0;
        for &cut in cuts.iter().chain([&bytes.len()]) {
            let cut = cut.clamp(from, bytes.len());
            self.send(&bytes[from..cut]);
            from = cut;
        }
    }

    /// Shuts down the sending side: the server sees the end of the stream and may still answer.
    pub fn close_write(&mut self) {
        self.queue_ends = true;
        self.pump();
    }

    /// Lets time pass. Deadlines that lie within come due at the end of it.
    pub fn advance(&mut self, by: Duration) {
        self.client.borrow_mut().advance(by);
        self.step(|connection, _, turn| connection.handle_timeout(turn));
    }

    /// From now on the peer takes this many more bytes of output and then none.
    pub fn take_at_most(&mut self, bytes: usize) {
        self.window = bytes;
        self.step(|_, _, _| {});
        self.pump();
    }

    /// Does the work that waits in the pool, and hands over the answers that have come from there or from other threads.
    pub fn work(&mut self) {
        while self.client.borrow().pool.run_one() {}
        self.step(|_, _, _| {});
        self.pump();
    }

    /// Waits, in real time and at most so long, until nothing on this connection waits for an answer that is made
    /// elsewhere, as by a thread of your own. Returns whether that is so. A stream that has begun is an answer; for its
    /// parts see [`wait_until`](Link::wait_until).
    ///
    /// ```
    /// use std::time::Duration;
    /// use sprat::{Later, routes, testing::Client};
    ///
    /// routes! { Api for () { GET "/slow" => slow(later), } }
    /// fn slow(_: &mut (), later: Later<()>) {
    ///     std::thread::spawn(move || later.answer("done"));
    /// }
    ///
    /// let mut client = Client::new(Api, ());
    /// let mut link = client.connect();
    /// link.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    /// assert!(link.wait(Duration::from_secs(10)));
    /// assert_eq!(link.answers()[0].text(), "done");
    /// ```
    pub fn wait(&mut self, at_most: Duration) -> bool {
        self.wait_until(at_most, |link| !link.connection.waits_for_head())
    }

    /// Waits, in real time and at most so long, until this holds. Returns whether it does.
    ///
    /// It is asked at once, and again whenever a letter has come from elsewhere. The clock of the client stands
    /// meanwhile, so no deadline passes. Work for the pool is done, unless it is [held](Client::hold_work).
    ///
    /// ```
    /// use std::time::Duration;
    /// use sprat::{Later, StreamHead, routes, testing::Client};
    ///
    /// routes! { Api for () { GET "/count" => count(later), } }
    /// fn count(_: &mut (), later: Later<()>) {
    ///     let stream = later.stream(StreamHead::new("text/plain"));
    ///     std::thread::spawn(move || {
    ///         for number in 1..=3 {
    ///             if stream.send(format!("{number} ")).is_err() { return; }
    ///         }
    ///         stream.end();
    ///     });
    /// }
    ///
    /// let mut link = Client::new(Api, ()).into_link();
    /// link.send(b"GET /count HTTP/1.1\r\nHost: x\r\n\r\n");
    /// assert!(link.wait_until(Duration::from_secs(10), |link| link.partial().text().contains('2')));
    /// assert!(link.wait_until(Duration::from_secs(10), |link| link.received().ends_with(b"\r\n0\r\n\r\n")));
    /// assert_eq!(link.answers()[0].text(), "1 2 3 ");
    /// ```
    pub fn wait_until(&mut self, at_most: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let bell = Arc::clone(&self.client.borrow().bell);
        let ends = Instant::now().checked_add(at_most);
        loop {
            self.step(|_, _, _| {});
            self.pump();
            if holds(self) {
                return true;
            }
            let left = ends.map_or(at_most, |ends| ends.saturating_duration_since(Instant::now()));
            if left.is_zero() || self.closed.is_some() {
                return false;
            }
            bell.wait(left);
        }
    }

    /// Every byte that came back.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// What came back, as answers. None of the requests may have been HEAD; see [`Link::answers_to`].
    ///
    /// # Panics
    /// If it is not whole answers. For a stream that has not ended see [`Link::partial`].
    #[track_caller]
    pub fn answers(&self) -> Vec<Answer> {
        match read_answers(&self.received, |_| false) {
            Ok(answers) => answers,
            Err(fault) => panic!("{}", self.explain(fault)),
        }
    }

    /// What came back, as answers to requests with these methods. Interim answers count for none.
    ///
    /// # Panics
    /// As [`Link::answers`].
    #[track_caller]
    pub fn answers_to(&self, methods: &[Method]) -> Vec<Answer> {
        match read_answers(&self.received, |at| methods.get(at) == Some(&Method::Head)) {
            Ok(answers) => answers,
            Err(fault) => panic!("{}", self.explain(fault)),
        }
    }

    /// The last answer, as far as it has come: of a stream that is still open, the content of all parts so far. None of
    /// the requests may have been HEAD.
    ///
    /// ```
    /// use sprat::{Later, Stream, StreamHead, routes, testing::Client};
    ///
    /// struct App { stream: Option<Stream> }
    /// routes! { Api for App { GET "/stream" => stream(later), } }
    /// fn stream(app: &mut App, later: Later<App>) {
    ///     app.stream = Some(later.stream(StreamHead::new("text/plain")));
    /// }
    ///
    /// let mut client = Client::new(Api, App { stream: None });
    /// let mut link = client.connect();
    /// link.send(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    /// assert_eq!((link.partial().status(), link.partial().text()), (200, ""));
    /// for part in ["to be ", "continued"] {
    ///     assert!(link.state().stream.as_ref().is_some_and(|stream| stream.send(part).is_ok()));
    /// }
    /// link.work();
    /// assert_eq!(link.partial().text(), "to be continued");
    /// ```
    ///
    /// # Panics
    /// If no head of an answer has come, or what has come is wrong.
    #[track_caller]
    pub fn partial(&self) -> Answer {
        match read_last(&self.received) {
            Ok(Some(answer)) => answer,
            Ok(None) => panic!("no answer has begun: {}", self.received.escape_ascii()),
            Err(fault) => panic!("{fault}"),
        }
    }

    fn explain(&self, fault: Fault) -> Fault {
        match (fault.is_open_stream, self.closed) {
            (false, _) => fault,
            (true, None) => fault.advise("`Link::partial` hands out what has come of it"),
            (true, Some(_)) => fault.advise("it was broken off, and `Link::partial` hands out what came of it"),
        }
    }

    /// Why the connection is closed, once it is.
    pub fn closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Whether the server has shut down its sending side, or closed.
    pub fn is_write_shut(&self) -> bool {
        self.write_shut || self.closed.is_some()
    }

    /// Bytes of memory that the server holds for this connection, beside its fixed part.
    pub fn held_bytes(&self) -> usize {
        self.connection.held_bytes()
    }

    /// The state that handlers see.
    pub fn state(&mut self) -> &mut S {
        &mut self.client.borrow_mut().state
    }

    /// One event and all that follows from it, as the loop would do it.
    fn step(&mut self, event: impl FnOnce(&mut Connection, &mut [u8], &mut Turn<'_, S>)) {
        let Link { client, connection, received, window, write_shut, closed, owner, .. } = self;
        if closed.is_some() {
            return;
        }
        let Client { routes, state, limits, workspace, read, now, pool, holds_work, .. } = client.borrow_mut();
        workspace.lane.owner = *owner;
        let mut turn = Turn { workspace, routes, state, limits, now: *now, ran: None };
        event(connection, read, &mut turn);
        loop {
            let sent = connection.transmit(&mut turn.workspace.output, turn.now, |slices| {
                let before = *window;
                for slice in slices {
                    let taken = slice.len().min(*window);
                    received.extend_from_slice(&slice[..taken]);
                    *window -= taken;
                }
                if before == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(before - *window) }
            });
            debug_assert!(sent.is_ok(), "memory does not fail");
            match connection.next(turn.now) {
                Next::Stay => {}
                Next::ShutdownWrite => *write_shut = true,
                Next::Close(reason) => {
                    *closed = Some(reason);
                    connection.release(&mut turn.workspace.pool);
                    return;
                }
            }
            if connection.can_go_on(turn.limits) {
                connection.handle_resume(&mut turn);
            } else if turn.workspace.lane.post.has_letters() {
                for letter in turn.workspace.lane.post.take() {
                    // Others are for connections that are gone.
                    if letter.owner() == *owner {
                        connection.handle_letter(letter.number(), letter.content, &mut turn);
                    }
                }
            } else if *holds_work || !connection.is_waiting() || !pool.run_one() {
                return;
            }
        }
    }
}

impl<S, C: BorrowMut<Client<S>>> Drop for Link<S, C> {
    fn drop(&mut self) {
        self.connection.release(&mut self.client.borrow_mut().workspace.pool);
    }
}

impl<S, C: BorrowMut<Client<S>>> std::fmt::Debug for Link<S, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} after {}", self.connection, self.received.escape_ascii())
    }
}
