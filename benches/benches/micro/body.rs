//! Where bodies end: framing from heads that differ in nothing else, and chunks decoded in place.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use sprat::{Limits, internals};
use sprat_bench::inputs;

/// See the module.
pub fn framing(c: &mut Criterion) {
    let mut group = c.benchmark_group("framing");
    group.throughput(Throughput::Elements(1));
    let fields = [
        ("none", ""),
        ("length", "Content-Length: 12345\r\n"),
        ("chunked", "Transfer-Encoding: chunked\r\n"),
        ("both, refused", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ("closing", "Connection: keep-alive, close\r\n"),
    ];
    for (name, fields) in fields {
        let head = format!("POST / HTTP/1.1\r\nHost: server.local:3000\r\n{fields}\r\n").into_bytes();
        group.bench_function(name, |b| b.iter(|| internals::understand_and_forget(black_box(&head), &Limits::DEFAULT)));
    }
    group.finish();
}

/// See the module.
pub fn chunked(c: &mut Criterion) {
    for (name, content, chunk) in
        [("64KiB in 4KiB", 64 << 10, 4 << 10), ("4KiB in 16B", 4 << 10, 16), ("100B in one", 100, 100)]
    {
        let body = inputs::chunked(content, chunk);
        let mut group = c.benchmark_group(format!("chunked/{name}"));
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function("sprat, in place", |b| {
            let decode = |mut body: Vec<u8>| internals::decode_chunked_in_place(&mut body, &Limits::DEFAULT).unwrap();
            b.iter_batched(|| body.clone(), decode, BatchSize::SmallInput);
        });
        group.bench_function("naive, into a Vec", |b| b.iter(|| naive(black_box(&body)).unwrap()));
        group.finish();
    }
}

fn naive(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let line_len = body.windows(2).position(|w| w == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&body[..line_len]).ok()?, 16).ok()?;
        body = &body[line_len + 2..];
        if size == 0 {
            return Some(content);
        }
        content.extend_from_slice(body.get(..size)?);
        body = body.get(size + 2..)?;
    }
}
