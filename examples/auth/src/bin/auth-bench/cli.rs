//! The command line.

use lexopt::prelude::*;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Validations,
    Logins,
    Churn,
    Saturation,
    Capacity,
    Latency,
    Health,
}

/// In this order, if none is named.
const ALL: [(&str, Mode); 7] = [
    ("validations", Mode::Validations),
    ("logins", Mode::Logins),
    ("churn", Mode::Churn),
    ("saturation", Mode::Saturation),
    ("capacity", Mode::Capacity),
    ("latency", Mode::Latency),
    ("health", Mode::Health),
];

pub struct Options {
    pub modes: Vec<Mode>,
    pub rounds: u32,
    pub seconds: f64,
    pub cost: u32,
    pub threads: usize,
    pub database: Option<String>,
}

impl Options {
    pub fn database_name(&self) -> &'static str {
        if self.database.is_some() { "PostgreSQL" } else { "SQLite, WAL, synchronous=FULL" }
    }
}

pub const HELP: &str = "\
auth-bench: measures the auth service, which it starts and fills by itself

  auth-bench [MODE ...] [OPTIONS]

Modes; without any, all of them
  --validations    POST /internal/validate, 64 connections and 1
  --logins         POST /oauth/login from 20 and 100 clients, each with a flow of its own
  --churn          a new connection for each request: /health and /internal/validate
  --saturation     validations on 1 to 1,600 connections, until more of them give no more
  --capacity       how many at the same time: validations on 500 to 8,000 connections, until errors appear
  --latency        validations, open loop, at 25, 50, 75, 90 % of the maximum
  --health         GET /health, 200 a second, open loop, while 20 logins are in flight

Options
  --rounds N       measure each so often; shown is the median [3, for --health 5]
  --seconds N      how long each step takes [3]
  --cost N         of bcrypt, 4 to 16 [10]
  --threads N      of the pool for it [2]
  --database URL   postgres://USER@HOST/NAME instead of SQLite in a folder that is removed; what the bench
                   puts there stays
  -h, --help
";

/// None: help was asked for.
pub fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut rounds = None;
    let mut options = Options { modes: Vec::new(), rounds: 3, seconds: 3.0, cost: 10, threads: 2, database: None };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("rounds") => rounds = Some(parser.value()?.parse::<u32>()?.clamp(1, 1000)),
            Long("seconds") => options.seconds = parser.value()?.parse::<f64>()?.clamp(0.2, 600.0),
            Long("cost") => options.cost = parser.value()?.parse::<u32>()?.clamp(4, 16),
            Long("threads") => options.threads = parser.value()?.parse::<usize>()?.clamp(1, 64),
            Long("database") => options.database = Some(parser.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Long(name) => match ALL.iter().find(|(known, _)| *known == name) {
                Some((_, mode)) => options.modes.push(*mode),
                None => return Err(argument.unexpected()),
            },
            _ => return Err(argument.unexpected()),
        }
    }
    if options.modes.is_empty() {
        options.modes = ALL.map(|(_, mode)| mode).to_vec();
    }
    options.rounds = rounds.unwrap_or(if options.modes == [Mode::Health] { 5 } else { 3 });
    Ok(Some(options))
}
