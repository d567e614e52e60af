//! Which connections are accepted, when accepting rests, and what it goes on by.

use std::time::Duration;

use super::fake::Peer;
use super::{EMFILE, GET, SECOND, Stage, ok_count};
use crate::Limits;

const ECONNABORTED: i32 = 103;
const EPROTO: i32 = 71;

#[test]
fn an_aborted_connection_does_not_keep_the_next_one_waiting() {
    let mut stage = Stage::new(Limits::DEFAULT);
    stage.world.fail_accept(ECONNABORTED);
    stage.world.fail_accept(EPROTO);
    let peer = stage.world.connect();
    peer.send(GET);
    stage.turn();
    assert_eq!(ok_count(&peer.taken()), 1);
    assert_eq!(stage.events.stats().accept_pauses, 0);
}

#[test]
fn a_listener_where_all_fails_is_no_reason_to_spin() {
    let mut stage = Stage::new(Limits::DEFAULT);
    for _ in 0..1000 {
        stage.world.fail_accept(ECONNABORTED);
    }
    stage.world.tell_listener();
    stage.settle();
    assert!(stage.world.waited().is_some_and(|wait| wait >= Duration::from_millis(100)));
}

#[test]
fn without_descriptors_accepting_pauses_and_goes_on_by_a_timer() {
    let mut stage = Stage::new(Limits::DEFAULT);
    stage.world.fail_accept(EMFILE);
    let peer = stage.world.connect();
    peer.send(GET);
    stage.settle();
    let wait = stage.world.waited().expect("a timer");
    assert!((100..=500).contains(&wait.as_millis()), "{wait:?}");
    assert_eq!(peer.taken(), "");
    stage.assert_told("no connection can be accepted for now");
    // No event comes for what is in the queue already.
    stage.advance(wait.as_millis() as u64);
    assert_eq!(ok_count(&peer.taken()), 1);
    assert_eq!(stage.events.stats().accept_pauses, 1);
}

#[test]
fn without_descriptors_accepting_goes_on_at_once_when_a_connection_closes() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let old = stage.connect();
    stage.world.fail_accept(EMFILE);
    let new = stage.world.connect();
    new.send(GET);
    stage.settle();
    assert_eq!(new.taken(), "");
    old.close_write();
    stage.world.tell_readable(&old);
    stage.settle();
    assert_eq!(ok_count(&new.taken()), 1);
}

#[test]
fn at_the_limit_of_connections_the_rest_waits_without_a_spin() {
    let mut stage = Stage::new(Limits { connections_max: 2, ..Limits::DEFAULT });
    let (first, _second, third) = (stage.connect(), stage.connect(), stage.connect());
    assert_eq!(stage.events.stats().open, 2);
    assert!(!third.is_registered());
    assert!(stage.world.waited().is_some_and(|wait| wait >= Duration::from_millis(100)));
    stage.assert_told("all 2 places for connections are taken");
    let before = stage.world.counts();
    stage.advance(SECOND / 2);
    assert_eq!(stage.world.counts().accepts, before.accepts);
    first.close_write();
    stage.world.tell_readable(&first);
    stage.settle();
    assert!(third.is_registered());
}

#[test]
fn at_the_limit_of_connections_the_longest_idle_one_makes_room() {
    let mut stage = Stage::new(Limits { connections_max: 2, ..Limits::DEFAULT });
    let (busy, idle) = (stage.connect(), stage.connect());
    assert_eq!(ok_count(&stage.exchange(&idle, GET)), 1);
    stage.advance(SECOND / 2);
    assert_eq!(ok_count(&stage.exchange(&busy, GET)), 1);
    let third = stage.connect();
    assert!(!third.is_registered(), "half a second is no long time to be idle");
    stage.advance(SECOND * 3 / 4);
    assert!(third.is_registered());
    stage.assert_told("idle, and its place was needed");
    assert_eq!(ok_count(&stage.exchange(&third, GET)), 1);
    assert_eq!(ok_count(&stage.exchange(&busy, GET)), 1);
    assert!(idle.is_closed());
}

#[test]
fn an_idle_connection_stays_while_nobody_waits_for_its_place_or_a_request_of_its_own_is_there() {
    let mut stage = Stage::new(Limits { connections_max: 1, ..Limits::DEFAULT });
    let first = stage.connect();
    assert_eq!(ok_count(&stage.exchange(&first, GET)), 1);
    stage.advance(10 * SECOND);
    assert!(!first.is_closed());
    // Its next request is there, and its event is still on the way.
    first.send(GET);
    let second = stage.connect();
    assert_eq!(ok_count(&first.taken()), 1);
    assert!(!first.is_closed() && !second.is_registered());
    stage.advance(2 * SECOND);
    assert!(first.is_closed() && second.is_registered());
}

#[test]
fn a_burst_of_connections_is_taken_over_several_turns() {
    let mut stage = Stage::new(Limits::DEFAULT);
    let peers: Vec<_> = (0..200).map(|_| stage.world.connect()).collect();
    stage.turn();
    assert_eq!(stage.events.stats().open, 64);
    stage.settle();
    assert!(peers.iter().all(Peer::is_registered));
}
