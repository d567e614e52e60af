//! The floor: what a server on mio costs that parses nothing.
//!
//! It counts the ends of heads (CR LF CR LF) in each `recv` and answers a constant for each, all of
//! them in one `send`. Only the first byte of the input is looked at beside that: `P` gets the JSON
//! of the resource's POST, anything else gets `Hello, World!`. A body is not delimited; it may hold
//! no CR LF CR LF and must begin with `{`, as the bodies of the benchmark do.
//!
//! It is not an HTTP server. It answers an invalid request like a valid one, ignores
//! `Connection: close`, and exists so that the others can be given as a multiple of it.
//!
//! `floor ADDR [--close]`: with `--close` it closes after each answer, for the runs that measure a
//! connection per request.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use socket2::{Domain, Protocol, Socket, Type};

const LISTENER: Token = Token(usize::MAX);
const END: &[u8] = b"\r\n\r\n";
const RECEIVE: usize = 16 * 1024;
/// Prepared copies of each answer: as many heads as one receive can hold (a head has 18 bytes or more).
const COPIES: usize = RECEIVE / 18 + 1;

struct Connection {
    stream: TcpStream,
    /// The kind of the request whose head has begun and not ended.
    open: Option<bool>,
    /// How much of CR LF CR LF the input so far ends with.
    matched: u8,
    /// Bytes of answers that the socket had no room for.
    unsent: Vec<u8>,
    written: usize,
}

struct Answers {
    hello: Vec<u8>,
    resource: Vec<u8>,
}

impl Answers {
    fn new(close: bool) -> Self {
        let connection = if close { "Connection: close\r\n" } else { "" };
        let answer = |media: &str, body: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\
                 Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n{connection}\r\n{body}",
                body.len()
            )
            .into_bytes()
            .repeat(COPIES)
        };
        Answers {
            hello: answer("text/plain; charset=utf-8", "Hello, World!"),
            resource: answer(
                "application/json",
                r#"{"status":"success","id":42,"data":{"name":"alice","active":true}}"#,
            ),
        }
    }

    fn of(&self, post: bool, count: usize) -> &[u8] {
        let all = if post { &self.resource } else { &self.hello };
        &all[..all.len() / COPIES * count]
    }
}

/// Counts CR LF CR LF, sixteen places at a time once vectorised.
fn count_ends(input: &[u8]) -> usize {
    let Some(places) = input.len().checked_sub(3) else {
        return 0;
    };
    let mut total = 0;
    for start in (0..places).step_by(128) {
        let end = places.min(start + 128);
        let (a, b) = (&input[start..end], &input[start + 1..end + 1]);
        let (c, d) = (&input[start + 2..end + 2], &input[start + 3..end + 3]);
        let mut found = 0u8;
        for i in 0..a.len() {
            found += (a[i] == b'\r') as u8
                & (b[i] == b'\n') as u8
                & (c[i] == b'\r') as u8
                & (d[i] == b'\n') as u8;
        }
        total += usize::from(found);
    }
    total
}

/// How many places of CR LF CR LF are matched after one more byte.
fn advance(matched: u8, byte: u8) -> u8 {
    match (matched, byte) {
        (0 | 2, b'\r') => matched + 1,
        (1 | 3, b'\n') => matched + 1,
        (_, b'\r') => 1,
        _ => 0,
    }
}

/// The heads that end in this input, and whether they are POSTs.
fn heads(connection: &mut Connection, input: &[u8]) -> (usize, bool) {
    // Input that begins with a body continues a connection of POSTs.
    let post = connection.open.unwrap_or(matches!(input[0], b'P' | b'{'));
    let last = input[input.len() - 1];
    let mut count = 0;
    if connection.matched == 0 {
        count = count_ends(input);
        if !input.ends_with(END) {
            let tail = &input[input.len().saturating_sub(3)..];
            connection.matched = tail.iter().fold(0, |m, &b| advance(m, b));
        }
    } else {
        for &byte in input {
            connection.matched = advance(connection.matched, byte);
            if connection.matched == 4 {
                connection.matched = 0;
                count += 1;
            }
        }
    }
    let ended = count > 0 && connection.matched == 0 && last == b'\n';
    connection.open = (!ended && last != b'}').then_some(post);
    (count, post)
}

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let addr = args.next().unwrap_or_else(|| "127.0.0.1:8080".into());
    let close = args.any(|a| a == "--close");
    let answers = Answers::new(close);

    let mut poll = Poll::new()?;
    let mut listener = listen(&addr)?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("listening on {addr}");

    let mut events = Events::with_capacity(1024);
    let mut connections: Slab<Connection> = Slab::new();
    let mut buffer = vec![0; RECEIVE];
    let mut closed = Vec::new();
    loop {
        match poll.poll(&mut events, None) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            done => done?,
        }
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, &poll, &mut connections);
                continue;
            }
            let key = event.token().0;
            let Some(connection) = connections.get_mut(key) else {
                continue;
            };
            if !serve(connection, &mut buffer, &answers, close) {
                closed.push(key);
            }
        }
        // Keys are given again only now, so a later event of the same turn cannot meet a stranger.
        for key in closed.drain(..) {
            connections.try_remove(key);
        }
    }
}

fn listen(addr: &str) -> io::Result<TcpListener> {
    let addr: std::net::SocketAddr = addr
        .parse()
        .map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
    let socket = Socket::new(
        Domain::for_address(addr),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?; // inherited by what it accepts
    socket.bind(&addr.into())?;
    socket.listen(4096)?;
    Ok(TcpListener::from_std(socket.into()))
}

fn accept(listener: &TcpListener, poll: &Poll, connections: &mut Slab<Connection>) {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return,
            Err(e) if e.kind() == ErrorKind::ConnectionAborted => continue,
            Err(e) => {
                eprintln!("accept: {e}");
                return;
            }
        };
        let entry = connections.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(e) = poll
            .registry()
            .register(&mut stream, Token(entry.key()), interest)
        {
            eprintln!("register: {e}");
            continue;
        }
        entry.insert(Connection {
            stream,
            open: None,
            matched: 0,
            unsent: Vec::new(),
            written: 0,
        });
    }
}

/// Whether the connection goes on.
fn serve(connection: &mut Connection, buffer: &mut [u8], answers: &Answers, close: bool) -> bool {
    if !connection.unsent.is_empty() {
        match flush(connection) {
            Ok(true) => {}
            Ok(false) => return true,
            Err(_) => return false,
        }
    }
    loop {
        let received = match connection.stream.read(buffer) {
            Ok(0) => return false,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return false,
        };
        let (count, post) = heads(connection, &buffer[..received]);
        if count > 0 {
            let answer = answers.of(post, count);
            let sent = match connection.stream.write(answer) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
                Err(_) => return false,
            };
            if sent < answer.len() {
                connection.unsent.extend_from_slice(&answer[sent..]);
                return true;
            }
            if close {
                return false;
            }
        }
        if received < buffer.len() {
            return true; // a short read has drained the socket
        }
    }
}

/// Whether all that was waiting has gone out.
fn flush(connection: &mut Connection) -> io::Result<bool> {
    while connection.written < connection.unsent.len() {
        match connection
            .stream
            .write(&connection.unsent[connection.written..])
        {
            Ok(n) => connection.written += n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    connection.unsent = Vec::new();
    connection.written = 0;
    Ok(true)
}
