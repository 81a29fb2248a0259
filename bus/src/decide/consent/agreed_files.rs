//! Whether the files behind an entry are those that somebody agreed to: all of them, none more and none less, each
//! with the content it had. In another place the same files count as well, if they lie there as they lay then. Of a
//! directory of plugins less may be loaded than was agreed to, if nothing of the rest is missed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::super::host::{MANIFESTS, Resting, is_bridge, is_hidden};
use super::Agreement;

/// Files by path, and what they hold.
pub(in crate::decide) type Files = BTreeMap<PathBuf, String>;

/// Plugins lie in a directory of them, or in a category one level further in.
const DEEPEST_PLUGIN: usize = 2;

/// What `hookbus connect` calls its bridge.
const BRIDGE: &str = "hookbus";

/// What stands behind an entry now.
#[derive(Debug)]
pub(in crate::decide) struct FoundFiles<'a> {
    /// The files.
    pub(in crate::decide) files: &'a Files,
    /// The directory of plugins that they are in.
    pub(in crate::decide) root: Option<&'a Path>,
    /// The plugins in there that are not loaded.
    pub(in crate::decide) resting: &'a [Resting],
    /// Where the entry's words were looked for.
    pub(in crate::decide) place: &'a Path,
    /// Which files these were looked for as, whether or not they are there.
    pub(in crate::decide) looked_for: &'a [PathBuf],
}

/// How a person stands to these files who agreed to each of `agreed` under the same words. `now` is what a file
/// holds, if it is there.
pub(in crate::decide) fn agreement(
    found: &FoundFiles<'_>,
    agreed: &[&Files],
    now: impl Fn(&Path) -> Option<String>,
) -> Agreement {
    let is_agreed_to = |then: &&Files| {
        *then == found.files || found.lay_elsewhere(then) || found.is_part_of(then, &now)
    };
    if agreed.iter().any(is_agreed_to) {
        return Agreement::Given;
    }
    let is_gone = |path: &Path| now(path).is_none();
    let shared = |path: &PathBuf| found.files.contains_key(path);
    let gone_from_here = |path: &PathBuf| path.starts_with(found.place) && is_gone(path);
    let is_of_here =
        |path: &PathBuf| shared(path) || found.would_have(path) || gone_from_here(path);
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
pub(in crate::decide) fn makes_way(before: &Files, now: &Files) -> bool {
    let edited = |(path, hash): (&PathBuf, &String)| now.get(path).is_some_and(|it| it != hash);
    before.keys().eq(now.keys()) || before.iter().any(edited)
}

impl FoundFiles<'_> {
    /// Whether the words could have meant this file here, had nothing else been taken for it.
    fn would_have(&self, path: &Path) -> bool {
        let root = self.root.into_iter();
        let mut places = root.chain(self.looked_for.iter().map(PathBuf::as_path));
        places.any(|place| path.starts_with(place))
    }

    /// Whether all that is loaded from a directory of plugins is in `then`, and nothing of the rest is missed.
    fn is_part_of(&self, then: &Files, now: &impl Fn(&Path) -> Option<String>) -> bool {
        let Some(root) = self.root else { return false };
        let mut rest = then.keys().filter(|path| !self.files.contains_key(*path));
        self.files.iter().all(|(path, hash)| then.get(path) == Some(hash))
            && rest.all(|path| {
                let resting = self.resting.iter().find(|it| path.starts_with(&it.folder));
                match resting {
                    // Somebody switched it off in the hooks file, and not by what it calls itself.
                    Some(plugin) => then.get(&plugin.manifest) == now(&plugin.manifest).as_ref(),
                    None => is_of_no_plugin(path, root, then) || is_of_the_bridge(path, then),
                }
            })
    }

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

/// Whether a file below `root` was of no plugin that could have been loaded. Agreements of earlier versions were
/// to all code in the directory.
fn is_of_no_plugin(path: &Path, root: &Path, then: &Files) -> bool {
    let Ok(below) = path.strip_prefix(root) else { return false };
    let could_be_loaded = |folder: &&Path| {
        let depth = folder.components().count();
        depth <= DEEPEST_PLUGIN && !folder.iter().any(is_hidden)
    };
    let has_manifest = |folder: &Path| {
        MANIFESTS.iter().any(|name| then.contains_key(&root.join(folder).join(name)))
    };
    !below.ancestors().skip(1).filter(could_be_loaded).any(has_manifest)
}

/// The same for our own bridge, which is never loaded, and may have gone since.
fn is_of_the_bridge(path: &Path, then: &Files) -> bool {
    path.ancestors().skip(1).filter(|folder| folder.ends_with(BRIDGE)).any(|folder| {
        then.contains_key(&folder.join("client.py")) && (is_bridge(folder) || !folder.exists())
    })
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
        let found = FoundFiles {
            files: &files(now),
            root: root.map(Path::new),
            resting: &[],
            place: Path::new(place),
            looked_for: &[],
        };
        // What lies in /a is what is found there; everything else is as it was.
        let is_gone = |path: &Path| path.starts_with("/a") && !there.iter().any(|it| it == path);
        let now = |path: &Path| (!is_gone(path)).then(String::new);
        agreement(&found, &then.iter().collect::<Vec<_>>(), now)
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
    fn of_plugins_less_may_be_loaded_if_nobody_is_missed() {
        let place = tempfile::tempdir().expect("a place");
        let at = |name: &str| place.path().join(name);
        let then: Files = ["a/plugin.yaml", "a/a.py", "b/plugin.yaml", "hookbus/client.py"]
            .into_iter()
            .chain(["hookbus/plugin.yaml", "stray.py", "_off/c/plugin.yaml"])
            .map(|name| (at(name), name.to_owned()))
            .collect();
        let part = |names: &[&str]| -> Files {
            names.iter().map(|name| (at(name), (*name).to_owned())).collect()
        };
        let resting =
            |name: &str| Resting { folder: at(name), manifest: at(name).join("plugin.yaml") };
        let stands = |now: &[&str], off: &[&str]| {
            let resting: Vec<Resting> = off.iter().map(|name| resting(name)).collect();
            let (files, root) = (&part(now), place.path());
            let (root, place, resting) = (Some(root), root, &resting[..]);
            let found = FoundFiles { files, root, resting, place, looked_for: &[] };
            agreement(&found, &[&then], |path| then.get(path).cloned())
        };
        let a = ["a/plugin.yaml", "a/a.py"];
        assert_eq!(stands(&a, &["b"]), Agreement::Given);
        assert_eq!(stands(&["b/plugin.yaml"], &["a"]), Agreement::Given);
        assert_eq!(stands(&[], &["a", "b"]), Agreement::Given);
        assert_eq!(stands(&a, &[]), Agreement::Lapsed, "one is missed");
        assert_eq!(stands(&a[..1], &["b"]), Agreement::Lapsed, "a part of one");
        assert_eq!(
            stands(&["a/plugin.yaml", "a/a.py", "c/plugin.yaml"], &["b"]),
            Agreement::Lapsed
        );
        // A guard that was made to look like the bridge is missed all the same.
        std::fs::create_dir_all(at("b")).expect("a folder");
        for name in ["b/bridge.json", "b/client.py"] {
            std::fs::write(at(name), "").expect("a file");
        }
        assert_eq!(stands(&a, &[]), Agreement::Lapsed);
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
