//! Any Cookie fields are read as the pairs between their `;`, and a cookie that can be set comes back as it was.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::cookies::check(data));
