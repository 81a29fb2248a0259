//! The work itself, part by part: claim, read, deliver, save. Whatever goes wrong, the last saved
//! position is where the next worker goes on, so that an event may be seen twice but never not at
//! all.

mod events;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::dead::DeadLetter;
use crate::deliver::{Delivery, Try};
use crate::ledger::{Claim, LEASE, Ledger, NotSaved, Trouble};
use crate::part::Part;
use crate::position::Position;
use crate::report::Report;
use crate::setting::{Assignment, Reading};
use crate::share::Shares;
use crate::source::{Arrived, Tail, fetch};

/// How many events are read in one go.
const BATCH: usize = 256;

/// How often a stand-by asks whether a part is free.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How long a part that was let go of is left to others.
const LET_OTHERS: Duration = Duration::from_secs(2);

/// How often a worker says that it is still there, however long an event takes it.
const SIGN_OF_LIFE: Duration = Duration::from_millis(1500);

/// A position is saved after this long, while there is more to do.
const SAVE_AFTER: Duration = Duration::from_millis(200);

/// A person may have retried or dropped dead letters in the meantime.
const COUNT_AGAIN: Duration = Duration::from_secs(5);

/// Before the next try after trouble with the source or the ledger.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);

/// And the longest.
const LONGEST_PATIENCE: Duration = Duration::from_secs(4);

/// Tells workers to stop.
pub type Stop = watch::Receiver<bool>;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Events delivered.
    pub handled: u64,
    /// Events set aside.
    pub set_aside: u64,
    /// Another worker is at work, and has the rest.
    pub elsewhere: bool,
    /// What kept it from going through with it.
    pub trouble: Option<String>,
}

/// Works on an observer until it is told to stop, or nothing is left where it leaves then.
pub async fn observe(assignment: Assignment, stop: Stop) -> Tally {
    let parts = Part::all(assignment.observer.terms().shared);
    let name = assignment.observer.name();
    let report = Report::new(&assignment.home, name, assignment.source_name(), parts.len());
    let shares = Shares::of(parts.len());
    let line = assignment.line();
    let mut workers = JoinSet::new();
    let counting = (parts.len() > 1 && !assignment.leaves_when_done).then(|| {
        tokio::spawn(shares.clone().keep_fair(assignment.ledger_over(line.as_ref()), stop.clone()))
    });
    for part in parts {
        let worker = Worker {
            part,
            ledger: assignment.ledger_over(line.as_ref()),
            tail: assignment.tail(line.as_ref()),
            delivery: Delivery::new(Arc::clone(&assignment.observer), Arc::clone(&assignment.env)),
            assignment: assignment.clone(),
            report: report.clone(),
            stop: stop.clone(),
            counted: Instant::now(),
            shares: shares.clone(),
            complaint: None,
            patience: AFTER_TROUBLE,
        };
        workers.spawn(worker.work());
    }
    let (mut elsewhere, mut trouble) = (false, None);
    while let Some(ended) = workers.join_next().await {
        match ended {
            Ok(Ended::Done) | Err(_) => {}
            Ok(Ended::Elsewhere) => elsewhere = true,
            Ok(Ended::Trouble(error)) => trouble = Some(error),
        }
    }
    if let Some(counting) = counting {
        counting.abort();
    }
    let (handled, set_aside) = report.counts();
    Tally { handled, set_aside, elsewhere, trouble }
}

/// Tries a dead letter once more. Whoever keeps it may forget it then.
pub async fn retry(assignment: &Assignment, letter: &DeadLetter) -> Result<(), String> {
    let mut event = letter.event().map_err(|error| error.to_string())?;
    if let (Some(stored), Some(line)) = (&event.stored, assignment.line()) {
        let client = line.client().await.map_err(|error| error.to_string())?;
        let fetched = fetch(&jetstream::new(client), stored).await;
        event.row.payload = fetched.map_err(|error| error.to_string())?;
    }
    let Some(hook) = assignment.observer.wants(&event.row) else {
        return Err("the observer does not want this event any more; drop it".to_owned());
    };
    let arrived = Arrived { bus: event.bus, row: event.row, mark: None, stored: event.stored };
    let mut delivery = Delivery::new(Arc::clone(&assignment.observer), Arc::clone(&assignment.env));
    let this = Try { attempt: letter.tries + 1, now: assignment.clock.now() };
    let delivered = delivery.deliver(hook, &arrived, this).await;
    delivery.close().await;
    delivered
}

/// How a worker ended.
enum Ended {
    /// There was nothing left to do, or it was told to stop.
    Done,
    /// Somebody else is at it.
    Elsewhere,
    /// It could not, and was not to wait for ever.
    Trouble(String),
}

/// Why a worker leaves its part.
enum Left {
    /// It was told to, or is done.
    Done,
    /// Another worker has it.
    Lost,
    /// Another worker shall have it; our share is given back already.
    Shared,
    /// Something has to be tried again.
    Trouble(String),
}

impl From<Trouble> for Left {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble.to_string())
    }
}

/// One part's worker.
struct Worker {
    assignment: Assignment,
    part: Part,
    ledger: Ledger,
    tail: Tail,
    delivery: Delivery,
    report: Report,
    stop: Stop,
    /// When dead letters were last counted.
    counted: Instant,
    shares: Shares,
    /// What went wrong last, and how long to wait before the next try.
    complaint: Option<String>,
    patience: Duration,
}

impl Worker {
    async fn work(mut self) -> Ended {
        let ended = self.work_until_told().await;
        self.delivery.close().await;
        ended
    }

    async fn work_until_told(&mut self) -> Ended {
        let mut waiting = Instant::now();
        while !*self.stop.borrow() {
            if !self.shares.take() {
                drop(tokio::time::timeout(ASK_AGAIN, self.stop.changed()).await);
                continue;
            }
            let left = self.try_part().await;
            if !matches!(left, Left::Shared) {
                self.shares.give_back();
            }
            let pause = match left {
                Left::Done => return Ended::Done,
                // A worker that was killed holds its part until its lease ends.
                Left::Lost if self.assignment.leaves_when_done && waiting.elapsed() > LEASE * 2 => {
                    return Ended::Elsewhere;
                }
                Left::Lost => {
                    self.stand_by();
                    ASK_AGAIN
                }
                Left::Shared => LET_OTHERS,
                Left::Trouble(error) if self.assignment.leaves_when_done => {
                    return Ended::Trouble(error);
                }
                Left::Trouble(error) => self.complain(&error),
            };
            if pause != ASK_AGAIN {
                waiting = Instant::now();
            }
            // Told to stop is as good a reason to wake up as any.
            drop(tokio::time::timeout(pause, self.stop.changed()).await);
        }
        Ended::Done
    }

    async fn try_part(&mut self) -> Left {
        // Whoever cannot work at all must not keep the part from those who can.
        if let Err(error) = self.delivery.is_ready(self.assignment.clock.now()) {
            return Left::Trouble(error);
        }
        match self.ledger.claim(self.part).await {
            Ok(Some((claim, position))) => self.take_up(claim, position).await,
            Ok(None) => Left::Lost,
            Err(error) => error.into(),
        }
    }

    /// Beside a log whoever works writes down how it is going; over NATS that may be anywhere.
    fn stand_by(&self) {
        if matches!(self.assignment.reading, Reading::Nats(_)) {
            self.report.stands_by();
        }
    }

    /// Says what is wrong, once; gives back how long to wait.
    fn complain(&mut self, error: &str) -> Duration {
        let observer = self.assignment.observer.name();
        if self.complaint.as_deref() == Some(error) {
            tracing::debug!(observer, error, "still interrupted");
            self.patience = (self.patience * 2).min(LONGEST_PATIENCE);
        } else {
            tracing::warn!(observer, error, "interrupted");
            (self.complaint, self.patience) = (Some(error.to_owned()), AFTER_TROUBLE);
        }
        self.report.trouble(error);
        self.patience
    }

    /// Works on a part that is ours.
    async fn take_up(&mut self, claim: Claim, position: Option<Position>) -> Left {
        let position = match position {
            Some(position) => position,
            None => match self.assignment.first_position() {
                Ok(position) => position,
                Err(trouble) => return trouble.into(),
            },
        };
        self.report.took_up();
        self.count_dead_letters().await;
        tracing::info!(
            observer = self.assignment.observer.name(),
            part = self.part.key(),
            "at work"
        );
        let mut job = Job { claim, position, saved: Instant::now(), unsaved: true };
        let left = self.stay_with(&mut job).await;
        self.report.let_go();
        if !matches!(left, Left::Lost) {
            // Whoever comes next finds it where we left it, and need not wait.
            if let Err(NotSaved::NotNow(error)) = self.save(&mut job).await {
                tracing::debug!(error, "the last events will be seen again");
            }
            self.ledger.release(job.claim, &job.position).await;
        }
        left
    }

    /// A moment's trouble with the source is no reason to hand the part to somebody else.
    async fn stay_with(&mut self, job: &mut Job) -> Left {
        let mut well = Instant::now();
        loop {
            match self.go_on(job, &mut well).await {
                Left::Trouble(error) if well.elapsed() < LEASE => {
                    let pause = self.complain(&error);
                    drop(tokio::time::timeout(pause, self.stop.changed()).await);
                }
                left @ (Left::Done | Left::Lost | Left::Shared | Left::Trouble(_)) => return left,
            }
        }
    }

    /// Reads, delivers and saves. `well` is when the source was last read.
    async fn go_on(&mut self, job: &mut Job, well: &mut Instant) -> Left {
        // A new observer's start is kept before anything else: it must not move on a restart.
        if let Err(left) = self.save_now(job).await {
            return left;
        }
        loop {
            if *self.stop.borrow() {
                return Left::Done;
            }
            let arrived = tokio::select! {
                arrived = self.tail.next(&mut job.position, BATCH) => arrived,
                _ = self.stop.changed() => return Left::Done,
            };
            let arrived = match arrived {
                Ok(arrived) => arrived,
                Err(trouble) => return trouble.into(),
            };
            *well = Instant::now();
            self.complaint = None;
            let idle = arrived.is_empty();
            if let Err(left) = self.handle(arrived, job).await {
                return left;
            }
            if let Err(left) = self.save_if_due(job, idle).await {
                return left;
            }
            if idle && self.assignment.leaves_when_done && self.tail.is_at_end() {
                return Left::Done;
            }
            if self.shares.give_back_if_too_many() {
                return Left::Shared;
            }
        }
    }

    async fn count_dead_letters(&mut self) {
        self.counted = Instant::now();
        self.report.dead_letters(self.ledger.count_dead_letters().await.ok());
    }

    async fn save_if_due(&mut self, job: &mut Job, idle: bool) -> Result<(), Left> {
        let since = job.saved.elapsed();
        let due = since > SIGN_OF_LIFE || (job.unsaved && (idle || since > SAVE_AFTER));
        if due { self.save_now(job).await } else { Ok(()) }
    }

    async fn save_now(&mut self, job: &mut Job) -> Result<(), Left> {
        save(&mut self.ledger, job).await?;
        self.report.well();
        if let Some(lag) = self.tail.lag(&job.position).await {
            self.report.lag(lag);
        }
        if self.counted.elapsed() > COUNT_AGAIN {
            self.count_dead_letters().await;
        }
        Ok(())
    }

    async fn save(&mut self, job: &mut Job) -> Result<(), NotSaved> {
        if job.unsaved { self.ledger.save(&mut job.claim, &job.position).await } else { Ok(()) }
    }
}

/// A part under way.
struct Job {
    claim: Claim,
    position: Position,
    saved: Instant,
    unsaved: bool,
}

async fn save(ledger: &mut Ledger, job: &mut Job) -> Result<(), Left> {
    match ledger.save(&mut job.claim, &job.position).await {
        Ok(()) => {
            (job.saved, job.unsaved) = (Instant::now(), false);
            Ok(())
        }
        Err(NotSaved::Lost) => Err(Left::Lost),
        // Nobody else can take over while there is no ledger to ask; go on for as long as the lease.
        Err(NotSaved::NotNow(error)) if job.saved.elapsed() + SIGN_OF_LIFE > LEASE => {
            Err(Left::Trouble(error))
        }
        Err(NotSaved::NotNow(error)) => {
            tracing::debug!(error, "not saved yet");
            Ok(())
        }
    }
}
