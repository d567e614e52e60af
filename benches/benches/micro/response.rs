//! Answers to bytes, beside a `format!` of the same bytes.

use std::hint::black_box;
use std::io::Write as _;

use criterion::{Criterion, Throughput};
use sprat::Status;
use sprat::internals::Desk;

/// See the module.
pub fn responses(c: &mut Criterion) {
    let mut desk = Desk::new();
    let content = vec![b'x'; 4096];
    let mut group = c.benchmark_group("response");
    group.throughput(Throughput::Elements(1));
    group.bench_function("text of 13 bytes", |b| {
        b.iter(|| desk.write(|response| response.text(black_box("Hello, World!"))))
    });
    group.bench_function("the same by format", |b| {
        let mut out = Vec::new();
        b.iter(|| {
            out.clear();
            let text = black_box("Hello, World!");
            let _ = write!(
                out,
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nDate: {}\r\n\r\n{text}",
                text.len(),
                black_box("Thu, 01 Jan 1970 00:00:00 GMT"),
            );
            out.len()
        });
    });
    group.bench_function("201 with three fields", |b| {
        b.iter(|| {
            desk.write(|response| {
                let response = response.status(Status::CREATED).field("Location", black_box("/api/v1/resource/42"));
                response.field("ETag", "\"abc\"").field("Cache-Control", "no-store").text("made")
            })
        });
    });
    group.bench_function("4 KiB of bytes", |b| b.iter(|| desk.write(|response| response.body(black_box(&content)))));
    group.finish();
}
