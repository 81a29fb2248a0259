//! `hookbus stop`: asks the daemon to leave, and waits until it has.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::cli::Ending;
use crate::output;
use crate::settings::{Format, Settings};
use crate::status::state;

/// A daemon lets the calls under way finish, which may take it a minute.
const PATIENCE: Duration = Duration::from_secs(70);

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
    // It gives its socket back first, lets the calls under way finish, and only then is it gone.
    while is_running(process) {
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

/// A process that has ended but that nobody has buried yet is not running.
fn is_running(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    let state = stat.ok().and_then(|stat| Some(stat.rsplit_once(')')?.1.trim_start().to_owned()));
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}
