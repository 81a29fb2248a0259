//! What a worker does with the events that it read: hands each over, tries again, sets aside what fails to its
//! last try.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookbus::decide::Hook;
use hookbus::envelope;

use super::{Job, Left, SIGN_OF_LIFE, Worker, save};
use crate::dead::DeadLetter;
use crate::deliver::Try;
use crate::source::Arrived;

/// How long an event under way has to finish when it is time to leave.
const LAST_TRY: Duration = Duration::from_secs(3);

/// The longest wait between two tries of an event.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

impl Worker {
    pub(super) async fn handle(
        &mut self,
        arrived: Vec<Arrived>,
        job: &mut Job,
    ) -> Result<(), Left> {
        let done = self.deliver_together(&arrived, job);
        for mut arrived in arrived {
            if !done {
                self.deliver(&mut arrived, job).await?;
            }
            job.position.advance(arrived.bus, &arrived.row, arrived.mark);
            job.unsaved = true;
            if *self.stop.borrow() {
                return Err(Left::Done);
            }
        }
        Ok(())
    }

    /// Delivers all of them at once where that is possible; says whether it was.
    fn deliver_together(&mut self, arrived: &[Arrived], job: &Job) -> bool {
        let incomplete = arrived.iter().any(|arrived| arrived.stored.is_some());
        if arrived.len() < 2 || incomplete || !self.delivery.takes_many() {
            return false;
        }
        let wanted = |arrived: &&Arrived| {
            self.concerns(arrived, job) && self.assignment.observer.wants(&arrived.row).is_some()
        };
        let wanted: Vec<Arrived> = arrived.iter().filter(wanted).cloned().collect();
        let done = self.delivery.deliver_all(&wanted, self.assignment.clock.now());
        if done {
            for arrived in &wanted {
                self.report.handled(arrived.row.at);
            }
        }
        done
    }

    /// Whether an event is in this part and still to come.
    fn concerns(&self, arrived: &Arrived, job: &Job) -> bool {
        let past = job.position.is_past(arrived.bus, &arrived.row);
        self.part.holds(&arrived.row.session) && (!past || self.delivery.knows_what_it_has())
    }

    /// Delivers an event if it is wanted: as often as it takes, or until it is set aside.
    async fn deliver(&mut self, arrived: &mut Arrived, job: &mut Job) -> Result<(), Left> {
        let observer = Arc::clone(&self.assignment.observer);
        if !self.concerns(arrived, job) || !observer.may_want(&arrived.row) {
            return Ok(());
        }
        let terms = observer.terms();
        let mut wait = terms.wait;
        for attempt in 1..=terms.tries {
            let error = match self.whole(arrived).await {
                Err(error) => error,
                Ok(()) => {
                    let Some(hook) = observer.wants(&arrived.row) else { return Ok(()) };
                    let Err(error) = self.try_once(hook, arrived, attempt, job).await? else {
                        self.report.handled(arrived.row.at);
                        return Ok(());
                    };
                    error
                }
            };
            // Agreement is taken back in the middle of it: no event's fault, and none is set aside for it.
            if let Some(why) = self.delivery.waits_for_consent() {
                return Err(Left::Trouble(why));
            }
            let seq = arrived.row.seq.as_i64();
            tracing::warn!(observer = observer.name(), seq, attempt, error, "an event failed");
            if attempt == terms.tries {
                return self.set_aside(arrived, attempt, &error).await;
            }
            self.report.trouble(&error);
            self.report_lag(job).await;
            self.wait(wait, job).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Ok(())
    }

    /// Fetches a payload that was too large to travel along.
    async fn whole(&mut self, arrived: &mut Arrived) -> Result<(), String> {
        if let (Some(stored), true) = (&arrived.stored, arrived.row.payload.is_empty()) {
            let fetched = self.tail.fetch(stored).await;
            arrived.row.payload = fetched.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// One try. However long it takes, we say that we are still there; if the part is not ours any
    /// more, the try is broken off.
    async fn try_once(
        &mut self,
        hook: &Hook,
        arrived: &Arrived,
        attempt: u32,
        job: &mut Job,
    ) -> Result<Result<(), String>, Left> {
        if job.saved.elapsed() > SIGN_OF_LIFE {
            save(&mut self.ledger, job).await?;
        }
        let this = Try { attempt, now: self.assignment.clock.now() };
        let mut trying = std::pin::pin!(self.delivery.deliver(hook, arrived, this));
        loop {
            tokio::select! {
                result = &mut trying => return Ok(result),
                _ = self.stop.changed() => {
                    // A little longer; then it is broken off, and tried again by whoever comes next.
                    let ended = tokio::time::timeout(LAST_TRY, &mut trying).await;
                    return ended.map_err(|_| Left::Done);
                }
                () = tokio::time::sleep(SIGN_OF_LIFE) => {
                    save(&mut self.ledger, job).await?;
                    if let Some(lag) = self.tail.lag(&job.position).await {
                        self.report.lag(lag);
                    }
                }
            }
        }
    }

    async fn wait(&mut self, wait: Duration, job: &mut Job) -> Result<(), Left> {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if let Ok(Ok(())) =
                tokio::time::timeout(left.min(SIGN_OF_LIFE), self.stop.changed()).await
            {
                return Err(Left::Done); // it will be tried again by whoever comes next
            }
            if left > SIGN_OF_LIFE {
                save(&mut self.ledger, job).await?;
                self.report_lag(job).await;
            }
        }
    }

    /// What is tried again waits too, and so does all that stands behind it.
    async fn report_lag(&mut self, job: &Job) {
        if let Some(lag) = self.tail.lag(&job.position).await {
            self.report.lag(lag);
        }
    }

    async fn set_aside(&mut self, arrived: &Arrived, tries: u32, error: &str) -> Result<(), Left> {
        let envelope = envelope::write(arrived.bus, &arrived.row, arrived.stored.as_deref());
        let (name, now) = (self.assignment.observer.name(), self.assignment.clock.now());
        let letter = DeadLetter::new(name, now, tries, error, envelope);
        self.ledger.set_aside(&letter).await?;
        self.report.set_aside(error);
        Ok(())
    }
}
