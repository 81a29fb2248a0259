//! Writing a file that a person or an agent relies on.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Result;

/// More links in a row than this lead nowhere.
const MOST_LINKS: usize = 40;

/// Where a path leads, whether or not anything is there.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&place) else { break };
        place = place.parent().unwrap_or(Path::new("/")).join(target);
    }
    place
}

/// Writes a file whole or not at all, in the place that a link leads to, with the mode it had.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let place = behind_links(path);
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = place.with_file_name(format!(".{name}.hookbus-{}", std::process::id()));
    let mode = fs::metadata(&place).map_or(0o600, |file| file.permissions().mode());
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut file| {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, &place));
    written.map_err(|error| {
        drop(fs::remove_file(&beside));
        anyhow::Error::new(error)
            .context(format!("cannot write {}; nothing in it has changed", path.display()))
    })
}
