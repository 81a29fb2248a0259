//! The shell lines that a tool call would run, read into [`ShellView`]s.

use serde_json::{Map, Value};

use super::place::Place;
use crate::event::{Agent, Event, ToolClass};
use crate::shell::{self, ShellView, Start};

/// Where tools of the agents have a line of shell.
const LINES: [&str; 3] = ["command", "cmd", "script"];

/// Where they have text that is typed into a program that is already running, which may be a shell.
const TYPED: [&str; 2] = ["data", "chars"];

/// Where tools have the directory that the line runs in.
const DIRECTORIES: [&str; 5] = ["workdir", "dir_path", "directory", "cwd", "working_directory"];

/// One shell line of a call, and what it does.
#[derive(Debug)]
pub struct CommandFact {
    /// The line.
    pub line: String,
    /// What it does.
    pub view: ShellView,
    /// The directory that it starts in, as the tool names it; none if that is the agent's own.
    pub directory: Option<String>,
}

/// The shell lines of `event`, in the order of the payload's fields.
pub(super) fn commands_of(event: &Event, place: &Place) -> Vec<CommandFact> {
    let Some(input) = event.tool_input() else { return lines_of_question(event, place) };
    let class = event.tool.as_ref().map_or(ToolClass::Other, |tool| tool.class);
    if !may_run_lines(class) {
        return Vec::new();
    }
    let mut facts = Vec::new();
    for directory in directories(event, input) {
        let read = |line: String| read(line, directory.clone(), place);
        let lines = LINES.iter().filter_map(|name| line_in(input.get(*name)?));
        facts.extend(lines.map(|line| read(with_arguments(line, input))));
        let lines = input.get("commands").and_then(Value::as_array).into_iter().flatten();
        facts.extend(lines.filter_map(line_in).map(read));
        if class == ToolClass::Shell {
            let code = input.get("code").and_then(Value::as_str);
            facts.extend(code.map(|code| read(python_line(code))));
            let typed = TYPED.iter().filter_map(|name| input.get(*name)?.as_str());
            facts.extend(typed.map(|text| {
                let mut fact = read(text.to_owned());
                // The program that gets it may not be a shell.
                fact.view.opaque.clear();
                fact
            }));
        }
    }
    facts
}

/// The directories that a line may run in. A tool of an agent that we know has one name for it; under the other names the
/// model may have put what the tool ignores, so the agent's own directory counts beside them.
fn directories(event: &Event, input: &Map<String, Value>) -> Vec<Option<String>> {
    let own: &[&str] = match event.agent {
        Agent::Gemini => &["dir_path", "directory"],
        Agent::Hermes | Agent::Codex => &["workdir"],
        Agent::Claude => &[],
        Agent::Other(_) => &DIRECTORIES,
    };
    let named = |name: &&str| input.get(*name)?.as_str().filter(|it| !it.is_empty());
    let mut all: Vec<Option<String>> =
        DIRECTORIES.iter().filter_map(|name| Some(Some(named(name)?.to_owned()))).collect();
    if !own.iter().any(|name| named(name).is_some()) {
        all.push(None);
    }
    all.sort();
    all.dedup();
    all
}

/// Whether a tool of this class may run a shell line. A file tool's `command` is a patch.
const fn may_run_lines(class: ToolClass) -> bool {
    match class {
        ToolClass::Shell | ToolClass::Mcp | ToolClass::Other => true,
        ToolClass::FileRead
        | ToolClass::FileWrite
        | ToolClass::FileSearch
        | ToolClass::WebFetch
        | ToolClass::WebSearch
        | ToolClass::Browser
        | ToolClass::Agent
        | ToolClass::Memory
        | ToolClass::Todo => false,
    }
}

/// The line that an agent asks its user about (Gemini's `Notification`, Hermes' approval requests).
fn lines_of_question(event: &Event, place: &Place) -> Vec<CommandFact> {
    let object = |key: &str| event.field(key).and_then(Value::as_object);
    let command = |fields: &Map<String, Value>| line_in(fields.get("command")?);
    let lines = [object("details"), object("extra")].into_iter().flatten().filter_map(command);
    lines.map(|line| read(line, None, place)).collect()
}

/// Some tools have the arguments of a program in a field of their own.
fn with_arguments(line: String, input: &Map<String, Value>) -> String {
    match input.get("args").or_else(|| input.get("arguments")).filter(|it| it.is_array()) {
        Some(arguments) => format!("{line} {}", line_in(arguments).unwrap_or_default()),
        None => line,
    }
}

/// A line, from a text or from a list of words.
fn line_in(value: &Value) -> Option<String> {
    match value {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let text = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            let words: Vec<String> = words.iter().map(text).collect();
            let joined = shlex::try_join(words.iter().map(String::as_str));
            Some(joined.unwrap_or_else(|_| words.join(" ")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Hermes' `execute_code` runs Python.
fn python_line(code: &str) -> String {
    shlex::try_join(["python3", "-c", code]).unwrap_or_else(|_| "python3 -".to_owned())
}

fn read(line: String, directory: Option<String>, place: &Place) -> CommandFact {
    let home = place.claimed_home.as_ref().or(place.home.as_ref());
    let home = home.map(|home| home.to_string_lossy().into_owned());
    let variables = vec![
        ("PWD".to_owned(), place.cwd.to_string_lossy().into_owned()),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
    ];
    let view = shell::read(&line, &Start { home, variables });
    CommandFact { line, view, directory }
}
