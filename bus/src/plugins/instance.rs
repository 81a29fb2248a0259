//! One plugin: its process, which the first call starts, the queue of its calls, and the back-off after
//! failures. Calls are handled one at a time, in their order. A call goes on when its caller gives up, so that
//! a slow plugin gets the time to load and to handle the event.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::call::MayStart;
use super::event_mapping::subscription_covers;
use super::log::PluginLog;
use super::plugin_dir::{CodeVersion, PluginDir};
use super::process::{Process, ProcessError};
use crate::backoff::Backoff;
use crate::caller::Caller;
use crate::config::{PythonLaunch, Refusal};
use crate::event::{EventId, PluginHistory};

/// The back-off of a plugin that hung or cannot be loaded.
const HANG_BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(30), longest: Duration::from_mins(10) };

/// The back-off of a plugin whose process died, from the second time in a row.
const DEATH_BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_mins(10) };

/// A caller that waits for the whole timeout waits this much longer, to get the reason of a failure too.
const GRACE: Duration = Duration::from_secs(1);

/// The text that the failure of a plugin in back-off begins with.
pub(crate) const BACKING_OFF: &str = "not called for a while";

const BUSY: &str = "it was busy with other events until the timeout";
const STUCK: &str = "it is still busy with an event whose caller has given up";

/// What happens after a plugin failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnRepeatedFailure {
    /// It is not called for a while, so that agents do not wait for it again and again.
    BackOff,
    /// The next call starts it again.
    TryAgain,
}

/// One plugin.
#[derive(Debug)]
pub struct PluginInstance {
    pub(super) dir: PluginDir,
    launch: PythonLaunch,
    log: PluginLog,
    on_repeated_failure: OnRepeatedFailure,
    code: Mutex<CodeVersion>,
    state: Arc<AsyncMutex<State>>,
    subscriptions: Mutex<Option<Subscriptions>>,
    /// The call under way; only the holder of `state` sets it.
    current_call: Mutex<Option<CurrentCall>>,
    reported_missing_variables: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Box<Process>>,
    backoff: Option<BackingOff>,
    /// How often it failed in a row.
    failures: u32,
}

/// The events that this version of the code has callbacks for.
#[derive(Debug)]
struct Subscriptions {
    code: CodeVersion,
    events: Vec<String>,
    /// The process has ended, and no other is started before this.
    until: Option<Instant>,
}

/// A call under way. Its caller waits, or has given up.
#[derive(Debug, Clone, Copy)]
struct CurrentCall {
    started: Instant,
    /// Until when its caller waits.
    caller_deadline: Instant,
}

/// Marks a call as under way until it is dropped.
struct BusyGuard<'a>(&'a PluginInstance);

impl<'a> BusyGuard<'a> {
    fn new(plugin: &'a PluginInstance, call: CurrentCall) -> Self {
        *plugin.current_call() = Some(call);
        Self(plugin)
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        *self.0.current_call() = None;
    }
}

#[derive(Debug)]
struct BackingOff {
    until: Instant,
    why: String,
    /// The version that failed; another version is tried at once.
    code: CodeVersion,
}

/// A plugin's reply to a call.
#[derive(Debug)]
pub(super) struct CallReply {
    pub(super) answer: Value,
    pub(super) hash: String,
    pub(super) history: PluginHistory,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The plugin failed.
    #[error("{0}")]
    Failed(String),
    /// The system is short of what a process needs. No back-off: the next call may succeed.
    #[error("{0}")]
    Short(String),
    /// The user has not approved what would have been started.
    #[error("{}", .0.why)]
    Refused(Refusal),
}

impl From<&str> for CallError {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

/// A place in the queue of a plugin's calls.
pub(crate) struct QueueSlot(Slot);

impl fmt::Debug for QueueSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueSlot")
    }
}

enum Slot {
    Ready(OwnedMutexGuard<State>),
    Waiting(Pin<Box<dyn Future<Output = OwnedMutexGuard<State>> + Send>>),
}

impl QueueSlot {
    async fn ready(self) -> OwnedMutexGuard<State> {
        match self.0 {
            Slot::Ready(state) => state,
            Slot::Waiting(state) => state.await,
        }
    }
}

/// One event, as a plugin is called about it.
#[derive(Debug)]
pub(super) struct PluginCall {
    pub(super) id: EventId,
    pub(super) name: String,
    /// The event's session, which the payload need not name.
    pub(super) session: String,
    pub(super) payload: Value,
    pub(super) caller: Caller,
    /// The check right before a process is started: the call may have waited in the queue for long.
    pub(super) may_start: Option<MayStart>,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub struct CallTimeout {
    /// The hook's `timeout`: a plugin that takes longer has hung.
    hook: Duration,
    /// How long the caller can wait. If that is less, giving up does not mean that the plugin has hung.
    caller: Duration,
}

impl CallTimeout {
    /// For a caller that can wait for `left`.
    pub(crate) fn new(hook: Duration, left: Duration) -> Self {
        Self { hook, caller: left.min(hook.saturating_add(GRACE)) }
    }

    /// For a caller that waits as long as the plugin may take.
    pub fn full(hook: Duration) -> Self {
        Self::new(hook, Duration::MAX)
    }
}

impl PluginInstance {
    pub(super) fn new(
        dir: PluginDir,
        launch: PythonLaunch,
        log: PluginLog,
        on_repeated_failure: OnRepeatedFailure,
    ) -> Self {
        Self {
            code: Mutex::new(dir.code(None)),
            dir,
            launch,
            log,
            on_repeated_failure,
            state: Arc::default(),
            subscriptions: Mutex::default(),
            current_call: Mutex::default(),
            reported_missing_variables: AtomicBool::new(false),
        }
    }

    fn current_call(&self) -> MutexGuard<'_, Option<CurrentCall>> {
        self.current_call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is known to have no callback for this event: then it is not called.
    fn ignores(&self, name: &str) -> bool {
        let subscriptions = self.subscriptions();
        let is_current = |it: &&Subscriptions| {
            it.code == self.code() && it.until.is_none_or(|until| Instant::now() < until)
        };
        let known = subscriptions.as_ref().filter(is_current);
        known.is_some_and(|it| !it.events.iter().any(|event| subscription_covers(event, name)))
    }

    fn subscriptions(&self) -> MutexGuard<'_, Option<Subscriptions>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hermes' name for it.
    pub fn name(&self) -> &str {
        &self.dir.key
    }

    /// The version of its code when the disk was last read.
    pub(super) fn code(&self) -> CodeVersion {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The hash of its code when the disk was last read.
    pub(crate) fn hash(&self) -> String {
        self.code().hash
    }

    /// Ends its process and clears its back-off: the next call starts it.
    pub(crate) async fn restart(&self) {
        *self.state.lock().await = State::default();
        *self.subscriptions() = None;
    }

    /// Takes a place in the queue of its calls, without waiting.
    pub(crate) async fn enqueue(&self) -> QueueSlot {
        let mut lock = Box::pin(Arc::clone(&self.state).lock_owned());
        // The first poll puts it into the lock's fair queue.
        match poll_fn(|context| Poll::Ready(lock.as_mut().poll(context))).await {
            Poll::Ready(state) => QueueSlot(Slot::Ready(state)),
            Poll::Pending => QueueSlot(Slot::Waiting(lock)),
        }
    }

    /// Reads its code from disk again.
    pub(super) fn refresh_code(&self) {
        let code = self.dir.code(Some(&self.code()));
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = code;
    }

    /// Whether its next call would start a process.
    pub(super) fn is_cold(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.process.is_none() && state.backoff.is_none())
    }

    /// Whether its missing variables were reported before. From now on they count as reported.
    pub(super) fn mark_missing_variables_reported(&self) -> bool {
        self.reported_missing_variables.swap(true, Ordering::Relaxed)
    }

    /// Calls it about an event; none if it has no callback for it. A caller that cannot wait for the hook's
    /// whole timeout gives up without an answer; the plugin still gets its time to load and handle the event.
    pub(super) async fn call(
        self: &Arc<Self>,
        call: PluginCall,
        timeout: CallTimeout,
    ) -> Result<Option<CallReply>, CallError> {
        if self.ignores(&call.name) {
            return Ok(None);
        }
        let started = Instant::now();
        let caller_deadline = started + timeout.caller;
        let mut state = self.wait_for_turn(timeout.caller).await?;
        let plugin = Arc::clone(self);
        let mut answering = tokio::spawn(async move {
            let busy = BusyGuard::new(&plugin, CurrentCall { started, caller_deadline });
            let reply = plugin.answer(&mut state, &call, timeout.hook, caller_deadline).await;
            // In this order: only the holder of the state may set the current call.
            drop(busy);
            drop(state);
            if let (Err(error), true) = (&reply, Instant::now() >= caller_deadline) {
                tracing::warn!(plugin = plugin.name(), event_id = %call.id, %error, "a plugin failed after its caller had given up");
            }
            reply
        });
        match tokio::time::timeout_at(caller_deadline.into(), &mut answering).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Err(CallError::Failed(format!("the call failed: {error}"))),
            Err(_) => Err(CallError::Failed(format!(
                "no answer within {:.1} s, which is all the time there was; it goes on",
                started.elapsed().as_secs_f64()
            ))),
        }
    }

    /// Waits for the calls before this one. Behind a stuck call the wait counts from the start of that call,
    /// so a plugin that hangs costs one timeout, not one for each caller.
    async fn wait_for_turn(&self, limit: Duration) -> Result<OwnedMutexGuard<State>, CallError> {
        if let Ok(state) = Arc::clone(&self.state).try_lock_owned() {
            return Ok(state);
        }
        let stuck = self.current_call().filter(|call| call.caller_deadline <= Instant::now());
        let limit = stuck.map_or(limit, |call| limit.saturating_sub(call.started.elapsed()));
        let turn = tokio::time::timeout(limit, Arc::clone(&self.state).lock_owned()).await;
        turn.map_err(|_| stuck.map_or(BUSY, |_| STUCK).into())
    }

    async fn answer(
        self: &Arc<Self>,
        state: &mut State,
        call: &PluginCall,
        limit: Duration,
        caller_deadline: Instant,
    ) -> Result<Option<CallReply>, CallError> {
        let end = Instant::now() + limit;
        let left = || end.saturating_duration_since(Instant::now());
        loop {
            let had_process = state.process.is_some();
            let reply = match self.subscribed_process(state, call, left()).await {
                Ok(None) => return Ok(None),
                Ok(Some(process)) => {
                    let hash = process.code.hash.clone();
                    let caller_waits = caller_deadline.saturating_duration_since(Instant::now());
                    let answer = process.call(call, left(), caller_waits).await;
                    answer.map(|answer| CallReply {
                        history: process.history(&answer),
                        answer,
                        hash,
                    })
                }
                Err(error) => Err(error),
            };
            match reply {
                Ok(reply) => {
                    state.failures = 0;
                    return Ok(Some(reply));
                }
                // The process ended between two calls, before it got this one: start another.
                Err(ProcessError::Gone(_)) if had_process => state.process = None,
                Err(error) => return Err(self.record_failure(state, error)),
            }
        }
    }

    /// Notifies it of an event where no answer is possible; returns when its process has been sent the event.
    pub(super) async fn notify(
        self: &Arc<Self>,
        slot: QueueSlot,
        call: PluginCall,
        limit: Duration,
    ) -> Result<(), CallError> {
        if self.ignores(&call.name) {
            return Ok(());
        }
        let ready = tokio::time::timeout(limit, slot.ready()).await;
        let mut state = ready.map_err(|_| CallError::from(BUSY))?;
        let end = Instant::now() + limit;
        let left = || end.saturating_duration_since(Instant::now());
        loop {
            let had_process = state.process.is_some();
            let notified = match self.subscribed_process(&mut state, &call, left()).await {
                Ok(None) => return Ok(()),
                Ok(Some(process)) => process.notify(&call, left(), limit).await,
                Err(error) => Err(error),
            };
            match notified {
                Ok(()) => return Ok(()),
                Err(ProcessError::Gone(_)) if had_process => state.process = None,
                Err(error) => return Err(self.record_failure(&mut state, error)),
            }
        }
    }

    /// Its process, started if need be; none if it has no callback for the event.
    async fn subscribed_process<'s>(
        self: &Arc<Self>,
        state: &'s mut State,
        call: &PluginCall,
        limit: Duration,
    ) -> Result<Option<&'s mut Process>, ProcessError> {
        let code = self.code();
        if state.process.as_ref().is_some_and(|process| process.code != code) {
            state.process = None;
        }
        if let Some(backoff) = &state.backoff {
            if backoff.code != code {
                state.failures = 0;
            } else if Instant::now() < backoff.until {
                return Err(ProcessError::BackingOff(format!("{BACKING_OFF}: {}", backoff.why)));
            }
            state.backoff = None;
        }
        if state.process.is_none() {
            let begun = Instant::now();
            let code = self.code_to_start(call, limit).await?;
            let limit = limit.saturating_sub(begun.elapsed());
            let started = Process::start(&self.dir, &code, &self.launch, call, &self.log, limit);
            let started = started.await?;
            let events = started.subscriptions().to_vec();
            *self.subscriptions() = Some(Subscriptions { code, events, until: None });
            state.process = Some(Box::new(started));
        }
        Ok(state.process.as_deref_mut().filter(|process| process.is_subscribed_to(&call.name)))
    }

    /// The code that is on disk now, if it may start: the user may have edited it since the event arrived.
    async fn code_to_start(
        self: &Arc<Self>,
        call: &PluginCall,
        limit: Duration,
    ) -> Result<CodeVersion, ProcessError> {
        let (plugin, may_start) = (Arc::clone(self), call.may_start.clone());
        let checking = tokio::task::spawn_blocking(move || {
            plugin.refresh_code();
            may_start.and_then(|may_start| may_start.refusal(&plugin.dir.folder))
        });
        match tokio::time::timeout(limit, checking).await {
            Ok(Ok(None)) => Ok(self.code()),
            Ok(Ok(Some(refusal))) => Err(ProcessError::Refused(refusal)),
            Ok(Err(_)) | Err(_) => {
                Err(ProcessError::Broken("its code could not be read in time".to_owned()))
            }
        }
    }

    /// Ends a process that cannot be used any more, and sets the back-off.
    fn record_failure(&self, state: &mut State, error: ProcessError) -> CallError {
        let (why, backoff) = match error {
            ProcessError::Refused(refusal) => return CallError::Refused(refusal),
            ProcessError::Short(why) => return CallError::Short(why),
            ProcessError::BackingOff(why) | ProcessError::Garbled(why) => {
                return CallError::Failed(why);
            }
            ProcessError::Hung(why) | ProcessError::Broken(why) => (why, Some(HANG_BACKOFF)),
            ProcessError::Gone(why) | ProcessError::Died(why) => {
                (why, (state.failures > 0).then_some(DEATH_BACKOFF))
            }
        };
        let backs_off = self.on_repeated_failure == OnRepeatedFailure::BackOff;
        state.failures = state.failures.saturating_add(1);
        let delay =
            backoff.filter(|_| backs_off).map_or(Duration::ZERO, |it| it.delay(state.failures));
        state.process = None;
        // Another process may subscribe to other events.
        if let Some(subscriptions) = &mut *self.subscriptions() {
            subscriptions.until = Some(Instant::now() + delay);
        }
        state.backoff = (!delay.is_zero()).then(|| BackingOff {
            until: Instant::now() + delay,
            why: why.clone(),
            code: self.code(),
        });
        CallError::Failed(why)
    }
}
