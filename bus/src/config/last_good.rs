//! The file in force when a part of `hookbus.yaml` is broken: the new text, with each broken part as it was in the
//! version that was in force before. So a typo in one entry does not switch a guard off. Pure; `active/source.rs`
//! finds the earlier version.
//!
//! Only what is broken is kept: an entry that the user deletes is gone. The result's content is what is in force,
//! so the log records that, the next mistake finds every earlier part in the version before it, and a replay uses
//! the same hooks. Merging the same text with its own result changes nothing.

mod entries;
#[cfg(test)]
mod tests;

use entries::merge_entries;

use super::hooks_file::{HooksFile, IsApproved};
use super::nats::NatsSettings;
use super::parse::{meant_setting, parse_tree, recorded_content, with_content};
use super::problem::{Place, Problem, Reach};
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
    let (Ok(Some(mut root)), Ok(old_root)) = (yaml::parse(text), yaml::parse(&earlier.content))
    else {
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
        nats: earlier.nats.as_ref(),
    };
    let KeptSettings { mut kept, nats } = keep_settings(&mut root, &old, &file.problems);
    kept.extend(merge_entries(&mut root, &old, &broken, file.project.is_some()));
    if kept.is_empty() {
        return file;
    }
    let Ok(mut merged) = parse_tree(&root, empty(), is_approved) else { return file };
    merged.nats = nats.or(merged.nats);
    merged.retention = file.retention;
    merged.problems = problems(file.problems, merged.problems, &kept);
    with_content(merged, recorded_content(root.pairs().unwrap_or_default()))
}

/// How the message of a mistake ends whose place stays as it was.
pub(crate) const KEPT: &str = "; until then it is kept as it was";

/// The version before.
struct OldVersion<'a> {
    root: Option<&'a Node>,
    /// What was broken in it already, and had no earlier form.
    broken: Vec<Place>,
    nats: Option<&'a NatsSettings>,
}

/// The settings that are as they were.
struct KeptSettings {
    kept: Vec<Place>,
    /// No content holds these.
    nats: Option<NatsSettings>,
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
            Problem { message: format!("{}{KEPT}", problem.message), kept: true, ..problem }
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

/// Each broken setting keeps its earlier value, if it had one.
fn keep_settings(root: &mut Node, old: &OldVersion<'_>, problems: &[Problem]) -> KeptSettings {
    let mut result = KeptSettings { kept: Vec::new(), nats: None };
    let Data::Map(pairs) = &mut root.data else { return result };
    for place in broken_places(problems) {
        let Place::Setting(setting) = &place else { continue };
        let is_written = pairs.iter().any(|pair| pair.key == *setting);
        let is_its_own_mistake =
            problems.iter().any(|problem| problem.place == place && problem.about == *setting);
        // A second, mistyped key beside the setting itself.
        if is_written && !is_its_own_mistake {
            continue;
        }
        let Some(index) = pairs.iter().position(|pair| meant_setting(&pair.key) == setting) else {
            continue;
        };
        // What the user wants to have removed is what is written now, or nothing.
        if setting == "retain" {
            continue;
        }
        if setting == "nats" {
            if let Some(nats) = old.nats {
                result.nats = Some(nats.clone());
                pairs.remove(index);
                result.kept.push(place);
            }
            continue;
        }
        let was_broken = old.broken.contains(&place);
        let value = old.root.and_then(|root| pair_of(root, setting)).filter(|_| !was_broken);
        if let Some(old) = value {
            let line = pairs[index].line;
            pairs[index] = Pair { key: old.key.clone(), line, value: at_line(&old.value, line) };
            result.kept.push(place);
        }
    }
    result
}

fn pair_of<'n>(node: &'n Node, key: &str) -> Option<&'n Pair> {
    node.pairs()?.iter().find(|pair| pair.key == key)
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
