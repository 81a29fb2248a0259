//! Writes files that users and agents rely on: atomically, through symlinks, with their permissions kept.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Longer chains of symlinks are taken for a loop, as Linux does.
const MOST_LINKS: usize = 40;

/// The target of a symlink, whether or not it exists; `path` itself if it is none.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("/")).join(next);
    }
    target
}

/// Replaces the text of a file atomically. A symlink stays one, and the file keeps its mode; a new one gets 0600.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let target = behind_links(path);
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = target.with_file_name(format!(".{name}.hookbus-{}", std::process::id()));
    let mode = fs::metadata(&target).map_or(0o600, |file| file.permissions().mode());
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&temporary)
        .and_then(|mut file| {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, &target))
        // Without this a power cut could bring the old file back.
        .and_then(|()| fs::File::open(target.parent().unwrap_or(Path::new("/")))?.sync_all());
    written.map_err(|error| {
        drop(fs::remove_file(&temporary));
        anyhow::Error::new(error)
            .context(format!("cannot write {}; nothing in it has changed", path.display()))
    })
}
