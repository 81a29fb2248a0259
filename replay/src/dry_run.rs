//! Finds out which commands a replay would run, without running any. A real replay does this first, so
//! that the user can confirm the list.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use hookbus::decide::plan;
use hookbus::decide::replay::{CommandPreview, PluginRestarts};
use hookbus::event::Agent;
use hookbus::log::{ReadError, RecordedEvent, ScannedRow};

use crate::command_runner::recorded_caller;
use crate::ordered::run_ordered;
use crate::recorded_decision::read_decision;
use crate::redecide::decode_row;
use crate::replay_hooks::ReplayHooks;
use crate::source::{EventReader, EventSource};
use crate::unapproved::skip_unapproved;

/// A command or plugin that would run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedCommand {
    /// Name of the hook.
    pub hook: String,
    /// The event that it is configured for.
    pub event: String,
    /// The command line as configured.
    pub command: String,
    /// The command line with resolved paths, and the variables that its entry sets.
    pub runs: CommandPreview,
    /// Whether a foreign recording names it.
    pub is_foreign: bool,
}

/// What a replay would run.
#[derive(Debug, Default)]
pub struct DryRun {
    /// Every command, and how often it would run.
    pub commands: BTreeMap<PlannedCommand, u64>,
    /// Foreign commands that are not approved and would not run, and how often they would.
    pub refused: BTreeMap<PlannedCommand, u64>,
    /// Whether a plugin would run for a selected event.
    pub has_plugins: bool,
    /// The events that the recorded plugin processes were started for.
    pub restarts: PluginRestarts,
}

/// Plans all events of `source` with the environment `env`; calls `each` after every chunk.
pub fn dry_run<E: From<ReadError> + From<io::Error> + Send>(
    source: &dyn EventSource,
    hooks: &ReplayHooks,
    env: &[(OsString, OsString)],
    workers: usize,
    mut each: impl FnMut(),
) -> Result<DryRun, E> {
    let mut all = DryRun::default();
    let plan_chunk = |reader: &mut Box<dyn EventReader + '_>, index| {
        let mut chunk = DryRun::default();
        let read = reader.read_chunk(index, &mut |found| match found {
            ScannedRow::Selected(row) => chunk.add(row, Selected::Yes, hooks, env),
            ScannedRow::Unselected(row) => chunk.add(row, Selected::No, hooks, env),
            ScannedRow::Damaged { .. } => {}
        });
        // The replay itself reports rows that cannot be read.
        drop(read);
        chunk
    };
    run_ordered(
        source.chunks(),
        workers,
        || source.open().map_err(E::from),
        plan_chunk,
        |chunk| {
            all.merge(chunk);
            each();
            Ok(())
        },
    )?;
    Ok(all)
}

/// Whether the user selected an event, or it is only there for the state of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selected {
    Yes,
    No,
}

impl DryRun {
    fn add(
        &mut self,
        mut row: RecordedEvent,
        selected: Selected,
        hooks: &ReplayHooks,
        env: &[(OsString, OsString)],
    ) {
        let is_selected = selected == Selected::Yes;
        if row.is_removed {
            return;
        }
        let Ok(agent) = row.agent.parse::<Agent>() else { return };
        let decision = row.decision.as_deref().map(read_decision).transpose();
        let Ok(decision) = decision else { return };
        for verdict in decision.iter().flat_map(|it| &it.verdicts).filter(|_| is_selected) {
            if let Some(state) = verdict.plugin_state {
                self.restarts.add(&verdict.hook, verdict.script.as_deref(), state);
            }
        }
        let hash = decision.as_ref().and_then(|decision| decision.hooks.as_deref());
        let Ok(sets) = hooks.for_event(&row, hash) else { return };
        let raw = std::mem::take(&mut row.payload);
        let event = decode_row(&row, agent, raw);
        let mut plan = plan(&event, &sets);
        skip_unapproved(&mut plan, hooks, &row, decision.as_ref());
        let caller = recorded_caller(&row, env);
        // Only plugins receive events that are not selected.
        for hook in plan.outside().filter(|hook| is_selected || hook.is_plugin()) {
            let is_refused = hooks.is_refused(hook, &row);
            self.has_plugins |= hook.is_plugin() && is_selected && !is_refused;
            let summary = hook.summary();
            let planned = PlannedCommand {
                hook: summary.name,
                event: summary.event,
                command: summary.command.unwrap_or_default(),
                runs: CommandPreview::new(&plan, hook, agent, &caller),
                is_foreign: hooks.is_foreign(hook, &row),
            };
            let list = if is_refused { &mut self.refused } else { &mut self.commands };
            *list.entry(planned).or_default() += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        for (planned, times) in other.commands {
            *self.commands.entry(planned).or_default() += times;
        }
        for (planned, times) in other.refused {
            *self.refused.entry(planned).or_default() += times;
        }
        self.has_plugins |= other.has_plugins;
        self.restarts.merge(other.restarts);
    }
}
