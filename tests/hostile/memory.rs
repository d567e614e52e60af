//! The documented ceiling of memory, held against a crowd, and buffers that shrink.

use std::io::Write as _;
use std::thread;

use sprat::Limits;

use crate::common::{assert_hello, exchange, ms, reset};
use crate::lab::{Process, descriptors_max, within};

#[test]
fn slow_clients_hold_no_more_memory_than_the_ceiling() {
    // 10,000 where the descriptor limit allows it, beside other tests.
    let count = (descriptors_max() / 2 - 200).min(10_000);
    let limits = Limits { body_bytes_max: 32 << 10, output_bytes_max: 8 << 10, ..Limits::DEFAULT };
    let process = Process::start("body_max=32768 output_max=8192 grace_ms=60000 head_ms=60000");
    assert_hello(&mut process.connect());
    let before = process.memory_kb();
    let half_a_head = format!("GET / HTTP/1.1\r\nHost: x\r\nCookie: {}", "c".repeat(3000));
    let half_a_body = format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 32768\r\n\r\n{}", "b".repeat(8000));
    let clients: Vec<_> = (0..count)
        .map(|number| {
            let mut stream = process.connect();
            let part = if number % 2 == 0 { &half_a_head } else { &half_a_body };
            stream.write_all(part.as_bytes()).expect("room");
            stream
        })
        .collect();
    // All of it has been received once a last client is served.
    assert_hello(&mut process.connect());
    let held_kb = process.memory_peak_kb() - before;
    let ceiling_kb = limits.worst_case_bytes(count) / 1024;
    println!("{count} slow clients: {held_kb} kB, {ceiling_kb} kB allowed by the limits");
    assert!(held_kb <= ceiling_kb, "{held_kb} kB of {ceiling_kb}");
    // 4 and 16 KiB buffers, and a slot. Allocation follows what came, not what was announced.
    assert!(held_kb <= count * 12 + (8 << 10), "{held_kb} kB for {count} clients");
    assert!(held_kb >= count * 5, "{held_kb} kB for {count} clients: they were not all held");
    clients.into_iter().for_each(reset);
}

#[test]
fn buffers_shrink_after_large_messages() {
    let process = Process::start("body_max=8388608");
    assert_hello(&mut process.connect());
    let before = process.memory_kb();
    let body = "0123456789".repeat(800_000);
    let request = format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut streams: Vec<_> = (0..6).map(|_| process.connect()).collect();
    for stream in &mut streams {
        let mut sender = stream.try_clone().expect("a descriptor");
        let answer = thread::scope(|scope| {
            scope.spawn(|| sender.write_all(request.as_bytes()));
            exchange(stream, "")
        });
        assert!(answer.content == body);
    }
    assert!(process.memory_peak_kb() > before + 8000, "they were large");
    // The connections are there still, and idle. Of all their buffers, 16 MiB each, the allocator keeps two at most.
    let shrunk = within(ms(5000), || (process.memory_kb() < before + (40 << 10)).then_some(()));
    assert!(shrunk.is_some(), "{} kB, {before} before", process.memory_kb());
    for stream in &mut streams {
        assert_hello(stream);
    }
}
