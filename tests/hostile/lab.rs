//! A server in a process of its own, odd clients, and a well-behaved one that runs beside an attack.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sprat::{Body, Handle, Limits, Listen, Request, Respond, Server, Status, routes};

use crate::common::{connect, get, ms, try_connect, try_exchange};

// ---- the server --------------------------------------------------------------------------------------------------

#[derive(Default)]
struct App {
    large: Option<Arc<[u8]>>,
    handle: Option<Handle>,
}

routes! {
    Api for App {
        GET  "/"               => hello(),
        GET  "/pid"            => pid(),
        GET  "/stop"           => stop(),
        GET  "/terminate"      => terminate(),
        GET  "/ready"          => ready(request),
        GET  "/peer"           => peer(request),
        GET  "/large"          => large(),
        GET  "/echo-path/{id}" => echo_path(id),
        POST "/echo"           => echo(body),
    }
}

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn pid(_: &mut App) -> String {
    std::process::id().to_string()
}

/// Shuts down at once, when other requests have come.
fn stop(app: &mut App) {
    thread::sleep(ms(300));
    app.handle.as_ref().expect("a handle").shutdown();
}

fn terminate(_: &mut App) {
    signal_process(std::process::id(), "-TERM");
    // Another thread may be the one that the system interrupts.
    thread::sleep(ms(50));
}

fn ready(_: &mut App, request: Request<'_>) -> (Status, String) {
    let status = if request.is_draining() { Status::SERVICE_UNAVAILABLE } else { Status::OK };
    (status, std::process::id().to_string())
}

fn peer(_: &mut App, request: Request<'_>) -> String {
    request.peer().map_or("none".into(), |peer| peer.to_string())
}

/// More than the buffers of a loopback connection take.
pub(crate) const LARGE_LEN: usize = 16 << 20;

/// The same bytes for all.
fn large(app: &mut App) -> impl Respond {
    Arc::clone(app.large.get_or_insert_with(|| vec![b'x'; LARGE_LEN].into()))
}

fn echo_path(_: &mut App, id: u64) -> String {
    id.to_string()
}

fn echo<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {
    body
}

const SETTINGS: &str = "SPRAT_TEST_SETTINGS";

/// What the processes made by [`Process::start`] do.
#[test]
#[ignore = "not a test: the server of those that start this program again"]
fn the_server_of_another_process() {
    let Ok(settings) = std::env::var(SETTINGS) else { return };
    let mut limits = Limits::DEFAULT;
    let (mut place, mut trusted, mut delay) = ("127.0.0.1:0", "", Duration::ZERO);
    let mut second_worker_after = None;
    let mut hoard = Vec::new();
    for setting in settings.split_whitespace() {
        let (name, value) = setting.split_once('=').expect("name=value");
        let number = value.parse().unwrap_or(0);
        let time = Duration::from_millis(number);
        match name {
            "place" => place = value,
            "trusted" => trusted = value,
            // Descriptors that the program has for itself.
            "hoard" => hoard.extend((0..number).map(|_| File::open("/dev/null").expect("a descriptor"))),
            "delay_ms" => delay = time,
            "second_worker_after_ms" => second_worker_after = Some(time),
            "first_byte_ms" => limits.first_byte_timeout = time,
            "head_ms" => limits.head_timeout = time,
            "grace_ms" => limits.body_grace = time,
            "write_ms" => limits.write_timeout = time,
            "linger_ms" => limits.linger_timeout = time,
            "body_max" => limits.body_bytes_max = number as usize,
            "output_max" => limits.output_bytes_max = number as usize,
            _ => panic!("{name} is no setting"),
        }
    }
    let server = match place.split_once('=').unwrap_or((place, "")) {
        ("stdin", _) => {
            let listener = io::stdin().as_fd().try_clone_to_owned().expect("a listener");
            Server::from_listener(TcpListener::from(listener))
        }
        #[cfg(feature = "listenfd")]
        ("env", _) => Server::from_env().map(|server| server.expect("listeners")),
        ("unix", path) => Server::bind_unix(path),
        ("both", path) => Server::bind("127.0.0.1:0").and_then(|tcp| Ok(Server::bind_unix(path)?.and(tcp))),
        ("shared", address) => Server::bind_with(address, &Listen { reuse_port: true, ..Listen::DEFAULT }),
        _ => Server::bind(place),
    };
    let server = match server {
        Ok(server) => server.limits(limits).shutdown_on_signals_after(delay),
        Err(error) => {
            println!("\nerror {error}");
            std::process::exit(3);
        }
    };
    let trusted = trusted.split(',').filter(|peer| !peer.is_empty());
    let server = server.proxy_protocol(trusted).expect("peers");
    let address = server.local_addr().map_or("none".into(), |address| address.to_string());
    println!("\nready at {address}");
    let handle = server.handle();
    let make = || App { handle: Some(handle.clone()), ..App::default() };
    if let Some(time) = second_worker_after {
        let made = AtomicUsize::new(0);
        let make = || {
            if made.fetch_add(1, Ordering::Relaxed) == 1 {
                thread::sleep(time);
            }
            make()
        };
        server.serve_workers(2, Api, make).expect("the loops run");
    } else {
        server.serve(Api, make()).expect("the loop runs");
    }
    // Past the test harness, which would say more.
    std::process::exit(0);
}

pub(crate) struct Process {
    pub(crate) child: Child,
    address: Option<SocketAddr>,
    /// Kept, so that the process can always write.
    stdout: Option<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start(settings: &str) -> Process {
        Process::start_by(settings, &mut Process::command())
    }

    /// What starts it; to be given an environment and a standard input, or a shell around it.
    pub(crate) fn command() -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        command.args(Process::ARGS);
        command
    }

    /// The same with no more descriptors than these.
    pub(crate) fn start_confined(settings: &str, descriptors_max: usize) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {descriptors_max}; exec \"$0\" \"$@\"")]);
        command.arg(std::env::current_exe().expect("a path")).args(Process::ARGS);
        Process::start_by(settings, &mut command)
    }

    pub(crate) const ARGS: [&str; 4] = ["--ignored", "--exact", "lab::the_server_of_another_process", "--nocapture"];

    pub(crate) fn start_by(settings: &str, command: &mut Command) -> Process {
        Process::try_start_by(settings, command).expect("a server that starts")
    }

    /// Or what it says when it does not start.
    pub(crate) fn try_start_by(settings: &str, command: &mut Command) -> Result<Process, String> {
        command.env(SETTINGS, settings).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process { child: command.spawn().expect("a process"), address: None, stdout: None };
        let mut stdout = BufReader::new(process.child.stdout.take().expect("a pipe"));
        loop {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("text");
            if let Some(place) = line.strip_prefix("ready at ") {
                process.address = place.trim().parse().ok();
                process.stdout = Some(stdout);
                return Ok(process);
            }
            if line.is_empty() || line.starts_with("error ") {
                return Err(line.trim().to_owned());
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("it listens on an address")
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address())
    }

    pub(crate) fn signal(&self, signal: &str) {
        signal_process(self.child.id(), signal);
    }

    /// Its exit status, after this time at most.
    pub(crate) fn wait(&mut self, time: Duration) -> Option<i32> {
        let status = within(time, || self.child.try_wait().expect("a child"));
        status.and_then(|status| status.code())
    }

    /// A line of its status, in kB.
    fn status_kb(&self, name: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of the status");
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().expect("a number")
    }

    pub(crate) fn memory_kb(&self) -> usize {
        self.status_kb("VmRSS")
    }

    /// The most that it ever had.
    pub(crate) fn memory_peak_kb(&self) -> usize {
        self.status_kb("VmHWM")
    }

    /// Processor time it has used.
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it lives");
        let fields: Vec<_> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
        // In ticks of 10 ms.
        let ticks = |place: usize| fields[place].parse::<u64>().expect("a number");
        ms((ticks(11) + ticks(12)) * 10)
    }

    pub(crate) fn descriptor_count(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it lives").count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.stdout.take());
    }
}

pub(crate) fn signal_process(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill");
    assert!(sent.success());
}

/// Descriptors that this process may have.
pub(crate) fn descriptors_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("limits");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a line");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(usize::MAX)
}

/// Asks again and again until there is something, or this time is over.
pub(crate) fn within<T>(time: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || started.elapsed() > time {
            return answer;
        }
        thread::sleep(ms(20));
    }
}

// ---- clients -----------------------------------------------------------------------------------------------------

/// A connection whose receive window is as small as the system makes it.
pub(crate) fn connect_narrow(address: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(1).expect("a socket");
    socket.connect(&address.into()).expect("a listener");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    stream
}

/// Bytes of no pattern, the same each time.
pub(crate) fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A well-behaved client, on a kept connection and on new ones, while something else goes on.
pub(crate) struct Polite {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Report>,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) served: usize,
    pub(crate) slowest: Duration,
    pub(crate) failures: Vec<String>,
}

impl Polite {
    pub(crate) fn start(address: SocketAddr) -> Polite {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut report = Report::default();
            let mut kept = connect(address);
            let mut round = 0u64;
            // A few rounds in any case, for attacks that are over soon.
            while !stopped.load(Ordering::Relaxed) || round < 10 {
                round += 1;
                let started = Instant::now();
                let request = get(&format!("/echo-path/{round}"));
                let answer = if round.is_multiple_of(3) {
                    try_connect(address).and_then(|mut stream| try_exchange(&mut stream, request))
                } else {
                    try_exchange(&mut kept, request)
                };
                match answer {
                    Ok(answer) if answer.status == 200 && answer.content == round.to_string() => report.served += 1,
                    Ok(answer) => report.failures.push(format!("{answer:?}")),
                    Err(error) => {
                        report.failures.push(error.to_string());
                        kept = connect(address);
                    }
                }
                report.slowest = report.slowest.max(started.elapsed());
                thread::sleep(ms(5));
            }
            report
        });
        Polite { stop, thread }
    }

    pub(crate) fn stop(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }

    /// It got every answer, and in a time that has nothing to do with the timeouts of others.
    #[track_caller]
    pub(crate) fn assert_served(self) {
        let report = self.stop();
        assert!(report.failures.is_empty(), "{report:?}");
        assert!(report.served >= 10 && report.slowest < Duration::from_secs(8), "{report:?}");
    }
}

/// A folder that is removed at the end.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sprat-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }

    pub(crate) fn file(&self, name: &str) -> File {
        File::create(self.0.join(name)).expect("a file")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
