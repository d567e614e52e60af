//! From requests to answers: parses a head, finds its row, runs the handler, and sees to it that there is one answer.

use std::mem::MaybeUninit;

use super::{BETWEEN, CloseReason, Connection, Phase, Served, Turn, Unread, Waiting, Workspace};
use crate::caught::caught;
use crate::cors::{self, CrossOrigin};
use crate::framing::{self, Decision, Framing};
use crate::head::{self, Head, Known, SLOTS_READY, Version};
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::method::Method;
use crate::output::{Mark, Output};
use crate::reject::Reject;
use crate::rejection::Rejection;
use crate::request::{Body, Params, Parts, Received, Request, Spans};
use crate::response::{self, Asked, Facts, METHOD_NOT_ALLOWED, Mapped, NO_ROUTE, Refusing, Respond, Response, Sent};
use crate::route::{Call, Found, MapErrors, Routes, Row};
use crate::status::Status;
use crate::target::{self, Form, Target};

/// A head that passed every rule that needs no route.
pub(super) struct Parsed<'h> {
    pub(super) head: Head<'h>,
    pub(super) known: Known<'h>,
    pub(super) target: Target<'h>,
    pub(super) decision: Decision,
}

/// Parses a head and hands it on; or the rule it breaks, and whether it is a HEAD request's.
#[inline]
pub(super) fn with_head<R>(
    bytes: &mut [u8],
    limits: &Limits,
    then: impl FnOnce(Result<Parsed<'_>, (Reject, bool)>) -> R,
) -> R {
    let mut slots = [const { MaybeUninit::uninit() }; SLOTS_READY];
    let ready = SLOTS_READY.min(limits.fields_max);
    match head::parse(bytes, &mut slots[..ready], limits) {
        Ok((head, known)) => then(understand(head, &known)),
        Err(reject) => with_unusual_head(reject, bytes, limits, then),
    }
}

/// More fields than are ready, a version that has to be lowered, or a head that is refused.
#[cold]
fn with_unusual_head<R>(
    reject: Reject,
    bytes: &mut [u8],
    limits: &Limits,
    then: impl FnOnce(Result<Parsed<'_>, (Reject, bool)>) -> R,
) -> R {
    let lowered = reject == Reject::VersionUnsupported && head::lower_version(bytes);
    if lowered || (reject == Reject::TooManyFields && limits.fields_max > SLOTS_READY) {
        let mut slots = Vec::new();
        slots.resize_with(limits.fields_max, MaybeUninit::uninit);
        return match head::parse(bytes, &mut slots, limits) {
            Ok((head, known)) => then(understand(head, &known)),
            Err(reject) => then(Err((reject, bytes.starts_with(b"HEAD ")))),
        };
    }
    then(Err((reject, bytes.starts_with(b"HEAD "))))
}

#[inline]
fn understand<'h>(head: Head<'h>, known: &Known<'h>) -> Result<Parsed<'h>, (Reject, bool)> {
    let refused = |reject| (reject, head.method == Method::Head);
    if let Some(host) = known.host {
        target::check_host(host).map_err(refused)?;
    }
    let target = target::read(&head, known.host).map_err(refused)?;
    let decision = framing::decide(head.version, known).map_err(refused)?;
    Ok(Parsed { head, known: *known, target, decision })
}

#[inline]
pub(super) fn find<S>(request: Request<'_>, spans: &mut Spans, routes: &'static Routes<S>) -> Result<Found<S>, Reject> {
    let &Target { form, path, escaped, .. } = request.0.target;
    match form {
        Form::Origin | Form::Absolute => Ok(routes.find(request.0.head.method, path, escaped, spans)),
        Form::Asterisk => Ok(Found::Options(routes.methods())),
        Form::Authority => Err(Reject::Connect),
    }
}

/// The path parameters: where they stand in the path, or, if they are escaped, decoded one behind the other.
#[inline]
pub(super) fn params<'w, S>(
    row: &Row<S>,
    target: &Target<'w>,
    spans: &'w mut Spans,
    decoded: &'w mut String,
) -> Params<'w> {
    if !target.escaped {
        return Params { text: target.path, spans };
    }
    decode_params(row.pattern, target.path, spans, decoded)
}

#[cold]
fn decode_params<'w>(pattern: &str, path: &str, spans: &'w mut Spans, decoded: &'w mut String) -> Params<'w> {
    let mut bytes = std::mem::take(decoded).into_bytes();
    bytes.clear();
    for (span, name) in spans.iter_mut().zip(pattern.split('{').skip(1)) {
        let raw = path.get(span.0 as usize..span.1 as usize).unwrap_or_default();
        let start = bytes.len() as u32;
        if name.starts_with('*') {
            // A decoded %2F could not be told from a slash.
            bytes.extend_from_slice(raw.as_bytes());
        } else {
            target::decode(raw, &mut bytes);
        }
        *span = (start, bytes.len() as u32);
    }
    // `target::read` refused paths that do not decode to UTF-8.
    *decoded = String::from_utf8(bytes).unwrap_or_default();
    Params { text: decoded, spans }
}

/// What a handler did to its connection.
pub(super) enum Wish {
    Stay,
    Close,
    Panicked,
    /// The answer comes later, for the ticket that was taken from the lane.
    Wait,
}

/// Calls the handler of a row. Whatever it does, there is one answer in the output afterwards.
#[inline(always)]
pub(super) fn run<S>(
    row: &Row<S>,
    call: Call<S>,
    request: Request<'_>,
    spans: &mut Spans,
    (padded, len): (&mut [u8], usize),
    facts: Facts,
    turn: &mut Turn<'_, S>,
) -> Wish {
    let Workspace {
        output,
        decoded,
        #[cfg(feature = "json")]
        tape,
        lane,
        ..
    } = &mut *turn.workspace;
    let params = params(row, request.0.target, spans, decoded);
    let mark = output.mark();
    let mut asked = Asked::Nothing;
    let outcome = caught(|| {
        let body = Body {
            padded,
            len,
            #[cfg(feature = "json")]
            tape,
        };
        let writer = Response::new(output, &mut asked, facts);
        call(Parts { request, params: &params, body, writer, lane: &mut *lane }, turn.state).err()
    });
    match outcome {
        Some(None) if asked == Asked::Nothing => Wish::Stay,
        Some(None) if asked == Asked::Later => Wish::Wait,
        Some(None) if asked == Asked::Close => Wish::Close,
        Some(None) => say_again(row.options.errors, asked, turn.state, output, mark, facts),
        Some(Some(rejection)) => {
            lane.void();
            output.roll_back(mark);
            write_rejection(row.options.errors, rejection, turn.state, output, facts)
        }
        None => {
            lane.void();
            output.roll_back(mark);
            write_refusal(row.options.errors, Reject::HandlerFailed, facts.head_only, turn.state, output);
            Wish::Panicked
        }
    }
}

/// Answers with a refusal, in the words of a mapper if there is one.
#[cold]
#[inline(never)]
fn write_rejection<S>(
    errors: Option<MapErrors<S>>,
    rejection: Rejection,
    state: &mut S,
    output: &mut Output,
    facts: Facts,
) -> Wish {
    // A status without content, as 304, leaves a mapper nothing to say.
    let Some(errors) = errors.filter(|_| rejection.status().has_content()) else {
        let _ = rejection.respond(Response::new(output, &mut Asked::Nothing, facts));
        return Wish::Stay;
    };
    match errors(state, rejection, Refusing { output, facts }) {
        Mapped::Answered => Wish::Stay,
        Mapped::Closing => Wish::Close,
        Mapped::Panicked => {
            write_refusal(None, Reject::HandlerFailed, facts.head_only, state, output);
            Wish::Panicked
        }
    }
}

/// If the handler's answer was itself a refusal, lets the mapper reword it.
#[cold]
#[inline(never)]
pub(super) fn say_again<S>(
    errors: Option<MapErrors<S>>,
    asked: Asked,
    state: &mut S,
    output: &mut Output,
    mark: Mark,
    facts: Facts,
) -> Wish {
    let source = output.source.take();
    let rejection = match asked {
        Asked::Rejected => source.and_then(|source| source.downcast().ok()).map(|rejection| *rejection),
        Asked::Refused(status, sentence) if errors.is_some() => Some(Rejection::text(status, sentence)),
        _ => None,
    };
    match (errors, rejection) {
        (Some(errors), Some(rejection)) => {
            output.roll_back(mark);
            write_rejection(Some(errors), rejection, state, output, facts)
        }
        _ => Wish::Stay,
    }
}

/// A final answer that names a rule.
#[cold]
#[inline(never)]
pub(super) fn write_refusal<S>(
    errors: Option<MapErrors<S>>,
    reject: Reject,
    head_only: bool,
    state: &mut S,
    output: &mut Output,
) {
    let facts = Facts { head_only, http10: false, persistent: false };
    write_rejection(errors, Rejection::from(reject), state, output, facts);
}

/// From here on, whatever answers the request carries its policy.
#[cold]
#[inline(never)]
pub(super) fn begin_cors(cors: &dyn CrossOrigin, request: Request<'_>, output: &mut Output) {
    output.set_common(|lines| cors.write(request, None, lines));
}

/// Whether all connections' bodies together exceed their bound, and this one is to be refused for it. A body that fits
/// in the read buffer never is, so holders of large bodies cannot block small ones.
#[cold]
pub(super) fn has_no_room_for<S>(len: usize, turn: &Turn<'_, S>) -> bool {
    len > READ_BUFFER_LEN && turn.workspace.pool.held_bytes() > turn.limits.bodies_bytes_max
}

/// A body that its answer does not wait for is skipped if that is cheap and certain, else the connection ends.
pub(super) fn unread(decision: &Decision, limits: &Limits) -> Unread {
    match decision.framing {
        Framing::NoBody | Framing::Length(0) => Unread::Nothing,
        // Told a final status, such a client may send the body or not: what comes next could be either.
        _ if decision.expects_continue => Unread::Close,
        Framing::Length(len) if len > limits.linger_bytes_max as u64 => Unread::Close,
        Framing::Length(len) => Unread::Length(len),
        Framing::Chunked => Unread::Chunked,
    }
}

impl Connection {
    #[inline(always)]
    pub(super) fn received<'h, S>(
        &self,
        head: &'h Head<'h>,
        known: &'h Known<'h>,
        target: &'h Target<'h>,
        decision: &Decision,
        turn: &Turn<'_, S>,
    ) -> Received<'h> {
        let (has_body, draining, now_ms) = (decision.has_body(), turn.workspace.draining, turn.now.0);
        Received { head, known, target, has_body, peer: self.peer, draining, now_ms }
    }

    #[inline]
    pub(super) fn facts<S>(&self, head: &Head<'_>, decision: &Decision, turn: &Turn<'_, S>) -> Facts {
        Facts {
            head_only: head.method == Method::Head,
            http10: head.version == Version::Http10,
            persistent: decision.persistent && !turn.workspace.closing,
        }
    }

    /// Answers without the body, and goes past it.
    #[inline]
    pub(super) fn answer_early<S>(
        &mut self,
        decision: &Decision,
        facts: Facts,
        received: usize,
        turn: &mut Turn<'_, S>,
        write: impl FnOnce(Response<'_>) -> Sent<'_>,
    ) -> Served {
        let unread = unread(decision, turn.limits);
        let facts = Facts { persistent: facts.persistent && unread != Unread::Close, ..facts };
        let mut asked = Asked::Nothing;
        let _ = write(Response::new(&mut turn.workspace.output, &mut asked, facts));
        let wish = if asked == Asked::Close { Wish::Close } else { Wish::Stay };
        self.finish(wish, facts, unread, turn);
        self.pass_over(unread, received, turn)
    }

    /// Answers with a refusal, without the body, and goes past it.
    #[cold]
    #[inline(never)]
    pub(super) fn reject_early<S>(
        &mut self,
        errors: Option<MapErrors<S>>,
        rejection: Rejection,
        decision: &Decision,
        facts: Facts,
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        let unread = unread(decision, turn.limits);
        let facts = Facts { persistent: facts.persistent && unread != Unread::Close, ..facts };
        let wish = write_rejection(errors, rejection, turn.state, &mut turn.workspace.output, facts);
        self.finish(wish, facts, unread, turn);
        self.pass_over(unread, received, turn)
    }

    /// Answers a request that no row is for.
    #[cold]
    #[inline(never)]
    pub(super) fn answer_missing<S>(
        &mut self,
        missing: Found<S>,
        request: Request<'_>,
        decision: &Decision,
        facts: Facts,
        received: usize,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        if !turn.routes.has_options() {
            // Without a mapper, a policy or an observer, the refusal needs no allocation.
            return self.answer_early(decision, facts, received, turn, |response| match missing {
                Found::Options(allow) => response.options(allow),
                Found::MethodNotAllowed(allow) => response.method_not_allowed(allow),
                _ => response.no_route(),
            });
        }
        let mark = turn.workspace.output.mark();
        let Target { path, escaped, .. } = request.0.target;
        let preflight = cors::preflighted(request);
        turn.workspace.output.set_common(|lines| {
            if let Some((cors, methods)) = turn.routes.cors(preflight.unwrap_or(request.method()), path, *escaped) {
                let is_preflight = preflight.is_some() && matches!(missing, Found::Options(_));
                cors.write(request, is_preflight.then_some(methods), lines);
            }
            // Here, for it stays whatever a mapper does: a 405 without it breaks a rule.
            if let Found::MethodNotAllowed(allow) = missing {
                response::write_methods("Allow", allow, lines);
            }
        });
        let rejection = match missing {
            Found::MethodNotAllowed(_) => Some(Rejection::text(Status::METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED)),
            Found::NotFound => Some(Rejection::text(Status::NOT_FOUND, NO_ROUTE)),
            Found::Options(_) | Found::Row(_) => None,
        };
        let served = match (rejection, missing) {
            (Some(rejection), _) => self.reject_early(turn.routes.errors(), rejection, decision, facts, received, turn),
            (None, Found::Options(allow)) => {
                self.answer_early(decision, facts, received, turn, |response| response.options(allow))
            }
            (None, _) => unreachable!("a row is missing that is there"),
        };
        turn.workspace.output.clear_common();
        self.observe_rowless(Some(request), mark, turn);
        served
    }

    #[cold]
    #[inline(never)]
    pub(super) fn answer_panic<S>(
        &mut self,
        errors: Option<MapErrors<S>>,
        facts: Facts,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        write_refusal(errors, Reject::HandlerFailed, facts.head_only, turn.state, &mut turn.workspace.output);
        self.finish(Wish::Panicked, facts, Unread::Close, turn);
        Served::Body(0)
    }

    /// The answer is written: on to the next request, or to the end.
    #[inline(always)]
    pub(super) fn finish<S>(&mut self, wish: Wish, facts: Facts, unread: Unread, turn: &mut Turn<'_, S>) {
        turn.workspace.requests += 1;
        self.served = true;
        self.since = turn.now;
        if let (Wish::Stay, true, Phase::Head { scanned, begun, empty_line }) =
            (&wish, facts.persistent, &mut self.phase)
        {
            // The same as the assignment below, which would also have to look for something to drop.
            (*scanned, *begun, *empty_line) = (0, false, false);
            return;
        }
        self.finish_unusual(wish, facts, unread, turn);
    }

    #[cold]
    fn finish_unusual<S>(&mut self, wish: Wish, facts: Facts, unread: Unread, turn: &mut Turn<'_, S>) {
        // The peer may still be sending, or has a long answer to take.
        let unsent_len = self.unsent_len() + turn.workspace.output.len();
        let linger = unread != Unread::Nothing || unsent_len > ANSWER_BYTES_AT_ONCE;
        self.phase = match wish {
            Wish::Stay if facts.persistent => BETWEEN,
            Wish::Stay if unread == Unread::Close => Phase::Closing { reason: CloseReason::BodyUnread, linger },
            Wish::Stay if turn.workspace.closing => Phase::Closing { reason: CloseReason::Drained, linger },
            Wish::Stay => Phase::Closing { reason: CloseReason::AskedByPeer, linger },
            Wish::Close => Phase::Closing { reason: CloseReason::AskedByHandler, linger },
            Wish::Panicked => {
                turn.workspace.panics += 1;
                Phase::Closing { reason: CloseReason::HandlerPanicked, linger: true }
            }
            Wish::Wait => match turn.workspace.lane.taken.take() {
                Some(ticket) => {
                    let has_say = |row: &&Row<S>| row.options.errors.is_some() || row.options.observe.is_some();
                    let row = turn.ran.filter(has_say).map(|row| turn.routes.number_of(row));
                    let common = turn.workspace.output.common();
                    Phase::Waiting(Box::new(Waiting { ticket, facts, unread, common, row, remembered: None }))
                }
                None => unreachable!("a handler waits without a ticket"),
            },
        };
    }

    /// Answers a message that broke a rule, and ends. Nothing behind it is looked at.
    #[cold]
    pub(super) fn refuse<S>(&mut self, reject: Reject, head_only: bool, turn: &mut Turn<'_, S>) {
        self.refuse_of(None, reject, head_only, turn);
    }

    /// As [`refuse`](Connection::refuse), where the request is known, though no row for it.
    #[cold]
    pub(super) fn refuse_of<S>(
        &mut self,
        request: Option<Request<'_>>,
        reject: Reject,
        head_only: bool,
        turn: &mut Turn<'_, S>,
    ) {
        let mark = turn.workspace.output.mark();
        self.refuse_by(turn.routes.errors(), reject, head_only, turn);
        self.observe_rowless(request, mark, turn);
    }

    #[cold]
    #[inline(never)]
    fn refuse_by<S>(&mut self, errors: Option<MapErrors<S>>, reject: Reject, head_only: bool, turn: &mut Turn<'_, S>) {
        write_refusal(errors, reject, head_only, turn.state, &mut turn.workspace.output);
        self.phase = Phase::Closing { reason: CloseReason::Rejected(reject), linger: true };
    }

    #[cold]
    pub(super) fn refused<S>(&mut self, reject: Reject, head_only: bool, turn: &mut Turn<'_, S>) -> Served {
        self.refuse(reject, head_only, turn);
        Served::Body(0)
    }

    #[cold]
    pub(super) fn refused_by<S>(
        &mut self,
        errors: Option<MapErrors<S>>,
        reject: Reject,
        head_only: bool,
        turn: &mut Turn<'_, S>,
    ) -> Served {
        self.refuse_by(errors, reject, head_only, turn);
        Served::Body(0)
    }

    /// The rest of a message did not come in time.
    #[cold]
    pub(super) fn refuse_late<S>(&mut self, reject: Reject, turn: &mut Turn<'_, S>) {
        let mut held = std::mem::take(&mut self.held);
        let filled = held.range();
        let window = &mut held.buffer()[filled];
        match &self.phase {
            Phase::Body(receiving) => self.refuse_body(reject, window, receiving.head_len, turn),
            _ => self.refuse_window(reject, window, turn),
        }
        held.recycle(&mut turn.workspace.pool);
    }

    /// Refuses a body. Its head was parsed and routed before, so its row is known.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_body<S>(
        &mut self,
        reject: Reject,
        window: &mut [u8],
        head_len: usize,
        turn: &mut Turn<'_, S>,
    ) {
        if !turn.routes.has_options() {
            return self.refuse_window(reject, window, turn);
        }
        let Phase::Body(receiving) = &self.phase else { return };
        let since = receiving.since;
        let head_bytes = window.get_mut(..head_len).unwrap_or_default();
        with_head(head_bytes, turn.limits, |parsed| {
            let Ok(Parsed { head, known, target, decision }) = parsed else { return };
            let asked = self.received(&head, &known, &target, &decision, turn);
            let request = Request(&asked);
            let Ok(Found::Row(row)) = find(request, &mut Spans::default(), turn.routes) else { return };
            if let Some(cors) = row.options.cors {
                begin_cors(cors(), request, &mut turn.workspace.output);
            }
            let mark = turn.workspace.output.mark();
            self.refuse_by(row.options.errors, reject, head.method == Method::Head, turn);
            turn.workspace.output.clear_common();
            self.observe_row(row, request, since, mark, turn);
        });
        if matches!(self.phase, Phase::Body(_)) {
            self.refuse_window(reject, window, turn);
        }
    }

    #[cold]
    pub(super) fn refuse_window<S>(&mut self, reject: Reject, window: &[u8], turn: &mut Turn<'_, S>) {
        self.refuse(reject, window.starts_with(b"HEAD "), turn);
    }
}

/// What is on its way as soon as it is sent, for it fits into the first window of TCP (RFC 6928). Of a longer last answer
/// the system may hold the rest for a while, and would drop it if the peer, be it only with an empty line, sent something
/// to a socket that is closed (RFC 9112 9.6). So such connections are closed in stages, which costs two more calls.
const ANSWER_BYTES_AT_ONCE: usize = 14 << 10;
