//! A process of Hermes' that speaks JSON-RPC, one message a line, over its standard streams: the backend of
//! its terminal UI, its ACP server, and over a small relay its web server.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::group::Group;
use super::outcome::Wire;
use super::process::{Ended, wait};
use super::run::Played;
use super::stage::Stage;
use super::{ModelServer, Run};

/// Nothing that is asked here takes this long.
const PATIENCE: Duration = Duration::from_mins(1);

const GOODBYE: Duration = Duration::from_secs(30);

/// A conversation with a process; the process is ended when this is dropped.
#[derive(Debug)]
pub struct Talk {
    child: Child,
    to: Option<ChildStdin>,
    heard: Arc<Mutex<Vec<Value>>>,
    asked: u64,
    group: Option<Group>,
    stage: Option<Stage>,
    model: ModelServer,
    errors: PathBuf,
}

impl Talk {
    pub(super) fn start(stage: Stage, model: ModelServer, mut command: Command) -> Self {
        let errors = stage.scratch.root().join("talk.log");
        stage.enclose(&mut command);
        let log = File::create(&errors).expect("a file in the scratch place");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let group = Some(Group::of(&child));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (sink, from) = (Arc::clone(&heard), child.stdout.take().expect("a pipe"));
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let message =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({"noise": line}));
                sink.lock().expect("nobody panics here").push(message);
            }
        });
        let to = child.stdin.take();
        Self { child, to, heard, asked: 0, group, stage: Some(stage), model, errors }
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let question = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let to = self.to.as_mut().expect("it runs");
        writeln!(to, "{question}").and_then(|()| to.flush()).expect("it listens");
        let is_ours = |message: &Value| message["id"] == id && message.get("method").is_none();
        let answer = self.until(method, is_ours);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Waits for a message that fits; those of the past count too.
    pub fn until(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            if let Some(message) = self.heard().into_iter().find(|message| fits(message)) {
                return message;
            }
            assert!(started.elapsed() < PATIENCE, "no answer to {what}: {}", self.all());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Everything that was said to us so far.
    pub fn heard(&self) -> Vec<Value> {
        self.heard.lock().expect("nobody panics here").clone()
    }

    fn all(&self) -> String {
        let errors = std::fs::read_to_string(&self.errors).unwrap_or_default();
        format!("{:#?}\n{errors}", self.heard())
    }

    /// Hangs up, and waits until it has ended.
    pub fn end(mut self) -> Run {
        drop(self.to.take());
        let ended = wait(&mut self.child, Instant::now(), GOODBYE);
        let mut group = self.group.take().expect("it runs");
        if ended.is_none() {
            group.kill_with_descendants();
            self.child.wait().expect("our own child");
        }
        group.look_for_members();
        let mut played = Played::default();
        played.add(Ended {
            exit: ended.and_then(|status| status.code()),
            timed_out: ended.is_none(),
            stdout: self.all(),
            stderr: std::fs::read_to_string(&self.errors).unwrap_or_default(),
            group,
        });
        let stage = self.stage.take().expect("it runs");
        Run::new(stage.label, Wire::OpenAi, stage.scratch, played, &self.model)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if let Some(group) = &mut self.group {
            group.kill_with_descendants();
            drop(self.child.wait());
        }
    }
}
