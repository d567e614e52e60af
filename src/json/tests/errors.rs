//! Where an error says it is, and what it must not say.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::{JsonError, Kind, Tape, parse};
use super::misshapen;

#[derive(Deserialize, Debug)]
#[expect(dead_code, reason = "read for their errors")]
struct Order {
    items: Vec<Item>,
    #[serde(default)]
    limits: HashMap<String, Item>,
    #[serde(default, rename = "content-type")]
    content_type: Option<String>,
    #[serde(default)]
    pair: Option<(u8, Vec<bool>)>,
    #[serde(default, alias = "alt")]
    named: u8,
}

#[derive(Deserialize, Debug)]
#[expect(dead_code, reason = "read for their errors")]
struct Item {
    price: u8,
    #[serde(default, rename = "a\"b")]
    quoted: Option<bool>,
    #[serde(default, rename = "2nd")]
    second: Option<bool>,
}

#[test]
fn a_path_leads_to_the_value() {
    let byte = "expected an integer from 0 to 255";
    misshapen::<Order>(r#"{"items":[{"price":1},{"price":1},{"price":"x"}]}"#, byte, "items[2].price");
    misshapen::<Order>(r#"{"items":{}}"#, "expected an array", "items");
    misshapen::<Order>(r#"{"items":[1]}"#, "expected an object", "items[0]");
    misshapen::<Order>(r#"{"items":[{}]}"#, "missing field", "items[0].price");
    misshapen::<Order>(r#"{"items":[],"pair":[1,[true,false,0]]}"#, "expected a boolean", "pair[1][2]");
    misshapen::<Order>(r#"{"items":[[true]]}"#, "expected an object", "items[0]");
    misshapen::<Vec<Vec<u8>>>("[[],[1,null]]", byte, "[1][1]");
}

#[test]
fn names_that_are_no_words_are_quoted_in_a_path() {
    let boolean = "expected a boolean";
    misshapen::<Order>(r#"{"items":[],"content-type":1}"#, "expected a string", r#"["content-type"]"#);
    misshapen::<Order>(r#"{"items":[{"a\"b":1}]}"#, boolean, r#"items[0]["a\"b"]"#);
    misshapen::<Order>(r#"{"items":[{"2nd":1}]}"#, boolean, r#"items[0]["2nd"]"#);
}

#[test]
fn the_first_missing_field_is_named() {
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "read for their errors")]
    struct Three {
        first: u8,
        second: u8,
        third: Option<u8>,
    }
    misshapen::<Three>("{}", "missing field", "first");
    misshapen::<Three>(r#"{"first":1}"#, "missing field", "second");
    misshapen::<Three>(r#"{"first":1,"secod":2}"#, "missing field", "second");
    misshapen::<Vec<Three>>(r#"[{"second":1}]"#, "missing field", "[0].first");
}

#[test]
fn two_spellings_of_one_field_are_of_the_wrong_shape() {
    misshapen::<Order>(r#"{"items":[],"named":1,"alt":2}"#, "duplicate field", "named");
    let byte = "expected an integer from 0 to 255";
    misshapen::<Order>(r#"{"items":[],"alt":"x"}"#, byte, "alt");
}

#[track_caller]
fn refusal<T: serde::de::DeserializeOwned>(json: &str) -> JsonError {
    let mut bytes = [json.as_bytes(), &[b' '; 64]].concat();
    match parse::<T>(&mut bytes, json.len(), &mut Tape::default()) {
        Ok(_) => panic!("{json} was read"),
        Err(error) => error,
    }
}

#[test]
fn nothing_the_peer_wrote_is_repeated() {
    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read for their errors")]
    struct Strict {
        a: std::net::IpAddr,
        b: HashMap<u8, Level>,
    }
    #[derive(Deserialize, Debug)]
    #[serde(tag = "secret")]
    enum Level {
        Low,
    }
    for json in [
        r#"{"sEcReT":1}"#,
        r#"{"a":"sEcReT"}"#,
        r#"{"b":{"sEcReT":{}}}"#,
        r#"{"b":{"1":{"secret":"sEcReT"}}}"#,
        r#"{"b":{"1":"sEcReT"}}"#,
        r#"{"sEcReT":1,"sEcReT":2}"#,
        r#"["sEcReT"]"#,
        r#""sEcReT""#,
        r#""sEcReT"#,
    ] {
        let error = refusal::<Strict>(json);
        let said = format!("{error} {} {}", error.message(), error.path());
        assert!(!said.contains("sEcReT"), "{said}");
        assert_eq!(said, said.to_ascii_lowercase());
    }
    assert_eq!(refusal::<HashMap<String, Vec<u8>>>(r#"{"secret":[true]}"#).path().to_string(), "[*][0]");
}

#[test]
fn what_is_no_json_says_at_which_byte() {
    for (json, said) in [
        (r#"{"a":1,}"#, "malformed json at byte 7"),
        (r#"{"a" 1}"#, "malformed json at byte 5"),
        (r#"{"a":tru}"#, "malformed json at byte 5"),
        (r#"{"\u00e9\n":1,"b":True}"#, "malformed json at byte 18"),
        ("[1 2]", "malformed json at byte 3"),
        ("[1,", "malformed json at byte 2"),
        ("[1] 2", "malformed json at byte 2"),
        ("[01]", "malformed json at byte 2"),
        ("[1e999]", "malformed json at byte 1"),
        // A number that ends too early lacks the byte behind it.
        ("-", "malformed json at byte 1"),
        ("[-]", "malformed json at byte 2"),
        // What is inside a string, or found before anything is walked through, has no place.
        (r#"["a","\x"]"#, "malformed json: invalid escape"),
        (r#"["a","\ud800"]"#, "malformed json: invalid escape"),
        (r#"["a"#, "malformed json"),
        ("[\"\n\"]", "malformed json"),
    ] {
        assert_eq!(refusal::<IgnoredAny>(json).to_string(), said, "{json}");
    }
    let too_deep = "[".repeat(129);
    assert_eq!(refusal::<IgnoredAny>(&too_deep).to_string(), "nesting deeper than 128 levels at byte 128");
}

#[test]
fn the_words_of_a_foreign_type_are_kept_apart() {
    #[derive(Debug)]
    struct Even;
    impl<'de> Deserialize<'de> for Even {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let int = u64::deserialize(deserializer)?;
            Err(serde::de::Error::custom(format_args!("{int} is not even")))
        }
    }
    let error = refusal::<Vec<Even>>("[7]");
    assert_eq!((error.kind(), error.message()), (Kind::Shape, "invalid value"));
    assert_eq!(error.detail(), Some("7 is not even"));
    assert_eq!(error.to_string(), "invalid value at [0]");
    let error = refusal::<std::num::NonZeroU8>("0");
    assert_eq!(error.detail(), Some("expected a nonzero u8"));
    assert_eq!(refusal::<u8>("-1").detail(), None);
}

#[test]
fn an_error_is_one_pointer_wide() {
    assert_eq!(size_of::<Result<(), JsonError>>(), size_of::<usize>());
}
