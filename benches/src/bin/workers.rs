//! One worker against two, in turns: `workers [--rounds 5] [--seconds 3]`.
//!
//! On a machine whose cores the client shares, two workers cannot be twice as fast with requests that cost the client as
//! much as the server. So there are two requests: one with nothing to do, 16 at a time, and one that computes for some
//! 100 µs.

use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sprat::{Listen, Server, routes};
use sprat_bench::load::template::Request;
use sprat_bench::load::{Expect, Outcome, Pace, Plan, run};
use sprat_bench::report::charts::{duration, grouped, micro};
use sprat_bench::stats::median;

routes! {
    Api for () {
        GET "/"     => const text("Hello, World!"),
        GET "/jobs" => work(),
    }
}

fn work(_: &mut ()) -> String {
    let mut sum = std::hint::black_box(1_u64);
    for _ in 0..75_000 {
        sum = sum.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ 1;
    }
    sum.to_string()
}

const SERVE: &str = "serve";

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|argument| argument == SERVE) {
        let count = arguments[2].parse().map_err(io::Error::other)?;
        let listen = Listen { reuse_port: true, ..Listen::DEFAULT };
        let server = Server::bind_with("127.0.0.1:0", &listen)?.shutdown_on_signals();
        println!("{}", server.local_addr()?);
        return server.serve_workers(count, Api, || ()).map(|_| ());
    }
    let option = |name: &str| {
        let value = arguments.iter().skip_while(|argument| *argument != name).nth(1)?;
        Some(value.parse::<f64>().unwrap_or_else(|_| panic!("{name} takes a number")))
    };
    let rounds = option("--rounds").unwrap_or(5.0) as usize;
    let seconds = option("--seconds").unwrap_or(3.0);
    let mut outcomes = [[vec![], vec![]], [vec![], vec![]]];
    for round in 0..rounds {
        for turn in 0..2 {
            let workers = if round % 2 == 0 { turn } else { 1 - turn };
            let server = Worker::start(workers + 1)?;
            for (kind, (target, depth)) in [("/", 16), ("/jobs", 1)].into_iter().enumerate() {
                outcomes[kind][workers].push(server.drive(target, depth, seconds)?);
            }
        }
    }
    for (kind, name) in ["GET /, 16 at a time", "100 µs of work"].into_iter().enumerate() {
        let per_second = |workers: usize| -> Vec<f64> {
            outcomes[kind][workers].iter().map(|outcome: &Outcome| outcome.per_second).collect()
        };
        for (workers, outcomes) in outcomes[kind].iter().enumerate() {
            let of = |figure: &dyn Fn(&Outcome) -> f64| {
                median(&outcomes.iter().map(figure).collect::<Vec<_>>()).expect("rounds").value
            };
            let cpu = |outcome: &Outcome| {
                1e6 * outcome.server.as_ref().map_or(0.0, |spent| spent.cpu_s()) / outcome.requests.max(1) as f64
            };
            println!(
                "{name}, {} worker(s): {} a second, p99 {}, {} of CPU for each; errors {}",
                workers + 1,
                grouped(of(&|outcome| outcome.per_second)),
                duration(of(&|outcome| outcome.latency.p99)),
                micro(of(&cpu)),
                outcomes.iter().map(|outcome| outcome.errors.total()).sum::<u64>(),
            );
        }
        let ratios: Vec<f64> = per_second(1).iter().zip(per_second(0)).map(|(two, one)| two / one).collect();
        let ratio = median(&ratios).expect("rounds");
        println!("{name}: 2 workers do {:.2} times as much ({:.2} to {:.2})\n", ratio.value, ratio.low, ratio.high);
    }
    Ok(())
}

struct Worker {
    child: Child,
    address: SocketAddr,
}

impl Worker {
    fn start(count: usize) -> io::Result<Worker> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program).args([SERVE, &count.to_string()]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line)?;
        Ok(Worker { address: line.trim().parse().map_err(io::Error::other)?, child })
    }

    fn drive(&self, target: &str, depth: usize, seconds: f64) -> io::Result<Outcome> {
        let request = |fields: &[(String, String)]| Request::new("GET", target, "bench", fields, None);
        run(&Plan {
            target: self.address,
            request: request(&[]),
            request_last: request(&[("Connection".into(), "close".into())]),
            expect: Expect { status: 200, body: None },
            connections: 64,
            depth,
            pace: Pace::Closed,
            churn: None,
            herd: 0,
            sources: Vec::new(),
            warm: Duration::from_millis(300),
            time: Duration::from_secs_f64(seconds),
            requests: None,
            timeout: Duration::from_secs(10),
            errors_max: 100,
            watch: Some(self.child.id()),
            spin: false,
            progress: false,
            each_second: false,
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
