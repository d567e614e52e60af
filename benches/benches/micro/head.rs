//! Heads: everything sprat does with one (scan, parse, target, Host, framing), beside the parser alone and others' ways.

use std::hint::black_box;
use std::mem::MaybeUninit;

use criterion::{Criterion, Throughput};
use sprat::{Limits, internals};
use sprat_bench::inputs;

/// See the module.
pub fn heads(c: &mut Criterion) {
    for (name, head) in
        [("curl-43B", inputs::get()), ("browser-430B", inputs::browser()), ("proxied-1.5KB", inputs::proxied())]
    {
        let mut group = c.benchmark_group(format!("head/{name}"));
        group.throughput(Throughput::ElementsAndBytes { elements: 1, bytes: head.len() as u64 });
        group.bench_function("sprat", |b| {
            b.iter(|| {
                let head = black_box(&*head);
                let len = internals::scan(head, 0, 16 << 10).unwrap().unwrap();
                internals::understand_and_forget(&head[..len], &Limits::DEFAULT).unwrap()
            });
        });
        group
            .bench_function("sprat scan alone", |b| b.iter(|| internals::scan(black_box(&head), 0, 16 << 10).unwrap()));
        group.bench_function("httparse alone", |b| {
            b.iter(|| {
                let mut slots = [const { MaybeUninit::uninit() }; 64];
                let mut request = httparse::Request::new(&mut []);
                request.parse_with_uninit_headers(black_box(&head), &mut slots).unwrap().unwrap()
            });
        });
        group.bench_function("bytewise", |b| b.iter(|| bytewise(black_box(&head)).unwrap()));
        group.bench_function("naive", |b| b.iter(|| naive(black_box(&head)).unwrap()));
        group.finish();
    }
}

/// Where a name and a value begin and end.
type FieldSpans = (u32, u32, u32, u32);

/// The work of picohttpparser without its vector instructions: one pass, byte by byte, every byte checked, spans kept.
fn bytewise(head: &[u8]) -> Option<([FieldSpans; 64], usize)> {
    let until = |mut at: usize, end: u8, legal: fn(u8) -> bool| {
        while *head.get(at)? != end {
            legal(head[at]).then_some(())?;
            at += 1;
        }
        Some(at)
    };
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let is_value = |b: u8| (b >= b' ' && b != 0x7f) || b == b'\t';
    let mut at = until(0, b' ', is_token)? + 1;
    at = until(at, b' ', |b| b > b' ' && b < 0x7f)? + 1;
    at = head[at..].strip_prefix(b"HTTP/1.1\r\n").map(|_| at + 10)?;
    let (mut fields, mut count) = ([(0, 0, 0, 0); 64], 0);
    while head.get(at)? != &b'\r' {
        let name_end = until(at, b':', is_token)?;
        let start = name_end + 1 + head[name_end + 1..].iter().take_while(|b| **b == b' ' || **b == b'\t').count();
        let end = until(start, b'\r', is_value)?;
        (*head.get(end + 1)? == b'\n').then_some(())?;
        *fields.get_mut(count)? = (at as u32, name_end as u32, start as u32, end as u32);
        (count, at) = (count + 1, end + 2);
    }
    (head.get(at + 1)? == &b'\n').then_some((fields, count))
}

/// As it is done in an afternoon: lines, a colon, strings, a `Vec`.
fn naive(head: &[u8]) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n").take_while(|line| !line.is_empty());
    let mut fields = vec![(lines.next()?.to_owned(), String::new())];
    for line in lines {
        let (name, value) = line.split_once(':')?;
        fields.push((name.to_lowercase(), value.trim().to_owned()));
    }
    Some(fields)
}
