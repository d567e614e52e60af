//! The Content-Type and Content-Encoding fields of a body, against splitting.

use serde::Deserialize;
use sprat::testing::Client;
use sprat::{Form, Json, Method, routes};

use super::input::{Input, sendable};

routes! {
    Api for () {
        POST "/json" => json(body),
        POST "/form" => form(body),
    }
}

#[derive(Deserialize)]
struct Anything {}

fn json(_: &mut (), Json(Anything {}): Json<Anything>) {}

fn form(_: &mut (), Form(Anything {}): Form<Anything>) {}

/// A body is taken for what the naive reader, which splits the field, takes it for; letter case and a parameter that is
/// no charset change nothing, and a foreign charset, a second line or a coding refuses any.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let parameter = [b";", sendable(input.bytes()).as_slice()].concat();
    let codings: Vec<_> = (0..input.below(3)).map(|_| sendable(input.bytes())).collect();
    let value = sendable(input.rest());
    let (is_json, is_form) = naive(&value);

    let client = &mut Client::new(Api, ());
    let mut taken = |path: &str, value: &[u8]| ask(client, path, &[value], &[]);
    assert_eq!((taken("/json", &value), taken("/form", &value)), (is_json, is_form));
    assert_eq!(taken("/json", &swapped_case(&value)), is_json);
    let longer = [&value[..], &parameter].concat();
    let harmless = naive(&[b"application/json", &parameter[..]].concat()).0;
    assert_eq!((taken("/json", &longer), taken("/form", &longer)), (is_json && harmless, is_form && harmless));
    assert!(!taken("/json", &[&value[..], b" ; Charset = \"latin1\""].concat()));

    assert!(!ask(client, "/json", &[&value, &value], &[]));
    let coded = codings.iter().flat_map(|line| line.split(|&b| b == b',')).any(|coding| {
        let coding = String::from_utf8_lossy(coding).to_lowercase();
        !["", "identity"].contains(&coding.trim_matches([' ', '\t']))
    });
    assert_eq!(ask(client, "/json", &[&value], &codings), is_json && !coded);
    assert_eq!(ask(client, "/form", &[], &codings), !coded);
}

/// Whether a body with these fields was read; if not, the refusal says why not.
fn ask(client: &mut Client<()>, path: &str, types: &[&[u8]], codings: &[Vec<u8>]) -> bool {
    let request = client.request(Method::Post, path).body(if path == "/json" { "{}" } else { "" });
    let request = types.iter().fold(request, |request, value| request.field("Content-Type", value));
    let request = codings.iter().fold(request, |request, value| request.field("Content-Encoding", value));
    let answer = request.send();
    if answer.status() == 204 {
        return true;
    }
    let says_what_is_taken = answer.field("accept").is_some() || answer.field("accept-encoding") == Some("identity");
    assert!(answer.status() == 415 && says_what_is_taken);
    false
}

/// Whether it is JSON's, and whether it is a form's.
fn naive(value: &[u8]) -> (bool, bool) {
    let text: String = value.iter().map(|&b| char::from(b).to_ascii_lowercase()).collect();
    let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
    let essence = parts.next().unwrap_or_default();
    let ours = parts.all(|part| match part.split_once('=') {
        Some((name, charset)) if name.trim_end_matches([' ', '\t']) == "charset" => {
            let names = ["utf-8", "utf8", "us-ascii", ""];
            let charset = charset.trim_start_matches([' ', '\t']);
            names.iter().any(|name| {
                charset == *name || [format!("\"{name}\""), format!("'{name}'")].contains(&charset.to_owned())
            })
        }
        _ => true,
    });
    let built_on = essence.strip_prefix("application/").and_then(|subtype| subtype.strip_suffix("+json"));
    let is_token = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
    };
    let is_json = essence == "application/json" || built_on.is_some_and(is_token);
    (is_json && ours, essence == "application/x-www-form-urlencoded" && ours)
}

fn swapped_case(value: &[u8]) -> Vec<u8> {
    value.iter().map(|b| if b.is_ascii_lowercase() { b.to_ascii_uppercase() } else { b.to_ascii_lowercase() }).collect()
}
