//! A shutdown: who is still answered, who is closed, and when it is over.

use std::time::Duration;

use super::fake::Peer;
use super::{EMFILE, GET, HELLO_LEN, SECOND, Stage, ok_count};
use crate::Limits;

#[test]
fn shutdown_closes_idle_connections_and_finishes_the_others() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let (idle, silent, partial, body) = (stage.connect(), stage.connect(), stage.connect(), stage.connect());
    stage.exchange(&idle, GET);
    stage.exchange(&partial, "GET / HTTP/1.1\r\n");
    stage.exchange(&body, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na");
    stage.world.advance(SECOND);
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    assert!(!stage.world.is_listening());
    assert!(idle.is_closed() && silent.is_closed());
    assert!(!partial.is_closed() && !body.is_closed());
    let answer = stage.exchange(&partial, "Host: x\r\n\r\n");
    assert!(answer.contains("Connection: close\r\n") && partial.is_closed(), "{answer:?}");
    let answer = stage.exchange(&body, "b");
    assert!(answer.contains("Connection: close\r\n") && answer.ends_with("ab") && body.is_closed(), "{answer:?}");
    assert!(!stage.turn());
    stage.assert_told("shutdown is complete");
}

#[test]
fn a_request_that_has_arrived_when_shutdown_begins_is_answered() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let (kept, queued) = (stage.connect(), Peer::default());
    stage.exchange(&kept, GET);
    // No event has come for either of them.
    kept.send(GET);
    stage.world.queue(&queued);
    queued.send(GET);
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    for peer in [kept, queued] {
        let answer = peer.taken();
        assert!(ok_count(&answer) == 1 && answer.contains("Connection: close\r\n"), "{answer:?}");
        assert!(peer.is_closed());
    }
    assert!(!stage.turn());
}

#[test]
fn a_connection_accepted_just_before_shutdown_has_time_for_its_request() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let (talks, is_silent) = (stage.connect(), stage.connect());
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    assert!(!talks.is_closed() && !is_silent.is_closed());
    let answer = stage.exchange(&talks, GET);
    assert!(answer.contains("Connection: close\r\n") && talks.is_closed());
    assert!(stage.world.waited().is_some_and(|wait| wait <= Duration::from_millis(500)));
    stage.advance(500);
    assert!(is_silent.is_closed());
    assert!(!stage.turn());
}

#[test]
fn a_connection_that_was_answered_just_before_shutdown_has_time_for_its_next_request() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let (early, active, leaves) = (stage.connect(), stage.connect(), stage.connect());
    stage.exchange(&early, GET);
    stage.advance(400);
    stage.exchange(&active, GET);
    stage.exchange(&leaves, GET);
    stage.advance(100);
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    assert!(early.is_closed() && !active.is_closed() && !leaves.is_closed());
    let answer = stage.exchange(&active, GET);
    assert!(ok_count(&answer) == 1 && answer.contains("Connection: close\r\n") && active.is_closed(), "{answer:?}");
    stage.advance(500);
    assert!(leaves.is_closed());
    assert!(!stage.turn());
}

#[test]
fn what_does_not_end_by_the_drain_timeout_is_cut_off() {
    let mut stage = Stage::new(Limits { drain_timeout: Duration::from_secs(3), ..Limits::DEFAULT });
    let (peer, slow) = (stage.connect(), stage.connect());
    stage.exchange(&peer, "GET / HTTP/1.1\r\n");
    slow.take_at_most(10);
    stage.exchange(&slow, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    stage.advance(2_999);
    stage.turn();
    assert!(!peer.is_closed() && !slow.is_closed());
    assert!(stage.world.waited().is_some_and(|wait| wait <= Duration::from_millis(1)));
    stage.advance(1);
    assert!(peer.is_closed() && slow.is_closed() && slow.was_reset());
    assert!(!stage.turn());
    stage.assert_told("2 connections were cut off");
}

#[test]
fn an_announced_shutdown_is_seen_by_handlers_while_all_goes_on() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    let ready = "GET /ready HTTP/1.1\r\nHost: x\r\n\r\n";
    assert!(stage.exchange(&peer, ready).ends_with("\r\n\r\nready"));
    stage.world.ask_for_shutdown(Duration::from_secs(5));
    stage.settle();
    let new = stage.connect();
    for peer in [&peer, &new] {
        let answer = stage.exchange(peer, ready);
        assert!(answer.ends_with("draining") && !answer.contains("Connection"), "{answer:?}");
    }
    // Who is active in the second half is sent away, and who is idle may stay to the end.
    stage.advance(2_499);
    assert!(!stage.exchange(&peer, ready).contains("Connection"));
    stage.advance(1);
    assert!(stage.exchange(&peer, ready).contains("\r\nConnection: close\r\n"));
    assert!(peer.is_closed());
    let late = stage.connect();
    stage.advance(2_499);
    assert!(!new.is_closed() && !late.is_closed() && stage.world.is_listening());
    stage.advance(1);
    assert!(new.is_closed() && late.is_closed() && !stage.world.is_listening());
    assert!(!stage.turn());
}

#[test]
fn a_second_wish_can_only_bring_shutdown_forward() {
    let mut stage = Stage::new(Limits::DEFAULT);
    for seconds in [60, 600] {
        stage.world.ask_for_shutdown(Duration::from_secs(seconds));
        stage.settle();
    }
    assert_eq!(stage.world.waited(), Some(Duration::from_secs(30)));
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.turn();
    assert!(!stage.turn());
}

#[test]
fn a_connection_that_becomes_idle_while_the_server_closes_is_closed() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.take_at_most(50);
    // Its answer was made before the shutdown, and promised nothing about the end.
    let mut answer = stage.exchange(&peer, GET);
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    assert!(!peer.is_closed());
    peer.take_all();
    stage.world.tell(peer.token(), false, true, false);
    stage.settle();
    answer += &peer.taken();
    assert_eq!((answer.len(), peer.is_closed()), (HELLO_LEN, false));
    stage.advance(500);
    assert!(peer.is_closed());
}

// ---- found by simulation -----------------------------------------------------------------------------------------

/// The pause for want of descriptors outlived the listener, and its end lay in the past.
#[test]
fn a_shutdown_without_descriptors_does_not_spin() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
    stage.world.tell_readable(&peer);
    stage.settle();
    stage.world.fail_accept(EMFILE);
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    stage.advance(SECOND);
    assert!(!stage.world.is_listening());
    stage.turn();
    assert_ne!(stage.world.waited(), Some(Duration::ZERO));
}

#[test]
fn peers_that_come_and_go_do_not_hold_up_a_shutdown() {
    let mut stage = Stage::new(Limits { connections_max: 64, ..Limits::DEFAULT });
    for _ in 0..1000 {
        let peer = Peer::default();
        peer.reset();
        stage.world.queue(&peer);
    }
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    assert!(!stage.world.is_listening() && stage.world.counts().accepts <= 128);
    assert!(!stage.turn());
}

/// It was closed as idle without the last read that all others had, because it had been busy at that time.
#[test]
fn a_connection_that_is_busy_when_shutdown_begins_is_read_once_more_as_well() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peer = stage.connect();
    peer.take_at_most(10);
    stage.exchange(&peer, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    stage.world.ask_for_shutdown(Duration::ZERO);
    stage.settle();
    // A request arrives, and its event is late.
    peer.send(GET);
    peer.take_all();
    stage.world.tell(peer.token(), false, true, false);
    stage.settle();
    // It was answered just now, so it may ask again for a moment; and it is read once more when that is over.
    stage.advance(600);
    stage.settle();
    assert!(peer.taken().ends_with("hello"));
    assert!(peer.is_closed());
}
