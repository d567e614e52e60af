//! Whether well-behaved clients notice hostile ones: `fairness`, about a minute.
//!
//! The server has one processor, and all clients another. Well-behaved ones ask on a schedule, at half of what the server
//! can do: alone, and beside slow heads, single bytes, slow readers and a pipelining flood. The hostile ones run alone as
//! well, for their share of the processor time is not the others' fault. Their pace is fixed, so that it is the same in
//! both cases; what they did not get done is not charged to them. Three rounds, of which the medians count.
//!
//! `--flood` makes the flood as hard as one processor can: then the shares mean nothing, but the other limits hold.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sprat::{Limits, Respond, Server, Static, routes};
use sprat_bench::load::template::{Request, Text};
use sprat_bench::load::{Expect, Outcome, Pace, Plan};
use sprat_bench::{load, machine, peers, process};

struct App;

routes! {
    Api for App {
        GET "/"      => const text("hello"),
        GET "/large" => large(),
    }
}

static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];

fn large(_: &mut App) -> impl Respond {
    Static(&LARGE)
}

const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => serve(),
        Some("measure") => measure(arguments.iter().any(|argument| argument == "--flood")),
        // Again, on a processor that the server does not have.
        _ => {
            let client = machine::allowed_cpus().get(1).copied();
            let status = on_processor(client, "measure").args(&arguments[1..]).status().expect("this program runs");
            if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

fn on_processor(cpu: Option<usize>, role: &str) -> Command {
    let mut words = peers::pin(cpu);
    words.push(std::env::current_exe().expect("a path").display().to_string());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(role);
    command
}

fn serve() -> ExitCode {
    let server = Server::bind("127.0.0.1:0").expect("a free port").limits(Limits::DEFAULT).shutdown_on_signals();
    println!("{}", server.local_addr().expect("an address"));
    server.serve(Api, App).expect("the loop runs");
    ExitCode::SUCCESS
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(floods: bool) -> ExitCode {
    process::raise_descriptor_limit();
    let cpu = machine::allowed_cpus().first().copied();
    let child = on_processor(cpu, "serve").stdout(Stdio::piped()).spawn().expect("this program runs");
    let mut server = Process(child);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("an address");
    let (address, pid): (SocketAddr, u32) = (line.trim().parse().expect("an address"), server.0.id());

    let most = run(address, pid, Pace::Closed, Duration::from_secs(3)).per_second;
    let pace = Pace::Open { rate: most / 2.0, poisson: true };
    println!("at most {most:.0} requests a second; asked for are {:.0}", most / 2.0);

    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let alone = run(address, pid, pace, TIME);
        let hostile = Hostile::default();
        let (share, beside, done) = thread::scope(|scope| {
            hostile.start(scope, address, floods);
            // Until all of them are at it.
            thread::sleep(Duration::from_secs(1));
            let (before, begun, done) = (process::usage(&[pid]), Instant::now(), hostile.done());
            thread::sleep(TIME);
            let spent = process::spent(&before, &process::usage(&[pid])).cpu_s();
            // By what was done, and by the time.
            let (seconds, units) = (begun.elapsed().as_secs_f64(), (hostile.done() - done) as f64);
            let (begun, done) = (Instant::now(), hostile.done());
            let beside = run(address, pid, pace, TIME);
            let part = (hostile.done() - done) as f64 / units * seconds / begun.elapsed().as_secs_f64();
            hostile.stop.store(true, Ordering::Relaxed);
            (spent / seconds, beside, part)
        });
        let cpu = |outcome: &Outcome| outcome.server.map_or(0.0, |spent| spent.cpu_s()) / outcome.seconds;
        let each = cpu(&alone) / alone.per_second * 1e6;
        let beside_each = (cpu(&beside) - share * done) / beside.per_second * 1e6;
        println!(
            "alone {:.0} us p99, {each:.2} us of processor; beside {:.0} us p99, {beside_each:.2} us; hostile alone {:.1} % \
             of the processor, {:.0} % of that beside; missed {} and {} ({}; {})",
            alone.latency.p99,
            beside.latency.p99,
            share * 100.0,
            done * 100.0,
            alone.errors.total(),
            beside.errors.total(),
            alone.errors,
            beside.errors,
        );
        rounds.push([alone.latency.p99, beside.latency.p99, each, beside_each, beside.errors.total() as f64]);
        // The hostile ones are gone, and what they left in the kernel.
        thread::sleep(Duration::from_millis(500));
    }
    let column = |at: usize| {
        let mut figures: Vec<f64> = rounds.iter().map(|round| round[at]).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let missed: f64 = rounds.iter().map(|round| round[4]).sum();
    let latency_max = 2.0 * column(0) + 1000.0;
    let ratio = column(3) / column(2);
    let verdict = |holds: bool| if holds { "ok" } else { "FAILED" };
    println!("missed requests      {missed:8.0}   0 allowed         {}", verdict(missed == 0.0));
    println!(
        "p99 beside           {:8.0} us {latency_max:.0} us allowed   {}",
        column(1),
        verdict(column(1) <= latency_max)
    );
    println!(
        "processor, a request {ratio:8.2} x  1.10 x allowed    {}",
        if floods { "not judged" } else { verdict(ratio <= 1.1) }
    );
    let holds = missed == 0.0 && column(1) <= latency_max && (floods || ratio <= 1.1);
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(target: SocketAddr, pid: u32, pace: Pace, time: Duration) -> Outcome {
    let request = Request::new("GET", "/", "x", &[], None);
    load::run(&Plan {
        target,
        request: request.clone(),
        request_last: request,
        expect: Expect { status: 200, body: Some(Text::parse("hello")) },
        connections: 64,
        depth: 1,
        pace,
        churn: None,
        herd: 0,
        sources: Vec::new(),
        warm: Duration::from_millis(500),
        time,
        requests: None,
        timeout: Duration::from_secs(5),
        errors_max: 1000,
        watch: Some(pid),
        spin: false,
        progress: false,
        each_second: false,
    })
    .expect("the load generator runs")
}

/// Those who mean no good.
#[derive(Default)]
struct Hostile {
    stop: AtomicBool,
    /// Requests and single bytes sent.
    done: AtomicU64,
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

impl Hostile {
    fn start<'s>(&'s self, scope: &'s thread::Scope<'s, '_>, address: SocketAddr, floods: bool) {
        scope.spawn(move || self.drip(address, 200, Duration::from_millis(500)));
        scope.spawn(move || self.drip(address, 20, Duration::from_millis(2)));
        scope.spawn(move || self.read_slowly(address, 50));
        for _ in 0..2 {
            scope.spawn(move || self.flood(address, if floods { Duration::ZERO } else { Duration::from_millis(25) }));
        }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Waits for the next step. False if there is none. A step that is late is not made up for.
    fn next(&self, at: &mut Instant, every: Duration) -> bool {
        *at += every;
        match at.checked_duration_since(Instant::now()) {
            Some(left) => thread::sleep(left),
            None => *at = Instant::now(),
        }
        !self.stop.load(Ordering::Relaxed)
    }

    /// So many send one byte each in turn, and connect again when the server has had enough.
    fn drip(&self, address: SocketAddr, count: usize, every: Duration) {
        let mut peers: Vec<Option<(TcpStream, usize)>> = (0..count).map(|_| None).collect();
        let mut at = Instant::now();
        let mut answers = [0; 1024];
        while self.next(&mut at, every) {
            for peer in &mut peers {
                let (stream, sent) = match peer {
                    Some(peer) => peer,
                    None => match connect(address) {
                        Ok(stream) => peer.insert((stream, 0)),
                        Err(_) => continue,
                    },
                };
                let ended = matches!(stream.read(&mut answers), Ok(0));
                if ended || stream.write_all(&GET[*sent % GET.len()..][..1]).is_err() {
                    *peer = None;
                    continue;
                }
                *sent += 1;
                self.done.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// So many ask for more than they read.
    fn read_slowly(&self, address: SocketAddr, count: usize) {
        let mut peers: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
        let mut at = Instant::now();
        let mut piece = [0; 4096];
        while self.next(&mut at, Duration::from_millis(100)) {
            for peer in &mut peers {
                let stream = match peer {
                    Some(stream) => stream,
                    None => match connect(address) {
                        Ok(mut stream) => {
                            let _ = stream.write_all(&b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20));
                            peer.insert(stream)
                        }
                        Err(_) => continue,
                    },
                };
                if matches!(stream.read(&mut piece), Ok(0)) {
                    *peer = None;
                }
            }
        }
    }

    /// Bursts of requests, with or without a pause, and all answers read.
    fn flood(&self, address: SocketAddr, pause: Duration) {
        let Ok(mut stream) = connect(address) else { return };
        let burst = GET.repeat(500);
        let (mut sent, mut at, mut answers) = (0, Instant::now(), vec![0; 256 << 10]);
        while self.next(&mut at, pause) {
            loop {
                while matches!(stream.read(&mut answers), Ok(1..)) {}
                match stream.write(&burst[sent..]) {
                    Ok(n) => sent += n,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => return,
                }
                if sent == burst.len() {
                    sent = 0;
                    self.done.fetch_add(500, Ordering::Relaxed);
                    break;
                }
            }
        }
    }
}

/// Its calls never wait.
fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
