//! PostgreSQL, by its synchronous client, in the threads of `database` only.
//!
//! Without TLS: the server is on this machine, in a private network, or behind a local proxy that speaks TLS.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::time::Duration;

use ::postgres::types::{ToSql, Type};
use ::postgres::{Client, Config, NoTls, Statement};

use super::{Connection, Param, Row, StoreError, Value};

pub struct Postgres {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
}

impl Postgres {
    pub fn connect(url: &str) -> Result<Postgres, StoreError> {
        let mut config = Config::from_str(url)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(3));
        }
        config.application_name("sprat-auth");
        Ok(Postgres { client: config.connect(NoTls)?, prepared: HashMap::new() })
    }

    fn prepare(&mut self, sql: &'static str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.prepared.insert(sql, statement.clone());
        Ok(statement)
    }
}

impl Connection for Postgres {
    fn query(&mut self, sql: &'static str, parameters: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepare(sql)?;
        let rows = self.client.query(&statement, &in_order(parameters))?;
        rows.iter().map(read).collect()
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Param<'_>]) -> Result<u64, StoreError> {
        let statement = self.prepare(sql)?;
        Ok(self.client.execute(&statement, &in_order(parameters))?)
    }

    fn begin(&mut self, alone: bool) -> Result<(), StoreError> {
        self.client.batch_execute("BEGIN")?;
        if alone {
            // Two instances that start at once would both make the tables, and one would fail.
            self.client.batch_execute("SELECT pg_advisory_xact_lock(7370726174)")?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(self.client.batch_execute("COMMIT")?)
    }

    fn rollback(&mut self) {
        // Fails if the connection is gone, which ends the transaction too.
        let _ = self.client.batch_execute("ROLLBACK");
    }

    fn is_broken(&self) -> bool {
        self.client.is_closed()
    }
}

fn in_order<'p>(parameters: &'p [Param<'p>]) -> Vec<&'p (dyn ToSql + Sync)> {
    let by_type = |parameter: &'p Param<'p>| -> &'p (dyn ToSql + Sync) {
        match parameter {
            Param::Text(text) => text,
            Param::Number(number) => number,
        }
    };
    parameters.iter().map(by_type).collect()
}

fn read(row: &::postgres::Row) -> Result<Row, StoreError> {
    let value = |at: usize| match row.columns()[at].type_() {
        &Type::TEXT => Ok(Value::Text(row.try_get(at)?)),
        &Type::INT8 => Ok(Value::Number(row.try_get(at)?)),
        other => Err(StoreError::Fault(format!("a value of the type {other}"))),
    };
    Ok(Row::new((0..row.len()).map(value).collect::<Result<_, _>>()?))
}

impl From<::postgres::Error> for StoreError {
    fn from(error: ::postgres::Error) -> StoreError {
        // What the server says about a query is our fault, but for its own classes of trouble: connections (08),
        // resources (53), an operator who intervenes (57). What it does not say is a connection that is gone.
        let ours = error.code().is_some_and(|state| !matches!(state.code().get(..2), Some("08" | "53" | "57")));
        // The outer error names only its kind.
        let text = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        if ours { StoreError::Fault(text) } else { StoreError::Unavailable(text) }
    }
}
