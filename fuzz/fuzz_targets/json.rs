//! What both accept is equal, and is written as text that serde_json reads back; we refuse more only where a key is
//! repeated, and less only at the 128th level; texts stay valid though all of them are unescaped in one buffer, and
//! what follows a body is neither seen nor changed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::json::check(data));
