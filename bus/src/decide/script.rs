//! The hash of the script behind a command, so that the log knows which version spoke.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::surroundings::Surroundings;

const SCRIPT_ENDINGS: [&str; 8] = ["py", "sh", "bash", "js", "mjs", "ts", "rb", "pl"];

/// A bigger file is no script; hashing it would cost the agent time.
const LARGEST: u64 = 4 << 20;

/// The script in `words`, where one can be made out.
pub(super) fn file(words: &[OsString], surroundings: &Surroundings) -> Option<PathBuf> {
    // `bash -c '…'` hides its words in one.
    let inner = match words {
        [bash, flag, line] if bash == "bash" && flag == "-c" => {
            let inner = line.to_str().and_then(shlex::split).unwrap_or_default();
            inner.into_iter().map(OsString::from).collect()
        }
        [..] => words.to_vec(),
    };
    script_in(&inner, surroundings)
}

/// SHA-256 of the script in `words`, in hex; none where no file can be made out.
pub(super) fn hash(words: &[OsString], surroundings: &Surroundings) -> Option<String> {
    let file = file(words, surroundings)?;
    let size = fs::metadata(&file).ok()?.len();
    if size > LARGEST {
        return None;
    }
    Some(hex::encode(Sha256::digest(fs::read(file).ok()?)))
}

/// Whether a word ends as scripts do.
pub(super) fn ends_like_a_script(word: impl AsRef<Path>) -> bool {
    let ending = word.as_ref().extension().and_then(OsStr::to_str);
    ending.is_some_and(|end| SCRIPT_ENDINGS.contains(&end))
}

/// Which word names the script: the first with a script's ending, else the first that looks like a path.
pub(super) fn place(words: &[OsString]) -> Option<usize> {
    let ending = words.iter().position(ends_like_a_script);
    ending.or_else(|| words.iter().position(|word| is_a_path(word)))
}

/// Whether a word is more than a name.
pub(super) fn is_a_path(word: &OsStr) -> bool {
    word.as_bytes().contains(&b'/')
}

/// The file of that word, else of the program.
fn script_in(words: &[OsString], surroundings: &Surroundings) -> Option<PathBuf> {
    let word = words.get(place(words).unwrap_or(0))?;
    let path = surroundings.cwd.join(word);
    if path.is_file() {
        return Some(path);
    }
    let search = surroundings.var("PATH")?;
    std::env::split_paths(search).map(|place| place.join(word)).find(|path| path.is_file())
}
