//! Plays a case cut in every way. The same bytes must get the same answers however they arrive.

use super::case::Case;
use super::conversation::Conversation;
use super::in_process::{Peer, Pieces, run_split};
use super::judge::judge;
use super::transcript::{is_same_to_the_byte, transcript};

/// How often a case too long for every split is cut at random, and every case into many pieces.
#[derive(Clone, Copy)]
pub struct Effort {
    pub random_cuts: usize,
    pub random_piece_runs: usize,
}

impl Effort {
    pub const FULL: Effort = Effort { random_cuts: 1000, random_piece_runs: 16 };
}

/// Plays a case whole, in two pieces cut at every place (or, if it is long, at random places and around each
/// boundary), in random pieces, at its own splits, and byte by byte. The first departure is the error.
pub fn check_every_split<P: Peer>(case: &Case, fresh: impl Fn() -> P, effort: Effort) -> Result<(), String> {
    let mut whole_peer = fresh();
    let whole = run_split(case, &mut whole_peer, Pieces::Whole);
    judge(case, &whole)?;

    let check = |pieces: Pieces<'_>| check_like_whole(case, &whole, &mut fresh(), pieces);
    let mut random = Random::seeded_by(&case.id);
    // A single cut first: of all failures it is the easiest to understand.
    for at in single_cuts(case, effort.random_cuts, &mut random) {
        check(Pieces::CutAt(&[at]))?;
    }
    for _ in 0..effort.random_piece_runs {
        let count = 2 + random.below(16);
        check(Pieces::CutAt(&random.offsets(count, case.bytes.len())))?;
    }
    check(Pieces::CutAt(&case.splits))?;
    check(Pieces::ByteByByte)
}

fn check_like_whole<P: Peer>(
    case: &Case,
    whole: &Conversation<'_>,
    peer: &mut P,
    pieces: Pieces<'_>,
) -> Result<(), String> {
    let cut = run_split(case, peer, pieces);
    if is_same_to_the_byte(whole, &cut) {
        return Ok(());
    }
    let (expected, got) = (transcript(case, whole), transcript(case, &cut));
    if expected != got {
        let (pieces, diff) = (describe(case, pieces), expected.diff(&got));
        return Err(format!("answered otherwise (+) than in one piece (-) when sent {pieces}\n{diff}"));
    }
    // Equal but for Date and interim answers, which have rules of their own.
    judge(case, &cut).map_err(|fault| format!("sent {}: {fault}", describe(case, pieces)))
}

/// The places to cut a case in two.
pub fn single_cuts(case: &Case, random_cuts: usize, random: &mut Random) -> Vec<usize> {
    let len = case.bytes.len();
    if len <= EVERY_SPLIT_BYTES_MAX {
        return (1..len).collect();
    }
    let around = |at: usize| at.saturating_sub(2)..=at.saturating_add(2);
    let mut cuts = random.offsets(random_cuts, len);
    cuts.extend(boundaries(case).into_iter().flat_map(around).filter(|at| (1..len).contains(at)));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Where a message changes its nature, and where a buffer is likely to end.
///
/// Not found by decoding chunks and lengths: a head, a chunk-size line and chunk-data all end in CRLF, and content
/// of a given length ends where the next method stands. Of thousands of chunks the first and the last few do.
fn boundaries(case: &Case) -> Vec<usize> {
    let bytes = &case.bytes;
    let head_len = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
    let starts_method = |rest: &[u8]| [&b"GET /"[..], b"POST /", b"HEAD /"].iter().any(|start| rest.starts_with(start));
    let line_ends: Vec<_> = (2..=bytes.len()).filter(|&at| bytes[at - 2..at] == *b"\r\n").collect();
    let methods: Vec<_> = (1..bytes.len()).filter(|&at| starts_method(&bytes[at..])).collect();

    let mut places = vec![head_len, bytes.len()];
    places.extend(case.splits.iter().chain(&case.await_interim));
    places.extend(BUFFER_MARKS.iter().flat_map(|mark| [*mark, head_len + mark]));
    places.extend(first_and_last(&line_ends).chain(first_and_last(&methods)));
    places
}

fn first_and_last(places: &[usize]) -> impl Iterator<Item = &usize> {
    let last = places.len().saturating_sub(PLACES_AT_EACH_END).max(PLACES_AT_EACH_END.min(places.len()));
    places.iter().take(PLACES_AT_EACH_END).chain(&places[last..])
}

fn describe(case: &Case, pieces: Pieces<'_>) -> String {
    match pieces {
        Pieces::Whole => "whole".into(),
        Pieces::ByteByByte => "byte by byte".into(),
        Pieces::CutAt(offsets) => format!("cut at {offsets:?} of {} bytes", case.bytes.len()),
    }
}

/// Random numbers that are the same on each run, so that a failure comes back. (SplitMix64)
pub struct Random(u64);

impl Random {
    /// Each case has its own sequence: adding a case changes nothing for the others.
    pub fn seeded_by(id: &str) -> Random {
        let fnv_1a = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Random(id.bytes().fold(0xcbf2_9ce4_8422_2325, fnv_1a))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// At most `count` different offsets inside `len` bytes, in order.
    fn offsets(&mut self, count: usize, len: usize) -> Vec<usize> {
        if len < 2 {
            return Vec::new();
        }
        let mut offsets: Vec<_> = (0..count).map(|_| 1 + self.below(len - 1)).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }
}

/// Every split of n bytes sends n * n bytes, so this bound keeps the whole corpus under a gigabyte.
const EVERY_SPLIT_BYTES_MAX: usize = 16 * 1024;
const BUFFER_MARKS: [usize; 4] = [4096, 8192, 16_384, 65_536];
const PLACES_AT_EACH_END: usize = 8;
