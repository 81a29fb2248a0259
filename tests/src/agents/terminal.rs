//! An agent before a person: the process gets a terminal of its own, and what a person would do is
//! played: wait until something is on the screen, type, press return.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::group::Group;
use super::process::{Ended, wait};

/// What a person does.
#[derive(Clone, Copy)]
pub enum Act<'a> {
    /// Waits until this is on the screen, counted from the last thing waited for.
    See(&'static str),
    /// Waits until this is so.
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

/// Fast enough for a test, slow enough that keys are not taken for a paste.
const BETWEEN_KEYS: Duration = Duration::from_millis(40);

/// By then what was typed is on the screen, if it ever is.
const ECHO: Duration = Duration::from_secs(10);

/// A person who has done everything does not wait for ever.
const FAREWELL: Duration = Duration::from_secs(5);

/// No program that ends by itself takes this long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Any program before a person: its exit code and what was on the screen.
pub fn before_a_person(command: Command, acts: &[Act<'_>]) -> (Option<i32>, String) {
    let ended = run_until(command, acts, PATIENCE, PATIENCE);
    (ended.exit, ended.stdout)
}

/// Runs `command` at a terminal until everything was done. `limit` is for what must be seen.
pub(super) fn run(command: Command, acts: &[Act<'_>], limit: Duration) -> Ended {
    run_until(command, acts, limit, FAREWELL)
}

fn run_until(mut command: Command, acts: &[Act<'_>], limit: Duration, farewell: Duration) -> Ended {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).expect("a terminal");
    grantpt(&ours).expect("a terminal");
    unlockpt(&ours).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("a terminal has a name");
    let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).expect("a terminal has a size");
    let theirs = || {
        let path = name.to_str().expect("a plain name");
        File::options().read(true).write(true).open(path).expect("the other end")
    };
    command.stdin(theirs()).stdout(theirs()).stderr(theirs()).process_group(0);
    let started = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    drop(command); // and with it our copies of the other end
    let mut group = Group::of(&child);
    let screen = Screen::watch(File::from(ours));
    screen.play(acts, started, limit);
    let ended = wait(&mut child, Instant::now(), farewell);
    if ended.is_none() {
        group.kill_with_descendants();
        child.wait().expect("our own child");
    }
    group.look_for_members();
    let exit = ended.and_then(|status| status.code());
    let stdout = screen.last();
    Ended { exit, timed_out: ended.is_none(), stdout, stderr: String::new(), group }
}

struct Screen {
    terminal: File,
    shown: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Screen {
    /// Collects what is shown, and answers what a terminal is asked: programs wait for that.
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
                sink.lock().expect("nobody panics here").push_str(&without_escapes(&text));
            }
        });
        Self { terminal, shown, reader }
    }

    /// What was shown in the end: all of it, unless somebody else still holds the terminal.
    fn last(&self) -> String {
        let ended = Instant::now();
        while !self.reader.is_finished() && ended.elapsed() < FAREWELL {
            thread::sleep(BETWEEN_KEYS);
        }
        self.text()
    }

    fn text(&self) -> String {
        self.shown.lock().expect("nobody panics here").clone()
    }

    fn play(&self, acts: &[Act<'_>], started: Instant, limit: Duration) {
        let mut seen = 0;
        for act in acts {
            match act {
                Act::See(wanted) => loop {
                    let found = self.text()[seen..].find(wanted).map(|at| seen + at + wanted.len());
                    if let Some(found) = found {
                        seen = found;
                        // What is on the screen is not always listening yet.
                        thread::sleep(Duration::from_secs(1));
                        break;
                    }
                    let screen = self.text();
                    assert!(
                        started.elapsed() < limit,
                        "`{wanted}` never came on the screen:\n{screen}"
                    );
                    thread::sleep(BETWEEN_KEYS);
                },
                Act::Until(is_so) => {
                    while !is_so() {
                        assert!(started.elapsed() < limit, "waited in vain:\n{}", self.text());
                        thread::sleep(BETWEEN_KEYS);
                    }
                }
                Act::Type(text) => self.type_in(text),
                Act::Enter => self.press('\r'),
                Act::Escape => self.press('\x1b'),
            }
        }
    }

    /// A program that is busy takes keys that it reads all at once for a paste, and a return behind them for a
    /// part of it: a person looks at what they typed first.
    fn type_in(&self, text: &str) {
        let before = self.text().len();
        text.chars().for_each(|key| self.press(key));
        let typed = Instant::now();
        // Not every program shows it in one piece.
        while !self.text()[before..].contains(text) && typed.elapsed() < ECHO {
            thread::sleep(BETWEEN_KEYS);
        }
        thread::sleep(BETWEEN_KEYS);
    }

    fn press(&self, key: char) {
        let mut bytes = [0; 4];
        (&self.terminal).write_all(key.encode_utf8(&mut bytes).as_bytes()).expect("it listens");
        thread::sleep(BETWEEN_KEYS);
    }
}

/// The text between the control sequences; enough to look for words in.
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
