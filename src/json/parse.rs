//! Bytes to a tape of nodes to a value: the one file that names simd-json.
//!
//! The language is RFC 8259 without slack. Refused as malformed, beside what the grammar refuses:
//! a key that its object repeats (section 4; compared after unescaping), more than
//! [`DEPTH_MAX`] levels, text that is not UTF-8 (8.1) or that escapes half a surrogate pair (8.2),
//! a byte order mark (8.1 lets a parser ignore one; we do not, so that one text has one spelling),
//! a number beyond the range of `f64`, and numbers that would take long to read (see `digits`).
//!
//! Numbers are exact or refused: see `read`.

use std::mem;

use serde::Deserialize;
use simd_json::{Buffers, ErrorType, INPUT_PADDING, Tape as Nodes, fill_tape, fill_tape_padded};
pub(super) use simd_json::{Node, StaticNode};

use super::digits::are_hard;
use super::error::{DUPLICATE_KEY, JsonError, Kind};
use super::read::read;
use super::unique::{Scratch, find_repeated};

/// How many arrays and objects may stand inside each other. It bounds the stack that reading a
/// recursive type takes.
pub(crate) const DEPTH_MAX: usize = 128;

/// The storage for a larger body is not kept. For a body of this size it is at most 2 MiB.
const RETAINED_BODY_BYTES_MAX: usize = 64 * 1024;

/// What parsing needs beside the body, kept from one body to the next so that a body that
/// resembles an earlier one allocates nothing.
pub(crate) struct Tape {
    /// Empty between two calls of [`parse`], hence free of any body's lifetime.
    nodes: Nodes<'static>,
    buffers: Buffers,
    scratch: Scratch,
}

/// Not derived: the tape holds pointers into the last body, and what they point to is a peer's business.
impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tape").finish_non_exhaustive()
    }
}

impl Default for Tape {
    fn default() -> Self {
        let buffers = Buffers::with_max_depth(0, DEPTH_MAX);
        Self { nodes: Nodes(Vec::new()), buffers, scratch: Scratch::new() }
    }
}

/// Reads the JSON text `bytes[..len]` as a `T`.
///
/// Strings are unescaped where they stand, so `bytes[..len]` is garbage afterwards, also after an
/// error. The bytes from `len` on have no part in the result and are unchanged afterwards. When
/// there are fewer than 64 of them the body is copied once.
///
/// # Panics
///
/// When `len` exceeds `bytes`: a mistake of the caller's, never of the peer's.
pub(crate) fn parse<'r, T>(bytes: &'r mut [u8], len: usize, tape: &mut Tape) -> Result<T, JsonError>
where
    T: Deserialize<'r>,
{
    let mut nodes = mem::replace(&mut tape.nodes, Nodes(Vec::new())).reset();
    let result = match fill(bytes, len, tape, &mut nodes) {
        Ok(repeated) => conclude(read(&nodes.0), repeated),
        Err(error) => Err(error),
    };
    if len > RETAINED_BODY_BYTES_MAX {
        *tape = Tape::default();
    } else {
        tape.nodes = nodes.reset();
    }
    result
}

/// Fills `nodes`, and tells whether a key is repeated.
///
/// The nodes from that object on are cut off then, so that the read fails there and the error
/// gathers the path on its way up, as any other does.
#[inline(never)]
fn fill<'r>(bytes: &'r mut [u8], len: usize, tape: &mut Tape, nodes: &mut Nodes<'r>) -> Result<bool, JsonError> {
    if are_hard(&bytes[..len]) {
        return Err(JsonError::malformed("too many numbers of more than 19 digits"));
    }
    let filled = if bytes.len() - len >= INPUT_PADDING {
        fill_tape_padded(bytes, len, &mut tape.buffers, nodes)
    } else {
        fill_tape(&mut bytes[..len], &mut tape.buffers, nodes)
    };
    if let Err(error) = filled {
        return Err(malformed(error));
    }
    if planted!("json") {
        return Ok(false);
    }
    match find_repeated(&nodes.0, &mut tape.scratch) {
        Some(index) => {
            nodes.0.truncate(index);
            Ok(true)
        }
        None => Ok(false),
    }
}

#[inline]
fn conclude<T>(result: Result<T, JsonError>, repeated: bool) -> Result<T, JsonError> {
    if !repeated {
        return result;
    }
    match result {
        Err(error) if error.kind() == Kind::Malformed => Err(error),
        // The type did not look there, or fell over something before.
        _ => Err(JsonError::malformed(DUPLICATE_KEY)),
    }
}

#[cold]
fn malformed(error: simd_json::Error) -> JsonError {
    let (message, has_place) = match error.error() {
        ErrorType::Eof => ("empty body", false),
        ErrorType::DepthLimitExceeded => ("nesting deeper than 128 levels", true),
        ErrorType::InvalidUtf8 => ("text that is not utf-8", false),
        // Its place counts from the start of the string, which is not told.
        ErrorType::InvalidEscape | ErrorType::InvalidUnicodeCodepoint => ("malformed json: invalid escape", false),
        // What is found before the text is walked through has no character, and no place.
        _ => ("malformed json", error.character().is_some()),
    };
    JsonError::malformed(message).at_byte(has_place.then(|| error.index()))
}

const _: () = assert!(DEPTH_MAX == 128, "the sentence in `malformed` says 128");
