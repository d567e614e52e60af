//! RFC 9112 6.3 and 9.3 on raw field lines, once more and with other means.

use sprat::internals::{Decision, decide};
use sprat::{Framing, Limits, Reject, Version};

use super::input::Input;
use super::strict::{self, Field};

/// The decision about any field lines is the naive one; what is refused breaks the rule that is named.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let version = input.pick(&[Version::Http11, Version::Http10]);
    let mut lines = input.rest().to_vec();
    if !lines.is_empty() && !lines.ends_with(b"\r\n") {
        lines.extend(b"\r\n");
    }
    let text = if version == Version::Http11 { "POST / HTTP/1.1\r\n" } else { "POST / HTTP/1.0\r\n" };
    let head = [text.as_bytes(), &lines, b"\r\n"].concat();
    // Other targets ask what a head is. Here it is one.
    let Some(fields) = strict::field_lines(&head[text.len()..]) else { return };
    // Whose Host it is has nothing to do with its body.
    if fields.iter().filter(|field| field.name.eq_ignore_ascii_case("host")).count() > 1 {
        return;
    }
    let limits = Limits { fields_max: 4096, ..Limits::DEFAULT };
    match (decide(&head, &limits), naive(version, &fields)) {
        (Ok(ours), Ok(naive)) => assert_eq!(ours, naive),
        (Err(reject), Err(broken)) => assert!(broken.contains(&reject), "{reject:?}, but broken is {broken:?}"),
        (ours, naive) => panic!("{ours:?}, but it is {naive:?}"),
    }
}

/// The decision, or the rules that these fields break.
pub fn naive(version: Version, fields: &[Field]) -> Result<Decision, Vec<Reject>> {
    let values = |name: &str| -> Vec<String> {
        let named = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value.iter().map(|&b| char::from(b.to_ascii_lowercase())).collect()).collect()
    };
    let mut broken = Vec::new();
    let lengths = values("content-length");
    let codings = values("transfer-encoding");
    let mut framing = Framing::NoBody;

    // 6.3, third and fourth item, and 6.1: any Transfer-Encoding beside chunked alone, in HTTP/1.1, is refused.
    if let [coding, ..] = &codings[..] {
        framing = Framing::Chunked;
        if codings.len() > 1 {
            broken.push(Reject::TransferEncodingTwice);
        }
        if version == Version::Http10 {
            broken.push(Reject::TransferEncodingVersion);
        }
        if !lengths.is_empty() {
            broken.push(Reject::BothFramings);
        }
        if coding != "chunked" {
            let items: Vec<_> = coding.split(',').map(|item| item.trim_matches([' ', '\t'])).collect();
            let (last, before) = items.split_last().expect("a split has an item");
            let is_list = items.iter().all(|item| strict::is_token(item.as_bytes()));
            let is_unknown = is_list && *last == "chunked" && !before.contains(&"chunked");
            broken.push(if is_unknown { Reject::TransferCoding } else { Reject::TransferEncoding });
        }
    }

    // 6.3, fifth and sixth item, and RFC 9110 8.6: one Content-Length of digits.
    if let [length, ..] = &lengths[..] {
        if lengths.len() > 1 {
            broken.push(Reject::ContentLengthTwice);
        }
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit());
        if is_number(length) {
            let significant = length.trim_start_matches('0');
            // Empty: it was nothing but zeros. Too long to be read: larger than any limit.
            let len = if significant.is_empty() { 0 } else { significant.parse().unwrap_or(u64::MAX) };
            framing = if codings.is_empty() { Framing::Length(len) } else { framing };
        } else if length.split(',').all(|item| is_number(item.trim_matches([' ', '\t']))) {
            broken.push(Reject::ContentLengthTwice);
        } else {
            broken.push(Reject::ContentLength);
        }
    }

    // RFC 9110 10.1.1. A 1.0 client expects nothing, and a request without a body has nothing to wait with.
    let expects = values("expect");
    let mut expects_continue = false;
    let joined = expects.join(",");
    let expects: Vec<_> = joined.split(',').map(|e| e.trim_matches([' ', '\t'])).filter(|e| !e.is_empty()).collect();
    if version == Version::Http11 && !expects.is_empty() {
        expects_continue = framing != Framing::NoBody;
        if expects.iter().any(|expected| *expected != "100-continue") {
            broken.push(Reject::Expectation);
        }
    }

    // 9.3: `close` always counts, and 1.0 stays only if asked to.
    let connection = values("connection").join(",");
    let says = |option: &str| connection.split(',').any(|item| item.trim_matches([' ', '\t']) == option);
    let persistent = !says("close") && (version == Version::Http11 || says("keep-alive"));

    if broken.is_empty() { Ok(Decision { framing, persistent, expects_continue }) } else { Err(broken) }
}
