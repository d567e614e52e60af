//! A server in a process of its own, watched from outside, and a plain client. Linux.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sprat::{Body, Limits, Respond, Server, routes};

#[derive(Default)]
struct App {
    large: Option<Arc<[u8]>>,
}

routes! {
    Api for App {
        GET  "/"               => hello(),
        GET  "/echo-path/{id}" => echo_path(id),
        GET  "/large"          => large(),
        GET  "/panic"          => fail(),
        POST "/echo"           => echo(body),
    }
}

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn echo_path(_: &mut App, id: u64) -> String {
    id.to_string()
}

/// Content of `/large`.
pub const LARGE_LEN: usize = 8 << 20;

fn large(app: &mut App) -> impl Respond {
    Arc::clone(app.large.get_or_insert_with(|| vec![b'x'; LARGE_LEN].into()))
}

fn fail(_: &mut App) -> &'static str {
    panic!("as asked for")
}

fn echo<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {
    body
}

/// The first argument of a process that is to be the server.
const SERVE: &str = "serve";

/// To be called first in `main`: does not return in the process that is the server.
pub fn serve_if_asked_to(limits: Limits) {
    if std::env::args().nth(1).as_deref() != Some(SERVE) {
        return;
    }
    let server = Server::bind("127.0.0.1:0").expect("a free port").limits(limits).shutdown_on_signals();
    println!("{}", server.local_addr().expect("an address"));
    // The panics that are asked for are not news.
    std::panic::set_hook(Box::new(|_| {}));
    server.serve(Api, App::default()).expect("the loop runs");
    std::process::exit(0);
}

/// The same program as a server, ended when it goes.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

impl Process {
    pub fn start() -> Process {
        let program = std::env::current_exe().expect("a path");
        let mut child = Command::new(program).arg(SERVE).stdout(Stdio::piped()).spawn().expect("a process");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("an address");
        Process { child, address: line.trim().parse().expect("an address") }
    }

    pub fn memory_kb(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim_matches([' ', '\t', 'k', 'B']).parse().expect("a number")
    }

    pub fn descriptor_count(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it lives").count()
    }

    /// Processor time it has used.
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it lives");
        let fields: Vec<_> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
        // In ticks of 10 ms.
        let ticks = |place: usize| fields[place].parse::<u64>().expect("a number");
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    /// Asks it to end, and gives its exit status.
    pub fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
        self.child.wait().expect("a child").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.set_write_timeout(Some(Duration::from_secs(20)))?;
    Ok(stream)
}

/// Status and content of one answer; what follows it stays in the socket.
pub fn read_answer(stream: &mut impl Read) -> io::Result<(u16, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData)?.to_ascii_lowercase();
    let len = head.lines().find_map(|line| line.strip_prefix("content-length: ")).and_then(|len| len.parse().ok());
    let mut content = vec![0; len.unwrap_or(0)];
    stream.read_exact(&mut content)?;
    let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok((status, content))
}

pub fn exchange(stream: &mut (impl Read + Write), request: impl AsRef<[u8]>) -> io::Result<(u16, Vec<u8>)> {
    stream.write_all(request.as_ref())?;
    read_answer(stream)
}

/// The value behind an argument, if it is there.
pub fn argument(name: &str) -> Option<f64> {
    let value = std::env::args().skip_while(|argument| argument != name).nth(1)?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} takes a number")))
}

/// Numbers of no pattern, the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % bound.max(1) as u64) as usize
    }
}
