//! SQLite, in this process.
//!
//! WAL, so that readers never wait for the writer. synchronous=FULL, so that a commit is on the disk before anybody is
//! told: NORMAL would survive `kill -9` as well, but not a power failure.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, Params, ToSql};

use super::{Connection, Param, Row, StoreError, Value};

/// How long a database thread waits for a writer in another process.
pub const WAIT: Duration = Duration::from_secs(5);

/// And the loop: only while the log is being recovered after a crash is there anything to wait for.
pub const WAIT_ON_LOOP: Duration = Duration::from_millis(20);

pub struct Sqlite(rusqlite::Connection);

impl Sqlite {
    pub fn open(path: &Path, wait: Duration) -> Result<Sqlite, StoreError> {
        let connection = rusqlite::Connection::open(path)?;
        connection.busy_timeout(wait)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // Else a statement is prepared anew whenever other values are bound to it, which costs more than running it: its
        // plan might depend on them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Sqlite(connection))
    }
}

impl Connection for Sqlite {
    fn query(&mut self, sql: &'static str, parameters: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.0.prepare_cached(sql)?;
        debug_assert!(is_numbered(&statement), "{sql}");
        let columns = statement.column_count();
        let mut rows = statement.query(in_order(parameters))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let values: Result<Vec<Value>, StoreError> = (0..columns).map(|at| read(row.get_ref(at)?)).collect();
            found.push(Row::new(values?));
        }
        Ok(found)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Param<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.0.prepare_cached(sql)?;
        debug_assert!(is_numbered(&statement), "{sql}");
        Ok(statement.execute(in_order(parameters))? as u64)
    }

    fn begin(&mut self, _alone: bool) -> Result<(), StoreError> {
        // Not deferred: a transaction that has read before it writes cannot wait for another writer. It fails instead.
        self.execute("BEGIN IMMEDIATE", &[]).map(|_| ())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.execute("COMMIT", &[]).map(|_| ())
    }

    fn rollback(&mut self) {
        // Fails if the statement that went wrong has ended the transaction already.
        let _ = self.execute("ROLLBACK", &[]);
    }

    fn is_broken(&self) -> bool {
        !self.0.is_autocommit()
    }
}

fn in_order<'p>(parameters: &'p [Param<'p>]) -> impl Params + 'p {
    rusqlite::params_from_iter(parameters)
}

/// Whether the parameters stand in the text in their order, so that the first is `$1`.
fn is_numbered(statement: &rusqlite::Statement<'_>) -> bool {
    (1..=statement.parameter_count()).all(|at| statement.parameter_name(at) == Some(&format!("${at}")))
}

fn read(value: ValueRef<'_>) -> Result<Value, StoreError> {
    match value {
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Ok(Value::Text(text.to_owned())),
            Err(_) => Err(StoreError::Fault("text that is no UTF-8".into())),
        },
        ValueRef::Integer(number) => Ok(Value::Number(number)),
        other => Err(StoreError::Fault(format!("a value of the type {}", other.data_type()))),
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Param::Text(text) => ValueRef::Text(text.as_bytes()),
            Param::Number(number) => ValueRef::Integer(*number),
        }))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        let passing = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull | ErrorCode::CannotOpen)
        );
        if passing { StoreError::Unavailable(error.to_string()) } else { StoreError::Fault(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_query_is_prepared_once_whatever_values_it_is_run_with() {
        let mut sqlite = Sqlite::open(Path::new(":memory:"), WAIT).unwrap();
        for sql in super::super::SCHEMA {
            sqlite.execute(sql, &[]).unwrap();
        }
        let sql = super::super::SESSION;
        for now in 0..5 {
            assert!(sqlite.query(sql, &[Param::Text("x"), Param::Number(now)]).unwrap().is_empty());
        }
        let statement = sqlite.0.prepare_cached(sql).unwrap();
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        assert_eq!(statement.get_status(StatementStatus::Run), 5);
    }
}
