//! Running an observer's command: launched as a decision hook's would be, with the same input, but
//! only whether it succeeded counts.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::command::{self, Latecomers, Program};
use super::hook::{Action, Command, Hook};
use super::launch;
use super::observer::{Observer, heard};
use super::run::with_ours;
use super::surroundings::Surroundings;
use crate::dialect::Ending;
use crate::event::{BusId, Seq};
use crate::json::read_leniently;
use crate::log::Row;

/// A program that stays up.
pub use tokio::process::Child;

/// What an observer runs with: its own environment, unless the event knows better.
#[derive(Debug, Clone)]
pub struct Place {
    /// Whose event it is.
    pub bus: BusId,
    /// The observer's environment.
    pub env: Arc<[(OsString, OsString)]>,
    /// The how manyth try this is, from 1.
    pub attempt: u32,
    /// Whether the event is re-driven, and not happening now.
    pub replayed: bool,
}

/// Runs the command of `hook` on `row`; the error says why it did not succeed.
pub async fn run_once(
    observer: &Observer,
    hook: &Hook,
    row: &Row,
    place: &Place,
) -> Result<(), String> {
    let Action::Command(command) = &hook.action else { return Err("it has no command".to_owned()) };
    let surroundings = surroundings(observer, row, place);
    if let Some(objection) = observer.objection_in_time(hook, &surroundings).await {
        return Err(objection.why);
    }
    let words = words(observer, hook, command, Some(row), &surroundings)?;
    let input = input(row, place);
    let program =
        Program { words: &words, env: &command.env, surroundings: &surroundings, scratch: None };
    let ran = command::run(&program, input, command.timeout, Latecomers::LeftBehind).await?;
    match ran.ending {
        Ending::Exit(0) => Ok(()),
        Ending::Exit(code) => Err(with_last_line(&format!("exit code {code}"), &ran.stderr)),
        Ending::Signal(signal) => {
            Err(with_last_line(&format!("killed by signal {signal}"), &ran.stderr))
        }
    }
}

/// Starts an observer's long-lived command, with pipes to speak through.
pub fn start(observer: &Observer, env: &[(OsString, OsString)]) -> Result<Child, String> {
    let hook = observer.first();
    let Action::Command(command) = &hook.action else { return Err("it has no command".to_owned()) };
    let surroundings =
        Surroundings { cwd: observer.base.clone(), env: env.to_vec(), ..Surroundings::default() };
    if let Some(why) = observer.objection(hook, &surroundings) {
        return Err(why);
    }
    let words = words(observer, hook, command, None, &surroundings)?;
    let [program, arguments @ ..] = words.as_slice() else {
        return Err("the command is empty".to_owned());
    };
    tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(env.iter().map(|(key, value)| (key, value)))
        .envs(command.env.iter().map(|(key, value)| (key, value)))
        .current_dir(if observer.base.is_dir() { &observer.base } else { Path::new("/") })
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| command::why_not(program, &error))
}

/// The event as a command reads it: the payload, with our object in it.
pub fn input(row: &Row, place: &Place) -> Vec<u8> {
    let (seq, cause) = match &row.origin {
        Some(origin) => (origin.seq, origin.cause),
        None => (row.seq, row.cause),
    };
    let mut ours = json!({
        "id": row.id.to_string(),
        "bus": place.bus.to_string(),
        "seq": seq.as_i64(),
        "time": row.at.to_string(),
        "agent": row.agent,
        "session": row.session,
        "turn": row.turn,
        "name": row.name,
        "kind": row.kind,
        "tool": row.tool,
        "tool_class": row.tool_class,
        "cause": cause.map(Seq::as_i64),
        "attempt": place.attempt,
        "replay": place.replayed,
    });
    if matches!(read_leniently(&row.payload), Ok(Value::Object(_))) {
        return with_ours(&row.payload, &ours);
    }
    // What is no object cannot hold ours.
    match std::str::from_utf8(&row.payload) {
        Ok(text) => ours["payload"] = json!(text),
        Err(_) => ours["payload_base64"] = json!(STANDARD.encode(&row.payload)),
    }
    json!({"hookbus": ours}).to_string().into_bytes()
}

/// The same on one line.
pub fn line(row: &Row, place: &Place) -> Vec<u8> {
    let mut input = input(row, place);
    if input.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        // Proper JSON has line ends between its values only.
        if serde_json::from_slice::<&RawValue>(&input).is_ok() {
            for byte in &mut input {
                if matches!(byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
        } else if let Ok(value) = read_leniently(&input) {
            input = value.to_string().into_bytes();
        }
    }
    input.push(b'\n');
    input
}

fn words(
    observer: &Observer,
    hook: &Hook,
    command: &Command,
    row: Option<&Row>,
    surroundings: &Surroundings,
) -> Result<Vec<OsString>, String> {
    let event = row.and_then(heard);
    launch::argv(command, hook.manner(), event.as_ref(), surroundings, &observer.base)
}

/// The directory of the hooks file, which is what somebody agreed to, and the agent's ids as they were recorded. The
/// row may come from any bus: where its agent stood, and what else was set there, has no say in what runs here.
pub(super) fn surroundings(observer: &Observer, row: &Row, place: &Place) -> Surroundings {
    let mut recorded =
        Surroundings::from_recorded(row.context.as_deref().unwrap_or("{}"), &place.env);
    let ours = [("HOOKBUS_ATTEMPT", place.attempt.to_string())];
    let replay = place.replayed.then(|| ("HOOKBUS_REPLAY", "1".to_owned()));
    for (key, value) in ours.into_iter().chain(replay) {
        recorded.env.retain(|(known, _)| known != key);
        recorded.env.push((key.into(), value.into()));
    }
    Surroundings { cwd: observer.base.clone(), ..recorded }
}

/// What went wrong, with the last thing the program said about it.
fn with_last_line(what: &str, stderr: &[u8]) -> String {
    let stderr = String::from_utf8_lossy(stderr);
    match stderr.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(last) => format!("{what}: {}", last.chars().take(300).collect::<String>()),
        None => what.to_owned(),
    }
}
