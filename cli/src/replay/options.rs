//! The command-line arguments of `hookbus replay`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use hookbus_replay::Detail;

// Headings of `--help`.
const EVENTS: &str = "Which events";
const HOOKS: &str = "Which hooks";
const COMMANDS: &str = "Commands and plugins";
const REPORT: &str = "Report";
const OBSERVERS: &str = "Observers";
const POLICY_TEST: &str = "Policy test";

/// Run recorded events through hooks again, and compare with the recorded decisions.
///
/// Select events by session, by filters, or with --all. The configured hooks run, unless --hooks or
/// --as-recorded names others. Rules run in process. Commands run for real, in a scratch directory, and
/// only after you confirmed the list of them. A scratch directory is no sandbox: commands have your rights.
/// Commands that another log, an export or a stream names run only if you approve each by name. The log is not
/// changed.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Arguments {
    /// Sessions to replay: id, a unique prefix of it, its short form, or `last`
    #[arg(value_name = "SESSION")]
    pub(super) sessions: Vec<String>,
    /// Replay everything in the log.
    #[arg(long, conflicts_with = "sessions", help_heading = EVENTS)]
    pub(super) all: bool,
    /// Only events of this agent: hermes, gemini, claude, codex.
    #[arg(long, help_heading = EVENTS)]
    pub(super) agent: Option<String>,
    /// Only events of this kind, such as tool.before, or of a family, such as `tool.*`.
    #[arg(long, help_heading = EVENTS)]
    pub(super) kind: Option<String>,
    /// Only calls of this tool or tool class, such as terminal or shell.
    #[arg(long, help_heading = EVENTS)]
    pub(super) tool: Option<String>,
    /// Only events at or after this time: `2h` (ago), `today`, `2026-11-16`, `2026-11-16 14:05`, RFC 3339.
    #[arg(long, value_name = "TIME", help_heading = EVENTS)]
    pub(super) since: Option<String>,
    /// Only events before this time.
    #[arg(long, value_name = "TIME", help_heading = EVENTS)]
    pub(super) until: Option<String>,
    /// Only the last N of the selected events.
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one, help_heading = EVENTS)]
    pub(super) last: Option<usize>,
    /// Read another log: its file, its home directory, or a file that `hookbus export` wrote.
    #[arg(long, value_name = "PATH", conflicts_with = "nats", help_heading = EVENTS)]
    pub(super) log: Option<PathBuf>,
    /// Read the NATS stream, on the configured server or on the one at URL.
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = EVENTS
    )]
    pub(super) nats: Option<String>,

    /// Use for each event the hooks that were in force when it was recorded.
    #[arg(long, conflicts_with = "hooks", help_heading = HOOKS)]
    pub(super) as_recorded: bool,
    /// Use the hooks in this file.
    #[arg(long, value_name = "FILE", help_heading = HOOKS)]
    pub(super) hooks: Option<PathBuf>,

    /// Skip commands and plugins; events that depend on one are then not comparable.
    #[arg(long, help_heading = COMMANDS)]
    pub(super) rules_only: bool,
    /// List the commands that would run, or count the events that observers would receive, and exit.
    #[arg(long, help_heading = COMMANDS)]
    pub(super) dry_run: bool,
    /// Run your own commands without asking for confirmation.
    #[arg(short, long, help_heading = COMMANDS)]
    pub(super) yes: bool,
    /// Run the commands of this hook although another log, an export or a stream names it; can be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "rules_only", help_heading = COMMANDS)]
    pub(super) run: Vec<String>,
    /// Run your own commands in a sandbox too, as commands of `--run`: bubblewrap, or at least no network.
    #[arg(long, help_heading = COMMANDS)]
    pub(super) sandbox: bool,
    /// Run the commands of N events at a time, not in recorded order; ignored if plugins run.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = COMMANDS)]
    pub(super) jobs: usize,
    /// Run each command N times, to find those that answer differently to the same input. Plugins run
    /// once.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = COMMANDS)]
    pub(super) repeat: u32,
    /// Time limit for the commands of one event, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, help_heading = COMMANDS)]
    pub(super) time_limit: f64,
    /// Memory limit for each process, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 1024, help_heading = COMMANDS)]
    pub(super) memory: u64,

    /// Show each difference, not only the totals.
    #[arg(long, help_heading = REPORT)]
    pub(super) list: bool,
    /// Show one event in detail: payload, verdicts, answers and timing, both recorded and replayed.
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["check", "junit", "fail_on", "last"], help_heading = REPORT)]
    pub(super) explain: Option<i64>,
    /// Step through one session event by event at a terminal: payload, decision, result, and what the hooks would
    /// decide. `?` shows the keys. Commands are skipped unless you add --yes or --run.
    #[arg(
        long,
        requires = "sessions",
        conflicts_with_all = ["check", "explain", "junit", "fail_on", "list", "dry_run"],
        help_heading = REPORT
    )]
    pub(super) step: bool,
    /// Write a JUnit report to this file, for CI.
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(super) junit: Option<PathBuf>,
    /// Exit with 1 if there is such a difference.
    #[arg(long, value_name = "WHAT", help_heading = REPORT)]
    pub(super) fail_on: Option<FailOn>,

    /// Deliver the events to observers again, marked as a replay and apart from the live stream.
    #[arg(long, conflicts_with_all = ["check", "explain", "junit", "fail_on", "step"], help_heading = OBSERVERS)]
    pub(super) to_observers: bool,
    /// With --to-observers: only to this observer; can be repeated.
    #[arg(long, value_name = "NAME", requires = "to_observers", help_heading = OBSERVERS)]
    pub(super) observer: Vec<String>,
    /// With --to-observers: publish them to NATS on replay subjects, for `hookbus observe NAME --replay RUN`.
    #[arg(long, requires = "to_observers", conflicts_with = "observer", help_heading = OBSERVERS)]
    pub(super) publish: bool,
    /// With --publish: publish to this server, not to the configured one.
    #[arg(long, value_name = "URL", requires = "publish", help_heading = OBSERVERS)]
    pub(super) to_nats: Option<String>,
    /// With --to-observers: `at-once`, `recorded`, or a multiple of the recorded speed, such as `10x`.
    #[arg(long, value_name = "PACE", default_value = "at-once", requires = "to_observers", help_heading = OBSERVERS)]
    pub(super) pace: Pace,

    /// Run a policy test: replay the events in the expectations file, and exit with 1 on a difference.
    #[arg(long, help_heading = POLICY_TEST)]
    pub(super) check: bool,
    /// The expectations file (default: beside the hooks file, as `<name>.expect.jsonl`).
    #[arg(long, value_name = "FILE", requires = "check", help_heading = POLICY_TEST)]
    pub(super) expect: Option<PathBuf>,
    /// With --check: write the expectations file anew, with the selected events or those already in it.
    #[arg(long, requires = "check", conflicts_with = "rules_only", help_heading = POLICY_TEST)]
    pub(super) update: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a number of at least 1".to_owned())
}

/// Which differences make the exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// An event is newly blocked.
    Blocked,
    /// An event is newly allowed.
    Allowed,
    /// An event has another answer; includes blocked and allowed.
    Changed,
    /// Any of these, a hook fails, or a hook answers differently to the same input.
    Any,
}

/// How fast observers receive events: without delay, or the recorded delays divided by this factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace(pub(super) Option<f64>);

/// The text is not a pace.
#[derive(Debug, thiserror::Error)]
#[error("write `at-once`, `recorded`, or a factor such as `10x`")]
pub(super) struct PaceError;

impl FromStr for Pace {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let factor = match text {
            "at-once" => return Ok(Self(None)),
            "recorded" => Some(1.0),
            times => times.strip_suffix('x').and_then(|times| times.parse().ok()),
        };
        match factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0) {
            Some(factor) => Ok(Self(Some(factor))),
            None => Err(PaceError),
        }
    }
}

impl Arguments {
    /// Which events the outputs need, and how much of each.
    pub(super) const fn detail(&self) -> Detail {
        if self.update || self.explain.is_some() {
            Detail::Payloads
        } else if self.junit.is_some() || self.step {
            Detail::AllEvents
        } else {
            Detail::Differences
        }
    }

    /// Whether commands and plugins do not run. Stepping through a session is for looking: it runs none unless it is told to.
    pub(super) const fn skips_commands(&self) -> bool {
        self.rules_only || (self.step && !self.yes && self.run.is_empty())
    }

    /// Whether only some events of the sessions are selected.
    pub(super) const fn has_filters(&self) -> bool {
        self.agent.is_some()
            || self.kind.is_some()
            || self.tool.is_some()
            || self.since.is_some()
            || self.until.is_some()
            || self.last.is_some()
    }

    /// The arguments that name the log and the hooks, for a hint to the user.
    pub(super) fn log_and_hooks(&self) -> String {
        let path = |name: &str, path: &PathBuf| format!(" {name} {}", path.display());
        let parts = [
            self.log.as_ref().map(|log| path("--log", log)),
            self.nats.as_ref().map(|_| " --nats".to_owned()),
            self.hooks.as_ref().map(|hooks| path("--hooks", hooks)),
            self.as_recorded.then(|| " --as-recorded".to_owned()),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Whether any argument selects events of the log.
    pub(super) const fn selects(&self) -> bool {
        self.all || !self.sessions.is_empty() || self.has_filters() || self.explain.is_some()
    }
}
