//! The file in force when a part of `hookbus.yaml` is broken: the new text, with each broken part as it was in the
//! version that was in force before. So a typo in one entry does not switch a guard off. Pure; `active/source.rs`
//! finds the earlier version.
//!
//! Only what is broken is kept: an entry that the user deletes is gone. The result's content is what is in force,
//! so the log records that, the next mistake finds every earlier part in the version before it, and a replay uses
//! the same hooks.

use serde_json::Value;

use super::event_key::EventKey;
use super::hooks_file::{HooksFile, IsApproved};
use super::nats::NatsSettings;
use super::parse::{meant_setting, parse_tree, recorded_content, with_content};
use super::problem::{Place, Problem, Reach, did_you_mean};
use super::yaml::{self, Data, Node, Pair};

/// `file`, which was read from `text`, with everything that is broken in it as it was in `earlier`.
pub(super) fn with_last_good(
    text: &str,
    file: HooksFile,
    earlier: &HooksFile,
    is_approved: IsApproved<'_>,
) -> HooksFile {
    let broken = broken_places(&file.problems);
    if broken.is_empty() {
        return file;
    }
    let (Ok(Some(root)), Ok(old_root)) = (yaml::parse(text), yaml::parse(&earlier.content)) else {
        return file;
    };
    let empty = || match &file.project {
        Some(project) => HooksFile::empty_project(project),
        None => HooksFile::empty(&file.base),
    };
    // Not `earlier.problems`: those are of the text that was on disk, and this is about what was in force.
    let old_problems = old_root.as_ref().map(|root| parse_tree(root, empty(), is_approved));
    let old_problems = match old_problems.transpose() {
        Ok(parsed) => parsed.map(|parsed| parsed.problems).unwrap_or_default(),
        Err(_) => return file,
    };
    let old = OldVersion {
        root: old_root.as_ref(),
        broken: broken_places(&old_problems),
        nats: &earlier.nats,
    };
    let mut merge = Merge::new(root, old, &file);
    for place in &broken {
        match place {
            Place::Setting(setting) => merge.keep_setting(setting),
            Place::Event(key) => merge.keep_event(key),
            Place::Entry { .. } | Place::File => {}
        }
    }
    merge.keep_entries();
    let Merge { root, kept, nats, .. } = merge;
    if kept.is_empty() {
        return file;
    }
    let Ok(mut merged) = parse_tree(&root, empty(), is_approved) else { return file };
    merged.nats = nats.or(merged.nats);
    merged.problems = problems(file.problems, merged.problems, &kept);
    with_content(merged, recorded_content(root.pairs().unwrap_or_default()))
}

/// The places of all mistakes, each once.
fn broken_places(problems: &[Problem]) -> Vec<Place> {
    let mut places = Vec::new();
    for problem in problems.iter().filter(|problem| problem.reach == Reach::Entry) {
        if !places.contains(&problem.place) {
            places.push(problem.place.clone());
        }
    }
    places
}

/// The problems of the new text, those at kept places marked, and what is wrong with the result only.
fn problems(written: Vec<Problem>, merged: Vec<Problem>, kept: &[Place]) -> Vec<Problem> {
    let mut all: Vec<Problem> = written
        .into_iter()
        .map(|problem| {
            if problem.reach != Reach::Entry || !kept.contains(&problem.place) {
                return problem;
            }
            let message = format!("{}; until then it is kept as it was", problem.message);
            Problem { message, kept: true, ..problem }
        })
        .collect();
    for problem in merged.into_iter().filter(|problem| problem.reach == Reach::Entry) {
        let is_known = |known: &Problem| known.line == problem.line;
        if !all.iter().any(is_known) {
            all.push(problem);
        }
    }
    all.sort_by_key(|problem| problem.line);
    all
}

/// The version before.
struct OldVersion<'a> {
    root: Option<&'a Node>,
    broken: Vec<Place>,
    nats: &'a Option<NatsSettings>,
}

/// An entry of the version before.
struct OldEntry {
    /// The key that it is under; none in the list form.
    event: Option<String>,
    index: usize,
    node: Node,
    json: Value,
    /// Whether it is in the new text too, or was already kept.
    is_taken: bool,
}

/// An entry of the new text.
struct NewEntry {
    event: Option<String>,
    index: usize,
    line: usize,
    json: Value,
}

struct Merge<'a> {
    root: Node,
    old: OldVersion<'a>,
    old_entries: Vec<OldEntry>,
    broken_entries: Vec<NewEntry>,
    file: &'a HooksFile,
    /// The places that are as they were.
    kept: Vec<Place>,
    /// The NATS settings that are as they were. No content holds them.
    nats: Option<NatsSettings>,
}

impl<'a> Merge<'a> {
    fn new(root: Node, old: OldVersion<'a>, file: &'a HooksFile) -> Self {
        let old_entries = entries(old.root)
            .filter(|(event, index, _)| !is_broken(&old.broken, event.as_deref(), *index))
            .map(|(event, index, node)| {
                let json = node.to_json();
                OldEntry { event, index, node: node.clone(), json, is_taken: false }
            })
            .collect();
        let new_broken = broken_places(&file.problems);
        let (mut good, mut broken_entries) = (Vec::new(), Vec::new());
        for (event, index, node) in entries(Some(&root)) {
            let (line, json) = (node.line, node.to_json());
            let broken = is_broken(&new_broken, event.as_deref(), index);
            let entry = NewEntry { event, index, line, json };
            if !broken {
                good.push(entry);
            } else if file.project.is_none() || !entry.json.is_object() {
                // A changed entry of a project needs an approval, whether or not it is broken.
                broken_entries.push(entry);
            }
        }
        let (kept, nats) = (Vec::new(), None);
        let mut merge = Self { root, old, old_entries, broken_entries, file, kept, nats };
        merge.take(&good);
        merge
    }

    /// Marks the old entries that are in the new text, unchanged, edited or moved.
    fn take(&mut self, good: &[NewEntry]) {
        let same_json = |new: &NewEntry, old: &OldEntry| new.json == old.json;
        let same_name = |new: &NewEntry, old: &OldEntry| {
            name(&new.json).is_some() && name(&new.json) == name(&old.json)
        };
        let Self { old_entries, broken_entries, .. } = self;
        // An entry that is broken where it was has not moved, even if another event has one of the same name.
        let is_broken_there = |old: &OldEntry| {
            broken_entries.iter().any(|new| new.event == old.event && same_name(new, old))
        };
        let mut left: Vec<&NewEntry> = good.iter().collect();
        for is_in_place in [true, false] {
            for is_same in [&same_json as &dyn Fn(&NewEntry, &OldEntry) -> bool, &same_name] {
                left.retain(|new| {
                    let found = old_entries.iter_mut().find(|old| {
                        let can_be =
                            new.event == old.event || !is_in_place && !is_broken_there(old);
                        !old.is_taken && is_same(new, old) && can_be
                    });
                    let is_found = found.is_some();
                    if let Some(old) = found {
                        old.is_taken = true;
                    }
                    !is_found
                });
            }
        }
    }

    /// A setting keeps its earlier value, if it had one.
    fn keep_setting(&mut self, setting: &str) {
        let Data::Map(pairs) = &mut self.root.data else { return };
        let is_written = pairs.iter().any(|pair| pair.key == setting);
        let is_its_own_mistake = self.file.problems.iter().any(|problem| {
            problem.place == Place::Setting(setting.to_owned()) && problem.about == setting
        });
        // A second, mistyped key beside the setting itself.
        if is_written && !is_its_own_mistake {
            return;
        }
        let Some(index) = pairs.iter().position(|pair| meant_setting(&pair.key) == setting) else {
            return;
        };
        if setting == "nats" {
            if self.old.nats.is_some() {
                self.nats.clone_from(self.old.nats);
                pairs.remove(index);
                self.kept.push(Place::Setting(setting.to_owned()));
            }
            return;
        }
        let was_broken = self.old.broken.contains(&Place::Setting(setting.to_owned()));
        let old = self.old.root.and_then(|root| pair_of(root, setting)).filter(|_| !was_broken);
        if let Some(old) = old {
            let line = pairs[index].line;
            pairs[index] = Pair { key: old.key.clone(), line, value: at_line(&old.value, line) };
            self.kept.push(Place::Setting(setting.to_owned()));
        }
    }

    /// What was under a key that is unknown now, or has no list under it any more, stays.
    fn keep_event(&mut self, key: &str) {
        let under_hooks = pair_of(&self.root, "hooks").and_then(|hooks| pair_of(&hooks.value, key));
        let Some(pair) = under_hooks.or_else(|| pair_of(&self.root, key)).cloned() else { return };
        let is_nested = under_hooks.is_some();
        let written: Vec<Value> = match &pair.value.data {
            Data::List(items) => items.iter().map(Node::to_json).collect(),
            Data::Map(_) | Data::Scalar(_) => vec![pair.value.to_json()],
        };
        if written.is_empty() {
            return;
        }
        let meant = self.meant_event(key);
        let stays = |old: &OldEntry| {
            !old.is_taken
                && old.event.is_some()
                && (old.event == meant || written.iter().any(|json| is_same_hook(json, &old.json)))
        };
        let mut kept = Vec::new();
        for old in self.old_entries.iter_mut().filter(|old| stays(old)) {
            old.is_taken = true;
            kept.extend(old.event.clone().zip(Some(at_line(&old.node, pair.line))));
        }
        if kept.is_empty() {
            return;
        }
        let Data::Map(settings) = &mut self.root.data else { return };
        if !is_nested {
            settings.retain(|pair| pair.key != key);
        }
        let hooks = settings.iter_mut().find(|pair| pair.key == "hooks");
        let Some(Data::Map(events)) = hooks.map(|hooks| &mut hooks.value.data) else { return };
        if is_nested {
            events.retain(|pair| pair.key != key);
        }
        for (event, node) in kept {
            insert(events, event, node);
        }
        self.kept.push(Place::Event(key.to_owned()));
    }

    /// The key of the version before that a broken key stands for: itself, else the most similar one that is not
    /// in the new text, else the only one that is not.
    fn meant_event(&self, key: &str) -> Option<String> {
        if EventKey::parse(key).is_ok() {
            return Some(key.to_owned());
        }
        let hooks = pair_of(&self.root, "hooks");
        let is_gone =
            |event: &&str| hooks.is_none_or(|hooks| pair_of(&hooks.value, event).is_none());
        let mut gone: Vec<&str> = self
            .old_entries
            .iter()
            .filter_map(|old| old.event.as_deref())
            .filter(is_gone)
            .collect();
        gone.dedup();
        let only = if let [only] = gone.as_slice() { Some(*only) } else { None };
        did_you_mean(key, gone.iter().copied()).or(only).map(str::to_owned)
    }

    /// Each broken entry is replaced by the earlier entry that it is most probably a version of.
    fn keep_entries(&mut self) {
        let broken = std::mem::take(&mut self.broken_entries);
        let mut pairings: Vec<(u64, usize, usize)> = Vec::new();
        for (new_index, new) in broken.iter().enumerate() {
            for (old_index, old) in self.old_entries.iter().enumerate().filter(|it| !it.1.is_taken)
            {
                let likeness = likeness(new, old).map(|score| (score, new_index, old_index));
                pairings.extend(likeness);
            }
        }
        pairings.sort_by_key(|(score, new, old)| (std::cmp::Reverse(*score), *new, *old));
        let mut is_replaced = vec![false; broken.len()];
        let mut elsewhere: Vec<(&NewEntry, String, Node)> = Vec::new();
        for (_, new_index, old_index) in pairings {
            let (new, old) = (&broken[new_index], &mut self.old_entries[old_index]);
            if is_replaced[new_index] || old.is_taken {
                continue;
            }
            (is_replaced[new_index], old.is_taken) = (true, true);
            let node = at_line(&old.node, new.line);
            let event = new.event.clone();
            self.kept.push(Place::Entry { event, index: new.index });
            match &old.event {
                Some(event) if old.event != new.event => {
                    elsewhere.push((new, event.clone(), node));
                }
                Some(_) | None => {
                    if let Some(item) = list_mut(&mut self.root, new.event.as_deref())
                        .and_then(|items| items.get_mut(new.index))
                    {
                        *item = node;
                    }
                }
            }
        }
        // Last, and from the end: it moves what is behind.
        elsewhere.sort_by_key(|(new, ..)| std::cmp::Reverse(new.index));
        for (new, event, node) in elsewhere {
            if let Some(items) = list_mut(&mut self.root, new.event.as_deref()) {
                items.remove(new.index);
            }
            if let Some(events) = events_mut(&mut self.root) {
                insert(events, event, node);
            }
        }
    }
}

/// All entries of a document, with the key that they are under (none in the list form) and their index there.
fn entries(root: Option<&Node>) -> impl Iterator<Item = (Option<String>, usize, &Node)> {
    let hooks = root.and_then(|root| pair_of(root, "hooks")).map(|hooks| &hooks.value);
    let lists: Vec<(Option<String>, &Vec<Node>)> = match hooks.map(|hooks| &hooks.data) {
        Some(Data::List(items)) => vec![(None, items)],
        Some(Data::Map(events)) => events
            .iter()
            .filter(|pair| EventKey::parse(&pair.key).is_ok())
            .filter_map(|pair| match &pair.value.data {
                Data::List(items) => Some((Some(pair.key.clone()), items)),
                Data::Map(_) | Data::Scalar(_) => None,
            })
            .collect(),
        Some(Data::Scalar(_)) | None => Vec::new(),
    };
    lists.into_iter().flat_map(|(event, items)| {
        items.iter().enumerate().map(move |(index, node)| (event.clone(), index, node))
    })
}

fn is_broken(places: &[Place], event: Option<&str>, index: usize) -> bool {
    places.iter().any(|place| match place {
        Place::Entry { event: of, index: at } => of.as_deref() == event && *at == index,
        Place::File | Place::Setting(_) | Place::Event(_) => false,
    })
}

/// How probable it is that `new` is a version of `old`; none if it is another hook. The name counts most, then
/// what both have in common, then the position.
fn likeness(new: &NewEntry, old: &OldEntry) -> Option<u64> {
    let is_same_list = new.event == old.event;
    let is_same_name = name(&new.json).is_some() && name(&new.json) == name(&old.json);
    // In the list form an entry names its event itself, so it cannot go under a key and back.
    if new.event.is_some() != old.event.is_some() || !is_same_list && !is_same_name {
        return None;
    }
    let (old_values, new_values) = (values(&old.json), values(&new.json));
    let common = old_values.iter().filter(|value| new_values.contains(value)).count();
    let has_another_name = !is_same_name && name(&new.json).is_some() && name(&old.json).is_some();
    let is_renamed = has_another_name && common > 0 && common * 2 >= old_values.len();
    let is_same_place = new.index == old.index;
    // The position alone counts only for an entry that says nothing else about which one it is.
    let is_only_there = common == 0 && is_same_place && name(&new.json).is_none();
    if has_another_name && !is_renamed || !is_same_name && common == 0 && !is_only_there {
        return None;
    }
    let score = |holds: bool, weight: u64| if holds { weight } else { 0 };
    Some(
        score(is_same_name, 1_000_000)
            + score(is_same_list, 500_000)
            + 10 * (common as u64).min(1000)
            + score(is_same_place, 5),
    )
}

/// Whether both are versions of one hook, wherever they are.
fn is_same_hook(new: &Value, old: &Value) -> bool {
    match (name(new), name(old)) {
        (Some(new), Some(old)) => new == old,
        (None, _) | (_, None) => {
            let (old, new) = (values(old), values(new));
            let common = old.iter().filter(|value| new.contains(value)).count();
            common > 0 && common * 2 >= old.len()
        }
    }
}

fn name(entry: &Value) -> Option<&str> {
    entry.get("name").and_then(Value::as_str)
}

/// Everything that an entry says beside its name: each value with the path to it.
fn values(entry: &Value) -> Vec<(String, &Value)> {
    fn collect<'v>(value: &'v Value, path: &str, found: &mut Vec<(String, &'v Value)>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in
                    fields.iter().filter(|(key, _)| !(path.is_empty() && *key == "name"))
                {
                    collect(value, &format!("{path}/{key}"), found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, path, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                found.push((path.to_owned(), value));
            }
        }
    }
    let mut found = Vec::new();
    collect(entry, "", &mut found);
    found
}

fn pair_of<'n>(node: &'n Node, key: &str) -> Option<&'n Pair> {
    node.pairs()?.iter().find(|pair| pair.key == key)
}

fn hooks_mut(root: &mut Node) -> Option<&mut Data> {
    let Data::Map(settings) = &mut root.data else { return None };
    settings.iter_mut().find(|pair| pair.key == "hooks").map(|hooks| &mut hooks.value.data)
}

fn events_mut(root: &mut Node) -> Option<&mut Vec<Pair>> {
    match hooks_mut(root)? {
        Data::Map(events) => Some(events),
        Data::Scalar(_) | Data::List(_) => None,
    }
}

/// The list under this key, or in the list form.
fn list_mut<'n>(root: &'n mut Node, event: Option<&str>) -> Option<&'n mut Vec<Node>> {
    let list = match (event, hooks_mut(root)?) {
        (None, list) => list,
        (Some(event), Data::Map(events)) => {
            &mut events.iter_mut().find(|pair| pair.key == event)?.value.data
        }
        (Some(_), Data::Scalar(_) | Data::List(_)) => return None,
    };
    match list {
        Data::List(items) => Some(items),
        Data::Scalar(_) | Data::Map(_) => None,
    }
}

/// Adds an entry at the end of the list under its key.
fn insert(events: &mut Vec<Pair>, event: String, node: Node) {
    let known = events.iter_mut().find(|pair| pair.key == event);
    match known.map(|pair| &mut pair.value.data) {
        Some(Data::List(items)) => items.push(node),
        Some(data) => *data = Data::List(vec![node]),
        None => {
            let line = node.line;
            let value = Node { line, data: Data::List(vec![node]) };
            events.push(Pair { key: event, line, value });
        }
    }
}

/// The node as if all of it were written in this line: its own lines are those of another text.
fn at_line(node: &Node, line: usize) -> Node {
    let data = match &node.data {
        Data::Scalar(value) => Data::Scalar(value.clone()),
        Data::List(items) => Data::List(items.iter().map(|item| at_line(item, line)).collect()),
        Data::Map(pairs) => Data::Map(
            pairs
                .iter()
                .map(|pair| Pair { key: pair.key.clone(), line, value: at_line(&pair.value, line) })
                .collect(),
        ),
    };
    Node { line, data }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::config::Hook;

    fn parse(text: &str) -> HooksFile {
        HooksFile::parse(text, Path::new("/")).expect("a file")
    }

    fn merge(text: &str, earlier: &str) -> HooksFile {
        parse(text).with_last_good(text, &parse(earlier), &|_, _| true)
    }

    /// The names of the hooks in force; a broken one has a `!` before it.
    fn names(file: &HooksFile) -> Vec<String> {
        let shown = |hook: &Hook| {
            let mark = if hook.is_broken() { "!" } else { "" };
            format!("{mark}{}", hook.name)
        };
        file.hooks.iter().map(shown).collect()
    }

    const A: &str = "{ name: a, rule: { when: { command: rm }, block: A } }";
    const B: &str = "{ name: b, rule: { when: { command: dd }, block: B } }";

    fn file(lists: &[(&str, &[&str])]) -> String {
        let list = |(event, entries): &(&str, &[&str])| {
            let entries: Vec<String> =
                entries.iter().map(|entry| format!("    - {entry}")).collect();
            format!("  {event}:\n{}", entries.join("\n"))
        };
        format!("hooks:\n{}\n", lists.iter().map(list).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn a_broken_entry_is_as_it_was_and_the_rest_is_as_written() {
        let before = file(&[("tool.before", &[A, B])]);
        let after =
            file(&[("tool.before", &[&A.replace("block: A", "blokc: A"), &B.replace("dd", "mv")])]);
        let merged = merge(&after, &before);
        assert_eq!(names(&merged), ["a", "b"]);
        assert_eq!(merged.hooks[0].written, parse(&before).hooks[0].written);
        assert_eq!(merged.hooks[1].written, parse(&after).hooks[1].written);
        assert_eq!((merged.hooks[0].line, merged.hooks[1].line), (3, 4));
        let problem = &merged.problems[0];
        assert!(problem.kept && problem.message.ends_with("kept as it was"), "{problem}");
        assert_eq!((problem.about.as_str(), problem.line), ("a", 3));
    }

    #[test]
    fn the_content_is_what_is_in_force_and_stays_the_same_when_merged_again() {
        let before = file(&[
            ("tool.before", &[A, B]),
            ("turn.start", &["rule: { context: \"it's [\\\"1\\\"]\" }"]),
        ]);
        for (from, to) in [
            ("block: A", "blokc: A"),
            ("tool.before", "tool.befor"),
            ("turn.start:\n    -", "turn.start:\n     "),
        ] {
            let after = before.replace(from, to);
            let once = merge(&after, &before);
            assert_eq!(once.hooks.len(), 3, "{after}");
            let again = merge(&after, &once.content);
            assert_eq!((&again.content, &again.hash), (&once.content, &once.hash), "{after}");
            let alone = parse(&once.content);
            assert_eq!((alone.problems.len(), &alone.hash), (0, &once.hash), "{}", once.content);
            let written = |file: &HooksFile| {
                file.hooks.iter().map(|hook| hook.written.clone()).collect::<Vec<_>>()
            };
            assert_eq!(written(&alone), written(&once));
        }
    }

    #[test]
    fn the_version_before_may_itself_have_kept_something() {
        let before = parse(&file(&[("tool.before", &[A, B])]));
        let broken = file(&[("tool.before", &[&A.replace("block", "blokc"), B])]);
        let once = parse(&broken).with_last_good(&broken, &before, &|_, _| true);
        let worse =
            file(&[("tool.before", &[&A.replace("block", "blokc"), &B.replace("dd", "(")])]);
        let twice = parse(&worse).with_last_good(&worse, &once, &|_, _| true);
        assert_eq!(names(&twice), ["a", "b"]);
        assert_eq!(twice.hooks[0].written, before.hooks[0].written);
    }

    #[test]
    fn a_deleted_entry_is_gone() {
        let before = file(&[("tool.before", &[A, B])]);
        let broken = B.replace("block", "blokc");
        assert_eq!(names(&merge(&file(&[("tool.before", &[&broken])]), &before)), ["b"]);
        assert_eq!(names(&merge(&file(&[("tool.before", &[B])]), &before)), ["b"]);
    }

    #[test]
    fn another_hook_is_not_replaced_by_one_that_was_deleted() {
        let before = file(&[("tool.before", &[A])]);
        let other = "{ name: c, tool: shel, rule: { block: C } }";
        assert_eq!(names(&merge(&file(&[("tool.before", &[other])]), &before)), ["!c"]);
        assert_eq!(names(&merge(&file(&[("tool.before", &[A, other])]), &before)), ["a", "!c"]);
    }

    #[test]
    fn unnamed_entries_are_recognized_by_what_they_say_and_then_by_their_position() {
        let (one, two) = (
            "rule: { when: { command: rm }, block: one }",
            "rule: { when: { path: x }, block: two }",
        );
        let before = file(&[("tool.before", &[one, two])]);
        let kept = |entries: &[&str]| {
            let merged = merge(&file(&[("tool.before", entries)]), &before);
            merged.hooks.into_iter().map(|hook| hook.written).collect::<Vec<_>>()
        };
        let was = parse(&before).hooks.into_iter().map(|hook| hook.written).collect::<Vec<_>>();
        // The first one is deleted, and the second one broken.
        assert_eq!(kept(&[&two.replace("path: x", "path: '('")]), [was[1].clone()]);
        // Nothing of it is as it was.
        assert_eq!(kept(&[one, "rule: { whne: { path: y }, block: other }"]), was);
        assert_eq!(kept(&[one, "nonsense"]), was);
        // Its name is misspelled.
        let named = file(&[("tool.before", &[A, B])]);
        let merged = merge(&file(&[("tool.before", &[A, &B.replace("name", "nmae")])]), &named);
        assert_eq!(names(&merged), ["a", "b"]);
    }

    #[test]
    fn the_entries_under_a_broken_key_stay() {
        let before = file(&[("tool.before", &[A]), ("turn.start", &[B])]);
        for after in [
            file(&[("tool.befor", &[A]), ("turn.start", &[B])]),
            file(&[("tool.before", &[A]), ("turn.strat", &[&B.replace("dd", "mv")])]),
            format!("hooks:\n  tool.before: {A}\n  turn.start: [{B}]\n"),
            format!("hooks:\n  tool.before: later\n  turn.start: [{B}]\n"),
            format!("hooks:\n  turn.start: [{B}]\ntool.before: [{A}]\n"),
        ] {
            let merged = merge(&after, &before);
            let mut found = names(&merged);
            found.sort();
            assert_eq!(found, ["a", "b"], "{after}");
            assert!(merged.problems.iter().all(|problem| problem.kept), "{after}");
        }
        // One of two entries was moved under a mistyped key.
        let merged = merge(
            &file(&[("tool.before", &[B]), ("tool.befor", &[A])]),
            &file(&[("tool.before", &[A, B])]),
        );
        assert_eq!(names(&merged), ["b", "a"]);
    }

    #[test]
    fn a_broken_entry_is_kept_although_another_event_has_one_of_its_name() {
        let merged = merge(
            &file(&[("pre_tool_call", &[&A.replace("rule", "rul")]), ("tool.before", &[A])]),
            &file(&[("pre_tool_call", &[B, A])]),
        );
        let hooks: Vec<_> =
            merged.hooks.iter().map(|hook| (hook.on.to_string(), hook.is_broken())).collect();
        assert_eq!(hooks, [("pre_tool_call".to_owned(), false), ("tool.before".to_owned(), false)]);
    }

    #[test]
    fn an_entry_that_moved_to_another_event_and_broke_stays_where_it_was() {
        let merged = merge(
            &file(&[("tool.before", &[B]), ("pre_tool_call", &[&A.replace("rule", "rul")])]),
            &file(&[("tool.before", &[A, B])]),
        );
        let hooks: Vec<_> =
            merged.hooks.iter().map(|hook| (hook.on.to_string(), hook.name.as_str())).collect();
        assert_eq!(hooks, [("tool.before".to_owned(), "b"), ("tool.before".to_owned(), "a")]);
    }

    #[test]
    fn a_broken_setting_keeps_its_earlier_value() {
        let rest = file(&[("tool.before", &[A])]);
        let before = format!(
            "on_failure: block\ntrust: home\nmax_continuations: 3\nplugins: {{ enabled: [x] }}\n{rest}"
        );
        let after =
            format!("on_failur: allow\ntrust: hoem\nmax_continuations: many\nplugins: [x]\n{rest}");
        let merged = merge(&after, &before);
        assert_eq!(merged.on_failure, crate::event::OnFailure::Block);
        assert_eq!(merged.trust, crate::config::Trust::Home);
        assert_eq!((merged.max_continuations, merged.plugins.enabled.len()), (3, 1));
        assert_eq!(merged.problems.iter().filter(|problem| problem.kept).count(), 4);
        assert_eq!(names(&merged), ["a"]);
    }

    #[test]
    fn without_an_earlier_value_the_readable_rest_counts_and_failures_block() {
        let rest = file(&[("tool.before", &[A])]);
        for setting in ["on_failur: allow", "on_failure: alow"] {
            let merged = merge(&format!("{setting}\n{rest}"), "");
            assert_eq!(merged.on_failure, crate::event::OnFailure::Block, "{setting}");
            assert_eq!((names(&merged).len(), merged.problems.len()), (1, 1));
            assert!(!merged.problems[0].kept);
        }
    }

    #[test]
    fn nats_settings_stay_in_memory_and_out_of_the_content() {
        let rest = file(&[("tool.before", &[A])]);
        let before = parse(&format!("nats: {{ url: nats://a, token: hush }}\n{rest}"));
        let after = format!("nats: {{ urk: nats://a, token: hush }}\n{rest}");
        let merged = parse(&after).with_last_good(&after, &before, &|_, _| true);
        assert_eq!(merged.nats, before.nats);
        assert!(!merged.content.contains("hush"), "{}", merged.content);
    }

    #[test]
    fn the_list_form_keeps_its_entries() {
        let before = "hooks:\n  - { event: pre_tool_call, command: a }\n  - { event: post_tool_call, command: b }\n";
        for (from, to) in
            [("command: a", "comand: a"), ("event: pre_tool_call", "event: pre_tool_cal")]
        {
            let merged = merge(&before.replace(from, to), before);
            assert_eq!(names(&merged), ["a", "b"], "{to}");
        }
    }

    /// An entry, with mistakes if `broken`.
    fn any_entry(broken: bool) -> impl Strategy<Value = String> {
        let mut parts = vec!["tool: shell", "on_failure: block", "agent: gemini", "timeout: 3"];
        let mut actions = vec![
            "name: a, rule: { block: x }",
            "name: b, command: x",
            "command: y",
            "rule: { context: z }",
        ];
        if broken {
            parts.extend(["nmae: c", "tool: shel", "on_failure: maybe", "matcher: '('"]);
            actions.extend([
                "name: a, rule: { blokc: x }",
                "name: b, comand: x",
                "rule: { context: [] }",
                "name: c",
            ]);
        }
        let parts = prop::collection::btree_set(prop::sample::select(parts), 0..3);
        (prop::sample::select(actions), parts).prop_map(|(action, parts)| {
            let mut keys: Vec<&str> = Vec::new();
            let parts = parts.into_iter().filter(|part| {
                let key = part.split(':').next().unwrap_or_default();
                let is_new = !keys.contains(&key);
                keys.push(key);
                is_new
            });
            let parts: Vec<&str> = std::iter::once(action).chain(parts).collect();
            format!("{{ {} }}", parts.join(", "))
        })
    }

    /// A file, with mistakes if `broken`.
    fn any_file(broken: bool) -> impl Strategy<Value = String> {
        let mut keys = vec!["tool.before", "turn.start", "pre_tool_call"];
        let mut settings = vec!["", "trust: home\n", "on_failure: block\n"];
        if broken {
            keys.push("tool.befor");
            settings.extend(["on_failure: blok\n", "trsut: home\n", "turn.end: []\n"]);
        }
        let entries = prop::collection::vec(any_entry(broken), 0..4);
        let lists = prop::collection::btree_map(prop::sample::select(keys), entries, 0..4);
        (lists, prop::sample::select(settings)).prop_map(|(lists, setting)| {
            let list = |(event, entries): (&str, Vec<String>)| {
                format!("  {event}: [{}]\n", entries.join(", "))
            };
            let lists: Vec<String> = lists.into_iter().map(list).collect();
            format!("{setting}hooks:\n  session.end: []\n{}", lists.concat())
        })
    }

    proptest! {
        #[test]
        fn a_good_file_merged_with_anything_is_itself(text in any_file(false), earlier in any_file(true)) {
            let (file, merged) = (parse(&text), merge(&text, &earlier));
            prop_assert!(!file.has_mistakes(), "{:?}", file.problems);
            prop_assert_eq!((merged.content, merged.problems), (file.content, file.problems));
        }

        #[test]
        fn a_second_merge_loses_no_hook(text in any_file(true), earlier in any_file(true)) {
            let once = merge(&text, &earlier);
            let again = merge(&text, &once.content);
            for hook in once.hooks.iter().filter(|hook| !hook.is_broken()) {
                let is_it = |it: &Hook| (&it.written, &it.on) == (&hook.written, &hook.on);
                // The same command may be there already, in another entry.
                prop_assert!(again.hooks.iter().any(is_it) || hook.is_command(), "{}", hook.written);
            }
        }

        #[test]
        fn no_good_entry_of_the_new_text_is_lost(text in any_file(true), earlier in any_file(true)) {
            let (file, merged) = (parse(&text), merge(&text, &earlier));
            let broken = broken_places(&file.problems);
            for hook in file.hooks.iter().filter(|hook| !broken.contains(&hook.place)) {
                let is_it = |it: &Hook| (&it.written, &it.on) == (&hook.written, &hook.on);
                // The same command may be there already, in a kept entry.
                prop_assert!(merged.hooks.iter().any(is_it) || hook.is_command(), "{}", hook.written);
            }
        }

        #[test]
        fn against_a_good_version_no_entry_that_is_still_there_by_name_stays_broken(
            text in any_file(true), earlier in any_file(false),
        ) {
            let (merged, old) = (merge(&text, &earlier), parse(&earlier));
            for hook in merged.hooks.iter().filter(|hook| hook.is_broken() && hook.written.contains("\"name\"")) {
                let was_there = old.hooks.iter().filter(|it| (&it.name, &it.on) == (&hook.name, &hook.on)).count();
                let is_there = merged.hooks.iter().filter(|it| (&it.name, &it.on) == (&hook.name, &hook.on)).count();
                // As often as it was there before, it is in force; a further one of the name is new.
                prop_assert!(was_there < is_there, "{} {}", hook.name, merged.content);
            }
        }
    }
}
