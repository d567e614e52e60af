//! What is wrong with a body, and where.
//!
//! Three rules keep an answer safe to show: the message is one of a few fixed sentences, the path
//! names nothing but fields the program itself declared, and the text of a foreign
//! `Deserialize` implementation, which may quote the peer, stays in [`JsonError::detail`].

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

use serde::de::{self, Expected, Unexpected};

/// Which of the two refusals an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not a JSON text, or one that two readers could understand differently: 400.
    Malformed,
    /// A JSON text of another shape than the target type: 422.
    Shape,
}

/// Why a body was refused.
///
/// One pointer wide: every step of a successful read returns a `Result` of this, so its size is
/// paid for by bodies that have no error.
#[derive(Debug)]
pub(crate) struct JsonError(Box<Fault>);

#[derive(Debug)]
struct Fault {
    kind: Kind,
    message: &'static str,
    /// Where the parser gave up, for what is no JSON.
    offset: Option<usize>,
    detail: Option<Box<str>>,
    /// Innermost step first: it is pushed while the error travels up, so that a body without an
    /// error never spends an instruction on its path.
    path: Vec<Step>,
}

/// One step from a value to a part of it.
#[derive(Debug)]
pub(super) enum Step {
    /// The value of a field that the target type declares.
    Field(Cow<'static, str>),
    /// An element of an array, counted from 0.
    Index(usize),
    /// The value of a map entry, whose key the peer chose.
    Entry,
}

pub(super) const DUPLICATE_KEY: &str = "duplicate key";
const INVALID_VALUE: &str = "invalid value";

impl JsonError {
    #[cold]
    pub(super) fn malformed(message: &'static str) -> Self {
        Self::new(Kind::Malformed, message)
    }

    #[cold]
    pub(super) fn shape(message: &'static str) -> Self {
        Self::new(Kind::Shape, message)
    }

    fn new(kind: Kind, message: &'static str) -> Self {
        let path = Vec::new();
        Self(Box::new(Fault { kind, message, offset: None, detail: None, path }))
    }

    pub(super) fn at_byte(mut self, offset: Option<usize>) -> Self {
        self.0.offset = offset;
        self
    }

    /// The refusal this is.
    pub(crate) fn kind(&self) -> Kind {
        self.0.kind
    }

    /// One of a few fixed sentences, lower case, without any byte of the peer's.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn message(&self) -> &'static str {
        self.0.message
    }

    /// Which byte of the body, counted from 0, is the first that cannot be, or one of the last that could if the body ends
    /// too early. Not known of every fault.
    #[cfg(feature = "internals")]
    pub(crate) fn offset(&self) -> Option<usize> {
        self.0.offset
    }

    /// The message, and at which byte.
    pub(crate) fn sentence(&self) -> Cow<'static, str> {
        match self.0.offset {
            Some(offset) => format!("{} at byte {offset}", self.0.message).into(),
            None => self.0.message.into(),
        }
    }

    /// What a `Deserialize` implementation said in its own words. It may quote the peer: for a
    /// log or a user's own error mapper, never for an answer.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Where the fault is, as in `items[2].price`; empty for the whole body.
    ///
    /// ```text
    /// path  = [ field ] *step
    /// step  = "." field / index / name / entry
    /// field = a name of letters, digits, "_" and "$" that does not begin with a digit
    /// index = "[" 1*DIGIT "]"                an element, counted from 0
    /// name  = "[" JSON-string "]"            any other declared name, e.g. ["content-type"]
    /// entry = "[*]"                          an entry of a map: its key is the peer's own
    /// ```
    ///
    /// A missing field is the last step of its own path. The path of an unknown or a repeated key
    /// ends at the object that holds it, or at the last declared field above that. Serde buffers
    /// what goes into a flattened, internally tagged or untagged part, and there the path ends too.
    pub(crate) fn path(&self) -> impl Display + '_ {
        Path(&self.0.path)
    }

    #[cold]
    pub(super) fn inside(mut self, step: Step) -> Self {
        self.0.path.push(step);
        self
    }

    /// Forgets the steps so far: they lie inside something the program has no name for.
    #[cold]
    pub(super) fn inside_unnamed(mut self) -> Self {
        self.0.path.clear();
        self
    }

    fn with_detail(mut self, detail: &dyn Display) -> Self {
        self.0.detail = Some(detail.to_string().into());
        self
    }
}

struct Path<'a>(&'a [Step]);

impl Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().rev().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Entry => f.write_str("[*]")?,
                Step::Field(name) if is_plain(name) => {
                    if position > 0 {
                        f.write_char('.')?;
                    }
                    f.write_str(name)?;
                }
                Step::Field(name) => {
                    f.write_str("[\"")?;
                    super::write::escape_into(f, name)?;
                    f.write_str("\"]")?;
                }
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    name.bytes().next().is_some_and(|first| !first.is_ascii_digit()) && name.bytes().all(word)
}

/// The sentence for what a visitor of serde's or of a derive expects; others keep their words to
/// the detail.
fn sentence(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "a boolean" => "expected a boolean",
        "a string" | "a borrowed string" | "string" => "expected a string",
        "a character" => "expected a single character",
        "a sequence" => "expected an array",
        "a map" => "expected an object",
        "unit" | "null" => "expected null",
        "f32" | "f64" => "expected a number",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => {
            "expected an integer in range"
        }
        _ if expected.starts_with("struct ") => "expected an object",
        _ => return None,
    })
}

fn expectation(expected: &dyn Expected, otherwise: &'static str) -> JsonError {
    let words = expected.to_string();
    match sentence(&words) {
        Some(message) => JsonError::shape(message),
        None => JsonError::shape(otherwise).with_detail(&format_args!("expected {words}")),
    }
}

impl de::Error for JsonError {
    #[cold]
    fn custom<T: Display>(detail: T) -> Self {
        Self::shape(INVALID_VALUE).with_detail(&detail)
    }

    #[cold]
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        expectation(expected, "wrong type")
    }

    #[cold]
    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        expectation(expected, INVALID_VALUE)
    }

    #[cold]
    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        Self::shape(super::read::WRONG_COUNT)
    }

    #[cold]
    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::shape("unknown variant")
    }

    #[cold]
    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::shape("unknown field")
    }

    #[cold]
    fn missing_field(field: &'static str) -> Self {
        Self::shape("missing field").inside(Step::Field(Cow::Borrowed(field)))
    }

    /// Two spellings (`alias`) of one field: each key is unique, so the text itself is sound.
    #[cold]
    fn duplicate_field(field: &'static str) -> Self {
        Self::shape("duplicate field").inside(Step::Field(Cow::Borrowed(field)))
    }
}

impl Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())?;
        if self.0.path.is_empty() { Ok(()) } else { write!(f, " at {}", self.path()) }
    }
}

impl std::error::Error for JsonError {}
