//! Whole connections: any bytes, cut in any way, with or without a peer that takes its answers slowly.

use sprat::testing::Client;
use sprat::{Body, CloseReason, Exchange, Framing, Limits, Reject, Response, Sent, routes};

use super::chunked::is_limit;
use super::input::{Cuts, Input};
use super::strict::{self, Seen};

/// What the handlers saw.
type Log = Vec<(&'static str, Vec<u8>)>;

routes! {
    Api for Log {
        GET    "/"               => const text("hello"),
        GET    "/echo-path/{id}" => number(id),
        POST   "/echo"           => echo(body),
        PUT    "/small"          => echo(body) [body_max = 16],
        POST   "/ignore"         => ignore(),
        DELETE "/close"          => close(response),
    }
}

routes! { Observed for Log [observe = note] { "" => Api, } }

fn note(log: &mut Log, exchange: &Exchange<'_>) {
    log.push((TOLD, exchange.status().code().to_string().into_bytes()));
}

const TOLD: &str = "told";

fn number(log: &mut Log, id: u64) -> String {
    log.push(("number", id.to_string().into_bytes()));
    id.to_string()
}

fn echo<'r>(log: &mut Log, body: Body<'r>) -> Body<'r> {
    log.push(("echo", body.as_slice().to_vec()));
    body
}

fn ignore(log: &mut Log) {
    log.push(("ignore", Vec::new()));
}

fn close<'r>(log: &mut Log, response: Response<'r>) -> Sent<'r> {
    log.push(("close", Vec::new()));
    response.close().text("bye")
}

/// However a stream of bytes is cut, the same handlers run, the same bytes come back and the connection ends for the
/// same reason; what comes back is one answer, which httparse can read, for each request up to the first refused one. An
/// observer changes nothing of this, and is told of each answer once.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let limits = if input.byte() & 1 == 0 { Limits::DEFAULT } else { super::TIGHT };
    let cuts = Cuts::read(&mut input);
    let window = 8 * usize::from(input.byte());
    let bytes = input.rest();
    let mut client = Client::new(Api, Log::new()).with_limits(limits.clone());
    let mut deliver = |pieces: &[&[u8]], window| deliver(&mut client, pieces, window, bytes, &limits);
    let whole = deliver(&[bytes], usize::MAX);
    assert_eq!(deliver(&cuts.pieces(bytes), usize::MAX), whole);
    assert_eq!(deliver(&cuts.pieces(bytes), window), whole);
    assert_eq!(deliver(&bytes.chunks(1).collect::<Vec<_>>(), usize::MAX), whole);
    check_observed(bytes, &[&[bytes], &*cuts.pieces(bytes)], &limits, whole);
}

fn check_observed(bytes: &[u8], deliveries: &[&[&[u8]]], limits: &Limits, (ran, answers, closed): Outcome) {
    let mut client = Client::new(Observed, Log::new()).with_limits(limits.clone());
    let statuses: Vec<_> = answers.iter().map(|answer| answer[9..12].to_vec()).collect();
    for pieces in deliveries {
        let (log, seen, ended) = deliver(&mut client, pieces, usize::MAX, bytes, limits);
        assert!((&seen, ended) == (&answers, closed), "an observer changed what came back");
        let (told, log): (Log, Log) = log.into_iter().partition(|(what, _)| *what == TOLD);
        assert_eq!(log, ran);
        assert_eq!(told.into_iter().map(|(_, status)| status).collect::<Vec<_>>(), statuses);
    }
}

type Outcome = (Log, Vec<Vec<u8>>, Option<CloseReason>);

/// The peer takes `window` bytes of what comes back until it has sent everything, and then the rest.
fn deliver(client: &mut Client<Log>, pieces: &[&[u8]], window: usize, bytes: &[u8], limits: &Limits) -> Outcome {
    let mut link = client.connect();
    link.take_at_most(window);
    pieces.iter().filter(|piece| !piece.is_empty()).for_each(|piece| link.send(piece));
    link.take_at_most(usize::MAX);
    link.close_write();
    let closed = link.closed();
    let answers = check_answers(bytes, link.received(), closed, limits);
    (std::mem::take(link.state()), answers, closed)
}

/// Walks along the requests and the answers to them. Returns the final answers, for interim ones depend on the cuts.
fn check_answers(sent: &[u8], received: &[u8], closed: Option<CloseReason>, limits: &Limits) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    let (mut sent, mut received) = (sent, received);
    loop {
        sent = sent.strip_prefix(b"\r\n").unwrap_or(sent);
        if sent.is_empty() {
            break;
        }
        let seen = strict::message(sent, limits);
        let answer = Answer::read(&mut received, sent.starts_with(b"HEAD "));
        answers.push(answer.bytes.to_vec());
        match seen {
            Seen::Whole(message) if message.body.is_some() && !answer.close => {
                assert!(message.head.decision.persistent, "the connection goes on");
                sent = &sent[message.len..];
                // A body that its answer did not wait for can break a limit on its way out. That ends it, unanswered.
                let is_chunked = message.head.decision.framing == Framing::Chunked;
                match closed {
                    Some(CloseReason::Rejected(reject)) if is_limit(reject) && is_chunked && received.is_empty() => {}
                    _ => continue,
                }
            }
            Seen::Whole(_) => {}
            Seen::Partial => {}
            Seen::Refused(broken) => {
                let names = |reject: &Reject| {
                    let content = reject.sentence().as_bytes();
                    answer.status == reject.status().code() && (answer.to_head || answer.content == content)
                };
                assert!(answer.close && broken.iter().any(names), "{answer:?}, but it is {broken:?}");
            }
        }
        break;
    }
    assert!(received.is_empty(), "more came back: {}", received.escape_ascii());
    answers
}

/// One final answer.
#[derive(Debug)]
pub struct Answer<'a> {
    bytes: &'a [u8],
    pub status: u16,
    pub close: bool,
    to_head: bool,
    pub content: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Takes an answer, and the interim ones before it, from the bytes that came back.
    pub fn read(received: &mut &'a [u8], to_head: bool) -> Answer<'a> {
        let mut slots = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut slots);
        let bytes = *received;
        let head_len = match response.parse(bytes) {
            Ok(httparse::Status::Complete(len)) => len,
            other => panic!("no answer but {other:?}: {}", bytes.escape_ascii()),
        };
        let status = response.code.unwrap();
        let values = |name: &str| {
            let named = response.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
            named.map(|field| std::str::from_utf8(field.value).unwrap()).collect::<Vec<_>>()
        };
        let (lengths, connection) = (values("content-length"), values("connection"));
        assert!(values("transfer-encoding").is_empty() && lengths.len() < 2 && connection.len() < 2);
        if status == 100 {
            *received = &bytes[head_len..];
            return Answer::read(received, to_head);
        }
        assert!((200..600).contains(&status) && lengths.is_empty() == matches!(status, 204 | 304));
        assert_eq!(values("date").len(), 1);
        let len = lengths.first().map_or(0, |len| len.parse().unwrap());
        let content_len = if to_head { 0 } else { len };
        let content = bytes.get(head_len..head_len + content_len).expect("an answer is whole");
        let close = connection == ["close"];
        *received = &bytes[head_len + content_len..];
        Answer { bytes: &bytes[..head_len + content_len], status, close, to_head, content }
    }
}
