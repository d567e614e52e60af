//! Any table answers any request as a search does that tries every row on its own; and a table is refused only for two
//! rows that match the same requests.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::routes::check(data));
