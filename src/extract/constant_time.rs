//! Comparison that takes the same time for every wrong secret of the right length.

use std::hint::black_box;

/// Whether two byte strings are equal, without telling by its duration where they differ.
///
/// Every byte is looked at, whatever was found before. The length may leak: strings of different lengths are told
/// apart at once. Where the length of a secret is a secret, compare digests of both.
///
/// ```
/// use sprat::constant_time_eq;
/// assert!(constant_time_eq(b"hunter2", b"hunter2"));
/// assert!(!constant_time_eq(b"hunter2", b"hunter3"));
/// ```
#[must_use]
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    // What is observed here is the whole difference, not only whether there is one: no early exit can give that.
    black_box(difference) == 0
}
