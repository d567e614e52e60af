//! Refuses repeated keys. RFC 8259 section 4 leaves their meaning open, and readers differ in
//! whether the first or the last wins: a check made by one is void for the other.
//!
//! Not done while reading: a type sees only the objects it asks for, and a repeated key hides as
//! well in a field that is ignored.

use super::parse::Node;

/// Above this many keys an object is sorted; up to it, at most a few hundred comparisons are made.
const SMALL_KEYS_MAX: usize = 32;

/// One entry per key of the object at hand: a fingerprint and the index of its node.
pub(super) type Scratch = Vec<(u64, usize)>;

/// The index of an object with a repeated key, if there is one.
///
/// Every node is looked at once as a member and once as a possible object, so the work is linear
/// but for the sorting. No key is hashed into buckets, so there is none to flood.
pub(super) fn find_repeated(nodes: &[Node<'_>], scratch: &mut Scratch) -> Option<usize> {
    for (index, node) in nodes.iter().enumerate() {
        if let Node::Object { len: 2.., .. } = *node
            && let Some(below) = nodes.get(index + 1..)
            && let len = key_count(node)
            && (if len <= SMALL_KEYS_MAX { repeats_small(below, len) } else { repeats_sorted(below, len, scratch) })
        {
            return Some(index);
        }
    }
    None
}

fn key_count(node: &Node<'_>) -> usize {
    match *node {
        Node::Object { len, .. } => len,
        _ => 0,
    }
}

/// The keys of an object, each with the number of nodes from it on.
struct Keys<'t, 'r> {
    rest: &'t [Node<'r>],
    left: usize,
}

impl<'r> Iterator for Keys<'_, 'r> {
    type Item = (usize, &'r str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let [Node::String(key), value, after @ ..] = self.rest else { return None };
        let position = self.rest.len();
        self.rest = match descendants(value) {
            0 => after,
            count => after.get(count..)?,
        };
        Some((position, key))
    }
}

/// How many nodes after this one belong to it.
#[inline]
pub(super) fn descendants(node: &Node<'_>) -> usize {
    match *node {
        Node::Object { count, .. } | Node::Array { count, .. } => count,
        Node::String(_) | Node::Static(_) => 0,
    }
}

/// 256 marks tell a new key from one that may have been seen; only then are keys compared.
#[inline]
fn repeats_small(below: &[Node<'_>], len: usize) -> bool {
    let mut marks = [0u64; 4];
    for (position, key) in (Keys { rest: below, left: len }) {
        let mark = mark(key.as_bytes());
        let word = &mut marks[usize::from(mark >> 6)];
        let bit = 1 << (mark & 63);
        if *word & bit != 0 && seen_before(below, len, position, key) {
            return true;
        }
        *word |= bit;
    }
    false
}

#[inline]
fn mark(key: &[u8]) -> u8 {
    let (Some(first), Some(last)) = (key.first(), key.last()) else { return 0 };
    let sum = first.wrapping_mul(7).wrapping_add(last.wrapping_mul(31));
    sum.wrapping_add((key.len() as u8).wrapping_mul(101))
}

#[cold]
#[inline(never)]
fn seen_before(below: &[Node<'_>], len: usize, position: usize, key: &str) -> bool {
    let mut before = Keys { rest: below, left: len }.take_while(|&(other, _)| other > position);
    before.any(|(_, other)| other == key)
}

/// Sorts the keys, by fingerprint first and by text where fingerprints agree: an adversary who
/// makes them agree gains a comparison of texts per step, no more.
#[cold]
fn repeats_sorted(below: &[Node<'_>], len: usize, scratch: &mut Scratch) -> bool {
    scratch.clear();
    let keys = Keys { rest: below, left: len };
    scratch.extend(keys.map(|(left, key)| (fingerprint(key.as_bytes()), below.len() - left)));
    let text = |index: usize| match below.get(index) {
        Some(Node::String(key)) => key.as_bytes(),
        _ => &[],
    };
    scratch.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| text(a.1).cmp(text(b.1))));
    scratch.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0 && text(a.1) == text(b.1)))
}

/// Mixes the length and both ends of a key. Equal keys agree; others seldom do.
fn fingerprint(key: &[u8]) -> u64 {
    let (head, tail) = match (key.first_chunk(), key.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (key.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0),
    };
    (head ^ tail.rotate_left(29) ^ key.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
