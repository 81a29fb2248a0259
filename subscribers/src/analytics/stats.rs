//! The figures people ask for, from the sums by hour: every answer reads a few thousand rows, whatever the size of the
//! log.

use std::path::Path;

use hookbus::event::Time;
use rusqlite::Connection;

use super::figures::{ACTIVITY, hour_of};
use super::query::{QueryResult, SqlValue};
use super::{AnalyticsError, open};

/// What figures are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The agent.
    Agent,
    /// The tool.
    Tool,
    /// The hook.
    Hook,
    /// The directory in which sessions began.
    Project,
    /// The model.
    Model,
    /// The machine.
    Host,
    /// The day, in local time.
    Day,
    /// The hosts that tool calls name.
    Site,
    /// The files that tool calls name.
    File,
}

impl By {
    /// Everything, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Agent,
        Self::Tool,
        Self::Hook,
        Self::Project,
        Self::Model,
        Self::Host,
        Self::Day,
        Self::Site,
        Self::File,
    ];

    /// The word of the command line, and of JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Project => "project",
            Self::Model => "model",
            Self::Host => "host",
            Self::Day => "day",
            Self::Site => "site",
            Self::File => "file",
        }
    }

    /// What the word means, where it does not say so itself.
    pub const fn about(self) -> Option<&'static str> {
        match self {
            Self::Agent | Self::Tool | Self::Hook | Self::Model => None,
            Self::Project => Some("The directory in which sessions began"),
            Self::Host => Some("The machine"),
            Self::Day => Some("In local time"),
            Self::Site => Some("The hosts that tool calls name"),
            Self::File => Some("The files that tool calls name"),
        }
    }

    /// What a word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == word)
    }
}

/// The sums of tools.
const TOOLS: &str = "SELECT tool, tool_class, sum(calls) AS calls, sum(failed) AS failed, sum(denied) AS denied, \
     sum(unknown) AS unknown, sum(blocked) AS blocked, sum(asked) AS asked, \
     total(took) / 1e3 / nullif(sum(timed), 0) AS mean_ms \
     FROM f_tools WHERE hour >= ?1 GROUP BY tool, tool_class ORDER BY calls DESC, tool, tool_class";

/// The sums of hooks, with the bounds of the histogram below which half and 19 of 20 calls are.
const HOOKS: &str = "WITH counted AS ( \
         SELECT hook, shadow, sum(calls) AS calls, sum(blocked) AS blocked, sum(asked) AS asked, \
                sum(rewritten) AS rewritten, sum(context) AS context, sum(allowed) AS allowed, \
                sum(failed) AS failed, sum(unapproved) AS unapproved, sum(timed) AS timed, total(took) AS took \
         FROM f_hooks WHERE hour >= ?1 GROUP BY hook, shadow \
     ), buckets AS ( \
         SELECT hook, shadow, up_to, sum(sum(calls)) OVER (PARTITION BY hook, shadow ORDER BY up_to) AS below \
         FROM f_latency WHERE hour >= ?1 GROUP BY hook, shadow, up_to \
     ), quantiles AS ( \
         SELECT c.hook, c.shadow, min(CASE WHEN below * 2 >= timed THEN up_to END) AS p50, \
                min(CASE WHEN below * 20 >= timed * 19 THEN up_to END) AS p95 \
         FROM counted c JOIN buckets b USING (hook, shadow) GROUP BY c.hook, c.shadow \
     ) \
     SELECT c.hook, c.shadow, calls, blocked, asked, rewritten, context, allowed, failed, unapproved, \
            took / 1e3 / nullif(timed, 0) AS mean_ms, nullif(p50, 9223372036854775807) / 1e3 AS p50_ms, \
            nullif(p95, 9223372036854775807) / 1e3 AS p95_ms \
     FROM counted c LEFT JOIN quantiles USING (hook, shadow) ORDER BY calls DESC, c.hook, c.shadow";

/// The sums of hosts: by session first, which the table is sorted by.
const SITES: &str = "SELECT host, sum(uses) AS uses, count(*) AS sessions FROM ( \
         SELECT host, session, sum(uses) AS uses FROM f_hosts WHERE hour >= ?1 GROUP BY host, session \
     ) GROUP BY host ORDER BY uses DESC, host";

/// The sums of files, in the same way.
const FILES: &str = "SELECT path, sum(uses) AS uses, sum(changes) AS changes, count(*) AS sessions FROM ( \
         SELECT path, session, sum(uses) AS uses, sum(uses) FILTER (WHERE access <> 'read') AS changes \
         FROM f_files WHERE hour >= ?1 GROUP BY path, session \
     ) GROUP BY path ORDER BY uses DESC, path";

/// The figures of a database.
#[derive(Debug)]
pub struct Stats {
    db: Connection,
}

impl Stats {
    /// Opens the database at `path`, which has to be up to date.
    pub fn open(path: &Path) -> Result<Self, AnalyticsError> {
        Ok(Self { db: open::for_reading(path)? })
    }

    /// All figures, in one row.
    pub fn totals(&self, since: Option<Time>) -> Result<QueryResult, AnalyticsError> {
        let sums: Vec<String> = ACTIVITY.iter().map(|name| sum(name)).collect();
        self.read(&format!("SELECT {} FROM f_activity WHERE hour >= ?1", sums.join(", ")), since)
    }

    /// The figures of each agent, tool, hook and so on; what there is most of comes first, days in their order.
    pub fn by(&self, by: By, since: Option<Time>) -> Result<QueryResult, AnalyticsError> {
        match by {
            By::Tool => self.read(TOOLS, since),
            By::Hook => self.read(HOOKS, since),
            By::Site => self.read(SITES, since),
            By::File => self.read(FILES, since),
            By::Agent => self.read(&activity_by("agent"), since),
            By::Project => self.read(&activity_by("project"), since),
            By::Model => self.read(&activity_by("model"), since),
            By::Host => self.read(&activity_by("host"), since),
            By::Day => self.read(&activity_by_day(), since),
        }
    }

    fn read(&self, sql: &str, since: Option<Time>) -> Result<QueryResult, AnalyticsError> {
        let from = since.map_or(i64::MIN, |since| hour_of(since.micros()));
        let mut statement = self.db.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let count = columns.len();
        let values = |row: &rusqlite::Row<'_>| (0..count).map(|at| row.get(at)).collect();
        let rows = statement.query_map([from], values)?;
        let rows: Vec<Vec<SqlValue>> = rows.collect::<Result<_, _>>()?;
        Ok(QueryResult { columns, rows, is_cut: false })
    }
}

/// The sum of a column; the cost in US dollars. `sum` would fail beyond 64 bits, which only agents that lie can report.
fn sum(name: &str) -> String {
    match name {
        "cost" => "total(cost) / 1e9 AS cost_usd".to_owned(),
        name => format!("CAST(total({name}) AS INTEGER) AS {name}"),
    }
}

/// The sums of all columns under their own names, to be summed up again.
fn partial_sums() -> String {
    let sums = ACTIVITY.iter().map(|name| format!("CAST(total({name}) AS INTEGER) AS {name}"));
    sums.collect::<Vec<_>>().join(", ")
}

/// Sums by scope first: there are far fewer scopes than hours.
fn activity_by(key: &str) -> String {
    let outer: Vec<String> = ACTIVITY.iter().map(|name| sum(name)).collect();
    format!(
        "SELECT x.{key}, {} FROM (SELECT scope, {} FROM f_activity WHERE hour >= ?1 GROUP BY scope) \
         JOIN scopes x USING (scope) GROUP BY x.{key} ORDER BY events DESC, x.{key}",
        outer.join(", "),
        partial_sums()
    )
}

fn activity_by_day() -> String {
    let outer: Vec<String> = ACTIVITY.iter().map(|name| sum(name)).collect();
    format!(
        "SELECT date(hour * 3600, 'unixepoch', 'localtime') AS day, {} \
         FROM (SELECT hour, {} FROM f_activity WHERE hour >= ?1 GROUP BY hour) GROUP BY day ORDER BY day",
        outer.join(", "),
        partial_sums()
    )
}
