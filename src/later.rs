//! Answers that are made elsewhere: the handle that a handler passes on, and the letters that come back for it. And what
//! other threads have called with the state, which are letters too.
//!
//! ```text
//!   handler --Later--> state, another thread, the pool            any thread --letter--> Post --wake--> the loop
//!                                                                 the loop: letter -> slot -> machine -> answer
//! ```
//!
//! A letter names its owner (slot and generation) and the number of its ticket, and every ticket of a loop has a
//! number of its own: what comes late, or twice, finds nobody. Starts no thread and wakes nobody by itself; see
//! [`Outside`].

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::caught::{caught, discard};
use crate::rejection::Rejection;
use crate::request::{FromRequest, Request, TheLater};
use crate::response::{Respond, Response, Sent};
use crate::stream::{Part, Stream, StreamHead};

/// The right to answer a request once, later, from anywhere.
///
/// A handler takes it as an argument, and returns nothing. It can be kept in the state, moved to another thread, or
/// spent at once on work for the [pool](crate::Offload). The connection keeps its place: what the client has pipelined
/// behind the request waits until it is answered.
///
/// Dropped without an answer it answers 500, so that no client waits in vain. When the client leaves
/// ([`is_closed`](Later::is_closed)), or [`Limits::answer_timeout`](crate::Limits::answer_timeout) passes, it does
/// nothing any more. An answer can never reach another request.
///
/// ```
/// use sprat::{Later, Status, routes};
///
/// #[derive(Default)]
/// struct App { waiting: Vec<Later<App>> }
///
/// routes! {
///     Api for App {
///         GET  "/next" => next(later),
///         POST "/news" => publish(text),
///     }
/// }
///
/// fn next(app: &mut App, later: Later<App>) {
///     app.waiting.push(later);
/// }
///
/// fn publish(app: &mut App, text: Vec<u8>) -> Status {
///     for later in app.waiting.drain(..) {
///         later.answer(text.clone());
///     }
///     Status::ACCEPTED
/// }
/// # let mut client = sprat::testing::Client::new(Api, App::default());
/// # assert_eq!(client.post("/news", b"x").status(), 202);
/// ```
///
/// A handler that can also refuse at once returns `Result<(), E>`.
pub struct Later<S: 'static> {
    ticket: Option<Arc<Ticket>>,
    state: PhantomData<fn(&mut S)>,
}

impl<S: 'static> Later<S> {
    pub(crate) fn new(ticket: Arc<Ticket>) -> Later<S> {
        Later { ticket: Some(ticket), state: PhantomData }
    }

    /// Answers.
    pub fn answer<R: Respond + Send + 'static>(self, answer: R) {
        self.post(Content::Answer(Box::new(move |_, response| answer.respond(response))));
    }

    /// Answers with what the closure makes of the state, in the server's thread.
    pub fn answer_with<R: Respond>(self, make: impl FnOnce(&mut S) -> R + Send + 'static) {
        self.post(Content::Answer(Box::new(move |state, response| make(own::<S>(state)).respond(response))));
    }

    /// Calls the closure in the server's thread, with the state and this right to answer.
    pub fn call(self, then: impl FnOnce(&mut S, Later<S>) + Send + 'static) {
        let Some(ticket) = self.ticket.clone() else { return };
        ticket.post(Content::Call(Box::new(move |state| then(own::<S>(state), self))));
    }

    /// Has `work` done by the pool of threads, and `then` called in the server's thread to answer with its result.
    ///
    /// Without a place in the pool's queue the answer is 503 with `Retry-After`, at once. Work that nobody has begun
    /// when the client leaves is dropped. A panic in it answers 500. See [`Offload`](crate::Offload).
    ///
    /// ```
    /// use sprat::{Later, Status, routes};
    ///
    /// struct App { logins: u64 }
    /// routes! { Api for App { POST "/login" => login(later, password), } }
    ///
    /// fn login(_: &mut App, later: Later<App>, password: Vec<u8>) {
    ///     later.offload(move || slow_hash(&password), |app, hash| match hash {
    ///         0xa9 => { app.logins += 1; Status::OK }
    ///         _ => Status::UNAUTHORIZED,
    ///     });
    /// }
    /// # fn slow_hash(password: &[u8]) -> u8 { password.iter().fold(0, |hash, &byte| hash ^ byte.rotate_left(1)) }
    /// # let mut client = sprat::testing::Client::new(Api, App { logins: 0 });
    /// # assert_eq!(client.post("/login", b"wrong").status(), 401);
    /// ```
    pub fn offload<T, R>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(&mut S, T) -> R + Send + 'static,
    ) where
        T: Send + 'static,
        R: Respond,
    {
        self.submit(move || {
            let result = work();
            Content::Answer(Box::new(move |state, response| then(own::<S>(state), result).respond(response)))
        });
    }

    /// As [`offload`](Later::offload); `then` gets the right to answer too, for more work, or for another time.
    pub fn offload_then<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(&mut S, T, Later<S>) + Send + 'static,
    ) {
        let Some(ticket) = self.ticket.clone() else { return };
        self.submit(move || {
            let result = work();
            Content::Call(Box::new(move |state| then(own::<S>(state), result, Later::new(ticket))))
        });
    }

    fn submit(mut self, work: impl FnOnce() -> Content + Send + 'static) {
        let Some(ticket) = self.ticket.take() else { return };
        let post = Arc::clone(&ticket.post);
        let job = Job { work: Some((ticket, Box::new(work))), queued: None };
        if let Err(job) = post.outside.submit(job) {
            job.refuse().send();
        }
    }

    /// Answers in parts.
    pub fn stream(mut self, head: StreamHead) -> Stream {
        // There is one until the right is spent, which takes `self`.
        let ticket = self.ticket.take().unwrap_or_else(Ticket::nobodys);
        Stream::begin(ticket, head)
    }

    /// Whether nobody waits for the answer any more: the client left, or the time was over.
    pub fn is_closed(&self) -> bool {
        self.ticket.as_ref().is_none_or(|ticket| ticket.is_closed())
    }

    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn number(&self) -> u64 {
        self.ticket.as_ref().map_or(0, |ticket| ticket.number)
    }

    fn post(mut self, content: Content) {
        if let Some(ticket) = self.ticket.take() {
            ticket.post(content);
        }
    }
}

impl<S: 'static> Drop for Later<S> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.post(Content::Dropped { panicking: std::thread::panicking() });
        }
    }
}

impl<S: 'static> fmt::Debug for Later<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Later").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S: 'static> FromRequest<'r, S> for Later<S> {
    type Takes = TheLater;
    fn from_request(_: &Request<'r>, ticket: TicketPart, _: &mut S) -> Result<Self, Rejection> {
        Ok(Later::new(ticket.0))
    }
}

/// Reaches the state of a running server from other threads; made by [`Running::caller`](crate::Running::caller), so for a
/// server that is started by [`start`](crate::Server::start) and polled. Workers have none: each has a state of its own.
///
/// ```
/// use std::time::Duration;
/// use sprat::{Server, routes};
///
/// struct App { temperature: i32 }
/// routes! { Api for App { GET "/" => temperature(), } }
/// fn temperature(app: &mut App) -> String { app.temperature.to_string() }
///
/// let mut running = Server::bind("127.0.0.1:0")?.start(Api, App { temperature: 0 })?;
/// # let handle = running.handle();
/// let caller = running.caller();
/// // A thread that watches a device, a file or a queue, until the server has ended.
/// let sensor = std::thread::spawn(move || {
///     while caller.call(|app| app.temperature += 1) {
///         std::thread::sleep(Duration::from_millis(10));
/// #       handle.shutdown();
///     }
/// });
/// // What `serve` does.
/// while running.poll_once(None)? {}
/// sensor.join().expect("no panic");
/// assert!(running.state().temperature > 0);
/// # std::io::Result::Ok(())
/// ```
pub struct Caller<S: 'static> {
    ticket: Arc<Ticket>,
    state: PhantomData<fn(&mut S)>,
}

impl<S: 'static> Caller<S> {
    pub(crate) fn new(ticket: Arc<Ticket>) -> Caller<S> {
        Caller { ticket, state: PhantomData }
    }

    /// Has the closure called in the server's thread with the state, between two requests, as soon as the server is
    /// polled. Does not wait for that. Those of one thread are called in order. Returns false, and drops the closure, once
    /// shutdown is complete or the server is dropped.
    ///
    /// While it runs nobody is served, and nothing bounds how many wait: call no more often than the server can follow. A
    /// panic in it is counted, and told as [`Event::CallPanicked`](crate::Event::CallPanicked). Those that wait when the
    /// server ends are dropped.
    #[must_use = "false is the only word of the end of the server"]
    pub fn call(&self, then: impl FnOnce(&mut S) + Send + 'static) -> bool {
        self.ticket.post(Content::Call(Box::new(move |state| then(own::<S>(state)))))
    }
}

impl<S: 'static> Clone for Caller<S> {
    fn clone(&self) -> Caller<S> {
        Caller::new(Arc::clone(&self.ticket))
    }
}

impl<S: 'static> fmt::Debug for Caller<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

/// The state of a loop, which is of the type that the `Later` was made for.
fn own<S: 'static>(state: &mut dyn Any) -> &mut S {
    match state.downcast_mut() {
        Some(state) => state,
        None => unreachable!("a ticket comes back to the loop that gave it out"),
    }
}

/// What an argument that answers later is made from; see [`TheLater`].
#[derive(Debug)]
pub struct TicketPart(pub(crate) Arc<Ticket>);

/// One request that is answered later, as both sides know it; or a loop, as a [`Caller`] knows it.
pub(crate) struct Ticket {
    post: Arc<Post>,
    /// The slot and the generation of its connection.
    owner: u64,
    /// No other ticket of the loop has it.
    pub(crate) number: u64,
    /// Nobody waits for more.
    closed: AtomicBool,
    /// Bytes on their way to the peer. One number: a sum of two is wrong while bytes go from one to the other, and who
    /// looks then is told that there is no room.
    waiting: AtomicUsize,
    room: (Mutex<()>, Condvar),
}

impl Ticket {
    fn nobodys() -> Arc<Ticket> {
        Lane::default().new_ticket()
    }

    /// Sends a letter. False if the loop is gone.
    pub(crate) fn post(self: &Arc<Ticket>, content: Content) -> bool {
        Letter { ticket: Arc::clone(self), content }.send()
    }

    /// Posts one part to each of these, and wakes each loop once.
    pub(crate) fn post_parts(tickets: Vec<Arc<Ticket>>, part: &Part) {
        let Some(first) = tickets.first() else { return };
        let post = Arc::clone(&first.post);
        let letter = |ticket| Letter { ticket, content: Content::Part(part.clone()) };
        let (own, others): (Vec<_>, Vec<_>) = tickets.into_iter().partition(|ticket| Arc::ptr_eq(&ticket.post, &post));
        post.send_all(own.into_iter().map(letter));
        for ticket in others {
            letter(ticket).send();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.tell_room();
    }

    /// Bytes on their way to the peer.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Counts bytes that are about to be posted, if they have room beside what waits already. One part always has.
    pub(crate) fn reserve(&self, len: usize, room: usize) -> bool {
        let add = |waiting: usize| {
            let sum = waiting.saturating_add(len);
            (waiting == 0 || sum <= room).then_some(sum)
        };
        self.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// Bytes that were counted before are so many now: the peer took some, or framing came to them.
    pub(crate) fn recount(&self, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.waiting.fetch_add(after.wrapping_sub(before), Ordering::AcqRel);
        self.tell_room();
    }

    fn tell_room(&self) {
        let (lock, changed) = &self.room;
        drop(locked(lock));
        changed.notify_all();
    }

    /// Waits until `ready`, which is asked again whenever there may be more room, or until the time is over.
    pub(crate) fn wait_until(&self, timeout: Duration, mut ready: impl FnMut() -> bool) {
        let ends = Instant::now().checked_add(timeout);
        let (lock, changed) = &self.room;
        let mut guard = locked(lock);
        loop {
            if ready() {
                return;
            }
            let left = ends.map_or(Duration::MAX, |ends| ends.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return;
            }
            guard = match changed.wait_timeout(guard, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({})", self.number)
    }
}

/// What comes back for a ticket.
pub(crate) struct Letter {
    ticket: Arc<Ticket>,
    pub(crate) content: Content,
}

impl Letter {
    /// Puts it where the loop takes it from. False if the loop is gone.
    pub(crate) fn send(self) -> bool {
        Arc::clone(&self.ticket.post).send_all([self])
    }

    pub(crate) fn owner(&self) -> u64 {
        self.ticket.owner
    }

    pub(crate) fn number(&self) -> u64 {
        self.ticket.number
    }
}

/// Writes an answer with the state of the loop.
pub(crate) type Answer = Box<dyn for<'s, 'r> FnOnce(&'s mut dyn Any, Response<'r>) -> Sent<'r> + Send>;

/// Something to be called with the state of the loop.
pub(crate) type Call = Box<dyn FnOnce(&mut dyn Any) + Send>;

pub(crate) enum Content {
    Answer(Answer),
    /// The right to answer is inside, if it came with one.
    Call(Call),
    Begin(Box<StreamHead>),
    Part(Part),
    End,
    /// No more parts, though there should be.
    Abort,
    /// The peer takes the parts too slowly.
    TooSlow,
    /// The right to answer was dropped.
    Dropped {
        panicking: bool,
    },
    /// There was no place in the queue.
    Busy,
}

/// Work for the pool, and whom its result is for. Dropped, it answers 500.
///
/// What comes of it is a letter, and not sent yet: its place in the pool has to be free before anybody hears of it, and
/// asks for more.
pub(crate) struct Job {
    /// None once it is done, or refused.
    work: Option<(Arc<Ticket>, Work)>,
    /// When it was put into the queue.
    pub(crate) queued: Option<Instant>,
}

type Work = Box<dyn FnOnce() -> Content + Send>;

impl Job {
    /// Whether nobody waits for the result.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.work.as_ref().is_none_or(|(ticket, _)| ticket.is_closed())
    }

    /// Does it. A panic is a result too.
    pub(crate) fn run(self) -> Letter {
        self.end(|work| caught(work).unwrap_or(Content::Dropped { panicking: true }))
    }

    /// There is no room for it.
    pub(crate) fn refuse(self) -> Letter {
        self.end(|work| {
            discard(work);
            Content::Busy
        })
    }

    fn end(mut self, end: impl FnOnce(Work) -> Content) -> Letter {
        match self.work.take() {
            Some((ticket, work)) => Letter { ticket, content: end(work) },
            None => unreachable!("a job ends once"),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some((ticket, work)) = self.work.take() {
            discard(work);
            ticket.post(Content::Dropped { panicking: false });
        }
    }
}

/// What a loop is to other threads, as far as letters need it.
pub(crate) trait Outside: Send + Sync {
    /// Makes the loop look at its letters.
    fn wake(&self);

    /// Hands work to the pool.
    ///
    /// # Errors
    /// The work, if there is no room for it.
    fn submit(&self, job: Job) -> Result<(), Job>;

    /// The loop is gone.
    fn close(&self);
}

/// Where letters wait for the loop. One wake-up for all that come before it looks.
pub(crate) struct Post {
    /// None once the loop is gone.
    letters: Mutex<Option<Vec<Letter>>>,
    posted: AtomicBool,
    outside: Box<dyn Outside>,
}

impl Post {
    pub(crate) fn new(outside: Box<dyn Outside>) -> Post {
        Post { letters: Mutex::new(Some(Vec::new())), posted: AtomicBool::new(false), outside }
    }

    /// Takes letters. False if the loop is gone.
    fn send_all(&self, new: impl IntoIterator<Item = Letter>) -> bool {
        let mut letters = locked(&self.letters);
        let Some(waiting) = letters.as_mut() else {
            // Dropping what is refused may post again, or panic.
            drop(letters);
            discard_all(new.into_iter().collect());
            return false;
        };
        waiting.extend(new);
        drop(letters);
        if !self.posted.swap(true, Ordering::AcqRel) {
            self.outside.wake();
        }
        true
    }

    /// Whether letters may have come since the last [`take`](Post::take).
    #[inline]
    pub(crate) fn has_letters(&self) -> bool {
        self.posted.load(Ordering::Acquire)
    }

    /// All that came.
    pub(crate) fn take(&self) -> Vec<Letter> {
        // In this order: who posts after the swap wakes the loop again.
        self.posted.store(false, Ordering::Release);
        locked(&self.letters).as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether a letter of this ticket says that its right to answer was dropped in a panic.
    pub(crate) fn holds_panic_of(&self, number: u64) -> bool {
        let says_so = |letter: &Letter| {
            letter.number() == number && matches!(letter.content, Content::Dropped { panicking: true })
        };
        locked(&self.letters).as_ref().is_some_and(|letters| letters.iter().any(says_so))
    }

    /// The loop is gone.
    pub(crate) fn close(&self) {
        let letters = locked(&self.letters).take().unwrap_or_default();
        discard_all(letters);
        self.outside.close();
    }
}

/// One by one: two values of a collection that panic when they are dropped end the process.
#[cold]
#[inline(never)]
fn discard_all(letters: Vec<Letter>) {
    for letter in letters {
        discard(letter);
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post").field("has_letters", &self.has_letters()).finish_non_exhaustive()
    }
}

/// A lock that a panic elsewhere does not spoil: what it guards is whole between two statements.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Gives out the tickets of a loop.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) post: Arc<Post>,
    /// Who is served now.
    pub(crate) owner: u64,
    next: u64,
    /// The ticket that the handler being called has taken.
    pub(crate) taken: Option<Arc<Ticket>>,
}

impl Lane {
    pub(crate) fn new(outside: Box<dyn Outside>) -> Lane {
        Lane { post: Arc::new(Post::new(outside)), owner: 0, next: 0, taken: None }
    }

    #[cold]
    pub(crate) fn new_ticket(&mut self) -> Arc<Ticket> {
        let ticket = self.ticket_of(self.owner);
        self.taken = Some(Arc::clone(&ticket));
        ticket
    }

    /// A ticket whose letters are for this owner.
    #[cold]
    pub(crate) fn ticket_of(&mut self, owner: u64) -> Arc<Ticket> {
        self.next += 1;
        Arc::new(Ticket {
            post: Arc::clone(&self.post),
            owner,
            number: self.next,
            closed: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            room: (Mutex::new(()), Condvar::new()),
        })
    }

    /// The request was answered in another way.
    #[cold]
    pub(crate) fn void(&mut self) {
        if let Some(ticket) = self.taken.take() {
            ticket.close();
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.post.close();
    }
}

/// Of a machine without a driver: letters wait, and there is no pool.
impl Default for Lane {
    fn default() -> Lane {
        struct Nobody;
        impl Outside for Nobody {
            fn wake(&self) {}
            fn submit(&self, job: Job) -> Result<(), Job> {
                Err(job)
            }
            fn close(&self) {}
        }
        Lane::new(Box::new(Nobody))
    }
}
