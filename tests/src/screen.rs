//! A user in front of a program that draws on the whole terminal: reads the screen, presses keys, and gives the window
//! another size.

use std::fmt;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::pty::Pty;

/// How long something may take to appear. Nothing here takes this long.
const LIMIT: Duration = Duration::from_mins(1);

/// How U+FFFD is shown.
const REPLACED: u8 = b'?';

const POLL: Duration = Duration::from_millis(20);

/// A program on a terminal of its own.
pub struct ScreenUser {
    pty: Pty,
    child: Child,
    shown: Arc<Mutex<Shown>>,
}

/// What the terminal shows, and everything that was written to it.
struct Shown {
    terminal: vt100::Parser,
    written: Vec<u8>,
}

impl Shown {
    /// Draws what was written after the first `from` bytes; returns how many bytes that were. The parser shows nothing for
    /// U+FFFD, which every terminal gives a column, so that it gets another character.
    fn draw_from(&mut self, from: usize) -> usize {
        let new = &self.written[from..];
        let whole = match new {
            [.., 0xef] => new.len() - 1,
            [.., 0xef, 0xbf] => new.len() - 2,
            _ => new.len(),
        };
        let mut shown = Vec::new();
        let mut rest = &new[..whole];
        while let Some(at) = rest.windows(3).position(|it| it == "\u{fffd}".as_bytes()) {
            shown.extend_from_slice(&rest[..at]);
            shown.push(REPLACED);
            rest = &rest[at + 3..];
        }
        shown.extend_from_slice(rest);
        self.terminal.process(&shown);
        whole
    }
}

impl fmt::Debug for ScreenUser {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.text())
    }
}

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a terminal has a size")
}

impl ScreenUser {
    /// Starts a program at a terminal of this size.
    pub fn start(mut command: Command, rows: u16, columns: u16) -> Self {
        let pty = Pty::open(rows, columns);
        let theirs = || pty.other_end();
        command.env("TERM", "xterm-256color").process_group(0);
        command.stdin(theirs()).stdout(theirs()).stderr(theirs());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let terminal = vt100::Parser::new(size(rows), size(columns), 0);
        let shown = Arc::new(Mutex::new(Shown { terminal, written: Vec::new() }));
        let (sink, mut ours) = (Arc::clone(&shown), pty.ours.try_clone().expect("a terminal"));
        thread::spawn(move || {
            let (mut chunk, mut drawn) = (vec![0; 65536], 0);
            while let Ok(count @ 1..) = ours.read(&mut chunk) {
                let mut shown = sink.lock().expect("no thread panics with the lock");
                shown.written.extend_from_slice(&chunk[..count]);
                drawn += shown.draw_from(drawn);
            }
        });
        Self { pty, child, shown }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().expect("no thread panics with the lock")
    }

    /// What is on the screen now, a line for each row.
    pub fn text(&self) -> String {
        let shown = self.shown();
        let screen = shown.terminal.screen();
        let (_, columns) = screen.size();
        screen.rows(0, columns.get()).collect::<Vec<_>>().join("\n")
    }

    /// Everything that the program has written, byte for byte.
    pub fn written(&self) -> Vec<u8> {
        self.shown().written.clone()
    }

    /// Whether any character on the screen has a colour.
    pub fn is_coloured(&self) -> bool {
        let shown = self.shown();
        let screen = shown.terminal.screen();
        let (rows, columns) = screen.size();
        let cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |at| (row, at)));
        let is_coloured = |(row, at)| {
            let cell = screen.cell(row, at);
            cell.is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        };
        cells.into_iter().any(is_coloured)
    }

    /// Waits until the screen is as `is_so` says.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let started = Instant::now();
        while !is_so(&self.text()) {
            assert!(started.elapsed() < LIMIT, "{what} did not appear:\n{}", self.text());
            thread::sleep(POLL);
        }
    }

    /// Waits until this text is on the screen.
    pub fn see(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until this text is not on the screen any more.
    pub fn see_no(&self, text: &str) {
        self.wait_until(&format!("a screen without `{text}`"), |screen| !screen.contains(text));
    }

    /// Presses keys.
    pub fn press(&self, keys: &str) {
        (&self.pty.ours).write_all(keys.as_bytes()).expect("the terminal is open");
    }

    /// Gives the window another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.shown().terminal.screen_mut().set_size(size(rows), size(columns));
        self.pty.resize(rows, columns);
        // The kernel tells only the processes whose terminal controls them.
        self.signal(Signal::WINCH);
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("our own child");
    }

    /// Waits until the program has ended; returns its exit code.
    pub fn exit_code(&mut self) -> Option<i32> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status.code();
            }
            assert!(started.elapsed() < LIMIT, "it does not end:\n{}", self.text());
            thread::sleep(POLL);
        }
    }

    /// Whether the terminal is as a shell needs it: the first screen, a cursor, lines that are edited and shown.
    pub fn is_given_back(&self) -> bool {
        let started = Instant::now();
        loop {
            let is_back = {
                let shown = self.shown();
                let screen = shown.terminal.screen();
                !screen.alternate_screen() && !screen.hide_cursor()
            };
            if is_back && self.pty.is_cooked() {
                return true;
            }
            // What the program wrote last may not be read yet.
            if started.elapsed() > Duration::from_secs(5) {
                return false;
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for ScreenUser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
