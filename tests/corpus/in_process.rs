//! Plays a case against a connection in the same process: no socket, no thread, no waiting.

use std::time::SystemTime;

use super::case::Case;
use super::conversation::{Conversation, Gate, Heard, PROBE, is_probe_due};
use super::judge::judge;

/// The client's end of one connection whose server does at once all it can do with the bytes it has.
pub trait Peer {
    fn send(&mut self, bytes: &[u8]);
    /// The client will send no more, but still reads.
    fn close_write(&mut self);
    /// All that the server has sent so far.
    fn received(&self) -> &[u8];
    /// The client reads an end of the stream after `received`. So a server that has closed its write side and
    /// merely discards what still comes in counts as closed.
    fn is_closed(&self) -> bool;
    /// The server's clock, in seconds since 1970; a peer with a simulated clock says what that one shows.
    fn unix_now(&self) -> u64 {
        SystemTime::UNIX_EPOCH.elapsed().expect("we live after 1970").as_secs()
    }
}

/// How the bytes of a case are cut. Besides, every way cuts where the client waits for an interim answer.
#[derive(Clone, Copy)]
pub enum Pieces<'a> {
    Whole,
    ByteByByte,
    /// At these offsets, in ascending order.
    CutAt(&'a [usize]),
}

/// Plays a case in one piece and judges it.
pub fn check_whole<P: Peer>(case: &Case, mut peer: P) -> Result<(), String> {
    judge(case, &run_split(case, &mut peer, Pieces::Whole))
}

/// Plays a case on a fresh peer.
pub fn run_split<'p, P: Peer>(case: &Case, peer: &'p mut P, pieces: Pieces<'_>) -> Conversation<'p> {
    let gate_at = case.await_interim.unwrap_or(case.bytes.len());
    send_cut(&case.bytes, 0, gate_at, peer, pieces);
    let gate = match case.await_interim {
        None => Gate::None,
        Some(_) => Gate::seen(case, Heard { received: peer.received(), closed: peer.is_closed() }),
    };
    if gate == Gate::Opened {
        send_cut(&case.bytes, gate_at, case.bytes.len(), peer, pieces);
    }
    if case.half_close && gate != Gate::Withheld && !peer.is_closed() {
        peer.close_write();
    }

    let first_len = peer.received().len();
    let first_closed = peer.is_closed();
    let is_probed = !first_closed && is_probe_due(case, gate);
    if is_probed {
        peer.send(PROBE);
    }
    let unix_now = peer.unix_now();
    let closed = peer.is_closed();
    let (first, rest) = peer.received().split_at(first_len);
    Conversation {
        first: Heard { received: first, closed: first_closed },
        probe: is_probed.then_some(Heard { received: rest, closed }),
        gate,
        stuck: false,
        unix_now,
    }
}

/// Sends the bytes from `start` to `end`, except those that would only meet a closed connection.
fn send_cut<P: Peer>(bytes: &[u8], start: usize, end: usize, peer: &mut P, pieces: Pieces<'_>) {
    let mut sent = start;
    let mut send_up_to = |offset: usize| {
        if sent < offset && !peer.is_closed() {
            peer.send(&bytes[sent..offset]);
            sent = offset;
        }
    };
    match pieces {
        Pieces::Whole => {}
        Pieces::ByteByByte => (start + 1..end).for_each(&mut send_up_to),
        Pieces::CutAt(offsets) => offsets.iter().copied().filter(|&at| at < end).for_each(&mut send_up_to),
    }
    send_up_to(end);
}
