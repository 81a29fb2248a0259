//! `hookbus hook <agent>`: the front door. Its stdout belongs to the agent: nothing, or exactly the
//! answer. It exits 0 whatever happens, 1 for wrong usage, and never writes to stderr once it has
//! read an event: Gemini would show that to the person, or take it for an answer.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use clap::Args;
use hookbus::bus::Bus;
use hookbus::decide::{HooksSource, Surroundings};
use hookbus::event::{Agent, Clock, EventId, SystemClock};
use hookbus::log::LogPath;
use hookbus::pipeline::{Answer, Call, handle, out_of_time};
use hookbus::server::{Build, NoDaemon, SocketPath, call};

use crate::output;
use crate::settings::{Settings, UseDaemon};

/// Below the 60 seconds that both Hermes and Gemini give a hook.
const DEADLINE: f64 = 55.0;

/// A daemon that does not come up is not tried again and again.
const START_AGAIN: Duration = Duration::from_secs(5);

/// The agent waits for our end: taking in spooled events may cost it this much and no more.
const TAKE_IN: Duration = Duration::from_millis(200);

/// `hookbus hook`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Who is speaking: hermes, gemini, claude or codex (the last two are recorded, not yet answered).
    agent: String,
    /// Answer within this many seconds; stay below the agent's own time-out.
    #[arg(long, value_name = "SECONDS", default_value_t = DEADLINE)]
    deadline: f64,
}

/// The usual command line, read without the argument parser; none if it is any other.
pub(crate) fn quickly_read(mut words: impl Iterator<Item = OsString>) -> Option<Arguments> {
    if words.next()? != "hook" {
        return None;
    }
    let agent = words.next()?.into_string().ok()?.parse::<Agent>().ok()?.as_str().to_owned();
    let deadline = match words.next() {
        None => DEADLINE,
        Some(option) if option == "--deadline" => words.next()?.into_string().ok()?.parse().ok()?,
        Some(_) => return None,
    };
    words.next().is_none().then_some(Arguments { agent, deadline })
}

/// Reads an event, has it handled, prints the answer.
pub(crate) fn run(arguments: &Arguments, settings: &Settings) -> ExitCode {
    let agent = match arguments.agent.parse::<Agent>() {
        Ok(agent) => agent,
        Err(error) => {
            output::aside(format!("hookbus: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let Ok(deadline) = Duration::try_from_secs_f64(arguments.deadline) else {
        output::aside("hookbus: --deadline is a number of seconds; write `--deadline 5`");
        return ExitCode::FAILURE;
    };
    let door = Door { settings, started: Instant::now(), deadline };
    // A panic must not reach the agent, neither as text nor as an exit code.
    std::panic::set_hook(Box::new(|_| {}));
    let answered = catch_unwind(AssertUnwindSafe(|| door.answer(agent)));
    if let Ok(start) = answered
        && start == Afterwards::StartDaemon
    {
        door.start_daemon();
    }
    ExitCode::SUCCESS
}

/// What is left to do once the agent has its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Afterwards {
    Nothing,
    StartDaemon,
}

struct Door<'a> {
    settings: &'a Settings,
    started: Instant,
    deadline: Duration,
}

impl Door<'_> {
    fn answer(&self, agent: Agent) -> Afterwards {
        let call = self.listen(agent);
        let asked = match self.settings.daemon {
            UseDaemon::Off => Err(NoDaemon::Absent),
            UseDaemon::Auto | UseDaemon::Running => {
                let socket = SocketPath::in_home(&self.settings.home);
                self::call(&socket, Build::current(), &call)
            }
        };
        match asked {
            Ok(answer) => {
                say(&answer);
                Afterwards::Nothing
            }
            Err(NoDaemon::OutOfTime) => {
                let answer = out_of_time(&call, &self.hooks().in_force());
                say(answer.0.unwrap_or_default().as_bytes());
                Afterwards::Nothing
            }
            // The same event, the same id: if the daemon kept it before it went, nothing is added.
            Err(NoDaemon::Absent | NoDaemon::Declined | NoDaemon::BrokeOff(_)) => {
                self.handle_here(call);
                match self.settings.daemon {
                    UseDaemon::Auto => Afterwards::StartDaemon,
                    UseDaemon::Running | UseDaemon::Off => Afterwards::Nothing,
                }
            }
        }
    }

    fn listen(&self, agent: Agent) -> Call {
        let mut raw = Vec::new();
        // What arrived before a broken pipe is all there is; it is an event all the same.
        if io::stdin().lock().read_to_end(&mut raw).is_err() {
            raw.shrink_to_fit();
        }
        let at = SystemClock.now();
        let surroundings = Surroundings {
            cwd: std::env::current_dir().unwrap_or_default(),
            env: std::env::vars_os().collect(),
            pid: Some(std::process::id()),
        };
        Call { id: EventId::mint(at), at, agent, raw, surroundings, patience: self.left() }
    }

    /// The same pipeline in this process, on the same log, with the same answer.
    fn handle_here(&self, mut call: Call) {
        call.patience = self.left();
        let bus = Bus::for_client(&self.settings.home, &self.settings.runtime);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else {
            let answer = out_of_time(&call, &bus.hooks.in_force());
            return say(answer.0.unwrap_or_default().as_bytes());
        };
        runtime.block_on(async {
            let patience = call.patience;
            let in_time =
                tokio::time::timeout(patience, handle(call.clone(), &bus, || false)).await;
            let Answer(answer) =
                in_time.unwrap_or_else(|_| out_of_time(&call, &bus.hooks.in_force()));
            say(answer.unwrap_or_default().as_bytes());
            let little = self.left().min(TAKE_IN);
            if tokio::time::timeout(little, bus.recorder.take_in()).await.is_err() {
                tracing::debug!("the spool is taken in another time");
            }
        });
        // Whatever still waits for the log's lock ends with this process; it is in the spool.
        runtime.shutdown_background();
    }

    fn hooks(&self) -> HooksSource {
        HooksSource::new(&self.settings.home, LogPath::in_home(&self.settings.home))
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.started.elapsed())
    }

    /// Starts a daemon for the calls to come, with all three streams detached: agents wait for
    /// their end of file. Whoever is second to do so finds the home taken and leaves.
    fn start_daemon(&self) {
        let lock = self.settings.home.join("serve.lock");
        if !may_start(&lock) {
            return;
        }
        let Ok(program) = std::env::current_exe() else { return };
        let started = Command::new(program)
            .args(["serve", "--background"])
            .env("HOOKBUS_HOME", &self.settings.home)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Err(error) = started {
            tracing::debug!(%error, "no daemon this time");
        }
    }
}

/// Whether nobody tried to start a daemon just now; if so, we do.
fn may_start(lock: &Path) -> bool {
    let Ok(file) = OpenOptions::new().create(true).truncate(false).write(true).open(lock) else {
        return false; // the daemon could not open it either
    };
    let now = UNIX_EPOCH + Duration::from_micros(SystemClock.now().micros().unsigned_abs());
    let last_try = file.metadata().and_then(|file| file.modified()).unwrap_or(UNIX_EPOCH);
    let is_new = file.metadata().is_ok_and(|file| file.len() == 0);
    let recent = now.duration_since(last_try).is_ok_and(|ago| ago < START_AGAIN);
    if recent && !is_new {
        return false;
    }
    mark(file).is_ok()
}

/// A byte in the file and its time: a try was made.
fn mark(mut file: File) -> io::Result<()> {
    file.write_all(b".")
}

fn say(answer: &[u8]) {
    let mut stdout = io::stdout().lock();
    // An agent that does not listen any more has nothing to hear.
    if stdout.write_all(answer).and_then(|()| stdout.flush()).is_err() {
        tracing::debug!("the agent hung up");
    }
}
