//! Answers that are made later, and in parts: said at any moment, in any order, to a peer that takes them slowly.

use sprat::testing::{Client, Link};
use sprat::{Exchange, Later, Stream, StreamHead, routes};

use super::input::{Cuts, Input};
use super::naive::decode_chunked;

#[derive(Default)]
struct App {
    held: Vec<(usize, Held)>,
    /// What was said about each request whose handler ran.
    said: Vec<Said>,
    /// The statuses that the observer was told of.
    told: Vec<u16>,
}

enum Held {
    Right(Later<App>),
    Parts(Stream),
}

#[derive(Debug)]
enum Said {
    Content(Vec<u8>),
    /// Nothing: the right to answer was dropped.
    Dropped,
    /// Parts, and whether that was all.
    Parts(Vec<u8>, bool),
}

routes! {
    Api for App [observe = note] {
        GET  "/"    => keep(later),
        POST "/"    => keep(later),
        GET  "/now" => now(),
    }
}

fn keep(app: &mut App, later: Later<App>) {
    app.held.push((app.said.len(), Held::Right(later)));
    app.said.push(Said::Dropped);
}

fn note(app: &mut App, exchange: &Exchange<'_>) {
    app.told.push(exchange.status().code());
}

fn now(app: &mut App) -> &'static str {
    app.said.push(Said::Content(b"now".to_vec()));
    "now"
}

/// Requests, and whether they are HEAD, and whether their answer is the last.
const REQUESTS: [(&str, bool, bool); 7] = [
    ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", false, false),
    ("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", true, false),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", false, false),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false, false),
    ("GET /now HTTP/1.1\r\nHost: x\r\n\r\n", false, false),
    ("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false, true),
    ("GET / HTTP/1.0\r\n\r\n", false, true),
];

/// Whatever is said to rights to answer and to streams, in whatever order, however requests are cut and answers taken:
/// each request gets its own answer, in its place, which decodes to what was said, or is visibly cut and the last; and
/// the observer is told of each, once and in this order.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let limits = if input.byte() & 1 == 0 { sprat::Limits::DEFAULT } else { super::TIGHT };
    let asked: Vec<_> = (0..=input.below(4)).map(|_| input.pick(&REQUESTS)).collect();
    let bytes: String = asked.iter().map(|(text, ..)| *text).collect();
    let cuts = Cuts::read(&mut input);
    let mut pieces = cuts.pieces(bytes.as_bytes()).into_iter();
    let mut link = Client::new(Api, App::default()).with_limits(limits).into_link();
    let mut send = |link: &mut Link<App, Client<App>>| {
        let piece = pieces.next();
        link.send(piece.unwrap_or_default());
        piece.is_some()
    };
    while !input.is_empty() {
        match input.below(5) {
            0 => _ = send(&mut link),
            1 => link.take_at_most(8 * usize::from(input.byte())),
            2 => link.work(),
            _ => link.state().act(&mut input),
        }
    }
    link.take_at_most(usize::MAX);
    while send(&mut link) {}
    while !link.state().held.is_empty() {
        // Those that come next get their chance too.
        link.state().act(&mut Input::new(b"\0\x01\x02ab"));
        link.work();
    }
    let closed = link.closed().is_some();
    let said = std::mem::take(&mut link.state().said);
    let statuses: Vec<_> = said.iter().map(Said::status).collect();
    assert_eq!(link.state().told, statuses);
    let mut received = link.received();
    let mut ended = false;
    for (said, (_, head_only, closes)) in said.iter().zip(&asked) {
        assert!(!ended, "a handler ran behind the last answer");
        ended = take_answer(&mut received, said, *head_only) || *closes;
    }
    assert!(received.is_empty(), "more came back: {}", received.escape_ascii());
    assert!(if ended { closed || link.is_write_shut() } else { said.len() == asked.len() && !closed });
}

impl Said {
    fn status(&self) -> u16 {
        if matches!(self, Said::Dropped) { 500 } else { 200 }
    }
}

impl App {
    /// Something happens to one of those that are held.
    fn act(&mut self, input: &mut Input<'_>) {
        if self.held.is_empty() {
            return;
        }
        let (index, held) = self.held.swap_remove(input.below(self.held.len().min(256)));
        let said = &mut self.said[index];
        match (held, input.below(4)) {
            (Held::Right(later), 0 | 1) => {
                let content = input.bytes().to_vec();
                *said = Said::Content(content.clone());
                later.answer(content);
            }
            (Held::Right(later), 2) => {
                *said = Said::Parts(Vec::new(), false);
                self.held.push((index, Held::Parts(later.stream(StreamHead::new("text/plain")))));
            }
            (Held::Parts(stream), 0) => {
                let part = input.bytes();
                if let (Ok(_), Said::Parts(parts, _)) = (stream.send(part), &mut *said) {
                    parts.extend_from_slice(part);
                }
                self.held.push((index, Held::Parts(stream)));
            }
            (Held::Parts(stream), 1 | 2) => {
                if let Said::Parts(_, whole) = said {
                    *whole = true;
                }
                stream.end();
            }
            (held, _) => drop(held),
        }
    }
}

/// Takes the answer that was said from the front, and tells whether it is the last.
fn take_answer(received: &mut &[u8], said: &Said, head_only: bool) -> bool {
    let mut slots = [httparse::EMPTY_HEADER; 16];
    let mut response = httparse::Response::new(&mut slots);
    let bytes = *received;
    let Ok(httparse::Status::Complete(head_len)) = response.parse(bytes) else {
        panic!("no answer for {said:?}: {}", bytes.escape_ascii());
    };
    let field = |name: &str| {
        let found = response.headers.iter().find(|field| field.name == name);
        found.map(|field| std::str::from_utf8(field.value).unwrap())
    };
    let body = &bytes[head_len..];
    let (length, is_chunked) = (field("Content-Length"), field("Transfer-Encoding") == Some("chunked"));
    let mut closes = field("Connection") == Some("close");
    assert_eq!(response.code, Some(said.status()));
    let len = match said {
        _ if head_only => 0,
        Said::Content(content) => {
            assert_eq!(length, Some(&*content.len().to_string()));
            assert!(body.starts_with(content));
            content.len()
        }
        Said::Dropped => length.unwrap().parse().unwrap(),
        Said::Parts(parts, true) if is_chunked => {
            let (content, len) = decode_chunked(body).unwrap().expect("it is whole");
            assert_eq!(content, *parts);
            len
        }
        Said::Parts(parts, false) if is_chunked => {
            closes = true;
            assert_eq!(decode_chunked(body), Ok(None), "it is not cut");
            let (content, _) =
                decode_chunked(&[body, b"0\r\n\r\n"].concat()).unwrap().expect("only the end is missing");
            assert_eq!(content, *parts);
            body.len()
        }
        Said::Parts(parts, _) => {
            assert!(closes && length.is_none() && body == parts);
            body.len()
        }
    };
    *received = &body[len..];
    closes
}
