//! Any Authorization fields are read as the naive reader does, which splits and leaves base 64 to another crate; and a
//! user with a password comes back as it was.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::credentials::check(data));
