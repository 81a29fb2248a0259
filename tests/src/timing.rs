//! Measuring and printing times, for the benches.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long it takes to start a process, send the payload and read all of its answer, as an agent does.
pub fn time(mut command: Command, payload: &[u8]) -> Duration {
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    // The program that does nothing does not read its stdin, so writing may fail.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(payload));
    let mut answer = Vec::new();
    child.stdout.take().map(|mut stdout| stdout.read_to_end(&mut answer));
    child.wait().expect("it ends");
    let took = started.elapsed();
    drop(written);
    took
}

/// The sorted times of many runs.
#[derive(Debug)]
pub struct Percentiles(Vec<Duration>);

impl Percentiles {
    /// Sorts the times.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// The median, in milliseconds.
    pub fn median(&self) -> f64 {
        self.at(50)
    }

    /// The time that this many percent of the runs stay below, in milliseconds.
    pub fn at(&self, percent: usize) -> f64 {
        self.0[(self.0.len() - 1) * percent / 100].as_secs_f64() * 1000.0
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:6.2} ms   p99 {:6.2} ms", self.at(50), self.at(99))
    }
}
