//! `hookbus hook <agent>`: the command that agents call. Its stdout belongs to the agent: the answer, or nothing. It
//! exits with 0 whatever happens (1 for wrong usage) and writes nothing to stderr once it has read an event: Gemini
//! would show that to the user, or take it for an answer.

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
use hookbus::active::{HooksSource, Projects};
use hookbus::bus::Bus;
use hookbus::caller::Caller;
use hookbus::config::{Hook, Mode};
use hookbus::event::{Agent, Clock, EventId, SystemClock, Wire};
use hookbus::log::LogPath;
use hookbus::pipeline::{Answer, Call, answer_past_deadline, handle};
use hookbus::server::{BuildVersion, DaemonError, SocketPath, call};
use hookbus::sys::descriptors::wait_readable;

use crate::output;
use crate::settings::{Settings, UseDaemon};

/// In seconds; below the 60 that both Hermes and Gemini give a hook.
const DEFAULT_DEADLINE: f64 = 55.0;

/// The least time between two attempts to start a daemon.
const START_BACKOFF: Duration = Duration::from_secs(5);

/// How long to wait for a daemon that was just started, and how often to try to connect.
const START_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_INTERVAL: Duration = Duration::from_millis(5);

/// A longer deadline is a typing error, and could overflow the clock.
const MAX_DEADLINE: Duration = Duration::from_hours(1);

/// Time kept at the end for an answer by rules alone.
const LAST_RESORT_TIME: Duration = Duration::from_millis(300);

/// The agent waits until this process exits, so moving spooled events to the log may take no longer.
const SPOOL_TIME: Duration = Duration::from_millis(200);

const EXAMPLES: &str = "\
Examples:
  hookbus hook gemini < event.json               Handle one event by hand
  hookbus hook hermes --deadline 5 < event.json  Answer within five seconds";

/// The arguments of `hookbus hook`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Agent that sends the event: hermes, gemini, claude or codex
    ///
    /// Events of claude and codex are recorded; hooks do not run for them yet.
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Answer within this many seconds; stay below the agent's own timeout
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_DEADLINE)]
    deadline: f64,
    /// How the event arrived: `shell`, or `bridge` from the plugin that `hookbus connect` installs
    #[arg(long, value_name = "WIRE", default_value = "shell", hide = true)]
    wire: String,
    /// The id of the event, if the client has tried to deliver it before
    #[arg(long, value_name = "UUID", hide = true)]
    id: Option<String>,
}

/// Parses the common command lines without clap, which is slower to start; none for all others.
pub(crate) fn parse_fast(mut words: impl Iterator<Item = OsString>) -> Option<Arguments> {
    if words.next()? != "hook" {
        return None;
    }
    let agent = words.next()?.into_string().ok()?.parse::<Agent>().ok()?.as_str().to_owned();
    let deadline = match words.next() {
        None => DEFAULT_DEADLINE,
        Some(option) if option == "--deadline" => words.next()?.into_string().ok()?.parse().ok()?,
        Some(_) => return None,
    };
    let wire = Wire::Shell.as_str().to_owned();
    words.next().is_none().then_some(Arguments { agent, deadline, wire, id: None })
}

/// Reads an event, has it handled, and prints the answer.
pub(crate) fn run(arguments: &Arguments, settings: &Settings) -> ExitCode {
    let agent = match arguments.agent.parse::<Agent>() {
        Ok(agent) => agent,
        Err(error) => {
            output::to_stderr(format!("hookbus: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let Ok(deadline) = Duration::try_from_secs_f64(arguments.deadline) else {
        output::to_stderr("hookbus: --deadline takes a number of seconds; write `--deadline 5`");
        return ExitCode::FAILURE;
    };
    let deadline = deadline.min(MAX_DEADLINE);
    let Some(wire) = Wire::parse(&arguments.wire) else {
        output::to_stderr("hookbus: --wire takes `shell` or `bridge`");
        return ExitCode::FAILURE;
    };
    let id = arguments.id.as_deref().and_then(|id| id.parse::<EventId>().ok());
    let (settings, started) = (settings.clone(), Instant::now());
    let client = HookClient { settings, started, deadline, wire, id };
    // A panic must not reach the agent, neither as text nor as an exit code.
    std::panic::set_hook(Box::new(|_| {}));
    let answered = catch_unwind(|| client.answer(agent));
    if let Ok(AfterAnswer::StartDaemon) = answered {
        client.start_daemon();
    }
    ExitCode::SUCCESS
}

/// What to do once the agent has its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterAnswer {
    Nothing,
    StartDaemon,
}

/// One call of an agent.
#[derive(Clone)]
struct HookClient {
    settings: Settings,
    started: Instant,
    deadline: Duration,
    wire: Wire,
    id: Option<EventId>,
}

impl HookClient {
    fn answer(&self, agent: Agent) -> AfterAnswer {
        let call = self.read_call(agent);
        match self.ask_daemon(&call) {
            Ok(answer) => {
                print_answer(&answer);
                AfterAnswer::Nothing
            }
            Err(DaemonError::TimedOut) => {
                self.answer_by_rules(call);
                AfterAnswer::Nothing
            }
            // An append is idempotent by event id, also if the daemon recorded the event before it broke off.
            Err(DaemonError::NotRunning | DaemonError::Declined | DaemonError::Failed(_)) => {
                self.answer_in_process(call);
                match self.settings.daemon {
                    UseDaemon::Auto => AfterAnswer::StartDaemon,
                    UseDaemon::Running | UseDaemon::Off => AfterAnswer::Nothing,
                }
            }
        }
    }

    fn ask_daemon(&self, call: &Call) -> Result<Vec<u8>, DaemonError> {
        let socket = SocketPath::in_home(&self.settings.home);
        let ask = || self::call(&socket, BuildVersion::current(), call);
        match self.settings.daemon {
            UseDaemon::Off => Err(DaemonError::NotRunning),
            UseDaemon::Running => ask(),
            UseDaemon::Auto => match ask() {
                Err(DaemonError::NotRunning)
                    if self.has_plugins(call) && (self.start_daemon() || self.is_starting()) =>
                {
                    let timeout = START_TIMEOUT.min(self.time_left() / 4);
                    let started = Instant::now();
                    let mut answer = Err(DaemonError::NotRunning);
                    while matches!(answer, Err(DaemonError::NotRunning))
                        && started.elapsed() < timeout
                    {
                        thread::sleep(CONNECT_INTERVAL);
                        answer = ask();
                    }
                    answer
                }
                answer => answer,
            },
        }
    }

    /// Whether a decision plugin is in force. Plugins keep state, so only the daemon's processes should run them. If no daemon is up, wait for it: that is faster than starting the plugin here.
    fn has_plugins(&self, call: &Call) -> bool {
        let (home, log) = (&self.settings.home, LogPath::in_home(&self.settings.home));
        let project = Projects::new(home, log.clone()).at(&call.caller);
        let own = HooksSource::new(home, log).active();
        let decides = |hook: &Hook| hook.is_plugin() && hook.mode == Mode::Decide;
        project.iter().chain([&own]).any(|it| it.file.hooks.iter().any(decides))
    }

    /// Whether another hook has just started a daemon.
    fn is_starting(&self) -> bool {
        let lock = fs::metadata(self.settings.home.join("serve.lock"));
        let last_start = lock.and_then(|lock| lock.modified()).ok();
        last_start.and_then(|at| at.elapsed().ok()).is_some_and(|ago| ago < START_TIMEOUT)
    }

    fn read_call(&self, agent: Agent) -> Call {
        let raw = read_stdin(|| self.time_left());
        let at = SystemClock.now();
        let caller = Caller {
            cwd: std::env::current_dir().unwrap_or_default(),
            env: std::env::vars_os().collect(),
            pid: Some(std::process::id()),
            wire: self.wire,
        };
        let id = self.id.unwrap_or_else(|| EventId::mint(at));
        Call { id, at, agent, raw, caller, deadline: self.time_left() }
    }

    /// Runs the same pipeline in this process, on the same log, with the same answer. It runs in a thread of its own,
    /// so that a hanging disk or a panic does not delay the agent beyond its deadline.
    fn answer_in_process(&self, call: Call) {
        let (sender, answers) = channel();
        let (client, own_call) = (self.clone(), call.clone());
        thread::spawn(move || client.handle(own_call, &sender));
        match answers.recv_timeout(self.time_left()) {
            Ok(Answer(answer)) => {
                print_answer(answer.unwrap_or_default().as_bytes());
                // The thread moves spooled events to the log and then closes the channel.
                if answers.recv_timeout(SPOOL_TIME).is_ok() {
                    tracing::debug!("unexpected second answer");
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                self.answer_by_rules(call);
            }
        }
    }

    fn handle(&self, mut call: Call, answers: &Sender<Answer>) {
        call.deadline = self.time_left();
        let bus = Bus::for_client(&self.settings.home, &self.settings.spool_fallbacks);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let answer = handle(call, &bus, || false).await;
            if answers.send(answer).is_ok() {
                bus.recorder.append_spooled().await;
            }
        });
        // Appends that still wait for the log's lock end with this process; their events are in the spool.
        runtime.shutdown_background();
    }

    /// The daemon or the pipeline failed or ran out of time: answers by the rules and the failure policies, within
    /// the time that was kept for this.
    fn answer_by_rules(&self, call: Call) {
        let (sender, answers) = channel();
        let (home, spools) = (self.settings.home.clone(), self.settings.spool_fallbacks.clone());
        thread::spawn(move || {
            sender.send(answer_past_deadline(call, &Bus::for_client(&home, &spools)))
        });
        if let Ok(Answer(Some(answer))) = answers.recv_timeout(self.last_resort_time()) {
            print_answer(answer.as_bytes());
        }
    }

    /// What is left of the deadline, less the time for an answer of last resort.
    fn time_left(&self) -> Duration {
        self.deadline.saturating_sub(self.started.elapsed()).saturating_sub(self.last_resort_time())
    }

    fn last_resort_time(&self) -> Duration {
        LAST_RESORT_TIME.min(self.deadline / 4)
    }

    /// Starts a daemon for later calls; returns whether it did. The daemon inherits none of our streams, because the
    /// agent waits for their end of file. A second daemon finds the home locked and exits.
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
            tracing::debug!(%error, "cannot start a daemon");
        }
        started.is_ok()
    }
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

/// Reads stdin to its end, or until the time is up: a partial event is recorded too.
fn read_stdin(time_left: impl Fn() -> Duration) -> Vec<u8> {
    let mut stdin = io::stdin().lock();
    let (mut raw, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        // An agent that never closes the pipe still gets an answer.
        if !wait_readable(&stdin, time_left()).unwrap_or(false) {
            return raw;
        }
        match stdin.read(&mut chunk) {
            Ok(0) => return raw,
            Ok(count) => raw.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return raw,
        }
    }
}

fn print_answer(answer: &[u8]) {
    let mut stdout = io::stdout().lock();
    // Not an error: the agent has stopped waiting.
    if stdout.write_all(answer).and_then(|()| stdout.flush()).is_err() {
        tracing::debug!("the agent closed stdout");
    }
}
