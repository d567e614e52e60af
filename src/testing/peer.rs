//! One simulated connection: its client, what is under way in both directions, and the server's socket.
//!
//! ```text
//!   script -> outbox ~~~~~> inbox -> recv      outbox: sent by the client, not yet here
//!   received <~~~~~~ sent <- send              sent: taken by the system, not yet at the client
//! ```

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::answer::next_answer;
use super::random::Random;
use super::script::{Reading, Script, Step};
use crate::connection::Tick;
use crate::server::net::Token;

/// How the server's answers ended, as the client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
    /// It never had a connection.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not connected yet.
    Away,
    /// In the listener's queue.
    Queued,
    Open,
    Closed,
}

/// How lively the way between client and server is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Of a thousand looks, in how many something moves.
    pub(crate) pace: u32,
    /// The most bytes that move at once.
    pub(crate) piece_max: usize,
    /// The server's receive buffer and its send buffer.
    pub(crate) inbox_max: usize,
    pub(crate) sent_max: usize,
}

/// What the loop did with a socket, and when: the ground on which a run is judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) accepted: Tick,
    /// The count of bytes that `recv` had handed out after each call that handed out some.
    pub(crate) received: Vec<(u64, Tick)>,
    pub(crate) sent_len: u64,
    /// The last call that moved bytes in either direction, and the turn after it.
    pub(crate) active: Tick,
    pub(crate) settled: Option<Tick>,
    /// A send was not taken whole; since when nothing more was taken.
    pub(crate) unsent_since: Option<Tick>,
    /// When a send last took the rest of what had had to wait.
    pub(crate) caught_up: Tick,
    /// The last turn in which something was taken of what waited, and since when nothing had been taken before it.
    pub(crate) moved_turn: u64,
    pub(crate) unsent_before: Option<Tick>,
    pub(crate) write_shut: Option<Tick>,
    pub(crate) received_at_shut: Option<u64>,
    pub(crate) closed: Option<Tick>,
    pub(crate) closed_turn: u64,
    /// When output was last offered that did not have to wait for other output, and `caught_up` at that time.
    pub(crate) offered: Tick,
    pub(crate) caught_up_before: Tick,
    /// The server saw the end of the client's bytes, or a reset.
    pub(crate) eof_seen: bool,
    pub(crate) reset_seen: bool,
    /// A call on the socket failed though the client did nothing wrong.
    pub(crate) failed: bool,
    /// The last turn in which bytes came that no answer followed yet, and the most turns that it took to answer.
    pub(crate) asked_turn: Option<u64>,
    pub(crate) wait_turns_max: u64,
    /// The turn in which `recv` last found nothing more.
    pub(crate) drained_turn: u64,
    /// The close came too early for bytes that the client had sent: what it had not read by then is lost.
    pub(crate) answers_lost: bool,
}

impl Log {
    pub(crate) fn received_len(&self) -> u64 {
        self.received.last().map_or(0, |(count, _)| *count)
    }

    /// When the count of received bytes came to `count`.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn when(&self, count: u64) -> Option<Tick> {
        let at = self.received.partition_point(|(so_far, _)| *so_far < count);
        self.received.get(at).map(|(_, tick)| *tick)
    }

    /// When more bytes were received than those that brought the count to `count`.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn next_after(&self, count: u64) -> Option<Tick> {
        let at = self.received.partition_point(|(so_far, _)| *so_far < count);
        self.received.get(at + 1).map(|(_, tick)| *tick)
    }
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) stage: Stage,
    pub(crate) way: Way,

    // the client
    steps: VecDeque<Step>,
    wake_ms: u64,
    reading: Reading,
    read_ms: u64,
    stubborn: bool,
    /// Its socket is closed: it neither sends nor reads.
    pub(crate) left: bool,
    pub(crate) received: Vec<u8>,
    /// What of it belongs to answers that the script has waited for.
    answered_len: usize,
    pub(crate) end: Option<End>,

    // under way
    outbox: VecDeque<u8>,
    outbox_ends: bool,
    pub(crate) inbox: VecDeque<u8>,
    pub(crate) inbox_ended: bool,
    pub(crate) reset: bool,
    pub(crate) sent: VecDeque<u8>,
    pub(crate) sent_end: Option<End>,

    // the server's socket
    pub(crate) token: Option<Token>,
    pub(crate) watches_writable: bool,
    /// Something changed since the last event.
    pub(crate) edge: bool,
    /// Where events re-arm only by a call that would block: whether they are.
    pub(crate) read_armed: bool,
    pub(crate) write_armed: bool,
    /// A send found no room, so there will be an event when there is some.
    pub(crate) no_space: bool,
    /// Reasons to call `recv` that are not used up.
    reasons: u32,
    /// The deadline that its connection had after the last turn: before it passes, there is one more read.
    pub(crate) deadline: Option<Tick>,
    /// The end of the client's bytes was told, so that every read has a reason.
    pub(crate) end_told: bool,
    pub(crate) log: Log,
}

/// When something will happen to a peer by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outlook {
    Now,
    At(u64),
    Never,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr, script: Script, way: Way, now_ms: u64) -> Peer {
        Peer {
            address,
            stage: Stage::Away,
            way,
            steps: script.steps,
            wake_ms: now_ms.saturating_add(u64::try_from(script.connects_after.as_millis()).unwrap_or(u64::MAX)),
            reading: Reading::Freely,
            read_ms: 0,
            stubborn: script.stubborn,
            left: false,
            received: Vec::new(),
            answered_len: 0,
            end: None,
            outbox: VecDeque::new(),
            outbox_ends: false,
            inbox: VecDeque::new(),
            inbox_ended: false,
            reset: false,
            sent: VecDeque::new(),
            sent_end: None,
            token: None,
            watches_writable: false,
            edge: false,
            read_armed: false,
            write_armed: false,
            no_space: false,
            reasons: 0,
            deadline: None,
            end_told: false,
            log: Log::default(),
        }
    }

    /// Whether a call on the socket, or an event, would find something to read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.inbox.is_empty() || self.inbox_ended || self.reset
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.reset || (!self.no_space && self.has_space())
    }

    /// Linux tells only when a third of the buffer is free.
    fn has_space(&self) -> bool {
        self.way.sent_max - self.sent.len() >= (self.way.sent_max / 3).max(1)
    }

    /// Whether the client has read everything that it will ever get.
    pub(crate) fn is_over(&self) -> bool {
        match self.stage {
            Stage::Away | Stage::Queued | Stage::Open => self.end == Some(End::Refused),
            Stage::Closed => self.left && self.outbox.is_empty() && self.sent.is_empty(),
        }
    }

    /// There is a reason to call `recv`.
    pub(crate) fn give_reason(&mut self) {
        self.reasons += 1;
    }

    /// A call of `recv` found the end of what is there. Returns whether there was a reason for it.
    pub(crate) fn use_reason(&mut self) -> bool {
        let had_reason = self.reasons > 0 || self.end_told;
        self.reasons = self.reasons.saturating_sub(1);
        had_reason
    }

    /// After a turn there is a reason left if the loop has not come to the end of what there was to read.
    pub(crate) fn keep_reason(&mut self, is_left: bool) {
        self.reasons = u32::from(is_left);
    }

    /// Whether the client would send no more of its script, having been told of an end.
    fn gives_up(&self) -> bool {
        self.end.is_some() && !self.stubborn
    }

    pub(crate) fn outlook(&self, now_ms: u64) -> Outlook {
        if self.is_over() {
            return Outlook::Never;
        }
        if self.stage == Stage::Away {
            return if self.wake_ms <= now_ms { Outlook::Now } else { Outlook::At(self.wake_ms) };
        }
        let there = self.stage == Stage::Open || self.stage == Stage::Queued;
        let moves_in = if there {
            (!self.outbox.is_empty() && self.inbox.len() < self.way.inbox_max)
                || (self.outbox.is_empty() && self.outbox_ends && !self.inbox_ended)
        } else {
            !self.outbox.is_empty()
        };
        let reads = self.left || self.reading == Reading::Freely || self.read_ms <= now_ms;
        let takes = self.left || self.reading != Reading::Never;
        let moves_out = (takes && reads && !self.sent.is_empty())
            || (self.sent.is_empty() && self.sent_end.is_some() && self.end.is_none());
        let frees = self.no_space && self.has_space();
        if !self.reset && (moves_in || moves_out || frees) || self.reset && self.end.is_none() {
            return Outlook::Now;
        }
        let mut next = Outlook::Never;
        if takes && !reads && !self.sent.is_empty() {
            next = Outlook::At(self.read_ms);
        }
        let script = match self.steps.front() {
            None if !self.left && self.gives_up() => Outlook::Now,
            None => Outlook::Never,
            Some(_) if self.gives_up() => Outlook::Now,
            Some(Step::Answer { .. } | Step::Continue) => Outlook::Never,
            Some(_) if self.wake_ms <= now_ms => Outlook::Now,
            Some(_) => Outlook::At(self.wake_ms),
        };
        next.min(script)
    }

    /// The client and the way to and from it go on by one step each.
    pub(crate) fn stir(&mut self, now_ms: u64, random: &mut Random) {
        self.act(now_ms);
        self.carry_to_server(random);
        self.carry_to_client(now_ms, random);
        // What has come may be what the script waits for.
        self.act(now_ms);
    }

    fn act(&mut self, now_ms: u64) {
        if self.reset && self.end.is_none() && !self.left {
            // Its own doing: see `Step::Reset`. Or the server has closed on it.
            self.end = Some(End::Reset);
        }
        while !self.left {
            if self.gives_up() {
                self.steps.clear();
                return self.close();
            }
            if now_ms < self.wake_ms {
                return;
            }
            let Some(step) = self.steps.front_mut() else { return };
            match step {
                Step::Wait { ms } => self.wake_ms = now_ms.saturating_add(*ms),
                Step::Send(bytes) => self.outbox.extend(&*bytes),
                Step::Drip { bytes, sent, every_ms } => {
                    if let Some(byte) = bytes.get(*sent) {
                        self.outbox.push_back(*byte);
                        *sent += 1;
                        self.wake_ms = now_ms + *every_ms;
                        if *sent < bytes.len() {
                            continue;
                        }
                    }
                }
                Step::Answer { head_only } => match final_answer_len(&self.received[self.answered_len..], *head_only) {
                    Some(len) => self.answered_len += len,
                    None if self.end.is_some() => {}
                    None => return,
                },
                Step::Continue => {
                    let has_head = self.received[self.answered_len..].windows(4).any(|w| w == b"\r\n\r\n");
                    if !has_head && self.end.is_none() {
                        return;
                    }
                }
                Step::Reading(reading) => self.reading = *reading,
                Step::CloseWrite => self.outbox_ends = true,
                Step::Close => {
                    self.steps.clear();
                    return self.close();
                }
                Step::Reset => {
                    self.steps.clear();
                    self.outbox.clear();
                    return self.break_off();
                }
            }
            self.steps.pop_front();
        }
    }

    fn close(&mut self) {
        self.left = true;
        if self.stage == Stage::Open && !self.sent.is_empty() {
            // Closing with unread input is a reset.
            self.break_off();
        } else {
            self.outbox_ends = true;
        }
    }

    /// The connection is reset from the client's side.
    fn break_off(&mut self) {
        self.left = true;
        self.sent.clear();
        self.end.get_or_insert(End::Reset);
        if self.stage != Stage::Closed {
            self.reset = true;
            self.edge = true;
        }
    }

    fn carry_to_server(&mut self, random: &mut Random) {
        match self.stage {
            Stage::Open | Stage::Queued if !self.reset => {
                let room = self.way.inbox_max.saturating_sub(self.inbox.len());
                let most = self.outbox.len().min(room).min(self.way.piece_max);
                if most > 0 {
                    let piece = random.len(1, most);
                    self.inbox.extend(self.outbox.drain(..piece));
                    self.edge = true;
                } else if self.outbox.is_empty() && self.outbox_ends && !self.inbox_ended {
                    self.inbox_ended = true;
                    self.edge = true;
                }
            }
            Stage::Closed if !self.outbox.is_empty() => {
                // Bytes for a closed socket are answered with a reset, which destroys what was not read yet.
                self.outbox.clear();
                self.reset_by_server();
            }
            _ => {}
        }
    }

    pub(crate) fn reset_by_server(&mut self) {
        if self.end.is_none() {
            self.log.answers_lost |= !self.sent.is_empty();
            self.sent.clear();
            self.end = Some(End::Reset);
        }
    }

    fn carry_to_client(&mut self, now_ms: u64, random: &mut Random) {
        if self.stage != Stage::Open && self.stage != Stage::Closed || self.reset {
            return;
        }
        if self.left {
            if !self.sent.is_empty() {
                self.sent.clear();
                self.break_off();
            }
            return;
        }
        let most = match self.reading {
            Reading::Never => 0,
            Reading::Freely => self.way.piece_max,
            Reading::Slowly { .. } if now_ms < self.read_ms => 0,
            Reading::Slowly { bytes, every_ms } => {
                self.read_ms = now_ms + every_ms;
                bytes
            }
        };
        let most = most.min(self.sent.len());
        if most > 0 {
            let piece = random.len(1, most);
            self.received.extend(self.sent.drain(..piece));
        }
        if self.sent.is_empty() && self.end.is_none() {
            self.end = self.sent_end;
        }
        if self.no_space && self.has_space() {
            self.no_space = false;
            self.edge = true;
        }
    }
}

/// The length of everything up to the end of the next final answer, if that is there.
fn final_answer_len(received: &[u8], head_only: bool) -> Option<usize> {
    let mut start = 0;
    loop {
        // What is wrong is for its judges to say; here it does not end.
        let answer = next_answer(&received[start..], head_only).ok()??;
        start += answer.len;
        if answer.status >= 200 {
            return answer.is_whole.then_some(start);
        }
    }
}
