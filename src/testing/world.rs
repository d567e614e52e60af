//! The world below a simulated loop: sockets, events and clocks that a seed decides.
//!
//! Events come as epoll gives them to an edge-triggered reader: something has to change before one is told, what is told
//! is what holds at that moment, and writability is told only to those who asked, after a send that found no room. The
//! other kind of system, where events re-arm only by a call that would block, is there as well. On top come events that
//! are late, doubled, without cause or for sockets closed long ago, because a loop must bear all of those.
//!
//! Clients act while the loop waits, and now and then in the middle of its calls. Whatever the loop does that no correct
//! loop would do is a fault, kept in [`World::fault`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::UNIX_SECONDS_AT_START;
use super::peer::{End, Outlook, Peer, Stage, Way};
use super::random::Random;
use super::script::Script;
use crate::connection::Tick;
use crate::date::{DATE_LINE_LEN, DateLine};
use crate::server::net::{Net, Ready, Token};
use crate::server::offload::Pool;

/// How often, of a thousand times, the world is unkind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chaos {
    /// Something else happens in the middle of a call.
    pub(crate) stir: u32,
    /// An event is kept back until the next wait.
    pub(crate) hold_back: u32,
    pub(crate) duplicate: u32,
    pub(crate) spurious: u32,
    pub(crate) stale: u32,
    /// A call is interrupted.
    pub(crate) interrupt: u32,
    /// A send takes less than there is room for.
    pub(crate) short_send: u32,
    /// `accept` fails for one connection's sake.
    pub(crate) accept_error: u32,
    /// The wait ends late.
    pub(crate) late: u32,
    /// A clock jumps.
    pub(crate) jump: u32,
    /// Registering a socket fails.
    pub(crate) register_error: u32,
    /// Work waits in the pool's queue for too long.
    pub(crate) late_work: u32,
    /// The most time between two looks at the clients.
    pub(crate) step_ms_max: u64,
}

impl Chaos {
    /// Cuts, delays, doubts; nothing that costs a well-behaved client its connection.
    pub(crate) const USUAL: Chaos = Chaos {
        stir: 50,
        hold_back: 50,
        duplicate: 20,
        spurious: 20,
        stale: 20,
        interrupt: 10,
        short_send: 50,
        accept_error: 20,
        late: 50,
        jump: 0,
        register_error: 0,
        late_work: 0,
        step_ms_max: 5,
    };
}

/// A time in which `accept` fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outage {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    pub(crate) errno: i32,
}

/// What goes on beside the loop and its clients: other threads, as far as the loop can tell.
pub(crate) trait Outsiders: std::fmt::Debug {
    /// When they do something next.
    fn outlook(&self, now_ms: u64) -> Outlook;

    /// They do one thing. `turn` is the loop's turn in which that happens. Says whether a letter was posted for sure.
    fn stir(&mut self, now_ms: u64, turn: u64) -> bool;

    /// The wait of this turn is over.
    fn tell(&mut self, now_ms: u64, turn: u64);
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) chaos: Chaos,
    pub(crate) peers: Vec<Peer>,
    now_ms: u64,
    unix_ms: u64,
    /// What the loop was last told the time is.
    pub(crate) tick: Tick,
    /// The wall clock at each look at the other one, for the last second and a little.
    seconds_seen: VecDeque<(Tick, u64)>,

    backlog: VecDeque<usize>,
    listening: bool,
    listener_edge: bool,
    accept_outcome: Accepted,
    pub(crate) outages: Vec<Outage>,
    /// The most sockets that the process can have.
    pub(crate) sockets_max: usize,
    pub(crate) sockets_open: usize,
    /// The most that the loop takes.
    pub(crate) loop_connections_max: usize,

    /// Shutdowns that will be asked for, and when.
    pub(crate) wishes: Vec<(u64, Duration)>,
    wish: Option<Duration>,
    /// When the loop was first told of one.
    pub(crate) asked: Option<Tick>,
    command_edge: bool,
    /// Another thread wants the loop to look at its letters.
    woken: Arc<AtomicBool>,
    /// Whose threads are as fast as the seed says.
    pub(crate) pool: Option<Pool>,
    pub(crate) outsiders: Option<Box<dyn Outsiders>>,

    stale: Vec<Token>,
    pub(crate) turn: u64,
    /// What the last wait was allowed.
    pub(crate) timeout: Option<Duration>,
    /// The loop has not asked for the time since it waited.
    waited: bool,
    /// It waits now.
    waits: bool,
    progress: bool,
    idle_turns: u32,
    calls_in_turn: u32,
    /// Nothing will happen any more, and the loop would wait for ever.
    pub(crate) quiet: bool,
    pub(crate) fault: Option<String>,
    /// Tell on stderr what happens.
    pub(crate) verbose: bool,
}

/// What the last `accept` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    Some,
    None,
    Failed,
}

/// When the wall clock of a simulation begins.
const UNIX_MS_AT_START: u64 = UNIX_SECONDS_AT_START * 1000;

/// More turns in a row without a reason than this are a spin.
const IDLE_TURNS_MAX: u32 = 3;

/// More calls than any turn makes.
const CALLS_IN_TURN_MAX: u32 = 1_000_000;

/// More than any client needs to take what it was sent.
const RUN_OUT_STEPS_MAX: u32 = 1_000_000;

/// The longest pause of accepting that counts as trying.
const ACCEPT_PAUSE_MAX: Duration = Duration::from_millis(500);

const EMFILE: i32 = 24;
const ECONNABORTED: i32 = 103;
const EPROTO: i32 = 71;

impl World {
    pub(crate) fn new(random: Random, chaos: Chaos) -> World {
        World {
            random,
            chaos,
            peers: Vec::new(),
            now_ms: 0,
            unix_ms: UNIX_MS_AT_START,
            tick: Tick(0),
            seconds_seen: VecDeque::new(),
            backlog: VecDeque::new(),
            listening: true,
            listener_edge: false,
            accept_outcome: Accepted::None,
            outages: Vec::new(),
            sockets_max: usize::MAX,
            sockets_open: 0,
            loop_connections_max: usize::MAX,
            wishes: Vec::new(),
            wish: None,
            asked: None,
            command_edge: false,
            woken: Arc::default(),
            pool: None,
            outsiders: None,
            stale: Vec::new(),
            turn: 0,
            timeout: None,
            waited: false,
            waits: false,
            progress: true,
            idle_turns: 0,
            calls_in_turn: 0,
            quiet: false,
            fault: None,
            verbose: false,
        }
    }

    /// Adds a client, and says which it is.
    pub(crate) fn add(&mut self, script: Script, way: Way) -> usize {
        let index = self.peers.len();
        let address = SocketAddr::from((Ipv4Addr::new(10, 0, (index >> 8) as u8, index as u8), 40_000));
        self.peers.push(Peer::new(address, script, way, self.now_ms));
        index
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.listening
    }

    /// Asks for a shutdown now.
    pub(crate) fn ask_for_shutdown(&mut self, delay: Duration) {
        self.wishes.push((self.now_ms, delay));
        self.quiet = false;
    }

    /// The loop served something that no call here shows.
    pub(crate) fn progressed(&mut self) {
        self.progress = true;
    }

    pub(crate) fn fail(&mut self, what: impl FnOnce() -> String) {
        if self.fault.is_none() {
            let what = what();
            self.note(|| format!("FAULT {what}"));
            self.fault = Some(what);
        }
    }

    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("{:>8} ms, turn {:>5}: {}", self.now_ms, self.turn, what());
        }
    }

    // ---- the passing of time -------------------------------------------------------------------------------------

    fn stir_all(&mut self) {
        for index in 0..self.peers.len() {
            if self.random.chance(self.peers[index].way.pace) {
                self.stir(index);
            }
        }
        let now_ms = self.now_ms;
        for (_, delay) in self.wishes.extract_if(.., |(at_ms, _)| *at_ms <= now_ms) {
            self.wish = Some(self.wish.map_or(delay, |earlier| earlier.min(delay)));
            self.command_edge = true;
        }
        if self.random.chance(500) {
            self.stir_outside();
        }
    }

    /// One piece of work is done, or one thing happens outside.
    fn stir_outside(&mut self) {
        let (now_ms, turn) = (self.now_ms, self.turn);
        if let Some(outsiders) = self.outsiders.as_mut().filter(|others| others.outlook(now_ms) == Outlook::Now) {
            let posted = outsiders.stir(now_ms, turn);
            self.progress = true;
            // Inside a turn, a letter may be taken without that.
            if posted && self.waits && !self.woken.load(Ordering::Acquire) {
                self.fail(|| "a letter came, and the loop sleeps on".to_owned());
            }
        }
        let runnable = self.pool.as_ref().map_or(0, Pool::runnable);
        if runnable > 0 && self.random.chance(300) {
            let (place, late) = (self.random.len(0, runnable - 1), self.random.chance(self.chaos.late_work));
            self.note(|| format!("work {place} of {runnable} is done, late {late}"));
            if let Some(pool) = &self.pool {
                pool.run_at(place, late);
            }
            self.progress = true;
        }
    }

    fn stir(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        match peer.outlook(self.now_ms) {
            Outlook::Now => {}
            Outlook::At(_) | Outlook::Never => return,
        }
        if peer.stage == Stage::Away {
            if self.listening {
                peer.stage = Stage::Queued;
                self.backlog.push_back(index);
                self.listener_edge = true;
            } else {
                peer.end = Some(End::Refused);
                peer.left = true;
            }
            return self.note(|| format!("client {index} connects"));
        }
        let before = (peer.inbox.len(), peer.sent.len(), peer.inbox_ended, peer.reset, peer.end);
        peer.stir(self.now_ms, &mut self.random);
        let after = (peer.inbox.len(), peer.sent.len(), peer.inbox_ended, peer.reset, peer.end);
        if after.0 > before.0 {
            peer.log.asked_turn = Some(self.turn);
        }
        if before != after {
            self.note(|| {
                let (inbox, sent, ended, reset, end) = after;
                format!("client {index}: {inbox} to read (end {ended}, reset {reset}), {sent} to take, saw {end:?}")
            });
        }
    }

    /// Other things happen at the same time.
    fn interfere(&mut self) {
        self.calls_in_turn += 1;
        // Not as a fault for later: a turn that spins does not come to an end.
        assert!(self.calls_in_turn < CALLS_IN_TURN_MAX, "the loop spins inside a turn");
        if self.random.chance(self.chaos.stir) && !self.peers.is_empty() {
            let index = self.random.len(0, self.peers.len() - 1);
            self.stir(index);
        }
        if self.random.chance(self.chaos.stir) {
            self.stir_outside();
        }
    }

    /// Lets the clients finish once the loop is gone.
    pub(crate) fn run_out(&mut self) {
        for peer in &mut self.peers {
            (peer.way.pace, peer.way.piece_max) = (1000, usize::MAX);
        }
        for _ in 0..RUN_OUT_STEPS_MAX {
            match self.outlook() {
                Outlook::Now => self.pass(1),
                Outlook::At(at_ms) => self.pass(at_ms.saturating_sub(self.now_ms)),
                Outlook::Never => return,
            }
            self.stir_all();
        }
    }

    fn outlook(&self) -> Outlook {
        let outside = self.outsiders.as_ref().map_or(Outlook::Never, |outsiders| outsiders.outlook(self.now_ms));
        if self.pool.as_ref().is_some_and(|pool| pool.runnable() > 0) {
            return Outlook::Now;
        }
        let peers = self.peers.iter().map(|peer| peer.outlook(self.now_ms)).min().unwrap_or(Outlook::Never);
        let wishes = self.wishes.iter().map(|(at_ms, _)| Outlook::At(*at_ms)).min().unwrap_or(Outlook::Never);
        peers.min(wishes).min(outside)
    }

    fn has_events(&self) -> bool {
        self.command_edge
            || self.woken.load(Ordering::Acquire)
            || (self.listener_edge && self.listening)
            || self.peers.iter().any(|peer| peer.edge && peer.token.is_some())
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.unix_ms += ms;
    }

    fn wait(&mut self, timeout: Option<Duration>, drains: bool, events: &mut Vec<Ready>) {
        self.turn += 1;
        self.waited = true;
        self.note(|| format!("waits for {timeout:?}"));
        self.timeout = timeout;
        self.check_for_spin(timeout);
        self.check_listener(timeout);
        self.progress = false;
        self.calls_in_turn = 0;
        if self.random.chance(self.chaos.interrupt) {
            self.progress = true;
            if let Some(outsiders) = &mut self.outsiders {
                outsiders.tell(self.now_ms, self.turn);
            }
            return;
        }
        let limit = timeout.map(|timeout| self.now_ms.saturating_add(round_up(timeout)));
        loop {
            self.waits = true;
            self.stir_all();
            self.waits = false;
            if self.has_events() && !self.random.chance(self.chaos.hold_back) {
                break;
            }
            if limit.is_some_and(|limit| self.now_ms >= limit) {
                break;
            }
            let left = limit.map_or(u64::MAX, |limit| limit - self.now_ms);
            match self.outlook() {
                Outlook::Never if self.has_events() => {}
                Outlook::Never if limit.is_none() => {
                    self.quiet = true;
                    break;
                }
                Outlook::Never => self.pass(left),
                Outlook::At(at_ms) => self.pass(at_ms.saturating_sub(self.now_ms).min(left)),
                Outlook::Now => {
                    let step = self.random.between(0, self.chaos.step_ms_max);
                    self.pass(step.min(left));
                }
            }
        }
        if self.random.chance(self.chaos.late) {
            let late = self.random.any_size(64) as u64;
            self.pass(late);
        }
        if self.random.chance(self.chaos.jump) {
            let jump = self.random.any_size(300_000) as u64;
            self.note(|| format!("the clock jumps by {jump} ms"));
            self.now_ms += jump;
        }
        if self.random.chance(self.chaos.jump) {
            // Anywhere between 1980 and 2040.
            self.unix_ms = self.random.between(315_532_800_000, 2_208_988_800_000);
        }
        if let Some(outsiders) = &mut self.outsiders {
            outsiders.tell(self.now_ms, self.turn);
        }
        self.collect(drains, events);
        if !events.is_empty() {
            self.progress = true;
        }
    }

    fn collect(&mut self, drains: bool, events: &mut Vec<Ready>) {
        let plain = |token, readable| Ready { token, readable, writable: false, read_closed: false };
        if self.listener_edge && self.listening && !self.random.chance(self.chaos.hold_back) {
            self.listener_edge = false;
            if !self.backlog.is_empty() {
                events.push(plain(Token::LISTENER, true));
            }
        }
        if (self.command_edge || self.woken.load(Ordering::Acquire)) && !self.random.chance(self.chaos.hold_back) {
            self.command_edge = false;
            self.woken.store(false, Ordering::Release);
            events.push(plain(Token::COMMAND, true));
        }
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            let Some(token) = peer.token.filter(|_| peer.edge) else { continue };
            if self.random.chance(self.chaos.hold_back) {
                continue;
            }
            peer.edge = false;
            let readable = peer.is_readable() && peer.read_armed;
            let read_closed = (peer.inbox_ended || peer.reset) && peer.read_armed;
            let writable = peer.is_writable() && peer.write_armed && (peer.watches_writable || peer.reset);
            if !readable && !writable {
                continue;
            }
            if !drains {
                peer.read_armed &= !readable;
                peer.write_armed &= !writable;
            }
            if readable {
                peer.give_reason();
            }
            peer.end_told |= read_closed;
            events.push(Ready { token, readable, writable, read_closed });
        }
        self.add_unasked_for(events);
        self.random.shuffle(events);
        for event in events.iter() {
            self.note(|| format!("{event:?}"));
        }
    }

    /// Events that tell nothing new.
    fn add_unasked_for(&mut self, events: &mut Vec<Ready>) {
        let Chaos { duplicate, spurious, stale, .. } = self.chaos;
        if !events.is_empty() && self.random.chance(duplicate) {
            let twice = *self.random.pick(events);
            if let Some(peer) = self.peers.iter_mut().find(|peer| peer.token == Some(twice.token)) {
                peer.give_reason();
            }
            events.push(twice);
        }
        if self.random.chance(spurious) {
            let any = Ready { token: Token::LISTENER, readable: true, writable: true, read_closed: false };
            events.push(Ready { token: *self.random.pick(&[Token::LISTENER, Token::COMMAND]), ..any });
            let open: Vec<usize> = (0..self.peers.len()).filter(|i| self.peers[*i].token.is_some()).collect();
            if !open.is_empty() {
                let index = *self.random.pick(&open);
                let peer = &mut self.peers[index];
                // Often of the other kind alone: then nothing is read before the connection is looked at.
                let readable = self.random.chance(500);
                if readable {
                    peer.give_reason();
                }
                events.extend(peer.token.map(|token| Ready { token, readable, ..any }));
            }
        }
        if self.random.chance(stale) {
            let all = Ready { token: Token(0), readable: true, writable: true, read_closed: true };
            events.extend(self.stale.iter().rev().take(4).map(|token| Ready { token: *token, ..all }));
            events.push(Ready { token: Token::new(1 << 20, 0), ..all });
        }
    }

    // ---- what a loop must not do ---------------------------------------------------------------------------------

    fn check_for_spin(&mut self, timeout: Option<Duration>) {
        if timeout == Some(Duration::ZERO) && !self.progress {
            self.idle_turns += 1;
            if self.idle_turns > IDLE_TURNS_MAX {
                self.fail(|| "the loop spins: it does not wait, and does nothing".to_owned());
            }
        } else {
            self.idle_turns = 0;
        }
    }

    /// Somebody waits in the queue, and no event will tell of it again.
    fn check_listener(&mut self, timeout: Option<Duration>) {
        let told = self.backlog.is_empty() || self.listener_edge || !self.listening;
        if !told && self.sockets_open < self.connections_max() && timeout.is_none_or(|t| t > ACCEPT_PAUSE_MAX) {
            let waiting = self.backlog.len();
            self.fail(|| format!("the listener is deaf: {waiting} wait in its queue"));
        }
    }

    fn connections_max(&self) -> usize {
        self.sockets_max.min(self.loop_connections_max)
    }

    fn outage(&self) -> Option<i32> {
        let now_ms = self.now_ms;
        self.outages.iter().find(|outage| (outage.from_ms..outage.to_ms).contains(&now_ms)).map(|outage| outage.errno)
    }

    /// Date is the wall clock's second, or one that was seen within the last second.
    fn check_date(&mut self, bytes: &[u8]) {
        let head = &bytes[..bytes.len().min(512)];
        let Some(at) = head.windows(8).position(|w| w == b"\r\nDate: ") else { return };
        // It may be cut off by the bound, or by the end of what is sent.
        let Some(line) = head[at + 2..].get(..DATE_LINE_LEN) else { return };
        let right = self.seconds_seen.iter().any(|(_, second)| line.starts_with(DateLine::new(*second).as_bytes()));
        if !right {
            self.fail(|| format!("a date that was not within the last second: {}", line.escape_ascii()));
        }
    }
}

/// As mio does for epoll: never earlier.
fn round_up(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// [`Net`] over a [`World`]. `DRAINS` is [`Net::SHORT_READ_DRAINS`].
#[derive(Debug)]
pub(crate) struct SimulatedNet<const DRAINS: bool>(pub(crate) Rc<RefCell<World>>);

/// The server's end of a connection.
#[derive(Debug)]
pub(crate) struct SimulatedSocket {
    pub(crate) peer: usize,
}

impl<const DRAINS: bool> Net for SimulatedNet<DRAINS> {
    type Socket = SimulatedSocket;

    const SHORT_READ_DRAINS: bool = DRAINS;

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Ready>) -> io::Result<()> {
        self.0.borrow_mut().wait(timeout, DRAINS, events);
        Ok(())
    }

    fn accept(&mut self) -> io::Result<(SimulatedSocket, Option<SocketAddr>)> {
        let world = &mut *self.0.borrow_mut();
        world.interfere();
        if !world.listening {
            world.fail(|| "accept after the listener was closed".to_owned());
            return Err(io::ErrorKind::WouldBlock.into());
        }
        world.accept_outcome = Accepted::Failed;
        // Linux looks for a descriptor first, whether or not somebody waits.
        if let Some(errno) = world.outage() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if world.sockets_open >= world.sockets_max {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        if world.random.chance(world.chaos.accept_error) {
            world.progress = true;
            let errno = *world.random.pick(&[ECONNABORTED, EPROTO]);
            return Err(io::Error::from_raw_os_error(errno));
        }
        let Some(index) = world.backlog.pop_front() else {
            world.accept_outcome = Accepted::None;
            return Err(io::ErrorKind::WouldBlock.into());
        };
        world.accept_outcome = Accepted::Some;
        world.progress = true;
        world.sockets_open += 1;
        let tick = world.tick;
        let peer = &mut world.peers[index];
        peer.stage = Stage::Open;
        peer.give_reason();
        peer.log.accepted = tick;
        peer.log.active = tick;
        let address = peer.address;
        world.note(|| format!("accepted client {index}"));
        Ok((SimulatedSocket { peer: index }, Some(address)))
    }

    fn close_listener(&mut self) {
        let world = &mut *self.0.borrow_mut();
        world.listening = false;
        world.progress = true;
        let full = world.sockets_open >= world.connections_max();
        if !world.backlog.is_empty() && world.accept_outcome == Accepted::Some && !full {
            world.fail(|| "the listener was closed though it could have been emptied".to_owned());
        }
        for index in std::mem::take(&mut world.backlog) {
            world.peers[index].stage = Stage::Closed;
            world.peers[index].log.failed = true;
            world.peers[index].reset_by_server();
        }
        for peer in &mut world.peers {
            // At a shutdown everybody is read once more.
            peer.give_reason();
        }
    }

    fn register(&mut self, socket: &mut SimulatedSocket, token: Token, writable: bool) -> io::Result<()> {
        let world = &mut *self.0.borrow_mut();
        world.progress = true;
        let index = socket.peer;
        if world.random.chance(world.chaos.register_error) {
            world.peers[index].log.failed = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if world.peers[index].token.is_some() {
            world.fail(|| "a socket was registered twice".to_owned());
        }
        if world.peers.iter().any(|peer| peer.token == Some(token)) || world.stale.contains(&token) {
            world.fail(|| format!("{token:?} was given out twice"));
        }
        world.peers[index].token = Some(token);
        watch(&mut world.peers[index], writable);
        Ok(())
    }

    fn watch_writable(&mut self, socket: &mut SimulatedSocket, token: Token) -> io::Result<()> {
        let world = &mut *self.0.borrow_mut();
        world.progress = true;
        if world.peers[socket.peer].token != Some(token) {
            world.fail(|| "a socket was registered anew under another token".to_owned());
        }
        watch(&mut world.peers[socket.peer], true);
        Ok(())
    }

    fn recv(&mut self, socket: &mut SimulatedSocket, space: &mut [u8]) -> io::Result<usize> {
        let world = &mut *self.0.borrow_mut();
        world.interfere();
        let (tick, turn, index) = (world.tick, world.turn, socket.peer);
        if space.is_empty() {
            world.fail(|| "a read into no space, which looks like the end".to_owned());
        }
        if world.random.chance(world.chaos.interrupt) {
            world.progress = true;
            world.peers[index].give_reason();
            world.note(|| format!("client {index}: recv is interrupted"));
            return Err(io::ErrorKind::Interrupted.into());
        }
        let peer = &mut world.peers[index];
        if peer.inbox.is_empty() {
            if peer.reset || peer.inbox_ended {
                world.progress = true;
                peer.log.eof_seen = true;
                peer.log.drained_turn = turn;
                peer.log.reset_seen |= peer.reset;
                return if peer.reset { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(0) };
            }
            peer.log.drained_turn = turn;
            peer.read_armed = true;
            // Where all places are taken, who is idle is read once more before another gets its place.
            let is_full = world.sockets_open >= world.loop_connections_max;
            let is_due = peer.deadline.is_some_and(|deadline| deadline < tick);
            if !peer.use_reason() && world.listening && !is_full && !is_due {
                world.fail(|| format!("client {index} was read from without a reason"));
            }
            world.note(|| format!("client {index}: recv would block"));
            return Err(io::ErrorKind::WouldBlock.into());
        }
        world.progress = true;
        let there = peer.inbox.len().min(space.len());
        let n = if DRAINS { there } else { world.random.len(1, there) };
        for (to, byte) in space.iter_mut().zip(peer.inbox.drain(..n)) {
            *to = byte;
        }
        if DRAINS && n < space.len() {
            peer.use_reason();
            peer.log.drained_turn = turn;
        }
        let count = peer.log.received_len() + n as u64;
        peer.log.received.push((count, tick));
        (peer.log.active, peer.log.settled) = (tick, None);
        world.note(|| format!("client {index}: recv {n} of {}, {count} so far", space.len()));
        Ok(n)
    }

    fn send(&mut self, socket: &mut SimulatedSocket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let world = &mut *self.0.borrow_mut();
        world.interfere();
        let (tick, turn, index) = (world.tick, world.turn, socket.peer);
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        if world.peers[index].log.write_shut.is_some() || offered == 0 {
            world.fail(|| format!("client {index}: a send of {offered} bytes, after the end or of nothing"));
        }
        let log = &mut world.peers[index].log;
        if log.unsent_since.is_none() {
            log.offered = tick;
            log.caught_up_before = log.caught_up;
        }
        if world.random.chance(world.chaos.interrupt) {
            world.progress = true;
            world.peers[index].log.unsent_since.get_or_insert(tick);
            return Err(io::ErrorKind::Interrupted.into());
        }
        if world.random.chance(100) && world.peers[index].log.unsent_since.is_none() {
            world.check_date(slices.first().map_or(&[], |slice| slice));
        }
        let World { random, chaos, peers, .. } = world;
        let peer = &mut peers[index];
        if peer.reset {
            peer.log.reset_seen = true;
            world.progress = true;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut taken = offered.min(peer.way.sent_max - peer.sent.len());
        if random.chance(chaos.short_send) {
            taken = random.len(0, taken);
        }
        let mut left = taken;
        for slice in slices {
            let part = left.min(slice.len());
            peer.sent.extend(&slice[..part]);
            left -= part;
        }
        peer.log.sent_len += taken as u64;
        peer.no_space |= taken < offered;
        let log = &mut peer.log;
        if taken > 0 {
            (log.active, log.settled) = (tick, None);
            let waited = log.asked_turn.take().map_or(0, |asked| turn - asked);
            log.wait_turns_max = log.wait_turns_max.max(waited);
        }
        if taken > 0 && log.unsent_since.is_some() && log.moved_turn != turn {
            (log.moved_turn, log.unsent_before) = (turn, log.unsent_since);
        }
        if taken == offered && log.unsent_since.is_some() {
            log.caught_up = tick;
        }
        log.unsent_since = match log.unsent_since {
            _ if taken == offered => None,
            Some(since) if taken == 0 => Some(since),
            _ => Some(tick),
        };
        world.note(|| format!("client {index}: send {taken} of {offered}"));
        if taken == 0 {
            world.peers[index].write_armed = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        world.progress = true;
        Ok(taken)
    }

    fn shutdown_write(&mut self, socket: &mut SimulatedSocket) -> io::Result<()> {
        let world = &mut *self.0.borrow_mut();
        world.interfere();
        world.progress = true;
        let (tick, index) = (world.tick, socket.peer);
        let peer = &mut world.peers[index];
        if peer.log.write_shut.is_some() {
            world.fail(|| format!("client {index}: shut down twice"));
            return Ok(());
        }
        if peer.reset {
            peer.log.reset_seen = true;
            return Err(io::ErrorKind::NotConnected.into());
        }
        peer.log.write_shut = Some(tick);
        peer.log.received_at_shut = Some(peer.log.received_len());
        peer.sent_end = Some(End::Closed);
        world.note(|| format!("client {index}: write side shut down"));
        Ok(())
    }

    fn close(&mut self, socket: SimulatedSocket, reset: bool) {
        let world = &mut *self.0.borrow_mut();
        world.progress = true;
        world.sockets_open -= 1;
        let (tick, turn, index) = (world.tick, world.turn, socket.peer);
        let peer = &mut world.peers[index];
        peer.stage = Stage::Closed;
        peer.log.closed = Some(tick);
        peer.log.closed_turn = turn;
        world.stale.extend(peer.token.take());
        if reset || !peer.inbox.is_empty() {
            peer.inbox.clear();
            peer.reset_by_server();
        } else if peer.end.is_none() {
            peer.sent_end = Some(End::Closed);
        }
        world.note(|| format!("client {index}: closed, reset {reset}"));
    }

    fn shutdown_asked(&mut self) -> Option<Duration> {
        let world = &mut *self.0.borrow_mut();
        let wish = world.wish.take();
        if wish.is_some() {
            world.asked.get_or_insert(world.tick);
        }
        wish
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let woken = Arc::clone(&self.0.borrow().woken);
        Box::new(move || woken.store(true, Ordering::Release))
    }

    fn now(&mut self) -> Tick {
        let world = &mut *self.0.borrow_mut();
        world.tick = Tick(world.now_ms);
        // A later look in the same turn is not the next turn.
        if std::mem::take(&mut world.waited) {
            for peer in &mut world.peers {
                peer.log.settled.get_or_insert(world.tick);
            }
        }
        let (tick, second) = (world.tick, world.unix_ms / 1000);
        while world.seconds_seen.front().is_some_and(|(seen, _)| seen.0 + 1000 < tick.0) {
            world.seconds_seen.pop_front();
        }
        world.seconds_seen.push_back((tick, second));
        world.tick
    }

    fn unix_time(&mut self) -> Duration {
        Duration::from_millis(self.0.borrow().unix_ms)
    }
}

/// Interest tells what holds already, at once.
fn watch(peer: &mut Peer, writable: bool) {
    peer.watches_writable |= writable;
    peer.read_armed = true;
    peer.write_armed |= writable;
    peer.no_space |= writable && !peer.is_writable();
    peer.edge = true;
}
