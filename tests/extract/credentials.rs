//! `Bearer` and `Basic`.

use sprat::testing::{Answer, Client};
use sprat::{Basic, Bearer, FromRequest, Nothing, Realm, Rejection, Request, constant_time_eq, routes};

use crate::get;

enum Cellar {}

impl Realm for Cellar {
    const NAME: &'static str = "the cellar";
}

routes! {
    Tokens for () { GET "/" => token(auth), POST "/" => upload(auth, body), }
}
routes! {
    Passwords for () { GET "/" => password(auth), }
}

fn token<'r>(_: &mut (), auth: Bearer<'r>) -> &'r str {
    auth.token()
}

fn upload(_: &mut (), _: Bearer<'_>, body: &[u8]) -> String {
    body.len().to_string()
}

fn password(_: &mut (), auth: Basic<Cellar>) -> String {
    format!("{}|{}", auth.user(), auth.password())
}

#[track_caller]
fn accepts_token(value: &str, token: &str) {
    let answer = get(Tokens, &[("Authorization", value)]);
    assert_eq!((answer.status(), answer.text()), (200, token), "{value:?}");
}

#[track_caller]
fn refuses_token(value: &str) {
    is_refusal(&get(Tokens, &[("Authorization", value)]), "Bearer");
}

#[track_caller]
fn is_refusal(answer: &Answer, challenge: &str) {
    assert_eq!((answer.status(), answer.text()), (401, r#"{"error":"Unauthorized"}"#));
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("www-authenticate"), Some(challenge));
}

#[test]
fn the_scheme_has_no_letter_case_and_the_token_has() {
    accepts_token("Bearer tok", "tok");
    accepts_token("bearer tok", "tok");
    accepts_token("BEARER  tok", "tok");
    accepts_token("bEaReR TOK", "TOK");
}

#[test]
fn any_number_of_blanks_but_no_tab_stands_behind_the_scheme() {
    accepts_token("Bearer    tok", "tok");
    refuses_token("Bearer\ttok");
    refuses_token("Bearer \ttok");
    refuses_token("Bearertok");
    refuses_token("Bearer,tok");
}

#[test]
fn a_token_is_missing_or_is_not_one() {
    is_refusal(&get(Tokens, &[]), "Bearer");
    refuses_token("");
    refuses_token("Bearer");
    refuses_token("Bearer ");
    refuses_token("Bearer =");
    refuses_token("Bearer a b");
    refuses_token("Bearer a,b");
    refuses_token("Bearer a=b");
    refuses_token("Bearer a\u{e9}");
    refuses_token("Bearer \"a\"");
    accepts_token("Bearer a", "a");
    accepts_token("Bearer a==", "a==");
}

#[test]
fn a_token_is_made_of_the_bytes_of_token68() {
    accepts_token("Bearer AZaz09-._~+/", "AZaz09-._~+/");
    for byte in 0x21..=0x7e {
        let value = format!("Bearer a{}a", char::from(byte));
        if byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte) {
            accepts_token(&value, &value[7..]);
        } else {
            refuses_token(&value);
        }
    }
}

#[test]
fn another_scheme_is_refused() {
    refuses_token("Basic tok");
    refuses_token("Bear tok");
    refuses_token("Bearers tok");
    refuses_token("tok");
}

#[test]
fn two_authorization_fields_are_refused() {
    accepts_token("Bearer tok", "tok");
    is_refusal(&get(Tokens, &[("Authorization", "Bearer tok"), ("authorization", "Bearer tok")]), "Bearer");
}

#[test]
fn a_missing_token_is_refused_before_the_body_is_read_and_before_100_continue() {
    let mut client = Client::new(Tokens, ());
    let mut link = client.connect();
    link.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n");
    is_refusal(&link.answers()[0], "Bearer");
    assert_eq!(link.answers().len(), 1);
    drop(link);

    let mut link = client.connect();
    link.send(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\nAuthorization: bearer t\r\n\r\n",
    );
    assert_eq!(link.received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    link.send(b"abc");
    assert_eq!(link.answers()[1].text(), "3");
}

#[test]
fn the_debug_text_of_credentials_does_not_hold_them() {
    routes! { Shown for () { GET "/" => shown(basic, bearer), } }
    fn shown(_: &mut (), basic: Result<Basic, Rejection>, bearer: Result<Bearer<'_>, Rejection>) -> String {
        format!("{:?} {:?}", basic.ok(), bearer.ok())
    }
    let answer = get(Shown, &[("Authorization", "Basic YTpzZWNyZXQ=")]);
    assert_eq!(answer.text(), "Some(Basic { user: \"a\", .. }) None");
    let answer = get(Shown, &[("Authorization", "Bearer secret")]);
    assert_eq!(answer.text(), "None Some(Bearer { .. })");
}

#[track_caller]
fn accepts_password(value: &str, shown: &str) {
    let answer = get(Passwords, &[("Authorization", value)]);
    assert_eq!((answer.status(), answer.text()), (200, shown), "{value:?}");
}

#[track_caller]
fn refuses_password(value: &str) {
    let answer = get(Passwords, &[("Authorization", value)]);
    is_refusal(&answer, "Basic realm=\"the cellar\", charset=\"UTF-8\"");
}

#[test]
fn a_user_and_a_password_stand_around_the_first_colon() {
    accepts_password("Basic YTpi", "a|b");
    accepts_password("BASIC   YTpi", "a|b");
    accepts_password("Basic YTpiOmM=", "a|b:c");
    accepts_password("Basic Og==", "|");
    accepts_password("Basic YTo=", "a|");
    accepts_password("Basic OmI=", "|b");
    // "ab"
    refuses_password("Basic YWI=");
    refuses_password("Basic");
    refuses_password("Basic ");
    refuses_password("Bearer YTpi");
}

#[test]
fn base_64_is_strict() {
    accepts_password("Basic YTo=", "a|");
    refuses_password("Basic YTo");
    refuses_password("Basic YTp=");
    refuses_password("Basic YTo==");
    refuses_password("Basic YTo= ,");
    refuses_password("Basic YT-i");
    refuses_password("Basic YT i");
}

#[test]
fn users_and_passwords_are_utf8_without_control_characters() {
    // "é:b", "\xe9:b", "a:\0", "a:\n"
    accepts_password("Basic w6k6Yg==", "é|b");
    refuses_password("Basic 6Tpi");
    refuses_password("Basic YToA");
    refuses_password("Basic YToK");
}

#[test]
fn the_realm_is_restricted_by_default() {
    routes! { Plain for () { GET "/" => plain(auth), } }
    fn plain(_: &mut (), auth: Basic) -> String {
        auth.matches("a", "b").to_string()
    }
    is_refusal(&get(Plain, &[]), "Basic realm=\"restricted\", charset=\"UTF-8\"");
    assert_eq!(get(Plain, &[("Authorization", "Basic YTpi")]).text(), "true");
    assert_eq!(get(Plain, &[("Authorization", "Basic YTpj")]).text(), "false");
    assert_eq!(get(Plain, &[("Authorization", "Basic YTo=")]).text(), "false");
}

#[test]
fn comparison_in_constant_time_is_equality() {
    let secret = *b"0123456789abcdefghi";
    assert!(constant_time_eq(&secret, &secret));
    assert!(constant_time_eq(b"", b""));
    for at in 0..secret.len() {
        for bit in 0..8 {
            let mut other = secret;
            other[at] ^= 1 << bit;
            assert!(!constant_time_eq(&secret, &other));
        }
        assert!(!constant_time_eq(&secret, &secret[..at]));
    }
}

struct App {
    secret: &'static str,
    refused: u32,
}

struct Authorized;

impl<'r> FromRequest<'r, App> for Authorized {
    type Takes = Nothing;
    fn check(request: &Request<'_>, app: &mut App) -> Result<(), Rejection> {
        if Bearer::read(request)?.matches(app.secret) {
            return Ok(());
        }
        app.refused += 1;
        Err(Bearer::unauthorized())
    }
    fn from_request(_: &Request<'r>, (): (), _: &mut App) -> Result<Self, Rejection> {
        Ok(Authorized)
    }
}

#[test]
fn a_guard_of_the_users_own_sees_the_state_and_refuses_before_the_body() {
    routes! { Guarded for App { POST "/" => count(auth, body), } }
    fn count(_: &mut App, _: Authorized, body: &[u8]) -> String {
        body.len().to_string()
    }
    let mut client = Client::new(Guarded, App { secret: "tok", refused: 0 });
    let mut link = client.connect();
    link.send(b"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOK\r\nContent-Length: 3\r\n\r\n");
    is_refusal(&link.answers()[0], "Bearer");
    assert_eq!(link.state().refused, 1);
    link.send(b"abcPOST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tok\r\nContent-Length: 3\r\n\r\n");
    link.send(b"abc");
    assert_eq!(link.answers()[1].text(), "3");
    assert_eq!(link.state().refused, 1);
}
