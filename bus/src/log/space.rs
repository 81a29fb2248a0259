//! Gives the space of what was removed or packed back to the disk, by writing the file anew.
//!
//! SQLite's list of unused pages tells a part of it only: most of what is removed leaves gaps inside of pages. So the bytes
//! that were removed since the file was last written anew are counted, in the lock file of those who remove: a run that is
//! killed before it gives the space back leaves that to the next one.

use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::lock::{WriteLock, WriteLockGuard};
use super::{LogPath, OpenError};

/// Space is given back if this share of the file is unused: the whole file is written anew. SQLite uses the rest again.
const UNUSED_SHARE: u64 = 20;

/// What became of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Rewrite {
    /// The write-ahead log is empty.
    Done,
    /// Another program reads the log and kept the write-ahead log from being emptied.
    WalIsBusy,
}

/// The lock of those who work on the whole log (`hookbus prune`, `scan --redact`, `compact`, `restore`), only one of which runs at a
/// time, and the space that is not given back yet.
#[derive(Debug)]
pub(super) struct Keeping {
    lock: WriteLock,
    _guard: WriteLockGuard,
    removed: u64,
    /// Whether a run that removed payloads has not deleted their parts yet.
    sweep_is_due: bool,
}

/// What the note says behind the number of bytes, if [`Keeping::sweep_is_due`].
const SWEEP_IS_DUE: &str = "parts";

impl Keeping {
    /// Waits until no other process removes or packs.
    pub(super) fn begin(log: &LogPath) -> Result<Self, OpenError> {
        let lock = WriteLock::open(&log.keeping_lock_file())?;
        let guard = lock.acquire();
        Ok(Self::of(lock, guard))
    }

    /// None if another process removes or packs.
    pub(super) fn try_begin(log: &LogPath) -> Result<Option<Self>, OpenError> {
        let lock = WriteLock::open(&log.keeping_lock_file())?;
        Ok(lock.try_acquire().map(|guard| Self::of(lock, guard)))
    }

    fn of(lock: WriteLock, guard: WriteLockGuard) -> Self {
        let (removed, sweep_is_due) = read_note(&lock.note());
        Self { lock, _guard: guard, removed, sweep_is_due }
    }

    /// Counts bytes that were removed.
    pub(super) fn add_removed(&mut self, bytes: u64) {
        self.removed = self.removed.saturating_add(bytes);
        self.write_note();
    }

    /// Notes whether payloads were removed whose parts are still there. If this run is killed, the next one deletes them, even if
    /// it has nothing else to do.
    pub(super) fn set_sweep_due(&mut self, is_due: bool) {
        if self.sweep_is_due != is_due {
            self.sweep_is_due = is_due;
            self.write_note();
        }
    }

    /// Whether a run before has left parts of removed payloads behind.
    pub(super) fn is_sweep_due(log: &LogPath) -> bool {
        WriteLock::read_note(&log.keeping_lock_file()).is_some_and(|note| read_note(&note).1)
    }

    fn write_note(&self) {
        let Self { lock, removed, .. } = self;
        if self.sweep_is_due {
            lock.set_note(&format!("{removed} {SWEEP_IS_DUE}"));
        } else {
            lock.set_note(&removed.to_string());
        }
    }

    /// Notes that the file has to be written anew, however little was removed: what was replaced must not stay in unused
    /// places of it.
    pub(super) fn needs_rewrite(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let number = |pragma: &str| -> rusqlite::Result<u64> {
            db.query_row(pragma, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
        };
        let all = number("PRAGMA page_count")?.saturating_mul(number("PRAGMA page_size")?);
        if self.removed < all {
            self.add_removed(all);
        }
        Ok(())
    }

    /// Writes the file anew if that makes it smaller by a good part, and empties the write-ahead log. `writers` is the lock
    /// of writers, who wait meanwhile.
    pub(super) fn give_back_space(
        &mut self,
        db: &Connection,
        writers: &WriteLock,
    ) -> rusqlite::Result<Rewrite> {
        let guard = writers.acquire();
        let number = |pragma: &str| -> rusqlite::Result<u64> {
            db.query_row(pragma, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
        };
        let (unused, pages) = (number("PRAGMA freelist_count")?, number("PRAGMA page_count")?);
        let unused = unused.saturating_mul(number("PRAGMA page_size")?).max(self.removed);
        let all = pages.saturating_mul(number("PRAGMA page_size")?);
        if unused > 0 && unused.saturating_mul(UNUSED_SHARE) >= all {
            db.execute_batch("VACUUM")?;
            self.removed = 0;
            self.write_note();
        }
        let is_busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        drop(guard);
        Ok(if is_busy { Rewrite::WalIsBusy } else { Rewrite::Done })
    }
}

/// The bytes that were removed, and whether parts are left behind.
fn read_note(note: &str) -> (u64, bool) {
    let (removed, rest) = note.split_once(' ').unwrap_or((note, ""));
    (removed.parse().unwrap_or(0), rest.trim() == SWEEP_IS_DUE)
}

/// The bytes of the log on disk, with its write-ahead log.
pub(super) fn log_size(log: &LogPath) -> u64 {
    let [wal, _] = log.companions();
    let len = |path: &Path| -> io::Result<u64> { Ok(std::fs::metadata(path)?.len()) };
    len(log.file()).unwrap_or(0) + len(&wal).unwrap_or(0)
}
