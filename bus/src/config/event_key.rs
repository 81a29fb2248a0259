//! The key over a list of hooks, which decides the events they are for: an agent's own event name, a kind, or a
//! pattern.

use std::fmt;

use super::problem::did_you_mean;
use crate::dialect::{Common, Dialect, can_be_event_of, dialect_of, event_names, is_event_of};
use crate::event::{Agent, Event, Kind};

/// The key over a list of hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKey {
    /// An agent's own event name: the hook is launched, matched and failed as that agent does it.
    Name(String),
    /// A kind: all agents.
    Kind(Kind),
    /// A name or kind with `*` in it.
    Pattern(String),
}

/// A key that fits no event; the text says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct UnknownEvent(String);

impl EventKey {
    /// Reads a key.
    pub(super) fn parse(text: &str) -> Result<Self, UnknownEvent> {
        if text.chars().any(char::is_control) {
            let why = "no event has control characters in its name; remove them";
            return Err(UnknownEvent(why.to_owned()));
        }
        if text.contains('*') {
            let is_known = known_names().any(|name| {
                wildcard_matches(text, name) || wildcard_matches(text, &name.replace('*', "x"))
            });
            return if is_known {
                Ok(Self::Pattern(text.to_owned()))
            } else {
                Err(UnknownEvent(format!("no event matches `{text}`{}", suggestion(text))))
            };
        }
        if let Some(kind) = Kind::parse(text) {
            return Ok(Self::Kind(kind));
        }
        if Agent::ALL.iter().any(|agent| can_be_event_of(*agent, text)) {
            return Ok(Self::Name(text.to_owned()));
        }
        Err(UnknownEvent(format!("unknown event `{text}`{}", suggestion(text))))
    }

    /// Whether hooks under this key are for `event`.
    pub(crate) fn covers(&self, event: &Event) -> bool {
        match self {
            Self::Kind(kind) => *kind == event.kind,
            Self::Name(_) | Self::Pattern(_) => self.covers_name(&event.name, event.kind.as_str()),
        }
    }

    /// Whether they are for an event of this name and kind.
    pub fn covers_name(&self, event_name: &str, event_kind: &str) -> bool {
        match self {
            Self::Name(name) => name == event_name,
            Self::Kind(kind) => kind.as_str() == event_kind,
            Self::Pattern(pattern) => {
                wildcard_matches(pattern, event_name) || wildcard_matches(pattern, event_kind)
            }
        }
    }

    /// Whether an event of `agent` can be covered.
    pub(crate) fn concerns(&self, agent: Agent) -> bool {
        match self {
            Self::Name(name) => can_be_event_of(agent, name),
            Self::Kind(_) | Self::Pattern(_) => true,
        }
    }

    /// Whether it is exactly one of the event names of `agent`.
    pub(super) fn is_name_of(&self, agent: Agent) -> bool {
        matches!(self, Self::Name(name) if is_event_of(agent, name))
    }

    /// The dialect that hooks under this key follow at an event of `agent`: the agent's own under its
    /// own event name, else the common one.
    pub fn dialect(&self, agent: Agent) -> &'static dyn Dialect {
        if self.is_name_of(agent) { dialect_of(agent) } else { &Common }
    }
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(text) | Self::Pattern(text) => f.write_str(text),
            Self::Kind(kind) => f.write_str(kind.as_str()),
        }
    }
}

fn known_names() -> impl Iterator<Item = &'static str> {
    Agent::ALL.into_iter().flat_map(event_names).chain(Kind::ALL.iter().map(|kind| kind.as_str()))
}

fn suggestion(text: &str) -> String {
    match did_you_mean(text, known_names()) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; write an agent's event name (`pre_tool_call`, `BeforeTool`, …), a kind \
                 (`tool.before`, `turn.start`, …) or a pattern (`command:*`, `tool.*`, `*`)"
            .to_owned(),
    }
}

/// Whether `text` matches `pattern`, in which `*` stands for anything.
pub fn wildcard_matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_anything() {
        for (pattern, text, expected) in [
            ("*", "anything", true),
            ("command:*", "command:deploy", true),
            ("command:*", "commands", false),
            ("tool.*", "tool.before", true),
            ("*.before", "tool.before", true),
            ("t*l.b*e", "tool.before", true),
            ("t*l.b*x", "tool.before", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(wildcard_matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_typo_gets_a_suggestion() {
        assert_eq!(
            EventKey::parse("pre_tool_cal").unwrap_err().to_string(),
            "unknown event `pre_tool_cal`; did you mean `pre_tool_call`?"
        );
        assert_eq!(
            EventKey::parse("tool.befor").unwrap_err().to_string(),
            "unknown event `tool.befor`; did you mean `tool.before`?"
        );
        assert!(EventKey::parse("tol.*").is_err());
        for odd in ["command:a\u{1b}[2K", "command:*\n"] {
            assert!(
                EventKey::parse(odd)
                    .is_err_and(|why| why.to_string().contains("control characters"))
            );
        }
    }

    #[test]
    fn keys_are_names_kinds_or_patterns() {
        assert_eq!(EventKey::parse("BeforeTool"), Ok(EventKey::Name("BeforeTool".into())));
        assert_eq!(EventKey::parse("command:deploy"), Ok(EventKey::Name("command:deploy".into())));
        assert_eq!(EventKey::parse("tool.before"), Ok(EventKey::Kind(Kind::ToolBefore)));
        assert_eq!(EventKey::parse("command:*"), Ok(EventKey::Pattern("command:*".into())));
        assert_eq!(EventKey::parse("*"), Ok(EventKey::Pattern("*".into())));
    }
}
