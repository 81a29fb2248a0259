//! Backups of text that would be lost otherwise: a user's edits of the bridge's files, which hookbus replaces and
//! removes, and hooks that cannot be put back. Hermes does not load files with these names.

use std::path::Path;

use super::files::PendingWrite;

/// A new file beside `path`: `<name>.<suffix>`, with a number behind it if that exists.
pub(super) fn backup(path: &Path, suffix: &str, text: &str) -> PendingWrite {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = |number: u32| match number {
        1 => path.with_file_name(format!("{name}.{suffix}")),
        _ => path.with_file_name(format!("{name}.{suffix}{number}")),
    };
    let free = (1..=u32::MAX).map(numbered).find(|path| !path.exists());
    let path = free.unwrap_or_else(|| numbered(1));
    PendingWrite { path, now: None, then: Some(text.to_owned()) }
}

/// A backup of a bridge file that the user has edited, and what to tell them about it.
pub(super) fn edited(path: &Path, text: &str) -> (PendingWrite, String) {
    let backup = backup(path, "edited", text);
    let remark = format!(
        "{} is not as hookbus wrote it; its text is kept in {}",
        path.display(),
        backup.path.display()
    );
    (backup, remark)
}
