//! A client over sockets that reads one answer at a time, byte-exact. Each test program uses a part of it.
#![allow(dead_code)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

pub fn connect(address: SocketAddr) -> TcpStream {
    try_connect(address).expect("a listener")
}

pub fn try_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// Closes with a reset, which leaves no port behind.
pub fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket");
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub close: bool,
    pub content: String,
}

/// One answer, byte-exact: what follows it stays in the socket.
pub fn try_read_answer(stream: &mut impl Read) -> io::Result<Answer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(|error| {
            let text = format!("{error} after {} bytes of an answer", head.len());
            io::Error::new(error.kind(), text)
        })?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head is text").to_ascii_lowercase();
    let len = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |len| len.parse().unwrap());
    let mut content = vec![0; len];
    stream.read_exact(&mut content)?;
    Ok(Answer {
        status: head[9..12].parse().expect("a status"),
        close: head.contains("\r\nconnection: close\r\n"),
        content: String::from_utf8(content).expect("contents are text here"),
    })
}

#[track_caller]
pub fn read_answer(stream: &mut impl Read) -> Answer {
    try_read_answer(stream).expect("an answer")
}

pub fn try_exchange(stream: &mut (impl Read + Write), request: impl AsRef<[u8]>) -> io::Result<Answer> {
    stream.write_all(request.as_ref())?;
    try_read_answer(stream)
}

#[track_caller]
pub fn exchange(stream: &mut (impl Read + Write), request: impl AsRef<[u8]>) -> Answer {
    try_exchange(stream, request).expect("an answer")
}

#[track_caller]
pub fn assert_hello(stream: &mut (impl Read + Write)) {
    assert_eq!(exchange(stream, GET), Answer { status: 200, close: false, content: "hello".into() });
}

/// Whether the peer closes within this time, with or without bytes before, cleanly or not.
pub fn is_closed_within(stream: &mut TcpStream, time: Duration) -> bool {
    let started = Instant::now();
    let mut bytes = [0; 4096];
    while let Some(left) = time.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) {
        stream.set_read_timeout(Some(left)).expect("a socket");
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return false,
            Err(_) => return true,
        }
    }
    false
}
