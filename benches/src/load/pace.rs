//! The open loop's schedule, and how to sleep until its next moment.

use std::time::Duration;

use mio::Registry;
use rustix::event::{PollFd, PollFlags, Timespec};

/// Planned moments, in nanoseconds since the run began.
///
/// A moment that has passed without a free connection stays planned: the schedule never waits for the server.
#[derive(Debug)]
pub struct Schedule {
    interval: f64,
    poisson: bool,
    next: f64,
    random: Random,
}

impl Schedule {
    /// `rate` requests a second from `start` on.
    pub fn new(rate: f64, poisson: bool, start: u64) -> Schedule {
        assert!(rate > 0.0, "a rate above zero");
        Schedule { interval: 1e9 / rate, poisson, next: start as f64, random: Random(0x9e37_79b9_7f4a_7c15) }
    }

    /// The next planned moment.
    pub fn next(&self) -> u64 {
        self.next as u64
    }

    /// Takes it and plans the one after it.
    pub fn take(&mut self) -> u64 {
        let planned = self.next();
        self.next += if self.poisson { -self.random.unit().ln() * self.interval } else { self.interval };
        planned
    }
}

/// xorshift64*: the same random moments in every run.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Above 0, at most 1.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

/// Sleeps until an event waits or this long has passed, to the microsecond: mio's own timeout has milliseconds.
pub fn sleep(registry: &Registry, time: Duration) {
    let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // An epoll descriptor is itself readable while it has events. An interrupted sleep is only a short one.
    let _ = rustix::event::poll(&mut [PollFd::new(registry, PollFlags::IN)], Some(&timeout));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_moments_do_not_drift() {
        let mut schedule = Schedule::new(30_000.0, false, 5);
        let last = (0..=30_000).map(|_| schedule.take()).last();
        assert!(last.is_some_and(|last| last.abs_diff(1_000_000_005) < 1_000), "{last:?}");
    }

    #[test]
    fn random_moments_keep_the_rate_and_differ() {
        let mut schedule = Schedule::new(1_000.0, true, 0);
        let moments: Vec<u64> = (0..20_000).map(|_| schedule.take()).collect();
        assert!(moments.is_sorted());
        let seconds = moments[19_999] as f64 / 1e9;
        assert!((19.0..21.0).contains(&seconds), "{seconds}");
    }
}
