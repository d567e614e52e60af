//! However a stream of bytes is cut, the same handlers run, the same bytes come back and the connection ends for the
//! same reason; what comes back is one answer, which httparse can read, for each request up to the first refused one.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sprat_fuzz::connection::check(data));
