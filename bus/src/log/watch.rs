//! Notices what other programs do to `log.db` and its write-ahead log while a process has them open. The writer looks before
//! each commit, and before the checkpoint that it does when it is idle.
//!
//! A file that is shorter than before is judged: SQLite shortens files too, after `VACUUM` and in checkpoints by other
//! processes. The length from before is kept until the shorter file is known to be sound, so that a loss that could not
//! be dealt with is found again at the next look.

use std::collections::HashSet;
use std::fs;

use rusqlite::{Connection, ErrorCode};

use super::LogPath;
use super::open::FileId;
use super::wal::{Frames, OpenWal, WalChange};

/// SQLite never writes to the page at this offset: it locks bytes there.
const LOCK_OFFSET: u64 = 1 << 30;

/// The files of a log that stays open.
#[derive(Debug)]
pub(super) struct Watched {
    wal: OpenWal,
    /// `log.db` has been at least this long.
    length: u64,
}

/// How the files at the path of a log differ from the open ones.
#[derive(Debug)]
pub(super) enum PathChange<'a> {
    /// `log.db` was deleted or replaced. What is written to the open one is lost.
    Replaced,
    /// `log.db` is the same file, and too short for its rows.
    CutOff,
    /// The write-ahead log, which is the open one here.
    Wal(WalChange, &'a OpenWal),
}

impl Watched {
    /// The files of a log that was just opened, with its write-ahead log.
    pub(super) fn new(wal: OpenWal) -> Self {
        Self { wal, length: 0 }
    }

    /// How the files at the path differ from the open ones, which `db` uses. Two looks at paths, unless a file is shorter
    /// than before.
    pub(super) fn change(
        &mut self,
        log: &LogPath,
        file: FileId,
        db: &Connection,
    ) -> Option<PathChange<'_>> {
        let found = fs::metadata(log.file()).ok().filter(|it| FileId::of(it) == file);
        let Some(length) = found.map(|it| it.len()) else { return Some(PathChange::Replaced) };
        let wal_change = self.wal.change(db);
        let is_sound = match length {
            _ if length >= self.length => Some(true),
            0 => Some(false),
            // Pages of `log.db` may be in the write-ahead log that is gone.
            _ if wal_change.is_some() => None,
            _ => self.is_sound(length, db),
        };
        match is_sound {
            Some(true) => self.length = length,
            Some(false) => return Some(PathChange::CutOff),
            None => {}
        }
        wal_change.map(|change| PathChange::Wal(change, &self.wal))
    }

    /// Looks at the lengths of the files after they were written to: the next look has to find at least that.
    pub(super) fn note_lengths(&mut self, log: &LogPath) {
        let length = fs::metadata(log.file()).map_or(0, |file| file.len());
        self.length = self.length.max(length);
        self.wal.note_length();
    }

    /// Whether each page that is not in `log.db` any more is in the write-ahead log. None if that cannot be told now, for
    /// instance because another program is writing: a sound log must never be set aside.
    fn is_sound(&self, length: u64, db: &Connection) -> Option<bool> {
        let before = Frames::of(db).ok()?;
        let is_sound = match page_count(db) {
            Ok(pages) => {
                // What `log.db` held already does not stay in the write-ahead log.
                let in_wal = if before.are_in_log() {
                    HashSet::new()
                } else {
                    self.wal.pages(&before).ok()?
                };
                let lock_page = LOCK_OFFSET.checked_div(before.page_size)? + 1;
                let mut not_in_log = length.checked_div(before.page_size)? + 1..=pages;
                not_in_log.all(|page| page == lock_page || in_wal.contains(&page))
            }
            // SQLite compares the number of pages in the header with the length as well.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => false,
            Err(_) => return None,
        };
        let is_unchanged = Frames::of(db).ok()? == before;
        is_unchanged.then_some(is_sound)
    }
}

fn page_count(db: &Connection) -> rusqlite::Result<u64> {
    let count = db.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}
