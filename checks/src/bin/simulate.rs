//! Runs many seeds of the simulation, on as many threads as asked for, and stops at the first that breaks an invariant.
//!
//! ```text
//! cargo run --release -p sprat-checks --bin simulate -- --seeds 1000000
//! cargo run --release -p sprat-checks --bin simulate -- --seed 1234
//! ```

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use sprat::internals::{Report, Violation, explore};

const USAGE: &str = "\
usage: simulate [--seeds COUNT] [--from SEED] [--threads COUNT] [--keep-going]
       simulate --seed SEED          one seed, and everything that happens
";

struct Asked {
    from: u64,
    seeds: u64,
    threads: u64,
    one: Option<u64>,
    keep_going: bool,
}

fn asked() -> Option<Asked> {
    let mut asked = Asked { from: 0, seeds: 100_000, threads: 2, one: None, keep_going: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next()?.replace('_', "").parse::<u64>().ok();
        match argument.as_str() {
            "--seeds" => asked.seeds = number()?,
            "--from" => asked.from = number()?,
            "--threads" => asked.threads = number()?.max(1),
            "--seed" => asked.one = Some(number()?),
            "--keep-going" => asked.keep_going = true,
            _ => return None,
        }
    }
    Some(asked)
}

fn main() -> ExitCode {
    let Some(asked) = asked() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    // A panic is a violation of its seed, and is told as such.
    std::panic::set_hook(Box::new(|_| ()));
    if let Some(seed) = asked.one {
        return match explore(seed, true) {
            Ok(report) => {
                println!("{report:#?}");
                ExitCode::SUCCESS
            }
            Err(violation) => {
                println!("{violation}");
                ExitCode::FAILURE
            }
        };
    }
    let started = Instant::now();
    let (sum, found) = run_all(&asked);
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} runs in {seconds:.1} s ({:.0} a second): {} clients, {} requests, {} of them answered later, {} turns, {:.1} GB taken, {:.0} simulated \
         hours, at most {} bytes held for a connection",
        sum.runs,
        sum.runs as f64 / seconds,
        sum.clients,
        sum.requests,
        sum.late,
        sum.turns,
        sum.bytes as f64 / 1e9,
        sum.simulated_ms as f64 / 3.6e6,
        sum.held_bytes_peak,
    );
    for violation in &found {
        println!("{violation}");
    }
    println!("{} violations", found.len());
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Default)]
struct Sum {
    runs: u64,
    clients: u64,
    requests: u64,
    late: u64,
    turns: u64,
    bytes: u64,
    simulated_ms: u64,
    held_bytes_peak: u64,
}

impl Sum {
    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.clients += report.clients;
        self.requests += report.requests;
        self.late += report.late;
        self.turns += report.turns;
        self.bytes += report.bytes;
        self.simulated_ms += report.simulated_ms;
        self.held_bytes_peak = self.held_bytes_peak.max(report.held_bytes_peak);
    }
}

/// Seeds are handed out in small lots, for some take much longer than others.
const LOT: u64 = 50;

fn run_all(asked: &Asked) -> (Sum, Vec<Violation>) {
    let style = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} seeds, {per_sec}, {eta} left, {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(asked.seeds).with_style(style).with_message("nothing found");
    let (next, end) = (AtomicU64::new(asked.from), asked.from.saturating_add(asked.seeds));
    let sum = Mutex::new(Sum::default());
    let found = Mutex::new(Vec::new());
    let lock_failed = "no thread panics with the lock";
    std::thread::scope(|scope| {
        for _ in 0..asked.threads {
            scope.spawn(|| {
                loop {
                    let from = next.fetch_add(LOT, Ordering::Relaxed);
                    if from >= end {
                        return;
                    }
                    for seed in from..end.min(from + LOT) {
                        match explore(seed, false) {
                            Ok(report) => sum.lock().expect(lock_failed).add(&report),
                            Err(violation) => {
                                bar.suspend(|| println!("{violation}"));
                                let mut found = found.lock().expect(lock_failed);
                                found.push(violation);
                                bar.set_message(format!("{} violations", found.len()));
                                if !asked.keep_going {
                                    next.store(end, Ordering::Relaxed);
                                }
                            }
                        }
                    }
                    bar.inc(LOT.min(end - from));
                    bar.tick();
                }
            });
        }
    });
    bar.finish();
    let mut found = found.into_inner().expect(lock_failed);
    found.sort_by_key(|violation| violation.seed);
    (sum.into_inner().expect(lock_failed), found)
}
