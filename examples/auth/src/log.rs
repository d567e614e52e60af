//! Lines for whoever runs this, on stderr.

use std::fmt::Display;
use std::io::Write as _;

/// Writes a line. Not `eprintln!`: it panics where nobody reads any more, and a service goes on without a reader.
pub fn line(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
