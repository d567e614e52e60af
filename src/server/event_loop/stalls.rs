//! Who holds up the loop: the clock is read once a turn, so a long turn is laid to a row only if it served one request.

use std::time::Duration;

use super::{EventLoop, tell};
use crate::connection::Tick;
use crate::route::Row;
use crate::server::event::Event;
use crate::server::net::Net;

/// Who holds up the loop; see [`Server::stall_threshold`](super::Server::stall_threshold).
#[derive(Debug)]
pub(super) struct Stalls<S: 'static> {
    /// `u64::MAX`: nobody wants to know.
    pub(super) threshold_ms: u64,
    /// The last row that ran.
    pub(super) ran: Option<&'static Row<S>>,
    /// When time was last attributed to somebody, and the request count then.
    pub(super) since: Tick,
    pub(super) requests: u64,
    /// A second unattributable stall before this tick turns on a clock read per connection.
    pub(super) suspect_until: Tick,
    pub(super) watch_until: Tick,
    pub(super) watching: bool,
}

/// Two unattributable stalls within this time turn on a clock read per connection for as long.
const WATCH: Duration = Duration::from_secs(60);

impl<S: 'static> Stalls<S> {
    pub(super) fn new(threshold: Duration, now: Tick) -> Stalls<S> {
        Stalls {
            threshold_ms: whole_ms(threshold),
            ran: None,
            since: now,
            requests: 0,
            suspect_until: now,
            watch_until: now,
            watching: false,
        }
    }

    pub(super) fn set_threshold(&mut self, threshold: Duration) {
        self.threshold_ms = whole_ms(threshold);
    }
}

impl<N: Net, S: 'static> EventLoop<N, S> {
    /// Whether somebody held up the loop since the last look.
    pub(super) fn look_for_stall(&mut self) {
        let now = self.net.now();
        let stalls = &mut self.stalls;
        let since = std::mem::replace(&mut stalls.since, now);
        let requests = std::mem::replace(&mut stalls.requests, self.workspace.requests);
        let ran = stalls.ran.take();
        stalls.watching = now < stalls.watch_until;
        let took_ms = now.0.saturating_sub(since.0);
        if took_ms >= stalls.threshold_ms {
            let served = self.workspace.requests - requests;
            self.tell_stall(took_ms, ran.filter(|_| served <= 1));
        }
    }

    #[cold]
    fn tell_stall(&mut self, took_ms: u64, ran: Option<&'static Row<S>>) {
        let stalls = &mut self.stalls;
        if ran.is_none() {
            // One may be the machine's doing.
            if stalls.since < stalls.suspect_until {
                stalls.watch_until = stalls.since.after(WATCH);
                stalls.watching = true;
            }
            stalls.suspect_until = stalls.since.after(WATCH);
        }
        self.stats.stalls += 1;
        let route = ran.map(|row| (row.method, row.pattern));
        tell(&mut self.hook, Event::Stalled { route, took: Duration::from_millis(took_ms) });
    }
}

/// Milliseconds, and those begun.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
