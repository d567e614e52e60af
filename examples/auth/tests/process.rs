//! The program itself: how it starts, how it ends, and what is left when it is killed.

mod common;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{Client, PASSWORD, Place};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_auth");

struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(place: &Place) -> Process {
        Process::start_with(place, &[])
    }

    fn start_with(place: &Place, changed: &[(&str, &str)]) -> Process {
        Process::run(Command::new(PROGRAM), place, changed)
    }

    fn run(mut command: Command, place: &Place, changed: &[(&str, &str)]) -> Process {
        command.env_clear().envs(place.variables()).envs(changed.iter().copied()).current_dir(place.folder());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a process");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").expect("an address");
        Process { address: address.parse().expect("an address"), child }
    }
}

impl Process {
    /// What the threads of the pool have used of the processor so far. Linux.
    fn pool_time(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it lives");
        let of_pool = tasks.filter_map(|task| {
            let path = task.ok()?.path();
            let name = std::fs::read_to_string(path.join("comm")).ok()?;
            let spent = std::fs::read_to_string(path.join("schedstat")).ok()?;
            (name.trim() == "sprat-offload").then(|| spent.split(' ').next()?.parse::<u64>().ok()).flatten()
        });
        Duration::from_nanos(of_pool.sum())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the service has acknowledged.
#[derive(Default)]
struct Acknowledged {
    users: Vec<String>,
    tokens: Vec<String>,
}

/// Registers and logs in, until the service is gone.
fn write(address: SocketAddr, name: &str, logins: &AtomicUsize) -> Acknowledged {
    let mut done = Acknowledged::default();
    let Ok(mut client) = Client::try_connect(address) else { return done };
    for number in 0.. {
        let email = format!("{name}-{number}@example.org");
        let fields = [("X-Client-Id", common::CLIENT)];
        let mut ask = |method: &str, target: &str, body: Option<&serde_json::Value>| {
            client.try_send(method, target, &fields, body).and_then(|()| client.try_read())
        };
        let Ok(answer) = ask("POST", "/oauth/register", Some(&common::credentials(&email))) else { break };
        assert_eq!(answer.status, 201, "{}", answer.json);
        done.users.push(email.clone());
        let Ok(answer) = ask("GET", &common::authorize_target(&[]), None) else { break };
        let form = common::login_form(answer.text("flow_id"), &email, PASSWORD);
        let Ok(answer) = ask("POST", "/oauth/login", Some(&form)) else { break };
        done.tokens.push(answer.text("access_token").to_owned());
        logins.fetch_add(1, Ordering::SeqCst);
    }
    done
}

#[test]
fn killed_in_the_middle_of_writes_it_has_lost_no_user_and_no_session() {
    let place = Place::new();
    drop(place.store());
    let (mut users, mut tokens) = (0, 0);
    for round in 0..4 {
        let mut process = Process::start(&place);
        let logins = AtomicUsize::new(0);
        let done: Vec<Acknowledged> = thread::scope(|scope| {
            let (address, logins) = (process.address, &logins);
            let writers: Vec<_> = (0..8)
                .map(|writer| scope.spawn(move || write(address, &format!("r{round}w{writer}"), logins)))
                .collect();
            // Enough to say something, however slow the disk is.
            while logins.load(Ordering::SeqCst) < 12 {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(150 + 61 * round));
            // SIGKILL.
            process.child.kill().expect("it lives");
            writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
        });
        drop(process);
        let process = Process::start(&place);
        let mut client = Client::connect(process.address);
        for token in done.iter().flat_map(|done| &done.tokens) {
            assert_eq!(client.validate(token).json["active"], json!(true));
            tokens += 1;
        }
        for email in done.iter().flat_map(|done| &done.users) {
            client.log_in(email);
            users += 1;
        }
    }
    assert!(users > 40 && tokens > 30, "{users} users and {tokens} sessions say too little");
    println!("{users} users and {tokens} sessions, acknowledged before four kills, were all there");
}

#[test]
fn an_unknown_email_takes_as_long_as_a_wrong_password() {
    let place = Place::new();
    drop(place.store());
    let process = Process::start_with(&place, &[("BCRYPT_COST", "8")]);
    let mut client = Client::connect(process.address);
    client.register("ada@example.org");
    let flow = client.authorize();
    // Processor time and not the clock's: whoever else uses this machine adds to the latter only.
    let mut spent = |email| {
        let before = process.pool_time();
        for _ in 0..10 {
            client.login(&flow, email, "wrong password").is(401, "invalid_credentials");
        }
        (process.pool_time() - before).as_secs_f64()
    };
    let (known, unknown) = (spent("ada@example.org"), spent("unknown@example.org"));
    assert!(known > 0.02 && (0.7..1.4).contains(&(unknown / known)), "{unknown} s and {known} s");
}

#[test]
fn where_nobody_reads_what_it_logs_it_serves_on() {
    let place = Place::new();
    drop(place.store());
    let mut command = Command::new("sh");
    // Few places for connections: that they are all taken is worth a line.
    command.args(["-c", "ulimit -n 60 && exec \"$0\"", PROGRAM]).stderr(Stdio::piped());
    let mut process = Process::run(command, &place, &[]);
    drop(process.child.stderr.take());
    let crowd: Vec<_> = (0..80).map(|_| Client::try_connect(process.address)).collect();
    thread::sleep(Duration::from_millis(300));
    drop(crowd);
    assert_eq!(process.child.try_wait().expect("a child"), None);
    let mut client = Client::connect(process.address);
    assert_eq!(client.get("/health").status, 200);
    // What the database says is worth one too, and is no panic in its thread either.
    place.raw("DROP TABLE flows");
    client.get(&common::authorize_target(&[])).is(500, "internal");
}

#[test]
fn a_term_signal_ends_it_well() {
    let place = Place::new();
    let mut process = Process::start(&place);
    assert_eq!(Client::connect(process.address).get("/health").status, 200);
    let pid = process.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    assert_eq!(process.child.wait().expect("a child").code(), Some(0));
}

#[test]
fn a_bad_setting_ends_it_at_the_start_with_the_name_of_the_variable() {
    let place = Place::new();
    for (name, value) in [
        ("BCRYPT_COST", "cheap"),
        ("DATABASE_URL", "sqlite:/no/such/folder/auth.db"),
        ("DATABASE_URL", "postgres://127.0.0.1:1/auth?connect_timeout=1"),
        ("JWT_SECRET", "short"),
        ("LISTEN", "nowhere"),
        ("INSTANCES", "0"),
        ("BALANCERS", "10.0.0.1/8"),
    ] {
        let mut command = Command::new(PROGRAM);
        command.env_clear().envs(place.variables()).env(name, value).current_dir(place.folder());
        let output = command.output().expect("a process");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}={value}");
        assert!(error.starts_with(&format!("auth: {name}: ")) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn without_keys_in_the_environment_it_makes_them_once() {
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.env_clear().env("DATABASE_URL", &place.database_url).args(arguments).current_dir(place.folder());
        let output = command.output().expect("a process");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let (status, key) = run(&["service-key"]);
    assert_eq!((status, key.len()), (Some(0), 44));
    assert_eq!(run(&["service-key"]), (Some(0), key));
    assert_eq!(run(&["add-client", "shop", common::REDIRECT]).0, Some(0));
    assert_eq!(run(&["add-client", "no id", common::REDIRECT]).0, Some(1));
    assert_eq!(run(&["nonsense"]).0, Some(1));
    assert!(place.store().client_exists("shop").unwrap());
}
