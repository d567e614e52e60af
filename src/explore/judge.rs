//! Judges a run: what each client got, why its connection ended, and when, against what it sent.
//!
//! The server's answers are compared with those of the in-process client to the same bytes in one piece, so that splits
//! can never show, and those with what the plan says. Deadlines are worked out anew from what went through the sockets.

use super::plan::{Message, Plan};
use super::table::{Api, App};
use crate::connection::{CloseReason, Tick};
use crate::limits::Limits;
use crate::reject::Reject;
use crate::server::timers::BUCKET_MS;
use crate::testing::{Client, Log, Peer, parse_answers};

/// The answers to a client's bytes when nothing comes between.
pub(super) struct Transcript {
    /// Each without Date.
    answers: Vec<Vec<u8>>,
    closed: Option<CloseReason>,
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first_lines = self.answers.iter().map(|answer| answer[9..12].escape_ascii().to_string());
        write!(f, "{:?} closed {:?}", first_lines.collect::<Vec<_>>(), self.closed)
    }
}

impl Transcript {
    /// Also checks it against the plan.
    pub(super) fn new(plan: &Plan, limits: &Limits) -> Result<Transcript, String> {
        let limits = Limits { bodies_bytes_max: usize::MAX, ..limits.clone() };
        let mut client = Client::new(Api, App::default()).with_limits(limits.clone());
        let mut link = client.connect();
        link.send(&plan.bytes);
        if plan.says_end {
            link.close_write();
        }
        if link.is_write_shut() && link.closed().is_none() {
            link.advance(limits.linger_timeout);
        }
        // Of a method that is cut nobody knows.
        let is_head = |message: &Message| message.head_only && message.start + 5 <= plan.bytes.len() as u64;
        let heads: Vec<bool> = plan.messages.iter().map(is_head).collect();
        let answers = parse_answers(link.received(), |at| heads.get(at) == Some(&true));
        let answers: Vec<_> = answers.iter().filter(|answer| answer.status() >= 200).collect();
        let mut expected = 0;
        for (message, answer) in plan.expected().zip(&answers) {
            expected += 1;
            let content_is_right = match &message.content {
                Some(_) if message.head_only => answer.body().is_empty(),
                Some(content) => answer.body() == content,
                None => true,
            };
            if answer.status() != message.status || !content_is_right {
                return Err(format!("the answer to {message:?} is {answer:?}"));
            }
        }
        let cut = answers.len() - expected;
        let cut_is_right = match answers.last() {
            // A message that broke a rule before it was cut, or one that is cut.
            Some(last) if cut == 1 => last.status() >= 400,
            _ => cut == 0,
        };
        if !cut_is_right || expected < plan.expected().count() {
            return Err(format!("{} answers instead of {}", answers.len(), plan.expected().count()));
        }
        let mut split = Vec::new();
        let mut rest = link.received();
        while let Some((answer, after)) = next_answer(rest, heads.get(split.len()) == Some(&true)) {
            split.push(answer);
            rest = after;
        }
        Ok(Transcript { answers: split, closed: link.closed() })
    }
}

/// The next final answer without its Date, and what follows; interim answers before it are passed over. None if it is
/// not whole.
fn next_answer(mut bytes: &[u8], head_only: bool) -> Option<(Vec<u8>, &[u8])> {
    loop {
        let head_len = bytes.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
        let (head, rest) = bytes.split_at(head_len);
        if head.starts_with(b"HTTP/1.1 1") {
            bytes = rest;
            continue;
        }
        let mut answer = Vec::with_capacity(head_len);
        let mut length = 0;
        for line in std::str::from_utf8(head).ok()?.split_inclusive("\r\n") {
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().ok()?;
            }
            if !line.starts_with("Date: ") {
                answer.extend_from_slice(line.as_bytes());
            }
        }
        let content_len = if head_only { 0 } else { length };
        if rest.len() < content_len {
            return None;
        }
        let (content, rest) = rest.split_at(content_len);
        answer.extend_from_slice(content);
        return Some((answer, rest));
    }
}

/// The same answer, if it said nothing about the connection.
fn without_connection(answer: &[u8]) -> Vec<u8> {
    let head_len = answer.windows(4).position(|w| w == b"\r\n\r\n").map_or(answer.len(), |at| at + 2);
    let (head, rest) = answer.split_at(head_len);
    let head = String::from_utf8_lossy(head);
    let kept: String = head.split_inclusive("\r\n").filter(|line| !line.starts_with("Connection: ")).collect();
    [kept.as_bytes(), rest].concat()
}

fn says_close(answer: &[u8]) -> bool {
    answer.windows(19).any(|w| w == b"Connection: close\r\n")
}

/// How what a client got compares with what it should have got.
#[derive(Debug, Default)]
struct Got {
    /// Answers that are the same, from the first on.
    same: usize,
    /// The last of them said `Connection: close` though the transcript's did not.
    closes: bool,
    /// The last of them ends the connection, by its own or because of a shutdown.
    is_last: bool,
    /// Behind them, a refusal.
    refused: Option<u16>,
    /// Behind them, part of the next answer.
    part: bool,
}

fn compare(received: &[u8], transcript: &Transcript, plan: &Plan) -> Result<Got, String> {
    let mut got = Got::default();
    let mut rest = received;
    for (at, expected) in transcript.answers.iter().enumerate() {
        let head_only = plan.messages.get(at).is_some_and(|message| message.head_only);
        let Some((answer, after)) = next_answer(rest, head_only) else { break };
        if answer != *expected {
            if without_connection(&answer) != without_connection(expected) {
                break;
            }
            if !says_close(&answer) {
                return Err(format!("answer {at} says something else of the connection: {}", answer.escape_ascii()));
            }
            got.closes = true;
        }
        got.is_last = says_close(&answer);
        got.same += 1;
        rest = after;
        if got.closes {
            break;
        }
    }
    while rest.starts_with(b"HTTP/1.1 100 Continue\r\n\r\n") {
        rest = &rest[25..];
    }
    let shown = || rest[..rest.len().min(300)].escape_ascii().to_string();
    if rest.is_empty() {
        return Ok(got);
    }
    if got.closes {
        return Err(format!("something follows after the last answer: {}", shown()));
    }
    let status = rest.get(9..12).and_then(|code| std::str::from_utf8(code).ok()).and_then(|code| code.parse().ok());
    if let (Some(status @ (408 | 503)), Some((_, after))) =
        (status, next_answer(rest, false).or_else(|| next_answer(rest, true)))
    {
        got.refused = Some(status);
        got.part = rejected_in_part(status, after);
        return if after.is_empty() || got.part {
            Ok(got)
        } else {
            Err(format!("something follows a refusal: {}", after.escape_ascii()))
        };
    }
    let expected = transcript.answers.get(got.same);
    got.part = true;
    if is_part(rest, expected.map_or(&[], Vec::as_slice)) {
        Ok(got)
    } else {
        Err(format!("answer {} is wrong: {}", got.same, shown()))
    }
}

/// Whether these bytes are a part of what such a refusal says.
fn rejected_in_part(status: u16, bytes: &[u8]) -> bool {
    let mut sentences = Reject::ALL.iter().filter(|reject| reject.status().code() == status).map(|r| r.sentence());
    !bytes.is_empty() && sentences.any(|sentence| sentence.as_bytes().starts_with(bytes))
}

/// Refusals that no transcript has, for they come of time or of other connections.
const REFUSALS: [&[u8]; 2] = [b"HTTP/1.1 408", b"HTTP/1.1 503"];

/// Whether these bytes are the beginning of an answer, Date and Connection apart, or of an interim one before it.
fn is_part(bytes: &[u8], answer: &[u8]) -> bool {
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
    let line_len = |text: &[u8]| text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    match bytes.windows(4).position(|w| w == b"\r\n\r\n") {
        None => {
            let len = line_len(bytes).min(line_len(answer));
            bytes[..len] == answer[..len]
                || interim.starts_with(bytes)
                || REFUSALS.iter().any(|refusal| refusal.starts_with(&bytes[..bytes.len().min(12)]))
        }
        Some(at) => {
            let answer_head = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(0);
            answer[answer_head..].starts_with(&bytes[at..]) && bytes[..line_len(bytes)] == answer[..line_len(answer)]
        }
    }
}

/// A log without its beginning.
fn tail(log: &Log) -> String {
    let received = log.received[log.received.len().saturating_sub(3)..].to_vec();
    format!("{:?}", Log { received, ..log.clone() })
}

/// What is known of a shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shutdown {
    /// When the loop was told.
    pub(super) asked: Option<Tick>,
    /// When the listener was closed.
    pub(super) closed: Option<Tick>,
}

/// How long a connection is idle before its place can be taken.
const PLACE_KEPT: std::time::Duration = std::time::Duration::from_secs(1);

/// At shutdown, how long a new connection is given to speak.
const FIRST_BYTE_GRACE_MS: u64 = 500;

/// One client, once all is over.
pub(super) fn judge(
    plan: &Plan,
    peer: &Peer,
    reason: Option<CloseReason>,
    limits: &Limits,
    shutdown: Shutdown,
) -> Result<(), String> {
    let transcript = Transcript::new(plan, limits)?;
    let got = compare(&peer.received, &transcript, plan)?;
    let log = &peer.log;
    let Some(reason) = reason else {
        // Never accepted, which is nobody's fault at a shutdown, or without a descriptor.
        return if log.closed.is_none() && peer.received.is_empty() {
            Ok(())
        } else {
            Err("closed in silence".to_owned())
        };
    };
    let read = log.received_at_shut.unwrap_or(log.received_len());
    let answered = answered_by(plan, read);
    // To a method that is cut, a refusal has content, which a client that sent HEAD does not wait for.
    let is_head = plan.messages.get(got.same).is_some_and(|message| message.head_only);
    let can_lose = plan.is_hasty || plan.stalls || log.answers_lost || log.failed || (is_head && got.part);
    let wrong = |what: &str| {
        Err(format!(
            "{what}: closed because {reason:?}, {got:?} of {transcript:?}; read {read}, answered {answered}, may lose {can_lose}; {}",
            tail(log)
        ))
    };
    let Some(closed) = log.closed else { return wrong("not closed") };

    if got.closes && shutdown.asked.is_none_or(|asked| asked > log.active) {
        return wrong("an answer closes without a reason");
    }
    if log.answers_lost && !may_be_lost(log, reason, limits) {
        return wrong("an answer was destroyed by a reset");
    }
    // How many answers there have to be at least, if none can be lost.
    let all = transcript.answers.len();
    let due = match reason {
        CloseReason::WriteTimeout | CloseReason::DrainTimeout | CloseReason::PeerReset => 0,
        CloseReason::IdleTimeout | CloseReason::FirstByteTimeout | CloseReason::PlaceNeeded => answered,
        CloseReason::Rejected(Reject::HeadTimeout | Reject::BodyTimeout | Reject::BodiesTooLarge) => answered,
        CloseReason::Drained if got.closes => got.same,
        CloseReason::Drained => answered,
        _ if got.closes => got.same,
        _ => all,
    };
    if got.same < due && !can_lose {
        return wrong("answers are missing");
    }
    if got.same > answered && transcript.answers.len() > got.same {
        return wrong("an answer came before its request");
    }
    let is_cut = matches!(reason, CloseReason::WriteTimeout | CloseReason::DrainTimeout | CloseReason::PeerReset);
    if got.part && !can_lose && !is_cut {
        return wrong("half an answer");
    }
    let is_refusal =
        |status| got.refused.is_none_or(|refused| refused == status) && (got.refused.is_some() || can_lose);
    match reason {
        CloseReason::FirstByteTimeout | CloseReason::IdleTimeout | CloseReason::WriteTimeout => {
            if got.refused.is_some() && reason != CloseReason::WriteTimeout {
                return wrong("a refusal for no reason");
            }
            // It was over, and the last of it went as the connection was closed.
            let too_late = reason == CloseReason::WriteTimeout && log.unsent_since.is_none() && log.caught_up == closed;
            let log = &Log { unsent_since: if too_late { log.unsent_before } else { log.unsent_since }, ..log.clone() };
            match Deadlines::new(plan, log, limits, read, false).filter(|due| due.matches(reason)) {
                Some(due) if due.earliest <= closed => Ok(()),
                due => wrong(&format!("a timeout that was not due: {due:?}")),
            }
        }
        CloseReason::PlaceNeeded => {
            let due = Deadlines::new(plan, log, limits, read, false).filter(|due| due.matches(reason));
            let Some(due) = due else { return wrong("it was not idle") };
            let wait = if due.kind == Kind::Idle { limits.idle_timeout } else { limits.first_byte_timeout };
            let is_long_idle = due.earliest <= closed.after(wait.saturating_sub(PLACE_KEPT));
            if got.refused.is_none() && limits.connections_max < 10_000 && is_long_idle {
                Ok(())
            } else {
                wrong("there were places, or it had not been idle for long")
            }
        }
        CloseReason::Rejected(reject @ (Reject::HeadTimeout | Reject::BodyTimeout)) => {
            let in_body = reject == Reject::BodyTimeout;
            let message = plan.messages.iter().find(|message| message.end > read);
            let skipped = message.is_some_and(|m| m.head_end <= read && m.answered_at == Some(m.head_end));
            if !(is_refusal(408) || in_body && skipped && got.refused.is_none()) {
                return wrong("no 408");
            }
            // What was known when the refusal was made; whether it could be sent at once is another matter.
            let (refused_at, caught_up) = match got.refused.is_none() && skipped {
                true => (log.write_shut.unwrap_or(closed), log.caught_up),
                false => (log.offered, log.caught_up_before),
            };
            let log = &Log { caught_up, ..log.clone() };
            match Deadlines::new(plan, log, limits, read, true) {
                Some(due) if due.earliest <= refused_at && due.in_body.is_none_or(|body| body == in_body) => Ok(()),
                due => wrong(&format!("a timeout that was not due: {due:?}")),
            }
        }
        CloseReason::Rejected(Reject::BodiesTooLarge) => {
            if is_refusal(503) && limits.bodies_bytes_max < 1 << 20 {
                Ok(())
            } else {
                wrong("too much, it says")
            }
        }
        CloseReason::Drained => {
            if got.is_last && shutdown.asked.is_some() {
                return Ok(());
            }
            let Some(begun) = shutdown.closed else { return wrong("no shutdown was asked for") };
            if !got.is_last && got.same >= answered && log.drained_turn != log.closed_turn {
                return wrong("an idle connection was not read once more");
            }
            let grace_end = log.accepted.0.min(begun.0) + FIRST_BYTE_GRACE_MS;
            if read == 0 && closed.0 < grace_end && !got.is_last {
                return wrong("a new connection had no time to speak");
            }
            Ok(())
        }
        CloseReason::DrainTimeout => match shutdown.closed {
            Some(begun) if begun.after(limits.drain_timeout) <= closed => Ok(()),
            _ => wrong("the drain was cut short"),
        },
        CloseReason::PeerReset if plan.is_hasty || log.failed || log.reset_seen => Ok(()),
        CloseReason::PeerReset => wrong("nobody reset it"),
        reason if Some(reason) == transcript.closed => {
            if got.same == all || can_lose || got.closes {
                Ok(())
            } else {
                wrong("answers are missing")
            }
        }
        // It ends with an answer that is not known to end it elsewhere, because the shutdown made it the last.
        _ if got.closes => Ok(()),
        // The client was told of the end, and closed before it had sent everything.
        CloseReason::PeerClosed | CloseReason::Rejected(Reject::Truncated) if plan.is_hasty => Ok(()),
        _ => wrong("it should have been closed for another reason"),
    }
}

/// How many answers are due for so many bytes.
fn answered_by(plan: &Plan, read: u64) -> usize {
    let mut ended = false;
    let answered = plan.messages.iter().take_while(|message| {
        let there = !ended && message.answered_at.unwrap_or(message.end) <= read;
        ended |= message.ends;
        there
    });
    answered.count()
}

/// Whether a reset may destroy what the client had not read: because it would not take it, because the time or the bytes
/// for that were used up, or because it sent more behind the end.
fn may_be_lost(log: &Log, reason: CloseReason, limits: &Limits) -> bool {
    let lingered = match (log.write_shut, log.closed) {
        (Some(shut), Some(closed)) => closed >= shut.after(limits.linger_timeout),
        _ => false,
    };
    let dropped = log.received_len() - log.received_at_shut.unwrap_or(log.received_len());
    lingered
        || dropped > limits.linger_bytes_max as u64
        || log.eof_seen
        || matches!(
            reason,
            CloseReason::WriteTimeout
                | CloseReason::DrainTimeout
                | CloseReason::IdleTimeout
                | CloseReason::PlaceNeeded
                | CloseReason::FirstByteTimeout
                | CloseReason::Drained
                | CloseReason::PeerReset
                | CloseReason::AskedByPeer
                | CloseReason::AskedByHandler
        )
}

/// When a connection that stays as it is has to be ended: no earlier, no later.
#[derive(Debug)]
pub(super) struct Deadlines {
    pub(super) earliest: Tick,
    pub(super) latest: Tick,
    /// Whether it is a body that is waited for, if that is known.
    in_body: Option<bool>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Linger,
    FirstByte,
    Idle,
    Message,
}

impl Deadlines {
    /// From what went through the socket alone. None if the connection is about to end anyway, or nothing is known.
    ///
    /// `before_shut` asks for the last one before the write side was shut down.
    pub(super) fn new(plan: &Plan, log: &Log, limits: &Limits, read: u64, before_shut: bool) -> Option<Deadlines> {
        if let Some(since) = log.unsent_since {
            let due = since.after(limits.write_timeout);
            return Some(Deadlines { earliest: due, latest: due, in_body: None, kind: Kind::Write });
        }
        if let (Some(shut), false) = (log.write_shut, before_shut) {
            let due = shut.after(limits.linger_timeout);
            return Some(Deadlines { earliest: due, latest: due, in_body: None, kind: Kind::Linger });
        }
        // Whatever was held back by a budget was looked at by then.
        let settled = log.settled.unwrap_or(log.active);
        let at = plan.messages.partition_point(|message| message.end <= read);
        if plan.messages[..at].iter().any(|message| message.ends) {
            return None;
        }
        let between = |least: Tick, wait: std::time::Duration, kind| {
            // Nobody can be late who was perhaps not read.
            let least = least.max(log.caught_up);
            let latest = settled.max(least).after(wait);
            Some(Deadlines { earliest: least.after(wait), latest, in_body: None, kind })
        };
        let idle = |at: usize| match at.checked_sub(1).map(|before| &plan.messages[before]) {
            None => {
                let due = log.accepted.after(limits.first_byte_timeout);
                Some(Deadlines { earliest: due, latest: due, in_body: None, kind: Kind::FirstByte })
            }
            Some(last) => between(log.when(last.end)?, limits.idle_timeout, Kind::Idle),
        };
        let Some(message) = plan.messages.get(at).filter(|message| message.start < read) else { return idle(at) };
        let Message { start, head_end, answered_at, ends, skips, .. } = *message;
        let Some(answered_at) = answered_at else {
            // It breaks a rule at some byte. Until then it is a head or a body like others.
            let least = log.when(start + 1)?;
            let shortest = limits.head_timeout.min(limits.body_grace).min(limits.body_timeout);
            return Some(Deadlines {
                earliest: least.after(shortest),
                latest: Tick(u64::MAX / 2),
                in_body: None,
                kind: Kind::Message,
            });
        };
        if read < head_end {
            let mut due = between(log.when(start + 1)?, limits.head_timeout, Kind::Message)?;
            due.in_body = Some(false);
            if let Some(next) = log.next_after(start + 1) {
                // Nothing is read before all that is there was looked at, so more bytes put nothing off.
                due.latest = due.latest.min(next.max(log.caught_up).after(limits.head_timeout));
            }
            return Some(due);
        }
        if ends && answered_at == head_end && !skips {
            return None;
        }
        let earned = (read - head_end) * 1000 / u64::from(limits.body_bytes_per_second_min);
        let wait = (limits.body_grace + std::time::Duration::from_millis(earned)).min(limits.body_timeout);
        let mut due = between(log.when(head_end)?, wait, Kind::Message)?;
        due.in_body = Some(true);
        Some(due)
    }

    fn matches(&self, reason: CloseReason) -> bool {
        match reason {
            CloseReason::WriteTimeout => self.kind == Kind::Write,
            CloseReason::FirstByteTimeout => self.kind == Kind::FirstByte,
            CloseReason::IdleTimeout => self.kind == Kind::Idle,
            CloseReason::PlaceNeeded => matches!(self.kind, Kind::Idle | Kind::FirstByte),
            _ => true,
        }
    }

    /// Whether the time has come and gone.
    pub(super) fn is_missed(&self, now: Tick) -> bool {
        self.latest.0 + BUCKET_MS <= now.0
    }
}
