//! The agents whose dialects the bus speaks.

use std::fmt;
use std::str::FromStr;

/// An AI agent that fires lifecycle events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Hermes Agent, over its shell-hook wire.
    Hermes,
    /// Gemini CLI.
    Gemini,
    /// Claude Code: recorded, not yet answered.
    Claude,
    /// Codex CLI: recorded, not yet answered.
    Codex,
}

/// A name on the command line that is no agent of ours.
#[derive(Debug, thiserror::Error)]
#[error("unknown agent `{0}`; write one of: hermes, gemini, claude, codex")]
pub struct UnknownAgent(pub String);

impl Agent {
    /// Every agent, in the order they are listed to people.
    pub const ALL: [Self; 4] = [Self::Hermes, Self::Gemini, Self::Claude, Self::Codex];

    /// The name used on the command line, in the log and in subjects.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hermes => "hermes",
            Self::Gemini => "gemini",
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// Whether decision hooks run for this agent, or its events are only recorded.
    pub const fn is_answered(self) -> bool {
        match self {
            Self::Hermes | Self::Gemini => true,
            Self::Claude | Self::Codex => false,
        }
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
        Self::ALL
            .into_iter()
            .find(|agent| agent.as_str() == name)
            .ok_or_else(|| UnknownAgent(name.to_owned()))
    }
}
