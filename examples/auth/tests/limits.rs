//! The limits bind: for each address and each client, exactly, under concurrency. And nobody uses up another's.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use auth::App;
use auth::guards::ClientId;
use auth::routes::Embedded;
use common::{CLIENT, Lab, PASSWORD, Place, authorize_target, credentials, login_form};
use serde_json::json;
use sprat::RateLimit;
use sprat::testing;

/// Longer than any test: no token comes back meanwhile.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn with_the_clock_held_exactly_100_of_1000_logins_pass() {
    let place = Place::new();
    if place.database_url.starts_with("postgres") {
        return; // The limit asks no database.
    }
    drop(place.store());
    let app = App::open(place.config(&[("ADDRESS_LOGINS_PER_MINUTE", "100")])).expect("a state");
    // In process: its clock stands still.
    let mut client = testing::Client::new(Embedded, app).with_peer(([192, 0, 2, 1], 5000).into());
    let body = login_form("f", "ada@example.org", PASSWORD).to_string();
    let request = format!(
        "POST /oauth/login HTTP/1.1\r\nHost: x\r\nX-Client-Id: demo\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut refused = 0;
    for _ in 0..1000 {
        let mut link = client.connect();
        link.send(request.as_bytes());
        // Who passes is answered later, by the database's thread.
        refused += link.answers().iter().filter(|answer| answer.status() == 429).count();
    }
    let counts = client.state().logins_by_address.counts();
    assert_eq!((counts.admitted, counts.refused, refused), (100, 900, 900));
}

#[test]
fn of_1000_logins_at_once_over_sockets_exactly_100_get_a_session() {
    let mut lab = Lab::with(&[], |app| app.logins = RateLimit::new(100, DAY));
    lab.connect().register("ada@example.org");
    lab.begin_flows((0..1000).map(|id| format!("f{id}")));
    let (passed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for part in 0..20 {
            let (address, passed, refused) = (lab.address, &passed, &refused);
            scope.spawn(move || {
                let mut client = common::Client::connect(address);
                for id in part * 50..part * 50 + 50 {
                    let answer = client.login(&format!("f{id}"), "ada@example.org", PASSWORD);
                    match answer.status {
                        200 => passed.fetch_add(1, Ordering::SeqCst),
                        _ => {
                            answer.is(429, "too_many_requests");
                            assert!(answer.field("retry-after").is_some());
                            refused.fetch_add(1, Ordering::SeqCst)
                        }
                    };
                }
            });
        }
    });
    assert_eq!((passed.into_inner(), refused.into_inner()), (100, 900));
}

#[test]
fn over_real_time_burst_and_refill_pass_and_not_one_more() {
    let lab = Lab::with(&[("ADDRESS_LOGINS_PER_MINUTE", "100")], |_| {});
    let passed = AtomicU64::new(0);
    let started = Instant::now();
    let end = started + Duration::from_secs(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            let (address, passed) = (lab.address, &passed);
            scope.spawn(move || {
                let mut client = common::Client::connect(address);
                while Instant::now() < end {
                    // It is let through and fails for its flow, or it is not let through.
                    let answer = client.login("none", "ada@example.org", PASSWORD);
                    match answer.status {
                        400 => _ = passed.fetch_add(1, Ordering::SeqCst),
                        _ => answer.is(429, "too_many_requests"),
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
    // A token each 600 ms. The loop's clock is exact to a millisecond.
    let (passed, most) = (passed.into_inner(), 100 + started.elapsed().as_millis() as u64 / 600);
    assert!((106..=most).contains(&passed), "{passed}, of at most {most}");
}

#[test]
fn each_client_has_its_own_limit_and_a_request_without_one_passes_nowhere() {
    let mut lab = Lab::with(&[], |app| {
        app.logins = RateLimit::new(3, DAY);
        app.registrations = RateLimit::new(2, DAY);
    });
    lab.store.put_client("other", "other", &[common::REDIRECT.into()], auth::tokens::now()).unwrap();
    let mut client = lab.connect();
    let mut login = |id: &str| {
        let flow = client.get(&authorize_target(&[("client_id", id)])).text("flow_id").to_owned();
        let form = login_form(&flow, "ada@example.org", PASSWORD);
        client.ask("POST", "/oauth/login", &[("X-Client-Id", id)], Some(&form)).status
    };
    assert_eq!([(); 5].map(|()| login(CLIENT)), [401, 401, 401, 429, 429]);
    assert_eq!([(); 4].map(|()| login("other")), [401, 401, 401, 429]);
    let mut client = lab.connect();
    let mut register = |email: &str| client.register(email).status;
    assert_eq!(["a@x", "b@x", "c@x"].map(&mut register), [201, 201, 429]);
    for target in ["/oauth/login", "/oauth/register"] {
        lab.connect().ask("POST", target, &[], Some(&credentials("d@x"))).is(400, "invalid_client");
    }
}

#[test]
fn instances_divide_the_limit() {
    let place = Place::new();
    drop(place.store());
    let variables = [("LOGINS_PER_MINUTE", "100"), ("REGISTRATIONS_PER_MINUTE", "3"), ("INSTANCES", "4")];
    let mut app = App::open(place.config(&variables)).expect("a state");
    let now = Duration::from_secs(1);
    let mut pass = |limit: fn(&mut App) -> &mut RateLimit<ClientId>| {
        (0..100).filter(|_| limit(&mut app).admit(ClientId("a".into()), now).is_ok()).count()
    };
    assert_eq!(pass(|app| &mut app.logins), 25);
    assert_eq!(pass(|app| &mut app.registrations), 1);
}

#[test]
fn the_limit_counts_before_the_body_is_read() {
    let lab = Lab::with(&[], |app| app.logins_by_address = RateLimit::new(1, DAY));
    assert_eq!(lab.connect().login("none", "a@x", PASSWORD).status, 400);
    let mut client = lab.connect();
    client
        .ask("POST", "/oauth/login", &[("X-Client-Id", CLIENT), ("Content-Length", "100")], None)
        .is(429, "too_many_requests");
    assert_eq!(lab.connect().get("/health").json, json!({"status": "ok"}));
}

/// Everybody by an address of their own, told by a balancer.
fn behind_a_balancer(changed: &[(&'static str, &str)]) -> Lab {
    Lab::with(&[&[("BALANCERS", "127.0.0.1")], changed].concat(), |app| {
        app.flows_by_address = RateLimit::new(5, DAY);
        app.logins_by_address = RateLimit::new(5, DAY);
        app.registrations_by_address = RateLimit::new(5, DAY);
    })
}

#[test]
fn nobody_uses_up_the_limit_of_a_client_by_its_name_alone() {
    let lab = behind_a_balancer(&[("LOGINS_PER_MINUTE", "4"), ("REGISTRATIONS_PER_MINUTE", "4")]);
    let nothing = [("X-Client-Id", CLIENT), ("Content-Length", "0")];
    for attacker in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        for target in ["/oauth/login", "/oauth/register"] {
            let mut client = common::Client::connect_for(lab.address, attacker);
            // With nothing, or with a form that is good for nothing.
            let forms = [None, Some(login_form("none", "no email", PASSWORD))];
            let asked = forms.iter().cycle().take(7).map(|form| {
                let fields = if form.is_none() { &nothing[..] } else { &nothing[..1] };
                client.ask("POST", target, fields, form.as_ref()).status
            });
            let statuses: Vec<u16> = asked.collect();
            assert!(statuses[..5].iter().all(|status| [400, 422].contains(status)), "{statuses:?}");
            assert_eq!(statuses[5..], [429, 429]);
        }
    }
    let mut client = common::Client::connect_for(lab.address, "198.51.100.1");
    assert_eq!(client.register("ada@example.org").status, 201);
    for _ in 0..4 {
        client.log_in("ada@example.org");
    }
    let flow = client.authorize();
    client.login(&flow, "ada@example.org", PASSWORD).is(429, "too_many_requests");
}

#[test]
fn flows_are_limited_for_each_address() {
    let lab = behind_a_balancer(&[]);
    let begin = |peer: &str| common::Client::connect_for(lab.address, peer).get(&authorize_target(&[])).status;
    assert_eq!([(); 7].map(|()| begin("192.0.2.1")), [200, 200, 200, 200, 200, 429, 429]);
    assert_eq!(begin("192.0.2.2"), 200);
}
