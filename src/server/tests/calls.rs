//! The budget of system calls, counted where the loop meets real sockets.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Api, App, GET, HELLO_LEN};
use crate::connection::Tick;
use crate::limits::Limits;
use crate::route::Table;
use crate::server::event_loop::EventLoop;
use crate::server::net::{Net, Ready, Token};
use crate::server::sockets::{Listener, Sockets};

/// Calls through the seam, each of which is one system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Calls {
    recvs: usize,
    sends: usize,
    registrations: usize,
    clock_reads: usize,
    waits: usize,
}

impl std::ops::Sub for Calls {
    type Output = Calls;
    fn sub(self, before: Calls) -> Calls {
        Calls {
            recvs: self.recvs - before.recvs,
            sends: self.sends - before.sends,
            registrations: self.registrations - before.registrations,
            clock_reads: self.clock_reads - before.clock_reads,
            waits: self.waits - before.waits,
        }
    }
}

#[derive(Debug)]
struct Counting {
    sockets: Sockets,
    calls: Calls,
}

impl Net for Counting {
    type Socket = <Sockets as Net>::Socket;
    const SHORT_READ_DRAINS: bool = Sockets::SHORT_READ_DRAINS;

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Ready>) -> io::Result<()> {
        self.calls.waits += 1;
        self.sockets.wait(timeout, events)
    }
    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)> {
        self.sockets.accept()
    }
    fn close_listener(&mut self) {
        self.sockets.close_listener();
    }
    fn register(&mut self, socket: &mut Self::Socket, token: Token, writable: bool) -> io::Result<()> {
        self.calls.registrations += 1;
        self.sockets.register(socket, token, writable)
    }
    fn watch_writable(&mut self, socket: &mut Self::Socket, token: Token) -> io::Result<()> {
        self.calls.registrations += 1;
        self.sockets.watch_writable(socket, token)
    }
    fn recv(&mut self, socket: &mut Self::Socket, space: &mut [u8]) -> io::Result<usize> {
        self.calls.recvs += 1;
        self.sockets.recv(socket, space)
    }
    fn send(&mut self, socket: &mut Self::Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.calls.sends += 1;
        self.sockets.send(socket, slices)
    }
    fn shutdown_write(&mut self, socket: &mut Self::Socket) -> io::Result<()> {
        self.sockets.shutdown_write(socket)
    }
    fn close(&mut self, socket: Self::Socket, reset: bool) {
        self.sockets.close(socket, reset);
    }
    fn shutdown_asked(&mut self) -> Option<Duration> {
        self.sockets.shutdown_asked()
    }
    fn now(&mut self) -> Tick {
        self.calls.clock_reads += 1;
        self.sockets.now()
    }
    fn unix_time(&mut self) -> Duration {
        self.sockets.unix_time()
    }
}

struct Lab {
    events: EventLoop<Counting, App>,
    client: TcpStream,
}

impl Lab {
    /// With one connection that has had an answer.
    fn new() -> Lab {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mut sockets = Sockets::new(Listener::tcp(listener).expect("a listener")).expect("a poll");
        sockets.listen(None).expect("a registration");
        let net = Counting { sockets, calls: Calls::default() };
        let events = EventLoop::new(net, Api::ROUTES, App::default(), Limits::DEFAULT, usize::MAX, None);
        let client = TcpStream::connect(address).expect("a listener");
        client.set_nonblocking(true).expect("a socket");
        let mut lab = Lab { events, client };
        lab.exchange(GET, HELLO_LEN);
        lab
    }

    /// Sends, and turns until an answer of this length has come. Gives the calls that it took.
    fn exchange(&mut self, request: &str, answer_len: usize) -> Calls {
        let before = self.events.net().calls;
        self.client.write_all(request.as_bytes()).expect("room");
        let mut answer = vec![0; answer_len + 1];
        let mut filled = 0;
        while filled < answer_len {
            assert!(self.events.turn(Some(Duration::from_secs(5))).expect("a turn"));
            match self.client.read(&mut answer[filled..]) {
                Ok(n) => filled += n,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(filled, answer_len);
        self.events.net().calls - before
    }
}

#[test]
fn a_keep_alive_request_costs_one_recv_and_one_send() {
    let mut lab = Lab::new();
    for _ in 0..100 {
        let calls = lab.exchange(GET, HELLO_LEN);
        assert_eq!(calls, Calls { recvs: 1, sends: 1, registrations: 0, clock_reads: 2, waits: 1 });
    }
}

#[test]
fn sixteen_pipelined_requests_cost_what_one_costs() {
    let mut lab = Lab::new();
    let calls = lab.exchange(&GET.repeat(16), 16 * HELLO_LEN);
    assert_eq!(calls, Calls { recvs: 1, sends: 1, registrations: 0, clock_reads: 2, waits: 1 });
}

#[test]
fn a_connection_is_registered_once() {
    assert_eq!(Lab::new().events.net().calls.registrations, 1);
}
