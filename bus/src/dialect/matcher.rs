//! A hook's `matcher:`, parsed by a dialect, and the parts of parsing it that dialects share.

use serde_json::Value;

use super::pattern::{Pattern, PatternFailure, PatternSize};
use crate::event::Event;

/// What a matcher is compared with.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// The tool's name, by a regex.
    Tool(Pattern),
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
    pub fn matches(&self, event: &Event) -> Result<bool, PatternFailure> {
        let tool = || event.tool.as_ref().map(|tool| tool.name.as_str());
        match self {
            Self::Tool(pattern) => tool().map_or(Ok(false), |tool| pattern.is_match(tool)),
            Self::ExactTool(name) => Ok(tool() == Some(name)),
            Self::Field { name, value } => {
                Ok(event.field(name).and_then(Value::as_str) == Some(value.as_str()))
            }
        }
    }

    /// Whether matching can fail.
    pub const fn can_fail(&self) -> bool {
        match self {
            Self::Tool(pattern) => pattern.can_fail(),
            Self::ExactTool(_) | Self::Field { .. } => false,
        }
    }
}

/// A matcher that the agent ignores at this event.
pub(super) fn ignored(agent: &str, event: &str) -> ParsedMatcher {
    ParsedMatcher::Everything(Some(format!(
        "{agent} ignores a matcher on `{event}`, so this hook runs for all of them; leave it out"
    )))
}

/// A matcher on the tool's name. To agents a regex that does not compile is a plain name. Here it is invalid: a
/// regex that we cannot run must not become a name that never matches.
pub(super) fn tool_regex(written: &str, regex: &str) -> ParsedMatcher {
    // Python's `\Z` is `\z` here.
    match Pattern::compile(written, &regex.replace("\\Z", "\\z"), PatternSize::Small) {
        Ok(pattern) => ParsedMatcher::Some(Matcher::Tool(pattern), None),
        Err(why) => ParsedMatcher::Invalid(why),
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
