//! Where events come from. Both sources give the rows of each bus in their order, from a position
//! on, and wait a moment for more where there are none.

mod log;
mod nats;
mod wake;

use hookbus::event::BusId;
use hookbus::log::Row;

use crate::ledger::Trouble;
use crate::position::{Mark, Position};

pub(crate) use log::{LogTail, start_in_log};
pub(crate) use nats::{StreamTail, fetch};

/// An event that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) bus: BusId,
    pub(crate) row: Row,
    /// Where it was in the stream.
    pub(crate) mark: Option<Mark>,
    /// Where its payload is, if that was too large to travel along; it is fetched when it is needed.
    pub(crate) stored: Option<String>,
}

/// A source that is being read.
#[derive(Debug)]
pub(crate) enum Tail {
    Log(Box<LogTail>),
    Nats(Box<StreamTail>),
}

impl Tail {
    /// The next events after `position`, `most` of them at the most; none if nothing came for a
    /// while. The position goes back where the source did.
    pub(crate) async fn next(
        &mut self,
        position: &mut Position,
        most: usize,
    ) -> Result<Vec<Arrived>, Trouble> {
        match self {
            Self::Log(tail) => tail.next(position, most).await,
            Self::Nats(tail) => tail.next(position, most).await,
        }
    }

    /// Whether everything that was there has been handed out.
    pub(crate) fn is_at_end(&self) -> bool {
        match self {
            Self::Log(_) => true, // it hands out all there is
            Self::Nats(tail) => tail.is_at_end(),
        }
    }

    /// A payload that was too large to travel along.
    pub(crate) async fn fetch(&mut self, stored: &str) -> Result<Vec<u8>, Trouble> {
        match self {
            Self::Log(_) => Err(Trouble("a log holds its payloads itself".to_owned())),
            Self::Nats(tail) => tail.fetch(stored).await,
        }
    }

    /// How many rows there are after `position`.
    pub(crate) async fn lag(&mut self, position: &Position) -> Option<u64> {
        match self {
            Self::Log(tail) => tail.lag(position),
            Self::Nats(tail) => tail.lag(position).await,
        }
    }
}
