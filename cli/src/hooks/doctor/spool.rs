//! Checks the spool: do events wait for the log, and are there files that hold no event?

use hookbus::event::{Clock, SystemClock};
use hookbus::log::Spool;

use super::finding::Finding;
use crate::settings::Settings;
use crate::status::describe_spool;

/// One finding for each thing that is wrong; none if the spool is empty.
pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let spool = Spool::new(&settings.home, &settings.spool_fallbacks);
    let backlog = spool.backlog().to_json(SystemClock.now());
    describe_spool(&backlog).into_iter().map(|wrong| Finding::bad("spool", wrong)).collect()
}
