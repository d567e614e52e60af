//! What simulations and tests see of the loop between two turns.

use super::{EventLoop, Open};
use crate::connection::{Connection, Tick};
use crate::server::net::Net;
use crate::server::timers::Bucket;

/// What a simulator sees of a connection between two turns.
#[derive(Debug)]
pub(crate) struct View<'e, K> {
    pub(crate) socket: &'e K,
    pub(crate) connection: &'e Connection,
    pub(crate) readable: bool,
    /// It has its turn next time, without an event.
    pub(crate) queued: bool,
    pub(crate) has_timer: bool,
}

impl<N: Net, S: 'static> EventLoop<N, S> {
    pub(crate) fn views(&self) -> impl Iterator<Item = View<'_, N::Socket>> {
        self.slots.iter().zip(0..).filter_map(|(slot, index)| {
            let Open { connection, socket, readable, queued, .. } = slot.open.as_ref()?;
            // One that is overdue waits for the next bucket.
            let due = |at: Tick| Bucket::of(at.max(Tick(self.now.0 + 1)));
            let has_timer = connection.deadline(&self.limits).is_none_or(|at| self.timers.bucket(index) <= due(at));
            Some(View { socket, connection, readable: *readable, queued: *queued, has_timer })
        })
    }

    /// Whether the next turn has letters to hand out.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn has_letters(&self) -> bool {
        self.workspace.lane.post.has_letters()
    }

    /// Gives letters and work up, as at the end of the loop, and counts the tickets that somebody still has.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn tickets_left(&self) -> usize {
        let post = &self.workspace.lane.post;
        post.close();
        std::sync::Arc::strong_count(post) - 1
    }

    /// Whether the books balance: slots, buffers, timers.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let open = self.slots.iter().filter(|slot| slot.open.is_some()).count();
        let free = self.free.len() + self.freed.len();
        let held: usize = self.views().map(|view| view.connection.input_capacity()).sum();
        if open != self.stats.open || open + free != self.slots.len() {
            return Err(format!("{open} of {} slots are open, {free} free", self.slots.len()));
        }
        if held != self.workspace.pool.held_bytes() {
            return Err(format!("{held} bytes are held, {} counted", self.workspace.pool.held_bytes()));
        }
        if !self.workspace.output.is_empty() {
            return Err("output was left behind for whoever comes next".to_owned());
        }
        if self.timers.linked() > open {
            return Err(format!("{} timers for {open} connections", self.timers.linked()));
        }
        Ok(())
    }
}
