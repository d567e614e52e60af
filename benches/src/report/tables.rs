//! The tables of a report, as cells: the page and the summary each lay them out in their own way.

use super::charts::{bytes, duration, grouped, micro, percent, plain};
use super::data::{self, Data, Pick};
use crate::ladder::record::Row;
use crate::stats::Median;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Above it.
    pub title: String,
    /// Of the columns.
    pub heads: Vec<String>,
    /// Rows of cells; the first names the server.
    pub rows: Vec<Vec<Cell>>,
}

/// A figure with its interval, each already written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The median.
    pub text: String,
    /// `9.2 to 9.6 µs`.
    pub interval: String,
}

impl Cell {
    fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), interval: String::new() }
    }

    fn of(median: Option<Median>, number: fn(f64) -> String) -> Cell {
        let Some(median) = median else { return Cell::text("–") };
        let (low, high) = (number(median.low), number(median.high));
        let interval = if low == high { String::new() } else { format!("{} to {high}", without_unit_of(&low, &high)) };
        Cell { text: number(median.value), interval }
    }
}

/// `9.2`, if that is followed by `to 9.6 µs`.
fn without_unit_of<'l>(low: &'l str, high: &str) -> &'l str {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number,
        _ => low,
    }
}

/// The one table that says most.
pub fn summary(data: &Data) -> Table {
    let rung = data.rung_near("hello", 50).unwrap_or(50);
    let top = data.rungs("hello").into_iter().max().unwrap_or(300);
    let at_75 = Pick { load_percent: Some(75), ..Pick::mode("latency") };
    type Column<'d> = (String, Box<dyn Fn(&str) -> Cell + 'd>);
    let median = |name: &str, pick: Pick<'_>, figure: fn(&Row) -> Option<f64>, number: fn(f64) -> String| {
        Cell::of(data.median_of(name, pick, figure), number)
    };
    let columns: Vec<Column<'_>> = vec![
        (
            format!("CPU per GET, {rung} connections"),
            Box::new(|s| median(s, Pick::at("hello", rung), |row| row.outcome.server_us(), micro)),
        ),
        ("percent of floor".into(), Box::new(|s| Cell::of(data.percent_of_floor(s, Pick::at("hello", rung)), percent))),
        (
            "CPU per JSON POST, 200 connections".into(),
            Box::new(|s| median(s, Pick::mode("resource"), |row| row.outcome.server_us(), micro)),
        ),
        (
            "CPU per GET, 16 pipelined".into(),
            Box::new(|s| median(s, Pick::mode("pipelined"), |row| row.outcome.server_us(), micro)),
        ),
        (
            "CPU per GET on a new connection".into(),
            Box::new(|s| median(s, Pick::mode("no-keep-alive"), |row| row.outcome.server_us(), micro)),
        ),
        ("p99 at 75 % load, open loop".into(), Box::new(|s| median(s, at_75, |row| row.outcome.p99_us(), duration))),
        ("p99.9 at 75 % load, open loop".into(), Box::new(|s| median(s, at_75, |row| row.outcome.p999_us(), duration))),
        (
            format!("peak memory, {top} connections, MiB"),
            Box::new(|s| median(s, Pick::at("hello", top), |row| row.outcome.peak_mib(), plain)),
        ),
        ("bytes per idle connection".into(), Box::new(|s| median(s, Pick::mode("idle"), data::bytes_per_idle, bytes))),
    ];
    let row = |name: &&str| {
        let mut cells = vec![Cell::text(*name)];
        cells.extend(columns.iter().map(|(_, cell)| cell(name)));
        cells
    };
    let mut heads = vec!["server".to_owned()];
    heads.extend(columns.iter().map(|(head, _)| head.clone()));
    without_empty_columns(Table { title: String::new(), heads, rows: data.measured().iter().map(row).collect() })
}

/// How many times less CPU ours needs than each other server, by rounds.
pub fn times_less(data: &Data) -> Option<Table> {
    let rung = data.rung_near("hello", 50).unwrap_or(50);
    let columns = [
        ("GET", Pick::at("hello", rung)),
        ("JSON POST", Pick::mode("resource")),
        ("browser's head", Pick::mode("browser")),
        ("16 pipelined", Pick::mode("pipelined")),
        ("new connection each", Pick::mode("no-keep-alive")),
    ];
    let times = |n: f64| format!("{n:.2} ×");
    let row = |name: &&str| {
        let mut cells = vec![Cell::text(*name)];
        cells.extend(columns.iter().map(|(_, pick)| Cell::of(data.times_less_cpu("sprat", name, *pick), times)));
        cells
    };
    if !data.measured().contains(&"sprat") {
        return None;
    }
    let mut heads = vec!["against".to_owned()];
    heads.extend(columns.iter().map(|(head, _)| (*head).to_owned()));
    let rows = data.measured().iter().filter(|name| **name != "sprat").map(row).collect();
    Some(without_empty_columns(Table {
        title: "CPU that another server needs for each µs of sprat's".into(),
        heads,
        rows,
    }))
}

/// A table for each mode with everything that was measured.
pub fn details(data: &Data) -> Vec<Table> {
    let mut modes: Vec<&str> = Vec::new();
    for row in &data.rows {
        if !modes.contains(&&*row.mode) {
            modes.push(&row.mode);
        }
    }
    modes.into_iter().map(|mode| detail(data, mode)).collect()
}

fn detail(data: &Data, mode: &str) -> Table {
    let mut keys: Vec<(usize, Option<u32>, Option<u64>, usize)> = Vec::new();
    for row in data.rows.iter().filter(|row| row.mode == mode) {
        let rate = row.rate.filter(|_| row.load_percent.is_none()).map(f64::to_bits);
        let key = (row.connections, row.load_percent, rate, row.outcome.herd.map_or(0, |herd| herd.connections));
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.sort_unstable();
    let heads = [
        "server",
        "at",
        "per second",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "max",
        "server CPU",
        "of it user",
        "client CPU",
        "peak MiB",
        "rounds",
        "errors",
    ];
    let mut table = Table { title: mode.to_owned(), heads: heads.map(String::from).to_vec(), rows: Vec::new() };
    for (connections, load_percent, rate, herd) in keys {
        for name in data.measured() {
            let of_key = |row: &&Row| {
                let same_rate = rate.map_or(row.load_percent.is_some() || row.rate.is_none(), |rate| {
                    row.rate.map(f64::to_bits) == Some(rate)
                });
                let same_herd = row.outcome.herd.map_or(0, |herd| herd.connections) == herd;
                row.mode == mode
                    && row.server == name
                    && row.connections == connections
                    && row.load_percent == load_percent
                    && same_rate
                    && same_herd
            };
            let rows: Vec<&Row> = data.rows.iter().filter(of_key).collect();
            if rows.is_empty() {
                continue;
            }
            let cell = |figure: fn(&Row) -> Option<f64>, number: fn(f64) -> String| {
                let figures: Vec<f64> = rows.iter().filter_map(|row| figure(row)).collect();
                Cell::of(crate::stats::median(&figures), number)
            };
            let at = match (load_percent, rate, herd) {
                (Some(percent), ..) => format!("{connections}, {percent} % load"),
                (None, Some(rate), 0) => format!("{connections}, {} a second", grouped(f64::from_bits(rate))),
                (None, _, herd) if herd > 0 => format!("{connections} beside {} idle", grouped(herd as f64)),
                _ => grouped(connections as f64),
            };
            let errors: u64 = rows.iter().map(|row| row.outcome.errors.total()).sum();
            table.rows.push(vec![
                Cell::text(name),
                Cell::text(at),
                cell(|row| row.outcome.rate(), grouped),
                cell(|row| row.outcome.mean_us(), duration),
                cell(|row| Some(row.outcome.latency.p50), duration),
                cell(|row| Some(row.outcome.latency.p99), duration),
                cell(|row| row.outcome.p999_us(), duration),
                cell(|row| Some(row.outcome.latency.max), duration),
                cell(|row| row.outcome.server_us(), micro),
                cell(|row| row.outcome.user_us(), micro),
                cell(|row| row.outcome.client_us(), micro),
                cell(|row| row.outcome.peak_mib(), plain),
                Cell::text(rows.len().to_string()),
                Cell::text(errors.to_string()),
            ]);
        }
    }
    table
}

/// The servers, their versions and how their checks went.
pub fn servers(data: &Data) -> Table {
    let heads = ["server", "what it is", "version", "check", "to know"].map(String::from).to_vec();
    let row = |server: &crate::ladder::record::Server| {
        let cells = [&server.name, &server.what, &server.version, &server.state.to_string(), &server.notes];
        cells.iter().map(|text| Cell::text((*text).clone())).collect()
    };
    Table { title: String::new(), heads, rows: data.servers.iter().map(row).collect() }
}

/// The head: what it was measured on.
pub fn machine(data: &Data) -> Vec<(String, String)> {
    let head = &data.head;
    let mut lines = vec![
        ("date, UTC".to_owned(), head.date.clone()),
        ("command".to_owned(), head.command.clone()),
        ("commit".to_owned(), head.commit.clone()),
        ("processor".to_owned(), format!("{}, {} to use", head.cpu, head.cpus.len())),
        ("memory".to_owned(), format!("{} MiB", grouped(head.memory_mib as f64))),
        ("kernel".to_owned(), head.kernel.clone()),
        ("clocksource".to_owned(), head.clocksource.clone()),
    ];
    if !head.governor.is_empty() {
        lines.push(("frequency governor".to_owned(), head.governor.clone()));
    }
    let pinned = match head.pinned {
        Some((server, client)) if server == client => format!("server and client share CPU {server}"),
        Some((server, client)) => format!("server on CPU {server}, client on CPU {client}"),
        None => "nothing is pinned".to_owned(),
    };
    lines.push(("placement".to_owned(), pinned));
    if let Some(slowdown) = head.neighbour_slowdown {
        lines.push(("a busy neighbour".to_owned(), format!("slows a computation down {slowdown:.2} times")));
    }
    lines.push(("compiler".to_owned(), head.rustc.clone()));
    let of_map = |map: &std::collections::BTreeMap<String, String>| {
        let known = map.iter().filter(|(_, value)| !value.is_empty() && *value != "Not affected");
        known.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
    };
    lines.push(("mitigations".to_owned(), of_map(&head.mitigations)));
    lines.push(("settings".to_owned(), of_map(&head.settings)));
    lines
}

/// What speaks against the figures. A reader should not have to find out.
pub fn doubts(data: &Data) -> Vec<String> {
    let mut doubts = data.notes.clone();
    let rounds = data.rows.iter().filter(|row| row.mode == "hello").map(|row| row.round).max().unwrap_or(0);
    if rounds < 7 && rounds > 0 {
        doubts.push(format!("Rounds: {rounds}. A look, not a result; fewer than 5 give ranges instead of intervals."));
    }
    if data.head.load_average > 0.5 {
        doubts.push(format!(
            "The machine was not quiet: its load was {:.2} before the run. Do not quote these times.",
            data.head.load_average
        ));
    }
    let (errors, steal) = data.doubtful();
    if errors > 0 {
        doubts.push(format!("{errors} of {} measurements saw errors; the tables say which.", data.rows.len()));
    }
    if steal > 0 {
        doubts.push(format!(
            "In {steal} of {} measurements the hypervisor took more than 1 % of the time.",
            data.rows.len()
        ));
    }
    if data.head.pinned.is_none() {
        doubts.push("Server and client were not pinned to processors.".into());
    }
    if data.runs > 1 {
        doubts.push(format!("{} runs are put together here, not all measured in the same hour.", data.runs));
    }
    if data.head.commit.ends_with("changes") {
        doubts.push("The tree held changes that are in no commit.".into());
    }
    doubts
}

fn without_empty_columns(mut table: Table) -> Table {
    let is_empty = |at: usize| table.rows.iter().all(|row| row[at].text == "–");
    let kept: Vec<usize> = (0..table.heads.len()).filter(|&at| !is_empty(at)).collect();
    table.heads = kept.iter().map(|&at| table.heads[at].clone()).collect();
    for row in &mut table.rows {
        *row = kept.iter().map(|&at| row[at].clone()).collect();
    }
    table
}
