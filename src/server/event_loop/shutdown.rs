//! The end: announced, then closing, then over. No request that has arrived is lost by it.

use std::time::Duration;

use super::accept::ACCEPTS_PER_TURN;
use super::{EventLoop, tell};
use crate::connection::{CloseReason, Tick};
use crate::server::event::Event;
use crate::server::net::Net;

/// How far shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Serving,
    /// Handlers know; all goes on as before. From `parts` on answers close.
    Announced {
        parts: Tick,
        closes: Tick,
    },
    /// Nothing is accepted, and answers close. Connections that spoke a moment ago, or had no time to, have until `hush`.
    Closing {
        hush: Tick,
        ends: Tick,
    },
    Stopped,
}

/// At shutdown a connection that was accepted, or had its last answer, less long ago is not taken for idle: its next
/// request may be on its way, and many a client does not try again.
pub(super) const REQUEST_GRACE: Duration = Duration::from_millis(500);

/// The end of that time, once it is over.
pub(super) const HUSHED: Tick = Tick(u64::MAX);

impl<N: Net, S: 'static> EventLoop<N, S> {
    /// Handlers see it at once; the listener closes after the delay.
    pub(crate) fn shut_down(&mut self, delay: Duration) {
        let (parts, closes) = (self.now.after(delay / 2), self.now.after(delay));
        match self.stage {
            Stage::Serving => {
                self.workspace.draining = true;
                self.stage = Stage::Announced { parts, closes };
                if !delay.is_zero() {
                    tell(&mut self.hook, Event::Draining { open: self.stats.open });
                }
            }
            Stage::Announced { parts: parts_before, closes: closes_before } => {
                self.stage = Stage::Announced { parts: parts.min(parts_before), closes: closes.min(closes_before) };
            }
            Stage::Closing { .. } | Stage::Stopped => {}
        }
    }

    pub(super) fn go_on_shutting_down(&mut self) {
        if let Stage::Announced { parts, closes } = self.stage {
            self.workspace.closing |= self.now >= parts;
            if self.now >= closes {
                self.stop_listening();
            }
        }
        let Stage::Closing { hush, ends } = self.stage else { return };
        if self.now >= hush {
            self.stage = Stage::Closing { hush: HUSHED, ends };
            self.close_idle();
        }
        let mut aborted = 0;
        if self.now >= ends {
            for index in 0..self.slots.len() as u32 {
                if self.slots[index as usize].open.is_some() {
                    aborted += 1;
                    self.close(index, CloseReason::DrainTimeout);
                }
            }
        }
        if self.stats.open == 0 {
            self.stage = Stage::Stopped;
            // Nobody is left to answer, and who calls from another thread has to hear of it.
            self.workspace.lane.post.close();
            tell(&mut self.hook, Event::Stopped { aborted });
        }
    }

    fn stop_listening(&mut self) {
        self.workspace.closing = true;
        // Whoever the system has let in already would be reset: take them, up to the limit, as long as that works. Not for
        // ever: who comes and goes at once leaves its place free, and may come again.
        self.accept.pending = true;
        self.accept.paused_until = None;
        for _ in 0..self.accept.connections_max.div_ceil(ACCEPTS_PER_TURN) {
            if self.can_accept() {
                self.accept_waiting();
            }
        }
        self.accept.open = false;
        self.accept.paused_until = None;
        self.net.close_listener();
        self.stage =
            Stage::Closing { hush: self.now.after(REQUEST_GRACE), ends: self.now.after(self.limits.drain_timeout) };
        tell(&mut self.hook, Event::Closing { open: self.stats.open });
        self.close_idle();
    }

    /// Reads idle connections once more, so that a request that is there already gets its answer, and closes them.
    fn close_idle(&mut self) {
        for index in 0..self.slots.len() as u32 {
            let Some(open) = self.slots[index as usize].open.as_mut() else { continue };
            if open.connection.is_idle() && !open.queued {
                open.readable = true;
                open.parting = true;
                self.serve(index);
            } else if open.connection.is_waiting() {
                self.drive(index, |connection, turn| connection.handle_drain(turn));
            }
        }
    }
}
