//! What a server can do for us, by its version. Each way keeps the promise: in log order, nothing
//! left out, never twice.

/// How to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abilities {
    /// 2.12 and newer: atomic batches, guarded by what the stream last holds of this bus.
    Batches,
    /// 2.11: one message at a time, guarded by the same.
    GuardPerBus,
    /// 2.10: one message at a time, guarded by the last message of the whole stream. Another bus
    /// that publishes at the same moment makes us look and try again.
    GuardPerStream,
}

impl Abilities {
    /// Those of a server of this version; the error says what to do.
    pub(super) fn of(version: &str) -> Result<Self, String> {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        match (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) {
            (0..=1, _) | (2, 0..=9) => Err(format!(
                "the NATS server is {version}; hookbus needs 2.10 or newer, and 2.12 to be quick"
            )),
            (2, 10) => Ok(Self::GuardPerStream),
            (2, 11) => Ok(Self::GuardPerBus),
            (2.., _) => Ok(Self::Batches),
        }
    }

    /// How many messages may be published at once.
    pub(super) const fn most_messages(self) -> usize {
        match self {
            Self::Batches => 1000,
            Self::GuardPerBus | Self::GuardPerStream => 1,
        }
    }

    /// What a person should know about it.
    pub(super) const fn note(self) -> Option<&'static str> {
        match self {
            Self::Batches => None,
            Self::GuardPerBus | Self::GuardPerStream => Some(
                "one event at a time, as this NATS server knows no atomic batches; 2.12 or newer \
                 is quicker",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_says_how_to_publish() {
        assert!(Abilities::of("2.9.25").is_err_and(|said| said.contains("2.10 or newer")));
        assert_eq!(Abilities::of("2.10.26"), Ok(Abilities::GuardPerStream));
        assert_eq!(Abilities::of("2.11.11"), Ok(Abilities::GuardPerBus));
        for newer in ["2.12.0", "2.15.1", "2.15.2-RC.1", "3.0.0"] {
            assert_eq!(Abilities::of(newer), Ok(Abilities::Batches), "{newer}");
        }
        assert!(Abilities::of("?").is_err());
    }
}
