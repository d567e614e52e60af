//! From bytes to requests: finds out what the next bytes are, in every phase, and how far they go.
//!
//! Whole requests take the short way, [`serve_whole_ones`](Connection::serve_whole_ones); all else takes
//! [`serve`](Connection::serve). Both end in [`serve_asked`](Connection::serve_asked).

use std::mem::MaybeUninit;
use std::ops::Range;

use super::answer::{Parsed, begin_cors, find, has_no_room_for, params, run, unread, with_head};
use super::{BETWEEN, CONTINUE, CloseReason, Connection, Pace, Phase, Receiving, Served, Skipping, Tick, Turn, Unread};
use crate::caught::caught;
use crate::chunked::Decoder;
use crate::cors;
use crate::framing::{self, Decision, Framing};
use crate::head::{self, Known, SLOTS_READY};
use crate::held::Held;
use crate::proxy::{self, Proxied};
use crate::reject::Reject;
use crate::request::{Received, Request, Spans};
use crate::response::Facts;
use crate::route::{Answer, Found, Row};
use crate::target::{self, Target};

impl Connection {
    /// Serves from the connection's own buffer. `fresh` bytes of it are new.
    pub(super) fn serve_held<S>(&mut self, fresh: usize, turn: &mut Turn<'_, S>) {
        let mut held = std::mem::take(&mut self.held);
        let filled = held.range();
        let kept = self.serve(held.buffer(), filled, fresh, turn.limits.requests_per_turn, turn);
        if kept.is_empty() {
            held.recycle(&mut turn.workspace.pool);
        } else {
            held.keep(kept);
            self.held = held;
        }
    }

    /// Takes over the unfinished message at the end of the read buffer.
    pub(super) fn hold<S>(&mut self, bytes: &[u8], turn: &mut Turn<'_, S>) {
        self.held = Held::copy_of(bytes, &mut turn.workspace.pool);
    }

    /// Serves `buffer[filled]`, and returns what of it has to be kept for later.
    pub(super) fn serve<S>(
        &mut self,
        buffer: &mut [u8],
        filled: Range<usize>,
        fresh: usize,
        mut requests_left: usize,
        turn: &mut Turn<'_, S>,
    ) -> Range<usize> {
        let Range { mut start, mut end } = filled;
        self.more = false;
        match &mut self.phase {
            Phase::Body(receiving) => receiving.pace.received += fresh as u64,
            Phase::Skip(skipping) => skipping.pace.received += fresh as u64,
            _ => {}
        }
        loop {
            match &mut self.phase {
                Phase::Head { scanned, begun, empty_line } => {
                    if start == end {
                        if self.eof {
                            self.phase = Phase::Closing { reason: CloseReason::PeerClosed, linger: false };
                        }
                        break;
                    }
                    let output_len = turn.workspace.output.len() + self.unsent.as_ref().map_or(0, |u| u.len());
                    if requests_left == 0 || output_len > turn.limits.output_bytes_max {
                        self.more = true;
                        break;
                    }
                    let window = &buffer[start..end];
                    if window[0] == b'\r' && !*empty_line && !*begun {
                        // One empty line before a request is skipped (RFC 9112 2.2); it begins none.
                        match window.get(1) {
                            Some(b'\n') => {
                                *empty_line = true;
                                start += 2;
                                continue;
                            }
                            None if !self.eof => break,
                            _ => {}
                        }
                    }
                    match head::scan(window, *scanned, turn.limits.head_bytes_max) {
                        Ok(Some(head_len)) => {
                            requests_left -= 1;
                            (start, end) = self.serve_request(buffer, start, end, head_len, turn);
                        }
                        Ok(None) if self.eof => self.refuse_window(Reject::Truncated, &buffer[start..end], turn),
                        Ok(None) => {
                            *scanned = head::scanned_len(window);
                            if !*begun {
                                *begun = true;
                                self.since = turn.now;
                            }
                            break;
                        }
                        Err(reject) => self.refuse_window(reject, &buffer[start..end], turn),
                    }
                }
                Phase::Body(_) => {
                    let whole;
                    (start, end, whole) = self.serve_body(buffer, start, end, turn);
                    if !whole {
                        break;
                    }
                }
                Phase::Skip(_) => {
                    start = self.skip(buffer, start, end, turn);
                    if start == end && matches!(self.phase, Phase::Skip(_)) {
                        if self.eof {
                            self.phase = Phase::Closing { reason: CloseReason::PeerClosed, linger: false };
                        }
                        break;
                    }
                }
                Phase::Waiting(_) | Phase::Streaming(_) => {
                    if self.eof && !turn.limits.answer_half_closed {
                        self.phase = Phase::Closed(CloseReason::PeerLeft);
                    }
                    break;
                }
                Phase::Proxy { begun } => {
                    if start == end {
                        if self.eof {
                            self.phase = Phase::Closing { reason: CloseReason::PeerClosed, linger: false };
                        }
                        break;
                    }
                    match proxy::parse(&buffer[start..end]) {
                        Ok(Some(Proxied { len, source })) => {
                            start += len;
                            self.peer = source.or(self.peer);
                            self.phase = BETWEEN;
                        }
                        Ok(None) if self.eof => self.refuse(Reject::Truncated, false, turn),
                        Ok(None) => {
                            if !*begun {
                                *begun = true;
                                self.since = turn.now;
                            }
                            break;
                        }
                        Err(reject) => self.refuse(reject, false, turn),
                    }
                }
                Phase::Closing { reason, linger } => {
                    // Input behind the last request: closing now would answer it with a reset.
                    *linger |= start < end && *reason != CloseReason::PeerClosed;
                    start = end;
                    break;
                }
                Phase::Linger { reason, dropped } => {
                    *dropped += end - start;
                    if self.eof || *dropped > turn.limits.linger_bytes_max {
                        self.phase = Phase::Closed(*reason);
                    }
                    start = end;
                    break;
                }
                Phase::Closed(_) => {
                    start = end;
                    break;
                }
            }
        }
        start..end
    }

    /// Whole and ordinary requests that stand one behind the other at the start of `buffer[..end]`. Returns where they
    /// end.
    ///
    /// All that most connections ever do, each head parsed once and nothing scanned before. Whatever else there is, be it
    /// partial or malformed, [`serve`](Connection::serve) takes up where this leaves off.
    #[inline(always)]
    pub(super) fn serve_whole_ones<S>(
        &mut self,
        buffer: &mut [u8],
        end: usize,
        requests_left: &mut usize,
        turn: &mut Turn<'_, S>,
    ) -> usize {
        let mut start = 0;
        while let Some(&first) = buffer[start..end].first()
            && matches!(self.phase, Phase::Head { scanned: 0, begun: false, .. })
            && *requests_left > 0
            && turn.workspace.output.len() <= turn.limits.output_bytes_max
            && self.unsent.is_none()
        {
            // Other methods have bodies, most often.
            let used = match first {
                b'G' | b'H' => self.serve_without_body(&buffer[start..end], turn),
                _ => self.serve_with_body(&mut buffer[start..], end - start, turn),
            };
            let Some(used) = used else { break };
            start += used;
            *requests_left -= 1;
        }
        start
    }

    /// A request without a body, from the window that it begins. Returns its length, or `None` if it is not that.
    #[inline(always)]
    fn serve_without_body<S>(&mut self, window: &[u8], turn: &mut Turn<'_, S>) -> Option<usize> {
        let mut slots = [const { MaybeUninit::uninit() }; SLOTS_READY];
        let ready = SLOTS_READY.min(turn.limits.fields_max);
        let mut known = Known::default();
        let (head_len, head) = head::parse_at_once(window, &mut slots[..ready], &mut known, turn.limits)?;
        let decision = framing::decide(head.version, &known).ok()?;
        if decision.framing != Framing::NoBody {
            return None;
        }
        turn.workspace.check_host(known.host).ok()?;
        let mut target = None;
        let target = target::read_into(&head, known.host, &mut target).ok()?;
        let asked = self.received(&head, &known, target, &decision, turn);
        self.serve_asked(&asked, &decision, &mut [], 0, true, turn);
        Some(head_len)
    }

    /// A request whose body, by length, is in the window as well. Returns the length of both, or `None` if it is not
    /// that. The head is split off first, so that it can stay borrowed while the body is changed.
    #[inline(never)]
    fn serve_with_body<S>(&mut self, buffer: &mut [u8], available: usize, turn: &mut Turn<'_, S>) -> Option<usize> {
        let guess = turn.workspace.head_len;
        let head_len = head::find_blank_line(&buffer[..available], guess, turn.limits.head_bytes_max)?;
        let received = available - head_len;
        let (head_bytes, rest) = buffer.split_at_mut(head_len);
        let mut slots = [const { MaybeUninit::uninit() }; SLOTS_READY];
        let ready = SLOTS_READY.min(turn.limits.fields_max);
        let mut known = Known::default();
        let (parsed_len, head) = head::parse_at_once(head_bytes, &mut slots[..ready], &mut known, turn.limits)?;
        turn.workspace.head_len = parsed_len;
        let decision = framing::decide(head.version, &known).ok()?;
        let is_whole = match decision.framing {
            Framing::NoBody => true,
            Framing::Length(len) => len <= received as u64,
            Framing::Chunked => false,
        };
        if parsed_len != head_len || !is_whole {
            return None;
        }
        turn.workspace.check_host(known.host).ok()?;
        let mut target = None;
        let target = target::read_into(&head, known.host, &mut target).ok()?;
        let asked = self.received(&head, &known, target, &decision, turn);
        match self.serve_asked(&asked, &decision, rest, received, true, turn) {
            Served::Body(used) => Some(head_len + used),
            Served::Waits(receiving) => {
                self.wait_for_body(receiving, head_len);
                Some(0)
            }
        }
    }

    fn wait_for_body(&mut self, mut receiving: Box<Receiving>, head_len: usize) {
        receiving.head_len = head_len;
        // A row may take bodies that no buffer can hold; memory is asked for as they come.
        receiving.content_end = receiving.content_end.saturating_add(head_len);
        self.phase = Phase::Body(receiving);
    }

    /// One request whose head is whole. Returns the bounds of what is left in the buffer.
    fn serve_request<S>(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        end: usize,
        head_len: usize,
        turn: &mut Turn<'_, S>,
    ) -> (usize, usize) {
        let received = end - start - head_len;
        let (head_bytes, rest) = buffer[start..].split_at_mut(head_len);
        let served = with_head(head_bytes, turn.limits, |parsed| match parsed {
            Ok(Parsed { head, known, target, decision }) => {
                let asked = self.received(&head, &known, &target, &decision, turn);
                self.serve_asked(&asked, &decision, rest, received, false, turn)
            }
            Err((reject, head_only)) => self.refused(reject, head_only, turn),
        });
        match served {
            Served::Body(used) => (start + head_len + used, end),
            Served::Waits(receiving) => {
                let kept_end = match receiving.decision.framing {
                    Framing::Chunked => start + head_len + receiving.content_end,
                    _ => end,
                };
                self.wait_for_body(receiving, head_len);
                (start, kept_end)
            }
        }
    }

    /// One request whose head is parsed: route, guards, body, handler. `rest` follows the head, and `received` bytes
    /// of it are there. `usual`: where requests are whole on arrival, and the rest is inlined as well.
    #[inline(always)]
    fn serve_asked<S>(
        &mut self,
        asked: &Received<'_>,
        decision: &Decision,
        rest: &mut [u8],
        received: usize,
        usual: bool,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let facts = self.facts(asked.head, decision, turn);
        let mut spans = Spans::default();
        match self.find_row(asked, decision, facts, received, &mut spans, turn) {
            Ok(row) if usual && row.is_plain => {
                self.serve_row(row, &mut spans, asked, decision, facts, rest, received, turn)
            }
            Ok(row) => self.serve_row_seldom(row, &mut spans, asked, decision, facts, rest, received, turn),
            Err(served) => served,
        }
    }

    /// The row for a request, or what was answered because there is none.
    #[inline(always)]
    fn find_row<S>(
        &mut self,
        asked: &Received<'_>,
        decision: &Decision,
        facts: Facts,
        received: usize,
        spans: &mut Spans,
        turn: &mut Turn<'_, S>,
    ) -> Result<&'static Row<S>, Served> {
        let request = Request(asked);
        match find(request, spans, turn.routes) {
            Ok(Found::Row(row)) => Ok(row),
            Ok(missing) => Err(self.answer_missing(missing, request, decision, facts, received, turn)),
            Err(reject) => {
                self.refuse_of(Some(request), reject, facts.head_only, turn);
                Err(Served::Body(0))
            }
        }
    }

    /// As [`serve_row`](Connection::serve_row), out of line, and with the policy and the observer that the row may have.
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "what `serve_row` takes")]
    fn serve_row_seldom<S>(
        &mut self,
        row: &'static Row<S>,
        spans: &mut Spans,
        asked: &Received<'_>,
        decision: &Decision,
        facts: Facts,
        rest: &mut [u8],
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let request = Request(asked);
        let Target { path, escaped, .. } = *asked.target;
        if turn.routes.has_options()
            && let Some(method) = cors::preflighted(request)
            && turn.routes.cors(method, path, escaped).is_some()
        {
            let allow = turn.routes.allow(path, escaped);
            return self.answer_missing(Found::Options(allow), request, decision, facts, received, turn);
        }
        if let Some(cors) = row.options.cors {
            begin_cors(cors(), request, &mut turn.workspace.output);
        }
        let mark = turn.workspace.output.mark();
        let served = self.serve_row(row, spans, asked, decision, facts, rest, received, turn);
        if row.options.cors.is_some() {
            turn.workspace.output.clear_common();
        }
        if let Served::Body(_) = served {
            self.observe_row(row, request, turn.now, mark, turn);
        }
        served
    }

    /// One request whose row is found: guards, body, handler.
    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "each in a register or in its place; a struct of them would be built for each request"
    )]
    fn serve_row<S>(
        &mut self,
        row: &'static Row<S>,
        spans: &mut Spans,
        asked: &Received<'_>,
        decision: &Decision,
        facts: Facts,
        rest: &mut [u8],
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let request = Request(asked);
        let (check, call) = match &row.answer {
            Answer::Handler { check, call } => (*check, *call),
            Answer::Constant(constant) => {
                return self.answer_early(decision, facts, received, turn, |response| response.constant(constant));
            }
        };
        turn.ran = Some(row);
        let wants_body = match check {
            None => false,
            Some(check) => {
                let mut spans = *spans;
                let params = params(row, request.0.target, &mut spans, &mut turn.workspace.decoded);
                let state = &mut *turn.state;
                match caught(|| check(&request, &params, state)) {
                    Some(Ok(wants_body)) => wants_body,
                    Some(Err(rejection)) => {
                        return self.reject_early(row.options.errors, rejection, decision, facts, received, turn);
                    }
                    None => return self.answer_panic(row.options.errors, facts, turn),
                }
            }
        };
        // What the handler gets of a body, and what becomes of the rest: nothing, where it wants all.
        let (content, facts, unread, body_len) = if wants_body {
            let body_bytes_max = row.options.body_bytes_max.unwrap_or(turn.limits.body_bytes_max);
            let mut decoder = Decoder::new();
            // Where the content ends, counted from the start of the body, and, if the body is whole, where it ends.
            let (content_len, body_len) = match decision.framing {
                Framing::NoBody => (0, Some(0)),
                Framing::Length(len) => match usize::try_from(len) {
                    Ok(len) if len <= body_bytes_max => (len, (len <= received).then_some(len)),
                    _ => return self.refused_by(row.options.errors, Reject::BodyTooLarge, facts.head_only, turn),
                },
                Framing::Chunked => match decoder.decode(&mut rest[..received], 0, 0, body_bytes_max, turn.limits) {
                    Ok(decoded) => (decoded.content_end, decoded.done.then_some(decoded.raw_start)),
                    Err(reject) => return self.refused_by(row.options.errors, reject, facts.head_only, turn),
                },
            };
            let Some(body_len) = body_len else {
                let receiving = Receiving {
                    head_len: 0,
                    decision: *decision,
                    body_bytes_max,
                    decoder,
                    content_end: content_len,
                    pace: Pace { started: turn.now, received: received as u64 },
                    since: turn.now,
                };
                return self.begin_body(row, receiving, facts, turn);
            };
            ((rest, content_len), facts, Unread::Nothing, body_len)
        } else {
            let unread = unread(decision, turn.limits);
            let facts = Facts { persistent: facts.persistent && unread != Unread::Close, ..facts };
            ((&mut [][..], 0), facts, unread, 0)
        };
        let wish = run(row, call, request, spans, content, facts, turn);
        self.finish(wish, facts, unread, turn);
        if unread == Unread::Nothing { Served::Body(body_len) } else { self.pass_over(unread, received, turn) }
    }

    /// The handler waits for a body that is not whole. Lengths count from the start of the body.
    #[cold]
    #[inline(never)]
    fn begin_body<S>(&mut self, row: &Row<S>, receiving: Receiving, facts: Facts, turn: &mut Turn<'_, S>) -> Served {
        if receiving.decision.expects_continue && receiving.pace.received == 0 {
            if has_no_room_for(receiving.content_end, turn) {
                return self.refused_by(row.options.errors, Reject::BodiesTooLarge, facts.head_only, turn);
            }
            turn.workspace.output.bytes.extend_from_slice(CONTINUE);
        }
        Served::Waits(Box::new(receiving))
    }

    /// Goes on with a body. Returns the bounds of what is left, and whether there is something to go on with.
    fn serve_body<S>(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        end: usize,
        turn: &mut Turn<'_, S>,
    ) -> (usize, usize, bool) {
        let Phase::Body(receiving) = &mut self.phase else { return (start, end, true) };
        let Receiving { head_len, decision, body_bytes_max, since, .. } = **receiving;
        let whole = match decision.framing {
            Framing::NoBody => Some((0, head_len)),
            Framing::Length(len) => {
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                (len <= end - start - head_len).then(|| (len, head_len + len))
            }
            Framing::Chunked => {
                let content_end = receiving.content_end;
                let window = &mut buffer[start..end];
                match receiving.decoder.decode(window, content_end, content_end, body_bytes_max, turn.limits) {
                    Ok(decoded) if decoded.done => Some((decoded.content_end - head_len, decoded.raw_start)),
                    Ok(decoded) => {
                        receiving.content_end = decoded.content_end;
                        None
                    }
                    Err(reject) => {
                        self.refuse_body(reject, &mut buffer[start..end], head_len, turn);
                        return (start, end, true);
                    }
                }
            }
        };
        let Some((content_len, used)) = whole else {
            if self.eof {
                self.refuse_body(Reject::Truncated, &mut buffer[start..end], head_len, turn);
                return (start, end, true);
            }
            let kept_end = if decision.framing == Framing::Chunked { start + receiving.content_end } else { end };
            if has_no_room_for(end - start, turn) {
                self.refuse_body(Reject::BodiesTooLarge, &mut buffer[start..end], head_len, turn);
                return (start, end, true);
            }
            return (start, kept_end, false);
        };
        self.phase = BETWEEN;
        let (head_bytes, rest) = buffer[start..].split_at_mut(head_len);
        with_head(head_bytes, turn.limits, |parsed| {
            // The head was parsed and routed before with the same outcome; only the borrows are new.
            let Ok(Parsed { head, known, target, decision }) = parsed else { return };
            let asked = self.received(&head, &known, &target, &decision, turn);
            let request = Request(&asked);
            let facts = self.facts(asked.head, &decision, turn);
            let mut spans = Spans::default();
            let Ok(Found::Row(row)) = find(request, &mut spans, turn.routes) else { return };
            let Answer::Handler { call, .. } = &row.answer else { return };
            turn.ran = Some(row);
            if let Some(cors) = row.options.cors {
                begin_cors(cors(), request, &mut turn.workspace.output);
            }
            let mark = turn.workspace.output.mark();
            let wish = run(row, *call, request, &mut spans, (rest, content_len), facts, turn);
            self.finish(wish, facts, Unread::Nothing, turn);
            if row.options.cors.is_some() {
                turn.workspace.output.clear_common();
            }
            self.observe_row(row, request, since, mark, turn);
        });
        (start + used, end, true)
    }

    /// Drops what is there of a body that nobody wants.
    fn skip<S>(&mut self, buffer: &mut [u8], start: usize, end: usize, turn: &mut Turn<'_, S>) -> usize {
        let Phase::Skip(skipping) = &mut self.phase else { return start };
        if let Some(left) = &mut skipping.left {
            let take = usize::try_from(*left).unwrap_or(usize::MAX).min(end - start);
            *left -= take as u64;
            if *left == 0 {
                self.go_between(turn.now);
            }
            return start + take;
        }
        match skipping.decoder.decode(&mut buffer[start..end], 0, 0, turn.limits.linger_bytes_max, turn.limits) {
            Ok(decoded) if decoded.done => {
                self.go_between(turn.now);
                start + decoded.raw_start
            }
            Ok(_) => end,
            Err(reject) => {
                // Its answer is out, so there is none for this.
                self.phase = Phase::Closing { reason: CloseReason::Rejected(reject), linger: true };
                end
            }
        }
    }

    /// The next request may begin. What was skipped was no idle time.
    fn go_between(&mut self, now: Tick) {
        self.phase = BETWEEN;
        self.since = now;
    }

    /// Goes past a body that was answered before it was read.
    #[inline]
    pub(super) fn pass_over<S>(&mut self, unread: Unread, received: usize, turn: &mut Turn<'_, S>) -> Served {
        if unread == Unread::Nothing {
            return Served::Body(0);
        }
        if !matches!(self.phase, Phase::Head { .. }) {
            return Served::Body(0);
        }
        let left = match unread {
            Unread::Nothing | Unread::Close => return Served::Body(0),
            Unread::Length(len) if len <= received as u64 => return Served::Body(len as usize),
            Unread::Length(len) if planted!("connection") => Some(len - received as u64),
            Unread::Length(len) => Some(len),
            Unread::Chunked => None,
        };
        let pace = Pace { started: turn.now, received: received as u64 };
        self.phase = Phase::Skip(Box::new(Skipping { left, decoder: Decoder::new(), pace }));
        Served::Body(0)
    }
}
