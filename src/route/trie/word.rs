//! Eight bytes of a path at a time, in a register: to find slashes, to hash and to compare.

use super::{Literals, Node};

const SLASHES: u64 = u64::from_le_bytes([b'/'; 8]);

/// Eight bytes of a path, the first one lowest.
#[derive(Clone, Copy)]
pub(super) struct Word {
    /// Up to the first slash and with it; what is behind it is zero. So the slash tells lengths apart.
    pub(super) kept: u64,
    /// The lowest bit that is set is the highest of the first slash.
    pub(super) marks: u64,
}

impl Word {
    /// The eight bytes from `at` on. Behind the end there are only slashes. `left` is the end of `path`.
    #[inline]
    pub(super) const fn at(left: &[u8], path: &[u8], at: usize) -> Word {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let word = word_at(left, path, at);
        let slashes = word ^ SLASHES;
        // A borrow can mark a byte wrongly only above one that is marked rightly, so the lowest mark is exact.
        let marks = slashes.wrapping_sub(ONES) & !slashes & HIGH;
        Word { kept: word & (marks ^ marks.wrapping_sub(1)), marks }
    }

    #[inline]
    pub(super) const fn has_slash(self) -> bool {
        self.marks != 0
    }

    /// How many bytes stand before the slash.
    #[inline]
    pub(super) const fn len(self) -> usize {
        (self.marks.trailing_zeros() / 8) as usize
    }
}

#[inline]
const fn word_at(left: &[u8], path: &[u8], at: usize) -> u64 {
    let Some((_, from)) = left.split_at_checked(at) else { return SLASHES };
    if let Some(word) = from.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    if from.is_empty() {
        return SLASHES;
    }
    let word = match path.last_chunk::<8>() {
        // The last eight bytes of the path, less those before `from`.
        Some(word) => u64::from_le_bytes(*word) >> (64 - 8 * from.len()),
        None => short_word(from),
    };
    word | SLASHES << (8 * from.len())
}

/// Up to seven bytes as a word, the rest zero.
#[inline]
const fn short_word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let shift = 8 * (bytes.len() - 4);
            u32::from_le_bytes(*first) as u64 | (u32::from_le_bytes(*last) as u64) << shift
        }
        _ => match bytes {
            [a] => *a as u64,
            [a, b] => *a as u64 | (*b as u64) << 8,
            [a, b, c] => *a as u64 | (*b as u64) << 8 | (*c as u64) << 16,
            _ => 0,
        },
    }
}

/// How many bytes `left`, the end of `path`, has before its first slash. There is none in its first word.
#[inline(never)]
pub(super) fn long_len(left: &[u8], path: &[u8]) -> usize {
    let mut at = 8;
    loop {
        let word = Word::at(left, path, at);
        if word.has_slash() {
            return at + word.len();
        }
        at += 8;
    }
}

/// Where the last slash of a path stands, which begins with one.
#[inline]
pub(super) fn last_slash(path: &[u8]) -> usize {
    let (word, before) = match path.last_chunk::<8>() {
        Some(word) => (u64::from_le_bytes(*word), path.len() - 8),
        None => (short_word(path), 0),
    };
    match slash_marks(word) {
        0 => last_slash_far(path),
        marks => before + (marks.ilog2() / 8) as usize,
    }
}

/// The highest bit of each slash of a word.
#[inline]
const fn slash_marks(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let slashes = word ^ SLASHES;
    !(((slashes & LOW) + LOW) | slashes | LOW)
}

#[inline(never)]
fn last_slash_far(path: &[u8]) -> usize {
    let mut left = path;
    while let Some((before, word)) = left.split_last_chunk::<8>() {
        match slash_marks(u64::from_le_bytes(*word)) {
            0 => left = before,
            marks => return before.len() + (marks.ilog2() / 8) as usize,
        }
    }
    left.iter().rposition(|&b| b == b'/').unwrap_or(0)
}

/// Multiplication sends every bit upwards, and the slot is taken from the top.
#[inline]
const fn hash_step(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0xa076_1d64_78bd_642f)
}

/// Two words that are all of a text up to this length.
pub(super) const TWO_WORDS: usize = 16;

/// The first and the last eight bytes of a text, or twice all of it.
#[inline]
pub(super) const fn text_ends(text: &[u8]) -> [u64; 2] {
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
        _ => [short_word(text); 2],
    }
}

/// The hash of the text of a node that two words hold.
#[inline]
pub(super) const fn hash_text(text: &[u8], ends: [u64; 2]) -> u64 {
    hash_step(hash_step(text.len() as u64, ends[0]), ends[1])
}

/// The hash of a longer one. All of it counts, for many begin and end alike.
#[inline(never)]
pub(super) const fn hash_long_text(text: &[u8], ends: [u64; 2]) -> u64 {
    let (mut hash, mut left) = (hash_text(text, ends), text);
    while let Some((word, behind)) = left.split_first_chunk::<8>() {
        hash = hash_step(hash, u64::from_le_bytes(*word));
        left = behind;
    }
    hash
}

/// The hash of the first segment of `left` behind a node, its first two words, and whether it ends in them.
#[inline]
pub(super) fn hash_literal(
    parent: u16,
    literals: Literals,
    first: Word,
    left: &[u8],
    path: &[u8],
) -> (u64, [u64; 2], bool) {
    let hash = hash_step(hash_seed(parent), first.kept);
    if first.has_slash() {
        return (hash, [first.kept, 0], true);
    }
    let second = Word::at(left, path, 8);
    let hash = hash_step(hash, second.kept);
    let words = [first.kept, second.kept];
    match literals {
        Literals::Long if !second.has_slash() => (hash_behind(hash, left, path), words, false),
        _ => (hash, words, second.has_slash()),
    }
}

#[inline]
const fn hash_seed(parent: u16) -> u64 {
    (parent as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The same hash from a node, for the index that it is sought in.
pub(super) const fn hash_node(node: &Node<'_>, literals: Literals) -> u64 {
    let hash = hash_step(hash_seed(node.parent), node.words[0]);
    if node.label_len < 8 {
        return hash;
    }
    let hash = hash_step(hash, node.words[1]);
    match literals {
        Literals::Long if node.label_len as usize >= TWO_WORDS => hash_behind(hash, node.label(), node.label()),
        _ => hash,
    }
}

/// Takes the words behind the first two into a hash.
#[cold]
const fn hash_behind(hash: u64, left: &[u8], path: &[u8]) -> u64 {
    let (mut hash, mut at) = (hash, 16);
    loop {
        let word = Word::at(left, path, at);
        hash = hash_step(hash, word.kept);
        if word.has_slash() {
            return hash;
        }
        at += 8;
    }
}
