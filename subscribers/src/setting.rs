//! What a worker is given to do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hookbus::decide::{Deed, Observer, Start};
use hookbus::event::Clock;
use hookbus::log::LogPath;
use hookbus::relay::NatsSettings;

use crate::ledger::{Ledger, Trouble};
use crate::line::Line;
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
    pub observer: Arc<Observer>,
    /// Where it reads.
    pub reading: Reading,
    /// Where its state is kept.
    pub home: PathBuf,
    /// Its environment.
    pub env: Arc<[(OsString, OsString)]>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where it starts when it is new; its own word for that where none.
    pub start: Option<Start>,
    /// Whether it leaves when nothing is left to do.
    pub leaves_when_done: bool,
}

impl Assignment {
    /// Its way to NATS, if that is where it reads.
    pub(crate) fn line(&self) -> Option<Line> {
        match &self.reading {
            Reading::Log => None,
            Reading::Nats(settings) => Some(Line::to((**settings).clone())),
        }
    }

    pub(crate) fn tail(&self, line: Option<&Line>) -> Tail {
        match line {
            None => Tail::Log(Box::new(LogTail::new(LogPath::in_home(&self.home)))),
            Some(line) => {
                Tail::Nats(Box::new(StreamTail::new(line.clone(), self.observer.subjects())))
            }
        }
    }

    /// What is kept about it.
    pub fn ledger(&self) -> Ledger {
        self.ledger_over(self.line().as_ref())
    }

    pub(crate) fn ledger_over(&self, line: Option<&Line>) -> Ledger {
        let name = self.observer.name();
        line.map_or_else(
            || Ledger::in_home(&self.home, name),
            |line| Ledger::on_nats(line.clone(), &self.home, name),
        )
    }

    /// Where it starts when nobody has worked on it before.
    pub(crate) fn first_position(&self) -> Result<Position, Trouble> {
        // An archive is meant to be whole.
        let usual = match self.observer.deed() {
            Deed::Archive(_) => Start::First,
            Deed::Command | Deed::LongLived | Deed::Webhook(_) | Deed::Plugins => Start::Now,
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
