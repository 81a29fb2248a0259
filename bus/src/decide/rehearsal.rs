//! Where the commands of a replay run: their own directories in a scratch place, a mark in their
//! environment, limits on time and memory. Their programs are found where they were.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::surroundings::Surroundings;

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
        })
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.work
    }

    /// Also for a hook that calls hookbus itself: no daemon stays behind, nothing is published.
    pub(super) fn env(&self) -> [(&OsStr, &OsStr); 8] {
        [
            ("HOOKBUS_REPLAY".as_ref(), "1".as_ref()),
            ("HOOKBUS_HOME".as_ref(), self.bus.as_ref()),
            ("HOOKBUS_DAEMON".as_ref(), "off".as_ref()),
            ("HOOKBUS_NATS_URL".as_ref(), "".as_ref()),
            ("XDG_RUNTIME_DIR".as_ref(), self.temporary.as_ref()),
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

/// The same words, with files that are given relative to the directory of then by their whole path.
pub(super) fn where_it_was(words: Vec<String>, then: &Surroundings) -> Vec<String> {
    let absolute = |word: &str| {
        // A name alone is a program on the PATH; `guard.py` is a file.
        let relative = word.contains(['/', '.']) && !word.starts_with('/');
        let place = then.cwd.join(word);
        (relative && place.is_file()).then(|| place.to_string_lossy().into_owned())
    };
    match words.as_slice() {
        [bash, flag, line] if bash == "bash" && flag == "-c" => {
            let inner = shlex::split(line).unwrap_or_default();
            let line = inner.iter().fold(line.clone(), |line, word| match absolute(word) {
                Some(place) => {
                    let quoted =
                        shlex::try_quote(&place).map_or_else(|_| place.clone(), String::from);
                    line.replacen(word.as_str(), &quoted, 1)
                }
                None => line,
            });
            vec![bash.clone(), flag.clone(), line]
        }
        [..] => words.into_iter().map(|word| absolute(&word).unwrap_or(word)).collect(),
    }
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
            where_it_was(words.iter().map(|word| (*word).to_owned()).collect(), &then)
        };
        assert_eq!(moved(&["python3", "hooks/a.py", "b/c"]), ["python3", &place, "b/c"]);
        let line = moved(&["bash", "-c", "python3 hooks/a.py || true"]);
        assert_eq!(line, ["bash", "-c", &format!("python3 {place} || true")]);
        assert_eq!(moved(&["/bin/sh", "-c", "x"]), ["/bin/sh", "-c", "x"]);
    }
}
