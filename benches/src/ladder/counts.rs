//! Instructions, allocations and system calls of one request: figures that hardly vary.
//!
//! Each is a slope: the count of a longer run less that of a shorter one, over the requests between them, so that
//! starting and stopping cancel out.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::record::Count;
use crate::load;
use crate::peers::check::{HELLO, RESOURCE, RESOURCE_ANSWER, RESOURCE_BODY, RESOURCE_FIELDS};
use crate::peers::{Kind, Peer, Running, find_program};
use crate::process;

/// Counts what can be counted here.
pub fn count(peer: &Peer, kind: Kind, quick: bool) -> Count {
    let ask = if kind == Kind::Resource { "post" } else { "get" };
    let mut count = Count { server: peer.name.clone(), ask: ask.into(), ..Count::default() };
    let folder = std::env::temp_dir().join(format!("sprat-bench-counts-{}", std::process::id()));
    if let Err(e) = std::fs::create_dir_all(&folder) {
        count.missing.push(e.to_string());
        return count;
    }
    let (few, many) = if quick { (500, 2000) } else { (1000, 6000) };
    let note = |missing: &mut Vec<String>, result: Result<f64, String>| {
        result.map_err(|why| missing.push(why)).ok().map(|figure| load::rounded(figure, 3))
    };
    if !peer.is_native() {
        count.missing.push("valgrind counts native code only".into());
    } else if find_program("valgrind").is_none() {
        count.missing.push("valgrind is missing: apt-get install valgrind".into());
    } else {
        let file = folder.join("callgrind");
        let callgrind =
            ["valgrind", "--tool=callgrind", &format!("--callgrind-out-file={}", file.display())].map(String::from);
        let counted = slope(few, many, |n| {
            traced(peer, kind, &callgrind, n)?;
            total_instructions(&file)
        });
        count.instructions = note(&mut count.missing, counted);
        if quick {
            count.missing.push("--quick counts no allocations".into());
        } else {
            let file = folder.join("memcheck");
            let memcheck =
                ["valgrind", "--undef-value-errors=no", &format!("--log-file={}", file.display())].map(String::from);
            let counted = slope(few, many, |n| {
                traced(peer, kind, &memcheck, n)?;
                total_allocations(&file)
            });
            count.allocations = note(&mut count.missing, counted);
        }
    }
    if find_program("strace").is_none() {
        count.missing.push("strace is missing: apt-get install strace".into());
    } else {
        let file = folder.join("strace");
        let strace = ["strace", "-f", "-c", "-o", &file.display().to_string()].map(String::from);
        let few_calls = traced(peer, kind, &strace, few).and_then(|()| calls(&file));
        let many_calls = traced(peer, kind, &strace, many).and_then(|()| calls(&file));
        match (few_calls, many_calls) {
            (Ok(few_calls), Ok(many_calls)) => {
                let between = (many - few) as f64;
                let of = |name: &str| few_calls.get(name).copied().unwrap_or(0.0);
                let mut slopes: Vec<(String, f64)> = many_calls
                    .iter()
                    .map(|(name, count)| (name.clone(), load::rounded((count - of(name)) / between, 3)))
                    .filter(|(_, slope)| *slope >= 0.01)
                    .collect();
                slopes.sort_by(|a, b| b.1.total_cmp(&a.1));
                count.system_calls = Some(load::rounded(slopes.iter().map(|(_, slope)| slope).sum(), 3));
                count.calls = slopes;
            }
            (Err(why), _) | (_, Err(why)) => count.missing.push(why),
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    count
}

fn slope(few: u64, many: u64, mut total: impl FnMut(u64) -> Result<f64, String>) -> Result<f64, String> {
    let (low, high) = (total(few)?, total(many)?);
    Ok((high - low) / (many - few) as f64)
}

/// Starts the server under a tracer, asks it so many requests on 8 connections, and ends it so that the tracer reports.
fn traced(peer: &Peer, kind: Kind, tracer: &[String], requests: u64) -> Result<(), String> {
    let mut server = Running::start(peer, kind, None, tracer)?;
    let mut args: Vec<String> =
        ["-c", "8", "--warm", "0", "--timeout", "60", "--quiet", "-n"].map(String::from).to_vec();
    args.push(requests.to_string());
    if kind == Kind::Resource {
        RESOURCE_FIELDS.iter().for_each(|field| args.extend(["--field".into(), (*field).into()]));
        args.extend(["--body", RESOURCE_BODY, "--expect", RESOURCE_ANSWER].map(String::from));
        args.push(format!("http://{}{RESOURCE}", server.address));
    } else {
        args.extend(["--expect".into(), HELLO.into(), format!("http://{}/", server.address)]);
    }
    let plan = load::cli::parse(args.into_iter().map(Into::into)).map_err(|e| e.to_string())?;
    let outcome = load::run(&plan.ok_or("no plan")?).map_err(|e| e.to_string())?;
    if outcome.errors.total() > 0 {
        return Err(format!("under {}: {}", tracer[0], outcome.errors));
    }
    if tracer[0] == "strace" {
        // strace reports when what it traces has ended, and would not pass the signal on.
        for pid in process::tree(server.pid()).into_iter().skip(1).filter_map(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::TERM);
        }
        server.stop_with(Signal::INT, Duration::from_secs(10));
    } else {
        server.stop_with(Signal::TERM, Duration::from_secs(20));
    }
    Ok(())
}

/// The sum that callgrind writes at the end.
pub fn total_instructions(file: &Path) -> Result<f64, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("callgrind wrote nothing: {e}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    line.and_then(|sum| sum.split_whitespace().next()?.parse().ok()).ok_or_else(|| "callgrind wrote no sum".into())
}

fn total_allocations(file: &Path) -> Result<f64, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("valgrind wrote nothing: {e}"))?;
    let line = text.lines().rev().find_map(|line| line.split_once("total heap usage: "));
    let number = line.and_then(|(_, rest)| rest.split_whitespace().next()).map(|n| n.replace(',', ""));
    number.and_then(|n| n.parse().ok()).ok_or_else(|| "valgrind wrote no heap usage".into())
}

/// Name and count of each system call.
fn calls(file: &Path) -> Result<BTreeMap<String, f64>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("strace wrote nothing: {e}"))?;
    let calls = parse_calls(&text);
    if calls.is_empty() { Err("strace wrote no calls".into()) } else { Ok(calls) }
}

/// Lines of `% time, seconds, usecs/call, calls, [errors,] syscall`.
fn parse_calls(text: &str) -> BTreeMap<String, f64> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = *words.last()?;
        let count: f64 = words.get(3)?.parse().ok()?;
        words[0].parse::<f64>().ok()?;
        (words.len() >= 5 && name != "total").then(|| (name.to_owned(), count))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_strace_is_read() {
        let text = "% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 50.00    0.000100           5        20           sendto
 50.00    0.000100           5        22         2 recvfrom
------ ----------- ----------- --------- --------- ----------------
100.00    0.000200           4        42         2 total
";
        let expected = [("sendto".to_owned(), 20.0), ("recvfrom".to_owned(), 22.0)];
        assert_eq!(parse_calls(text), BTreeMap::from(expected));
    }
}
