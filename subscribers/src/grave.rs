//! All dead letters that can be seen from here: beside the log and on NATS, also those of observers
//! that are not configured any more.

use std::path::{Path, PathBuf};

use hookbus::relay::NatsSettings;

use crate::dead::DeadLetter;
use crate::ledger::{Ledger, Trouble, names_in_home};
use crate::line::Line;

/// Where to look.
#[derive(Debug)]
pub struct DeadLetters {
    home: PathBuf,
    line: Option<Line>,
}

/// A dead letter and where it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The letter.
    pub letter: DeadLetter,
    on_nats: bool,
}

impl DeadLetters {
    /// In this home, and on these servers if there are any.
    pub fn of(home: &Path, nats: Option<NatsSettings>) -> Self {
        Self { home: home.to_owned(), line: nats.map(Line::to) }
    }

    /// Those of one observer, or of all; the oldest first.
    pub async fn all(&self, observer: Option<&str>) -> Result<Vec<Kept>, Trouble> {
        let names = match observer {
            Some(name) => vec![name.to_owned()],
            None => names_in_home(&self.home),
        };
        let mut all = Vec::new();
        for name in names {
            let letters = Ledger::in_home(&self.home, &name).dead_letters().await?;
            all.extend(letters.into_iter().map(|letter| Kept { letter, on_nats: false }));
        }
        if let Some(line) = &self.line {
            let letters = match observer {
                Some(name) => {
                    Ledger::on_nats(line.clone(), &self.home, name).dead_letters().await?
                }
                None => Ledger::dead_letters_of_all(line.clone()).await?,
            };
            all.extend(letters.into_iter().map(|letter| Kept { letter, on_nats: true }));
        }
        all.sort_by_key(|kept| kept.letter.at);
        Ok(all)
    }

    /// Forgets one.
    pub async fn forget(&self, kept: &Kept) -> Result<(), Trouble> {
        self.ledger_of(kept).drop_letter(&kept.letter).await
    }

    /// Writes down that one was tried again, in vain.
    pub async fn failed_again(&self, kept: &Kept, error: &str) -> Result<(), Trouble> {
        let DeadLetter { observer, at, tries, envelope, .. } = kept.letter.clone();
        let again = DeadLetter::new(&observer, at, tries + 1, error, envelope);
        self.ledger_of(kept).set_aside(&again).await
    }

    fn ledger_of(&self, kept: &Kept) -> Ledger {
        match &self.line {
            Some(line) if kept.on_nats => {
                Ledger::on_nats(line.clone(), &self.home, &kept.letter.observer)
            }
            Some(_) | None => Ledger::in_home(&self.home, &kept.letter.observer),
        }
    }
}
