//! How a trie is made. The compiler does it in arrays and tests do it in vectors, so it is written for slices.

use super::word::{TWO_WORDS, hash_long_text, hash_node, hash_text, text_ends};
use super::{End, Literals, NONE, Node, ROOT, Stage};
use crate::method::{Method, Methods};
use crate::route::pattern::same;

/// Why a pattern cannot join the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The row with this number, from 1, matches the same requests.
    Same(u16),
    /// Behind its prefixes it is deeper than 8 bits count.
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
#[allow(missing_docs)]
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
    (8 * literals + 128).next_power_of_two()
}

pub(super) const fn index_shift(index_len: usize) -> u32 {
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
        if bytes.is_empty() || bytes[0] != b'/' {
            return Ok(());
        }
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
        if parent.depth == u8::MAX {
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
