//! Files that decide what runs: the hooks file, the approvals, the log. As ssh does with its keys, they are used only
//! if no other user can change them: they belong to this user or to root, and neither the group nor others can write
//! them or replace their directory. The group may if this user is alone in it.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open_regular::open_with_metadata;
use crate::sys::fs::is_on_read_only_mount;
use crate::sys::process::effective_uid;
use crate::sys::user::is_private_group;

/// Write permission for the group, and for others.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;

/// In a directory with this bit, such as `/tmp`, users can replace only their own files.
const STICKY: u32 = 0o1000;

/// Why a file cannot be trusted, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPrivate {
    /// It belongs to another user.
    #[error("{path} belongs to another user (uid {owner}); if it is yours, run `chown {me} {path}`", path = .path.display())]
    OtherOwner {
        /// The file or directory.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
        /// Who we are.
        me: u32,
    },
    /// Others can write it.
    #[error("other users can write {path}; run `chmod go-w {path}`", path = .0.display())]
    Writable(PathBuf),
    /// Others can read a key.
    #[error("other users can read {path}; run `chmod 600 {path}`, and replace the key if one of them may have read it", path = .0.display())]
    Readable(PathBuf),
    /// Others can replace it, because they can write a directory above it.
    #[error("other users can replace {file}, because they can write {folder}; run `chmod o-w {folder}`", file = .file.display(), folder = .folder.display())]
    Replaceable {
        /// The directory that they can replace.
        file: PathBuf,
        /// The directory above it that they can write.
        folder: PathBuf,
    },
}

/// Checks that no other user can change the file or directory at `path`, which has this metadata.
pub fn check_private(path: &Path, metadata: &Metadata) -> Result<(), NotPrivate> {
    let (owner, me) = (metadata.uid(), effective_uid());
    let found = if owner != me && owner != 0 {
        NotPrivate::OtherOwner { path: path.to_owned(), owner, me }
    } else if can_others_write(metadata) && !is_sticky(metadata) {
        NotPrivate::Writable(path.to_owned())
    } else {
        return Ok(());
    };
    // A file that is mounted into a container to be read cannot be changed there by any user.
    if is_on_read_only_mount(path) { Ok(()) } else { Err(found) }
}

fn can_others_write(metadata: &Metadata) -> bool {
    let mode = metadata.mode();
    mode & OTHERS != 0 || mode & GROUP != 0 && !is_private_group(metadata.gid())
}

/// Whether it is a directory in which users can replace only their own files. What they add belongs to them, and is
/// not used.
fn is_sticky(metadata: &Metadata) -> bool {
    metadata.is_dir() && metadata.mode() & STICKY != 0
}

/// Checks that no other user can change what is in `folder`, or put another directory in its place.
pub fn check_private_folder(folder: &Path) -> Result<(), NotPrivate> {
    let Ok(metadata) = fs::metadata(folder) else { return Ok(()) };
    check_private(folder, &metadata)?;
    for above in folder.ancestors().skip(1) {
        let Ok(metadata) = fs::metadata(above) else { continue };
        let is_writable = metadata.mode() & OTHERS != 0 && !is_sticky(&metadata);
        if is_writable && !is_on_read_only_mount(above) {
            let (file, folder) = (folder.to_owned(), above.to_owned());
            return Err(NotPrivate::Replaceable { file, folder });
        }
    }
    Ok(())
}

/// The text of a regular file that no other user can change; the error is a [`NotPrivate`] if one can.
pub fn read_private(file: &Path) -> io::Result<String> {
    read_private_up_to(file, u64::MAX)
}

/// The same; a file of more than `largest` bytes is an error, and is not read to its end.
pub fn read_private_up_to(file: &Path, largest: u64) -> io::Result<String> {
    let (opened, metadata) = open_with_metadata(file)?;
    check_private(file, &metadata).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    opened.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        let why = format!("it is larger than {} KiB; make it shorter", largest >> 10);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Whether the error of a read says that other users can change the file.
pub fn is_not_private(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NotPrivate>());
    inner.is_some()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_write_permission_for_others_counts() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("file");
        fs::write(&file, "text").expect("a file");
        let with_mode = |mode: u32| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
            read_private(&file).map_err(|error| (is_not_private(&error), error.to_string()))
        };
        for mode in [0o600, 0o644, 0o755] {
            assert_eq!(with_mode(mode), Ok("text".to_owned()), "{mode:o}");
        }
        for mode in [0o620, 0o602, 0o666] {
            let (not_private, text) = with_mode(mode).expect_err("others can write it");
            assert!(not_private && text.contains("chmod go-w"), "{mode:o}: {text}");
        }
    }

    #[test]
    fn a_directory_that_others_can_write_above_it_counts_unless_it_is_sticky() {
        let root = tempfile::tempdir().expect("a directory");
        let (above, home) = (root.path().join("above"), root.path().join("above/home"));
        fs::create_dir_all(&home).expect("a directory");
        let with_mode = |mode: u32| {
            fs::set_permissions(&above, fs::Permissions::from_mode(mode)).expect("a mode");
            check_private_folder(&home).map_err(|error| error.to_string())
        };
        assert_eq!((with_mode(0o755), with_mode(0o1777)), (Ok(()), Ok(())));
        let text = with_mode(0o777).expect_err("others can replace the home");
        assert!(text.contains("chmod o-w"), "{text}");
    }
}
