//! Rows about the bus itself: approvals, changed settings, daemon starts, held sessions, what was pruned, signed checkpoints. Their agent is `hookbus`, they belong to
//! no session, and no hook decides about them; observers, the relay and `hookbus log` get them like all others.

use serde_json::{Map, Value, json};

use super::proof::SignedCheckpoint;
use super::row::RowDraft;
use crate::event::{EventId, Kind, Time};

/// The agent in the rows of the bus itself.
pub(super) const BUS_AGENT: &str = "hookbus";

/// Something that happened to the bus itself.
#[derive(Debug, Clone, PartialEq)]
pub enum BusRow {
    /// The user approved a hook.
    HooksApproved(RecordedApproval),
    /// The user revoked an approval.
    HooksRevoked(RecordedApproval),
    /// Settings outside of `hooks:` changed.
    SettingsChanged(SettingsChange),
    /// A daemon has started.
    DaemonStarted(DaemonStart),
    /// The user keeps a session from being pruned.
    SessionHeld(SessionHold),
    /// The user allows a session to be pruned again.
    SessionReleased(SessionHold),
    /// The last row was signed.
    LogCheckpoint(Box<SignedCheckpoint>),
}

/// An approval of an entry in a hooks file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedApproval {
    /// The hook's name, if it is known: an approval can outlive its entry.
    pub hook: Option<String>,
    /// The event key that the entry is under.
    pub event: String,
    /// What the entry runs, as written.
    pub command: String,
    /// The hooks file that the entry is in.
    pub file: String,
    /// Whether that is a project's file.
    pub of_project: bool,
    /// SHA-256 of the entry's text, in hex.
    pub entry: String,
    /// The files that the approval covers, each with its hash.
    pub files: Vec<(String, String)>,
    /// How the user agreed: `asked`, `--accept-hooks`, `hooks_auto_accept` or `connect`.
    pub how: Option<String>,
}

/// Which settings of a hooks file changed.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsChange {
    /// The file.
    pub file: String,
    /// The changed settings.
    pub changes: Vec<ChangedSetting>,
}

/// One changed setting.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedSetting {
    /// Its key, such as `on_failure` or `nats.url`.
    pub key: String,
    /// Its values before and after; none if the setting is a secret.
    pub values: Option<(Value, Value)>,
}

/// How a daemon was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonStart {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// The machine or container that it runs on.
    pub host: String,
    /// Whether a hook started it in the background.
    pub background: bool,
}

/// A session that the user holds or releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHold {
    /// The session (a complete id).
    pub session: String,
    /// Why, in the words of the user.
    pub note: Option<String>,
    /// Who did it: `user@host`.
    pub by: String,
}

impl BusRow {
    /// Our kind of event, which is its name too.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::HooksApproved(_) => Kind::HooksApproved,
            Self::HooksRevoked(_) => Kind::HooksRevoked,
            Self::SettingsChanged(_) => Kind::SettingsChanged,
            Self::DaemonStarted(_) => Kind::DaemonStarted,
            Self::SessionHeld(_) => Kind::SessionHeld,
            Self::SessionReleased(_) => Kind::SessionReleased,
            Self::LogCheckpoint(_) => Kind::LogCheckpoint,
        }
    }

    /// The row, to be appended.
    pub fn to_draft(&self, at: Time) -> RowDraft {
        bus_draft(self.kind(), &self.to_json(), at)
    }

    fn to_json(&self) -> Value {
        match self {
            Self::HooksApproved(approval) | Self::HooksRevoked(approval) => approval.to_json(),
            Self::SettingsChanged(SettingsChange { file, changes }) => {
                let changes: Vec<Value> = changes.iter().map(ChangedSetting::to_json).collect();
                json!({"file": file, "changes": changes})
            }
            Self::DaemonStarted(DaemonStart { version, pid, host, background }) => {
                let how = if *background { "background" } else { "foreground" };
                json!({"version": version, "pid": pid, "host": host, "how": how})
            }
            Self::SessionHeld(hold) | Self::SessionReleased(hold) => hold.to_json(),
            Self::LogCheckpoint(checkpoint) => checkpoint.to_json(),
        }
    }
}

/// A row of the bus itself with this payload.
pub(super) fn bus_draft(kind: Kind, payload: &Value, at: Time) -> RowDraft {
    RowDraft {
        id: EventId::mint(at),
        at,
        agent: BUS_AGENT.to_owned(),
        session: String::new(),
        turn: None,
        name: kind.as_str().to_owned(),
        kind,
        tool: None,
        tool_class: None,
        context: None,
        payload: payload.to_string().into_bytes().into(),
    }
}

impl RecordedApproval {
    fn to_json(&self) -> Value {
        let files: Vec<Value> =
            self.files.iter().map(|(path, hash)| json!({"path": path, "hash": hash})).collect();
        let mut row = Map::new();
        for (key, value) in [
            ("hook", json!(self.hook)),
            ("event", json!(self.event)),
            ("command", json!(self.command)),
            ("file", json!(self.file)),
            ("project", json!(self.of_project)),
            ("entry", json!(self.entry)),
            ("files", json!(files)),
            ("how", json!(self.how)),
        ] {
            if !value.is_null() {
                row.insert(key.to_owned(), value);
            }
        }
        Value::Object(row)
    }

    /// Reads the payload of such a row.
    pub(super) fn from_json(row: &Value) -> Option<Self> {
        let text = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
        let file = |row: &Value| Some((text(row, "path")?, text(row, "hash")?));
        Some(Self {
            hook: text(row, "hook"),
            event: text(row, "event")?,
            command: text(row, "command")?,
            file: text(row, "file")?,
            of_project: row["project"] == json!(true),
            entry: text(row, "entry").unwrap_or_default(),
            files: row["files"].as_array().into_iter().flatten().filter_map(file).collect(),
            how: text(row, "how"),
        })
    }
}

impl SessionHold {
    fn to_json(&self) -> Value {
        let mut row = json!({"session": self.session, "by": self.by});
        if let Some(note) = &self.note {
            row["note"] = json!(note);
        }
        row
    }

    /// Reads the payload of such a row.
    pub(super) fn from_json(row: &Value) -> Option<Self> {
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        Some(Self {
            session: text("session")?,
            note: text("note"),
            by: text("by").unwrap_or_default(),
        })
    }
}

impl ChangedSetting {
    fn to_json(&self) -> Value {
        match &self.values {
            Some((before, after)) => json!({"key": self.key, "before": before, "after": after}),
            None => json!({"key": self.key}),
        }
    }
}

/// The settings that differ. The keys of mappings are compared one by one: `nats.url`, `plugins.enabled`.
pub(super) fn changed_settings(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<ChangedSetting> {
    let (before, after) = (flatten(before), flatten(after));
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    let value = |side: &Map<String, Value>, key: &str| side.get(key).cloned().unwrap_or_default();
    keys.into_iter()
        .map(|key| (key, value(&before, key), value(&after, key)))
        .filter(|(_, before, after)| before != after)
        .map(|(key, before, after)| ChangedSetting {
            key: key.clone(),
            values: Some((before, after)),
        })
        .collect()
}

fn flatten(settings: &Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (key, value) in settings {
        match value {
            Value::Object(inner) => {
                flat.extend(inner.iter().map(|(name, it)| (format!("{key}.{name}"), it.clone())));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                flat.insert(key.clone(), value.clone());
            }
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn only_the_settings_that_differ_are_named() {
        let before = settings(&json!({"trust": "home", "nats": {"url": "a", "password": "(set)"}}));
        let after =
            settings(&json!({"on_failure": "block", "nats": {"url": "b", "password": "(set)"}}));
        let changes: Vec<Value> =
            changed_settings(&before, &after).iter().map(ChangedSetting::to_json).collect();
        assert_eq!(
            json!(changes),
            json!([
                {"key": "nats.url", "before": "a", "after": "b"},
                {"key": "on_failure", "before": null, "after": "block"},
                {"key": "trust", "before": "home", "after": null},
            ])
        );
        assert_eq!(changed_settings(&after, &after), []);
    }

    #[test]
    fn an_approval_is_read_back_as_it_was_recorded() {
        let approval = RecordedApproval {
            hook: Some("guard".to_owned()),
            event: "tool.before".to_owned(),
            command: "./guard.sh".to_owned(),
            file: "/h/hookbus.yaml".to_owned(),
            of_project: false,
            entry: "digest".to_owned(),
            files: vec![("/h/guard.sh".to_owned(), "hash".to_owned())],
            how: None,
        };
        assert_eq!(RecordedApproval::from_json(&approval.to_json()), Some(approval));
    }
}
