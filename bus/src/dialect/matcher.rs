//! A hook's `matcher:`, parsed by a dialect, and the parts of parsing it that dialects share.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::event::Event;

/// What a matcher is compared with.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// The tool's name, by a regex.
    Tool(Regex),
    /// The tool's name, exactly.
    ExactTool(String),
    /// A field of the payload, exactly.
    Field {
        /// The field's name.
        name: &'static str,
        /// The value it must have.
        value: String,
    },
}

/// The result of reading a matcher.
#[derive(Debug)]
pub enum ParsedMatcher {
    /// It matches every event. The remark tells the user if that is probably not intended.
    Everything(Option<String>),
    /// It matches some events. The remark tells the user if that is probably not intended.
    Some(Matcher, Option<String>),
    /// It cannot be used; the text says what to write.
    Invalid(String),
}

impl Matcher {
    /// Whether `event` matches.
    pub fn matches(&self, event: &Event) -> bool {
        let tool = || event.tool.as_ref().map(|tool| tool.name.as_str());
        match self {
            Self::Tool(regex) => tool().is_some_and(|tool| regex.is_match(tool)),
            Self::ExactTool(name) => tool() == Some(name),
            Self::Field { name, value } => {
                event.field(name).and_then(Value::as_str) == Some(value.as_str())
            }
        }
    }
}

/// A matcher that the agent ignores at this event.
pub(super) fn ignored(agent: &str, event: &str) -> ParsedMatcher {
    ParsedMatcher::Everything(Some(format!(
        "{agent} ignores a matcher on `{event}`, so this hook runs for all of them; leave it out"
    )))
}

/// A matcher on the tool's name. To agents a regex that does not compile is a plain name. Here it is invalid:
/// a regex with look-around or back references, which agents can run and we cannot, must not become a name
/// that never matches.
pub(super) fn tool_regex(written: &str, regex: &str) -> ParsedMatcher {
    // Python's `\Z` is `\z` here.
    match compile(&regex.replace("\\Z", "\\z")) {
        Ok(regex) => ParsedMatcher::Some(Matcher::Tool(regex), None),
        Err(error) => ParsedMatcher::Invalid(invalid_regex(written, &error)),
    }
}

/// A matcher on a field of the payload; `*` matches everything.
pub(super) fn field(name: &'static str, value: &str) -> ParsedMatcher {
    match value {
        "*" => ParsedMatcher::Everything(None),
        value => ParsedMatcher::Some(Matcher::Field { name, value: value.to_owned() }, None),
    }
}

/// The regex that matches the whole of a name.
pub(super) fn anchored(text: &str) -> String {
    format!("^(?:{text})$")
}

/// Tool names are short, so a matcher needs little memory.
fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(1 << 20).build()
}

/// Whether a regex is cheap to compile. A project's file is read before the user approved it.
pub fn is_cheap_regex(text: &str) -> bool {
    text.len() <= 200 && RegexBuilder::new(text).size_limit(64 << 10).build().is_ok()
}

/// The error text for a regex that does not compile.
pub fn invalid_regex(text: &str, error: &regex::Error) -> String {
    let why = error.to_string();
    let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    format!("`{text}` is not a regex we can run ({why}); see https://docs.rs/regex for the syntax")
}
