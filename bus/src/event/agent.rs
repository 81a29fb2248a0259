//! Agents. Four have a dialect; any other well-formed name is kept as it is, so that events of agents that this
//! build does not know can be read, stored and filtered.

use std::fmt;
use std::str::FromStr;

/// An AI agent that fires lifecycle events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Hermes Agent.
    Hermes,
    /// Gemini CLI.
    Gemini,
    /// Claude Code: recorded, not yet answered.
    Claude,
    /// Codex CLI: recorded, not yet answered.
    Codex,
    /// An agent without a dialect here, known by name only.
    Other(AgentName),
}

/// The name of an agent without a dialect: 1 to 32 bytes of `a-z`, `0-9`, `-`, `_` and `.`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName {
    bytes: [u8; Self::LONGEST],
    length: u8,
}

/// A name that is none of the agents with a dialect.
#[derive(Debug, thiserror::Error)]
#[error("unknown agent `{0}`; write one of: hermes, gemini, claude, codex")]
pub struct UnknownAgent(pub String);

impl Agent {
    /// Every agent with a dialect, in the order they are listed to users.
    pub const ALL: [Self; 4] = [Self::Hermes, Self::Gemini, Self::Claude, Self::Codex];

    /// The name on the command line, in the log and in NATS subjects.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Hermes => "hermes",
            Self::Gemini => "gemini",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Other(name) => name.as_str(),
        }
    }

    /// The agent with this name, with or without a dialect; none if the name is not well-formed.
    /// For rows that are already recorded. New events come from agents with a dialect ([`FromStr`]).
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok().or_else(|| AgentName::new(name).map(Self::Other))
    }
}

impl AgentName {
    const LONGEST: usize = 32;

    fn new(name: &str) -> Option<Self> {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(allowed) {
            return None;
        }
        let mut bytes = [0; Self::LONGEST];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self { bytes, length: u8::try_from(name.len()).ok()? })
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|agent| agent.as_str() == name);
        known.ok_or_else(|| UnknownAgent(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_without_a_dialect_keeps_its_name() {
        assert_eq!(Agent::named("gemini"), Some(Agent::Gemini));
        let other = Agent::named("open-code.2").expect("a name");
        assert!(matches!(other, Agent::Other(_)) && other.as_str() == "open-code.2");
        for bad in ["", "Two Words", &"x".repeat(33)] {
            assert_eq!(Agent::named(bad), None, "{bad}");
        }
        assert!("open-code".parse::<Agent>().is_err(), "new events need an agent with a dialect");
    }
}
