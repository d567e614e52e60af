//! The command line of the ladder.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

use super::QUICK_TIME_MAX;
use super::modes::Mode;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// In this order.
    pub modes: Vec<Mode>,
    /// All modes, because none was named.
    pub is_everything: bool,
    /// Little of each.
    pub quick: bool,
    /// Stop starting anything after this.
    pub deadline: Option<Duration>,
    /// Server and client on one processor.
    pub same_core: bool,
    /// Only these.
    pub peers: Option<Vec<String>>,
    /// Requests of each step of `--hello` and `--resource`, instead of a time.
    pub requests: Option<u64>,
    /// How often everything is measured.
    pub rounds: u32,
    /// Instead of each step's own time.
    pub seconds: Option<f64>,
    /// Where the rows go.
    pub out: Option<PathBuf>,
}

/// What `ladder --help` prints.
pub const HELP: &str = "\
ladder: measures sprat and its peers, in turns, on this machine

  sprat-bench ladder [MODE ...] [OPTIONS]

Modes; without any, all of them
  --hello          mean response time, CPU and memory of GET / at 1, 25, 50, 100, 200, 300 connections
  --resource       a JSON POST with a path parameter and a bearer token, 200 connections, 30 s
  --saturation     1 to 1600 connections, until throughput stops growing or errors appear
  --capacity       how many at the same time: 500 to 16,000 connections, until errors appear
  --no-keep-alive  a new connection for each request
  --latency        open loop at 25, 50, 75, 90 % of each server's own maximum, and at equal absolute rates
  --idle N         N idle connections beside some active ones: bytes of each, and whether the active ones suffer
  --pipelined      16 requests at once on each of 64 connections
  --browser        GET / with the nine fields of a browser
  --counts         instructions, allocations (valgrind) and system calls (strace) of one request
  --validate       the load generator beside wrk and h2load, on the floor and hyper

Options
  --quick          a little of everything in 5 minutes, building aside, with a few peers
  --peers A,B      only these: names of benches/peers/peers.json, and sprat
  --rounds N       measure each N times [7; with --quick 3]
  --requests N     of each step of --hello and --resource, up to 5 million, instead of a time
  --seconds N      instead of each step's own time
  --same-core      server and client on one processor, as on a machine that has only one
  --out FOLDER     where the rows go [benches/results/DATE]; rows there are kept
  -h, --help
";

/// Reads a command line. `None`: help was asked for.
pub fn parse(args: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Option<Options>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(args);
    let mut options = Options::default();
    let mut rounds = None;
    while let Some(arg) = parser.next()? {
        let mode = match arg {
            Long("hello") => Mode::Hello,
            Long("resource") => Mode::Resource,
            Long("saturation") => Mode::Saturation,
            Long("capacity") => Mode::Capacity,
            Long("no-keep-alive") => Mode::NoKeepAlive,
            Long("latency") => Mode::Latency,
            Long("idle") => Mode::Idle(parser.value()?.parse().map(|n: usize| n.min(100_000))?),
            Long("pipelined") => Mode::Pipelined,
            Long("browser") => Mode::Browser,
            Long("counts") => Mode::Counts,
            Long("validate") => Mode::Validate,
            Long("quick") => {
                options.quick = true;
                continue;
            }
            Long("same-core") => {
                options.same_core = true;
                continue;
            }
            Long("peers") => {
                options.peers = Some(parser.value()?.string()?.split(',').map(str::to_owned).collect());
                continue;
            }
            Long("rounds") => {
                rounds = Some(parser.value()?.parse::<u32>()?.clamp(1, 1000));
                continue;
            }
            Long("requests") => {
                options.requests = Some(parser.value()?.parse::<u64>()?.clamp(1, REQUESTS_MAX));
                continue;
            }
            Long("seconds") => {
                options.seconds = Some(parser.value()?.parse::<f64>()?.clamp(0.1, 3600.0));
                continue;
            }
            Long("out") => {
                options.out = Some(PathBuf::from(parser.value()?));
                continue;
            }
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(arg.unexpected()),
        };
        options.modes.push(mode);
    }
    options.is_everything = options.modes.is_empty();
    if options.is_everything {
        options.modes = Mode::ALL.to_vec();
    }
    options.rounds = rounds.unwrap_or(if options.quick { 3 } else { 7 });
    if options.quick {
        options.deadline = Some(QUICK_TIME_MAX);
        options.peers.get_or_insert_with(|| QUICK_PEERS.map(String::from).to_vec());
    }
    Ok(Some(options))
}

/// The floor, the best of this language, and what people come from.
const QUICK_PEERS: [&str; 6] = ["sprat", "floor", "hyper", "may_minihttp", "elysia", "express"];

const REQUESTS_MAX: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        parse(line.split_whitespace().map(std::ffi::OsString::from)).unwrap().unwrap()
    }

    #[test]
    fn without_a_mode_all_run() {
        assert_eq!(options("--quick").modes, Mode::ALL);
        assert_eq!(options("--hello --idle 10").modes, [Mode::Hello, Mode::Idle(10)]);
    }

    #[test]
    fn counts_are_bounded() {
        assert_eq!(options("--requests 999999999").requests, Some(REQUESTS_MAX));
        assert_eq!(options("--rounds 0").rounds, 1);
    }
}
