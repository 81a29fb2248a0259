//! Where events wait that the log could not take: one small file each, beside the log or, when
//! that place is full or read-only, in the runtime directory. Taken in later, each with its own
//! time and a mark.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::row::{Draft, HooksDraft};
use crate::event::{EventId, Kind, Time};

/// The places to try, in order.
#[derive(Debug, Clone)]
pub struct Spool {
    places: Vec<PathBuf>,
}

/// One event that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) file: PathBuf,
    pub(super) event: Draft,
    pub(super) decision: Option<Draft>,
    pub(super) hooks: Vec<HooksDraft>,
}

impl Spool {
    /// The spool of the log in `home`, with more places in these shared directories.
    pub fn new(home: &Path, shared: &[PathBuf]) -> Self {
        // Several homes may share a runtime directory; each finds only its own.
        let own = hex::encode(home.as_os_str().as_encoded_bytes());
        let own = &own[own.len().saturating_sub(80)..];
        let user = rustix::process::geteuid().as_raw();
        let shared =
            shared.iter().map(|place| place.join(format!("hookbus-spool-{user}")).join(own));
        Self { places: std::iter::once(home.join("spool")).chain(shared).collect() }
    }

    /// Keeps an event, its decision and the hooks that made it; returns where.
    pub fn keep(
        &self,
        event: &Draft,
        decision: Option<&Draft>,
        hooks: &[Arc<HooksDraft>],
    ) -> io::Result<PathBuf> {
        let text = json!({
            "event": to_json(event),
            "decision": decision.map(to_json),
            "hooks": hooks.iter().map(|hooks| hooks.to_json()).collect::<Vec<_>>(),
        })
        .to_string();
        let mut last = io::Error::other("there is no place to spool to");
        for place in &self.places {
            match keep_in(place, event.id, &text) {
                Ok(file) => return Ok(file),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Whether anything waits: a look at directories that are mostly not there.
    pub(super) fn is_empty(&self) -> bool {
        self.files(&["json", TAKEN]).next().is_none()
    }

    /// What waits, oldest first. Each file is set aside under another name before it is read, so
    /// that an event that is spooled again meanwhile (now with its decision) is not thrown away.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        for file in self.files(&["json"]) {
            if let Err(error) = fs::rename(&file, file.with_extension(TAKEN)) {
                tracing::debug!(%error, "somebody else takes this one in");
            }
        }
        let mut files: Vec<PathBuf> = self.files(&[TAKEN]).collect();
        files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        files.into_iter().filter_map(read).collect()
    }

    fn files<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = PathBuf> + 'a {
        let wanted =
            |path: &PathBuf| path.extension().is_some_and(|end| endings.iter().any(|e| end == *e));
        self.places
            .iter()
            .filter(|place| is_ours(place))
            .filter_map(|place| fs::read_dir(place).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(wanted)
    }
}

/// The ending of a file that is being taken in.
const TAKEN: &str = "taken";

/// Written under another name first, so that nobody takes in half of it.
fn keep_in(place: &Path, id: EventId, text: &str) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(place)?;
    if !is_ours(place) || !place.parent().is_some_and(is_ours) {
        return Err(io::Error::other("the spool directory belongs to somebody else"));
    }
    let file = place.join(format!("{id}.json"));
    let half = place.join(format!("{id}.part"));
    let part =
        fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&half);
    let written = part.and_then(|mut part| {
        io::Write::write_all(&mut part, text.as_bytes())?;
        part.sync_all()
    });
    match written.and_then(|()| fs::rename(&half, &file)) {
        Ok(()) => Ok(file),
        Err(error) => {
            if let Err(left) = fs::remove_file(&half) {
                tracing::debug!(%left, "half a spool file stays behind");
            }
            Err(error)
        }
    }
}

/// A directory for temporary files is open to all: what somebody else left there is no event.
fn is_ours(place: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(place)
        .is_ok_and(|dir| dir.is_dir() && dir.uid() == me && dir.mode() & 0o022 == 0)
}

fn read(file: PathBuf) -> Option<Waiting> {
    let value: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
    let event = from_json(value.get("event")?, Marked::Late)?;
    let decision = value.get("decision").and_then(|decision| from_json(decision, Marked::No));
    let hooks = match value.get("hooks") {
        Some(Value::Array(hooks)) => hooks.iter().filter_map(HooksDraft::from_json).collect(),
        // As it was written when a person's own hooks were the only ones.
        Some(hooks) => HooksDraft::from_json(hooks).into_iter().collect(),
        None => Vec::new(),
    };
    Some(Waiting { file, event, decision, hooks })
}

fn to_json(draft: &Draft) -> Value {
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
enum Marked {
    Late,
    No,
}

fn from_json(value: &Value, marked: Marked) -> Option<Draft> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let payload = value.get("payload")?;
    let payload = match (payload.get("text"), payload.get("hex")) {
        (Some(Value::String(text)), _) => text.clone().into_bytes(),
        (_, Some(Value::String(digits))) => hex::decode(digits).ok()?,
        _ => return None,
    };
    let context = match marked {
        Marked::No => text("context"),
        Marked::Late => Some(with_mark(text("context").as_deref())),
    };
    Some(Draft {
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

fn with_mark(context: Option<&str>) -> String {
    let mut fields = match context.and_then(|text| serde_json::from_str(text).ok()) {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => serde_json::Map::new(),
    };
    fields.insert("late".to_owned(), Value::Bool(true));
    Value::Object(fields).to_string()
}
