//! A tape of nodes to a value, through serde's data model, human-readable as in serde_json.
//!
//! - **Numbers.** Into an integer type goes only an integer literal in its range: `1.0`, `1e2` and
//!   256 for a `u8` are of the wrong shape. The parser is exact for 64 bits; a longer literal is a
//!   wrong shape for every integer type, `i128` and `u128` included. Into `f64` the nearest value
//!   goes. Into `f32` goes the `f32` nearest to that; of an integer of 64 bits, the one nearest to
//!   the literal. A literal that is nearer to the middle of two `f32` than `f64` can tell is taken
//!   for the middle, and so can become the other of the two: it is then at most one part in 2^53
//!   farther away. No literal that an `f32` is printed as is one of these. (Once the parser has made
//!   its nodes they own the body until the value is gone, so there is no text left to ask; and to
//!   keep a copy of every body would cost every body.) Out of the range of `f32` is a wrong shape.
//!   `-0` is the integer 0 and the float -0.0.
//! - **Strings** are borrowed from the body, escapes or not.
//! - **Structs** are read from objects only, byte strings from strings and from arrays,
//!   enums from `"variant"` and from `{"variant": content}`, map keys as integers and booleans too.
//!
//! Recursion is bounded by the parser's depth, for each level takes a level of nesting.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::{DUPLICATE_KEY, JsonError, Kind, Step};
use super::parse::{Node, StaticNode};
use super::unique::descendants;

pub(super) const WRONG_COUNT: &str = "wrong number of elements";
const EXPECTED_VARIANT: &str = "expected a string or an object with one key";

type Result<T> = std::result::Result<T, JsonError>;

/// Reads the whole tape as one value.
#[inline]
pub(super) fn read<'r, T: Deserialize<'r>>(nodes: &[Node<'r>]) -> Result<T> {
    let mut rest = nodes;
    T::deserialize(Value::take(&mut rest)?)
}

/// A value: its node, and the nodes below it.
#[derive(Clone, Copy)]
struct Value<'t, 'r> {
    node: &'t Node<'r>,
    below: &'t [Node<'r>],
}

/// The nodes ended early. The parser's tapes are whole, so this one was cut at a repeated key.
#[cold]
fn cut() -> JsonError {
    JsonError::malformed(DUPLICATE_KEY)
}

impl<'t, 'r> Value<'t, 'r> {
    #[inline]
    fn take(rest: &mut &'t [Node<'r>]) -> Result<Self> {
        let Some((node, after)) = rest.split_first() else { return Err(cut()) };
        let (below, after) = match descendants(node) {
            0 => (&after[..0], after),
            count => after.split_at_checked(count).unwrap_or((after, &[])),
        };
        *rest = after;
        Ok(Self { node, below })
    }

    #[inline]
    fn str(self) -> Option<&'r str> {
        match *self.node {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    #[inline]
    fn visit_array<V: Visitor<'r>>(self, len: usize, visitor: V) -> Result<V::Value> {
        let mut elements = Elements { rest: self.below, left: len, index: 0 };
        let value = visitor.visit_seq(&mut elements)?;
        if elements.left == 0 { Ok(value) } else { Err(JsonError::shape(WRONG_COUNT)) }
    }

    #[inline]
    fn visit_object<V: Visitor<'r>>(
        self,
        len: usize,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value> {
        let mut members = Members { rest: self.below, left: len, key: "", fields, role: Role::Any };
        let value = visitor.visit_map(&mut members)?;
        if members.left == 0 { Ok(value) } else { Err(JsonError::shape(WRONG_COUNT)) }
    }
}

macro_rules! deserialize_integers {
    ($($method:ident $visit:ident $int:ty, $message:literal;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
            let int = match *self.node {
                Node::Static(StaticNode::U64(int)) => <$int>::try_from(int).ok(),
                Node::Static(StaticNode::I64(int)) => <$int>::try_from(int).ok(),
                _ => None,
            };
            match int {
                Some(int) => visitor.$visit(int),
                None => Err(JsonError::shape($message)),
            }
        }
    )*};
}

macro_rules! deserialize_strings {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
            match *self.node {
                Node::String(text) => visitor.visit_borrowed_str(text),
                _ => Err(JsonError::shape("expected a string")),
            }
        }
    )*};
}

impl<'r> Deserializer<'r> for Value<'_, 'r> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::String(text) => visitor.visit_borrowed_str(text),
            Node::Object { len, .. } => self.visit_object(len, None, visitor),
            Node::Array { len, .. } => self.visit_array(len, visitor),
            Node::Static(StaticNode::Null) => visitor.visit_unit(),
            Node::Static(StaticNode::Bool(bool)) => visitor.visit_bool(bool),
            Node::Static(StaticNode::U64(int)) => visitor.visit_u64(int),
            Node::Static(StaticNode::I64(int)) => visitor.visit_i64(int),
            Node::Static(StaticNode::F64(float)) => visitor.visit_f64(float),
            // Another crate of the build can switch on the parser's 128-bit integers.
            #[allow(unreachable_patterns)]
            Node::Static(_) => Err(JsonError::shape("integer out of range")),
        }
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::Static(StaticNode::Bool(bool)) => visitor.visit_bool(bool),
            _ => Err(JsonError::shape("expected a boolean")),
        }
    }

    deserialize_integers! {
        deserialize_u8 visit_u8 u8, "expected an integer from 0 to 255";
        deserialize_u16 visit_u16 u16, "expected an integer from 0 to 65535";
        deserialize_u32 visit_u32 u32, "expected an integer of 32 bits, not negative";
        deserialize_u64 visit_u64 u64, "expected an integer of 64 bits, not negative";
        deserialize_u128 visit_u128 u128, "expected an integer of 64 bits, not negative";
        deserialize_i8 visit_i8 i8, "expected an integer from -128 to 127";
        deserialize_i16 visit_i16 i16, "expected an integer from -32768 to 32767";
        deserialize_i32 visit_i32 i32, "expected an integer of 32 bits";
        deserialize_i64 visit_i64 i64, "expected an integer of 64 bits";
        deserialize_i128 visit_i128 i128, "expected an integer of 64 bits";
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::Static(StaticNode::F64(float)) => visitor.visit_f64(float),
            Node::Static(StaticNode::U64(int)) => visitor.visit_f64(int as f64),
            // The parser makes this of `-0` alone.
            Node::Static(StaticNode::I64(0)) => visitor.visit_f64(-0.0),
            Node::Static(StaticNode::I64(int)) => visitor.visit_f64(int as f64),
            _ => Err(JsonError::shape("expected a number")),
        }
    }

    fn deserialize_f32<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        let float = match *self.node {
            Node::Static(StaticNode::F64(float)) => float as f32,
            Node::Static(StaticNode::U64(int)) => int as f32,
            Node::Static(StaticNode::I64(0)) => -0.0,
            Node::Static(StaticNode::I64(int)) => int as f32,
            _ => return Err(JsonError::shape("expected a number")),
        };
        if float.is_finite() {
            visitor.visit_f32(float)
        } else {
            Err(JsonError::shape("expected a number in the range of f32"))
        }
    }

    fn deserialize_char<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        let mut chars = self.str().unwrap_or_default().chars();
        match (chars.next(), chars.next()) {
            (Some(char), None) => visitor.visit_char(char),
            _ => Err(JsonError::shape("expected a single character")),
        }
    }

    deserialize_strings! { deserialize_str deserialize_string deserialize_identifier }

    fn deserialize_bytes<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::String(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            Node::Array { len, .. } => self.visit_array(len, visitor),
            _ => Err(JsonError::shape("expected a string or an array")),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::Static(StaticNode::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::Static(StaticNode::Null) => visitor.visit_unit(),
            _ => Err(JsonError::shape("expected null")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'r>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'r>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::Array { len, .. } => self.visit_array(len, visitor),
            _ => Err(JsonError::shape("expected an array")),
        }
    }

    fn deserialize_tuple<V: Visitor<'r>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'r>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        match *self.node {
            Node::Object { len, .. } => self.visit_object(len, None, visitor),
            _ => Err(JsonError::shape("expected an object")),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'r>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match *self.node {
            Node::Object { len, .. } => self.visit_object(len, Some(fields), visitor),
            // Not from an array either, as serde's own formats do: no client means that, and the order of the fields of a
            // struct would be part of the interface.
            _ => Err(JsonError::shape("expected an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'r>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let (variant, content) = match (*self.node, self.below) {
            (Node::String(variant), _) => (variant, None),
            (Node::Object { len: 1, .. }, [Node::String(variant), content @ ..]) => (*variant, Some(content)),
            (Node::Object { len: 1, .. }, _) => return Err(cut()),
            _ => return Err(JsonError::shape(EXPECTED_VARIANT)),
        };
        let locate = |error: JsonError| match variants.iter().find(|name| **name == variant) {
            Some(name) if content.is_some() => error.inside(Step::Field(Cow::Borrowed(name))),
            _ => error,
        };
        let content = content.map(|mut content| Value::take(&mut content)).transpose();
        let content = content.map_err(locate)?;
        visitor.visit_enum(Variant { variant, content }).map_err(locate)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value> {
        if self.below.len() < descendants(self.node) {
            return Err(cut());
        }
        visitor.visit_unit()
    }
}

/// The elements of an array that have not been read.
struct Elements<'t, 'r> {
    rest: &'t [Node<'r>],
    left: usize,
    index: usize,
}

impl<'r> SeqAccess<'r> for Elements<'_, 'r> {
    type Error = JsonError;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'r>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let index = self.index;
        self.index += 1;
        match Value::take(&mut self.rest).and_then(|value| seed.deserialize(value)) {
            Ok(element) => Ok(Some(element)),
            Err(error) => Err(error.inside(Step::Index(index))),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The members of an object that have not been read.
struct Members<'t, 'r> {
    rest: &'t [Node<'r>],
    left: usize,
    /// The key of the value that is next.
    key: &'r str,
    /// The names a struct declares; a map declares none.
    fields: Option<&'static [&'static str]>,
    /// What the key was asked for as.
    role: Role,
}

/// What a type asks for a key as tells whether the program has a name for the value.
#[derive(Clone, Copy)]
enum Role {
    /// One of its names: the value belongs to the field of that name, if there is one.
    Name,
    /// Data: the key is the peer's own.
    Data,
    /// Whatever it is: serde buffers the object, to look for a tag.
    Any,
}

impl Members<'_, '_> {
    /// Adds the step from this object into the value at hand, if the program has a name for it.
    #[cold]
    fn locate(&self, error: JsonError) -> JsonError {
        let name = match (self.fields, self.role) {
            (Some(fields), _) => fields.iter().find(|field| **field == self.key).copied(),
            (None, Role::Data) => return error.inside(Step::Entry),
            (None, Role::Any) => None,
            // A struct with flattened parts reads as a map. Into values without a name it only
            // copies, which fails for a repeated key alone.
            (None, Role::Name) if error.kind() == Kind::Malformed => None,
            (None, Role::Name) => return error.inside(Step::Field(self.key.to_owned().into())),
        };
        match name {
            Some(name) => error.inside(Step::Field(Cow::Borrowed(name))),
            None => error.inside_unnamed(),
        }
    }
}

impl<'r> MapAccess<'r> for Members<'_, 'r> {
    type Error = JsonError;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'r>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let Some((Node::String(key), rest)) = self.rest.split_first() else { return Err(cut()) };
        self.rest = rest;
        self.key = key;
        seed.deserialize(Key { key, role: &mut self.role }).map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'r>>(&mut self, seed: S) -> Result<S::Value> {
        match Value::take(&mut self.rest).and_then(|value| seed.deserialize(value)) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.locate(error)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A key: a string, read as an integer or a boolean where the type asks for one.
struct Key<'m, 'r> {
    key: &'r str,
    role: &'m mut Role,
}

macro_rules! deserialize_integer_keys {
    ($($method:ident $visit:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            *self.role = Role::Data;
            match self.key.parse() {
                Ok(int) if is_integer(self.key) => visitor.$visit(int),
                _ => Err(JsonError::shape("expected keys that are integers in range")),
            }
        }
    )*};
}

/// `integer = [ "-" ] ( "0" / digit1-9 *DIGIT )`, the grammar of a JSON number without fraction and
/// exponent: `str::parse` alone takes `+1` and `007` too.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

impl<'de> Deserializer<'de> for Key<'_, 'de> {
    type Error = JsonError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        *self.role = Role::Any;
        visitor.visit_borrowed_str(self.key)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        *self.role = Role::Data;
        visitor.visit_borrowed_str(self.key)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        *self.role = Role::Name;
        visitor.visit_borrowed_str(self.key)
    }

    deserialize_integer_keys! {
        deserialize_u8 visit_u8 deserialize_u16 visit_u16 deserialize_u32 visit_u32
        deserialize_u64 visit_u64 deserialize_u128 visit_u128
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32
        deserialize_i64 visit_i64 deserialize_i128 visit_i128
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        *self.role = Role::Data;
        match self.key {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(JsonError::shape("expected keys that are booleans")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        *self.role = Role::Data;
        visitor.visit_enum(self.key.into_deserializer())
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        *self.role = Role::Data;
        visitor.visit_borrowed_bytes(self.key.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    forward_to_deserialize_any! {
        f32 f64 unit unit_struct seq tuple tuple_struct map struct ignored_any
    }
}

/// `"variant"`, or `{"variant": content}`.
struct Variant<'t, 'r> {
    variant: &'r str,
    content: Option<Value<'t, 'r>>,
}

impl<'t, 'r> Variant<'t, 'r> {
    fn content(self) -> Result<Value<'t, 'r>> {
        self.content.ok_or_else(|| JsonError::shape("expected an object with one key"))
    }
}

impl<'r> EnumAccess<'r> for Variant<'_, 'r> {
    type Error = JsonError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'r>>(self, seed: S) -> Result<(S::Value, Self)> {
        let variant = seed.deserialize(BorrowedStrDeserializer::new(self.variant))?;
        Ok((variant, self))
    }
}

impl<'r> VariantAccess<'r> for Variant<'_, 'r> {
    type Error = JsonError;

    fn unit_variant(self) -> Result<()> {
        self.content.map_or(Ok(()), Deserialize::deserialize)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'r>>(self, seed: S) -> Result<S::Value> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'r>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.content()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'r>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value> {
        self.content()?.deserialize_struct("", fields, visitor)
    }
}
