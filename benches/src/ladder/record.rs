//! The lines of `rows.jsonl`.

use serde::{Deserialize, Serialize};

use crate::load::Outcome;
use crate::machine::Head;

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum Record {
    /// The machine, once a run.
    Head(Box<Head>),
    /// A server and how its check went, once a run.
    Server(Server),
    /// One measurement.
    Row(Box<Row>),
    /// Instructions and the like, which hardly vary.
    Count(Count),
    /// What a load generator makes of a server.
    Tool(Tool),
    /// What a reader should know of the run.
    Note {
        /// A sentence.
        text: String,
    },
}

/// A server that took part, or could not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// Short name.
    pub name: String,
    /// What it is written in.
    pub language: String,
    /// What it is.
    pub what: String,
    /// Its version.
    pub version: String,
    /// What a reader should know.
    pub notes: String,
    /// It reads requests.
    pub parses: bool,
    /// How its check went.
    pub state: State,
}

/// How a server's check went.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Passed so many checks.
    Right(usize),
    /// Measured, but it failed these.
    Failing(Vec<String>),
    /// Not measured: it did not start or answer.
    Broken(String),
    /// Not measured: something is missing here.
    Skipped(String),
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            State::Right(checks) => write!(f, "passes {checks} checks"),
            State::Failing(checks) => write!(f, "fails {}", checks.join(", ")),
            State::Broken(why) => write!(f, "fails: {why}"),
            State::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

/// One measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The mode's name.
    pub mode: String,
    /// The server's name.
    pub server: String,
    /// What was asked.
    pub ask: String,
    /// From 1.
    pub round: u32,
    /// Connections in use.
    pub connections: usize,
    /// Requests in flight on each.
    pub depth: usize,
    /// Open loop: planned requests a second.
    pub rate: Option<f64>,
    /// And how that was chosen: in percent of the server's own maximum.
    pub load_percent: Option<u32>,
    /// Server and client shared one processor.
    pub same_core: bool,
    /// What was seen.
    pub outcome: Outcome,
}

/// What one request costs, counted rather than timed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    /// The server's name.
    pub server: String,
    /// What was asked.
    pub ask: String,
    /// Instructions in user space.
    pub instructions: Option<f64>,
    /// Calls of the heap's allocator.
    pub allocations: Option<f64>,
    /// System calls.
    pub system_calls: Option<f64>,
    /// Which, each with its count, the most frequent first.
    pub calls: Vec<(String, f64)>,
    /// Why something is missing.
    pub missing: Vec<String>,
}

/// One load generator on one server, closed loop, 64 connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tool {
    /// The load generator.
    pub tool: String,
    /// The server's name.
    pub server: String,
    /// From 1.
    pub round: u32,
    /// What it reported.
    pub per_second: f64,
    /// The server's microseconds of CPU for each request.
    pub server_us: f64,
}
