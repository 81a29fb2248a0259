//! Runs the commands and plugins of a replay in its scratch directory, with the working directory and
//! session variables that were recorded.

use std::ffi::OsString;
use std::io;

use hookbus::caller::Caller;
use hookbus::decide::replay::ReplayEnvironment;
use hookbus::decide::{HookResult, Plan};
use hookbus::dialect::restore_caller;
use hookbus::event::Event;
use hookbus::log::RecordedEvent;
use hookbus::rule::{Facts, Place, ShellLines};
use tokio::runtime::{Builder, Runtime};

/// What a replay does with hooks that run outside of this process.
#[derive(Debug, Clone, Copy)]
pub enum Commands<'a> {
    /// Runs them in a scratch directory.
    Run {
        /// Where they run, with limits.
        environment: &'a ReplayEnvironment,
        /// Environment of this process, which they inherit.
        env: &'a [(OsString, OsString)],
        /// How often each command runs per event, to find nondeterministic ones.
        repeat: u32,
    },
    /// Skips them. Events that depend on one are then not comparable.
    Skip,
}

/// Runs commands and plugins, and waits for them.
#[derive(Debug)]
pub(crate) struct CommandRunner<'a> {
    pub(crate) environment: &'a ReplayEnvironment,
    env: &'a [(OsString, OsString)],
    pub(crate) repeat: u32,
    runtime: Runtime,
}

impl<'a> CommandRunner<'a> {
    /// A runner, unless commands are skipped.
    pub(crate) fn new(commands: Commands<'a>) -> io::Result<Option<Self>> {
        let Commands::Run { environment, env, repeat } = commands else { return Ok(None) };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Some(Self { environment, env, repeat, runtime }))
    }

    /// Runs all hooks of `plan`.
    pub(crate) fn run<'h>(
        &self,
        plan: &Plan<'h>,
        facts: &Facts<'_>,
        row: &RecordedEvent,
    ) -> Vec<HookResult<'h>> {
        let caller = recorded_caller(row, self.env);
        self.runtime.block_on(self.environment.run(plan, facts, row.origin(), &caller))
    }

    /// Runs the commands of `plan` once more. Plugins would count the event twice, so their verdicts are
    /// taken from `first`.
    pub(crate) fn run_again<'h>(
        &self,
        plan: &Plan<'h>,
        facts: &Facts<'_>,
        row: &RecordedEvent,
        first: &[HookResult<'h>],
    ) -> Vec<HookResult<'h>> {
        let caller = recorded_caller(row, self.env);
        let again = self.environment.run_again(plan, facts, row.origin(), &caller, first);
        self.runtime.block_on(again)
    }

    /// Passes an event to the plugins of `plan` and ignores their verdicts.
    pub(crate) fn notify_plugins(&self, plan: &Plan<'_>, event: &Event, row: &RecordedEvent) {
        let caller = recorded_caller(row, self.env);
        let (place, lines) = (Place::default(), ShellLines::default());
        let facts = Facts::new(event, &place, &lines);
        self.runtime.block_on(self.environment.tell_plugins(plan, &facts, row.origin(), &caller));
    }
}

/// The recorded working directory and session variables, in the environment `env`.
pub(crate) fn recorded_caller(row: &RecordedEvent, env: &[(OsString, OsString)]) -> Caller {
    restore_caller(row.context.as_deref().unwrap_or("{}"), env)
}
