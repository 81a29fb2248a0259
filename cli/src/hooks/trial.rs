//! `hookbus hooks test`: an event that never happened, put to the hooks. Nothing is recorded.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use hookbus::decide::{
    Asked, Circumstances, Surroundings, conclude, did_you_mean, look_on, plan, run_all,
};
use hookbus::dialect::{Takes, takes};
use hookbus::event::{Agent, Decision, Event, Kind, Wire, event_names, kind_of};
use serde_json::{Map, Value};

use super::{EffectiveHooks, current_caller, sample_events};
use crate::cli::Exit;
use crate::connect;
use crate::output::{self, Paint, sanitize};
use crate::settings::{Format, Settings};

/// Hooks have their own limits; this one is for all of them.
const LIMIT: Duration = Duration::from_mins(5);

const AGENTS: [Agent; 4] = [Agent::Hermes, Agent::Gemini, Agent::Claude, Agent::Codex];

/// `hookbus hooks test`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The agent's name for the event: `pre_tool_call`, `BeforeTool`, …
    event: String,
    /// The tool it is about; a shell unless said.
    #[arg(long, value_name = "TOOL")]
    for_tool: Option<String>,
    /// A JSON object whose fields replace those of the made-up payload, as the agent sends it or as
    /// `hermes hooks test` takes it.
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// Whose event it is.
    #[arg(long, default_value = "hermes")]
    agent: String,
    /// How it came: `shell`, or `bridge` as `hookbus connect` wires it. As Hermes is connected unless said.
    #[arg(long)]
    wire: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let agent = arguments.agent.parse::<Agent>()?;
    let wire = match &arguments.wire {
        Some(wire) => Wire::parse(wire).context("--wire is `shell` or `bridge`")?,
        None if agent == Agent::Hermes && connect::is_bridged(settings) => Wire::Bridge,
        None => Wire::Shell,
    };
    if !has(agent, &arguments.event) {
        return Err(no_such_event(agent, &arguments.event));
    }
    let mut payload = sample_events::payload(agent, &arguments.event, arguments.for_tool.as_deref());
    if let Some(file) = &arguments.payload_file {
        sample_events::replace(agent, &mut payload, &fields_in(file)?);
    }
    let hooks = EffectiveHooks::load(settings);
    hooks.must_be_readable()?;
    let event = sample_events::event(agent, wire, &payload);
    let decision = put(&event, hooks.asked())?;
    match (format, decision) {
        (Format::Json, decision) => {
            output::line(decision.map_or(Value::Null, |decision| decision.to_json()).to_string())?;
        }
        (Format::Text, None) => output::line("no hook has anything to say about that")?,
        (Format::Text, Some(decision)) => show(&event, &decision, Paint(settings.colour))?,
    }
    Ok(Exit::Success)
}

fn fields_in(file: &Path) -> Result<Map<String, Value>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let fields: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    let fields = fields.as_object().cloned();
    fields.with_context(|| format!("{} is no JSON object", file.display()))
}

fn has(agent: Agent, event: &str) -> bool {
    kind_of(agent, event) != Kind::Other || event_names(agent).any(|name| name == event)
}

/// What was probably meant, by whoever asks for an event that the agent does not have.
fn no_such_event(agent: Agent, event: &str) -> anyhow::Error {
    let shown = sanitize(event);
    let own_for = |kind: Kind| {
        let names = event_names(agent).filter(|name| kind_of(agent, name) == kind);
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    if let Some(other) = AGENTS.into_iter().find(|other| has(*other, event)) {
        let own = own_for(kind_of(other, event));
        let own = if own.is_empty() { own } else { format!("; {agent} calls it {own}") };
        return anyhow!("`{shown}` is an event of {other}: add `--agent {other}`{own}");
    }
    if let Some(own) = Kind::parse(event).map(own_for).filter(|own| !own.is_empty()) {
        return anyhow!("`{shown}` is a kind of event; {agent} calls it {own}");
    }
    let missing = format!("{agent} has no event `{shown}`");
    if let Some(name) = did_you_mean(event, event_names(agent)) {
        return anyhow!("{missing}; did you mean `{name}`?");
    }
    for other in AGENTS {
        let same = |name: &&str| name.eq_ignore_ascii_case(event);
        let near = event_names(other).find(same);
        if let Some(name) = near.or_else(|| did_you_mean(event, event_names(other))) {
            return anyhow!("{missing}; did you mean `{name}` with `--agent {other}`?");
        }
    }
    let names: Vec<&str> = event_names(agent).collect();
    anyhow!("{missing}; it has {}", names.join(", "))
}

/// What the hooks make of `event`; none where nobody has a word.
pub(super) fn put(event: &Event, hooks: Asked<'_>) -> Result<Option<Decision>> {
    let started = Instant::now();
    let surroundings = Surroundings { wire: event.wire, ..current_caller() };
    let mut plan = plan(event, hooks);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let spoken = runtime.block_on(async {
        let mut spoken = look_on(&mut plan, event, &surroundings).await;
        spoken.extend(run_all(&plan, event, None, &surroundings, LIMIT).await);
        spoken
    });
    if spoken.is_empty() {
        return Ok(None);
    }
    let can_ask = || surroundings.can_ask();
    let circumstances =
        Circumstances { started, can_ask: &can_ask, waited_for: true, continuations: 0 };
    Ok(Some(conclude(event, &plan, spoken, &circumstances)))
}

fn show(event: &Event, decision: &Decision, paint: Paint) -> Result<()> {
    let row = decision.to_json();
    let looks_on = takes(event) == Takes::NOTHING;
    for verdict in row["verdicts"].as_array().into_iter().flatten() {
        let text = |key: &str| verdict[key].as_str().map(sanitize);
        let reason = text("reason").or_else(|| text("context")).unwrap_or_default();
        let exit =
            verdict["exit"].as_i64().map_or_else(String::new, |code| format!("  exit {code}"));
        let hook = text("hook").unwrap_or_default();
        let word = match (verdict["refused"].is_null(), verdict["failure"].is_null()) {
            (false, _) => "not asked",
            (true, false) if looks_on => "failed",
            (true, true) if looks_on => "looked on",
            (true, _) => verdict["verdict"].as_str().unwrap_or(""),
        };
        output::line(format!(
            "{:<28} {word:<9} {} ms{exit}  {reason}",
            paint.bold(&hook),
            verdict["ms"]
        ))?;
        for (key, word) in [("failure", "failed"), ("note", "note")] {
            if let Some(said) = text(key) {
                output::line(format!("    {}", paint.bad(&format!("{word}: {said}"))))?;
            }
        }
    }
    if looks_on {
        output::line(format!("nothing can be answered at {}", sanitize(&event.name)))?;
        return Ok(());
    }
    output::line(format!("outcome: {}", decision.outcome))?;
    let answer = decision.answer.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    let way = match (event.agent, event.wire) {
        (Agent::Hermes, Wire::Bridge) => " over the bridge",
        (Agent::Hermes, Wire::Shell) => " over the shell wire",
        (Agent::Gemini | Agent::Claude | Agent::Codex, _) => "",
    };
    output::line(format!("the agent would hear{way}: {}", sanitize(&answer)))?;
    Ok(())
}
