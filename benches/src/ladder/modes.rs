//! What each mode asks, named after what people ask.

use super::cli::Options;
use crate::peers::Kind;

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// How long does an answer take on average, and what does it cost, at 1 to 300 connections?
    Hello,
    /// And with a JSON body, a path parameter and a token, at 200 connections?
    Resource,
    /// How many a second, at most?
    Saturation,
    /// How many at the same time?
    Capacity,
    /// How many that each bring a new connection?
    NoKeepAlive,
    /// How long do the slowest wait, at a given load?
    Latency,
    /// What do so many connections cost that say nothing?
    Idle(usize),
    /// And 16 requests in one go?
    Pipelined,
    /// And with the head that a browser sends?
    Browser,
    /// Instructions, allocations, system calls.
    Counts,
    /// Does the load generator see what wrk and h2load see?
    Validate,
}

/// What one request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// `GET /` with nothing but Host.
    #[default]
    Get,
    /// `GET /` with nine fields.
    Browser,
    /// The resource's POST.
    Post,
}

impl Ask {
    /// As rows call it.
    pub fn name(self) -> &'static str {
        match self {
            Ask::Get => "get",
            Ask::Browser => "browser",
            Ask::Post => "post",
        }
    }
}

/// One measurement of a running server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// What is asked.
    pub ask: Ask,
    /// On so many connections.
    pub connections: usize,
    /// So many at once on each.
    pub depth: usize,
    /// Beside so many idle ones.
    pub herd: usize,
    /// Open loop, at this rate.
    pub rate: Option<f64>,
    /// Only if the server can do that.
    pub capped: bool,
    /// Open loop, at this part of the server's own maximum.
    pub load_percent: Option<u32>,
    /// For so long.
    pub seconds: f64,
    /// `--requests` applies.
    pub counts_requests: bool,
}

/// The rungs.
pub const CONNECTIONS: [usize; 14] = [1, 2, 5, 10, 20, 25, 50, 100, 200, 300, 400, 800, 1200, 1600];

impl Mode {
    /// All of them, as a run without a mode takes them.
    pub const ALL: [Mode; 11] = [
        Mode::Hello,
        Mode::Resource,
        Mode::Pipelined,
        Mode::NoKeepAlive,
        Mode::Latency,
        Mode::Browser,
        Mode::Saturation,
        Mode::Capacity,
        Mode::Idle(IDLE),
        Mode::Counts,
        Mode::Validate,
    ];

    /// As rows call it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Hello => "hello",
            Mode::Resource => "resource",
            Mode::Saturation => "saturation",
            Mode::Capacity => "capacity",
            Mode::NoKeepAlive => "no-keep-alive",
            Mode::Latency => "latency",
            Mode::Idle(_) => "idle",
            Mode::Pipelined => "pipelined",
            Mode::Browser => "browser",
            Mode::Counts => "counts",
            Mode::Validate => "validate",
        }
    }

    /// Some vary little, and some take long.
    pub fn rounds_max(self, options: &Options) -> u32 {
        match self {
            Mode::Counts => 1,
            Mode::Saturation | Mode::Capacity | Mode::Idle(_) | Mode::Browser | Mode::Validate if options.quick => 1,
            Mode::Saturation | Mode::Capacity | Mode::Idle(_) => 3,
            _ => u32::MAX,
        }
    }

    /// Whether it is run in this round. What is run less often is run last, so that a run cut short has whole rounds.
    pub fn runs_in(self, round: u32, options: &Options) -> bool {
        round + self.rounds_max(options).min(options.rounds) >= options.rounds
    }

    /// Whether it asks this server at all.
    pub fn visits_peer(self, name: &str, quick: bool) -> bool {
        match self {
            Mode::Validate if quick => name == "floor",
            Mode::Validate => matches!(name, "floor" | "hyper"),
            Mode::Counts if quick => matches!(name, "sprat" | "floor" | "hyper"),
            _ => true,
        }
    }

    /// A figure with errors is not one that a server can stand.
    pub fn stops_at_errors(self) -> bool {
        matches!(self, Mode::Saturation | Mode::Capacity)
    }

    /// More connections would not bring more.
    pub fn stops_without_growth(self) -> bool {
        self == Mode::Saturation
    }

    /// What is asked of one start of a server, and how it is started.
    pub fn visits(self, options: &Options) -> Vec<(Kind, Vec<Step>)> {
        let quick = options.quick;
        let seconds = |full: f64, short: f64| options.seconds.unwrap_or(if quick { short } else { full });
        let at = |connections: usize, seconds: f64| Step { connections, depth: 1, seconds, ..Step::default() };
        match self {
            Mode::Hello => {
                let rungs: &[usize] = if quick { &[1, 50, 300] } else { &[1, 25, 50, 100, 200, 300] };
                let step = |&n: &usize| Step { counts_requests: true, ..at(n, seconds(2.0, 0.5)) };
                vec![(Kind::Hello, rungs.iter().map(step).collect())]
            }
            Mode::Resource => {
                let long = if options.is_everything { 5.0 } else { 30.0 };
                let step = Step { ask: Ask::Post, counts_requests: true, ..at(200, seconds(long, 0.8)) };
                vec![(Kind::Resource, vec![step])]
            }
            Mode::Saturation => {
                let rungs: &[usize] = if quick { &[1, 5, 20, 100, 400] } else { &CONNECTIONS };
                vec![(Kind::Hello, rungs.iter().map(|&n| at(n, seconds(1.0, 0.4))).collect())]
            }
            Mode::Capacity => {
                let rungs: &[usize] = if quick { &[1000, 4000] } else { &[500, 1000, 2000, 4000, 8000, 16_000] };
                vec![(Kind::Hello, rungs.iter().map(|&n| at(n, seconds(2.0, 0.5))).collect())]
            }
            Mode::NoKeepAlive => vec![(Kind::HelloClose, vec![at(64, seconds(3.0, 0.6))])],
            Mode::Latency => {
                let loads: &[u32] = if quick { &[75] } else { &[25, 50, 75, 90] };
                let rates: &[f64] = if quick { &[] } else { &[1000.0, 5000.0, 20_000.0] };
                let mut steps = vec![at(64, seconds(1.5, 0.5))];
                let open = at(64, seconds(3.0, 0.8));
                steps.extend(loads.iter().map(|&percent| Step { load_percent: Some(percent), ..open }));
                steps.extend(rates.iter().map(|&rate| Step { rate: Some(rate), capped: true, ..open }));
                vec![(Kind::Hello, steps)]
            }
            Mode::Idle(herd) => {
                let active = Step { rate: Some(500.0), ..at(100, seconds(3.0, 0.7)) };
                let herd = if quick { herd.min(2000) } else { herd };
                vec![(Kind::Hello, vec![active, Step { herd, ..active }])]
            }
            Mode::Pipelined => vec![(Kind::Hello, vec![Step { depth: 16, ..at(64, seconds(2.0, 0.6)) }])],
            Mode::Browser => vec![(Kind::Hello, vec![Step { ask: Ask::Browser, ..at(64, seconds(2.0, 0.6)) }])],
            Mode::Counts | Mode::Validate => Vec::new(),
        }
    }
}

/// Held connections unless `--idle` says otherwise: what fits under the usual limit of descriptors.
pub const IDLE: usize = 9000;
