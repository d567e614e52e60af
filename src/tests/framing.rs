use std::mem::MaybeUninit;

use crate::framing::{Decision, Framing, decide};
use crate::head;
use crate::limits::Limits;
use crate::reject::Reject;

fn decision(version: &str, fields: &str) -> Result<Decision, Reject> {
    let input = format!("POST / HTTP/{version}\r\n{fields}\r\n");
    let mut slots = [const { MaybeUninit::uninit() }; 8];
    let (head, known) = head::parse(input.as_bytes(), &mut slots, &Limits::DEFAULT)?;
    decide(head.version, &known)
}

fn framing(fields: &str) -> Result<Framing, Reject> {
    decision("1.1", fields).map(|d| d.framing)
}

#[test]
fn without_framing_fields_there_is_no_body() {
    assert_eq!(framing(""), Ok(Framing::NoBody));
    assert_eq!(framing("TE: chunked\r\n"), Ok(Framing::NoBody));
    assert_eq!(framing("Content_Length: 5\r\n"), Ok(Framing::NoBody));
}

#[test]
fn a_content_length_is_digits_and_nothing_else() {
    for (value, len) in [("5", 5), ("0", 0), ("005", 5), ("0000000000000000000000000000005", 5), ("\t 5 \t", 5)] {
        assert_eq!(framing(&format!("Content-Length: {value}\r\n")), Ok(Framing::Length(len)), "{value}");
    }
    for value in ["+5", "-5", "0x5", "5.0", "5e0", "five", "", "5a", "1 0", "\"5\"", "5,", ",5", "5,a"] {
        assert_eq!(framing(&format!("Content-Length: {value}\r\n")), Err(Reject::ContentLength), "{value}");
    }
    for value in ["5, 5", "5,6"] {
        assert_eq!(framing(&format!("Content-Length: {value}\r\n")), Err(Reject::ContentLengthTwice), "{value}");
    }
}

/// Found by the fuzz target `framing`.
#[test]
fn a_blank_before_its_comma_makes_a_list_of_lengths_no_less_a_list() {
    assert_eq!(framing("Content-Length: 5\t ,5\r\n"), Err(Reject::ContentLengthTwice));
    assert_eq!(framing("Content-Length: 5\t 5\r\n"), Err(Reject::ContentLength));
}

#[test]
fn a_content_length_beyond_64_bits_does_not_wrap() {
    for value in ["18446744073709551615", "18446744073709551616", "18446744073709551621", &"9".repeat(60)] {
        assert_eq!(framing(&format!("Content-Length: {value}\r\n")), Ok(Framing::Length(u64::MAX)), "{value}");
    }
    assert_eq!(framing("Content-Length: 18446744073709551616x\r\n"), Err(Reject::ContentLength));
}

#[test]
fn transfer_encoding_is_chunked_alone() {
    for value in ["chunked", "CHUNKED", " \tchunked \t"] {
        assert_eq!(framing(&format!("Transfer-Encoding: {value}\r\n")), Ok(Framing::Chunked), "{value}");
    }
    for value in ["gzip, chunked", "identity, chunked", "gzip,br , CHUNKED", "chunked-false, chunked"] {
        assert_eq!(framing(&format!("Transfer-Encoding: {value}\r\n")), Err(Reject::TransferCoding), "{value}");
    }
    for value in [
        "",
        "\"chunked\"",
        "xchunked",
        "chunk",
        "identity",
        "gzip",
        "gzip, chunke",
        "chunked-false",
        "chunked, gzip",
        "chunked, chunked",
        "chunked chunked",
        ",chunked",
        "chunked,",
        "chunked;a=b",
        "chunked=",
        ";chunked",
    ] {
        assert_eq!(framing(&format!("Transfer-Encoding: {value}\r\n")), Err(Reject::TransferEncoding), "{value}");
    }
}

#[test]
fn doubtful_framing_is_refused() {
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(framing(both), Err(Reject::BothFramings));
    assert_eq!(decision("1.0", both), Err(Reject::TransferEncodingVersion));
    assert_eq!(decision("1.0", "Transfer-Encoding: chunked\r\n"), Err(Reject::TransferEncodingVersion));
}

#[test]
fn persistence_follows_version_and_connection() {
    for (version, connection, persistent) in [
        ("1.1", "", true),
        ("1.1", "close", false),
        ("1.1", "keep-alive", true),
        ("1.1", "keep-alive, CLOSE", false),
        ("1.0", "", false),
        ("1.0", "Keep-Alive", true),
        ("1.0", "keep-alive, close", false),
    ] {
        let decision = decision(version, &format!("Connection: {connection}\r\n")).unwrap();
        assert_eq!(decision.persistent, persistent, "HTTP/{version}, {connection}");
    }
}

#[test]
fn only_100_continue_is_expected_and_only_with_a_body_and_in_1_1() {
    let expects = |version: &str, fields: &str| decision(version, fields).map(|d| d.expects_continue);
    assert_eq!(expects("1.1", "Expect: 100-Continue\r\nContent-Length: 5\r\n"), Ok(true));
    assert_eq!(expects("1.1", "Expect: 100-continue\r\n"), Ok(false));
    assert_eq!(expects("1.0", "Expect: 100-continue\r\nContent-Length: 5\r\n"), Ok(false));
    assert_eq!(expects("1.0", "Expect: x\r\n"), Ok(false));
    for value in ["x", "y 100-continue", "100-continue;", "100-continue=1", "100_continue"] {
        assert_eq!(expects("1.1", &format!("Expect: {value}\r\n")), Err(Reject::Expectation), "{value}");
    }
}

#[test]
fn expect_is_a_list_on_one_line_as_on_several() {
    let expects = |values: &[&str]| {
        let lines: String = values.iter().map(|value| format!("Expect: {value}\r\n")).collect();
        decision("1.1", &format!("{lines}Content-Length: 5\r\n")).map(|d| d.expects_continue)
    };
    for (first, second) in [("100-continue", "100-Continue"), ("100-continue", ""), ("", "100-continue")] {
        assert_eq!(expects(&[first, second]), Ok(true));
        assert_eq!(expects(&[&format!("{first}, {second}")]), Ok(true));
        assert_eq!(expects(&[&format!("{first}\t,,{second} ")]), Ok(true));
    }
    for (first, second) in [("100-continue", "101-continue"), ("x", "100-continue"), ("", "x"), ("100-continue", "x=1")]
    {
        assert_eq!(expects(&[first, second]), Err(Reject::Expectation));
        assert_eq!(expects(&[&format!("{first}, {second}")]), Err(Reject::Expectation));
    }
    // A list of nothing expects nothing.
    assert_eq!(expects(&[""]), Ok(false));
    assert_eq!(expects(&["", ","]), Ok(false));
}

/// Found by the fuzz target `head`.
#[test]
fn an_unknown_expectation_is_refused_on_whichever_line_it_stands() {
    for lines in ["Expect: x\r\nExpect: 100-continue\r\n", "Expect: 100-continue\r\nExpect: x\r\n"] {
        assert_eq!(framing(lines), Err(Reject::Expectation), "{lines}");
    }
    assert_eq!(framing("Expect: 100-continue\r\nExpect: 100-Continue\r\n"), Ok(Framing::NoBody));
}
