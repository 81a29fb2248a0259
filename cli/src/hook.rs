//! `hookbus hook <agent>`: the front door. Its stdout belongs to the agent: nothing, or exactly the
//! answer. It exits 0 whatever happens, 1 for wrong usage, and never writes to stderr once it has
//! read an event: Gemini would show that to the person, or take it for an answer.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use clap::Args;
use hookbus::bus::Bus;
use hookbus::decide::{Hook, HooksSource, Mode, Projects, Surroundings};
use hookbus::event::{Agent, Clock, EventId, SystemClock, Wire};
use hookbus::log::LogPath;
use hookbus::pipeline::{Answer, Call, handle, last_resort};
use hookbus::server::{Build, NoDaemon, SocketPath, call};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::output;
use crate::settings::{Settings, UseDaemon};

/// Below the 60 seconds that both Hermes and Gemini give a hook.
const DEADLINE: f64 = 55.0;

/// A daemon that does not come up is not tried again and again.
const START_AGAIN: Duration = Duration::from_secs(5);

/// How long a daemon that was just started is waited for, and how often it is looked for.
const COMES_UP: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// More than this is a slip of the pen, and would run off the clock.
const LONGEST_DEADLINE: Duration = Duration::from_hours(1);

/// What it takes to answer without asking anybody.
const LAST_MOMENT: Duration = Duration::from_millis(300);

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
    /// How the event came: `shell`, or `bridge` from the plugin that `hookbus connect` installs.
    #[arg(long, value_name = "WIRE", default_value = "shell", hide = true)]
    wire: String,
    /// The event's id, if somebody tried to hand it in before.
    #[arg(long, value_name = "UUID", hide = true)]
    id: Option<String>,
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
    let wire = Wire::Shell.as_str().to_owned();
    words.next().is_none().then_some(Arguments { agent, deadline, wire, id: None })
}

/// Reads an event, has it handled, prints the answer.
pub(crate) fn run(arguments: &Arguments, settings: &Settings) -> ExitCode {
    let agent = match arguments.agent.parse::<Agent>() {
        Ok(agent) => agent,
        Err(error) => {
            output::to_stderr(format!("hookbus: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let Ok(deadline) = Duration::try_from_secs_f64(arguments.deadline) else {
        output::to_stderr("hookbus: --deadline is a number of seconds; write `--deadline 5`");
        return ExitCode::FAILURE;
    };
    let deadline = deadline.min(LONGEST_DEADLINE);
    let Some(wire) = Wire::parse(&arguments.wire) else {
        output::to_stderr("hookbus: --wire is `shell` or `bridge`");
        return ExitCode::FAILURE;
    };
    let id = arguments.id.as_deref().and_then(|id| id.parse::<EventId>().ok());
    let (settings, started) = (settings.clone(), Instant::now());
    let door = Door { settings, started, deadline, wire, id };
    // A panic must not reach the agent, neither as text nor as an exit code.
    std::panic::set_hook(Box::new(|_| {}));
    let heard = catch_unwind(|| door.answer(agent));
    if let Ok(Afterwards::StartDaemon) = heard {
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

#[derive(Clone)]
struct Door {
    settings: Settings,
    started: Instant,
    deadline: Duration,
    wire: Wire,
    id: Option<EventId>,
}

impl Door {
    fn answer(&self, agent: Agent) -> Afterwards {
        let call = self.listen(agent);
        match self.ask_the_daemon(&call) {
            Ok(answer) => {
                say(&answer);
                Afterwards::Nothing
            }
            Err(NoDaemon::OutOfTime) => {
                self.answer_without_asking(call);
                Afterwards::Nothing
            }
            // The same event, the same id: if the daemon kept it before it went, nothing is added.
            Err(NoDaemon::Absent | NoDaemon::Declined | NoDaemon::BrokeOff(_)) => {
                self.answer_here(call);
                match self.settings.daemon {
                    UseDaemon::Auto => Afterwards::StartDaemon,
                    UseDaemon::Running | UseDaemon::Off => Afterwards::Nothing,
                }
            }
        }
    }

    fn ask_the_daemon(&self, call: &Call) -> Result<Vec<u8>, NoDaemon> {
        let socket = SocketPath::in_home(&self.settings.home);
        let ask = || self::call(&socket, Build::current(), call);
        match self.settings.daemon {
            UseDaemon::Off => Err(NoDaemon::Absent),
            UseDaemon::Running => ask(),
            UseDaemon::Auto => match ask() {
                Err(NoDaemon::Absent)
                    if self.has_plugins(call) && (self.start_daemon() || self.is_coming_up()) =>
                {
                    let patience = COMES_UP.min(self.patience() / 4);
                    let started = Instant::now();
                    let mut asked = Err(NoDaemon::Absent);
                    while matches!(asked, Err(NoDaemon::Absent)) && started.elapsed() < patience {
                        thread::sleep(LOOK_AGAIN);
                        asked = ask();
                    }
                    asked
                }
                asked => asked,
            },
        }
    }

    /// A plugin remembers what it saw, so one process of it has to see all events, from the first on:
    /// the daemon's, which is quicker up than a process of our own would be.
    fn has_plugins(&self, call: &Call) -> bool {
        let (home, log) = (&self.settings.home, LogPath::in_home(&self.settings.home));
        let project = Projects::new(home, log.clone()).at(&call.surroundings);
        let own = HooksSource::new(home, log).in_force();
        let decides = |hook: &Hook| hook.is_plugin() && hook.mode() == Mode::Decide;
        project.iter().chain([&own]).any(|it| it.hooks.hooks.iter().any(decides))
    }

    /// Whether somebody else has just started a daemon.
    fn is_coming_up(&self) -> bool {
        let lock = fs::metadata(self.settings.home.join("serve.lock"));
        let tried = lock.and_then(|lock| lock.modified()).ok();
        tried.and_then(|at| at.elapsed().ok()).is_some_and(|ago| ago < COMES_UP)
    }

    fn listen(&self, agent: Agent) -> Call {
        let raw = read_stdin(|| self.patience());
        let at = SystemClock.now();
        let surroundings = Surroundings {
            cwd: std::env::current_dir().unwrap_or_default(),
            env: std::env::vars_os().collect(),
            pid: Some(std::process::id()),
            wire: self.wire,
        };
        let id = self.id.unwrap_or_else(|| EventId::mint(at));
        Call { id, at, agent, raw, surroundings, patience: self.patience() }
    }

    /// The same pipeline in this process, on the same log, with the same answer. In a thread of its
    /// own: a disk that hangs, or a mistake of ours, must not hold the agent.
    fn answer_here(&self, call: Call) {
        let (tell, told) = channel();
        let (door, one) = (self.clone(), call.clone());
        thread::spawn(move || door.handle(one, &tell));
        match told.recv_timeout(self.patience()) {
            Ok(Answer(answer)) => {
                say(answer.unwrap_or_default().as_bytes());
                // It takes in what waited in the spool, and then hangs up.
                if told.recv_timeout(TAKE_IN).is_ok() {
                    tracing::debug!("there is one answer");
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                self.answer_without_asking(call);
            }
        }
    }

    fn handle(&self, mut call: Call, tell: &Sender<Answer>) {
        call.patience = self.patience();
        let bus = Bus::for_client(&self.settings.home, &self.settings.shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let answer = handle(call, &bus, || false).await;
            if tell.send(answer).is_ok() {
                bus.recorder.take_in().await;
            }
        });
        // Whatever still waits for the log's lock ends with this process; it is in the spool.
        runtime.shutdown_background();
    }

    /// Nobody answered in time, or we failed: the rules and the failure policies, if even those can
    /// be had in the moment that is left.
    fn answer_without_asking(&self, call: Call) {
        let (tell, told) = channel();
        let (home, shared) = (self.settings.home.clone(), self.settings.shared.clone());
        thread::spawn(move || tell.send(last_resort(call, &Bus::for_client(&home, &shared))));
        if let Ok(Answer(Some(answer))) = told.recv_timeout(self.last_moment()) {
            say(answer.as_bytes());
        }
    }

    /// How long others may take: what is left of the deadline, less what it takes without them.
    fn patience(&self) -> Duration {
        self.deadline.saturating_sub(self.started.elapsed()).saturating_sub(self.last_moment())
    }

    fn last_moment(&self) -> Duration {
        LAST_MOMENT.min(self.deadline / 4)
    }

    /// Starts a daemon for the calls to come, with all three streams detached: agents wait for
    /// their end of file. Whoever is second to do so finds the home taken and leaves. Says whether one
    /// was started.
    fn start_daemon(&self) -> bool {
        let lock = self.settings.home.join("serve.lock");
        if !may_start(&lock) {
            return false;
        }
        let Ok(program) = std::env::current_exe() else { return false };
        let started = Command::new(program)
            .args(["serve", "--background"])
            .env("HOOKBUS_HOME", &self.settings.home)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Err(error) = &started {
            tracing::debug!(%error, "no daemon this time");
        }
        started.is_ok()
    }
}

/// Whether nobody tried to start a daemon just now; if so, we do.
fn may_start(lock: &Path) -> bool {
    let Ok(file) =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock)
    else {
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

/// All of stdin, or what came of it before the time was up: that is an event all the same.
fn read_stdin(patience: impl Fn() -> Duration) -> Vec<u8> {
    let mut stdin = io::stdin().lock();
    let (mut raw, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        // Whoever never closes the pipe still gets an answer.
        let wait = Timespec::try_from(patience()).ok();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match rustix::event::poll(&mut ready, wait.as_ref()) {
            Ok(0) | Err(_) => return raw,
            Ok(_) => {}
        }
        match stdin.read(&mut chunk) {
            Ok(0) => return raw,
            Ok(count) => raw.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return raw,
        }
    }
}

fn say(answer: &[u8]) {
    let mut stdout = io::stdout().lock();
    // An agent that does not listen any more has nothing to hear.
    if stdout.write_all(answer).and_then(|()| stdout.flush()).is_err() {
        tracing::debug!("the agent hung up");
    }
}
