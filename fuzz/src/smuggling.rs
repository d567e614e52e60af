//! Where requests end, asked of the machine and of a second parser, with one request hidden behind another.

use sprat::testing::Client;
use sprat::{Body, Framing, Limits, Request, Rest, routes};

use super::input::{Cuts, Input};
use super::strict::{self, Message, Seen};

/// The requests that were served: target and content.
type Log = Vec<(String, Vec<u8>)>;

routes! {
    Any for Log {
        GET  "/{*rest}" => serve(rest, request, body),
        POST "/{*rest}" => serve(rest, request, body),
        PUT  "/{*rest}" => serve(rest, request, body),
    }
}

fn serve(log: &mut Log, _: Rest<'_>, request: Request<'_>, body: Body<'_>) {
    log.push((request.target().to_owned(), body.as_slice().to_vec()));
}

/// So wide that no input reaches one: limits are not what this is about.
const LIMITS: Limits = Limits {
    head_bytes_max: 1 << 20,
    target_bytes_max: 1 << 20,
    fields_max: 4096,
    body_bytes_max: 1 << 30,
    chunk_line_bytes_max: 1 << 20,
    chunk_extension_bytes_max: 1 << 20,
    trailer_bytes_max: 1 << 20,
    ..Limits::DEFAULT
};

const CANARY: &[u8] = b"GET /canary HTTP/1.1\r\nHost: c\r\n\r\n";

/// A second parser finds the same requests in the same bytes; no cut changes them; and behind each request that leaves
/// the connection open, and behind no other, the next one begins: a canary there is served, once and for itself.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let cuts = Cuts::read(&mut input);
    let bytes = input.rest();
    let messages = strict_messages(bytes);
    let mut client = Client::new(Any, Log::new()).with_limits(LIMITS);
    let mut served = |pieces: &[&[u8]]| served(&mut client, pieces);
    let log = served(&[bytes]);
    assert_eq!(log, strict_log(&messages), "{}", bytes.escape_ascii());
    assert_eq!(served(&cuts.pieces(bytes)), log);

    let mut end = 0;
    for (at, (start, message)) in messages.iter().enumerate().take(4) {
        end = start + message.len;
        let so_far = strict_log(&messages[..=at]);
        let with_canary = served(&[&bytes[..end], CANARY]);
        let goes_on = goes_on(message);
        let canary = goes_on.then(|| ("/canary".to_owned(), Vec::new()));
        assert_eq!(with_canary, so_far.iter().cloned().chain(canary).collect::<Log>());
        assert_eq!(served(&[&[&bytes[..end], CANARY].concat()]), with_canary);
        // The rest, on a connection of its own, is what it was on this one.
        if goes_on {
            assert_eq!([so_far, served(&[&bytes[end..]])].concat(), log);
        }
    }
    assert!(end <= bytes.len());
}

fn served(client: &mut Client<Log>, pieces: &[&[u8]]) -> Log {
    let mut link = client.connect();
    pieces.iter().filter(|piece| !piece.is_empty()).for_each(|piece| link.send(piece));
    link.close_write();
    std::mem::take(link.state())
}

/// The requests up to the first that is refused or ends the connection, and where they begin.
fn strict_messages(bytes: &[u8]) -> Vec<(usize, Message)> {
    let mut messages = Vec::new();
    let mut start = 0;
    loop {
        if bytes[start..].starts_with(b"\r\n") {
            start += 2;
        }
        let Seen::Whole(message) = strict::message(&bytes[start..], &LIMITS) else { return messages };
        if message.body.is_none() {
            return messages;
        }
        let (goes_on, end) = (goes_on(&message), start + message.len);
        messages.push((start, message));
        if !goes_on {
            return messages;
        }
        start = end;
    }
}

/// A request that is refused unread, while its sender waits to be told, ends the connection: its body may come or not.
fn goes_on(message: &Message) -> bool {
    let head = &message.head;
    let may_come = head.decision.expects_continue && head.decision.framing != Framing::Length(0);
    head.decision.persistent && head.method != "CONNECT" && (is_served(message) || !may_come)
}

fn is_served(message: &Message) -> bool {
    let head = &message.head;
    ["GET", "HEAD", "POST", "PUT"].contains(&&*head.method)
}

fn strict_log(messages: &[(usize, Message)]) -> Log {
    let messages = messages.iter().map(|(_, message)| message).filter(|message| is_served(message));
    messages.map(|message| (message.head.target.clone(), message.body.clone().unwrap())).collect()
}
