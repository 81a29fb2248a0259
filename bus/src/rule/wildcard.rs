//! Wildcards that the shell expands, compared with a name: which files `~/.ss?/id_*` means is not known before it runs,
//! and a guard looks at those that it may mean.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether the shell may expand `pattern` to `name`: `*`, `?` and `[…]` in it stand for letters. As in a shell, a name
/// that begins with a dot needs a pattern that does.
pub(super) fn may_be(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Where to go on if it fails: behind the last star, one letter further.
    let (mut at, mut letter, mut retry) = (0, 0, None);
    while letter < name.len() {
        let step = match pattern.get(at) {
            Some('*') => {
                retry = Some((at + 1, letter + 1));
                at += 1;
                continue;
            }
            Some('?') => Some(at + 1),
            // A `]` right behind the bracket is one of its letters.
            Some('[') => {
                let letters = pattern.get(at + 2..).unwrap_or_default();
                letters.iter().position(|it| *it == ']').map(|end| at + end + 3)
            }
            Some(other) if *other == name[letter] => Some(at + 1),
            Some(_) | None => None,
        };
        match (step, retry) {
            (Some(next), _) => {
                at = next;
                letter += 1;
            }
            (None, Some((behind, further))) => {
                at = behind;
                letter = further;
                retry = Some((behind, further + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

/// Whether a path with wildcards may lead to `below` in the directory `base`, below it or above it, as far as its text
/// before the first wildcard tells.
pub(super) fn may_share_beginning(path: &Path, base: &Path, below: &Path) -> bool {
    let [path, base, below] = [path, base, below].map(|it| it.as_os_str().as_bytes());
    let known = path.iter().position(|byte| b"*?[".contains(byte)).unwrap_or(path.len());
    let slash: &[u8] = if base.ends_with(b"/") || below.is_empty() { b"" } else { b"/" };
    path.iter().take(known).zip(base.iter().chain(slash).chain(below)).all(|(a, b)| a == b)
}

/// Whether a path with wildcards may lead to `folder` or below it.
pub(super) fn may_lead_below(path: &Path, folder: &Path) -> bool {
    path.components().count() >= folder.components().count() && may_begin_alike(path, folder)
}

/// Whether a path with wildcards may lead to `folder` or to a directory above it.
pub(super) fn may_lead_above(path: &Path, folder: &Path) -> bool {
    path.components().count() <= folder.components().count() && may_begin_alike(path, folder)
}

fn may_begin_alike(path: &Path, folder: &Path) -> bool {
    path.components().zip(folder.components()).all(|(pattern, part)| {
        let (pattern, part) = (pattern.as_os_str(), part.as_os_str());
        let texts = pattern.to_str().zip(part.to_str());
        pattern == part || texts.is_some_and(|(pattern, name)| may_be(pattern, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_may_be_what_the_shell_could_find() {
        for (pattern, name, expected) in [
            (".ss?", ".ssh", true),
            (".s*h", ".ssh", true),
            ("id_*", "id_rsa", true),
            ("*", "src", true),
            ("*", ".env", false),
            (".e*v", ".env", true),
            (".[e]nv", ".env", true),
            ("*a*b", "xaxab", true),
            ("*a*b", "xaxac", false),
            ("a?", "a", false),
        ] {
            assert_eq!(may_be(pattern, name), expected, "{pattern} {name}");
        }
        assert!(may_lead_below(Path::new("/home/you/.ss?/id_*"), Path::new("/home/you/.ssh")));
        assert!(!may_lead_below(Path::new("/home/*"), Path::new("/home/you/.ssh")));
    }
}
