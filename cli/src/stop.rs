//! `hookbus stop`: asks the daemon to exit and waits until it has; kills it if it does not even release its home.
//! Signals go only to the process that holds the lock of this home.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hookbus::server::LockOwner;
use hookbus::sys::process::Signal;
use serde_json::json;

use crate::cli::Exit;
use crate::output;
use crate::settings::{Format, Settings};
use crate::status::is_daemon_up;

/// The daemon finishes the calls in flight first, which may take up to a minute.
const EXIT_TIMEOUT: Duration = Duration::from_secs(70);

/// A healthy daemon releases its home at once; one that has not done so by then hangs.
const KILL_AFTER: Duration = Duration::from_secs(10);

/// A daemon that has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped {
    pid: i32,
    /// It ignored the request to exit.
    killed: bool,
}

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Exit> {
    let stopped = stop(settings)?;
    output::line(match (format, stopped) {
        (Format::Json, Some(Stopped { pid, killed: true })) => {
            json!({"stopped": pid, "killed": true}).to_string()
        }
        (Format::Json, stopped) => json!({"stopped": stopped.map(|it| it.pid)}).to_string(),
        (Format::Text, Some(Stopped { pid, killed: false })) => {
            format!("stopped the daemon (pid {pid}); hooks keep working without it")
        }
        (Format::Text, Some(Stopped { pid, killed: true })) => {
            format!(
                "killed the daemon (pid {pid}), which did not exit when asked to; hooks keep working without it"
            )
        }
        (Format::Text, None) => "no daemon is running".to_owned(),
    })?;
    Ok(Exit::Success)
}

/// Stops the daemon of this home, if there is one.
pub(crate) fn stop(settings: &Settings) -> Result<Option<Stopped>> {
    let Some(daemon) = LockOwner::find(&settings.home) else {
        if is_daemon_up(settings) {
            bail!(
                "a daemon runs for this home in another container or as another user; stop it there"
            );
        }
        return Ok(None);
    };
    let pid = daemon.pid();
    send(&daemon, Signal::TERM)?;
    // A stopped process (SIGSTOP) handles SIGTERM only after SIGCONT.
    send(&daemon, Signal::CONT)?;
    let asked = Instant::now();
    let mut killed = false;
    // The daemon releases its home, finishes the calls in flight, and exits, in this order.
    while !daemon.has_ended() {
        if !killed && asked.elapsed() > KILL_AFTER && daemon.still_holds() {
            send(&daemon, Signal::KILL)?;
            killed = true;
        }
        if asked.elapsed() > EXIT_TIMEOUT {
            let waited = EXIT_TIMEOUT.as_secs();
            bail!(
                "the daemon (pid {pid}) has not exited after {waited} s; see hookbus.log in its home"
            );
        }
        sleep(Duration::from_millis(20));
    }
    Ok(Some(Stopped { pid, killed }))
}

/// Sends a signal; no error if the daemon has exited in the meantime.
fn send(daemon: &LockOwner, signal: Signal) -> Result<()> {
    match daemon.signal(signal) {
        Err(_) if daemon.has_ended() => Ok(()),
        sent => sent.with_context(|| format!("cannot signal the daemon (pid {})", daemon.pid())),
    }
}
