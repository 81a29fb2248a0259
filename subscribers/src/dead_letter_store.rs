//! All dead letters that this home can reach: in its own files and on NATS, including those of observers
//! that are not configured any more.

use std::path::{Path, PathBuf};

use hookbus::config::NatsSettings;

use crate::connection::NatsConnection;
use crate::dead_letter::DeadLetter;
use crate::error::{DeliveryError, ObserverError};
use crate::refused::{RefusedMessage, RefusedMessages};
use crate::store::{ObserverStore, observer_names};

/// The dead letters of a home and, if configured, of a NATS server.
#[derive(Debug)]
pub struct DeadLetterStore {
    home: PathBuf,
    connection: Option<NatsConnection>,
}

/// A dead letter, and where it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeadLetter {
    /// The dead letter.
    pub letter: DeadLetter,
    on_nats: bool,
}

impl DeadLetterStore {
    /// Those in this home, and on these servers if there are any.
    pub fn new(home: &Path, nats: Option<NatsSettings>) -> Self {
        Self { home: home.to_owned(), connection: nats.map(NatsConnection::new) }
    }

    /// Those of one observer, or of all; the oldest first.
    pub async fn list(
        &self,
        observer: Option<&str>,
    ) -> Result<Vec<StoredDeadLetter>, ObserverError> {
        let names =
            observer.map_or_else(|| observer_names(&self.home), |name| vec![name.to_owned()]);
        let mut all = Vec::new();
        for name in names {
            let letters = ObserverStore::in_home(&self.home, &name).dead_letters().await?;
            all.extend(
                letters.into_iter().map(|letter| StoredDeadLetter { letter, on_nats: false }),
            );
        }
        if let Some(connection) = self.connection.clone() {
            let letters = match observer {
                Some(name) => {
                    ObserverStore::on_nats(connection, &self.home, name).dead_letters().await?
                }
                None => ObserverStore::all_dead_letters(connection).await?,
            };
            all.extend(
                letters.into_iter().map(|letter| StoredDeadLetter { letter, on_nats: true }),
            );
        }
        all.sort_by_key(|stored| stored.letter.at);
        Ok(all)
    }

    /// The messages that this observer, or all observers, refused, with the name of the observer.
    pub fn refused(&self, observer: Option<&str>) -> Vec<(String, RefusedMessage)> {
        let names =
            observer.map_or_else(|| observer_names(&self.home), |name| vec![name.to_owned()]);
        let of_observer = |name: String| {
            let messages = RefusedMessages::of(&self.home, &name).list();
            messages.into_iter().map(move |message| (name.clone(), message))
        };
        names.into_iter().flat_map(of_observer).collect()
    }

    /// Deletes the messages that this observer refused.
    pub fn delete_refused(&self, observer: &str) -> Result<(), ObserverError> {
        let cleared = RefusedMessages::of(&self.home, observer).clear();
        cleared.map_err(ObserverError::file(&self.home))
    }

    /// Deletes a dead letter.
    pub async fn delete(&self, stored: &StoredDeadLetter) -> Result<(), ObserverError> {
        self.store_of(stored).delete_dead_letter(&stored.letter).await
    }

    /// Records one more failed attempt.
    pub async fn record_failure(
        &self,
        stored: &StoredDeadLetter,
        error: &DeliveryError,
    ) -> Result<(), ObserverError> {
        let DeadLetter { observer, at, tries, envelope, .. } = stored.letter.clone();
        let letter = DeadLetter::new(&observer, at, tries + 1, &error.to_string(), envelope);
        self.store_of(stored).add_dead_letter(&letter).await
    }

    fn store_of(&self, stored: &StoredDeadLetter) -> ObserverStore {
        let name = &stored.letter.observer;
        match &self.connection {
            Some(connection) if stored.on_nats => {
                ObserverStore::on_nats(connection.clone(), &self.home, name)
            }
            Some(_) | None => ObserverStore::in_home(&self.home, name),
        }
    }
}
