//! The test client: what it sends, how it waits, and what it says where a test is wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sprat::testing::{Client, Link};
use sprat::{Later, Method, Request, Stream, StreamHead, routes};

/// Longer than any of these tests takes.
const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct App {
    /// Tells the thread of a request to go on.
    go: Vec<mpsc::Sender<()>>,
    streams: Vec<Stream>,
    worked: u32,
}

routes! {
    Api for App {
        GET    "/now"     => const text("now"),
        GET    "/thread"  => by_thread(later),
        GET    "/at-once" => at_once(later),
        GET    "/work"    => by_thread_and_pool(later),
        GET    "/count"   => count(later),
        GET    "/stream"  => stream(later),
        GET    "/never"   => never(later),
        PUT    "/body"    => say(request, body),
        PATCH  "/body"    => say(request, body),
        DELETE "/body"    => say(request, body),
    }
}

fn by_thread(app: &mut App, later: Later<App>) {
    let (go, told) = mpsc::channel();
    app.go.push(go);
    thread::spawn(move || {
        let _ = told.recv();
        later.answer("from a thread");
    });
}

fn at_once(_: &mut App, later: Later<App>) {
    thread::spawn(move || later.answer("from a thread"));
}

fn by_thread_and_pool(_: &mut App, later: Later<App>) {
    let work = |app: &mut App, ()| {
        app.worked += 1;
        "from the pool"
    };
    thread::spawn(move || later.offload(|| (), work));
}

fn count(_: &mut App, later: Later<App>) {
    let stream = later.stream(StreamHead::new("text/plain"));
    thread::spawn(move || {
        for part in ["one ", "two ", "three"] {
            thread::sleep(Duration::from_millis(2));
            stream.send(part).expect("there is room");
        }
        stream.end();
    });
}

fn stream(app: &mut App, later: Later<App>) {
    app.streams.push(later.stream(StreamHead::new("text/plain")));
}

fn never(_: &mut App, later: Later<App>) {
    std::mem::forget(later);
}

fn say(_: &mut App, request: Request<'_>, body: Vec<u8>) -> String {
    let media_type = request.fields().get("content-type").map(<[u8]>::escape_ascii);
    let media_type = media_type.map_or_else(String::new, |media_type| format!(" as {media_type}"));
    format!("{} {}{media_type}", request.method().as_str(), body.escape_ascii())
}

fn client() -> Client<App> {
    Client::new(Api, App::default())
}

fn link() -> Link<App, Client<App>> {
    client().into_link()
}

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes()
}

/// What a test is told that goes wrong, and where.
#[track_caller]
fn panic_of(test: impl FnOnce()) -> (String, String) {
    static PLACE: Mutex<String> = Mutex::new(String::new());
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = std::panic::take_hook();
    let here = thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        if thread::current().id() == here {
            let place = info.location().map(|place| place.file().to_owned());
            *PLACE.lock().expect("no panic holds it") = place.unwrap_or_default();
        }
    }));
    let result = catch_unwind(AssertUnwindSafe(test));
    std::panic::set_hook(before);
    let place = PLACE.lock().expect("no panic holds it").clone();
    drop(guard);
    let error = result.expect_err("it panics");
    let text = error.downcast_ref::<String>().cloned();
    (text.or_else(|| error.downcast_ref::<&str>().map(|&text| text.to_owned())).expect("a text"), place)
}

// ---- waiting -----------------------------------------------------------------------------------------------------

#[test]
fn a_link_waits_for_an_answer_of_another_thread() {
    let mut link = link();
    link.send(&get("/thread"));
    assert!(!link.wait(Duration::from_millis(5)));
    assert_eq!(link.received(), b"");
    let go = link.state().go.remove(0);
    go.send(()).expect("it listens");
    assert!(link.wait(LONG));
    assert_eq!(link.answers()[0].text(), "from a thread");
}

#[test]
fn an_answer_that_came_before_the_wait_is_not_waited_for() {
    for _ in 0..200 {
        let mut link = link();
        link.send(&get("/at-once"));
        let before = Instant::now();
        assert!(link.wait(LONG));
        assert!(link.wait(LONG));
        assert!(before.elapsed() < LONG);
        assert_eq!(link.answers()[0].text(), "from a thread");
    }
}

#[test]
fn all_requests_of_a_link_are_waited_for() {
    let mut link = link();
    link.send(&[get("/at-once"), get("/now"), get("/work")].concat());
    assert!(link.wait(LONG));
    let texts: Vec<_> = link.answers().iter().map(|answer| answer.text().to_owned()).collect();
    assert_eq!(texts, ["from a thread", "now", "from the pool"]);
}

#[test]
fn held_work_is_not_done_by_waiting() {
    let mut client = client();
    client.hold_work();
    let mut link = client.connect();
    link.send(&get("/work"));
    assert!(!link.wait(Duration::from_millis(20)));
    assert_eq!(link.state().worked, 0);
    // The thread may not have handed it over yet.
    while !link.wait(Duration::from_millis(1)) {
        link.work();
    }
    assert_eq!(link.answers()[0].text(), "from the pool");
}

#[test]
fn where_nothing_is_to_come_nothing_is_waited_for() {
    let mut link = link();
    assert!(link.wait(LONG));
    link.send(&get("/now"));
    assert!(link.wait(LONG));
    link.close_write();
    assert!(link.closed().is_some());
    assert!(link.wait(LONG));
    assert!(!link.wait_until(LONG, |link| link.received().is_empty()));
}

#[test]
fn a_link_waits_for_the_parts_of_a_stream() {
    let mut link = link();
    link.send(&get("/count"));
    assert!(link.wait(LONG));
    for text in ["one ", "one two ", "one two three"] {
        assert!(link.wait_until(LONG, |link| link.partial().text().starts_with(text)));
    }
    assert!(link.wait_until(LONG, |link| link.received().ends_with(b"\r\n0\r\n\r\n")));
    assert_eq!(link.answers()[0].text(), "one two three");
    assert_eq!(link.answers()[0], link.partial());
}

// ---- what has come of a stream -----------------------------------------------------------------------------------

#[test]
fn what_has_come_of_a_stream_is_seen_while_it_is_open_and_when_it_broke_off() {
    let mut link = link();
    link.send(&[get("/now"), get("/stream")].concat());
    assert_eq!((link.partial().status(), link.partial().text()), (200, ""));
    assert_eq!(link.partial().field("content-type"), Some("text/plain"));
    link.state().streams[0].send("part").expect("there is room");
    link.work();
    assert_eq!(link.partial().text(), "part");
    let (text, place) = panic_of(|| drop(link.answers()));
    assert!(text.starts_with("a stream that has not ended; `Link::partial` hands out what has come of it: "), "{text}");
    assert!(place.ends_with("client.rs"), "{place}");

    link.state().streams.clear();
    link.work();
    assert!(link.closed().is_some());
    assert_eq!(link.partial().text(), "part");
    let (text, _) = panic_of(|| drop(link.answers()));
    assert!(
        text.starts_with("a stream that has not ended; it was broken off, and `Link::partial` hands out"),
        "{text}"
    );
}

#[test]
fn a_test_that_is_wrong_is_told_so_in_its_own_line() {
    let line = |text: &str, test: &dyn Fn()| {
        let (said, place) = panic_of(test);
        assert!(said.contains(text), "{said}");
        assert!(place.ends_with("client.rs"), "{said}: {place}");
    };
    line("no answer has begun: ", &|| drop(link().partial()));
    line("a stream that has not ended; open the connection by `Client::connect`", &|| {
        client().get("/stream");
    });
    line("needs `Client::connect`, and `Link::wait` where a thread of your own answers", &|| {
        client().get("/never");
    });
    line("`Client::request_token` takes one of your own", &|| drop(client().request(Method::Other, "/now")));
    line("half a head: ", &|| {
        let mut link = link();
        link.take_at_most(9);
        link.send(&get("/now"));
        link.answers();
    });
}

// ---- what it sends -----------------------------------------------------------------------------------------------

#[test]
fn each_method_has_its_bytes() {
    let mut client = client();
    assert_eq!(client.put("/body", b"a\0").text(), "PUT a\\x00");
    assert_eq!(client.patch("/body", b"b").text(), "PATCH b");
    assert_eq!(client.delete("/body").text(), "DELETE ");
    assert_eq!(client.request_token("MOVE", "/body").send().status(), 405);
    assert_eq!(client.request_token("HEAD", "/now").send().text(), "");
}

#[cfg(feature = "json")]
mod json {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Order {
        item: String,
        counts: Vec<u32>,
    }

    #[test]
    fn a_value_is_sent_as_json_with_its_media_type() {
        let order = Order { item: "milk".into(), counts: vec![1, 2] };
        let answer = client().request(Method::Put, "/body").json(&order).send();
        assert_eq!(answer.text(), r#"PUT {\"item\":\"milk\",\"counts\":[1,2]} as application/json"#);
        let answer = client().request(Method::Put, "/body").json("text").send();
        assert_eq!(answer.text(), r#"PUT \"text\" as application/json"#);
    }

    routes! { Echo for () { PUT "/" => echo(body), } }

    fn echo<'r>(_: &mut (), body: &'r [u8]) -> &'r [u8] {
        body
    }

    #[test]
    fn an_answer_is_read_as_any_type_that_owns_its_parts() {
        let mut client = Client::new(Echo, ());
        let order: Order = client.put("/", br#"{"item":"milk","counts":[1]}"#).json();
        assert_eq!(order, Order { item: "milk".into(), counts: vec![1] });
        assert_eq!(client.put("/", b"[1,2]").json::<Vec<u8>>(), [1, 2]);

        let wrong = client.put("/", br#"{"item":"milk","counts":[1,true]}"#);
        let (text, place) = panic_of(|| drop(wrong.json::<Order>()));
        let why = "Order`: expected an integer of 32 bits, not negative at counts[1]: Answer { status: 200";
        assert!(text.contains(why), "{text}");
        assert!(text.ends_with(r#"body: "{\"item\":\"milk\",\"counts\":[1,true]}" }"#), "{text}");
        assert!(place.ends_with("client.rs"), "{place}");
        let wrong = client.put("/", b"sorry");
        let (text, _) = panic_of(|| drop(wrong.json::<Order>()));
        assert!(text.contains("Order`: malformed json"), "{text}");
    }
}
