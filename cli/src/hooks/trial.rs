//! `hookbus hooks test`: an event that never happened, put to the hooks. Nothing is recorded.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::decide::{Asked, Circumstances, conclude, plan, run_all};
use hookbus::dialect::{Arrival, decode};
use hookbus::event::{Agent, Clock, Decision, Event, EventId, Kind, SystemClock, Wire, kind_of};
use serde_json::{Value, json};

use super::{HooksHere, here};
use crate::cli::Ending;
use crate::output::{self, Paint, harmless};
use crate::settings::{Format, Settings};

/// Hooks have their own limits; this one is for all of them.
const LIMIT: Duration = Duration::from_mins(5);

/// `hookbus hooks test`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The agent's name for the event: `pre_tool_call`, `BeforeTool`, …
    event: String,
    /// The tool it is about.
    #[arg(long, value_name = "TOOL")]
    for_tool: Option<String>,
    /// A JSON object whose fields replace those of the made-up payload.
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// Whose event it is.
    #[arg(long, default_value = "hermes")]
    agent: String,
    /// How it came: `shell`, or `bridge` as `hookbus connect` wires it.
    #[arg(long, default_value = "shell")]
    wire: String,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Ending> {
    let agent = arguments.agent.parse::<Agent>()?;
    let wire = Wire::parse(&arguments.wire).context("--wire is `shell` or `bridge`")?;
    if kind_of(agent, &arguments.event) == Kind::Other {
        bail!("{agent} has no event `{}`; `hookbus log` shows the ones it has", arguments.event);
    }
    let mut payload = made_up(&arguments.event, arguments.for_tool.as_deref());
    if let Some(file) = &arguments.payload_file {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let fields: Value = serde_json::from_str(&text)
            .with_context(|| format!("{} is not JSON", file.display()))?;
        let fields =
            fields.as_object().with_context(|| format!("{} is no JSON object", file.display()))?;
        for (key, value) in fields {
            payload[key] = value.clone();
        }
    }
    let hooks = HooksHere::find(settings);
    let event = event(agent, wire, &payload);
    let decision = put(&event, hooks.asked())?;
    match (format, decision) {
        (Format::Json, decision) => {
            output::line(decision.map_or(Value::Null, |decision| decision.to_json()).to_string())?;
        }
        (Format::Text, None) => output::line("no hook has anything to say about that")?,
        (Format::Text, Some(decision)) => show(&decision, Paint(settings.colour))?,
    }
    Ok(Ending::Yes)
}

/// What an agent might send.
pub(super) fn made_up(event: &str, tool: Option<&str>) -> Value {
    let cwd = std::env::current_dir().unwrap_or_default();
    json!({
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": tool.map(|_| json!({"command": "echo hello", "path": "test.txt"})),
        "session_id": "test-session",
        "cwd": cwd.to_string_lossy(),
        "extra": {},
    })
}

pub(super) fn event(agent: Agent, wire: Wire, payload: &Value) -> Event {
    let at = SystemClock.now();
    let raw = payload.to_string().into_bytes();
    decode(Arrival { id: EventId::mint(at), at, agent, wire, raw, session_hint: None })
}

/// What the hooks make of `event`; none where nobody has a word.
pub(super) fn put(event: &Event, hooks: Asked<'_>) -> Result<Option<Decision>> {
    let started = Instant::now();
    let (plan, surroundings) = (plan(event, hooks), here());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let spoken = runtime.block_on(run_all(&plan, event, None, &surroundings, LIMIT));
    if spoken.is_empty() {
        return Ok(None);
    }
    let can_ask = || surroundings.can_ask();
    let circumstances =
        Circumstances { started, can_ask: &can_ask, waited_for: true, continuations: 0 };
    Ok(Some(conclude(event, &plan, spoken, &circumstances)))
}

fn show(decision: &Decision, paint: Paint) -> Result<()> {
    let row = decision.to_json();
    for verdict in row["verdicts"].as_array().into_iter().flatten() {
        let text = |key: &str| verdict[key].as_str().map(harmless);
        let reason = text("reason").or_else(|| text("context")).unwrap_or_default();
        let exit =
            verdict["exit"].as_i64().map_or_else(String::new, |code| format!("  exit {code}"));
        let hook = text("hook").unwrap_or_default();
        output::line(format!(
            "{:<28} {:<8} {} ms{exit}  {reason}",
            paint.bold(&hook),
            verdict["verdict"].as_str().unwrap_or(""),
            verdict["ms"]
        ))?;
        for (key, word) in [("failure", "failed"), ("note", "note")] {
            if let Some(said) = text(key) {
                output::line(format!("    {}", paint.bad(&format!("{word}: {said}"))))?;
            }
        }
    }
    output::line(format!("outcome: {}", decision.outcome))?;
    let answer = decision.answer.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    output::line(format!("the agent would hear: {}", harmless(&answer)))?;
    Ok(())
}
