//! Whether the files behind an entry are those that somebody agreed to: all of them, none more and none less, each
//! with the content it had. In another place the same files count as well, if they lie there as they lay then.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::consent::Agreement;

/// Files by path, and what they hold.
pub(super) type Files = BTreeMap<PathBuf, String>;

/// What stands behind an entry now.
#[derive(Debug)]
pub(super) struct FoundFiles<'a> {
    /// The files.
    pub(super) files: &'a Files,
    /// The directory that they belong to as a whole, if it is known.
    pub(super) root: Option<&'a Path>,
    /// Where the entry's words were looked for.
    pub(super) place: &'a Path,
}

/// How a person stands to these files who agreed to each of `agreed` under the same words.
pub(super) fn agreement(
    found: &FoundFiles<'_>,
    agreed: &[&Files],
    is_gone: impl Fn(&Path) -> bool,
) -> Agreement {
    if agreed.iter().any(|then| *then == found.files || found.lay_elsewhere(then)) {
        return Agreement::Given;
    }
    let shared = |path: &PathBuf| found.files.contains_key(path);
    let gone_from_here = |path: &PathBuf| path.starts_with(found.place) && is_gone(path);
    let is_of_here = |path: &PathBuf| shared(path) || gone_from_here(path);
    // A command with a whole path has no other place.
    let all_gone = || {
        let all = agreed.iter().all(|then| then.keys().all(|path| is_gone(path)));
        found.files.is_empty() && all
    };
    if agreed.iter().any(|then| then.keys().any(is_of_here)) || all_gone() {
        Agreement::Lapsed
    } else {
        Agreement::Never
    }
}

/// Whether an agreement to `before` is of no use any more once somebody agreed to `now` under the same words: it
/// is about the same files, or about an earlier version of one of them. Another place may share a file with
/// this one, and has an agreement of its own.
pub(super) fn makes_way(before: &Files, now: &Files) -> bool {
    let edited = |(path, hash): (&PathBuf, &String)| now.get(path).is_some_and(|it| it != hash);
    before.keys().eq(now.keys()) || before.iter().any(edited)
}

impl FoundFiles<'_> {
    /// Whether `then` are the same files below another directory.
    fn lay_elsewhere(&self, then: &Files) -> bool {
        let root = self.root.map_or_else(|| common_root(self.files), Path::to_owned);
        let below: BTreeMap<&Path, &String> = self
            .files
            .iter()
            .map(|(path, hash)| (path.strip_prefix(&root).unwrap_or(path), hash))
            .collect();
        let Some(first) = below.keys().find(|path| path.is_relative()) else { return false };
        let depth = first.components().count();
        let roots = then.keys().filter(|path| path.ends_with(first));
        let mut roots = roots.filter_map(|path| path.ancestors().nth(depth));
        let is_there = |root: &Path| {
            below.iter().all(|(path, hash)| then.get(&root.join(path)) == Some(*hash))
        };
        then.len() == below.len() && roots.any(is_there)
    }
}

/// The deepest directory that all of them are in.
fn common_root(files: &Files) -> PathBuf {
    let mut folders = files.keys().filter_map(|path| path.parent());
    let Some(first) = folders.next() else { return PathBuf::new() };
    let mut common: Vec<Component<'_>> = first.components().collect();
    for folder in folders {
        let same = common.iter().zip(folder.components()).take_while(|(a, b)| **a == *b).count();
        common.truncate(same);
    }
    common.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter().map(|(path, hash)| (PathBuf::from(path), (*hash).to_owned())).collect()
    }

    fn stands(
        place: &str,
        root: Option<&str>,
        now: &[(&str, &str)],
        then: &[&[(&str, &str)]],
    ) -> Agreement {
        let then: Vec<Files> = then.iter().map(|list| files(list)).collect();
        let there: Vec<PathBuf> = now.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let found =
            FoundFiles { files: &files(now), root: root.map(Path::new), place: Path::new(place) };
        // What lies in /a is what is found there; everything else is as it was.
        let is_gone = |path: &Path| path.starts_with("/a") && !there.iter().any(|it| it == path);
        agreement(&found, &then.iter().collect::<Vec<_>>(), is_gone)
    }

    #[test]
    fn in_its_place_all_files_are_what_they_were() {
        let then: &[&[(&str, &str)]] = &[&[("/a/p.sh", "1"), ("/a/q.sh", "2")]];
        let in_a = |now: &[(&str, &str)]| stands("/a", None, now, then);
        assert_eq!(in_a(&[("/a/p.sh", "1"), ("/a/q.sh", "2")]), Agreement::Given);
        for changed in [
            &[("/a/p.sh", "1"), ("/a/q.sh", "3")][..],
            &[("/a/p.sh", "2"), ("/a/q.sh", "1")],
            &[("/a/p.sh", "1")],
            &[("/a/p.sh", "1"), ("/a/q.sh", "2"), ("/a/r.sh", "3")],
            &[("/a/q.sh/p.sh", "1")],
            &[],
        ] {
            assert_eq!(in_a(changed), Agreement::Lapsed, "{changed:?}");
        }
    }

    #[test]
    fn in_another_place_the_same_files_are_the_same_and_all_else_is_new() {
        let then: &[&[(&str, &str)]] = &[&[("/c/p.sh", "1"), ("/c/lib/p.sh", "2")]];
        let in_b = |now: &[(&str, &str)]| stands("/b", None, now, then);
        assert_eq!(in_b(&[("/b/p.sh", "1"), ("/b/lib/p.sh", "2")]), Agreement::Given);
        for new in [
            &[][..],
            &[("/b/p.sh", "1")],
            &[("/b/p.sh", "2"), ("/b/lib/p.sh", "1")],
            &[("/b/p.sh", "1"), ("/b/bin/p.sh", "2")],
            &[("/b/p.sh", "1"), ("/b/lib/p.sh", "2"), ("/b/q.sh", "3")],
        ] {
            assert_eq!(in_b(new), Agreement::Never, "{new:?}");
        }
    }

    #[test]
    fn a_directory_is_the_same_elsewhere_only_as_a_whole() {
        let then: &[&[(&str, &str)]] = &[&[("/c/plugs/p/a.py", "1")]];
        let now = |path: &str| stands("/", Some("/b/plugs"), &[(path, "1")], then);
        assert_eq!(now("/b/plugs/p/a.py"), Agreement::Given);
        assert_eq!(now("/b/plugs/_off/p/a.py"), Agreement::Never);
    }

    #[test]
    fn where_nothing_was_found_then_nothing_may_be_found_now() {
        assert_eq!(stands("/b", None, &[], &[&[]]), Agreement::Given);
        assert_eq!(stands("/b", None, &[("/b/p.sh", "1")], &[&[]]), Agreement::Never);
        let gone: &[&[(&str, &str)]] = &[&[("/a/p.sh", "1")]];
        assert_eq!(stands("/b", None, &[], gone), Agreement::Lapsed, "it had a whole path");
        let two: &[&[(&str, &str)]] = &[&[("/a/p.sh", "1")], &[("/c/p.sh", "1")]];
        assert_eq!(stands("/b", None, &[], two), Agreement::Never, "it is here that it never was");
        assert_eq!(stands("/a", None, &[], two), Agreement::Lapsed);
    }

    #[test]
    fn two_places_that_share_a_file_have_an_agreement_each() {
        let (a, b) =
            (files(&[("/x/r", "1"), ("/a/p", "2")]), files(&[("/x/r", "1"), ("/b/p", "3")]));
        assert!(!makes_way(&a, &b) && !makes_way(&b, &a));
        assert!(makes_way(&a, &a));
        assert!(makes_way(&a, &files(&[("/x/r", "2"), ("/b/p", "3")])), "it was edited since");
    }
}
