//! The script behind a command. Its hash is recorded with each verdict, so that the log says which
//! version answered.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::caller::Caller;
use crate::files::sha256;

const SCRIPT_ENDINGS: [&str; 8] = ["py", "sh", "bash", "js", "mjs", "ts", "rb", "pl"];

/// A larger file is not a script; hashing it would cost the agent time.
const LARGEST: u64 = 4 << 20;

/// SHA-256 of the script in `words`, in hex; none if there is no such file.
pub(crate) fn script_hash(words: &[OsString], caller: &Caller) -> Option<String> {
    // In `bash -c '…'` the script is inside the line.
    let inner = match words {
        [bash, flag, line] if bash == "bash" && flag == "-c" => {
            let inner = line.to_str().and_then(shlex::split).unwrap_or_default();
            inner.into_iter().map(|word| caller.expand_home(word)).collect()
        }
        [..] => words.to_vec(),
    };
    let file = script_file(&inner, caller)?;
    let size = fs::metadata(&file).ok()?.len();
    (size <= LARGEST).then(|| fs::read(file).ok()).flatten().map(|content| sha256(&content))
}

/// Which word names the script: the first with a script's ending, else the first with a `/` in it.
pub(crate) fn script_word(words: &[OsString]) -> Option<usize> {
    let by_ending = words.iter().position(|word| has_script_ending(word));
    by_ending.or_else(|| words.iter().position(|word| is_path(word)))
}

/// Whether a word ends as the name of a script.
pub(crate) fn has_script_ending(word: &OsStr) -> bool {
    let ending = Path::new(word).extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| SCRIPT_ENDINGS.contains(&ending))
}

/// Whether a word is a path: it has a `/` in it.
pub(crate) fn is_path(word: &OsStr) -> bool {
    word.as_bytes().contains(&b'/')
}

/// The file of the script, else of the program.
fn script_file(words: &[OsString], caller: &Caller) -> Option<PathBuf> {
    let word = words.get(script_word(words).unwrap_or(0))?;
    let path = caller.cwd.join(word);
    if path.is_file() {
        return Some(path);
    }
    let search = caller.var("PATH")?;
    std::env::split_paths(search).map(|folder| folder.join(word)).find(|path| path.is_file())
}
