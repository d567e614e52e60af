//! Whether a body is what an extractor reads: of its media type (RFC 9110 8.3), as senders really write it, and plain.

use crate::head::Single;
use crate::rejection::Rejection;
use crate::request::Request;
use crate::status::Status;

/// Refuses a body of another type with 415, whose Accept field names the expected one (RFC 9110 15.5.16).
///
/// - Types have no letter case. Parameters are ignored, well-formed or not, except a `charset` that is neither UTF-8 nor
///   US-ASCII: the bytes would be read as what they are not.
/// - Without the field the body is taken for what is expected: many senders of webhooks leave it out, and the body
///   itself is still read strictly.
/// - The field twice is refused: nobody knows which of them counts.
/// - Content that is coded (RFC 9110 8.4), as by gzip, is refused too, with an Accept-Encoding field: decoding is for
///   who knows how large the content may become.
#[inline]
pub(super) fn expect(
    request: &Request<'_>,
    expected: &'static str,
    accepts: fn(&[u8]) -> bool,
) -> Result<(), Rejection> {
    if request.0.known.content_coded {
        return Err(coded());
    }
    match request.0.known.content_type {
        Single::Absent => Ok(()),
        Single::Once(value) if value == expected.as_bytes() || is_accepted(value, accepts) => Ok(()),
        _ => Err(unsupported(expected)),
    }
}

/// `application/json`, and whatever is built on it: `application/*+json` (RFC 6839 3.1).
pub(super) fn is_json(essence: &[u8]) -> bool {
    if essence.eq_ignore_ascii_case(b"application/json") {
        return true;
    }
    let Some((start, subtype)) = essence.split_at_checked(b"application/".len()) else { return false };
    let Some((name, suffix)) = subtype.split_last_chunk::<5>() else { return false };
    start.eq_ignore_ascii_case(b"application/")
        && suffix.eq_ignore_ascii_case(b"+json")
        && !name.is_empty()
        && name.iter().all(|&b| crate::head::is_token_byte(b))
}

/// `application/x-www-form-urlencoded`.
pub(super) fn is_form(essence: &[u8]) -> bool {
    essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// `media-type = type "/" subtype *( OWS ";" OWS [ parameter ] )`.
fn is_accepted(value: &[u8], accepts: fn(&[u8]) -> bool) -> bool {
    let mut parts = value.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    accepts(parts.next().unwrap_or_default()) && !parts.any(is_foreign_charset)
}

fn is_foreign_charset(parameter: &[u8]) -> bool {
    let Some(equals) = parameter.iter().position(|&b| b == b'=') else { return false };
    let (name, value) = (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
    let unquoted = |quote| value.strip_prefix(&[quote])?.strip_suffix(&[quote]);
    let charset = unquoted(b'"').or_else(|| unquoted(b'\'')).unwrap_or(value);
    let is_charset = if planted!("media_type") { name == b"charset" } else { name.eq_ignore_ascii_case(b"charset") };
    is_charset
        && ![b"utf-8".as_slice(), b"utf8", b"us-ascii", b""].iter().any(|known| charset.eq_ignore_ascii_case(known))
}

#[cold]
fn coded() -> Rejection {
    let message = "expected content without a Content-Encoding";
    refusal(message.to_owned()).field("Accept-Encoding", "identity")
}

#[cold]
fn unsupported(expected: &'static str) -> Rejection {
    refusal(format!("expected {expected} in UTF-8")).field("Accept", expected)
}

fn refusal(message: String) -> Rejection {
    Rejection::json(Status::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accepts: fn(&[u8]) -> bool, value: &str, accepted: bool) {
        assert_eq!(is_accepted(value.as_bytes(), accepts), accepted, "{value:?}");
    }

    #[test]
    fn json_is_taken_as_webhook_senders_write_it() {
        for value in [
            "application/json",
            "Application/JSON;charset=UTF-8",
            "application/json; utf-8",
            "application/json;",
            "application/json ; charset=\"utf-8\"",
            "application/json;charset = utf8",
            "application/json; charset='utf-8'",
            "application/json; charset=us-ascii",
            "application/json; charset=",
            "application/json; version=1; ;;=;",
            "application/vnd.api+json",
            "application/LD+JSON; profile=\"a\"",
        ] {
            check(is_json, value, true);
        }
    }

    #[test]
    fn what_only_resembles_json_is_refused() {
        for value in [
            "",
            ";",
            "text/plain",
            "text/json",
            "application/jsonp",
            "application/jso",
            "application/json5",
            "application/json text/plain",
            "application/json, application/json",
            "application/+json",
            "application/a/b+json",
            "application/a b+json",
            "application/vnd.api-json",
            "applicatio/vnd.api+json",
            "text/vnd.api+json",
            "application/json; charset=utf-16",
            "application/json; charset=\"utf-16\"",
            "application/json; CHARSET=latin1",
            "application/json; charset=utf-8; charset=utf-16",
            "application/x-www-form-urlencoded",
        ] {
            check(is_json, value, false);
        }
    }

    #[test]
    fn a_form_is_urlencoded_and_nothing_else() {
        check(is_form, "application/x-www-form-urlencoded", true);
        check(is_form, "Application/X-WWW-Form-Urlencoded; charset=UTF-8", true);
        check(is_form, "application/x-www-form-urlencoded; charset=iso-8859-1", false);
        check(is_form, "application/x-www-form-urlencode", false);
        check(is_form, "multipart/form-data; boundary=x", false);
        check(is_form, "application/json", false);
    }
}
