//! The trie over path segments: built by the compiler, searched once for each request.
//!
//! All literals of all nodes stand in one hash table, under parent and segment, so building is linear in the bytes of
//! the patterns and finds two rows for the same requests on the way. Nodes that only literals lead to stand there once
//! more under their whole text: so one look-up finds the node of `/api/v1/resource/` for `/api/v1/resource/7`, and a
//! search costs the same whether the table has ten rows or a thousand.
//!
//! Knows patterns, methods and numbers of rows; knows no handlers.

use super::pattern::{LITERAL_BYTES_MAX, SEGMENTS_MAX, same};
use crate::method::{Method, Methods};
use crate::request::Spans;
use crate::target;

/// What stands in the place of a node, an end or a row that is not there. All three are counted from 1, but for the
/// root, which nothing leads to.
const NONE: u16 = 0;

/// The node at which every path begins.
const ROOT: u16 = 0;

/// A trie that is ready to be searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trie<'t> {
    nodes: &'t [Node<'t>],
    ends: &'t [End],
    /// The nodes that a literal leads to, by parent and literal; and those that only literals lead to once more, by
    /// their text. Open addressing, `NONE` in between, a power of two long, and filled to a quarter at most.
    index: &'t [u16],
    /// The bits of a hash that are no slot.
    index_shift: u32,
}

/// A place between two segments of a path.
///
/// INVARIANT: a parent stands before its children, and `depth` and `params` grow by at most one from parent to child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'t> {
    /// The pattern up to here: of some row, for the names of parameters do not matter.
    text: &'t [u8],
    /// Its first and last eight bytes; zero, and so never found by its text, if a parameter leads here.
    text_ends: [u64; 2],
    /// The literal at its end with a slash behind: its first two words. Zero for a parameter.
    words: [u64; 2],
    label_len: u8,
    by_literal: bool,
    literals: Literals,
    parent: u16,
    /// Where a segment leads that is no literal of this node.
    param: u16,
    /// The rows for paths that end here, and for those that end in a slash behind it.
    end: u16,
    slash: u16,
    /// The rows for paths of which anything follows here.
    rest: u16,
    /// Where the search goes on once this node has failed: at this node above, with its parameter or only its rest.
    retry: Option<(u16, Stage)>,
    /// How many segments lead here, and how many of them are parameters.
    depth: u8,
    params: u8,
}

/// The literals of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Literals {
    None,
    /// Their first two words tell them apart.
    Short,
    /// Some begin with the same two words.
    Long,
}

/// What of a node is still to be tried, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Literal,
    Param,
    Rest,
}

/// The rows for one pattern by method, HEAD falling back to GET, and what they allow.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct End {
    rows: [u16; METHODS_LEN],
    allow: Methods,
}

const METHODS_LEN: usize = Method::Other as usize + 1;

/// What the trie says about a method and a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// The number of a row, from 1.
    Row(u16),
    /// No row. The union over all patterns that match the path; empty if none does.
    No(Methods),
}

/// Where a search stands.
#[derive(Clone, Copy)]
struct Place {
    node: u16,
    stage: Stage,
    /// Where the segment behind the node begins in the path.
    start: usize,
    /// What the patterns allow that matched so far, but for the method.
    allow: Methods,
}

impl Place {
    const ROOT: Place = Place { node: ROOT, stage: Stage::Literal, start: 1, allow: Methods::NONE };
}

impl Trie<'_> {
    /// Searches. `escaped` says whether the path holds a `%`. Writes where the parameters stand in `path` to `spans`.
    ///
    /// Most paths are literals up to their last slash, and one look-up finds the node there. Whatever else can match,
    /// what follows from that node is more specific; only if it fails, [`Trie::search`] goes on.
    #[inline]
    pub(crate) fn find(&self, method: Method, path: &str, escaped: bool, spans: &mut Spans) -> Match {
        let path = path.as_bytes();
        let [b'/', left @ ..] = path else { return Match::No(Methods::NONE) };
        if escaped {
            return self.search(method, path, true, Place::ROOT, spans);
        }
        let (mut number, mut left, mut start) = (ROOT, left, 1);
        if !left.is_empty() {
            let slash = last_slash(path);
            if slash > 0 {
                let (Some(text), Some(behind)) = (path.get(..slash), path.get(slash + 1..)) else {
                    return Match::No(Methods::NONE);
                };
                number = self.by_text(text);
                if number == NONE {
                    return self.search(method, path, false, Place::ROOT, spans);
                }
                (left, start) = (behind, slash + 1);
            }
        }
        let Some(here) = self.nodes.get(usize::from(number)) else { return Match::No(Methods::NONE) };
        // The most specific end, and whether there is another that can match.
        let (end, more) = 'most_specific: {
            if left.is_empty() {
                if here.slash != NONE {
                    break 'most_specific (here.slash, here.rest != NONE || here.retry.is_some());
                }
            } else {
                let mut next = NONE;
                if here.literals != Literals::None {
                    next = self.by_text(path);
                }
                if next == NONE && here.param != NONE {
                    next = here.param;
                    set(spans, here.params, start, path.len());
                }
                if next != NONE
                    && let Some(next) = self.nodes.get(usize::from(next))
                {
                    break 'most_specific (next.end, next.retry.is_some());
                }
            }
            set(spans, here.params, start, path.len());
            (here.rest, here.retry.is_some())
        };
        match self.end(end, method) {
            Match::No(_) if more => {
                let here = Place { node: number, stage: Stage::Literal, start, allow: Methods::NONE };
                self.search(method, path, false, here, spans)
            }
            only => only,
        }
    }

    /// The number of the node with this text, if only literals lead to it.
    #[inline]
    fn by_text(&self, text: &[u8]) -> u16 {
        let ends = text_ends(text);
        if text.len() > TWO_WORDS {
            return self.by_text_from(hash_long_text(text, ends), text, ends);
        }
        let hash = hash_text(text, ends);
        let number = self.index.get((hash >> self.index_shift) as usize).copied().unwrap_or(NONE);
        match self.nodes.get(usize::from(number)) {
            _ if number == NONE => NONE,
            Some(node) if node.text_ends == ends && node.text.len() == text.len() => number,
            _ => self.by_text_from(hash, text, ends),
        }
    }

    /// The same for texts that two words do not hold, and for those that stand behind another.
    #[inline(never)]
    fn by_text_from(&self, hash: u64, text: &[u8], ends: [u64; 2]) -> u16 {
        let mut slot = (hash >> self.index_shift) as usize;
        while let Some(&number) = self.index.get(slot)
            && let Some(node) = self.nodes.get(usize::from(number))
            && number != NONE
        {
            if node.text_ends == ends && node.text == text {
                return number;
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
        NONE
    }

    /// The number of the node that a literal at the start of `left` leads to from `here`, whose number is `parent`.
    #[inline]
    fn literal(&self, parent: u16, here: &Node<'_>, first: Word, left: &[u8], path: &[u8]) -> u16 {
        if here.literals == Literals::None {
            return NONE;
        }
        let (hash, words, ends) = hash_literal(parent, here.literals, first, left, path);
        let mut slot = (hash >> self.index_shift) as usize;
        while let Some(&number) = self.index.get(slot)
            && let Some(node) = self.nodes.get(usize::from(number))
            && number != NONE
        {
            if node.words == words && node.parent == parent && (ends || is_first_segment(node.label(), left)) {
                return number;
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
        NONE
    }

    /// The row of an end for a method. The end that is `NONE` has no rows.
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

    /// The whole search, segment by segment, from any place on.
    ///
    /// Visits each node at most once with each of its stages, so the nodes of the table bound it. No recursion and no
    /// stack: the way back is in the nodes.
    #[inline(never)]
    fn search(&self, method: Method, path: &[u8], escaped: bool, from: Place, spans: &mut Spans) -> Match {
        let Place { mut node, mut stage, mut start, mut allow } = from;
        loop {
            let Some(here) = self.nodes.get(usize::from(node)) else { return Match::No(allow) };
            let left = path.get(start..).unwrap_or_default();
            let first = Word::at(left, path, 0);
            let len = if first.has_slash() { first.len() } else { long_len(left, path) };
            let mut next = NONE;
            if stage == Stage::Literal && left.is_empty() {
                match self.end(here.slash, method) {
                    Match::No(more) => allow = allow.union(more),
                    row => return row,
                }
            } else if stage == Stage::Literal {
                next = match escaped {
                    false => self.literal(node, here, first, left, path),
                    true => self.literal_escaped(node, here, left.get(..len).unwrap_or_default()),
                };
            }
            if next == NONE && here.param != NONE && stage != Stage::Rest && len > 0 {
                next = here.param;
                set(spans, here.params, start, start + len);
            }
            let mut failed = here;
            if next == NONE {
                set(spans, here.params, start, path.len());
                match self.end(here.rest, method) {
                    Match::No(more) => allow = allow.union(more),
                    row => return row,
                }
            } else if len < left.len() {
                (node, stage, start) = (next, Stage::Literal, start + len + 1);
                continue;
            } else {
                let Some(last) = self.nodes.get(usize::from(next)) else { return Match::No(allow) };
                match self.end(last.end, method) {
                    Match::No(more) => allow = allow.union(more),
                    row => return row,
                }
                failed = last;
            }
            let Some((above, rest)) = failed.retry else { return Match::No(allow) };
            start = self.start_above(path, start, node, above);
            (node, stage) = (above, rest);
        }
    }

    /// As [`Trie::literal`], for a segment that may be escaped. A decoded `/` is in no literal, so `%2F` equals none.
    #[cold]
    fn literal_escaped(&self, parent: u16, here: &Node<'_>, segment: &[u8]) -> u16 {
        let mut decoded = [0; LITERAL_BYTES_MAX];
        if planted!("routes") {
            return self.literal(parent, here, Word::at(segment, segment, 0), segment, segment);
        }
        let Some(len) = decode(segment, &mut decoded) else { return NONE };
        let decoded = &decoded[..len];
        if decoded.contains(&b'/') {
            return NONE;
        }
        self.literal(parent, here, Word::at(decoded, decoded, 0), decoded, decoded)
    }

    /// Where the segment behind `above` begins, from where the one behind `node` does.
    #[cold]
    fn start_above(&self, path: &[u8], start: usize, node: u16, above: u16) -> usize {
        let depth = |node: u16| self.nodes.get(usize::from(node)).map_or(0, |node| node.depth);
        let mut start = start;
        for _ in depth(above)..depth(node) {
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

#[cold]
fn is_first_segment(label: &[u8], left: &[u8]) -> bool {
    matches!(left.strip_prefix(label), Some([] | [b'/', ..]))
}

/// Decodes a segment; `None` if it does not fit or an escape is broken.
fn decode(segment: &[u8], to: &mut [u8; LITERAL_BYTES_MAX]) -> Option<usize> {
    let mut left = segment;
    let mut len = 0;
    while let [first, after @ ..] = left {
        let byte = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                left = after;
                target::hex_value(*high)? << 4 | target::hex_value(*low)?
            }
            (b'%', _) => return None,
            (byte, after) => {
                left = after;
                *byte
            }
        };
        *to.get_mut(len)? = byte;
        len += 1;
    }
    Some(len)
}

// Eight bytes of a path at a time, in a register: to find slashes, to hash and to compare.

const SLASHES: u64 = u64::from_le_bytes([b'/'; 8]);

/// Eight bytes of a path, the first one lowest.
#[derive(Clone, Copy)]
struct Word {
    /// Up to the first slash and with it; what is behind it is zero. So the slash tells lengths apart.
    kept: u64,
    /// The lowest bit that is set is the highest of the first slash.
    marks: u64,
}

impl Word {
    /// The eight bytes from `at` on. Behind the end there are only slashes. `left` is the end of `path`.
    #[inline]
    const fn at(left: &[u8], path: &[u8], at: usize) -> Word {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let word = word_at(left, path, at);
        let slashes = word ^ SLASHES;
        // A borrow can mark a byte wrongly only above one that is marked rightly, so the lowest mark is exact.
        let marks = slashes.wrapping_sub(ONES) & !slashes & HIGH;
        Word { kept: word & (marks ^ marks.wrapping_sub(1)), marks }
    }

    #[inline]
    const fn has_slash(self) -> bool {
        self.marks != 0
    }

    /// How many bytes stand before the slash.
    #[inline]
    const fn len(self) -> usize {
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
fn long_len(left: &[u8], path: &[u8]) -> usize {
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
fn last_slash(path: &[u8]) -> usize {
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
const TWO_WORDS: usize = 16;

/// The first and the last eight bytes of a text, or twice all of it.
#[inline]
const fn text_ends(text: &[u8]) -> [u64; 2] {
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
        _ => [short_word(text); 2],
    }
}

/// The hash of the text of a node that two words hold.
#[inline]
const fn hash_text(text: &[u8], ends: [u64; 2]) -> u64 {
    hash_step(hash_step(text.len() as u64, ends[0]), ends[1])
}

/// The hash of a longer one. All of it counts, for many begin and end alike.
#[inline(never)]
const fn hash_long_text(text: &[u8], ends: [u64; 2]) -> u64 {
    let (mut hash, mut left) = (hash_text(text, ends), text);
    while let Some((word, behind)) = left.split_first_chunk::<8>() {
        hash = hash_step(hash, u64::from_le_bytes(*word));
        left = behind;
    }
    hash
}

/// The hash of the first segment of `left` behind a node, its first two words, and whether it ends in them.
#[inline]
fn hash_literal(parent: u16, literals: Literals, first: Word, left: &[u8], path: &[u8]) -> (u64, [u64; 2], bool) {
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
const fn hash_node(node: &Node<'_>, literals: Literals) -> u64 {
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

// How a trie is made. The compiler does it in arrays and tests do it in vectors, so it is written for slices.

impl<'t> Node<'t> {
    pub(crate) const ROOT: Node<'static> = Node {
        text: &[],
        text_ends: [0; 2],
        words: [0; 2],
        label_len: 0,
        by_literal: false,
        literals: Literals::None,
        parent: ROOT,
        param: NONE,
        end: NONE,
        slash: NONE,
        rest: NONE,
        retry: None,
        depth: 0,
        params: 0,
    };

    /// The literal that leads here; empty for a parameter.
    const fn label(&self) -> &'t [u8] {
        self.text.split_at(self.text.len() - self.label_len as usize).1
    }
}

impl End {
    pub(crate) const NONE: End = End { rows: [NONE; METHODS_LEN], allow: Methods::NONE };
}

/// Why a pattern cannot join the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The row with this number, from 1, matches the same requests.
    Same(u16),
    /// Behind its prefix it has more than one pattern may have.
    TooManySegments,
    /// The numbers of the trie have 16 bits.
    TableTooLarge,
}

/// A segment of a pattern on its way into the trie: where it stands, and what a [`Node`] has of it.
#[derive(Clone, Copy)]
struct Segment {
    parent: u16,
    param: bool,
    words: [u64; 2],
    start: usize,
    end: usize,
}

impl Segment {
    /// Takes the byte at `end` into the words, if it is among the first sixteen.
    const fn push(&mut self, byte: u8) {
        let at = self.end - self.start;
        if at < TWO_WORDS {
            self.words[at / 8] |= (byte as u64) << (8 * (at % 8));
        }
    }
}

const fn slice(text: &str, start: usize, end: usize) -> &[u8] {
    text.as_bytes().split_at(end).0.split_at(start).1
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

/// Each literal stands in the index twice at most.
const fn index_len(literals: usize) -> usize {
    (8 * literals + 2).next_power_of_two()
}

const fn index_shift(index_len: usize) -> u32 {
    64 - index_len.trailing_zeros()
}

/// A trie that rows are added to.
#[derive(Debug)]
pub(crate) struct Growing<'b, 't> {
    nodes: &'b mut [Node<'t>],
    /// The literals only, by all of their bytes: here many can begin with the same words.
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

    /// How much room the finished trie needs.
    pub(crate) const fn sizes(&self) -> Sizes {
        Sizes { nodes: self.nodes_len, index: index_len(self.literals_len), ends: self.ends_len }
    }

    /// Adds a row by its number, from 1. A pattern that breaks the grammar is added somehow, or not.
    pub(crate) const fn add(&mut self, row: usize, method: Method, pattern: &'t str) -> Result<(), Refusal> {
        let bytes = pattern.as_bytes();
        let mut node = ROOT;
        let mut at = 0;
        // Indexed and not sliced: see `pattern`.
        let end = loop {
            if at == bytes.len() {
                break &mut self.nodes[node as usize].end;
            }
            let start = at + 1;
            let mut segment = Segment { parent: node, param: false, words: [0; 2], start, end: start };
            if start == bytes.len() {
                break &mut self.nodes[node as usize].slash;
            }
            if bytes[start] == b'{' {
                if start + 1 < bytes.len() && bytes[start + 1] == b'*' {
                    break &mut self.nodes[node as usize].rest;
                }
                segment.param = true;
            }
            while segment.end < bytes.len() && bytes[segment.end] != b'/' {
                segment.push(bytes[segment.end]);
                segment.end += 1;
            }
            segment.push(b'/');
            at = segment.end;
            node = match self.step(segment, pattern) {
                Ok(next) => next,
                Err(refusal) => return Err(refusal),
            };
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
    const fn step(&mut self, segment: Segment, pattern: &'t str) -> Result<u16, Refusal> {
        let Segment { parent: number, words, start, end, .. } = segment;
        let parent = self.nodes[number as usize];
        let mut node = Node { parent: number, depth: parent.depth + 1, params: parent.params, words, ..Node::ROOT };
        let mut slot = 0;
        if segment.param {
            if parent.param != NONE {
                return Ok(parent.param);
            }
            node.params += 1;
            node.words = [0; 2];
        } else {
            node.label_len = (end - start) as u8;
            node.by_literal = true;
            if end - start >= TWO_WORDS {
                node.text = slice(pattern, 0, end);
            }
            // All of a long one counts here, where many can begin with the same words.
            slot = (hash_node(&node, Literals::Long) >> index_shift(self.index.len())) as usize;
            while self.index[slot] != NONE {
                let found = &self.nodes[self.index[slot] as usize];
                if found.parent == number
                    && found.words[0] == words[0]
                    && found.words[1] == words[1]
                    && found.label_len == node.label_len
                    && (end - start < TWO_WORDS || same(found.label(), node.label()))
                {
                    return Ok(self.index[slot]);
                }
                slot = (slot + 1) & (self.index.len() - 1);
            }
        }
        if self.nodes_len > u16::MAX as usize {
            return Err(Refusal::TableTooLarge);
        }
        if parent.depth as usize == SEGMENTS_MAX {
            return Err(Refusal::TooManySegments);
        }
        let new = self.nodes_len as u16;
        node.text = slice(pattern, 0, end);
        self.nodes[new as usize] = node;
        self.nodes_len += 1;
        if segment.param {
            self.nodes[number as usize].param = new;
        } else {
            self.index[slot] = new;
            self.literals_len += 1;
        }
        Ok(new)
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
    ends.copy_from_slice(from.1.split_at(ends.len()).0);
    nodes.copy_from_slice(from.0.split_at(nodes.len()).0);
    index_literals(nodes, index);
    let mut at = 0;
    while at < index.len() {
        index[at] = NONE;
        at += 1;
    }
    // Once more, now that it is known which literals are told apart by more than two words.
    index_literals(nodes, index);
    index_texts(nodes, index);
}

const fn index_literals(nodes: &mut [Node<'_>], index: &mut [u16]) {
    let mut at = 1;
    while at < nodes.len() {
        let node = nodes[at];
        if node.by_literal {
            let literals = match nodes[node.parent as usize].literals {
                Literals::None => Literals::Short,
                literals => literals,
            };
            nodes[node.parent as usize].literals = literals;
            let words = node.words;
            let mut slot = (hash_node(&node, literals) >> index_shift(index.len())) as usize;
            while index[slot] != NONE {
                let other = &nodes[index[slot] as usize];
                if other.parent == node.parent && other.words[0] == words[0] && other.words[1] == words[1] {
                    nodes[node.parent as usize].literals = Literals::Long;
                }
                slot = (slot + 1) & (index.len() - 1);
            }
            index[slot] = at as u16;
        }
        at += 1;
    }
}

const fn index_texts(nodes: &mut [Node<'_>], index: &mut [u16]) {
    let mut at = 1;
    while at < nodes.len() {
        let node = &mut nodes[at];
        if node.by_literal && node.params == 0 {
            node.text_ends = text_ends(node.text);
            let hash = match node.text.len() > TWO_WORDS {
                true => hash_long_text(node.text, node.text_ends),
                false => hash_text(node.text, node.text_ends),
            };
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
