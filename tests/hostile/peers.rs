//! Peers that mean no good. Each attack leaves others served, memory bounded, and no descriptor behind.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{GET, assert_hello, connect, get, is_closed_within, ms, read_answer, reset};
use crate::lab::{LARGE_LEN, Polite, Process, connect_narrow, descriptors_max, random_bytes, within};

/// Beside what an attack may cost, the process itself varies by so much: code that is used for the first time, and
/// what the allocator keeps.
const NOISE_KB: usize = 8 << 10;

/// Runs an attack on a server of its own. Its memory may grow by so much and the noise; afterwards there are no more
/// descriptors than before.
#[track_caller]
fn attack(settings: &str, growth_max_kb: usize, attack: impl FnOnce(&Process)) {
    let process = Process::start(settings);
    assert_hello(&mut process.connect());
    // The server has to see the end of that connection too.
    thread::sleep(ms(200));
    let (memory, descriptors) = (process.memory_peak_kb(), process.descriptor_count());
    let polite = Polite::start(process.address());
    attack(&process);
    let peak = process.memory_peak_kb();
    polite.assert_served();
    let growth = peak.saturating_sub(memory);
    println!("{growth} kB more at most, {:?} of processor time", process.cpu_time());
    assert!(growth <= growth_max_kb + NOISE_KB, "{growth} kB more, of {growth_max_kb} allowed");
    let closed = within(ms(5000), || (process.descriptor_count() <= descriptors).then_some(()));
    assert!(closed.is_some(), "{} descriptors, {descriptors} before", process.descriptor_count());
}

/// Sends a byte of no end to all of them, again and again, until this time is over.
fn drip(peers: &mut [TcpStream], every: Duration, time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {
        for peer in &mut *peers {
            // Fails once the connection is closed.
            let _ = peer.write_all(b"x");
        }
        thread::sleep(every);
    }
}

#[test]
fn slow_heads_are_gone_soon_after_the_deadline() {
    attack("head_ms=1000 linger_ms=300", 200 * 16, |process| {
        let mut peers: Vec<_> = (0..200).map(|_| process.connect()).collect();
        for peer in &mut peers {
            peer.write_all(b"GET /").expect("room");
        }
        drip(&mut peers, ms(100), ms(1500));
        for peer in &mut peers {
            let answer = read_answer(peer);
            assert_eq!((answer.status, answer.close), (408, true));
            assert!(is_closed_within(peer, ms(3000)));
        }
    });
}

#[test]
fn slow_bodies_are_gone_soon_after_the_grace() {
    attack("grace_ms=700 linger_ms=300", 200 * 16, |process| {
        let mut peers: Vec<_> = (0..200).map(|_| process.connect()).collect();
        for peer in &mut peers {
            peer.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n").expect("room");
        }
        drip(&mut peers, ms(100), ms(1500));
        for peer in &mut peers {
            let answer = read_answer(peer);
            assert_eq!((answer.status, answer.close), (408, true));
            assert!(is_closed_within(peer, ms(3000)));
        }
    });
}

#[test]
fn slow_readers_of_a_large_answer_cost_no_copy_of_it_and_are_dropped() {
    // The answer itself, made from a copy, and a little for each.
    attack("write_ms=1000", 2 * LARGE_LEN / 1024 + 100 * 64, |process| {
        let before = process.descriptor_count();
        let mut peers: Vec<_> = (0..100).map(|_| connect_narrow(process.address())).collect();
        for peer in &mut peers {
            peer.write_all(get("/large").as_bytes()).expect("room");
        }
        // A reset can miss a peer whose window is shut, so it is the server's side that is looked at.
        let dropped = within(ms(8000), || (process.descriptor_count() <= before + 1).then_some(()));
        assert!(dropped.is_some(), "{} descriptors", process.descriptor_count());
    });
}

#[test]
fn peers_that_pipeline_for_ever_and_never_read_are_dropped() {
    // Output up to the bound and as much again, and 64 KiB of requests in a buffer of twice that.
    attack("write_ms=1000", 20 * (4 * 64 + 128), |process| {
        let before = process.descriptor_count();
        let mut peers: Vec<_> = (0..20).map(|_| process.connect()).collect();
        for peer in &mut peers {
            peer.set_nonblocking(true).expect("a socket");
        }
        let requests = GET.repeat(500);
        let (started, mut sent) = (Instant::now(), 0usize);
        while started.elapsed() < ms(1000) || process.descriptor_count() > before + 1 {
            assert!(started.elapsed() < ms(15_000), "{} descriptors", process.descriptor_count());
            for peer in &mut peers {
                sent += peer.write(requests.as_bytes()).unwrap_or(0);
            }
            thread::sleep(ms(5));
        }
        // Not read either, once their answers waited.
        assert!(sent < 20 * (16 << 20), "{sent} bytes were taken");
    });
}

#[test]
fn a_peer_that_pipelines_and_reads_too_slowly_makes_no_memory_grow() {
    attack("", 4 * 64 + 128, |process| {
        let mut peer = connect_narrow(process.address());
        peer.set_nonblocking(true).expect("a socket");
        let requests = GET.repeat(500);
        let (started, mut taken, mut piece) = (Instant::now(), 0, [0; 20_000]);
        while started.elapsed() < ms(2000) {
            let _ = peer.write(requests.as_bytes());
            taken += peer.read(&mut piece).unwrap_or(0);
        }
        assert!(taken > 0);
    });
}

#[test]
fn ten_thousand_connects_and_resets_leave_nothing_behind() {
    attack("", 2048, |process| {
        let address = process.address();
        let clients: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(move || {
                    for round in 0..2500 {
                        let mut stream = connect(address);
                        match round % 4 {
                            0 => {}
                            1 => stream.write_all(b"GET / HT").expect("room"),
                            2 => stream
                                .write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1")
                                .expect("room"),
                            _ => stream.write_all(GET.repeat(3).as_bytes()).expect("room"),
                        }
                        reset(stream);
                    }
                })
            })
            .collect();
        for client in clients {
            client.join().expect("no panic");
        }
    });
}

#[test]
fn a_crowd_of_idle_peers_keeps_nobody_waiting_and_costs_little() {
    // Half of what may be open, for the tests beside this one; 10,000 where the limit is 20,000 or more.
    let idle_count = (descriptors_max() / 2 - 200).min(10_000);
    attack("first_byte_ms=60000", idle_count * 2, |process| {
        let mut idle: Vec<_> = (0..idle_count).map(|_| process.connect()).collect();
        let mut active: Vec<_> = (0..100).map(|_| process.connect()).collect();
        for _ in 0..5 {
            for stream in &mut active {
                stream.write_all(GET.as_bytes()).expect("room");
            }
            for stream in &mut active {
                assert_eq!(read_answer(stream).content, "hello");
            }
        }
        for stream in idle.iter_mut().step_by(97) {
            assert_hello(stream);
        }
        idle.into_iter().for_each(reset);
    });
}

#[test]
fn a_program_that_leaves_no_descriptors_makes_accepting_rest_and_go_on() {
    // 64 descriptors, of which the program has so many that accepting fails before any limit of ours is reached.
    let process = Process::start_confined("hoard=44", 64);
    let mut held: Vec<_> = (0..200).map(|_| process.connect()).collect();
    assert_hello(&mut held[0]);
    // It has all of the 64, and more want to be accepted.
    let full = within(ms(5000), || (process.descriptor_count() >= 64).then_some(()));
    assert!(full.is_some(), "{} descriptors", process.descriptor_count());
    let before = process.cpu_time();
    thread::sleep(ms(1500));
    let used = process.cpu_time() - before;
    assert!(used <= ms(300), "{used:?} in 1.5 s");
    assert_hello(&mut held[0]);
    let mut last = process.connect();
    held.truncate(1);
    let released = Instant::now();
    assert_hello(&mut last);
    assert!(released.elapsed() < ms(2000), "{:?}", released.elapsed());
}

#[test]
fn a_server_out_of_descriptors_rests_and_accepts_again_when_some_are_free() {
    // 32 connections are the most, and 200 want to be.
    let process = Process::start_confined("", 64);
    let mut held: Vec<_> = (0..200).map(|_| process.connect()).collect();
    for stream in &mut held[..32] {
        assert_hello(stream);
    }
    let before = process.cpu_time();
    thread::sleep(ms(1000));
    let used = process.cpu_time() - before;
    assert!(used <= ms(50), "{used:?} in a second");
    held.drain(..100);
    let released = Instant::now();
    let mut last = process.connect();
    // The 100 that are left come first, and stay.
    held.clear();
    assert_hello(&mut last);
    assert!(released.elapsed() < ms(1000), "{:?}", released.elapsed());
}

#[test]
fn half_closed_peers_that_do_not_read_cost_no_processor_time() {
    let process = Process::start("");
    let streams: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = process.connect();
            stream.write_all(get("/large").as_bytes()).expect("room");
            stream.shutdown(Shutdown::Write).expect("a socket");
            stream
        })
        .collect();
    assert_hello(&mut process.connect());
    thread::sleep(ms(300));
    let before = process.cpu_time();
    thread::sleep(ms(1000));
    let used = process.cpu_time() - before;
    assert!(used <= ms(50), "{used:?} in a second");
    drop(streams);
}

#[test]
fn scanners_leave_nothing_behind() {
    attack("", 2048, |process| {
        let random = random_bytes(3, 1000);
        let probes: [&[u8]; 4] =
            [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &random];
        for round in 0..100 {
            for probe in probes {
                let mut stream = process.connect();
                let _ = stream.write_all(probe);
                if round % 2 == 0 {
                    reset(stream);
                } else if !probe.is_empty() && round % 10 == 1 {
                    assert!(is_closed_within(&mut stream, ms(3000)), "{probe:?}");
                }
            }
        }
    });
}

#[test]
fn what_is_no_http_is_refused_and_closed() {
    attack("linger_ms=300", 2048, |process| {
        let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0";
        let (random, other) = (random_bytes(1, 1000), random_bytes(2, 100_000));
        let cases: [(&[u8], &[u16]); 8] = [
            (hello, &[400]),
            (preface, &[505]),
            (&random, &[400]),
            (&other, &[400]),
            (b"\0", &[400]),
            (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", &[400]),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", &[400]),
            (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x05\x06\x07\x08\0\x09\0\x50", &[400]),
        ];
        for (bytes, statuses) in cases {
            for round in 0..20 {
                let mut stream = process.connect();
                let _ = stream.write_all(bytes);
                if round % 4 == 3 {
                    reset(stream);
                    continue;
                }
                let answer = read_answer(&mut stream);
                let shown = bytes[..bytes.len().min(20)].escape_ascii().to_string();
                assert!(statuses.contains(&answer.status) && answer.close, "{shown}: {answer:?}");
            }
        }
    });
}

/// Sends the start, then the piece for as long as it is taken, and gives the status of the answer.
fn endless(process: &Process, start: &str, piece: &str) -> (u16, usize) {
    let mut stream = process.connect();
    let _ = stream.write_all(start.as_bytes());
    let mut sender = stream.try_clone().expect("a descriptor");
    let piece = piece.to_owned();
    let sending = thread::spawn(move || {
        let mut sent = 0;
        while sent < 64 << 20 && sender.write_all(piece.as_bytes()).is_ok() {
            sent += piece.len();
        }
        sent
    });
    let status = read_answer(&mut stream).status;
    (status, sending.join().expect("no panic"))
}

#[test]
fn huge_and_endless_chunked_bodies_are_refused_at_their_bounds() {
    attack("body_max=100000 linger_ms=300", 4096, |process| {
        let start = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = |len: usize| format!("{len:x}\r\n{}\r\n", "x".repeat(len));
        let cases = [
            ("a chunk that is declared too large", "FFFFFFFFFFFFFFF\r\n".to_owned(), chunk(1000), 413),
            ("a number that overflows", "FFFFFFFFFFFFFFFFFF\r\n".to_owned(), chunk(1000), 400),
            ("chunks without end", String::new(), chunk(10_000), 413),
            ("chunks of one byte without end", String::new(), chunk(1).repeat(1000), 413),
            ("a line without end", "1;".to_owned(), "e".repeat(1000), 400),
            (
                "extensions without end",
                String::new(),
                format!("100;{}\r\n{}\r\n", "e".repeat(200), "x".repeat(256)),
                400,
            ),
            ("trailers without end", "1\r\nx\r\n0\r\n".to_owned(), "X-Trailer: value\r\n".repeat(50), 431),
            ("an extension with a lone LF", "1;e\nxx\r\nx\r\n".to_owned(), chunk(1000), 400),
        ];
        for (what, first, piece, status) in cases {
            let (got, sent) = endless(process, &format!("{start}{first}"), &piece);
            assert_eq!(got, status, "{what}");
            assert!(sent < 64 << 20, "{what}: {sent} bytes were taken");
        }
        // The neighbour of all of them is served.
        let mut stream = process.connect();
        let body = format!("{start}5;ext=\"a\"\r\nhello\r\n0\r\nX-Trailer: value\r\n\r\n");
        stream.write_all(body.as_bytes()).expect("room");
        assert_eq!(read_answer(&mut stream).content, "hello");
    });
}

#[test]
fn heads_without_end_are_refused_at_their_bounds() {
    attack("linger_ms=300", 2048, |process| {
        let cases = [
            ("GET / HTTP/1.1\r\nHost: x\r\n", "X-Field: value\r\n", 431),
            ("GET / HTTP/1.1\r\nHost: x\r\nX: ", "value ", 431),
            ("GET /", "aaaaaaaa", 414),
            ("", "AAAAAAAA", 501),
        ];
        for (start, piece, status) in cases {
            let (got, sent) = endless(process, start, &piece.repeat(100));
            assert_eq!(got, status, "{start}{piece}");
            assert!(sent < 64 << 20);
        }
    });
}

#[test]
fn tiny_windows_get_every_byte() {
    attack("", 2 * LARGE_LEN / 1024 + 10 * 64, |process| {
        let address = process.address();
        let clients: Vec<_> = (0..10)
            .map(|_| {
                thread::spawn(move || {
                    let mut stream = connect_narrow(address);
                    stream.write_all(get("/large").as_bytes()).expect("room");
                    let (mut taken, mut piece) = (0, [0; 2000]);
                    while taken < 300_000 {
                        let n = stream.read(&mut piece).expect("bytes");
                        assert_ne!(n, 0);
                        assert!(taken < 1000 || piece[..n].iter().all(|&b| b == b'x'));
                        taken += n;
                    }
                    reset(stream);
                })
            })
            .collect();
        for client in clients {
            client.join().expect("every byte comes");
        }
    });
}

#[test]
fn an_upload_far_over_the_limit_can_read_its_413() {
    attack("", 4096, |process| {
        for framing in ["Content-Length: 52428800", "Transfer-Encoding: chunked"] {
            let mut stream = process.connect();
            let _ = write!(stream, "POST /echo HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n");
            let piece = format!("{:x}\r\n{}\r\n", 64 << 10, "x".repeat(64 << 10));
            // It writes all before it reads, and does not look at its errors.
            for _ in 0..800 {
                let _ = stream.write_all(piece.as_bytes());
            }
            let answer = read_answer(&mut stream);
            assert_eq!((answer.status, answer.close), (413, true), "{framing}");
        }
    });
}
