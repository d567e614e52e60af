//! Connections begin: how many at a time, and what is done when there is no place, no descriptor and no memory.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::{EventLoop, Open, Slot, tell};
use crate::connection::{CloseReason, Connection, Tick};
use crate::server::event::Event;
use crate::server::net::{Net, is_about_one_connection};

#[derive(Debug)]
pub(super) struct Accept {
    pub(super) open: bool,
    /// The listener was not emptied since its last event.
    pub(super) pending: bool,
    pub(super) connections_max: usize,
    pub(super) paused_until: Option<Tick>,
    /// When it was last told that nothing can be accepted.
    pub(super) told: Option<Tick>,
}

impl Accept {
    pub(super) fn new(connections_max: usize) -> Accept {
        Accept { open: true, pending: false, connections_max, paused_until: None, told: None }
    }

    /// Whether it was not told a moment ago already that nothing can be accepted.
    fn is_news(&mut self, now: Tick) -> bool {
        let is_news = self.told.is_none_or(|told| now >= told.after(TOLD_AGAIN_AFTER));
        if is_news {
            self.told = Some(now);
        }
        is_news
    }
}

/// Connections accepted in a turn, before the open ones have theirs.
pub(super) const ACCEPTS_PER_TURN: usize = 64;

/// How long accepting pauses when descriptors, memory or places ran out, unless a connection closes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// So long after its last answer, or after accept, nobody takes the place of an idle connection.
const PLACE_KEPT: Duration = Duration::from_secs(1);

/// How many slots one search for the longest-idle connection looks at.
const IDLE_LOOKS: usize = 64;
/// How many searches there are at most, since the one that is found can turn out to be busy.
const IDLE_TRIES: usize = 4;

/// At least so long between two events that tell the same.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl<N: Net, S: 'static> EventLoop<N, S> {
    pub(super) fn can_accept(&self) -> bool {
        let accept = &self.accept;
        accept.pending && accept.open && accept.paused_until.is_none() && self.stats.open < accept.connections_max
    }

    pub(super) fn accept_waiting(&mut self) {
        if !self.accept.open {
            return;
        }
        if self.accept.paused_until.is_some_and(|until| self.now < until) {
            return;
        }
        self.accept.paused_until = None;
        let mut accepted = 0;
        for _ in 0..ACCEPTS_PER_TURN {
            let idle = self.find_idle();
            if idle.is_none() && self.is_full() {
                return self.tell_full();
            }
            match self.net.accept() {
                Ok((socket, peer)) => {
                    accepted += 1;
                    if let Some(index) = idle {
                        self.close(index, CloseReason::PlaceNeeded);
                    }
                    self.add(socket, peer);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accept.pending = false;
                    return;
                }
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => return self.pause_accepting(&error),
            }
        }
        if accepted == 0 {
            // All of them failed: whatever it is, another try at once would be a spin.
            self.accept.paused_until = Some(self.now.after(ACCEPT_PAUSE));
        }
    }

    fn is_full(&self) -> bool {
        self.stats.open >= self.accept.connections_max
    }

    /// Where all places are taken, somebody who has been idle for a while, and longer than some others: who waits to be
    /// accepted can have its place. It was read once more, so no request of its own is lost that was there already.
    fn find_idle(&mut self) -> Option<u32> {
        let idle_since = |slots: &[Slot<N::Socket>], index: usize| {
            slots[index].open.as_ref().filter(|open| !open.queued)?.connection.idle_since()
        };
        let mut tries = 0..IDLE_TRIES;
        // Who is read once more may close.
        while self.is_full() && tries.next().is_some() {
            let looked_at = self.next_look..self.next_look + self.slots.len().min(IDLE_LOOKS);
            let idle = looked_at.clone().map(|at| at % self.slots.len());
            let longest = idle.filter_map(|index| Some((idle_since(&self.slots, index)?, index))).min();
            let Some((since, index)) = longest.filter(|(since, _)| self.now >= since.after(PLACE_KEPT)) else {
                // The next search looks at others.
                self.next_look = looked_at.end % self.slots.len().max(1);
                return None;
            };
            if let Some(open) = &mut self.slots[index].open {
                open.readable = true;
            }
            self.serve(index as u32);
            if idle_since(&self.slots, index) == Some(since) {
                return Some(index as u32);
            }
        }
        None
    }

    fn add(&mut self, socket: N::Socket, peer: Option<SocketAddr>) {
        let behind_proxy = self.trusted.holds(peer.map(|peer| peer.ip()));
        let connect = if behind_proxy { Connection::behind_proxy } else { Connection::new };
        let open = Open {
            connection: connect(peer, self.now),
            socket,
            // Its request is often there already.
            readable: true,
            writable: false,
            read_closed: false,
            registered: false,
            watches_writable: false,
            queued: false,
            parting: false,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize].open = Some(open);
                index
            }
            None => {
                // `Limits::check` keeps connections far below the range of an index.
                let index = self.slots.len() as u32;
                self.slots.push(Slot { generation: 0, open: Some(open) });
                self.timers.grow(index);
                index
            }
        };
        self.stats.accepted += 1;
        self.stats.open += 1;
        self.serve(index);
    }

    #[cold]
    fn tell_full(&mut self) {
        // Somebody may be idle for long enough by then.
        self.accept.paused_until = Some(self.now.after(ACCEPT_PAUSE));
        if self.accept.is_news(self.now) {
            tell(&mut self.hook, Event::Full { open: self.stats.open });
        }
    }

    #[cold]
    fn pause_accepting(&mut self, error: &io::Error) {
        self.accept.paused_until = Some(self.now.after(ACCEPT_PAUSE));
        self.stats.accept_pauses += 1;
        if self.accept.is_news(self.now) {
            tell(&mut self.hook, Event::AcceptPaused { error });
        }
    }
}
