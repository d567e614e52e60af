//! The real loop in a simulated world, and the rules that hold for every run whatever its clients do.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::answer::{Answer, parse_answers};
use super::peer::Way;
use super::random::Random;
use super::script::Script;
use super::world::{Chaos, SimulatedNet, World};
use crate::connection::{CloseReason, Tick};
use crate::limits::Limits;
use crate::method::Method;
use crate::route::{Routes, Table};
use crate::server::Event;
use crate::server::event_loop::{EventLoop, View};
use crate::server::offload::Offload;
use crate::server::timers::BUCKET_MS;

/// Scripted clients against a table, through the event loop of a real server, in a world that a seed decides.
///
/// There are no sockets and no waiting: hours pass in milliseconds, and the same seed gives the same run. Bytes arrive
/// in other pieces for each seed, events come late or doubled or without a cause, sends are cut short, clients act in the
/// middle of the server's calls. What a run shows should therefore hold for a few hundred seeds. Work that is
/// [offloaded](crate::Later::offload) is done by a pool of two, as soon or as late as the seed wants.
///
/// ```
/// use sprat::testing::{Script, Simulation};
/// use sprat::{CloseReason, Reject, routes};
/// use std::time::Duration;
///
/// struct App { visits: u32 }
/// routes! { Api for App { GET "/visits" => visits(), } }
/// fn visits(app: &mut App) -> String { app.visits += 1; app.visits.to_string() }
///
/// const GET: &[u8] = b"GET /visits HTTP/1.1\r\nHost: x\r\n\r\n";
///
/// for seed in 0..10 {
///     let mut simulation = Simulation::new(Api, App { visits: 0 }).seed(seed);
///     let polite = simulation.client(Script::new().send(GET).answer().send(GET).answer().close());
///     let slow = simulation.client(Script::new().drip(GET, Duration::from_secs(1)));
///     let gone = simulation.client(Script::new().send(&GET[..20]).wait(Duration::from_millis(3)).reset());
///     let outcome = simulation.run();
///
///     assert_eq!(outcome.answers(polite).len(), 2);
///     assert_eq!(outcome.answers(slow)[0].status(), 408);
///     assert_eq!(outcome.closed(slow), Some(CloseReason::Rejected(Reject::HeadTimeout)));
///     assert_eq!(outcome.closed(gone), Some(CloseReason::PeerReset));
///     assert_eq!(outcome.state().visits, 2);
/// }
/// ```
pub struct Simulation<S: 'static> {
    routes: &'static Routes<S>,
    state: S,
    limits: Limits,
    seed: u64,
    clients: Vec<Script>,
    shutdowns: Vec<(Duration, Duration)>,
}

/// Which client of a [`Simulation`] it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(usize);

impl<S: 'static> Simulation<S> {
    /// A simulation of this table. Its clocks start at 2000-01-01 00:00:00 GMT.
    pub fn new<T: Table<S>>(table: T, state: S) -> Simulation<S> {
        let _ = table;
        Simulation {
            routes: T::ROUTES,
            state,
            limits: Limits::DEFAULT,
            seed: 0,
            clients: Vec::new(),
            shutdowns: Vec::new(),
        }
    }

    /// Whatever chance decides follows from this number. Without it, from 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Simulation<S> {
        self.seed = seed;
        self
    }

    /// Replaces [`Limits::DEFAULT`].
    ///
    /// # Panics
    /// If the limits contradict each other; see [`Limits::check`].
    #[must_use]
    #[track_caller]
    pub fn limits(mut self, limits: Limits) -> Simulation<S> {
        if let Err(rule) = limits.check() {
            panic!("{rule}");
        }
        self.limits = limits;
        self
    }

    /// Adds a client.
    pub fn client(&mut self, script: Script) -> ClientId {
        self.clients.push(script);
        ClientId(self.clients.len() - 1)
    }

    /// So long after the start, does what [`Handle::shutdown_after`](crate::Handle::shutdown_after) does with `delay`.
    /// Without it, the server is shut down once nothing happens any more.
    pub fn shut_down(&mut self, at: Duration, delay: Duration) {
        self.shutdowns.push((at, delay));
    }

    /// Runs until the server has shut down.
    ///
    /// # Panics
    /// If the server broke one of its own rules: it turned without doing anything, missed an event or a deadline, held
    /// more than [`Limits::worst_case_bytes_per_connection`] beside large answers, or lost a slot, a buffer or a socket.
    /// That is a defect of this crate; the text says which seed shows it.
    #[track_caller]
    pub fn run(self) -> Outcome<S> {
        let mut random = Random::new(self.seed);
        let mut world = World::new(random.clone(), Chaos::USUAL);
        for script in self.clients {
            let way = Way {
                pace: *random.pick(&[1000, 500, 200]),
                piece_max: *random.pick(&[1 << 20, 1460, 100, 1]),
                inbox_max: random.len(1, 256 << 10),
                sent_max: random.len(1, 256 << 10),
            };
            world.add(script, way);
        }
        world.wishes = self.shutdowns.iter().map(|(at, delay)| (Tick(0).after(*at).0, *delay)).collect();
        let mut driver = Driver::<S, true>::new(world, self.routes, self.state, self.limits);
        if let Err(fault) = driver.run(|_| Ok(())) {
            panic!("seed {}: {fault}", self.seed);
        }
        driver.into_outcome()
    }
}

impl<S> std::fmt::Debug for Simulation<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").field("seed", &self.seed).field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// What came of a [`Simulation`].
pub struct Outcome<S> {
    state: S,
    received: Vec<Vec<u8>>,
    closed: Vec<Option<CloseReason>>,
    elapsed: Duration,
}

impl<S> Outcome<S> {
    /// The state that handlers worked on.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Every byte that a client took.
    pub fn received(&self, client: ClientId) -> &[u8] {
        &self.received[client.0]
    }

    /// What a client took, as answers. None of its requests may have been HEAD; see [`answers_to`](Outcome::answers_to).
    ///
    /// # Panics
    /// If it is not whole answers.
    #[track_caller]
    pub fn answers(&self, client: ClientId) -> Vec<Answer> {
        parse_answers(self.received(client), |_| false)
    }

    /// What a client took, as answers to requests with these methods. Interim answers count for none.
    ///
    /// # Panics
    /// If it is not whole answers.
    #[track_caller]
    pub fn answers_to(&self, client: ClientId, methods: &[Method]) -> Vec<Answer> {
        parse_answers(self.received(client), |at| methods.get(at) == Some(&Method::Head))
    }

    /// Why the server closed the connection. None if it never had it.
    pub fn closed(&self, client: ClientId) -> Option<CloseReason> {
        self.closed[client.0]
    }

    /// How long it took, by the simulated clock.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl<S> std::fmt::Debug for Outcome<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome").field("closed", &self.closed).field("elapsed", &self.elapsed).finish_non_exhaustive()
    }
}

type Told = Arc<Mutex<Vec<(Option<SocketAddr>, CloseReason)>>>;

/// The loop, its world, and what is known of both.
pub(crate) struct Driver<S: 'static, const DRAINS: bool> {
    pub(crate) events: EventLoop<SimulatedNet<DRAINS>, S>,
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) limits: Limits,
    told: Told,
    /// Why each client's connection was closed.
    pub(crate) reasons: Vec<Option<CloseReason>>,
    /// The largest answer that each client asks for, if that is known.
    pub(crate) answer_bytes_max: Vec<usize>,
    /// The most that one connection held.
    pub(crate) held_bytes_peak: usize,
    requests: u64,
    /// When the next wait has to be over at the latest.
    wake_by: Option<u64>,
    /// Somebody has its next turn without an event, so the next wait is none.
    goes_on: bool,
}

/// Far more turns than any run takes.
const TURNS_MAX: u64 = 2_000_000;

impl<S: 'static, const DRAINS: bool> Driver<S, DRAINS> {
    pub(crate) fn new(mut world: World, routes: &'static Routes<S>, state: S, limits: Limits) -> Driver<S, DRAINS> {
        let told = Told::default();
        let tell = Arc::clone(&told);
        let hook = move |event: &Event<'_>| {
            if let Event::Closed { peer, reason, .. } = event {
                tell.lock().unwrap_or_else(PoisonError::into_inner).push((*peer, *reason));
            }
        };
        world.loop_connections_max = limits.connections_max;
        let reasons = vec![None; world.peers.len()];
        let world = Rc::new(RefCell::new(world));
        let net = SimulatedNet(Rc::clone(&world));
        let events = EventLoop::new(net, routes, state, limits.clone(), usize::MAX, Some(Box::new(hook)));
        // The same on every machine, and by no other clock.
        let offload = Offload { threads: 2, deadline: Duration::MAX, ..Offload::DEFAULT };
        events.pool().configure(offload);
        events.pool().drive_by_hand();
        world.borrow_mut().pool = Some(events.pool().clone());
        Driver {
            events,
            world,
            limits,
            told,
            reasons,
            answer_bytes_max: Vec::new(),
            held_bytes_peak: 0,
            requests: 0,
            wake_by: None,
            goes_on: false,
        }
    }

    /// Turns until the loop has stopped, and looks at everything after each turn, with other eyes as well.
    pub(crate) fn run(&mut self, mut look: impl FnMut(&Self) -> Result<(), String>) -> Result<(), String> {
        loop {
            let before = self.world.borrow().tick;
            let goes_on = self.events.turn(None).map_err(|error| error.to_string())?;
            self.take_reasons()?;
            self.check(before)?;
            look(self)?;
            if !goes_on {
                self.world.borrow_mut().run_out();
                return self.check_end();
            }
            let world = &mut *self.world.borrow_mut();
            if world.turn > TURNS_MAX {
                return Err("the loop does not come to an end".to_owned());
            }
            if world.quiet {
                // A stream whose producer has fallen silent waits for ever, as it should.
                let goes_on =
                    |at: &View<'_, _>| at.connection.is_waiting() && at.connection.deadline(&self.limits).is_none();
                if !self.events.views().all(|view| goes_on(&view)) {
                    return Err("connections are open, and nothing would ever end them".to_owned());
                }
                world.ask_for_shutdown(Duration::ZERO);
            }
        }
    }

    fn take_reasons(&mut self) -> Result<(), String> {
        let told = std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner));
        for (address, reason) in told {
            let world = self.world.borrow();
            let Some(client) = world.peers.iter().position(|peer| Some(peer.address) == address) else {
                return Err(format!("{address:?} was closed, whoever that is"));
            };
            world.note(|| format!("client {client}: {reason}"));
            if self.reasons[client].replace(reason).is_some() {
                return Err(format!("client {client} was closed twice"));
            }
        }
        Ok(())
    }

    /// What holds between any two turns.
    fn check(&mut self, before: Tick) -> Result<(), String> {
        let mut world = self.world.borrow_mut();
        if let Some(fault) = world.fault.take() {
            return Err(fault);
        }
        self.events.audit()?;
        let stats = self.events.stats();
        if stats.open != world.sockets_open {
            return Err(format!("{} sockets for {} connections", world.sockets_open, stats.open));
        }
        if stats.requests != self.requests {
            self.requests = stats.requests;
            world.progressed();
        }
        if let Some(wake_by) = self.wake_by.take()
            && world.timeout.is_none_or(|timeout| before.after(timeout).0 > wake_by)
        {
            return Err(format!("the wait of {:?} from {before:?} is longer than a deadline allows", world.timeout));
        }
        if std::mem::take(&mut self.goes_on) && world.timeout != Some(Duration::ZERO) {
            return Err(format!("the loop waited {:?}, and somebody was to go on without an event", world.timeout));
        }
        for view in self.events.views() {
            let client = view.socket.peer;
            let connection = view.connection;
            let held = connection.held_bytes();
            self.held_bytes_peak = self.held_bytes_peak.max(held);
            // Answers made by value are the handlers' own memory.
            let ceiling = match self.answer_bytes_max.get(client) {
                Some(answer) => self.limits.worst_case_bytes_per_connection() + 2 * answer,
                None => usize::MAX,
            };
            if held > ceiling {
                return Err(format!("client {client}: {held} bytes are held, which is more than {ceiling}"));
            }
            if !view.has_timer {
                return Err(format!("client {client}: a deadline without a timer"));
            }
            let deadline = connection.deadline(&self.limits);
            // While output waits, that has a deadline of its own.
            let caught_up = world.peers[client].log.caught_up;
            if deadline.is_some_and(|deadline| deadline.max(caught_up).0 + BUCKET_MS <= world.tick.0) {
                return Err(format!("client {client}: the deadline {deadline:?} was missed at {:?}", world.tick));
            }
            let wake_by = deadline.map(|deadline| deadline.0.max(world.tick.0 + 1) + BUCKET_MS);
            self.wake_by = self.wake_by.into_iter().chain(wake_by).min();
            world.peers[client].keep_reason(view.readable);
            world.peers[client].deadline = deadline;
            let peer = &world.peers[client];
            if view.queued {
                self.goes_on = true;
                continue;
            }
            if connection.can_go_on(&self.limits) {
                return Err(format!("client {client} could go on, and is not on the list"));
            }
            let will_be_told = peer.edge && peer.read_armed;
            let waits_in_vain = if DRAINS { peer.is_readable() && !will_be_told } else { !peer.read_armed };
            let all_read = peer.log.eof_seen && peer.inbox.is_empty();
            if connection.wants_read(&self.limits) && waits_in_vain && !all_read {
                return Err(format!("client {client} is not heard: no event will come for what it sent"));
            }
            let will_be_asked = peer.edge || peer.no_space;
            if connection.wants_write()
                && !(peer.watches_writable && will_be_asked && peer.write_armed)
                && !(peer.reset && peer.edge)
            {
                return Err(format!("client {client} waits for output, and no event will come to send it"));
            }
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), String> {
        let (world, stats) = (self.world.borrow(), self.events.stats());
        if stats.open != 0 || stats.held_bytes != 0 || world.sockets_open != 0 {
            return Err(format!("something is left at the end: {stats:?}, {} sockets", world.sockets_open));
        }
        if world.is_listening() {
            return Err("the listener is open at the end".to_owned());
        }
        Ok(())
    }

    fn into_outcome(self) -> Outcome<S> {
        let elapsed = Duration::from_millis(self.world.borrow().now_ms());
        let received =
            self.world.borrow_mut().peers.iter_mut().map(|peer| std::mem::take(&mut peer.received)).collect();
        Outcome { state: self.events.into_state(), received, closed: self.reasons, elapsed }
    }
}
