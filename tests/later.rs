//! Answers that come later, work for the pool, and streams: in process, with the clock in the test's hand.

use std::sync::mpsc;
use std::time::Duration;

use sprat::testing::{Client, Link};
use sprat::{
    Body, Broadcast, CloseReason, EventStream, Later, Limits, Message, Method, Rejection, Respond, Status, Stream,
    StreamError, StreamHead, routes,
};

#[derive(Default)]
struct App {
    kept: Vec<Later<App>>,
    stream: Option<Stream>,
    feed: Broadcast,
    last_ids: Vec<Option<String>>,
    done: u32,
    begun: Option<mpsc::Sender<u64>>,
}

routes! {
    Api for App {
        GET  "/now"           => now(),
        GET  "/keep"          => keep(later),
        POST "/keep"          => keep_post(later),
        POST "/keep-body"     => keep_body(body, later),
        GET  "/at-once"       => at_once(later),
        GET  "/with-state"    => with_state(later),
        GET  "/drop"          => forget(later),
        GET  "/panic"         => panic_with(later),
        GET  "/refuse/{kind}" => refuse(later, kind),
        GET  "/late-param/{n}" => late_param(later, n),
        GET  "/jobs/{id}"     => work(later, id),
        GET  "/twice/{id}"    => twice(later, id),
        GET  "/jobs-panic"    => work_panic(later),
        GET  "/fails"         => fails(later),
        GET  "/stream"        => stream(later),
        GET  "/stream-204"    => stream_204(later),
        GET  "/feed"          => feed(events),
    }
}

fn now(app: &mut App) -> String {
    app.done += 1;
    format!("now {}", app.done)
}

fn keep(app: &mut App, later: Later<App>) {
    app.kept.push(later);
}

fn keep_post(app: &mut App, later: Later<App>) {
    app.kept.push(later);
}

fn keep_body(app: &mut App, body: Body<'_>, later: Later<App>) {
    let body = body.as_slice().to_vec();
    later.call(move |app, later| {
        let _ = body;
        app.kept.push(later);
    });
    app.done += 1;
}

fn at_once(_: &mut App, later: Later<App>) {
    later.answer("at once");
}

fn with_state(app: &mut App, later: Later<App>) {
    app.done = 41;
    later.answer_with(|app: &mut App| {
        app.done += 1;
        app.done.to_string()
    });
}

fn forget(_: &mut App, _: Later<App>) {}

fn panic_with(_: &mut App, _later: Later<App>) {
    panic!("as asked for")
}

fn refuse(app: &mut App, later: Later<App>, kind: &str) -> Result<(), Rejection> {
    if kind == "now" {
        app.kept.push(later);
        return Err(Rejection::text(Status::FORBIDDEN, "refused"));
    }
    later.answer("let in");
    Ok(())
}

fn late_param(app: &mut App, later: Later<App>, _n: u64) {
    app.kept.push(later);
}

fn work(app: &mut App, later: Later<App>, id: u64) {
    let begun = app.begun.clone();
    let work = move || {
        if let Some(begun) = begun {
            begun.send(id).expect("the test listens");
        }
        id * 2
    };
    later.offload(work, |app, doubled| {
        app.done += 1;
        doubled.to_string().field("X-Done", app.done.to_string())
    });
}

fn twice(_: &mut App, later: Later<App>, id: u64) {
    later.offload_then(move || id + 1, |_, id, later| later.offload(move || id * 10, |_, id| id.to_string()));
}

fn work_panic(_: &mut App, later: Later<App>) {
    later.offload(|| panic!("as asked for"), |_, ()| "not reached");
}

fn fails(_: &mut App, later: Later<App>) {
    later.answer_with(|_| -> &'static str { panic!("as asked for") });
}

fn stream(app: &mut App, later: Later<App>) {
    app.stream = Some(later.stream(StreamHead::new("text/plain").field("X-Kind", "parts").room(1000)));
}

fn stream_204(app: &mut App, later: Later<App>) {
    app.stream = Some(later.stream(StreamHead::new("text/plain").status(Status::NO_CONTENT)));
}

fn feed(app: &mut App, events: EventStream) {
    app.last_ids.push(events.last_event_id().map(str::to_owned));
    app.feed.subscribe(events);
}

fn client() -> Client<App> {
    Client::new(Api, App::default())
}

type OwnLink = Link<App, Client<App>>;

fn link() -> OwnLink {
    client().into_link()
}

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes()
}

fn answer_kept(link: &mut OwnLink, text: &'static str) {
    link.state().kept.remove(0).answer(text);
    link.work();
}

fn texts(link: &OwnLink) -> Vec<String> {
    link.answers().iter().map(|answer| answer.text().to_owned()).collect()
}

// ---- later -------------------------------------------------------------------------------------------------------

#[test]
fn an_answer_can_come_later() {
    let mut link = link();
    link.send(&get("/keep"));
    assert!(link.received().is_empty());
    answer_kept(&mut link, "here it is");
    assert_eq!(texts(&link), ["here it is"]);
    link.send(&get("/now"));
    assert_eq!(texts(&link), ["here it is", "now 1"]);
}

#[test]
fn an_answer_can_come_from_another_thread() {
    let mut link = link();
    link.send(&get("/keep"));
    let later = link.state().kept.remove(0);
    std::thread::spawn(move || later.answer("from afar")).join().expect("no panic");
    link.work();
    assert_eq!(texts(&link), ["from afar"]);
}

#[test]
fn an_answer_can_come_at_once_and_use_the_state() {
    assert_eq!(client().get("/at-once").text(), "at once");
    assert_eq!(client().get("/with-state").text(), "42");
}

#[test]
fn what_is_pipelined_behind_a_later_answer_waits_for_it() {
    let mut link = link();
    link.send(&[get("/now"), get("/keep"), get("/now"), get("/keep"), get("/now")].concat());
    assert_eq!(texts(&link), ["now 1"]);
    answer_kept(&mut link, "first");
    assert_eq!(texts(&link), ["now 1", "first", "now 2"]);
    answer_kept(&mut link, "second");
    assert_eq!(texts(&link), ["now 1", "first", "now 2", "second", "now 3"]);
}

#[test]
fn requests_split_in_every_place_around_a_later_answer_keep_their_order() {
    let bytes = [get("/keep"), get("/now")].concat();
    for cut in 1..bytes.len() {
        let mut link = link();
        link.send_split(&bytes, &[cut]);
        if link.state().kept.is_empty() {
            panic!("the first request is whole");
        }
        answer_kept(&mut link, "first");
        assert_eq!(texts(&link), ["first", "now 1"], "cut at {cut}");
    }
}

#[test]
fn nothing_is_read_while_an_answer_is_waited_for() {
    let mut link = link();
    link.send(&get("/keep"));
    let held = link.held_bytes();
    link.send(&get("/now").repeat(10_000));
    assert_eq!(link.held_bytes(), held);
    answer_kept(&mut link, "first");
    assert_eq!(link.answers().len(), 10_001);
}

#[test]
fn a_dropped_right_to_answer_answers_500() {
    let mut link = link();
    link.send(&[get("/drop"), get("/now")].concat());
    let answers = link.answers();
    assert_eq!((answers[0].status(), answers[1].text()), (500, "now 1"));
}

#[test]
fn a_panic_of_the_handler_answers_500_once_and_closes() {
    let mut link = link();
    link.send(&[get("/panic"), get("/now")].concat());
    assert_eq!(link.answers().len(), 1);
    assert_eq!(link.answers()[0].status(), 500);
    link.close_write();
    assert_eq!(link.closed(), Some(CloseReason::HandlerPanicked));
}

#[test]
fn a_panic_of_a_late_answer_answers_500_and_closes() {
    let mut link = link();
    link.send(&get("/fails"));
    assert_eq!(link.answers()[0].status(), 500);
    link.close_write();
    assert_eq!(link.closed(), Some(CloseReason::HandlerPanicked));
}

#[test]
fn a_handler_can_refuse_at_once_and_its_right_is_void() {
    let mut link = link();
    link.send(&get("/refuse/now"));
    let later = link.state().kept.remove(0);
    assert!(later.is_closed());
    later.answer("too late");
    link.send(&get("/refuse/later"));
    let answers = link.answers();
    assert_eq!((answers[0].status(), answers[1].text()), (403, "let in"));
}

#[test]
fn a_right_taken_before_another_argument_fails_is_void() {
    let mut link = link();
    link.send(&[get("/late-param/x"), get("/now")].concat());
    let answers = link.answers();
    assert_eq!((answers[0].status(), answers[1].text()), (400, "now 1"));
    assert_eq!(link.answers().len(), 2);
}

#[test]
fn a_late_answer_is_framed_for_head_and_http_1_0_and_close() {
    let mut link = link();
    link.send(b"HEAD /keep HTTP/1.1\r\nHost: x\r\n\r\n");
    answer_kept(&mut link, "12345");
    let answers = link.answers_to(&[Method::Head]);
    assert_eq!((answers[0].field("content-length"), answers[0].body()), (Some("5"), &b""[..]));

    let mut link = self::link();
    link.send(b"GET /keep HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    answer_kept(&mut link, "x");
    assert_eq!(link.answers()[0].field("connection"), Some("keep-alive"));
    assert_eq!(link.closed(), None);

    for request in ["GET /keep HTTP/1.0\r\n\r\n", "GET /keep HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"] {
        let mut link = self::link();
        link.send(request.as_bytes());
        answer_kept(&mut link, "x");
        assert_eq!(link.answers()[0].field("connection"), Some("close"));
        assert_eq!(link.closed(), Some(CloseReason::AskedByPeer));
    }
}

#[test]
fn a_body_that_nobody_wants_is_skipped_behind_a_late_answer() {
    for framing in ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"] {
        let bytes = format!("POST /keep HTTP/1.1\r\nHost: x\r\n{framing}");
        for cut in bytes.len() - 12..bytes.len() {
            let mut link = link();
            link.send_split(bytes.as_bytes(), &[cut]);
            if link.state().kept.is_empty() {
                continue;
            }
            link.send(&get("/now"));
            answer_kept(&mut link, "first");
            assert_eq!(texts(&link), ["first", "now 1"], "cut at {cut}");
        }
    }
}

#[test]
fn a_body_that_is_wanted_is_read_before_the_wait() {
    let mut link = link();
    link.send_bytewise(
        b"POST /keep-body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    link.send(&get("/now"));
    answer_kept(&mut link, "first");
    assert_eq!(texts(&link), ["first", "now 2"]);
}

#[test]
fn waiting_is_not_idle_and_has_a_deadline_of_its_own() {
    let mut link =
        client().with_limits(Limits { answer_timeout: Duration::from_secs(200), ..Limits::DEFAULT }).into_link();
    link.send(&[get("/keep"), get("/now")].concat());
    link.advance(Duration::from_millis(199_999));
    assert!(link.received().is_empty() && link.closed().is_none());
    link.advance(Duration::from_millis(1));
    let answers = link.answers();
    assert_eq!((answers[0].status(), answers[1].text()), (503, "now 1"));
    let late = link.state().kept.remove(0);
    assert!(late.is_closed());
    late.answer("too late");
    link.work();
    assert_eq!(link.answers().len(), 2);
}

#[test]
fn an_answer_never_reaches_the_next_request_of_its_connection() {
    let mut link = link();
    link.send(&[get("/keep"), get("/keep")].concat());
    link.advance(Duration::from_secs(60));
    assert_eq!(link.answers()[0].status(), 503);
    link.state().kept.remove(0).answer("for the first");
    link.work();
    assert_eq!(link.answers().len(), 1);
    answer_kept(&mut link, "for the second");
    assert_eq!(link.answers()[1].text(), "for the second");
}

#[test]
fn whoever_holds_the_right_can_see_that_the_connection_is_gone() {
    let mut link = link();
    link.send(&get("/keep"));
    let later = link.state().kept.remove(0);
    assert!(!later.is_closed());
    drop(link);
    assert!(later.is_closed());
}

#[test]
fn during_shutdown_a_late_answer_closes_its_connection() {
    let mut client = client();
    client.begin_shutdown();
    let mut link = client.into_link();
    link.send(&get("/keep"));
    answer_kept(&mut link, "last");
    assert_eq!(link.answers()[0].field("connection"), Some("close"));
    assert_eq!(link.closed(), Some(CloseReason::Drained));
}

// ---- work --------------------------------------------------------------------------------------------------------

#[test]
fn work_is_done_elsewhere_and_answered_with_the_state() {
    let answer = client().get("/jobs/21");
    assert_eq!((answer.text(), answer.field("x-done")), ("42", Some("1")));
}

#[test]
fn work_can_lead_to_more_work() {
    assert_eq!(client().get("/twice/4").text(), "50");
}

#[test]
fn a_panic_in_the_work_answers_500() {
    let mut link = link();
    link.send(&[get("/jobs-panic"), get("/now")].concat());
    let answers = link.answers();
    assert_eq!((answers[0].status(), answers[1].text()), (500, "now 1"));
}

#[test]
fn work_whose_client_left_is_never_begun() {
    let mut client = client();
    client.hold_work();
    let (begun, ran) = mpsc::channel();
    client.state().begun = Some(begun);
    let mut link = client.connect();
    link.send(&get("/jobs/1"));
    drop(link);
    let mut link = client.connect();
    link.send(&get("/jobs/2"));
    link.work();
    assert_eq!(link.answers()[0].text(), "4");
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [2]);
}

// ---- streams -----------------------------------------------------------------------------------------------------

fn send(link: &mut OwnLink, part: &str) -> Result<usize, StreamError> {
    let sent = link.state().stream.as_ref().expect("a stream").send(part);
    link.work();
    sent
}

#[test]
fn a_stream_is_chunked_and_each_part_goes_out_at_once() {
    let mut link = link();
    link.send(&[get("/stream"), get("/now")].concat());
    link.work();
    let head = String::from_utf8(link.received().to_vec()).expect("ASCII");
    assert!(head.contains("Transfer-Encoding: chunked\r\n") && head.contains("X-Kind: parts\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain\r\n") && !head.contains("Content-Length"), "{head}");
    send(&mut link, "hello").expect("room");
    assert!(link.received().ends_with(b"\r\n\r\n5\r\nhello\r\n"));
    send(&mut link, "").expect("nothing");
    send(&mut link, &"x".repeat(20)).expect("room");
    assert!(link.received().ends_with(b"5\r\nhello\r\n14\r\nxxxxxxxxxxxxxxxxxxxx\r\n"));
    link.state().stream.take().expect("a stream").end();
    link.work();
    assert_eq!(texts(&link), ["helloxxxxxxxxxxxxxxxxxxxx", "now 1"]);
}

#[test]
fn a_stream_on_http_1_0_ends_with_its_connection() {
    let mut link = link();
    link.send(b"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    send(&mut link, "hello ").expect("room");
    send(&mut link, "world").expect("room");
    link.state().stream.take().expect("a stream").end();
    link.work();
    let answer = &link.answers()[0];
    assert_eq!((answer.text(), answer.field("connection")), ("hello world", Some("close")));
    assert_eq!(answer.field("transfer-encoding"), None);
    assert_eq!(link.closed(), Some(CloseReason::AskedByPeer));
}

#[test]
fn a_stream_for_head_has_a_head_only_and_no_listener() {
    let mut link = link();
    link.send(b"HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    link.work();
    assert_eq!(link.answers_to(&[Method::Head])[0].field("transfer-encoding"), Some("chunked"));
    assert_eq!(send(&mut link, "x"), Err(StreamError::Closed));
    link.send(&get("/now"));
    assert_eq!(link.answers_to(&[Method::Head])[1].text(), "now 1");
}

#[test]
fn a_stream_without_content_is_a_500() {
    let mut link = link();
    link.send(&get("/stream-204"));
    assert_eq!(link.answers()[0].status(), 500);
}

#[test]
fn a_stream_that_is_dropped_breaks_off_visibly() {
    let mut link = link();
    link.send(&get("/stream"));
    send(&mut link, "half").expect("room");
    link.state().stream = None;
    link.work();
    assert!(link.received().ends_with(b"4\r\nhalf\r\n"), "no last chunk");
    assert_eq!(link.closed(), Some(CloseReason::StreamAborted));
}

#[test]
fn the_producer_is_told_what_waits_and_is_stopped_when_it_is_too_much() {
    let mut link = link();
    link.send(&get("/stream"));
    link.work();
    let head = link.received().len();
    link.take_at_most(0);
    assert_eq!(send(&mut link, &"x".repeat(600)), Ok(600));
    let waiting = link.state().stream.as_ref().expect("a stream").waiting();
    assert!((600..620).contains(&waiting), "{waiting}");
    assert_eq!(send(&mut link, &"x".repeat(600)), Err(StreamError::Full));
    link.take_at_most(usize::MAX);
    assert_eq!(link.state().stream.as_ref().expect("a stream").waiting(), 0);
    assert_eq!(send(&mut link, &"y".repeat(5000)), Ok(5000), "one part always has room");
    assert_eq!(link.received().len() - head, 600 + 7 + 5000 + 8);
}

#[test]
fn a_stream_has_no_deadline_but_that_of_its_output() {
    let mut link = link();
    link.send(&get("/stream"));
    link.work();
    link.advance(Duration::from_secs(100_000));
    assert_eq!(link.closed(), None);
    link.take_at_most(0);
    send(&mut link, "x").expect("room");
    link.advance(Duration::from_secs(30));
    assert_eq!(link.closed(), Some(CloseReason::WriteTimeout));
    assert_eq!(send(&mut link, "x"), Err(StreamError::Closed));
}

// ---- server-sent events ------------------------------------------------------------------------------------------

#[test]
fn events_arrive_and_last_event_id_is_read() {
    let mut link = link();
    link.send(b"GET /feed HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 41\r\n\r\n");
    link.work();
    assert_eq!(link.state().last_ids, [Some("41".to_owned())]);
    link.state().feed.send_event(&Message::new("a\r\nb\rc").id("42").event("news"));
    link.work();
    let text = String::from_utf8(link.received().to_vec()).expect("text");
    assert!(text.contains("Content-Type: text/event-stream\r\n"), "{text}");
    assert!(text.contains("Cache-Control: no-store\r\n"), "{text}");
    assert!(text.contains("X-Accel-Buffering: no\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\n2c\r\nevent: news\nid: 42\ndata: a\ndata: b\ndata: c\n\n\r\n"), "{text}");
}

#[test]
fn silence_is_broken_by_a_comment_every_fifteen_seconds() {
    let mut link = link();
    link.send(&get("/feed"));
    link.work();
    let head = link.received().len();
    link.advance(Duration::from_millis(14_999));
    assert_eq!(link.received().len(), head);
    link.advance(Duration::from_millis(1));
    assert_eq!(&link.received()[head..], b"3\r\n:\n\n\r\n");
    link.advance(Duration::from_secs(15));
    assert_eq!(&link.received()[head..], b"3\r\n:\n\n\r\n3\r\n:\n\n\r\n");
}

#[test]
fn a_field_of_an_event_ends_with_its_line() {
    let message = Message::new("x").event("a\nid: 9").id("1\0\r\ndata: y").retry(Duration::from_secs(3));
    assert_eq!(message.to_bytes(), b"event: a\nid: 1\nretry: 3000\ndata: x\n\n");
}

#[test]
fn a_large_message_is_shared_and_a_small_one_copied_with_the_same_bytes() {
    for len in [10, 600, 20_000] {
        let mut link = link();
        link.send(&get("/feed"));
        link.work();
        let head = link.received().len();
        let delivery = link.state().feed.send("z".repeat(len));
        assert_eq!((delivery.reached, delivery.too_slow, delivery.left), (1, 0, 0));
        link.work();
        assert_eq!(link.received()[head..], *format!("{len:x}\r\n{}\r\n", "z".repeat(len)).as_bytes());
    }
}
