//! What a hook is for: an agent's own event name, a kind, or a pattern.

use std::fmt;

use super::problem::did_you_mean;
use crate::dialect::Manner;
use crate::event::{Agent, Event, Kind, event_names, is_event_of, kind_of};

/// The key over a list of hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKey {
    /// An agent's own name: the hook is launched, matched and failed as that agent does it.
    Name(String),
    /// A kind: all agents.
    Kind(Kind),
    /// A name or kind with `*` in it.
    Pattern(String),
}

impl EventKey {
    /// Reads a key; the error says what to write instead.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("no event has control letters in its name; take them out".to_owned());
        }
        if text.contains('*') {
            let known =
                known_names().any(|name| fits(text, name) || fits(text, &name.replace('*', "x")));
            return if known {
                Ok(Self::Pattern(text.to_owned()))
            } else {
                Err(format!("no event fits `{text}`{}", suggestion(text)))
            };
        }
        if let Some(kind) = Kind::parse(text) {
            return Ok(Self::Kind(kind));
        }
        let named =
            |agent: &Agent| is_event_of(*agent, text) || kind_of(*agent, text) != Kind::Other;
        if Agent::ALL.iter().any(named) {
            return Ok(Self::Name(text.to_owned()));
        }
        Err(format!("unknown event `{text}`{}", suggestion(text)))
    }

    /// Whether hooks under this key are for `event`.
    pub fn covers(&self, event: &Event) -> bool {
        self.covers_words(&event.name, event.kind.as_str())
    }

    /// Whether they are for an event of this name and kind.
    pub(super) fn covers_words(&self, event_name: &str, event_kind: &str) -> bool {
        match self {
            Self::Name(name) => name == event_name,
            Self::Kind(kind) => kind.as_str() == event_kind,
            Self::Pattern(pattern) => fits(pattern, event_name) || fits(pattern, event_kind),
        }
    }

    /// Whether any event of `agent` could be meant.
    pub(super) fn concerns(&self, agent: Agent) -> bool {
        match self {
            Self::Name(name) => is_event_of(agent, name) || kind_of(agent, name) != Kind::Other,
            Self::Kind(_) | Self::Pattern(_) => true,
        }
    }

    /// Whose customs hooks under this key follow.
    pub(super) fn manner(&self) -> Manner {
        match self {
            Self::Name(name) if is_event_of(Agent::Hermes, name) => Manner::Hermes,
            Self::Name(name) if is_event_of(Agent::Gemini, name) => Manner::Gemini,
            Self::Name(_) | Self::Kind(_) | Self::Pattern(_) => Manner::Common,
        }
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
        Some(near) => format!("; did you mean `{near}`?"),
        None => "; write an agent's event name (`pre_tool_call`, `BeforeTool`, …), a kind \
                 (`tool.before`, `turn.start`, …) or a pattern (`command:*`, `tool.*`, `*`)"
            .to_owned(),
    }
}

/// Whether `text` fits `pattern`, in which `*` stands for anything.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
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
    fn patterns_fit_what_they_say() {
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
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_typo_gets_a_suggestion() {
        assert_eq!(
            EventKey::parse("pre_tool_cal").unwrap_err(),
            "unknown event `pre_tool_cal`; did you mean `pre_tool_call`?"
        );
        assert_eq!(
            EventKey::parse("tool.befor").unwrap_err(),
            "unknown event `tool.befor`; did you mean `tool.before`?"
        );
        assert!(EventKey::parse("tol.*").is_err());
        for odd in ["command:a\u{1b}[2K", "command:*\n"] {
            assert!(EventKey::parse(odd).is_err_and(|why| why.contains("control letters")));
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
