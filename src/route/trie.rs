//! The trie over path segments: built by the compiler, searched once for each request.
//!
//! All literal edges of all nodes stand in one hash table, under parent and segment. So a look-up costs one hash, one
//! probe and one compare for each segment, whether a table has ten rows or a thousand, and building is linear in the
//! bytes of the patterns. Knows patterns, methods and numbers of rows; knows no handlers.

use super::pattern::{Fault, LITERAL_BYTES_MAX, Segment, Segments, same};
use crate::method::{Method, Methods};
use crate::request::Spans;
use crate::target;

/// What stands in the place of a node, an end or a row that is not there. All three are counted from 1, but for the
/// root, which nothing leads to.
const NONE: u16 = 0;

/// The node at which every path begins.
const ROOT: u16 = 0;

/// A place between two segments of a path.
///
/// INVARIANT: a parent stands before its children, and `depth` and `params` grow by at most one from parent to child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'t> {
    /// The literal that leads here from `parent`; empty for a parameter too.
    label: &'t [u8],
    /// The first eight bytes of the label, the rest zero.
    label_word: u64,
    parent: u16,
    /// Where one more segment leads that is no literal of this node.
    param: u16,
    /// The rows for paths that end here.
    end: u16,
    /// The rows for paths of which anything follows here.
    rest: u16,
    /// Where the search goes on once this node has failed: at this node above, with its parameter or only its rest.
    retry: Option<(u16, Stage)>,
    /// How many segments lead here, and how many of them are parameters.
    depth: u8,
    params: u8,
    by_literal: bool,
    has_literals: bool,
}

/// The rows for one pattern by method, HEAD falling back to GET, and what they allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    rows: [u16; METHODS_LEN],
    allow: Methods,
}

const METHODS_LEN: usize = Method::Other as usize + 1;

/// What of a node is still to be tried, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Literal,
    Param,
    Rest,
}

/// What the trie says about a method and a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// The number of a row, from 1.
    Row(u16),
    /// No row. The union over all patterns that match the path; empty if none does.
    No(Methods),
}

/// Why a pattern cannot join the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Fault(Fault),
    /// The row with this number, from 1, matches the same requests.
    Same(u16),
    /// The numbers of the trie have 16 bits.
    TableTooLarge,
}

/// A trie that is ready to be searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trie<'t> {
    nodes: &'t [Node<'t>],
    /// Open addressing: a node that a literal leads to, or `NONE`. A power of two, filled to a quarter at most.
    index: &'t [u16],
    /// The bits of a hash that are no slot.
    index_shift: u32,
    ends: &'t [End],
}

impl Trie<'_> {
    /// Searches. `escaped` says whether the path holds a `%`. Writes where the parameters stand in `path` to `spans`.
    #[inline]
    pub(crate) fn find(&self, method: Method, path: &str, escaped: bool, spans: &mut Spans) -> Match {
        match self.find_straight(method, path.as_bytes(), escaped, spans) {
            Some(row) => Match::Row(row),
            None => self.find_any(method, path, escaped, spans),
        }
    }

    /// The first row that the search would look at, if it is the right one: the literal at each node, else the
    /// parameter. Most requests end here, without the state that a way back needs.
    #[inline]
    fn find_straight(&self, method: Method, path: &[u8], escaped: bool, spans: &mut Spans) -> Option<u16> {
        if escaped || path.first() != Some(&b'/') {
            return None;
        }
        let mut node = ROOT;
        let mut start = 1;
        loop {
            let here = self.nodes.get(usize::from(node))?;
            let segment = Piece::read(path, start, hash_seed(node));
            let mut next = if here.has_literals { self.literal(node, &segment, path) } else { NONE };
            if next == NONE {
                if here.param == NONE || segment.end == start {
                    return None;
                }
                next = here.param;
                set(spans, here.params, start, segment.end);
            }
            if segment.end >= path.len() {
                let end = self.ends.get(usize::from(self.nodes.get(usize::from(next))?.end))?;
                return Some(end.rows[method as usize]).filter(|row| *row != NONE);
            }
            node = next;
            start = segment.end + 1;
        }
    }

    /// The whole search.
    ///
    /// Visits each node at most once with each of its stages, so the nodes of the table bound the search. No recursion
    /// and no stack: the way back is in the nodes.
    #[inline(never)]
    fn find_any(&self, method: Method, path: &str, escaped: bool, spans: &mut Spans) -> Match {
        let path = path.as_bytes();
        let mut allow = Methods::NONE;
        let mut node = ROOT;
        let mut stage = Stage::Literal;
        let mut start = 1;
        if path.first() != Some(&b'/') {
            return Match::No(allow);
        }
        loop {
            let Some(here) = self.nodes.get(usize::from(node)) else { return Match::No(allow) };
            let segment = Piece::read(path, start, hash_seed(node));
            let mut next = NONE;
            if stage == Stage::Literal && here.has_literals {
                next = if escaped {
                    self.literal_escaped(node, segment.of(path))
                } else {
                    self.literal(node, &segment, path)
                };
            }
            if next == NONE && stage != Stage::Rest && here.param != NONE && segment.end > start {
                next = here.param;
                set(spans, here.params, start, segment.end);
            }
            let failed = if next == NONE {
                if here.rest != NONE {
                    set(spans, here.params, start, path.len());
                    match self.end(here.rest, method) {
                        Match::No(more) => allow = allow.union(more),
                        row => return row,
                    }
                }
                here
            } else if segment.end < path.len() {
                node = next;
                stage = Stage::Literal;
                start = segment.end + 1;
                continue;
            } else {
                let Some(last) = self.nodes.get(usize::from(next)) else { return Match::No(allow) };
                match self.end(last.end, method) {
                    Match::No(more) => allow = allow.union(more),
                    row => return row,
                }
                last
            };
            let Some((above, rest)) = failed.retry else { return Match::No(allow) };
            start = self.start_above(path, start, here.depth, above);
            (node, stage) = (above, rest);
        }
    }

    /// The row of an end for a method.
    #[inline]
    fn end(&self, end: u16, method: Method) -> Match {
        match self.ends.get(usize::from(end)) {
            Some(end) => match end.rows[method as usize] {
                NONE => Match::No(end.allow),
                row => Match::Row(row),
            },
            None => Match::No(Methods::NONE),
        }
    }

    /// The node that a literal leads to.
    #[inline]
    fn literal(&self, parent: u16, segment: &Piece, path: &[u8]) -> u16 {
        let mut slot = (segment.hash >> self.index_shift) as usize;
        loop {
            match self.index.get(slot) {
                None | Some(&NONE) => return NONE,
                Some(&found) => {
                    let Some(node) = self.nodes.get(usize::from(found)) else { return NONE };
                    if node.parent == parent
                        && node.label_word == segment.word
                        && node.label.len() == segment.end - segment.start
                        && (node.label.len() <= 8 || node.label == segment.of(path))
                    {
                        return found;
                    }
                }
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
    }

    /// The same for a segment that may be escaped. A decoded `/` is in no literal, so `%2F` is never equal to one.
    #[cold]
    #[inline(never)]
    fn literal_escaped(&self, parent: u16, segment: &[u8]) -> u16 {
        let mut decoded = [0; LITERAL_BYTES_MAX];
        let Some(len) = decode(segment, &mut decoded) else { return NONE };
        let decoded = &decoded[..len];
        if decoded.contains(&b'/') {
            return NONE;
        }
        self.literal(parent, &Piece::read(decoded, 0, hash_seed(parent)), decoded)
    }

    /// Where the segment after `above` begins, from where the one at `depth` does.
    #[cold]
    #[inline(never)]
    fn start_above(&self, path: &[u8], start: usize, depth: u8, above: u16) -> usize {
        let above_depth = self.nodes.get(usize::from(above)).map_or(0, |node| node.depth);
        let mut start = start;
        for _ in above_depth..depth {
            let before = path.get(..start - 1).unwrap_or_default();
            start = before.iter().rposition(|&b| b == b'/').map_or(1, |slash| slash + 1);
        }
        start
    }
}

#[inline]
fn set(spans: &mut Spans, place: u8, start: usize, end: usize) {
    if let Some(span) = spans.get_mut(usize::from(place)) {
        *span = (start as u32, end as u32);
    }
}

/// Decodes a segment; `None` if it does not fit or an escape is broken.
fn decode(segment: &[u8], to: &mut [u8; LITERAL_BYTES_MAX]) -> Option<usize> {
    let mut rest = segment;
    let mut len = 0;
    while let [first, after @ ..] = rest {
        let byte = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                target::hex_value(*high)? << 4 | target::hex_value(*low)?
            }
            (b'%', _) => return None,
            (byte, after) => {
                rest = after;
                *byte
            }
        };
        *to.get_mut(len)? = byte;
        len += 1;
    }
    Some(len)
}

/// One segment of a path: where it stands, and what finds it in the index.
#[derive(Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    hash: u64,
    /// The first eight bytes, the rest zero.
    word: u64,
}

impl Piece {
    /// Reads up to the next slash or the end, eight bytes at a time.
    #[inline]
    const fn read(path: &[u8], start: usize, seed: u64) -> Piece {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let mut at = start;
        let mut hash = seed;
        let mut first = 0;
        loop {
            let word = word_at(path, at);
            let slashes = word ^ SLASHES;
            // A borrow can mark a byte wrongly only above one that is marked rightly, so the lowest mark is exact.
            let marks = slashes.wrapping_sub(ONES) & !slashes & HIGH;
            let lowest = marks & marks.wrapping_neg();
            // Everything below the lowest mark; all of the word if there is none.
            let kept = word & (lowest >> 7).wrapping_sub(1);
            hash = hash_step(hash, kept);
            if at == start {
                first = kept;
            }
            if marks != 0 {
                return Piece { start, end: at + (lowest.trailing_zeros() / 8) as usize, hash, word: first };
            }
            at += 8;
        }
    }

    #[inline]
    fn of(self, path: &[u8]) -> &[u8] {
        path.get(self.start..self.end).unwrap_or_default()
    }
}

const SLASHES: u64 = 0x2f2f_2f2f_2f2f_2f2f;

/// Eight bytes from `at` on, the first one lowest. Behind the end there are only slashes.
#[inline]
const fn word_at(path: &[u8], at: usize) -> u64 {
    let Some((_, from)) = path.split_at_checked(at) else { return SLASHES };
    if let Some(word) = from.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    if from.is_empty() {
        return SLASHES;
    }
    let word = match path.last_chunk::<8>() {
        // The last eight bytes of the path, less those before `at`.
        Some(word) => u64::from_le_bytes(*word) >> (64 - 8 * from.len()),
        None => short_word(from),
    };
    word | SLASHES << (8 * from.len())
}

/// One to seven bytes as a word, the rest zero.
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

/// Sets the literals of one node apart from those of the others.
#[inline]
const fn hash_seed(parent: u16) -> u64 {
    (parent as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Multiplication sends every bit upwards, and the slot is taken from the top.
#[inline]
const fn hash_step(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0xa076_1d64_78bd_642f)
}

// How a trie is made. The compiler does it in arrays and tests do it in vectors, so it is written for slices.

impl Node<'_> {
    pub(crate) const ROOT: Node<'static> = Node {
        label: &[],
        label_word: 0,
        parent: ROOT,
        param: NONE,
        end: NONE,
        rest: NONE,
        retry: None,
        depth: 0,
        params: 0,
        by_literal: false,
        has_literals: false,
    };
}

impl End {
    pub(crate) const NONE: End = End { rows: [NONE; METHODS_LEN], allow: Methods::NONE };
}

/// How much room a trie needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub nodes: usize,
    pub index: usize,
    pub ends: usize,
}

impl Sizes {
    /// Enough for patterns with so many segments together, none shared.
    pub(crate) const fn for_at_most(segments: usize, rows: usize) -> Sizes {
        Sizes { nodes: segments + 1, index: index_len(segments), ends: rows + 1 }
    }
}

const fn index_len(literals: usize) -> usize {
    (4 * literals + 2).next_power_of_two()
}

const fn index_shift(index_len: usize) -> u32 {
    64 - index_len.trailing_zeros()
}

/// A trie that rows are added to.
#[derive(Debug)]
pub(crate) struct Growing<'b, 't> {
    nodes: &'b mut [Node<'t>],
    index: &'b mut [u16],
    ends: &'b mut [End],
    nodes_len: usize,
    ends_len: usize,
    literals_len: usize,
}

impl<'b, 't> Growing<'b, 't> {
    /// `nodes` are [`Node::ROOT`], `ends` are [`End::NONE`], and `index` is zeros.
    pub(crate) const fn new(nodes: &'b mut [Node<'t>], index: &'b mut [u16], ends: &'b mut [End]) -> Self {
        // The first of both stands for "none", or is the root.
        Growing { nodes, index, ends, nodes_len: 1, ends_len: 1, literals_len: 0 }
    }

    /// How much room is used.
    pub(crate) const fn sizes(&self) -> Sizes {
        Sizes { nodes: self.nodes_len, index: index_len(self.literals_len), ends: self.ends_len }
    }

    /// Adds a row by its number, from 1.
    pub(crate) const fn add(&mut self, row: usize, method: Method, pattern: &'t str) -> Result<(), Refusal> {
        let mut segments = match Segments::of(pattern) {
            Ok(segments) => segments,
            Err(fault) => return Err(Refusal::Fault(fault)),
        };
        let mut node = ROOT;
        let end = loop {
            match segments.next() {
                Err(fault) => return Err(Refusal::Fault(fault)),
                Ok(None) => break &mut self.nodes[node as usize].end,
                Ok(Some(Segment::Rest(_))) => break &mut self.nodes[node as usize].rest,
                Ok(Some(segment)) => match self.step(node, segment) {
                    Ok(next) => node = next,
                    Err(refusal) => return Err(refusal),
                },
            }
        };
        if self.ends_len > u16::MAX as usize || row > u16::MAX as usize {
            return Err(Refusal::TableTooLarge);
        }
        if *end == NONE {
            *end = self.ends_len as u16;
            self.ends_len += 1;
        }
        let rows = &mut self.ends[*end as usize].rows;
        match rows[method as usize] {
            NONE => rows[method as usize] = row as u16,
            other => return Err(Refusal::Same(other)),
        }
        Ok(())
    }

    /// The node that a segment leads to, made if it is not there.
    const fn step(&mut self, from: u16, segment: Segment<'t>) -> Result<u16, Refusal> {
        let new = self.nodes_len;
        if new > u16::MAX as usize {
            return Err(Refusal::TableTooLarge);
        }
        let parent = &self.nodes[from as usize];
        let (depth, params) = (parent.depth + 1, parent.params);
        match segment {
            Segment::Param(_) | Segment::Rest(_) => {
                if parent.param != NONE {
                    return Ok(parent.param);
                }
                self.nodes[from as usize].param = new as u16;
                self.nodes[new] = Node { parent: from, depth, params: params + 1, ..Node::ROOT };
            }
            Segment::Literal(label) => {
                let piece = Piece::read(label, 0, hash_seed(from));
                let mut slot = (piece.hash >> index_shift(self.index.len())) as usize;
                while self.index[slot] != NONE {
                    let found = &self.nodes[self.index[slot] as usize];
                    if found.parent == from && same(found.label, label) {
                        return Ok(self.index[slot]);
                    }
                    slot = (slot + 1) & (self.index.len() - 1);
                }
                self.index[slot] = new as u16;
                self.nodes[from as usize].has_literals = true;
                self.nodes[new] =
                    Node { label, label_word: piece.word, parent: from, depth, params, by_literal: true, ..Node::ROOT };
                self.literals_len += 1;
            }
        }
        self.nodes_len += 1;
        Ok(new as u16)
    }

    /// Fills in what depends on all rows: where HEAD and `Allow` come from, and the ways back.
    pub(crate) const fn finish(&mut self) {
        let mut at = 1;
        while at < self.ends_len {
            let end = &mut self.ends[at];
            if end.rows[Method::Head as usize] == NONE {
                end.rows[Method::Head as usize] = end.rows[Method::Get as usize];
            }
            end.allow = Methods::NONE.with(Method::Options);
            let mut named = 0;
            while named < Method::NAMED.len() {
                if end.rows[Method::NAMED[named] as usize] != NONE {
                    end.allow = end.allow.with(Method::NAMED[named]);
                }
                named += 1;
            }
            at += 1;
        }
        // Parents stand before their children, so the way back of a parent is known by then.
        let mut at = 1;
        while at < self.nodes_len {
            let node = self.nodes[at];
            let parent = self.nodes[node.parent as usize];
            self.nodes[at].retry = if node.by_literal && parent.param != NONE {
                Some((node.parent, Stage::Param))
            } else if parent.rest != NONE {
                Some((node.parent, Stage::Rest))
            } else {
                parent.retry
            };
            at += 1;
        }
    }
}

/// Copies a finished trie to room that fits, and makes its index there.
pub(crate) const fn pack_into<'t>(
    from: (&[Node<'t>], &[End]),
    nodes: &mut [Node<'t>],
    index: &mut [u16],
    ends: &mut [End],
) {
    let mut at = 0;
    while at < ends.len() {
        ends[at] = from.1[at];
        at += 1;
    }
    let mut at = 0;
    while at < nodes.len() {
        let node = from.0[at];
        nodes[at] = node;
        if node.by_literal {
            let hash = Piece::read(node.label, 0, hash_seed(node.parent)).hash;
            let mut slot = (hash >> index_shift(index.len())) as usize;
            while index[slot] != NONE {
                slot = (slot + 1) & (index.len() - 1);
            }
            index[slot] = at as u16;
        }
        at += 1;
    }
}

impl<'t> Trie<'t> {
    /// What [`pack_into`] filled.
    pub(crate) const fn new(nodes: &'t [Node<'t>], index: &'t [u16], ends: &'t [End]) -> Trie<'t> {
        Trie { nodes, index, index_shift: index_shift(index.len()), ends }
    }
}
