//! Clients whose answers come later: what they send, and whether what they got is right.
//!
//! The judge reads answers with a parser of its own, and knows of the loop only what went through the sockets. What the
//! answers should be it takes from the records of `backstage`.

use std::time::Duration;

use super::backstage::{Backstage, Kind, Over, Record, Said, is_head};
use super::judge::Shutdown;
use super::table::{REFUSAL, late_content};
use crate::connection::CloseReason;
use crate::limits::Limits;
use crate::reject::Reject;
use crate::testing::{Peer, Random, Script, Step};

/// A request of such a client.
#[derive(Clone, Debug)]
struct Asked {
    id: u64,
    kind: Kind,
    /// Where it ends in the client's stream.
    end: u64,
    /// Its answer is the last of the connection.
    closes: bool,
    /// HTTP/1.0: so is a stream, whatever it asked for.
    is_old: bool,
    content: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Waiter {
    asked: Vec<Asked>,
    pub(super) bytes: Vec<u8>,
    pub(super) script: Script,
    says_end: bool,
    /// It may leave before it has read everything.
    is_hasty: bool,
    /// It may stop reading for good.
    stalls: bool,
}

/// The most content that waits for one of them: the room of a stream, one more part or message, and change.
pub(super) const ANSWER_BYTES_MAX: usize = (64 << 10) + 30_000 + 10_000;

impl Waiter {
    pub(super) fn new(client: u64, random: &mut Random) -> Waiter {
        let ending = random.below(8);
        // The answer to such a client can end with its connection alone, which nobody can wait for and then close.
        let may_be_old = ending < 3;
        let mut waiter = Waiter {
            asked: Vec::new(),
            bytes: Vec::new(),
            script: Script::new(),
            says_end: false,
            is_hasty: false,
            stalls: false,
        };
        for index in 0..=random.any_size(8) as u64 {
            waiter.ask(client << 32 | index << 16, may_be_old, random);
        }
        waiter.write_script(ending, random);
        waiter
    }

    fn ask(&mut self, number: u64, may_be_old: bool, random: &mut Random) {
        let mut id = number | random.below(1 << 15) << 1;
        let (kind, path) = *random.pick(&[
            (Kind::Now, "id"),
            (Kind::Later, "later"),
            (Kind::Later, "later"),
            (Kind::Later, "late-echo"),
            (Kind::Pool, "pool"),
            (Kind::Pool, "pool"),
            (Kind::Stream, "stream"),
            (Kind::Stream, "stream"),
            (Kind::Events, "events"),
            (Kind::Feed, "feed"),
        ]);
        let echoes = path == "late-echo";
        let has_body = echoes || path == "later" && random.chance(300);
        if !has_body && random.chance(60) {
            id |= 1;
        }
        let method = if has_body { "POST" } else { ["GET", "HEAD"][usize::from(is_head(id))] };
        let (version, field, closes) = match random.below(20) {
            0 if may_be_old => ("1.0", "", true),
            1 if may_be_old => {
                ("1.0", "Connection: keep-alive\r\n", matches!(kind, Kind::Stream | Kind::Events | Kind::Feed))
            }
            2 => ("1.1", "Connection: close\r\n", true),
            _ => ("1.1", "", false),
        };
        let mut text = format!("{method} /{path}/{id} HTTP/{version}\r\nHost: x\r\n{field}").into_bytes();
        let body = format!("body of {id}");
        if has_body && version == "1.1" && random.chance(500) {
            text.extend_from_slice(
                format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes(),
            );
        } else if has_body {
            text.extend_from_slice(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        } else {
            text.extend_from_slice(b"\r\n");
        }
        self.bytes.extend_from_slice(&text);
        let content = match kind {
            Kind::Now => id.to_string().into_bytes(),
            _ if echoes => body.into_bytes(),
            _ => late_content(id),
        };
        self.asked.push(Asked { id, kind, end: self.bytes.len() as u64, closes, is_old: version == "1.0", content });
    }

    fn write_script(&mut self, ending: u64, random: &mut Random) {
        let mut wait = |most| Duration::from_millis(random.any_size(most) as u64);
        let mut script = Script::new().connect_after(wait(3000));
        let (lull, pause, patience) = (wait(5000), wait(2000), wait(8000));
        let listens = self.asked.iter().any(|asked| asked.kind == Kind::Feed);
        if random.chance(if listens { 200 } else { 50 }) {
            self.stalls = true;
            script = script.stall();
        } else if random.chance(150) {
            script = script.read_slowly(random.len(1, 4000), Duration::from_millis(random.below(200)));
        }
        let answer = |script: Script, asked: &Asked| script.then(Step::Answer { head_only: is_head(asked.id) });
        let mut from = 0;
        match random.below(4) {
            0 => {
                for asked in &self.asked {
                    script = script.send(&self.bytes[from..asked.end as usize]);
                    script = answer(script, asked).wait(pause);
                    from = asked.end as usize;
                }
            }
            1 => {
                let cut = random.len(0, self.bytes.len());
                script = script.send(&self.bytes[..cut]).wait(lull);
                from = cut;
            }
            _ => {}
        }
        script = script.send(&self.bytes[from..]);
        match ending {
            0 | 1 => {}
            2 => {
                self.says_end = true;
                script = script.wait(patience).close_write();
            }
            3..=5 => {
                self.says_end = true;
                let waits = script.steps.iter().any(|step| matches!(step, Step::Answer { .. }));
                if !waits {
                    script = self.asked.iter().fold(script, answer);
                }
                script = script.close();
            }
            6 => {
                self.is_hasty = true;
                script = script.wait(patience).close();
            }
            _ => {
                self.is_hasty = true;
                script = script.wait(patience).reset();
            }
        }
        self.script = script;
    }
}

/// One answer, as far as it came.
#[derive(Debug)]
struct Taken {
    status: u16,
    closes: bool,
    content: Vec<u8>,
    extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Whole,
    /// More should come.
    Cut,
    /// Until the connection ends.
    Open,
}

/// Takes an answer from the front. None if not even its head is whole.
fn take_answer(rest: &mut &[u8], head_only: bool) -> Result<Option<Taken>, String> {
    let shown = rest[..rest.len().min(200)].escape_ascii().to_string();
    let Some(head_len) = rest.windows(4).position(|w| w == b"\r\n\r\n") else {
        let known = rest.len().min(9);
        return if rest[..known] == b"HTTP/1.1 "[..known] { Ok(None) } else { Err(format!("no answer: {shown}")) };
    };
    let head = std::str::from_utf8(&rest[..head_len]).map_err(|_| format!("no text: {shown}"))?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|line| line.get(..3)).and_then(|code| code.parse().ok());
    let Some(status) = status else { return Err(format!("no answer: {shown}")) };
    let field = |name: &str| head.split("\r\n").find_map(|line| line.strip_prefix(name));
    let closes = field("Connection: ") == Some("close");
    let (length, coding) = (field("Content-Length: "), field("Transfer-Encoding: "));
    *rest = &rest[head_len + 4..];
    let (mut content, mut extent) = (Vec::new(), Extent::Whole);
    match (length.map(str::parse::<usize>), coding) {
        _ if head_only => {}
        (Some(Ok(len)), None) => {
            let there = len.min(rest.len());
            content.extend_from_slice(&rest[..there]);
            *rest = &rest[there..];
            if there < len {
                extent = Extent::Cut;
            }
        }
        (None, Some("chunked")) => {
            extent = Extent::Cut;
            while let Some(line_len) = rest.windows(2).position(|w| w == b"\r\n") {
                let size = std::str::from_utf8(&rest[..line_len]).ok().filter(|digits| !digits.is_empty());
                let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
                let Some(size) = size else { return Err(format!("no chunk: {}", rest.escape_ascii())) };
                let chunk = &rest[line_len + 2..];
                content.extend_from_slice(&chunk[..size.min(chunk.len())]);
                let end = chunk.get(size..).unwrap_or_default();
                if end.len() < 2 {
                    break;
                }
                if !end.starts_with(b"\r\n") {
                    return Err(format!("a chunk does not end: {}", rest.escape_ascii()));
                }
                *rest = &end[2..];
                if size == 0 {
                    extent = Extent::Whole;
                    break;
                }
            }
            if extent == Extent::Cut {
                *rest = &[];
            }
        }
        (None, None) => {
            content.extend_from_slice(rest);
            *rest = &[];
            extent = Extent::Open;
        }
        _ => return Err(format!("no framing: {shown}")),
    }
    Ok(Some(Taken { status, closes, content, extent }))
}

/// What an event stream says when there is nothing to say.
const COMMENT: &[u8] = b":\n\n";

/// An event stream without comments, and without what may be the beginning of one.
fn without_comments(content: &[u8], is_cut: bool) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut rest = content;
    while let Some(first) = rest.first() {
        let is_line_start = kept.is_empty() || kept.ends_with(b"\n\n");
        if is_line_start && rest.starts_with(COMMENT) {
            rest = &rest[COMMENT.len()..];
        } else if is_line_start && is_cut && COMMENT.starts_with(rest) {
            break;
        } else {
            kept.push(*first);
            rest = &rest[1..];
        }
    }
    kept
}

/// What a whole client got, once all is over.
pub(super) fn judge(
    waiter: &Waiter,
    peer: &Peer,
    reason: Option<CloseReason>,
    limits: &Limits,
    shutdown: Shutdown,
    stage: &Backstage,
) -> Result<(), String> {
    let log = &peer.log;
    let Some(reason) = reason else {
        return if log.closed.is_none() && peer.received.is_empty() { Ok(()) } else { Err("closed in silence".into()) };
    };
    let wrong = |what: &str| Err(format!("{what}: closed because {reason:?}, got {}", peer.received.escape_ascii()));
    let can_lose = waiter.is_hasty || waiter.stalls || log.answers_lost || log.failed;
    let mut rest = &peer.received[..];
    // Whole answers, the last of which ends the connection.
    let (mut whole, mut closes, mut refused) = (0, false, false);
    let mut cut = None;
    for asked in &waiter.asked {
        if rest.is_empty() || closes {
            break;
        }
        let Some(taken) = take_answer(&mut rest, is_head(asked.id))? else {
            rest = &[];
            break;
        };
        let is_refusal = |reject: Reject| {
            // The refusal stands, whatever ended the wait for the peer after it.
            let is_reason =
                matches!(reason, CloseReason::WriteTimeout | CloseReason::DrainTimeout | CloseReason::PeerReset);
            (is_reason || reason == CloseReason::Rejected(reject))
                && taken.status == reject.status().code()
                && reject.sentence().as_bytes().starts_with(&taken.content)
                && taken.closes
        };
        use Reject::{BodiesTooLarge, BodyTimeout, HeadTimeout, Truncated};
        if [HeadTimeout, BodyTimeout, BodiesTooLarge, Truncated].into_iter().any(is_refusal) {
            (closes, refused) = (true, true);
            // It has content if the method had not come.
            if is_head(asked.id) && Reject::ALL.iter().any(|reject| reject.sentence().as_bytes().starts_with(rest)) {
                rest = &[];
            }
            break;
        }
        let record = stage.records.get(&asked.id);
        if !is_right(asked, record, &taken, stage, shutdown) {
            return wrong(&format!("{:x} was answered {taken:?}, which is not {record:?}", asked.id));
        }
        match taken.extent {
            Extent::Cut => cut = Some((asked, taken)),
            Extent::Open => {
                closes = true;
                let is_over = record.and_then(|record| stage.over(record)).is_some_and(|(over, _)| over == Over::Ended);
                whole += usize::from(is_over && matches!(reason, CloseReason::AskedByPeer | CloseReason::Drained));
                cut = Some((asked, taken));
            }
            Extent::Whole => {
                whole += 1;
                closes = taken.closes;
                let said = record.map(|record| record.said);
                let has_reason = asked.closes
                    || asked.is_old && said == Some(Said::Stream)
                    || shutdown.asked.is_some()
                    || matches!(said, Some(Said::Close | Said::Panic))
                    || taken.status == 500;
                if closes && !has_reason {
                    return wrong(&format!("the answer to {:x} closes without a reason", asked.id));
                }
            }
        }
    }
    if !rest.is_empty() {
        return wrong("more came than was asked for");
    }
    let read = log.received_at_shut.unwrap_or(log.received_len());
    let last = waiter.asked.iter().position(|asked| asked.closes).map_or(usize::MAX, |at| at + 1);
    let mut due = waiter.asked.iter().take_while(|asked| asked.end <= read).count().min(last);
    if closes && !refused {
        due = due.min(whole);
    }
    let next = waiter.asked.get(whole).and_then(|asked| Some((asked, stage.records.get(&asked.id)?)));
    let says =
        |said: Said| waiter.asked.iter().any(|asked| stage.records.get(&asked.id).is_some_and(|r| r.said == said));
    let is_expected = match reason {
        CloseReason::PeerLeft => {
            !limits.answer_half_closed
                && (waiter.says_end || waiter.is_hasty || log.reset_seen)
                && (next.is_some() || can_lose)
        }
        CloseReason::StreamAborted => {
            let is_it = |record: &Record| stage.over(record).is_some_and(|(over, _)| over == Over::Aborted);
            let came =
                |asked: &Asked| cut.as_ref().filter(|(of, _)| of.id == asked.id).map(|(_, taken)| &taken.content);
            // All that was written before comes, and no end.
            can_lose
                || next.is_some_and(|(asked, record)| {
                    let content = stage.content(record);
                    is_it(record) && came(asked).is_some_and(|came| without_comments(came, true) == content)
                })
        }
        CloseReason::StreamTooSlow => stage.too_slow > 0,
        CloseReason::Rejected(Reject::Truncated) => waiter.is_hasty,
        CloseReason::Rejected(reject) => {
            matches!(reject, Reject::HeadTimeout | Reject::BodyTimeout | Reject::BodiesTooLarge)
        }
        CloseReason::HandlerPanicked => says(Said::Panic),
        CloseReason::AskedByHandler => says(Said::Close),
        CloseReason::AskedByPeer => last < usize::MAX || waiter.asked.iter().any(|asked| asked.is_old),
        CloseReason::BodyUnread => false,
        CloseReason::Drained => shutdown.asked.is_some(),
        CloseReason::DrainTimeout => {
            shutdown.closed.is_some_and(|begun| Some(begun.after(limits.drain_timeout)) <= log.closed)
        }
        CloseReason::WriteTimeout => {
            let since = if log.moved_turn == log.closed_turn { log.unsent_before } else { log.unsent_since };
            since.is_some_and(|since| Some(since.after(limits.write_timeout)) <= log.closed)
        }
        CloseReason::PeerReset => waiter.is_hasty || log.failed || log.reset_seen,
        CloseReason::PeerClosed => waiter.says_end || waiter.is_hasty,
        CloseReason::IdleTimeout => whole > 0 || can_lose,
        CloseReason::PlaceNeeded => limits.connections_max < 10_000 && (whole > 0 || read == 0 || can_lose),
        CloseReason::FirstByteTimeout => read == 0,
    };
    if !is_expected {
        return wrong("that is no reason to close");
    }
    let is_cut_off = matches!(
        reason,
        CloseReason::WriteTimeout
            | CloseReason::DrainTimeout
            | CloseReason::PeerReset
            | CloseReason::PeerLeft
            | CloseReason::StreamAborted
            | CloseReason::StreamTooSlow
    );
    if !is_cut_off && !can_lose && whole < due {
        return wrong(&format!("{whole} answers came of {due}"));
    }
    Ok(())
}

/// Whether this may be the answer.
fn is_right(asked: &Asked, record: Option<&Record>, taken: &Taken, stage: &Backstage, shutdown: Shutdown) -> bool {
    let Taken { status, content, extent, .. } = taken;
    let head_only = is_head(asked.id);
    let holds = |expected: &[u8]| match extent {
        Extent::Whole => *content == if head_only { b"" } else { expected },
        Extent::Cut | Extent::Open => expected.starts_with(content),
    };
    if asked.kind == Kind::Now {
        return *status == 200 && holds(&asked.content);
    }
    let Some(record) = record else { return false };
    let says = |reject: Reject| *status == reject.status().code() && holds(reject.sentence().as_bytes());
    if record.timed_out && says(Reject::AnswerTimeout) {
        return true;
    }
    const BUSY: &[u8] = b"the server has more work than it can do at the moment";
    if record.handed && !record.ran && *status == 503 && holds(BUSY) {
        return true;
    }
    match record.said {
        Said::Nothing => false,
        Said::Content | Said::Close => *status == 200 && holds(&asked.content),
        Said::Panic | Said::Dropped => says(Reject::HandlerFailed),
        Said::Refused => *status == REFUSAL.0.code() && holds(REFUSAL.1.as_bytes()),
        Said::Stream if head_only => *status == 200 && content.is_empty(),
        Said::Stream => {
            let written = stage.content(record);
            let came = without_comments(content, *extent != Extent::Whole);
            let ended = stage.over(record).is_some_and(|(over, _)| over == Over::Ended);
            // Those that have no end of their own end with the server.
            let ends_with_server = shutdown.asked.is_some() && matches!(record.kind, Kind::Events | Kind::Feed);
            *status == 200
                && match extent {
                    Extent::Whole if !ends_with_server => ended && came == written,
                    _ => written.starts_with(&came),
                }
        }
    }
}
