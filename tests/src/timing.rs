//! Timings, for the benches.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// As an agent does it: a process, the payload, its answer to the end.
pub fn time(mut command: Command, payload: &[u8]) -> Duration {
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    // A program that does nothing does not read either.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(payload));
    let mut answer = Vec::new();
    child.stdout.take().map(|mut stdout| stdout.read_to_end(&mut answer));
    child.wait().expect("it ends");
    let took = started.elapsed();
    drop(written);
    took
}

/// How long something took, over many tries.
#[derive(Debug)]
pub struct Percentiles(Vec<Duration>);

impl Percentiles {
    /// Of these times.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// The one in the middle, in milliseconds.
    pub fn median(&self) -> f64 {
        self.at(50)
    }

    /// The one that this many percent are below, in milliseconds.
    pub fn at(&self, percent: usize) -> f64 {
        self.0[(self.0.len() - 1) * percent / 100].as_secs_f64() * 1000.0
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:6.2} ms   p99 {:6.2} ms", self.at(50), self.at(99))
    }
}
