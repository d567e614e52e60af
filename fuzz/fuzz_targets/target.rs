//! An accepted target is the sum of its parts and holds no dot segment however it is decoded; decoding equals the
//! percent-encoding crate's; and any text, encoded, comes back from a path parameter.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::target::check(data));
