//! Where answers are made that come later: by other threads, as far as the loop can tell, but on its own.
//!
//! What becomes of each right to answer, and when, is the seed's doing. A record is kept of it, which `waiter` judges by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::table::{App, REFUSAL};
use crate::response::{Respond, Response, Sent};
use crate::stream::StreamError;
use crate::testing::{Outlook, Outsiders, Random};
use crate::{Broadcast, EventStream, Later, Message, Status, Stream, StreamHead};

/// What a request wants from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is answered in the handler.
    Now,
    Later,
    Pool,
    Stream,
    Events,
    Feed,
}

/// What was done about a request.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) kind: Kind,
    /// The number of its ticket.
    number: u64,
    taken_ms: u64,
    /// In which turn of the loop the answer was posted, or the beginning of one.
    posted_turn: Option<u64>,
    pub(super) said: Said,
    /// Nobody waits for it any more.
    settled: bool,
    /// The time for it was over.
    pub(super) timed_out: bool,
    /// It was given to the pool, and the pool has begun it.
    pub(super) handed: bool,
    pub(super) ran: bool,
    /// Content of a stream, as far as it was accepted.
    pub(super) parts: Vec<u8>,
    /// How it ended, and in which turn.
    pub(super) over: Option<(Over, u64)>,
    /// The first message of the feed that it gets.
    from: usize,
}

/// What the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Content,
    /// Content, and that the connection ends.
    Close,
    Panic,
    Dropped,
    /// The handler refused at once.
    Refused,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Ended,
    Aborted,
}

#[derive(Debug)]
enum Held {
    Right(Later<App>, Fate, Vec<u8>),
    Stream(Stream, u32),
    Events(EventStream, u32),
}

/// What will become of a right to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answer,
    AnswerWith,
    Call,
    CallAndKeep,
    Close,
    Panic,
    Drop,
    Stream,
    Offload,
    OffloadThen,
    OffloadPanic,
}

#[derive(Debug)]
struct Errand {
    id: u64,
    at_ms: u64,
    held: Held,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Backstage {
    random: Random,
    now_ms: u64,
    turn: u64,
    answer_timeout_ms: u64,
    errands: Vec<Errand>,
    pub(super) records: BTreeMap<u64, Record>,
    /// Of these the connections may still wait for answers.
    open: Vec<u64>,
    feed: Broadcast,
    feed_ms: u64,
    pub(super) messages: Vec<Vec<u8>>,
    messages_max: usize,
    feed_over: Option<(Over, u64)>,
    /// Subscribers that were dropped because they were too slow.
    pub(super) too_slow: usize,
    /// Something impossible came out of a call.
    fault: Option<String>,
}

/// Shared by the handlers, the work in the pool, the world, and who looks at it all between two turns.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Backstage>>);

impl Default for Shared {
    fn default() -> Shared {
        Shared::new(Random::new(0), 1)
    }
}

/// Never again.
const NEVER_MS: u64 = u64::MAX;

impl Shared {
    pub(super) fn new(mut random: Random, answer_timeout_ms: u64) -> Shared {
        let messages_max = random.len(0, 20);
        Shared(Arc::new(Mutex::new(Backstage {
            random,
            now_ms: 0,
            turn: 0,
            answer_timeout_ms,
            errands: Vec::new(),
            records: BTreeMap::new(),
            open: Vec::new(),
            feed: Broadcast::new(),
            feed_ms: NEVER_MS,
            messages: Vec::new(),
            messages_max,
            feed_over: None,
            too_slow: 0,
            fault: None,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Backstage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handler passes its right to answer on.
    pub(super) fn take(
        &self,
        kind: Kind,
        id: u64,
        later: Later<App>,
        content: Vec<u8>,
    ) -> Result<(), (Status, &'static str)> {
        let stage = &mut *self.lock();
        stage.begin(kind, id, later.number());
        let fate = match kind {
            Kind::Pool => *stage.random.pick(&[Fate::Offload, Fate::Offload, Fate::OffloadThen, Fate::OffloadPanic]),
            Kind::Stream => Fate::Stream,
            _ => {
                use Fate::*;
                *stage.random.pick(&[
                    Answer,
                    Answer,
                    AnswerWith,
                    AnswerWith,
                    Call,
                    CallAndKeep,
                    Close,
                    Panic,
                    Drop,
                    Stream,
                    Offload,
                ])
            }
        };
        if stage.random.chance(30) {
            // Who keeps it nevertheless is not heard.
            stage.record(id).said = Said::Refused;
            let at_ms = stage.some_time();
            stage.errands.push(Errand { id, at_ms, held: Held::Right(later, fate, content) });
            return Err(REFUSAL);
        }
        if stage.random.chance(150) || kind == Kind::Pool {
            self.fulfil(stage, id, later, fate, content);
            return Ok(());
        }
        let at_ms = if stage.random.chance(50) { NEVER_MS } else { stage.some_time() };
        stage.errands.push(Errand { id, at_ms, held: Held::Right(later, fate, content) });
        Ok(())
    }

    pub(super) fn take_events(&self, id: u64, events: EventStream) {
        let stage = &mut *self.lock();
        stage.begin(Kind::Events, id, events.number());
        stage.post(id, Said::Stream);
        let (at_ms, left) = (stage.some_time(), stage.random.len(0, 6) as u32);
        stage.errands.push(Errand { id, at_ms, held: Held::Events(events, left) });
    }

    pub(super) fn take_subscriber(&self, id: u64, events: EventStream) {
        let stage = &mut *self.lock();
        stage.begin(Kind::Feed, id, events.number());
        stage.post(id, Said::Stream);
        let (from, turn) = (stage.messages.len(), stage.turn);
        stage.record(id).from = from;
        if stage.feed_over.is_some() {
            events.end();
            stage.record(id).over = Some((Over::Ended, turn));
            return;
        }
        stage.feed.subscribe(events);
        if stage.feed_ms == NEVER_MS {
            stage.feed_ms = stage.some_time();
        }
    }

    /// Does with the right to answer what it was meant for.
    fn fulfil(&self, stage: &mut Backstage, id: u64, later: Later<App>, fate: Fate, content: Vec<u8>) {
        let shared = self.clone();
        match fate {
            Fate::Answer => {
                stage.post(id, Said::Content);
                later.answer(content);
            }
            Fate::AnswerWith => {
                stage.post(id, Said::Content);
                later.answer_with(move |_| content);
            }
            Fate::Close => {
                stage.post(id, Said::Close);
                later.answer_with(move |_| Closing(content));
            }
            Fate::Panic => {
                stage.post(id, Said::Panic);
                later.answer_with(move |_| -> Vec<u8> { std::panic::resume_unwind(Box::new(content)) });
            }
            Fate::Drop => {
                stage.post(id, Said::Dropped);
                drop(later);
            }
            Fate::Call => later.call(move |_, later| {
                shared.lock().post(id, Said::Content);
                later.answer(content);
            }),
            Fate::CallAndKeep => later.call(move |app, later| {
                let stage = &mut *app.backstage.lock();
                let at_ms = stage.some_time();
                stage.errands.push(Errand { id, at_ms, held: Held::Right(later, Fate::Answer, content) });
            }),
            Fate::Stream => {
                stage.post(id, Said::Stream);
                let room = *stage.random.pick(&[100, 5000, 64 << 10]);
                let stream = later.stream(StreamHead::new("text/plain").room(room));
                let (at_ms, left) = (stage.some_time(), stage.random.len(0, 8) as u32);
                stage.errands.push(Errand { id, at_ms, held: Held::Stream(stream, left) });
            }
            Fate::Offload | Fate::OffloadPanic => {
                stage.record(id).handed = true;
                let fails = fate == Fate::OffloadPanic;
                let work = move || {
                    let stage = &mut *shared.lock();
                    stage.record(id).ran = true;
                    stage.post(id, if fails { Said::Panic } else { Said::Content });
                    if fails {
                        std::panic::resume_unwind(Box::new(id));
                    }
                    content
                };
                later.offload(work, |_, content| content);
            }
            Fate::OffloadThen => {
                stage.record(id).handed = true;
                let work = move || {
                    shared.lock().record(id).ran = true;
                    content
                };
                later.offload_then(work, move |app, content, later| {
                    app.backstage.lock().post(id, Said::Content);
                    later.answer(content);
                });
            }
        }
    }
}

/// Content, and the end of its connection.
struct Closing(Vec<u8>);

impl Respond for Closing {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.close().body(&self.0)
    }
}

/// The byte of a stream at this place.
fn stream_byte(id: u64, at: usize) -> u8 {
    b'a' + ((at as u64 ^ id ^ (at as u64 >> 5)) % 26) as u8
}

impl Backstage {
    fn begin(&mut self, kind: Kind, id: u64, number: u64) {
        let record = Record {
            kind,
            number,
            taken_ms: self.now_ms,
            posted_turn: None,
            said: Said::Nothing,
            settled: false,
            timed_out: false,
            handed: false,
            ran: false,
            parts: Vec::new(),
            over: None,
            from: 0,
        };
        if self.records.insert(id, record).is_some() {
            self.fault = Some(format!("the handler of {id:x} ran twice"));
        }
        self.open.push(id);
    }

    #[track_caller]
    fn record(&mut self, id: u64) -> &mut Record {
        self.records.get_mut(&id).expect("a record is begun by the handler")
    }

    fn post(&mut self, id: u64, said: Said) {
        let turn = self.turn;
        let record = self.record(id);
        if record.said != Said::Refused {
            (record.said, record.posted_turn) = (said, Some(turn));
        }
    }

    /// Soon, or about when the time for an answer is over.
    fn some_time(&mut self) -> u64 {
        let most = if self.random.chance(150) { 2 * self.answer_timeout_ms } else { 3000 };
        self.now_ms + self.random.any_size(most as usize) as u64
    }

    /// Drops everything that is held.
    pub(super) fn clear(&mut self) {
        self.errands.clear();
        self.feed = Broadcast::new();
    }

    /// What a subscriber of the feed was sent.
    pub(super) fn content(&self, record: &Record) -> Vec<u8> {
        match record.kind {
            Kind::Feed => self.messages[record.from..].concat(),
            _ => record.parts.clone(),
        }
    }

    pub(super) fn over(&self, record: &Record) -> Option<(Over, u64)> {
        if record.kind == Kind::Feed { record.over.or(self.feed_over) } else { record.over }
    }

    fn send_to_all(&mut self) {
        if self.messages.len() >= self.messages_max {
            self.feed_ms = NEVER_MS;
            match self.random.below(4) {
                0 => {}
                1 => {
                    self.feed_over = Some((Over::Aborted, self.turn));
                    self.feed = Broadcast::new();
                }
                _ => {
                    self.feed_over = Some((Over::Ended, self.turn));
                    self.feed.end();
                }
            }
            return;
        }
        let most = if self.random.chance(300) { 30_000 } else { 700 };
        let (number, len) = (self.messages.len(), self.random.any_size(most));
        let text: String = (0..len).map(|at| stream_byte(number as u64, at) as char).collect();
        let delivery = self.feed.send_event(&Message::new(&*text).id(number.to_string()));
        self.too_slow += delivery.too_slow;
        self.messages.push(format!("id: {number}\ndata: {text}\n\n").into_bytes());
        self.feed_ms = self.some_time();
    }

    /// One more part of a stream, or its end. Gives back what is still held.
    fn go_on(&mut self, id: u64, held: Held) -> Option<Errand> {
        let turn = self.turn;
        let (Held::Stream(_, left) | Held::Events(_, left)) = &held else { return None };
        if *left == 0 {
            let fate = self.random.below(10);
            let record = self.record(id);
            if fate > 0 {
                record.over = Some((if fate == 1 { Over::Aborted } else { Over::Ended }, turn));
            }
            match held {
                _ if fate == 0 => return Some(Errand { id, at_ms: NEVER_MS, held }),
                Held::Stream(stream, _) if fate > 1 => stream.end(),
                Held::Events(events, _) if fate > 1 => events.end(),
                held => drop(held),
            }
            return None;
        }
        let most = if self.random.chance(100) { 20_000 } else { 900 };
        let len = self.random.any_size(most);
        let start = self.record(id).parts.len();
        let text: Vec<u8> = (start..start + len).map(|at| stream_byte(id, at)).collect();
        let (sent, part, waiting, is_closed, left) = match &held {
            Held::Stream(stream, left) => {
                (stream.send(text.clone()), text, stream.waiting(), stream.is_closed(), left - 1)
            }
            Held::Events(events, left) => {
                let message = String::from_utf8_lossy(&text);
                let part = format!("event: e\ndata: {message}\n\n").into_bytes();
                (events.send(&Message::new(message).event("e")), part, events.waiting(), events.is_closed(), left - 1)
            }
            Held::Right(..) => return None,
        };
        match sent {
            Ok(_) => self.record(id).parts.extend_from_slice(&part),
            Err(StreamError::Full) if waiting > 0 => {}
            Err(StreamError::Closed) if is_closed => {}
            Err(error) => self.fault = Some(format!("{id:x}: {error}, though {waiting} bytes wait")),
        }
        let at_ms = self.some_time();
        let held = match held {
            Held::Stream(stream, _) => Held::Stream(stream, left),
            Held::Events(events, _) => Held::Events(events, left),
            right => right,
        };
        Some(Errand { id, at_ms, held })
    }
}

impl Outsiders for Shared {
    fn outlook(&self, now_ms: u64) -> Outlook {
        let stage = self.lock();
        match stage.errands.iter().map(|errand| errand.at_ms).min().unwrap_or(NEVER_MS).min(stage.feed_ms) {
            NEVER_MS => Outlook::Never,
            at_ms if at_ms <= now_ms => Outlook::Now,
            at_ms => Outlook::At(at_ms),
        }
    }

    fn stir(&mut self, now_ms: u64, turn: u64) -> bool {
        let stage = &mut *self.lock();
        (stage.now_ms, stage.turn) = (now_ms, turn);
        let due: Vec<usize> = (0..stage.errands.len()).filter(|at| stage.errands[*at].at_ms <= now_ms).collect();
        if stage.feed_ms <= now_ms && (due.is_empty() || stage.random.chance(300)) {
            stage.send_to_all();
            return false;
        }
        if due.is_empty() {
            return false;
        }
        // Any of them, whoever came first.
        let at = *stage.random.pick(&due);
        let Errand { id, held, .. } = stage.errands.swap_remove(at);
        match held {
            Held::Right(later, fate, content) => {
                self.fulfil(stage, id, later, fate, content);
                // The pool may take its time.
                !matches!(fate, Fate::Offload | Fate::OffloadThen | Fate::OffloadPanic)
            }
            held => {
                let rest = stage.go_on(id, held);
                stage.errands.extend(rest);
                false
            }
        }
    }

    fn tell(&mut self, now_ms: u64, turn: u64) {
        let stage = &mut *self.lock();
        (stage.now_ms, stage.turn) = (now_ms, turn);
    }
}

/// What the loop has of a client between two turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// The number of the ticket it waits for, and whether its answer has begun.
    pub(super) waits: Option<(u64, bool)>,
    pub(super) wants_write: bool,
    /// The peer was slow until then.
    pub(super) caught_up_ms: u64,
}

impl Backstage {
    /// Between two turns: whoever has a right to answer knows whether it is worth something, what was said before this
    /// turn has arrived, and no time has passed unnoticed. `seat` tells of the connections that are open.
    pub(super) fn check(
        &mut self,
        seat: impl Fn(u64) -> Option<Seat>,
        has_letters: bool,
        drains: bool,
        late_ms: u64,
    ) -> Result<(), String> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let (now_ms, turn, timeout_ms) = (self.now_ms, self.turn, self.answer_timeout_ms);
        let feed_over = self.feed_over;
        let mut still_open = Vec::new();
        for id in std::mem::take(&mut self.open) {
            let record = self.records.get_mut(&id).expect("a record is begun by the handler");
            let wrong = |what: &str| Err(format!("{id:x}: {what}, at {now_ms} ms in turn {turn}"));
            let over = if record.kind == Kind::Feed { record.over.or(feed_over) } else { record.over };
            let seat = seat(id);
            let due_ms = record.taken_ms + timeout_ms;
            match seat.and_then(|seat| seat.waits) {
                Some((number, begun)) if number == record.number => {
                    still_open.push(id);
                    let said = if begun { over.map(|(_, turn)| turn) } else { record.posted_turn };
                    if said.is_some_and(|said| said < turn) {
                        return wrong("what was posted does not arrive");
                    }
                    let is_slow = seat.is_some_and(|seat| seat.wants_write);
                    let caught_up_ms = seat.map_or(0, |seat| seat.caught_up_ms);
                    if !begun && !is_slow && due_ms.max(caught_up_ms) + late_ms <= now_ms {
                        return wrong("its time is over, and nobody noticed");
                    }
                }
                _ => {
                    record.settled = true;
                    let is_unfinished = record.said == Said::Stream && over.is_none();
                    record.timed_out = now_ms >= due_ms && record.posted_turn.is_none_or(|posted| posted == turn);
                    let may_be_busy = record.handed && !record.ran;
                    if seat.is_none() || record.timed_out || may_be_busy || record.said == Said::Refused {
                        continue;
                    }
                    if record.posted_turn.is_none() {
                        return wrong("it was given up before its time");
                    }
                    let ends_with_server = drains && matches!(record.kind, Kind::Events | Kind::Feed);
                    if is_unfinished && !ends_with_server && !is_head(id) {
                        return wrong("a stream ended by itself");
                    }
                }
            }
        }
        self.open = still_open;
        for Errand { id, held, .. } in &self.errands {
            let settled = self.records[id].settled;
            let (is_closed, waiting) = match held {
                Held::Right(later, ..) => (later.is_closed(), 0),
                Held::Stream(stream, _) => (stream.is_closed(), stream.waiting()),
                Held::Events(events, _) => (events.is_closed(), events.waiting()),
            };
            if is_closed != settled {
                return Err(format!("{id:x}: its ticket says closed {is_closed}, and it is over {settled}"));
            }
            let idles = seat(*id).is_some_and(|seat| !seat.wants_write && seat.waits.is_some_and(|(_, begun)| begun));
            if waiting > 0 && idles && !settled && !has_letters {
                return Err(format!("{id:x}: {waiting} bytes wait, it says, though all were taken"));
            }
        }
        Ok(())
    }
}

/// Requests with an odd number are HEAD, so that their answers are over when they have begun.
pub(super) fn is_head(id: u64) -> bool {
    id & 1 == 1
}
