//! One plugin, with its process once it was asked something, and what becomes of it when it fails.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::super::consent::KeptGate;
use super::super::consent::Objection;
use super::super::surroundings::Surroundings;
use super::folder::{Code, Found};
use super::moment::hears;
use super::process::{Launch, Process, Trouble};
use crate::event::{EventId, Heard};

/// A plugin that hung or cannot be loaded is left alone for this long, and twice as long each time.
const REST: Duration = Duration::from_secs(30);

/// The same for one that dies, from the second time in a row.
const SHORT_REST: Duration = Duration::from_secs(1);

/// And never longer than this.
const LONGEST_REST: Duration = Duration::from_mins(10);

/// Whoever waited for all of a plugin's time also hears what became of it.
const LAST_WORD: Duration = Duration::from_secs(1);

/// What is said of one that is left alone, before why.
pub(in crate::decide) const LEFT_ALONE: &str = "left alone for a while";

const BUSY: &str = "it was busy with other events until the end";
const OVERDUE: &str = "it is still at an event that somebody gave up on";

/// One plugin.
#[derive(Debug)]
pub(in crate::decide) struct Plugin {
    pub(super) found: Found,
    launch: Launch,
    log: PathBuf,
    /// Whether it is left alone for a while after it failed.
    rests: bool,
    code: Mutex<Code>,
    state: Arc<AsyncMutex<State>>,
    ears: Mutex<Option<Ears>>,
    /// The question that it is at; only whoever has the state sets it.
    at_work: Mutex<Option<AtWork>>,
    pub(super) said_what_it_needs: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Box<Process>>,
    rest: Option<Rest>,
    /// How often in a row it failed.
    failures: u32,
}

/// What a process of this code listens to.
#[derive(Debug)]
struct Ears {
    code: Code,
    hooks: Vec<String>,
    /// It is gone, and nobody tries another one before this.
    until: Option<Instant>,
}

/// A question that somebody waits for, or has given up on.
#[derive(Debug, Clone, Copy)]
struct AtWork {
    asked_at: Instant,
    /// Until when whoever asked it waits.
    gone_at: Instant,
}

/// It is at work, until this is dropped, whatever the reason.
struct Busy<'a>(&'a Plugin);

impl<'a> Busy<'a> {
    fn with(plugin: &'a Plugin, question: AtWork) -> Self {
        *plugin.at_work() = Some(question);
        Self(plugin)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        *self.0.at_work() = None;
    }
}

#[derive(Debug)]
struct Rest {
    until: Instant,
    why: String,
    /// What failed: other code has another try at once.
    code: Code,
}

/// What a plugin said about an event.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Value,
    pub(super) hash: String,
    pub(super) heard: Heard,
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Unanswered {
    Failed(String),
    /// Nobody has agreed to what would have been started.
    Refused(Objection),
}

impl From<&str> for Unanswered {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

impl Unanswered {
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Failed(why) | Self::Refused(Objection { why, .. }) => why,
        }
    }
}

/// A place in the line before a plugin.
pub(in crate::decide) struct Turn(Waiting);

enum Waiting {
    Over(OwnedMutexGuard<State>),
    Still(Pin<Box<dyn Future<Output = OwnedMutexGuard<State>> + Send>>),
}

impl Turn {
    async fn come(self) -> OwnedMutexGuard<State> {
        match self.0 {
            Waiting::Over(state) => state,
            Waiting::Still(turn) => turn.await,
        }
    }
}

/// One event, as a plugin hears it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: EventId,
    pub(super) name: String,
    /// The session it belongs to, which its payload need not say.
    pub(super) session: String,
    pub(super) payload: Value,
    pub(super) place: Surroundings,
    /// What is asked again before anything is started for it: it may have waited in line for long.
    pub(super) gate: Option<Arc<KeptGate>>,
}

/// How long a question may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::decide) struct Time {
    /// The hook's own `timeout`: a plugin that takes longer hangs.
    own: Duration,
    /// How long whoever asks can wait. Where that is less, it says nothing about the plugin.
    asker: Duration,
}

impl Time {
    /// For an asker who has `left`.
    pub(in crate::decide) fn of(own: Duration, left: Duration) -> Self {
        Self { own, asker: left.min(own.saturating_add(LAST_WORD)) }
    }

    /// For one who waits as long as the plugin may take.
    pub(in crate::decide) fn all(own: Duration) -> Self {
        Self::of(own, Duration::MAX)
    }
}

impl Plugin {
    pub(super) fn new(found: Found, launch: Launch, log: PathBuf, rests: bool) -> Self {
        let code = Mutex::new(found.code(None));
        let (state, said_what_it_needs) = (Arc::default(), AtomicBool::new(false));
        let (ears, at_work) = (Mutex::default(), Mutex::default());
        Self { found, launch, log, rests, code, state, ears, at_work, said_what_it_needs }
    }

    fn at_work(&self) -> MutexGuard<'_, Option<AtWork>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is known to have no ear for this: then it is not waited for, and nothing of it can fail.
    fn is_deaf_to(&self, name: &str) -> bool {
        let ears = self.ears();
        let is_so = |ears: &&Ears| {
            ears.code == self.code() && ears.until.is_none_or(|until| Instant::now() < until)
        };
        let known = ears.as_ref().filter(is_so);
        known.is_some_and(|ears| !ears.hooks.iter().any(|pattern| hears(pattern, name)))
    }

    fn ears(&self) -> MutexGuard<'_, Option<Ears>> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is called.
    pub(in crate::decide) fn name(&self) -> &str {
        &self.found.key
    }

    /// Its code, when it was last looked at.
    pub(super) fn code(&self) -> Code {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The hash of its code, when it was last looked at.
    pub(in crate::decide) fn hash(&self) -> String {
        self.code().hash
    }

    /// Forgets everything: its next event starts it, whatever became of it before.
    pub(in crate::decide) async fn start_anew(&self) {
        *self.state.lock().await = State::default();
        *self.ears() = None;
    }

    /// Takes a place in its line. Whoever comes later is heard later.
    pub(in crate::decide) async fn line_up(&self) -> Turn {
        let mut turn = Box::pin(Arc::clone(&self.state).lock_owned());
        // Looked at once, it stands in line; nobody waits for it here.
        match poll_fn(|context| Poll::Ready(turn.as_mut().poll(context))).await {
            Poll::Ready(state) => Turn(Waiting::Over(state)),
            Poll::Pending => Turn(Waiting::Still(turn)),
        }
    }

    /// Looks at its code again.
    pub(super) fn look(&self) {
        let code = self.found.code(Some(&self.code()));
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = code;
    }

    /// Whether its next event would start it.
    pub(super) fn is_cold(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.process.is_none() && state.rest.is_none())
    }

    /// Whether it was said before that something it needs is missing.
    pub(super) fn says_again_what_it_needs(&self) -> bool {
        self.said_what_it_needs.swap(true, Ordering::Relaxed)
    }

    /// Asks about an event; nothing if the plugin has no hook for it. Who cannot wait for all of its time goes
    /// away without an answer; it has its time all the same, to load and to hear of the event.
    pub(super) async fn call(
        self: &Arc<Self>,
        question: Question,
        time: Time,
    ) -> Result<Option<Reply>, Unanswered> {
        if self.is_deaf_to(&question.name) {
            return Ok(None);
        }
        let asked_at = Instant::now();
        let gone_at = asked_at + time.asker;
        let mut state = self.turn(time.asker).await?;
        let plugin = Arc::clone(self);
        let mut answering = tokio::spawn(async move {
            let busy = Busy::with(&plugin, AtWork { asked_at, gone_at });
            let answer = plugin.answer(&mut state, &question, time.own, gone_at).await;
            // In this order: whoever has the state is the only one to say what it is at.
            drop(busy);
            drop(state);
            if let (Err(unanswered), true) = (&answer, Instant::now() >= gone_at) {
                tracing::warn!(plugin = plugin.name(), event_id = %question.id, why = unanswered.why(), "a plugin failed, and nobody waited for it any more");
            }
            answer
        });
        match tokio::time::timeout_at(gone_at.into(), &mut answering).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Err(Unanswered::Failed(format!("asking it broke off: {error}"))),
            Err(_) => Err(Unanswered::Failed(format!(
                "no answer within {:.1} s, which is all the time there was; it goes on",
                asked_at.elapsed().as_secs_f64()
            ))),
        }
    }

    /// Waits for a turn. Behind an event that somebody gave up on nobody waits longer than if they had waited
    /// from its start: one that hangs costs a deadline once, not once for each who comes.
    async fn turn(&self, patience: Duration) -> Result<OwnedMutexGuard<State>, Unanswered> {
        if let Ok(state) = Arc::clone(&self.state).try_lock_owned() {
            return Ok(state);
        }
        let overdue = self.at_work().filter(|it| it.gone_at <= Instant::now());
        let patience =
            overdue.map_or(patience, |it| patience.saturating_sub(it.asked_at.elapsed()));
        let turn = tokio::time::timeout(patience, Arc::clone(&self.state).lock_owned()).await;
        turn.map_err(|_| overdue.map_or(BUSY, |_| OVERDUE).into())
    }

    async fn answer(
        self: &Arc<Self>,
        state: &mut State,
        question: &Question,
        limit: Duration,
        gone_at: Instant,
    ) -> Result<Option<Reply>, Unanswered> {
        let end = Instant::now() + limit;
        let left = || end.saturating_duration_since(Instant::now());
        loop {
            let had_one = state.process.is_some();
            let asked = match self.listener(state, question, left()).await {
                Ok(None) => return Ok(None),
                Ok(Some(process)) => {
                    let hash = process.code.hash.clone();
                    let patience = gone_at.saturating_duration_since(Instant::now());
                    let answer = process.ask(question, left(), patience).await;
                    answer.map(|answer| Reply { heard: process.heard(&answer), answer, hash })
                }
                Err(trouble) => Err(trouble),
            };
            match asked {
                Ok(reply) => {
                    state.failures = 0;
                    return Ok(Some(reply));
                }
                // It ended between two events, and heard nothing of this one.
                Err(Trouble::Gone(_)) if had_one => state.process = None,
                Err(trouble) => return Err(self.failed(state, trouble)),
            }
        }
    }

    /// Tells about an event where nothing can be said, and waits only until it was told.
    pub(super) async fn tell(
        self: &Arc<Self>,
        turn: Turn,
        question: Question,
        limit: Duration,
    ) -> Result<(), Unanswered> {
        if self.is_deaf_to(&question.name) {
            return Ok(());
        }
        let turn = tokio::time::timeout(limit, turn.come()).await;
        let mut state = turn.map_err(|_| Unanswered::from(BUSY))?;
        let end = Instant::now() + limit;
        let left = || end.saturating_duration_since(Instant::now());
        loop {
            let had_one = state.process.is_some();
            let told = match self.listener(&mut state, &question, left()).await {
                Ok(None) => return Ok(()),
                Ok(Some(process)) => process.tell(&question, left(), limit).await,
                Err(trouble) => Err(trouble),
            };
            match told {
                Ok(()) => return Ok(()),
                Err(Trouble::Gone(_)) if had_one => state.process = None,
                Err(trouble) => return Err(self.failed(&mut state, trouble)),
            }
        }
    }

    /// Its process, if it listens to the event; started if need be.
    async fn listener<'s>(
        self: &Arc<Self>,
        state: &'s mut State,
        question: &Question,
        limit: Duration,
    ) -> Result<Option<&'s mut Process>, Trouble> {
        let code = self.code();
        if state.process.as_ref().is_some_and(|process| process.code != code) {
            state.process = None;
        }
        if let Some(rest) = &state.rest {
            if rest.code != code {
                state.failures = 0;
            } else if Instant::now() < rest.until {
                return Err(Trouble::Resting(format!("{LEFT_ALONE}: {}", rest.why)));
            }
            state.rest = None;
        }
        if state.process.is_none() {
            let begun = Instant::now();
            let code = self.code_to_start(question, limit).await?;
            let limit = limit.saturating_sub(begun.elapsed());
            let started =
                Process::start(&self.found, &code, &self.launch, question, &self.log, limit);
            let started = started.await?;
            *self.ears() = Some(Ears { code, hooks: started.hooks().to_vec(), until: None });
            state.process = Some(Box::new(started));
        }
        Ok(state.process.as_deref_mut().filter(|process| process.listens_to(&question.name)))
    }

    /// Its code as it lies there now, if it was agreed to: since the event came, it may have been edited.
    async fn code_to_start(
        self: &Arc<Self>,
        question: &Question,
        limit: Duration,
    ) -> Result<Code, Trouble> {
        let (plugin, gate) = (Arc::clone(self), question.gate.clone());
        let looking = tokio::task::spawn_blocking(move || {
            plugin.look();
            gate.and_then(|gate| gate.objection_to(&plugin.found.folder))
        });
        match tokio::time::timeout(limit, looking).await {
            Ok(Ok(None)) => Ok(self.code()),
            Ok(Ok(Some(objection))) => Err(Trouble::Refused(objection)),
            Ok(Err(_)) | Err(_) => {
                Err(Trouble::Broken("its code could not be read in time".to_owned()))
            }
        }
    }

    /// What is said about it, and how long it is left alone.
    fn failed(&self, state: &mut State, trouble: Trouble) -> Unanswered {
        let (why, first_rest) = match trouble {
            Trouble::Refused(objection) => return Unanswered::Refused(objection),
            Trouble::Resting(why) | Trouble::Garbled(why) => return Unanswered::Failed(why),
            Trouble::Hung(why) | Trouble::Broken(why) | Trouble::Gone(why) | Trouble::Died(why)
                if !self.rests =>
            {
                (why, Duration::ZERO)
            }
            Trouble::Hung(why) | Trouble::Broken(why) => (why, REST),
            Trouble::Gone(why) | Trouble::Died(why) if state.failures == 0 => (why, Duration::ZERO),
            Trouble::Gone(why) | Trouble::Died(why) => (why, SHORT_REST),
        };
        let rest = longer_each_time(first_rest, state.failures);
        state.failures = state.failures.saturating_add(1);
        state.process = None;
        // Another process may listen to something else.
        if let Some(ears) = &mut *self.ears() {
            ears.until = Some(Instant::now() + rest);
        }
        state.rest = (!rest.is_zero()).then(|| Rest {
            until: Instant::now() + rest,
            why: why.clone(),
            code: self.code(),
        });
        Unanswered::Failed(why)
    }
}

fn longer_each_time(first: Duration, failures_before: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures_before.min(16))).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_hangs_again_and_again_rests_longer_each_time() {
        let rests: Vec<u64> =
            (0..7).map(|before| longer_each_time(REST, before).as_secs()).collect();
        assert_eq!(rests, [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(longer_each_time(REST, u32::MAX), LONGEST_REST);
    }
}
