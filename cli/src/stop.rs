//! `hookbus stop`: asks the daemon to leave, and waits until it has. One that does not even give its home back is
//! made to. Whatever is sent goes to the process that holds the lock of this home, and to no other.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hookbus::server::Holder;
use rustix::process::Signal;
use serde_json::json;

use crate::cli::Exit;
use crate::output;
use crate::settings::{Format, Settings};
use crate::status::is_daemon_up;

/// A daemon lets the calls under way finish, which may take it a minute.
const PATIENCE: Duration = Duration::from_secs(70);

/// One that is well gives its home back at once; one that has not by then hangs.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// A daemon that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped {
    pid: i32,
    /// It did not hear that it should leave.
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
            format!("stopped (pid {pid}); hooks go on without it")
        }
        (Format::Text, Some(Stopped { pid, killed: true })) => {
            format!("killed (pid {pid}), as it did not leave when told to; hooks go on without it")
        }
        (Format::Text, None) => "no daemon is running".to_owned(),
    })?;
    Ok(Exit::Success)
}

/// Ends the daemon of this home, if there is one.
pub(crate) fn stop(settings: &Settings) -> Result<Option<Stopped>> {
    let Some(daemon) = Holder::of(&settings.home) else {
        if is_daemon_up(settings) {
            bail!(
                "a daemon has this home, but its process cannot be seen from here (another container, another user); \
                 stop it where it runs"
            );
        }
        return Ok(None);
    };
    let pid = daemon.pid();
    tell(&daemon, Signal::TERM)?;
    // One that was put to sleep hears of nothing before it is awake.
    tell(&daemon, Signal::CONT)?;
    let told = Instant::now();
    let mut killed = false;
    // It gives its home back first, lets the calls under way finish, and only then is it gone.
    while !daemon.has_ended() {
        if !killed && told.elapsed() > HANGS_AFTER && daemon.still_holds() {
            tell(&daemon, Signal::KILL)?;
            killed = true;
        }
        if told.elapsed() > PATIENCE {
            let waited = PATIENCE.as_secs();
            bail!(
                "the daemon (pid {pid}) has not left after {waited} s; see hookbus.log in its home"
            );
        }
        sleep(Duration::from_millis(20));
    }
    Ok(Some(Stopped { pid, killed }))
}

/// One that has left in the meantime need not be told.
fn tell(daemon: &Holder, signal: Signal) -> Result<()> {
    match daemon.signal(signal) {
        Err(_) if daemon.has_ended() => Ok(()),
        told => told.with_context(|| format!("cannot reach the daemon (pid {})", daemon.pid())),
    }
}
