//! The trie over path segments: built by the compiler, searched once for each request.
//!
//! All literals of all nodes stand in one hash table, under parent and segment, so building is linear in the bytes of
//! the patterns and finds two rows for the same requests on the way. Nodes that only literals lead to stand there once
//! more under their whole text: so one look-up finds the node of `/api/v1/resource/` for `/api/v1/resource/7`, and a
//! search costs the same whether the table has ten rows or a thousand.
//!
//! Knows patterns, methods and numbers of rows; knows no handlers.

mod grow;
mod word;

use super::pattern::LITERAL_BYTES_MAX;
use crate::method::{Method, Methods};
use crate::request::Spans;
use crate::target;
pub use grow::Sizes;
use grow::index_shift;
pub(crate) use grow::{Growing, Refusal, pack_into};
use word::{TWO_WORDS, Word, hash_literal, hash_long_text, hash_text, last_slash, long_len, text_ends};

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
    #[inline(always)]
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

impl<'t> Trie<'t> {
    /// What [`pack_into`] filled.
    pub(crate) const fn new(nodes: &'t [Node<'t>], index: &'t [u16], ends: &'t [End]) -> Trie<'t> {
        Trie { nodes, index, index_shift: index_shift(index.len()), ends }
    }
}
