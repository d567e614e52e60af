//! JSON, against serde_json.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use sprat::internals::{JsonFault, JsonTape, parse_json, write_json};

use super::input::Input;

/// What both accept is equal, and is written as text that serde_json reads back; we refuse more only where a key is
/// repeated, and less only at the 128th level; texts stay valid though all of them are unescaped in one buffer, and
/// what follows a body is neither seen nor changed.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let after = [input.byte(), input.byte()].repeat(32);
    let text = input.rest();
    let mut tape = JsonTape::default();

    let mut bytes = [text, &after].concat();
    let ours = parse_json::<Tree<'_>>(&mut bytes, text.len(), &mut tape).map(Tree::into_owned);
    assert_eq!(bytes[text.len()..], after);
    let mut bare = text.to_vec();
    assert_eq!(parse_json::<Tree<'_>>(&mut bare, text.len(), &mut tape).map(Tree::into_owned), ours);
    let offset = ours.as_ref().err().and_then(|fault| fault.offset);
    assert!(offset.is_none_or(|offset| offset <= text.len()), "{ours:?}");
    let mut ignored = text.to_vec();
    // Where a fault is, depends on what it is read into; whether there is one, does not.
    let ignored = parse_json::<IgnoredAny>(&mut ignored, text.len(), &mut tape).err();
    assert_eq!(ignored.map(|fault| fault.message), ours.as_ref().err().map(|fault| fault.message));

    match (&ours, serde_json::from_slice::<Owned>(text)) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(*ours, theirs);
            assert!(!theirs.repeats_a_key(), "a key is repeated");
            let mut out = b"before".to_vec();
            assert!(write_json(&mut out, ours));
            let written = std::str::from_utf8(&out).unwrap().strip_prefix("before").unwrap();
            assert_eq!(serde_json::from_str::<Owned>(written).unwrap(), theirs);
        }
        (Err(JsonFault { malformed: true, .. }), Err(_)) => {}
        (Err(fault), Ok(theirs)) if fault.message == "duplicate key" => assert!(theirs.repeats_a_key()),
        (Ok(_), Err(_)) if depth(text) == 128 => {}
        (ours, theirs) => panic!("{ours:?}, but it is {theirs:?}"),
    }
    check_typed(text, ours.is_ok(), &mut tape);
}

/// Reads a type that knows what it wants, in most of the ways in which a type can want something.
fn check_typed(text: &[u8], is_sound: bool, tape: &mut JsonTape) {
    let mut bytes = text.to_vec();
    let ours = parse_json::<Typed>(&mut bytes, text.len(), tape);
    match (ours, serde_json::from_slice::<Typed>(text)) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours, theirs);
            let mut out = Vec::new();
            assert!(write_json(&mut out, &ours));
            assert_eq!(serde_json::from_slice::<Typed>(&out).unwrap(), ours);
        }
        // Nor are structs read from arrays here.
        (Err(fault), Ok(_)) if fault.message == "expected an object" => {}
        (Err(fault), theirs) => assert!(theirs.is_err() || !is_sound, "{fault:?}, but it is {theirs:?}"),
        // For serde_json `-0` is no integer.
        (Ok(_), Err(_)) if text.windows(2).any(|two| two == b"-0") || depth(text) == 128 => {}
        (Ok(ours), Err(error)) => panic!("{ours:?}, but {error}"),
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Typed {
    a: u8,
    b: i8,
    c: u32,
    d: i64,
    e: u64,
    f: f64,
    g: bool,
    h: char,
    i: String,
    j: Option<Box<Typed>>,
    k: Vec<Kind>,
    l: (i16, Option<u16>),
    m: BTreeMap<i32, Unit>,
    n: BTreeMap<bool, Wrapped>,
    o: BTreeMap<Key, ()>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Unit,
    One(f64),
    Two(i16, String),
    Named { x: Option<u8> },
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Key {
    Unit,
    Other,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapped(String);

/// A value whose texts are where they were in the body.
#[derive(Debug)]
enum Tree<'r> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'r str),
    Array(Vec<Tree<'r>>),
    Object(Vec<(&'r str, Tree<'r>)>),
}

impl Tree<'_> {
    /// Copied once all is read, so that a text that was overwritten meanwhile shows.
    fn into_owned(self) -> Owned {
        let text = |text: &str| {
            assert!(std::str::from_utf8(text.as_bytes()).is_ok());
            text.to_owned()
        };
        match self {
            Tree::Null => Owned::Null,
            Tree::Bool(bool) => Owned::Bool(bool),
            Tree::Unsigned(int) => Owned::Unsigned(int),
            // serde_json reads the one integer that is a float.
            Tree::Signed(0) => Owned::Float(-0.0),
            Tree::Signed(int) => Owned::Signed(int),
            Tree::Float(float) => Owned::Float(float),
            Tree::Text(t) => Owned::Text(text(t)),
            Tree::Array(items) => Owned::Array(items.into_iter().map(Tree::into_owned).collect()),
            Tree::Object(members) => {
                Owned::Object(members.into_iter().map(|(k, v)| (text(k), v.into_owned())).collect())
            }
        }
    }
}

/// The same, copied.
#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Array(Vec<Owned>),
    Object(Vec<(String, Owned)>),
}

impl Owned {
    fn repeats_a_key(&self) -> bool {
        match self {
            Owned::Array(items) => items.iter().any(Owned::repeats_a_key),
            Owned::Object(members) => {
                let mut keys: Vec<_> = members.iter().map(|(key, _)| key).collect();
                keys.sort_unstable();
                keys.windows(2).any(|two| two[0] == two[1]) || members.iter().any(|(_, value)| value.repeats_a_key())
            }
            _ => false,
        }
    }
}

impl Serialize for Owned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Owned::Null => serializer.serialize_unit(),
            Owned::Bool(bool) => serializer.serialize_bool(*bool),
            Owned::Unsigned(int) => serializer.serialize_u64(*int),
            Owned::Signed(int) => serializer.serialize_i64(*int),
            Owned::Float(float) => serializer.serialize_f64(*float),
            Owned::Text(text) => serializer.serialize_str(text),
            Owned::Array(items) => serializer.collect_seq(items),
            Owned::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

macro_rules! visit_anything {
    ($value:ident, $text:ty, $visit_text:ident, $lifetime:lifetime) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($value::Null)
        }
        fn visit_bool<E>(self, bool: bool) -> Result<Self::Value, E> {
            Ok($value::Bool(bool))
        }
        fn visit_u64<E>(self, int: u64) -> Result<Self::Value, E> {
            Ok($value::Unsigned(int))
        }
        fn visit_i64<E>(self, int: i64) -> Result<Self::Value, E> {
            Ok($value::Signed(int))
        }
        fn visit_f64<E>(self, float: f64) -> Result<Self::Value, E> {
            Ok($value::Float(float))
        }
        fn $visit_text<E>(self, text: $text) -> Result<Self::Value, E> {
            Ok($value::Text(text.into()))
        }
        fn visit_seq<A: SeqAccess<$lifetime>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element()? {
                items.push(item);
            }
            Ok($value::Array(items))
        }
        fn visit_map<A: MapAccess<$lifetime>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok($value::Object(members))
        }
    };
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree<'de>, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Tree<'de>;
            visit_anything! { Tree, &'de str, visit_borrowed_str, 'de }
        }
        deserializer.deserialize_any(Anything)
    }
}

impl<'de> Deserialize<'de> for Owned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Owned, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Owned;
            visit_anything! { Owned, &str, visit_str, 'de }
        }
        deserializer.deserialize_any(Anything)
    }
}

fn depth(text: &[u8]) -> usize {
    let (mut depth, mut most, mut inside, mut escaped) = (0usize, 0, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'[' | b'{' if !inside => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !inside => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}
