//! One file per subject. Each refused text stands beside an accepted neighbour.

mod errors;
mod language;
mod numbers;
mod shapes;
mod unique;
mod writing;

use std::fmt::Debug;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Kind, Tape, parse};

/// What may follow a body in the receive buffer: nothing of it may ever show.
const PADDINGS: [&[u8; 8]; 9] = [
    b"\0\0\0\0\0\0\0\0",
    b"        ",
    b"\"\"\"\"\"\"\"\"",
    b"12345678",
    b"e5.0e5.0",
    b"\\\\\\\\\\\\\\\\",
    b"rueull}]",
    b"]}]}]}]}",
    b"\xFF\xC0\xED\xA0\x80\xF8\x00\x7F",
];

type Outcome<T> = Result<T, (Kind, &'static str, String)>;

fn read_with<T: DeserializeOwned>(text: &[u8], after: &[u8], tape: &mut Tape) -> Outcome<T> {
    let mut bytes = [text, after].concat();
    let outcome = parse(&mut bytes, text.len(), tape);
    assert_eq!(&bytes[text.len()..], after, "bytes after the body were changed");
    outcome.map_err(|error| (error.kind(), error.message(), error.path().to_string()))
}

/// Reads `text` before every padding, and without one.
#[track_caller]
fn read<T: DeserializeOwned + Debug>(text: impl AsRef<[u8]>) -> Outcome<T> {
    let text = text.as_ref();
    let mut tape = Tape::default();
    let outcome = read_with(text, b"", &mut tape);
    for padding in PADDINGS {
        let again: Outcome<T> = read_with(text, &padding.repeat(8), &mut tape);
        assert_eq!(format!("{outcome:?}"), format!("{again:?}"), "before {padding:?}");
    }
    outcome
}

#[track_caller]
fn accepted<T: DeserializeOwned + Debug + PartialEq>(text: impl AsRef<[u8]>, value: T) {
    assert_eq!(read(text), Ok(value));
}

#[track_caller]
fn misshapen<T: DeserializeOwned + Debug>(text: &str, message: &str, path: &str) {
    match read::<T>(text) {
        Err((Kind::Shape, said, at)) => assert_eq!((said, at.as_str()), (message, path), "{text}"),
        other => panic!("{text} is not of the wrong shape: {other:?}"),
    }
}

/// Refused as malformed, whatever it is read into.
#[track_caller]
fn malformed(text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    let shown = String::from_utf8_lossy(&text[..text.len().min(100)]);
    let outcomes =
        [read::<Any>(text).err(), read::<IgnoredAny>(text).err(), read::<Vec<Any>>(text).err(), read::<u8>(text).err()];
    for outcome in outcomes {
        assert_eq!(outcome.map(|(kind, ..)| kind), Some(Kind::Malformed), "{shown}");
    }
}

#[track_caller]
fn well_formed(text: impl AsRef<[u8]>) -> Any {
    let text = text.as_ref();
    let shown = String::from_utf8_lossy(&text[..text.len().min(100)]);
    read::<IgnoredAny>(text).unwrap_or_else(|error| panic!("{shown}: {error:?}"));
    read(text).unwrap_or_else(|error| panic!("{shown}: {error:?}"))
}

/// A JSON value as it comes, members in their order.
#[derive(Debug, Clone, PartialEq)]
enum Any {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Array(Vec<Any>),
    Object(Vec<(String, Any)>),
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;

        impl<'de> Visitor<'de> for Anything {
            type Value = Any;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("anything")
            }

            fn visit_unit<E>(self) -> Result<Any, E> {
                Ok(Any::Null)
            }

            fn visit_bool<E>(self, bool: bool) -> Result<Any, E> {
                Ok(Any::Bool(bool))
            }

            fn visit_u64<E>(self, int: u64) -> Result<Any, E> {
                Ok(Any::Unsigned(int))
            }

            fn visit_i64<E>(self, int: i64) -> Result<Any, E> {
                Ok(Any::Signed(int))
            }

            fn visit_f64<E>(self, float: f64) -> Result<Any, E> {
                Ok(Any::Float(float))
            }

            fn visit_str<E>(self, text: &str) -> Result<Any, E> {
                Ok(Any::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Any, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element()? {
                    elements.push(element);
                }
                Ok(Any::Array(elements))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Any::Object(members))
            }
        }

        deserializer.deserialize_any(Anything)
    }
}
