//! Any bytes are read as the naive reader does, with the same outcome for every prefix and whatever follows; and what a
//! balancer writes comes back.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::proxy::check(data));
