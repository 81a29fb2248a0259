//! A server that Hermes' Langfuse plugin sends traces to. It accepts OTLP as a Langfuse server does and
//! keeps the requests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use super::{hermes_extras, hermes_python};
use crate::home::wait_until;

const SERVER: &str = include_str!("collector.py");

/// A running collector; killed when dropped.
#[derive(Debug)]
pub struct Collector {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// Starts it on a free port of 127.0.0.1.
    pub fn start() -> Self {
        let mut child = Command::new(hermes_python())
            .args(["-c", SERVER])
            .env("PYTHONPATH", hermes_extras())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python runs");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (sink, from) = (Arc::clone(&lines), child.stdout.take().expect("a pipe"));
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("it prints JSON");
                sink.lock().expect("no thread panics with the lock").push(line);
            }
        });
        let collector = Self { child, lines };
        wait_until("it listens", || !collector.lines().is_empty());
        collector
    }

    /// Its URL.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.lines()[0]["port"])
    }

    /// The requests it received.
    pub fn requests(&self) -> Vec<Value> {
        self.lines().split_off(1)
    }

    /// The spans in them.
    pub fn spans(&self) -> Vec<Value> {
        let list = |request: &Value| request["spans"].as_array().cloned().unwrap_or_default();
        self.requests().iter().flat_map(list).collect()
    }

    fn lines(&self) -> Vec<Value> {
        self.lines.lock().expect("no thread panics with the lock").clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
