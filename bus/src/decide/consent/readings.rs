//! What files hold, as a hash: read once for as long as nothing about them changes, and not without end.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::super::host::Manifests;
use super::super::regular;
use super::super::stamp::Stamp;
use super::evidence::Exhibit;

/// A bigger file counts by its size and the time of its last change; reading it would cost the agent time.
const LARGEST: u64 = 4 << 20;

/// So does what comes after this much, in the order of the files.
const ALL_IN_ALL: u64 = 64 << 20;

/// No more files than these are remembered.
const MOST: usize = 50_000;

/// What is known of files.
#[derive(Debug, Default)]
pub(in crate::decide) struct Readings {
    known: Mutex<HashMap<PathBuf, (Stamp, String)>>,
    /// What the manifests of plugins say.
    pub(in crate::decide) manifests: Manifests,
}

/// Whoever looks at the files of one entry, as far as that goes.
#[derive(Debug)]
pub(in crate::decide) struct Reader<'a> {
    readings: &'a Readings,
    /// How many bytes may be read yet.
    left: u64,
}

impl Readings {
    /// For the files of one entry.
    pub(in crate::decide) const fn reader(&self) -> Reader<'_> {
        Reader { readings: self, left: ALL_IN_ALL }
    }

    /// What the file at `path` holds now; none where there is none.
    pub(in crate::decide) fn now(&self, path: &Path) -> Option<String> {
        path.is_file().then(|| self.reader().exhibit(path).hash)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, (Stamp, String)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody else waits while a file is read.
    fn content(&self, path: &Path, stamp: Stamp) -> Option<String> {
        let known = self.known().get(path).filter(|(then, _)| *then == stamp).cloned();
        if let Some((_, hash)) = known {
            return Some(hash);
        }
        let mut bytes = Vec::new();
        let file = regular::open(path).ok()?;
        // Not more than it had a moment ago, should it be growing.
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        let hash = sha256(&bytes);
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(path.to_owned(), (stamp, hash.clone()));
        Some(hash)
    }
}

impl Reader<'_> {
    /// A file that an entry names.
    pub(in crate::decide) fn exhibit(&mut self, path: &Path) -> Exhibit {
        let about = fs::metadata(path);
        let hash = about.map(|about| self.hash(path, Stamp::from(&about)));
        let hash = hash.unwrap_or_else(|_| "it cannot be read".to_owned());
        Exhibit { path: path.to_owned(), hash }
    }

    /// What the file at `path` with this stamp holds: a SHA-256 in hex, or what counts instead.
    pub(in crate::decide) fn hash(&mut self, path: &Path, stamp: Stamp) -> String {
        // The same for the same files, whether or not they were read before.
        let fits = stamp.length <= LARGEST.min(self.left);
        self.left = if fits { self.left - stamp.length } else { self.left };
        let content = fits.then(|| self.readings.content(path, stamp)).flatten();
        let (seconds, nanos) = stamp.changed;
        content.unwrap_or_else(|| format!("{} bytes of {seconds}.{nanos:09}", stamp.length))
    }
}

/// SHA-256 in hex.
pub(in crate::decide) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_more_is_read_than_an_agent_can_wait_for() {
        let place = tempfile::tempdir().expect("a place");
        let files = ["a", "b", "c", "d"].map(|name| place.path().join(name));
        for (file, size) in files.iter().zip([6, 6, 4, 1]) {
            fs::write(file, "x".repeat(size)).expect("a file");
        }
        let readings = Readings::default();
        for _ in ["the first time", "and again"] {
            let mut reader = Reader { readings: &readings, left: 10 };
            let hashes = files.clone().map(|file| reader.exhibit(&file).hash);
            assert_eq!([&hashes[0], &hashes[2]], [&sha256(b"xxxxxx"), &sha256(b"xxxx")]);
            assert!(hashes[1].starts_with("6 bytes of ") && hashes[3].starts_with("1 bytes of "));
        }
        let sparse = fs::File::create(&files[0]).expect("a file");
        sparse.set_len(LARGEST + 1).expect("a hole");
        assert!(readings.reader().exhibit(&files[0]).hash.starts_with("4194305 bytes of "));
    }

    #[test]
    fn a_file_is_read_again_when_anything_about_it_changes() {
        let place = tempfile::tempdir().expect("a place");
        let file = place.path().join("a");
        let readings = Readings::default();
        let mut hashes = Vec::new();
        for text in ["one", "two"] {
            let other = place.path().join(text);
            fs::write(&other, text).expect("a file");
            // Even one of the same size and time, by another name before.
            fs::rename(&other, &file).expect("a file");
            hashes.push(readings.reader().exhibit(&file).hash);
        }
        assert_eq!(hashes, ["one", "two"].map(|text| sha256(text.as_bytes())));
    }
}
