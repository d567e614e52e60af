//! A service of the test's own, and a client that speaks to it over sockets.
//!
//! On SQLite in a folder of its own; on PostgreSQL, in a database of its own, if `TEST_POSTGRES_URL` names a server.
#![allow(dead_code)]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use auth::config::{Backend, Config};
use auth::store::{Flow, Store};
use auth::{App, Service, tokens};
use serde_json::{Value, json};
use sprat::Handle;

pub const CLIENT: &str = "demo";
pub const REDIRECT: &str = "http://localhost:8080/callback";
pub const SERVICE_KEY: &str = "a key for services";
pub const JWT_SECRET: &str = "a secret of no less than 32 bytes";
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub const PASSWORD: &str = "correct horse";

/// Where the data is; removed at the end.
pub struct Place {
    folder: PathBuf,
    pub database_url: String,
    postgres: Option<(String, String)>,
}

impl Place {
    pub fn new() -> Place {
        let id: String = tokens::random_id().chars().filter(char::is_ascii_alphanumeric).collect();
        let folder = std::env::temp_dir().join(format!("auth-test-{id}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let Ok(server) = std::env::var("TEST_POSTGRES_URL") else {
            let database_url = format!("sqlite:{}", folder.join("auth.db").display());
            return Place { folder, database_url, postgres: None };
        };
        let name = format!("auth_test_{}", id.to_lowercase());
        let mut admin = postgres::Client::connect(&server, postgres::NoTls).expect("the server of TEST_POSTGRES_URL");
        admin.batch_execute(&format!("CREATE DATABASE {name}")).expect("a database");
        let (base, _) = server.rsplit_once('/').expect("a URL with a database");
        Place { folder, database_url: format!("{base}/{name}"), postgres: Some((server, name)) }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Settings for tests: cheap hashes, and limits out of the way.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let (url, many) = (self.database_url.clone(), "1000000".to_owned());
        vec![
            ("LISTEN", "127.0.0.1:0".into()),
            ("DATABASE_URL", url),
            ("JWT_SECRET", JWT_SECRET.into()),
            ("SERVICE_KEY", SERVICE_KEY.into()),
            ("BCRYPT_COST", "4".into()),
            ("LOGIN_THREADS", "2".into()),
            ("LOGINS_PER_MINUTE", many.clone()),
            ("REGISTRATIONS_PER_MINUTE", many.clone()),
            ("ADDRESS_FLOWS_PER_MINUTE", many.clone()),
            ("ADDRESS_LOGINS_PER_MINUTE", many.clone()),
            ("ADDRESS_REGISTRATIONS_PER_MINUTE", many),
        ]
    }

    pub fn config(&self, changed: &[(&'static str, &str)]) -> Config {
        let variables = self.variables();
        Config::from_lookup(|name| {
            let changed = changed.iter().find(|(changed, _)| *changed == name).map(|(_, value)| (*value).to_owned());
            Ok(changed.or_else(|| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())))
        })
        .expect("good settings")
    }

    /// Has the database do this, past the service.
    pub fn raw(&self, sql: &str) {
        match &self.config(&[]).database {
            Backend::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("a database");
                connection.busy_timeout(Duration::from_secs(5)).expect("a timeout");
                connection.execute_batch(sql).expect("good SQL");
            }
            Backend::Postgres(url) => {
                let mut client = postgres::Client::connect(url, postgres::NoTls).expect("a database");
                client.batch_execute(sql).expect("good SQL");
            }
        }
    }

    /// A connection of the test's own, to a database with the client in it.
    pub fn store(&self) -> Store {
        let mut store = Store::open(&self.config(&[]).database).expect("a database");
        store.put_client(CLIENT, CLIENT, &[REDIRECT.into()], tokens::now()).expect("a client");
        store
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        if let Some((server, name)) = &self.postgres
            && let Ok(mut admin) = postgres::Client::connect(server, postgres::NoTls)
        {
            let _ = admin.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

/// A service in this process.
pub struct Lab {
    pub address: SocketAddr,
    pub handle: Handle,
    pub store: Store,
    pub config: Config,
    thread: Option<JoinHandle<io::Result<()>>>,
    place: Place,
}

impl Lab {
    pub fn new() -> Lab {
        Lab::with(&[], |_| {})
    }

    pub fn with(changed: &[(&'static str, &str)], change: impl FnOnce(&mut App)) -> Lab {
        let place = Place::new();
        let store = place.store();
        let config = place.config(changed);
        let mut service = Service::start(config.clone()).expect("a service");
        change(&mut service.app);
        let (address, handle) = (service.local_addr().expect("an address"), service.handle());
        let thread = Some(thread::spawn(move || service.run()));
        Lab { address, handle, store, config, thread, place }
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Has the database do this, past the service.
    pub fn raw(&self, sql: &str) {
        self.place.raw(sql);
    }

    /// Flows with these ids, each of which is also its state.
    pub fn begin_flows(&mut self, ids: impl Iterator<Item = String>) {
        let flows: Vec<Flow> = ids.map(|id| flow(&id)).collect();
        self.store.begin_flows(&flows).expect("flows");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.handle.shutdown();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn flow(id: &str) -> Flow {
    Flow {
        id: id.to_owned(),
        client_id: CLIENT.into(),
        redirect_uri: REDIRECT.into(),
        state: id.to_owned(),
        challenge: tokens::challenge_of(VERIFIER),
        expires_at: tokens::now() + 600,
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub json: Value,
}

impl Answer {
    pub fn text(&self, name: &str) -> &str {
        self.json[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.json))
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    /// An error has its status and its code, and is JSON.
    #[track_caller]
    pub fn is(&self, status: u16, error: &str) {
        assert_eq!((self.status, self.json["error"].as_str()), (status, Some(error)), "{}", self.json);
        assert_eq!(self.field("content-type"), Some("application/json"));
    }
}

pub struct Client(pub TcpStream);

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        Client::try_connect(address).expect("a listener")
    }

    pub fn try_connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Client(stream))
    }

    /// As a balancer connects for whoever has this address.
    pub fn connect_for(address: SocketAddr, peer: &str) -> Client {
        let mut client = Client::connect(address);
        let header = format!("PROXY TCP4 {peer} 192.0.2.200 40000 80\r\n");
        client.0.write_all(header.as_bytes()).expect("room");
        client
    }

    pub fn send(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: Option<&Value>) {
        self.try_send(method, target, fields, body).expect("room");
    }

    pub fn try_send(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<()> {
        let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: auth\r\n");
        for (name, value) in fields {
            bytes += &format!("{name}: {value}\r\n");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        if !body.is_empty() {
            bytes += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        bytes += "\r\n";
        bytes += &body;
        self.0.write_all(bytes.as_bytes())
    }

    pub fn read(&mut self) -> Answer {
        self.try_read().expect("an answer")
    }

    pub fn try_read(&mut self) -> io::Result<Answer> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        let mut answer = Answer { status: head[9..12].parse().expect("a status"), head, json: Value::Null };
        let len = answer.field("content-length").map_or(0, |len| len.parse().expect("a length"));
        let mut content = vec![0; len];
        self.0.read_exact(&mut content)?;
        // Everything that this service says is JSON.
        if len > 0 {
            answer.json = serde_json::from_slice(&content).expect("JSON");
        }
        Ok(answer)
    }

    pub fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: Option<&Value>) -> Answer {
        self.send(method, target, fields, body);
        self.read()
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.ask("GET", target, &[], None)
    }

    pub fn register(&mut self, email: &str) -> Answer {
        self.ask("POST", "/oauth/register", &[("X-Client-Id", CLIENT)], Some(&credentials(email)))
    }

    pub fn authorize(&mut self) -> String {
        let answer = self.get(&authorize_target(&[]));
        assert_eq!(answer.status, 200, "{}", answer.json);
        answer.text("flow_id").to_owned()
    }

    pub fn send_login(&mut self, flow: &str, email: &str, password: &str) {
        self.send("POST", "/oauth/login", &[("X-Client-Id", CLIENT)], Some(&login_form(flow, email, password)));
    }

    pub fn login(&mut self, flow: &str, email: &str, password: &str) -> Answer {
        self.send_login(flow, email, password);
        self.read()
    }

    /// From nothing to a token.
    pub fn log_in(&mut self, email: &str) -> Answer {
        let flow = self.authorize();
        let answer = self.login(&flow, email, PASSWORD);
        assert_eq!(answer.status, 200, "{}", answer.json);
        answer
    }

    pub fn me(&mut self, token: &str) -> Answer {
        self.ask("GET", "/oauth/me", &[("Authorization", &format!("Bearer {token}"))], None)
    }

    pub fn validate(&mut self, token: &str) -> Answer {
        let fields = [("X-Service-Key", SERVICE_KEY)];
        self.ask("POST", "/internal/validate", &fields, Some(&json!({"token": token})))
    }

    pub fn sync(&mut self, form: &Value) -> Answer {
        self.ask("POST", "/internal/sync-user", &[("X-Service-Key", SERVICE_KEY)], Some(form))
    }
}

pub fn credentials(email: &str) -> Value {
    json!({"email": email, "password": PASSWORD, "name": "Ada"})
}

pub fn login_form(flow: &str, email: &str, password: &str) -> Value {
    json!({"flow_id": flow, "code_verifier": VERIFIER, "email": email, "password": password})
}

/// The target of a good request to /oauth/authorize, with these parameters instead. An empty one is left out.
pub fn authorize_target(changed: &[(&str, &str)]) -> String {
    let challenge = tokens::challenge_of(VERIFIER);
    let good = [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("redirect_uri", REDIRECT),
        ("state", "xyz"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let value = |name, good| changed.iter().find(|(changed, _)| *changed == name).map_or(good, |(_, value)| *value);
    let pairs = good.iter().map(|&(name, good)| (name, value(name, good))).filter(|(_, value)| !value.is_empty());
    // As browsers and libraries write it.
    let escape = |value: &str| value.replace(':', "%3A").replace('/', "%2F").replace('?', "%3F").replace('=', "%3D");
    let query: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", escape(value))).collect();
    format!("/oauth/authorize?{}", query.join("&"))
}

/// As many descriptors as the system gives.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("a limit");
}
