//! The judge judged: each rule with a transcript that breaks it and a neighbour that keeps it.

use super::case::{Case, Expected, NO_ANSWER, Then, load};
use super::conversation::{Conversation, Gate, Heard};
use super::date::parse_imf_fixdate;
use super::in_process::{Peer, check_whole};
use super::judge::judge;
use super::splits::{Effort, Random, check_every_split, single_cuts};

#[test]
fn status_has_to_be_an_allowed_one() {
    talk(&hello()).expecting(&[&[200, 400]]).passes();
    talk(&hello()).expecting(&[&[201, 400]]).fails("status 200, allowed are [201, 400]");
}

#[test]
fn preferred_status_narrows_the_allowed_ones() {
    talk(&hello()).expecting(&[&[200, 400]]).preferring(&[200]).passes();
    talk(&hello()).expecting(&[&[200, 400]]).preferring(&[400]).fails("a careful server gives one of [400]");
}

#[test]
fn bare_close_passes_only_where_it_is_allowed_and_preferred() {
    talk("").expecting(&[&[NO_ANSWER, 400]]).passes();
    talk("").expecting(&[&[400]]).fails("0 of 1 answers, then a close");
    talk("").expecting(&[&[NO_ANSWER, 400]]).left_open().fails("0 of 1 answers, then silence");
    talk("").expecting(&[&[NO_ANSWER, 400]]).preferring(&[400]).fails("a bare close is legal");
    talk(&hello()).expecting(&[&[200], &[NO_ANSWER], &[400]]).fails("1 of 3 answers");
}

#[test]
fn nothing_may_follow_the_last_expected_answer() {
    let two = hello() + &hello();
    talk(&two).expecting(&[&[200], &[200]]).passes();
    talk(&two).fails("a 200 came although nothing more was due");
    talk(&(hello() + "H")).left_open().then(Then::Open).fails("nothing more was due: \"H\"");
    talk(&(hello() + CONTINUE)).fails("a 100 came although nothing more was due");
}

#[test]
fn silence_is_the_right_answer_to_an_incomplete_request() {
    talk("").expecting(&[]).then(Then::Either).left_open().passes();
    talk("").expecting(&[]).then(Then::Either).fails("closed although the request was not complete");
    talk(&hello()).expecting(&[]).then(Then::Either).left_open().fails("although nothing more was due");
}

#[test]
fn content_is_compared_where_the_status_is_200() {
    talk(&hello()).wanting("hello").passes();
    talk(&hello()).wanting("hallo").fails("content of 5 bytes \"hello\", wanted 5 bytes \"hallo\"");
    talk(&answer("400 Bad Request", "Content-Length: 2\r\n", "no")).expecting(&[&[400]]).wanting("hallo").passes();
}

#[test]
fn answer_to_head_has_no_content() {
    let head = answer("200 OK", "Content-Length: 5\r\n", "");
    talk(&head).answering_head().wanting("hello").passes();
    talk(&head).fails("the connection closed after 0 content bytes");
    talk(&hello()).answering_head().fails("not a status-line: \"hello\"");
}

#[test]
fn statuses_without_content_have_none() {
    talk(&answer("204 No Content", "", "")).expecting(&[&[204]]).passes();
    talk(&answer("204 No Content", "", "x")).expecting(&[&[204]]).fails("not a status-line");
    talk(&answer("304 Not Modified", "Content-Length: 5\r\n", "")).expecting(&[&[304]]).passes();
    talk(&answer("304 Not Modified", "Content-Length: 5\r\n", "hello")).expecting(&[&[304]]).fails("not a status-line");
    let length = answer("204 No Content", "Content-Length: 0\r\n", "");
    talk(&length).expecting(&[&[204]]).fails("a framing field in a 204 response");
    talk(&("HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n".to_owned() + &hello())).fails("in a 100 response");
}

#[test]
fn interim_answers_come_only_before_a_final_one_and_never_to_http10() {
    talk(&(CONTINUE.to_owned() + &hello())).passes();
    talk(&(CONTINUE.to_owned() + &hello())).v10().fails("a 100 to an HTTP/1.0 client");
    talk(&hello()).v10().passes();
    talk(&(CONTINUE.to_owned() + &hello())).without_interim().fails("where no interim answer may come");
    talk(&("HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned() + &hello())).fails("no upgrade was offered");
}

#[test]
fn client_that_waits_for_an_interim_answer_must_get_one_or_a_final_one() {
    talk(&(CONTINUE.to_owned() + &hello())).gate(Gate::Opened).passes();
    talk(&hello()).gate(Gate::Withheld).passes();
    talk("").gate(Gate::Silent).fails("neither an interim nor a final answer");
}

#[test]
fn http10_client_gets_no_transfer_coding() {
    let chunked = answer("200 OK", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n");
    talk(&chunked).wanting("hello").passes();
    talk(&chunked).v10().fails("Transfer-Encoding to an HTTP/1.0 client");
}

#[test]
fn connection_ends_as_the_case_demands() {
    talk(&hello()).then(Then::Close).passes();
    talk(&hello()).then(Then::Close).left_open().fails("the connection was not closed");
    talk(&hello()).then(Then::Either).passes();
    talk(&hello()).then(Then::Open).fails("the connection was closed");
    talk(&hello()).then(Then::Open).left_open().probed(&hello()).passes();
    talk(&hello()).then(Then::Open).left_open().fails("the driver sent no probe");
    talk(&hello()).then(Then::Either).left_open().stuck().fails("not read to its end");
}

#[test]
fn open_connection_answers_the_probe_in_step() {
    let open = || talk(&hello()).then(Then::Either).left_open();
    open().probed(&hello()).passes();
    open().probed(&answer("404 Not Found", "Content-Length: 0\r\n", "")).fails("out of step: a further GET / got 404");
    open().probed(&answer("200 OK", "Content-Length: 5\r\n", "hallo")).fails("content \"hallo\"");
    open().probed(&(hello() + "x")).fails("then \"x\"");
    open().probed("hello").fails("out of step: not a status-line");
    open().probed("").fails("no whole answer");
    open().probed(&hello().replace("Date", "Data")).fails("0 Date fields");
    // The server may have closed just as the probe was on its way, but not if the case demands an open connection.
    open().probed("").closed_after_probe().passes();
    open().then(Then::Open).probed("").closed_after_probe().fails("got a close");
}

#[test]
fn case_without_probe_may_stay_open_unprobed() {
    talk(&hello()).then(Then::Either).left_open().without_probe().passes();
    talk(&hello()).then(Then::Either).left_open().fails("the driver sent no probe");
}

#[test]
fn date_stands_exactly_once_from_200_to_499() {
    talk(&hello()).passes();
    talk(&hello().replace("Date", "Data")).fails("0 Date fields in a 200 response");
    talk(&hello().replace("Content-", &format!("Date: {DATE}\r\nContent-"))).fails("2 Date fields");
    talk(&hello().replace("Date", "Data").replace("200", "500")).expecting(&[&[500]]).passes();
}

#[test]
fn date_is_well_formed_and_of_now() {
    talk(&hello().replace("49:37", "49:47")).passes();
    talk(&hello().replace("49:37", "49:48")).fails("Date is 11 seconds off");
    talk(&hello().replace("49:37", "49:26")).fails("Date is 11 seconds off");
    talk(&hello().replace("Sun", "Mon")).fails("Date is no IMF-fixdate");
    talk(&hello().replace("Date", "Data").replace("Content-", "Date: now\r\nContent-")).fails("no IMF-fixdate");
}

#[test]
fn imf_fixdate_is_read_and_its_neighbours_are_not() {
    assert_eq!(parse_imf_fixdate(DATE.as_bytes()), Some(NOW));
    assert_eq!(parse_imf_fixdate(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    assert_eq!(parse_imf_fixdate(b"Thu, 29 Feb 2024 23:59:60 GMT"), Some(1_709_251_200));
    for wrong in [
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Wed, 29 Feb 2023 00:00:00 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "",
        "Süß, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(parse_imf_fixdate(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn method_not_allowed_names_the_allowed_methods() {
    let not_allowed = |fields: &str| talk(&answer("405 Method Not Allowed", fields, "")).expecting(&[&[405]]);
    not_allowed("Content-Length: 0\r\nAllow: GET, HEAD\r\n").passes();
    not_allowed("Content-Length: 0\r\nAllow:\r\n").passes();
    not_allowed("Content-Length: 0\r\n").fails("a 405 without Allow");
    not_allowed("Content-Length: 0\r\nAllow: GET, , HEAD\r\n").fails("Allow is no list of methods");
}

#[test]
fn status_line_is_strict() {
    talk(&hello().replace("200 OK", "200 ")).passes();
    talk(&hello().replace("200 OK", "200")).fails("bad status-line");
    talk(&hello().replace("200 OK", "20 OK")).fails("bad status-line");
    talk(&hello().replace("200 OK", "600 OK")).fails("bad status-line");
    talk(&hello().replace("200 OK", "200 O\x01K")).fails("bad status-line");
    talk(&hello().replace("200 OK\r", "200 OK")).fails("bad status-line");
    talk(&hello().replace("HTTP/1.1", "HTTP/1.0")).passes();
    talk(&hello().replace("HTTP/1.1", "HTTP/2.0")).fails("not a status-line");
    talk(&("\r\n".to_owned() + &hello())).fails("not a status-line");
}

#[test]
fn field_lines_are_strict() {
    let with = |line: &str| talk(&answer("200 OK", &format!("{line}\r\nContent-Length: 0\r\n"), ""));
    with("X-A: b").passes();
    with("X-A:b\t ").passes();
    with("X-A:").passes();
    with("X-A : b").fails("a field-name that is no token");
    with(": b").fails("a field-name that is no token");
    with("X-A").fails("a field line without a colon");
    with("X-A: b\r\n fold: d").fails("a field-name that is no token");
    with("X-A: b\rc").fails("a control byte in a field-value");
    with("X-A: b\nX-C: d").fails("a control byte in a field-value");
    with("X-A: b\x7f").fails("a control byte in a field-value");
}

#[test]
fn framing_is_unambiguous() {
    let with = |fields: &str| talk(&answer("200 OK", fields, "5\r\nhello\r\n0\r\n\r\n"));
    with("Transfer-Encoding: chunked\r\n").wanting("hello").passes();
    with("Content-Length: 15\r\n").passes();
    with("Content-Length: 15\r\nTransfer-Encoding: chunked\r\n").fails("both Content-Length and Transfer-Encoding");
    with("Content-Length: 15\r\nContent-Length: 15\r\n").fails("a framing field stands there twice");
    with("Content-Length: +15\r\n").fails("bad Content-Length");
    with("Content-Length: 15, 15\r\n").fails("bad Content-Length");
    with("Content-Length: \r\n").fails("bad Content-Length");
    with("Transfer-Encoding: gzip, chunked\r\n").fails("unknown Transfer-Encoding");
    with("Content-Length: 14\r\n").fails("not a status-line");
    with("Content-Length: 16\r\n").fails("the connection closed after 15 content bytes");
}

#[test]
fn content_until_close_is_announced() {
    talk(&answer("200 OK", "Connection: x, Close\r\n", "hello")).wanting("hello").passes();
    talk(&answer("200 OK", "", "hello")).fails("without Connection: close");
    talk(&answer("200 OK", "", "hello").replace("HTTP/1.1", "HTTP/1.0")).passes();
    talk(&answer("200 OK", "Connection: close\r\n", "hello")).left_open().fails("an incomplete answer");
}

#[test]
fn chunks_are_strict() {
    let with = |body: &str| talk(&answer("200 OK", "Transfer-Encoding: chunked\r\n", body)).wanting("hello");
    with("2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\n\r\n").passes();
    with("5\r\nhello\r\n0\r\nX-T: v\r\n\r\n").passes();
    with("5\r\nhello\r\n0\r\nX-T\r\n\r\n").fails("a field line without a colon");
    with("5\r\nhello0\r\n\r\n").fails("no CRLF after chunk-data");
    with("5 \r\nhello\r\n0\r\n\r\n").fails("bad chunk-size line");
    with("+5\r\nhello\r\n0\r\n\r\n").fails("bad chunk-size line");
    with("\r\nhello\r\n0\r\n\r\n").fails("bad chunk-size line");
    with("5;\n\r\nhello\r\n0\r\n\r\n").fails("bad chunk-size line");
    with("5\r\nhello\r\n0\r\n").fails("the connection closed after");
    with(&format!("5;{}\r\nhello\r\n0\r\n\r\n", "e".repeat(1024))).fails("a chunk-size line without end");
}

#[test]
fn answer_cut_short_by_a_close_fails() {
    let whole = hello();
    talk(&whole).passes();
    for len in 1..whole.len() {
        talk(&whole[..len]).fails("closed");
        talk(&whole[..len]).left_open().fails("an incomplete answer");
    }
}

#[test]
fn whole_corpus_is_read() {
    let cases = load();
    assert_eq!(cases.len(), 481);
    let of = |id: &str| cases.iter().find(|case| case.id == id).expect("the case is there");
    assert_eq!(of("post-echo-64k").answers[0].content.as_deref(), Some(&b"0123456789abcdef".repeat(4096)[..]));
    assert_eq!(of("post-echo-64k").bytes.len(), 64 + 65_536);
    assert_eq!(of("expect-wait").await_interim, Some(82));
    assert!(of("mix-12").is_to_head(15) && !of("mix-12").is_to_head(16));
}

#[test]
fn character_of_the_data_is_one_byte() {
    let case = Case::parse(
        r#"{"id": "x", "send": "\u00ff\u0000a", "repeat": [[1, "é", 2]], "expect": [[0]], "then": "close"}"#,
    );
    assert_eq!(case.bytes, b"\xff\xe9\xe9\0a");
}

#[test]
#[should_panic(expected = "unknown field \"sned\"")]
fn unknown_field_of_the_data_is_refused() {
    Case::parse(r#"{"id": "x", "sned": "a", "expect": [], "then": "close"}"#);
}

#[test]
fn short_case_is_cut_everywhere_and_a_long_one_around_its_boundaries() {
    let mut case = Case::blank();
    case.bytes = vec![b'x'; 16 * 1024];
    assert!(single_cuts(&case, 10, &mut Random::seeded_by("a")).into_iter().eq(1..16 * 1024));

    case.bytes = [b"POST / HTTP/1.1\r\n\r\n".as_slice(), &[b'x'; 20_000], b"GET / HTTP/1.1\r\n\r\n"].concat();
    let (head, len) = (19, case.bytes.len());
    let cuts = single_cuts(&case, 10, &mut Random::seeded_by("a"));
    for boundary in [head, 4096, head + 4096, 8192, 16_384, head + 20_000, len - 2] {
        assert!((boundary - 2..=boundary + 2).all(|at| at >= len || cuts.contains(&at)), "{boundary}: {cuts:?}");
    }
    assert!(cuts.len() < 100 && cuts.is_sorted_by(|a, b| a < b) && cuts.iter().all(|&at| 0 < at && at < len));
    assert_eq!(cuts, single_cuts(&case, 10, &mut Random::seeded_by("a")));
}

#[test]
fn peer_that_answers_alike_however_it_is_fed_passes_every_split() {
    let case = get_case();
    check_every_split(&case, || Canned::new(usize::MAX), Effort::FULL).expect("it never notices the pieces");
    check_whole(&case, Canned::new(usize::MAX)).expect("whole is one of the ways");
}

#[test]
fn peer_that_stumbles_over_one_split_fails_and_the_split_is_named() {
    let case = get_case();
    check_whole(&case, Canned::new(7)).expect("it stumbles over pieces only");
    let fault = check_every_split(&case, || Canned::new(7), Effort::FULL).expect_err("a piece of seven bytes");
    assert!(fault.contains("cut at [7] of 18 bytes"), "{fault}");
    assert!(fault.contains(r#"- "HTTP/1.1 200 OK\r\n""#), "{fault}");
    assert!(fault.contains(r#"+ "HTTP/1.1 400 Bad Request\r\n""#), "{fault}");
}

#[test]
fn interim_answer_and_second_may_differ_between_splits() {
    let case = get_case();
    let fresh = || Canned { continues_when_partial: true, ..Canned::new(usize::MAX) };
    check_every_split(&case, fresh, Effort::FULL).expect("a 100 and another Date are no departure");
    let strict = Case { no_interim: true, ..case };
    let fault = check_every_split(&strict, fresh, Effort::FULL).expect_err("here a 100 is wrong in any split");
    assert!(fault.contains("sent cut at [1] of 18 bytes: a 100 where no interim answer may come"), "{fault}");
}

/// `GET / HTTP/1.1` and a blank line, to which `Canned` answers and then closes.
fn get_case() -> Case {
    let answers = vec![Expected { allowed: vec![200], ..Expected::default() }];
    Case { id: "get".into(), bytes: b"GET / HTTP/1.1\r\n\r\n".to_vec(), answers, then: Then::Close, ..Case::blank() }
}

/// Answers one request; a first piece of exactly `stumbles_at` bytes makes it answer wrongly.
struct Canned {
    stumbles_at: usize,
    continues_when_partial: bool,
    heard: Vec<u8>,
    said: String,
    has_stumbled: bool,
}

impl Canned {
    fn new(stumbles_at: usize) -> Canned {
        let (heard, said) = (Vec::new(), String::new());
        Canned { stumbles_at, continues_when_partial: false, heard, said, has_stumbled: false }
    }
}

impl Peer for Canned {
    fn send(&mut self, bytes: &[u8]) {
        self.has_stumbled |= self.heard.is_empty() && bytes.len() == self.stumbles_at;
        self.heard.extend_from_slice(bytes);
        if !self.heard.ends_with(b"\r\n\r\n") {
            if self.continues_when_partial && self.said.is_empty() {
                self.said += CONTINUE;
            }
            return;
        }
        let answer = hello().replace("49:37", if self.said.is_empty() { "49:37" } else { "49:38" });
        self.said += &if self.has_stumbled { answer.replace("200 OK", "400 Bad Request") } else { answer };
    }

    fn close_write(&mut self) {}

    fn received(&self) -> &[u8] {
        self.said.as_bytes()
    }

    fn is_closed(&self) -> bool {
        self.heard.ends_with(b"\r\n\r\n")
    }

    fn unix_now(&self) -> u64 {
        NOW
    }
}

/// A hand-made conversation: one request that expects a 200, after which the server closed.
struct Talk {
    case: Case,
    received: String,
    closed: bool,
    probe: Option<String>,
    closed_after_probe: bool,
    gate: Gate,
    stuck: bool,
}

fn talk(received: &str) -> Talk {
    let talk = Talk {
        case: Case { then: Then::Close, ..Case::blank() },
        received: received.to_owned(),
        closed: true,
        probe: None,
        closed_after_probe: false,
        gate: Gate::None,
        stuck: false,
    };
    talk.expecting(&[&[200]])
}

impl Talk {
    fn expecting(mut self, answers: &[&[u16]]) -> Talk {
        let expected = |allowed: &&[u16]| Expected { allowed: allowed.to_vec(), ..Expected::default() };
        self.case.answers = answers.iter().map(expected).collect();
        self
    }

    fn preferring(mut self, statuses: &[u16]) -> Talk {
        self.case.answers[0].preferred = Some(statuses.to_vec());
        self
    }

    fn wanting(mut self, content: &str) -> Talk {
        self.case.answers[0].content = Some(content.as_bytes().to_vec());
        self
    }

    fn answering_head(mut self) -> Talk {
        self.case.answers[0].to_head = true;
        self
    }

    fn then(mut self, then: Then) -> Talk {
        self.case.then = then;
        self
    }

    fn v10(mut self) -> Talk {
        self.case.v10 = true;
        self
    }

    fn without_interim(mut self) -> Talk {
        self.case.no_interim = true;
        self
    }

    fn without_probe(mut self) -> Talk {
        self.case.probe = false;
        self
    }

    fn gate(mut self, gate: Gate) -> Talk {
        self.gate = gate;
        self
    }

    fn left_open(mut self) -> Talk {
        self.closed = false;
        self
    }

    fn stuck(mut self) -> Talk {
        self.stuck = true;
        self
    }

    fn probed(mut self, answer: &str) -> Talk {
        self.probe = Some(answer.to_owned());
        self
    }

    fn closed_after_probe(mut self) -> Talk {
        self.closed_after_probe = true;
        self
    }

    fn verdict(&self) -> Result<(), String> {
        let probe = self.probe.as_ref();
        let conversation = Conversation {
            first: Heard { received: self.received.as_bytes(), closed: self.closed },
            probe: probe.map(|answer| Heard { received: answer.as_bytes(), closed: self.closed_after_probe }),
            gate: self.gate,
            stuck: self.stuck,
            unix_now: NOW,
        };
        judge(&self.case, &conversation)
    }

    #[track_caller]
    fn passes(&self) {
        if let Err(fault) = self.verdict() {
            panic!("should pass, but: {fault}\n{}", self.received.escape_debug());
        }
    }

    #[track_caller]
    fn fails(&self, because: &str) {
        match self.verdict() {
            Err(fault) => assert!(fault.contains(because), "fails, but because of: {fault}"),
            Ok(()) => panic!("should fail with: {because}\n{}", self.received.escape_debug()),
        }
    }
}

fn hello() -> String {
    answer("200 OK", "Content-Length: 5\r\n", "hello")
}

fn answer(status: &str, fields: &str, content: &str) -> String {
    format!("HTTP/1.1 {status}\r\nDate: {DATE}\r\n{fields}\r\n{content}")
}

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const NOW: u64 = 784_111_777;
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
