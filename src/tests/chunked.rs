use super::naive::decode_chunked;
use crate::chunked::Decoder;
use crate::limits::Limits;
use crate::reject::Reject;
use crate::testing::Random;

const MAX: usize = 1 << 20;

/// Feeds pieces one behind the other, as a connection does. The content and the bytes used, if the body ended.
fn decode(pieces: &[&[u8]], max: usize, limits: &Limits) -> Result<Option<(Vec<u8>, usize)>, Reject> {
    let mut decoder = Decoder::new();
    let mut buffer = b"head".to_vec();
    let mut used = 0;
    for (at, piece) in pieces.iter().enumerate() {
        let content_end = buffer.len();
        buffer.extend_from_slice(piece);
        let decoded = decoder.decode(&mut buffer, content_end, content_end, max, limits)?;
        used += decoded.raw_start - content_end;
        assert!(decoded.content_end <= decoded.raw_start, "content overtook the raw bytes");
        assert!(decoded.done || decoded.raw_start == buffer.len(), "raw bytes left, and no end");
        buffer.truncate(decoded.content_end);
        assert_eq!(decoder.decoded_len(), buffer.len() - 4);
        if decoded.done {
            let unread: usize = pieces[at + 1..].iter().map(|p| p.len()).sum();
            assert!(used + unread <= pieces.concat().len());
            return Ok(Some((buffer.split_off(4), used)));
        }
    }
    Ok(None)
}

/// The same outcome whole, byte by byte, and at every split.
#[track_caller]
fn check(input: &[u8], expected: Result<Option<(&[u8], usize)>, Reject>) {
    let expected = expected.map(|body| body.map(|(content, used)| (content.to_vec(), used)));
    let limits = Limits::DEFAULT;
    assert_eq!(decode(&[input], MAX, &limits), expected, "whole: {}", input.escape_ascii());
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(decode(&bytes, MAX, &limits), expected, "byte by byte: {}", input.escape_ascii());
    for at in 0..input.len() {
        let (a, b) = input.split_at(at);
        assert_eq!(decode(&[a, b], MAX, &limits), expected, "split at {at}: {}", input.escape_ascii());
    }
}

#[track_caller]
fn accepts(input: &[u8], content: &[u8]) {
    check(input, Ok(Some((content, input.len()))));
    let with_next = [input, b"GET / HTTP/1.1"].concat();
    check(&with_next, Ok(Some((content, input.len()))));
    assert_eq!(decode_chunked(input), Ok(Some((content.to_vec(), input.len()))), "the naive twin disagrees");
}

#[track_caller]
fn refuses(input: &[u8], reject: Reject) {
    check(input, Err(reject));
    assert_eq!(decode_chunked(input), Err(()), "the naive twin disagrees");
}

#[test]
fn chunks_are_joined() {
    accepts(b"0\r\n\r\n", b"");
    accepts(b"5\r\nhello\r\n0\r\n\r\n", b"hello");
    accepts(b"5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n", b"hello world");
    accepts(
        b"1a\r\nabcdefghijklmnopqrstuvwxyz\r\nA\r\n0123456789\r\n0\r\n\r\n",
        b"abcdefghijklmnopqrstuvwxyz0123456789",
    );
    accepts(b"4\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n");
}

#[test]
fn a_size_is_one_to_sixteen_hexadecimal_digits() {
    accepts(b"0000000000000005\r\nhello\r\n0\r\n\r\n", b"hello");
    refuses(b"00000000000000005\r\nhello\r\n0\r\n\r\n", Reject::ChunkSize);
    for bad in ["", "g", "-5", "+5", "0x5", "0_5", "5z", " 5", "\"5\"", "5.0", "5\0", ";a"] {
        refuses(format!("{bad}\r\nhello\r\n0\r\n\r\n").as_bytes(), Reject::ChunkSize);
    }
}

#[test]
fn sizes_do_not_wrap() {
    for size in ["10000000000000005", "ffffffffffffffffffff", "500000000000000000"] {
        refuses(format!("{size}\r\nhello\r\n0\r\n\r\n").as_bytes(), Reject::ChunkSize);
    }
    for size in ["100000005", "FFFFFFFFFFFFFFFF", "4000000000000005"] {
        check(format!("{size}\r\nhello\r\n0\r\n\r\n").as_bytes(), Err(Reject::BodyTooLarge));
    }
}

#[test]
fn content_beyond_the_limit_is_refused_at_the_line_that_announces_it() {
    let limits = Limits::DEFAULT;
    let at_limit = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(decode(&[at_limit], 5, &limits), Ok(Some((b"abcde".to_vec(), at_limit.len()))));
    assert_eq!(decode(&[b"3\r\nabc\r\n3\r\n"], 5, &limits), Err(Reject::BodyTooLarge));
    assert_eq!(decode(&[b"3\r\nabc\r\n2\r\n"], 5, &limits), Ok(None));
}

#[test]
fn data_ends_in_crlf_and_nothing_else() {
    for bad in ["5\r\nhello0\r\n\r\n", "5\r\nhello!\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\rX0\r\n\r\n"] {
        refuses(bad.as_bytes(), Reject::ChunkEnd);
    }
    refuses(b"5\nhello\r\n0\r\n\r\n", Reject::ChunkSize);
    refuses(b"5\rXhello\r\n0\r\n\r\n", Reject::ChunkEnd);
    refuses(b"5\r\nhello\r\n\r\n0\r\n\r\n", Reject::ChunkSize);
    refuses(b"6\r\nhello\r\n0\r\n\r\n", Reject::ChunkEnd);
}

#[test]
fn extensions_are_checked_and_dropped() {
    for good in [
        "5;a",
        "5;a=b",
        "5;a=\"b c;d\"",
        "5 ; a = b",
        "5\t;\ta",
        "5;a;b=c;d",
        "5;a=\"\\\"\"",
        "5;a=\"\"",
        "5;a ;b",
        "5;a=b ;c",
        "5;a=\"x\u{e9}\"",
    ] {
        let mut latin1: Vec<u8> = good.chars().map(|c| c as u8).collect();
        latin1.extend_from_slice(b"\r\nhello\r\n0;last\r\n\r\n");
        accepts(&latin1, b"hello");
    }
    for bad in
        ["5 ", "5;", "5;a=", "5;a ", "5;a\0b", "5;a\x07", "5;a=\"b", "5;=b", "5;a=b c", "5;a=\"b\"c", "5;a=\"b\" "]
    {
        refuses(format!("{bad}\r\nhello\r\n0\r\n\r\n").as_bytes(), Reject::ChunkExtension);
    }
    refuses(b"5;a\nb\r\nhello\r\n0\r\n\r\n", Reject::ChunkExtension);
    refuses(b"5;a\rb\r\nhello\r\n0\r\n\r\n", Reject::ChunkEnd);
    refuses(b"2;\nxx\r\n5c\r\n0\r\n\r\n", Reject::ChunkExtension);
}

#[test]
fn trailers_are_checked_and_dropped() {
    accepts(b"1\r\nx\r\n0\r\nX-T: v\r\n\r\n", b"x");
    accepts(b"0\r\nA:\r\nB: \xe9\t\r\nContent-Length: 100\r\n\r\n", b"");
    for bad in ["nonsense", "X-T : v", "X T: v", ": v", "X: a\0", " X: v", "X: a\r\n b", "X-T: v\n"] {
        refuses(format!("0\r\n{bad}\r\n\r\n").as_bytes(), Reject::Trailer);
    }
    refuses(b"0\r\n\n", Reject::Trailer);
}

#[test]
fn a_body_that_is_cut_is_not_done() {
    let whole = b"5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for len in 0..whole.len() {
        assert_eq!(decode(&[&whole[..len]], MAX, &Limits::DEFAULT), Ok(None), "{len} bytes");
        assert_eq!(decode_chunked(&whole[..len]), Ok(None), "{len} bytes, naive");
    }
}

#[test]
fn lines_extensions_and_trailers_are_bounded() {
    let limits = Limits::DEFAULT;
    let line = |len: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(len - 4)).into_bytes();
    assert!(decode(&[&line(256)], MAX, &limits).is_ok());
    assert_eq!(decode(&[&line(257)], MAX, &limits), Err(Reject::ChunkLineTooLong));

    let many = |count: usize| [format!("1;{}\r\nx\r\n", "a".repeat(127)).repeat(count), "0\r\n\r\n".into()].concat();
    assert!(decode(&[many(128).as_bytes()], MAX, &limits).is_ok());
    assert_eq!(decode(&[many(129).as_bytes()], MAX, &limits), Err(Reject::ChunkLineTooLong));

    let trailer = |len: usize| format!("0\r\nX:{}\r\n\r\n", "v".repeat(len - 6)).into_bytes();
    assert!(decode(&[&trailer(8192)], MAX, &limits).is_ok());
    assert_eq!(decode(&[&trailer(8193)], MAX, &limits), Err(Reject::TrailerTooLarge));
    let fields = |count: usize| format!("0\r\n{}\r\n", "X:\r\n".repeat(count)).into_bytes();
    assert!(decode(&[&fields(100)], MAX, &limits).is_ok());
    assert_eq!(decode(&[&fields(101)], MAX, &limits), Err(Reject::TrailerTooLarge));
}

#[test]
fn one_byte_chunks_pass_and_padded_ones_do_not() {
    let limits = Limits::DEFAULT;
    let plain = ["1\r\nx\r\n".repeat(100_000), "0\r\n\r\n".into()].concat();
    assert!(matches!(decode(&[plain.as_bytes()], MAX, &limits), Ok(Some((content, _))) if content.len() == 100_000));
    let padded = ["0000000000000001\r\nx\r\n".repeat(100_000), "0\r\n\r\n".into()].concat();
    assert_eq!(decode(&[padded.as_bytes()], MAX, &limits), Err(Reject::ChunkOverhead));
}

#[test]
fn whatever_the_input_it_equals_the_naive_twin() {
    let parts: [&[u8]; 24] = [
        b"0",
        b"5",
        b"a",
        b"F",
        b"\r\n",
        b"\r\n",
        b"\r\n",
        b"\r",
        b"\n",
        b";",
        b"=",
        b"\"",
        b"\\",
        b" ",
        b"\t",
        b":",
        b"hello",
        b"x",
        b"\0",
        b"\xff",
        b"5\r\nhello\r\n",
        b"0\r\n",
        b"X: y\r\n",
        b"1;a=\"b\"\r\nz\r\n",
    ];
    let mut random = Random::new(7);
    let mut ends = [0; 3];
    for _ in 0..60_000 {
        let mut input = Vec::new();
        for _ in 0..random.len(1, 8) {
            input.extend_from_slice(random.pick::<&[u8]>(&parts));
        }
        let cut = random.len(0, input.len());
        let fast = decode(&[&input[..cut], &input[cut..]], MAX, &Limits::DEFAULT);
        let naive = decode_chunked(&input);
        match (&fast, &naive) {
            (Ok(None), Ok(None)) => ends[0] += 1,
            (Ok(Some(fast)), Ok(Some(naive))) if fast == naive => ends[1] += 1,
            (Err(_), Err(())) => ends[2] += 1,
            _ => panic!("{} is {fast:?}, naive {naive:?}", input.escape_ascii()),
        }
    }
    assert!(ends.iter().all(|&count| count > 100), "some outcome never came: {ends:?}");
}
