//! What a value is written as.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Serialize, Serializer};

use super::super::write;
use super::{Any, well_formed};
use crate::testing::Random;

#[track_caller]
fn written<T: Serialize + ?Sized>(value: &T, json: &str) {
    let mut out = b"before ".to_vec();
    write(&mut out, value).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), format!("before {json}"));
    well_formed(json);
}

#[track_caller]
fn refused<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = b"before".to_vec();
    let error = write(&mut out, value).unwrap_err();
    assert_eq!(out, b"before", "what had been written is taken back");
    error.to_string()
}

#[test]
fn every_kind_of_value_is_written_without_spaces() {
    #[derive(Serialize)]
    struct Unit;
    #[derive(Serialize)]
    struct Meters(f64);
    #[derive(Serialize)]
    struct Pair(u8, bool);
    #[derive(Serialize)]
    struct Empty {}
    #[derive(Serialize)]
    struct Named<'a> {
        status: &'a str,
        id: Option<u64>,
        inner: Empty,
    }
    #[derive(Serialize)]
    enum Shape {
        Dot,
        Circle(u8),
        Line(u8, u8),
        Box { w: u8, h: u8 },
    }

    written(&true, "true");
    written(&false, "false");
    written(&(), "null");
    written(&None::<u8>, "null");
    written(&Some(1), "1");
    written(&Unit, "null");
    written(&Meters(1.5), "1.5");
    written(&Pair(1, true), "[1,true]");
    written(&'\u{e9}', "\"\u{e9}\"");
    written("", "\"\"");
    written(&[0_u8; 0], "[]");
    written(&(1, "a", [1.0, 2.5]), "[1,\"a\",[1.0,2.5]]");
    written(&Empty {}, "{}");
    let named = Named { status: "ok", id: Some(42), inner: Empty {} };
    written(&named, r#"{"status":"ok","id":42,"inner":{}}"#);
    written(&Shape::Dot, "\"Dot\"");
    written(&Shape::Circle(1), r#"{"Circle":1}"#);
    written(&Shape::Line(1, 2), r#"{"Line":[1,2]}"#);
    written(&Shape::Box { w: 1, h: 2 }, r#"{"Box":{"w":1,"h":2}}"#);
    written(&[Shape::Dot, Shape::Line(3, 4)], r#"["Dot",{"Line":[3,4]}]"#);
    written(&Ipv4Addr::LOCALHOST, "\"127.0.0.1\"");
    written(&format_args!("a\"{}", 1), r#""a\"1""#);
}

#[test]
fn integers_are_written_in_full() {
    written(&[i8::MIN, i8::MAX], "[-128,127]");
    written(&[i64::MIN, i64::MAX], "[-9223372036854775808,9223372036854775807]");
    written(&u64::MAX, "18446744073709551615");
    // Beyond 64 bits it is read back as a float only; it is a JSON number all the same.
    written(&u128::MAX, "340282366920938463463374607431768211455");
    written(&i128::MIN, "-170141183460469231731687303715884105728");
}

#[test]
fn floats_are_written_so_that_they_read_back_equal() {
    written(&[0.0, -0.0, 1.0, 0.1, -1.5e300], "[0.0,-0.0,1.0,0.1,-1.5e300]");
    written(&0.1_f32, "0.1");
    written(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY], "[null,null,null]");
    written(&f32::NAN, "null");
    let mut random = Random::new(7);
    for _ in 0..10_000 {
        let float = f64::from_bits(random.next());
        if float.is_finite() {
            let mut out = Vec::new();
            write(&mut out, &float).unwrap();
            assert_eq!(super::read::<f64>(&out).map(f64::to_bits), Ok(float.to_bits()));
        }
    }
}

#[test]
fn strings_are_escaped_at_every_place() {
    written("\"\\\u{8}\u{c}\n\r\t\0\x1F\x7F/", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7F/\"");
    written("\u{e9}\u{20ac}\u{1f600}\u{2028}", "\"\u{e9}\u{20ac}\u{1f600}\u{2028}\"");
    let mut text = String::new();
    for length in 0..40 {
        for place in 0..length {
            for odd in ['"', '\\', '\n', '\0', '\x1F', ' ', '!', '#', '[', '\u{7f}', '\u{e9}', '\u{dc}'] {
                text.clear();
                text.extend((0..length).map(|at| if at == place { odd } else { 'x' }));
                let mut out = Vec::new();
                write(&mut out, &text).unwrap();
                let must = odd < ' ' || odd == '"' || odd == '\\';
                assert_eq!(out.contains(&b'\\'), must, "{text:?}");
                assert_eq!(super::read::<String>(&out).as_ref(), Ok(&text));
            }
        }
    }
}

#[test]
fn keys_are_written_as_strings() {
    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Level {
        Low,
    }
    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    struct Id(u8);
    #[derive(Serialize)]
    struct Renamed {
        #[serde(rename = "a\"\n")]
        short: u8,
        #[serde(rename = "a rather long name with a \\ in it")]
        long: u8,
    }
    written(&BTreeMap::from([("a\"", 1), ("b", 2)]), r#"{"a\"":1,"b":2}"#);
    written(&BTreeMap::from([(-1, true)]), r#"{"-1":true}"#);
    written(&BTreeMap::from([(u128::MAX, 0)]), &format!("{{\"{}\":0}}", u128::MAX));
    written(&BTreeMap::from([('"', 1)]), r#"{"\"":1}"#);
    written(&BTreeMap::from([(false, 1), (true, 2)]), r#"{"false":1,"true":2}"#);
    written(&BTreeMap::from([(Level::Low, 1)]), r#"{"Low":1}"#);
    written(&BTreeMap::from([(Id(7), 1)]), r#"{"7":1}"#);
    written(&BTreeMap::from([(Ipv4Addr::LOCALHOST, 1)]), r#"{"127.0.0.1":1}"#);
    written(&Renamed { short: 1, long: 2 }, r#"{"a\"\n":1,"a rather long name with a \\ in it":2}"#);
}

#[test]
fn a_key_of_another_kind_is_refused_and_taken_back() {
    assert!(refused(&BTreeMap::from([((), 1)])).starts_with("a key of a map is neither"));
    refused(&BTreeMap::from([([1], 1)]));
    refused(&BTreeMap::from([((1, 2), 1)]));
    refused(&BTreeMap::from([(None::<u8>, 1)]));
    refused(&[BTreeMap::from([("a", BTreeMap::from([(vec![1], 1)]))])]);
    written(&[BTreeMap::from([("a", BTreeMap::from([("1", 1)]))])], r#"[{"a":{"1":1}}]"#);
}

#[test]
fn an_error_of_the_value_is_passed_on_and_what_was_written_is_taken_back() {
    struct Faulty;
    impl Serialize for Faulty {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("out of ink"))
        }
    }
    struct Silent;
    impl std::fmt::Display for Silent {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    impl Serialize for Silent {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }
    assert_eq!(refused(&(1, "a", Faulty)), "out of ink");
    assert_eq!(refused(&(1, Silent)), "a Display implementation failed");
}

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Any::Null => serializer.serialize_unit(),
            Any::Bool(bool) => serializer.serialize_bool(*bool),
            Any::Unsigned(int) => serializer.serialize_u64(*int),
            Any::Signed(int) => serializer.serialize_i64(*int),
            Any::Float(float) => serializer.serialize_f64(*float),
            Any::Text(text) => serializer.serialize_str(text),
            Any::Array(elements) => serializer.collect_seq(elements),
            Any::Object(members) => serializer.collect_map(members.iter().map(|(k, v)| (k, v))),
        }
    }
}

#[test]
fn what_is_written_reads_back_equal() {
    fn build(random: &mut Random, depth: usize) -> Any {
        let text = |random: &mut Random| {
            let length = random.below(40);
            (0..length).map(|_| random.pick(&['a', '"', '\\', '\u{1}', '\u{e9}', '\u{1f600}', ' '])).collect()
        };
        match random.below(if depth == 0 { 6 } else { 8 }) {
            0 => Any::Null,
            1 => Any::Bool(random.below(2) == 0),
            2 => Any::Unsigned(random.next() >> random.below(64)),
            3 => Any::Signed(-1 - (random.next() >> random.between(1, 60)) as i64),
            4 => Any::Float(random.next() as f64 / 1e7 + 0.5),
            5 => Any::Text(text(random)),
            6 => Any::Array((0..random.below(6)).map(|_| build(random, depth - 1)).collect()),
            _ => {
                let count = random.below(6);
                let key = |random: &mut Random, n| format!("{n}{}", text(random) as String);
                let member = |n| (key(random, n), build(random, depth - 1));
                Any::Object((0..count).map(member).collect())
            }
        }
    }

    let mut random = Random::new(99);
    for _ in 0..3_000 {
        let value = build(&mut random, 4);
        let mut out = Vec::new();
        write(&mut out, &value).unwrap();
        assert_eq!(super::read::<Any>(&out), Ok(value), "{}", String::from_utf8_lossy(&out));
    }
}
