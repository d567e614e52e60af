//! Tables of routes, against the search that tries every row: `src/route/naive.rs`.

use sprat::internals::{Answered, OwnedTable};
use sprat::{Method, Methods};

use super::input::Input;

#[path = "../../src/route/naive.rs"]
mod naive;

const METHODS: &[Method] = &[
    Method::Get,
    Method::Post,
    Method::Head,
    Method::Options,
    Method::Put,
    Method::Patch,
    Method::Delete,
    Method::Trace,
    Method::Other,
];

/// Words that are alike in all ways that matter: lengths around a machine word, escapes, text beyond ASCII.
const WORDS: &[&str] = &[
    "a",
    "b",
    "ab",
    "a-b",
    "abcdefgh",
    "abcdefghi",
    "abcdefghj",
    "abcdefghabcdefgh",
    "abcdefghabcdefghi",
    "é",
    "x",
    "",
    "%61",
    "%61b",
    "a%2db",
    "a%2Fb",
    "%C3%A9",
    "abcdefg%68",
    "abcdefgh%69",
    "A",
    "%2F",
    "%25",
];

/// Any table answers any request as a search does that tries every row on its own; and a table is refused only for two
/// rows that match the same requests.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let rows: Vec<(Method, String)> =
        (0..input.below(24)).map(|_| (input.pick(&METHODS[..8]), pattern(&mut input))).collect();
    // The first row that matches the same requests as one before it cannot stand in the table.
    let repeated = rows.iter().enumerate().find_map(|(at, (method, pattern))| {
        let same = |(m, p): &(Method, String)| m == method && without_names(p) == without_names(pattern);
        rows[..at].iter().position(same).map(|before| (at, before))
    });
    let mut rows: Vec<(Method, &str)> = rows.iter().map(|(method, pattern)| (*method, pattern.as_str())).collect();
    if let Some((at, before)) = repeated {
        let error = OwnedTable::new(&rows).unwrap_err();
        assert_eq!(error, (at, format!("matches the same requests as row {before}")));
        rows.truncate(at);
    }
    let table = OwnedTable::new(&rows).unwrap();
    while !input.is_empty() {
        let method = input.pick(METHODS);
        let path: String = (0..1 + input.below(6)).map(|_| format!("/{}", input.pick(WORDS))).collect();
        let found = match table.find(method, &path) {
            Answered::Row(at, spans) => {
                let spans = &spans[..rows[at].1.matches('{').count()];
                Ok((at, spans.iter().map(|&(from, to)| path[from as usize..to as usize].to_owned()).collect()))
            }
            Answered::Allow(allow) => Err(Some(allow)),
            Answered::Nothing => Err(None),
        };
        assert_eq!(found, naive::find(&rows, method, &path), "{method:?} {path} of {rows:?}");
    }
}

fn pattern(input: &mut Input<'_>) -> String {
    let parts = input.byte();
    let mut pattern: String = (0..parts % 5)
        .map(|at| match input.below(16) {
            word @ ..11 => format!("/{}", WORDS[word]),
            _ => format!("/{{p{at}}}"),
        })
        .collect();
    match parts / 5 % 4 {
        0 => pattern.push_str("/{*rest}"),
        1 => pattern.push('/'),
        _ if pattern.is_empty() => pattern.push('/'),
        _ => {}
    }
    pattern
}

fn without_names(pattern: &str) -> String {
    let parts = pattern.split('/').map(|part| match part.as_bytes() {
        [b'{', b'*', ..] => "{*}",
        [b'{', ..] => "{}",
        _ => part,
    });
    parts.collect::<Vec<_>>().join("/")
}
