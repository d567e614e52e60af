//! Many subscribers of server-sent events on one loop: what each costs in memory, whether a broadcast reaches all, and
//! whether those that do not read are dropped, alone. `subscribers --count 10000 --slow 20`. Linux.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use sprat::{Broadcast, EventStream, Limits, Message, Server, routes};
use sprat_checks::process::{argument, connect, exchange};

#[derive(Default)]
struct App {
    feed: Broadcast,
}

routes! {
    Api for App {
        GET  "/feed"        => feed(events),
        POST "/feed"        => publish(text),
        GET  "/subscribers" => subscribers(),
    }
}

fn feed(app: &mut App, events: EventStream) {
    app.feed.subscribe(events);
}

/// How many it reached, how many were too slow for it, how many had left.
fn publish(app: &mut App, text: Vec<u8>) -> String {
    let delivery = app.feed.send_event(&Message::new(String::from_utf8_lossy(&text)));
    format!("{} {} {}", delivery.reached, delivery.too_slow, delivery.left)
}

fn subscribers(app: &mut App) -> String {
    app.feed.subscribers().to_string()
}

const SERVE: &str = "serve-subscribers";

/// At most this for a subscriber: a slot, a stream, a ticket, a timer, and what is kept of a request.
const BYTES_EACH_MAX: usize = 4096;

fn main() -> io::Result<()> {
    if std::env::args().nth(1).as_deref() == Some(SERVE) {
        let limits = Limits { connections_max: 1 << 20, ..Limits::DEFAULT };
        let server = Server::bind("127.0.0.1:0")?.limits(limits).shutdown_on_signals();
        println!("{}", server.local_addr()?);
        return server.serve(Api, App::default());
    }
    let count = argument("--count").unwrap_or(10_000.0) as usize;
    let slow_count = argument("--slow").unwrap_or(20.0) as usize;
    let (needed, allowed) = (count + slow_count + 128, descriptors_max());
    assert!(needed <= allowed, "only {allowed} descriptors are allowed here: ulimit -n {needed}");
    let mut child = Command::new(std::env::current_exe()?).arg(SERVE).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line)?;
    let server = Watched { address: line.trim().parse().expect("an address"), child };

    let mut publisher = connect(server.address)?;
    assert_eq!(ask(&mut publisher, "GET", "/subscribers", "")?, "0");
    let before = server.memory_bytes();
    let started = Instant::now();
    let mut readers = Vec::with_capacity(count);
    for _ in 0..count {
        readers.push(subscribe(connect(server.address)?)?);
    }
    assert_eq!(ask(&mut publisher, "GET", "/subscribers", "")?, count.to_string());
    let each = server.memory_bytes().saturating_sub(before) / count;
    println!("{count} subscribers came within {:.2?}; the server holds {each} bytes for each", started.elapsed());

    let started = Instant::now();
    assert_eq!(ask(&mut publisher, "POST", "/feed", "news for all")?, format!("{count} 0 0"));
    let answered = started.elapsed();
    for reader in &mut readers {
        expect_event(reader, "news for all")?;
    }
    println!(
        "a broadcast was answered after {answered:.2?}, and had reached all {count} after {:.2?}",
        started.elapsed()
    );

    let mut slow = Vec::new();
    for _ in 0..slow_count {
        slow.push(subscribe(connect_with_little_room(server.address)?)?);
    }
    let text = "x".repeat(8 << 10);
    let (mut dropped, mut rounds) = (0, 0);
    let started = Instant::now();
    while dropped < slow_count && rounds < 200 {
        let delivery = ask(&mut publisher, "POST", "/feed", &text)?;
        let figures: Vec<usize> = delivery.split(' ').map(|figure| figure.parse().expect("a number")).collect();
        dropped += figures[1];
        rounds += 1;
        assert_eq!((figures[0], figures[2]), (count + slow_count - dropped, 0), "somebody else is gone");
        for reader in &mut readers {
            expect_event(reader, &text)?;
        }
    }
    println!("{dropped} of {slow_count} that did not read were dropped within {rounds} messages of 8 KiB,");
    println!("each of which reached all {count} others; that took {:.2?}", started.elapsed());
    let after = server.memory_bytes().saturating_sub(before) / count;
    println!(
        "in the end the server holds {after} bytes for each; it has used {:.2?} of a processor",
        server.cpu_time()
    );
    assert_eq!(dropped, slow_count);
    assert!(each <= BYTES_EACH_MAX, "{each} bytes are too many");
    for mut stream in slow {
        // What was on its way comes, and then the end: cut off in the middle.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    println!("ok");
    Ok(())
}

/// As `ulimit -n` says.
fn descriptors_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    line.split_whitespace().next().and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX)
}

struct Watched {
    child: Child,
    address: SocketAddr,
}

impl Watched {
    fn memory_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim_matches([' ', '\t', 'k', 'B']).parse::<usize>().expect("a number") * 1024
    }

    fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it lives");
        let fields: Vec<_> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
        let ticks = |place: usize| fields[place].parse::<u64>().expect("a number");
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(stream: &mut TcpStream, method: &str, target: &str, body: &str) -> io::Result<String> {
    let len = body.len();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n{body}");
    let (status, content) = exchange(stream, request)?;
    assert_eq!(status, 200);
    String::from_utf8(content).map_err(io::Error::other)
}

/// A socket whose window and segments are small, so that little is on its way to it: for segments of the size that the
/// loopback has, the system would take some megabytes before it said that they do not leave.
fn connect_with_little_room(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_recv_buffer_size(4096)?;
    socket.set_tcp_mss(536)?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

fn subscribe(mut stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(b"GET /feed HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", head.escape_ascii());
    Ok(stream)
}

/// One chunk with one event; keep-alive comments before it are passed over.
fn expect_event(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    let event = format!("data: {text}\n\n");
    let wanted = format!("{:x}\r\n{event}\r\n", event.len()).into_bytes();
    let comment = b"3\r\n:\n\n\r\n";
    let mut got = vec![0; comment.len()];
    stream.read_exact(&mut got)?;
    while got == comment {
        stream.read_exact(&mut got)?;
    }
    got.resize(wanted.len(), 0);
    stream.read_exact(&mut got[comment.len()..])?;
    assert!(got == wanted, "another event than the one that was sent");
    Ok(())
}
