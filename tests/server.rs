//! The server over real sockets: what peers do to it, and what its user can do with it.

mod common;

use std::cell::Cell;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{Answer, GET, assert_hello, connect, exchange, get, is_closed_within, ms, read_answer, reset};
use sprat::{Body, CloseReason, Event, Handle, Level, Limits, Listen, Request, Response, Sent, Server, Status, routes};

// ---- a server to talk to -----------------------------------------------------------------------------------------

#[derive(Default)]
struct App {
    visits: u64,
    /// Told when `/slow` runs, and what it waits for.
    gate: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

routes! {
    Api for App {
        GET  "/"               => hello(),
        GET  "/visits"         => visits(),
        GET  "/echo-path/{id}" => echo_path(id),
        GET  "/large"          => large(),
        GET  "/ready"          => ready(request),
        GET  "/peer"           => peer(request),
        GET  "/panic/{id}"     => fail(id),
        GET  "/slow"           => slow(),
        GET  "/last"           => last(response),
        POST "/echo"           => echo(body),
    }
}

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn visits(app: &mut App) -> String {
    app.visits += 1;
    app.visits.to_string()
}

fn echo_path(_: &mut App, id: u64) -> String {
    id.to_string()
}

/// More than the buffers of a loopback connection take.
const LARGE_LEN: usize = 32 << 20;

fn large(_: &mut App) -> Vec<u8> {
    vec![b'x'; LARGE_LEN]
}

fn ready(_: &mut App, request: Request<'_>) -> Status {
    if request.is_draining() { Status::SERVICE_UNAVAILABLE } else { Status::OK }
}

fn peer(_: &mut App, request: Request<'_>) -> String {
    request.peer().map_or("none".into(), |peer| peer.to_string())
}

fn fail(app: &mut App, id: u64) -> String {
    app.visits += 1;
    assert_ne!(id, 13, "as asked for");
    id.to_string()
}

fn slow(app: &mut App) -> &'static str {
    let (runs, may_go_on) = app.gate.take().expect("its test brings one");
    runs.send(()).expect("it is waited for");
    let _ = may_go_on.recv_timeout(Duration::from_secs(10));
    "slow"
}

fn last<'r>(_: &mut App, response: Response<'r>) -> Sent<'r> {
    response.close().text("last")
}

fn echo<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {
    body
}

/// A server in a thread, shut down and joined when it goes.
struct Lab {
    address: SocketAddr,
    handle: Handle,
    thread: Option<JoinHandle<io::Result<()>>>,
    closed: mpsc::Receiver<CloseReason>,
}

impl Lab {
    fn new(limits: Limits) -> Lab {
        Lab::with(limits, App::default())
    }

    fn with(limits: Limits, app: App) -> Lab {
        let server = Server::bind("127.0.0.1:0").expect("a free port").limits(limits);
        let address = server.local_addr().expect("an address");
        let (tell, closed) = mpsc::channel();
        let server = server.on_event(move |event| {
            if let Event::Closed { reason, .. } = event {
                let _ = tell.send(*reason);
            }
        });
        let handle = server.handle();
        let thread = thread::spawn(move || server.serve(Api, app));
        Lab { address, handle, thread: Some(thread), closed }
    }

    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Why the next connection was closed.
    #[track_caller]
    fn next_close(&self) -> CloseReason {
        self.closed.recv_timeout(Duration::from_secs(5)).expect("a connection is closed")
    }

    /// Shuts down, and says how long that took.
    fn stop(&mut self) -> Duration {
        let started = Instant::now();
        self.handle.shutdown();
        self.thread.take().expect("it runs").join().expect("no panic").expect("no error");
        started.elapsed()
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

fn post(body: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

// ---- partial input and the event loop ----------------------------------------------------------------------------

#[test]
fn a_request_is_answered_the_same_however_it_is_cut() {
    let lab = Lab::new(Limits::DEFAULT);
    let mut stream = lab.connect();
    for byte in GET.bytes() {
        stream.write_all(&[byte]).expect("room");
        thread::sleep(ms(1));
    }
    assert_eq!(read_answer(&mut stream).content, "hello");
    let request = post("0123456789");
    let (head, body) = request.split_at(request.len() - 10);
    let mut parts = vec![("GET", &GET[3..])];
    parts.push((head, body));
    // Between a CR and its LF.
    parts.push(GET.split_at(GET.len() - 1));
    parts.push(GET.split_at(15));
    for (first, second) in parts {
        stream.write_all(first.as_bytes()).expect("room");
        thread::sleep(ms(50));
        let answer = exchange(&mut stream, second);
        assert_eq!(answer.status, 200, "{first:?} then {second:?}");
    }
}

#[test]
fn fifty_clients_that_come_at_once_and_then_are_silent_are_all_served() {
    let lab = Lab::new(Limits::DEFAULT);
    let mut streams: Vec<_> = (0..50).map(|_| lab.connect()).collect();
    for stream in &mut streams {
        stream.write_all(GET.as_bytes()).expect("room");
    }
    for stream in &mut streams {
        assert_eq!(read_answer(stream).content, "hello");
    }
}

#[test]
fn a_body_that_comes_in_one_burst_is_read_to_its_end() {
    let lab = Lab::new(Limits::DEFAULT);
    let body = "0123456789".repeat(30_000);
    let mut stream = lab.connect();
    for _ in 0..3 {
        let answer = exchange(&mut stream, post(&body));
        assert!(answer.content == body);
    }
    assert_hello(&mut stream);
}

#[test]
fn a_peer_that_half_closes_gets_its_whole_answer() {
    let lab = Lab::new(Limits::DEFAULT);
    let mut stream = lab.connect();
    stream.write_all(get("/large").as_bytes()).expect("room");
    stream.shutdown(Shutdown::Write).expect("a socket");
    thread::sleep(ms(100));
    let answer = read_answer(&mut stream);
    assert_eq!((answer.status, answer.content.len()), (200, LARGE_LEN));
    assert!(is_closed_within(&mut stream, ms(2000)));
}

#[test]
fn nobody_gets_the_answer_of_another_while_connections_are_reset() {
    let lab = Lab::new(Limits::DEFAULT);
    let address = lab.address;
    let clients: Vec<_> = (0..8)
        .map(|client| {
            thread::spawn(move || {
                for round in 0..25 {
                    let id = client * 1000 + round;
                    let mut stream = connect(address);
                    stream.write_all(get(&format!("/echo-path/{id}")).as_bytes()).expect("room");
                    if round % 2 == 0 {
                        reset(stream);
                        continue;
                    }
                    let answer = read_answer(&mut stream);
                    assert_eq!((answer.status, answer.content), (200, id.to_string()));
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("each gets its own number");
    }
}

#[test]
fn a_slow_reader_gets_every_byte_and_can_go_on() {
    let lab = Lab::new(Limits { body_bytes_max: 16 << 20, ..Limits::DEFAULT });
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a socket");
    socket.connect(&lab.address.into()).expect("a listener");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let body: String = (0..400_000).map(|n| format!("{n:07} ")).collect();
    let mut sender = stream.try_clone().expect("a descriptor");
    let request = post(&body);
    let sending = thread::spawn(move || sender.write_all(request.as_bytes()));
    thread::sleep(ms(100));
    let mut received = Vec::new();
    let mut piece = [0; 16 << 10];
    while received.len() < body.len() {
        let n = stream.read(&mut piece).expect("bytes");
        assert_ne!(n, 0, "closed after {} bytes", received.len());
        received.extend_from_slice(&piece[..n]);
        if received.len() < 1 << 20 {
            thread::sleep(ms(1));
        }
    }
    sending.join().expect("no panic").expect("all was sent");
    let rest = received.len();
    let head_len = received.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    received.resize(head_len + body.len(), 0);
    stream.read_exact(&mut received[rest..]).expect("the rest");
    assert!(received[head_len..] == *body.as_bytes());
    assert_hello(&mut stream);
}

#[test]
fn small_requests_one_after_another_are_not_delayed() {
    let lab = Lab::new(Limits::DEFAULT);
    let mut stream = lab.connect();
    let mut times: Vec<_> = (0..40)
        .map(|round| {
            let started = Instant::now();
            let request = if round % 2 == 0 { GET.to_owned() } else { post("x") };
            assert_eq!(exchange(&mut stream, request).status, 200);
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    // Nagle's algorithm with delayed acknowledgements costs 40 ms each; others may be using the machine.
    assert!(times[20] < ms(20), "{times:?}");
}

// ---- limits and hostile input ------------------------------------------------------------------------------------

#[test]
fn an_idle_connection_lives_as_long_as_it_was_set_to() {
    let lab = Lab::new(Limits { idle_timeout: ms(2000), ..Limits::DEFAULT });
    let mut stream = lab.connect();
    for _ in 0..3 {
        assert_hello(&mut stream);
        thread::sleep(ms(800));
    }
    let asked = Instant::now();
    let answer = exchange(&mut stream, post("still there"));
    assert_eq!(answer.content, "still there");
    // What is too early is certain. What is too late may be the machine's doing, up to a point.
    assert!(is_closed_within(&mut stream, ms(8000)));
    assert!(asked.elapsed() >= ms(1990), "{:?}", asked.elapsed());
    assert_eq!(lab.next_close(), CloseReason::IdleTimeout);
}

#[test]
fn a_refused_upload_reads_its_answer_although_it_sends_to_the_end() {
    let lab = Lab::new(Limits::DEFAULT);
    let chunk = format!("{:x}\r\n{}\r\n", 64 << 10, "x".repeat(64 << 10));
    let uploads = [
        ("Content-Length: 8388608", "x".repeat(64 << 10)),
        // Chunk by chunk over the limit.
        ("Transfer-Encoding: chunked", chunk),
    ];
    for (framing, piece) in uploads {
        let mut stream = lab.connect();
        let head = format!("POST /echo HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("room");
        // The client does not look at its errors: it is told by the answer.
        for _ in 0..128 {
            let _ = stream.write_all(piece.as_bytes());
        }
        let answer = read_answer(&mut stream);
        assert_eq!((answer.status, answer.close), (413, true), "{framing}");
    }
}

#[test]
fn peers_that_drip_their_heads_are_gone_at_the_deadline_while_others_are_served() {
    let lab = Lab::new(Limits { head_timeout: ms(800), ..Limits::DEFAULT });
    let mut drips: Vec<_> = (0..60).map(|_| lab.connect()).collect();
    let mut other = lab.connect();
    let started = Instant::now();
    let mut request = get("/").into_bytes();
    request.truncate(20);
    for byte in request {
        for stream in &mut drips {
            // Fails once the connection is closed.
            let _ = stream.write_all(&[byte]);
        }
        assert_hello(&mut other);
        thread::sleep(ms(50));
    }
    assert!(started.elapsed() >= ms(800));
    for stream in &mut drips {
        let answer = read_answer(stream);
        assert_eq!((answer.status, answer.close), (408, true));
    }
    // Without that deadline it would be 10 seconds.
    assert!(started.elapsed() < ms(8000), "{:?}", started.elapsed());
}

#[test]
fn a_body_that_drips_below_the_least_rate_is_refused() {
    let limits = Limits { body_grace: ms(300), body_bytes_per_second_min: 1000, ..Limits::DEFAULT };
    let lab = Lab::new(limits);
    let mut stream = lab.connect();
    stream.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n").expect("room");
    let started = Instant::now();
    for _ in 0..10 {
        let _ = stream.write_all(b"x");
        thread::sleep(ms(100));
    }
    assert_eq!(read_answer(&mut stream).status, 408);
    // Without the grace that was set it would be 5 seconds.
    assert!(started.elapsed() < ms(4500), "{:?}", started.elapsed());
    // One that is slow to start and fast enough then is served.
    let mut stream = lab.connect();
    let request = post(&"y".repeat(50_000));
    for piece in request.as_bytes().chunks(10_000) {
        stream.write_all(piece).expect("room");
        thread::sleep(ms(100));
    }
    assert_eq!(read_answer(&mut stream).status, 200);
}

#[test]
fn a_peer_that_pipelines_for_ever_and_never_reads_is_not_read_either_and_is_dropped() {
    let lab = Lab::new(Limits { write_timeout: ms(800), ..Limits::DEFAULT });
    let mut flood = lab.connect();
    flood.set_write_timeout(Some(ms(300))).expect("a socket");
    let requests = GET.repeat(1000);
    let mut sent = 0;
    // It blocks when the buffers of both sides are full, and that is not many megabytes.
    while sent < 256 << 20 {
        match flood.write(requests.as_bytes()) {
            Ok(n) => sent += n,
            Err(_) => break,
        }
    }
    let mut other = lab.connect();
    for _ in 0..100 {
        assert_hello(&mut other);
    }
    // On a busy machine it was only the server that was slow: the flood goes on until it is dropped.
    let started = Instant::now();
    let reason = loop {
        match lab.closed.recv_timeout(ms(10)) {
            Ok(reason) => break reason,
            Err(_) => sent += flood.write(requests.as_bytes()).unwrap_or(0),
        }
        assert!(started.elapsed() < ms(10_000), "it is not dropped");
    };
    assert_eq!(reason, CloseReason::WriteTimeout);
    assert!(sent < 64 << 20, "{sent} bytes were taken");
}

/// The system's own buffer takes megabytes, and says nothing while a slow reader empties it.
#[test]
fn a_peer_that_reads_slowly_and_steadily_is_no_peer_that_does_not_read() {
    let lab = Lab::new(Limits { write_timeout: ms(1000), body_bytes_max: 16 << 20, ..Limits::DEFAULT });
    let mut slow = lab.connect();
    socket2::SockRef::from(&slow).set_recv_buffer_size(32 << 10).expect("a socket");
    let content = "y".repeat(8 << 20);
    let mut writer = slow.try_clone().expect("a socket");
    let sender = thread::spawn(move || writer.write_all(post(&content).as_bytes()));
    sender.join().expect("no panic").expect("it is read");
    let (mut read, started) = (0, Instant::now());
    let mut piece = [0; 32 << 10];
    while started.elapsed() < ms(4000) {
        read += slow.read(&mut piece).expect("the answer goes on");
        thread::sleep(ms(50));
    }
    // The rest, as fast as it comes.
    while read < 8 << 20 {
        let n = slow.read(&mut piece).expect("the answer goes on");
        assert!(n > 0, "cut off after {read} bytes");
        read += n;
    }
}

// ---- handlers ----------------------------------------------------------------------------------------------------

#[test]
fn a_panic_is_a_500_for_its_own_connection() {
    let lab = Lab::new(Limits::DEFAULT);
    let (mut stream, mut other) = (lab.connect(), lab.connect());
    assert_eq!(exchange(&mut stream, get("/panic/1")).content, "1");
    let answer = exchange(&mut stream, get("/panic/13"));
    assert_eq!((answer.status, answer.close), (500, true));
    drop(stream);
    assert_eq!(lab.next_close(), CloseReason::HandlerPanicked);
    assert_hello(&mut other);
    // The state is what it was, with what the handler did before it panicked.
    assert_eq!(exchange(&mut other, get("/visits")).content, "3");
}

#[test]
fn an_answer_can_be_the_last_one() {
    let lab = Lab::new(Limits::DEFAULT);
    let mut stream = lab.connect();
    assert_eq!(exchange(&mut stream, get("/last")), Answer { status: 200, close: true, content: "last".into() });
    assert!(is_closed_within(&mut stream, ms(2000)));
    assert_eq!(lab.next_close(), CloseReason::AskedByHandler);
}

#[test]
fn a_handler_sees_the_address_of_its_peer() {
    let lab = Lab::new(Limits::DEFAULT);
    let mut stream = lab.connect();
    let address = stream.local_addr().expect("an address");
    assert_eq!(exchange(&mut stream, get("/peer")).content, address.to_string());
}

#[test]
fn a_listener_for_all_addresses_takes_both_families_and_shows_ipv4_as_such() {
    let server = match Server::bind("[::]:0") {
        Ok(server) => server,
        // A machine without IPv6.
        Err(_) => return,
    };
    let port = server.local_addr().expect("an address").port();
    let handle = server.handle();
    let thread = thread::spawn(move || server.serve(Api, App::default()));
    for host in ["127.0.0.1", "[::1]"] {
        let Ok(mut stream) = TcpStream::connect(format!("{host}:{port}")) else { continue };
        let address = stream.local_addr().expect("an address");
        assert_eq!(exchange(&mut stream, get("/peer")).content, address.to_string());
    }
    handle.shutdown();
    thread.join().expect("no panic").expect("no error");
}

// ---- shutdown ----------------------------------------------------------------------------------------------------

#[test]
fn shutdown_closes_who_is_idle_or_silent_and_finishes_what_runs() {
    let mut lab = Lab::new(Limits::DEFAULT);
    let (mut idle, mut silent, mut half, mut download) = (lab.connect(), lab.connect(), lab.connect(), lab.connect());
    assert_hello(&mut idle);
    half.write_all(&post("ab").as_bytes()[..30]).expect("room");
    download.write_all(get("/large").as_bytes()).expect("room");
    // Longer than a new connection is given for its request.
    thread::sleep(ms(600));
    lab.handle.shutdown();
    // The two that do not end yet have 30 seconds.
    assert!(is_closed_within(&mut idle, ms(5000)));
    assert!(is_closed_within(&mut silent, ms(5000)));
    assert!(TcpStream::connect(lab.address).is_err());
    let answer = exchange(&mut half, &post("ab").as_bytes()[30..]);
    assert_eq!(answer, Answer { status: 200, close: true, content: "ab".into() });
    assert_eq!(read_answer(&mut download).content.len(), LARGE_LEN);
    assert!(lab.stop() < ms(5000));
    assert!(is_closed_within(&mut half, ms(5000)) && is_closed_within(&mut download, ms(5000)));
}

#[test]
fn shutdown_cuts_off_what_does_not_end() {
    let mut lab = Lab::new(Limits { drain_timeout: ms(700), ..Limits::DEFAULT });
    let (mut half, mut download) = (lab.connect(), lab.connect());
    half.write_all(b"GET / HT").expect("room");
    download.write_all(get("/large").as_bytes()).expect("room");
    thread::sleep(ms(100));
    let took = lab.stop();
    assert!(took >= ms(690) && took < ms(8000), "{took:?}");
    assert_eq!([lab.next_close(), lab.next_close()], [CloseReason::DrainTimeout; 2]);
}

#[test]
fn a_request_that_arrives_while_a_handler_keeps_the_loop_from_shutting_down_is_answered() {
    let (tell, runs) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let mut lab = Lab::with(Limits::DEFAULT, App { gate: Some((tell, may_go_on)), ..App::default() });
    let (mut slow, mut kept) = (lab.connect(), lab.connect());
    assert_hello(&mut kept);
    slow.write_all(get("/slow").as_bytes()).expect("room");
    runs.recv_timeout(Duration::from_secs(10)).expect("the handler runs");
    // The loop is in the handler. What is sent now is there when shutdown begins.
    lab.handle.shutdown();
    kept.write_all(GET.as_bytes()).expect("room");
    let mut new = lab.connect();
    new.write_all(GET.as_bytes()).expect("room");
    go_on.send(()).expect("it waits");
    for stream in [&mut slow, &mut kept, &mut new] {
        let answer = read_answer(stream);
        assert_eq!(answer.status, 200);
    }
    lab.stop();
}

#[test]
fn an_announced_shutdown_lets_a_readiness_route_fail_first() {
    let lab = Lab::new(Limits::DEFAULT);
    let mut stream = lab.connect();
    assert_eq!(exchange(&mut stream, get("/ready")).status, 200);
    lab.handle.shutdown_after(ms(4000));
    thread::sleep(ms(100));
    let answer = exchange(&mut stream, get("/ready"));
    assert_eq!((answer.status, answer.close), (503, false));
    let answer = exchange(&mut lab.connect(), get("/ready"));
    assert_eq!((answer.status, answer.close), (503, false));
    // In the second half of the delay whoever still asks is sent away.
    thread::sleep(ms(2000));
    let answer = exchange(&mut lab.connect(), get("/ready"));
    assert_eq!((answer.status, answer.close), (503, true));
    assert!(is_closed_within(&mut stream, ms(4000)));
}

// ---- for the user ------------------------------------------------------------------------------------------------

#[test]
fn an_address_in_use_is_a_clear_error_unless_sharing_is_asked_for() {
    let first = Server::bind("127.0.0.1:0").expect("a free port");
    let address = first.local_addr().expect("an address");
    let error = Server::bind(address).expect_err("it is taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(error.to_string().contains("another process"), "{error}");

    let shared = Listen { reuse_port: true, ..Listen::DEFAULT };
    let first = Server::bind_with("127.0.0.1:0", &shared).expect("a free port");
    let address = first.local_addr().expect("an address");
    Server::bind_with(address, &shared).expect("both want to share");
}

#[test]
fn limits_that_make_no_sense_are_an_error_at_the_start_that_names_them() {
    let limits = Limits { idle_timeout: Duration::ZERO, ..Limits::DEFAULT };
    let server = Server::bind("127.0.0.1:0").expect("a free port").limits(limits);
    let error = server.serve(Api, App::default()).expect_err("an idle timeout of nothing");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("idle_timeout"), "{error}");
}

#[test]
fn a_size_that_could_not_be_counted_with_is_no_limit() {
    type Set = fn(&mut Limits) -> &mut usize;
    let sizes: [(&str, Set); 6] = [
        ("body_bytes_max", |limits| &mut limits.body_bytes_max),
        ("chunk_line_bytes_max", |limits| &mut limits.chunk_line_bytes_max),
        ("chunk_extension_bytes_max", |limits| &mut limits.chunk_extension_bytes_max),
        ("trailer_bytes_max", |limits| &mut limits.trailer_bytes_max),
        ("output_bytes_max", |limits| &mut limits.output_bytes_max),
        ("linger_bytes_max", |limits| &mut limits.linger_bytes_max),
    ];
    for (name, size) in sizes {
        let mut limits = Limits::DEFAULT;
        *size(&mut limits) = usize::MAX;
        assert!(limits.check().is_err_and(|fault| fault.starts_with(name)), "{name}");
        // What they come to is said before they are checked.
        assert!(limits.worst_case_bytes(10_000) >= Limits::DEFAULT.worst_case_bytes(10_000), "{name}");
    }
    // The line that ends the chunks has to have room.
    for (bytes, is_enough) in [(1, false), (2, true)] {
        assert_eq!(Limits { trailer_bytes_max: bytes, ..Limits::DEFAULT }.check().is_ok(), is_enough);
    }
}

#[test]
fn a_listener_of_ones_own_can_be_handed_over() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    // It has come before the server.
    let mut early = connect(address);
    let server = Server::from_listener(listener).expect("a listener");
    let handle = server.handle();
    let thread = thread::spawn(move || server.serve(Api, App::default()));
    assert_hello(&mut early);
    handle.shutdown();
    thread.join().expect("no panic").expect("no error");
}

/// State that is neither `Send` nor `Sync`.
struct Shared {
    requests: Rc<Cell<u64>>,
    log: mpsc::Sender<&'static str>,
}

routes! {
    SharedApi for Shared {
        GET "/" => count(),
    }
}

fn count(app: &mut Shared) -> String {
    app.requests.set(app.requests.get() + 1);
    app.log.send("counted").expect("it is listened to");
    app.requests.get().to_string()
}

#[test]
fn a_program_with_a_loop_of_its_own_drives_the_server_turn_by_turn() {
    let requests = Rc::new(Cell::new(0));
    let (log, logged) = mpsc::channel();
    let server = Server::bind("127.0.0.1:0").expect("a free port");
    let mut running = server.start(SharedApi, Shared { requests: Rc::clone(&requests), log }).expect("a start");
    let address = running.local_addr().expect("an address");
    let client = thread::spawn(move || exchange(&mut connect(address), GET));
    while requests.get() == 0 {
        assert!(running.poll_once(Some(ms(5))).expect("a turn"));
    }
    assert_eq!(client.join().expect("no panic").content, "1");
    assert_eq!(logged.try_recv(), Ok("counted"));
    running.state_mut().requests.set(10);
    assert_eq!(running.state().requests.get(), 10);
    let stats = running.stats();
    assert_eq!((stats.accepted, stats.requests, stats.panics), (1, 1, 0));

    let started = Instant::now();
    assert!(running.poll_once(Some(ms(0))).expect("a turn"));
    running.handle().shutdown();
    while running.poll_once(None).expect("a turn") {}
    assert!(started.elapsed() < ms(2000));
    assert!(!running.poll_once(None).expect("no more turns"));
    assert!(running.local_addr().is_err());
    assert_eq!(running.into_state().requests.get(), 10);
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_waits_for_descriptors_serves_when_the_server_has_something_to_do() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limits = Limits { idle_timeout: ms(300), requests_per_turn: 2, ..Limits::DEFAULT };
    let server = Server::bind("127.0.0.1:0").expect("a free port").limits(limits);
    let mut running = server.start(Api, App::default()).expect("a start");
    let (address, handle) = (running.local_addr().expect("an address"), running.handle());
    let client = thread::spawn(move || {
        let mut stream = connect(address);
        assert_hello(&mut stream);
        // More than one turn takes, so that the rest is told by no event.
        stream.write_all(GET.repeat(50).as_bytes()).expect("room");
        for _ in 0..50 {
            assert_eq!(read_answer(&mut stream).status, 200);
        }
        // A deadline that no event tells.
        assert!(is_closed_within(&mut stream, ms(20_000)));
        handle.shutdown();
    });
    let mut turns = 0;
    while running.poll_once(Some(Duration::ZERO)).expect("a turn") {
        turns += 1;
        let timeout = running.timeout().map(|time| Timespec::try_from(time).expect("it is short"));
        poll(&mut [PollFd::new(&running, PollFlags::IN)], timeout.as_ref()).expect("it waits");
    }
    client.join().expect("no panic");
    assert!(turns < 200, "{turns} turns: it spins");
}

#[test]
fn other_threads_reach_the_state_of_a_server_that_waits() {
    let server = Server::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("an address");
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut running = server.start(Api, App::default())?;
        send.send((running.caller(), running.handle())).expect("the test listens");
        while running.poll_once(None)? {}
        io::Result::Ok(running.into_state().visits)
    });
    let (caller, handle) = receive.recv().expect("it starts");
    for _ in 0..100 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(caller.call(|app| app.visits += 1)));
            }
        });
        let (told, visits) = mpsc::channel();
        assert!(caller.call(move |app| told.send(app.visits).expect("the test listens")));
        let visits = visits.recv_timeout(Duration::from_secs(10)).expect("the loop wakes up");
        assert_eq!(visits % 4, 0);
    }
    assert_eq!(exchange(&mut connect(address), get("/visits")).content, "401");
    handle.shutdown();
    assert_eq!(thread.join().expect("no panic").expect("it served"), 401);
    assert!(!caller.call(|_| ()));
}

#[test]
fn events_tell_what_happens_and_how_much_it_matters() {
    let (tell, told) = mpsc::channel();
    let server = Server::bind("127.0.0.1:0").expect("a free port").on_event(move |event| {
        let _ = tell.send((event.level(), event.to_string()));
    });
    let address = server.local_addr().expect("an address");
    let handle = server.handle();
    let thread = thread::spawn(move || server.serve(Api, App::default()));
    let mut stream = connect(address);
    stream.write_all(b"\x16\x03\x01 a TLS hello").expect("room");
    assert_eq!(read_answer(&mut stream).status, 400);
    drop(stream);
    let mut stream = connect(address);
    assert_eq!(exchange(&mut stream, get("/panic/13")).status, 500);
    drop(stream);
    thread::sleep(ms(50));
    handle.shutdown();
    thread.join().expect("no panic").expect("no error");
    let told: Vec<_> = told.into_iter().collect();
    let levels_of = |text: &str| -> Vec<_> {
        told.iter().filter(|(_, line)| line.contains(text)).map(|(level, _)| *level).collect()
    };
    assert_eq!(levels_of("listening on 127.0.0.1:"), [Level::Info]);
    assert_eq!(levels_of("a request starts with a method"), [Level::Debug]);
    assert_eq!(levels_of("GET /panic/{id} panicked on a request from 127.0.0.1:"), [Level::Error]);
    assert_eq!(levels_of("shutdown is complete"), [Level::Info]);
    assert!(Level::Debug < Level::Info && Level::Warn < Level::Error);
}
