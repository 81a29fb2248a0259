//! Writes long logs quickly, through the library, and queries or damages a log with Python's SQLite.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookbus::bus::Bus;
use hookbus::caller::Caller;
use hookbus::event::{Agent, EventId, Time};
use hookbus::log::{LogPath, LogReader, Query, ReadError, Row};
use hookbus::pipeline::{Call, handle};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::home::Home;

/// Time of the first event, in microseconds.
const START: i64 = 1_790_000_000_000_000;

/// Events that are in flight at the same time.
const IN_FLIGHT: usize = 500;

/// A reproducible mix of events of all agents and several kinds.
#[derive(Debug, Clone, Copy)]
pub struct Mixed {
    /// Number of events.
    pub events: usize,
    /// Number of sessions.
    pub sessions: usize,
}

impl Mixed {
    /// Records the events in `home`, with the decisions of its hooks.
    pub fn record(self, home: &Home) {
        record(home, self.events, |index| self.event(index));
    }

    fn event(self, index: usize) -> (Agent, Value) {
        let session = format!("session-{:06}", index * 7 % self.sessions);
        let command = COMMANDS[index * 31 % COMMANDS.len()];
        let call = |name: &str, tool: &str, input: Value| {
            json!({"hook_event_name": name, "session_id": session, "cwd": "/srv/shop",
                   "tool_name": tool, "tool_input": input})
        };
        let shell = json!({"command": command});
        match index % 11 {
            0..=2 => (Agent::Hermes, call("pre_tool_call", "terminal", shell)),
            3 => (Agent::Hermes, call("post_tool_call", "terminal", shell)),
            4 | 5 => (Agent::Gemini, call("BeforeTool", "run_shell_command", shell)),
            6 => (Agent::Gemini, call("AfterTool", "run_shell_command", shell)),
            7 => (Agent::Claude, call("PreToolUse", "Bash", shell)),
            8 => (Agent::Hermes, call("pre_tool_call", "read_file", json!({"path": command}))),
            9 => (
                Agent::Hermes,
                json!({"hook_event_name": "on_session_start", "session_id": session}),
            ),
            _ => (Agent::Codex, call("PreToolUse", "Bash", shell)),
        }
    }
}

const COMMANDS: [&str; 12] = [
    "ls -la",
    "git push --force origin main",
    "git push origin main",
    "cargo test --workspace",
    "rm -rf /var/tmp/build",
    "git status --short",
    "grep -rn TODO src",
    "git push -q --force-with-lease",
    "make -j2 all",
    "cat README.md",
    "python3 -m pytest -q",
    "echo pushed",
];

/// Records `count` events through the real pipeline, in this order and many at a time.
pub fn record(home: &Home, count: usize, event: impl Fn(usize) -> (Agent, Value)) {
    record_after(home, 0, count, event);
}

/// Records `count` more events after the first `before`.
pub fn record_after(
    home: &Home,
    before: usize,
    count: usize,
    event: impl Fn(usize) -> (Agent, Value),
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let bus = Arc::new(Bus::for_daemon(&home.path(), &[]));
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime.expect("a runtime"), async {
        let end = before + count;
        for first in (before..end).step_by(IN_FLIGHT) {
            let calls: Vec<_> = (first..end.min(first + IN_FLIGHT))
                .map(|index| {
                    let (agent, payload) = event(index);
                    let at = i64::try_from(index).expect("a small number") * 1000;
                    let at = Time::from_micros(START + at);
                    let call = Call {
                        id: EventId::mint(at),
                        at,
                        agent,
                        raw: payload.to_string().into_bytes().into(),
                        caller: Caller::default(),
                        deadline: Duration::from_mins(1),
                    };
                    let bus = Arc::clone(&bus);
                    tokio::task::spawn_local(async move { handle(call, &bus).await })
                })
                .collect();
            for call in calls {
                call.await.expect("it is recorded");
            }
        }
        bus.recorder.checkpoint().await;
    });
}

/// All rows of the log.
pub fn rows(home: &Home) -> Vec<Row> {
    let log = LogReader::open(&LogPath::in_home(&home.path())).expect("a log");
    let mut rows = Vec::new();
    log.each::<ReadError>(&Query::default(), None, |row| {
        rows.push(row);
        Ok(())
    })
    .expect("rows");
    rows
}

/// Stores every payload whole, as versions before the parts did.
#[expect(clippy::disallowed_methods, reason = "it writes what hookbus does not write any more")]
pub fn store_whole(home: &Home) {
    let rows = rows(home);
    let mut db = Connection::open(home.path().join("log.db")).expect("a log");
    let transaction = db.transaction().expect("a transaction");
    let triggers: Vec<(String, String)> = transaction
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .expect("triggers");
    for (name, _) in &triggers {
        transaction.execute_batch(&format!("DROP TRIGGER {name}")).expect("no trigger");
    }
    for row in rows {
        let text = String::from_utf8(row.payload).expect("text");
        let update = "UPDATE events SET payload = ?2, packed = NULL WHERE seq = ?1";
        transaction.execute(update, (row.seq.as_i64(), text)).expect("a change");
    }
    transaction.execute("DELETE FROM parts", []).expect("no parts");
    for (_, sql) in &triggers {
        transaction.execute_batch(sql).expect("a trigger");
    }
    transaction.commit().expect("a commit");
}

/// The first column of a query, read with Python's SQLite.
pub fn query(home: &Home, sql: &str) -> Vec<i64> {
    let ask = "import sqlite3, sys\n\
               for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(row[0])";
    let output = python(ask, &home.path().join("log.db"), &[sql]);
    output.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Changes rows despite the triggers that forbid it; each statement must change one row.
pub fn damage(home: &Home, statements: &[&str]) {
    let change = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n\
                  names = [row[0] for row in db.execute(\"SELECT name FROM sqlite_schema WHERE type = 'trigger'\")]\n\
                  for name in names: db.execute('DROP TRIGGER ' + name)\n\
                  for text in sys.argv[2:]: assert db.execute(text).rowcount == 1, text\n\
                  db.commit()";
    python(change, &home.path().join("log.db"), statements);
}

fn python(program: &str, file: &Path, arguments: &[&str]) -> String {
    assert!(fs::metadata(file).is_ok(), "there is a log");
    let output = Command::new("python3")
        .args(["-c", program])
        .arg(file)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// How long a scan of the log takes that only parses the JSON: what the benches of replays compare with.
#[expect(clippy::disallowed_methods, reason = "the comparison must not use our own reader")]
pub fn scan(home: &Home) -> Duration {
    let file = home.path().join("log.db");
    let started = Instant::now();
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a log");
    let mut statement = db.prepare("SELECT payload FROM events ORDER BY seq").expect("a query");
    let mut rows = statement.query([]).expect("rows");
    let mut parsed = 0;
    while let Some(row) = rows.next().expect("a row") {
        let bytes = row.get_ref(0).expect("a payload").as_bytes().expect("bytes");
        let value: Value = serde_json::from_slice(bytes).expect("JSON");
        parsed += usize::from(value.is_object());
    }
    assert!(parsed > 0, "an empty log");
    started.elapsed()
}
