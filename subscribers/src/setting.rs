//! What a worker is given to do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hookbus::decide::{Deed, Observer, Start};
use hookbus::event::Clock;
use hookbus::log::LogPath;
use hookbus::relay::NatsSettings;

use crate::ledger::{Ledger, Trouble};
use crate::position::Position;
use crate::source::{LogTail, StreamTail, Tail, start_in_log};

/// Where an observer reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The log in its home.
    Log,
    /// The stream of all buses.
    Nats(Box<NatsSettings>),
}

/// An observer, and everything it needs to work.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// Who.
    pub observer: Observer,
    /// Where it reads.
    pub reading: Reading,
    /// Where its state is kept.
    pub home: PathBuf,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where it starts when it is new; its own word for that where none.
    pub start: Option<Start>,
    /// Whether it leaves when nothing is left to do.
    pub leaves_when_done: bool,
}

impl Assignment {
    pub(crate) fn tail(&self) -> Tail {
        match &self.reading {
            Reading::Log => Tail::Log(Box::new(LogTail::new(LogPath::in_home(&self.home)))),
            Reading::Nats(settings) => {
                let subjects = self.observer.subjects();
                Tail::Nats(Box::new(StreamTail::new((**settings).clone(), subjects)))
            }
        }
    }

    /// What is kept about it.
    pub fn ledger(&self) -> Ledger {
        match &self.reading {
            Reading::Log => Ledger::in_home(&self.home, self.observer.name()),
            Reading::Nats(settings) => Ledger::on_nats((**settings).clone(), self.observer.name()),
        }
    }

    /// Where it starts when nobody has worked on it before.
    pub(crate) fn first_position(&self) -> Result<Position, Trouble> {
        // An archive is meant to be whole.
        let usual = match self.observer.deed() {
            Deed::Archive(_) => Start::First,
            Deed::Command | Deed::LongLived | Deed::Webhook(_) => Start::Now,
        };
        match self.start.or(self.observer.terms().from).unwrap_or(usual) {
            Start::First => Ok(Position::start()),
            Start::Now => {
                let log = LogPath::in_home(&self.home);
                start_in_log(&log, self.observer.name(), self.clock.now())
            }
        }
    }

    pub(crate) fn source_name(&self) -> &'static str {
        match self.reading {
            Reading::Log => "log",
            Reading::Nats(_) => "nats",
        }
    }
}
