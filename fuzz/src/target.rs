//! Request-targets: their parts, and how paths are decoded.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sprat::internals::{percent_decode, understand};
use sprat::testing::Client;
use sprat::{Limits, Rest, TargetForm, routes};

use super::input::Input;
use super::strict;

routes! {
    Segments for Vec<String> {
        GET "/one/{text}"  => one(text),
        GET "/all/{*rest}" => all(rest),
    }
}

fn one(seen: &mut Vec<String>, text: String) {
    seen.push(text);
}

fn all(seen: &mut Vec<String>, rest: Rest<'_>) {
    seen.extend(rest.segments());
}

/// An accepted target is the sum of its parts and holds no dot segment however it is decoded; decoding equals the
/// percent-encoding crate's; and any text, encoded, comes back from a path parameter.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let method = input.pick(&["GET", "OPTIONS", "CONNECT", "POST"]);
    let text = input.text();
    check_round_trip(&text);
    check_target(method, &String::from_utf8_lossy(input.rest()));
}

fn check_target(method: &str, target: &str) {
    let head = format!("{method} {target} HTTP/1.1\r\nHost: host.of:field\r\n\r\n").replace("host.of:field", "h:1");
    if target.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control()) {
        return;
    }
    let Ok(head) = understand(head.as_bytes(), &Limits::DEFAULT) else { return };
    let (path, query) = (&*head.path, head.query.as_deref());
    let path_and_query = query.map_or(path.to_owned(), |query| format!("{path}?{query}"));
    let host = head.host.as_deref().unwrap();
    assert!(strict::is_host(host.as_bytes()));
    match head.form {
        TargetForm::Origin => assert_eq!((path_and_query.as_str(), host), (target, "h:1")),
        TargetForm::Asterisk => assert_eq!((target, method, path, query), ("*", "OPTIONS", "*", None)),
        TargetForm::Authority => assert_eq!((target, method, path, query), (host, "CONNECT", "", None)),
        TargetForm::Absolute => {
            let (scheme, rest) = target.split_once("://").unwrap();
            assert!(["http", "https"].contains(&&*scheme.to_lowercase()));
            // An empty path is "/".
            let from_path = rest.strip_prefix(host).unwrap();
            assert!(path_and_query == from_path || path_and_query == format!("/{from_path}"));
        }
    }
    if matches!(head.form, TargetForm::Origin | TargetForm::Absolute) {
        let decoded: Vec<u8> = percent_decode_str(path).collect();
        assert_eq!(percent_decode(path).as_ref(), Some(&decoded), "{path}");
        let decoded = String::from_utf8(decoded).unwrap();
        assert!(path.starts_with('/') && !decoded.contains('\0'));
        assert!(path.split('/').all(|segment| {
            let decoded = percent_decode_str(segment).decode_utf8().unwrap();
            !matches!(&*decoded, "." | "..")
        }));
        assert_eq!(head.escaped, path.contains('%'));
    }
}

/// Through the router, as a parameter and as a rest of two segments.
fn check_round_trip(text: &str) {
    let escapes_are_good = text.split('%').skip(1).all(|rest| {
        let digits = rest.get(..2).unwrap_or_default();
        digits.len() == 2 && digits.chars().all(|c| c.is_ascii_hexdigit())
    });
    let decoded = percent_decode(text);
    assert_eq!(decoded, escapes_are_good.then(|| percent_decode_str(text).collect()));

    let encoded = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    assert_eq!(percent_decode(&encoded), Some(text.as_bytes().to_vec()));
    // No text is refused but these, and `;` ends a dot segment only where it is not encoded.
    let is_good = !text.is_empty() && !text.contains('\0') && !matches!(text, "." | "..");
    let mut client = Client::new(Segments, Vec::new());
    let answer = client.get(&format!("/one/{encoded}"));
    assert_eq!(answer.status() == 204, is_good, "{text:?}");
    if is_good {
        client.get(&format!("/all/{encoded}/{encoded}"));
        assert_eq!(*client.state(), [text, text, text]);
    }
}
