//! The tool call that `hookbus hooks test --command`, `--path` or `--url` stands for.

use std::io::Read as _;

use anyhow::{Context, Result};
use hookbus::dialect::{event_names, kind_of, tools_of};
use hookbus::event::{Agent, Kind, ToolClass};
use serde_json::{Value, json};

/// More than any shell line. An agent that sends more would be answered too; a person who tests does not type it.
const LONGEST: u64 = 1 << 20;

/// A tool call, without its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestCall {
    /// A shell runs this line.
    Command(String),
    /// A file is written.
    Path(String),
    /// An address is fetched.
    Url(String),
}

impl TestCall {
    /// The call of a shell line; `-` reads it from stdin.
    pub(super) fn command(line: &str) -> Result<Self> {
        if line != "-" {
            return Ok(Self::Command(line.to_owned()));
        }
        let mut text = String::new();
        let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut text);
        read.context("cannot read the command from stdin")?;
        Ok(Self::Command(text.trim_end_matches('\n').to_owned()))
    }

    const fn class(&self) -> ToolClass {
        match self {
            Self::Command(_) => ToolClass::Shell,
            Self::Path(_) => ToolClass::FileWrite,
            Self::Url(_) => ToolClass::WebFetch,
        }
    }

    /// The first tool of `agent` that makes such calls.
    pub(super) fn tool(&self, agent: Agent) -> Result<&'static str> {
        let class = self.class();
        let own = tools_of(agent).iter().filter(|(name, _)| !name.ends_with('*'));
        let tool = own.filter(|(_, it)| *it == class).map(|(name, _)| *name).next();
        tool.with_context(|| format!("{agent} has no tool for that; name one with --for-tool"))
    }

    /// What the agent passes to the tool, under the names that its tools use.
    pub(super) fn input(&self, agent: Agent) -> Value {
        match (self, agent) {
            (Self::Command(line), _) => json!({"command": line}),
            (Self::Path(path), Agent::Hermes) => json!({"path": path, "content": ""}),
            (Self::Path(path), _) => json!({"file_path": path, "content": ""}),
            (Self::Url(url), Agent::Hermes) => json!({"urls": [url]}),
            (Self::Url(url), Agent::Gemini) => json!({"prompt": url}),
            (Self::Url(url), _) => json!({"url": url}),
        }
    }
}

/// The agent's name for the moment before a tool call.
pub(super) fn event_before_tool(agent: Agent) -> Result<&'static str> {
    let name = event_names(agent).find(|name| kind_of(agent, name) == Kind::ToolBefore);
    name.with_context(|| format!("{agent} has no event before a tool call"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_put_in_the_words_of_each_agent() {
        let call = |text: &str| TestCall::command(text).expect("a line");
        let (path, url) = (TestCall::Path("a.txt".into()), TestCall::Url("https://a.b".into()));
        for (agent, event, tools) in [
            (Agent::Hermes, "pre_tool_call", ["terminal", "write_file", "web_extract"]),
            (Agent::Gemini, "BeforeTool", ["run_shell_command", "write_file", "web_fetch"]),
            (Agent::Claude, "PreToolUse", ["Bash", "Write", "WebFetch"]),
        ] {
            assert_eq!(event_before_tool(agent).expect("an event"), event);
            let found = [&call("ls"), &path, &url].map(|it| it.tool(agent).expect("a tool"));
            assert_eq!(found, tools);
        }
        assert_eq!(call("ls -l").input(Agent::Gemini), json!({"command": "ls -l"}));
        assert_eq!(path.input(Agent::Gemini), json!({"file_path": "a.txt", "content": ""}));
        assert!(url.tool(Agent::Codex).is_err());
    }
}
