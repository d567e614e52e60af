//! One command that starts each server, checks it, drives it and keeps every row.
//!
//! Servers take turns: in each round every mode visits every server once, and every other round visits them in reverse
//! order, so that what changes on the machine changes for all. A server is started anew for each mode of each round: a
//! lucky or unlucky layout of one process does not become its figure.

pub mod cli;
pub mod counts;
pub mod modes;
pub mod record;
pub mod validate;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::load::Outcome;
use crate::machine::{self, Head};
use crate::peers::check::{HELLO, RESOURCE, RESOURCE_ANSWER, RESOURCE_BODY, RESOURCE_FIELDS, check};
use crate::peers::{self, Kind, Peer, Running};
use cli::Options;
use modes::{Ask, Mode, Step};
use record::{Count, Record, Row, Server, State};

/// Runs the ladder, and returns the folder of its rows.
pub fn run(options: &Options, command: String) -> Result<PathBuf, String> {
    crate::process::raise_descriptor_limit();
    let head = look_around(options, command);
    let (server_cpu, client_cpu) = head.pinned.map_or((None, None), |(server, client)| (Some(server), Some(client)));
    let mut began = Instant::now();
    let folder = options.out.clone().unwrap_or_else(|| default_folder(&head));
    let mut rows = Rows::create(&folder)?;
    rows.add(&Record::Head(Box::new(head)))?;
    let peers = choose(options, &mut rows, &mut began)?;
    if peers.is_empty() {
        return Err("no server is left to measure".into());
    }
    let bar = ProgressBar::new(plan_len(options, &peers)).with_style(
        ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} of about {duration}  {msg}")
            .unwrap_or(ProgressStyle::default_bar()),
    );
    let mut ladder = Ladder { options, server_cpu, client_cpu, rows, bar, maxima: BTreeMap::new(), began };
    for round in 0..options.rounds {
        for mode in options.modes.iter().filter(|mode| mode.runs_in(round, options)) {
            let mut order: Vec<&Peer> = peers.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for peer in order.into_iter().filter(|peer| mode.visits_peer(&peer.name, options.quick)) {
                if options.deadline.is_some_and(|deadline| ladder.began.elapsed() > deadline) {
                    let text = format!(
                        "The time of --quick was over in round {}: {} and what follows is missing.",
                        round + 1,
                        mode.name()
                    );
                    ladder.say(&text);
                    ladder.rows.add(&Record::Note { text })?;
                    ladder.bar.finish_and_clear();
                    return Ok(folder);
                }
                ladder.visit(peer, *mode, round)?;
            }
        }
    }
    ladder.bar.finish_and_clear();
    Ok(folder)
}

fn look_around(options: &Options, command: String) -> Head {
    let mut head = Head::now(command);
    // The last processor for the server, the first for the client: the first serves most interrupts.
    let (first, last) = (head.cpus.first().copied(), head.cpus.last().copied());
    head.pinned = match (first, last, peers::find_program("taskset")) {
        (Some(_), Some(last), Some(_)) if options.same_core => Some((last, last)),
        (Some(first), Some(last), Some(_)) if first != last => Some((last, first)),
        _ => None,
    };
    head.neighbour_slowdown = (head.cpus.len() > 1).then(|| crate::load::rounded(machine::neighbour_slowdown(), 2));
    head
}

fn default_folder(head: &Head) -> PathBuf {
    let name: String = head.date.chars().map(|c| if c == ' ' { '-' } else { c }).filter(|c| *c != ':').collect();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(name)
}

/// Builds and checks the servers that were asked for. Those that fail are reported and not measured further; those that
/// only refuse too little are measured, and shown as failing.
fn choose(options: &Options, rows: &mut Rows, began: &mut Instant) -> Result<Vec<Peer>, String> {
    let manifest = peers::manifest()?;
    let wanted = |peer: &&Peer| options.peers.as_ref().is_none_or(|names| names.contains(&peer.name));
    if let Some(unknown) = options.peers.iter().flatten().find(|name| !manifest.peers.iter().any(|p| p.name == **name))
    {
        return Err(format!("no such peer: {unknown}"));
    }
    let prepared: Vec<_> =
        manifest.peers.iter().filter(wanted).map(|peer| (peer, peer.prepare(&manifest.programs))).collect();
    *began = Instant::now(); // building is not measuring
    let mut chosen = Vec::new();
    for (peer, prepared) in prepared {
        let state = match prepared {
            Err(why) => State::Skipped(why),
            Ok(()) => match check(peer) {
                Err(why) => State::Broken(why),
                Ok(verdict) if verdict.wrong.is_empty() && verdict.known.is_empty() => State::Right(verdict.asked),
                Ok(verdict) => State::Failing([verdict.wrong, verdict.known].concat()),
            },
        };
        println!("{:13} {state}", peer.name);
        let measured = matches!(state, State::Right(_) | State::Failing(_));
        rows.add(&Record::Server(Server {
            name: peer.name.clone(),
            language: peer.language.clone(),
            what: peer.what.clone(),
            version: if measured { peer.version() } else { String::new() },
            notes: peer.notes.clone(),
            parses: peer.parses,
            state,
        }))?;
        if measured {
            chosen.push(peer.clone());
        }
    }
    Ok(chosen)
}

fn plan_len(options: &Options, peers: &[Peer]) -> u64 {
    let visits: u64 = options.modes.iter().map(|mode| u64::from(mode.rounds_max(options).min(options.rounds))).sum();
    visits * peers.len() as u64
}

/// The file of raw rows, one JSON object a line.
struct Rows(std::fs::File);

impl Rows {
    fn create(folder: &Path) -> Result<Rows, String> {
        let path = folder.join("rows.jsonl");
        let file = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::File::options().create(true).append(true).open(&path))
            .map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Rows(file))
    }

    fn add(&mut self, record: &Record) -> Result<(), String> {
        let line = serde_json::to_string(record).map_err(|e| e.to_string())?;
        writeln!(self.0, "{line}").map_err(|e| e.to_string())
    }
}

struct Ladder<'o> {
    options: &'o Options,
    server_cpu: Option<usize>,
    client_cpu: Option<usize>,
    rows: Rows,
    bar: ProgressBar,
    /// The most requests a second of each server so far, for the loads of the open loop.
    maxima: BTreeMap<String, f64>,
    began: Instant,
}

impl Ladder<'_> {
    /// Prints a line beside the bar, or without one.
    fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// One mode on one server, in one round.
    fn visit(&mut self, peer: &Peer, mode: Mode, round: u32) -> Result<(), String> {
        self.bar.set_message(format!("{} round {}: {}", mode.name(), round + 1, peer.name));
        self.bar.inc(1);
        if mode == Mode::Validate {
            for tool in validate::TOOLS.into_iter().filter(|_| peer.serves(Kind::Hello)) {
                match validate::run(peer, tool, self.server_cpu, self.client_cpu, self.options.seconds.unwrap_or(2.0)) {
                    Ok(seen) => self.rows.add(&Record::Tool(record::Tool { round: round + 1, ..seen }))?,
                    Err(why) => self.say(&why),
                }
            }
            return Ok(());
        }
        if mode == Mode::Counts {
            for kind in [Kind::Hello, Kind::Resource] {
                if peer.serves(kind) {
                    let count: Count = counts::count(peer, kind, self.options.quick);
                    self.rows.add(&Record::Count(count))?;
                }
            }
            return Ok(());
        }
        for (kind, steps) in mode.visits(self.options) {
            if peer.serves(kind) {
                self.drive(peer, mode, kind, &steps, round)?;
            }
        }
        Ok(())
    }

    /// Starts the server once and takes the steps, as far as it goes.
    fn drive(&mut self, peer: &Peer, mode: Mode, kind: Kind, steps: &[Step], round: u32) -> Result<(), String> {
        let server = match Running::start(peer, kind, self.server_cpu, &[]) {
            Ok(server) => server,
            Err(why) => {
                self.say(&format!("{}: {why}", peer.name));
                return Ok(());
            }
        };
        self.warm(&server, peer, kind)?;
        let warm = if self.options.quick { 0.15 } else { 0.3 };
        let mut best: Vec<f64> = Vec::new();
        for step in steps {
            let Some(rate) = self.rate_of(peer, step) else { continue };
            let outcome = match self.measure(&server, peer, kind, step, rate, step.seconds, warm) {
                Ok(outcome) => outcome,
                Err(why) => {
                    self.say(&format!("{} {}: {why}", peer.name, mode.name()));
                    return Ok(());
                }
            };
            if mode == Mode::Latency && rate.is_none() {
                self.maxima.insert(peer.name.clone(), outcome.per_second);
            }
            let has_errors = outcome.errors.total() > 0;
            best.push(outcome.per_second);
            self.rows.add(&Record::Row(Box::new(Row {
                mode: mode.name().into(),
                server: peer.name.clone(),
                ask: step.ask.name().into(),
                round: round + 1,
                connections: step.connections,
                depth: step.depth,
                rate,
                load_percent: step.load_percent,
                same_core: self.options.same_core,
                outcome,
            })))?;
            if mode.stops_at_errors() && has_errors
                || mode.stops_without_growth() && step.connections >= 50 && has_stopped_growing(&best)
            {
                break;
            }
        }
        Ok(())
    }

    /// Runs what a server is about to be asked until it is warm; a just-in-time compiler needs longer.
    fn warm(&self, server: &Running, peer: &Peer, kind: Kind) -> Result<(), String> {
        let ask = if kind == Kind::Resource { Ask::Post } else { Ask::Get };
        let step = Step { ask, connections: 16, depth: 1, ..Step::default() };
        let seconds = match (peer.has_jit(), self.options.quick) {
            (true, false) => 3.0,
            (true, true) => 1.0,
            (false, _) => 0.3,
        };
        self.measure(server, peer, Kind::Hello, &step, None, seconds, 0.0).map(drop)
    }

    /// The rate of an open-loop step. `None`: this server cannot be asked for it.
    fn rate_of(&self, peer: &Peer, step: &Step) -> Option<Option<f64>> {
        let maximum = self.maxima.get(&peer.name).copied();
        match (step.rate, step.load_percent) {
            // An absolute rate that is above nine tenths of what a server can do is its overload, not its latency.
            (Some(rate), None) if step.capped => (rate <= maximum? * 0.9).then_some(Some(rate)),
            (Some(rate), None) => Some(Some(rate)),
            (None, Some(percent)) => Some(Some((maximum? * f64::from(percent) / 100.0).round())),
            _ => Some(None),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one call of the load generator, spelt out")]
    fn measure(
        &self,
        server: &Running,
        peer: &Peer,
        kind: Kind,
        step: &Step,
        rate: Option<f64>,
        seconds: f64,
        warm: f64,
    ) -> Result<Outcome, String> {
        let mut args: Vec<String> = peers::pin(self.client_cpu);
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        args.extend([program.display().to_string(), "load".into(), "--quiet".into()]);
        let mut add = |name: &str, value: String| args.extend([name.to_owned(), value]);
        add("--connections", step.connections.to_string());
        add("--pipeline", step.depth.to_string());
        add("--watch", server.pid().to_string());
        add("--warm", warm.to_string());
        match self.options.requests.filter(|_| step.counts_requests && warm > 0.0) {
            Some(requests) => add("--requests", requests.to_string()),
            None => add("--time", seconds.to_string()),
        }
        if let Some(rate) = rate {
            add("--rate", rate.to_string());
        }
        if step.herd > 0 {
            add("--herd", step.herd.to_string());
        }
        if step.herd > 0 || step.connections > 4000 || kind == Kind::HelloClose {
            add("--sources", "50".into());
        }
        if kind == Kind::HelloClose {
            add("--per-connection", "1".into());
            add("--close", if peer.ignores_close() { "client" } else { "server" }.into());
        }
        let target = match step.ask {
            Ask::Get => "/",
            Ask::Browser => {
                BROWSER_FIELDS.iter().for_each(|field| add("--field", (*field).into()));
                "/"
            }
            Ask::Post => {
                RESOURCE_FIELDS.iter().for_each(|field| add("--field", (*field).into()));
                add("--body", RESOURCE_BODY.into());
                RESOURCE
            }
        };
        add("--expect", if step.ask == Ask::Post { RESOURCE_ANSWER } else { HELLO }.into());
        if rate.is_some() && self.client_cpu != self.server_cpu {
            args.push("--spin".into());
        }
        args.push(format!("http://{}{target}", server.address));
        let mut command = Command::new(&args[0]);
        command.args(&args[1..]).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().map_err(|e| format!("{}: {e}", args[0]))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let line = said.lines().last().unwrap_or_default();
        serde_json::from_str(line).map_err(|e| format!("the load generator said {line:?}: {e}"))
    }
}

/// Two steps in a row that brought no more than 2 % over the best before them.
fn has_stopped_growing(per_second: &[f64]) -> bool {
    let Some((last, former)) = per_second.split_last_chunk::<2>().map(|(former, last)| (last, former)) else {
        return false;
    };
    let best = former.iter().copied().fold(0.0, f64::max);
    !former.is_empty() && last.iter().all(|figure| *figure < best * 1.02)
}

/// What a browser sends with a request, Host aside.
pub const BROWSER_FIELDS: [&str; 8] = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate, br",
    "Connection: keep-alive",
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark",
    "Upgrade-Insecure-Requests: 1",
    "Cache-Control: max-age=0",
];

/// How long `--quick` may take, building aside.
pub const QUICK_TIME_MAX: Duration = Duration::from_secs(285);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_ends_after_two_steps_without_any() {
        assert!(!has_stopped_growing(&[1.0, 2.0]));
        assert!(!has_stopped_growing(&[1.0, 2.0, 2.0, 3.0]));
        assert!(has_stopped_growing(&[1.0, 2.0, 2.01, 1.5]));
    }
}
