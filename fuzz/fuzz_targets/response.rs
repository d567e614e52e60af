//! What the writer accepts is read back equal by httparse, as one answer and nothing beside it; what it does not accept
//! becomes a 500 that holds none of it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::response::check(data));
