//! A process of Hermes that speaks JSON-RPC, one message a line, over stdin and stdout: the backend of its
//! terminal UI, its ACP server, and, through a small client, its web server.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::outcome::Protocol;
use super::process::{ProcessResult, wait};
use super::process_group::ProcessGroup;
use super::run::RunOutput;
use super::setup::RunSetup;
use super::{ModelServer, Run};

/// How long a response may take.
const RESPONSE_LIMIT: Duration = Duration::from_mins(1);

/// How long the process may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A running process; killed when dropped.
#[derive(Debug)]
pub struct RpcProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    received: Arc<Mutex<Vec<Value>>>,
    requests: u64,
    group: Option<ProcessGroup>,
    setup: Option<RunSetup>,
    model: ModelServer,
    errors: PathBuf,
}

impl RpcProcess {
    pub(super) fn start(setup: RunSetup, model: ModelServer, mut command: Command) -> Self {
        let errors = setup.scratch.root().join("rpc.log");
        setup.isolate(&mut command);
        let log = File::create(&errors).expect("a log file");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let group = Some(ProcessGroup::of(&child));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (sink, from) = (Arc::clone(&received), child.stdout.take().expect("a pipe"));
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let message =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({"noise": line}));
                sink.lock().expect("no thread panics with the lock").push(message);
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, received, requests: 0, group, setup: Some(setup), model, errors }
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let stdin = self.stdin.as_mut().expect("it runs");
        writeln!(stdin, "{request}").and_then(|()| stdin.flush()).expect("it reads");
        let is_response = |message: &Value| message["id"] == id && message.get("method").is_none();
        let response = self.wait_for(method, is_response);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Waits for a message that matches; one that has already arrived counts too.
    pub fn wait_for(&self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            if let Some(message) = self.received().into_iter().find(|message| matches(message)) {
                return message;
            }
            assert!(started.elapsed() < RESPONSE_LIMIT, "no response to {what}: {}", self.all());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// All messages received so far.
    pub fn received(&self) -> Vec<Value> {
        self.received.lock().expect("no thread panics with the lock").clone()
    }

    fn all(&self) -> String {
        let errors = std::fs::read_to_string(&self.errors).unwrap_or_default();
        format!("{:#?}\n{errors}", self.received())
    }

    /// Closes its stdin and waits for its exit.
    pub fn stop(mut self) -> Run {
        drop(self.stdin.take());
        let ended = wait(&mut self.child, Instant::now(), STOP_LIMIT);
        let mut group = self.group.take().expect("it runs");
        if ended.is_none() {
            group.kill_with_descendants();
            self.child.wait().expect("our own child");
        }
        group.look_for_members();
        let mut output = RunOutput::default();
        output.add(ProcessResult {
            exit: ended.and_then(|status| status.code()),
            timed_out: ended.is_none(),
            stdout: self.all(),
            stderr: std::fs::read_to_string(&self.errors).unwrap_or_default(),
            group,
        });
        let setup = self.setup.take().expect("it runs");
        Run::new(setup.label, Protocol::OpenAi, setup.scratch, output, &self.model)
    }
}

impl Drop for RpcProcess {
    fn drop(&mut self) {
        if let Some(group) = &mut self.group {
            group.kill_with_descendants();
            drop(self.child.wait());
        }
    }
}
