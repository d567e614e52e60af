//! Explores the loop: random clients in a world decided by a seed, and every invariant that we know of.
//!
//! A run of one seed is the real loop over the simulated net of `testing`. After each turn the accounts are checked,
//! that nobody is deaf and no deadline is missed; at the end, what each client got, byte for byte, and why and when its
//! connection ended. The same seed gives the same run for ever, as long as nobody changes what a seed means.

mod backstage;
mod judge;
mod plan;
mod table;
#[cfg(test)]
mod tests;
mod waiter;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use backstage::{Seat, Shared};
use judge::{Deadlines, Shutdown, judge};
use plan::Plan;
use table::{Api, App};
use waiter::{ANSWER_BYTES_MAX, Waiter};

use crate::limits::Limits;
use crate::route::Table;
use crate::server::offload::Offload;
use crate::server::timers::BUCKET_MS;
use crate::testing::{Chaos, Driver, Outage, Random, Way, World};

/// What a run of one seed did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Clients that took part.
    pub clients: u64,
    /// Requests that the server counted.
    pub requests: u64,
    /// Those of them whose answers came later.
    pub late: u64,
    /// Turns of the loop.
    pub turns: u64,
    /// Bytes that clients took.
    pub bytes: u64,
    /// How long it took, by the simulated clock.
    pub simulated_ms: u64,
    /// The most that one connection held beside its slot.
    pub held_bytes_peak: u64,
    /// A sum over everything the clients saw, to compare two runs.
    pub digest: u64,
}

/// A seed that broke an invariant.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The seed that shows it.
    pub seed: u64,
    /// The invariant, and what was seen of it.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Violation { seed, what } = self;
        write!(
            f,
            "seed {seed}: {what}\nreplay: SPRAT_SEED={seed} cargo test -p sprat --lib explore::tests::replay -- --ignored --nocapture"
        )
    }
}

/// Runs a seed. `verbose` tells on stderr what happens.
///
/// # Errors
/// The invariant that was broken.
pub fn explore(seed: u64, verbose: bool) -> Result<Report, Violation> {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // Every fourth seed is of the kind of system where events re-arm only by a call that would block.
        if seed % 4 == 3 { run::<false>(seed, verbose) } else { run::<true>(seed, verbose) }
    }));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("something that is no text");
        Err(format!("a panic: {text}"))
    });
    outcome.map_err(|what| Violation { seed, what })
}

fn run<const DRAINS: bool>(seed: u64, verbose: bool) -> Result<Report, String> {
    let mut random = Random::new(seed);
    let limits = some_limits(&mut random);
    limits.check()?;
    let mut world = World::new(Random::new(seed ^ 0xA5A5_A5A5), some_chaos(&mut random));
    world.verbose = verbose;
    let clients = if random.chance(500) { random.between(1, 3) } else { random.between(1, 12) };
    let plans: Vec<Plan> = (0..clients).map(|client| Plan::new(client, &mut random, &limits)).collect();
    for plan in &plans {
        let mut way = some_way(&mut random, plan.bytes.len());
        if plan.floods && random.chance(600) {
            // So that a little always waits.
            way.sent_max = limits.output_bytes_max / 8;
        }
        world.add(plan.script.clone(), way);
    }
    // In half of the runs there are some whose answers come later.
    let waiters = if random.chance(500) { random.between(1, 4) } else { 0 };
    let waiters: Vec<Waiter> = (clients..clients + waiters).map(|client| Waiter::new(client, &mut random)).collect();
    for waiter in &waiters {
        world.add(waiter.script.clone(), some_way(&mut random, waiter.bytes.len()));
    }
    let timeout_ms = limits.answer_timeout.as_millis() as u64;
    let backstage = Shared::new(Random::new(seed ^ 0x5A5A_5A5A), timeout_ms);
    if !waiters.is_empty() {
        world.outsiders = Some(Box::new(backstage.clone()));
        // A stream can go on for ever.
        world.wishes.push((random.between(10_000, 150_000), Duration::from_millis(random.any_size(2000) as u64)));
    }
    add_outages(&mut world, &mut random);
    let hurries = if waiters.is_empty() || random.chance(600) { random.below(3) } else { 0 };
    for _ in 0..hurries {
        let delay = if random.chance(500) { 0 } else { random.any_size(20_000) };
        world.wishes.push((random.any_size(60_000) as u64, Duration::from_millis(delay as u64)));
    }
    if verbose {
        eprintln!("{limits:?}\n{:?}", world.chaos);
        for (client, plan) in plans.iter().enumerate() {
            eprintln!("client {client}: {:?}\n{:?}", world.peers[client].way, plan.script);
        }
        for waiter in &waiters {
            eprintln!("{waiter:?}");
        }
    }
    let app = App { backstage: backstage.clone() };
    let mut driver = Driver::<App, DRAINS>::new(world, Api::ROUTES, app, limits.clone());
    driver.answer_bytes_max = plans.iter().map(|plan| plan.answer_bytes_max).collect();
    driver.answer_bytes_max.resize(plans.len() + waiters.len(), ANSWER_BYTES_MAX);
    if random.chance(500) {
        let (threads, queue) = (random.len(1, 3), random.any_size(3));
        driver.events.pool().configure(Offload { threads, queue, deadline: Duration::MAX, ..Offload::DEFAULT });
    }
    let mut listener_closed = None;
    driver.run(|driver| {
        let world = driver.world.borrow();
        if !world.is_listening() && listener_closed.is_none() {
            listener_closed = Some(world.tick);
        }
        for view in driver.events.views() {
            let client = view.socket.peer;
            let peer = &world.peers[client];
            let is_waiting = view.connection.is_waiting();
            if is_waiting && peer.end_told && !view.queued && !limits.answer_half_closed {
                return Err(format!("client {client} has left, and its answer is waited for"));
            }
            if client >= plans.len() || view.queued || view.connection.is_behind() {
                continue;
            }
            let log = &world.peers[client].log;
            let due = Deadlines::new(&plans[client], log, &limits, log.received_len(), false);
            if let Some(due) = due.filter(|due| due.is_missed(world.tick)) {
                return Err(format!(
                    "client {client}: {due:?} was missed at {:?}: {log:?}, {:?}",
                    world.tick, view.connection
                ));
            }
        }
        if waiters.is_empty() {
            return Ok(());
        }
        let seats: Vec<(usize, Seat)> = driver
            .events
            .views()
            .map(|view| {
                (
                    view.socket.peer,
                    Seat {
                        waits: view.connection.ticket_number(),
                        wants_write: view.connection.wants_write(),
                        caught_up_ms: world.peers[view.socket.peer].log.caught_up.0,
                    },
                )
            })
            .collect();
        let seat = |id: u64| seats.iter().find(|(client, _)| *client as u64 == id >> 32).map(|(_, seat)| *seat);
        let drains = world.asked.is_some();
        backstage.lock().check(seat, driver.events.has_letters(), drains, BUCKET_MS)
    })?;
    backstage.lock().clear();
    let tickets = driver.events.tickets_left();
    if tickets > 0 {
        return Err(format!("{tickets} tickets are left at the end"));
    }
    let world = driver.world.borrow();
    let mut report = Report {
        clients,
        requests: driver.events.stats().requests,
        turns: world.turn,
        simulated_ms: world.now_ms(),
        held_bytes_peak: driver.held_bytes_peak as u64,
        ..Report::default()
    };
    report.clients += waiters.len() as u64;
    let stage = backstage.lock();
    report.late = stage.records.len() as u64;
    for (client, peer) in world.peers.iter().enumerate() {
        let reason = driver.reasons[client];
        let shutdown = Shutdown { asked: world.asked, closed: listener_closed };
        match plans.get(client) {
            Some(plan) => judge(plan, peer, reason, &limits, shutdown),
            None => waiter::judge(&waiters[client - plans.len()], peer, reason, &limits, shutdown, &stage),
        }
        .map_err(|what| format!("client {client}: {what}"))?;
        report.bytes += peer.received.len() as u64;
        for byte in peer.received.iter().chain(format!("{reason:?} {:?}", peer.log.closed).as_bytes()) {
            report.digest = (report.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    Ok(report)
}

/// Limits small enough to be met, and the usual ones.
fn some_limits(random: &mut Random) -> Limits {
    fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
        *random.pick(of)
    }
    let ms = Duration::from_millis;
    let head_bytes_max = one(random, &[256, 1024, 16 << 10]);
    Limits {
        head_bytes_max,
        target_bytes_max: head_bytes_max.min(8 << 10),
        fields_max: one(random, &[16, 64, 100]),
        body_bytes_max: one(random, &[1024, 5000, 64 << 10, 1 << 20]),
        output_bytes_max: one(random, &[1024, 4096, 64 << 10, 64 << 10]),
        linger_bytes_max: one(random, &[512, 10_000, 256 << 10]),
        bodies_bytes_max: if random.chance(50) { 4000 } else { 256 << 20 },
        connections_max: one(random, &[1, 2, 5, 10_000, 10_000, 10_000]),
        requests_per_turn: one(random, &[1, 2, 64]),
        first_byte_timeout: ms(one(random, &[1000, 10_000])),
        head_timeout: ms(one(random, &[1000, 10_000])),
        body_grace: ms(one(random, &[0, 1000, 5000])),
        body_bytes_per_second_min: one(random, &[1, 500, 5000]),
        body_timeout: ms(one(random, &[5000, 600_000])),
        idle_timeout: ms(one(random, &[300, 5000, 75_000, 200_000])),
        answer_timeout: ms(one(random, &[500, 5000, 60_000])),
        answer_half_closed: random.chance(300),
        write_timeout: ms(one(random, &[1000, 30_000])),
        linger_timeout: ms(one(random, &[0, 500, 2000])),
        drain_timeout: ms(one(random, &[0, 1000, 30_000])),
        ..Limits::DEFAULT
    }
}

fn some_chaos(random: &mut Random) -> Chaos {
    fn some(random: &mut Random, usual: u32) -> u32 {
        match random.below(4) {
            0 => 0,
            1 => usual * 5,
            _ => usual,
        }
    }
    let Chaos { stir, hold_back, duplicate, spurious, stale, interrupt, short_send, accept_error, late, .. } =
        Chaos::USUAL;
    Chaos {
        stir: some(random, stir),
        hold_back: some(random, hold_back),
        duplicate: some(random, duplicate),
        spurious: some(random, spurious),
        stale: some(random, stale),
        interrupt: some(random, interrupt),
        short_send: some(random, short_send),
        accept_error: some(random, accept_error),
        late: some(random, late),
        jump: if random.chance(200) { 5 } else { 0 },
        late_work: if random.chance(200) { 300 } else { 0 },
        register_error: if random.chance(50) { 50 } else { 0 },
        step_ms_max: *random.pick(&[1, 20, 200]),
    }
}

fn some_way(random: &mut Random, bytes_len: usize) -> Way {
    // A byte at a time is for those that do not send much.
    let least = (bytes_len / 500).max(1);
    Way {
        pace: *random.pick(&[1000, 1000, 300, 50]),
        piece_max: (*random.pick(&[1, 50, 1460, 1 << 20])).max(least),
        inbox_max: *random.pick(&[least, 5000, 1 << 20]),
        sent_max: *random.pick(&[100, 3000, 100_000, 4 << 20]),
    }
}

fn add_outages(world: &mut World, random: &mut Random) {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    const ENOBUFS: i32 = 105;
    const ENOMEM: i32 = 12;
    if random.chance(150) {
        let from_ms = random.below(3000);
        let to_ms = from_ms + random.any_size(20_000) as u64;
        world.outages.push(Outage { from_ms, to_ms, errno: *random.pick(&[EMFILE, ENFILE, ENOBUFS, ENOMEM]) });
    }
    if random.chance(150) {
        world.sockets_max = random.len(1, 4);
    }
}
