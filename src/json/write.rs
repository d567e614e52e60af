//! A value to JSON text, through serde, at the end of a `Vec<u8>`: no buffer in between, and no
//! allocation once the `Vec` is large enough.
//!
//! The text is what serde_json would write, without spaces. A float that is not finite has no
//! spelling in JSON (RFC 8259 section 6) and becomes `null`. Keys of maps are strings, characters,
//! integers, booleans and unit variants; any other key is an error.

use std::fmt::{self, Display};

use serde::ser::{
    self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Why a value could not be written. One pointer wide, for the same reason as in `error`.
#[derive(Debug)]
pub(crate) struct WriteError(Box<str>);

impl WriteError {
    #[cold]
    fn key() -> Self {
        Self("a key of a map is neither a string, an integer, a boolean nor a unit variant".into())
    }
}

impl Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WriteError {}

impl ser::Error for WriteError {
    #[cold]
    fn custom<T: Display>(detail: T) -> Self {
        Self(detail.to_string().into())
    }
}

type Result<T = ()> = std::result::Result<T, WriteError>;

/// Appends `value` to `out`. After an error `out` is as it was before.
#[inline]
pub(crate) fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result {
    let mark = out.len();
    value.serialize(Writer { out }).inspect_err(|_| out.truncate(mark))
}

/// Appends `text` as it stands between the quotes of a string (RFC 8259 section 7): only what must
/// be escaped is.
#[inline(always)]
fn escape(out: &mut Vec<u8>, text: &str) {
    if must_escape(text.as_bytes()) {
        escape_each(out, text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cold]
#[inline(never)]
fn escape_each(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(plain) = rest.iter().position(|&byte| is_escaped(byte)) {
        let (before, after) = rest.split_at(plain);
        out.extend_from_slice(before);
        let Some((&byte, after)) = after.split_first() else { break };
        match short_escape(byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => {
                let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            }
        }
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// As [`escape`], into a formatter; for error paths only.
pub(super) fn escape_into(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut escaped = Vec::new();
    escape(&mut escaped, text);
    f.write_str(&String::from_utf8_lossy(&escaped))
}

#[inline]
fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn short_escape(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0A => b'n',
        0x0C => b'f',
        0x0D => b'r',
        _ => return None,
    })
}

/// Whether any byte must be escaped, a word at a time: a table and a loop over the bytes take three
/// times the instructions, for text that is nearly always plain. Two words that overlap cover a
/// short text of any length.
#[inline(always)]
fn must_escape(bytes: &[u8]) -> bool {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        let found = escaped_in(u64::from_le_bytes(*first)) | escaped_in(u64::from_le_bytes(*last));
        found != 0 || (bytes.len() > 16 && must_escape_long(bytes))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        escaped_in(u64::from(first) | u64::from(last) << 32) != 0
    } else {
        bytes.iter().any(|&byte| is_escaped(byte))
    }
}

/// The words after the first. Not inlined: its registers would be saved for each short text.
#[inline(never)]
fn must_escape_long(bytes: &[u8]) -> bool {
    let mut found = 0;
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        found |= escaped_in(u64::from_le_bytes(*word));
        rest = after;
    }
    found != 0
}

/// Not zero if a byte of `word` must be escaped. A high bit above the first such byte may be set
/// wrongly by a borrow, never when there is none.
#[inline]
fn escaped_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    let control = below(word, 0x20);
    let quote = below(word ^ (ONES * b'"' as u64), 1);
    let backslash = below(word ^ (ONES * b'\\' as u64), 1);
    (control | quote | backslash) & (ONES << 7)
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

/// Escapes what a `Display` writes, so that it needs no string of its own.
struct Escape<'w>(&'w mut Vec<u8>);

impl fmt::Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.0, text);
        Ok(())
    }
}

fn display<T: Display + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result {
    out.push(b'"');
    if fmt::write(&mut Escape(out), format_args!("{value}")).is_err() {
        return Err(ser::Error::custom("a Display implementation failed"));
    }
    out.push(b'"');
    Ok(())
}

/// Writes one value.
struct Writer<'w> {
    out: &'w mut Vec<u8>,
}

/// Writes the members of an array or an object, and then `end`.
struct Members<'w> {
    out: &'w mut Vec<u8>,
    is_first: bool,
    end: &'static str,
}

impl<'w> Members<'w> {
    #[inline]
    fn begin(out: &'w mut Vec<u8>, begin: u8, end: &'static str) -> Self {
        out.push(begin);
        Self { out, is_first: true, end }
    }

    /// `{"variant":` and then the content: the braces of the pair close together.
    fn begin_variant(out: &'w mut Vec<u8>, variant: &str, begin: u8, end: &'static str) -> Self {
        out.push(b'{');
        string(out, variant);
        out.push(b':');
        Self::begin(out, begin, end)
    }

    #[inline]
    fn separate(&mut self) {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
    }

    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.separate();
        value.serialize(Writer { out: self.out })
    }

    /// Inlined into the derived code, where the key is a constant: whether it must be escaped is
    /// then decided when the program is compiled, and its bytes are stores rather than a call.
    #[inline(always)]
    fn member<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result {
        let begin: &[u8] = if self.is_first { b"\"" } else { b",\"" };
        self.is_first = false;
        self.out.extend_from_slice(begin);
        escape(self.out, key);
        self.out.extend_from_slice(b"\":");
        value.serialize(Writer { out: self.out })
    }

    #[inline]
    fn close(self) -> Result {
        self.out.extend_from_slice(self.end.as_bytes());
        Ok(())
    }
}

macro_rules! serialize_integers {
    ($($method:ident $int:ty)*) => {$(
        #[inline]
        fn $method(self, int: $int) -> Result {
            self.out.extend_from_slice(itoa::Buffer::new().format(int).as_bytes());
            Ok(())
        }
    )*};
}

macro_rules! serialize_floats {
    ($($method:ident $float:ty)*) => {$(
        fn $method(self, float: $float) -> Result {
            if float.is_finite() {
                self.out.extend_from_slice(ryu::Buffer::new().format_finite(float).as_bytes());
                Ok(())
            } else {
                self.serialize_unit()
            }
        }
    )*};
}

impl<'w> Serializer for Writer<'w> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Members<'w>;
    type SerializeTuple = Members<'w>;
    type SerializeTupleStruct = Members<'w>;
    type SerializeTupleVariant = Members<'w>;
    type SerializeMap = Members<'w>;
    type SerializeStruct = Members<'w>;
    type SerializeStructVariant = Members<'w>;

    #[inline]
    fn serialize_bool(self, bool: bool) -> Result {
        self.out.extend_from_slice(if bool { b"true" } else { b"false" });
        Ok(())
    }

    serialize_integers! {
        serialize_i8 i8 serialize_i16 i16 serialize_i32 i32 serialize_i64 i64 serialize_i128 i128
        serialize_u8 u8 serialize_u16 u16 serialize_u32 u32 serialize_u64 u64 serialize_u128 u128
    }

    serialize_floats! { serialize_f32 f32 serialize_f64 f64 }

    fn serialize_char(self, char: char) -> Result {
        self.serialize_str(char.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result {
        string(self.out, text);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result {
        let mut members = Members::begin(self.out, b'{', "}");
        members.member(variant, value)?;
        members.close()
    }

    #[inline]
    fn serialize_seq(self, _len: Option<usize>) -> Result<Members<'w>> {
        Ok(Members::begin(self.out, b'[', "]"))
    }

    fn serialize_tuple(self, len: usize) -> Result<Members<'w>> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Members<'w>> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Members<'w>> {
        Ok(Members::begin_variant(self.out, variant, b'[', "]}"))
    }

    #[inline]
    fn serialize_map(self, _len: Option<usize>) -> Result<Members<'w>> {
        Ok(Members::begin(self.out, b'{', "}"))
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, len: usize) -> Result<Members<'w>> {
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Members<'w>> {
        Ok(Members::begin_variant(self.out, variant, b'{', "}}"))
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result {
        display(self.out, value)
    }
}

macro_rules! members_are_elements {
    ($($trait:ident $method:ident)*) => {$(
        impl $trait for Members<'_> {
            type Ok = ();
            type Error = WriteError;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
                self.element(value)
            }

            #[inline]
            fn end(self) -> Result {
                self.close()
            }
        }
    )*};
}

members_are_elements! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

macro_rules! members_are_fields {
    ($($trait:ident)*) => {$(
        impl $trait for Members<'_> {
            type Ok = ();
            type Error = WriteError;

            #[inline(always)]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result {
                self.member(key, value)
            }

            #[inline]
            fn end(self) -> Result {
                self.close()
            }
        }
    )*};
}

members_are_fields! { SerializeStruct SerializeStructVariant }

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = WriteError;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        self.separate();
        key.serialize(KeyWriter { out: self.out })
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.out.push(b':');
        value.serialize(Writer { out: self.out })
    }

    #[inline]
    fn end(self) -> Result {
        self.close()
    }
}

/// Writes one key of a map: always a string.
struct KeyWriter<'w> {
    out: &'w mut Vec<u8>,
}

type Never = Impossible<(), WriteError>;

macro_rules! serialize_quoted_keys {
    ($($method:ident $type:ty)*) => {$(
        fn $method(self, value: $type) -> Result {
            self.out.push(b'"');
            Writer { out: self.out }.$method(value)?;
            self.out.push(b'"');
            Ok(())
        }
    )*};
}

impl Serializer for KeyWriter<'_> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    serialize_quoted_keys! {
        serialize_bool bool
        serialize_i8 i8 serialize_i16 i16 serialize_i32 i32 serialize_i64 i64 serialize_i128 i128
        serialize_u8 u8 serialize_u16 u16 serialize_u32 u32 serialize_u64 u64 serialize_u128 u128
    }

    fn serialize_char(self, char: char) -> Result {
        self.serialize_str(char.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result {
        string(self.out, text);
        Ok(())
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result {
        display(self.out, value)
    }

    fn serialize_f32(self, _: f32) -> Result {
        Err(WriteError::key())
    }

    fn serialize_f64(self, _: f64) -> Result {
        Err(WriteError::key())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result {
        Err(WriteError::key())
    }

    fn serialize_none(self) -> Result {
        Err(WriteError::key())
    }

    fn serialize_unit(self) -> Result {
        Err(WriteError::key())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        Err(WriteError::key())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result {
        Err(WriteError::key())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Never> {
        Err(WriteError::key())
    }

    fn serialize_tuple(self, _: usize) -> Result<Never> {
        Err(WriteError::key())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never> {
        Err(WriteError::key())
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never> {
        Err(WriteError::key())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Never> {
        Err(WriteError::key())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Never> {
        Err(WriteError::key())
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never> {
        Err(WriteError::key())
    }
}
