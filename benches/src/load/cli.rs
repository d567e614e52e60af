//! The command line of the load generator, and its one line of JSON.

use std::io::{IsTerminal, Write as _};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use lexopt::prelude::*;

use super::template::{Request, Text};
use super::{Churn, Expect, Pace, Plan, run};

/// What `load --help` prints.
pub const HELP: &str = "\
load: drives an HTTP/1.1 server and says what it saw

  load [OPTIONS] http://127.0.0.1:3000/PATH

Without --rate the loop is closed: each connection asks again when it was answered. That finds the most a server
can do, and says nothing about latency. With --rate the loop is open: requests are planned on a fixed schedule, and
latency counts from the planned moment, whether or not a connection was free then.

How much
  -c, --connections N    connections open at the same time [1]
  -p, --pipeline N       requests in flight on each [1]
  -t, --time SECONDS     measure for so long [5]
  -n, --requests N       end after so many answers, or after --time, here 600 s unless given
      --warm SECONDS     run before that, uncounted [0.5]
  -r, --rate N           open loop: so many requests a second
      --poisson          at independent random moments instead of even ones
      --spin             do not sleep between them: exact, takes a whole processor

What is asked: {n} in target, fields and body becomes the number of the request
  -X, --method METHOD    [GET, or POST with --body]
  -H, --field 'A: b'     a field line; may be repeated
  -d, --body TEXT        content; Content-Length is added

What every answer must be; anything else is an error
      --status N         its status [200]
      --expect TEXT      its content: the length of each is checked, and the bytes of one in 16

Connections
      --per-connection N close after so many requests
      --close WHO        who closes then: server (asked by Connection: close) or client [server]
      --sources N        connect from 127.0.0.2 and so on, N addresses in turns, to have more than 28,000 ports
      --herd N           also hold N connections that were answered once
      --timeout SECONDS  an answer that takes longer is an error [10]
      --errors-max N     give up after so many errors [1000]

Output: one JSON line; times in microseconds, CPU in seconds
      --watch PID        also measure what this process and its children use
      --each-second      a JSON line each second
      --quiet            no progress bar
  -h, --help

It exits with 1 if there was any error.
";

/// Runs the load generator with these arguments, and returns what the process exits with.
pub fn main(args: impl IntoIterator<Item = std::ffi::OsString>) -> i32 {
    let plan = match parse(args) {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            print!("{HELP}");
            return 0;
        }
        Err(e) => {
            eprintln!("load: {e} (load --help says more)");
            return 2;
        }
    };
    let descriptors = crate::process::raise_descriptor_limit();
    if (plan.connections + plan.herd) as u64 + 32 > descriptors {
        eprintln!("load: {} connections, but only {descriptors} descriptors", plan.connections + plan.herd);
        return 2;
    }
    match run(&plan) {
        Ok(outcome) => {
            let line = serde_json::to_string(&outcome).expect("an outcome is plain data");
            let _ = writeln!(std::io::stdout(), "{line}");
            i32::from(outcome.errors.total() > 0)
        }
        Err(e) => {
            eprintln!("load: {e}");
            2
        }
    }
}

/// Reads a command line. `None`: help was asked for.
pub fn parse(args: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Option<Plan>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(args);
    let mut url = None;
    let (mut method, mut fields, mut body) = (None::<String>, Vec::new(), None::<String>);
    let mut expect = Expect { status: 200, body: None };
    let (mut connections, mut depth, mut herd, mut source_count) = (1usize, 1usize, 0usize, 0u32);
    let (mut time, mut warm, mut timeout) = (None, 0.5, 10.0);
    let (mut requests, mut rate, mut poisson, mut spin) = (None, None, false, false);
    let (mut per_connection, mut ask) = (None, true);
    let (mut errors_max, mut watch, mut each_second, mut quiet) = (1000, None, false, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('c') | Long("connections") => connections = positive(parser.value()?.parse()?)?,
            Short('p') | Long("pipeline") => depth = positive(parser.value()?.parse()?)?,
            Short('t') | Long("time") => time = Some(seconds(parser.value()?.parse()?)?),
            Short('n') | Long("requests") => requests = Some(parser.value()?.parse()?),
            Long("warm") => warm = parser.value()?.parse()?,
            Short('r') | Long("rate") => rate = Some(parser.value()?.parse::<f64>()?),
            Long("poisson") => poisson = true,
            Long("spin") => spin = true,
            Short('X') | Long("method") => method = Some(parser.value()?.string()?),
            Short('H') | Long("field") => fields.push(field(&parser.value()?.string()?)?),
            Short('d') | Long("body") => body = Some(parser.value()?.string()?),
            Long("status") => expect.status = parser.value()?.parse()?,
            Long("expect") => expect.body = Some(Text::parse(&parser.value()?.string()?)),
            Long("per-connection") => per_connection = Some(positive(parser.value()?.parse()?)? as u32),
            Long("close") => ask = who(&parser.value()?.string()?)?,
            Long("sources") => source_count = parser.value()?.parse()?,
            Long("herd") => herd = parser.value()?.parse()?,
            Long("timeout") => timeout = parser.value()?.parse()?,
            Long("errors-max") => errors_max = parser.value()?.parse()?,
            Long("watch") => watch = Some(parser.value()?.parse()?),
            Long("each-second") => each_second = true,
            Long("quiet") => quiet = true,
            Short('h') | Long("help") => return Ok(None),
            Value(value) if url.is_none() => url = Some(value.string()?),
            _ => return Err(arg.unexpected()),
        }
    }
    let (target, host, path) = take_apart(&url.ok_or("which server? a URL is missing")?)?;
    let pace = match rate {
        Some(rate) if rate > 0.0 && rate <= 1e7 => Pace::Open { rate, poisson },
        Some(_) => return Err("a rate between 0 and 10 million".into()),
        None => Pace::Closed,
    };
    let method = method.unwrap_or_else(|| if body.is_some() { "POST".into() } else { "GET".into() });
    let request = Request::new(&method, &path, &host, &fields, body.as_deref());
    fields.push(("Connection".into(), "close".into()));
    let request_last = Request::new(&method, &path, &host, &fields, body.as_deref());
    let time = time.unwrap_or(Duration::from_secs(if requests.is_some() { 600 } else { 5 }));
    Ok(Some(Plan {
        target,
        request,
        request_last,
        expect,
        connections,
        depth,
        pace,
        churn: per_connection.map(|requests| Churn { requests, ask }),
        herd,
        sources: (0..source_count.min(250)).map(|n| Ipv4Addr::new(127, 0, 0, 2 + n as u8)).collect(),
        warm: seconds(warm)?,
        time,
        requests,
        timeout: seconds(timeout)?,
        errors_max,
        watch,
        spin,
        progress: !quiet && std::io::stderr().is_terminal(),
        each_second,
    }))
}

fn positive(n: usize) -> Result<usize, lexopt::Error> {
    if n == 0 || n > 1_000_000 { Err("a number between 1 and a million".into()) } else { Ok(n) }
}

fn seconds(seconds: f64) -> Result<Duration, lexopt::Error> {
    if (0.0..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("a time of up to a day, in seconds".into())
    }
}

fn field(line: &str) -> Result<(String, String), lexopt::Error> {
    let (name, value) = line.split_once(':').ok_or("a field is written 'Name: value'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn who(closes: &str) -> Result<bool, lexopt::Error> {
    match closes {
        "server" => Ok(true),
        "client" => Ok(false),
        _ => Err("--close takes server or client".into()),
    }
}

/// Address, host and target of a URL.
fn take_apart(url: &str) -> Result<(SocketAddr, String, String), lexopt::Error> {
    let rest = url.strip_prefix("http://").ok_or("a URL begins with http://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let with_port = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let mut addresses = with_port.to_socket_addrs().map_err(|e| format!("{host}: {e}"))?;
    let address = addresses.next().ok_or("that host has no address")?;
    Ok((address, host.to_owned(), if path.is_empty() { "/".into() } else { path.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Option<Plan>, String> {
        parse(line.split_whitespace().map(std::ffi::OsString::from)).map_err(|e| e.to_string())
    }

    #[test]
    fn a_body_makes_it_a_post() {
        let plan = plan("-c 5 -p 2 -r 100 -d {\"id\":{n}} http://127.0.0.1:3000").unwrap().unwrap();
        let mut bytes = Vec::new();
        plan.request.write(7, &mut bytes);
        assert_eq!(
            std::str::from_utf8(&bytes),
            Ok("POST / HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nContent-Length: 8\r\n\r\n{\"id\":7}")
        );
        assert_eq!((plan.connections, plan.depth), (5, 2));
        assert_eq!(plan.pace, Pace::Open { rate: 100.0, poisson: false });
    }

    #[test]
    fn arguments_that_describe_no_load_are_refused_and_help_describes_none() {
        for line in [
            "",
            "http://x:1 http://y:1",
            "-c 0 http://127.0.0.1:1",
            "-r 0 http://127.0.0.1:1",
            "ftp://x",
            "--close who http://127.0.0.1:1",
        ] {
            assert!(plan(line).is_err(), "{line}");
        }
        assert!(plan("--help").unwrap().is_none());
    }
}
