//! The spool: events that could not be appended to the log, one small file each. The files are beside
//! the log or, if that directory is full or read-only, in the runtime directory. They are appended
//! later, each with its original time and the mark `late`.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::row::{HooksSnapshot, RowDraft};
use crate::event::{EventId, Kind, Time};
use crate::sys::process::effective_uid;

/// The spool of one home.
#[derive(Debug, Clone)]
pub struct Spool {
    /// The directories to try, in this order.
    directories: Vec<PathBuf>,
}

/// One event in the spool.
#[derive(Debug)]
pub(super) struct SpooledEvent {
    pub(super) file: PathBuf,
    pub(super) event: RowDraft,
    pub(super) decision: Option<RowDraft>,
    pub(super) hooks: Vec<HooksSnapshot>,
}

impl Spool {
    /// The spool of `home`, with these shared directories to fall back to.
    pub fn new(home: &Path, shared: &[PathBuf]) -> Self {
        // Several homes may share a runtime directory, so each has a directory of its own in it.
        let own = hex::encode(home.as_os_str().as_encoded_bytes());
        let own = &own[own.len().saturating_sub(80)..];
        let user = effective_uid();
        let shared =
            shared.iter().map(|shared| shared.join(format!("hookbus-spool-{user}")).join(own));
        Self { directories: std::iter::once(home.join("spool")).chain(shared).collect() }
    }

    /// Writes an event, its decision and the hooks that made it to a file; returns its path.
    pub fn write(
        &self,
        event: &RowDraft,
        decision: Option<&RowDraft>,
        hooks: &[Arc<HooksSnapshot>],
    ) -> io::Result<PathBuf> {
        let text = json!({
            "event": to_json(event),
            "decision": decision.map(to_json),
            "hooks": hooks.iter().map(|hooks| hooks.to_json()).collect::<Vec<_>>(),
        })
        .to_string();
        let mut last = io::Error::other("there is no spool directory");
        for directory in &self.directories {
            match write_in(directory, event.id, &text) {
                Ok(file) => return Ok(file),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Whether the spool is empty. Cheap: mostly the directories do not exist.
    pub(super) fn is_empty(&self) -> bool {
        self.files(&["json", TAKEN]).next().is_none()
    }

    /// The spooled events, oldest first. Each file is renamed before it is read, so that a newer file
    /// for the same event (now with its decision) is not deleted unread.
    pub(super) fn claim(&self) -> Vec<SpooledEvent> {
        for file in self.files(&["json"]) {
            if let Err(error) = fs::rename(&file, file.with_extension(TAKEN)) {
                tracing::debug!(%error, "another process claimed this spool file");
            }
        }
        let mut files: Vec<PathBuf> = self.files(&[TAKEN]).collect();
        files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        files.into_iter().filter_map(read).collect()
    }

    fn files<'a>(&'a self, extensions: &'a [&str]) -> impl Iterator<Item = PathBuf> + 'a {
        let wanted = |path: &PathBuf| {
            path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
        };
        self.directories
            .iter()
            .filter(|directory| is_ours(directory))
            .filter_map(|directory| fs::read_dir(directory).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(wanted)
    }
}

/// The extension of a file that is being appended to the log.
const TAKEN: &str = "taken";

/// Writes a temporary file and renames it, so that no process reads an incomplete one.
fn write_in(directory: &Path, id: EventId, text: &str) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if !is_ours(directory) || !directory.parent().is_some_and(is_ours) {
        return Err(io::Error::other("another user owns the spool directory or can write to it"));
    }
    let file = directory.join(format!("{id}.json"));
    let temporary = directory.join(format!("{id}.part"));
    let part =
        fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary);
    let written = part.and_then(|mut part| {
        io::Write::write_all(&mut part, text.as_bytes())?;
        part.sync_all()
    });
    match written.and_then(|()| fs::rename(&temporary, &file)) {
        Ok(()) => Ok(file),
        Err(error) => {
            if let Err(left) = fs::remove_file(&temporary) {
                tracing::debug!(%left, "cannot remove an incomplete spool file");
            }
            Err(error)
        }
    }
}

/// Whether we own the directory and no other user can write to it. Any user can create directories in
/// a shared temporary directory; what another user left there is not an event.
fn is_ours(directory: &Path) -> bool {
    let own = effective_uid();
    fs::symlink_metadata(directory)
        .is_ok_and(|found| found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0)
}

fn read(file: PathBuf) -> Option<SpooledEvent> {
    let value: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
    let event = from_json(value.get("event")?, Mark::Late)?;
    let decision = value.get("decision").and_then(|decision| from_json(decision, Mark::None));
    let hooks = match value.get("hooks") {
        Some(Value::Array(hooks)) => hooks.iter().filter_map(HooksSnapshot::from_json).collect(),
        // Early versions wrote one object, because only the user had hooks.
        Some(hooks) => HooksSnapshot::from_json(hooks).into_iter().collect(),
        None => Vec::new(),
    };
    Some(SpooledEvent { file, event, decision, hooks })
}

fn to_json(draft: &RowDraft) -> Value {
    let payload = match std::str::from_utf8(&draft.payload) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"hex": hex::encode(&draft.payload)}),
    };
    json!({
        "id": draft.id.to_string(), "time": draft.at.micros(), "agent": draft.agent,
        "session": draft.session, "turn": draft.turn, "name": draft.name,
        "kind": draft.kind.as_str(), "tool": draft.tool, "tool_class": draft.tool_class,
        "context": draft.context, "payload": payload,
    })
}

#[derive(Clone, Copy)]
enum Mark {
    Late,
    None,
}

fn from_json(value: &Value, mark: Mark) -> Option<RowDraft> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let payload = value.get("payload")?;
    let payload = match (payload.get("text"), payload.get("hex")) {
        (Some(Value::String(text)), _) => text.clone().into_bytes(),
        (_, Some(Value::String(digits))) => hex::decode(digits).ok()?,
        _ => return None,
    };
    let context = match mark {
        Mark::None => text("context"),
        Mark::Late => Some(with_late_mark(text("context").as_deref())),
    };
    Some(RowDraft {
        id: text("id")?.parse().ok()?,
        at: Time::from_micros(value.get("time")?.as_i64()?),
        agent: text("agent")?,
        session: text("session")?,
        turn: text("turn"),
        name: text("name")?,
        kind: Kind::parse(&text("kind")?).unwrap_or(Kind::Other),
        tool: text("tool"),
        tool_class: text("tool_class"),
        context,
        payload,
    })
}

fn with_late_mark(context: Option<&str>) -> String {
    let mut fields = match context.and_then(|text| serde_json::from_str(text).ok()) {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => serde_json::Map::new(),
    };
    fields.insert("late".to_owned(), Value::Bool(true));
    Value::Object(fields).to_string()
}
