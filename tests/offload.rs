//! Work for the pool, streams and workers, over real sockets and with real threads.

mod common;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{Answer, connect, get, read_answer};
use sprat::testing::Client;
use sprat::{
    Broadcast, EventStream, Handle, Later, Limits, Listen, Message, Offload, Server, Stats, Status, Stream, StreamHead,
    routes,
};

#[derive(Default)]
struct App {
    feed: Broadcast,
    kept: Vec<Later<App>>,
    answered: u64,
}

routes! {
    Api for App {
        GET "/health"       => health(),
        GET "/hash/{id}"    => hash(later, id),
        GET "/gated/{id}"   => gated(later, id),
        GET "/at-once"      => at_once(later),
        GET "/keep"         => keep(later),
        GET "/kept-open"    => kept_open(),
        GET "/numbers/{n}"  => numbers(later, n),
        GET "/crowd/{n}"    => crowd(later, n),
        GET "/feed"         => feed(events),
        POST "/feed"        => publish(text),
        GET "/subscribers"  => subscribers(),
    }
}

fn health(_: &mut App) -> &'static str {
    "ok"
}

fn hash(_: &mut App, later: Later<App>, id: u64) {
    later.offload(
        move || {
            thread::sleep(Duration::from_millis(20));
            id * 3
        },
        |app, result| {
            app.answered += 1;
            result.to_string()
        },
    );
}

fn at_once(_: &mut App, later: Later<App>) {
    later.offload(|| (), |_, ()| "done");
}

/// Opened by the one test that asks for such work.
static GATE: AtomicBool = AtomicBool::new(false);

fn gated(_: &mut App, later: Later<App>, id: u64) {
    later.offload(
        move || {
            wait_until("the gate is opened", || GATE.load(Ordering::SeqCst));
            id * 3
        },
        |_, result| result.to_string(),
    );
}

fn keep(app: &mut App, later: Later<App>) {
    app.kept.push(later);
}

fn kept_open(app: &mut App) -> String {
    app.kept.iter().filter(|later| !later.is_closed()).count().to_string()
}

fn numbers(_: &mut App, later: Later<App>, n: u32) {
    let stream = later.stream(StreamHead::new("text/plain"));
    thread::spawn(move || count_up(&stream, n).map(|()| stream.end()));
}

/// Four threads send parts of one stream, each of them waiting for room.
fn crowd(_: &mut App, later: Later<App>, n: u32) {
    let stream = later.stream(StreamHead::new("text/plain").room(1000));
    thread::spawn(move || {
        let told = thread::scope(|scope| {
            let producers: Vec<_> = (0..4).map(|_| scope.spawn(|| count_up(&stream, n))).collect();
            producers.into_iter().all(|producer| producer.join().expect("no panic").is_ok())
        });
        if told {
            stream.end();
        }
    });
}

fn count_up(stream: &Stream, n: u32) -> Result<(), sprat::StreamError> {
    for number in 0..n {
        stream.send_blocking(format!("{number}\n").repeat(50), Duration::from_secs(10))?;
    }
    Ok(())
}

fn feed(app: &mut App, events: EventStream) {
    app.feed.subscribe(events);
}

fn publish(app: &mut App, text: Vec<u8>) -> Status {
    app.feed.send_event(&Message::new(String::from_utf8_lossy(&text)));
    Status::ACCEPTED
}

fn subscribers(app: &mut App) -> String {
    app.feed.subscribers().to_string()
}

struct Lab {
    address: SocketAddr,
    handle: Handle,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Lab {
    fn new(offload: Offload) -> Lab {
        let server = Server::bind("127.0.0.1:0").expect("a free port").offload(offload);
        let address = server.local_addr().expect("an address");
        let handle = server.handle();
        let thread = thread::spawn(move || server.serve(Api, App::default()));
        Lab { address, handle, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    fn ask(&self, target: &str) -> (u16, String) {
        ask(&mut self.connect(), target)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.handle.shutdown();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn request(stream: &mut TcpStream, target: &str) {
    stream.write_all(get(target).as_bytes()).expect("room");
}

#[track_caller]
fn ask(stream: &mut TcpStream, target: &str) -> (u16, String) {
    request(stream, target);
    outcome(stream)
}

/// Status and content of the next answer.
#[track_caller]
fn outcome(stream: &mut TcpStream) -> (u16, String) {
    let Answer { status, content, .. } = read_answer(stream);
    (status, content)
}

#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn twenty_slow_logins_are_all_answered_and_health_waits_for_none_of_them() {
    let lab = Lab::new(Offload { threads: 2, ..Offload::DEFAULT });
    let mut logins: Vec<_> = (0..20).map(|_| lab.connect()).collect();
    for (id, login) in logins.iter_mut().enumerate() {
        request(login, &format!("/gated/{id}"));
    }
    // How quick it is the bench measures; here others may be using the machine.
    let mut probe = lab.connect();
    for _ in 0..40 {
        assert_eq!(ask(&mut probe, "/health"), (200, "ok".into()));
    }
    GATE.store(true, Ordering::SeqCst);
    for (id, login) in logins.iter_mut().enumerate() {
        assert_eq!(outcome(login), (200, (id * 3).to_string()));
    }
}

#[test]
fn of_a_storm_everybody_gets_an_answer() {
    let lab = Lab::new(Offload { threads: 2, queue: 10, ..Offload::DEFAULT });
    let mut logins: Vec<_> = (0..300).map(|_| lab.connect()).collect();
    for (id, login) in logins.iter_mut().enumerate() {
        request(login, &format!("/hash/{id}"));
    }
    let (mut done, mut refused) = (0, 0);
    for (id, login) in logins.iter_mut().enumerate() {
        match outcome(login) {
            (200, result) => {
                assert_eq!(result, (id * 3).to_string());
                done += 1;
            }
            (503, _) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(done >= 12 && refused > 0 && done + refused == 300, "{done} done, {refused} refused");
    assert_eq!(lab.handle.stats().expect("it runs").refused_work, refused);
}

#[test]
fn who_has_an_answer_finds_the_place_of_its_work_free() {
    let lab = Lab::new(Offload { threads: 1, queue: 0, ..Offload::DEFAULT });
    let mut stream = lab.connect();
    for round in 0..2000 {
        assert_eq!(ask(&mut stream, "/at-once").0, 200, "in round {round}");
    }
}

#[test]
fn each_thread_of_the_pool_begins_with_what_it_was_told_to_and_survives_its_panic() {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    fn begin() {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        panic!("as asked for");
    }
    let lab = Lab::new(Offload { threads: 2, thread_start: Some(begin), ..Offload::DEFAULT });
    let mut logins: Vec<_> = (0..6).map(|_| lab.connect()).collect();
    for (id, login) in logins.iter_mut().enumerate() {
        request(login, &format!("/hash/{id}"));
    }
    for (id, login) in logins.iter_mut().enumerate() {
        assert_eq!(outcome(login), (200, (id * 3).to_string()));
    }
    // One thread may have done all of it before the other had its turn.
    wait_until("both have begun", || BEGUN.load(Ordering::SeqCst) == 2);
}

#[test]
fn a_client_that_leaves_while_it_waits_is_noticed() {
    let lab = Lab::new(Offload::DEFAULT);
    let mut waiter = lab.connect();
    request(&mut waiter, "/keep");
    wait_until("it waits", || lab.ask("/kept-open").1 == "1");
    drop(waiter);
    wait_until("it is noticed", || lab.ask("/kept-open").1 == "0");
}

/// The chunks of an answer, as they come; the last one is empty.
struct Chunks(BufReader<TcpStream>);

impl Chunks {
    fn after_head(reader: TcpStream) -> Chunks {
        let mut chunks = Chunks(BufReader::new(reader));
        while chunks.line() != "\r\n" {}
        chunks
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        assert!(line.ends_with("\r\n"), "the answer broke off: {line:?}");
        line
    }

    fn next(&mut self) -> String {
        let size = usize::from_str_radix(self.line().trim_end(), 16).expect("a chunk-size");
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk).expect("a chunk");
        let chunk = String::from_utf8(chunk).expect("text");
        chunk.strip_suffix("\r\n").expect("the end of a chunk").to_owned()
    }
}

#[test]
fn a_stream_waits_for_a_slow_reader_and_arrives_whole() {
    let lab = Lab::new(Offload::DEFAULT);
    let mut reader = lab.connect();
    request(&mut reader, "/numbers/20000");
    thread::sleep(Duration::from_millis(200));
    let mut chunks = Chunks::after_head(reader);
    for number in 0..20_000 {
        assert_eq!(chunks.next(), format!("{number}\n").repeat(50));
    }
    assert_eq!(chunks.next(), "");
}

#[test]
fn who_waits_for_room_is_not_told_that_there_is_none_because_others_were_quicker() {
    let lab = Lab::new(Offload::DEFAULT);
    let mut reader = lab.connect();
    request(&mut reader, "/crowd/2000");
    let mut chunks = Chunks::after_head(reader);
    for _ in 0..4 * 2000 {
        assert_ne!(chunks.next(), "");
    }
    assert_eq!(chunks.next(), "");
}

/// A state that joins its threads when it is dropped, and says what became of them.
struct Joined {
    producers: Vec<JoinHandle<Result<(), sprat::StreamError>>>,
    ends: mpsc::Sender<sprat::StreamError>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        for producer in self.producers.drain(..) {
            let end = producer.join().expect("no panic").expect_err("it had no end");
            let _ = self.ends.send(end);
        }
    }
}

routes! { Flood for Joined { GET "/" => flood(later), } }

fn flood(app: &mut Joined, later: Later<Joined>) {
    let stream = later.stream(StreamHead::new("text/plain").room(10));
    let produce = move || {
        loop {
            stream.send_blocking(vec![b'x'; 1 << 20], Duration::from_secs(60))?;
        }
    };
    app.producers.push(thread::spawn(produce));
}

#[test]
fn a_state_that_joins_its_producers_finds_their_streams_closed() {
    let (ends, end) = mpsc::channel();
    let state = Joined { producers: Vec::new(), ends: ends.clone() };
    let mut running = Server::bind("127.0.0.1:0").expect("a free port").start(Flood, state).expect("it starts");
    let mut reader = connect(running.local_addr().expect("an address"));
    request(&mut reader, "/");
    while running.state().producers.is_empty() {
        running.poll_once(Some(Duration::from_millis(10))).expect("it runs");
    }
    drop(running);
    assert_eq!(end.try_recv(), Ok(sprat::StreamError::Closed));

    let mut link = Client::new(Flood, Joined { producers: Vec::new(), ends }).into_link();
    link.take_at_most(1000);
    link.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    drop(link);
    assert_eq!(end.try_recv(), Ok(sprat::StreamError::Closed));
}

#[test]
fn events_reach_all_and_a_subscriber_that_leaves_is_forgotten() {
    let lab = Lab::new(Offload::DEFAULT);
    let mut readers: Vec<_> = (0..50).map(|_| lab.connect()).collect();
    readers.iter_mut().for_each(|reader| request(reader, "/feed"));
    wait_until("all have subscribed", || lab.ask("/subscribers").1 == "50");
    drop(readers.drain(..10));
    wait_until("ten have left", || lab.ask("/subscribers").1 == "40");
    let mut publisher = lab.connect();
    write!(publisher, "POST /feed HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nnews").expect("room");
    assert_eq!(read_answer(&mut publisher).status, 202);
    for reader in readers {
        let mut lines = BufReader::new(reader).lines();
        assert!(lines.any(|line| line.expect("a line") == "data: news"));
    }
}

// ---- workers -----------------------------------------------------------------------------------------------------

fn shared() -> Server {
    Server::bind_with("127.0.0.1:0", &Listen { reuse_port: true, ..Listen::DEFAULT }).expect("a free port")
}

#[test]
fn workers_share_an_address_and_a_shutdown_and_their_counters_add_up() {
    struct Own {
        served: u64,
        worker: usize,
    }
    routes! { Who for Own { GET "/" => who(), } }
    fn who(own: &mut Own) -> String {
        own.served += 1;
        format!("{} {}", own.worker, own.served)
    }

    let server = shared();
    let (address, handle) = (server.local_addr().expect("an address"), server.handle());
    let made = std::sync::Arc::new(AtomicUsize::new(0));
    let make = move || Own { served: 0, worker: made.fetch_add(1, Ordering::SeqCst) };
    let thread = thread::spawn(move || server.serve_workers(2, Who, make));
    let mut served = [0_u64; 2];
    let mut asked = 0;
    while served.contains(&0) || asked < 64 {
        let (status, text) = ask(&mut connect(address), "/");
        assert_eq!(status, 200);
        let (worker, count) = text.split_once(' ').expect("two numbers");
        served[worker.parse::<usize>().expect("a number")] = count.parse().expect("a number");
        asked += 1;
        assert!(asked < 10_000, "one worker gets nothing");
    }
    assert_eq!(served.iter().sum::<u64>(), asked, "each has a state of its own, and none is lost");
    assert_eq!(handle.stats().expect("they run").requests, asked);
    handle.shutdown();
    let stats: Stats = thread.join().expect("no panic").expect("no error");
    assert_eq!((stats.requests, stats.accepted, stats.open), (asked, asked, 0));
}

#[test]
fn workers_need_a_listener_that_can_be_shared() {
    let error = Server::bind("127.0.0.1:0").expect("a free port").serve_workers(2, Api, App::default).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("reuse_port"), "{error}");
    let error = shared().serve_workers(0, Api, App::default).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_shutdown_before_the_start_stops_all_workers() {
    let server = shared();
    server.handle().shutdown();
    server.serve_workers(3, Api, App::default).expect("it ends");
}

#[test]
fn a_worker_that_cannot_start_stops_the_others() {
    let error = shared().limits(Limits { connections_max: 0, ..Limits::DEFAULT }).serve_workers(2, Api, App::default);
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    let panicked = std::panic::catch_unwind(|| shared().serve_workers(2, Api, || -> App { panic!("as asked for") }));
    assert!(panicked.is_err());
}
