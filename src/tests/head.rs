use std::mem::MaybeUninit;

use crate::head::{self, Head, Known, Single, Version};
use crate::limits::Limits;
use crate::method::Method;
use crate::reject::Reject;

/// Scans pieces one behind the other, as a connection does.
fn scan(pieces: &[&[u8]], max: usize) -> Result<Option<usize>, Reject> {
    let mut bytes = Vec::new();
    let mut scanned = 0;
    for piece in pieces {
        bytes.extend_from_slice(piece);
        match head::scan(&bytes, scanned, max)? {
            Some(len) => return Ok(Some(len)),
            None => scanned = head::scanned_len(&bytes),
        }
    }
    Ok(None)
}

#[track_caller]
fn check_scan(input: &[u8], expected: Result<Option<usize>, Reject>) {
    check_scan_within(input, 16 << 10, expected);
}

#[track_caller]
fn check_scan_within(input: &[u8], max: usize, expected: Result<Option<usize>, Reject>) {
    assert_eq!(scan(&[input], max), expected, "whole: {}", input.escape_ascii());
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(scan(&bytes, max), expected, "byte by byte: {}", input.escape_ascii());
    for at in 0..input.len() {
        assert_eq!(scan(&[&input[..at], &input[at..]], max), expected, "split at {at}: {}", input.escape_ascii());
    }
}

#[track_caller]
fn parse<R>(input: &[u8], look: impl FnOnce(Result<(Head<'_>, Known<'_>), Reject>) -> R) -> R {
    let mut slots = [const { MaybeUninit::uninit() }; head::SLOTS_READY];
    look(head::parse(input, &mut slots, &Limits::DEFAULT))
}

#[track_caller]
fn refuses(input: &[u8], reject: Reject) {
    assert_eq!(parse(input, |head| head.map(|_| ())), Err(reject), "{}", input.escape_ascii());
}

#[test]
fn a_head_ends_at_its_blank_line() {
    check_scan(b"GET / HTTP/1.1\r\n\r\n", Ok(Some(18)));
    check_scan(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody\n\0", Ok(Some(27)));
    check_scan(b"GET / HTTP/1.1\r\nHost: a\r\n\r", Ok(None));
    check_scan(b"GET / HTTP/1.1\r\nHost: a\r\n", Ok(None));
    check_scan(b"", Ok(None));
}

#[test]
fn a_tab_and_bytes_above_ascii_are_no_control_bytes() {
    check_scan(b"GET / HTTP/1.1\r\nA:\tb\xe9\xff\r\n\r\n", Ok(Some(26)));
}

#[test]
fn what_no_head_holds_is_refused_at_its_byte() {
    check_scan(b"GET / HTTP/1.1\nHost: a", Err(Reject::BareLf));
    check_scan(b"GET / HTTP/1.1\r\nHost: a\n\r\n", Err(Reject::BareLf));
    check_scan(b"GET / HTTP/1.1\r\nHost: a\rb", Err(Reject::BareCr));
    check_scan(b"GET / HTTP/1.1\r\r\n", Err(Reject::BareCr));
    check_scan(b"GET / HTTP/1.1\r\nA: \0", Err(Reject::HeadControlByte));
    check_scan(b"GET / HTTP/1.1\r\nA: \x7f", Err(Reject::HeadControlByte));
    check_scan(b"GET / HTTP/1.1\r\nA: \x1f", Err(Reject::HeadControlByte));
    for first in [b' ', b'\t', b'\n', 0x16, 0, b'{', b'(', 0x80, b':', b'"'] {
        check_scan(&[first, b'E', b'T'], Err(Reject::FirstByte));
    }
}

#[test]
fn every_byte_is_found_at_every_place_of_a_word() {
    for place in 0..24 {
        for byte in 0..=255u8 {
            let mut input = b"GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n\r\n".to_vec();
            let len = input.len();
            input[5 + place] = byte;
            let expected = match byte {
                b'\n' => Err(Reject::BareLf),
                b'\r' => Err(Reject::BareCr),
                b'\t' => Ok(Some(len)),
                0..0x20 | 0x7f => Err(Reject::HeadControlByte),
                _ => Ok(Some(len)),
            };
            assert_eq!(scan(&[&input], 16 << 10), expected, "byte {byte:#x} at {place}");
        }
    }
}

#[test]
fn a_head_of_the_limit_passes_and_one_more_byte_names_what_is_too_long() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    check_scan_within(head, 27, Ok(Some(27)));
    check_scan_within(head, 26, Err(Reject::HeadTooLarge));
    check_scan_within(head, 18, Err(Reject::HeadTooLarge));
    check_scan_within(head, 15, Err(Reject::TargetTooLong));
    check_scan_within(head, 5, Err(Reject::TargetTooLong));
    check_scan_within(head, 3, Err(Reject::MethodTooLong));
}

#[test]
fn a_head_is_taken_apart() {
    parse(b"POST /a?b HTTP/1.1\r\nhOsT: x\r\nConnection: foo, Close\r\nX:  a b \t\r\n\r\n", |head| {
        let (head, known) = head.unwrap();
        assert_eq!((head.method, head.target, head.version), (Method::Post, "/a?b", Version::Http11));
        assert_eq!(known.host, Some(&b"x"[..]));
        assert!(known.close && !known.keep_alive);
        assert_eq!(head.fields.get("x"), Some(&b"a b"[..]));
        assert_eq!(head.fields.len(), 3);
    });
}

#[test]
fn connection_is_a_list_of_whole_options_over_all_lines() {
    for (lines, close, keep_alive) in [
        ("Connection: close", true, false),
        ("Connection: CLOSE", true, false),
        ("Connection: a,b,close", true, false),
        ("Connection: keep-alive, close", true, true),
        ("Connection: keep-alive\r\nX: y\r\nConnection: close", true, true),
        ("Connection: closed", false, false),
        ("Connection: x-close, disclose", false, false),
        ("Connection: Keep-Alive", false, true),
        ("Proxy-Connection: close", false, false),
        ("Connection:", false, false),
    ] {
        parse(format!("GET / HTTP/1.1\r\n{lines}\r\n\r\n").as_bytes(), |head| {
            let known = head.unwrap().1;
            assert_eq!((known.close, known.keep_alive), (close, keep_alive), "{lines}");
        });
    }
}

#[test]
fn a_field_name_is_a_token_right_before_its_colon() {
    for good in ["X-A: b", "X:b", "X:", "!#$%&'*+-.^_`|~09azAZ: x", "X_A: b", "X: a:b"] {
        parse(format!("GET / HTTP/1.1\r\n{good}\r\n\r\n").as_bytes(), |head| assert!(head.is_ok(), "{good}"));
    }
    for bad in ["X-A : b", "X-A\t: b", ": b", "X A: b", "X@: b", "X\u{e9}: b", "X-A b", " X: b", "X: a\r\n b", "\tX: b"]
    {
        refuses(format!("GET / HTTP/1.1\r\n{bad}\r\n\r\n").as_bytes(), Reject::FieldName);
    }
}

#[test]
fn what_may_come_once_is_refused_twice() {
    for (name, reject) in [
        ("Host", Reject::HostTwice),
        ("Content-Length", Reject::ContentLengthTwice),
        ("Transfer-Encoding", Reject::TransferEncodingTwice),
    ] {
        let once = format!("GET / HTTP/1.1\r\n{name}: 5\r\n\r\n");
        parse(once.as_bytes(), |head| assert!(head.is_ok()));
        refuses(
            format!("GET / HTTP/1.1\r\n{name}: 5\r\nX: y\r\n{}: 5\r\n\r\n", name.to_lowercase()).as_bytes(),
            reject,
        );
    }
}

#[test]
fn a_request_line_is_method_target_version_with_single_blanks() {
    for bad in [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET: / HTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET /",
        "GET",
    ] {
        parse(format!("{bad}\r\n\r\n").as_bytes(), |head| {
            let reject = head.map(|_| ()).expect_err(bad);
            assert_eq!(reject.status().code(), 400, "{bad}: {reject:?}");
        });
    }
}

#[test]
fn only_well_formed_versions_other_than_1_x_are_505() {
    for version in ["HTTP/2.0", "HTTP/0.9", "HTTP/9.9", "HTTP/3.0"] {
        refuses(format!("GET / {version}\r\n\r\n").as_bytes(), Reject::VersionUnsupported);
    }
    for version in
        ["HTTP/1.10", "HTTP/01.1", "HTTP/1", "http/1.1", "HTTP/1,1", "ICE/1.1", "HTTP/a.b", "HTTP/1.1x", "HTTP/1.1 "]
    {
        parse(format!("GET / {version}\r\n\r\n").as_bytes(), |head| {
            let reject = head.map(|_| ()).expect_err(version);
            assert_eq!(reject.status().code(), 400, "{version}: {reject:?}");
        });
    }
    let mut head = b"GET / HTTP/1.2\r\n\r\n".to_vec();
    assert!(head::lower_version(&mut head));
    parse(&head, |head| assert_eq!(head.unwrap().0.version, Version::Http11));
}

#[test]
fn more_fields_than_slots_are_told_apart_from_faults() {
    let head = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count)).into_bytes();
    parse(&head(64), |head| assert_eq!(head.unwrap().0.fields.len(), 64));
    refuses(&head(65), Reject::TooManyFields);
}

/// Every byte that a head may hold, in every place of the name.
#[track_caller]
fn check_name<const N: usize>(lower: &[u8; N]) {
    assert!(head::is_name(lower, lower) && head::is_name(&lower.to_ascii_uppercase(), lower));
    assert!(!head::is_name(&lower[1..], lower) && !head::is_name(&[lower.as_slice(), b"-"].concat(), lower));
    for at in 0..N {
        for byte in (0..=255).filter(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) {
            let mut name = *lower;
            name[at] = byte;
            let same = name.eq_ignore_ascii_case(lower);
            assert_eq!(head::is_name(&name, lower), same, "{} is {}", name.escape_ascii(), lower.escape_ascii());
        }
    }
}

#[test]
fn names_are_compared_all_bytes_at_once_as_they_are_letter_by_letter() {
    check_name(b"host");
    check_name(b"basic");
    check_name(b"bearer");
    check_name(b"trailer");
    check_name(b"if-match");
    check_name(b"content-type");
    check_name(b"authorization");
    check_name(b"content-encoding");
    check_name(b"transfer-encoding");
}

#[test]
fn a_single_field_is_absent_or_there_once_or_repeated() {
    let single = |lines: &str, expected: Single<'_>| {
        parse(format!("GET / HTTP/1.1\r\n{lines}\r\n").as_bytes(), |head| {
            assert_eq!(head.unwrap().1.content_type, expected, "{lines}");
        });
    };
    single("", Single::Absent);
    single("Content-Typo: a\r\nContent-Types: b\r\n", Single::Absent);
    single("a: b\r\nCONTENT-type: c\r\nd: e\r\n", Single::Once(b"c"));
    single("Content-Type: a\r\nb: c\r\ncontent-type: a\r\n", Single::Repeated);
}

#[test]
fn content_is_coded_where_any_line_lists_a_coding() {
    let coded = |lines: &str, expected: bool| {
        parse(format!("GET / HTTP/1.1\r\n{lines}\r\n").as_bytes(), |head| {
            assert_eq!(head.unwrap().1.content_coded, expected, "{lines}");
        });
    };
    coded("", false);
    coded("Content-Encoding:\r\nContent-Encodings: gzip\r\nAccept-Encoding: gzip\r\n", false);
    coded("Content-Encoding: identity\r\ncontent-encoding: , Identity ,\r\n", false);
    coded("content-encoding: x\r\n", true);
    coded("CONTENT-Encoding: identity, gzip\r\n", true);
    coded("Content-Encoding: br\r\nContent-Encoding: identity\r\n", true);
}
