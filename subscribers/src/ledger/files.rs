//! The ledger beside a log: `observers/<name>/`, with a position and a lock for each part, and a
//! file for each dead letter. The lock goes with its process, so a stand-by takes over at once.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hookbus::decide::observer_folder;
use hookbus::event::untoken;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use super::{NotSaved, Trouble};
use crate::dead::DeadLetter;
use crate::part::Part;
use crate::position::Position;

#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// The lock that says that we are here.
    here: Option<(PathBuf, File)>,
}

/// A part whose lock we hold.
#[derive(Debug)]
pub(super) struct Claim {
    position_file: PathBuf,
    _lock: File,
}

impl Files {
    pub(super) fn new(home: &Path, name: &str) -> Self {
        Self { folder: observer_folder(home, name), here: None }
    }

    pub(super) fn claim(&self, part: Part) -> Result<Option<(Claim, Option<Position>)>, Trouble> {
        private_folder(&self.folder).map_err(|error| trouble(&self.folder, &error))?;
        let lock_file = self.folder.join(format!("{}.lock", part.key()));
        let lock = try_lock(&lock_file).map_err(|error| trouble(&lock_file, &error))?;
        let Some(lock) = lock else { return Ok(None) };
        let claim = Claim { position_file: self.position_file(part), _lock: lock };
        Ok(Some((claim, self.position(part))))
    }

    fn position_file(&self, part: Part) -> PathBuf {
        self.folder.join(format!("{}.json", part.key()))
    }

    /// How far a part is; what cannot be read was never written.
    pub(super) fn position(&self, part: Part) -> Option<Position> {
        let file = self.position_file(part);
        let bytes = fs::read(&file).ok()?;
        match serde_json::from_slice(&bytes) {
            Ok(value) => Some(Position::from_json(&value)),
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "a position cannot be read; starting over");
                None
            }
        }
    }

    /// Keeps a copy of a position that is kept elsewhere, too.
    pub(super) fn note(&self, part: Part, position: &Position) -> io::Result<()> {
        private_folder(&self.folder)?;
        replace(&self.position_file(part), position.to_json().to_string().as_bytes())
    }

    pub(super) fn count_workers(&mut self) -> Result<usize, Trouble> {
        let folder = self.folder.join("workers");
        let failed = |error: io::Error| trouble(&folder, &error);
        private_folder(&folder).map_err(failed)?;
        if self.here.is_none() {
            let own = folder.join(std::process::id().to_string());
            self.here = try_lock(&own).map_err(failed)?.map(|lock| (own, lock));
        }
        let own = self.here.as_ref().map(|(file, _)| file);
        let mut count = 1;
        for file in fs::read_dir(&folder).map_err(failed)?.filter_map(|it| Some(it.ok()?.path())) {
            if Some(&file) == own {
                continue;
            }
            match try_lock(&file).map_err(failed)? {
                // Its process is gone.
                Some(_lock) => drop(fs::remove_file(&file)),
                None => count += 1,
            }
        }
        Ok(count)
    }

    pub(super) fn set_aside(&self, letter: &DeadLetter) -> Result<(), Trouble> {
        let file = self.letter_file(letter)?;
        private_folder(&self.dead_folder()).map_err(|error| trouble(&file, &error))?;
        let about = letter.about().to_string();
        let content = [about.as_bytes(), b"\n", &letter.envelope, b"\n"].concat();
        replace(&file, &content).map_err(|error| trouble(&file, &error))
    }

    pub(super) fn dead_letters(&self) -> Result<Vec<DeadLetter>, Trouble> {
        let folder = self.dead_folder();
        let listed = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(|error| trouble(&folder, &error))?,
        };
        let mut letters = Vec::new();
        for file in listed.filter_map(|entry| Some(entry.ok()?.path())) {
            if file.extension().is_none_or(|end| end != "json") {
                continue;
            }
            match read_letter(&file) {
                Ok(letter) => letters.extend(letter),
                Err(error) => {
                    tracing::warn!(file = %file.display(), %error, "passed over what is no dead letter");
                }
            }
        }
        letters.sort_by_key(|letter| letter.at);
        Ok(letters)
    }

    pub(super) fn count_dead_letters(&self) -> usize {
        let listed = fs::read_dir(self.dead_folder()).into_iter().flatten().flatten();
        listed.filter(|entry| entry.path().extension().is_some_and(|end| end == "json")).count()
    }

    pub(super) fn drop_letter(&self, letter: &DeadLetter) -> Result<(), Trouble> {
        let file = self.letter_file(letter)?;
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(trouble(&file, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn dead_folder(&self) -> PathBuf {
        self.folder.join("dead")
    }

    fn letter_file(&self, letter: &DeadLetter) -> Result<PathBuf, Trouble> {
        let event = letter.event().map_err(|error| Trouble(error.to_string()))?;
        Ok(self.dead_folder().join(format!("{}.json", event.row.id)))
    }
}

impl Claim {
    pub(super) fn save(&self, position: &Position) -> Result<(), NotSaved> {
        let text = position.to_json().to_string();
        replace(&self.position_file, text.as_bytes())
            .map_err(|error| NotSaved::NotNow(trouble(&self.position_file, &error).to_string()))
    }
}

/// The observers that something is kept about.
pub(crate) fn names_in_home(home: &Path) -> Vec<String> {
    let folders = fs::read_dir(home.join("observers")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        folders.filter_map(|folder| untoken(folder.file_name().to_str()?)).collect();
    names.sort();
    names
}

/// The lock on a file, if nobody has it; it goes with the process that does.
fn try_lock(file: &Path) -> io::Result<Option<File>> {
    let lock =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(file)?;
    let free = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(free.then_some(lock))
}

/// First line: what is said about it; second line: the event.
fn read_letter(file: &Path) -> io::Result<Option<DeadLetter>> {
    let content = fs::read(file)?;
    let mut lines = content.splitn(2, |byte| *byte == b'\n');
    let about: Value = lines
        .next()
        .and_then(|line| serde_json::from_slice(line).ok())
        .ok_or_else(|| io::Error::other("it is not a dead letter of hookbus"))?;
    let envelope = lines.next().unwrap_or_default().trim_ascii_end().to_vec();
    Ok(DeadLetter::from_parts(&about, envelope))
}

/// All of the new content or all of the old, whenever we are killed or the power fails.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let fresh = file.with_extension("new");
    let mut out =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
    out.write_all(content)?;
    out.sync_data()?;
    fs::rename(&fresh, file)
}

pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn trouble(file: &Path, error: &io::Error) -> Trouble {
    Trouble(format!("cannot use {}: {error}", file.display()))
}
