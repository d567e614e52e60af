//! What a connection holds, and gives back.

use std::time::Duration;

use super::{Api, App, client};
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::testing::{Client, Random};

/// Input that makes the server hold something, or that makes it let go.
fn hostile_piece(random: &mut Random, body_bytes_max: usize) -> Vec<u8> {
    let get = "GET /echo-path/7 HTTP/1.1\r\nHost: x\r\n\r\n";
    let len = random.len(0, body_bytes_max);
    match random.below(6) {
        0 => get.repeat(random.len(1, 2000)).into_bytes(),
        1 => format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n{}", "b".repeat(len)).into_bytes(),
        2 => {
            let chunks = "5;ext=\"a\"\r\n12345\r\n".repeat(len / 5);
            format!("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
                .into_bytes()
        }
        3 => format!("GET / HTTP/1.1\r\nHost: x\r\nCookie: {}\r\n\r\n", "c".repeat(random.len(0, 7999))).into_bytes(),
        // Read by nobody.
        4 => format!("POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n{}", "s".repeat(len)).into_bytes(),
        _ => b"POST /".to_vec(),
    }
}

#[test]
fn no_input_makes_a_connection_hold_more_than_its_worst_case() {
    let small =
        Limits { head_bytes_max: 16 << 10, body_bytes_max: 20_000, output_bytes_max: 24_000, ..Limits::DEFAULT };
    let large = Limits { body_bytes_max: 300_000, output_bytes_max: 320_000, ..Limits::DEFAULT };
    let mut most = 0.0f64;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let limits = if seed % 2 == 0 { &small } else { &large };
        let bound = limits.worst_case_bytes_per_connection();
        let mut client = Client::new(Api, App::default()).with_limits(limits.clone());
        let mut link = client.connect();
        for _ in 0..60 {
            // Most of the time less is taken than is made.
            link.take_at_most(random.len(0, limits.output_bytes_max));
            let piece = hostile_piece(&mut random, limits.body_bytes_max);
            for part in piece.chunks(random.len(1, 70_000)) {
                link.send(part);
                assert!(link.held_bytes() <= bound, "seed {seed}: {} of {bound} bytes", link.held_bytes());
                most = most.max(link.held_bytes() as f64 / bound as f64);
            }
            if link.closed().is_some() {
                break;
            }
        }
    }
    // The bound is one that is come near to.
    assert!(most > 0.2, "{most}");
}

#[test]
fn a_peer_that_takes_a_little_less_than_it_asks_for_makes_nothing_grow() {
    let mut client = client();
    let mut link = client.connect();
    let flood = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    link.take_at_most(0);
    for round in 0..3000 {
        link.send(flood.as_bytes());
        // It never gets all.
        link.take_at_most(10_000);
        assert!(link.held_bytes() < 300_000, "{} bytes after {round} rounds", link.held_bytes());
    }
    assert!(link.received().len() > 10 << 20);
}

#[test]
fn the_worst_case_of_all_connections_is_bounded_by_their_bodies() {
    let limits = Limits::DEFAULT;
    let each = limits.worst_case_bytes_per_connection();
    assert!(each > limits.body_bytes_max && each < 4 << 20, "{each}");
    assert!(limits.worst_case_bytes(1) > each && limits.worst_case_bytes(1) < each + (48 << 20));
    assert!(limits.worst_case_bytes(10_000) < 10_000 * (each / 4) + limits.bodies_bytes_max);
    assert_eq!(limits.worst_case_bytes(usize::MAX), usize::MAX);
}

#[test]
fn a_body_of_many_pieces_is_received_into_one_buffer_and_given_back() {
    let mut client = client();
    let body: Vec<u8> = (0..900_000u32).map(|n| n as u8).collect();
    let mut link = client.connect();
    link.send(format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
    body.chunks(7001).for_each(|piece| link.send(piece));
    assert_eq!(link.answers()[0].body(), body);
    assert_eq!(link.held_bytes(), 0);
}

#[test]
fn bodies_of_all_connections_together_are_bounded() {
    let limits = Limits { bodies_bytes_max: 100_000, ..Limits::DEFAULT };
    let mut client = Client::new(Api, App::default()).with_limits(limits);
    let mut link = client.connect();
    link.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    (0..20).for_each(|_| link.send(&[b'a'; 10_000]));
    let answers = link.answers();
    assert_eq!((answers[0].status(), answers[0].field("retry-after")), (503, Some("1")));
}

#[test]
fn a_body_that_fits_into_the_read_buffer_is_taken_however_much_others_hold() {
    let limits = Limits { bodies_bytes_max: 0, ..Limits::DEFAULT };
    let mut client = Client::new(Api, App::default()).with_limits(limits);
    for (len, status) in [(2, 200), (READ_BUFFER_LEN - 100, 200), (READ_BUFFER_LEN + 100, 503)] {
        let mut link = client.connect();
        link.send(format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n").as_bytes());
        link.send(&vec![b'a'; len - 1]);
        link.send(b"a");
        assert_eq!(link.answers()[0].status(), status, "{len} bytes");
    }
}

// ---- found by simulation -----------------------------------------------------------------------------------------

/// What had come of a message that was late was kept, and counted as dropped, until the connection ended.
#[test]
fn a_late_message_gives_its_memory_back() {
    let mut client = client();
    let mut link = client.connect();
    link.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n0123");
    assert!(link.held_bytes() > 0);
    link.advance(Duration::from_secs(6));
    assert_eq!(link.answers()[0].status(), 408);
    assert_eq!(link.held_bytes(), 0);
}

/// A buffer that was almost full grew to four times its length.
#[test]
fn a_body_is_held_in_less_than_twice_its_bound() {
    let limits = Limits { body_bytes_max: 1 << 20, ..Limits::DEFAULT };
    let worst = limits.worst_case_bytes_per_connection();
    let mut client = client().with_limits(limits);
    let mut link = client.connect();
    link.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
    for _ in 0..1023 {
        link.send(&[b'x'; 1024]);
        assert!(link.held_bytes() <= worst, "{} is more than {worst}", link.held_bytes());
    }
}
