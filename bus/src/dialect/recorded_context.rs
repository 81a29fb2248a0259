//! The `context` column of a row: the part of a [`Caller`] that is recorded with an event. A replay or an
//! observer restores a caller from it.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::dialect_of;
use crate::caller::Caller;
use crate::event::{Agent, Wire};
use crate::redact::KnownSecrets;

/// The project's hooks that an event was checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedProject {
    /// The project's hooks file.
    pub file: String,
    /// The hash of its content.
    pub hooks: String,
}

/// Whether this variable is recorded with each event.
pub fn is_recorded_variable(name: &str) -> bool {
    recorded_variables().any(|known| known == name)
}

fn recorded_variables() -> impl Iterator<Item = &'static str> {
    Agent::ALL.into_iter().flat_map(|agent| dialect_of(agent).recorded_variables()).copied()
}

/// The context of an event: working directory, a few ids, the wire, the project's hooks, the session if the payload
/// does not name it, and the directories that paths were compared with.
pub fn record_caller(
    caller: &Caller,
    project: Option<RecordedProject>,
    session: Option<&str>,
    place: Option<Map<String, Value>>,
) -> String {
    let env: Map<String, Value> = recorded_variables()
        .filter_map(|name| Some((name.to_owned(), json!(caller.var(name)?.to_string_lossy()))))
        .collect();
    let mut context = json!({"cwd": caller.cwd.to_string_lossy(), "env": env});
    // The default wire is not recorded.
    if caller.wire != Wire::Shell {
        context["wire"] = json!(caller.wire.as_str());
    }
    if let Some(RecordedProject { file, hooks }) = project {
        context["project"] = json!({"file": file, "hooks": hooks});
    }
    if let Some(session) = session {
        context["session"] = json!(session);
    }
    if let Some(place) = place {
        context["place"] = Value::Object(place);
    }
    context.to_string()
}

/// The caller of a recorded event: its directory and ids, in the environment `now`. Variables of
/// `now` that would have been recorded are left out.
pub fn restore_caller(context: &str, now: &[(OsString, OsString)]) -> Caller {
    let fields: Value = serde_json::from_str(context).unwrap_or_default();
    let recorded = fields.get("env").and_then(Value::as_object).into_iter().flatten();
    // A log may come from another machine: no other recorded variable may change what runs here.
    let recorded = recorded.filter(|(name, _)| is_recorded_variable(name));
    let recorded = recorded.filter_map(|(name, value)| Some((name.into(), value.as_str()?.into())));
    let stays =
        |(name, _): &&(OsString, OsString)| !recorded_variables().any(|known| name == known);
    let cwd = fields.get("cwd").and_then(Value::as_str).unwrap_or("/");
    let env = now.iter().filter(stays).cloned().chain(recorded).collect();
    Caller { cwd: PathBuf::from(cwd), env, pid: None, wire: recorded_wire(context) }
}

/// The wire in a context.
pub fn recorded_wire(context: &str) -> Wire {
    // Most events come by the default wire: do not parse those for it.
    if !context.contains("\"wire\"") {
        return Wire::default();
    }
    let context: Value = serde_json::from_str(context).unwrap_or_default();
    context.get("wire").and_then(Value::as_str).and_then(Wire::parse).unwrap_or_default()
}

/// The context with what was recorded of the payload, if that is not everything.
pub fn mark_recorded(context: &str, choice: &str) -> String {
    let Some(open) = context.strip_suffix('}') else { return context.to_owned() };
    let comma = if open == "{" { "" } else { "," };
    format!("{open}{comma}{}}}", json!({"recorded": choice}).to_string().trim_matches(['{', '}']))
}

/// The context without the secrets that the payload held; none if it holds none of them. The words of the context itself stay:
/// only what comes from the call is looked at.
pub fn redact_context(context: &str, secrets: &KnownSecrets) -> Option<String> {
    let mut fields: Value = serde_json::from_str(context).ok()?;
    let mut changed = false;
    let of_call = fields.as_object_mut()?.iter_mut();
    for (_, value) in of_call.filter(|(name, _)| !["wire", "recorded"].contains(&name.as_str())) {
        if let Value::Object(members) = value {
            for member in members.values_mut() {
                changed |= secrets.redact_value(member);
            }
        } else {
            changed |= secrets.redact_value(value);
        }
    }
    changed.then(|| fields.to_string())
}

/// What was recorded of the payload of a row with this context; none if that is everything.
pub fn recorded_choice(context: &str) -> Option<String> {
    // Most events are recorded whole: do not parse those for it.
    if !context.contains("\"recorded\"") {
        return None;
    }
    let context: Value = serde_json::from_str(context).ok()?;
    Some(context.get("recorded")?.as_str()?.to_owned())
}

/// The project's hooks in a context.
pub fn recorded_project(context: &str) -> Option<RecordedProject> {
    // Most events happen outside of projects with hooks: do not parse those for it.
    if !context.contains("\"project\"") || !context.contains("\"hooks\"") {
        return None;
    }
    let context: Value = serde_json::from_str(context).ok()?;
    let text = |key: &str| Some(context.get("project")?.get(key)?.as_str()?.to_owned());
    Some(RecordedProject { file: text("file")?, hooks: text("hooks")? })
}
