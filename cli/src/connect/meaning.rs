//! What a connection did to a YAML file by its meaning: hooks that left, hooks that came, one name in two
//! lists. Where the lines of the file tell too little, this is taken back.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::bridge::NAME;
use super::files::Change;

use super::hooks_move::entries;
use super::yaml_edit::{self, CannotEdit, Step};

/// What a shell hook of Hermes can say.
const HERMES_KEYS: [&str; 3] = ["command", "matcher", "timeout"];

/// A hook and its event.
pub(super) type Entry = (String, Value);

/// What an edit of ours means.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Deeds {
    /// Hooks that it took out.
    pub(super) taken: Vec<Entry>,
    /// Hooks that it put in.
    pub(super) put: Vec<Entry>,
    /// Whether it enabled the bridge.
    enabled: bool,
    /// Whether it lifted a ban on the bridge.
    lifted: bool,
}

impl Deeds {
    /// What `change` means.
    pub(super) fn of(change: &Change) -> Result<Self, CannotEdit> {
        let before = yaml_edit::read(change.before.as_deref().unwrap_or(""))?;
        let after = yaml_edit::read(&change.after)?;
        let (was, is) = (hooks(&before), hooks(&after));
        Ok(Self {
            taken: less(&was, &is),
            put: less(&is, &was),
            enabled: !lists(&before, "enabled") && lists(&after, "enabled"),
            lifted: lists(&before, "disabled") && !lists(&after, "disabled"),
        })
    }

    /// Those of `taken` that `now` does not have.
    pub(super) fn missing(&self, now: &Value) -> Vec<Entry> {
        less(&self.taken, &hooks(now))
    }

    /// `now` with all of it taken back, as text.
    pub(super) fn take_back(&self, now: &str) -> Result<String, CannotEdit> {
        let mut leaving = self.put.clone();
        let mut paths = Vec::new();
        let file = yaml_edit::read(now)?;
        for (event, place, entry) in entries(&file) {
            if let Some(found) =
                leaving.iter().position(|one| *one == (event.clone(), entry.clone()))
            {
                leaving.remove(found);
                paths.push(vec![key("hooks"), key(&event), Step::Item(place)]);
            }
        }
        paths.extend(self.enabled.then(|| place_in(&file, "enabled")).flatten());
        let mut text = yaml_edit::remove(now, &paths)?;
        for (event, entry) in self.missing(&file) {
            // JSON is YAML, and quotes what needs it.
            text = yaml_edit::append_under(&text, "hooks", &event, &entry.to_string())?;
        }
        if self.lifted {
            text = yaml_edit::add_to_list(&text, "plugins", "disabled", NAME)?;
        }
        if self.is_taken_back(&text, now) {
            Ok(text)
        } else {
            Err(CannotEdit::Unusual("hooks".to_owned()))
        }
    }

    /// Whether `text` is `now` with this taken back and nothing else changed.
    pub(super) fn is_taken_back(&self, text: &str, now: &str) -> bool {
        let (Ok(text), Ok(now)) = (yaml_edit::read(text), yaml_edit::read(now)) else {
            return false;
        };
        let mut expected = less(&hooks(&now), &self.put);
        expected.extend(self.missing(&now));
        let same_hooks =
            less(&expected, &hooks(&text)).is_empty() && less(&hooks(&text), &expected).is_empty();
        let enabled = lists(&now, "enabled") && !self.enabled;
        let banned = lists(&now, "disabled") || self.lifted;
        same_hooks
            && (lists(&text, "enabled"), lists(&text, "disabled")) == (enabled, banned)
            && without_ours(text) == without_ours(now)
    }
}

/// What becomes of moved hooks that somebody has worked on in `hookbus.yaml` since: one that Hermes can
/// run returns as it is now, any other stays where it was changed. Never in both places.
pub(super) fn follow_edits(
    config: &mut Deeds,
    moved: &mut Deeds,
    now: &Value,
    remarks: &mut Vec<String>,
) {
    let gone = less(&moved.put, &hooks(now));
    for entry in gone {
        let (event, was) = &entry;
        let command = was["command"].as_str().unwrap_or_default();
        let fresh = less(&hooks(now), &moved.put);
        let edited =
            fresh.into_iter().find(|(on, new)| on == event && new["command"] == was["command"]);
        let place = config.taken.iter().position(|taken| *taken == entry);
        moved.put.retain(|put| *put != entry);
        let (Some((_, new)), Some(place)) = (edited, place) else {
            remarks.push(format!(
                "`{command}` on {event} is not in hookbus.yaml any more; it returns to Hermes as it was"
            ));
            continue;
        };
        let known = |key: &String| HERMES_KEYS.contains(&key.as_str());
        if new.as_object().is_some_and(|fields| fields.keys().all(known)) {
            remarks.push(format!(
                "`{command}` on {event} was changed in hookbus.yaml; it returns to Hermes as it is now"
            ));
            config.taken[place].1.clone_from(&new);
            moved.put.push((event.clone(), new));
        } else {
            remarks.push(format!(
                "`{command}` on {event} was changed in hookbus.yaml in a way that Hermes does not know; it stays there, and Hermes does not run it any more. Hermes had it as {was}"
            ));
            config.taken.remove(place);
        }
    }
}

/// Hooks as somebody would write them into Hermes' configuration.
pub(super) fn written(entries: &[Entry]) -> String {
    let line = |(event, entry): &Entry| format!("hooks:\n  {event}:\n    - {entry}\n");
    entries.iter().map(line).collect()
}

/// What `change` means, with the file's name if it cannot be told.
pub(super) fn deeds(change: Option<&Change>) -> Result<Deeds> {
    change.map_or_else(
        || Ok(Deeds::default()),
        |change| {
            Deeds::of(change).with_context(|| {
                format!("what was done to {} cannot be read", change.path.display())
            })
        },
    )
}

fn hooks(file: &Value) -> Vec<Entry> {
    entries(file).into_iter().map(|(event, _, entry)| (event, entry)).collect()
}

/// What `some` has and `others` lack, counted.
fn less(some: &[Entry], others: &[Entry]) -> Vec<Entry> {
    let mut others = others.to_vec();
    let mut left = Vec::new();
    for entry in some {
        match others.iter().position(|other| other == entry) {
            Some(place) => drop(others.remove(place)),
            None => left.push(entry.clone()),
        }
    }
    left
}

fn key(word: &str) -> Step {
    Step::Key(word.to_owned())
}

/// Where `plugins: <list>:` names us.
pub(super) fn place_in(file: &Value, list: &str) -> Option<Vec<Step>> {
    let names = file.get("plugins")?.get(list)?.as_array()?;
    let place = names.iter().position(|name| name == NAME)?;
    Some(vec![key("plugins"), key(list), Step::Item(place)])
}

fn lists(file: &Value, list: &str) -> bool {
    place_in(file, list).is_some()
}

/// The file without anything that we may have touched, and without what is empty.
fn without_ours(mut file: Value) -> Value {
    let empty = |value: &Value| value.is_null() || *value == json!({}) || *value == json!([]);
    if let Some(Value::Object(plugins)) = file.get_mut("plugins") {
        for list in ["enabled", "disabled"] {
            if let Some(Value::Array(names)) = plugins.get_mut(list) {
                names.retain(|name| name != NAME);
            }
        }
        plugins.retain(|_, value| !empty(value));
    }
    if let Some(Value::Object(events)) = file.get_mut("hooks") {
        events.retain(|_, value| !value.is_array() && !empty(value));
    }
    if let Value::Object(file) = &mut file {
        file.retain(|_, value| !empty(value));
    }
    if file.is_null() { json!({}) } else { file }
}
