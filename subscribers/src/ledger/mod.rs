//! What is kept about an observer: how far it got, who is at work on it, and what it set aside.
//!
//! Beside the log this is a directory of files; with NATS it is a key-value bucket and a stream, so
//! that any machine can take over. Either way a part has one worker at a time, and whoever lost it
//! is told before it can save.

mod files;
mod nats;

use std::path::Path;

use crate::dead::DeadLetter;
use crate::line::Line;
use crate::part::Part;
use crate::position::Position;

pub(crate) use files::{names_in_home, private_folder, replace};
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
pub struct Ledger {
    kind: Kind,
    /// Beside the one on NATS: how far we got ourselves, in case that one forgets.
    copy: Option<Files>,
}

#[derive(Debug)]
enum Kind {
    Files(Files),
    Nats(Box<Bucket>),
}

/// A part that is ours to work on.
#[derive(Debug)]
pub(crate) struct Claim {
    part: Part,
    kind: ClaimKind,
}

#[derive(Debug)]
enum ClaimKind {
    Files(files::Claim),
    Nats(nats::Claim),
}

impl Ledger {
    /// The ledger of observer `name` in the home of a bus.
    pub fn in_home(home: &Path, name: &str) -> Self {
        Self { kind: Kind::Files(Files::new(home, name)), copy: None }
    }

    /// Its ledger on NATS.
    pub(crate) fn on_nats(line: Line, home: &Path, name: &str) -> Self {
        let bucket = Box::new(Bucket::new(line, name));
        Self { kind: Kind::Nats(bucket), copy: Some(Files::new(home, name)) }
    }

    /// Takes a part if nobody works on it; with how far the last one got.
    pub(crate) async fn claim(
        &mut self,
        part: Part,
    ) -> Result<Option<(Claim, Option<Position>)>, Trouble> {
        let claimed = match &mut self.kind {
            Kind::Files(files) => {
                files.claim(part)?.map(|(claim, position)| (ClaimKind::Files(claim), position))
            }
            Kind::Nats(bucket) => {
                let claimed = bucket.claim(part).await?;
                claimed.map(|(claim, position)| (ClaimKind::Nats(claim), position))
            }
        };
        let Some((kind, position)) = claimed else { return Ok(None) };
        let known = position.into_iter().chain(self.known_otherwise(part).await);
        let position = known.reduce(|one, other| one.further(&other));
        Ok(Some((Claim { part, kind }, position)))
    }

    /// How far the events of a part are by what else is kept: shared out otherwise, or by our own
    /// copy. Each of these is right, so whichever is further counts.
    async fn known_otherwise(&mut self, part: Part) -> Vec<Position> {
        let mut known = Vec::new();
        let others = part.otherwise();
        let files = match &self.kind {
            Kind::Files(files) => Some(files),
            Kind::Nats(_) => {
                known.extend(self.copy.as_ref().and_then(|copy| copy.position(part)));
                self.copy.as_ref()
            }
        };
        let each: Option<Vec<Position>> =
            files.and_then(|files| others.iter().map(|other| files.position(*other)).collect());
        known.extend(each.and_then(|each| Position::least(&each)));
        if let Kind::Nats(bucket) = &mut self.kind {
            let mut each = Vec::new();
            for other in &others {
                each.extend(bucket.position(*other).await);
            }
            known.extend(Position::least(&each).filter(|_| each.len() == others.len()));
        }
        known
    }

    /// Saves how far we got, and says that we are still here.
    pub(crate) async fn save(
        &mut self,
        claim: &mut Claim,
        position: &Position,
    ) -> Result<(), NotSaved> {
        match (&mut self.kind, &mut claim.kind) {
            (Kind::Files(_), ClaimKind::Files(claim)) => claim.save(position),
            (Kind::Nats(bucket), ClaimKind::Nats(own)) => {
                bucket.save(own, position).await?;
                let copied = self.copy.as_ref().map(|copy| copy.note(claim.part, position));
                if let Some(Err(error)) = copied {
                    tracing::debug!(%error, "no copy of the position");
                }
                Ok(())
            }
            (Kind::Files(_), ClaimKind::Nats(_)) | (Kind::Nats(_), ClaimKind::Files(_)) => {
                Err(NotSaved::Lost)
            }
        }
    }

    /// Lets go of a part, so that the next one need not wait.
    pub(crate) async fn release(&mut self, claim: Claim, position: &Position) {
        match (&mut self.kind, claim.kind) {
            (Kind::Nats(bucket), ClaimKind::Nats(claim)) => bucket.release(claim, position).await,
            // The lock goes with the file.
            (Kind::Files(_) | Kind::Nats(_), claim) => drop(claim),
        }
    }

    /// Says that we are here; gives back how many workers of this observer are, us included.
    pub(crate) async fn count_workers(&mut self) -> Result<usize, Trouble> {
        match &mut self.kind {
            Kind::Files(files) => files.count_workers(),
            Kind::Nats(bucket) => {
                let result = bucket.count_workers().await;
                bucket.or_start_over(result).await
            }
        }
    }

    /// Keeps an event that failed to its last try.
    pub(crate) async fn set_aside(&mut self, letter: &DeadLetter) -> Result<(), Trouble> {
        match &mut self.kind {
            Kind::Files(files) => files.set_aside(letter),
            Kind::Nats(bucket) => {
                let result = bucket.set_aside(letter).await;
                bucket.or_start_over(result).await
            }
        }
    }

    /// What was set aside, the oldest first.
    pub async fn dead_letters(&mut self) -> Result<Vec<DeadLetter>, Trouble> {
        match &mut self.kind {
            Kind::Files(files) => files.dead_letters(),
            Kind::Nats(bucket) => {
                let result = bucket.dead_letters().await;
                bucket.or_start_over(result).await
            }
        }
    }

    /// What all observers set aside on NATS.
    pub(crate) async fn dead_letters_of_all(line: Line) -> Result<Vec<DeadLetter>, Trouble> {
        Bucket::new(line, "").dead_letters_of_all().await
    }

    /// How many there are.
    pub(crate) async fn count_dead_letters(&mut self) -> Result<usize, Trouble> {
        match &mut self.kind {
            Kind::Files(files) => Ok(files.count_dead_letters()),
            Kind::Nats(bucket) => {
                let result = bucket.count_dead_letters().await;
                bucket.or_start_over(result).await
            }
        }
    }

    /// Forgets a dead letter.
    pub async fn drop_letter(&mut self, letter: &DeadLetter) -> Result<(), Trouble> {
        match &mut self.kind {
            Kind::Files(files) => files.drop_letter(letter),
            Kind::Nats(bucket) => {
                let result = bucket.drop_letter(letter).await;
                bucket.or_start_over(result).await
            }
        }
    }
}
