//! Routing: 3, 100 and 1,000 rows, beside matchit and, for the rows without a parameter, a `HashMap`.
//!
//! A search asks for each path of a sample in turn, so that no branch predictor learns the one path by heart.

use std::collections::HashMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput};
use sprat::Method;
use sprat::internals::OwnedTable;

/// A pattern for row `n`, and a path that it matches.
fn row(n: usize) -> (String, String) {
    let areas = ["users", "orders", "articles", "teams", "invoices", "projects", "tags", "files"];
    let area = areas[n % areas.len()];
    let version = n / areas.len();
    match n % 3 {
        0 => (format!("/v{version}/{area}"), format!("/v{version}/{area}")),
        1 => (format!("/v{version}/{area}/{{id}}"), format!("/v{version}/{area}/12345")),
        _ => (
            format!("/v{version}/{area}/{{id}}/comments/{{comment}}"),
            format!("/v{version}/{area}/12345/comments/678"),
        ),
    }
}

/// See the module.
pub fn routing(c: &mut Criterion) {
    for count in [3, 100, 1000] {
        let rows: Vec<(String, String)> = (0..count).map(row).collect();
        let sample: Vec<&str> = (0..64).map(|n| &*rows[n * 7919 % count].1).collect();
        let literal: Vec<&str> =
            rows.iter().filter(|(pattern, _)| !pattern.contains('{')).map(|(_, path)| &**path).collect();
        let literal_sample: Vec<&str> = (0..64).map(|n| literal[n * 7919 % literal.len()]).collect();

        let patterns: Vec<(Method, &str)> = rows.iter().map(|(pattern, _)| (Method::Get, &**pattern)).collect();
        let table = OwnedTable::new(&patterns).expect("the rows do not conflict");
        let mut matchit = matchit::Router::new();
        rows.iter().enumerate().for_each(|(n, (pattern, _))| matchit.insert(pattern, n).expect("nor here"));
        let map: HashMap<&str, usize> = literal.iter().enumerate().map(|(n, path)| (*path, n)).collect();

        let mut group = c.benchmark_group(format!("routing/{count} rows"));
        group.throughput(Throughput::Elements(64));
        group.bench_function("sprat", |b| b.iter(|| each(&sample, |path| table.find(Method::Get, path))));
        group
            .bench_function("matchit", |b| b.iter(|| each(&sample, |path| matchit.at(path).map(|found| *found.value))));
        group.bench_function("sprat, literal rows", |b| {
            b.iter(|| each(&literal_sample, |path| table.find(Method::Get, path)));
        });
        group.bench_function("HashMap, literal rows", |b| b.iter(|| each(&literal_sample, |path| map.get(path))));
        group.finish();
    }
}

fn each<'p, T>(paths: &[&'p str], mut find: impl FnMut(&'p str) -> T) {
    for path in paths {
        black_box(find(black_box(path)));
    }
}
