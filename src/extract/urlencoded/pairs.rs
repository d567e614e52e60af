//! Bytes to decoded keys and values.
//!
//! Pairs stand between `&`; empty ones are passed over, and one without `=` has an empty value. `+` is a blank. Unlike
//! browsers, which never send such, a `%` without two hexadecimal digits and text that is no UTF-8 are refused.

use std::borrow::Cow;

use super::Fault;
use crate::target::hex_value;

#[derive(Debug, Default)]
pub(super) struct Pair<'r> {
    pub(super) key: Cow<'r, str>,
    pub(super) value: Cow<'r, str>,
}

pub(super) fn of_query(query: &str) -> impl Iterator<Item = Result<Pair<'_>, Fault>> {
    query.split('&').filter(|piece| !piece.is_empty()).map(|piece| {
        let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
        Ok(Pair { key: decoded(key)?, value: decoded(value)? })
    })
}

pub(super) fn of_form(form: &mut [u8]) -> impl Iterator<Item = Result<Pair<'_>, Fault>> {
    form.split_mut(|&b| b == b'&').filter(|piece| !piece.is_empty()).map(|piece| {
        let key_len = piece.iter().position(|&b| b == b'=').unwrap_or(piece.len());
        let (key, rest) = piece.split_at_mut(key_len);
        let value = rest.get_mut(1..).unwrap_or_default();
        Ok(Pair { key: Cow::Borrowed(decoded_in_place(key)?), value: Cow::Borrowed(decoded_in_place(value)?) })
    })
}

/// Borrowed if there is nothing to decode.
fn decoded(text: &str) -> Result<Cow<'_, str>, Fault> {
    if !text.bytes().any(|b| is_encoded(b) && !(planted!("query") && b == b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = text.as_bytes().to_vec();
    let len = decode(&mut bytes)?;
    bytes.truncate(len);
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| not_utf8())
}

fn decoded_in_place(bytes: &mut [u8]) -> Result<&str, Fault> {
    let len = decode(bytes)?;
    std::str::from_utf8(bytes.get(..len).unwrap_or_default()).map_err(|_| not_utf8())
}

/// Decodes to the front, and returns how many bytes that gives.
fn decode(bytes: &mut [u8]) -> Result<usize, Fault> {
    let Some(first) = bytes.iter().position(|&b| is_encoded(b)) else { return Ok(bytes.len()) };
    // INVARIANT: written <= read <= bytes.len()
    let mut written = first;
    let mut read = first;
    while let Some(&byte) = bytes.get(read) {
        let (decoded, len) = match byte {
            b'+' if !planted!("form") => (b' ', 1),
            b'%' => (escape(bytes.get(read + 1..read + 3)).ok_or_else(not_escape)?, 3),
            byte => (byte, 1),
        };
        bytes[written] = decoded;
        written += 1;
        read += len;
    }
    Ok(written)
}

fn escape(digits: Option<&[u8]>) -> Option<u8> {
    match digits? {
        &[high, low] => Some(hex_value(high)? << 4 | hex_value(low)?),
        _ => None,
    }
}

fn is_encoded(byte: u8) -> bool {
    matches!(byte, b'%' | b'+')
}

#[cold]
fn not_escape() -> Fault {
    Fault::malformed("a % is not followed by two hexadecimal digits")
}

#[cold]
fn not_utf8() -> Fault {
    Fault::malformed("a key or a value is not UTF-8")
}
