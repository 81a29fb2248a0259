//! What somebody wrote into files of the bridge, which are ours to replace and to remove: their text is kept beside
//! it, under a name that Hermes does not load.

use std::path::{Path, PathBuf};

/// A text that is kept, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) to: PathBuf,
    pub(super) text: String,
}

impl Kept {
    /// What stands in `path`, beside it.
    pub(super) fn beside(path: &Path, text: &str) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let numbered = |number: u32| match number {
            1 => path.with_file_name(format!("{name}.edited")),
            _ => path.with_file_name(format!("{name}.edited{number}")),
        };
        let free = (1..=u32::MAX).map(numbered).find(|place| !place.exists());
        Self { to: free.unwrap_or_else(|| numbered(1)), text: text.to_owned() }
    }

    /// What a person is told about it.
    pub(super) fn remark(&self, path: &Path) -> String {
        format!(
            "{} is not as hookbus wrote it; what is in it is kept as {}",
            path.display(),
            self.to.display()
        )
    }
}
