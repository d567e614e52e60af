//! What is accepted is what the strict parser accepts, and parses equal once it is written down again; what is refused
//! breaks the rule that is named; and a peer that drips gets the same, for linear work.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::head::check(data));
