//! The wire: how an event came from its agent. It determines which answers the agent accepts.

/// The way from an agent to the bus and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Wire {
    /// The agent's own hook commands: JSON on stdin, an answer on stdout.
    #[default]
    Shell,
    /// Our bridge inside the agent, which can do whatever the agent's plugins can.
    Bridge,
}

impl Wire {
    /// The word on the command line, on the socket and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Bridge => "bridge",
        }
    }

    /// The wire with this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Shell, Self::Bridge].into_iter().find(|wire| wire.as_str() == text)
    }
}
