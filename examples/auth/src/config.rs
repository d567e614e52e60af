//! Settings, from environment variables. What cannot be understood is an error that names its variable.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// All settings. Each field says its variable and its default.
#[derive(Clone, Debug)]
pub struct Config {
    /// `LISTEN`, 127.0.0.1:3000.
    pub listen: String,
    /// `DATABASE_URL`, sqlite:auth.db. Or postgres://user:password@host/name.
    pub database: Backend,
    /// `DATABASE_CONNECTIONS`, 4. PostgreSQL only: SQLite has one writer at a time anyway.
    pub database_connections: usize,
    /// `JWT_SECRET`, at least 32 bytes. Without it one is made and kept in the database.
    pub jwt_secret: Option<String>,
    /// `SERVICE_KEY`, at least 16 bytes. Without it one is made and kept in the database.
    pub service_key: Option<String>,
    /// `ISSUER`, sprat-auth: the claim `iss`.
    pub issuer: String,
    /// `BCRYPT_COST`, 10. Each step doubles the time of a login.
    pub bcrypt_cost: u32,
    /// `LOGIN_THREADS`, 0: one for each core.
    pub login_threads: usize,
    /// `LOGIN_QUEUE`, 256: how many hashes may wait. Beyond it a login is answered with 503.
    pub login_queue: usize,
    /// `LOGINS_PER_MINUTE`, 100: for each client, over all instances. Those that belong to a flow.
    pub logins_per_minute: u32,
    /// `REGISTRATIONS_PER_MINUTE`, 50: for each client, over all instances. Those that a form is good for.
    pub registrations_per_minute: u32,
    /// `ADDRESS_FLOWS_PER_MINUTE`, 60: for each address, over all instances.
    pub address_flows_per_minute: u32,
    /// `ADDRESS_LOGINS_PER_MINUTE`, 30: the same, whatever they are good for.
    pub address_logins_per_minute: u32,
    /// `ADDRESS_REGISTRATIONS_PER_MINUTE`, 10: the same.
    pub address_registrations_per_minute: u32,
    /// `BALANCERS`, none: addresses and prefixes, with commas between them, from which each connection has to begin with
    /// a PROXY header. Without it everybody behind a balancer has its address, and shares its limits.
    pub balancers: Vec<String>,
    /// `INSTANCES`, 1: among how many instances those rates are divided. They share nothing but the database.
    pub instances: u32,
    /// `SESSION_SECONDS`, 43200.
    pub session: Duration,
    /// `DRAIN_SECONDS`, 0: from SIGTERM on /health answers 503 for so long before the end, so that a balancer finds out
    /// before its requests have nowhere to go.
    pub drain: Duration,
    /// `FLOW_SECONDS`, 600: from /oauth/authorize to /oauth/login.
    pub flow: Duration,
}

/// Which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// In this file.
    Sqlite(PathBuf),
    /// At this URL.
    Postgres(String),
}

/// Which variable is wrong, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    variable: &'static str,
    rule: String,
}

impl ConfigError {
    pub(crate) fn new(variable: &'static str, rule: impl Into<String>) -> ConfigError {
        ConfigError { variable, rule: rule.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the value: it may be a secret.
        write!(f, "{}: {}", self.variable, self.rule)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads the environment of the process.
    pub fn from_env() -> Result<Config, ConfigError> {
        Config::from_lookup(|name| match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(ConfigError::new(name, "must be text in UTF-8")),
        })
    }

    /// Reads settings from wherever `lookup` finds them.
    pub fn from_lookup(
        lookup: impl Fn(&'static str) -> Result<Option<String>, ConfigError>,
    ) -> Result<Config, ConfigError> {
        let text = |name, default: &str| Ok(lookup(name)?.unwrap_or_else(|| default.to_owned()));
        let number = |name, default, min, max| number(name, lookup(name)?, default, min, max);
        let secret = |name, min| match lookup(name)? {
            Some(value) if value.len() < min => Err(ConfigError::new(name, format!("must have at least {min} bytes"))),
            value => Ok(value),
        };
        Ok(Config {
            listen: text("LISTEN", "127.0.0.1:3000")?,
            database: backend(&text("DATABASE_URL", "sqlite:auth.db")?)?,
            database_connections: number("DATABASE_CONNECTIONS", 4, 1, 64)? as usize,
            jwt_secret: secret("JWT_SECRET", 32)?,
            service_key: secret("SERVICE_KEY", 16)?,
            issuer: text("ISSUER", "sprat-auth")?,
            bcrypt_cost: number("BCRYPT_COST", 10, 4, 16)?,
            login_threads: number("LOGIN_THREADS", 0, 0, 256)? as usize,
            login_queue: number("LOGIN_QUEUE", 256, 0, 1_000_000)? as usize,
            logins_per_minute: number("LOGINS_PER_MINUTE", 100, 1, 1_000_000_000)?,
            registrations_per_minute: number("REGISTRATIONS_PER_MINUTE", 50, 1, 1_000_000_000)?,
            address_flows_per_minute: number("ADDRESS_FLOWS_PER_MINUTE", 60, 1, 1_000_000_000)?,
            address_logins_per_minute: number("ADDRESS_LOGINS_PER_MINUTE", 30, 1, 1_000_000_000)?,
            address_registrations_per_minute: number("ADDRESS_REGISTRATIONS_PER_MINUTE", 10, 1, 1_000_000_000)?,
            balancers: list(&text("BALANCERS", "")?),
            instances: number("INSTANCES", 1, 1, 1000)?,
            session: Duration::from_secs(number("SESSION_SECONDS", 12 * 3600, 1, 366 * 24 * 3600)?.into()),
            drain: Duration::from_secs(number("DRAIN_SECONDS", 0, 0, 3600)?.into()),
            flow: Duration::from_secs(number("FLOW_SECONDS", 600, 1, 24 * 3600)?.into()),
        })
    }
}

fn number(name: &'static str, value: Option<String>, default: u32, min: u32, max: u32) -> Result<u32, ConfigError> {
    let Some(value) = value else { return Ok(default) };
    match u32::from_str(&value) {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(ConfigError::new(name, format!("must be a whole number from {min} to {max}"))),
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

fn backend(url: &str) -> Result<Backend, ConfigError> {
    match url.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => Ok(Backend::Sqlite(path.into())),
        Some(("postgres" | "postgresql", _)) => match postgres::Config::from_str(url) {
            Ok(_) => Ok(Backend::Postgres(url.to_owned())),
            Err(error) => Err(ConfigError::new("DATABASE_URL", format!("is no URL of a database: {error}"))),
        },
        _ => Err(ConfigError::new("DATABASE_URL", "must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> Result<Config, String> {
        Config::from_lookup(|asked| Ok((asked == name).then(|| value.to_owned()))).map_err(|error| error.to_string())
    }

    #[test]
    fn without_variables_there_are_defaults() {
        let config = with("NONE", "").unwrap();
        assert_eq!(config.database, Backend::Sqlite("auth.db".into()));
        assert_eq!((config.logins_per_minute, config.registrations_per_minute), (100, 50));
        assert!(config.balancers.is_empty());
    }

    #[test]
    fn balancers_are_a_list() {
        assert_eq!(with("BALANCERS", "10.0.0.1, fd00::/8,").unwrap().balancers, ["10.0.0.1", "fd00::/8"]);
    }

    #[test]
    fn an_error_names_its_variable_and_never_its_value() {
        for (name, value, rule) in [
            ("BCRYPT_COST", "3", "BCRYPT_COST: must be a whole number from 4 to 16"),
            ("LOGIN_QUEUE", "many", "LOGIN_QUEUE: must be a whole number from 0 to 1000000"),
            ("JWT_SECRET", "short", "JWT_SECRET: must have at least 32 bytes"),
            ("SERVICE_KEY", "", "SERVICE_KEY: must have at least 16 bytes"),
            ("DATABASE_URL", "mysql://x", "DATABASE_URL: must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME"),
        ] {
            assert_eq!(with(name, value).unwrap_err(), rule);
        }
        assert!(with("DATABASE_URL", "postgres://h:port/").unwrap_err().starts_with("DATABASE_URL: "));
    }

    #[test]
    fn postgres_urls_are_taken() {
        let config = with("DATABASE_URL", "postgres://auth@localhost/auth").unwrap();
        assert_eq!(config.database, Backend::Postgres("postgres://auth@localhost/auth".into()));
    }
}
