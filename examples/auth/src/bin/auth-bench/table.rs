//! Rows of measurements, put together by median and printed as the ladder's tables are.

use sprat_bench::load::Outcome;
use sprat_bench::report::charts::{duration, grouped, micro, plain};
use sprat_bench::stats::median;

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

struct Row {
    mode: &'static str,
    at: String,
    outcomes: Vec<Outcome>,
}

const HEADS: [&str; 14] = [
    "mode",
    "at",
    "per second",
    "low to high",
    "mean",
    "p50",
    "p99",
    "p99.9",
    "max",
    "server CPU",
    "client CPU",
    "peak MiB",
    "rounds",
    "errors",
];

impl Table {
    pub fn add(&mut self, mode: &'static str, at: String, outcome: Outcome) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.mode == mode && row.at == at) {
            return row.outcomes.push(outcome);
        }
        self.rows.push(Row { mode, at, outcomes: vec![outcome] });
    }

    pub fn errors(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.outcomes).map(|outcome| outcome.errors.total()).sum()
    }

    /// Medians over the rounds.
    pub fn print(&self) {
        let mut lines = vec![HEADS.map(str::to_owned).to_vec()];
        lines.extend(self.rows.iter().map(Row::cells));
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
        for (number, line) in lines.iter().enumerate() {
            let cells: Vec<String> = line
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(at, (cell, &width))| match at {
                    0 | 1 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            println!("| {} |", cells.join(" | "));
            if number == 0 {
                let dashes: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                println!("| {} |", dashes.join(" | "));
            }
        }
        for row in &self.rows {
            for errors in row.outcomes.iter().map(|outcome| outcome.errors).filter(|errors| errors.total() > 0) {
                println!("errors in {}, {}: {errors}", row.mode, row.at);
            }
        }
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let of =
            |figure: fn(&Outcome) -> Option<f64>| median(&self.outcomes.iter().filter_map(figure).collect::<Vec<_>>());
        let cell = |figure: fn(&Outcome) -> Option<f64>, write: fn(f64) -> String| {
            of(figure).map_or("–".to_owned(), |median| write(median.value))
        };
        let range = of(Outcome::rate)
            .map_or(String::new(), |median| format!("{} to {}", grouped(median.low), grouped(median.high)));
        let errors: u64 = self.outcomes.iter().map(|outcome| outcome.errors.total()).sum();
        vec![
            self.mode.to_owned(),
            self.at.clone(),
            cell(Outcome::rate, plain),
            range,
            cell(Outcome::mean_us, duration),
            cell(|outcome| Some(outcome.latency.p50), duration),
            cell(Outcome::p99_us, duration),
            cell(Outcome::p999_us, duration),
            cell(|outcome| Some(outcome.latency.max), duration),
            cell(Outcome::server_us, micro),
            cell(Outcome::client_us, micro),
            cell(Outcome::peak_mib, plain),
            self.outcomes.len().to_string(),
            errors.to_string(),
        ]
    }
}
