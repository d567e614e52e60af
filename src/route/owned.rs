//! The same trie, made at run time: for tests and fuzz targets, which cannot ask the compiler for each table.

use super::trie::{End, Growing, Match, Node, Refusal, Sizes, Trie, pack_into};
use crate::method::{Method, Methods};
use crate::request::{PARAMS_MAX, Spans};

/// A table without handlers.
#[derive(Debug)]
pub struct OwnedTable<'t> {
    nodes: Vec<Node<'t>>,
    index: Vec<u16>,
    ends: Vec<End>,
}

/// What a table says about a request, in a form that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The place of the row among those that were given, and where the first parameters stand in the path.
    Row(usize, [(u32, u32); PARAMS_MAX]),
    /// No row has the method; the union over all patterns that match.
    Allow(Methods),
    /// No pattern matches.
    Nothing,
}

impl<'t> OwnedTable<'t> {
    /// Makes a table of these rows.
    ///
    /// # Errors
    /// The place of the first row that cannot stand in it, and why.
    pub fn new(rows: &[(Method, &'t str)]) -> Result<OwnedTable<'t>, (usize, String)> {
        let segments = rows.iter().map(|(_, pattern)| pattern.matches('/').count()).sum();
        let room = Sizes::for_at_most(segments, rows.len());
        let (mut nodes, mut index, mut ends) =
            (vec![Node::ROOT; room.nodes], vec![0; room.index], vec![End::NONE; room.ends]);
        let mut growing = Growing::new(&mut nodes, &mut index, &mut ends);
        for (at, &(method, pattern)) in rows.iter().enumerate() {
            if let Err(fault) = super::pattern::check(pattern) {
                return Err((at, fault.sentence().to_owned()));
            }
            growing.add(at + 1, method, pattern).map_err(|refusal| match refusal {
                Refusal::Same(other) => (at, format!("matches the same requests as row {}", other - 1)),
                refusal => (at, format!("{refusal:?}")),
            })?;
        }
        growing.finish();
        let sizes = growing.sizes();
        let mut packed = OwnedTable {
            nodes: vec![Node::ROOT; sizes.nodes],
            index: vec![0; sizes.index],
            ends: vec![End::NONE; sizes.ends],
        };
        pack_into((&nodes, &ends), &mut packed.nodes, &mut packed.index, &mut packed.ends);
        Ok(packed)
    }

    /// Searches. The escapes in the path have to be good.
    pub fn find(&self, method: Method, path: &str) -> Answered {
        let mut spans = Spans::default();
        match self.trie().find(method, path, path.contains('%'), &mut spans) {
            Match::Row(number) => Answered::Row(usize::from(number) - 1, spans),
            Match::No(allow) if allow.is_empty() => Answered::Nothing,
            Match::No(allow) => Answered::Allow(allow),
        }
    }

    /// The bare search, to be measured: whether a row was found.
    #[cfg(feature = "internals")]
    pub fn search(&self) -> impl Fn(Method, &str, &mut [(u32, u32); PARAMS_MAX]) -> bool {
        let trie = self.trie();
        move |method, path, spans| matches!(trie.find(method, path, false, spans), Match::Row(_))
    }

    fn trie(&self) -> Trie<'_> {
        Trie::new(&self.nodes, &self.index, &self.ends)
    }
}
