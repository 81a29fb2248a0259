//! What only a replay needs: running the hooks of a plan about a recorded event, in a sandbox, with plugins
//! in fresh processes.

mod launch;
mod plugin_restarts;
mod shell_words;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use self::launch::CommandPreview;
pub(super) use self::launch::in_original_folder;
pub use self::plugin_restarts::PluginRestarts;
use self::plugin_restarts::ReplayPlugins;
use super::plan::Plan;
use super::run::{HookResult, HookRun, deadline_in};
use crate::caller::Caller;
use crate::event::{BusId, EventId, Seq};
pub use crate::exec::Isolation;
use crate::exec::Sandbox;
use crate::rule::Facts;

/// Where the programs and plugins of a replay run.
#[derive(Debug, Clone)]
pub struct ReplayEnvironment {
    pub(super) sandbox: Sandbox,
    /// For one event's hooks together.
    time: Duration,
    pub(super) plugins: Arc<ReplayPlugins>,
}

/// Where an event was recorded: its bus, if that is not this one, and its position there.
type Origin = (Option<BusId>, Seq);

impl ReplayEnvironment {
    /// An environment in `folder`, which must exist. The hooks of one event get `time`, each process
    /// `memory` bytes.
    pub fn in_folder(folder: &Path, time: Duration, memory: u64) -> std::io::Result<Self> {
        let sandbox = Sandbox::in_folder(folder, memory)?;
        Ok(Self { sandbox, time, plugins: Arc::default() })
    }

    /// The same environment, with plugins restarted at the events where the recorded processes restarted.
    #[must_use]
    pub fn with_restarts(self, restarts: PluginRestarts) -> Self {
        Self { plugins: Arc::new(ReplayPlugins::new(restarts)), ..self }
    }

    /// The same environment, with commands kept apart from the rest of the system. Plugins are not.
    #[must_use]
    pub fn isolated(self, isolation: Isolation) -> Self {
        Self { sandbox: self.sandbox.isolated(isolation), ..self }
    }

    /// To be called for every event, in log order: plugins that were restarted for it are restarted again.
    pub fn pass(&self, bus: Option<BusId>, event: EventId) {
        self.plugins.pass(bus, event);
    }

    /// Whether the replay has passed this event. If so, a plugin that was started for it has received every
    /// event since.
    pub fn has_passed(&self, event: EventId) -> bool {
        self.plugins.has_passed(event)
    }

    /// Kills everything that runs here, and everything that starts from now on.
    pub fn end(&self) {
        self.sandbox.end();
    }

    /// The results of a plan for an event that was recorded at `origin`. `caller` is the recorded one: programs
    /// are looked up in its working directory.
    pub async fn run<'a>(
        &self,
        plan: &Plan<'a>,
        facts: &Facts<'_>,
        origin: Origin,
        caller: &Caller,
    ) -> Vec<HookResult<'a>> {
        self.hook_run(plan, origin, caller, &[]).all(facts).await
    }

    /// The same for an event that plugins have already answered, with their results in `known`: a second call
    /// would make them count the event twice.
    pub async fn run_again<'a>(
        &self,
        plan: &Plan<'a>,
        facts: &Facts<'_>,
        origin: Origin,
        caller: &Caller,
        known: &[HookResult<'a>],
    ) -> Vec<HookResult<'a>> {
        self.hook_run(plan, origin, caller, known).all(facts).await
    }

    /// Calls only the plugins of a plan, so that they remember the event. Their answers are dropped.
    pub async fn tell_plugins(
        &self,
        plan: &Plan<'_>,
        facts: &Facts<'_>,
        origin: Origin,
        caller: &Caller,
    ) {
        let plan = plan.plugins_only();
        drop(self.hook_run(&plan, origin, caller, &[]).all(facts).await);
    }

    fn hook_run<'a, 'p>(
        &'a self,
        plan: &'a Plan<'p>,
        (bus, seq): Origin,
        agent: &'a Caller,
        known: &'a [HookResult<'p>],
    ) -> HookRun<'a, 'p> {
        let deadline = deadline_in(self.time);
        let (seq, replay, short) = (Some(seq), Some(self), AtomicBool::new(false));
        HookRun { plan, seq, bus, agent, replay, known, deadline, short }
    }
}
