//! Where the commands of a replay run: their own directories in a scratch place, a mark in their
//! environment, limits on time and memory. Their programs are found where they were.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};

use super::hook::{Action, Hook};
use super::hosts_of_then::{HostsOfThen, Starts};
use super::plan::Plan;
use super::surroundings::Surroundings;
use super::{launch, script, shell_line};
use crate::event::{BusId, EventId};

/// A place for commands to run without touching anything of the person's.
#[derive(Debug, Clone)]
pub struct Scratch {
    /// For one event's commands together.
    pub(super) time: Duration,
    /// For each process, in bytes.
    memory: u64,
    home: PathBuf,
    temporary: PathBuf,
    work: PathBuf,
    bus: PathBuf,
    hermes: PathBuf,
    running: Arc<Mutex<Running>>,
    /// The plugins of this replay.
    pub(super) hosts: Arc<HostsOfThen>,
}

/// The process groups that run in a scratch place.
#[derive(Debug, Default)]
struct Running {
    groups: Vec<Pid>,
    over: bool,
}

impl Scratch {
    /// A scratch place in `folder`, which has to be there.
    pub fn in_folder(folder: &Path, time: Duration, memory: u64) -> std::io::Result<Self> {
        let place = |name: &str| {
            let place = folder.join(name);
            std::fs::create_dir_all(&place).map(|()| place)
        };
        Ok(Self {
            time,
            memory,
            home: place("home")?,
            temporary: place("tmp")?,
            work: place("work")?,
            bus: place("hookbus")?,
            hermes: place("home/.hermes")?,
            running: Arc::default(),
            hosts: Arc::default(),
        })
    }

    /// The same place, where plugins are started anew where they were then.
    #[must_use]
    pub fn with_starts(self, starts: Starts) -> Self {
        Self { hosts: Arc::new(HostsOfThen::starting_at(starts)), ..self }
    }

    /// An event comes by, in the order of the log: whoever was started for it then forgets what it
    /// heard before.
    pub fn pass(&self, bus: Option<BusId>, event: EventId) {
        self.hosts.pass(bus, event);
    }

    /// Whether a plugin that was started for this event then has been told everything since.
    pub fn has_passed(&self, event: EventId) -> bool {
        self.hosts.has_passed(event)
    }

    /// Ends what runs here; whatever starts after this is ended as well.
    pub fn end(&self) {
        let mut running = self.running();
        running.over = true;
        running.groups.drain(..).for_each(end_group);
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entered(&self, group: Pid) {
        let mut running = self.running();
        if running.over {
            end_group(group);
        } else {
            running.groups.push(group);
        }
    }

    /// What is left of the group goes with it.
    pub(super) fn left(&self, group: Pid) {
        let mut running = self.running();
        end_group(group);
        running.groups.retain(|other| *other != group);
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.work
    }

    /// Where what plugins print goes.
    pub(super) fn log_in(&self) -> &Path {
        &self.bus
    }

    /// In place of the home of Hermes: plugins keep things there, and hear everything once more.
    pub(super) fn hermes(&self) -> &Path {
        &self.hermes
    }

    /// Also for a hook that calls hookbus itself: no daemon stays behind, nothing is published.
    pub(super) fn env(&self) -> [(&OsStr, &OsStr); 12] {
        [
            ("HOOKBUS_REPLAY".as_ref(), "1".as_ref()),
            ("HOOKBUS_HOME".as_ref(), self.bus.as_ref()),
            ("HOOKBUS_DAEMON".as_ref(), "off".as_ref()),
            ("HOOKBUS_NATS_URL".as_ref(), "".as_ref()),
            ("XDG_RUNTIME_DIR".as_ref(), self.temporary.as_ref()),
            ("XDG_CONFIG_HOME".as_ref(), self.home.as_ref()),
            ("XDG_STATE_HOME".as_ref(), self.home.as_ref()),
            ("XDG_DATA_HOME".as_ref(), self.home.as_ref()),
            ("XDG_CACHE_HOME".as_ref(), self.home.as_ref()),
            ("HOME".as_ref(), self.home.as_ref()),
            ("TMPDIR".as_ref(), self.temporary.as_ref()),
            ("PWD".as_ref(), self.work.as_ref()),
        ]
    }

    /// What a process may write to, rather than what it may reserve: some runtimes reserve far
    /// more than they ever use.
    pub(super) fn limit(&self, process: Pid) {
        let most = Rlimit { current: Some(self.memory), maximum: Some(self.memory) };
        if let Err(error) = prlimit(Some(process), Resource::Data, most) {
            tracing::debug!(%error, "a hook was gone before it could be limited");
        }
    }
}

fn end_group(group: Pid) {
    if let Err(error) = kill_process_group(group, Signal::KILL) {
        tracing::debug!(%error, "nothing of a hook is left to be ended");
    }
}

/// What a hook would run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WouldRun {
    /// The command line, or the directory of plugins, where it would be found.
    pub line: String,
    /// Variables that its entry sets.
    pub env: Vec<(String, String)>,
}

impl Plan<'_> {
    /// What `hook` would run in a rehearsal of an event that was heard in these surroundings.
    pub fn would_run(&self, hook: &Hook, then: &Surroundings) -> WouldRun {
        let base = &self.whole(hook).base;
        match &hook.action {
            Action::Command(command) => {
                let words = launch::words(command, hook.on.manner(), then, base);
                let words = words.map(|words| where_it_was(words, then)).unwrap_or_default();
                let line = match words.as_slice() {
                    [] => command.text.clone(),
                    [bash, flag, line] if bash == "bash" && flag == "-c" => {
                        line.to_string_lossy().into_owned()
                    }
                    words => {
                        let words: Vec<_> = words.iter().map(|it| it.to_string_lossy()).collect();
                        shlex::try_join(words.iter().map(AsRef::as_ref))
                            .unwrap_or_else(|_| words.join(" "))
                    }
                };
                WouldRun { line, env: command.env.clone() }
            }
            Action::Python(python) => {
                let folder = launch::folder(&python.folder, then, base);
                WouldRun { line: folder.to_string_lossy().into_owned(), env: Vec::new() }
            }
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Broken(_)
            | Action::Unread { .. } => WouldRun { line: String::new(), env: Vec::new() },
        }
    }
}

/// The same words, with the program and its script by their whole path where they are given relative
/// to the directory of then. Other words are the command's own business, and stay as they are.
pub(super) fn where_it_was(words: Vec<OsString>, then: &Surroundings) -> Vec<OsString> {
    match words.as_slice() {
        [bash, flag, line] if bash == "bash" && flag == "-c" => {
            let moved = line.to_str().map(|line| line_where_it_was(line, then).into());
            vec![bash.clone(), flag.clone(), moved.unwrap_or_else(|| line.clone())]
        }
        [..] => {
            let named = named(&words, then);
            let place = |(at, word): (usize, OsString)| {
                named.iter().find(|(index, _)| *index == at).map_or(word, |(_, it)| it.clone())
            };
            words.into_iter().enumerate().map(place).collect()
        }
    }
}

/// Which of these words are a program or a script, and where that is.
fn named(words: &[OsString], then: &Surroundings) -> Vec<(usize, OsString)> {
    // A name alone is a program on the PATH; `guard.py` after it is a file.
    let program = words.first().filter(|word| script::is_a_path(word)).map(|_| 0);
    let script = script::place(words);
    let mut places: Vec<usize> = program.into_iter().chain(script).collect();
    places.dedup();
    let whole = |at: usize| {
        let word =
            words.get(at).filter(|word| !word.is_empty() && Path::new(word).is_relative())?;
        let place: PathBuf = then.cwd.join(word).components().collect();
        place.is_file().then(|| (at, place.into_os_string()))
    };
    places.into_iter().filter_map(whole).collect()
}

fn line_where_it_was(line: &str, then: &Surroundings) -> String {
    let mut moved = line.to_owned();
    // From the end, so that what comes before keeps its place.
    for command in shell_line::commands(line).into_iter().rev() {
        let (words, places): (Vec<OsString>, Vec<_>) =
            command.into_iter().map(|(word, place)| (OsString::from(word), place)).unzip();
        let mut named = named(&words, then);
        named.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        for (at, whole) in named {
            // What is no text has no place in a line.
            let Some(whole) = whole.to_str() else { continue };
            let quoted = shlex::try_quote(whole).map_or_else(|_| whole.to_owned(), String::from);
            if let Some(place) = places.get(at) {
                moved.replace_range(place.clone(), &quoted);
            }
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_they_were() {
        let then = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(then.path().join("hooks")).expect("a directory");
        std::fs::write(then.path().join("hooks/a.py"), "").expect("a script");
        let place = then.path().join("hooks/a.py").to_string_lossy().into_owned();
        let then = Surroundings { cwd: then.path().to_owned(), ..Surroundings::default() };
        let moved = |words: &[&str]| {
            let moved = where_it_was(words.iter().map(OsString::from).collect(), &then);
            moved.into_iter().map(|word| word.into_string().expect("text")).collect::<Vec<_>>()
        };
        assert_eq!(moved(&["python3", "hooks/a.py", "b/c"]), ["python3", &place, "b/c"]);
        let line = moved(&["bash", "-c", "python3 hooks/a.py || true"]);
        assert_eq!(line, ["bash", "-c", &format!("python3 {place} || true")]);
        assert_eq!(moved(&["/bin/sh", "-c", "x"]), ["/bin/sh", "-c", "x"]);
        assert_eq!(moved(&["hooks/a.py", "hooks/a.py"]), [&place, "hooks/a.py"]);
        assert_eq!(moved(&["true", "hooks/a"]), ["true", "hooks/a"]);
        let line = moved(&["bash", "-c", "echo xhooks/a.py; \"hooks/a.py\" hooks/a.py"]);
        assert_eq!(line, ["bash", "-c", &format!("echo xhooks/a.py; {place} hooks/a.py")]);
    }
}
