//! The charts of a report: each with what it shows and how to read it.

use super::data::{self, Data, Pick};
use super::svg::{Bar, Bars, Lines, Scale, Series};
use crate::ladder::record::{Count, Row};
use crate::stats::{Median, median};

/// A chart with its words.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its file's name.
    pub name: &'static str,
    /// The heading above it.
    pub title: &'static str,
    /// How it was measured and how to read it.
    pub text: String,
    /// The drawing.
    pub svg: String,
}

/// All for which there are rows.
pub fn all(data: &Data) -> Vec<Chart> {
    let charts = [
        percent_of_floor(data),
        cpu_per_request(data),
        throughput(data),
        response_time(data),
        latency(data),
        latency_at_rates(data),
        memory(data),
        idle(data),
        capacity(data),
        counted(data),
        tools(data),
    ];
    charts.into_iter().flatten().collect()
}

/// The workloads of one request each, with their captions. `None`: the mode was not run.
fn workloads(data: &Data) -> Vec<(String, Pick<'static>)> {
    let hello = data.rung_near("hello", 50);
    let all = [
        hello.map(|n| (format!("GET, keep-alive, {n} connections"), Pick::at("hello", n))),
        Some(("JSON POST, 200 connections".to_owned(), Pick::mode("resource"))),
        Some(("GET with a browser's head, 64 connections".to_owned(), Pick::mode("browser"))),
        Some(("GET, 16 pipelined, 64 connections".to_owned(), Pick::mode("pipelined"))),
        Some(("GET, a new connection each, 64 at once".to_owned(), Pick::mode("no-keep-alive"))),
    ];
    all.into_iter().flatten().filter(|(_, pick)| !data.rungs(pick.mode).is_empty()).collect()
}

/// Bars of one figure, the best first.
fn bars(
    data: &Data,
    pick: Pick<'_>,
    figure: fn(&Row) -> Option<f64>,
    part: Option<fn(&Row) -> Option<f64>>,
) -> Vec<Bar> {
    let bar = |name: &str| {
        let value = data.median_of(name, pick, figure)?;
        // Split as all rounds together are: a short one has few of the ticks that tell user space from kernel.
        let part =
            part.and_then(|part| Some(value.value * data.sum_of(name, pick, part)? / data.sum_of(name, pick, figure)?));
        Some(Bar { name: name.to_owned(), value, part })
    };
    let mut bars: Vec<Bar> = data.measured().into_iter().filter_map(bar).collect();
    bars.sort_by(|a, b| a.value.value.total_cmp(&b.value.value));
    bars
}

fn chart(name: &'static str, title: &'static str, text: &str, bars: Bars) -> Option<Chart> {
    let is_empty = bars.panels.iter().all(|(_, bars)| bars.is_empty());
    (!is_empty).then(|| Chart { name, title, text: text.to_owned(), svg: bars.draw() })
}

fn percent_of_floor(data: &Data) -> Option<Chart> {
    let panel = |(name, pick): (String, Pick<'_>)| {
        let bar = |server: &str| {
            Some(Bar { name: server.to_owned(), value: data.percent_of_floor(server, pick)?, part: None })
        };
        let mut bars: Vec<Bar> = data.measured().into_iter().filter_map(bar).collect();
        bars.sort_by(|a, b| b.value.value.total_cmp(&a.value.value));
        (name, bars)
    };
    let panels = workloads(data).into_iter().map(panel).filter(|(_, bars)| !bars.is_empty()).collect();
    let text = "The floor is a program on mio that reads, counts blank lines and sends constants: it is no HTTP server, \
                and shows what the kernel itself costs here. A server at 80 % spends a fifth of its CPU on being one. Each \
                round's figure is divided by the floor's of the same round; a server beyond 100 % batches better.";
    let bars = Bars { title: "CPU efficiency, percent of the floor".into(), parts: None, number: percent, panels };
    chart("floor", "How close to the floor?", text, bars)
}

fn cpu_per_request(data: &Data) -> Option<Chart> {
    let panel =
        |(name, pick)| (name, bars(data, pick, |row| row.outcome.server_us(), Some(|row| row.outcome.user_us())));
    let panels = workloads(data).into_iter().map(panel).filter(|(_, bars)| !bars.is_empty()).collect();
    let text = "User and kernel time of the server's processes over the answers that arrived. This holds on a machine where \
                the client cannot saturate the server. Whiskers: 95 % intervals of the medians. A bar with a kink is longer than there is room for.";
    let parts = Some(("user space", "kernel"));
    let bars =
        Bars { title: "Server CPU per request, microseconds (less is better)".into(), parts, number: micro, panels };
    chart("cpu", "What does one request cost?", text, bars)
}

fn throughput(data: &Data) -> Option<Chart> {
    let mode = if data.rungs("saturation").is_empty() { "hello" } else { "saturation" };
    let series = series_over_connections(data, mode, |row| row.outcome.rate());
    let lines = Lines {
        title: "GET / per second against open connections (more is better)".into(),
        x: "connections".into(),
        y: "requests per second".into(),
        ticks: data.rungs(mode).into_iter().map(|n| (n as f64, n.to_string())).collect(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        number: short,
        series,
    };
    let text = "Closed loop: each connection asks again once it is answered. A line ends where more connections brought \
                nothing for two rungs, or errors. One client thread drives all: where lines meet at the top, the client or \
                the kernel is what they meet at, and the CPU per request above tells them apart.";
    lines_chart("throughput", "How many a second?", text, &lines)
}

fn series_over_connections(data: &Data, mode: &str, figure: fn(&Row) -> Option<f64>) -> Vec<Series> {
    let series = |name: &str| {
        let point = |n: usize| Some((n as f64, data.median_of(name, Pick::at(mode, n), figure)?));
        let points: Vec<_> = data.rungs(mode).into_iter().filter_map(point).collect();
        (!points.is_empty()).then(|| Series { name: name.to_owned(), points })
    };
    data.measured().into_iter().filter_map(series).collect()
}

fn lines_chart(name: &'static str, title: &'static str, text: &str, lines: &Lines) -> Option<Chart> {
    (!lines.series.is_empty()).then(|| Chart { name, title, text: text.to_owned(), svg: lines.draw() })
}

fn response_time(data: &Data) -> Option<Chart> {
    let panel = |n: usize| {
        (
            if n == 1 { "1 connection".to_owned() } else { format!("{n} connections") },
            bars(data, Pick::at("hello", n), |row| row.outcome.mean_us(), None),
        )
    };
    let panels = data.rungs("hello").into_iter().map(panel).filter(|(_, bars)| !bars.is_empty()).collect();
    let text = "The mean of a closed loop, the figure most comparisons print: with everything busy it is little more than \
                connections over throughput. It says nothing about the slowest answers; the open loop below does.";
    let bars =
        Bars { title: "Mean response time of GET / (less is better)".into(), parts: None, number: duration, panels };
    chart("response-time", "How long does an answer take on average?", text, bars)
}

/// Percentiles are placed by how many answers lie beyond them: 90, 99, 99.9 % at equal distances.
fn beyond(percentile: f64) -> f64 {
    100.0 / (100.0 - percentile)
}

fn latency_lines(data: &Data, pick: Pick<'_>, title: String) -> Option<Lines> {
    let series = |name: &str| {
        let rows: Vec<&Row> = data.rows_of(name, pick).filter(|row| row.rate.is_some()).collect();
        let mut places: Vec<f64> =
            rows.iter().flat_map(|row| row.outcome.latency.curve.iter().map(|(p, _)| *p)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let point = |percentile: f64| {
            let at = |row: &&Row| row.outcome.latency.curve.iter().find(|(p, _)| *p == percentile).map(|(_, us)| *us);
            let figures: Vec<f64> = rows.iter().filter_map(at).collect();
            // A place that not even half of the rounds reached would be the median of few.
            (figures.len() * 2 > rows.len()).then(|| median(&figures).map(|m| (beyond(percentile), m))).flatten()
        };
        let points: Vec<(f64, Median)> = places.into_iter().filter_map(point).collect();
        (!points.is_empty()).then(|| Series { name: name.to_owned(), points })
    };
    let mut series: Vec<Series> = data.measured().into_iter().filter_map(series).collect();
    let last = series.iter().flat_map(|s| s.points.iter().map(|(x, _)| *x)).fold(100.0, f64::max);
    let marks = [(0.0, "0"), (50.0, "50 %"), (90.0, "90 %"), (99.0, "99 %"), (99.9, "99.9 %"), (99.99, "99.99 %")];
    let ticks = marks.iter().map(|(p, text)| (beyond(*p), (*text).to_owned())).filter(|(x, _)| *x <= last * 1.001);
    let ticks: Vec<(f64, String)> = ticks.collect();
    // The axis ends at its last mark.
    let end = ticks.last().map_or(last, |(x, _)| x * 1.001);
    for line in &mut series {
        line.points.retain(|(x, _)| *x <= end);
    }
    (!series.is_empty()).then(|| Lines {
        title,
        x: "percentile, by how rare the slower ones are".into(),
        y: "latency from the planned moment".into(),
        ticks,
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        number: duration,
        series,
    })
}

fn latency(data: &Data) -> Option<Chart> {
    let mut loads: Vec<u32> = data.rows.iter().filter_map(|row| row.load_percent).collect();
    loads.sort_unstable();
    loads.dedup();
    let draw = |percent: u32| {
        let pick = Pick { load_percent: Some(percent), ..Pick::mode("latency") };
        Some(latency_lines(data, pick, format!("GET / at {percent} % of each server's own maximum"))?.draw())
    };
    let svg: String = stack(loads.into_iter().filter_map(draw).collect())?;
    let mut text = "Open loop: requests are sent on a fixed schedule, and an answer's latency counts from the moment it was \
                    planned for. A server that stalls is charged with every request that waited, which a closed loop never \
                    even sends. Each server runs at a part of its own maximum, so a faster one answers more here."
        .to_owned();
    let as_fast: Vec<&str> = data.measured().into_iter().filter(|name| keeps_the_client_busy(data, name)).collect();
    if !as_fast.is_empty() {
        text += &format!(
            " The client had no time to spare at the maximum of {}: what it was late itself is in their latencies.",
            as_fast.join(", ")
        );
    }
    Some(Chart { name: "latency", title: "How long do the slowest wait?", text, svg })
}

/// Whether the closed loop that found the maximum of a server found the client's too.
fn keeps_the_client_busy(data: &Data, name: &str) -> bool {
    let busy = |row: &Row| Some(row.outcome.client_us()? * row.outcome.rate()? / 1e6).filter(|_| row.rate.is_none());
    data.median_of(name, Pick::mode("latency"), busy).is_some_and(|part| part.value > 0.97)
}

fn latency_at_rates(data: &Data) -> Option<Chart> {
    let mut rates: Vec<f64> = data
        .rows
        .iter()
        .filter(|row| row.mode == "latency" && row.load_percent.is_none())
        .filter_map(|row| row.rate)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let draw = |rate: f64| {
        let pick = Pick { rate: Some(rate), ..Pick::mode("latency") };
        Some(latency_lines(data, pick, format!("GET / at {} requests a second for all", short(rate)))?.draw())
    };
    let svg = stack(rates.into_iter().filter_map(draw).collect())?;
    let text = "The same schedule for every server that can do a tenth more than that. At low rates this is mostly the time \
                that a sleeping processor takes to wake up.";
    Some(Chart { name: "latency-rates", title: "And at the same rate for all?", text: text.into(), svg })
}

/// Drawings one below the other, as one.
fn stack(drawings: Vec<String>) -> Option<String> {
    if drawings.len() < 2 {
        return drawings.into_iter().next();
    }
    let height_of = |svg: &str| -> f64 {
        let size = svg.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("900 0");
        size.split(' ').nth(1).and_then(|height| height.parse().ok()).unwrap_or(0.0)
    };
    let (mut inner, mut y) = (String::new(), 0.0);
    for drawing in drawings {
        let height = height_of(&drawing);
        inner.push_str(&drawing.replacen("<svg ", &format!("<svg y=\"{y}\" width=\"900\" height=\"{height}\" "), 1));
        y += height + 18.0;
    }
    Some(format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 {y}\" role=\"img\">\n{inner}</svg>\n"))
}

fn memory(data: &Data) -> Option<Chart> {
    let lines = Lines {
        title: "Peak resident memory against open connections, MiB (less is better)".into(),
        x: "connections".into(),
        y: "MiB".into(),
        ticks: data.rungs("hello").into_iter().map(|n| (n as f64, n.to_string())).collect(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        number: plain,
        series: series_over_connections(data, "hello", |row| row.outcome.peak_mib()),
    };
    let text = "The most that was resident while GET / was asked on so many connections, all processes of a server together, \
                from the kernel's own high-water mark. Shared pages count in full.";
    lines_chart("memory", "How much memory?", text, &lines)
}

fn idle(data: &Data) -> Option<Chart> {
    let herd = data.rows.iter().filter_map(|row| row.outcome.herd).map(|herd| herd.connections).max()?;
    let panels = vec![(String::new(), bars(data, Pick::mode("idle"), data::bytes_per_idle, None))];
    let text = format!(
        "{} connections, each answered once and then silent: how much the server's resident memory grew, for each. The \
         kernel's own part, some 4 KB a socket, is the same for all and not in it.",
        grouped(herd as f64)
    );
    let bars = Bars {
        title: "Resident bytes per idle connection (less is better)".into(),
        parts: None,
        number: bytes,
        panels,
    };
    chart("idle", "What does an idle connection cost?", &text, bars)
}

fn capacity(data: &Data) -> Option<Chart> {
    let top = data.rungs("capacity").into_iter().max()?;
    let bar = |name: &str| {
        let n = data.capacity(name)? as f64;
        Some(Bar { name: name.to_owned(), value: Median { value: n, low: n, high: n, count: 1 }, part: None })
    };
    let mut bars: Vec<Bar> = data.measured().into_iter().filter_map(bar).collect();
    bars.sort_by(|a, b| b.value.value.total_cmp(&a.value.value));
    let mut text = format!(
        "The most connections of the ladder, up to {}, that were all in use at the same time without one error or an answer \
         slower than 10 s, in every round.",
        grouped(top as f64)
    );
    if bars.iter().any(|bar| bar.name == "sprat" && bar.value.value < top as f64) {
        text += " sprat's end is its own: `Limits::connections_max` is 10,000 unless it is set.";
    }
    let bars = Bars {
        title: "Connections in use at the same time without errors (more is better)".into(),
        parts: None,
        number: grouped,
        panels: vec![(String::new(), bars)],
    };
    chart("capacity", "How many at the same time?", &text, bars)
}

fn counted(data: &Data) -> Option<Chart> {
    type Figure = fn(&Count) -> Option<f64>;
    let figures: [(&str, &str, Figure); 6] = [
        ("get", "GET: instructions in user space", |count| count.instructions),
        ("post", "JSON POST: instructions in user space", |count| count.instructions),
        ("get", "GET: heap allocations", |count| count.allocations),
        ("post", "JSON POST: heap allocations", |count| count.allocations),
        ("get", "GET: system calls", |count| count.system_calls),
        ("post", "JSON POST: system calls", |count| count.system_calls),
    ];
    let panel = |(ask, name, figure): (&str, &str, Figure)| {
        let bar = |server: &str| {
            let n = figure(data.count(server, ask)?)?;
            Some(Bar { name: server.to_owned(), value: Median { value: n, low: n, high: n, count: 1 }, part: None })
        };
        let mut bars: Vec<Bar> = data.measured().into_iter().filter_map(bar).collect();
        bars.sort_by(|a, b| a.value.value.total_cmp(&b.value.value));
        (name.to_owned(), bars)
    };
    let panels = figures.into_iter().map(panel).filter(|(_, bars)| !bars.is_empty()).collect();
    let text = "Counted by valgrind and strace, as the slope between a shorter and a longer run on 8 connections: these \
                hardly vary from run to run, also on a busy machine. Instructions and allocations of native code only.";
    let bars = Bars { title: "Counted per request (less is better)".into(), parts: None, number: plain, panels };
    chart("counts", "What happens in one request?", text, bars)
}

fn tools(data: &Data) -> Option<Chart> {
    let mut servers: Vec<&str> = data.tools.iter().map(|tool| &*tool.server).collect();
    servers.sort_unstable();
    servers.dedup();
    let panel = |server: &str| {
        let bar = |tool: &str| {
            let mine = data.tools.iter().filter(|t| t.server == server && t.tool == tool);
            let value = median(&mine.map(|t| t.per_second).collect::<Vec<_>>())?;
            Some(Bar { name: tool.to_owned(), value, part: None })
        };
        (server.to_owned(), ["load", "wrk", "h2load"].into_iter().filter_map(bar).collect())
    };
    let panels = servers.into_iter().map(panel).collect();
    let text = "The load generator of this report beside two others on the same servers, closed loop, 64 connections, one \
                thread. It must not be slower than they are, or it would be what is measured.";
    let bars = Bars {
        title: "Requests per second as each load generator sees them".into(),
        parts: None,
        number: grouped,
        panels,
    };
    chart("tools", "Is the load generator right?", text, bars)
}

// ---- how figures are written ---------------------------------------------------------------------------------------

/// `12,345`.
pub fn grouped(n: f64) -> String {
    let digits = format!("{:.0}", n.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `45k`.
pub fn short(n: f64) -> String {
    if n >= 1e6 {
        format!("{}M", trimmed(n / 1e6))
    } else if n >= 1e3 {
        format!("{}k", trimmed(n / 1e3))
    } else {
        trimmed(n)
    }
}

/// Three digits that count.
pub fn plain(n: f64) -> String {
    if n >= 1000.0 { grouped(n) } else { trimmed(n) }
}

fn trimmed(n: f64) -> String {
    let decimals = if n >= 100.0 {
        0
    } else if n >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{n:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `9.4 µs`.
pub fn micro(us: f64) -> String {
    format!("{} µs", plain(us))
}

/// Microseconds in the unit that fits.
pub fn duration(us: f64) -> String {
    if us >= 1e6 {
        format!("{} s", trimmed(us / 1e6))
    } else if us >= 1e3 {
        format!("{} ms", trimmed(us / 1e3))
    } else {
        format!("{} µs", trimmed(us))
    }
}

/// `95 %`.
pub fn percent(n: f64) -> String {
    format!("{n:.0} %")
}

/// `70 B`, `11.1 KB`.
pub fn bytes(n: f64) -> String {
    if n >= 1000.0 { format!("{} KB", trimmed(n / 1000.0)) } else { format!("{n:.0} B") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped_or_have_a_unit_and_three_digits() {
        let written =
            [grouped(1_234_567.0), short(45_000.0), plain(9.428), duration(1_530.0), duration(12.0), bytes(11_060.0)];
        assert_eq!(written, ["1,234,567", "45k", "9.43", "1.53 ms", "12 µs", "11.1 KB"]);
    }

    #[test]
    fn each_further_nine_is_as_far_as_the_one_before() {
        let places: Vec<f64> = [90.0, 99.0, 99.9].iter().map(|p| beyond(*p).log10()).collect();
        assert!(places.windows(2).all(|w| (w[1] - w[0] - 1.0).abs() < 1e-9), "{places:?}");
    }
}
