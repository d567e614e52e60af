//! The loop that drives the connections.
//!
//! It must cost less than the server it measures: one `recv` and one `send` per connection and turn, whatever the
//! pipelining depth; one clock call per event; no allocation per request; answers that repeat are compared, not parsed.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::answer::{Found, Reader};
use super::pace::{self, Schedule};
use super::{BODY_SAMPLE, Churn, Errors, Herd, Latency, Outcome, Pace, Plan, rounded};
use crate::process::{self, Machine, Usage};

/// Runs the plan. Fails only if this side cannot work; what the server does wrong is counted in the outcome.
pub fn run(plan: &Plan) -> io::Result<Outcome> {
    let mut engine = Engine::new(plan)?;
    engine.open_all()?;
    let herd = engine.hold_herd()?;
    engine.start();
    engine.turn_until(Window::Warm)?;
    engine.begin();
    engine.turn_until(Window::Measured)?;
    let mut outcome = engine.end();
    engine.drain()?;
    outcome.errors = engine.errors;
    outcome.latency = Latency::of(&engine.histogram);
    outcome.herd = herd.map(|herd| Herd { lost: engine.herd_lost, ..herd });
    engine.bar.finish_and_clear();
    Ok(outcome)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    /// Connections open, nothing is counted but errors.
    Warm,
    /// Between `begin` and `end`.
    Measured,
    /// Nothing new is sent.
    Draining,
}

struct Engine<'p> {
    plan: &'p Plan,
    poll: Poll,
    events: Option<Events>,
    started: Instant,
    window: Window,
    /// Nanoseconds since `started`: of the measurement's begin and its latest end.
    begin: u64,
    end: u64,
    slots: Vec<Slot>,
    /// Open loop: connections that may send, one entry for each request that they may send.
    free: VecDeque<(usize, u32)>,
    schedule: Option<Schedule>,
    sending: bool,
    reader: Reader,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// Closed loop and constant requests: `depth` of them.
    batch: Vec<u8>,
    request_number: u64,
    source_next: usize,
    histogram: Histogram<u64>,
    answers: u64,
    received_bytes: u64,
    opened: u64,
    errors: Errors,
    herd_waiting: usize,
    herd_lost: u64,
    watched: Vec<u32>,
    server_before: Usage,
    client_before: Usage,
    machine_before: Machine,
    bar: ProgressBar,
    second_next: u64,
}

#[derive(Default)]
struct Slot {
    stream: Option<TcpStream>,
    /// Counts the connections of this slot, so that a free entry of a former one is not used.
    epoch: u32,
    flying: VecDeque<Flying>,
    /// The beginning of an answer.
    partial: Vec<u8>,
    /// What the socket did not take.
    unsent: Vec<u8>,
    /// Why sending failed; handled with the next event.
    fault: Option<ErrorKind>,
    /// Requests that this connection may still send.
    left: u32,
    is_herd: bool,
    /// A part of the herd that has had its answer.
    is_idle: bool,
    /// When the last request was answered and the server is to close.
    closing_since: Option<u64>,
}

#[derive(Clone, Copy)]
struct Flying {
    /// When it was planned, or sent in a closed loop.
    planned: u64,
    number: u64,
}

/// What a connection needs after its input was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    GoOn,
    Reopen,
}

const READ_LEN: usize = 64 << 10;
/// Connections opened before the server gets a moment to accept them: fewer than the smallest usual backlog.
const OPENED_AT_ONCE: usize = 64;

impl<'p> Engine<'p> {
    fn new(plan: &'p Plan) -> io::Result<Engine<'p>> {
        let poll = Poll::new()?;
        let slots = (0..plan.connections + plan.herd)
            .map(|at| Slot {
                is_herd: at >= plan.connections,
                flying: VecDeque::with_capacity(plan.depth),
                ..Slot::default()
            })
            .collect();
        let mut batch = Vec::new();
        if plan.request.is_constant() {
            (0..plan.depth).for_each(|_| plan.request.write(0, &mut batch));
        }
        let histogram = Histogram::new_with_bounds(100, 120_000_000_000, 3).map_err(io::Error::other)?;
        Ok(Engine {
            plan,
            poll,
            events: Some(Events::with_capacity(1024)),
            started: Instant::now(),
            window: Window::Warm,
            begin: 0,
            end: u64::MAX,
            slots,
            free: VecDeque::new(),
            schedule: None,
            sending: false,
            reader: Reader::default(),
            buffer: vec![0; READ_LEN],
            scratch: Vec::new(),
            batch,
            request_number: 0,
            source_next: 0,
            histogram,
            answers: 0,
            received_bytes: 0,
            opened: 0,
            errors: Errors::default(),
            herd_waiting: 0,
            herd_lost: 0,
            watched: Vec::new(),
            server_before: Usage::default(),
            client_before: Usage::default(),
            machine_before: Machine::now(),
            bar: ProgressBar::hidden(),
            second_next: 0,
        })
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn server_usage(&self) -> Usage {
        process::usage(&self.plan.watch.map(process::tree).unwrap_or_default())
    }

    fn gave_up(&self) -> bool {
        self.errors.total() > self.plan.errors_max
    }

    // ---- phases ------------------------------------------------------------------------------------------------

    /// Opens the active connections, a few at a time.
    fn open_all(&mut self) -> io::Result<()> {
        for at in 0..self.plan.connections {
            self.open(at)?;
            if at % OPENED_AT_ONCE == OPENED_AT_ONCE - 1 {
                self.turn(Some(Duration::from_millis(2)))?;
            }
        }
        Ok(())
    }

    /// Opens the herd, has each of it answered once, and says what that did to the server's memory.
    fn hold_herd(&mut self) -> io::Result<Option<Herd>> {
        if self.plan.herd == 0 {
            return Ok(None);
        }
        let resident_before = self.server_usage().resident;
        for at in self.plan.connections..self.slots.len() {
            self.open(at)?;
            let now = self.now();
            self.herd_waiting += 1;
            self.send(at, 1, now);
            while self.herd_waiting > OPENED_AT_ONCE && !self.gave_up() {
                self.turn(Some(Duration::from_millis(1)))?;
                self.look_for_timeouts();
            }
        }
        while self.herd_waiting > 0 && !self.gave_up() {
            self.turn(Some(Duration::from_millis(10)))?;
            self.look_for_timeouts();
        }
        std::thread::sleep(Duration::from_millis(500));
        let resident_after = self.server_usage().resident;
        Ok(Some(Herd { connections: self.plan.herd, resident_before, resident_after, lost: 0 }))
    }

    /// The first requests.
    fn start(&mut self) {
        let now = self.now();
        self.begin = now + self.plan.warm.as_nanos() as u64;
        self.sending = true;
        match self.plan.pace {
            Pace::Open { rate, poisson } => self.schedule = Some(Schedule::new(rate, poisson, now)),
            Pace::Closed => {}
        }
        for at in 0..self.plan.connections {
            self.refill(at, now);
        }
        self.pump(now);
    }

    fn begin(&mut self) {
        let style =
            ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}").unwrap_or(ProgressStyle::default_bar());
        if self.plan.progress {
            self.bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr()).with_style(style);
        }
        self.watched = self.plan.watch.map(process::tree).unwrap_or_default();
        process::forget_peak(&self.watched);
        self.server_before = process::usage(&self.watched);
        self.client_before = process::usage(&[std::process::id()]);
        self.machine_before = Machine::now();
        let now = self.now();
        // The schedule of an open loop does not move; only what was planned within the window is counted.
        self.begin = if self.schedule.is_some() { self.begin } else { now };
        self.end = now + self.plan.time.as_nanos() as u64;
        self.second_next = now + 1_000_000_000;
        (self.answers, self.received_bytes, self.opened) = (0, 0, 0);
        self.histogram.reset();
        self.window = Window::Measured;
    }

    fn end(&mut self) -> Outcome {
        let now = self.now();
        self.window = Window::Draining;
        self.end = self.end.min(now);
        let seconds = (now - self.begin) as f64 / 1e9;
        Outcome {
            seconds: rounded(seconds, 6),
            requests: self.answers,
            per_second: rounded(self.answers as f64 / seconds, 1),
            opened: self.opened,
            received_bytes: self.received_bytes,
            server: self.plan.watch.map(|_| process::spent(&self.server_before, &process::usage(&self.watched))),
            client: process::spent(&self.client_before, &process::usage(&[std::process::id()])),
            steal_percent: Machine::now().steal_percent_since(&self.machine_before),
            ..Outcome::default()
        }
    }

    /// Waits for what is in flight. In an open loop also sends what was planned in time and could not be sent.
    fn drain(&mut self) -> io::Result<()> {
        let give_up = self.now() + self.plan.timeout.as_nanos() as u64;
        loop {
            let now = self.now();
            self.sending = self.schedule.as_ref().is_some_and(|schedule| schedule.next() < self.end);
            let flying = self.slots.iter().any(|slot| !slot.flying.is_empty());
            if self.gave_up() || (!flying && !self.sending) {
                break;
            }
            if now > give_up {
                self.errors.timeout += self.slots.iter().map(|slot| slot.flying.len() as u64).sum::<u64>();
                break;
            }
            self.pump(now);
            self.turn(Some(Duration::from_millis(1)))?;
        }
        while let Some(schedule) = &mut self.schedule
            && schedule.next() < self.end
        {
            schedule.take();
            self.errors.unsent += 1;
        }
        Ok(())
    }

    /// Turns until the window is over.
    fn turn_until(&mut self, window: Window) -> io::Result<()> {
        let mut timeouts_next = 0;
        loop {
            let now = self.now();
            let end = if window == Window::Warm { self.begin } else { self.end };
            let enough = window == Window::Measured && self.plan.requests.is_some_and(|n| self.answers >= n);
            if now >= end || enough || self.gave_up() {
                return Ok(());
            }
            if now >= timeouts_next {
                timeouts_next = now + 100_000_000;
                self.look_for_timeouts();
                self.show(now);
            }
            self.pump(now);
            let mut sleep = (end - now).min(100_000_000);
            match &self.schedule {
                Some(_) if self.plan.spin => sleep = 0,
                Some(schedule) if schedule.next() > now && schedule.next() - now < sleep => {
                    pace::sleep(self.poll.registry(), Duration::from_nanos(schedule.next() - now));
                    sleep = 0;
                }
                _ => {}
            }
            self.turn(Some(Duration::from_nanos(sleep)))?;
        }
    }

    fn turn(&mut self, sleep: Option<Duration>) -> io::Result<()> {
        let Some(mut events) = self.events.take() else { return Ok(()) };
        let polled = self.poll.poll(&mut events, sleep);
        for event in &events {
            self.serve(event.token().0, event.is_read_closed());
        }
        self.events = Some(events);
        match polled {
            Err(e) if e.kind() != ErrorKind::Interrupted => Err(e),
            _ => Ok(()),
        }
    }

    fn show(&mut self, now: u64) {
        if self.window != Window::Measured {
            return;
        }
        let seconds = now.saturating_sub(self.begin) as f64 / 1e9;
        let by_time = seconds / self.plan.time.as_secs_f64();
        let by_count = self.plan.requests.map_or(0.0, |n| self.answers as f64 / n as f64);
        self.bar.set_position((by_time.max(by_count) * 1000.0) as u64);
        let rate = self.answers as f64 / seconds.max(1e-9);
        self.bar.set_message(format!("{rate:.0} requests/s, errors: {}", self.errors));
        if self.plan.each_second && now >= self.second_next {
            self.second_next += 1_000_000_000;
            let (answers, errors) = (self.answers, self.errors.total());
            println!(r#"{{"second":{seconds:.1},"requests":{answers},"errors":{errors}}}"#);
        }
    }

    // ---- connections -------------------------------------------------------------------------------------------

    fn open(&mut self, at: usize) -> io::Result<()> {
        let is_scheduled = self.schedule_is_open();
        let source = self.plan.sources.get(self.source_next % self.plan.sources.len().max(1)).copied();
        self.source_next += 1;
        let slot = &mut self.slots[at];
        slot.epoch = slot.epoch.wrapping_add(1);
        slot.flying.clear();
        slot.partial.clear();
        slot.unsent.clear();
        slot.closing_since = None;
        slot.fault = None;
        slot.left = self.plan.churn.filter(|_| !slot.is_herd).map_or(u32::MAX, |churn| churn.requests);
        self.opened += 1;
        match connect(self.plan.target, source.map(|ip| SocketAddr::from((ip, 0)))) {
            Ok(mut stream) => {
                // Both interests from the start: no further epoll_ctl, and one spurious event per connection.
                self.poll.registry().register(&mut stream, Token(at), Interest::READABLE | Interest::WRITABLE)?;
                slot.stream = Some(stream);
                if is_scheduled && !slot.is_herd {
                    let credits = self.plan.depth.min(slot.left as usize);
                    self.free.extend(std::iter::repeat_n((at, slot.epoch), credits));
                }
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::Unsupported || e.raw_os_error() == Some(EMFILE) => Err(e),
            Err(_) => {
                self.errors.connect += 1;
                slot.stream = None;
                Ok(())
            }
        }
    }

    fn schedule_is_open(&self) -> bool {
        matches!(self.plan.pace, Pace::Open { .. })
    }

    /// Reads what came on a connection, then sends what it may.
    fn serve(&mut self, at: usize, is_read_closed: bool) {
        let mut slot = std::mem::take(&mut self.slots[at]);
        let after = self.receive(&mut slot, at, is_read_closed);
        self.slots[at] = slot;
        let now = self.now();
        if after == After::Reopen {
            self.reopen(at, now);
        }
        if self.sending {
            self.refill(at, now);
            self.pump(now);
        }
    }

    fn reopen(&mut self, at: usize, now: u64) {
        let slot = &mut self.slots[at];
        slot.stream = None;
        slot.flying.clear();
        slot.closing_since = None;
        if slot.is_herd {
            self.herd_lost += 1;
            self.herd_waiting -= usize::from(!slot.is_idle);
            slot.is_idle = true;
            return;
        }
        if self.sending && !self.gave_up() && self.open(at).is_ok() {
            self.refill(at, now);
        }
    }

    fn receive(&mut self, slot: &mut Slot, at: usize, is_read_closed: bool) -> After {
        let Some(mut stream) = slot.stream.take() else { return After::GoOn };
        let flushed = slot.fault.take().map_or_else(|| flush(&mut stream, &mut slot.unsent), |kind| Err(kind.into()));
        let after = match flushed {
            Ok(()) => self.receive_from(&mut stream, slot, at, is_read_closed),
            Err(e) => self.broken(slot, e.kind()),
        };
        slot.stream = Some(stream);
        after
    }

    fn receive_from(&mut self, stream: &mut TcpStream, slot: &mut Slot, at: usize, is_read_closed: bool) -> After {
        loop {
            let received = match stream.read(&mut self.buffer) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return After::GoOn,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::NotConnected => return After::GoOn,
                Err(e) => return self.broken(slot, e.kind()),
            };
            let now = self.started.elapsed().as_nanos() as u64;
            self.received_bytes += received as u64;
            let eof = received == 0;
            if !self.take_answers(slot, at, received, eof, now) {
                self.errors.malformed += 1;
                return After::Reopen;
            }
            if eof {
                let is_quiet = slot.flying.is_empty();
                return if is_quiet { After::Reopen } else { self.broken(slot, ErrorKind::UnexpectedEof) };
            }
            let is_over = slot.left == 0 && slot.flying.is_empty();
            if is_over && self.plan.churn.is_some_and(|churn| !churn.ask) {
                return After::Reopen; // the client closes first
            }
            // A short read has drained the socket, unless the end of the stream was part of the same event.
            if received < self.buffer.len() && !is_read_closed {
                return After::GoOn;
            }
        }
    }

    /// The connection is gone, and with it what was asked on it.
    fn broken(&mut self, slot: &mut Slot, kind: ErrorKind) -> After {
        match kind {
            ErrorKind::ConnectionRefused | ErrorKind::TimedOut => self.errors.connect += 1,
            _ => self.errors.closed += 1,
        }
        slot.flying.clear();
        After::Reopen
    }

    /// Takes every whole answer out of the first `received` bytes of the buffer. False: they are no answers.
    fn take_answers(&mut self, slot: &mut Slot, at: usize, received: usize, eof: bool, now: u64) -> bool {
        let buffer = std::mem::take(&mut self.buffer);
        let mut partial = std::mem::take(&mut slot.partial);
        let joined = !partial.is_empty();
        if joined {
            partial.extend_from_slice(&buffer[..received]);
        }
        let bytes: &[u8] = if joined { &partial } else { &buffer[..received] };
        let (mut from, mut is_http) = (0, true);
        while from < bytes.len() {
            match self.reader.read(&bytes[from..], self.plan.request.is_head(), eof) {
                Found::Whole(answer) => {
                    let Some(flying) = slot.flying.pop_front() else {
                        is_http = false;
                        break;
                    };
                    let body = self.reader.body(&answer, &bytes[from..]);
                    if answer.close {
                        slot.left = 0; // what is in flight may still be answered
                    }
                    let right = check(self.plan, &flying, answer.status, body, &mut self.errors);
                    from += answer.len;
                    self.count(right, flying.planned, now);
                    if slot.is_herd {
                        slot.is_idle = true;
                        self.herd_waiting -= 1;
                    } else if self.schedule_is_open() && slot.left > 0 {
                        self.free.push_back((at, slot.epoch));
                    }
                    if slot.left == 0 && slot.flying.is_empty() {
                        slot.closing_since = Some(now);
                    }
                }
                Found::Partial if !eof => break,
                Found::Partial => {
                    from = bytes.len(); // counted as closed early, since its request is still in flight
                }
                Found::Broken => {
                    is_http = false;
                    break;
                }
            }
        }
        if joined {
            partial.drain(..from);
        } else if from < received {
            partial.extend_from_slice(&buffer[from..received]);
        }
        slot.partial = partial;
        self.buffer = buffer;
        is_http
    }

    #[inline]
    fn count(&mut self, right: bool, planned: u64, now: u64) {
        let latency = now.saturating_sub(planned);
        let in_window = match self.plan.pace {
            Pace::Closed => self.window == Window::Measured,
            Pace::Open { .. } => planned >= self.begin && planned < self.end,
        };
        if in_window && right {
            self.histogram.saturating_record(latency);
        }
        if self.window == Window::Measured && right {
            self.answers += 1;
        }
    }

    /// Closed loop: sends as many requests as the connection has room for.
    fn refill(&mut self, at: usize, now: u64) {
        if self.schedule_is_open() || self.slots[at].is_herd || !self.sending {
            return;
        }
        let slot = &self.slots[at];
        let room = self.plan.depth.saturating_sub(slot.flying.len()).min(slot.left as usize);
        // With pipelining, half a batch waits for the rest: one send for many requests.
        if room > 0 && (room * 2 >= self.plan.depth || slot.flying.is_empty()) && slot.stream.is_some() {
            self.send(at, room, now);
        }
    }

    /// Open loop: sends what is due, as long as there are connections for it.
    #[inline]
    fn pump(&mut self, now: u64) {
        if !self.sending {
            return;
        }
        while let Some(schedule) = &mut self.schedule {
            if schedule.next() > now || (self.window == Window::Draining && schedule.next() >= self.end) {
                return;
            }
            let Some((at, epoch)) = self.free.pop_front() else { return };
            if self.slots[at].epoch != epoch || self.slots[at].stream.is_none() {
                continue;
            }
            let planned = schedule.take();
            self.send(at, 1, planned);
        }
    }

    /// Sends `count` requests at once.
    fn send(&mut self, at: usize, count: usize, planned: u64) {
        let slot = &mut self.slots[at];
        let Some(stream) = &mut slot.stream else { return };
        let is_last = slot.left as usize == count && self.plan.churn.is_some_and(|churn| churn.ask) && !slot.is_herd;
        self.scratch.clear();
        let one_len = self.batch.len() / self.plan.depth.max(1);
        for nth in 0..count {
            self.request_number += 1;
            slot.flying.push_back(Flying { planned, number: self.request_number });
            if is_last && nth == count - 1 {
                self.plan.request_last.write(self.request_number, &mut self.scratch);
            } else if one_len == 0 || is_last {
                self.plan.request.write(self.request_number, &mut self.scratch);
            }
        }
        let bytes: &[u8] = if self.scratch.is_empty() { &self.batch[..one_len * count] } else { &self.scratch };
        if slot.left != u32::MAX {
            slot.left -= count as u32;
        }
        if !slot.unsent.is_empty() {
            slot.unsent.extend_from_slice(bytes);
            return;
        }
        let sent = match stream.write(bytes) {
            Ok(n) => n,
            Err(e) if !is_not_yet(e.kind()) => {
                slot.fault = Some(e.kind());
                0
            }
            Err(_) => 0,
        };
        if sent < bytes.len() {
            slot.unsent.extend_from_slice(&bytes[sent..]);
        }
    }

    /// Looks for answers that are overdue, and for connections that could not be opened at first.
    fn look_for_timeouts(&mut self) {
        let now = self.now();
        let timeout = self.plan.timeout.as_nanos() as u64;
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            let overdue = slot.flying.front().is_some_and(|flying| now.saturating_sub(flying.planned) > timeout);
            let left_open = slot.closing_since.is_some_and(|since| now.saturating_sub(since) > LEFT_OPEN_NS);
            if overdue {
                self.errors.timeout += slot.flying.len() as u64;
                slot.flying.clear();
            }
            if left_open {
                self.errors.left_open += 1;
            }
            if overdue || left_open || (slot.stream.is_none() && !slot.is_herd) {
                self.reopen(at, now);
            }
        }
        self.pump(now);
    }
}

/// A server that was asked to close has this long.
const LEFT_OPEN_NS: u64 = 1_000_000_000;

const EMFILE: i32 = 24;

/// Whether an answer is what it must be. If not, counts why.
#[inline]
fn check(plan: &Plan, flying: &Flying, status: u16, body: &[u8], errors: &mut Errors) -> bool {
    if status != plan.expect.status {
        errors.status += 1;
        return false;
    }
    let Some(expected) = &plan.expect.body else { return true };
    if !plan.request.is_head() && body.len() != expected.len(flying.number) {
        errors.length += 1;
        return false;
    }
    if flying.number.is_multiple_of(BODY_SAMPLE) && !plan.request.is_head() && !expected.matches(flying.number, body) {
        errors.body += 1;
        return false;
    }
    true
}

/// Starts to connect. The first event of the stream says how it went.
fn connect(target: SocketAddr, source: Option<SocketAddr>) -> io::Result<TcpStream> {
    // An address of the loopback network may have too many sockets in TIME_WAIT on a port: try a few.
    let mut tries = 0;
    loop {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(source) = source {
            socket.set_reuse_address(true)?;
            socket.bind(&SockAddr::from(source))?;
        }
        match socket.connect(&target.into()) {
            Ok(()) => return Ok(TcpStream::from_std(socket.into())),
            Err(e) if e.raw_os_error() == Some(EINPROGRESS) => return Ok(TcpStream::from_std(socket.into())),
            Err(e) if e.kind() == ErrorKind::AddrNotAvailable && tries < 16 => tries += 1,
            Err(e) => return Err(e),
        }
    }
}

const EINPROGRESS: i32 = 115;

/// Not connected yet, or full: an event will tell when to go on.
fn is_not_yet(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted)
}

/// Sends what is left, as far as it goes.
fn flush(stream: &mut TcpStream, unsent: &mut Vec<u8>) -> io::Result<()> {
    let mut sent = 0;
    while sent < unsent.len() {
        match stream.write(&unsent[sent..]) {
            Ok(n) => sent += n,
            Err(e) if is_not_yet(e.kind()) => break,
            Err(e) => return Err(e),
        }
    }
    unsent.drain(..sent);
    Ok(())
}

impl Churn {
    /// A new connection for each request, which the server is asked to close.
    pub const EACH: Churn = Churn { requests: 1, ask: true };
}
