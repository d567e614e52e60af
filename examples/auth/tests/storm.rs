//! Many at once, and clients that leave: everybody gets an answer, and nobody another's.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use common::{Client, Lab, PASSWORD, raise_descriptor_limit};

/// 1,500 logins on as many connections, sent by 15 threads at the same moment. The statuses, counted.
fn storm(lab: &mut Lab) -> BTreeMap<u16, usize> {
    raise_descriptor_limit();
    lab.connect().register("ada@example.org");
    lab.begin_flows((0..1500).map(|id| format!("f{id}")));
    let (address, barrier) = (lab.address, Barrier::new(15));
    let statuses: Vec<u16> = thread::scope(|scope| {
        let threads: Vec<_> = (0..15)
            .map(|part| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut clients: Vec<_> = (0..100).map(|_| Client::connect(address)).collect();
                    barrier.wait();
                    for (id, client) in clients.iter_mut().enumerate() {
                        client.send_login(&format!("f{}", part * 100 + id), "ada@example.org", PASSWORD);
                    }
                    let read = |client: &mut Client| client.try_read().expect("an answer, in time").status;
                    clients.iter_mut().map(read).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut counts = BTreeMap::new();
    for status in statuses {
        *counts.entry(status).or_default() += 1;
    }
    counts
}

#[test]
fn of_1500_logins_at_once_each_gets_an_answer_within_the_limit() {
    let mut lab = Lab::with(&[("LOGINS_PER_MINUTE", "100")], |_| {});
    let started = Instant::now();
    let counts = storm(&mut lab);
    // One more each 600 ms, while the storm lasts.
    let most = 100 + started.elapsed().as_millis() as usize / 600;
    assert_eq!(counts.values().sum::<usize>(), 1500);
    assert!(counts.keys().all(|status| [200, 429].contains(status)), "{counts:?}");
    assert!((100..=most).contains(&counts[&200]), "{counts:?}, of at most {most}");
}

#[test]
fn of_1500_logins_at_once_without_a_limit_each_gets_an_answer_or_is_told_to_come_again() {
    let mut lab = Lab::new();
    let counts = storm(&mut lab);
    assert_eq!(counts.values().sum::<usize>(), 1500);
    assert!(counts.keys().all(|status| [200, 503].contains(status)), "{counts:?}");
    // What is in the queue is done.
    assert!(counts[&200] >= 256, "{counts:?}");
    assert_eq!(lab.handle.stats().expect("it runs").refused_work, counts.get(&503).copied().unwrap_or(0) as u64);
}

#[test]
fn with_20_logins_in_flight_health_stays_quick_and_no_login_is_lost() {
    // Not so dear that on a busy machine, to which they give way, they wait for longer than the pool lets them.
    let mut lab = Lab::with(&[("BCRYPT_COST", "7"), ("LOGIN_THREADS", "2")], |_| {});
    lab.connect().register("ada@example.org");
    lab.begin_flows((0..20).map(|id| format!("f{id}")));
    let mut clients: Vec<_> = (0..20).map(|_| lab.connect()).collect();
    for (id, client) in clients.iter_mut().enumerate() {
        client.send_login(&format!("f{id}"), "ada@example.org", PASSWORD);
    }
    let mut probe = lab.connect();
    let mut took: Vec<Duration> = (0..40)
        .map(|_| {
            let started = Instant::now();
            assert_eq!(probe.get("/health").status, 200);
            started.elapsed()
        })
        .collect();
    took.sort();
    // The figure of the bench is 10 ms at the 99th percentile; here others may be using the machine.
    assert!(took[took.len() / 2] < Duration::from_millis(50), "{took:?}");
    if cfg!(target_os = "linux") {
        assert_eq!(nice_values_of("sprat-offload"), [19]);
    }
    for (id, client) in clients.iter_mut().enumerate() {
        let answer = client.read();
        assert_eq!((answer.status, answer.text("state")), (200, &*format!("f{id}")));
    }
}

/// Those of the threads of this process that have this name, each value once.
fn nice_values_of(name: &str) -> Vec<i64> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let value = |stat: String| {
        // The name is in parentheses, and the 19th field is that of nice.
        let (start, fields) = stat.rsplit_once(')')?;
        start.ends_with(name).then(|| fields.split_whitespace().nth(16)?.parse().ok()).flatten()
    };
    stats.filter_map(value).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn in_1000_rounds_of_leaving_and_connecting_nobody_gets_the_answer_of_another() {
    let mut lab = Lab::new();
    lab.connect().register("ada@example.org");
    lab.begin_flows((0..1000).flat_map(|round| [format!("leaves{round}"), format!("stays{round}")]));
    for round in 0..1000 {
        let mut leaves = lab.connect();
        leaves.send_login(&format!("leaves{round}"), "ada@example.org", PASSWORD);
        // At any moment between the request and its answer.
        thread::sleep(Duration::from_micros(round * 7 % 3000));
        drop(leaves);
        let mut stays = lab.connect();
        let id = format!("stays{round}");
        let answer = stays.login(&id, "ada@example.org", PASSWORD);
        assert_eq!((answer.status, answer.text("state")), (200, &*id));
    }
}
