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

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::event::{Event, Stats};
use super::net::{Net, Ready, Token, is_about_one_connection};
use super::offload::{Offload, Pool};
use super::timers::{Bucket, Timers};
use super::trusted::Trusted;
use crate::caught::{caught, discard};
use crate::connection::{CloseReason, Connection, Next, Tick, Turn, Workspace};
use crate::held::PADDING_LEN;
use crate::later::{Job, Lane, Outside};
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::route::{Routes, Row};

/// What is told about what happens.
pub(crate) type Hook = Box<dyn FnMut(&Event<'_>) + Send>;

/// See the module.
pub(crate) struct EventLoop<N: Net, S: 'static> {
    net: N,
    routes: &'static Routes<S>,
    state: S,
    limits: Limits,
    workspace: Workspace,
    /// What is received goes here first, unless its connection holds a partial message.
    read: Box<[u8]>,
    slots: Vec<Slot<N::Socket>>,
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

/// Who holds up the loop; see [`Server::stall_threshold`](super::Server::stall_threshold).
#[derive(Debug)]
struct Stalls<S: 'static> {
    /// `u64::MAX`: nobody wants to know.
    threshold_ms: u64,
    /// The last row that ran.
    ran: Option<&'static Row<S>>,
    /// When time was last attributed to somebody, and the request count then.
    since: Tick,
    requests: u64,
    /// A second unattributable stall before this tick turns on a clock read per connection.
    suspect_until: Tick,
    watch_until: Tick,
    watching: bool,
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

#[derive(Debug)]
struct Accept {
    open: bool,
    /// The listener was not emptied since its last event.
    pending: bool,
    connections_max: usize,
    paused_until: Option<Tick>,
    /// When it was last told that nothing can be accepted.
    told: Option<Tick>,
}

impl Accept {
    /// Whether it was not told a moment ago already that nothing can be accepted.
    fn is_news(&mut self, now: Tick) -> bool {
        let is_news = self.told.is_none_or(|told| now >= told.after(TOLD_AGAIN_AFTER));
        if is_news {
            self.told = Some(now);
        }
        is_news
    }
}

/// How far shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// Handlers know; all goes on as before. From `parts` on answers close.
    Announced {
        parts: Tick,
        closes: Tick,
    },
    /// Nothing is accepted, and answers close. Connections that spoke a moment ago, or had no time to, have until `hush`.
    Closing {
        hush: Tick,
        ends: Tick,
    },
    Stopped,
}

/// Connections accepted in a turn, before the open ones have theirs.
const ACCEPTS_PER_TURN: usize = 64;

/// Bytes received for a connection in a turn, and bytes sent.
const RECV_BYTES_PER_TURN: usize = READ_BUFFER_LEN;
const SEND_BYTES_PER_TURN: usize = 1 << 20;

/// How long accepting pauses when descriptors, memory or places ran out, unless a connection closes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// So long after its last answer, or after accept, nobody takes the place of an idle connection.
const PLACE_KEPT: Duration = Duration::from_secs(1);

/// How many slots one search for the longest-idle connection looks at.
const IDLE_LOOKS: usize = 64;
/// How many searches there are at most, since the one that is found can turn out to be busy.
const IDLE_TRIES: usize = 4;

/// At least so long between two events that tell the same.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Two unattributable stalls within this time turn on a clock read per connection for as long.
const WATCH: Duration = Duration::from_secs(60);

/// At shutdown a connection that was accepted, or had its last answer, less long ago is not taken for idle: its next
/// request may be on its way, and many a client does not try again.
const REQUEST_GRACE: Duration = Duration::from_millis(500);

/// The end of that time, once it is over.
const HUSHED: Tick = Tick(u64::MAX);

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
            accept: Accept {
                open: true,
                pending: false,
                connections_max: connections_max.min(limits.connections_max).max(1),
                paused_until: None,
                told: None,
            },
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
            stalls: Stalls {
                threshold_ms: whole_ms(super::STALL_THRESHOLD),
                ran: None,
                since: now,
                requests: 0,
                suspect_until: now,
                watch_until: now,
                watching: false,
            },
        }
    }

    pub(crate) fn configure(&mut self, offload: Offload, stall_threshold: Duration) {
        self.pool.configure(offload);
        self.stalls.threshold_ms = whole_ms(stall_threshold);
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
    fn timeout(&self, timeout_max: Option<Duration>) -> Option<Duration> {
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
            letter.arrive();
            let (owner, number) = (letter.owner(), letter.number());
            let token = Token(owner);
            let slot = self.slots.get_mut(token.index() as usize).filter(|slot| slot.generation == token.generation());
            let Some(open) = slot.and_then(|slot| slot.open.as_mut()) else {
                discard(letter.content);
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

    /// Whether somebody held up the loop since the last look.
    fn look_for_stall(&mut self) {
        let now = self.net.now();
        let stalls = &mut self.stalls;
        let since = std::mem::replace(&mut stalls.since, now);
        let requests = std::mem::replace(&mut stalls.requests, self.workspace.requests);
        let ran = stalls.ran.take();
        stalls.watching = now < stalls.watch_until;
        let took_ms = now.0.saturating_sub(since.0);
        if took_ms >= stalls.threshold_ms {
            let served = self.workspace.requests - requests;
            self.tell_stall(took_ms, ran.filter(|_| served <= 1));
        }
    }

    #[cold]
    fn tell_stall(&mut self, took_ms: u64, ran: Option<&'static Row<S>>) {
        let stalls = &mut self.stalls;
        if ran.is_none() {
            // One may be the machine's doing.
            if stalls.since < stalls.suspect_until {
                stalls.watch_until = stalls.since.after(WATCH);
                stalls.watching = true;
            }
            stalls.suspect_until = stalls.since.after(WATCH);
        }
        self.stats.stalls += 1;
        let route = ran.map(|row| (row.method, row.pattern));
        tell(&mut self.hook, Event::Stalled { route, took: Duration::from_millis(took_ms) });
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
        if open.queued || (is_late(open) && open.connection.wants_read(limits)) {
            // What is waited for may be there already, and only the loop late: it was held up, or one wait does not tell
            // of so many connections.
            open.readable |= open.connection.wants_read(limits);
            self.serve(index);
        }
        let slot = &mut self.slots[index as usize];
        self.workspace.lane.owner = Token::new(index, slot.generation).0;
        let Some(open) = slot.open.as_mut() else { return };
        match open.connection.deadline(&self.limits) {
            Some(deadline) if deadline > self.now => return self.timers.set(index, deadline, self.now),
            _ => {}
        }
        let mut turn = Turn {
            workspace: &mut self.workspace,
            routes: self.routes,
            state: &mut self.state,
            limits: &self.limits,
            now: self.now,
            ran: None,
        };
        open.connection.handle_timeout(&mut turn);
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

    // ---- new connections -----------------------------------------------------------------------------------------

    fn can_accept(&self) -> bool {
        let accept = &self.accept;
        accept.pending && accept.open && accept.paused_until.is_none() && self.stats.open < accept.connections_max
    }

    fn accept_waiting(&mut self) {
        if !self.accept.open {
            return;
        }
        if self.accept.paused_until.is_some_and(|until| self.now < until) {
            return;
        }
        self.accept.paused_until = None;
        let mut accepted = 0;
        for _ in 0..ACCEPTS_PER_TURN {
            let idle = self.find_idle();
            if idle.is_none() && self.is_full() {
                return self.tell_full();
            }
            match self.net.accept() {
                Ok((socket, peer)) => {
                    accepted += 1;
                    if let Some(index) = idle {
                        self.close(index, CloseReason::PlaceNeeded);
                    }
                    self.add(socket, peer);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accept.pending = false;
                    return;
                }
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => return self.pause_accepting(&error),
            }
        }
        if accepted == 0 {
            // All of them failed: whatever it is, another try at once would be a spin.
            self.accept.paused_until = Some(self.now.after(ACCEPT_PAUSE));
        }
    }

    fn is_full(&self) -> bool {
        self.stats.open >= self.accept.connections_max
    }

    /// Where all places are taken, somebody who has been idle for a while, and longer than some others: who waits to be
    /// accepted can have its place. It was read once more, so no request of its own is lost that was there already.
    fn find_idle(&mut self) -> Option<u32> {
        let idle_since = |slots: &[Slot<N::Socket>], index: usize| {
            slots[index].open.as_ref().filter(|open| !open.queued)?.connection.idle_since()
        };
        let mut tries = 0..IDLE_TRIES;
        // Who is read once more may close.
        while self.is_full() && tries.next().is_some() {
            let looked_at = self.next_look..self.next_look + self.slots.len().min(IDLE_LOOKS);
            let idle = looked_at.clone().map(|at| at % self.slots.len());
            let longest = idle.filter_map(|index| Some((idle_since(&self.slots, index)?, index))).min();
            let Some((since, index)) = longest.filter(|(since, _)| self.now >= since.after(PLACE_KEPT)) else {
                // The next search looks at others.
                self.next_look = looked_at.end % self.slots.len().max(1);
                return None;
            };
            if let Some(open) = &mut self.slots[index].open {
                open.readable = true;
            }
            self.serve(index as u32);
            if idle_since(&self.slots, index) == Some(since) {
                return Some(index as u32);
            }
        }
        None
    }

    fn add(&mut self, socket: N::Socket, peer: Option<SocketAddr>) {
        let behind_proxy = self.trusted.holds(peer.map(|peer| peer.ip()));
        let connect = if behind_proxy { Connection::behind_proxy } else { Connection::new };
        let open = Open {
            connection: connect(peer, self.now),
            socket,
            // Its request is often there already.
            readable: true,
            writable: false,
            read_closed: false,
            registered: false,
            watches_writable: false,
            queued: false,
            parting: false,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize].open = Some(open);
                index
            }
            None => {
                // `Limits::check` keeps connections far below the range of an index.
                let index = self.slots.len() as u32;
                self.slots.push(Slot { generation: 0, open: Some(open) });
                self.timers.grow(index);
                index
            }
        };
        self.stats.accepted += 1;
        self.stats.open += 1;
        self.serve(index);
    }

    #[cold]
    fn tell_full(&mut self) {
        // Somebody may be idle for long enough by then.
        self.accept.paused_until = Some(self.now.after(ACCEPT_PAUSE));
        if self.accept.is_news(self.now) {
            tell(&mut self.hook, Event::Full { open: self.stats.open });
        }
    }

    #[cold]
    fn pause_accepting(&mut self, error: &io::Error) {
        self.accept.paused_until = Some(self.now.after(ACCEPT_PAUSE));
        self.stats.accept_pauses += 1;
        if self.accept.is_news(self.now) {
            tell(&mut self.hook, Event::AcceptPaused { error });
        }
    }

    // ---- shutdown ------------------------------------------------------------------------------------------------

    /// Handlers see it at once; the listener closes after the delay.
    pub(crate) fn shut_down(&mut self, delay: Duration) {
        let (parts, closes) = (self.now.after(delay / 2), self.now.after(delay));
        match self.stage {
            Stage::Serving => {
                self.workspace.draining = true;
                self.stage = Stage::Announced { parts, closes };
                if !delay.is_zero() {
                    tell(&mut self.hook, Event::Draining { open: self.stats.open });
                }
            }
            Stage::Announced { parts: parts_before, closes: closes_before } => {
                self.stage = Stage::Announced { parts: parts.min(parts_before), closes: closes.min(closes_before) };
            }
            Stage::Closing { .. } | Stage::Stopped => {}
        }
    }

    fn go_on_shutting_down(&mut self) {
        if let Stage::Announced { parts, closes } = self.stage {
            self.workspace.closing |= self.now >= parts;
            if self.now >= closes {
                self.stop_listening();
            }
        }
        let Stage::Closing { hush, ends } = self.stage else { return };
        if self.now >= hush {
            self.stage = Stage::Closing { hush: HUSHED, ends };
            self.close_idle();
        }
        let mut aborted = 0;
        if self.now >= ends {
            for index in 0..self.slots.len() as u32 {
                if self.slots[index as usize].open.is_some() {
                    aborted += 1;
                    self.close(index, CloseReason::DrainTimeout);
                }
            }
        }
        if self.stats.open == 0 {
            self.stage = Stage::Stopped;
            tell(&mut self.hook, Event::Stopped { aborted });
        }
    }

    fn stop_listening(&mut self) {
        self.workspace.closing = true;
        // Whoever the system has let in already would be reset: take them, up to the limit, as long as that works. Not for
        // ever: who comes and goes at once leaves its place free, and may come again.
        self.accept.pending = true;
        self.accept.paused_until = None;
        for _ in 0..self.accept.connections_max.div_ceil(ACCEPTS_PER_TURN) {
            if self.can_accept() {
                self.accept_waiting();
            }
        }
        self.accept.open = false;
        self.accept.paused_until = None;
        self.net.close_listener();
        self.stage =
            Stage::Closing { hush: self.now.after(REQUEST_GRACE), ends: self.now.after(self.limits.drain_timeout) };
        tell(&mut self.hook, Event::Closing { open: self.stats.open });
        self.close_idle();
    }

    /// Reads idle connections once more, so that a request that is there already gets its answer, and closes them.
    fn close_idle(&mut self) {
        for index in 0..self.slots.len() as u32 {
            let Some(open) = self.slots[index as usize].open.as_mut() else { continue };
            if open.connection.is_idle() && !open.queued {
                open.readable = true;
                open.parting = true;
                self.serve(index);
            } else if open.connection.is_waiting() {
                self.drain_stream(index);
            }
        }
    }

    fn drain_stream(&mut self, index: u32) {
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
        open.connection.handle_drain(&mut turn);
        let ran = turn.ran;
        self.settle(index, ran);
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

/// What a simulator sees of a connection between two turns.
#[derive(Debug)]
pub(crate) struct View<'e, K> {
    pub(crate) socket: &'e K,
    pub(crate) connection: &'e Connection,
    pub(crate) readable: bool,
    /// It has its turn next time, without an event.
    pub(crate) queued: bool,
    pub(crate) has_timer: bool,
}

impl<N: Net, S: 'static> EventLoop<N, S> {
    pub(crate) fn views(&self) -> impl Iterator<Item = View<'_, N::Socket>> {
        self.slots.iter().zip(0..).filter_map(|(slot, index)| {
            let Open { connection, socket, readable, queued, .. } = slot.open.as_ref()?;
            // One that is overdue waits for the next bucket.
            let due = |at: Tick| Bucket::of(at.max(Tick(self.now.0 + 1)));
            let has_timer = connection.deadline(&self.limits).is_none_or(|at| self.timers.bucket(index) <= due(at));
            Some(View { socket, connection, readable: *readable, queued: *queued, has_timer })
        })
    }

    /// Whether the next turn has letters to hand out.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn has_letters(&self) -> bool {
        self.workspace.lane.post.has_letters()
    }

    /// Gives letters and work up, as at the end of the loop, and counts the tickets that somebody still has.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn tickets_left(&self) -> usize {
        let post = &self.workspace.lane.post;
        post.close();
        std::sync::Arc::strong_count(post) - 1
    }

    /// Whether the books balance: slots, buffers, timers.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let open = self.slots.iter().filter(|slot| slot.open.is_some()).count();
        let free = self.free.len() + self.freed.len();
        let held: usize = self.views().map(|view| view.connection.input_capacity()).sum();
        if open != self.stats.open || open + free != self.slots.len() {
            return Err(format!("{open} of {} slots are open, {free} free", self.slots.len()));
        }
        if held != self.workspace.pool.held_bytes() {
            return Err(format!("{held} bytes are held, {} counted", self.workspace.pool.held_bytes()));
        }
        if !self.workspace.output.is_empty() {
            return Err("output was left behind for whoever comes next".to_owned());
        }
        if self.timers.linked() > open {
            return Err(format!("{} timers for {open} connections", self.timers.linked()));
        }
        Ok(())
    }
}

/// Milliseconds, and those begun.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
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
