//! Reads `cases.jsonl`. A mistake in the data is a programmer's error, so everything here panics.

use std::time::Duration;

use simd_json::BorrowedValue;
use simd_json::prelude::{TypedScalarValue, ValueAsArray, ValueAsObject, ValueAsScalar};

/// One conversation: the bytes to send and the answers that are right.
#[derive(Clone)]
pub struct Case {
    pub id: String,
    pub group: String,
    pub why: String,
    pub rfc: String,
    /// The bytes to send, with every `repeat` already written out.
    pub bytes: Vec<u8>,
    /// One entry per final answer, in order. Empty: nothing may come at all.
    pub answers: Vec<Expected>,
    pub then: Then,
    /// Offsets of `bytes` at which the client pauses.
    pub splits: Vec<usize>,
    pub pause: Duration,
    pub half_close: bool,
    /// Whether a connection that may stay open is asked for one more answer.
    pub probe: bool,
    /// The client spoke HTTP/1.0.
    pub v10: bool,
    pub no_interim: bool,
    /// Bytes from this offset on are sent only after an interim answer.
    pub await_interim: Option<usize>,
}

/// What one final answer has to look like.
#[derive(Clone, Default)]
pub struct Expected {
    /// The statuses allowed; `NO_ANSWER` among them allows a bare close.
    pub allowed: Vec<u16>,
    /// The narrower choice of a careful server. We hold ourselves to it wherever it is given.
    pub preferred: Option<Vec<u16>>,
    /// Compared only if the status is 200.
    pub content: Option<Vec<u8>>,
    /// It answers a HEAD request and so has no content.
    pub to_head: bool,
}

/// What becomes of the connection after the last expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Close,
    Open,
    Either,
}

/// The status that stands for "no response, the connection is just closed".
pub const NO_ANSWER: u16 = 0;

/// Every case of the corpus, in the order of the file.
pub fn load() -> Vec<Case> {
    include_str!("cases.jsonl").lines().map(Case::parse).collect()
}

impl Case {
    /// One line of the file. An unknown field panics: silently skipping one would make its case weaker.
    pub fn parse(line: &str) -> Case {
        let mut text = line.as_bytes().to_vec();
        let value = simd_json::to_borrowed_value(&mut text).expect("a case is one line of JSON");
        let mut case = Case::blank();
        let (mut send, mut repeats) = (Vec::new(), Vec::new());
        let (mut preferred, mut contents, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        for (name, field) in value.as_object().expect("a case is an object") {
            match name.as_ref() {
                "id" => case.id = text_of(field),
                "group" => case.group = text_of(field),
                "why" => case.why = text_of(field),
                "rfc" => case.rfc = text_of(field),
                "source" => {}
                "send" => send = bytes_of(field),
                "repeat" => repeats = list_of(field, Repeat::parse),
                "expect" => case.answers = list_of(field, Expected::parse),
                "prefer" => preferred = list_of(field, statuses_of),
                "bodies" => contents = list_of(field, content_of),
                "heads" => heads = list_of(field, number_of),
                "then" => case.then = Then::parse(field),
                "splits" => case.splits = list_of(field, number_of),
                "pause_ms" => case.pause = Duration::from_millis(number_of(field) as u64),
                "half_close" => case.half_close = flag_of(field),
                "probe" => case.probe = flag_of(field),
                "v10" => case.v10 = flag_of(field),
                "no_interim" => case.no_interim = flag_of(field),
                "await_interim" => case.await_interim = Some(number_of(field)),
                other => panic!("unknown field {other:?} in a case"),
            }
        }
        // Only now: an object's fields come in no particular order.
        case.bytes = write_out(&send, &repeats);
        for (answer, statuses) in case.answers.iter_mut().zip(preferred) {
            answer.preferred = Some(statuses);
        }
        for (answer, content) in case.answers.iter_mut().zip(contents) {
            answer.content = content;
        }
        for index in heads {
            case.answers[index].to_head = true;
        }
        case.assert_sound();
        case
    }

    /// A case with nothing in it: the starting point of the parser and of hand-made cases.
    pub fn blank() -> Case {
        Case {
            id: String::new(),
            group: String::new(),
            why: String::new(),
            rfc: String::new(),
            bytes: Vec::new(),
            answers: Vec::new(),
            then: Then::Either,
            splits: Vec::new(),
            pause: Duration::from_millis(20),
            half_close: false,
            probe: true,
            v10: false,
            no_interim: false,
            await_interim: None,
        }
    }

    /// Whether answer `index` answers a HEAD. False past the last one, where the probe's answer comes.
    pub fn is_to_head(&self, index: usize) -> bool {
        self.answers.get(index).is_some_and(|answer| answer.to_head)
    }

    fn assert_sound(&self) {
        let id = &self.id;
        assert!(!id.is_empty(), "a case without id");
        assert!(self.splits.is_sorted_by(|a, b| a < b), "{id}: splits out of order");
        let mut offsets = self.splits.iter().chain(&self.await_interim);
        assert!(offsets.all(|&at| 0 < at && at < self.bytes.len()), "{id}: an offset outside the bytes");
        assert!(!(self.half_close && self.then == Then::Open), "{id}: no probe can follow a half-close");
    }
}

impl Expected {
    fn parse(value: &BorrowedValue<'_>) -> Expected {
        Expected { allowed: statuses_of(value), ..Expected::default() }
    }

    /// The statuses that pass: the preferred ones where there are any.
    pub fn accepted(&self) -> &[u16] {
        self.preferred.as_ref().unwrap_or(&self.allowed)
    }
}

impl Then {
    fn parse(value: &BorrowedValue<'_>) -> Then {
        match value.as_str() {
            Some("close") => Then::Close,
            Some("open") => Then::Open,
            Some("either") => Then::Either,
            other => panic!("unknown then: {other:?}"),
        }
    }
}

/// A text that stands `count` times at offset `at` of the unexpanded bytes.
struct Repeat {
    at: usize,
    text: Vec<u8>,
    count: usize,
}

impl Repeat {
    fn parse(value: &BorrowedValue<'_>) -> Repeat {
        match value.as_array().map(Vec::as_slice) {
            Some([at, text, count]) => Repeat { at: number_of(at), text: bytes_of(text), count: number_of(count) },
            _ => panic!("a repeat is [offset, text, count]"),
        }
    }
}

fn write_out(send: &[u8], repeats: &[Repeat]) -> Vec<u8> {
    assert!(repeats.is_sorted_by_key(|repeat| repeat.at), "repeats are given in order");
    let mut bytes = Vec::new();
    let mut copied = 0;
    for repeat in repeats {
        bytes.extend_from_slice(&send[copied..repeat.at]);
        bytes.extend(repeat.text.repeat(repeat.count));
        copied = repeat.at;
    }
    bytes.extend_from_slice(&send[copied..]);
    bytes
}

fn content_of(value: &BorrowedValue<'_>) -> Option<Vec<u8>> {
    match value.as_array().map(Vec::as_slice) {
        Some([text, count]) => Some(bytes_of(text).repeat(number_of(count))),
        Some(_) => panic!("a repeated body is [text, count]"),
        None if value.is_null() => None,
        None => Some(bytes_of(value)),
    }
}

fn statuses_of(value: &BorrowedValue<'_>) -> Vec<u16> {
    list_of(value, |status| u16::try_from(number_of(status)).expect("a status has three digits"))
}

fn list_of<T>(value: &BorrowedValue<'_>, item: impl FnMut(&BorrowedValue<'_>) -> T) -> Vec<T> {
    value.as_array().expect("a list").iter().map(item).collect()
}

fn text_of(value: &BorrowedValue<'_>) -> String {
    value.as_str().expect("a string").to_owned()
}

/// Each character is one byte: JSON has no other way to carry bytes that are not UTF-8.
fn bytes_of(value: &BorrowedValue<'_>) -> Vec<u8> {
    let text = value.as_str().expect("a string of bytes");
    text.chars().map(|c| u8::try_from(c).expect("a character from 0 to 255")).collect()
}

fn number_of(value: &BorrowedValue<'_>) -> usize {
    value.as_usize().expect("a number")
}

fn flag_of(value: &BorrowedValue<'_>) -> bool {
    value.as_bool().expect("true or false")
}
