//! `examples:` under a rule: lines that it must stop and lines that it must let pass. They are run whenever the file is
//! read, in a made-up place ([`Place::of_examples`]), so that a rule that does not do what it was written for is told
//! at once. Pure.

use serde_json::{Map, Value, json};

use super::hook::{Action, Hook};
use super::problem::{Problem, hint};
use super::rule::ANSWERS;
use super::yaml::{Data, Node};
use crate::dialect::{Arrival, decode, event_names, kind_of, tools_of};
use crate::event::{Agent, Event, EventId, Outcome, Time, ToolClass, Wire};
use crate::rule::{Condition, Facts, FileKey, Place, Rule, ShellLines, ToolMatch};

/// One example of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Its line in the file.
    pub line: usize,
    /// What the rule must answer; none if it must not apply.
    pub expected: Option<String>,
    /// The line, path or address, or the fields of the call as JSON.
    pub text: String,
    call: ExampleCall,
}

/// The call that an example stands for.
#[derive(Debug, Clone, PartialEq)]
struct ExampleCall {
    class: ToolClass,
    input: Map<String, Value>,
    agent: Option<Agent>,
    cwd: Option<String>,
}

/// How an example came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleResult {
    /// The hook.
    pub hook: String,
    /// The pack that it is from.
    pub pack: Option<String>,
    /// The line of the example in the file.
    pub line: usize,
    /// What was expected: an answer, or `pass`.
    pub expected: String,
    /// The example.
    pub text: String,
    /// Why it is missed; none if it came out as expected.
    pub missed: Option<String>,
}

/// Reads `examples:`, for a rule whose answer is `answer`.
pub(super) fn read(node: &Node, hook: &Hook, rule: &Rule) -> Result<Vec<Example>, Problem> {
    let shape = "`examples` maps an answer to lines; write `examples: { block: ['git push -f'], pass: ['git push'] }`";
    let pairs = node.pairs().ok_or_else(|| Problem::broken_entry(node.line, shape))?;
    let own = Outcome::of(&rule.verdict).as_str();
    let mut examples = Vec::new();
    for pair in pairs {
        let known = || ANSWERS.into_iter().chain(["pass"]);
        if !known().any(|key| key == pair.key) {
            let why = format!("`{}` is no answer{}", pair.key, hint(&pair.key, known(), ""));
            return Err(Problem::broken_entry(pair.line, why));
        }
        if pair.key != "pass" && pair.key != own {
            let why = format!("this rule answers `{own}`, so its examples are `{own}` and `pass`");
            return Err(Problem::broken_entry(pair.line, why));
        }
        let items = match &pair.value.data {
            Data::List(items) => items.as_slice(),
            Data::Scalar(_) | Data::Map(_) => std::slice::from_ref(&pair.value),
        };
        for item in items {
            let expected = (pair.key != "pass").then(|| pair.key.clone());
            examples.push(example(item, expected, hook, rule)?);
        }
    }
    Ok(examples)
}

fn example(
    item: &Node,
    expected: Option<String>,
    hook: &Hook,
    rule: &Rule,
) -> Result<Example, Problem> {
    let line = item.line;
    let (text, call) = match (item.text(), item.to_json()) {
        (Some(text), _) => {
            let class = class_of_line(&text, hook, rule);
            let input = input_of(class, &text);
            (text, ExampleCall { class, input, agent: None, cwd: None })
        }
        (None, Value::Object(fields)) => {
            let call = call_of(&fields).map_err(|why| Problem::broken_entry(line, why))?;
            (Value::Object(fields).to_string(), call)
        }
        (None, _) => {
            let why = "an example is a line, or a mapping such as `{ path: /etc/hosts }`";
            return Err(Problem::broken_entry(line, why));
        }
    };
    Ok(Example { line, expected, text, call })
}

/// What a plain line stands for: a path or an address where the entry or the rule is about nothing else, else a shell
/// line.
fn class_of_line(text: &str, hook: &Hook, rule: &Rule) -> ToolClass {
    let in_rule = rule.when.iter().find_map(|condition| {
        let Condition::Tool(tools) = condition else { return None };
        tools.iter().find_map(ToolMatch::class)
    });
    let class = hook.tools.first().copied().or(in_rule);
    let only = |is: fn(&Condition) -> bool| !rule.when.is_empty() && rule.when.iter().all(is);
    match class {
        Some(class) => class,
        // A shell line has blanks; a path and an address have none.
        None if text.contains(char::is_whitespace) => ToolClass::Shell,
        None if only(|it| matches!(it, Condition::Host(_))) => ToolClass::WebFetch,
        None if only(|it| matches!(it, Condition::File(FileKey::Path, _))) => ToolClass::FileWrite,
        None => ToolClass::Shell,
    }
}

fn input_of(class: ToolClass, text: &str) -> Map<String, Value> {
    let field = match class {
        ToolClass::FileRead | ToolClass::FileWrite | ToolClass::FileSearch => "file_path",
        ToolClass::WebFetch | ToolClass::Browser => "url",
        ToolClass::WebSearch | ToolClass::Memory => "query",
        ToolClass::Agent | ToolClass::Todo => "prompt",
        ToolClass::Shell | ToolClass::Mcp | ToolClass::Other => "command",
    };
    Map::from_iter([(field.to_owned(), json!(text))])
}

/// The call in a mapping: `{command: …}`, `{path: …}`, `{url: …}`, or `{tool: …, input: {…}}`, with `agent` and `cwd`.
fn call_of(fields: &Map<String, Value>) -> Result<ExampleCall, String> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let class = match text("tool") {
        Some(name) => {
            Some(ToolClass::parse(&name).ok_or_else(|| format!("unknown tool class `{name}`"))?)
        }
        None => None,
    };
    let short = [
        ("command", ToolClass::Shell),
        ("path", ToolClass::FileWrite),
        ("url", ToolClass::WebFetch),
    ];
    let (class, input) = match (
        fields.get("input"),
        short.iter().find(|(key, _)| fields.contains_key(*key)),
    ) {
        (Some(Value::Object(input)), _) => (class.unwrap_or(ToolClass::Other), input.clone()),
        (_, Some((key, usual))) => {
            let class = class.unwrap_or(*usual);
            (
                class,
                input_of(
                    if class == ToolClass::Other { *usual } else { class },
                    &text(key).unwrap_or_default(),
                ),
            )
        }
        _ => return Err("an example has a `command`, a `path`, a `url` or an `input`".to_owned()),
    };
    let agent = text("agent").and_then(|name| Agent::named(&name));
    Ok(ExampleCall { class, input, agent, cwd: text("cwd") })
}

/// Runs the examples of a hook.
pub fn run_examples(hook: &Hook) -> Vec<ExampleResult> {
    let Action::Rule(rule) = &hook.action else { return Vec::new() };
    let run = |example: &Example| ExampleResult {
        hook: hook.name.clone(),
        pack: hook.pack.clone(),
        line: example.line,
        expected: example.expected.clone().unwrap_or_else(|| "pass".to_owned()),
        text: example.text.clone(),
        missed: missed(example, hook, rule),
    };
    hook.examples.iter().map(run).collect()
}

/// Why an example does not come out as expected; none if it does.
fn missed(example: &Example, hook: &Hook, rule: &Rule) -> Option<String> {
    let Some(event) = event_of(&example.call, hook) else {
        return Some("no agent has such a tool at this event".to_owned());
    };
    let (place, lines) = (Place::of_examples(&event), ShellLines::default());
    let facts = Facts::new(&event, &place, &lines);
    let report = rule.explain(&facts);
    let is_for = hook.is_for(&event);
    let applies = is_for && report.applies == Some(true);
    match (&example.expected, applies) {
        (Some(_), true) | (None, false) => None,
        (None, true) => Some("the rule applies to it".to_owned()),
        (Some(_), false) if !is_for => Some("the hook is not for this tool or agent".to_owned()),
        (Some(_), false) => Some(match (report.obstacle(), &report.failure) {
            (_, Some(failure)) => failure.clone(),
            (Some(obstacle), None) => obstacle.to_string(),
            (None, None) => "each condition holds, but not for the same program or file".to_owned(),
        }),
    }
}

/// The event of an agent for an example: of the first agent that the hook is for and that has such a tool.
fn event_of(call: &ExampleCall, hook: &Hook) -> Option<Event> {
    let agents = [Agent::Gemini, Agent::Hermes, Agent::Claude, Agent::Codex];
    let wanted = call.agent.or(hook.agent);
    let agents = agents.into_iter().filter(|agent| wanted.is_none_or(|wanted| wanted == *agent));
    agents.into_iter().find_map(|agent| {
        let covers = |name: &&str| hook.on.covers_name(name, kind_of(agent, name).as_str());
        let name = event_names(agent).find(covers)?;
        let tools = tools_of(agent)
            .iter()
            .filter(|(name, class)| *class == call.class && !name.ends_with('*'));
        let tool = tools.map(|(name, _)| *name).next();
        let cwd = call.cwd.clone().unwrap_or_else(|| "/home/you/project".to_owned());
        let text = call.input.values().find_map(Value::as_str).unwrap_or_default();
        let payload = json!({
            "hook_event_name": name,
            "session_id": "example",
            "cwd": cwd,
            "tool_name": tool?,
            "tool_input": call.input,
            "prompt": text,
        });
        let (at, raw) = (Time::from_micros(1), payload.to_string().into_bytes());
        let id = EventId::mint(at);
        Some(decode(Arrival {
            id,
            at,
            agent,
            wire: Wire::Shell,
            raw: raw.into(),
            session_hint: None,
        }))
    })
}
