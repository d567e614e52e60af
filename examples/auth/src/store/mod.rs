//! What is kept, and every query, once: the same SQL text runs on SQLite and on PostgreSQL.
//!
//! That costs three rules. Values are text or 64-bit numbers, and nothing is NULL. Parameters are `$1`, `$2`, ... in
//! the order in which they first stand in the text, because for SQLite they are names that are numbered as they come.
//! Where PostgreSQL cannot tell the type of a parameter it is cast.
//!
//! Knows no requests, no threads and no tokens. Time and ids are arguments.

mod postgres;
mod sqlite;

use std::fmt;

use crate::config::Backend;

/// A connection to one of the two databases, as far as queries need it.
pub trait Connection: Send {
    /// Rows of an answer.
    fn query(&mut self, sql: &'static str, parameters: &[Param<'_>]) -> Result<Vec<Row>, StoreError>;

    /// How many rows were changed.
    fn execute(&mut self, sql: &'static str, parameters: &[Param<'_>]) -> Result<u64, StoreError>;

    /// Begins a transaction. `alone`: no other connection may be in one that was begun so.
    fn begin(&mut self, alone: bool) -> Result<(), StoreError>;
    fn commit(&mut self) -> Result<(), StoreError>;
    fn rollback(&mut self);

    /// Whether it is of no use any more.
    fn is_broken(&self) -> bool;
}

/// A value for a query.
#[derive(Clone, Copy, Debug)]
pub enum Param<'p> {
    Text(&'p str),
    Number(i64),
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
}

/// One row of an answer, whose values are taken out in their order.
#[derive(Debug)]
pub struct Row(std::vec::IntoIter<Value>);

impl Row {
    fn new(values: Vec<Value>) -> Row {
        Row(values.into_iter())
    }

    fn text(&mut self) -> Result<String, StoreError> {
        match self.0.next() {
            Some(Value::Text(text)) => Ok(text),
            other => Err(StoreError::Fault(format!("{other:?} instead of text"))),
        }
    }

    fn number(&mut self) -> Result<i64, StoreError> {
        match self.0.next() {
            Some(Value::Number(number)) => Ok(number),
            other => Err(StoreError::Fault(format!("{other:?} instead of a number"))),
        }
    }
}

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The database is not there, or busy for too long. Another time it may work.
    Unavailable(String),
    /// The query is wrong, or the data.
    Fault(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable(text) => write!(f, "unavailable: {text}"),
            StoreError::Fault(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for StoreError {}

/// A login that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub id: String,
    pub client_id: String,
    pub redirect_uri: String,
    pub state: String,
    pub challenge: String,
    pub expires_at: i64,
}

/// How much of a client and an address is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    Nothing,
    Client,
    Both,
}

/// What became of a login whose password was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    Session,
    /// The flow is used up already: of two logins with one flow, one fails.
    FlowUsed,
    /// Since the password was looked up it has been taken away or changed, or the user shut out.
    UserChanged,
}

/// Who may log in, if the password is right.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub user_id: String,
    pub password_hash: String,
}

pub struct NewUser {
    pub id: String,
    pub email: String,
    pub name: String,
    pub password_hash: String,
    pub now: i64,
}

pub struct Session {
    pub id: String,
    pub user_id: String,
    pub client_id: String,
    pub created_at: i64,
    pub expires_at: i64,
}

/// A session that is not over, of a user who is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alive {
    pub user_id: String,
    pub client_id: String,
    pub expires_at: i64,
}

/// A user as another system wants it.
pub struct WantedUser {
    /// If there is none with this email yet.
    pub id: String,
    pub email: String,
    pub name: String,
    pub active: bool,
    pub roles: Vec<String>,
    /// Empty: the one that is there stays, if it is that of a synced user.
    pub password_hash: String,
    pub now: i64,
}

pub struct Synced {
    pub user_id: String,
    pub created: bool,
    /// Whoever registered the address had a password, and has none any more.
    pub taken_over: bool,
    pub sessions_ended: u64,
}

/// All queries, over one connection.
pub struct Store {
    connection: Box<dyn Connection>,
}

use Param::{Number, Text};

impl Store {
    /// Connects, and makes the tables if they are not there.
    pub fn open(backend: &Backend) -> Result<Store, StoreError> {
        let mut store = Store::connect(backend)?;
        store.transaction(true, |connection| {
            for sql in SCHEMA {
                connection.execute(sql, &[])?;
            }
            Ok(())
        })?;
        Ok(store)
    }

    /// Connects to a database whose tables are there.
    pub fn connect(backend: &Backend) -> Result<Store, StoreError> {
        Ok(Store {
            connection: match backend {
                Backend::Sqlite(path) => Box::new(sqlite::Sqlite::open(path, sqlite::WAIT)?),
                Backend::Postgres(url) => Box::new(postgres::Postgres::connect(url)?),
            },
        })
    }

    /// A connection for the loop, which waits for nobody. SQLite only: any other database is elsewhere.
    pub fn connect_for_loop(backend: &Backend) -> Result<Option<Store>, StoreError> {
        let Backend::Sqlite(path) = backend else { return Ok(None) };
        Ok(Some(Store { connection: Box::new(sqlite::Sqlite::open(path, sqlite::WAIT_ON_LOOP)?) }))
    }

    pub fn is_broken(&self) -> bool {
        self.connection.is_broken()
    }

    fn transaction<T>(
        &mut self,
        alone: bool,
        work: impl FnOnce(&mut dyn Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.connection.begin(alone)?;
        match work(&mut *self.connection).and_then(|value| self.connection.commit().map(|()| value)) {
            Ok(value) => Ok(value),
            Err(error) => {
                self.connection.rollback();
                Err(error)
            }
        }
    }

    fn first(&mut self, sql: &'static str, parameters: &[Param<'_>]) -> Result<Option<Row>, StoreError> {
        Ok(self.connection.query(sql, parameters)?.into_iter().next())
    }

    // ---- clients and secrets -------------------------------------------------------------------------------------

    /// Adds a client, or gives an old one these addresses.
    pub fn put_client(&mut self, id: &str, name: &str, redirect_uris: &[String], now: i64) -> Result<(), StoreError> {
        self.transaction(false, |connection| {
            connection.execute(
                "INSERT INTO clients (id, name, created_at) VALUES ($1, $2, $3)
                 ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                &[Text(id), Text(name), Number(now)],
            )?;
            connection.execute("DELETE FROM redirect_uris WHERE client_id = $1", &[Text(id)])?;
            for uri in redirect_uris {
                connection.execute(
                    "INSERT INTO redirect_uris (client_id, uri) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                    &[Text(id), Text(uri)],
                )?;
            }
            Ok(())
        })
    }

    pub fn client_exists(&mut self, id: &str) -> Result<bool, StoreError> {
        Ok(self.first("SELECT id FROM clients WHERE id = $1", &[Text(id)])?.is_some())
    }

    pub fn registered(&mut self, client: &str, redirect_uri: &str) -> Result<Registered, StoreError> {
        let row = self.first(
            "SELECT (SELECT COUNT(*) FROM redirect_uris WHERE client_id = clients.id AND uri = $1)
             FROM clients WHERE id = $2",
            &[Text(redirect_uri), Text(client)],
        )?;
        match row {
            None => Ok(Registered::Nothing),
            Some(mut row) => Ok(if row.number()? > 0 { Registered::Both } else { Registered::Client }),
        }
    }

    /// The secret of this name: the one that is there, else `candidate` from now on. All instances get the same.
    pub fn secret(&mut self, name: &str, candidate: &str) -> Result<String, StoreError> {
        self.connection.execute(
            "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            &[Text(name), Text(candidate)],
        )?;
        let row = self.first("SELECT value FROM secrets WHERE name = $1", &[Text(name)])?;
        row.ok_or_else(|| StoreError::Fault("a secret is gone".into()))?.text()
    }

    // ---- logging in ----------------------------------------------------------------------------------------------

    pub fn begin_flow(&mut self, flow: &Flow) -> Result<(), StoreError> {
        let Flow { id, client_id, redirect_uri, state, challenge, expires_at } = flow;
        self.connection.execute(
            "INSERT INTO flows (id, client_id, redirect_uri, state, challenge, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6)",
            &[Text(id), Text(client_id), Text(redirect_uri), Text(state), Text(challenge), Number(*expires_at)],
        )?;
        Ok(())
    }

    /// Many of them at once, for measurements.
    pub fn begin_flows(&mut self, flows: &[Flow]) -> Result<(), StoreError> {
        self.connection.begin(false)?;
        for flow in flows {
            if let Err(error) = self.begin_flow(flow) {
                self.connection.rollback();
                return Err(error);
            }
        }
        self.connection.commit()
    }

    pub fn flow(&mut self, id: &str, now: i64) -> Result<Option<Flow>, StoreError> {
        let row = self.first(
            "SELECT id, client_id, redirect_uri, state, challenge, expires_at FROM flows
             WHERE id = $1 AND expires_at > $2",
            &[Text(id), Number(now)],
        )?;
        let read = |mut row: Row| {
            Ok(Flow {
                id: row.text()?,
                client_id: row.text()?,
                redirect_uri: row.text()?,
                state: row.text()?,
                challenge: row.text()?,
                expires_at: row.number()?,
            })
        };
        row.map(read).transpose()
    }

    /// A member of this client who is active and has a password.
    pub fn candidate(&mut self, email: &str, client: &str) -> Result<Option<Candidate>, StoreError> {
        let row = self.first(
            "SELECT users.id, users.password_hash FROM users
             JOIN memberships ON memberships.user_id = users.id AND memberships.client_id = $1
             WHERE users.email = $2 AND users.active = 1 AND users.password_hash <> ''",
            &[Text(client), Text(email)],
        )?;
        row.map(|mut row| Ok(Candidate { user_id: row.text()?, password_hash: row.text()? })).transpose()
    }

    /// Uses a flow up, for a session of whoever has the password of this hash.
    pub fn open_session(&mut self, flow: &str, password_hash: &str, session: &Session) -> Result<Opened, StoreError> {
        let Session { id, user_id, client_id, created_at, expires_at } = session;
        self.transaction(false, |connection| {
            // Changes nothing, but keeps the row until the end: either `sync_user` sees the session that is opened here,
            // or this sees what it did. (`FOR UPDATE` says it better, and SQLite does not know it.)
            let as_before = connection.execute(
                "UPDATE users SET updated_at = updated_at WHERE id = $1 AND password_hash = $2 AND active = 1",
                &[Text(user_id), Text(password_hash)],
            )?;
            if as_before == 0 {
                return Ok(Opened::UserChanged);
            }
            if connection.execute("DELETE FROM flows WHERE id = $1", &[Text(flow)])? == 0 {
                return Ok(Opened::FlowUsed);
            }
            connection.execute(
                "INSERT INTO sessions (id, user_id, client_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
                &[Text(id), Text(user_id), Text(client_id), Number(*created_at), Number(*expires_at)],
            )?;
            Ok(Opened::Session)
        })
    }

    /// False if the email is taken.
    pub fn register(&mut self, client: &str, user: &NewUser) -> Result<bool, StoreError> {
        let NewUser { id, email, name, password_hash, now } = user;
        self.transaction(false, |connection| {
            let inserted = connection.execute(
                "INSERT INTO users (id, email, name, password_hash, active, created_at, updated_at)
                 VALUES ($1, $2, $3, $4, 1, $5, $5) ON CONFLICT (email) DO NOTHING",
                &[Text(id), Text(email), Text(name), Text(password_hash), Number(*now)],
            )?;
            if inserted == 0 {
                return Ok(false);
            }
            join(connection, id, client, *now)?;
            add_role(connection, id, client, "member")?;
            Ok(true)
        })
    }

    // ---- sessions ------------------------------------------------------------------------------------------------

    /// The user is looked at too: a session that was being opened while its user was shut out is not alive.
    pub fn session(&mut self, id: &str, now: i64) -> Result<Option<Alive>, StoreError> {
        let row = self.first(SESSION, &[Text(id), Number(now)])?;
        let read = |mut row: Row| Ok(Alive { user_id: row.text()?, client_id: row.text()?, expires_at: row.number()? });
        row.map(read).transpose()
    }

    /// Email and name.
    pub fn profile(&mut self, user: &str) -> Result<Option<(String, String)>, StoreError> {
        let row = self.first("SELECT email, name FROM users WHERE id = $1", &[Text(user)])?;
        row.map(|mut row| Ok((row.text()?, row.text()?))).transpose()
    }

    pub fn roles(&mut self, user: &str, client: &str) -> Result<Vec<String>, StoreError> {
        let rows = self.connection.query(
            "SELECT role FROM roles WHERE user_id = $1 AND client_id = $2 ORDER BY role",
            &[Text(user), Text(client)],
        )?;
        rows.into_iter().map(|mut row| row.text()).collect()
    }

    /// None if there is no such client.
    ///
    /// Who is synced for the first time and was there already has registered, and nobody knows whether the address is
    /// theirs: what they could log in with ends here, before there are roles to be had by it.
    pub fn sync_user(&mut self, client: &str, user: &WantedUser) -> Result<Option<Synced>, StoreError> {
        let WantedUser { id, email, name, active, roles, password_hash, now } = user;
        if !self.client_exists(client)? {
            return Ok(None);
        }
        self.transaction(false, |connection| {
            // The row stays locked until the end, so that two of these for one user come one after the other.
            let rows = connection.query(
                "INSERT INTO users (id, email, name, password_hash, active, created_at, updated_at)
                 VALUES ($1, $2, $3, '', $4, $5, $5)
                 ON CONFLICT (email) DO UPDATE
                 SET name = excluded.name, active = excluded.active, updated_at = excluded.updated_at
                 RETURNING id",
                &[Text(id), Text(email), Text(name), Number((*active).into()), Number(*now)],
            )?;
            let row = rows.into_iter().next();
            let user_id = row.ok_or_else(|| StoreError::Fault("no row was returned".into()))?.text()?;
            let first = connection.execute(
                "INSERT INTO synced_users (user_id, since) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                &[Text(&user_id), Number(*now)],
            )? > 0;
            let taken_over = first
                && connection.execute(
                    "UPDATE users SET password_hash = '' WHERE id = $1 AND password_hash <> ''",
                    &[Text(&user_id)],
                )? > 0;
            if !password_hash.is_empty() {
                connection.execute(
                    "UPDATE users SET password_hash = $1 WHERE id = $2",
                    &[Text(password_hash), Text(&user_id)],
                )?;
            }
            join(connection, &user_id, client, *now)?;
            connection
                .execute("DELETE FROM roles WHERE user_id = $1 AND client_id = $2", &[Text(&user_id), Text(client)])?;
            for role in roles {
                add_role(connection, &user_id, client, role)?;
            }
            let sessions_ended = match first || !active || !password_hash.is_empty() {
                true => connection.execute("DELETE FROM sessions WHERE user_id = $1", &[Text(&user_id)])?,
                false => 0,
            };
            Ok(Some(Synced { created: user_id == *id, user_id, taken_over, sessions_ended }))
        })
    }

    /// Forgets what is over.
    pub fn sweep(&mut self, now: i64) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM flows WHERE expires_at <= $1", &[Number(now)])?;
        self.connection.execute("DELETE FROM sessions WHERE expires_at <= $1", &[Number(now)])?;
        Ok(())
    }
}

fn join(connection: &mut dyn Connection, user: &str, client: &str, now: i64) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO memberships (user_id, client_id, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        &[Text(user), Text(client), Number(now)],
    )?;
    Ok(())
}

fn add_role(connection: &mut dyn Connection, user: &str, client: &str, role: &str) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO roles (user_id, client_id, role) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        &[Text(user), Text(client), Text(role)],
    )?;
    Ok(())
}

/// The one that is run most.
const SESSION: &str = "SELECT sessions.user_id, sessions.client_id, sessions.expires_at FROM sessions
     JOIN users ON users.id = sessions.user_id
     WHERE sessions.id = $1 AND sessions.expires_at > $2 AND users.active = 1";

/// BIGINT and not INTEGER: for PostgreSQL the latter has 32 bits.
///
/// Every start runs all of it, so what is new has to be a table: neither database could add a column in the same words.
const SCHEMA: [&str; 12] = [
    "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS clients (id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS redirect_uris (
         client_id TEXT NOT NULL REFERENCES clients (id), uri TEXT NOT NULL, PRIMARY KEY (client_id, uri))",
    "CREATE TABLE IF NOT EXISTS users (
         id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, name TEXT NOT NULL, password_hash TEXT NOT NULL,
         active BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL)",
    // Who is in there is another system's user. All others have registered by themselves, those too who were there before
    // this table was.
    "CREATE TABLE IF NOT EXISTS synced_users (user_id TEXT PRIMARY KEY REFERENCES users (id), since BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS memberships (
         user_id TEXT NOT NULL REFERENCES users (id), client_id TEXT NOT NULL REFERENCES clients (id),
         created_at BIGINT NOT NULL, PRIMARY KEY (user_id, client_id))",
    "CREATE TABLE IF NOT EXISTS roles (
         user_id TEXT NOT NULL REFERENCES users (id), client_id TEXT NOT NULL REFERENCES clients (id),
         role TEXT NOT NULL, PRIMARY KEY (user_id, client_id, role))",
    "CREATE TABLE IF NOT EXISTS flows (
         id TEXT PRIMARY KEY, client_id TEXT NOT NULL REFERENCES clients (id), redirect_uri TEXT NOT NULL,
         state TEXT NOT NULL, challenge TEXT NOT NULL, expires_at BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS sessions (
         id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id),
         client_id TEXT NOT NULL REFERENCES clients (id), created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS sessions_of_user ON sessions (user_id)",
    "CREATE INDEX IF NOT EXISTS sessions_by_end ON sessions (expires_at)",
    "CREATE INDEX IF NOT EXISTS flows_by_end ON flows (expires_at)",
];
