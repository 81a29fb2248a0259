//! Variables for observers, from a file in the home: a daemon that a hook started has nothing of the user's environment,
//! and what an observer needs of it (a token, a proxy, another `PATH`) is written down there.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The variables in `file`, one `NAME=value` per line; none if there is no such file. Empty lines and lines that begin
/// with `#` are left out. Fails if another user could have written it.
pub(super) fn read(file: &Path) -> io::Result<Vec<(String, String)>> {
    let mut opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let found: fs::Metadata = opened.metadata()?;
    if found.mode() & 0o022 != 0 {
        return Err(io::Error::other("other users can write it; run `chmod 600` on it"));
    }
    let mut text = String::new();
    opened.read_to_string(&mut text)?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim())));
    pairs.filter(|(name, value)| !name.is_empty() && !value.contains('\0')).collect()
}

fn unquoted(value: &str) -> String {
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    quoted('"').or_else(|| quoted('\'')).unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_and_values_are_read_and_comments_left_out() {
        let pairs = parse("# mine\nTOKEN=a=b\n\nQUOTED = \"x y\"\nexport\n=nothing\nEMPTY=\n");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(pairs, [pair("TOKEN", "a=b"), pair("QUOTED", "x y"), pair("EMPTY", "")]);
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("observers.env");
        assert_eq!(read(&file).expect("no file, no variables"), []);
        fs::write(&file, "A=1\n").expect("a file");
        assert_eq!(read(&file).expect("variables").len(), 1);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
        assert!(read(&file).is_err());
    }
}
