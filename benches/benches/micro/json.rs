//! JSON in and out, 32 B to 64 KiB, beside serde_json, both reading strings without copying them.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use serde::{Deserialize, Serialize};
use sprat::internals::{JsonTape, parse_json, write_json};
use sprat_bench::inputs;

#[derive(Deserialize, Serialize)]
struct Resource<'r> {
    name: &'r str,
    active: bool,
}

/// Bytes that sprat's receive buffers keep free behind a body.
const PADDING_LEN: usize = 64;

/// See the module.
pub fn json(c: &mut Criterion) {
    for len in [32, 64, 128, 256, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10] {
        let text = inputs::json(len);
        let mut padded = text.clone().into_bytes();
        padded.resize(text.len() + PADDING_LEN, 0);
        let mut group = c.benchmark_group(format!("json-in/{len}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function("sprat", |b| {
            let mut tape = JsonTape::default();
            let read =
                |mut bytes: Vec<u8>| parse_json::<Vec<Resource<'_>>>(&mut bytes, text.len(), &mut tape).unwrap().len();
            b.iter_batched(|| padded.clone(), read, BatchSize::SmallInput);
        });
        group.bench_function("serde_json", |b| {
            let read = |bytes: Vec<u8>| serde_json::from_slice::<Vec<Resource<'_>>>(&bytes).unwrap().len();
            b.iter_batched(|| padded[..text.len()].to_vec(), read, BatchSize::SmallInput);
        });
        group.finish();

        let value: Vec<Resource<'_>> = serde_json::from_str(&text).unwrap();
        let mut out = Vec::with_capacity(text.len());
        let mut group = c.benchmark_group(format!("json-out/{len}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function("sprat", |b| {
            b.iter(|| {
                out.clear();
                write_json(&mut out, black_box(&value));
                out.len()
            });
        });
        group.bench_function("serde_json", |b| {
            b.iter(|| {
                out.clear();
                serde_json::to_writer(&mut out, black_box(&value)).unwrap();
                out.len()
            });
        });
        group.finish();
    }
}
