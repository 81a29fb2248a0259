//! Long logs, written through the library in little time, and SQL over them by somebody else's hand.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hookbus::bus::Bus;
use hookbus::decide::Surroundings;
use hookbus::event::{Agent, EventId, Time};
use hookbus::pipeline::{Call, handle};
use serde_json::{Value, json};

use crate::home::Home;

/// When the first of them happened.
const START: i64 = 1_790_000_000_000_000;

/// How many are on their way into the log at once.
const AT_ONCE: usize = 500;

/// Events of all agents and several kinds, the same ones each time.
#[derive(Debug, Clone, Copy)]
pub struct Mixed {
    /// How many.
    pub events: usize,
    /// In how many sessions.
    pub sessions: usize,
}

impl Mixed {
    /// Records them in `home`, decided on by the hooks there.
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

/// Records `count` events through the real pipeline, many at once, in this order.
pub fn record(home: &Home, count: usize, event: impl Fn(usize) -> (Agent, Value)) {
    record_after(home, 0, count, event);
}

/// The same after the first `before` of them.
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
        for first in (before..end).step_by(AT_ONCE) {
            let calls: Vec<_> = (first..end.min(first + AT_ONCE))
                .map(|index| {
                    let (agent, payload) = event(index);
                    let at = i64::try_from(index).expect("a small number") * 1000;
                    let at = Time::from_micros(START + at);
                    let call = Call {
                        id: EventId::mint(at),
                        at,
                        agent,
                        raw: payload.to_string().into_bytes(),
                        surroundings: Surroundings::default(),
                        patience: Duration::from_mins(1),
                    };
                    let bus = Arc::clone(&bus);
                    tokio::task::spawn_local(async move { handle(call, &bus, || false).await })
                })
                .collect();
            for call in calls {
                call.await.expect("it is recorded");
            }
        }
        bus.recorder.checkpoint().await;
    });
}

/// The one column of a query, asked by another program than ours.
pub fn query(home: &Home, sql: &str) -> Vec<i64> {
    let ask = "import sqlite3, sys\n\
               for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(row[0])";
    let output = python(ask, &home.path().join("log.db"), &[sql]);
    output.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Changes what is there, as nobody should.
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
