//! SHA-256 of files, cached for as long as their stamp stays the same. How much is read for one entry
//! is bounded, because an agent waits for it.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::open_regular::open_regular;
use super::stamp::Stamp;

/// A larger file is not hashed: its size and change time are used instead.
const LARGEST: u64 = 4 << 20;

/// The same for every file after this many bytes were read for one entry, in the order of the files.
const ENTRY_BUDGET: u64 = 64 << 20;

/// The cache is emptied when it holds this many files.
const MOST_FILES: usize = 50_000;

/// A file and the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// Where it is.
    pub path: PathBuf,
    /// A SHA-256 in hex, or for large files their size and change time.
    pub hash: String,
}

impl FileDigest {
    /// Whether the file had exactly this content. Also true if the content was not hashed.
    pub fn matches(&self, content: &[u8]) -> bool {
        let is_sha256 =
            self.hash.len() == 64 && self.hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        !is_sha256 || self.hash == sha256(content)
    }
}

/// Hashes of files, by path and stamp.
#[derive(Debug, Default)]
pub struct HashCache {
    cached: Mutex<HashMap<PathBuf, (Stamp, String)>>,
}

/// Hashes the files of one entry, within its budget.
#[derive(Debug)]
pub struct HashReader<'a> {
    cache: &'a HashCache,
    /// How many bytes may still be read.
    left: u64,
}

impl HashCache {
    /// A reader for the files of one entry.
    pub const fn reader(&self) -> HashReader<'_> {
        HashReader { cache: self, left: ENTRY_BUDGET }
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<PathBuf, (Stamp, String)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hash of a file's content. The lock is not held while the file is read.
    fn content(&self, path: &Path, stamp: Stamp) -> Option<String> {
        let cached = self.cached().get(path).filter(|(cached, _)| *cached == stamp).cloned();
        if let Some((_, hash)) = cached {
            return Some(hash);
        }
        let mut bytes = Vec::new();
        let file = open_regular(path).ok()?;
        // The file may be growing: never read more than the limit.
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        let hash = sha256(&bytes);
        let mut cached = self.cached();
        if cached.len() >= MOST_FILES {
            cached.clear();
        }
        cached.insert(path.to_owned(), (stamp, hash.clone()));
        Some(hash)
    }
}

impl HashReader<'_> {
    /// The digest of the file at `path`. If the file cannot be read, the hash is a text that says so.
    pub fn digest(&mut self, path: &Path) -> FileDigest {
        let metadata = fs::metadata(path);
        let hash = metadata.map(|metadata| self.hash(path, Stamp::from(&metadata)));
        let hash = hash.unwrap_or_else(|_| "it cannot be read".to_owned());
        FileDigest { path: path.to_owned(), hash }
    }

    /// The hash of the file at `path` with this stamp.
    pub fn hash(&mut self, path: &Path, stamp: Stamp) -> String {
        // A cached file uses up budget too: the same files always give the same hashes.
        let fits = stamp.length <= LARGEST.min(self.left);
        self.left = if fits { self.left - stamp.length } else { self.left };
        let content = fits.then(|| self.cache.content(path, stamp)).flatten();
        let (seconds, nanos) = stamp.changed;
        content.unwrap_or_else(|| format!("{} bytes of {seconds}.{nanos:09}", stamp.length))
    }
}

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_budget() {
        let folder = tempfile::tempdir().expect("a directory");
        let files = ["a", "b", "c", "d"].map(|name| folder.path().join(name));
        for (file, size) in files.iter().zip([6, 6, 4, 1]) {
            fs::write(file, "x".repeat(size)).expect("a file");
        }
        let cache = HashCache::default();
        for _ in ["uncached", "cached"] {
            let mut reader = HashReader { cache: &cache, left: 10 };
            let hashes = files.clone().map(|file| reader.digest(&file).hash);
            assert_eq!([&hashes[0], &hashes[2]], [&sha256(b"xxxxxx"), &sha256(b"xxxx")]);
            assert!(hashes[1].starts_with("6 bytes of ") && hashes[3].starts_with("1 bytes of "));
        }
        let sparse = fs::File::create(&files[0]).expect("a file");
        sparse.set_len(LARGEST + 1).expect("a sparse file");
        assert!(cache.reader().digest(&files[0]).hash.starts_with("4194305 bytes of "));
    }

    #[test]
    fn a_file_is_read_again_when_its_stamp_changes() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("a");
        let cache = HashCache::default();
        let mut hashes = Vec::new();
        for text in ["one", "two"] {
            let other = folder.path().join(text);
            fs::write(&other, text).expect("a file");
            // The same size, and renamed into place: only the inode differs.
            fs::rename(&other, &file).expect("a file");
            hashes.push(cache.reader().digest(&file).hash);
        }
        assert_eq!(hashes, ["one", "two"].map(|text| sha256(text.as_bytes())));
    }
}
