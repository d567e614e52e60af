//! Queries, against splitting and the percent-encoding crate.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};
use sprat::internals::read_query;

use super::input::Input;

/// Any text is read as the pairs between its `&`, decoded as the percent-encoding crate does after `+` became a blank;
/// and any pairs, encoded, come back.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let pairs: Vec<_> = (0..input.below(4)).map(|_| (input.text(), input.text())).collect();
    let query = encode(&pairs);
    assert_eq!(read_query::<Vec<(String, String)>>(&query), Some(pairs));

    let query = String::from_utf8_lossy(input.rest());
    let ours = read_query::<Vec<(Cow<'_, str>, Cow<'_, str>)>>(&query);
    assert_eq!(ours, naive(query.as_bytes()));
}

/// What a browser makes of the fields of a form.
pub fn encode(pairs: &[(String, String)]) -> String {
    let encode = |text: &str| percent_encode(text.as_bytes(), NON_ALPHANUMERIC).to_string().replace("%20", "+");
    pairs.iter().map(|(key, value)| format!("{}={}", encode(key), encode(value))).collect::<Vec<_>>().join("&")
}

/// The pairs in order; `None` if an escape is broken, text is no UTF-8, or they are too many.
pub fn naive(text: &[u8]) -> Option<Vec<(Cow<'static, str>, Cow<'static, str>)>> {
    let decode = |text: &[u8]| {
        let broken = text.split(|&b| b == b'%').skip(1).any(|rest| {
            let digits = rest.get(..2).unwrap_or_default();
            digits.len() < 2 || !digits.iter().all(u8::is_ascii_hexdigit)
        });
        let text: Vec<u8> = text.iter().map(|&b| if b == b'+' { b' ' } else { b }).collect();
        let decoded = String::from_utf8(percent_decode(&text).collect()).ok();
        decoded.filter(|_| !broken).map(Cow::Owned)
    };
    let pieces: Vec<_> = text.split(|&b| b == b'&').filter(|piece| !piece.is_empty()).collect();
    let pairs = pieces.iter().map(|piece| {
        let at = piece.iter().position(|&b| b == b'=').unwrap_or(piece.len());
        Some((decode(&piece[..at])?, decode(piece.get(at + 1..).unwrap_or_default())?))
    });
    pairs.collect::<Option<Vec<_>>>().filter(|pairs| pairs.len() <= 1000)
}
