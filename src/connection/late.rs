//! Answers that are made elsewhere: the letters of a ticket, and streams.

use std::any::Any;

use super::answer::{Wish, say_again, write_refusal};
use super::{BETWEEN, CloseReason, Connection, Phase, Streaming, Turn};
use crate::caught::{caught, discard};
use crate::later::{Answer as LateAnswer, Content};
use crate::limits::Limits;
use crate::output::{Borrowed, COPY_BYTES_MAX};
use crate::reject::Reject;
use crate::rejection::Rejection;
use crate::response::{Asked, Facts, Respond, Response, Sent};
use crate::status::Status;
use crate::stream::{Part, StreamHead};

impl Connection {
    /// A letter came for the ticket of this number.
    #[cold]
    pub(crate) fn handle_letter<S>(&mut self, number: u64, content: Content, turn: &mut Turn<'_, S>) {
        match &self.phase {
            Phase::Waiting(waiting) if waiting.ticket.number == number => {}
            Phase::Streaming(streaming) if streaming.waiting.ticket.number == number => {}
            _ => return discard(content),
        }
        match content {
            Content::Answer(answer) => self.answer_late(turn, answer),
            Content::Call(call) => {
                let state: &mut dyn Any = turn.state;
                // The right to answer is dropped with it, most often, and a letter that counts the panic follows.
                if caught(|| call(state)).is_none() && !turn.workspace.lane.post.holds_panic_of(number) {
                    turn.workspace.panics += 1;
                }
            }
            Content::Begin(head) => self.begin_stream(*head, turn),
            Content::Part(part) => {
                if let Phase::Streaming(streaming) = &mut self.phase {
                    streaming.counted += part.len();
                }
                self.write_part(part, turn);
            }
            Content::End => self.end_stream(turn),
            // Its beginning came before it.
            Content::Abort => {
                self.phase = Phase::Closing { reason: CloseReason::StreamAborted, linger: false };
            }
            Content::TooSlow => self.phase = Phase::Closed(CloseReason::StreamTooSlow),
            Content::Dropped { panicking } => {
                turn.workspace.panics += u64::from(panicking);
                self.answer_late(turn, Box::new(|_, response| Reject::HandlerFailed.respond(response)));
            }
            Content::Busy => {
                turn.workspace.refused_work += 1;
                self.answer_late(turn, Box::new(|_, response| busy(response)));
            }
        }
    }

    /// The peer sends no more, and what it sent is not read while its answer is made elsewhere.
    #[cold]
    pub(crate) fn handle_hangup(&mut self, limits: &Limits) {
        if self.is_waiting() && !limits.answer_half_closed {
            self.phase = Phase::Closed(CloseReason::PeerLeft);
        }
    }

    /// The server shuts down: streams that have no end of their own end.
    #[cold]
    pub(crate) fn handle_drain<S>(&mut self, turn: &mut Turn<'_, S>) {
        if matches!(&self.phase, Phase::Streaming(streaming) if streaming.keep_alive.is_some()) {
            self.end_stream(turn);
        }
    }

    /// Answers the request that waits, and goes on with what came behind it.
    #[cold]
    pub(super) fn answer_late<S>(&mut self, turn: &mut Turn<'_, S>, answer: LateAnswer) {
        let Phase::Waiting(waiting) = &self.phase else { return discard(answer) };
        let facts = Facts { persistent: waiting.facts.persistent && !turn.workspace.closing, ..waiting.facts };
        let errors = waiting.row.and_then(|row| turn.routes.errors_of(row));
        let output = &mut turn.workspace.output;
        output.set_common(|lines| lines.extend_from_slice(&waiting.common));
        let mark = output.mark();
        let mut asked = Asked::Nothing;
        let state: &mut dyn Any = turn.state;
        let outcome = caught(|| {
            let _ = answer(state, Response::new(output, &mut asked, facts));
        });
        let wish = match outcome {
            Some(()) if asked == Asked::Close => Wish::Close,
            Some(()) => say_again(errors, asked, turn.state, &mut turn.workspace.output, mark, facts),
            None => {
                let output = &mut turn.workspace.output;
                output.roll_back(mark);
                write_refusal(errors, Reject::HandlerFailed, facts.head_only, turn.state, output);
                Wish::Panicked
            }
        };
        turn.workspace.output.clear_common();
        self.observe_late(mark, turn);
        self.finish_late(wish, facts, turn);
    }

    fn finish_late<S>(&mut self, wish: Wish, facts: Facts, turn: &mut Turn<'_, S>) {
        let unread = match &self.phase {
            Phase::Waiting(waiting) => waiting.unread,
            Phase::Streaming(streaming) => streaming.waiting.unread,
            _ => return,
        };
        self.phase = BETWEEN;
        self.finish(wish, facts, unread, turn);
        // It was counted when its handler ran.
        turn.workspace.requests -= 1;
        let _ = self.pass_over(unread, 0, turn);
        self.serve_held(0, turn);
    }

    #[cold]
    fn begin_stream<S>(&mut self, head: StreamHead, turn: &mut Turn<'_, S>) {
        let Phase::Waiting(waiting) = &mut self.phase else { return };
        let facts = &mut waiting.facts;
        facts.persistent &= !turn.workspace.closing && !facts.http10;
        let facts = *facts;
        turn.workspace.output.set_common(|lines| lines.extend_from_slice(&waiting.common));
        let errors = waiting.row.and_then(|row| turn.routes.errors_of(row));
        let output = &mut turn.workspace.output;
        let (mark, mut asked) = (output.mark(), Asked::Nothing);
        let written = head.write(Response::new(output, &mut asked, facts)).is_ok();
        let wish = match written {
            true => Wish::Stay,
            false => say_again(errors, asked, turn.state, output, mark, facts),
        };
        turn.workspace.output.clear_common();
        self.observe_late(mark, turn);
        if !written || facts.head_only {
            return self.finish_late(wish, facts, turn);
        }
        self.since = turn.now;
        if let Phase::Waiting(waiting) = std::mem::replace(&mut self.phase, BETWEEN) {
            let streaming = Streaming { waiting: *waiting, keep_alive: head.keep_alive, counted: 0 };
            self.phase = Phase::Streaming(Box::new(streaming));
        }
    }

    #[cold]
    pub(super) fn write_part<S>(&mut self, part: Part, turn: &mut Turn<'_, S>) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        self.since = turn.now;
        // An empty chunk would be the last.
        if part.is_empty() {
            return;
        }
        let chunked = !streaming.waiting.facts.http10;
        let output = &mut turn.workspace.output;
        match part {
            Part::Framed(bytes, _) if chunked && bytes.len() > SHARED_BYTES_MIN => {
                output.push_borrowed(Borrowed::Shared(bytes));
            }
            Part::Framed(bytes, _) if chunked => output.bytes.extend_from_slice(&bytes),
            Part::Framed(bytes, content) => output.bytes.extend_from_slice(bytes.get(content).unwrap_or_default()),
            Part::Owned(bytes) => {
                if chunked && planted!("later") {
                    output.bytes.extend_from_slice(format!("{}\r\n", bytes.len()).as_bytes());
                } else if chunked {
                    output.bytes.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
                }
                if bytes.len() > COPY_BYTES_MAX {
                    output.push_borrowed(Borrowed::Owned(bytes));
                } else {
                    output.bytes.extend_from_slice(&bytes);
                }
                if chunked {
                    output.bytes.extend_from_slice(b"\r\n");
                }
            }
        }
    }

    /// Tells the producer of a stream what the peer has not taken.
    #[cold]
    pub(super) fn recount(&mut self) {
        let unsent = self.unsent_len();
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        let counted = std::mem::replace(&mut streaming.counted, unsent);
        streaming.waiting.ticket.recount(counted, unsent);
    }

    #[cold]
    fn end_stream<S>(&mut self, turn: &mut Turn<'_, S>) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        let facts = streaming.waiting.facts;
        if !facts.http10 {
            turn.workspace.output.bytes.extend_from_slice(b"0\r\n\r\n");
        }
        // Keep-alive even if shutdown began meanwhile: the head already promised it, and pipelined requests would be
        // lost. The connection is now idle and closes as such.
        self.finish_late(Wish::Stay, facts, turn);
    }
}

/// A shared part up to this size is copied for each peer: that costs less than a segment of its own.
const SHARED_BYTES_MIN: usize = 512;

/// What an event stream says while there is nothing to say.
pub(super) const KEEP_ALIVE_COMMENT: &[u8] = b":\n\n";

/// There is no room for more work.
fn busy(response: Response<'_>) -> Sent<'_> {
    Rejection::text(Status::SERVICE_UNAVAILABLE, "the server has more work than it can do at the moment")
        .field("Retry-After", "1")
        .respond(response)
}
