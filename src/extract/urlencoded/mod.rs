//! `application/x-www-form-urlencoded` (the WHATWG URL standard, section 5), in queries and in bodies.
//!
//! - `pairs`: bytes to decoded keys and values.
//! - `read`: pairs to a value, through serde.
//! - `fault`: what is wrong, and with which key.

mod fault;
mod pairs;
mod read;

use std::borrow::Cow;

use serde::Deserialize;

pub(crate) use fault::{Fault, Kind};
use pairs::Pair;

/// The most pairs of one query or form. What pairs cost beside their bytes is bounded by it.
pub(super) const PAIRS_MAX: usize = 1000;

/// Reads a query. What has to be decoded is copied.
pub(crate) fn from_query<'r, T: Deserialize<'r>>(query: &'r str) -> Result<T, Fault> {
    gather(pairs::of_query(query))
}

/// Reads a form. What has to be decoded is decoded where it stands.
pub(crate) fn from_form<'r, T: Deserialize<'r>>(form: &'r mut [u8]) -> Result<T, Fault> {
    gather(pairs::of_form(form))
}

/// Few pairs lie on the stack, many in a vector.
fn gather<'r, T: Deserialize<'r>>(pairs: impl Iterator<Item = Result<Pair<'r>, Fault>>) -> Result<T, Fault> {
    let mut ready = [const { Pair { key: Cow::Borrowed(""), value: Cow::Borrowed("") } }; PAIRS_READY];
    let mut spilled = Vec::new();
    let mut count = 0;
    for pair in pairs {
        let pair = pair?;
        if count == PAIRS_MAX {
            return Err(Fault::malformed("more than 1000 pairs"));
        }
        if count == PAIRS_READY {
            spilled.extend(ready.iter_mut().map(std::mem::take));
        }
        match ready.get_mut(count) {
            Some(place) => *place = pair,
            None => spilled.push(pair),
        }
        count += 1;
    }
    let pairs = if count > PAIRS_READY { &mut spilled[..] } else { &mut ready[..count] };
    T::deserialize(read::Document { pairs })
}

const PAIRS_READY: usize = 16;

const _: () = assert!(PAIRS_MAX == 1000, "the sentence in `gather` says 1000");
