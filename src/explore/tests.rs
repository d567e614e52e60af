//! A few thousand seeds with each `cargo test`. More: `cargo run --release -p sprat-checks --bin simulate`.

use super::explore;

/// Seeds that a test run looks at, unless `SPRAT_SEEDS` says otherwise.
const SEEDS: u64 = 2000;

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
