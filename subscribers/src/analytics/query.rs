//! SQL that people write, over the views. It cannot write anything, open another file, or run for ever: SQLite refuses
//! every statement but a query when it is prepared, writes are switched off, and time, memory and rows are limited.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hookbus::log::{LogPath, OpenError, open_for_queries};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};

use super::views::VIEWS;
use super::{AnalyticsError, open};

/// A value of a result.
pub use rusqlite::types::Value as SqlValue;

/// SQLite asks after this many steps whether to go on.
const STEPS: i32 = 4000;

/// The memory that SQLite may use, for all of a query.
const MEMORY: i64 = 1 << 30;

/// The largest value.
const LENGTH: i32 = 256 << 20;

/// Functions that could reach outside of the database, or show its memory.
const REFUSED_FUNCTIONS: [&str; 3] = ["load_extension", "fts3_tokenizer", "readfile"];

/// What a query may take.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// How long it may run.
    pub time: Duration,
    /// How many rows are returned; none for all.
    pub rows: Option<usize>,
}

/// A whole result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryResult {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<SqlValue>>,
    /// Whether there are more rows.
    pub is_cut: bool,
}

/// Why a query was not answered.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The statement is not a query.
    #[error(
        "only queries are allowed: begin with SELECT, WITH or VALUES (`hookbus query --views` lists what there is)"
    )]
    NotAQuery,
    /// It ran too long.
    #[error("stopped after {0:?}; add a condition or a LIMIT, or raise the limit with --timeout")]
    TimedOut(Duration),
    /// It needs too much memory.
    #[error("the query needs more than {} MB of memory; add a condition or a LIMIT", MEMORY >> 20)]
    TooLarge,
    /// SQLite does not understand it, or failed.
    #[error("{0}")]
    Sqlite(String),
    /// The database cannot be used.
    #[error(transparent)]
    Analytics(#[from] AnalyticsError),
}

/// The time that a query has left. What its caller does with a row does not count: a person may read it in a pager.
#[derive(Debug, Clone)]
struct QueryClock {
    started: Instant,
    /// When the time is over, in microseconds after the start.
    over: Arc<AtomicU64>,
}

impl QueryClock {
    fn start(time: Duration) -> Self {
        Self { started: Instant::now(), over: Arc::new(AtomicU64::new(micros(time))) }
    }

    fn is_over(&self) -> bool {
        micros(self.started.elapsed()) > self.over.load(Ordering::Relaxed)
    }

    /// Does something that does not count.
    fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let done = work();
        self.over.fetch_add(micros(from.elapsed()), Ordering::Relaxed);
        done
    }
}

fn micros(time: Duration) -> u64 {
    // Half of the numbers, so that pauses can be added.
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(u64::MAX / 2)
}

/// A connection for queries.
#[derive(Debug)]
pub struct Querying {
    db: Connection,
}

impl Querying {
    /// Opens the views of the log and of the analytics database at `path`.
    pub fn open(log: &LogPath, path: &Path) -> Result<Self, QueryError> {
        let mut db = match open_for_queries(log) {
            Ok(db) => {
                attach(&db, path)?;
                db
            }
            // Fed by NATS alone: there are no events on this machine.
            Err(OpenError::Missing(_)) => open::for_reading(path)?,
            Err(error) => return Err(AnalyticsError::from(error).into()),
        };
        confine(&mut db).map_err(AnalyticsError::from)?;
        Ok(Self { db })
    }

    /// Runs a query. `on_columns` is told the columns once, `on_row` each row; says whether there are more rows than the
    /// limit.
    pub fn run<E: From<QueryError>>(
        &mut self,
        sql: &str,
        limits: QueryLimits,
        on_columns: &mut dyn FnMut(&[String]) -> Result<(), E>,
        on_row: &mut dyn FnMut(Vec<SqlValue>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let clock = QueryClock::start(limits.time);
        let failed = |error: &rusqlite::Error| E::from(query_error(error, limits.time));
        let asked = clock.clone();
        self.db
            .progress_handler(STEPS, Some(move || asked.is_over()))
            .map_err(|error| failed(&error))?;
        let mut statement = self.db.prepare(sql).map_err(|error| failed(&error))?;
        if statement.column_count() == 0 || !statement.readonly() {
            return Err(QueryError::NotAQuery.into());
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        on_columns(&columns)?;
        let mut rows = statement.query([]).map_err(|error| failed(&error))?;
        let mut returned = 0;
        while let Some(row) = rows.next().map_err(|error| failed(&error))? {
            if limits.rows.is_some_and(|most| returned >= most) {
                return Ok(true);
            }
            let values = (0..columns.len()).map(|at| row.get(at)).collect::<Result<_, _>>();
            let values = values.map_err(|error| failed(&error))?;
            clock.pause(|| on_row(values))?;
            returned += 1;
        }
        Ok(false)
    }

    /// Runs a query and returns the whole result.
    pub fn all(&mut self, sql: &str, limits: QueryLimits) -> Result<QueryResult, QueryError> {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        let is_cut = self.run::<QueryError>(
            sql,
            limits,
            &mut |names| {
                columns = names.to_vec();
                Ok(())
            },
            &mut |row| {
                rows.push(row);
                Ok(())
            },
        )?;
        Ok(QueryResult { columns, rows, is_cut })
    }
}

/// Makes the views of the analytics database visible under their own names, whatever tables the log has.
fn attach(db: &Connection, path: &Path) -> Result<(), QueryError> {
    if !path.exists() {
        return Err(AnalyticsError::Missing(path.to_owned()).into());
    }
    let add = || -> rusqlite::Result<()> {
        db.execute("ATTACH ?1 AS analytics", [path.to_string_lossy()])?;
        for view in VIEWS.iter().filter(|view| !view.is_of_log) {
            let name = view.name;
            db.execute_batch(&format!(
                "CREATE TEMP VIEW {name} AS SELECT * FROM analytics.{name}"
            ))?;
        }
        Ok(())
    };
    add().map_err(|error| open::foreign_or(error, path).into())
}

/// Takes everything away from a connection that a query does not need.
fn confine(db: &mut Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "hard_heap_limit", MEMORY)?;
    db.pragma_update(None, "query_only", true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, LENGTH),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_ATTACHED, 1),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        db.set_limit(limit, most)?;
    }
    db.authorizer(Some(authorize))
}

/// Only queries: everything else that a statement could do is refused before it runs.
#[expect(clippy::wildcard_enum_match_arm, reason = "what a later SQLite can do is refused too")]
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } => {
            if REFUSED_FUNCTIONS.iter().any(|name| function_name.eq_ignore_ascii_case(name)) {
                Authorization::Deny
            } else {
                Authorization::Allow
            }
        }
        _ => Authorization::Deny,
    }
}

fn query_error(error: &rusqlite::Error, time: Duration) -> QueryError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => QueryError::TimedOut(time),
        Some(ErrorCode::OutOfMemory | ErrorCode::TooBig) => QueryError::TooLarge,
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            QueryError::NotAQuery
        }
        Some(_) | None => QueryError::Sqlite(error.to_string()),
    }
}
