//! What one explored client is going to send, how, and what it should get for it.

use std::time::Duration;

use super::table::{FIXED, LONG_MAX, long_content};
use crate::limits::Limits;
use crate::testing::{Random, Reading, Script, Step};

/// A request, as bytes of its client's stream, and its answer.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Where the method stands; an empty line may come before.
    pub(super) start: u64,
    pub(super) head_end: u64,
    pub(super) end: u64,
    /// How many bytes it takes to be answered. None where that is not known: it breaks a rule somewhere.
    pub(super) answered_at: Option<u64>,
    /// Nothing behind it is looked at.
    pub(super) ends: bool,
    /// Its body is read and dropped.
    pub(super) skips: bool,
    pub(super) status: u16,
    pub(super) content: Option<Vec<u8>>,
    pub(super) head_only: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) messages: Vec<Message>,
    pub(super) bytes: Vec<u8>,
    pub(super) script: Script,
    /// The largest content that it asks for.
    pub(super) answer_bytes_max: usize,
    /// It shuts down its sending side, or closes, once all is sent.
    pub(super) says_end: bool,
    /// It may close or reset before it has read everything.
    pub(super) is_hasty: bool,
    pub(super) resets: bool,
    /// It may stop reading for good.
    pub(super) stalls: bool,
    /// It sends far more than it reads at a time.
    pub(super) floods: bool,
}

/// Rules broken, and the status for it.
const BROKEN: &[(&[u8], u16)] = &[
    (b"GET /id/1 HTTP/1.1\r\n\r\n", 400),
    (b"GET /id/1 HTTP/1.1\nHost: x\r\n\r\n", 400),
    (b"GET /id/1 HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    (b"GET /id/1 HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400),
    (b"GET  /id/1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"GET /id/1\r\n\r\n", 400),
    (b"GET /id/../1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"GET /id/1 HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello", 400),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    (b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n", 400),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", 400),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", 400),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 5\r\n\r\nhello", 417),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"\r\n\r\nGET / HTTP/1.1\r\n", 400),
    (b"\x00", 400),
];

/// Builds the stream of one client.
struct Writer<'w> {
    random: &'w mut Random,
    limits: &'w Limits,
    client: u64,
    /// None of its requests ends the connection.
    floods: bool,
    bytes: Vec<u8>,
    messages: Vec<Message>,
}

impl Writer<'_> {
    /// A number that no other request of the run has.
    fn id(&mut self) -> u64 {
        (self.client << 32) | (self.messages.len() as u64) << 16 | self.random.below(1 << 16)
    }

    fn at(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn add(&mut self) {
        if self.random.chance(30) && self.messages.last().is_none_or(|last| !last.ends) {
            self.bytes.extend_from_slice(b"\r\n");
        }
        let id = self.id();
        match self.random.below(24) {
            0..=6 => self.get(&format!("/id/{id}"), 200, Some(id.to_string().into_bytes())),
            7 => self.get("/constant", 200, Some(b"constant".to_vec())),
            8 => self.get("/fixed", 200, Some(FIXED.to_vec())),
            9 => {
                let n = id / LONG_MAX * LONG_MAX + self.random.any_size(LONG_MAX as usize - 1) as u64;
                self.get(&format!("/long/{n}"), 200, Some(long_content(n)));
            }
            10 => self.get(&format!("/none/{id}"), 404, None),
            11 => self.get("/id/-1", 400, None),
            12..=17 => self.post("/echo", id, Wants::Body),
            18 => self.post("/small", id, Wants::SmallBody),
            19 => self.post(&format!("/ignore/{id}"), id, Wants::None(200, Some(id.to_string().into_bytes()))),
            20 => self.post(&format!("/none/{id}"), id, Wants::None(404, None)),
            21 => match self.random.below(3) {
                0 => self.post("/guarded", id, Wants::None(401, None)),
                1 => self.post("/id/1", id, Wants::None(405, None)),
                _ => self.post("/guarded", id, Wants::Key),
            },
            22 if self.random.chance(300) => {
                self.get(&format!("/panic/{id}"), 500, None);
                self.end();
            }
            22 if self.random.chance(500) => {
                self.get(&format!("/close/{id}"), 200, Some(id.to_string().into_bytes()));
                self.end();
            }
            22 => self.get("/none", 404, None),
            _ if self.random.chance(400) => self.broken(),
            _ => self.get(&format!("/id/{id}"), 200, Some(id.to_string().into_bytes())),
        }
    }

    fn end(&mut self) {
        if let Some(last) = self.messages.last_mut() {
            last.ends = true;
        }
    }

    fn get(&mut self, target: &str, status: u16, content: Option<Vec<u8>>) {
        let start = self.at();
        let head_only = self.random.chance(100);
        let method = if head_only { "HEAD" } else { "GET" };
        let ends = self.begin(method, target);
        self.bytes.extend_from_slice(b"\r\n");
        let end = self.at();
        let answered_at = Some(end);
        self.messages.push(Message {
            start,
            head_end: end,
            end,
            answered_at,
            ends,
            skips: false,
            status,
            content,
            head_only,
        });
    }

    /// Request-line and fields that any request may have. Says whether the connection ends with it.
    fn begin(&mut self, method: &str, target: &str) -> bool {
        let (version, connection, ends) = match self.random.below(30) {
            0 => ("1.0", "", true),
            1 => ("1.0", "Connection: keep-alive\r\n", false),
            2 => ("1.1", "Connection: close\r\n", true),
            3 => ("1.1", "connection: keep-alive, CLOSE\r\n", true),
            _ => ("1.1", "", false),
        };
        let (version, connection, ends) = if self.floods { ("1.1", "", false) } else { (version, connection, ends) };
        let form = if self.random.chance(50) { "http://x" } else { "" };
        self.bytes.extend_from_slice(format!("{method} {form}{target} HTTP/{version}\r\nHost: x\r\n").as_bytes());
        self.bytes.extend_from_slice(connection.as_bytes());
        if self.random.chance(100) {
            self.bytes.extend_from_slice(b"Cookie: a=b\r\nAccept: */*\r\nX-Empty:\r\n");
        }
        ends
    }

    fn post(&mut self, target: &str, id: u64, wants: Wants) {
        let start = self.at();
        let mut ends = self.begin("POST", target);
        let mut content = id.to_string().into_bytes();
        let most = if self.random.chance(30) { 200_000 } else { 3000 };
        let more = self.random.any_size(most);
        content.extend((0..more).map(|at| (at as u64 ^ id) as u8));
        if wants == Wants::SmallBody && self.random.chance(700) {
            content.truncate(64);
        }
        if wants == Wants::Key {
            self.bytes.extend_from_slice(b"X-Key: k\r\n");
        }
        let http10 = self.bytes[start as usize..].windows(9).any(|w| w == b" HTTP/1.0");
        let expects = !http10 && self.random.chance(100);
        if expects {
            self.bytes.extend_from_slice(b"Expect: 100-Continue\r\n");
        }
        // How much of a chunked body can be skipped is certain only far from the bound.
        let linger_max = self.limits.linger_bytes_max;
        let certain = content.len() > linger_max || content.len() * 4 + 1000 < linger_max;
        let chunked = !http10 && self.random.chance(400) && (certain || !matches!(wants, Wants::None(..)));
        if chunked {
            self.bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        } else {
            self.bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", content.len()).as_bytes());
        }
        let head_end = self.at();
        if chunked {
            self.chunks(&content);
        } else {
            self.bytes.extend_from_slice(&content);
        }
        let end = self.at();
        let body_max = if wants == Wants::SmallBody { 64 } else { self.limits.body_bytes_max };
        let too_large = content.len() > body_max;
        let skips = matches!(wants, Wants::None(..)) && !expects && (chunked || content.len() <= linger_max);
        let (status, answer, answered_at) = match wants {
            Wants::None(status, answer) => {
                ends |= expects || content.len() > linger_max;
                (status, answer, Some(head_end))
            }
            _ if too_large => {
                ends = true;
                (413, None, (!chunked).then_some(head_end))
            }
            _ => (200, Some(content), Some(end)),
        };
        self.messages.push(Message {
            start,
            head_end,
            end,
            answered_at,
            ends,
            skips,
            status,
            content: answer,
            head_only: false,
        });
    }

    /// Writes a body as chunks.
    fn chunks(&mut self, content: &[u8]) {
        let mut left = content;
        let tiny = self.random.chance(100) && content.len() < 300;
        while !left.is_empty() {
            // Far more framing than data is refused, rightly.
            let least = if tiny { 1 } else { left.len().min(64) };
            let most = if tiny { 16 } else { left.len().max(least) };
            let len = self.random.len(least, most.max(least)).min(left.len());
            let (piece, rest) = left.split_at(len);
            let extension = if self.random.chance(50) { ";a=b;c=\"d;e\"" } else { "" };
            self.bytes.extend_from_slice(format!("{len:x}{extension}\r\n").as_bytes());
            self.bytes.extend_from_slice(piece);
            self.bytes.extend_from_slice(b"\r\n");
            left = rest;
        }
        let trailer = if self.random.chance(100) { "X-Sum: 1\r\n" } else { "" };
        self.bytes.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
    }

    fn broken(&mut self) {
        let too_much = self.random.below(5);
        let (bytes, status) = match too_much {
            0 => {
                let long = "a".repeat(self.limits.head_bytes_max);
                (format!("GET /id/1 HTTP/1.1\r\nHost: x\r\nX-Long: {long}\r\n\r\n").into_bytes(), 431)
            }
            1 => {
                let long = "a".repeat(self.limits.head_bytes_max + 10);
                (format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes(), 414)
            }
            _ => {
                let (bytes, status) = *self.random.pick(BROKEN);
                (bytes.to_vec(), status)
            }
        };
        let start = self.at() + if bytes.starts_with(b"\r\n") { 2 } else { 0 };
        self.bytes.extend_from_slice(&bytes);
        let end = self.at();
        self.messages.push(Message {
            start,
            head_end: end,
            end,
            answered_at: None,
            ends: true,
            skips: false,
            status,
            content: None,
            head_only: false,
        });
    }
}

/// What the route does with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wants {
    Body,
    SmallBody,
    Key,
    /// Nothing: it is answered before.
    None(u16, Option<Vec<u8>>),
}

impl Plan {
    pub(super) fn new(client: u64, random: &mut Random, limits: &Limits) -> Plan {
        let flood = random.chance(10);
        let mut writer = Writer { random, limits, client, floods: flood, bytes: Vec::new(), messages: Vec::new() };
        if flood {
            let target = *writer.random.pick(&["/constant", "/id/7"]);
            let content = if target == "/id/7" { "7" } else { "constant" };
            for _ in 0..writer.random.between(100, 6000) {
                writer.get(target, 200, Some(content.into()));
            }
        } else {
            for _ in 0..=writer.random.any_size(16) {
                writer.add();
            }
        }
        let Writer { mut bytes, messages, .. } = writer;
        if random.chance(100) && !bytes.is_empty() {
            bytes.truncate(random.len(0, bytes.len()));
        }
        let contents = messages.iter().filter_map(|message| message.content.as_ref());
        let mut plan = Plan {
            answer_bytes_max: contents.map(Vec::len).max().unwrap_or(0),
            messages,
            bytes,
            script: Script::new(),
            says_end: false,
            is_hasty: false,
            resets: false,
            stalls: false,
            floods: flood,
        };
        plan.write_script(random, flood);
        plan
    }

    /// The answers that come if all goes well: up to the message that ends it all, of those that are there.
    pub(super) fn expected(&self) -> impl Iterator<Item = &Message> {
        let mut ended = false;
        let sent = self.bytes.len() as u64;
        self.messages.iter().take_while(move |message| {
            let there = !ended && message.answered_at.unwrap_or(message.end) <= sent;
            ended |= message.ends;
            there
        })
    }

    fn write_script(&mut self, random: &mut Random, flood: bool) {
        let mut script = Script::new().connect_after(any_time(random, 2_000));
        script.stubborn = random.chance(100);
        if random.chance(30) || (flood && random.chance(200)) {
            self.stalls = true;
            script = script.stall();
        } else if random.chance(if flood { 500 } else { 100 }) {
            script = script.read_slowly(random.len(1, 4000), any_time(random, 300));
        }
        if random.chance(100) {
            script = script.wait(any_time(random, 15_000));
        }
        let awaited = self.expected().count();
        let mut from = 0;
        match random.below(10) {
            0..=3 if !flood => {
                // One at a time, as well-behaved clients do.
                for at in 0..self.messages.len() {
                    let Message { head_end, end, head_only, .. } = self.messages[at];
                    let cut = |offset: u64| (offset as usize).clamp(from, self.bytes.len());
                    if head_end < end && random.chance(500) {
                        script = script.send(&self.bytes[from..cut(head_end)]);
                        from = cut(head_end);
                        script = if random.chance(300) {
                            script.until_continue().wait(any_time(random, 100))
                        } else {
                            script.wait(any_time(random, 3_000))
                        };
                    }
                    let cut = (end as usize).clamp(from, self.bytes.len());
                    script = script.send(&self.bytes[from..cut]);
                    from = cut;
                    if at < awaited {
                        script = script.then(Step::Answer { head_only });
                    }
                    if random.chance(150) {
                        script = script.wait(any_time(random, 100_000));
                    }
                }
                script = script.send(&self.bytes[from..]);
            }
            4 if self.bytes.len() < 600 => script = script.drip(&self.bytes, any_time(random, 1_500)),
            5 => {
                // In a few pieces, cut anywhere.
                for _ in 0..random.below(4) {
                    let to = random.len(from, self.bytes.len());
                    script = script.send(&self.bytes[from..to]).wait(any_time(random, 20_000));
                    from = to;
                }
                script = script.send(&self.bytes[from..]);
            }
            _ => script = script.send(&self.bytes),
        }
        if !self.stalls && random.chance(20) {
            self.stalls = true;
            script = script.then(Step::Reading(Reading::Never));
        }
        let waits_for_all = |mut script: Script| {
            let heads = self.messages.iter().take(awaited).map(|message| message.head_only);
            script.steps.retain(|step| !matches!(step, Step::Answer { .. }));
            for head_only in heads {
                script = script.then(Step::Answer { head_only });
            }
            script
        };
        match random.below(10) {
            0..=2 => {}
            3 => {
                self.says_end = true;
                script = script.close_write();
            }
            4 => {
                self.says_end = true;
                script = script.close_write();
                script = waits_for_all(script).close();
            }
            5 => {
                self.says_end = true;
                self.is_hasty = true;
                script = script.close();
            }
            6 => {
                self.is_hasty = true;
                self.resets = true;
                let keep = random.len(0, script.steps.len());
                script.steps.truncate(keep);
                script = script.wait(any_time(random, 50)).reset();
            }
            _ if script.steps.iter().any(|step| matches!(step, Step::Answer { .. })) => {
                self.says_end = true;
                script = script.close();
            }
            _ => {
                self.says_end = true;
                script = waits_for_all(script).close();
            }
        }
        // It waits for the answers to whole messages only, and may not see what is said about others.
        let is_cut = self.messages.last().is_some_and(|last| last.end > self.bytes.len() as u64);
        self.is_hasty |= is_cut && script.steps.iter().any(|step| matches!(step, Step::Close));
        self.script = script;
    }
}

fn any_time(random: &mut Random, most_ms: usize) -> Duration {
    Duration::from_millis(random.any_size(most_ms) as u64)
}
