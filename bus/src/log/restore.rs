//! Puts a copy in the place of a log. The copy is made whole in one file beside the log first, so that what is verified is what is
//! put there, and the log that was there is kept under another name.
//!
//! It can be killed at any moment: the path leads to the log from before or to the copy, and each of them has all of its rows.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::backup::{BackupError, sync};
use super::lock::WriteLock;
use super::space::Keeping;
use super::{LogPath, LogReader, OpenError, open, schema};
use crate::event::{Seq, Time};
use crate::sys::fs::sync_directory;

/// What the names of logs that were kept begin with.
const KEPT: &str = "log.db.before-restore-";

/// What restoring a log did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The last row of the log now.
    pub head: Option<Seq>,
    /// Where the log that was there before is; none if there was none.
    pub kept: Option<PathBuf>,
}

/// A copy beside a log, ready to be put in its place. It is removed if that is not done. Until then no other process prunes,
/// redacts, compacts or restores the log.
#[derive(Debug)]
pub struct Restore {
    log: LogPath,
    copy: LogPath,
    head: Option<Seq>,
    _keeping: Keeping,
}

/// A moment at which a test ends a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// The log from before has its second name.
    Kept,
    /// What SQLite has beside a damaged log is beside its second name too.
    CompanionsMoved,
    /// The copy is at the path.
    Replaced,
    /// The index of the write-ahead log from before is away.
    IndexMoved,
}

impl Restore {
    /// Copies the log in `file`, with what is in its write-ahead log. Waits until no other process removes or packs.
    pub fn prepare(log: &LogPath, file: &Path) -> Result<Self, BackupError> {
        let from = LogReader::open(&LogPath::of_file(file))?;
        let is_archive = |log: &LogPath| LogReader::open(log).is_ok_and(|it| it.is_archive());
        if schema::is_archive(&from.db)? && !is_archive(log) {
            return Err(BackupError::IsArchive(file.to_owned()));
        }
        if let Some(home) = log.file().parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
            made.map_err(failed(home))?;
        }
        let keeping = Keeping::begin(log)?;
        let copy = LogPath::of_file(&log.file().with_file_name("log.db.restoring"));
        // Removes itself if anything fails from here on.
        let mut restore = Self { log: log.clone(), copy, head: None, _keeping: keeping };
        // What a restore that was killed left behind.
        restore.remove_copy();
        open::copy_pages(&from.db, restore.copy.file())?;
        sync(restore.copy.file()).map_err(failed(restore.copy.file()))?;
        restore.head = LogReader::open(&restore.copy)?.head()?.map(|(seq, _)| seq);
        Ok(restore)
    }

    /// The copy, to be verified.
    pub const fn copy(&self) -> &LogPath {
        &self.copy
    }

    /// Puts the copy in the place of the log. Processes that have the log open notice that the file was replaced, and use the
    /// new one.
    pub fn put_in_place(self, now: Time) -> Result<Restored, BackupError> {
        self.put_in_place_until(now, |_| Ok(()))
    }

    fn put_in_place_until(
        self,
        now: Time,
        mut reached: impl FnMut(Reached) -> io::Result<()>,
    ) -> Result<Restored, BackupError> {
        // Those who verified it have left theirs, which are empty.
        for file in self.copy.companions() {
            remove(&file).map_err(failed(&file))?;
        }
        let lock = WriteLock::open(&self.log.lock_file())?;
        let guard = lock.acquire();
        let kept = if self.log.file().exists() {
            Some(self.replace(&lock, now, &mut reached)?)
        } else {
            // Those of a log that was deleted: SQLite would read them as a part of the copy.
            open::set_aside_companions(&self.log, now).map_err(failed(self.log.file()))?;
            self.rename()?;
            None
        };
        drop(guard);
        Ok(Restored { head: self.head, kept })
    }

    /// Replaces the log that is there, in this order:
    ///
    /// 1. All rows of the log are moved from its write-ahead log into its file, and no program can write to it until the end:
    ///    hookbus waits for the lock that the caller holds, others for SQLite's.
    /// 2. The file gets its second name. A restore that is killed here leaves a log with two names.
    /// 3. The copy is renamed to the path of the log. This is the moment at which the path leads to another log; there is none at
    ///    which it leads nowhere.
    /// 4. The write-ahead log from before, which is empty, and its index are moved beside the second name.
    ///
    /// They stay until the rename: a process that waits for the lock has them open, and would append rows to files without a
    /// name if the restore was killed before the rename. A restore that is killed after it leaves them beside the copy. They
    /// have no row that could become a part of it, and the lock file says that they belong to another file, so that the next
    /// process that writes sets them aside. First the index: alone it would be taken for that of a new write-ahead log.
    ///
    /// A log that is so damaged that SQLite cannot do the first step keeps its write-ahead log, which therefore must not be there
    /// when the copy is: it is moved before the rename. Its second name has then all that there was.
    fn replace(
        &self,
        lock: &WriteLock,
        now: Time,
        reached: &mut dyn FnMut(Reached) -> io::Result<()>,
    ) -> Result<PathBuf, BackupError> {
        let path = self.log.file();
        let mut reached = |it| reached(it).map_err(failed(path));
        let name = format!("{KEPT}{}", now.to_utc().format("%Y%m%dT%H%M%S%.6f"));
        let kept = LogPath::of_file(&path.with_file_name(name));
        let whole = match open::with_empty_wal(&self.log) {
            Ok(db) => Some(db),
            Err(OpenError::Sqlite(error)) if is_damage(&error) => None,
            Err(OpenError::Sqlite(error)) if is_busy(&error) => return Err(BackupError::Busy),
            Err(error) => return Err(error.into()),
        };
        self.remove_second_names();
        match fs::hard_link(path, kept.file()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Exists(kept.file().to_owned()));
            }
            // A file system without such links.
            Err(_) => {
                let copied = fs::copy(path, kept.file()).and_then(|_| sync(kept.file()));
                copied.map_err(failed(kept.file()))?;
            }
        }
        reached(Reached::Kept)?;
        if whole.is_some() {
            open::note_files(&self.log, lock);
        } else {
            self.move_companions(&kept, &mut reached)?;
            reached(Reached::CompanionsMoved)?;
        }
        self.rename()?;
        reached(Reached::Replaced)?;
        if whole.is_some() {
            self.move_companions(&kept, &mut reached)?;
            self.sync_names()?;
        }
        Ok(kept.file().to_owned())
    }

    /// Moves what SQLite has beside the log beside its second name: the index, then the write-ahead log, and the journal of a file
    /// that has none.
    fn move_companions(
        &self,
        kept: &LogPath,
        reached: &mut dyn FnMut(Reached) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let ([wal, shm], [kept_wal, kept_shm]) = (self.log.companions(), kept.companions());
        rename_if_there(&shm, &kept_shm).map_err(failed(&kept_shm))?;
        reached(Reached::IndexMoved)?;
        rename_if_there(&wal, &kept_wal).map_err(failed(&kept_wal))?;
        let (journal, kept_journal) = (self.log.journal(), kept.journal());
        rename_if_there(&journal, &kept_journal).map_err(failed(&kept_journal))
    }

    /// Renames the copy to the path of the log, after all that was renamed before is on disk.
    fn rename(&self) -> Result<(), BackupError> {
        self.sync_names()?;
        fs::rename(self.copy.file(), self.log.file()).map_err(failed(self.log.file()))?;
        self.sync_names()
    }

    fn sync_names(&self) -> Result<(), BackupError> {
        match self.log.file().parent() {
            Some(home) => sync_directory(home).map_err(failed(home)),
            None => Ok(()),
        }
    }

    /// Removes second names of the log that is there, left behind by a restore that was killed before it put its copy there: the log
    /// was written to since, and its write-ahead log has another name. One with a write-ahead log of its own stays: that of a
    /// damaged log was moved there.
    fn remove_second_names(&self) {
        let own = |path: &Path| fs::symlink_metadata(path).map(|it| (it.dev(), it.ino())).ok();
        let (Some(log), Some(home)) = (own(self.log.file()), self.log.file().parent()) else {
            return;
        };
        for entry in fs::read_dir(home).into_iter().flatten().flatten() {
            let is_second = entry.file_name().to_string_lossy().starts_with(KEPT)
                && own(&entry.path()) == Some(log)
                && own(&LogPath::of_file(&entry.path()).companions()[0]).is_none();
            if is_second && let Err(error) = fs::remove_file(entry.path()) {
                tracing::debug!(%error, "a second name of the log is not removed");
            }
        }
    }

    fn remove_copy(&self) {
        let [wal, shm] = self.copy.companions();
        for file in [self.copy.file(), &wal, &shm, &self.copy.journal()] {
            if let Err(error) = remove(file) {
                tracing::debug!(%error, "an unfinished copy is not removed");
            }
        }
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        self.remove_copy();
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let file = path.to_owned();
    |error| BackupError::Io { file, error }
}

/// Whether SQLite cannot make anything of a file.
fn is_damage(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseCorrupt, NotADatabase, SystemIoFailure};
    let code = error.sqlite_error_code();
    code.is_some_and(|it| [DatabaseCorrupt, NotADatabase, SystemIoFailure].contains(&it))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    code.is_some_and(|it| [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked].contains(&it))
}

fn remove(file: &Path) -> io::Result<()> {
    unless_missing(fs::remove_file(file))
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    unless_missing(fs::rename(from, to))
}

fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::event::{Clock, Derived, EventId, Kind, SystemClock};
    use crate::log::{
        Durability, Query, RecordOutcome, Recorder, RowDraft, Spool, VerifyOptions, back_up, verify,
    };

    /// Adds events, as agents without a daemon do it: they leave rows in the write-ahead log.
    fn append(home: &Path, count: usize) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (log, spool) = (LogPath::in_home(home), Spool::new(home, &[]));
        let recorder = Recorder::for_client(log, Durability::ProcessDeath, spool, clock);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            for number in 0..count {
                let at = SystemClock.now();
                let event = RowDraft {
                    id: EventId::mint(at),
                    at,
                    agent: "hermes".to_owned(),
                    session: "s".to_owned(),
                    turn: None,
                    name: "pre_tool_call".to_owned(),
                    kind: Kind::ToolBefore,
                    tool: None,
                    tool_class: None,
                    context: None,
                    payload: format!("{{\"number\": {number}}}").into_bytes().into(),
                };
                let outcome = recorder.event(event, None, Vec::new(), Duration::MAX).await;
                assert!(matches!(outcome, RecordOutcome::Logged { .. }), "{outcome:?}");
            }
        });
    }

    /// How many rows a sound log has.
    fn rows(log: &LogPath) -> usize {
        let derive = |_: &crate::event::DerivedFrom<'_>| Derived {
            kinds: vec!["tool.before".to_owned()],
            ..Derived::default()
        };
        let found = verify(log, VerifyOptions::default(), &derive, |_| {}).expect("a log");
        assert!(found.is_sound(), "{found:?}");
        let read = LogReader::open(log).map(|it| it.last(&Query::default(), 99));
        read.expect("a log").expect("rows").len()
    }

    /// A home with a log of five rows, some of them in its write-ahead log only, and a copy of two.
    fn home() -> (tempfile::TempDir, LogPath, PathBuf) {
        let home = tempfile::tempdir().expect("a home");
        let (log, copy) = (LogPath::in_home(home.path()), home.path().join("copy.db"));
        append(home.path(), 2);
        back_up(&log, &copy).expect("a copy");
        append(home.path(), 3);
        assert!(fs::metadata(&log.companions()[0]).is_ok_and(|wal| wal.len() > 0));
        (home, log, copy)
    }

    fn restore_until(
        log: &LogPath,
        copy: &Path,
        end: Option<Reached>,
    ) -> Result<Restored, BackupError> {
        let prepared = Restore::prepare(log, copy)?;
        prepared.put_in_place_until(SystemClock.now(), |reached| {
            if end == Some(reached) { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        })
    }

    #[test]
    fn a_restore_that_ends_at_any_moment_leaves_the_log_from_before_or_the_copy_whole() {
        for (end, expected) in
            [(Reached::Kept, 5), (Reached::Replaced, 2), (Reached::IndexMoved, 2)]
        {
            let (home, log, copy) = home();
            restore_until(&log, &copy, Some(end)).expect_err("it ends");
            assert_eq!(rows(&log), expected, "{end:?}");
            // What an agent does next.
            append(home.path(), 1);
            assert_eq!(rows(&log), expected + 1, "{end:?}");
            let done = restore_until(&log, &copy, None).expect("it is restored");
            assert_eq!((rows(&log), done.head), (2, Some(Seq::from_i64(2))));
            let mut kept: Vec<usize> = fs::read_dir(home.path())
                .expect("a home")
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| path.to_string_lossy().contains(KEPT))
                .filter(|path| !path.to_string_lossy().contains("-wal"))
                .filter(|path| !path.to_string_lossy().contains("-shm"))
                .map(|path| rows(&LogPath::of_file(&path)))
                .collect();
            kept.sort_unstable();
            let all = if end == Reached::Kept { vec![6] } else { vec![3, 5] };
            assert_eq!(kept, all, "{end:?}: nothing is lost");
            append(home.path(), 1);
            assert_eq!(rows(&log), 3);
        }
    }

    #[test]
    fn a_log_that_was_cut_off_is_kept_with_its_write_ahead_log_which_is_never_a_part_of_the_copy() {
        for end in
            [Some(Reached::Kept), Some(Reached::IndexMoved), Some(Reached::CompanionsMoved), None]
        {
            let (home, log, copy) = home();
            let [wal, _] = log.companions();
            let rows_in_wal = fs::read(&wal).expect("a write-ahead log");
            fs::OpenOptions::new()
                .write(true)
                .open(log.file())
                .expect("a log")
                .set_len(0)
                .expect("it is cut off");
            if restore_until(&log, &copy, end).is_err() {
                restore_until(&log, &copy, None).expect("it is restored");
            }
            assert_eq!(rows(&log), 2, "{end:?}");
            append(home.path(), 1);
            assert_eq!(rows(&log), 3, "{end:?}");
            let is_kept = |path: &Path| {
                let log = path.to_str().and_then(|it| it.strip_suffix("-wal"));
                log.is_some_and(|log| Path::new(log).exists())
                    && fs::read(path).is_ok_and(|it| it == rows_in_wal)
            };
            let mut files = fs::read_dir(home.path()).expect("a home");
            assert!(files.any(|entry| is_kept(&entry.expect("an entry").path())), "{end:?}");
        }
    }

    #[test]
    fn the_rows_in_the_write_ahead_log_of_a_copy_are_restored() {
        let (_home, log, _) = home();
        let other = tempfile::tempdir().expect("a directory");
        let copy = LogPath::of_file(&other.path().join("kept.db"));
        fs::copy(log.file(), copy.file()).expect("a copy");
        fs::copy(&log.companions()[0], &copy.companions()[0]).expect("a copy");
        let new = LogPath::in_home(&other.path().join("new").join("home"));
        let done = restore_until(&new, copy.file(), None).expect("it is restored");
        assert_eq!((done.head, done.kept), (Some(Seq::from_i64(5)), None));
        assert_eq!(rows(&new), 5);
        for private in [other.path().join("new"), other.path().join("new").join("home")] {
            let mode = fs::metadata(private).expect("a directory").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[test]
    fn a_restore_waits_for_those_who_work_on_the_whole_log() {
        let (_home, log, copy) = home();
        let keeping = Keeping::begin(&log).expect("the lock");
        std::thread::scope(|scope| {
            let restoring = scope.spawn(|| restore_until(&log, &copy, None).map(|_| ()));
            std::thread::sleep(Duration::from_millis(300));
            assert!(!restoring.is_finished());
            assert_eq!(rows(&log), 5);
            drop(keeping);
            restoring.join().expect("no panic").expect("it is restored");
        });
        assert_eq!(rows(&log), 2);
    }

    #[test]
    fn a_log_that_is_read_all_the_time_is_left_as_it_is() {
        let (_home, log, copy) = home();
        let reader = LogReader::open(&log).expect("a log");
        reader.db.execute_batch("BEGIN; SELECT count(*) FROM events").expect("a read");
        append(log.file().parent().expect("a home"), 1);
        let error = restore_until(&log, &copy, None).expect_err("it cannot");
        assert!(matches!(error, BackupError::Busy), "{error}");
        drop(reader);
        assert_eq!(rows(&log), 6);
        restore_until(&log, &copy, None).expect("it is restored");
        assert_eq!(rows(&log), 2);
    }
}
