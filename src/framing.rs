//! Decides where a request's body ends, and whether the connection outlives the answer.
//!
//! Pure: looks at the head only, reads no bytes. Refuses every message that two parsers could frame differently
//! (RFC 9112 6.3). Does not decode chunks; see `chunked`.

use crate::head::{Expect, Known, Version};
use crate::reject::Reject;

/// How the end of a request's body is known (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No Content-Length and no Transfer-Encoding: there is no body.
    NoBody,
    /// This many bytes follow the head.
    Length(u64),
    /// Chunks follow the head.
    Chunked,
}

/// What a head says about its body and its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the connection may serve another request (RFC 9112 9.3).
    pub persistent: bool,
    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 10.1.1).
    pub expects_continue: bool,
}

impl Decision {
    /// Whether content is announced. Chunks may still turn out to hold none.
    #[inline(always)]
    pub(crate) fn has_body(&self) -> bool {
        !matches!(self.framing, Framing::NoBody | Framing::Length(0))
    }
}

/// RFC 9112 6.3 and 9.3, and RFC 9110 10.1.1 for `Expect`.
#[inline(always)]
pub(crate) fn decide(version: Version, known: &Known<'_>) -> Result<Decision, Reject> {
    let framing = match (known.transfer_encoding, known.content_length) {
        (None, None) => Framing::NoBody,
        (None, Some(value)) => Framing::Length(content_length(value)?),
        (Some(_), _) if version == Version::Http10 => return Err(Reject::TransferEncodingVersion),
        (Some(_), Some(_)) => return Err(Reject::BothFramings),
        (Some(value), None) => transfer_encoding(value)?,
    };
    let persistent = match version {
        Version::Http11 => !known.close,
        Version::Http10 => known.keep_alive && !known.close,
    };
    let expects_continue = match known.expect {
        Expect::Nothing => false,
        // A server ignores the expectation of an HTTP/1.0 client.
        _ if version == Version::Http10 => false,
        Expect::Continue => framing != Framing::NoBody,
        Expect::Unknown => return Err(Reject::Expectation),
    };
    Ok(Decision { framing, persistent, expects_continue })
}

/// `Content-Length = 1*DIGIT` (RFC 9110 8.6). A number too large for us is too large a body, not a syntax error.
fn content_length(value: &[u8]) -> Result<u64, Reject> {
    if value.is_empty() {
        return Err(Reject::ContentLength);
    }
    let mut length: u64 = 0;
    for &byte in value {
        match byte {
            // Saturating: `u64::MAX` is above every limit, and the digits behind it still have to be digits.
            b'0'..=b'9' => length = length.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
            b'+' if planted!("framing") => {}
            _ => return Err(no_length(value)),
        }
    }
    Ok(length)
}

/// `5, 5` is what a proxy makes of two lines; it may be refused, and is. `5,` and `5, x` are no list at all.
#[cold]
fn no_length(value: &[u8]) -> Reject {
    let digits = |item: &[u8]| !item.is_empty() && item.iter().all(u8::is_ascii_digit);
    if value.split(|&b| b == b',').map(<[u8]>::trim_ascii).all(digits) {
        Reject::ContentLengthTwice
    } else {
        Reject::ContentLength
    }
}

/// `Transfer-Encoding = #( token *( OWS ";" OWS parameter ) )` (RFC 9112 6.1). Only `chunked` alone is taken.
fn transfer_encoding(value: &[u8]) -> Result<Framing, Reject> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(Framing::Chunked);
    }
    Err(refused_codings(value))
}

/// 501 for codings that are not known here, with `chunked` behind them; 400 for what is no list of codings, or has
/// `chunked` anywhere but at its end: then the end of the body cannot be known (RFC 9112 6.3).
#[cold]
fn refused_codings(value: &[u8]) -> Reject {
    let codings = || value.split(|&b| b == b',').map(|c| c.trim_ascii());
    let is_token = |c: &[u8]| !c.is_empty() && c.iter().all(|&b| crate::head::is_token_byte(b));
    let is_chunked = |c: &[u8]| c.eq_ignore_ascii_case(b"chunked");
    let count = codings().count();
    let ends_in_chunked = codings().position(is_chunked) == Some(count - 1);
    if codings().all(is_token) && ends_in_chunked { Reject::TransferCoding } else { Reject::TransferEncoding }
}
