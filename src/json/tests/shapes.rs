//! Serde's data model: what each kind of type is read from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::{Tape, parse};
use super::{accepted, misshapen};

#[derive(Deserialize, Debug, PartialEq)]
struct Point {
    x: u8,
    y: u8,
}

#[test]
fn plain_types_are_read_from_their_json_kind() {
    accepted("true", true);
    misshapen::<bool>("1", "expected a boolean", "");
    misshapen::<bool>("\"true\"", "expected a boolean", "");
    accepted("\"a\\n\"", "a\n".to_owned());
    misshapen::<String>("1", "expected a string", "");
    accepted("\"\u{e9}\"", '\u{e9}');
    misshapen::<char>("\"\"", "expected a single character", "");
    misshapen::<char>("\"ab\"", "expected a single character", "");
    accepted("null", ());
    misshapen::<()>("0", "expected null", "");
    accepted("null", None::<u8>);
    accepted("7", Some(7_u8));
    misshapen::<Option<u8>>("\"\"", "expected an integer from 0 to 255", "");
    accepted("[{\"a\":[]}]", IgnoredAny);
    accepted("\"127.0.0.1\"", Ipv4Addr::LOCALHOST);
    misshapen::<Ipv4Addr>("\"127.0.0\"", "invalid value", "");
}

#[test]
fn sequences_and_tuples_are_read_from_arrays() {
    accepted("[1,2,3]", vec![1_u8, 2, 3]);
    accepted("[]", Vec::<u8>::new());
    accepted("[1,\"a\",null]", (1_u8, "a".to_owned(), ()));
    accepted("[1,2]", [1_u8, 2]);
    misshapen::<(u8, u8)>("[1]", "wrong number of elements", "");
    misshapen::<(u8, u8)>("[1,2,3]", "wrong number of elements", "");
    misshapen::<[u8; 2]>("[1,2,3]", "wrong number of elements", "");
    misshapen::<Vec<u8>>("{}", "expected an array", "");
    misshapen::<Vec<u8>>("null", "expected an array", "");
}

#[test]
fn structs_are_read_from_objects_and_from_nothing_else() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct Unit;
    #[derive(Deserialize, Debug, PartialEq)]
    struct Meters(f64);
    #[derive(Deserialize, Debug, PartialEq)]
    struct Pair(u8, bool);
    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        x: u8,
    }

    accepted(r#"{"y":2,"x":1}"#, Point { x: 1, y: 2 });
    accepted(r#"{"y":2,"z":{"x":[9]},"x":1}"#, Point { x: 1, y: 2 });
    misshapen::<Point>("[1,2]", "expected an object", "");
    misshapen::<Point>("[]", "expected an object", "");
    misshapen::<Point>("\"\"", "expected an object", "");
    misshapen::<Point>(r#"{"x":1}"#, "missing field", "y");
    misshapen::<Point>("{}", "missing field", "x");
    accepted("null", Unit);
    accepted("1.5", Meters(1.5));
    accepted("[1,true]", Pair(1, true));
    accepted(r#"{"x":1}"#, Strict { x: 1 });
    misshapen::<Strict>(r#"{"x":1,"secret":1}"#, "unknown field", "");
}

#[test]
fn maps_are_read_from_objects() {
    accepted(r#"{"a":1,"b":2}"#, BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]));
    accepted(r#"{"ä":1}"#, BTreeMap::from([('ä', 1)]));
    misshapen::<BTreeMap<String, u8>>("[]", "expected an object", "");

    #[derive(Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Key {
        Low,
        High,
    }
    accepted(r#"{"High":1,"Low":2}"#, BTreeMap::from([(Key::High, 1), (Key::Low, 2)]));
    misshapen::<BTreeMap<Key, u8>>(r#"{"Middle":1}"#, "unknown variant", "");
}

#[test]
fn enums_are_read_from_a_string_or_an_object_with_one_key() {
    #[derive(Deserialize, Debug, PartialEq)]
    enum Shape {
        Empty,
        Circle(u8),
        Line(u8, u8),
        Box { w: u8, h: u8 },
    }

    accepted("\"Empty\"", Shape::Empty);
    accepted(r#"{"Empty":null}"#, Shape::Empty);
    accepted(r#"{"Circle":1}"#, Shape::Circle(1));
    accepted(r#"{"Line":[1,2]}"#, Shape::Line(1, 2));
    accepted(r#"{"Box":{"h":2,"w":1}}"#, Shape::Box { w: 1, h: 2 });
    misshapen::<Shape>(r#"{"Box":[1,2]}"#, "expected an object", "Box");
    let message = "expected a string or an object with one key";
    for refused in ["1", "null", "[]", "{}", r#"{"Empty":null,"Circle":1}"#] {
        misshapen::<Shape>(refused, message, "");
    }
    misshapen::<Shape>("\"Round\"", "unknown variant", "");
    misshapen::<Shape>(r#"{"Round":1}"#, "unknown variant", "");
    misshapen::<Shape>("\"Circle\"", "expected an object with one key", "");
    misshapen::<Shape>(r#"{"Empty":1}"#, "expected null", "Empty");
    misshapen::<Shape>(r#"{"Line":[1]}"#, "wrong number of elements", "Line");
    misshapen::<Shape>(r#"{"Line":[1,2,3]}"#, "wrong number of elements", "Line");
    misshapen::<Shape>(r#"{"Box":{"w":1}}"#, "missing field", "Box.h");
    misshapen::<Shape>(r#"{"Box":{"w":1,"h":"2"}}"#, "expected an integer from 0 to 255", "Box.h");
}

#[test]
fn tagged_untagged_and_flattened_parts_are_read() {
    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    enum Internal {
        Circle { r: u8 },
        Empty,
    }
    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(tag = "kind", content = "with")]
    enum Adjacent {
        Circle(u8),
    }
    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(untagged)]
    enum Untagged {
        Flag(bool),
        Count(u64),
        Ratio(f64),
        Text(String),
        List(Vec<Untagged>),
        Point(Point),
    }
    #[derive(Deserialize, Debug, PartialEq)]
    struct Flat {
        id: u64,
        #[serde(flatten)]
        point: Point,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }

    accepted(r#"{"r":1,"kind":"circle"}"#, Internal::Circle { r: 1 });
    accepted(r#"{"kind":"empty"}"#, Internal::Empty);
    misshapen::<Internal>(r#"{"r":1}"#, "missing field", "kind");
    misshapen::<Internal>(r#"{"kind":"square"}"#, "unknown variant", "");
    accepted(r#"{"with":1,"kind":"Circle"}"#, Adjacent::Circle(1));
    accepted(r#"{"kind":"Circle","with":1}"#, Adjacent::Circle(1));
    misshapen::<Adjacent>(r#"{"kind":"Circle","with":true}"#, "expected an integer from 0 to 255", "with");
    accepted(
        r#"[true,1,-1,"a",{"x":1,"y":2}]"#,
        Untagged::List(vec![
            Untagged::Flag(true),
            Untagged::Count(1),
            Untagged::Ratio(-1.0),
            Untagged::Text("a".to_owned()),
            Untagged::Point(Point { x: 1, y: 2 }),
        ]),
    );
    misshapen::<Untagged>("null", "invalid value", "");
    accepted(
        r#"{"z":3,"y":2,"id":7,"x":1}"#,
        Flat { id: 7, point: Point { x: 1, y: 2 }, rest: BTreeMap::from([("z".to_owned(), 3)]) },
    );
    misshapen::<Flat>(r#"{"id":7,"x":1}"#, "missing field", "y");
    misshapen::<Flat>(r#"{"id":"7","x":1,"y":1}"#, "expected an integer of 64 bits, not negative", "id");
    misshapen::<Flat>(r#"{"id":7,"x":1,"y":true}"#, "expected an integer in range", "");
    misshapen::<Flat>(r#"{"id":7,"x":1,"y":1,"z":"secret"}"#, "expected an integer in range", "");
}

#[test]
fn text_and_bytes_are_borrowed_where_the_type_allows_it() {
    #[derive(Deserialize)]
    struct Borrowed<'r> {
        text: &'r str,
        #[serde(borrow)]
        cow: Cow<'r, str>,
        bytes: &'r [u8],
        optional: Option<&'r str>,
        #[serde(borrow)]
        list: Vec<&'r str>,
        map: BTreeMap<&'r str, &'r str>,
    }
    let json = br#"{"text":"\u0061","cow":"\u0062","bytes":"\u0063","optional":"d","list":["e"],"map":{"f":"\n"}}"#;
    let mut bytes = [&json[..], &[b'x'; 64]].concat();
    let range = bytes.as_ptr_range();
    let read: Borrowed<'_> = parse(&mut bytes, json.len(), &mut Tape::default()).unwrap();
    assert_eq!((read.text, &*read.cow, read.bytes, read.optional), ("a", "b", &b"c"[..], Some("d")));
    assert_eq!((read.list[0], read.map["f"]), ("e", "\n"));
    assert!(matches!(read.cow, Cow::Borrowed(_)));
    for part in [read.text, &read.cow, read.list[0], read.map["f"]] {
        assert!(range.contains(&part.as_ptr()));
    }
}

#[test]
fn byte_strings_are_read_from_strings_and_arrays() {
    #[derive(Debug, PartialEq)]
    struct Blob(Vec<u8>);
    impl<'de> Deserialize<'de> for Blob {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Bytes;
            impl<'de> serde::de::Visitor<'de> for Bytes {
                type Value = Blob;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("bytes")
                }
                fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Blob, E> {
                    Ok(Blob(bytes.to_vec()))
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Blob, A::Error> {
                    let mut bytes = Vec::new();
                    while let Some(byte) = seq.next_element()? {
                        bytes.push(byte);
                    }
                    Ok(Blob(bytes))
                }
            }
            deserializer.deserialize_byte_buf(Bytes)
        }
    }
    accepted("\"a\u{e9}\"", Blob("a\u{e9}".into()));
    accepted("[1,255]", Blob(vec![1, 255]));
    misshapen::<Blob>("[1,256]", "expected an integer from 0 to 255", "[1]");
    misshapen::<Blob>("1", "expected a string or an array", "");
}

#[test]
fn a_type_that_stops_early_is_of_the_wrong_shape() {
    #[derive(Debug, PartialEq)]
    struct First(u8);
    impl<'de> Deserialize<'de> for First {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Stop;
            impl<'de> serde::de::Visitor<'de> for Stop {
                type Value = First;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("one element")
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<First, A::Error> {
                    Ok(First(seq.next_element()?.unwrap_or_default()))
                }
            }
            deserializer.deserialize_seq(Stop)
        }
    }
    accepted("[[1],[2]]", vec![First(1), First(2)]);
    misshapen::<Vec<First>>("[[1],[2,3]]", "wrong number of elements", "[1]");
}
