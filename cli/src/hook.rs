//! `hookbus hook <agent>`: the command that agents call. Its stdout belongs to the agent: the answer, or nothing. It
//! exits with 0 whatever happens (1 for wrong usage) and writes nothing to stderr once it has read an event: Gemini
//! would show that to the user, or take it for an answer. Two cases exit with 1 and write to stderr:
//!
//! - a notice for the user of Hermes, which shows nothing of an answer: it logs the stderr of a hook that exits with 1,
//!   and still reads the answer;
//! - a worktree for Claude Code that cannot be made (`worktree.rs`).

mod arguments;
mod start_daemon;

use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hookbus::active::{ActiveHooks, HooksSource, Projects};
use hookbus::bus::Bus;
use hookbus::caller::Caller;
use hookbus::config::DaemonMode;
use hookbus::decide::RulesAlone;
use hookbus::event::{Agent, Clock, EventId, OnFailure, SystemClock, Wire};
use hookbus::log::{LogPath, Spool};
use hookbus::pipeline::{
    Answer, Call, TellUser, answer_by_rules_alone, answer_without_policy, handle,
};
use hookbus::server::{BuildVersion, DaemonError, SocketPath, call};
use hookbus::sys::descriptors::{raise_limit, read_more, wait_readable, widen_pipe};
use hookbus::sys::file_size_limit::survive_writes_beyond_limit;
use hookbus::sys::thread::{STACK_SIZE, spawn};

pub(crate) use self::arguments::{Arguments, parse_fast};
use self::start_daemon::start_daemon;
use crate::settings::Settings;
use crate::unusable_home::{Needed, why_unusable};
use crate::{output, worktree};

/// How long to wait for a daemon that was just started, and how often to try to connect.
const START_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_INTERVAL: Duration = Duration::from_millis(5);

/// A longer deadline is a typing error, and could overflow the clock.
const MAX_DEADLINE: Duration = Duration::from_hours(1);

/// Time kept at the end for an answer by rules alone: a twentieth of the deadline within these bounds, and for a
/// large payload also the time to read it; never more than a quarter.
const LEAST_LAST_RESORT: Duration = Duration::from_millis(100);
const MOST_LAST_RESORT: Duration = Duration::from_millis(300);
const BYTES_READ_PER_MS: usize = 100_000;

/// The agent waits until this process exits, so moving spooled events to the log may take no longer.
const SPOOL_TIME: Duration = Duration::from_millis(200);

/// A large spooled event takes longer, and without a daemon every client would begin with it anew. The client that has
/// begun stays for at most this long.
const LARGE_SPOOL_TIME: Duration = Duration::from_secs(10);

/// A payload that takes much time to look at.
const LARGE_PAYLOAD: usize = 4 << 20;

/// As much as a pipe holds at first.
const STDIN_CHUNK: usize = 64 << 10;

/// As much as a pipe may hold without privileges, unless the system says otherwise.
const WIDE_PIPE: usize = 1 << 20;

/// What the agent's user reads when not even the rules could be asked.
const TOO_LATE: &str =
    "hookbus could not read its hooks in time, so none of them ran; run `hookbus status`";

/// What the agent's user reads when this process panicked wherever it tried to answer.
const PANICKED: &str = "hookbus failed because of a bug in it, so none of your hooks ran; run `hookbus status`, and report it";

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
    let client = HookClient {
        settings: settings.clone(),
        started: Instant::now(),
        deadline,
        wire,
        id,
        on_failure: OnFailure::parse(&arguments.on_failure).unwrap_or(OnFailure::Allow),
        without_daemon: arguments.without_daemon,
        own_hooks: OnceLock::new(),
    };
    survive_writes_beyond_limit();
    // A panic must not reach the agent as text. What it is answered with instead is in `answer_whatever_panics`.
    std::panic::set_hook(Box::new(|_| {}));
    let Answered { answer, then } = client.answer_whatever_panics(agent);
    let printed = print_answer(&answer);
    without_panic(|| client.finish(then));
    match printed {
        // The bridge reads stderr itself.
        Printed::WithNotice if client.wire == Wire::Shell => ExitCode::FAILURE,
        Printed::WithNotice | Printed::Answer => ExitCode::SUCCESS,
    }
}

/// How a call ended.
struct Answered {
    answer: Answer,
    then: AfterAnswer,
}

impl Answered {
    /// There is nothing left to do.
    const fn only(answer: Answer) -> Self {
        Self { answer, then: AfterAnswer::Nothing }
    }
}

/// What was printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    /// The answer, or nothing.
    Answer,
    /// The answer, and a notice for the user or an error on stderr.
    WithNotice,
}

/// What to do once the agent has its answer.
enum AfterAnswer {
    Nothing,
    /// No daemon handled the event: start one for the next, unless the home says otherwise.
    StartDaemon,
    /// The same, after the thread that handled event `id` has moved spooled events to the log and closed the channel.
    AwaitSpoolAndStartDaemon {
        spooling: Receiver<Result<Answer, RulesAlone>>,
        id: EventId,
    },
}

/// One call of an agent.
#[derive(Debug, Clone)]
struct HookClient {
    settings: Settings,
    started: Instant,
    deadline: Duration,
    wire: Wire,
    id: Option<EventId>,
    /// What the agent may do when the home cannot be opened, the hooks are not known, or this process fails.
    on_failure: OnFailure,
    /// The daemon hangs, as the client knows.
    without_daemon: bool,
    /// Read only if no daemon answers.
    own_hooks: OnceLock<OwnHooks>,
}

/// What the user's own hooks file says about the daemon.
#[derive(Debug, Clone, Copy)]
struct OwnHooks {
    /// Whether clients may start one. A home that is served elsewhere says no; what cannot be read may say so too.
    may_start_daemon: bool,
    has_plugins: bool,
}

impl HookClient {
    /// The answer, also if the code panics: by a bug, or because the system has no thread left for it.
    fn answer_whatever_panics(&self, agent: Agent) -> Answered {
        let call = without_panic(|| self.read_call(agent));
        let by_rules =
            |call: &Call| Answered::only(self.answer_by_rules(call, RulesAlone::Panicked));
        self.first_answer(agent, call.as_ref(), &[&|call| self.answer(call), &by_rules])
    }

    /// The answer of the first of these ways that does not panic. A panic opens no guard: if all of them panic, the
    /// wiring's `--on-failure` decides. The last answer does without the payload, in case that is what the code
    /// cannot stand.
    fn first_answer(
        &self,
        agent: Agent,
        call: Option<&Call>,
        ways: &[&dyn Fn(&Call) -> Answered],
    ) -> Answered {
        let without_policy = |call: Call| {
            Answered::only(answer_without_policy(call, self.on_failure, PANICKED, TellUser::Now))
        };
        let by_call = call.and_then(|call| {
            let answered = ways.iter().find_map(|way| without_panic(|| way(call)));
            answered.or_else(|| without_panic(|| without_policy(call.clone())))
        });
        by_call
            .or_else(|| without_panic(|| without_policy(self.call(agent, Vec::new()))))
            .unwrap_or_else(|| Answered::only(Answer::default()))
    }

    fn answer(&self, call: &Call) -> Answered {
        let is_claude = call.agent == Agent::Claude;
        let worktree = is_claude.then(|| worktree::Request::of(&call.raw)).flatten();
        let answered = self.handle_call(call);
        match worktree {
            Some(request) => Answered { answer: fulfil(&request, &call.caller.cwd), ..answered },
            None => answered,
        }
    }

    fn handle_call(&self, call: &Call) -> Answered {
        let mut answer = self.ask_daemon(call);
        let is_answered = matches!(answer, Ok(_) | Err(DaemonError::TimedOut));
        if !is_answered && let Some(why) = self.why_unusable() {
            let (call, when) = (call.clone(), TellUser::AtStart);
            return Answered::only(answer_without_policy(call, self.on_failure, &why, when));
        }
        if let Err(DaemonError::NotRunning) = answer
            && self.may_start_daemon()
            && self.has_plugins(call)
        {
            answer = self.wait_for_new_daemon(call);
        }
        match answer {
            Ok(answer) => Answered::only(answer),
            Err(DaemonError::TimedOut) => {
                Answered::only(self.answer_by_rules(call, RulesAlone::NoTime))
            }
            // An append is idempotent by event id, also if the daemon recorded the event before it broke off.
            Err(DaemonError::NotRunning | DaemonError::Declined | DaemonError::Failed(_)) => {
                self.answer_in_process(call)
            }
        }
    }

    /// What is left to do once the agent has its answer.
    fn finish(&self, then: AfterAnswer) {
        match then {
            AfterAnswer::Nothing => return,
            AfterAnswer::StartDaemon => {}
            AfterAnswer::AwaitSpoolAndStartDaemon { spooling, id } => {
                self.wait_for_spool(&spooling, id);
            }
        }
        if self.may_start_daemon() {
            start_daemon(&self.settings.home);
        }
    }

    fn ask_daemon(&self, call: &Call) -> Result<Answer, DaemonError> {
        match self.settings.daemon {
            DaemonMode::Auto | DaemonMode::Running if !self.without_daemon => {
                let socket = SocketPath::in_home(&self.settings.home);
                self::call(&socket, BuildVersion::current(), call)
            }
            DaemonMode::Auto | DaemonMode::Running | DaemonMode::Off => {
                Err(DaemonError::NotRunning)
            }
        }
    }

    /// Starts a daemon, or waits for one that another hook has just started, and asks it.
    fn wait_for_new_daemon(&self, call: &Call) -> Result<Answer, DaemonError> {
        let mut answer = Err(DaemonError::NotRunning);
        if !start_daemon(&self.settings.home) && !self.is_starting() {
            return answer;
        }
        let timeout = START_TIMEOUT.min(self.time_left(call.raw.len()) / 4);
        let started = Instant::now();
        while matches!(answer, Err(DaemonError::NotRunning)) && started.elapsed() < timeout {
            thread::sleep(CONNECT_INTERVAL);
            answer = self.ask_daemon(call);
        }
        answer
    }

    /// Why the home cannot be used, if so.
    fn why_unusable(&self) -> Option<String> {
        let needed = match self.on_failure {
            _ if !self.settings.is_pinned => Needed::Nothing,
            OnFailure::Allow => Needed::Directory,
            OnFailure::Block => Needed::Content,
        };
        why_unusable(&self.settings.home, needed)
    }

    /// Whether this client may start a daemon.
    fn may_start_daemon(&self) -> bool {
        self.settings.daemon == DaemonMode::Auto
            && !self.without_daemon
            && self.own_hooks().may_start_daemon
    }

    /// Whether a decision plugin is in force. Plugins keep state, so only the daemon's processes should run them. If no
    /// daemon is up, the client waits for it: that is faster than starting the plugin here.
    fn has_plugins(&self, call: &Call) -> bool {
        let home = &self.settings.home;
        let projects = Projects::new(home, LogPath::in_home(home))
            .with_default_home(self.settings.default_home.clone());
        self.own_hooks().has_plugins
            || projects.at(&call.caller).is_some_and(|project| has_plugins(&project))
    }

    fn own_hooks(&self) -> OwnHooks {
        *self.own_hooks.get_or_init(|| {
            let home = &self.settings.home;
            let own = HooksSource::new(home, LogPath::in_home(home)).active();
            OwnHooks {
                may_start_daemon: own.status.is_known() && own.file.daemon.mode == DaemonMode::Auto,
                has_plugins: has_plugins(&own),
            }
        })
    }

    /// Whether another hook has just started a daemon.
    fn is_starting(&self) -> bool {
        let lock = fs::metadata(self.settings.home.join("serve.lock"));
        let last_start = lock.and_then(|lock| lock.modified()).ok();
        last_start.and_then(|at| at.elapsed().ok()).is_some_and(|ago| ago < START_TIMEOUT)
    }

    fn read_call(&self, agent: Agent) -> Call {
        self.call(agent, read_stdin(|read| self.time_left(read)))
    }

    fn call(&self, agent: Agent, raw: Vec<u8>) -> Call {
        let at = SystemClock.now();
        let caller = Caller {
            cwd: std::env::current_dir().unwrap_or_default(),
            env: self.settings.environment(),
            pid: Some(std::process::id()),
            wire: self.wire,
        };
        let id = self.id.unwrap_or_else(|| EventId::mint(at));
        let deadline = self.time_left(raw.len());
        Call { id, at, agent, raw: raw.into(), caller, deadline }
    }

    /// Runs the same pipeline in this process, on the same log, with the same answer. It runs in a thread of its own,
    /// so that a hanging disk or a panic does not delay the agent beyond its deadline.
    fn answer_in_process(&self, call: &Call) -> Answered {
        let (sender, answers) = channel();
        let (client, own_call) = (self.clone(), call.clone());
        let cause = match spawn("hook", move || client.handle(own_call, &sender)) {
            Ok(_) => match answers.recv_timeout(self.time_left(call.raw.len())) {
                Ok(Ok(answer)) => {
                    let then =
                        AfterAnswer::AwaitSpoolAndStartDaemon { spooling: answers, id: call.id };
                    return Answered { answer, then };
                }
                Ok(Err(cause)) => cause,
                Err(RecvTimeoutError::Timeout) => RulesAlone::NoTime,
                Err(RecvTimeoutError::Disconnected) => RulesAlone::Panicked,
            },
            Err(_) => RulesAlone::NoThread,
        };
        Answered { answer: self.answer_by_rules(call, cause), then: AfterAnswer::StartDaemon }
    }

    /// The thread that handled event `id` moves spooled events to the log and then closes the channel.
    fn wait_for_spool(&self, spooling: &Receiver<Result<Answer, RulesAlone>>, id: EventId) {
        if !matches!(spooling.recv_timeout(SPOOL_TIME), Err(RecvTimeoutError::Timeout)) {
            return;
        }
        let Settings { home, spool_fallbacks, .. } = &self.settings;
        let spool = Spool::new(home, spool_fallbacks);
        // If this event could not be appended, a spooled one cannot either.
        if spool.is_taking_in_large_file() && !spool.holds(id) {
            let time = LARGE_SPOOL_TIME.min(self.time_left(0));
            tracing::debug!(?time, "waiting for a large spooled event");
            drop(spooling.recv_timeout(time));
        }
    }

    fn handle(&self, mut call: Call, answers: &Sender<Result<Answer, RulesAlone>>) {
        call.deadline = self.time_left(call.raw.len());
        raise_limit();
        let bus = self.bus();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().thread_stack_size(STACK_SIZE);
        // It needs descriptors. Some that it cannot get are an error, for others tokio panics.
        let Some(Ok(runtime)) = without_panic(|| runtime.build()) else {
            return drop(answers.send(Err(RulesAlone::Shortage)));
        };
        let answer = runtime.block_on(handle(call, &bus));
        if answers.send(Ok(answer)).is_ok() {
            let left = bus.recorder.append_spooled();
            tracing::debug!(left, "spooled events that are not in the log yet");
        }
        // The process ends now, and closing the log would take time: a client does no checkpoint anyway.
        std::mem::forget(bus.recorder.clone());
        // Appends that still wait for the log's lock end with this process; their events are in the spool.
        runtime.shutdown_background();
    }

    /// The daemon or the pipeline failed or ran out of time: answers by the rules and the failure policies, within
    /// the time that was kept for this.
    fn answer_by_rules(&self, call: &Call, cause: RulesAlone) -> Answer {
        let (sender, answers) = channel();
        let time = self.last_resort_time(call.raw.len());
        let own_call = || Call { deadline: time, ..call.clone() };
        let (client, moved_call) = (self.clone(), own_call());
        let answer = move || sender.send(answer_by_rules_alone(moved_call, &client.bus(), cause));
        if spawn("rules", answer).is_err() {
            // A guard that may come too late is better than none.
            return answer_by_rules_alone(own_call(), &self.bus(), RulesAlone::NoThread);
        }
        answers.recv_timeout(time).unwrap_or_else(|error| {
            let why = match error {
                // Not even the hooks file could be read: the disk hangs, or the machine is overloaded.
                RecvTimeoutError::Timeout => TOO_LATE,
                RecvTimeoutError::Disconnected => PANICKED,
            };
            // A guard must not be passed by a payload that takes too long to look at.
            let is_large = call.raw.len() > LARGE_PAYLOAD;
            let on_failure = if is_large { OnFailure::Block } else { self.on_failure };
            answer_without_policy(call.clone(), on_failure, why, TellUser::Now)
        })
    }

    fn bus(&self) -> Bus {
        let Settings { home, spool_fallbacks, default_home, .. } = &self.settings;
        Bus::for_client(home, spool_fallbacks)
            .with_default_home(default_home.clone())
            .with_on_unknown_hooks(self.on_failure)
    }

    /// What is left of the deadline, less the time for an answer of last resort to a payload of `bytes`.
    fn time_left(&self, bytes: usize) -> Duration {
        let left = self.deadline.saturating_sub(self.started.elapsed());
        left.saturating_sub(self.last_resort_time(bytes))
    }

    fn last_resort_time(&self, bytes: usize) -> Duration {
        let by_rules = (self.deadline / 20).clamp(LEAST_LAST_RESORT, MOST_LAST_RESORT);
        let milliseconds = u64::try_from(bytes / BYTES_READ_PER_MS).unwrap_or(u64::MAX);
        (by_rules + Duration::from_millis(milliseconds)).min(self.deadline / 4)
    }
}

fn has_plugins(hooks: &ActiveHooks) -> bool {
    hooks.file.hooks.iter().any(|hook| hook.is_plugin() && hook.is_asked())
}

/// Reads stdin to its end, or until the time is up: a partial event is recorded too.
fn read_stdin(time_left: impl Fn(usize) -> Duration) -> Vec<u8> {
    let (stdin, mut raw) = (io::stdin(), Vec::new());
    loop {
        // An agent that never closes the pipe still gets an answer.
        if !wait_readable(&stdin, time_left(raw.len())).unwrap_or(false) {
            return raw;
        }
        match read_more(&stdin, &mut raw, STDIN_CHUNK) {
            Ok(0) => return raw,
            // There may be much more.
            Ok(STDIN_CHUNK..) => widen_pipe(&stdin, WIDE_PIPE),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return raw,
        }
    }
}

/// Does what the agent leaves to its hook, after the event is recorded.
fn fulfil(request: &worktree::Request, cwd: &Path) -> Answer {
    match request.fulfil(cwd) {
        Ok(text) => Answer { text: Some(text), notice: None },
        Err(error) => {
            let notice = output::sanitize_lines(&format!("hookbus: {error:#}"));
            Answer { text: None, notice: Some(notice) }
        }
    }
}

/// Prints the answer, and then what the user is told besides.
fn print_answer(answer: &Answer) -> Printed {
    let mut stdout = io::stdout().lock();
    let text = answer.text.as_deref().unwrap_or_default();
    // Not an error: the agent has stopped waiting.
    if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
        tracing::debug!("the agent closed stdout");
    }
    let Some(notice) = &answer.notice else { return Printed::Answer };
    output::to_stderr(notice);
    Printed::WithNotice
}

/// The result of `work`; none if it panics. What `work` has changed must not be used afterwards.
fn without_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests;
