//! JSON (RFC 8259) in and out: any `serde::Deserialize` type read from the body's own bytes, any
//! `serde::Serialize` type written to the end of the output.
//!
//! The job is split so that each file has one reason to change:
//!
//! - `parse`: bytes to a tape of nodes. The only file that names simd-json.
//! - `unique`: refuses a tape in which an object repeats a key.
//! - `read`: the tape to a value, through serde.
//! - `error`: what went wrong, and where.
//! - `write`: a value to bytes, through serde.
//!
//! What is absent: no tree of values, no pretty printer, no reader of partial bodies, no byte
//! offsets in errors (the parser reports them differently on each kind of CPU).

mod digits;
mod error;
mod parse;
mod read;
mod unique;
mod write;

pub(crate) use digits::shortened;
pub(crate) use error::{JsonError, Kind};
pub(crate) use parse::{Tape, parse};
pub(crate) use write::write;

#[cfg(test)]
mod tests;
