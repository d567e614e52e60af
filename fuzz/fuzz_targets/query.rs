//! Any text is read as the pairs between its `&`, decoded as the percent-encoding crate does after `+` became a blank;
//! and any pairs, encoded, come back.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::query::check(data));
