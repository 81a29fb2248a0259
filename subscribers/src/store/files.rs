//! The state of an observer next to a log: `observers/<name>/` holds a position and a lock file per
//! partition, and a file per dead letter. The kernel releases a lock when its process ends, so a
//! stand-by worker takes over at once.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hookbus::config::observer_folder;
use hookbus::event::decode_token;
use hookbus::sys::file_lock;
use serde_json::Value;

use crate::dead_letter::DeadLetter;
use crate::error::{ObserverError, SaveError};
use crate::partition::Partition;
use crate::position::ObserverPosition;

#[derive(Debug)]
pub(super) struct FileStore {
    folder: PathBuf,
    /// The lock file that counts this process as a worker.
    registration: Option<(PathBuf, File)>,
}

/// A partition whose lock this process holds.
#[derive(Debug)]
pub(crate) struct FileClaim {
    position_file: PathBuf,
    _lock: File,
}

impl FileStore {
    pub(super) fn new(home: &Path, name: &str) -> Self {
        Self { folder: observer_folder(home, name), registration: None }
    }

    pub(super) fn claim(&self, partition: Partition) -> Result<Option<FileClaim>, ObserverError> {
        create_private_dir(&self.folder).map_err(ObserverError::file(&self.folder))?;
        let lock_file = self.folder.join(format!("{}.lock", partition.key()));
        let lock = try_lock(&lock_file).map_err(ObserverError::file(&lock_file))?;
        let position_file = self.position_file(partition);
        Ok(lock.map(|lock| FileClaim { position_file, _lock: lock }))
    }

    fn position_file(&self, partition: Partition) -> PathBuf {
        self.folder.join(format!("{}.json", partition.key()))
    }

    /// The saved position of a partition. A file that cannot be read counts as missing.
    pub(super) fn position(&self, partition: Partition) -> Option<ObserverPosition> {
        let file = self.position_file(partition);
        let bytes = fs::read(&file).ok()?;
        match serde_json::from_slice(&bytes) {
            Ok(value) => Some(ObserverPosition::from_json(&value)),
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "the position cannot be read; starting over");
                None
            }
        }
    }

    /// Keeps a local copy of a position that is saved on NATS.
    pub(super) fn copy_position(
        &self,
        partition: Partition,
        position: &ObserverPosition,
    ) -> io::Result<()> {
        create_private_dir(&self.folder)?;
        replace_file(&self.position_file(partition), position.to_json().to_string().as_bytes())
    }

    pub(super) fn count_workers(&mut self) -> Result<usize, ObserverError> {
        let folder = self.folder.join("workers");
        let failed = ObserverError::file(&folder);
        create_private_dir(&folder).map_err(&failed)?;
        if self.registration.is_none() {
            let own = folder.join(std::process::id().to_string());
            self.registration = try_lock(&own).map_err(&failed)?.map(|lock| (own, lock));
        }
        let own = self.registration.as_ref().map(|(file, _)| file);
        let mut count = 1;
        for file in fs::read_dir(&folder).map_err(&failed)?.filter_map(|it| Some(it.ok()?.path())) {
            if Some(&file) == own {
                continue;
            }
            match try_lock(&file).map_err(&failed)? {
                // The lock is free, so its process has ended.
                Some(_lock) => drop(fs::remove_file(&file)),
                None => count += 1,
            }
        }
        Ok(count)
    }

    pub(super) fn add_dead_letter(&self, letter: &DeadLetter) -> Result<(), ObserverError> {
        let file = self.dead_letter_file(letter)?;
        create_private_dir(&self.dead_letter_dir()).map_err(ObserverError::file(&file))?;
        let metadata = letter.metadata().to_string();
        let content = [metadata.as_bytes(), b"\n", &letter.envelope, b"\n"].concat();
        replace_file(&file, &content).map_err(ObserverError::file(&file))
    }

    pub(super) fn dead_letters(&self) -> Result<Vec<DeadLetter>, ObserverError> {
        let folder = self.dead_letter_dir();
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(ObserverError::file(&folder))?,
        };
        let mut letters = Vec::new();
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|it| is_json(it)) {
            match read_dead_letter(&file) {
                Ok(letter) => letters.extend(letter),
                Err(error) => {
                    tracing::warn!(file = %file.display(), %error, "skipped a file that is not a dead letter");
                }
            }
        }
        letters.sort_by_key(|letter| letter.at);
        Ok(letters)
    }

    pub(super) fn count_dead_letters(&self) -> usize {
        let entries = fs::read_dir(self.dead_letter_dir()).into_iter().flatten().flatten();
        entries.filter(|entry| is_json(&entry.path())).count()
    }

    pub(super) fn delete_dead_letter(&self, letter: &DeadLetter) -> Result<(), ObserverError> {
        let file = self.dead_letter_file(letter)?;
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ObserverError::file(&file)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn dead_letter_dir(&self) -> PathBuf {
        self.folder.join("dead")
    }

    fn dead_letter_file(&self, letter: &DeadLetter) -> Result<PathBuf, ObserverError> {
        let event = letter.event().map_err(ObserverError::Unreadable)?;
        Ok(self.dead_letter_dir().join(format!("{}.json", event.row.id)))
    }
}

impl FileClaim {
    pub(super) fn save(&self, position: &ObserverPosition) -> Result<(), SaveError> {
        let text = position.to_json().to_string();
        replace_file(&self.position_file, text.as_bytes())
            .map_err(|error| SaveError::Failed(ObserverError::file(&self.position_file)(error)))
    }
}

/// The names of all observers that have state in this home.
pub(crate) fn observer_names(home: &Path) -> Vec<String> {
    let folders = fs::read_dir(home.join("observers")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        folders.filter_map(|folder| decode_token(folder.file_name().to_str()?)).collect();
    names.sort();
    names
}

/// Locks a file until the returned handle is closed; `None` if another process holds the lock.
fn try_lock(file: &Path) -> io::Result<Option<File>> {
    let lock =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(file)?;
    let free = file_lock::try_lock(&lock).is_ok();
    Ok(free.then_some(lock))
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

/// Reads a dead letter: the metadata on the first line, the event on the second.
fn read_dead_letter(file: &Path) -> io::Result<Option<DeadLetter>> {
    let content = fs::read(file)?;
    let mut lines = content.splitn(2, |byte| *byte == b'\n');
    let metadata: Value = lines
        .next()
        .and_then(|line| serde_json::from_slice(line).ok())
        .ok_or_else(|| io::Error::other("the first line is not JSON"))?;
    let envelope = lines.next().unwrap_or_default().trim_ascii_end().to_vec();
    Ok(DeadLetter::from_parts(&metadata, envelope))
}

/// Replaces a file atomically: after a crash it has the old content or the new, never a part.
pub(crate) fn replace_file(file: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = file.with_extension("new");
    let mut out =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
    out.write_all(content)?;
    out.sync_data()?;
    fs::rename(&temporary, file)
}

/// Creates a directory, and its parents, that only this user can read.
pub(crate) fn create_private_dir(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
