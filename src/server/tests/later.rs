//! Answers that come later, in the loop: who gets them, what is waited for, and who holds it up.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use super::super::event_loop::EventLoop;
use super::fake::{FakeNet, Peer, World};
use crate::later::{Job, Lane, Outside};
use crate::route::Table;
use crate::server::offload::{Offload, Pool};
use crate::{Broadcast, Delivery, EventStream, Later, Limits, Message, Request, Respond, routes};

#[derive(Default)]
struct App {
    kept: Vec<(u64, Later<App>)>,
    feed: Broadcast,
    world: Option<World>,
    begun: Option<mpsc::Sender<u64>>,
    ready: Vec<u64>,
}

routes! {
    Api for App {
        GET "/now/{id}"   => now(id),
        GET "/keep/{id}"  => keep(later, id),
        GET "/jobs/{id}"  => work(later, id),
        GET "/slow/{ms}"  => slow(ms),
        GET "/slow-late/{ms}" => slow_late(later, ms),
        GET "/feed"       => feed(events),
        GET "/ready"      => ready(request),
        GET "/split"      => split(),
    }
}

fn now(_: &mut App, id: u64) -> String {
    format!("now {id}.")
}

fn keep(app: &mut App, later: Later<App>, id: u64) {
    app.kept.push((id, later));
}

fn work(app: &mut App, later: Later<App>, id: u64) {
    let begun = app.begun.clone();
    let work = move || {
        if let Some(begun) = begun {
            begun.send(id).expect("the test listens");
        }
        id
    };
    later.offload(work, |app: &mut App, id| {
        app.ready.push(id);
        format!("worked {id}.")
    });
}

/// Takes this long by the clock of the world.
fn slow(app: &mut App, ms: u64) -> &'static str {
    app.world.as_ref().expect("a world").advance(ms);
    "slow"
}

fn slow_late(_: &mut App, later: Later<App>, ms: u64) {
    later.answer_with(move |app: &mut App| slow(app, ms));
}

fn split(_: &mut App) -> impl Respond {
    "x".field("X-A", "a\r\nb")
}

fn feed(app: &mut App, events: EventStream) {
    app.feed.subscribe(events);
}

fn ready(_: &mut App, request: Request<'_>) -> String {
    request.now().as_millis().to_string()
}

struct Stage {
    world: World,
    events: EventLoop<FakeNet, App>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    fn new(limits: Limits, offload: Offload) -> Stage {
        let (world, told) = (World::new(), Arc::new(Mutex::new(Vec::new())));
        let tell = Arc::clone(&told);
        let hook = Box::new(move |event: &crate::Event<'_>| tell.lock().expect("no panic").push(event.to_string()));
        let app = App { world: Some(world.clone()), ..App::default() };
        let mut events = EventLoop::new(world.net(), Api::ROUTES, app, limits, usize::MAX, Some(hook));
        events.configure(offload, Duration::from_millis(50));
        events.pool().drive_by_hand();
        Stage { world, events, told }
    }

    fn plain() -> Stage {
        Stage::new(Limits::DEFAULT, Offload::DEFAULT)
    }

    fn turn(&mut self) -> bool {
        self.events.turn(None).expect("the world does not fail")
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.turn() || self.world.is_quiet() {
                return;
            }
        }
        panic!("the loop spins");
    }

    fn connect(&mut self) -> Peer {
        let peer = self.world.connect();
        self.settle();
        peer
    }

    fn send(&mut self, peer: &Peer, targets: &[String]) {
        for target in targets {
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        }
        self.world.tell_readable(peer);
        self.settle();
    }

    /// A new connection that asks for this.
    fn ask(&mut self, target: &str) -> Peer {
        let peer = self.connect();
        self.send(&peer, &[target.to_owned()]);
        peer
    }

    fn leave(&mut self, peer: &Peer) {
        peer.close_write();
        self.world.tell(peer.token(), true, false, true);
        self.settle();
    }

    fn told(&self, text: &str) -> usize {
        self.told.lock().expect("no panic").iter().filter(|event| event.contains(text)).count()
    }
}

/// The texts of answers, each of which ends in a full stop.
fn texts(peer: &Peer) -> Vec<String> {
    let taken = peer.taken();
    taken.split("\r\n\r\n").skip(1).filter_map(|text| Some(text.split_once('.')?.0.to_owned())).collect()
}

#[test]
fn a_late_answer_never_reaches_another_connection() {
    let mut stage = Stage::plain();
    let mut neighbour = stage.connect();
    for id in 0..1000_u64 {
        let leaver = stage.ask(&format!("/keep/{id}"));
        let kept = stage.events.state_mut().kept.pop();
        let (_, later) = kept.expect("it was kept");
        stage.leave(&leaver);
        assert!(leaver.is_closed() && later.is_closed(), "round {id}");
        // The next one gets the slot of the one that left.
        let next = stage.ask(&format!("/keep/{}", id + 1_000_000));
        later.answer(format!("for {id}."));
        stage.settle();
        assert_eq!(texts(&next), [""; 0], "round {id}");
        let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
        later.answer(format!("for {}.", id + 1_000_000));
        stage.settle();
        assert_eq!(texts(&next), [format!("for {}", id + 1_000_000)]);
        assert_eq!(leaver.taken(), "");
        stage.send(&neighbour, &[format!("/now/{id}")]);
        assert_eq!(texts(&neighbour), [format!("now {id}")]);
        if id % 3 == 0 {
            stage.leave(&next);
        } else {
            neighbour = next;
        }
    }
}

#[test]
fn all_results_are_taken_with_one_wake_up() {
    let mut stage = Stage::plain();
    let peers: Vec<_> = (0..100).map(|id| stage.ask(&format!("/keep/{id}"))).collect();
    let waits = stage.world.counts().waits;
    let threads: Vec<_> = std::mem::take(&mut stage.events.state_mut().kept)
        .into_iter()
        .map(|(id, later)| std::thread::spawn(move || later.answer(format!("late {id}."))))
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    stage.turn();
    assert_eq!(stage.world.counts().waits, waits + 1);
    for (id, peer) in peers.iter().enumerate() {
        assert_eq!(texts(peer), [format!("late {id}")]);
    }
}

#[test]
fn letters_do_not_let_the_loop_wait() {
    let mut stage = Stage::plain();
    let _peer = stage.ask("/keep/1");
    let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
    later.answer("x.");
    stage.turn();
    assert_eq!(stage.world.waited(), Some(Duration::ZERO));
    stage.turn();
    assert_ne!(stage.world.waited(), Some(Duration::ZERO));
}

#[test]
fn work_beyond_the_queue_is_refused_and_the_rest_is_done_in_order() {
    let mut stage = Stage::new(Limits::DEFAULT, Offload { threads: 1, queue: 2, ..Offload::DEFAULT });
    let peers: Vec<_> = (0..5).map(|id| stage.ask(&format!("/jobs/{id}"))).collect();
    for peer in &peers[3..] {
        let answer = peer.taken();
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1\r\n"), "{answer}");
        assert!(!peer.is_closed());
    }
    assert_eq!(stage.events.stats().refused_work, 2);
    while stage.events.pool().run_one() {}
    stage.settle();
    for (id, peer) in peers[..3].iter().enumerate() {
        assert_eq!(texts(peer), [format!("worked {id}")]);
    }
    assert_eq!(stage.events.state_mut().ready, [0, 1, 2]);
    // A refused one may try again.
    stage.send(&peers[4], &["/jobs/9".into()]);
    stage.events.pool().run_one();
    stage.settle();
    assert_eq!(texts(&peers[4]), ["worked 9"]);
}

#[test]
fn work_of_a_client_that_left_makes_room_and_is_never_begun() {
    let mut stage = Stage::new(Limits::DEFAULT, Offload { threads: 1, queue: 1, ..Offload::DEFAULT });
    let (begun, ran) = mpsc::channel();
    stage.events.state_mut().begun = Some(begun);
    let leavers = [stage.ask("/jobs/1"), stage.ask("/jobs/2")];
    for leaver in &leavers {
        stage.leave(leaver);
    }
    let stayers = [stage.ask("/jobs/3"), stage.ask("/jobs/4")];
    while stage.events.pool().run_one() {}
    stage.settle();
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [3, 4]);
    assert_eq!((texts(&stayers[0]), texts(&stayers[1])), (vec!["worked 3".into()], vec!["worked 4".into()]));
    assert_eq!(stage.told("left before its answer"), 2);
}

#[test]
fn work_that_waits_too_long_is_refused() {
    let mut stage = Stage::new(Limits::DEFAULT, Offload { deadline: Duration::ZERO, ..Offload::DEFAULT });
    let peer = stage.ask("/jobs/1");
    std::thread::sleep(Duration::from_millis(1));
    stage.events.pool().run_one();
    stage.settle();
    assert!(peer.taken().starts_with("HTTP/1.1 503 "));
    assert_eq!(stage.events.state_mut().ready, [0; 0]);
}

#[test]
fn order_holds_on_a_connection_that_mixes_all_kinds() {
    let mut stage = Stage::plain();
    let peer = stage.connect();
    stage.send(&peer, &["/now/1", "/jobs/2", "/now/3", "/keep/4", "/jobs/5", "/now/6"].map(String::from));
    assert_eq!(texts(&peer), ["now 1"]);
    stage.events.pool().run_one();
    stage.settle();
    assert_eq!(texts(&peer), ["worked 2", "now 3"]);
    let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
    later.answer("kept 4.");
    stage.settle();
    stage.events.pool().run_one();
    stage.settle();
    assert_eq!(texts(&peer), ["kept 4", "worked 5", "now 6"]);
}

#[test]
fn input_that_came_during_the_wait_is_read_after_it() {
    let mut stage = Stage::plain();
    let peer = stage.ask("/keep/1");
    stage.send(&peer, &["/now/2".into()]);
    assert!(peer.unread_len() > 0);
    let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
    later.answer("kept 1.");
    stage.settle();
    assert_eq!(texts(&peer), ["kept 1", "now 2"]);
}

#[test]
fn a_timed_out_answer_makes_way_for_the_next_request_of_the_same_connection() {
    let mut stage = Stage::plain();
    let (first, other) = (stage.connect(), stage.connect());
    stage.send(&first, &["/keep/1".into(), "/keep/2".into()]);
    stage.send(&other, &["/now/0".into()]);
    stage.world.advance(60_300);
    stage.settle();
    assert!(first.taken().starts_with("HTTP/1.1 503 "));
    let (id, later) = stage.events.state_mut().kept.pop().expect("the second was served");
    assert_eq!(id, 2);
    later.answer("kept 2.");
    stage.settle();
    assert_eq!(texts(&first), ["kept 2"]);
    assert_eq!(texts(&other), ["now 0"]);
}

#[test]
fn who_shuts_down_its_sending_side_still_gets_its_answer_if_that_is_so_wished() {
    let mut stage = Stage::new(Limits { answer_half_closed: true, ..Limits::DEFAULT }, Offload::DEFAULT);
    let peer = stage.ask("/keep/1");
    stage.leave(&peer);
    let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
    assert!(!later.is_closed());
    later.answer("kept 1.");
    stage.settle();
    assert_eq!(texts(&peer), ["kept 1"]);
    assert!(peer.is_closed());
}

#[test]
fn shutdown_waits_for_an_answer_until_its_deadline() {
    for answered in [true, false] {
        let mut stage = Stage::plain();
        let peer = stage.ask("/keep/1");
        stage.world.ask_for_shutdown(Duration::ZERO);
        stage.settle();
        assert!(!peer.is_closed());
        let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
        if answered {
            later.answer("kept 1.");
            stage.settle();
            assert!(peer.taken().contains("Connection: close\r\n"));
            assert_eq!(stage.told("shutdown is complete, 1"), 0);
        } else {
            stage.world.advance(30_000);
            stage.settle();
            assert!(later.is_closed());
            assert_eq!(stage.told("shutdown is complete, 1"), 1);
        }
        assert!(peer.is_closed() && !stage.turn());
    }
}

#[test]
fn a_loop_that_is_gone_leaves_nothing_to_answer() {
    let mut stage = Stage::plain();
    let _peer = stage.ask("/keep/1");
    let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
    let _peer = stage.ask("/keep/2");
    let Stage { events, .. } = stage;
    let state = events.into_state();
    assert!(later.is_closed() && state.kept[0].1.is_closed());
    later.answer("nobody.");
}

// ---- streams -----------------------------------------------------------------------------------------------------

#[test]
fn a_message_reaches_all_and_a_slow_subscriber_is_dropped_alone() {
    let mut stage = Stage::plain();
    let peers: Vec<_> = (0..500).map(|_| stage.ask("/feed")).collect();
    let slow = &peers[250];
    slow.take_at_most(0);
    let text = "x".repeat(1000);
    let mut dropped = 0;
    for round in 0..100_u64 {
        let delivery = stage.events.state_mut().feed.send_event(&Message::new(text.as_str()).id(round.to_string()));
        assert_eq!(delivery.reached, 500 - dropped - delivery.too_slow);
        dropped += delivery.too_slow;
        stage.settle();
    }
    assert_eq!(dropped, 1);
    assert!(slow.is_closed() && slow.was_reset());
    assert_eq!(stage.told("slower than its stream"), 1);
    for peer in peers.iter().filter(|peer| !peer.is_closed()) {
        assert_eq!(peer.taken().matches("data: x").count(), 100);
    }
    assert_eq!(stage.events.stats().open, 499);
}

#[test]
fn a_subscriber_that_leaves_is_closed_and_not_counted() {
    let mut stage = Stage::plain();
    let peers = [stage.ask("/feed"), stage.ask("/feed")];
    assert_eq!(stage.events.state_mut().feed.subscribers(), 2);
    stage.leave(&peers[0]);
    assert!(peers[0].is_closed());
    assert_eq!(stage.events.state_mut().feed.subscribers(), 1);
    let delivery = stage.events.state_mut().feed.send("x");
    assert_eq!(delivery, Delivery { reached: 1, too_slow: 0, left: 1 });
}

#[test]
fn event_streams_end_at_shutdown() {
    let mut stage = Stage::plain();
    let peer = stage.ask("/feed");
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    assert!(peer.taken().ends_with("0\r\n\r\n"));
    // From here on it is idle, and closed as other idle connections are.
    stage.world.advance(500);
    stage.settle();
    assert!(peer.is_closed());
    assert!(!stage.turn());
}

#[test]
fn what_came_behind_an_event_stream_is_answered_when_a_shutdown_ends_the_stream() {
    let mut stage = Stage::plain();
    let peer = stage.connect();
    stage.send(&peer, &["/feed".to_owned(), "/now/1".to_owned()]);
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    let taken = peer.taken();
    let (_, answer) = taken.split_once("0\r\n\r\n").expect("the stream ended");
    assert!(answer.contains("Connection: close\r\n") && answer.ends_with("now 1."), "{taken}");
    assert!(peer.is_closed());
}

#[test]
fn several_parts_for_one_connection_leave_in_one_send() {
    let mut stage = Stage::plain();
    let peer = stage.ask("/feed");
    let sends = stage.world.counts().sends;
    for text in ["a", "b", "c"] {
        stage.events.state_mut().feed.send(text);
    }
    stage.settle();
    assert!(peer.taken().ends_with("1\r\na\r\n1\r\nb\r\n1\r\nc\r\n"));
    assert_eq!(stage.world.counts().sends, sends + 1);
}

// ---- stalls ------------------------------------------------------------------------------------------------------

#[test]
fn a_handler_that_holds_up_the_loop_is_counted_and_told_with_its_route() {
    let mut stage = Stage::plain();
    stage.ask("/slow/49");
    assert_eq!((stage.events.stats().stalls, stage.told("held up")), (0, 0));
    stage.ask("/slow/50");
    assert_eq!(stage.events.stats().stalls, 1);
    assert_eq!(stage.told("GET /slow/{ms} held up the loop for 50 ms"), 1);
}

#[test]
fn a_second_stall_among_many_has_the_next_one_told_with_its_route() {
    let mut stage = Stage::plain();
    let peers: Vec<_> = (0..10).map(|_| stage.connect()).collect();
    for round in 0..3 {
        for (at, peer) in peers.iter().enumerate() {
            let target = if at == 4 { "/slow/80" } else { "/now/1" };
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
            stage.world.tell_readable(peer);
        }
        stage.settle();
        assert_eq!(stage.events.stats().stalls, round + 1);
    }
    assert_eq!(stage.told("the loop was held up for 80 ms"), 2);
    assert_eq!(stage.told("GET /slow/{ms} held up the loop for 80 ms"), 1);
}

#[test]
fn a_late_answer_that_holds_up_the_loop_is_counted_once() {
    let mut stage = Stage::plain();
    stage.ask("/slow-late/70");
    assert_eq!(stage.events.stats().stalls, 1);
    assert_eq!(stage.told("the loop was held up for 70 ms"), 1);
}

#[test]
fn waiting_for_events_is_no_stall() {
    let mut stage = Stage::plain();
    let peer = stage.ask("/now/1");
    stage.world.advance(5000);
    stage.send(&peer, &["/ready".into()]);
    assert_eq!(stage.events.stats().stalls, 0);
}

#[test]
fn a_panic_in_a_late_answer_is_told_at_once_and_once() {
    let mut stage = Stage::plain();
    let _others = stage.ask("/now/1");
    for round in 1..=2 {
        let peer = stage.ask("/keep/1");
        let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
        match round {
            1 => later.call(|_, _| panic!("on purpose")),
            // The right to answer is in safety.
            _ => later.call(|app, later| {
                app.kept.push((7, later));
                panic!("on purpose");
            }),
        }
        stage.settle();
        assert_eq!((stage.told("panicked"), stage.events.stats().panics), (round, round as u64));
        assert_eq!(peer.taken().starts_with("HTTP/1.1 500 "), round == 1);
    }
}

#[test]
fn what_other_threads_call_has_the_state_and_its_panic_is_told_without_a_row() {
    let mut stage = Stage::plain();
    let peer = stage.ask("/keep/1");
    let caller = stage.events.caller();
    assert!(caller.call(|app| app.ready.push(1)) && caller.call(|_| panic!("on purpose")));
    assert!(caller.clone().call(|app| app.ready.push(2)));
    assert!(stage.events.state().ready.is_empty(), "the loop has not turned");
    stage.settle();
    assert_eq!(stage.events.state().ready, [1, 2]);
    assert_eq!((stage.told("what another thread had called panicked"), stage.events.stats().panics), (1, 1));
    assert!(caller.call(|app| app.kept.pop().expect("it was kept").1.answer("called.")));
    stage.settle();
    assert_eq!(texts(&peer), ["called"]);
    // Once it has ended, and not only when it is dropped: a thread that goes on until then may be waited for before.
    stage.events.shut_down(Duration::ZERO);
    stage.leave(&peer);
    while stage.turn() {
        stage.world.advance(1000);
    }
    assert!(!caller.call(|_| ()), "the loop has ended");
}

#[test]
fn what_other_threads_call_can_hold_up_the_loop_and_is_told() {
    let mut stage = Stage::plain();
    let caller = stage.events.caller();
    assert!(caller.call(|app| app.world.as_ref().expect("a world").advance(70)));
    stage.settle();
    assert_eq!(stage.told("the loop was held up for 70 ms"), 1);
}

#[test]
fn a_late_answer_that_fails_is_told_without_the_row_of_anybody_else() {
    for threshold in [Duration::from_millis(50), Duration::MAX] {
        let mut stage = Stage::plain();
        stage.events.configure(Offload::DEFAULT, threshold);
        let _peer = stage.ask("/keep/1");
        let _other = stage.ask("/now/1");
        let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
        later.answer("x".field("X-A", "a\r\nb"));
        stage.settle();
        assert_eq!(stage.told("a request was answered with 500: a field has a value with a control byte"), 1);
        let _peer = stage.ask("/split");
        assert_eq!(stage.told("GET /split was answered with 500: a field has a value with a control byte"), 1);
    }
}

/// An answer that panics when nobody wants it.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

impl Respond for Bomb {
    fn respond<'r>(self, response: crate::Response<'r>) -> crate::Sent<'r> {
        std::mem::forget(self);
        response.text("bomb.")
    }
}

impl Stage {
    /// A client that left before its work was begun, which panics when it is dropped.
    fn leave_work_with_a_bomb(&mut self) {
        let peer = self.ask("/keep/1");
        let (_, later) = self.events.state_mut().kept.pop().expect("it was kept");
        let bomb = Bomb;
        later.offload(move || drop(bomb), |_, ()| "never.");
        self.leave(&peer);
    }
}

/// Says what the pool looks like whenever a letter comes.
struct Watch {
    pool: Pool,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Outside for Watch {
    fn wake(&self) {
        self.seen.lock().expect("no panic").push(format!("{:?}", self.pool));
    }
    fn submit(&self, job: Job) -> Result<(), Job> {
        self.pool.submit(job)
    }
    fn close(&self) {}
}

#[test]
fn the_place_of_work_is_free_before_anybody_hears_of_its_result() {
    let free = "Pool { waiting: 0, busy: 0, .. }";
    for late in [false, true] {
        let (pool, seen) = (Pool::new(Offload::DEFAULT), Arc::default());
        pool.drive_by_hand();
        let submit = |work: fn()| {
            let outside = Watch { pool: pool.clone(), seen: Arc::clone(&seen) };
            let mut lane = Lane::new(Box::new(outside));
            Later::<()>::new(lane.new_ticket()).offload(work, |(), ()| "done");
            assert!(pool.run_at(0, late));
        };
        submit(|| ());
        submit(|| panic!("on purpose"));
        assert_eq!(*seen.lock().expect("no panic"), [free, free]);
    }
}

#[test]
fn several_values_that_panic_when_they_are_dropped_end_nothing_together() {
    let mut stage = Stage::new(Limits::DEFAULT, Offload { threads: 1, queue: 3, ..Offload::DEFAULT });
    let mut ask_for_bombs = || {
        for _ in 0..3 {
            stage.leave_work_with_a_bomb();
        }
    };
    // Those that make room for others, those that the end of the loop finds in the queue, and those in letters.
    ask_for_bombs();
    ask_for_bombs();
    for _ in 0..2 {
        let _peer = stage.ask("/keep/1");
        let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
        later.answer(Bomb);
    }
    let state = stage.events.into_state();
    assert!(state.kept.is_empty());
}

#[test]
fn what_panics_when_it_is_dropped_costs_neither_the_loop_nor_a_thread_of_the_pool() {
    let mut stage = Stage::new(Limits::DEFAULT, Offload { threads: 1, queue: 0, ..Offload::DEFAULT });
    let peer = stage.ask("/keep/1");
    let (_, later) = stage.events.state_mut().kept.pop().expect("it was kept");
    stage.leave(&peer);
    later.answer(Bomb);
    stage.settle();

    for _ in 0..3 {
        stage.leave_work_with_a_bomb();
        assert!(stage.events.pool().run_one());
    }
    let peer = stage.ask("/jobs/1");
    assert!(stage.events.pool().run_one());
    stage.settle();
    assert_eq!(texts(&peer), ["worked 1"]);
}
