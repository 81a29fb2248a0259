//! Which entries of the earlier version stay in force because entries of the new text are broken.
//!
//! A broken entry is replaced by the earlier one of its name. If there is none, it cannot be told which earlier
//! entry it is a version of: then everything stays that was in its list and is not in the new text, until the mistake
//! is corrected. A deletion in the same edit waits that long, and no guard is lost by a guess. What was broken
//! in the version before, with the same text, is a version of nothing.

use serde_json::Value;

use super::{OldVersion, at_line, pair_of};
use crate::config::event_key::EventKey;
use crate::config::problem::Place;
use crate::config::yaml::{Data, Node, Pair};

/// An entry of the version before.
struct OldEntry {
    /// The key that it is under; none in the list form.
    event: Option<String>,
    node: Node,
    json: Value,
    /// Whether it is in the new text too, or stays already.
    is_taken: bool,
}

/// An entry of the new text.
struct NewEntry {
    event: Option<String>,
    index: usize,
    line: usize,
    json: Value,
    state: EntryState,
    /// What is in force instead of it.
    instead: Option<Instead>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryState {
    Good,
    /// It has a mistake.
    Broken,
    /// It had the same mistake in the version before, and no earlier form.
    KnownMistake,
}

/// What is in force instead of a broken entry.
enum Instead {
    /// This one, in its place.
    Here(Node),
    /// One that was under another event, and stays there.
    Elsewhere,
}

/// An earlier entry that is added to the list under its event.
struct Addition {
    event: Option<String>,
    node: Node,
}

/// Puts the earlier entries that stay into the document `root`, and tells for which places of the new text.
/// `broken` are the places of its mistakes.
pub(super) fn merge_entries(
    root: &mut Node,
    old: &OldVersion<'_>,
    broken: &[Place],
    is_project: bool,
) -> Vec<Place> {
    let mut old_entries = old_entries(old);
    let mut new_entries = new_entries(root, old, broken, is_project);
    let events = broken_events(root, old, broken);
    if events.is_empty() && !new_entries.iter().any(NewEntry::is_broken) {
        return Vec::new();
    }
    if is_other_form(root, old.root) && !old_entries.is_empty() {
        return keep_all(root, old, &new_entries, events);
    }
    take_good(&new_entries, &mut old_entries);
    let mut added = replace_by_name(&mut new_entries, &mut old_entries);
    added.extend(keep_lists(&mut new_entries, &mut old_entries));
    let kept_entries = new_entries.iter().filter(|new| new.instead.is_some());
    let mut kept: Vec<Place> = kept_entries.map(NewEntry::place).collect();
    put_in_place(root, new_entries);
    if let Some(line) = events.first().and_then(|first| event_pair(root, first)).map(|it| it.line) {
        let rest = take_all(&mut old_entries, |_| true, line);
        if !rest.is_empty() {
            for event in &events {
                remove_event(root, event);
            }
            kept.extend(events.into_iter().map(Place::Event));
            added.extend(rest);
        }
    }
    for addition in added {
        add(root, addition);
    }
    kept
}

impl NewEntry {
    fn is_broken(&self) -> bool {
        self.state == EntryState::Broken
    }

    fn place(&self) -> Place {
        Place::Entry { event: self.event.clone(), index: self.index }
    }
}

/// Whether an entry is under the event that it was under. In the list form it names that itself.
fn is_in_place(new: &NewEntry, old: &OldEntry) -> bool {
    new.event == old.event
        && (new.event.is_some() || new.json.get("event") == old.json.get("event"))
}

fn has_same_name(new: &NewEntry, old: &OldEntry) -> bool {
    name(&new.json).is_some() && name(&new.json) == name(&old.json)
}

fn name(entry: &Value) -> Option<&str> {
    entry.get("name").and_then(Value::as_str)
}

/// The usable entries of the version before.
fn old_entries(old: &OldVersion<'_>) -> Vec<OldEntry> {
    entries(old.root)
        .filter(|(event, index, _)| !is_broken(&old.broken, event.as_deref(), *index))
        .map(|(event, _, node)| OldEntry {
            event,
            node: node.clone(),
            json: node.to_json(),
            is_taken: false,
        })
        .collect()
}

fn new_entries(
    root: &Node,
    old: &OldVersion<'_>,
    broken: &[Place],
    is_project: bool,
) -> Vec<NewEntry> {
    let mut new_entries: Vec<NewEntry> = entries(Some(root))
        .map(|(event, index, node)| {
            let broken = is_broken(broken, event.as_deref(), index);
            let state = if broken { EntryState::Broken } else { EntryState::Good };
            NewEntry { event, index, line: node.line, json: node.to_json(), state, instead: None }
        })
        // A changed entry of a project needs an approval, whether or not it is broken.
        .filter(|new| !(is_project && new.is_broken() && new.json.is_object()))
        .collect();
    // From the end: of equal entries the first ones get what was there before, see `keep_lists`.
    let known = entries(old.root)
        .filter(|(event, index, _)| is_broken(&old.broken, event.as_deref(), *index));
    for (event, _, node) in known {
        let json = node.to_json();
        let mut left = new_entries.iter_mut().rev().filter(|new| new.is_broken());
        if let Some(new) = left.find(|new| new.event == event && new.json == json) {
            new.state = EntryState::KnownMistake;
        }
    }
    new_entries
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

/// Whether the hooks were under their events and are in a list now, or the other way round. Then nothing is in the
/// place where it was.
fn is_other_form(root: &Node, old_root: Option<&Node>) -> bool {
    let form =
        |root: &Node| pair_of(root, "hooks").map(|hooks| matches!(hooks.value.data, Data::List(_)));
    let (is_list, was_list) = (form(root), old_root.and_then(form));
    is_list.zip(was_list).is_some_and(|(is_list, was_list)| is_list != was_list)
}

/// All hooks are as they were.
fn keep_all(
    root: &mut Node,
    old: &OldVersion<'_>,
    new_entries: &[NewEntry],
    events: Vec<String>,
) -> Vec<Place> {
    let old_hooks = old.root.and_then(|root| pair_of(root, "hooks"));
    let (Some(old_hooks), Some(hooks)) = (old_hooks, hooks_mut(root)) else { return Vec::new() };
    *hooks = at_line(&old_hooks.value, 1).data;
    let broken = new_entries.iter().filter(|new| new.is_broken()).map(NewEntry::place);
    broken.chain(events.into_iter().map(Place::Event)).collect()
}

/// Marks the old entries that are in the new text, unchanged, edited or moved.
fn take_good(new_entries: &[NewEntry], old_entries: &mut [OldEntry]) {
    let has_same_json = |new: &NewEntry, old: &OldEntry| new.json == old.json;
    // Where an entry is broken, the old one may be that entry, even if another event has the same now.
    let may_be_broken =
        |old: &OldEntry| new_entries.iter().any(|new| new.is_broken() && is_in_place(new, old));
    let mut left: Vec<&NewEntry> =
        new_entries.iter().filter(|new| new.state == EntryState::Good).collect();
    for may_have_moved in [false, true] {
        for is_same in [&has_same_json as &dyn Fn(&NewEntry, &OldEntry) -> bool, &has_same_name] {
            left.retain(|new| {
                let found = old_entries.iter_mut().find(|old| {
                    let can_be = is_in_place(new, old) || may_have_moved && !may_be_broken(old);
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

/// Replaces each broken entry by the earlier one of its name, first those that are where they were. Returns the
/// earlier ones that stay under another event.
fn replace_by_name(new_entries: &mut [NewEntry], old_entries: &mut [OldEntry]) -> Vec<Addition> {
    let mut pairings: Vec<(usize, usize)> = Vec::new();
    for (new_index, new) in new_entries.iter().enumerate().filter(|(_, new)| new.is_broken()) {
        let old = old_entries.iter().enumerate();
        let same = old.filter(|(_, old)| !old.is_taken && has_same_name(new, old));
        pairings.extend(same.map(|(old_index, _)| (new_index, old_index)));
    }
    // Between equals the old entry's text decides, not its position: a merge may change that, and the next one
    // has to choose the same.
    pairings.sort_by_cached_key(|(new_index, old_index)| {
        let (new, old) = (&new_entries[*new_index], &old_entries[*old_index]);
        (!is_in_place(new, old), *new_index, old.event.clone(), old.json.to_string())
    });
    let mut elsewhere: Vec<(usize, Addition)> = Vec::new();
    for (new_index, old_index) in pairings {
        let (new, old) = (&mut new_entries[new_index], &mut old_entries[old_index]);
        if new.instead.is_some() || old.is_taken {
            continue;
        }
        old.is_taken = true;
        let node = at_line(&old.node, new.line);
        if old.event == new.event {
            new.instead = Some(Instead::Here(node));
        } else {
            new.instead = Some(Instead::Elsewhere);
            elsewhere.push((new_index, Addition { event: old.event.clone(), node }));
        }
    }
    elsewhere.sort_by_key(|(new_index, _)| *new_index);
    elsewhere.into_iter().map(|(_, addition)| addition).collect()
}

/// Keeps all that was in a list in which a broken entry has no earlier one of its name: in place of such entries, as
/// far as they reach. Returns the earlier entries for which there is no place in the new text.
fn keep_lists(new_entries: &mut [NewEntry], old_entries: &mut [OldEntry]) -> Vec<Addition> {
    let mut added = Vec::new();
    for index in 0..new_entries.len() {
        let new = &new_entries[index];
        if !new.is_broken() || new.instead.is_some() {
            continue;
        }
        let (event, line) = (new.event.clone(), new.line);
        let mut stay = take_all(old_entries, |old| old.event == event, line).into_iter();
        let of_list = new_entries[index..].iter_mut().filter(|new| new.event == event);
        for new in of_list.filter(|new| new.is_broken() && new.instead.is_none()) {
            let earlier = stay.next().map(|earlier| at_line(&earlier.node, new.line));
            new.instead = earlier.map(Instead::Here);
        }
        added.extend(stay);
    }
    added
}

/// Takes all old entries that are left and for which this holds, as if they were written in this line.
fn take_all(
    old_entries: &mut [OldEntry],
    stays: impl Fn(&OldEntry) -> bool,
    line: usize,
) -> Vec<Addition> {
    old_entries
        .iter_mut()
        .filter(|old| !old.is_taken && stays(old))
        .map(|old| {
            old.is_taken = true;
            Addition { event: old.event.clone(), node: at_line(&old.node, line) }
        })
        .collect()
}

fn put_in_place(root: &mut Node, new_entries: Vec<NewEntry>) {
    // From the end: removing an entry moves what is behind it.
    for new in new_entries.into_iter().rev() {
        let Some(items) = list_mut(root, new.event.as_deref()) else { continue };
        match new.instead {
            Some(Instead::Here(node)) => items[new.index] = node,
            Some(Instead::Elsewhere) => drop(items.remove(new.index)),
            None => {}
        }
    }
}

/// The keys that are unknown, misplaced or have no list under them, if anything is written there that the version
/// before did not have.
fn broken_events(root: &Node, old: &OldVersion<'_>, broken: &[Place]) -> Vec<String> {
    let is_new = |event: &&String| {
        let Some(pair) = event_pair(root, event) else { return false };
        let before = old.root.and_then(|root| event_pair(root, event));
        let is_known = old.broken.contains(&Place::Event((*event).clone()))
            && before.is_some_and(|before| before.value.to_json() == pair.value.to_json());
        !is_known && !matches!(&pair.value.data, Data::List(items) if items.is_empty())
    };
    let events = broken.iter().filter_map(|place| match place {
        Place::Event(event) => Some(event),
        Place::File | Place::Setting(_) | Place::Entry { .. } => None,
    });
    events.filter(is_new).cloned().collect()
}

/// What is under this key, among the hooks or, misplaced, beside them.
fn event_pair<'n>(root: &'n Node, event: &str) -> Option<&'n Pair> {
    let hooks = pair_of(root, "hooks");
    hooks.and_then(|hooks| pair_of(&hooks.value, event)).or_else(|| pair_of(root, event))
}

fn remove_event(root: &mut Node, event: &str) {
    if let Some(events) = events_mut(root).filter(|it| it.iter().any(|pair| pair.key == event)) {
        events.retain(|pair| pair.key != event);
    } else if let Data::Map(settings) = &mut root.data {
        settings.retain(|pair| pair.key != event);
    }
}

/// Adds an entry at the end of the list under its event.
fn add(root: &mut Node, Addition { event, node }: Addition) {
    let line = node.line;
    if let Some(items) = list_mut(root, event.as_deref()) {
        items.push(node);
    } else if let (Some(events), Some(event)) = (events_mut(root), event) {
        let value = Node { line, data: Data::List(vec![node]) };
        events.retain(|pair| pair.key != event);
        events.push(Pair { key: event, line, value });
    }
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
