//! Links that the line makes: what it does behind a link's name happens to the link's target as well.

use crate::shell::follow::join;
use crate::shell::view::{Access, Directory, FileUse, Invocation, ShellView};
use crate::shell::word::Word;

/// How many links are followed.
const LINKS: usize = 16;
/// How many uses are added.
const ADDED: usize = 512;

/// A link that the line makes.
#[derive(Debug)]
struct Link {
    /// The program that makes it.
    by: usize,
    /// Where it is, from where the line starts.
    place: String,
    target: String,
    /// Where a relative target starts.
    base: Directory,
}

/// Adds, for each file that is used through a link of the line, the file that the link leads to.
pub(crate) fn add_links(view: &mut ShellView) {
    let mut links: Vec<Link> = Vec::new();
    for (by, program) in view.programs.iter().enumerate() {
        if let Some(link) = link(by, program)
            && links.len() < LINKS
            && !links.iter().any(|known| known.place == link.place && known.target == link.target)
        {
            links.push(link);
        }
    }
    if links.is_empty() {
        return;
    }
    let first = view.files.len();
    let mut at = 0;
    while let Some(file) = view.files.get(at) {
        at += 1;
        let found: Vec<FileUse> = links.iter().filter_map(|link| link.behind(file)).collect();
        for file in found {
            let added = view.files.get(first..).unwrap_or_default();
            if added.len() < ADDED && !added.contains(&file) {
                view.files.push(file);
            }
        }
    }
}

impl Link {
    /// The use of the target that a use of the link is.
    fn behind(&self, file: &FileUse) -> Option<FileUse> {
        if file.by.is_some_and(|by| by <= self.by) {
            return None;
        }
        let place = located(&file.base, file.path.as_str())?;
        let rest = place.strip_prefix(self.place.as_str())?;
        // A link that is removed itself leaves its target alone.
        let is_inside = rest.starts_with('/');
        if !is_inside && (!rest.is_empty() || file.access == Access::Delete) {
            return None;
        }
        let text = format!("{}{rest}", self.target.strip_suffix('/').unwrap_or(&self.target));
        let path = Word::new(text, file.path.is_glob());
        Some(FileUse { path, base: self.base.clone(), ..file.clone() })
    }
}

/// The link that `ln` makes, if its words are known.
fn link(by: usize, program: &Invocation) -> Option<Link> {
    let name = program.program.as_str().rsplit('/').next()?;
    let given = |word: &&Word| matches!(word.as_str(), "-t" | "--target-directory");
    if name != "ln" || program.more_args || program.args.iter().any(|word| given(&word)) {
        return None;
    }
    let words: Vec<&Word> =
        program.args.iter().filter(|word| !word.as_str().starts_with('-')).collect();
    let (target, name) = match words.as_slice() {
        [target] => (target, "."),
        [target, name] if name.is_known() && !name.is_glob() => (target, name.as_str()),
        _ => return None,
    };
    if !target.is_known() || target.is_glob() {
        return None;
    }
    let target = target.as_str();
    let last = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = match name {
        "." | "./" => last.to_owned(),
        _ if name.ends_with('/') => format!("{name}{last}"),
        _ => name.to_owned(),
    };
    let place = located(&program.cwd, &name)?;
    let base = match place.rsplit_once('/') {
        Some(("", _)) => Directory::Path("/".to_owned()),
        Some((parent, _)) => Directory::Path(parent.to_owned()),
        None => Directory::Start,
    };
    Some(Link { by, place, target: target.to_owned(), base })
}

/// A path from where the line starts.
fn located(base: &Directory, path: &str) -> Option<String> {
    let mut plain = path;
    while let Some(rest) = plain.strip_prefix("./") {
        plain = rest;
    }
    match join(base, plain) {
        Directory::Path(path) => Some(path),
        Directory::Start => Some(plain.to_owned()),
        Directory::Unknown => None,
    }
}
