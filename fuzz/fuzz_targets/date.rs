//! The line of any second, whatever the line said before, is what a calendar that counts day by day says.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::date::check(data));
