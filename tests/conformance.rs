//! The raw-request corpus, over sockets and in process, whole and cut in every way.

mod corpus;

use std::net::SocketAddr;

use corpus::{Effort, Patience, Peer};
use sprat::testing::{Client, Link};
use sprat::{Body, Limits, Server, routes};

#[test]
fn every_case_passes_over_sockets() {
    let (cases, address) = (corpus::load(), serve());
    // Many at a time: a client mostly waits.
    let failures = corpus::judge_all(&cases, 8, |case| corpus::check_over_tcp(case, address, Patience::USUAL));
    corpus::assert_all_pass(&cases, &failures);
}

#[test]
fn every_case_passes_in_process() {
    let cases = corpus::load();
    let failures = corpus::judge_all(&cases, 1, |case| corpus::check_whole(case, fresh_peer()));
    corpus::assert_all_pass(&cases, &failures);
}

#[test]
fn every_case_gets_the_same_answers_however_its_bytes_are_cut() {
    let cases = corpus::load();
    let failures = corpus::judge_all(&cases, 2, |case| corpus::check_every_split(case, fresh_peer, Effort::FULL));
    corpus::assert_all_pass(&cases, &failures);
}

/// The routes and limits that the corpus is written for, as in `examples/conformance.rs`.
struct App;

routes! {
    Api for App {
        GET  "/"               => hello(),
        GET  "/echo-path/{id}" => echo_path(id),
        POST "/echo"           => echo(body),
    }
}

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn echo_path(_: &mut App, id: u64) -> String {
    id.to_string()
}

fn echo<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {
    body
}

const LIMITS: Limits = Limits { head_bytes_max: 8 << 10, fields_max: 64, body_bytes_max: 1 << 20, ..Limits::DEFAULT };

struct InProcess(Link<App, Client<App>>);

impl Peer for InProcess {
    fn send(&mut self, bytes: &[u8]) {
        self.0.send(bytes);
    }
    fn close_write(&mut self) {
        self.0.close_write();
    }
    fn received(&self) -> &[u8] {
        self.0.received()
    }
    fn is_closed(&self) -> bool {
        self.0.is_write_shut()
    }
    fn unix_now(&self) -> u64 {
        // The test client's clock stands at 2000-01-01.
        946_684_800
    }
}

fn fresh_peer() -> impl Peer {
    InProcess(Client::new(Api, App).with_limits(LIMITS).into_link())
}

fn serve() -> SocketAddr {
    let server = Server::bind("127.0.0.1:0").expect("a free port").limits(LIMITS);
    let address = server.local_addr().expect("a bound address");
    std::thread::spawn(move || server.serve(Api, App).expect("the loop runs"));
    address
}
