//! The loop in a world of its own, and its calls into the real one.

mod accepting;
mod calls;
mod fake;
mod later;
mod shutdown;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::event_loop::EventLoop;
use fake::{FakeNet, Peer, World};

use crate::route::Table;
use crate::{Body, Limits, Request, Respond, routes};

const EMFILE: i32 = 24;

const SECOND: u64 = 1000;

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// The length of the answer to `GET`.
const HELLO_LEN: usize = 121;

#[derive(Default)]
struct App {
    calls: usize,
}

routes! {
    Api for App {
        GET  "/" => hello(),
        GET  "/large" => large(),
        GET  "/ready" => ready(request),
        GET  "/panic" => fail(),
        GET  "/split" => split(),
        POST "/echo" => echo(body),
    }
}

fn hello(app: &mut App) -> &'static str {
    app.calls += 1;
    "hello"
}

fn large(_: &mut App) -> Vec<u8> {
    vec![b'x'; 100_000]
}

fn ready(_: &mut App, request: Request<'_>) -> &'static str {
    if request.is_draining() { "draining" } else { "ready" }
}

fn split(_: &mut App) -> impl Respond {
    "never seen".field("X-A", "v\r\nSet-Cookie: a=1")
}

fn fail(_: &mut App) -> &'static str {
    panic!("as asked for")
}

fn echo<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {
    body
}

/// A loop in a world, and what it told.
struct Stage {
    world: World,
    events: EventLoop<FakeNet, App>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    fn new(limits: Limits) -> Stage {
        let (world, told) = (World::new(), Arc::new(Mutex::new(Vec::new())));
        let tell = Arc::clone(&told);
        let hook = Box::new(move |event: &super::Event<'_>| tell.lock().expect("no panic").push(event.to_string()));
        let events = EventLoop::new(world.net(), Api::ROUTES, App::default(), limits, usize::MAX, Some(hook));
        Stage { world, events, told }
    }

    /// One turn; true while the loop runs.
    fn turn(&mut self) -> bool {
        self.events.turn(None).expect("the world does not fail")
    }

    /// Turns until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.turn() || self.world.is_quiet() {
                return;
            }
        }
        panic!("the loop spins");
    }

    /// A connection that is accepted, and has sent nothing.
    fn connect(&mut self) -> Peer {
        let peer = self.world.connect();
        self.settle();
        peer
    }

    /// Sends on an accepted connection, and gives what comes back.
    fn exchange(&mut self, peer: &Peer, bytes: impl AsRef<[u8]>) -> String {
        peer.send(bytes);
        self.world.tell_readable(peer);
        self.settle();
        peer.taken()
    }

    fn advance(&mut self, ms: u64) {
        self.world.advance(ms);
        self.settle();
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().expect("no panic"))
    }

    #[track_caller]
    fn assert_told(&self, text: &str) {
        let told = self.told();
        assert!(told.iter().any(|event| event.contains(text)), "{text:?} is not in {told:?}");
    }
}

fn ok_count(answers: &str) -> usize {
    answers.matches("HTTP/1.1 200 OK\r\n").count()
}

// ---- calls -------------------------------------------------------------------------------------------------------

#[test]
fn a_request_costs_one_recv_one_send_and_a_share_of_a_wait() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peers: Vec<_> = (0..10).map(|_| stage.connect()).collect();
    let before = stage.world.counts();
    for peer in &peers {
        peer.send(GET);
        stage.world.tell_readable(peer);
    }
    stage.turn();
    let after = stage.world.counts();
    assert!(peers.iter().all(|peer| ok_count(&peer.taken()) == 1));
    assert_eq!((after.recvs - before.recvs, after.sends - before.sends), (10, 10));
    // The clock is read when the turn begins, and when it ends, for stalls.
    assert_eq!((after.waits - before.waits, after.clock_reads - before.clock_reads), (1, 2));
    assert_eq!((after.registrations, after.unix_clock_reads), (before.registrations, before.unix_clock_reads));
}

#[test]
fn sixteen_pipelined_requests_cost_one_recv_and_one_send() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    let before = stage.world.counts();
    peer.send(GET.repeat(16));
    stage.world.tell_readable(&peer);
    stage.turn();
    assert_eq!(ok_count(&peer.taken()), 16);
    let after = stage.world.counts();
    assert_eq!((after.recvs - before.recvs, after.sends - before.sends), (1, 1));
    assert_eq!((after.waits - before.waits, after.registrations - before.registrations), (1, 0));
}

#[test]
fn a_request_that_comes_with_its_connection_is_answered_before_any_registration() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.world.connect();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stage.turn();
    assert_eq!(ok_count(&peer.taken()), 1);
    assert!(peer.is_closed() && !peer.is_registered());
}

#[test]
fn without_connections_there_is_nothing_to_wake_up_for() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    assert!(stage.world.waited().is_some_and(|wait| wait > Duration::from_secs(9)));
    peer.close_write();
    stage.world.tell_readable(&peer);
    stage.turn();
    assert!(peer.is_closed());
    stage.turn();
    assert_eq!(stage.world.waited(), None);
}

#[test]
fn date_follows_the_wall_clock_forward_and_back() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    assert!(stage.exchange(&peer, GET).contains("Date: Sun, 09 Sep 2001 01:46:40 GMT\r\n"));
    stage.advance(999);
    assert!(stage.exchange(&peer, GET).contains("01:46:40 GMT\r\n"));
    stage.advance(1);
    assert!(stage.exchange(&peer, GET).contains("01:46:41 GMT\r\n"));
    stage.world.set_unix_time(784_887_151);
    stage.advance(SECOND);
    assert!(stage.exchange(&peer, GET).contains("Date: Tue, 15 Nov 1994 08:12:32 GMT\r\n"));
}

// ---- events ------------------------------------------------------------------------------------------------------

#[test]
fn a_late_event_does_not_reach_the_next_owner_of_a_slot() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let first = stage.connect();
    let stale = first.token();
    first.close_write();
    stage.world.tell_readable(&first);
    stage.settle();
    let second = stage.connect();
    assert_eq!((second.token().index(), first.is_closed()), (stale.index(), true));
    assert_ne!(second.token(), stale);
    let before = stage.world.counts();
    second.send(GET);
    stage.world.tell(stale, true, true, true);
    stage.turn();
    assert_eq!(stage.world.counts().recvs, before.recvs);
    assert_eq!(second.taken(), "");
}

#[test]
fn events_of_a_connection_that_was_closed_in_the_same_batch_are_ignored() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.reset();
    for _ in 0..3 {
        stage.world.tell_readable(&peer);
    }
    let new = stage.world.connect();
    new.send(GET);
    stage.turn();
    assert!(peer.is_closed());
    assert_eq!(ok_count(&new.taken()), 1);
    // The slot was not free yet when the new one came.
    assert_ne!(new.token().index(), peer.token().index());
}

#[test]
fn events_for_nobody_do_no_harm() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    for token in [0, 7, u64::from(u32::MAX), 1 << 40, u64::MAX - 2, u64::MAX - 1, u64::MAX] {
        stage.world.tell(super::net::Token(token), true, true, true);
    }
    stage.settle();
    assert_eq!(ok_count(&stage.exchange(&peer, GET)), 1);
}

#[test]
fn an_event_without_bytes_behind_it_does_no_harm() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    stage.world.tell(peer.token(), true, true, false);
    stage.settle();
    assert_eq!(ok_count(&stage.exchange(&peer, GET)), 1);
}

#[test]
fn a_peer_that_shuts_its_side_with_its_request_is_answered_and_closed() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.close_write();
    assert_eq!(ok_count(&stage.exchange(&peer, GET.repeat(5))), 5);
    assert!(peer.is_closed());
    stage.assert_told("the peer closed");
}

#[test]
fn a_reset_ends_its_own_connection_only() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let (peer, other) = (stage.connect(), stage.connect());
    // The answer is written and cannot be sent: it must not go to anybody else.
    peer.send(GET);
    stage.world.tell_readable(&peer);
    stage.turn();
    assert_eq!(ok_count(&peer.taken()), 1);
    peer.reset();
    stage.world.tell(peer.token(), true, true, true);
    stage.settle();
    assert!(peer.is_closed());
    stage.assert_told("the peer reset the connection");
    assert_eq!(stage.exchange(&other, GET).len(), HELLO_LEN);
}

#[test]
fn a_send_that_fails_leaves_nothing_for_the_next_connection() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let (peer, other) = (stage.connect(), stage.connect());
    peer.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    peer.take_at_most(10);
    stage.world.tell_readable(&peer);
    stage.settle();
    peer.reset();
    stage.world.tell(peer.token(), false, true, false);
    assert_eq!(stage.exchange(&other, GET).len(), HELLO_LEN);
    assert!(peer.is_closed());
}

// ---- budgets and back-pressure -----------------------------------------------------------------------------------

#[test]
fn a_flood_of_requests_gets_a_bounded_share_of_each_turn() {
    let mut stage = Stage::new(Limits { requests_per_turn: 8, ..Limits::DEFAULT });
    let (flood, polite) = (stage.connect(), stage.connect());
    flood.send(GET.repeat(100));
    stage.world.tell_readable(&flood);
    stage.turn();
    assert_eq!(ok_count(&flood.taken()), 8);
    let mut rest = 0;
    for _ in 0..11 {
        polite.send(GET);
        stage.world.tell_readable(&polite);
        stage.turn();
        assert_eq!(stage.world.waited(), Some(Duration::ZERO));
        assert_eq!(ok_count(&polite.taken()), 1);
        let share = ok_count(&flood.taken());
        assert_eq!(share, 8);
        rest += share;
    }
    stage.settle();
    assert_eq!(8 + rest + ok_count(&flood.taken()), 100);
}

#[test]
fn received_bytes_have_a_budget_and_the_rest_is_read_without_another_event() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n");
    peer.send("y".repeat(900_000));
    stage.world.tell_readable(&peer);
    stage.turn();
    assert!(peer.unread_len() >= 900_000 - (64 << 10));
    stage.settle();
    assert!(peer.taken().ends_with(&"y".repeat(900_000)));
    assert_eq!(stage.events.stats().held_bytes, 0);
}

#[test]
fn a_peer_that_does_not_take_its_answers_is_not_read_and_its_edge_is_remembered() {
    let mut stage = Stage::new(Limits { requests_per_turn: 1000, ..Limits::DEFAULT });
    let peer = stage.connect();
    peer.take_at_most(1000);
    // More answers than the bound on unsent output, and more requests behind them.
    peer.send(GET.repeat(3000));
    stage.world.tell_readable(&peer);
    stage.settle();
    assert!(peer.unread_len() > 0 && peer.watches_writable());
    let before = stage.world.counts();
    stage.world.tell_readable(&peer);
    stage.settle();
    assert_eq!(stage.world.counts().recvs, before.recvs);
    peer.take_all();
    stage.world.tell(peer.token(), false, true, false);
    stage.settle();
    assert_eq!(ok_count(&peer.taken()), 3000);
    // It asked for writable events once, and keeps them.
    assert_eq!(stage.world.counts().registrations, 2);
}

#[test]
fn a_large_answer_goes_on_when_the_socket_has_room_again() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.take_at_most(500);
    let mut answer = stage.exchange(&peer, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(answer.len(), 500);
    for room in [1, 7, 30_000, 69_000] {
        peer.take_at_most(room);
        stage.world.tell(peer.token(), false, true, false);
        stage.settle();
        answer += &peer.taken();
    }
    peer.take_all();
    stage.world.tell(peer.token(), false, true, false);
    stage.settle();
    answer += &peer.taken();
    assert!(answer.ends_with(&"x".repeat(100_000)) && !answer.ends_with(&"x".repeat(100_001)));
    assert_eq!(ok_count(&stage.exchange(&peer, GET)), 1);
}

#[test]
fn an_answer_of_many_segments_needs_no_event_to_go_on() {
    let mut stage = Stage::new(Limits { output_bytes_max: 8 << 20, requests_per_turn: 1000, ..Limits::DEFAULT });
    let peer = stage.connect();
    let answers = stage.exchange(&peer, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n".repeat(40));
    assert_eq!(ok_count(&answers), 40);
    assert!(answers.len() > 40 * 100_000);
}

#[test]
fn a_peer_that_takes_nothing_is_reset_after_the_write_timeout() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.take_at_most(100);
    stage.exchange(&peer, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    stage.advance(29 * SECOND);
    peer.take_at_most(1);
    stage.world.tell(peer.token(), false, true, false);
    stage.settle();
    stage.advance(29 * SECOND);
    assert!(!peer.is_closed());
    stage.advance(1_256);
    assert!(peer.is_closed() && peer.was_reset());
    stage.assert_told("the peer did not take its answers");
}

// ---- timeouts ----------------------------------------------------------------------------------------------------

#[test]
fn a_silent_connection_is_closed_without_a_word() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    stage.advance(9_999);
    assert!(!peer.is_closed());
    stage.advance(257);
    assert!(peer.is_closed());
    assert_eq!(peer.taken(), "");
    stage.assert_told("no byte came");
}

#[test]
fn an_idle_connection_is_closed_at_its_own_time_however_often_it_was_used() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    for _ in 0..20 {
        stage.advance(60 * SECOND);
        if peer.is_closed() {
            break;
        }
        stage.exchange(&peer, GET);
    }
    // The first byte was late.
    assert!(peer.is_closed());
    let peer = stage.connect();
    for _ in 0..20 {
        assert_eq!(ok_count(&stage.exchange(&peer, GET)), 1);
        stage.advance(74_999);
        assert!(!peer.is_closed());
    }
    stage.advance(257);
    assert!(peer.is_closed());
    stage.assert_told("idle for too long");
}

#[test]
fn the_header_deadline_does_not_move_with_each_byte_and_is_sooner_than_the_idle_one() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    stage.exchange(&peer, GET);
    let mut answer = String::new();
    for byte in GET.bytes().take(11) {
        answer += &stage.exchange(&peer, [byte]);
        stage.advance(SECOND);
    }
    answer += &peer.taken();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer:?}");
    assert!(peer.is_write_shut() && !peer.is_closed());
    // It is read for a while yet, so that the answer is not lost to a reset; then it is closed.
    stage.exchange(&peer, "more");
    stage.advance(2_257);
    assert!(peer.is_closed());
    assert_eq!(stage.events.stats().held_bytes, 0);
}

#[test]
fn a_timeout_shorter_than_the_one_before_takes_effect() {
    let limits = Limits {
        first_byte_timeout: Duration::from_secs(100),
        head_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(2),
        ..Limits::DEFAULT
    };
    let mut stage = Stage::new(limits);
    let (idle, partial) = (stage.connect(), stage.connect());
    stage.exchange(&idle, GET);
    stage.exchange(&partial, "GET /");
    stage.advance(1_257);
    assert!(partial.taken().starts_with("HTTP/1.1 408 "));
    assert!(!idle.is_closed());
    stage.advance(1_000);
    assert!(idle.is_closed());
}

#[test]
fn a_body_that_is_too_slow_is_refused() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    stage.exchange(&peer, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    let mut answer = String::new();
    for _ in 0..6 {
        stage.advance(SECOND);
        answer += &stage.exchange(&peer, "x");
    }
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer:?}");
}

#[test]
fn what_arrived_in_time_is_answered_though_the_loop_hears_of_it_after_the_deadline() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let silent = stage.connect();
    let half = stage.connect();
    assert_eq!(stage.exchange(&half, "GET / HTTP/1.1\r\nHo"), "");
    // Somebody held up the loop, and one wait does not tell of so many connections.
    silent.send(GET);
    half.send("st: x\r\n\r\n");
    stage.advance(11 * SECOND);
    assert_eq!((ok_count(&silent.taken()), ok_count(&half.taken())), (1, 1));
    // One byte less is late.
    let half = stage.connect();
    assert_eq!(stage.exchange(&half, "GET / HTTP/1.1\r\nHo"), "");
    half.send("st: x\r\n\r");
    stage.advance(11 * SECOND);
    assert!(half.taken().starts_with("HTTP/1.1 408 "));
}

// ---- handlers ----------------------------------------------------------------------------------------------------

#[test]
fn a_panic_is_counted_and_told_and_ends_one_connection() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let (peer, other) = (stage.connect(), stage.connect());
    let answer = stage.exchange(&peer, "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 500 ") && answer.contains("Connection: close\r\n"), "{answer:?}");
    stage.assert_told("GET /panic panicked");
    assert_eq!(stage.events.stats().panics, 1);
    assert_eq!(ok_count(&stage.exchange(&other, GET)), 1);
    peer.close_write();
    stage.world.tell_readable(&peer);
    stage.settle();
    stage.assert_told("closed: the handler panicked");
}

#[test]
fn an_answer_that_cannot_be_written_is_counted_and_told_with_its_route() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    let answer = stage.exchange(&peer, "GET /split HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer:?}");
    stage.assert_told("GET /split was answered with 500: a field has a value with a control byte");
    assert_eq!(stage.events.stats().faults, 1);
    assert_eq!(ok_count(&stage.exchange(&peer, GET)), 1);
    assert_eq!(stage.events.stats().faults, 1);
}

#[test]
fn a_hook_that_panics_does_not_end_the_server() {
    let world = World::new();
    let hook = Box::new(|_: &super::Event<'_>| panic!("the log is gone"));
    let events = EventLoop::new(world.net(), Api::ROUTES, App::default(), Limits::DEFAULT, usize::MAX, Some(hook));
    let mut stage = Stage { world, events, told: Arc::default() };
    let peer = stage.connect();
    assert!(stage.exchange(&peer, "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 500 "));
    let peer = stage.connect();
    assert_eq!(ok_count(&stage.exchange(&peer, GET)), 1);
}

// ---- the server's own settings -----------------------------------------------------------------------------------

#[test]
fn descriptors_are_left_to_the_program() {
    assert_eq!([64, 100, 128, 1024].map(super::connections_for), [32, 50, 64, 960]);
}

#[test]
fn servers_and_handles_can_be_sent_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<super::Server>();
    is_send::<super::Handle>();
    is_send::<super::Running<u64>>();
}

// ---- found by simulation -----------------------------------------------------------------------------------------

/// A connection that waited for its turn was closed for what it was about to be asked for.
#[test]
fn a_turn_that_is_due_comes_before_a_deadline_that_is_due() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.take_at_most(10);
    stage.exchange(&peer, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    peer.take_all();
    // The first event puts it on the list, the second one waits for its turn.
    peer.interrupt_next_recv();
    stage.world.tell(peer.token(), true, false, false);
    stage.world.tell(peer.token(), false, true, false);
    stage.world.advance(31 * SECOND);
    stage.settle();
    assert!(!peer.is_closed());
}
