//! The format of a spool file: one JSON object with the event, its decision and the hooks that made it, the
//! home it belongs to, and why it is not in the log.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::places::HomeId;
use crate::event::{BusIdentity, EventId, Kind, Time};
use crate::log::identity;
use crate::log::row::{HooksSnapshot, RowDraft};
use crate::sys::fs::open_without_blocking;

/// A longer file holds no event of ours: a payload has at most 900 MB, and hex digits take twice as much.
const MAX_LENGTH: u64 = 2 << 30;

/// An event to spool.
#[derive(Debug, Clone, Copy)]
pub(in crate::log) struct SpoolEntry<'a> {
    pub(in crate::log) event: &'a RowDraft,
    pub(in crate::log) decision: Option<&'a RowDraft>,
    pub(in crate::log) hooks: &'a [Arc<HooksSnapshot>],
    /// Why it is not in the log.
    pub(in crate::log) why: &'a str,
    /// Who records it.
    pub(in crate::log) identity: &'a BusIdentity,
}

/// An event read from a spool file.
#[derive(Debug)]
pub(in crate::log) struct SpooledEvent {
    pub(in crate::log) file: PathBuf,
    pub(in crate::log) event: RowDraft,
    pub(in crate::log) decision: Option<RowDraft>,
    pub(in crate::log) hooks: Vec<HooksSnapshot>,
    /// None in a file of an earlier version.
    pub(in crate::log) identity: Option<BusIdentity>,
}

/// Why a spool file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::log) enum SpoolFileError {
    /// The file cannot be read now; it may be readable later.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What is in it is not an event.
    #[error("it is not a spooled event: {0}")]
    Content(String),
    /// It belongs to another home.
    #[error("it belongs to another home")]
    OtherHome,
}

impl SpoolEntry<'_> {
    /// An event without a decision and one with it have different names, so that neither replaces the other.
    pub(super) fn file_name(&self) -> String {
        let id = self.event.id;
        if self.decision.is_some() { format!("{id}.json") } else { format!("{id}.event.json") }
    }

    /// Writes the file and waits until it is on disk. The payload is not copied in memory.
    pub(super) fn write_to(&self, path: &Path, home: &HomeId) -> io::Result<()> {
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
        let mut out = BufWriter::new(file);
        write!(out, "{{\"home\":\"{}\",\"why\":{},\"event\":", home.0, json_string(self.why)?)?;
        write_draft(&mut out, self.event)?;
        if let Some(decision) = self.decision {
            out.write_all(b",\"decision\":")?;
            write_draft(&mut out, decision)?;
        }
        let hooks: Vec<Value> = self.hooks.iter().map(|hooks| hooks.to_json()).collect();
        let identity = identity::to_json(self.identity);
        write!(out, ",\"hooks\":{},\"identity\":{identity}}}", Value::Array(hooks))?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

/// The id in the name of a spool file.
pub(super) fn id_in_name(file: &Path) -> Option<EventId> {
    file.file_name()?.to_str()?.split('.').next()?.parse().ok()
}

fn json_string(text: &str) -> io::Result<String> {
    Ok(serde_json::to_string(text)?)
}

fn write_draft(out: &mut impl Write, draft: &RowDraft) -> io::Result<()> {
    write!(out, "{{\"id\":\"{}\",\"time\":{}", draft.id, draft.at.micros())?;
    let texts = [
        ("agent", Some(draft.agent.as_str())),
        ("session", Some(draft.session.as_str())),
        ("turn", draft.turn.as_deref()),
        ("name", Some(draft.name.as_str())),
        ("kind", Some(draft.kind.as_str())),
        ("tool", draft.tool.as_deref()),
        ("tool_class", draft.tool_class.as_deref()),
        ("context", draft.context.as_deref()),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            write!(out, ",\"{key}\":")?;
            serde_json::to_writer(&mut *out, text)?;
        }
    }
    out.write_all(b",\"payload\":{")?;
    if let Ok(text) = std::str::from_utf8(&draft.payload) {
        out.write_all(b"\"text\":")?;
        serde_json::to_writer(&mut *out, text)?;
    } else {
        out.write_all(b"\"hex\":\"")?;
        for bytes in draft.payload.chunks(4096) {
            out.write_all(hex::encode(bytes).as_bytes())?;
        }
        out.write_all(b"\"")?;
    }
    out.write_all(b"}}")
}

/// Reads a spool file; `home` is the home it has to name, if any.
pub(super) fn read(file: PathBuf, home: Option<&HomeId>) -> Result<SpooledEvent, SpoolFileError> {
    let content = |why: &str| SpoolFileError::Content(why.to_owned());
    // A FIFO in place of the file must not block us.
    let mut open = open_without_blocking(&file)?;
    let metadata = open.metadata()?;
    if !metadata.is_file() {
        return Err(content("it is not a regular file"));
    }
    if metadata.len() > MAX_LENGTH {
        return Err(content("it is longer than any event"));
    }
    let mut bytes = Vec::new();
    // The first byte tells most files that are none of ours, before all of it is in memory.
    (&mut open).take(1).read_to_end(&mut bytes)?;
    if bytes != b"{" {
        return Err(content("it is not a JSON object"));
    }
    open.take(MAX_LENGTH).read_to_end(&mut bytes)?;
    let parsed = serde_json::from_slice(&bytes);
    drop(bytes);
    let Value::Object(mut fields) = parsed.map_err(|error| content(&error.to_string()))? else {
        return Err(content("it is not a JSON object"));
    };
    if home.is_some_and(|home| fields.get("home").and_then(Value::as_str) != Some(&home.0)) {
        return Err(SpoolFileError::OtherHome);
    }
    let event = fields.get_mut("event").and_then(|event| from_json(event, Mark::Late));
    let event = event.ok_or_else(|| content("its `event` is incomplete"))?;
    if event.id == event.id.of_decision() {
        return Err(content("the id of its `event` is that of a decision"));
    }
    let decision = match fields.get_mut("decision") {
        None | Some(Value::Null) => None,
        Some(decision) => {
            let decision = from_json(decision, Mark::None);
            let fits = |it: &RowDraft| it.id == event.id.of_decision() && it.kind == Kind::Decision;
            let decision = decision.filter(fits);
            Some(decision.ok_or_else(|| content("its `decision` is not about its `event`"))?)
        }
    };
    Ok(SpooledEvent {
        file,
        event: event.fit(),
        decision: decision.map(RowDraft::fit),
        hooks: hooks(&fields),
        identity: fields.get("identity").and_then(identity::from_json),
    })
}

/// Why the event in this file is not in the log, if the file says so.
pub(super) fn reason(file: &Path) -> Option<String> {
    let fields: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    fields.get("why").and_then(Value::as_str).map(str::to_owned)
}

fn hooks(fields: &Map<String, Value>) -> Vec<HooksSnapshot> {
    match fields.get("hooks") {
        Some(Value::Array(hooks)) => hooks.iter().filter_map(HooksSnapshot::from_json).collect(),
        // Early versions wrote one object, because only the user had hooks.
        Some(hooks) => HooksSnapshot::from_json(hooks).into_iter().collect(),
        None => Vec::new(),
    }
}

#[derive(Clone, Copy)]
enum Mark {
    Late,
    None,
}

/// Takes the texts out of `value` instead of copying them: a payload may be large.
fn from_json(value: &mut Value, mark: Mark) -> Option<RowDraft> {
    let time = value.get("time")?.as_i64()?;
    let mut payload = value.get_mut("payload")?.take();
    let payload = match (payload.get_mut("text").map(Value::take), payload.get("hex")) {
        (Some(Value::String(text)), _) => text.into_bytes(),
        (_, Some(Value::String(digits))) => hex::decode(digits).ok()?,
        _ => return None,
    };
    let mut text = |key: &str| match value.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        Some(_) | None => None,
    };
    let context = text("context");
    let context = match mark {
        Mark::None => context,
        Mark::Late => Some(with_late_mark(context.as_deref())),
    };
    Some(RowDraft {
        id: text("id")?.parse().ok()?,
        at: Time::from_micros(time),
        agent: text("agent")?,
        session: text("session")?,
        turn: text("turn"),
        name: text("name")?,
        kind: Kind::parse(&text("kind")?).unwrap_or(Kind::Other),
        tool: text("tool"),
        tool_class: text("tool_class"),
        context,
        payload: payload.into(),
    })
}

fn with_late_mark(context: Option<&str>) -> String {
    let mut fields = match context.and_then(|text| serde_json::from_str(text).ok()) {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => Map::new(),
    };
    fields.insert("late".to_owned(), Value::Bool(true));
    Value::Object(fields).to_string()
}
