//! What has to be true of each layer, as functions of bytes, and the slow, obvious twins that say so.
//!
//! The targets in `fuzz_targets` hand them to libFuzzer; `checks/tests/properties.rs` hands the same ones to proptest,
//! for those without a nightly toolchain. Each of them panics if the property does not hold.

pub mod chunked;
pub mod connection;
pub mod cookies;
pub mod cors;
pub mod credentials;
pub mod date;
pub mod form;
pub mod framing;
pub mod head;
pub mod input;
pub mod json;
pub mod later;
pub mod media_type;
#[path = "../../src/tests/naive.rs"]
mod naive;
pub mod proxy;
pub mod query;
pub mod response;
pub mod routes;
pub mod smuggling;
pub mod strict;
pub mod target;

use sprat::Limits;

/// Limits that short inputs reach.
pub const TIGHT: Limits = Limits {
    head_bytes_max: 256,
    target_bytes_max: 48,
    fields_max: 6,
    body_bytes_max: 64,
    chunk_line_bytes_max: 24,
    chunk_extension_bytes_max: 48,
    trailer_bytes_max: 48,
    output_bytes_max: 1024,
    linger_bytes_max: 128,
    requests_per_turn: 2,
    ..Limits::DEFAULT
};
