//! `hookbus stop`: asks the daemon to leave, and waits until it has.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::cli::Ending;
use crate::output;
use crate::settings::{Format, Settings};
use crate::status::state;

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Ending> {
    let stopped = stop(settings)?;
    output::line(match (format, stopped) {
        (Format::Json, stopped) => json!({"stopped": stopped}).to_string(),
        (Format::Text, Some(pid)) => format!("stopped (pid {pid}); hooks go on without it"),
        (Format::Text, None) => "no daemon is running".to_owned(),
    })?;
    Ok(Ending::Yes)
}

/// Ends the daemon of this home; gives back its pid if there was one.
pub(crate) fn stop(settings: &Settings) -> Result<Option<i64>> {
    let Some(pid) = state(settings)["daemon"]["pid"].as_i64() else { return Ok(None) };
    let process =
        i32::try_from(pid).ok().and_then(Pid::from_raw).context("the daemon has an odd pid")?;
    kill_process(process, Signal::TERM).context("cannot reach the daemon")?;
    let asked = Instant::now();
    while !state(settings)["daemon"].is_null() {
        if asked.elapsed() > PATIENCE {
            let waited = PATIENCE.as_secs();
            bail!(
                "the daemon (pid {pid}) has not left after {waited} s; see hookbus.log in its home"
            );
        }
        sleep(Duration::from_millis(20));
    }
    Ok(Some(pid))
}
