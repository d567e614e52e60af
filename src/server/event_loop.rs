//! The loop: one thread, one wait for events, many connections.
//!
//! ```text
//!   wait -> clock -> events -> resumed connections -> accept -> timers -> shutdown -> reuse of slots
//!             |         \__________________|_____________|________/
//!             |                            v
//!          once a turn          serve: recv, machine, send: once each for a keep-alive request
//! ```
//!
//! Events come once ([`Net`]), so what a turn leaves undone is remembered here: a socket that may have more to read in
//! its slot, a connection that could go on at once in `resumable`, a listener that was not emptied in `accept`.
//! A slot is used again only after the turn, and under another generation. What happens to one connection, its socket
//! or its handler, stays with it.
//!
//! Names no socket, no clock and no signal; see `net`.

mod accept;
mod shutdown;
mod stalls;
mod view;

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::event::{Event, Stats};
use super::net::{Net, Ready, Token};
use super::offload::{Offload, Pool};
use super::timers::{Bucket, Timers};
use super::trusted::Trusted;
use crate::caught::{caught, discard};
use crate::connection::{CloseReason, Connection, Next, Tick, Turn, Workspace};
use crate::held::PADDING_LEN;
use crate::later::{Call, Caller, Content, Job, Lane, Outside};
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::route::{Routes, Row};
use accept::Accept;
use shutdown::{HUSHED, REQUEST_GRACE, Stage};
use stalls::Stalls;
pub(crate) use view::View;

/// What is told about what happens.
pub(crate) type Hook = Box<dyn FnMut(&Event<'_>) + Send>;

/// See the module.
pub(crate) struct EventLoop<N: Net, S: 'static> {
    net: N,
    routes: &'static Routes<S>,
    limits: Limits,
    /// These two are dropped before the state, which may join threads that wait for room in a stream.
    slots: Vec<Slot<N::Socket>>,
    workspace: Workspace,
    state: S,
    /// What is received goes here first, unless its connection holds a partial message.
    read: Box<[u8]>,
    free: Vec<u32>,
    /// Slots closed in this turn. Events for them may still be in the batch.
    freed: Vec<u32>,
    timers: Timers,
    /// Connections that have something to do which no event will tell.
    resumable: VecDeque<Token>,
    batch: Vec<Ready>,
    accept: Accept,
    /// Who has to begin with a PROXY header.
    trusted: Trusted,
    /// Where the search for idle connections goes on.
    next_look: usize,
    stage: Stage,
    now: Tick,
    /// When the text of the Date field stops being right.
    second_end: Tick,
    /// The bucket of the idle timeout of whoever is served now.
    idle_bucket: Bucket,
    stats: Stats,
    hook: Option<Hook>,
    pool: Pool,
    stalls: Stalls<S>,
}

/// What letters need of the loop.
struct Outer {
    wake: Box<dyn Fn() + Send + Sync>,
    pool: Pool,
}

impl Outside for Outer {
    fn wake(&self) {
        (self.wake)();
    }

    fn submit(&self, job: Job) -> Result<(), Job> {
        self.pool.submit(job)
    }

    fn close(&self) {
        self.pool.close();
    }
}

#[derive(Debug)]
struct Slot<K> {
    /// Counts its owners.
    generation: u32,
    open: Option<Open<K>>,
}

/// A connection and what is known of its socket.
#[derive(Debug)]
struct Open<K> {
    connection: Connection,
    socket: K,
    /// A read might not block.
    readable: bool,
    /// A write might not block, and output waits for it.
    writable: bool,
    /// The peer sends no more, so that only an end of file shows that all is read.
    read_closed: bool,
    registered: bool,
    /// Events come for writes as well.
    watches_writable: bool,
    /// It stands in `resumable`.
    queued: bool,
    /// It is to be read once more, and then closed unless something came.
    parting: bool,
}

/// Bytes received for a connection in a turn, and bytes sent.
const RECV_BYTES_PER_TURN: usize = READ_BUFFER_LEN;
const SEND_BYTES_PER_TURN: usize = 1 << 20;

impl<N: Net, S: 'static> EventLoop<N, S> {
    pub(crate) fn new(
        mut net: N,
        routes: &'static Routes<S>,
        state: S,
        limits: Limits,
        connections_max: usize,
        hook: Option<Hook>,
    ) -> EventLoop<N, S> {
        let now = net.now();
        let pool = Pool::new(Offload::DEFAULT);
        let mut workspace = Workspace::new(0);
        workspace.lane = Lane::new(Box::new(Outer { wake: net.waker(), pool: pool.clone() }));
        EventLoop {
            net,
            routes,
            state,
            workspace,
            read: vec![0; READ_BUFFER_LEN + PADDING_LEN].into_boxed_slice(),
            slots: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            timers: Timers::new(now),
            resumable: VecDeque::new(),
            batch: Vec::new(),
            accept: Accept::new(connections_max.min(limits.connections_max).max(1)),
            trusted: Trusted::default(),
            next_look: 0,
            stage: Stage::Serving,
            now,
            second_end: now,
            idle_bucket: Bucket::of(now.after(limits.idle_timeout)),
            limits,
            stats: Stats::default(),
            hook,
            pool,
            stalls: Stalls::new(super::STALL_THRESHOLD, now),
        }
    }

    pub(crate) fn configure(&mut self, offload: Offload, stall_threshold: Duration) {
        self.pool.configure(offload);
        self.stalls.set_threshold(stall_threshold);
    }

    /// Waits for events, at most this long, and does what there is to do. False once shutdown is complete.
    ///
    /// # Errors
    /// The wait failed, which is none of a peer's doing.
    pub(crate) fn turn(&mut self, timeout_max: Option<Duration>) -> io::Result<bool> {
        if self.stage == Stage::Stopped {
            return Ok(false);
        }
        let resumable = self.resumable.len();
        let mut batch = std::mem::take(&mut self.batch);
        let waited = self.net.wait(self.timeout(timeout_max), &mut batch);
        self.read_clocks();
        for ready in &batch {
            self.handle_event(*ready);
        }
        batch.clear();
        self.batch = batch;
        waited?;
        self.resume(resumable);
        if self.accept.pending {
            self.accept_waiting();
        }
        if self.workspace.lane.post.has_letters() {
            self.deliver();
        }
        while let Some(index) = self.timers.pop_due(self.now) {
            self.handle_timer(index);
        }
        if self.stage != Stage::Serving {
            self.go_on_shutting_down();
        }
        self.free.append(&mut self.freed);
        if self.workspace.requests != self.stalls.requests && self.stalls.threshold_ms != u64::MAX {
            self.look_for_stall();
        }
        Ok(self.stage != Stage::Stopped)
    }

    /// How long to wait for events when nothing else is to be done.
    pub(crate) fn timeout(&self, timeout_max: Option<Duration>) -> Option<Duration> {
        if !self.resumable.is_empty() || self.can_accept() || self.workspace.lane.post.has_letters() {
            return Some(Duration::ZERO);
        }
        let mut wake = self.timers.next_due();
        if self.accept.paused_until.is_some() || self.stage != Stage::Serving {
            let by_stage = match self.stage {
                Stage::Announced { closes, .. } if self.workspace.closing => Some(closes),
                Stage::Announced { parts, closes } => Some(parts.min(closes)),
                Stage::Closing { hush, ends } => Some(hush.min(ends)),
                Stage::Serving | Stage::Stopped => None,
            };
            wake = [wake, self.accept.paused_until, by_stage].into_iter().flatten().min();
        }
        let until_wake = wake.map(|wake| Duration::from_millis(wake.0.saturating_sub(self.now.0)));
        match (until_wake, timeout_max) {
            (Some(until_wake), Some(max)) => Some(until_wake.min(max)),
            (until_wake, max) => until_wake.or(max),
        }
    }

    fn read_clocks(&mut self) {
        let now = self.net.now();
        self.stalls.since = now;
        if now == self.now && now < self.second_end {
            return;
        }
        self.now = now;
        self.idle_bucket = Bucket::of(self.now.after(self.limits.idle_timeout));
        if self.now >= self.second_end {
            // The other clock is asked only when its second must have changed, so that it may step back or forward
            // and Date is wrong for no longer than a second.
            let unix_time = self.net.unix_time();
            self.workspace.output.date.set(unix_time.as_secs());
            self.second_end = self.now.after(Duration::from_millis(u64::from(1000 - unix_time.subsec_millis())));
        }
    }

    fn handle_event(&mut self, ready: Ready) {
        let index = ready.token.index();
        let Some(slot) = self.slots.get_mut(index as usize) else {
            match ready.token {
                Token::LISTENER => self.accept.pending = true,
                Token::COMMAND => {
                    if let Some(delay) = self.net.shutdown_asked() {
                        self.shut_down(delay);
                    }
                }
                _ => {}
            }
            return;
        };
        // An event of the last owner of the slot is nobody's.
        let Some(open) = slot.open.as_mut().filter(|_| slot.generation == ready.token.generation()) else { return };
        open.readable |= ready.readable;
        open.read_closed |= ready.read_closed;
        open.writable |= ready.writable;
        // One that waits for its turn already has it later: events give no more of the loop than the budgets do.
        if !open.queued {
            self.serve(index);
        }
    }

    /// Serves those whose budget ended before this turn; they are the first in the list.
    fn resume(&mut self, count: usize) {
        for _ in 0..count {
            let Some(token) = self.resumable.pop_front() else { return };
            let index = token.index();
            let Some(slot) = self.slots.get_mut(index as usize) else { continue };
            let Some(open) = slot.open.as_mut().filter(|_| slot.generation == token.generation()) else { continue };
            open.queued = false;
            self.serve(index);
        }
    }

    /// A connection's share of the turn: output that waits, input that is held, input that can be received.
    fn serve(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let token = Token::new(index, slot.generation);
        let Some(open) = slot.open.as_mut() else { return };
        let limits = &self.limits;
        self.workspace.lane.owner = token.0;
        let mut turn = Turn {
            workspace: &mut self.workspace,
            routes: self.routes,
            state: &mut self.state,
            limits,
            now: self.now,
            ran: None,
        };
        if open.connection.can_go_on(limits) {
            open.connection.handle_resume(&mut turn);
        }
        let mut budget = RECV_BYTES_PER_TURN;
        while open.readable && budget > 0 && open.connection.wants_read(limits) {
            let space = open.connection.recv_space(&mut self.read, &mut turn.workspace.pool);
            let space_len = space.len().min(budget);
            match self.net.recv(&mut open.socket, &mut space[..space_len]) {
                Ok(0) => {
                    open.readable = false;
                    open.connection.handle_eof(&mut turn);
                }
                Ok(n) => {
                    budget -= n;
                    open.readable = n == space_len || open.read_closed || !N::SHORT_READ_DRAINS;
                    open.connection.handle_recv(n, &mut self.read, &mut turn);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => open.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => break,
                Err(_) => {
                    open.readable = false;
                    open.connection.handle_reset();
                }
            }
        }
        let ran = turn.ran;
        if open.read_closed {
            open.connection.handle_hangup(limits);
        }
        self.settle(index, ran);
        if self.stalls.watching {
            self.look_for_stall();
        }
    }

    /// Hands the letters that came to whom they are for. All of them: one wake-up stands for many.
    #[cold]
    fn deliver(&mut self) {
        if self.stalls.threshold_ms != u64::MAX {
            self.look_for_stall();
        }
        let mut letters = self.workspace.lane.post.take().into_iter().peekable();
        let mut ran = None;
        while let Some(letter) = letters.next() {
            let (owner, number) = (letter.owner(), letter.number());
            let token = Token(owner);
            let slot = self.slots.get_mut(token.index() as usize).filter(|slot| slot.generation == token.generation());
            let Some(open) = slot.and_then(|slot| slot.open.as_mut()) else {
                match letter.content {
                    Content::Call(call) if token == Token::STATE => self.call(call),
                    nobodys => discard(nobodys),
                }
                continue;
            };
            self.workspace.lane.owner = owner;
            let mut turn = Turn {
                workspace: &mut self.workspace,
                routes: self.routes,
                state: &mut self.state,
                limits: &self.limits,
                now: self.now,
                ran,
            };
            open.connection.handle_letter(number, letter.content, &mut turn);
            ran = turn.ran;
            if open.read_closed {
                open.connection.handle_hangup(&self.limits);
            }
            // Several letters for one connection leave in one send.
            let more = letters.peek().is_some_and(|next| next.owner() == owner);
            if !more || self.workspace.output.len() > self.limits.output_bytes_max {
                self.settle(token.index(), ran.take());
            }
        }
        if self.stalls.threshold_ms != u64::MAX {
            self.stalls.ran = None;
            self.look_for_stall();
        }
    }

    /// Calls what another thread wants called with the state.
    fn call(&mut self, call: Call) {
        let state: &mut dyn Any = &mut self.state;
        if caught(|| call(state)).is_none() {
            self.workspace.panics += 1;
            self.stats.panics = self.workspace.panics;
            tell(&mut self.hook, Event::CallPanicked);
        }
    }

    /// Sends what a connection has to say, and leaves it as it should be until the next event. `ran`: the row whose
    /// handler was called last for it in this turn.
    #[inline(always)]
    fn settle(&mut self, index: u32, ran: Option<&'static Row<S>>) {
        self.stalls.ran = ran.or(self.stalls.ran);
        let Some(open) = self.slots[index as usize].open.as_mut() else { return };
        if open.writable || !self.workspace.output.is_empty() {
            open.writable = false;
            let Open { connection, socket, writable, .. } = open;
            let net = &mut self.net;
            let mut budget = SEND_BYTES_PER_TURN;
            let sent = connection.transmit(&mut self.workspace.output, self.now, |slices| {
                if budget == 0 {
                    *writable = true;
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let sent = net.send(socket, slices);
                let again = match &sent {
                    Ok(n) => !N::SHORT_READ_DRAINS && *n < slices.iter().map(|slice| slice.len()).sum(),
                    Err(error) => error.kind() == io::ErrorKind::Interrupted,
                };
                *writable = again;
                let sent = if again && sent.is_err() { Ok(0) } else { sent }?;
                budget = budget.saturating_sub(sent);
                Ok(sent)
            });
            if sent.is_err() {
                self.workspace.output.clear();
                open.writable = false;
                open.connection.handle_reset();
            }
        }
        // Most often it was a whole request, and nothing is left to do.
        if open.connection.is_idle()
            && open.registered
            && !open.readable
            && self.timers.bucket(index) <= self.idle_bucket
            && !self.workspace.closing
            && self.workspace.output.fault.is_none()
            && self.workspace.panics == self.stats.panics
        {
            return;
        }
        self.settle_unusual(index, ran);
    }

    #[cold]
    fn settle_unusual(&mut self, index: u32, ran: Option<&'static Row<S>>) {
        let slot = &mut self.slots[index as usize];
        let token = Token::new(index, slot.generation);
        let Some(open) = slot.open.as_mut() else { return };
        // With several requests in a turn it is known of the last only.
        let route = ran.map(|row| (row.method, row.pattern));
        if self.workspace.panics != self.stats.panics {
            self.stats.panics = self.workspace.panics;
            tell(&mut self.hook, Event::HandlerPanicked { route, peer: open.connection.peer() });
        }
        if let Some(fault) = self.workspace.output.fault.take() {
            self.stats.faults += 1;
            tell(&mut self.hook, Event::AnswerFailed { route, fault });
        }
        match open.connection.next(self.now) {
            Next::Stay => {}
            Next::ShutdownWrite => {
                if self.net.shutdown_write(&mut open.socket).is_err() {
                    open.connection.handle_reset();
                    if let Next::Close(reason) = open.connection.next(self.now) {
                        return self.close(index, reason);
                    }
                }
            }
            Next::Close(reason) => return self.close(index, reason),
        }
        let may_part = match self.stage {
            Stage::Closing { hush, .. } if !open.readable => {
                let is_quiet = |since: Tick| hush == HUSHED || self.now >= since.after(REQUEST_GRACE);
                open.connection.idle_since().is_some_and(is_quiet)
            }
            _ => false,
        };
        if may_part && open.parting {
            return self.close(index, CloseReason::Drained);
        }
        // It was busy, or not quiet for long enough, when the others were read once more.
        open.readable |= may_part;
        open.parting = may_part;
        let watch = open.connection.wants_write();
        let asked = match (open.registered, watch && !open.watches_writable) {
            // Not before its first turn: one that is over by then needs no registration.
            (false, _) => self.net.register(&mut open.socket, token, watch),
            (true, true) => self.net.watch_writable(&mut open.socket, token),
            (true, false) => Ok(()),
        };
        open.registered = true;
        open.watches_writable |= watch;
        if asked.is_err() {
            // Nothing would ever be heard of it.
            return self.close(index, CloseReason::PeerReset);
        }
        if let Some(deadline) = open.connection.deadline(&self.limits)
            && Bucket::of(deadline) < self.timers.bucket(index)
        {
            self.timers.set(index, deadline, self.now);
        }
        let can_read = open.readable && open.connection.wants_read(&self.limits);
        let can_write = open.writable && watch;
        if !open.queued && (can_read || can_write || open.connection.can_go_on(&self.limits)) {
            open.queued = true;
            self.resumable.push_back(token);
        }
    }

    /// The bucket of a connection is due; its deadline may be later.
    fn handle_timer(&mut self, index: u32) {
        let (limits, now) = (&self.limits, self.now);
        let is_late = |open: &Open<N::Socket>| open.connection.deadline(limits).is_some_and(|deadline| deadline < now);
        let Some(open) = self.slots[index as usize].open.as_mut() else { return };
        let is_late = is_late(open) && open.connection.wants_read(limits);
        if open.queued || is_late {
            // What is waited for may be there already, and only the loop late: it was held up, or one wait does not tell
            // of so many connections.
            open.readable |= is_late;
            self.serve(index);
        }
        let Some(open) = self.slots[index as usize].open.as_ref() else { return };
        match open.connection.deadline(&self.limits) {
            Some(deadline) if deadline > self.now => self.timers.set(index, deadline, self.now),
            _ => self.drive(index, |connection, turn| connection.handle_timeout(turn)),
        }
    }

    /// Has a connection do something that no event asked for.
    fn drive(&mut self, index: u32, act: impl FnOnce(&mut Connection, &mut Turn<'_, S>)) {
        let slot = &mut self.slots[index as usize];
        self.workspace.lane.owner = Token::new(index, slot.generation).0;
        let Some(open) = slot.open.as_mut() else { return };
        let mut turn = Turn {
            workspace: &mut self.workspace,
            routes: self.routes,
            state: &mut self.state,
            limits: &self.limits,
            now: self.now,
            ran: None,
        };
        act(&mut open.connection, &mut turn);
        let ran = turn.ran;
        self.settle(index, ran);
    }

    #[cold]
    fn close(&mut self, index: u32, reason: CloseReason) {
        let slot = &mut self.slots[index as usize];
        let Some(Open { mut connection, socket, .. }) = slot.open.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        self.freed.push(index);
        self.timers.remove(index);
        connection.release(&mut self.workspace.pool);
        // Where the peer does not take what it is sent, the system should not go on trying for minutes.
        let gives_up = matches!(
            reason,
            CloseReason::WriteTimeout | CloseReason::DrainTimeout | CloseReason::StreamTooSlow | CloseReason::PeerLeft
        );
        let reset = gives_up && connection.wants_write();
        self.net.close(socket, reset);
        self.stats.open -= 1;
        // There is a descriptor again.
        self.accept.paused_until = None;
        tell(&mut self.hook, Event::Closed { peer: connection.peer(), reason });
    }

    // ---- for the owner of the loop -------------------------------------------------------------------------------

    /// Connections from these peers have to begin with a PROXY header.
    pub(crate) fn trust(&mut self, trusted: Trusted) {
        self.trusted = trusted;
    }

    pub(crate) fn state(&self) -> &S {
        &self.state
    }

    pub(crate) fn state_mut(&mut self) -> &mut S {
        &mut self.state
    }

    pub(crate) fn caller(&mut self) -> Caller<S> {
        Caller::new(self.workspace.lane.ticket_of(Token::STATE.0))
    }

    pub(crate) fn into_state(self) -> S {
        self.state
    }

    /// For tests and simulations, which drive it by hand.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn net(&self) -> &N {
        &self.net
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            requests: self.workspace.requests,
            panics: self.workspace.panics,
            refused_work: self.workspace.refused_work,
            held_bytes: self.workspace.pool.held_bytes(),
            ..self.stats
        }
    }

    pub(crate) fn tell_listening(&mut self, address: Option<SocketAddr>, path: Option<&Path>) {
        let connections_max = self.accept.connections_max;
        tell(&mut self.hook, Event::Listening { address, path, connections_max });
    }

    pub(crate) fn tell_memory_ceiling(&mut self) {
        let bytes_per_connection = self.limits.worst_case_bytes_per_connection();
        let bytes = self.limits.worst_case_bytes(self.accept.connections_max);
        tell(&mut self.hook, Event::MemoryCeiling { bytes_per_connection, bytes });
    }
}

fn tell(hook: &mut Option<Hook>, event: Event<'_>) {
    if let Some(hook) = hook {
        // Its own fault must not end the server: a log that goes to a closed pipe panics.
        let _ = caught(|| hook(&event));
    }
}

impl<N: Net, S> fmt::Debug for EventLoop<N, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop").field("stats", &self.stats()).field("stage", &self.stage).finish_non_exhaustive()
    }
}
