//! Puts the parts together: settings in, a server that runs out.

use std::fmt;
use std::hash::Hash;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sprat::{Event, Handle, Level, Offload, RateLimit, Server};

use crate::config::{Backend, Config, ConfigError};
use crate::database::Database;
use crate::log;
use crate::passwords;
use crate::routes::{App, Embedded, Remote};
use crate::store::{Store, StoreError};
use crate::tokens::{self, Tokens};

/// A server and its state, ready to run.
pub struct Service {
    server: Server,
    pub app: App,
}

/// Why there is none.
#[derive(Debug)]
pub enum StartError {
    Config(ConfigError),
    Listen(String, io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Config(error) => error.fmt(f),
            StartError::Listen(address, error) => write!(f, "LISTEN: cannot listen on {address}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> StartError {
        StartError::Config(ConfigError::new("DATABASE_URL", error.to_string()))
    }
}

impl Service {
    /// Opens the database, makes its tables if need be, and listens.
    pub fn start(config: Config) -> Result<Service, StartError> {
        let app = App::open(config)?;
        let config = &app.config;
        let server = Server::bind(&*config.listen).map_err(|error| StartError::Listen(config.listen.clone(), error))?;
        let server = server
            .proxy_protocol(&config.balancers)
            .map_err(|error| StartError::Config(ConfigError::new("BALANCERS", error.to_string())))?;
        let offload = Offload {
            threads: config.login_threads,
            queue: config.login_queue,
            // Who has waited for so long has left, or will not be glad.
            deadline: Duration::from_secs(10),
            thread_start: Some(step_back),
        };
        let server = server.offload(offload).on_event(tell);
        Ok(Service { server, app })
    }

    /// Has SIGTERM and SIGINT end it well.
    #[must_use]
    pub fn end_on_signals(mut self) -> Service {
        self.server = self.server.shutdown_on_signals_after(self.app.config.drain);
        self
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.server.local_addr()
    }

    pub fn handle(&self) -> Handle {
        self.server.handle()
    }

    /// Serves until it is shut down.
    pub fn run(self) -> io::Result<()> {
        match self.app.config.database {
            Backend::Sqlite(_) => self.server.serve(Embedded, self.app),
            Backend::Postgres(_) => self.server.serve(Remote, self.app),
        }
    }
}

impl App {
    /// The state, with its connections to the database.
    pub fn open(config: Config) -> Result<App, StartError> {
        let mut store = Store::open(&config.database)?;
        let mut secret = |name, given: &Option<String>| match given {
            Some(value) => Ok(value.clone()),
            None => store.secret(name, &tokens::random_secret()),
        };
        let jwt_secret = secret("jwt", &config.jwt_secret)?;
        let service_key = secret("service", &config.service_key)?;
        let wrong = |variable, rule: &str| StartError::Config(ConfigError::new(variable, rule));
        let tokens = Tokens::new(jwt_secret.as_bytes(), &config.issuer);
        let decoy =
            passwords::decoy(config.bcrypt_cost).ok_or_else(|| wrong("BCRYPT_COST", "no password can be hashed"))?;
        let here = Store::connect_for_loop(&config.database)?;
        Ok(App {
            tokens: tokens.ok_or_else(|| wrong("JWT_SECRET", "is no key for HS256"))?,
            service_key,
            decoy,
            here,
            flows_by_address: each_minute(config.address_flows_per_minute, &config),
            logins_by_address: each_minute(config.address_logins_per_minute, &config),
            registrations_by_address: each_minute(config.address_registrations_per_minute, &config),
            logins: each_minute(config.logins_per_minute, &config),
            registrations: each_minute(config.registrations_per_minute, &config),
            database: Database::start(&config, store)?,
            config,
        })
    }
}

/// Nothing is shared among instances, so each has its part. None gets less than one.
fn each_minute<K: Hash + Eq>(rate: u32, config: &Config) -> RateLimit<K> {
    RateLimit::new((rate / config.instances).max(1), Duration::from_secs(60)).keys_max(100_000)
}

/// Hashes leave the processor to whoever else has something to do: to the loop above all. On Linux the value of nice is
/// that of a thread; the call fails for no good reason, and then hashes are merely less polite.
fn step_back() {
    if cfg!(target_os = "linux") {
        let _ = rustix::process::nice(19);
    }
}

fn tell(event: &Event<'_>) {
    if event.level() >= Level::Warn {
        log::line(event);
    }
}
