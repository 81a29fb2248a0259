//! Notices that SQLite's write-ahead log was removed, replaced or cut off while a writer has it open. SQLite does not:
//! it goes on writing to its descriptor, and after a crash these rows are not found. `watch.rs` says when it is looked at.
//!
//! The descriptor still leads to the removed file, so a checkpoint moves its rows into `log.db`. What was cut off is
//! lost; then the index of the write-ahead log is reset, so that the log can be used from its last checkpoint on.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::AppendError;
use super::open::FileId;

/// The length of the header of a write-ahead log, and of the header of each of its frames.
const HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// The header of the index (`log.db-shm`), which SQLite stores twice, one copy after the other.
const INDEX_HEADERS: [u8; 96] = [0; 96];

/// SQLite shortens a write-ahead log that it has started again to this length.
pub(super) const LENGTH_LIMIT: u64 = 64 << 20;

/// How the write-ahead log at its path differs from the open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalChange {
    /// It was removed, renamed or replaced.
    Moved,
    /// It is the same file, and too short for what was committed to it.
    CutOff,
}

/// What became of the rows that were only in the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalRescue {
    /// They are in `log.db`. A write-ahead log that is at the path belongs to no log.
    InLog,
    /// They are in the write-ahead log at the path.
    AtPath,
    /// They are lost.
    Lost,
}

/// The write-ahead log that a connection writes to.
#[derive(Debug)]
pub(super) struct OpenWal {
    path: PathBuf,
    file: File,
    id: FileId,
    /// It has been at least this long.
    length: u64,
}

/// How many frames the write-ahead log holds, and how many of them are in `log.db` as well.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frames {
    all: u64,
    in_log: u64,
    pub(super) page_size: u64,
}

impl Frames {
    pub(super) fn of(db: &Connection) -> rusqlite::Result<Self> {
        // NOOP only reads the numbers.
        let (all, in_log) = db.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
            Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })?;
        let page_size = db.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))?;
        let [all, in_log, page_size] =
            [all, in_log, page_size].map(|it| u64::try_from(it).unwrap_or(0));
        Ok(Self { all, in_log, page_size })
    }

    /// Whether `log.db` holds all of them: then the next commit may overwrite them.
    pub(super) const fn are_in_log(&self) -> bool {
        self.in_log == self.all
    }

    /// How long a file that holds them is at least.
    fn bytes(&self) -> u64 {
        if self.all == 0 { 0 } else { self.offset(self.all) }
    }

    /// Where the frame after this many frames begins.
    fn offset(&self, frames: u64) -> u64 {
        HEADER + frames * (FRAME_HEADER + self.page_size)
    }
}

impl OpenWal {
    /// The write-ahead log at `path`, which a connection has just opened.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let file = File::open(&path)?;
        let id = FileId::of(&file.metadata()?);
        Ok(Self { path, file, id, length: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How the file at the path differs from the open one. One look at the path, unless it is shorter than before.
    pub(super) fn change(&mut self, db: &Connection) -> Option<WalChange> {
        let Some(found) = fs::metadata(&self.path).ok().filter(|it| FileId::of(it) == self.id)
        else {
            return Some(WalChange::Moved);
        };
        let length = found.len();
        // Another process may have shortened it in a checkpoint; then the index knows of no more frames. If SQLite cannot
        // tell, the rescue asks again, and nothing is written until it knows.
        let is_sound =
            length >= self.length || Frames::of(db).is_ok_and(|frames| frames.bytes() <= length);
        if !is_sound {
            return Some(WalChange::CutOff);
        }
        self.length = length;
        None
    }

    /// Looks at the length after a commit: the next look at the path has to find at least that.
    pub(super) fn note_length(&mut self) {
        let length = self.file.metadata().map_or(0, |file| file.len());
        self.length = self.length.max(length);
    }

    /// The numbers of the pages that these frames hold.
    pub(super) fn pages(&self, frames: &Frames) -> io::Result<HashSet<u64>> {
        let page_at = |frame| {
            let mut page = [0; 4];
            self.file.read_exact_at(&mut page, frames.offset(frame))?;
            Ok(u32::from_be_bytes(page).into())
        };
        (0..frames.all).map(page_at).collect()
    }

    /// Saves the rows that are only in the write-ahead log. The caller holds the lock beside the log, and opens the log
    /// again afterwards.
    pub(super) fn rescue(
        &self,
        change: WalChange,
        db: &Connection,
    ) -> Result<WalRescue, AppendError> {
        let frames = Frames::of(db)?;
        let own_length = self.file.metadata().map_or(0, |file| file.len());
        let is_current = own_length >= frames.bytes() && !self.is_continued_at_path();
        if is_current || frames.in_log == frames.all {
            return checkpoint_all(db).map(|()| WalRescue::InLog);
        }
        let at_path = fs::metadata(&self.path).map_or(0, |file| file.len());
        let is_at_path = change == WalChange::Moved && at_path >= frames.bytes();
        Ok(if is_at_path { WalRescue::AtPath } else { WalRescue::Lost })
    }

    /// Whether another process has started the write-ahead log again in the file at the path: then the frames of the
    /// open one are old, and a checkpoint would copy them over newer pages. SQLite counts the first salt of the header
    /// up by one with each start.
    fn is_continued_at_path(&self) -> bool {
        let at_path = File::open(&self.path).ok().and_then(|file| first_salt(&file));
        let starts =
            first_salt(&self.file).zip(at_path).map(|(own, at_path)| at_path.wrapping_sub(own));
        starts.is_some_and(|starts| (1..1 << 16).contains(&starts))
    }
}

fn first_salt(wal: &File) -> Option<u32> {
    let mut salt = [0; 4];
    wal.read_exact_at(&mut salt, 16).ok().map(|()| u32::from_be_bytes(salt))
}

/// Moves all rows of the write-ahead log into `log.db`.
fn checkpoint_all(db: &Connection) -> Result<(), AppendError> {
    let (is_busy, all, in_log) = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    if is_busy && all != in_log { Err(AppendError::Locked) } else { Ok(()) }
}

/// Makes SQLite build the index of the write-ahead log again, as after a crash: the index names frames that are lost.
pub(super) fn reset_index(shm: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(shm)?;
    let done = file.write_all_at(&INDEX_HEADERS, 0);
    // Closing any descriptor of the file would release the locks that SQLite's other connections in this process hold
    // on it. So this one stays open; it is one for each time that a person cuts the file off.
    let _left_open = file.into_raw_fd();
    done
}
