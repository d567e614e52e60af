//! A thousand seeds with each `cargo test`. More: `cargo run --release -p sprat-checks --bin simulate`.

use std::time::Duration;

use super::explore;
use super::table::{Api, App};
use crate::connection::CloseReason;
use crate::limits::Limits;
use crate::route::Table;
use crate::testing::{Chaos, Driver, Random, Script, Simulation, Way, World};

/// Seeds that a test run looks at, unless `SPRAT_SEEDS` says otherwise.
const SEEDS: u64 = 1000;

#[test]
fn no_seed_breaks_an_invariant() {
    let seeds = std::env::var("SPRAT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let threads = 2;
    let halves: Vec<_> = (0..threads)
        .map(|thread| {
            std::thread::spawn(move || {
                (thread..seeds).step_by(threads as usize).try_for_each(|seed| explore(seed, false).map(|_| ()))
            })
        })
        .collect();
    for half in halves {
        if let Err(violation) = half.join().expect("a panic is a violation") {
            panic!("{violation}");
        }
    }
}

/// Runs the seed of `SPRAT_SEED`, and tells what happens.
#[test]
#[ignore = "not a test: replays the seed of SPRAT_SEED"]
fn replay() {
    if let Some(seed) = std::env::var("SPRAT_SEED").ok().and_then(|seed| seed.parse().ok())
        && let Err(violation) = explore(seed, true)
    {
        panic!("{violation}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..50 {
        assert_eq!(explore(seed, false).map_err(|v| v.what), explore(seed, false).map_err(|v| v.what));
    }
}

/// Beside slow heads, single bytes, slow readers, floods and resets, those who behave miss nothing and wait for nobody.
#[test]
fn well_behaved_clients_miss_nothing_beside_a_hostile_mix() {
    const GET: &[u8] = b"GET /id/7 HTTP/1.1\r\nHost: x\r\n\r\n";
    const FIXED: &[u8] = b"GET /fixed HTTP/1.1\r\nHost: x\r\n\r\n";
    let ms = Duration::from_millis;
    for seed in 0..3 {
        let mut simulation = Simulation::new(Api, App::default()).seed(seed);
        for at in 0..4 {
            simulation.client(Script::new().drip(GET, ms(1500 + at)));
            simulation.client(Script::new().drip(&GET.repeat(3), ms(20 + at)));
            simulation.client(Script::new().read_slowly(10, ms(50)).send(&FIXED.repeat(4)));
            simulation.client(Script::new().stall().send(&GET.repeat(500)));
            simulation.client(Script::new().send(&GET.repeat(500)));
            simulation.client(Script::new().connect_after(ms(at * 7)).send(&GET[..10]).wait(ms(3)).reset());
        }
        let polite: Vec<_> = (0..10)
            .map(|at| {
                let mut script = Script::new().connect_after(ms(at * 5));
                for _ in 0..10 {
                    script = script.send(GET).answer().wait(ms(10));
                }
                simulation.client(script.close())
            })
            .collect();
        let outcome = simulation.run();
        for client in polite {
            let answers = outcome.answers(client);
            assert_eq!(answers.len(), 10, "seed {seed}: {:?}", outcome.closed(client));
            assert!(answers.iter().all(|answer| answer.status() == 200 && answer.body() == b"7"));
            assert_eq!(outcome.closed(client), Some(CloseReason::PeerClosed));
        }
    }
}

/// A request that has arrived is answered within two turns, whoever floods: in a turn no connection has more than its
/// share.
#[test]
fn a_flood_does_not_keep_others_waiting() {
    const GET: &[u8] = b"GET /id/7 HTTP/1.1\r\nHost: x\r\n\r\n";
    for seed in 0..5 {
        let chaos = Chaos { hold_back: 0, interrupt: 0, short_send: 0, ..Chaos::USUAL };
        let mut world = World::new(Random::new(seed), chaos);
        let way = Way { pace: 1000, piece_max: 1 << 20, inbox_max: 1 << 20, sent_max: 1 << 20 };
        for _ in 0..5 {
            world.add(Script::new().send(&GET.repeat(5_000)), way);
        }
        let polite: Vec<usize> = (0..5)
            .map(|_| {
                let script = (0..50).fold(Script::new(), |script, _| script.send(GET).answer());
                world.add(script.close(), way)
            })
            .collect();
        let mut driver = Driver::<App, true>::new(world, Api::ROUTES, App::default(), Limits::DEFAULT);
        driver.run(|_| Ok(())).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        let world = driver.world.borrow();
        for client in polite {
            let log = &world.peers[client].log;
            assert!(log.wait_turns_max <= 2, "seed {seed}: a request waited for {} turns", log.wait_turns_max);
            assert_eq!(driver.reasons[client], Some(CloseReason::PeerClosed), "seed {seed}");
        }
    }
}
