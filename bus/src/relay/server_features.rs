//! What a NATS server supports, by its version. Each way of publishing keeps the same promise: every
//! row in log order, none missing, none twice.

/// How to publish to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerFeatures {
    /// 2.12 and newer: atomic batches, with the expected last message of this bus.
    AtomicBatches,
    /// 2.11: one message at a time, with the expected last message of this bus.
    CheckPerBus,
    /// 2.10: one message at a time, with the expected last message of the whole stream. If another bus
    /// publishes at the same moment, the relay reads its position again and retries.
    CheckPerStream,
}

/// The server is too old.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the NATS server is {version}; hookbus needs 2.10 or newer (2.12 or newer is faster)")]
pub struct UnsupportedServer {
    /// The version that the server reports.
    pub version: String,
}

impl ServerFeatures {
    /// The features of a server with this version.
    pub(super) fn of_version(version: &str) -> Result<Self, UnsupportedServer> {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        match (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) {
            (0..=1, _) | (2, 0..=9) => Err(UnsupportedServer { version: version.to_owned() }),
            (2, 10) => Ok(Self::CheckPerStream),
            (2, 11) => Ok(Self::CheckPerBus),
            (2.., _) => Ok(Self::AtomicBatches),
        }
    }

    /// The most messages in one batch.
    pub(super) const fn max_batch(self) -> usize {
        match self {
            Self::AtomicBatches => 1000,
            Self::CheckPerBus | Self::CheckPerStream => 1,
        }
    }

    /// A remark for `hookbus status`.
    pub(super) const fn note(self) -> Option<&'static str> {
        match self {
            Self::AtomicBatches => None,
            Self::CheckPerBus | Self::CheckPerStream => Some(
                "one event at a time, because this NATS server has no atomic batches; 2.12 or newer \
                 is faster",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_decides_how_to_publish() {
        let features = ServerFeatures::of_version;
        let too_old = features("2.9.25").map_err(|error| error.to_string());
        assert!(too_old.is_err_and(|error| error.contains("2.10 or newer")));
        assert_eq!(features("2.10.26"), Ok(ServerFeatures::CheckPerStream));
        assert_eq!(features("2.11.11"), Ok(ServerFeatures::CheckPerBus));
        for newer in ["2.12.0", "2.15.1", "2.15.2-RC.1", "3.0.0"] {
            assert_eq!(features(newer), Ok(ServerFeatures::AtomicBatches), "{newer}");
        }
        assert!(features("?").is_err());
    }
}
