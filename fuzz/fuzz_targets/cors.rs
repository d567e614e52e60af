//! Which pages may read an answer is what the policy of its row says, byte for byte, and nothing is said where there is
//! none; a preflight calls no handler, and is told the methods that are under one policy.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::cors::check(data));
