//! What is kept about an observer: how far it got, who is at work on it, and what it set aside.
//!
//! Beside the log this is a directory of files; with NATS it is a key-value bucket and a stream, so
//! that any machine can take over. Either way a part has one worker at a time, and whoever lost it
//! is told before it can save.

mod files;
mod nats;

use std::path::Path;

use hookbus::relay::NatsSettings;

use crate::dead::DeadLetter;
use crate::part::Part;
use crate::position::Position;

pub(crate) use files::{private_folder, replace};
pub(crate) use nats::LEASE;

use files::Files;
use nats::Bucket;

/// Why something cannot be done now; it is tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(pub(crate) String);

/// Why a position was not saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotSaved {
    /// Another worker has taken over.
    Lost,
    /// Try again.
    NotNow(String),
}

/// The ledger of one observer.
#[derive(Debug)]
pub struct Ledger(Kind);

#[derive(Debug)]
enum Kind {
    Files(Files),
    Nats(Box<Bucket>),
}

/// A part that is ours to work on.
#[derive(Debug)]
pub(crate) struct Claim(ClaimKind);

#[derive(Debug)]
enum ClaimKind {
    Files(files::Claim),
    Nats(nats::Claim),
}

impl Ledger {
    /// The ledger of observer `name` in the home of a bus.
    pub fn in_home(home: &Path, name: &str) -> Self {
        Self(Kind::Files(Files::new(home, name)))
    }

    /// Its ledger on NATS.
    pub fn on_nats(settings: NatsSettings, name: &str) -> Self {
        Self(Kind::Nats(Box::new(Bucket::new(settings, name))))
    }

    /// Takes a part if nobody works on it; with how far the last one got.
    pub(crate) async fn claim(
        &mut self,
        part: Part,
    ) -> Result<Option<(Claim, Option<Position>)>, Trouble> {
        Ok(match &mut self.0 {
            Kind::Files(files) => files
                .claim(part)?
                .map(|(claim, position)| (Claim(ClaimKind::Files(claim)), position)),
            Kind::Nats(bucket) => bucket
                .claim(part)
                .await?
                .map(|(claim, position)| (Claim(ClaimKind::Nats(claim)), position)),
        })
    }

    /// Saves how far we got, and says that we are still here.
    pub(crate) async fn save(
        &mut self,
        claim: &mut Claim,
        position: &Position,
    ) -> Result<(), NotSaved> {
        match (&mut self.0, &mut claim.0) {
            (Kind::Files(_), ClaimKind::Files(claim)) => claim.save(position),
            (Kind::Nats(bucket), ClaimKind::Nats(claim)) => bucket.save(claim, position).await,
            (Kind::Files(_), ClaimKind::Nats(_)) | (Kind::Nats(_), ClaimKind::Files(_)) => {
                Err(NotSaved::Lost)
            }
        }
    }

    /// Lets go of a part, so that the next one need not wait.
    pub(crate) async fn release(&mut self, claim: Claim, position: &Position) {
        match (&mut self.0, claim.0) {
            (Kind::Nats(bucket), ClaimKind::Nats(claim)) => bucket.release(claim, position).await,
            // The lock goes with the file.
            (Kind::Files(_) | Kind::Nats(_), claim) => drop(claim),
        }
    }

    /// Says that we are here; gives back how many workers of this observer are, us included.
    pub(crate) async fn count_workers(&mut self) -> Result<usize, Trouble> {
        match &mut self.0 {
            Kind::Files(files) => files.count_workers(),
            Kind::Nats(bucket) => bucket.count_workers().await,
        }
    }

    /// Keeps an event that failed to its last try.
    pub(crate) async fn set_aside(&mut self, letter: &DeadLetter) -> Result<(), Trouble> {
        match &mut self.0 {
            Kind::Files(files) => files.set_aside(letter),
            Kind::Nats(bucket) => bucket.set_aside(letter).await,
        }
    }

    /// What was set aside, the oldest first.
    pub async fn dead_letters(&mut self) -> Result<Vec<DeadLetter>, Trouble> {
        match &mut self.0 {
            Kind::Files(files) => files.dead_letters(),
            Kind::Nats(bucket) => bucket.dead_letters().await,
        }
    }

    /// How many there are.
    pub(crate) async fn count_dead_letters(&mut self) -> Result<usize, Trouble> {
        match &mut self.0 {
            Kind::Files(files) => Ok(files.count_dead_letters()),
            Kind::Nats(bucket) => bucket.count_dead_letters().await,
        }
    }

    /// Forgets a dead letter.
    pub async fn drop_letter(&mut self, letter: &DeadLetter) -> Result<(), Trouble> {
        match &mut self.0 {
            Kind::Files(files) => files.drop_letter(letter),
            Kind::Nats(bucket) => bucket.drop_letter(letter).await,
        }
    }
}
