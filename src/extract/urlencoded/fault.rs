//! What is wrong with a query or a form, and with which key.
//!
//! Sentences are fixed and paths name only what the program declared, so neither shows the peer's bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::rejection::Rejection;
use crate::status::Status;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No well-formed pairs.
    Malformed,
    /// Pairs that do not fit the type.
    Shape,
    /// A type that borrows what had to be decoded: the program's mistake, not the peer's.
    Type,
}

/// Why a query or a form was refused.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: Cow<'static, str>,
    path: Option<String>,
    /// What a foreign `Deserialize` says, which may quote the peer.
    detail: Option<String>,
}

impl Fault {
    #[cold]
    pub(super) fn malformed(message: &'static str) -> Fault {
        Fault::new(Kind::Malformed, message)
    }

    #[cold]
    pub(super) fn shape(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(Kind::Shape, message)
    }

    fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Fault {
        Fault(Box::new(Inner { kind, message: message.into(), path: None, detail: None }))
    }

    /// Under this declared name, unless it was said closer to the fault.
    #[cold]
    pub(super) fn at(mut self, name: &str) -> Fault {
        match &mut self.0.path {
            Some(path) if path.starts_with('[') => path.insert_str(0, name),
            Some(_) => {}
            none => *none = Some(name.to_owned()),
        }
        self
    }

    /// In the value that came as this one for its key, counted from 0.
    #[cold]
    pub(super) fn at_index(self, index: usize) -> Fault {
        self.at(&format!("[{index}]"))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The answer. A fault of the program's is always 500.
    #[cold]
    pub(crate) fn into_rejection(self, status: Status, error: &'static str) -> Rejection {
        let Inner { kind, message, path, detail } = *self.0;
        let status = if kind == Kind::Type { Status::INTERNAL_SERVER_ERROR } else { status };
        let mut rejection = Rejection::json(status, error, message);
        // Without a name in front it is a place in something that has none.
        if let Some(path) = path.filter(|path| !path.starts_with('[')) {
            rejection = rejection.at(path);
        }
        match detail {
            Some(detail) => rejection.with_detail(detail),
            None => rejection,
        }
    }
}

impl de::Error for Fault {
    #[cold]
    fn custom<T: fmt::Display>(detail: T) -> Fault {
        let mut fault = Fault::shape("invalid value");
        fault.0.detail = Some(detail.to_string());
        fault
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        match (found, expected.to_string().as_str()) {
            (Unexpected::Str(_), "a borrowed string") => {
                Fault::new(Kind::Type, "a borrowed string cannot hold a value that had to be decoded")
            }
            _ => Fault::shape("invalid value"),
        }
    }

    #[cold]
    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Fault {
        Fault::shape("invalid value")
    }

    #[cold]
    fn invalid_length(_: usize, _: &dyn Expected) -> Fault {
        Fault::shape("wrong number of values")
    }

    #[cold]
    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Fault {
        Fault::shape(format!("expected one of {}", expected.join(", ")))
    }

    #[cold]
    fn unknown_field(_: &str, _: &'static [&'static str]) -> Fault {
        Fault::shape("unknown field")
    }

    #[cold]
    fn missing_field(field: &'static str) -> Fault {
        Fault::shape("missing field").at(field)
    }

    /// Two spellings (`alias`) of one field.
    #[cold]
    fn duplicate_field(field: &'static str) -> Fault {
        Fault::shape("duplicate field").at(field)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Fault {}
