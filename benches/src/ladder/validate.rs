//! The load generator beside others: what it says of a server must be what wrk and h2load say of it.

use std::process::{Command, Stdio};

use super::record::Tool;
use crate::load;
use crate::peers::{self, Kind, Peer, Running, find_program};
use crate::process;

/// The load generators that are compared. The last two come from Debian's packages wrk and nghttp2-client.
pub const TOOLS: [&str; 3] = ["load", "wrk", "h2load"];

/// Drives a fresh server with one of them, closed loop, 64 connections.
pub fn run(
    peer: &Peer,
    tool: &str,
    server_cpu: Option<usize>,
    client_cpu: Option<usize>,
    seconds: f64,
) -> Result<Tool, String> {
    if tool != "load" && find_program(tool).is_none() {
        return Err(format!("{tool} is missing: apt-get install wrk nghttp2-client"));
    }
    let server = Running::start(peer, Kind::Hello, server_cpu, &[])?;
    drive(&server, tool, client_cpu, 0.3)?; // warms it up
    let pids = process::tree(server.pid());
    let before = process::usage(&pids);
    let (requests, per_second) = drive(&server, tool, client_cpu, seconds)?;
    let spent = process::spent(&before, &process::usage(&pids));
    Ok(Tool {
        tool: tool.into(),
        server: peer.name.clone(),
        round: 0,
        per_second,
        server_us: load::rounded(spent.cpu_s() * 1e6 / requests.max(1.0), 3),
    })
}

/// How many requests it made, and how many a second.
fn drive(server: &Running, tool: &str, cpu: Option<usize>, seconds: f64) -> Result<(f64, f64), String> {
    let url = format!("http://{}/", server.address);
    let whole = seconds.max(1.0).round().to_string();
    let mut args = peers::pin(cpu);
    let program = std::env::current_exe().map_err(|e| e.to_string())?.display().to_string();
    let words: Vec<&str> = match tool {
        "load" => vec![&program, "load", "--quiet", "-c", "64", "--warm", "0", "--time", &whole],
        "wrk" => vec!["wrk", "-t1", "-c64", "-d", &whole],
        _ => vec!["h2load", "--h1", "-t1", "-c64", "-D", &whole],
    };
    args.extend(words.into_iter().map(str::to_owned));
    args.push(url);
    let output = Command::new(&args[0]).args(&args[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{}: {e}", args[0]))?;
    let said = String::from_utf8_lossy(&output.stdout);
    read(tool, &said).ok_or_else(|| format!("{tool} said nothing that is understood: {}", said.trim()))
}

fn read(tool: &str, said: &str) -> Option<(f64, f64)> {
    let number = |word: &str| word.trim_end_matches(',').parse::<f64>().ok();
    match tool {
        "load" => {
            let outcome: load::Outcome = serde_json::from_str(said.lines().last()?).ok()?;
            Some((outcome.requests as f64, outcome.per_second))
        }
        "wrk" => {
            let line = said.lines().find(|line| line.contains(" requests in "))?;
            let rate = said.lines().find_map(|line| line.strip_prefix("Requests/sec:"))?;
            Some((number(line.split_whitespace().next()?)?, number(rate.trim())?))
        }
        _ => {
            let requests = said.lines().find_map(|line| line.strip_prefix("requests: "))?;
            let finished = said.lines().find_map(|line| line.strip_prefix("finished in "))?;
            let rate = finished.split(", ").nth(1)?.strip_suffix(" req/s")?;
            let done = requests.split(", ").find_map(|part| part.strip_suffix(" succeeded"))?;
            Some((number(done)?, number(rate)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_tools_say_is_understood() {
        let wrk = "Running 2s test\n  43712 requests in 2.01s, 5.42MB read\nRequests/sec:  21726.70\n";
        assert_eq!(read("wrk", wrk), Some((43_712.0, 21_726.7)));
        let h2load = "finished in 2.01s, 17799.00 req/s, 2.21MB/s\n\
                      requests: 35598 total, 35662 started, 35598 done, 35598 succeeded, 0 failed, 0 errored\n";
        assert_eq!(read("h2load", h2load), Some((35_598.0, 17_799.0)));
        assert_eq!(read("wrk", "unable to connect"), None);
    }
}
