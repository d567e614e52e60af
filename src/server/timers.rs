//! One timer for each slot, without work for each request: a hashed wheel of doubly linked lists over slot indices.
//!
//! ```text
//!   heads[bucket % BUCKETS] -> slot -> slot -> slot        links[slot] = { bucket, next, previous }
//! ```
//!
//! A slot sits in the bucket of a moment that is no later than its deadline. Activity that puts the deadline off moves
//! nothing: when the bucket is due, the owner of the slot looks at the real deadline and inserts it again. Only a
//! deadline that comes closer than the bucket is a reason to move. Timers are never early, and late by less than
//! [`BUCKET_MS`]. Does not know what a deadline is for, and asks no clock.

use crate::connection::Tick;

/// The width of a bucket.
pub(crate) const BUCKET_MS: u64 = 256;

/// With [`BUCKET_MS`], how far the wheel reaches: 131 s. A later deadline waits in the farthest bucket and goes on.
const BUCKETS: usize = 512;

/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

/// The number of a bucket since the start of the clock; not its place in the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(u64);

impl Bucket {
    /// Later than all others: where a slot is that has no timer.
    const NEVER: Bucket = Bucket(u64::MAX);

    /// The first bucket that is due no earlier than this moment.
    #[inline]
    pub(crate) fn of(deadline: Tick) -> Bucket {
        Bucket(deadline.0.div_ceil(BUCKET_MS))
    }

    fn due(self) -> Tick {
        Tick(self.0.saturating_mul(BUCKET_MS))
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    bucket: Bucket,
    next: u32,
    previous: u32,
}

const UNLINKED: Link = Link { bucket: Bucket::NEVER, next: NONE, previous: NONE };

/// See the module.
///
/// INVARIANT: every linked slot has `front <= bucket < front + BUCKETS`; `earliest` is no later than any of them.
#[derive(Debug)]
pub(crate) struct Timers {
    heads: Box<[u32]>,
    links: Vec<Link>,
    /// The first bucket that may still hold timers.
    front: u64,
    earliest: u64,
    linked: usize,
}

impl Timers {
    pub(crate) fn new(now: Tick) -> Timers {
        Timers {
            heads: vec![NONE; BUCKETS].into_boxed_slice(),
            links: Vec::new(),
            front: now.0 / BUCKET_MS,
            earliest: u64::MAX,
            linked: 0,
        }
    }

    /// Makes room for slots up to this one.
    pub(crate) fn grow(&mut self, slot: u32) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, UNLINKED);
        }
    }

    /// Where a slot sits.
    #[inline]
    pub(crate) fn bucket(&self, slot: u32) -> Bucket {
        self.links[slot as usize].bucket
    }

    /// Puts a slot into the bucket of a deadline, wherever it sat before.
    pub(crate) fn set(&mut self, slot: u32, deadline: Tick, now: Tick) {
        self.remove(slot);
        self.front = self.front.max((now.0 / BUCKET_MS).min(self.earliest));
        let bucket = Bucket::of(deadline).0.clamp(self.front, self.front + BUCKETS as u64 - 1);
        let head = &mut self.heads[bucket as usize % BUCKETS];
        self.links[slot as usize] = Link { bucket: Bucket(bucket), next: *head, previous: NONE };
        let next = std::mem::replace(head, slot);
        if next != NONE {
            self.links[next as usize].previous = slot;
        }
        self.earliest = self.earliest.min(bucket);
        self.linked += 1;
    }

    /// Takes the timer away from a slot, if it has one.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Link { bucket, next, previous } = std::mem::replace(&mut self.links[slot as usize], UNLINKED);
        if bucket == Bucket::NEVER {
            return;
        }
        match previous {
            NONE => self.heads[bucket.0 as usize % BUCKETS] = next,
            previous => self.links[previous as usize].next = next,
        }
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
        self.linked -= 1;
        if self.linked == 0 {
            self.earliest = u64::MAX;
        }
    }

    /// Takes out a slot whose bucket is due. The caller looks at its deadline, and sets it again if that is later.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<u32> {
        if now < Bucket(self.earliest).due() {
            return None;
        }
        self.pop(now.0 / BUCKET_MS)
    }

    fn pop(&mut self, due: u64) -> Option<u32> {
        while self.linked > 0 && self.front <= due {
            match self.heads[self.front as usize % BUCKETS] {
                NONE => self.front += 1,
                slot => {
                    self.remove(slot);
                    return Some(slot);
                }
            }
        }
        self.front = self.front.max(due + 1);
        self.earliest = (self.front..self.front + BUCKETS as u64)
            .find(|bucket| self.heads[*bucket as usize % BUCKETS] != NONE)
            .unwrap_or(u64::MAX);
        None
    }

    /// How many slots have a timer.
    pub(crate) fn linked(&self) -> usize {
        self.linked
    }

    /// When the next bucket is due. May be too early after a [`remove`](Timers::remove), never too late.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Tick> {
        (self.earliest != u64::MAX).then(|| Bucket(self.earliest).due())
    }
}

const _: () = assert!(BUCKETS.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn below_any(random: &mut Random, bounds: [u64; 4]) -> u64 {
        let bound = *random.pick(&bounds);
        random.below(bound)
    }

    /// Fires what is due as a loop would: what pops too early goes in again.
    fn fire(timers: &mut Timers, now: Tick, deadlines: &mut [Option<Tick>]) -> Vec<u32> {
        let mut fired = Vec::new();
        while let Some(slot) = timers.pop_due(now) {
            match deadlines[slot as usize] {
                Some(deadline) if deadline <= now => {
                    deadlines[slot as usize] = None;
                    fired.push(slot);
                }
                Some(deadline) => timers.set(slot, deadline, now),
                None => panic!("slot {slot} fired without a deadline"),
            }
        }
        fired.sort_unstable();
        fired
    }

    #[test]
    fn a_timer_fires_never_early_and_late_by_less_than_a_bucket() {
        for deadline in [0, 1, 255, 256, 257, 5_000, 131_071, 131_072, 500_000] {
            let mut timers = Timers::new(Tick(0));
            timers.grow(0);
            timers.set(0, Tick(deadline), Tick(0));
            let mut deadlines = [Some(Tick(deadline))];
            let mut now = 0;
            while deadlines[0].is_some() {
                now = timers.next_due().expect("a timer is set").0.max(now);
                fire(&mut timers, Tick(now), &mut deadlines);
            }
            assert!((deadline..deadline + BUCKET_MS).contains(&now), "{deadline} fired at {now}");
            assert_eq!(timers.next_due(), None);
        }
    }

    #[test]
    fn without_timers_there_is_nothing_to_wake_up_for() {
        let mut timers = Timers::new(Tick(0));
        timers.grow(3);
        timers.set(3, Tick(1000), Tick(0));
        timers.remove(3);
        timers.remove(3);
        assert_eq!(timers.next_due(), None);
        assert_eq!(timers.pop_due(Tick(1 << 40)), None);
        timers.set(3, Tick((1 << 40) + 1000), Tick(1 << 40));
        assert_eq!(timers.pop_due(Tick((1 << 40) + 999)), None);
        assert_eq!(timers.pop_due(Tick((1 << 40) + 1000 + BUCKET_MS)), Some(3));
    }

    #[test]
    fn a_hundred_thousand_timers_fire_in_their_buckets() {
        const COUNT: u32 = 100_000;
        let mut random = Random::new(7);
        let mut timers = Timers::new(Tick(0));
        timers.grow(COUNT - 1);
        let mut deadlines: Vec<_> = (0..COUNT).map(|_| Some(Tick(random.below(400_000)))).collect();
        for (slot, deadline) in deadlines.iter().enumerate() {
            timers.set(slot as u32, deadline.expect("all are set"), Tick(0));
        }
        let (mut before, mut fired) = (deadlines.clone(), 0);
        while let Some(now) = timers.next_due() {
            for slot in fire(&mut timers, now, &mut deadlines) {
                let deadline = before[slot as usize].take().expect("it fires once");
                assert!(deadline <= now && now.0 < deadline.0 + BUCKET_MS);
                fired += 1;
            }
        }
        assert_eq!(fired, COUNT);
    }

    /// Random sets, removals, deadlines put off without a call, and jumps of the clock, against a plain list.
    #[test]
    fn the_wheel_agrees_with_a_list() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let slots = random.between(1, 40) as u32;
            let mut now = random.below(1 << 30);
            let mut timers = Timers::new(Tick(now));
            timers.grow(slots - 1);
            let mut deadlines = vec![None; slots as usize];
            let mut dues = vec![Tick(0); slots as usize];
            for _ in 0..400 {
                let slot = random.below(u64::from(slots)) as u32;
                let wait = below_any(&mut random, [10, 1_000, 30_000, 300_000]);
                let deadline = Tick(now + wait);
                match random.below(8) {
                    0 => {
                        timers.remove(slot);
                        deadlines[slot as usize] = None;
                    }
                    1..=4 => {
                        deadlines[slot as usize] = Some(deadline);
                        // One that is due already waits for the next bucket.
                        dues[slot as usize] = Bucket::of(deadline.max(Tick(now + 1))).due();
                        // What the loop does: only a deadline before the bucket moves the slot.
                        if Bucket::of(deadline) < timers.bucket(slot) {
                            timers.set(slot, deadline, Tick(now));
                        }
                    }
                    _ => {
                        now += below_any(&mut random, [2, 300, 20_000, 2_000_000]);
                        let expected: Vec<u32> = (0..slots)
                            .filter(|slot| deadlines[*slot as usize].is_some() && dues[*slot as usize].0 <= now)
                            .collect();
                        let may = deadlines.clone();
                        let fired = fire(&mut timers, Tick(now), &mut deadlines);
                        assert!(expected.iter().all(|slot| fired.contains(slot)), "seed {seed}: late");
                        assert!(
                            fired.iter().all(|slot| may[*slot as usize].is_some_and(|d| d.0 <= now)),
                            "seed {seed}"
                        );
                        assert!(timers.next_due().is_none_or(|due| due.0 > now), "seed {seed}: the loop would spin");
                    }
                }
            }
        }
    }
}
