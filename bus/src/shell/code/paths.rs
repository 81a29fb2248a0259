//! What `realpath`, `readlink -f`, `dirname` and `basename` print. Only the text of a path counts: links on the disk are
//! not followed here, rules do that for the path that comes out.

use super::super::follow::{Follower, join};
use super::super::limits;
use super::super::view::Directory;
use super::super::word::UNKNOWN;

/// What such a program prints; None if that is not known.
pub(super) fn printed(follower: &Follower<'_>, name: &str, args: &[&str]) -> Option<String> {
    let (options, paths): (Vec<&str>, Vec<&str>) =
        args.iter().partition(|arg| arg.starts_with('-') && arg.len() > 1);
    let lines: Vec<String> = match name {
        "realpath" | "grealpath" => {
            let plain = |option: &&str| {
                matches!(
                    *option,
                    "-m" | "-e" | "-s" | "-L" | "-P" | "-q" | "--" | "--canonicalize-missing"
                )
            };
            if !options.iter().all(plain) {
                return None;
            }
            paths.iter().map(|path| absolute(follower, path)).collect()
        }
        "readlink" | "greadlink" => {
            let follows = |option: &&str| {
                matches!(*option, "-f" | "-e" | "-m" | "-fn" | "-nf" | "--canonicalize")
            };
            if !options.iter().any(follows) {
                return None;
            }
            paths.iter().map(|path| absolute(follower, path)).collect()
        }
        "dirname" if options.iter().all(|option| *option == "--") => {
            paths.iter().map(|path| parent(path)).collect()
        }
        "basename" => base_names(args)?,
        _ => return None,
    };
    if lines.is_empty() {
        return None;
    }
    Some(lines.join("\n") + "\n")
}

/// An absolute path without `.` and `..`. Where the directory of the line is not known, a path from there stays one.
fn absolute(follower: &Follower<'_>, path: &str) -> String {
    let joined = match join(&follower.scope.directory, path) {
        Directory::Path(joined) => joined,
        Directory::Start => ".".to_owned(),
        Directory::Unknown => return UNKNOWN.to_string(),
    };
    if joined.starts_with(['/', '~', UNKNOWN]) {
        return plain(&joined);
    }
    match follower.start.variable("PWD") {
        Some(start) => plain(&format!("{start}/{joined}")),
        None => joined,
    }
}

/// The path without `.`, `..` and doubled slashes.
pub(crate) fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').take(limits::PATH_BYTES) {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                // What is above an unknown part, above a home directory or above the start is not known.
                Some(last) if *last == ".." || last.contains([UNKNOWN, '~']) => parts.push(part),
                None if !path.starts_with('/') => parts.push(part),
                Some(_) | None => {
                    parts.pop();
                }
            },
            _ => parts.push(part),
        }
    }
    let text = parts.join("/");
    if path.starts_with('/') { format!("/{text}") } else { text }
}

fn parent(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit_once('/') {
        Some((directory, _)) if directory.trim_end_matches('/').is_empty() => "/".to_owned(),
        Some((directory, _)) => directory.trim_end_matches('/').to_owned(),
        None if trimmed.is_empty() && !path.is_empty() => "/".to_owned(),
        // Whether an unknown path has a directory is not known.
        None if trimmed.contains(UNKNOWN) => UNKNOWN.to_string(),
        None => ".".to_owned(),
    }
}

/// `basename path [suffix]`, `basename -s suffix path…`, `basename -a path…`.
fn base_names(args: &[&str]) -> Option<Vec<String>> {
    let (paths, suffix): (&[&str], &str) = match args {
        ["-a" | "--multiple" | "--", paths @ ..] => (paths, ""),
        ["-s", suffix, paths @ ..] => (paths, suffix),
        [option, ..] if option.starts_with('-') => return None,
        [_, suffix] => (args.get(..1)?, suffix),
        [_] => (args, ""),
        _ => return None,
    };
    let name = |path: &&str| {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let shorter = name.strip_suffix(suffix).filter(|shorter| !shorter.is_empty());
        shorter.unwrap_or(name).to_owned()
    };
    Some(paths.iter().map(name).collect())
}
