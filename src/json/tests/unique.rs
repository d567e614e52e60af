//! A key that its object repeats is refused, wherever it stands.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Any, Kind, malformed, read, well_formed};

#[derive(Deserialize, Debug)]
struct Resource {
    #[serde(rename = "name")]
    _name: String,
    #[serde(default, rename = "parts")]
    _parts: Vec<Resource>,
}

#[track_caller]
fn repeated<T: serde::de::DeserializeOwned + std::fmt::Debug>(json: &str, path: &str) {
    let refusal = (Kind::Malformed, "duplicate key", path.to_owned());
    assert_eq!(read::<T>(json).map(drop), Err(refusal), "{json}");
}

#[test]
fn a_repeated_key_is_malformed_wherever_it_stands() {
    for (refused, neighbour) in [
        (r#"{"a":1,"a":1}"#, r#"{"a":1,"b":1}"#),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"b":2,"A":3}"#),
        (r#"{"":1,"":2}"#, r#"{"":1," ":2}"#),
        (r#"{"a":1,"\u0061":2}"#, r#"{"a":1,"\u0062":2}"#),
        (r#"{"\/":1,"/":2}"#, r#"{"\\":1,"/":2}"#),
        (r#"{"\ud83d\ude00":1,"😀":2}"#, r#"{"\ud83d\ude01":1,"😀":2}"#),
        (r#"[{"x":{"a":1,"a":2}}]"#, r#"[{"x":{"a":1},"a":2}]"#),
        (r#"{"a":{"b":[1,{"c":2}]},"a":3}"#, r#"{"a":{"a":[1,{"a":2}]},"b":3}"#),
        (r#"{"x":[],"a":{},"y":[[{}]],"a":{}}"#, r#"{"x":[],"a":{},"y":[[{}]],"b":{}}"#),
    ] {
        malformed(refused);
        well_formed(neighbour);
    }
    // These are two keys to a reader that does not normalise, as none should.
    well_formed("{\"\u{e9}\":1,\"e\u{301}\":2}");
}

#[test]
fn a_repeated_key_is_malformed_whatever_the_type() {
    #[derive(Deserialize, Debug)]
    struct Unit;

    #[derive(Deserialize, Debug)]
    enum External {
        #[serde(rename = "v")]
        Variant(IgnoredAny),
    }

    #[derive(Deserialize, Debug)]
    #[serde(tag = "t")]
    enum Internal {
        #[serde(rename = "v")]
        Variant {
            #[serde(rename = "a")]
            _a: u8,
        },
    }

    #[derive(Deserialize, Debug)]
    #[serde(untagged)]
    enum Untagged {
        Text(#[expect(dead_code, reason = "read for its error")] String),
        Other(IgnoredAny),
    }

    #[derive(Deserialize, Debug)]
    struct Flat {
        #[serde(flatten)]
        _rest: HashMap<String, u8>,
    }

    repeated::<HashMap<String, u8>>(r#"{"a":1,"a":2}"#, "");
    repeated::<IgnoredAny>(r#"[1,{"a":1,"a":2}]"#, "");
    repeated::<Option<Any>>(r#"[1,{"a":1,"a":2}]"#, "[1]");
    repeated::<External>(r#"{"v":{"a":1,"a":2}}"#, "v");
    repeated::<Internal>(r#"{"t":"v","a":1,"a":2}"#, "");
    repeated::<Untagged>(r#"{"a":1,"a":2}"#, "");
    repeated::<Flat>(r#"{"a":1,"a":2}"#, "");
    // Of the wrong shape too: that is not looked at.
    repeated::<u8>(r#"{"a":1,"a":2}"#, "");
    repeated::<Unit>(r#"[{"a":1,"a":2}]"#, "");
    repeated::<Vec<u8>>(r#"["x",{"a":1,"a":2}]"#, "");
}

#[test]
fn the_path_of_a_repeated_key_ends_at_the_last_declared_field() {
    repeated::<Resource>(r#"{"name":"a","name":"b"}"#, "");
    repeated::<Resource>(r#"{"name":"a","x":1,"x":2}"#, "");
    repeated::<Resource>(r#"{"name":"a","parts":[{"name":"b"},{"name":"c","name":"d"}]}"#, "parts[1]");
    repeated::<Resource>(r#"{"name":"a","unknown":[{"x":1,"x":2}]}"#, "");
    repeated::<Resource>(r#"{"name":"a","parts":[{"name":"b","secret":{"x":1,"x":2}}]}"#, "parts[0]");
    repeated::<HashMap<String, Resource>>(r#"{"secret":{"name":"a","name":"b"}}"#, "[*]");
}

#[test]
fn a_repeated_key_is_found_among_few_and_many() {
    for count in [2, 3, 8, 31, 32, 33, 34, 100, 1000] {
        let key = |n: usize| format!("\"key_{n:04}_name\":{{\"key\":[{n}]}}");
        let keys: Vec<String> = (0..count).map(key).collect();
        let distinct = |keys: &[String]| format!("{{{}}}", keys.join(","));
        well_formed(distinct(&keys));
        for (first, second) in [(0, count - 1), (0, 1), (count / 2, count - 1), (count - 2, count - 1)] {
            let mut keys = keys.clone();
            keys[second] = key(first);
            if first != second {
                repeated::<IgnoredAny>(&distinct(&keys), "");
            }
        }
    }
}

/// Reads an object of these keys, well within the time that comparing each with each would take.
#[track_caller]
fn is_quick(keys: impl Iterator<Item = String>) {
    let members: Vec<String> = keys.map(|key| format!("\"{key}\":0")).collect();
    let json = format!("{{{}}}", members.join(","));
    let mut bytes = [json.as_bytes(), &[b' '; 64]].concat();
    let start = Instant::now();
    let read: Result<IgnoredAny, _> = super::parse(&mut bytes, json.len(), &mut super::Tape::default());
    assert!(read.is_ok());
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
}

#[test]
fn a_hundred_thousand_keys_take_no_quadratic_time() {
    const COUNT: usize = 100_000;
    is_quick((0..COUNT).map(|n| n.to_string()));
    is_quick((0..COUNT).rev().map(|n| format!("{n:08}")));
    // Alike at both ends and in length: each pair has the same fingerprint.
    is_quick((0..COUNT).map(|n| format!("12345678{n:06}87654321")));
}

#[test]
fn many_small_objects_whose_keys_look_alike_take_no_quadratic_time() {
    let keys: Vec<String> = (10..42).map(|n| format!("\"a{n}z\":0")).collect();
    let object = format!("{{{}}}", keys.join(","));
    let json = format!("[{}0]", format!("{object},").repeat(1_000));
    let start = Instant::now();
    let mut bytes = [json.as_bytes(), &[b' '; 64]].concat();
    let read: Result<IgnoredAny, _> = super::parse(&mut bytes, json.len(), &mut super::Tape::default());
    assert!(read.is_ok());
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
}
