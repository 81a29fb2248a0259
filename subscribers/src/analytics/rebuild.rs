//! Builds a database anew from the log: in a file beside it, which then takes the place of its content in one
//! transaction. Readers and writers of the database see the old content or the new one, and a kill leaves the old one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use hookbus::event::Time;
use hookbus::log::{LogPath, LogReader, OpenError};
use hookbus::sys::file_lock;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::AnalyticsError;
use super::catch_up::{CatchUp, add_rows};
use super::database::AnalyticsDatabase;

/// How SQLite is told to copy all pages at once.
const ALL_PAGES: i32 = -1;

/// How long to wait before the next try.
const PAUSE: Duration = Duration::from_millis(50);

/// Builds the database at `path` anew.
pub fn rebuild(
    log: &LogPath,
    path: &Path,
    now: Time,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CatchUp, AnalyticsError> {
    // Before the work, so that a file that is none of ours stays as it is.
    let mut database = AnalyticsDatabase::open(path, now)?;
    let built = with_ending(path, ".new");
    let one_at_a_time = lock(&with_ending(path, ".lock"))?;
    remove(&built)?;
    let done = match LogReader::open(log) {
        Ok(mut reader) => {
            let mut fresh = AnalyticsDatabase::open(&built, now)?;
            // A kill leaves a file that the next rebuild removes, so nothing has to be durable yet.
            let settings = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;";
            fresh.connection().execute_batch(settings)?;
            let done = add_rows(&mut reader, &mut fresh, progress)?;
            replace_content(fresh.connection(), database.connection())?;
            done
        }
        Err(OpenError::Missing(_)) => {
            database.reset(now)?;
            CatchUp::default()
        }
        Err(error) => return Err(error.into()),
    };
    remove(&built)?;
    drop(one_at_a_time);
    Ok(done)
}

/// Waits for another process that rebuilds the same database.
fn lock(path: &Path) -> Result<File, AnalyticsError> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let locked = opened.and_then(|file| file_lock::lock(&file).map(|()| file));
    locked.map_err(|error| AnalyticsError::File { path: path.to_owned(), error })
}

/// Copies everything in one transaction of `to`; waits while another process writes there.
fn replace_content(from: &Connection, to: &mut Connection) -> Result<(), AnalyticsError> {
    let backup = Backup::new(from, to)?;
    loop {
        match backup.step(ALL_PAGES)? {
            StepResult::Done => return Ok(()),
            StepResult::More | StepResult::Busy | StepResult::Locked => thread::sleep(PAUSE),
            _ => thread::sleep(PAUSE),
        }
    }
}

/// Removes a database that no process uses, with the files that SQLite keeps beside it.
fn remove(path: &Path) -> Result<(), AnalyticsError> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let file = with_ending(path, ending);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(AnalyticsError::File { path: file, error });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
