//! How many instructions a search takes, in a table of ten rows and in one of a thousand.
//!
//! `valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/route_cost <case> <searches>`,
//! twice with different counts; the difference is the cost. Or run `checks/route_cost.sh`.

use std::hint::black_box;

use sprat::__private::OwnedTable;
use sprat::{Method, PARAMS_MAX};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows: usize = arguments.next().and_then(|a| a.parse().ok()).expect("rows");
    let path = arguments.next().expect("path");
    let method = Method::from_token(arguments.next().expect("method").as_bytes());
    let searches: u64 = arguments.next().and_then(|a| a.parse().ok()).expect("searches");
    let mut patterns = vec!["/".to_owned(), "/echo-path/{id}".to_owned(), "/api/v1/resource/{id}".to_owned()];
    for at in patterns.len()..rows {
        patterns.push(match at % 5 {
            0 => format!("/api/v1/resource{at}/{{id}}"),
            1 => format!("/api/v1/resource{}/{{id}}/part{at}", at - 1),
            2 => format!("/users{at}/{{user}}/items/{{item}}"),
            3 => format!("/static{at}/{{*path}}"),
            _ => format!("/page-{at}"),
        });
    }
    let rows: Vec<_> = patterns.iter().map(|pattern| (Method::Get, pattern.as_str())).collect();
    let table = OwnedTable::new(&rows).expect("the rows are good");
    let search = table.search();
    let mut spans = Default::default();
    let mut found = 0;
    for _ in 0..searches {
        found += u64::from(search_once(&search, method, black_box(&path), &mut spans));
    }
    println!("{found} of {searches}");
}

#[inline(never)]
fn search_once(
    search: &impl Fn(Method, &str, &mut [(u32, u32); PARAMS_MAX]) -> bool,
    method: Method,
    path: &str,
    spans: &mut [(u32, u32); PARAMS_MAX],
) -> bool {
    search(method, path, spans)
}
