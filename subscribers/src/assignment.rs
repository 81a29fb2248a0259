//! An assignment: which observer to run, and everything that its workers need.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hookbus::config::{NatsSettings, StartAt};
use hookbus::event::Clock;
use hookbus::log::LogPath;

use crate::connection::NatsConnection;
use crate::deliver::Delivery;
use crate::error::ObserverError;
use crate::observer::{Observer, ObserverAction};
use crate::position::ObserverPosition;
use crate::source::{EventSource, LogSource, StreamSource, start_in_log};
use crate::store::ObserverStore;

/// Where an observer reads events from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFrom {
    /// The log in its home.
    Log,
    /// The stream of all buses.
    Nats(Box<NatsSettings>),
}

/// An observer, and everything that its workers need.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The observer, as configured.
    pub observer: Arc<Observer>,
    /// Where it reads events from.
    pub read_from: ReadFrom,
    /// The directory that holds its state.
    pub home: PathBuf,
    /// The environment of what it runs.
    pub env: Arc<[(OsString, OsString)]>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where it starts when it is new; `None` leaves that to its configuration.
    pub start: Option<StartAt>,
    /// Whether to exit once every event that is there has been handled.
    pub exit_when_drained: bool,
}

impl Assignment {
    /// A connection to NATS, if that is where it reads.
    pub(crate) fn connection(&self) -> Option<NatsConnection> {
        match &self.read_from {
            ReadFrom::Log => None,
            ReadFrom::Nats(settings) => Some(NatsConnection::new((**settings).clone())),
        }
    }

    pub(crate) fn source(&self, connection: Option<&NatsConnection>) -> EventSource {
        match connection {
            None => EventSource::Log(Box::new(LogSource::new(LogPath::in_home(&self.home)))),
            Some(connection) => {
                let subjects = self.observer.subjects();
                EventSource::Nats(Box::new(StreamSource::new(connection.clone(), subjects)))
            }
        }
    }

    pub(crate) fn store(&self, connection: Option<&NatsConnection>) -> ObserverStore {
        let name = self.observer.name();
        connection.map_or_else(
            || ObserverStore::in_home(&self.home, name),
            |connection| ObserverStore::on_nats(connection.clone(), &self.home, name),
        )
    }

    pub(crate) fn delivery(&self) -> Delivery {
        Delivery::new(Arc::clone(&self.observer), Arc::clone(&self.env))
    }

    /// Where the observer starts if it has no position yet.
    pub(crate) fn first_position(&self) -> Result<ObserverPosition, ObserverError> {
        // An archive and analytics are meant to be complete.
        let default = match self.observer.action() {
            ObserverAction::Archive(_) | ObserverAction::Analytics(_) => StartAt::First,
            ObserverAction::Command
            | ObserverAction::LongLived
            | ObserverAction::Webhook(_)
            | ObserverAction::Plugins => StartAt::Now,
        };
        match self.start.or(self.observer.settings().from).unwrap_or(default) {
            StartAt::First => Ok(ObserverPosition::start()),
            StartAt::Now => {
                let log = LogPath::in_home(&self.home);
                start_in_log(&log, self.observer.name(), self.clock.now())
            }
        }
    }

    /// The name of the source in the status file.
    pub(crate) fn source_name(&self) -> &'static str {
        match self.read_from {
            ReadFrom::Log => "log",
            ReadFrom::Nats(_) => "nats",
        }
    }
}
