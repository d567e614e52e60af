//! The load generator: one thread, one poll, many connections.
//!
//! **Closed loop**: each connection sends its next request when an answer came. Right for the most a server can do,
//! wrong for latency: while the server stalls, a closed loop asks nothing, so a stall is one slow request instead of
//! thousands.
//!
//! **Open loop**: requests are planned on a fixed schedule, and an answer's latency counts from the *planned* moment,
//! whether or not a connection was free to send it then. What was planned and never answered is an error.
//!
//! Every answer's status and length are checked, a sample of the bodies is compared, and every error is counted.

pub mod answer;
pub mod cli;
mod engine;
pub(crate) mod pace;
pub mod template;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::process::Spent;
use template::{Request, Text};

pub use engine::run;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: SocketAddr,
    /// What is asked.
    pub request: Request,
    /// The same with `Connection: close`, for the last request of a connection.
    pub request_last: Request,
    /// What every answer must be.
    pub expect: Expect,
    /// Connections open at the same time.
    pub connections: usize,
    /// Requests in flight on each.
    pub depth: usize,
    /// Closed or open loop.
    pub pace: Pace,
    /// When connections end.
    pub churn: Option<Churn>,
    /// Connections that are opened, used once and then only held.
    pub herd: usize,
    /// Addresses to connect from, in turns. Empty: the system chooses. One address has some 28,000 ports.
    pub sources: Vec<Ipv4Addr>,
    /// Runs before the measurement and is not counted.
    pub warm: Duration,
    /// How long is measured.
    pub time: Duration,
    /// End the measurement after this many answers.
    pub requests: Option<u64>,
    /// An answer that takes longer is an error.
    pub timeout: Duration,
    /// Give up after this many errors.
    pub errors_max: u64,
    /// Measure what this process and its children use meanwhile.
    pub watch: Option<u32>,
    /// Do not sleep between planned moments: exact, but takes all of a processor.
    pub spin: bool,
    /// Show a progress bar if standard error is a terminal.
    pub progress: bool,
    /// Print a JSON line each second.
    pub each_second: bool,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When an answer came.
    Closed,
    /// This many a second, evenly or at random moments.
    Open {
        /// Requests per second.
        rate: f64,
        /// Independent random arrivals instead of even ones.
        poisson: bool,
    },
}

/// How connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Churn {
    /// Requests on each connection.
    pub requests: u32,
    /// The last request says `Connection: close`, and the server closes. Otherwise the client just closes.
    pub ask: bool,
}

/// What an answer must be.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// Its status.
    pub status: u16,
    /// Its content: the length of each, the bytes of every [`BODY_SAMPLE`]th.
    pub body: Option<Text>,
}

/// Of so many bodies one is compared. The length of all of them is.
pub const BODY_SAMPLE: u64 = 16;

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Seconds that were measured.
    pub seconds: f64,
    /// Right answers within them.
    pub requests: u64,
    /// Right answers a second.
    pub per_second: f64,
    /// Closed loop: from sending to answer, which says little about tails. Open loop: from the planned moment.
    pub latency: Latency,
    /// What went wrong, warm-up included.
    pub errors: Errors,
    /// Connections opened within the measurement.
    pub opened: u64,
    /// Bytes received within it.
    pub received_bytes: u64,
    /// What the watched process used within it.
    pub server: Option<Spent>,
    /// What this process used within it.
    pub client: Spent,
    /// Of all processors' time, what the hypervisor took.
    pub steal_percent: f64,
    /// The held connections.
    pub herd: Option<Herd>,
}

/// The figures that tables show: none where there was too little to tell.
impl Outcome {
    /// The server's microseconds of CPU for each request.
    pub fn server_us(&self) -> Option<f64> {
        self.per_request(self.server.as_ref()?.cpu_s())
    }

    /// The part of it in user space.
    pub fn user_us(&self) -> Option<f64> {
        self.per_request(self.server.as_ref()?.user_s)
    }

    /// The client's.
    pub fn client_us(&self) -> Option<f64> {
        self.per_request(self.client.cpu_s())
    }

    fn per_request(&self, seconds: f64) -> Option<f64> {
        (self.requests > 0).then(|| seconds * 1e6 / self.requests as f64)
    }

    /// Right answers a second.
    pub fn rate(&self) -> Option<f64> {
        (self.requests > 0).then_some(self.per_second)
    }

    /// Microseconds from sending to answer, on average.
    pub fn mean_us(&self) -> Option<f64> {
        (self.requests > 0).then_some(self.latency.mean)
    }

    /// Microseconds that 99 of 100 answers took at most, if there were enough of them to tell.
    pub fn p99_us(&self) -> Option<f64> {
        (self.requests >= 1000).then_some(self.latency.p99)
    }

    /// Microseconds that 999 of 1,000 answers took at most, if there were enough of them to tell.
    pub fn p999_us(&self) -> Option<f64> {
        (self.requests >= 10_000).then_some(self.latency.p999)
    }

    /// The most MiB that were resident in the server.
    pub fn peak_mib(&self) -> Option<f64> {
        self.server.as_ref().map(|spent| spent.peak_bytes as f64 / 1_048_576.0)
    }
}

/// Connections that were held idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Herd {
    /// How many.
    pub connections: usize,
    /// The watched process's resident bytes before they came.
    pub resident_before: u64,
    /// And once all had been answered once.
    pub resident_after: u64,
    /// How many were closed by the server meanwhile.
    pub lost: u64,
}

/// Microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 of 100 were faster.
    pub p90: f64,
    /// 99 of 100 were faster.
    pub p99: f64,
    /// 999 of 1,000 were faster.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
    /// Percentile and microseconds, as far as there were enough answers to tell.
    pub curve: Vec<(f64, f64)>,
}

impl Latency {
    /// Sums up a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Latency {
        let at = |percentile: f64| rounded(histogram.value_at_percentile(percentile) as f64 / 1e3, 1);
        // A percentile that fewer than ten answers lie beyond says little.
        let told = |percentile: f64| histogram.len() as f64 * (100.0 - percentile) / 100.0 >= 10.0;
        let curve = CURVE.iter().filter(|&&p| told(p)).map(|&p| (p, at(p))).collect();
        Latency {
            mean: rounded(histogram.mean() / 1e3, 1),
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p999: at(99.9),
            max: rounded(histogram.max() as f64 / 1e3, 1),
            curve,
        }
    }
}

/// As many decimals as a measured figure deserves.
pub fn rounded(figure: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (figure * scale).round() / scale
}

const CURVE: [f64; 20] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.99,
    99.995, 99.999,
];

/// What went wrong, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// A connection that could not be opened.
    pub connect: u64,
    /// A connection reset, or closed with requests unanswered.
    pub closed: u64,
    /// No answer in time.
    pub timeout: u64,
    /// Another status than expected.
    pub status: u64,
    /// A body of another length.
    pub length: u64,
    /// A sampled body of other bytes.
    pub body: u64,
    /// No HTTP, or an answer nobody asked for.
    pub malformed: u64,
    /// Asked to close, and did not.
    pub left_open: u64,
    /// Planned and never sent, because no connection came free.
    pub unsent: u64,
}

impl Errors {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Errors { connect, closed, timeout, status, length, body, malformed, left_open, unsent } = *self;
        connect + closed + timeout + status + length + body + malformed + left_open + unsent
    }
}

impl std::fmt::Display for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = [
            (self.connect, "not connected"),
            (self.closed, "closed early"),
            (self.timeout, "timed out"),
            (self.status, "wrong status"),
            (self.length, "wrong length"),
            (self.body, "wrong body"),
            (self.malformed, "malformed"),
            (self.left_open, "left open"),
            (self.unsent, "unsent"),
        ];
        let mut separator = "";
        for (count, name) in kinds.iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {name}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}
