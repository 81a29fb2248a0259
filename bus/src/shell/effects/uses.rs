//! Collects the files and hosts that one program uses.

use crate::shell::programs::Text;
use crate::shell::view::{Access, Directory, FileUse, HostUse};
use crate::shell::word::{UNKNOWN, Word};

use super::address::Address;

/// What one program uses.
#[derive(Debug)]
pub(super) struct Uses {
    by: usize,
    /// Where its relative paths start.
    pub(super) base: Directory,
    pub(super) files: Vec<FileUse>,
    pub(super) hosts: Vec<HostUse>,
}

/// Whether everything below a path is affected too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    Yes,
    No,
}

impl From<bool> for Below {
    fn from(recursive: bool) -> Self {
        if recursive { Self::Yes } else { Self::No }
    }
}

impl Uses {
    pub(super) const fn new(by: usize, base: Directory) -> Self {
        Self { by, base, files: Vec::new(), hosts: Vec::new() }
    }

    pub(super) fn read(&mut self, path: Text<'_>) {
        self.file(path, Access::Read, Below::No);
    }

    pub(super) fn write(&mut self, path: Text<'_>) {
        self.file(path, Access::Write, Below::No);
    }

    pub(super) fn reads<'a>(&mut self, paths: impl IntoIterator<Item = Text<'a>>) {
        self.files(paths, Access::Read, Below::No);
    }

    pub(super) fn writes<'a>(&mut self, paths: impl IntoIterator<Item = Text<'a>>) {
        self.files(paths, Access::Write, Below::No);
    }

    pub(super) fn files<'a>(
        &mut self,
        paths: impl IntoIterator<Item = Text<'a>>,
        access: Access,
        below: Below,
    ) {
        for path in paths {
            self.file(path, access, below);
        }
    }

    /// A file. `-` and the likes of `/dev/null` are none.
    pub(super) fn file(&mut self, path: Text<'_>, access: Access, below: Below) {
        self.word(path.to_word(), access, below);
    }

    /// A file whose path is not written in the line like that.
    pub(super) fn word(&mut self, path: Word, access: Access, below: Below) {
        if is_no_file(path.as_str()) {
            return;
        }
        let (base, by) = (self.base.clone(), Some(self.by));
        let file = FileUse { path, base, access, recursive: below == Below::Yes, by };
        if !self.files.contains(&file) {
            self.files.push(file);
        }
    }

    /// A host by its URL; `scheme` counts if the URL has none.
    pub(super) fn url(&mut self, text: Text<'_>, scheme: &str) {
        let address = Address::from_url(text.text, scheme);
        self.address(text, address);
    }

    /// A host.
    pub(super) fn address(&mut self, text: Text<'_>, address: Address) {
        let Address { scheme, host } = address;
        let host = HostUse { text: text.to_word(), scheme, host, by: Some(self.by) };
        if !self.hosts.contains(&host) {
            self.hosts.push(host);
        }
    }

    /// From here on relative paths start in this directory (`git -C`, `tar -C`).
    pub(super) fn enter(&mut self, directory: Text<'_>) {
        let path = directory.text;
        self.base = if path.contains(UNKNOWN) || directory.glob {
            Directory::Unknown
        } else if path.starts_with(['/', '~']) {
            Directory::Path(path.to_owned())
        } else {
            match &self.base {
                Directory::Start => Directory::Path(path.to_owned()),
                Directory::Path(base) => {
                    Directory::Path(format!("{}/{path}", base.trim_end_matches('/')))
                }
                Directory::Unknown => Directory::Unknown,
            }
        };
    }
}

/// Whether a path is stdin, stdout, or a device that keeps nothing.
fn is_no_file(path: &str) -> bool {
    matches!(
        path,
        "" | "-" | "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty"
    ) || path.starts_with("/dev/fd/")
        || path.starts_with("/proc/self/fd/")
        || path.starts_with("/dev/tcp/")
        || path.starts_with("/dev/udp/")
}

/// Whether a word looks like a path: it has a `/` in it, or begins with `~` or `.`.
pub(super) fn looks_like_path(text: &str) -> bool {
    !is_url(text) && (text.contains('/') || text.starts_with(['~', '.']))
}

/// Whether a word is a URL with a scheme.
pub(super) fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c) || c == UNKNOWN)
    })
}
