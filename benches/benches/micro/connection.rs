//! The whole connection machine on captured bytes: what a server does between `recv` and `send`.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use sprat::internals::Replay;
use sprat_bench::app::{Api, App};
use sprat_bench::inputs;

/// See the module.
pub fn connection(c: &mut Criterion) {
    let mut group = c.benchmark_group("connection");
    for name in inputs::NAMES {
        let (bytes, requests) = inputs::by_name(name).expect("a known name");
        group.throughput(Throughput::ElementsAndBytes { elements: requests, bytes: bytes.len() as u64 });
        group.bench_function(name, |b| {
            let mut replay = Replay::new(Api, App::default());
            b.iter(|| {
                replay.receive(black_box(&bytes), |sent| {
                    black_box(sent);
                });
            });
        });
    }
    group.finish();
}
