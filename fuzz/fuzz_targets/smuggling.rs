//! A second parser finds the same requests in the same bytes; no cut changes them; and behind each request that leaves
//! the connection open, and behind no other, the next one begins: a canary there is served, once and for itself.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::smuggling::check(data));
