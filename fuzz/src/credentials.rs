//! Credentials of the Authorization field, against splitting and the base64 crate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sprat::testing::Client;
use sprat::{Basic, Bearer, Method, routes};

use super::input::{Input, sendable};

routes! {
    Api for () {
        GET "/bearer"  => bearer(auth),
        GET "/perhaps" => perhaps(auth),
        GET "/basic"   => basic(auth),
    }
}

fn bearer(_: &mut (), auth: Bearer<'_>) -> String {
    assert!(auth.matches(auth.token()) && !auth.matches(format!("{}x", auth.token())));
    auth.token().to_owned()
}

fn perhaps(_: &mut (), auth: Option<Bearer<'_>>) -> String {
    auth.map_or("nobody!".to_owned(), |auth| auth.token().to_owned())
}

fn basic(_: &mut (), auth: Basic) -> String {
    assert!(auth.matches(auth.user(), auth.password()));
    assert!(!auth.matches(auth.user(), &format!("{}x", auth.password())));
    format!("{}\n{}", auth.user(), auth.password())
}

/// Any Authorization fields are read as the naive reader does, which splits and leaves base 64 to another crate; and a
/// user with a password comes back as it was.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (user, password) = (sayable(&input.text(), ":"), sayable(&input.text(), ""));
    let pair = STANDARD.encode(format!("{user}:{password}"));
    assert_eq!(ask("/basic", &[format!("bASIC  {pair}").into_bytes()]), Some(format!("{user}\n{password}")));

    // Nearly the same: another byte in one of the last places.
    let mut near = pair.into_bytes();
    let last = near.len() - 1;
    near[last - input.below(4)] = input.byte();
    check_lines(&[sendable(&[b"Basic ", &near[..]].concat())]);
    check_lines(&(0..input.below(3)).map(|_| sendable(input.bytes())).collect::<Vec<_>>());
}

fn check_lines(lines: &[Vec<u8>]) {
    let token = naive(lines, "bearer").filter(|token| is_token(token)).map(str::to_owned);
    let absent = lines.is_empty().then(|| "nobody!".to_owned());
    assert_eq!(ask("/bearer", lines), token);
    assert_eq!(ask("/perhaps", lines), token.or(absent));
    let text = naive(lines, "basic").and_then(|token| String::from_utf8(STANDARD.decode(token).ok()?).ok());
    let text = text.filter(|text| *text == sayable(text, ""));
    let pair = text.as_ref().and_then(|text| text.split_once(':'));
    assert_eq!(ask("/basic", lines), pair.map(|(user, password)| format!("{user}\n{password}")));
}

/// What the handler made of it, unless it was refused.
fn ask(path: &str, lines: &[Vec<u8>]) -> Option<String> {
    let mut client = Client::new(Api, ());
    let request = client.request(Method::Get, path);
    let answer = lines.iter().fold(request, |request, line| request.field("Authorization", line)).send();
    if answer.status() == 200 {
        return Some(answer.text().to_owned());
    }
    let challenge = answer.field("www-authenticate").expect("a refusal challenges");
    assert!(answer.status() == 401 && challenge.starts_with(if path == "/basic" { "Basic " } else { "Bearer" }));
    None
}

/// What stands behind the scheme in the one field that there may be.
fn naive<'l>(lines: &'l [Vec<u8>], scheme: &str) -> Option<&'l str> {
    let [line] = lines else { return None };
    let text = std::str::from_utf8(line).ok()?.trim_matches([' ', '\t']);
    let (name, token) = text.split_once(' ')?;
    name.eq_ignore_ascii_case(scheme).then(|| token.trim_start_matches(' '))
}

fn is_token(token: &str) -> bool {
    let start = token.trim_end_matches('=');
    !start.is_empty() && start.chars().all(|c| c.is_ascii_alphanumeric() || "-._~+/".contains(c))
}

/// Without control characters, and these.
fn sayable(text: &str, without: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\0'..='\u{1f}' | '\u{7f}') && !without.contains(*c)).collect()
}
