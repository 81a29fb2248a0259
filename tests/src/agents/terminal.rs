//! Runs a program at a terminal of its own, with a scripted user who waits until something is on the screen,
//! types, and presses return.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::process::{ProcessResult, wait};
use super::process_group::ProcessGroup;
use crate::pty::Pty;

/// One step of the user.
#[derive(Clone, Copy)]
pub enum Act<'a> {
    /// Waits until this is on the screen, after what the last `See` waited for.
    See(&'static str),
    /// Waits until this returns true.
    Until(&'a dyn Fn() -> bool),
    /// Types this.
    Type(&'static str),
    /// Presses return.
    Enter,
    /// Presses escape.
    Escape,
}

impl fmt::Debug for Act<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::See(text) => write!(to, "see `{text}`"),
            Self::Until(_) => write!(to, "wait"),
            Self::Type(text) => write!(to, "type `{text}`"),
            Self::Enter => write!(to, "enter"),
            Self::Escape => write!(to, "escape"),
        }
    }
}

/// Slow enough that programs do not take the keys for pasted text.
const BETWEEN_KEYS: Duration = Duration::from_millis(40);

/// How long to wait for typed text to appear on the screen.
const ECHO_LIMIT: Duration = Duration::from_secs(10);

/// How long an agent may take to end after the last step; then it is killed.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// How long other programs may take, for each step and to end.
const PROGRAM_LIMIT: Duration = Duration::from_mins(1);

/// Runs a program at a terminal, with a user who does `acts`; returns its exit code and the screen.
pub fn run_at_terminal(command: Command, acts: &[Act<'_>]) -> (Option<i32>, String) {
    let result = run_until(command, acts, PROGRAM_LIMIT, PROGRAM_LIMIT);
    (result.exit, result.stdout)
}

/// Runs an agent at a terminal until the user has done `acts`, within `limit`.
pub(super) fn run(command: Command, acts: &[Act<'_>], limit: Duration) -> ProcessResult {
    run_until(command, acts, limit, EXIT_LIMIT)
}

fn run_until(
    mut command: Command,
    acts: &[Act<'_>],
    limit: Duration,
    exit_limit: Duration,
) -> ProcessResult {
    let pty = Pty::open(40, 120);
    let theirs = || pty.other_end();
    command.stdin(theirs()).stdout(theirs()).stderr(theirs()).process_group(0);
    let started = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    drop(command); // closes our copies of the other end
    let mut group = ProcessGroup::of(&child);
    let screen = Screen::watch(pty.ours);
    screen.perform(acts, started, limit);
    let ended = wait(&mut child, Instant::now(), exit_limit);
    if ended.is_none() {
        group.kill_with_descendants();
        child.wait().expect("our own child");
    }
    group.look_for_members();
    let exit = ended.and_then(|status| status.code());
    let stdout = screen.final_text();
    ProcessResult { exit, timed_out: ended.is_none(), stdout, stderr: String::new(), group }
}

struct Screen {
    terminal: File,
    shown: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Screen {
    /// Collects what is on the screen, and answers the queries that programs send to a terminal and wait for.
    fn watch(terminal: File) -> Self {
        let shown = Arc::new(Mutex::new(String::new()));
        let (sink, mut reader) = (Arc::clone(&shown), terminal.try_clone().expect("a terminal"));
        let reader = thread::spawn(move || {
            let mut chunk = vec![0; 65536];
            while let Ok(count @ 1..) = reader.read(&mut chunk) {
                let text = String::from_utf8_lossy(&chunk[..count]).into_owned();
                for (asked, answer) in [("\x1b[c", "\x1b[?62;c"), ("\x1b[6n", "\x1b[1;1R")] {
                    if text.contains(asked) {
                        drop(reader.write_all(answer.as_bytes()));
                    }
                }
                sink.lock()
                    .expect("no thread panics with the lock")
                    .push_str(&without_escapes(&text));
            }
        });
        Self { terminal, shown, reader }
    }

    /// The whole screen. Waits until it is read to the end, unless another process keeps the terminal open.
    fn final_text(&self) -> String {
        let ended = Instant::now();
        while !self.reader.is_finished() && ended.elapsed() < EXIT_LIMIT {
            thread::sleep(BETWEEN_KEYS);
        }
        self.text()
    }

    fn text(&self) -> String {
        self.shown.lock().expect("no thread panics with the lock").clone()
    }

    fn perform(&self, acts: &[Act<'_>], started: Instant, limit: Duration) {
        let mut seen = 0;
        for act in acts {
            match act {
                Act::See(wanted) => loop {
                    let found = self.text()[seen..].find(wanted).map(|at| seen + at + wanted.len());
                    if let Some(found) = found {
                        seen = found;
                        // A program that shows a prompt may not read keys yet.
                        thread::sleep(Duration::from_secs(1));
                        break;
                    }
                    let screen = self.text();
                    assert!(
                        started.elapsed() < limit,
                        "`{wanted}` did not appear on the screen:\n{screen}"
                    );
                    thread::sleep(BETWEEN_KEYS);
                },
                Act::Until(condition) => {
                    while !condition() {
                        assert!(started.elapsed() < limit, "timed out:\n{}", self.text());
                        thread::sleep(BETWEEN_KEYS);
                    }
                }
                Act::Type(text) => self.type_in(text),
                Act::Enter => self.press('\r'),
                Act::Escape => self.press('\x1b'),
            }
        }
    }

    /// Types, and waits until the text is on the screen. A busy program takes keys that it reads all at once for
    /// pasted text, and a return after them for a part of it.
    fn type_in(&self, text: &str) {
        let before = self.text().len();
        text.chars().for_each(|key| self.press(key));
        let typed = Instant::now();
        // Not every program shows it as one text, so this is no failure.
        while !self.text()[before..].contains(text) && typed.elapsed() < ECHO_LIMIT {
            thread::sleep(BETWEEN_KEYS);
        }
        thread::sleep(BETWEEN_KEYS);
    }

    fn press(&self, key: char) {
        let mut bytes = [0; 4];
        (&self.terminal)
            .write_all(key.encode_utf8(&mut bytes).as_bytes())
            .expect("the terminal is open");
        thread::sleep(BETWEEN_KEYS);
    }
}

/// The text without control sequences, good enough to search for words.
fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        let body = after.trim_start_matches(['[', ']', '(', ')', '?']);
        let end = body.find(|c: char| c.is_ascii_alphabetic() || c == '\x07' || c == '\\');
        rest = end.map_or("", |end| &body[end + 1..]);
    }
    plain + rest
}
