//! The Authorization field (RFC 9110 11.4 and 11.6.2), for the schemes whose credentials are one token68.

use crate::head::{Single, is_name};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::status::Status;

/// What stands behind the scheme: `auth-scheme 1*SP token68`. The scheme has no letter case; here it is letters in
/// lower case.
///
/// `None` if the field is missing, names another scheme, holds nothing else, or comes twice: two fields would let two
/// parties see two different clients. The bytes are not looked at; see [`is_token68`].
#[inline]
pub(super) fn credentials<'r, const N: usize>(request: &Request<'r>, scheme: &[u8; N]) -> Option<&'r [u8]> {
    let Single::Once(value) = request.0.known.authorization else { return None };
    let (name, mut token) = value.split_at_checked(N)?;
    if !is_name(name, scheme) || token.first() != Some(&b' ') {
        return None;
    }
    while let [b' ', after @ ..] = token {
        token = after;
    }
    Some(token)
}

/// `token68 = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`.
#[inline]
pub(super) fn is_token68(token: &[u8]) -> bool {
    let mut digits = token;
    while let [before @ .., b'='] = digits {
        digits = before;
    }
    !digits.is_empty() && digits.iter().fold(0, |seen, &byte| seen | NOT_TOKEN68[byte as usize]) == 0
}

/// 401 (RFC 9110 15.5.2): the challenge, and a body that says no more than the status.
#[cold]
pub(super) fn unauthorized(challenge: impl Into<String>) -> Rejection {
    Rejection::json(Status::UNAUTHORIZED, "Unauthorized", "").field("WWW-Authenticate", challenge)
}

/// 1 for each byte that no token68 has before its `=`. One look-up a byte, and no branch.
const NOT_TOKEN68: [u8; 256] = {
    let mut table = [1; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/') {
            table[byte] = 0;
        }
        byte += 1;
    }
    table
};
