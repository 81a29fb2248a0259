//! Appends rows about the bus itself for commands of the user, such as approvals. If the log cannot be written, they
//! go to the spool like events.

use std::time::Duration;

use anyhow::Result;
use hookbus::bus::Bus;
use hookbus::log::{BusRow, RecordOutcome};

use crate::output;
use crate::settings::Settings;

/// How long to wait for the log.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Appends `rows`. What the user did counts also if that fails; the user is told then.
pub(crate) fn record(rows: &[BusRow], settings: &Settings) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bus = Bus::for_client(&settings.home, &settings.spool_fallbacks);
        for row in rows {
            let at = bus.clock.now();
            if let RecordOutcome::Lost { why } = bus.recorder.bus_row(row, at, TIMEOUT).await {
                let kind = row.kind();
                output::to_stderr(format!("it counts, but the log has no `{kind}` row: {why}"));
            }
        }
    });
    // An append that still waits for the lock of the log ends with this process; its row is in the spool.
    runtime.shutdown_background();
    Ok(())
}
