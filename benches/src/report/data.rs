//! The rows of a run, and the questions that charts and tables ask of them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ladder::record::{Count, Record, Row, Server, Tool};
use crate::machine::Head;
use crate::stats::{Median, median};

/// Everything that was recorded.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// The machine. Of several runs in one file, the first.
    pub head: Head,
    /// How many runs the file holds.
    pub runs: usize,
    /// The servers, those that were not measured too.
    pub servers: Vec<Server>,
    /// Measurements.
    pub rows: Vec<Row>,
    /// Instructions and the like.
    pub counts: Vec<Count>,
    /// Load generators.
    pub tools: Vec<Tool>,
    /// What a reader should know of the run.
    pub notes: Vec<String>,
}

/// A group of rows: one mode, one kind of request, one server.
#[derive(Clone, Copy, Debug)]
pub struct Pick<'a> {
    /// The mode.
    pub mode: &'a str,
    /// Connections, if they matter.
    pub connections: Option<usize>,
    /// The open loop's load, in percent of the server's maximum.
    pub load_percent: Option<u32>,
    /// The open loop's rate, where that was chosen.
    pub rate: Option<f64>,
}

impl<'a> Pick<'a> {
    /// All of a mode.
    pub const fn mode(mode: &'a str) -> Pick<'a> {
        Pick { mode, connections: None, load_percent: None, rate: None }
    }

    /// Those with so many connections.
    pub const fn at(mode: &'a str, connections: usize) -> Pick<'a> {
        Pick { connections: Some(connections), ..Pick::mode(mode) }
    }

    fn takes(&self, row: &Row) -> bool {
        row.mode == self.mode
            && self.connections.is_none_or(|n| row.connections == n)
            && self.load_percent == row.load_percent
            && self.rate.is_none_or(|rate| row.load_percent.is_none() && row.rate == Some(rate))
    }
}

impl Data {
    /// Reads a file of rows.
    pub fn read(path: &Path) -> Result<Data, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Data::parse(&text)
    }

    /// Reads lines of JSON.
    pub fn parse(text: &str) -> Result<Data, String> {
        let mut data = Data::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str(line).map_err(|e| format!("line {}: {e}", at + 1))? {
                Record::Head(head) => {
                    if data.runs == 0 {
                        data.head = *head;
                    }
                    data.runs += 1;
                }
                Record::Server(server) => {
                    data.servers.retain(|known| known.name != server.name);
                    data.servers.push(server);
                }
                Record::Row(row) => data.rows.push(*row),
                Record::Count(count) => {
                    data.counts.retain(|known| (&known.server, &known.ask) != (&count.server, &count.ask));
                    data.counts.push(count);
                }
                Record::Tool(tool) => data.tools.push(tool),
                Record::Note { text } => data.notes.push(text),
            }
        }
        Ok(data)
    }

    /// The names of the servers that have rows, in the order of `peers.json`.
    pub fn measured(&self) -> Vec<&str> {
        let has_rows = |name: &str| {
            self.rows.iter().any(|row| row.server == name) || self.counts.iter().any(|count| count.server == name)
        };
        self.servers.iter().map(|server| &*server.name).filter(|name| has_rows(name)).collect()
    }

    /// The rows of one server.
    pub fn rows_of<'d>(&'d self, server: &'d str, pick: Pick<'d>) -> impl Iterator<Item = &'d Row> {
        self.rows.iter().filter(move |row| row.server == server && pick.takes(row))
    }

    /// The median over the rounds of some figure.
    pub fn median_of(&self, server: &str, pick: Pick<'_>, figure: impl Fn(&Row) -> Option<f64>) -> Option<Median> {
        let figures: Vec<f64> = self.rows_of(server, pick).filter_map(figure).collect();
        median(&figures)
    }

    /// The sum over the rounds of some figure.
    pub fn sum_of(&self, server: &str, pick: Pick<'_>, figure: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        let sum: f64 = self.rows_of(server, pick).filter_map(figure).sum();
        (sum > 0.0).then_some(sum)
    }

    /// The connections at which a mode measured, in order.
    pub fn rungs(&self, mode: &str) -> Vec<usize> {
        let mut rungs: Vec<usize> =
            self.rows.iter().filter(|row| row.mode == mode).map(|row| row.connections).collect();
        rungs.sort_unstable();
        rungs.dedup();
        rungs
    }

    /// The rung of a mode that is nearest to this.
    pub fn rung_near(&self, mode: &str, connections: usize) -> Option<usize> {
        self.rungs(mode).into_iter().min_by_key(|rung| rung.abs_diff(connections))
    }

    /// The server's CPU in percent of which the floor needs for the same, by rounds: 100 is the floor.
    pub fn percent_of_floor(&self, server: &str, pick: Pick<'_>) -> Option<Median> {
        let floor: BTreeMap<u32, f64> =
            self.rows_of("floor", pick).filter_map(|row| Some((row.round, row.outcome.server_us()?))).collect();
        let ratio = |row: &Row| Some(100.0 * floor.get(&row.round)? / row.outcome.server_us()?);
        self.median_of(server, pick, ratio)
    }

    /// How many times more CPU `other` needs than `ours` for the same, by rounds.
    pub fn times_less_cpu(&self, ours: &str, other: &str, pick: Pick<'_>) -> Option<Median> {
        let ours: BTreeMap<u32, f64> =
            self.rows_of(ours, pick).filter_map(|row| Some((row.round, row.outcome.server_us()?))).collect();
        self.median_of(other, pick, |row| Some(row.outcome.server_us()? / ours.get(&row.round)?))
    }

    /// The most connections at the same time that a server stood without an error, in every round.
    pub fn capacity(&self, server: &str) -> Option<usize> {
        let rounds: Vec<u32> = self.rows_of(server, Pick::mode("capacity")).map(|row| row.round).collect();
        let best_of = |round: u32| {
            let clean = |row: &&Row| row.round == round && row.outcome.errors.total() == 0;
            self.rows_of(server, Pick::mode("capacity")).filter(clean).map(|row| row.connections).max().unwrap_or(0)
        };
        rounds.into_iter().map(best_of).min()
    }

    /// What was counted for one request.
    pub fn count(&self, server: &str, ask: &str) -> Option<&Count> {
        self.counts.iter().find(|count| count.server == server && count.ask == ask)
    }

    /// Rows that saw errors, or a hypervisor that took more than 1 % of the time.
    pub fn doubtful(&self) -> (usize, usize) {
        let errors = self.rows.iter().filter(|row| row.outcome.errors.total() > 0).count();
        let steal = self.rows.iter().filter(|row| row.outcome.steal_percent > 1.0).count();
        (errors, steal)
    }
}

/// Bytes by which the server grew for each connection of the herd.
pub fn bytes_per_idle(row: &Row) -> Option<f64> {
    let herd = row.outcome.herd.as_ref()?;
    let grown = herd.resident_after as f64 - herd.resident_before as f64;
    (herd.lost == 0).then(|| (grown / herd.connections as f64).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of `hello` at 50 connections: server, round, requests, CPU seconds.
    fn data(rows: &[(&str, u32, u64, f64)]) -> Data {
        let rows = rows.iter().map(|&(server, round, requests, cpu)| {
            let mut row: Row = serde_json::from_value(serde_json::json!({
                "mode": "hello", "server": server, "ask": "get", "round": round, "connections": 50, "depth": 1,
                "rate": null, "load_percent": null, "same_core": false, "outcome": crate::load::Outcome::default(),
            }))
            .unwrap();
            row.outcome.requests = requests;
            row.outcome.server = Some(crate::process::Spent { user_s: cpu, ..Default::default() });
            row
        });
        Data { rows: rows.collect(), ..Data::default() }
    }

    #[test]
    fn the_part_of_the_floor_pairs_the_rounds() {
        // The machine was half as fast in the second round; the part is the same.
        let data = data(&[("floor", 1, 100, 1.0), ("x", 1, 100, 2.0), ("floor", 2, 100, 2.0), ("x", 2, 100, 4.0)]);
        let percent = data.percent_of_floor("x", Pick::at("hello", 50)).unwrap();
        assert_eq!((percent.value, percent.low, percent.high), (50.0, 50.0, 50.0));
    }

    #[test]
    fn rows_without_answers_have_no_figures() {
        let data = data(&[("x", 1, 0, 1.0)]);
        assert!(data.median_of("x", Pick::at("hello", 50), |row| row.outcome.server_us()).is_none());
        assert!(data.percent_of_floor("x", Pick::at("hello", 50)).is_none());
    }
}
