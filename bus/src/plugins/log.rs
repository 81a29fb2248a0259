//! `plugins.log`: what plugins print. Readable by this user only, and rotated.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::files::rotate_if_large;

/// The name of the file, in the home of the bus.
pub(super) const FILE_NAME: &str = "plugins.log";

/// Opens it for a plugin's stderr. Plugins may print secrets, so only this user can read it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    rotate_if_large(path);
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    log.set_permissions(Permissions::from_mode(0o600))?;
    Ok(log)
}
