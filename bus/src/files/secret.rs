//! Keys of a home: made once, whole or not at all, for the owner alone.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::open_regular::open_with_metadata;
use super::private::{NotPrivate, check_private};

/// A key is not longer than this.
const LARGEST: u64 = 4096;

/// What the group and others must not be allowed.
const GROUP_AND_OTHERS: u32 = 0o077;

/// Random bytes for a key.
pub fn random_key() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Writes the file whole or not at all; an error of kind `AlreadyExists` if it is there: another process may make it at the
/// same time, and the first one counts.
pub fn create_secret(file: &Path, content: &[u8]) -> io::Result<()> {
    // With the first event there is no home yet.
    if let Some(home) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    }
    let unfinished = file.with_extension(format!("key.{}", std::process::id()));
    let mut options = OpenOptions::new();
    let mut new = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    new.write_all(content)?;
    new.sync_all()?;
    let linked = fs::hard_link(&unfinished, file);
    fs::remove_file(&unfinished)?;
    linked
}

/// Reads a key that no other user can read or change; the error is a [`NotPrivate`] if one can.
pub fn read_secret(file: &Path) -> io::Result<Vec<u8>> {
    let (opened, metadata) = open_with_metadata(file)?;
    check_private(file, &metadata).map_err(io::Error::other)?;
    if metadata.mode() & GROUP_AND_OTHERS != 0 {
        return Err(io::Error::other(NotPrivate::Readable(file.to_owned())));
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}
