//! A body is taken for what the naive reader, which splits the field, takes it for; letter case and a parameter that is
//! no charset change nothing, and a foreign charset, a second line or a coding refuses any.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::media_type::check(data));
