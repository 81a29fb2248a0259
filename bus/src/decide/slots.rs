//! How many commands the hooks of all events may run at once in one process. A daemon that has no slots left
//! declines the call, and the client runs the hooks itself.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::plan::Plan;

/// The slots of one process.
#[derive(Debug)]
pub struct CommandSlots(Semaphore);

impl CommandSlots {
    /// So many commands at once.
    pub fn new(commands: usize) -> Self {
        Self(Semaphore::new(commands))
    }

    /// Slots for all commands of a plan that run at the same time, as soon as they are free; none if they are
    /// not within `limit`. All or nothing: a call that is declined half way would run hooks twice.
    pub(crate) async fn take(
        &self,
        plan: &Plan<'_>,
        limit: Duration,
    ) -> Option<SemaphorePermit<'_>> {
        let commands = plan.hooks().filter(|hook| hook.is_command()).count();
        let at_once = if plan.sequential { commands.min(1) } else { commands };
        let slots = self.0.acquire_many(u32::try_from(at_once).ok()?);
        tokio::time::timeout(limit, slots).await.ok()?.ok()
    }
}
