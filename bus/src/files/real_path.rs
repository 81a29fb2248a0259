//! Where a path really leads: links are followed one by one and `..` goes up from where a link led, as the kernel
//! does it. The rest of a path that does not exist stays as it is written, so that a file that is about to be
//! created has a place too.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// More components than any real path has; each costs a system call.
const MOST_COMPONENTS: usize = 1024;

/// A path that leads nowhere: its links go in a circle, or it is absurdly long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the links of this path lead nowhere")]
pub struct LeadsNowhere;

/// The place that the absolute `path` leads to, with `read_link` to look at the disk.
pub fn real_path_with(
    path: &Path,
    read_link: impl Fn(&Path) -> io::Result<PathBuf>,
) -> Result<PathBuf, LeadsNowhere> {
    let mut left: Vec<PathBuf> = components_reversed(path);
    let (mut real, mut links, mut steps) = (PathBuf::from("/"), 0, 0);
    while let Some(part) = left.pop() {
        steps += 1;
        if steps > MOST_COMPONENTS {
            return Err(LeadsNowhere);
        }
        match part.components().next() {
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(name)) => {
                real.push(name);
                if let Ok(target) = read_link(&real) {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(LeadsNowhere);
                    }
                    real.pop();
                    left.extend(components_reversed(&target));
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    Ok(real)
}

/// The place that the absolute `path` leads to on this disk.
pub fn real_path(path: &Path) -> Result<PathBuf, LeadsNowhere> {
    real_path_with(path, |path| fs::read_link(path))
}

/// The same without a look at the disk: no links are followed.
pub fn lexical_path(path: &Path) -> PathBuf {
    let no_link = |_: &Path| Err(io::Error::from(io::ErrorKind::InvalidInput));
    real_path_with(path, no_link).unwrap_or_else(|LeadsNowhere| path.to_owned())
}

fn components_reversed(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_as_the_kernel_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a real path");
        fs::create_dir_all(root.join("a/b")).expect("folders");
        symlink(root.join("a/b"), root.join("deep")).expect("a link");
        symlink("deep", root.join("again")).expect("a link");
        symlink("../out", root.join("a/up")).expect("a link");
        symlink("loop", root.join("loop")).expect("a link");
        for (path, expected) in [
            ("deep/x", Some("a/b/x")),
            ("again/../x", Some("a/x")),
            ("a/up/new", Some("out/new")),
            ("a/./b//../b/x/", Some("a/b/x")),
            ("none/../a", Some("a")),
            ("loop/x", None),
        ] {
            let found = real_path(&root.join(path)).ok();
            assert_eq!(found, expected.map(|it| root.join(it)), "{path}");
        }
        assert_eq!(lexical_path(&root.join("deep/../x")), root.join("x"));
        assert_eq!(real_path(Path::new("/../..")), Ok(PathBuf::from("/")));
    }
}
