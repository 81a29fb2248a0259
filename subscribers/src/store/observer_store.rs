//! The two stores behind one type.

use std::path::Path;

use super::files::{FileClaim, FileStore};
use super::nats::{NatsClaim, NatsStore};
use crate::connection::NatsConnection;
use crate::dead_letter::DeadLetter;
use crate::error::{ObserverError, SaveError};
use crate::partition::Partition;
use crate::position::ObserverPosition;

/// The state of one observer.
#[derive(Debug)]
pub(crate) struct ObserverStore {
    /// The store itself or, with NATS, a local copy of the positions in case the server loses them.
    files: FileStore,
    nats: Option<Box<NatsStore>>,
}

/// A partition that this process may work on.
#[derive(Debug)]
pub(crate) enum Claim {
    File(FileClaim),
    Nats(NatsClaim),
}

impl ObserverStore {
    /// The state of observer `name` in the home of a bus.
    pub(crate) fn in_home(home: &Path, name: &str) -> Self {
        Self { files: FileStore::new(home, name), nats: None }
    }

    /// Its state on NATS.
    pub(crate) fn on_nats(connection: NatsConnection, home: &Path, name: &str) -> Self {
        let nats = Some(Box::new(NatsStore::new(connection, name)));
        Self { files: FileStore::new(home, name), nats }
    }

    /// Claims a partition, and returns its position; `None` while another worker holds it.
    pub(crate) async fn claim(
        &mut self,
        partition: Partition,
    ) -> Result<Option<(Claim, Option<ObserverPosition>)>, ObserverError> {
        let claimed = match &mut self.nats {
            None => {
                self.files.claim(partition).map(|claim| claim.map(|it| (Claim::File(it), None)))
            }
            Some(nats) => {
                let claimed = nats.claim(partition).await;
                claimed.map(|claim| claim.map(|(it, position)| (Claim::Nats(it), position)))
            }
        };
        let Some((claim, on_nats)) = self.reconnect_after_error(claimed).await? else {
            return Ok(None);
        };
        // Each of these positions is correct, so the furthest counts.
        let known = on_nats
            .into_iter()
            .chain(self.files.position(partition))
            .chain(self.positions_before_switch(partition).await);
        Ok(Some((claim, known.reduce(|one, other| one.furthest(&other)))))
    }

    /// What the positions of the other partitions, which held the same events before `share` was switched
    /// on or off, say about this one: in the files, and on NATS.
    async fn positions_before_switch(&mut self, partition: Partition) -> Vec<ObserverPosition> {
        let others = partition.with_sharing_switched();
        let mut known = Vec::new();
        let saved: Option<Vec<_>> = others.iter().map(|one| self.files.position(*one)).collect();
        known.extend(saved.and_then(|all| ObserverPosition::earliest_of(&all)));
        if let Some(nats) = &mut self.nats {
            let mut saved = Vec::new();
            for other in &others {
                saved.extend(nats.position(*other).await);
            }
            if saved.len() == others.len() {
                known.extend(ObserverPosition::earliest_of(&saved));
            }
        }
        known
    }

    /// Saves a position, which also renews the claim.
    pub(crate) async fn save(
        &mut self,
        claim: &mut Claim,
        position: &ObserverPosition,
    ) -> Result<(), SaveError> {
        match (claim, &mut self.nats) {
            (Claim::File(claim), _) => claim.save(position),
            (Claim::Nats(_), None) => Err(SaveError::TakenOver),
            (Claim::Nats(claim), Some(nats)) => {
                nats.save(claim, position).await?;
                if let Err(error) = self.files.copy_position(claim.partition, position) {
                    tracing::debug!(%error, "cannot keep a local copy of the position");
                }
                Ok(())
            }
        }
    }

    /// Releases a partition, so that the next worker need not wait for the lease to end.
    pub(crate) async fn release(&mut self, claim: Claim, position: &ObserverPosition) {
        match (claim, &mut self.nats) {
            (Claim::Nats(claim), Some(nats)) => nats.release(claim, position).await,
            (claim, _) => drop(claim), // closing the file releases its lock
        }
    }

    /// Registers this worker, and counts all workers of this observer.
    pub(crate) async fn count_workers(&mut self) -> Result<usize, ObserverError> {
        let result = match &mut self.nats {
            None => self.files.count_workers(),
            Some(nats) => nats.count_workers().await,
        };
        self.reconnect_after_error(result).await
    }

    /// Stores a dead letter; one with the same event is replaced.
    pub(crate) async fn add_dead_letter(
        &mut self,
        letter: &DeadLetter,
    ) -> Result<(), ObserverError> {
        let result = match &mut self.nats {
            None => self.files.add_dead_letter(letter),
            Some(nats) => nats.add_dead_letter(letter).await,
        };
        self.reconnect_after_error(result).await
    }

    /// Its dead letters, the oldest first.
    pub(crate) async fn dead_letters(&mut self) -> Result<Vec<DeadLetter>, ObserverError> {
        let result = match &mut self.nats {
            None => self.files.dead_letters(),
            Some(nats) => nats.dead_letters().await,
        };
        self.reconnect_after_error(result).await
    }

    /// The dead letters of all observers on NATS.
    pub(crate) async fn all_dead_letters(
        connection: NatsConnection,
    ) -> Result<Vec<DeadLetter>, ObserverError> {
        NatsStore::new(connection, "").all_dead_letters().await
    }

    /// How many dead letters it has.
    pub(crate) async fn count_dead_letters(&mut self) -> Result<usize, ObserverError> {
        let result = match &mut self.nats {
            None => Ok(self.files.count_dead_letters()),
            Some(nats) => nats.count_dead_letters().await,
        };
        self.reconnect_after_error(result).await
    }

    /// Deletes a dead letter.
    pub(crate) async fn delete_dead_letter(
        &mut self,
        letter: &DeadLetter,
    ) -> Result<(), ObserverError> {
        let result = match &mut self.nats {
            None => self.files.delete_dead_letter(letter),
            Some(nats) => nats.delete_dead_letter(letter).await,
        };
        self.reconnect_after_error(result).await
    }

    /// Passes a result on; after an error the next call to NATS opens a new connection.
    async fn reconnect_after_error<T>(
        &mut self,
        result: Result<T, ObserverError>,
    ) -> Result<T, ObserverError> {
        if let (Err(_), Some(nats)) = (&result, &mut self.nats) {
            nats.disconnect().await;
        }
        result
    }
}
