//! Whatever is said to rights to answer and to streams, in whatever order, however requests are cut and answers taken:
//! each request gets its own answer, in its place, which decodes to what was said, or is visibly cut and the last.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::later::check(data));
