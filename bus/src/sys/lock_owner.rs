//! Which process holds a [file lock](super::file_lock). Linux lists locks in `/proc`; on a system that
//! cannot tell, there are no candidates and no process holds a lock.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The ids of the processes that may hold the lock on `file`. Confirm each with [`holds_lock`]: only
/// the inode is compared here, and the list may be incomplete because it changes while it is read.
pub fn candidates(file: &Path) -> Vec<i32> {
    let Ok(file) = fs::metadata(file) else { return Vec::new() };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().filter_map(|line| owner_in_line(line, file.ino())).collect()
}

/// Whether the process with this id holds the exclusive lock on `file`.
pub fn holds_lock(pid: i32, file: &Path) -> bool {
    let Ok(locked) = fs::metadata(file) else { return false };
    let process = PathBuf::from(format!("/proc/{pid}"));
    let open_files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let mut same_file = open_files
        .filter(|open| fs::metadata(open.path()).is_ok_and(|open| is_same_file(&open, &locked)));
    same_file.any(|open| {
        let info = fs::read_to_string(process.join("fdinfo").join(open.file_name()));
        info.is_ok_and(|info| info.lines().any(is_exclusive_lock))
    })
}

fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A line of `/proc/<pid>/fdinfo/<fd>` such as `lock: 1: FLOCK ADVISORY WRITE 4711 fe:00:815 0 EOF`.
fn is_exclusive_lock(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first() == Some(&"lock:") && words.contains(&"FLOCK") && words.contains(&"WRITE")
}

/// The process in a line of `/proc/locks` such as `6: FLOCK ADVISORY WRITE 4711 fe:00:815 0 EOF`.
fn owner_in_line(line: &str, inode: u64) -> Option<i32> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
    let (pid, file) = (words.next()?, words.next()?);
    let (_device, locked) = file.rsplit_once(':')?;
    let pid: i32 = pid.parse().ok()?;
    // A process of another container is listed as -1 or 0.
    (pid > 0 && locked.parse() == Ok(inode)).then_some(pid)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::super::file_lock;
    use super::*;

    #[test]
    fn only_a_lock_on_the_same_inode_names_a_process() {
        let pid = |line| owner_in_line(line, 815);
        assert_eq!(pid("6: FLOCK  ADVISORY  WRITE 4711 fe:00:815 0 EOF"), Some(4711));
        assert_eq!(pid("6: FLOCK  ADVISORY  WRITE 4711 fe:00:816 0 EOF"), None);
        assert_eq!(pid("9: POSIX  ADVISORY  READ 4711 fe:00:815 128 128"), None);
        assert_eq!(pid("6: FLOCK  ADVISORY  WRITE -1 fe:00:815 0 EOF"), None);
        assert_eq!(pid("6: FLOCK  ADVISORY  WRITE 0 fe:00:815 0 EOF"), None);
        assert_eq!(pid(""), None);
    }

    #[test]
    fn a_process_holds_a_lock_until_it_releases_it() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let own = i32::try_from(std::process::id()).expect("a pid");
        let lock = File::open(file.path()).expect("a second handle");
        assert!(!holds_lock(own, file.path()));
        file_lock::lock(&lock).expect("it is free");
        assert!(holds_lock(own, file.path()));
        assert!(candidates(file.path()).contains(&own));
        assert!(file_lock::try_lock(file.as_file()).is_err());
        file_lock::unlock(&lock).expect("it is ours");
        assert!(!holds_lock(own, file.path()));
    }
}
