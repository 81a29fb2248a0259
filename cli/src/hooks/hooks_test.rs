//! `hookbus hooks test`: runs the hooks on a sample event or on a call that the user names. Nothing is recorded.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use hookbus::active::HookSets;
use hookbus::caller::Caller;
use hookbus::config::did_you_mean;
use hookbus::decide::{DecisionContext, conclude, explain_hooks, notify_for_test, plan, run_all};
use hookbus::dialect::{Capabilities, can_be_event_of, dialect_of, event_names, kind_of};
use hookbus::event::{Agent, Decision, Event, Kind, Outcome, Wire};
use hookbus::rule::{Facts, Place, ShellLines};
use serde_json::{Map, Value};

use super::effective::{EffectiveHooks, current_caller};
use super::sample_events;
use super::test_call::{TestCall, event_before_tool};
use super::test_report::{self, Listed};
use crate::cli::Exit;
use crate::connect;
use crate::output::{self, Paint, pad, sanitize};
use crate::settings::{Format, Settings};

/// For all hooks together; each also has its own timeout.
const TIMEOUT: Duration = Duration::from_mins(5);

const EXAMPLES: &str = "\
Examples:
  hookbus hooks test --command 'git push --force'
  hookbus hooks test --path /etc/hosts --agent gemini
  hookbus hooks test pre_tool_call
  hookbus hooks test BeforeTool --agent gemini --for-tool write_file
  hookbus hooks test pre_tool_call --payload-file call.json";

/// The arguments of `hookbus hooks test`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Name of the event in the agent's own words, such as `pre_tool_call` or `BeforeTool`
    ///
    /// With --command, --path or --url it is the event before a tool call.
    #[arg(value_name = "EVENT", required_unless_present_any = ["command", "path", "url"])]
    event: Option<String>,
    /// Test a call of the shell with this line; `-` reads it from stdin
    #[arg(long, value_name = "LINE", group = "call", allow_hyphen_values = true)]
    command: Option<String>,
    /// Test a write to this file; with --for-tool, what that tool does with it
    #[arg(long, value_name = "FILE", group = "call")]
    path: Option<String>,
    /// Test a fetch of this address
    #[arg(long, value_name = "URL", group = "call")]
    url: Option<String>,
    /// Working directory of the agent [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// List every hook, also those that do not match, and why
    #[arg(long)]
    all: bool,
    /// Agent that sends the event: hermes, gemini, claude or codex
    #[arg(long, value_name = "AGENT", default_value = "hermes")]
    agent: String,
    /// Tool that the event is about [default: the agent's shell tool]
    #[arg(long, value_name = "TOOL")]
    for_tool: Option<String>,
    /// JSON file whose fields replace those of the sample payload
    ///
    /// The object has the shape that the agent sends, or that `hermes hooks test` takes.
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// How the event arrives: shell, or bridge [default: as Hermes is connected]
    ///
    /// `bridge` is the plugin that `hookbus connect hermes` installs; it takes more kinds of answers
    /// than a shell hook.
    #[arg(long, value_name = "WIRE")]
    wire: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let agent = arguments.agent.parse::<Agent>()?;
    let wire = match &arguments.wire {
        Some(wire) => Wire::parse(wire).context("--wire takes `shell` or `bridge`")?,
        None if agent == Agent::Hermes && connect::is_bridged(settings) => Wire::Bridge,
        None => Wire::Shell,
    };
    let call = arguments.call()?;
    let fields = arguments.payload_file.as_deref().map(read_fields).transpose()?;
    if let Some(cwd) = &arguments.cwd {
        // The project's hooks, the payload and the programs that run all go by it.
        std::env::set_current_dir(cwd)
            .with_context(|| format!("cannot work in {}", cwd.display()))?;
    }
    let name = match &arguments.event {
        Some(name) => name.as_str(),
        None => event_before_tool(agent)?,
    };
    if !can_be_event_of(agent, name) {
        return Err(unknown_event(agent, name));
    }
    let tool = match (&arguments.for_tool, &call) {
        (Some(tool), _) => Some(tool.as_str()),
        (None, Some(call)) => Some(call.tool(agent)?),
        (None, None) => None,
    };
    let mut payload = sample_events::payload(agent, name, tool);
    if let Some(call) = &call {
        payload["tool_input"] = call.input(agent);
    }
    if let Some(fields) = &fields {
        sample_events::replace_fields(agent, &mut payload, fields);
    }
    let hooks = EffectiveHooks::load(settings);
    hooks.ensure_readable()?;
    let event = sample_events::event(agent, wire, &payload);
    let decision = run_hooks(&event, &hooks.hook_sets())?;
    let paint = Paint(settings.colour);
    if call.is_some() || arguments.all {
        let listed = if arguments.all { Listed::All } else { Listed::Near };
        report(&event, &hooks.hook_sets(), decision.as_ref(), listed, format, paint)?;
        return Ok(Exit::Success);
    }
    match (format, decision) {
        (Format::Json, decision) => {
            output::line(decision.map_or(Value::Null, |decision| decision.to_json()).to_string())?;
        }
        (Format::Text, None) => output::line("no hook matches this event")?,
        (Format::Text, Some(decision)) => print(&event, &decision, paint)?,
    }
    Ok(Exit::Success)
}

impl Arguments {
    /// The call to test; none for a sample event.
    fn call(&self) -> Result<Option<TestCall>> {
        Ok(match (&self.command, &self.path, &self.url) {
            (Some(line), _, _) => Some(TestCall::command(line)?),
            (None, Some(path), _) => Some(TestCall::Path(path.clone())),
            (None, None, Some(url)) => Some(TestCall::Url(url.clone())),
            (None, None, None) => None,
        })
    }
}

/// Tells what each hook makes of the event, also those that do not match.
fn report(
    event: &Event,
    hooks: &HookSets,
    decision: Option<&Decision>,
    listed: Listed,
    format: Format,
    paint: Paint,
) -> Result<()> {
    let caller = Caller { wire: event.wire, ..current_caller() };
    let place = Place::of_call(event, &caller, &hooks.own.file.base);
    let lines = ShellLines::default();
    let reports = explain_hooks(hooks, &Facts::new(event, &place, &lines));
    if format == Format::Json {
        output::line(test_report::to_json(event, decision, &reports).to_string())?;
        return Ok(());
    }
    output::line(test_report::title(event, paint))?;
    if let Some(decision) = decision {
        test_report::print_verdicts(event, decision, &reports, paint)?;
    }
    if !dialect_of(event.agent).is_answered() {
        let agent = event.agent;
        output::line(format!("events of {agent} are recorded only; no hook is asked about them"))?;
    } else if !test_report::holds_back(decision) {
        output::line(paint.good("nothing holds this call back"))?;
    }
    test_report::print_others(&reports, listed, paint)
}

fn read_fields(file: &Path) -> Result<Map<String, Value>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let fields: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    let fields = fields.as_object().cloned();
    fields.with_context(|| format!("{} is not a JSON object", file.display()))
}

/// The error for an event that the agent does not have, with what the user probably meant.
fn unknown_event(agent: Agent, event: &str) -> anyhow::Error {
    let shown = sanitize(event);
    let own_for = |kind: Kind| {
        let names = event_names(agent).filter(|name| kind_of(agent, name) == kind);
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    if let Some(other) = Agent::ALL.into_iter().find(|other| can_be_event_of(*other, event)) {
        let own = own_for(kind_of(other, event));
        let own = if own.is_empty() { own } else { format!("; {agent} calls it {own}") };
        return anyhow!("`{shown}` is an event of {other}: add `--agent {other}`{own}");
    }
    if let Some(own) = Kind::parse(event).map(own_for).filter(|own| !own.is_empty()) {
        return anyhow!("`{shown}` is a kind, not an event name; {agent} calls it {own}");
    }
    let missing = format!("{agent} has no event `{shown}`");
    if let Some(name) = did_you_mean(event, event_names(agent)) {
        return anyhow!("{missing}; did you mean `{name}`?");
    }
    for other in Agent::ALL {
        let same = |name: &&str| name.eq_ignore_ascii_case(event);
        let near = event_names(other).find(same);
        if let Some(name) = near.or_else(|| did_you_mean(event, event_names(other))) {
            return anyhow!("{missing}; did you mean `{name}` with `--agent {other}`?");
        }
    }
    let names: Vec<&str> = event_names(agent).collect();
    anyhow!("{missing}; it has {}", names.join(", "))
}

/// Runs the hooks on `event`; none if no hook matches.
pub(super) fn run_hooks(event: &Event, hooks: &HookSets) -> Result<Option<Decision>> {
    let started = Instant::now();
    let caller = Caller { wire: event.wire, ..current_caller() };
    let mut plan = plan(event, hooks);
    let (place, lines) = (Place::of_call(event, &caller, plan.home()), ShellLines::default());
    let facts = Facts::new(event, &place, &lines);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let results = runtime.block_on(async {
        let mut results = notify_for_test(&mut plan, event, &caller).await;
        results.extend(run_all(&plan, &facts, None, &caller, TIMEOUT).await.results);
        results
    });
    if results.is_empty() {
        return Ok(None);
    }
    let can_ask = || dialect_of(event.agent).can_ask(&caller);
    let context =
        DecisionContext { started, can_ask: &can_ask, waited_for: true, continuations: 0 };
    Ok(Some(conclude(event, &plan, results, &context)))
}

fn print(event: &Event, decision: &Decision, paint: Paint) -> Result<()> {
    let is_unanswerable = dialect_of(event.agent).capabilities(event) == Capabilities::NONE;
    for verdict in &decision.verdicts {
        let said = &verdict.verdict;
        let reason = said.reason.as_ref().or(said.stop_reason.as_ref()).or(said.context.as_ref());
        let reason = reason.map(|reason| sanitize(reason)).unwrap_or_default();
        let exit = verdict.exit.map_or_else(String::new, |code| format!("  exit {code}"));
        let word = match (verdict.refused, verdict.failure.is_some()) {
            (true, _) => "not run",
            (false, true) if is_unanswerable => "failed",
            (false, false) if is_unanswerable => "ran",
            (false, _) => Outcome::of(said).as_str(),
        };
        let is_answer = !verdict.refused && !is_unanswerable;
        let would = if verdict.shadow && is_answer { "would " } else { "" };
        let word = format!("{would}{word}");
        let (hook, ms) = (sanitize(&verdict.hook), verdict.took.as_secs_f64() * 1000.0);
        let label = format!("{} {word:<9} ", pad(&paint.bold(&hook), 28));
        output::labelled(&label, &format!("{ms:.3} ms{exit}  {reason}"))?;
        if verdict.shadow {
            output::line("    in shadow mode: it is recorded and has no effect")?;
        }
        for (text, word) in [(&verdict.failure, "failed"), (&verdict.note, "note")] {
            if let Some(text) = text {
                let line = format!("{word}: {}", sanitize(text));
                output::line(format!("    {}", paint.bad(&line)))?;
            }
        }
    }
    if is_unanswerable {
        output::line(format!("the agent takes no answer at {}", sanitize(&event.name)))?;
        return Ok(());
    }
    output::line(format!("outcome: {}", decision.outcome))?;
    let answer = decision.answer.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    let way = match (event.agent, event.wire) {
        (Agent::Hermes, Wire::Bridge) => " over the bridge",
        (Agent::Hermes, Wire::Shell) => " over the shell wire",
        (Agent::Gemini | Agent::Claude | Agent::Codex | Agent::Other(_), _) => "",
    };
    output::line(format!("answer to the agent{way}: {}", sanitize(&answer)))?;
    Ok(())
}
