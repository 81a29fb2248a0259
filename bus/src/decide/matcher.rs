//! A hook's `matcher:`, compared as the agent that owns the event name would compare it.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::EventKey;
use crate::dialect::Manner;
use crate::event::Event;

/// What a matcher is compared with.
#[derive(Debug, Clone)]
pub(super) enum Matcher {
    /// The tool's name.
    Tool(Comparison),
    /// The `source`, `reason` or `trigger` of a Gemini lifecycle event.
    Lifecycle { field: &'static str, text: String },
}

#[derive(Debug, Clone)]
pub(super) enum Comparison {
    Regex(Regex),
    Exactly(String),
}

/// What became of a matcher.
#[derive(Debug)]
pub(super) enum Read {
    /// Everything matches; the remark says why that may surprise.
    Everything(Option<String>),
    /// This matches; the remark says what may surprise.
    Only(Matcher, Option<String>),
    /// It cannot be used.
    Broken(String),
}

impl Matcher {
    /// Reads a matcher. That of an entry that nobody agreed to must be short, or it matches everything.
    pub(super) fn read(key: &EventKey, text: &str, agreed: bool) -> Read {
        let text = text.trim();
        match (key.manner(), key) {
            (_, _) if text.is_empty() => Read::Everything(None),
            (_, _) if !agreed && !is_quickly_read(text) => Read::Everything(None),
            (Manner::Hermes, EventKey::Name(name)) => match name.as_str() {
                "pre_tool_call" | "post_tool_call" => as_agent(text, &whole(text)),
                _ => ignored("Hermes", name),
            },
            (Manner::Gemini, EventKey::Name(name)) => gemini(name, text),
            _ if text == "*" => Read::Everything(None),
            _ => match regex(&whole(text)) {
                Ok(regex) => Read::Only(Self::Tool(Comparison::Regex(regex)), None),
                Err(error) => Read::Broken(bad_regex(text, &error)),
            },
        }
    }

    pub(super) fn fits(&self, event: &Event) -> bool {
        match self {
            Self::Tool(comparison) => event.tool.as_ref().is_some_and(|tool| match comparison {
                Comparison::Regex(regex) => regex.is_match(&tool.name),
                Comparison::Exactly(text) => *text == tool.name,
            }),
            Self::Lifecycle { field, text } => {
                event.field(field).and_then(Value::as_str) == Some(text.as_str())
            }
        }
    }
}

/// A regex that costs next to nothing to compile; anybody's can.
fn is_quickly_read(text: &str) -> bool {
    text.len() <= 200 && RegexBuilder::new(text).size_limit(64 << 10).build().is_ok()
}

fn gemini(name: &str, text: &str) -> Read {
    if text == "*" {
        return Read::Everything(None);
    }
    let lifecycle = |field| Read::Only(Matcher::Lifecycle { field, text: text.to_owned() }, None);
    match name {
        "BeforeTool" | "AfterTool" => as_agent(text, text),
        "SessionStart" => lifecycle("source"),
        "SessionEnd" => lifecycle("reason"),
        "PreCompress" => lifecycle("trigger"),
        _ => ignored("Gemini", name),
    }
}

fn ignored(agent: &str, name: &str) -> Read {
    Read::Everything(Some(format!(
        "{agent} ignores a matcher on `{name}`, so this hook runs for all of them; leave it out"
    )))
}

/// Both agents take a regex that does not compile for a plain name. What is one to them and not to
/// us (look-around, back references) must not turn into a name that never matches, so only a lone
/// `*` is taken for one.
fn as_agent(text: &str, regex: &str) -> Read {
    // Python's end of text is spelled differently here.
    match self::regex(&regex.replace("\\Z", "\\z")) {
        Ok(regex) => Read::Only(Matcher::Tool(Comparison::Regex(regex)), None),
        Err(_) if text == "*" => Read::Only(
            Matcher::Tool(Comparison::Exactly(text.to_owned())),
            Some("to Hermes `*` is a tool of that name, which there is none of; leave the matcher out".to_owned()),
        ),
        Err(error) => Read::Broken(bad_regex(text, &error)),
    }
}

/// Names of tools are short, and so is what tells them apart.
fn regex(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(1 << 20).build()
}

fn whole(text: &str) -> String {
    format!("^(?:{text})$")
}

pub(super) fn bad_regex(text: &str, error: &regex::Error) -> String {
    let why = error.to_string();
    let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    format!("`{text}` is no regex we can run ({why}); see https://docs.rs/regex for the syntax")
}
