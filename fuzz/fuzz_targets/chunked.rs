//! The content and the end are those of the naive decoder, at every split, and no byte behind the end is read or
//! changed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::chunked::check(data));
