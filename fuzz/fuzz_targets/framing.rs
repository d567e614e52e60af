//! The decision about any field lines is the naive one; what is refused breaks the rule that is named.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::framing::check(data));
