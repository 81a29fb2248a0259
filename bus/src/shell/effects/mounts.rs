//! Files inside a new container: those in a mounted directory are files of this machine, the others are gone with it.

use crate::shell::view::{Container, FileUse};
use crate::shell::word::{UNKNOWN, Word};

/// The file of this machine that a file of a container is; None if it is in the container alone.
pub(crate) fn on_this_machine(file: FileUse, container: &Container) -> Option<FileUse> {
    let text = file.path.as_str();
    if text.starts_with(UNKNOWN) {
        return Some(file);
    }
    let joined;
    let path = match &container.directory {
        _ if text.starts_with('/') => text,
        Some(directory) if !text.starts_with('~') => {
            joined = format!("{}/{text}", directory.trim_end_matches('/'));
            joined.trim_end_matches("/.")
        }
        Some(_) | None => return None,
    };
    let below = |inside: &str| {
        let rest = path.strip_prefix(inside.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    };
    let mounts = container.mounts.iter();
    let found = mounts.filter_map(|(host, inside)| Some((host, inside, below(inside)?)));
    let (host, _, rest) = found.max_by_key(|(_, inside, _)| inside.len())?;
    let path = format!("{}{rest}", host.trim_end_matches('/'));
    let path = if path.is_empty() { "/".to_owned() } else { path };
    Some(FileUse {
        path: Word::new(path, file.path.is_glob()),
        base: container.base.clone(),
        ..file
    })
}
