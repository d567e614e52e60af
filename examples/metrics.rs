//! Counters for Prometheus and an access log: `cargo run --release --example metrics [ADDRESS]`, then
//!
//! ```sh
//! curl localhost:3000/greet/ada; curl localhost:3000/none; curl localhost:3000/metrics
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Stderr, Write as _};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sprat::{Exchange, Respond, Server, routes};

struct App {
    /// By pattern and status.
    answers: BTreeMap<(&'static str, u16), Counted>,
    log: BufWriter<Stderr>,
}

#[derive(Default)]
struct Counted {
    answers: u64,
    bytes: u64,
}

routes! {
    /// Each answer is counted and logged, but for those to whoever collects the counters.
    Api for App [observe = App::note] {
        GET "/"             => const text("Hello, World!"),
        GET "/greet/{name}" => greet(name),
        GET "/metrics"      => metrics() [observe = |_, _| ()],
    }
}

fn greet(_: &mut App, name: &str) -> String {
    format!("Hello, {name}!")
}

/// In the text format of Prometheus.
fn metrics(app: &mut App) -> impl Respond + use<> {
    let mut text = String::new();
    for (name, value) in [("http_responses_total", 0), ("http_response_bytes_total", 1)] {
        let _ = writeln!(text, "# TYPE {name} counter");
        for ((route, status), counted) in &app.answers {
            let value = [counted.answers, counted.bytes][value];
            let _ = writeln!(text, "{name}{{route=\"{route}\",status=\"{status}\"}} {value}");
        }
    }
    text.field("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
}

impl App {
    fn note(&mut self, exchange: &Exchange<'_>) {
        let counted = self.answers.entry((exchange.route().unwrap_or("none"), exchange.status().code())).or_default();
        counted.answers += 1;
        counted.bytes += exchange.answer_len() as u64;
        let agent = exchange.request().and_then(|request| request.field("User-Agent")).unwrap_or("-");
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        // Nobody may be reading, which is no reason to fail.
        let _ = writeln!(self.log, "{seconds} {exchange} {agent:?}");
    }
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let server = Server::bind(address)?.shutdown_on_signals();
    println!("listening on http://{}", server.local_addr()?);
    let mut running = server.start(Api, App { answers: BTreeMap::new(), log: BufWriter::new(io::stderr()) })?;
    // The log waits in its buffer for a second at most. Dropping the state flushes the rest.
    let caller = running.caller();
    thread::spawn(move || {
        while caller.call(|app| _ = app.log.flush()) {
            thread::sleep(Duration::from_secs(1));
        }
    });
    while running.poll_once(None)? {}
    Ok(())
}
