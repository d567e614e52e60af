//! Tells a table's observer what was answered.

use super::answer::{Parsed, with_head};
use super::{Connection, Phase, Tick, Turn};
use crate::caught::caught;
use crate::exchange::{Exchange, Observe};
use crate::output::Mark;
use crate::request::Request;
use crate::route::Row;

/// What an observer is to be told of a request that is answered later.
#[derive(Debug)]
pub(super) struct Remembered {
    head: Box<[u8]>,
    since: Tick,
}

impl Remembered {
    pub(super) fn held_bytes(&self) -> usize {
        self.head.len()
    }
}

impl Connection {
    /// The request of this row was answered, with what stands in the output since `mark`; or it will be, later.
    #[cold]
    #[inline(never)]
    pub(super) fn observe_row<S>(
        &mut self,
        row: &Row<S>,
        request: Request<'_>,
        since: Tick,
        mark: Mark,
        turn: &mut Turn<'_, S>,
    ) {
        if let Phase::Waiting(waiting) = &mut self.phase {
            if row.options.observe.is_some() {
                waiting.remembered = Some(Remembered { head: request.0.head.to_bytes().into(), since });
            }
            return;
        }
        self.observe(row.options.observe, Some(request), Some(row.pattern), since, mark, turn);
    }

    /// As [`observe_row`](Connection::observe_row), for a request that waited for its answer, or for the head of one.
    #[cold]
    pub(super) fn observe_late<S>(&mut self, mark: Mark, turn: &mut Turn<'_, S>) {
        let Phase::Waiting(waiting) = &mut self.phase else { return };
        let Some((Remembered { mut head, since }, row)) = waiting.remembered.take().zip(waiting.row) else { return };
        let Some(row) = turn.routes.row(row) else { return };
        with_head(&mut head, turn.limits, |parsed| {
            let Ok(Parsed { head, known, target, decision }) = parsed else { return };
            let asked = self.received(&head, &known, &target, &decision, turn);
            self.observe(row.options.observe, Some(Request(&asked)), Some(row.pattern), since, mark, turn);
        });
    }

    /// A message without a row was answered.
    #[cold]
    pub(super) fn observe_rowless<S>(&mut self, request: Option<Request<'_>>, mark: Mark, turn: &mut Turn<'_, S>) {
        self.observe(turn.routes.observer(), request, None, turn.now, mark, turn);
    }

    fn observe<S>(
        &self,
        observe: Option<Observe<S>>,
        request: Option<Request<'_>>,
        route: Option<&'static str>,
        since: Tick,
        mark: Mark,
        turn: &mut Turn<'_, S>,
    ) {
        let Some(observe) = observe else { return };
        let Some((status, len)) = turn.workspace.output.written_since(mark) else { return };
        let exchange = Exchange { request, route, status, len, peer: self.peer, waited: turn.now.since(since) };
        let state = &mut *turn.state;
        if caught(|| observe(state, &exchange)).is_none() {
            // The answer is out, and is none the worse for it.
            turn.workspace.panics += 1;
        }
    }
}
