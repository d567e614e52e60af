//! The rules of matching one by one, and all of them against the oracle on seeded random tables.

use super::owned::{Answered, OwnedTable};
use super::{Answer, Found, Row, Table, naive};
use crate::method::Method;
use crate::request::{Body, Spans};
use crate::testing::Random;

const GET: Method = Method::Get;
const POST: Method = Method::Post;

/// A table of rows that can stand beside each other.
#[track_caller]
fn table<'t>(rows: &[(Method, &'t str)]) -> OwnedTable<'t> {
    OwnedTable::new(rows).unwrap_or_else(|(at, fault)| panic!("{:?}: {fault}", rows[at]))
}

/// Checks which pattern takes a request and with which parameters, in both orders of the rows.
#[track_caller]
fn check(rows: &[(Method, &str)], method: Method, path: &str, expected: Option<(&str, &[&str])>) {
    let backwards: Vec<_> = rows.iter().rev().copied().collect();
    for rows in [rows, &backwards] {
        let table = table(rows);
        match (table.find(method, path), expected) {
            (Answered::Row(at, spans), Some((pattern, params))) => {
                assert_eq!(rows[at].1, pattern, "{path} of {rows:?}");
                let found: Vec<_> = spans.iter().map(|&(start, end)| &path[start as usize..end as usize]).collect();
                assert_eq!(&found[..params.len()], params, "{path} of {rows:?}");
            }
            (Answered::Allow(_) | Answered::Nothing, None) => {}
            (found, _) => panic!("{path}: {found:?} of {rows:?}"),
        }
    }
}

#[track_caller]
fn check_get(patterns: &[&str], path: &str, expected: Option<(&str, &[&str])>) {
    let rows: Vec<_> = patterns.iter().map(|pattern| (GET, *pattern)).collect();
    check(&rows, GET, path, expected);
}

/// Checks what is allowed on a path, as `Allow` lists it.
#[track_caller]
fn check_allow(rows: &[(Method, &str)], method: Method, path: &str, expected: &str) {
    match table(rows).find(method, path) {
        Answered::Allow(allow) => {
            let names: Vec<_> = allow.iter().map(Method::as_str).collect();
            assert_eq!(names.join(", "), expected);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_literal_matches_the_whole_path_only() {
    for path in ["/a/bc", "/a/b/", "/a/b/c", "/a", "/", "//a/b", "/a//b", "/A/b", "/a/b%20"] {
        check_get(&["/a/b"], path, None);
    }
    check_get(&["/a/b"], "/a/b", Some(("/a/b", &[])));
}

#[test]
fn literals_of_every_length_are_told_apart() {
    let text = "abcdefghijklmnopqrstuvwxyz0123456789";
    for len in 1..text.len() {
        let pattern = format!("/{}", &text[..len]);
        check_get(&[&pattern], &pattern, Some((&pattern, &[])));
        check_get(&[&pattern], &format!("{pattern}/"), None);
        check_get(&[&pattern], &format!("{pattern}!"), None);
        check_get(&[&pattern], &pattern[..len], None);
        for at in 1..=len {
            let mut other = pattern.clone().into_bytes();
            other[at] = b'!';
            check_get(&[&pattern], std::str::from_utf8(&other).expect("a byte of ASCII for another"), None);
        }
        let deeper = format!("{pattern}/{pattern}{pattern}", pattern = &pattern);
        let deeper = deeper.replace("//", "/");
        check_get(&[&deeper], &deeper, Some((&deeper, &[])));
    }
}

#[test]
fn a_zero_byte_is_not_the_end_of_a_segment() {
    check_get(&["/a"], "/a\0", None);
    check_get(&["/"], "/\0", None);
}

#[test]
fn a_path_that_spells_a_pattern_is_a_path_like_any_other() {
    check_get(&["/{x}/a/{y}"], "/{x}/a/{y}", Some(("/{x}/a/{y}", &["{x}", "{y}"])));
    check_get(&["/{x}/a/"], "/{x}/a/", Some(("/{x}/a/", &["{x}"])));
}

#[test]
fn a_path_without_a_slash_before_it_matches_nothing() {
    for path in ["", "*", "a", "example.com:80"] {
        check_get(&["/", "/a", "/{*rest}"], path, None);
    }
}

#[test]
fn a_parameter_takes_one_segment_that_is_not_empty() {
    check_get(&["/p/{id}"], "/p/1", Some(("/p/{id}", &["1"])));
    check_get(&["/p/{id}"], "/p/a%2Fb", Some(("/p/{id}", &["a%2Fb"])));
    for path in ["/p/", "/p", "/p/1/", "/p/1/2", "/p//", "/px/1"] {
        check_get(&["/p/{id}"], path, None);
    }
}

#[test]
fn a_rest_takes_what_follows_even_nothing() {
    let pattern = "/f/{*rest}";
    check_get(&[pattern], "/f/a/b", Some((pattern, &["a/b"])));
    check_get(&[pattern], "/f/", Some((pattern, &[""])));
    check_get(&[pattern], "/f//", Some((pattern, &["/"])));
    check_get(&[pattern], "/f/a/", Some((pattern, &["a/"])));
    check_get(&[pattern], "/f/%2F%41", Some((pattern, &["%2F%41"])));
    check_get(&[pattern], "/f", None);
    check_get(&["/{*all}"], "/", Some(("/{*all}", &[""])));
}

#[test]
fn literal_beats_parameter_beats_rest_in_any_order_of_rows() {
    let rows = ["/a/new", "/a/{id}", "/a/{*rest}", "/a/"];
    check_get(&rows, "/a/new", Some(("/a/new", &[])));
    check_get(&rows, "/a/news", Some(("/a/{id}", &["news"])));
    check_get(&rows, "/a/new/x", Some(("/a/{*rest}", &["new/x"])));
    check_get(&rows, "/a/", Some(("/a/", &[])));
    check_get(&["/a/{id}", "/a/{*rest}"], "/a/", Some(("/a/{*rest}", &[""])));
}

#[test]
fn an_earlier_literal_counts_more_than_a_later_one() {
    check_get(&["/a/{x}/{y}", "/{x}/b/c"], "/a/b/c", Some(("/a/{x}/{y}", &["b", "c"])));
    check_get(&["/a/{*rest}", "/{x}/b/c"], "/a/b/c", Some(("/a/{*rest}", &["b/c"])));
}

#[test]
fn a_search_that_leads_nowhere_goes_back() {
    let rows = ["/a/b/c", "/a/{x}/d", "/{y}/b/e", "/{*rest}"];
    check_get(&rows, "/a/b/c", Some(("/a/b/c", &[])));
    check_get(&rows, "/a/b/d", Some(("/a/{x}/d", &["b"])));
    check_get(&rows, "/a/b/e", Some(("/{y}/b/e", &["a"])));
    check_get(&rows, "/a/b/f", Some(("/{*rest}", &["a/b/f"])));
    check_get(&rows, "/a", Some(("/{*rest}", &["a"])));
    check_get(&rows, "/a/", Some(("/{*rest}", &["a/"])));
}

#[test]
fn the_method_takes_part_in_the_choice() {
    let rows = [(POST, "/a/new"), (GET, "/a/{id}"), (Method::Put, "/a/{*rest}"), (GET, "/{*rest}")];
    check(&rows, GET, "/a/new", Some(("/a/{id}", &["new"])));
    check(&rows, POST, "/a/new", Some(("/a/new", &[])));
    check(&rows, Method::Put, "/a/new", Some(("/a/{*rest}", &["new"])));
    check(&rows, GET, "/a/new/x", Some(("/{*rest}", &["a/new/x"])));
    check(&rows, Method::Delete, "/a/new", None);
}

#[test]
fn allow_is_the_union_over_all_patterns_that_match() {
    let rows = [(POST, "/a/new"), (GET, "/a/{id}"), (Method::Put, "/a/{*rest}"), (Method::Patch, "/b/{*rest}")];
    check_allow(&rows, Method::Delete, "/a/new", "GET, HEAD, POST, PUT, OPTIONS");
    check_allow(&rows, Method::Options, "/a/new", "GET, HEAD, POST, PUT, OPTIONS");
    check_allow(&rows, Method::Other, "/a/old", "GET, HEAD, PUT, OPTIONS");
    check_allow(&rows, GET, "/a/", "PUT, OPTIONS");
    check_allow(&rows, Method::Connect, "/b/x", "PATCH, OPTIONS");
    assert_eq!(table(&rows).find(POST, "/c"), Answered::Nothing);
}

#[test]
fn head_is_answered_from_get_unless_it_has_a_row() {
    check(&[(GET, "/")], Method::Head, "/", Some(("/", &[])));
    check(&[(POST, "/")], Method::Head, "/", None);
    check_allow(&[(Method::Head, "/")], GET, "/", "HEAD, OPTIONS");
    let rows = [(GET, "/a"), (Method::Head, "/a"), (Method::Head, "/{x}")];
    let table = table(&rows);
    assert!(matches!(table.find(Method::Head, "/a"), Answered::Row(1, _)));
    // The literal with GET is more specific than the parameter with HEAD.
    check(&[(GET, "/a"), (Method::Head, "/{x}")], Method::Head, "/a", Some(("/a", &[])));
}

#[test]
fn an_own_row_for_options_is_found_first() {
    check(&[(GET, "/a"), (Method::Options, "/{*rest}")], Method::Options, "/a", Some(("/{*rest}", &["a"])));
}

#[test]
fn literals_are_compared_with_the_decoded_segment() {
    check_get(&["/a-b"], "/a%2Db", Some(("/a-b", &[])));
    check_get(&["/a-b/c"], "/%61%2d%62/%63", Some(("/a-b/c", &[])));
    check_get(&["/über"], "/%C3%BCber", Some(("/über", &[])));
    check_get(&["/a-b"], "/a%252Db", None);
    check_get(&["/abc"], "/ab%63d", None);
    check_get(&["/a", "/{x}"], "/%61", Some(("/a", &[])));
}

#[test]
fn an_escaped_slash_neither_splits_nor_equals_a_slash() {
    check_get(&["/a/b", "/{x}"], "/a%2Fb", Some(("/{x}", &["a%2Fb"])));
    check_get(&["/a/b"], "/a%2Fb", None);
    check_get(&["/a/"], "/a%2F", None);
    check_get(&["/a"], "/a%2F", None);
    check_get(&["/"], "/%2F", None);
}

#[test]
fn a_segment_longer_than_any_literal_matches_parameters_only() {
    let long = "a".repeat(256);
    let literal = format!("/{}", &long[1..]);
    check_get(&[&literal, "/{x}"], &literal, Some((&literal, &[])));
    check_get(&[&literal, "/{x}"], &format!("/{long}"), Some(("/{x}", &[&long])));
    let escaped = "%61".repeat(256);
    check_get(&[&literal, "/{x}"], &format!("/{}", &escaped[3..]), Some((&literal, &[])));
    check_get(&[&literal, "/{x}"], &format!("/{escaped}"), Some(("/{x}", &[&escaped])));
}

#[test]
fn all_parameters_that_a_pattern_can_have_are_found() {
    let pattern = "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{*h}";
    check_get(&[pattern], "/1/2/3/4/5/6/7/8/9", Some((pattern, &["1", "2", "3", "4", "5", "6", "7", "8/9"])));
}

#[test]
fn two_rows_that_match_the_same_requests_are_refused() {
    for (a, b) in [("/a", "/a"), ("/a/{x}", "/a/{y}"), ("/{*x}", "/{*y}"), ("/{x}/b/", "/{y}/b/")] {
        let error = OwnedTable::new(&[(GET, a), (GET, "/other"), (GET, b)]).unwrap_err();
        assert_eq!(error, (2, "matches the same requests as row 0".to_owned()));
        assert!(OwnedTable::new(&[(GET, a), (POST, b)]).is_ok());
    }
    for (a, b) in [("/a", "/a/"), ("/a/{x}", "/a/{*x}"), ("/{x}", "/x"), ("/A", "/a")] {
        assert!(OwnedTable::new(&[(GET, a), (GET, b)]).is_ok(), "{a} {b}");
    }
}

#[test]
fn an_empty_table_matches_nothing() {
    assert_eq!(table(&[]).find(GET, "/"), Answered::Nothing);
}

#[test]
fn a_table_where_every_turn_is_wrong_is_searched_once() {
    // Every prefix of a/a/a/.. matches by literals and by parameters, and only the last pattern matches all.
    let depth = 12;
    let patterns: Vec<String> = (0..1 << depth)
        .map(|bits: u32| {
            let parts: Vec<_> = (0..depth)
                .map(|at| match (bits >> at & 1, at < 7) {
                    (1, true) => format!("{{p{at}}}"),
                    (1, false) => "b".to_owned(),
                    _ => "a".to_owned(),
                })
                .collect();
            format!("/{}/end", parts.join("/"))
        })
        .collect();
    let mut rows: Vec<_> = patterns.iter().map(|pattern| (GET, pattern.as_str())).collect();
    rows.push((GET, "/{*rest}"));
    let path = format!("{}/no", "/a".repeat(depth));
    check(&rows, GET, &path, Some(("/{*rest}", &[&path[1..]])));
}

const LITERALS: &[&str] = &[
    "a",
    "b",
    "ab",
    "a-b",
    "abcdefgh",
    "abcdefghi",
    "abcdefghijklmnop",
    "abcdefghijklmnopq",
    "abcdefghijklmnopr",
    "é",
];

fn random_pattern(random: &mut Random) -> String {
    let mut pattern = String::new();
    for at in 0..random.below(5) {
        pattern.push('/');
        match random.below(3) {
            0 => pattern.push_str(&format!("{{p{at}}}")),
            _ => pattern.push_str(random.pick::<&str>(LITERALS)),
        }
    }
    match random.below(4) {
        0 => pattern.push_str("/{*rest}"),
        1 => pattern.push('/'),
        _ if pattern.is_empty() => pattern.push('/'),
        _ => {}
    }
    pattern
}

fn random_path(random: &mut Random) -> String {
    const OTHERS: &[&str] = &["", "x", "%61", "%61b", "a%2db", "a%2Fb", "%C3%A9", "abcdefg%68", "abcdefgh%69", "A"];
    let mut path = String::new();
    for _ in 0..random.between(1, 6) {
        path.push('/');
        let from = if random.below(4) == 0 { OTHERS } else { LITERALS };
        path.push_str(random.pick::<&str>(from));
    }
    // Raw bytes beyond ASCII never come this far, but decoded or not they must not confuse the search.
    path
}

fn without_names(pattern: &str) -> String {
    let parts = pattern.split('/').map(|part| match part.as_bytes() {
        [b'{', b'*', ..] => "{*}",
        [b'{', ..] => "{}",
        _ => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn the_trie_agrees_with_the_oracle() {
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut patterns = Vec::new();
        for _ in 0..random.between(1, if seed % 10 == 0 { 60 } else { 8 }) {
            patterns.push((*random.pick(&Method::NAMED[..8]), random_pattern(&mut random)));
        }
        let mut rows: Vec<(Method, &str)> = Vec::new();
        for (method, pattern) in &patterns {
            let same = rows.iter().position(|(m, p)| m == method && without_names(p) == without_names(pattern));
            rows.push((*method, pattern));
            match (OwnedTable::new(&rows), same) {
                (Ok(_), None) => {}
                (Err((at, error)), Some(same)) => {
                    assert_eq!((at, error), (rows.len() - 1, format!("matches the same requests as row {same}")));
                    rows.pop();
                }
                (table, same) => panic!("seed {seed}: {rows:?}: {table:?}, expected {same:?}"),
            }
        }
        let table = table(&rows);
        for _ in 0..60 {
            let path = random_path(&mut random);
            let any = *random.pick(&Method::NAMED);
            let method = *random.pick(&[GET, Method::Head, Method::Options, POST, any, Method::Other]);
            let expected = naive::find(&rows, method, &path);
            let found = match table.find(method, &path) {
                Answered::Row(at, spans) => {
                    let len = rows[at].1.matches('{').count();
                    let params = spans[..len].iter().map(|&(start, end)| path[start as usize..end as usize].to_owned());
                    Ok((at, params.collect()))
                }
                Answered::Allow(allow) => Err(Some(allow)),
                Answered::Nothing => Err(None),
            };
            assert_eq!(found, expected, "seed {seed}: {method:?} {path} of {rows:?}");
        }
    }
}

fn echo(_: &mut (), body: Body<'_>) -> Vec<u8> {
    body.as_slice().to_vec()
}

fn show(_: &mut (), id: u64) -> String {
    id.to_string()
}

crate::routes! {
    Outer for () {
        POST "/echo" => echo(body) [body_max = 1 << 12],
        GET "/show/{id}" => show(id),
        "/in" => Inner,
    }
}

crate::routes! {
    Inner for () {
        PUT "/echo" => echo(body),
        PUT "/constant/{_any}" => const text("always"),
    }
}

/// The row that a built table has for a request.
#[track_caller]
fn row(method: Method, path: &str) -> &'static Row<()> {
    match Outer::ROUTES.find(method, path, false, &mut Spans::default()) {
        Found::Row(row) => row,
        _ => panic!("no row"),
    }
}

#[test]
fn a_built_table_has_its_rows_and_those_of_its_groups() {
    assert_eq!(format!("{:?}", row(POST, "/echo")), r#"POST "/echo""#);
    assert_eq!(row(POST, "/echo").options.body_bytes_max, Some(4096));
    assert_eq!(format!("{:?}", row(Method::Put, "/in/echo")), r#"PUT "/in/echo""#);
    assert_eq!(row(Method::Put, "/in/echo").options.body_bytes_max, None);
    assert!(matches!(row(Method::Put, "/in/constant/7").answer, Answer::Constant(_)));
    assert_eq!(
        format!("{:?}", Outer::ROUTES),
        r#"[POST "/echo", GET "/show/{id}", PUT "/in/echo", PUT "/in/constant/{_any}"]"#
    );
}

#[test]
fn a_row_with_only_path_parameters_has_nothing_to_check() {
    assert!(matches!(row(GET, "/show/7").answer, Answer::Handler { check: None, .. }));
    assert!(matches!(row(POST, "/echo").answer, Answer::Handler { check: Some(_), .. }));
}

#[test]
fn the_methods_of_a_table_are_the_union_over_all_rows() {
    let names: Vec<_> = Outer::ROUTES.methods().iter().map(Method::as_str).collect();
    assert_eq!(names, ["GET", "HEAD", "POST", "PUT", "OPTIONS"]);
}

#[test]
fn what_is_not_found_says_what_is_allowed() {
    let mut spans = Spans::default();
    let routes = Outer::ROUTES;
    assert!(matches!(routes.find(GET, "/none", false, &mut spans), Found::NotFound));
    assert!(matches!(routes.find(GET, "/echo", false, &mut spans), Found::MethodNotAllowed(_)));
    assert!(matches!(routes.find(Method::Options, "/echo", false, &mut spans), Found::Options(_)));
    assert!(matches!(routes.find(Method::Options, "/none", false, &mut spans), Found::NotFound));
}
