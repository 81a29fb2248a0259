//! Opening, renaming and syncing files in ways that the standard library does not cover.

use std::fs::{File, OpenOptions, read_link};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, CWD, OFlags, RenameFlags, StatVfsMountFlags, access, renameat_with, statvfs,
};
use rustix::io::Errno;

/// Opens a file for reading; a FIFO or a terminal in its place does not block the caller.
pub fn open_without_blocking(file: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(file)
}

/// What a link leads to for another process, which works in `cwd`: the links of a process to its own directory would
/// lead to ours.
pub fn read_link_at(link: &Path, cwd: &Path) -> io::Result<PathBuf> {
    let own = || link.to_str().and_then(|text| text.strip_prefix("/proc/")?.strip_suffix("/cwd"));
    if link.starts_with("/proc")
        && own().is_some_and(|it| {
            ["self", "thread-self"].contains(&it) || it.parse() == Ok(std::process::id())
        })
    {
        return Ok(cwd.to_owned());
    }
    read_link(link)
}

/// Whether the file system that holds `path` is mounted so that it cannot be written here.
pub fn is_on_read_only_mount(path: &Path) -> bool {
    statvfs(path).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether this process may create files in a directory, as far as its permissions say.
pub fn may_create_in(directory: &Path) -> bool {
    access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether this process may execute a file, as far as its permissions and its mount say.
pub fn may_execute(file: &Path) -> bool {
    access(file, Access::EXEC_OK).is_ok()
}

/// Waits until the names in a directory are on disk: new files, renamed files.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Renames a file unless there is a file of the new name; returns whether it did. Atomic where the file system
/// can do that.
pub fn rename_if_new(from: &Path, to: &Path) -> io::Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            if to.symlink_metadata().is_ok() {
                return Ok(false);
            }
            std::fs::rename(from, to).map(|()| true)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether this process may read the file, without opening it: closing a descriptor releases all of the process' POSIX locks
/// on its file.
pub fn check_readable(file: &Path) -> io::Result<()> {
    Ok(access(file, Access::READ_OK)?)
}
