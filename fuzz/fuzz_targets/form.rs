//! Any bytes are read as the naive reader reads them, though each text lies where its escapes were, borrowed; and any
//! pairs, encoded, come back, in order and by key.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::form::check(data));
