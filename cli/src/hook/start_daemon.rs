//! How a hook starts a daemon. The hook runs in the environment of an agent, which may have loaded the `.env` file of a
//! repository, and the daemon serves all agents of the user and runs their observers. So the daemon gets nothing of that
//! environment: it is told its home by argument, and takes everything else from the home's file.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use hookbus::event::{Clock, SystemClock};
use hookbus::sys::user::account;

/// The least time between two attempts to start a daemon.
const START_BACKOFF: Duration = Duration::from_secs(5);

/// Where the programs of a Unix system are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Starts a daemon for later calls; returns whether it did. The daemon inherits none of our streams, because the
/// agent waits for their end of file. A second daemon finds the home locked and exits.
pub(super) fn start_daemon(home: &Path) -> bool {
    if !may_start(&home.join("serve.lock")) {
        return false;
    }
    let Ok(program) = std::env::current_exe() else { return false };
    let started = Command::new(program)
        .arg("--home")
        .arg(home)
        .args(["serve", "--background"])
        .env_clear()
        .envs(environment())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = &started {
        tracing::debug!(%error, "cannot start a daemon");
    }
    started.is_ok()
}

/// The environment of the daemon and of its observers: constants, and what the password database says about the user.
fn environment() -> Vec<(&'static str, OsString)> {
    let mut all = vec![("PATH", PATH.into()), ("LANG", "C.UTF-8".into())];
    match account() {
        Some(account) => all.extend([
            ("HOME", account.home.clone().into()),
            ("USER", account.name.clone().into()),
            ("LOGNAME", account.name.clone().into()),
        ]),
        None => all.push(("HOME", "/".into())),
    }
    all
}

/// Whether the last attempt to start a daemon is long enough ago; if so, records this one.
fn may_start(lock: &Path) -> bool {
    let Ok(file) =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock)
    else {
        return false; // the daemon could not open it either
    };
    let now = UNIX_EPOCH + Duration::from_micros(SystemClock.now().micros().unsigned_abs());
    let last_attempt = file.metadata().and_then(|file| file.modified()).unwrap_or(UNIX_EPOCH);
    let is_new = file.metadata().is_ok_and(|file| file.len() == 0);
    let recent = now.duration_since(last_attempt).is_ok_and(|ago| ago < START_BACKOFF);
    if recent && !is_new {
        return false;
    }
    mark(file).is_ok()
}

/// Records an attempt by the modification time of the file.
fn mark(mut file: File) -> io::Result<()> {
    file.write_all(b".")
}
