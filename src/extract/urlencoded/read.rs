//! Pairs to a value, through serde's data model.
//!
//! Three small deserializers: [`Document`] groups pairs by key, [`Values`] is all that came for one key, [`Text`] is one
//! key or value.

use std::borrow::Cow;
use std::mem;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::Fault;
use super::pairs::Pair;
use crate::json::shortened;
use crate::request::FromParam;

const TWICE: &str = "the key comes more than once";
const NESTED: &str = "a value cannot hold keys of its own";

/// All pairs. A struct or a map, or a sequence of pairs in the order they came.
pub(super) struct Document<'p, 'r> {
    pub(super) pairs: &'p mut [Pair<'r>],
}

impl<'p, 'r> Document<'p, 'r> {
    /// `declared`: the names of the fields, if they are known.
    fn groups(self, declared: &'static [&'static str]) -> Groups<'p, 'r> {
        // Stable, so that the values of one key stay in order.
        self.pairs.sort_by(|a, b| a.key.cmp(&b.key));
        Groups { declared, current: &mut [], rest: self.pairs }
    }
}

impl<'r> Deserializer<'r> for Document<'_, 'r> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self.groups(&[]))
    }

    fn deserialize_struct<V: Visitor<'r>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_map(self.groups(fields))
    }

    fn deserialize_newtype_struct<V: Visitor<'r>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(InOrder { rest: self.pairs })
    }

    fn deserialize_unit<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'r>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <V: Visitor<'r>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf tuple tuple_struct map enum
        identifier ignored_any
    }
}

/// The pairs, sorted, key by key.
struct Groups<'p, 'r> {
    declared: &'static [&'static str],
    /// The pairs of the key that was handed out last.
    current: &'p mut [Pair<'r>],
    rest: &'p mut [Pair<'r>],
}

impl<'r> MapAccess<'r> for Groups<'_, 'r> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'r>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let rest = mem::take(&mut self.rest);
        let Some(first) = rest.first() else { return Ok(None) };
        let count = rest.iter().take_while(|pair| pair.key == first.key).count();
        (self.current, self.rest) = rest.split_at_mut(count);
        self.current.first_mut().map(|pair| seed.deserialize(Text { text: &mut pair.key })).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'r>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(Values { pairs: self.current }).map_err(|fault| {
            let key = self.current.first().map(|pair| &*pair.key).unwrap_or_default();
            match self.declared.iter().find(|name| **name == key) {
                Some(name) => fault.at(name),
                None => fault,
            }
        })
    }
}

/// All pairs as `(key, value)`.
struct InOrder<'p, 'r> {
    rest: &'p mut [Pair<'r>],
}

impl<'r> SeqAccess<'r> for InOrder<'_, 'r> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'r>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((Pair { key, value }, rest)) = mem::take(&mut self.rest).split_first_mut() else { return Ok(None) };
        self.rest = rest;
        let texts = [Text { text: key }, Text { text: value }];
        seed.deserialize(serde::de::value::SeqDeserializer::new(texts.into_iter())).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// What came for one key: one value, or several for a sequence.
struct Values<'p, 'r> {
    pairs: &'p mut [Pair<'r>],
}

impl<'p, 'r> Values<'p, 'r> {
    fn one(self) -> Result<Text<'p, 'r>, Fault> {
        match self.pairs {
            [pair] => Ok(Text { text: &mut pair.value }),
            _ => Err(Fault::shape(TWICE)),
        }
    }
}

macro_rules! of_the_one {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.one()?.$method(visitor)
        }
    )*};
}

impl<'r> Deserializer<'r> for Values<'_, 'r> {
    type Error = Fault;

    /// For types that do not say what they are: text, or a sequence if there are several.
    fn deserialize_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.pairs.len() == 1 { self.deserialize_str(visitor) } else { self.deserialize_seq(visitor) }
    }

    of_the_one! {
        deserialize_bool deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_unit
        deserialize_identifier deserialize_map
    }

    fn deserialize_unit_struct<V: Visitor<'r>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        self.one()?.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_struct<V: Visitor<'r>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.one()?.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'r>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.one()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_option<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'r>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        let mut elements = Elements { rest: self.pairs, index: 0 };
        let value = visitor.visit_seq(&mut elements)?;
        if elements.rest.is_empty() { Ok(value) } else { Err(Fault::shape("wrong number of values")) }
    }

    fn deserialize_tuple<V: Visitor<'r>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'r>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }
}

struct Elements<'p, 'r> {
    rest: &'p mut [Pair<'r>],
    index: usize,
}

impl<'r> SeqAccess<'r> for Elements<'_, 'r> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'r>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((pair, rest)) = mem::take(&mut self.rest).split_first_mut() else { return Ok(None) };
        let index = self.index;
        self.rest = rest;
        self.index += 1;
        seed.deserialize(Text { text: &mut pair.value }).map(Some).map_err(|fault| fault.at_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// One key or one value.
struct Text<'p, 'r> {
    text: &'p mut Cow<'r, str>,
}

impl Text<'_, '_> {
    /// The same language as in paths.
    fn parse<T: for<'a> FromParam<'a>>(&self) -> Result<T, Fault> {
        T::from_param(self.text).ok_or_else(|| expected(T::EXPECTED))
    }

    /// `[ "-" ] 1*DIGIT [ "." *DIGIT ] [ ( "e" / "E" ) [ sign ] 1*DIGIT ]`, in range: Rust's own parser would also
    /// take `inf`, `nan` and `+1`, and some take it long. Digits from the twentieth on do not count.
    fn parse_float<T: std::str::FromStr + Into<f64> + Copy>(&self) -> Result<T, Fault> {
        let digits = self.text.strip_prefix('-').unwrap_or(self.text);
        let plain = digits.starts_with(|c: char| c.is_ascii_digit());
        let shortened = shortened(self.text);
        let text = shortened.as_deref().unwrap_or(self.text);
        let value = text.parse().ok().filter(|&value: &T| plain && value.into().is_finite());
        value.ok_or_else(|| expected("a decimal number"))
    }
}

#[cold]
fn expected(what: &str) -> Fault {
    Fault::shape(format!("expected {what}"))
}

macro_rules! parsed {
    ($($method:ident $parse:ident $visit:ident)*) => {$(
        fn $method<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.$visit(self.$parse()?)
        }
    )*};
}

impl<'r> Deserializer<'r> for Text<'_, 'r> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(mem::take(text)),
        }
    }

    parsed! {
        deserialize_bool parse visit_bool
        deserialize_char parse visit_char
        deserialize_i8 parse visit_i8
        deserialize_i16 parse visit_i16
        deserialize_i32 parse visit_i32
        deserialize_i64 parse visit_i64
        deserialize_i128 parse visit_i128
        deserialize_u8 parse visit_u8
        deserialize_u16 parse visit_u16
        deserialize_u32 parse visit_u32
        deserialize_u64 parse visit_u64
        deserialize_u128 parse visit_u128
        deserialize_f32 parse_float visit_f32
        deserialize_f64 parse_float visit_f64
    }

    /// The key stays, to be named in an error.
    fn deserialize_identifier<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.text)
    }

    fn deserialize_bytes<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text {
            Cow::Borrowed(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            Cow::Owned(text) => visitor.visit_byte_buf(mem::take(text).into_bytes()),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.text.is_empty() { visitor.visit_unit() } else { Err(expected("no value")) }
    }

    fn deserialize_unit_struct<V: Visitor<'r>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'r>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'r>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self)
    }

    fn deserialize_seq<V: Visitor<'r>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::shape(NESTED))
    }

    fn deserialize_tuple<V: Visitor<'r>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::shape(NESTED))
    }

    fn deserialize_tuple_struct<V: Visitor<'r>>(self, _: &'static str, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::shape(NESTED))
    }

    fn deserialize_map<V: Visitor<'r>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::shape(NESTED))
    }

    fn deserialize_struct<V: Visitor<'r>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fault> {
        Err(Fault::shape(NESTED))
    }

    forward_to_deserialize_any! { <V: Visitor<'r>> str string ignored_any }
}

/// An enum by the name of one of its variants.
impl<'r> EnumAccess<'r> for Text<'_, 'r> {
    type Error = Fault;
    type Variant = UnitOnly;

    fn variant_seed<T: DeserializeSeed<'r>>(self, seed: T) -> Result<(T::Value, UnitOnly), Fault> {
        Ok((seed.deserialize(self)?, UnitOnly))
    }
}

/// A variant without content, since a value has no room for more than the name.
struct UnitOnly;

impl<'r> VariantAccess<'r> for UnitOnly {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'r>>(self, _: T) -> Result<T::Value, Fault> {
        Err(Fault::shape(NESTED))
    }

    fn tuple_variant<V: Visitor<'r>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::shape(NESTED))
    }

    fn struct_variant<V: Visitor<'r>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Fault> {
        Err(Fault::shape(NESTED))
    }
}

impl<'p, 'r> serde::de::IntoDeserializer<'r, Fault> for Text<'p, 'r> {
    type Deserializer = Text<'p, 'r>;

    fn into_deserializer(self) -> Text<'p, 'r> {
        self
    }
}
