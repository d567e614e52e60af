//! The service under test: a process of its own, with a client, users and sessions.

use std::error::Error;
use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use auth::config::{Backend, Config};
use auth::store::{Flow, NewUser, Session, Store};
use auth::tokens::{self, Tokens};
use auth::{Service, passwords};
use rustix::thread::{CpuSet, sched_setaffinity};
use sprat_bench::load::template::Request;
use sprat_bench::load::{Churn, Expect, Outcome, Pace, Plan, run};
use sprat_bench::machine::allowed_cpus;

use crate::cli::Options;

/// The first argument of the process that is to be the service.
pub const SERVE: &str = "serve";

pub fn serve() -> Result<(), Box<dyn Error>> {
    let service = Service::start(Config::from_env()?)?.end_on_signals();
    println!("{}", service.local_addr()?);
    Ok(service.run()?)
}

const CLIENT: &str = "bench";
const REDIRECT: &str = "http://localhost/callback";
const SERVICE_KEY: &str = "the key of the bench";
const JWT_SECRET: &str = "the secret of the bench, 32 bytes";
const PASSWORD: &str = "correct horse battery";
const EMAIL: &str = "user@example.org";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// Where server and client run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The server on the last processor, the client on the first, as in the ladder.
    Apart,
    /// Wherever there is room: the pool needs all processors.
    Anywhere,
}

pub struct Lab {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
    store: Store,
    token: String,
    /// How long one hash takes here.
    hash_time: Duration,
}

impl Lab {
    pub fn start(options: &Options, place: Place) -> Result<Lab, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("auth-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{}.db", tokens::random_id()));
        let (backend, url) = match &options.database {
            Some(url) => (Backend::Postgres(url.clone()), url.clone()),
            None => (Backend::Sqlite(file.clone()), format!("sqlite:{}", file.display())),
        };
        let mut store = Store::open(&backend)?;
        let (token, hash_time) = provision(&mut store, options.cost)?;
        let (mut command, client_cpu) = pinned(place);
        command
            .arg(SERVE)
            .env("LISTEN", "127.0.0.1:0")
            .env("DATABASE_URL", url)
            .env("JWT_SECRET", JWT_SECRET)
            .env("SERVICE_KEY", SERVICE_KEY)
            .env("BCRYPT_COST", options.cost.to_string())
            .env("LOGIN_THREADS", options.threads.to_string())
            .env("LOGINS_PER_MINUTE", "1000000000")
            .env("ADDRESS_LOGINS_PER_MINUTE", "1000000000");
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        let address = line.trim().parse().map_err(|_| "the service did not start")?;
        if let Some(cpu) = client_cpu {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set)?;
        }
        Ok(Lab { child, address, folder, store, token, hash_time })
    }

    /// So many flows under names that the requests of one run have, and its request.
    pub fn login_request(&mut self, count: usize) -> Result<Ask, Box<dyn Error>> {
        // A database that was given may hold flows of other runs.
        let run = tokens::random_id();
        let flow = |number: usize| Flow {
            id: format!("{run}-{number}"),
            client_id: CLIENT.into(),
            redirect_uri: REDIRECT.into(),
            state: String::new(),
            challenge: tokens::challenge_of(VERIFIER),
            expires_at: tokens::now() + 3600,
        };
        self.store.begin_flows(&(1..=count).map(flow).collect::<Vec<_>>())?;
        let body = format!(
            r#"{{"flow_id":"{run}-{{n}}","code_verifier":"{VERIFIER}","email":"{EMAIL}","password":"{PASSWORD}"}}"#
        );
        Ok(Ask { method: "POST", target: "/oauth/login", field: Some(("X-Client-Id", CLIENT)), body: Some(body) })
    }

    /// How many logins there can be in that time, generously.
    pub fn logins_within(&self, seconds: f64, options: &Options) -> usize {
        200 + (3.0 * seconds * options.threads as f64 / self.hash_time.as_secs_f64()) as usize
    }

    pub fn validate_request(&self) -> Ask {
        let body = format!(r#"{{"token":"{}"}}"#, self.token);
        let field = Some(("X-Service-Key", SERVICE_KEY));
        Ask { method: "POST", target: "/internal/validate", field, body: Some(body) }
    }

    /// Drives it.
    pub fn drive(&self, ask: &Ask, how: How) -> io::Result<Outcome> {
        run(&self.plan(ask, how))
    }

    /// What to drive it with.
    pub fn plan(&self, ask: &Ask, how: How) -> Plan {
        Plan {
            target: self.address,
            request: ask.request(&[]),
            request_last: ask.request(&[("Connection", "close")]),
            expect: Expect { status: 200, body: None },
            connections: how.connections,
            depth: 1,
            pace: how.rate.map_or(Pace::Closed, |rate| Pace::Open { rate, poisson: false }),
            churn: how.churn.then_some(Churn { requests: 1, ask: true }),
            herd: 0,
            sources: Vec::new(),
            warm: Duration::from_millis(500),
            time: Duration::from_secs_f64(how.seconds),
            requests: None,
            timeout: Duration::from_secs(30),
            errors_max: 1000,
            watch: Some(self.child.id()),
            spin: false,
            progress: false,
            each_second: false,
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
        // The next one may run elsewhere.
        let mut set = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
        let _ = sched_setaffinity(None, &set);
    }
}

/// How it is driven.
#[derive(Clone, Copy)]
pub struct How {
    pub connections: usize,
    /// Open loop.
    pub rate: Option<f64>,
    /// A new connection for each request.
    pub churn: bool,
    pub seconds: f64,
}

/// What is asked.
pub struct Ask {
    method: &'static str,
    target: &'static str,
    field: Option<(&'static str, &'static str)>,
    body: Option<String>,
}

impl Ask {
    pub const HEALTH: Ask = Ask { method: "GET", target: "/health", field: None, body: None };

    fn request(&self, more: &[(&str, &str)]) -> Request {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let fields: Vec<_> = self.field.iter().chain(more).map(owned).collect();
        Request::new(self.method, self.target, "auth", &fields, self.body.as_deref())
    }
}

/// A client, a user with a session, and two hundred others. Returns the session's token, and how long a hash takes.
fn provision(store: &mut Store, cost: u32) -> Result<(String, Duration), Box<dyn Error>> {
    let now = tokens::now();
    store.put_client(CLIENT, CLIENT, &[REDIRECT.into()], now)?;
    let (mut password_hash, mut hash_time) = (String::new(), Duration::MAX);
    // The quickest of three: one that was interrupted would make for too few flows, and logins that fail.
    for _ in 0..3 {
        let started = std::time::Instant::now();
        password_hash = passwords::hash(PASSWORD, cost).ok_or("no hash")?;
        hash_time = hash_time.min(started.elapsed());
    }
    let user = |id: &str, email: String| NewUser {
        id: id.to_owned(),
        email,
        name: String::new(),
        password_hash: password_hash.clone(),
        now,
    };
    // They make the tables deeper than a page.
    for number in 0..200 {
        let id = format!("user{number}");
        store.register(CLIENT, &user(&id, format!("{id}@example.org")))?;
    }
    store.register(CLIENT, &user("user", EMAIL.into()))?;
    let session = Session {
        id: tokens::random_id(),
        user_id: "user".into(),
        client_id: CLIENT.into(),
        created_at: now,
        expires_at: now + 24 * 3600,
    };
    let flow = Flow {
        id: session.id.clone(),
        client_id: CLIENT.into(),
        redirect_uri: REDIRECT.into(),
        state: String::new(),
        challenge: String::new(),
        expires_at: session.expires_at,
    };
    store.begin_flow(&flow)?;
    store.open_session(&flow.id, &password_hash, &session)?;
    let tokens = Tokens::new(JWT_SECRET.as_bytes(), "sprat-auth").ok_or("no key")?;
    let token = tokens.mint("user", CLIENT, &session.id, now, session.expires_at).ok_or("no token")?;
    Ok((token, hash_time))
}

/// The command that starts this program on its processor, and the processor for the client.
fn pinned(place: Place) -> (Command, Option<usize>) {
    let program = std::env::current_exe().unwrap_or_else(|_| "auth-bench".into());
    let cpus = allowed_cpus();
    if let (Place::Apart, Some(first), Some(last)) = (place, cpus.first(), cpus.last())
        && first != last
        && Command::new("taskset").arg("--version").stdout(Stdio::null()).status().is_ok()
    {
        let mut command = Command::new("taskset");
        command.args(["-c", &last.to_string()]).arg(program);
        return (command, Some(*first));
    }
    (Command::new(program), None)
}
