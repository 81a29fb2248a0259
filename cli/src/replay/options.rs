//! What can be said to `hookbus replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hookbus_replay::Detail;

/// Re-drive recorded events through hooks and compare with what was decided then.
///
/// Say which events (a session, filters, --all) and which hooks (those configured now, unless
/// --as-recorded or --hooks says otherwise). Commands run for real, in a scratch place, after they
/// were listed and confirmed. Nothing is written to the log.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one switch each on the command line")]
pub(crate) struct Arguments {
    /// Sessions, as much of each id as makes it plain; `last` is the latest one.
    #[arg(value_name = "SESSION")]
    pub(super) sessions: Vec<String>,
    /// Everything in the log.
    #[arg(long, conflicts_with = "sessions")]
    pub(super) all: bool,
    /// Only this agent: hermes, gemini, claude, codex.
    #[arg(long)]
    pub(super) agent: Option<String>,
    /// Only this kind, such as tool.before; `tool.*` is a family.
    #[arg(long)]
    pub(super) kind: Option<String>,
    /// Only this tool or tool class, such as terminal or shell.
    #[arg(long)]
    pub(super) tool: Option<String>,
    /// Not before: `2h` ago, `today`, `2026-11-16`, `2026-11-16 14:05`, RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<String>,
    /// Before.
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<String>,
    /// Only the last N events that fit.
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    pub(super) last: Option<usize>,
    /// Another log: its file, the home it is in, or what `hookbus export` wrote.
    #[arg(long, value_name = "PATH", conflicts_with = "nats")]
    pub(super) log: Option<PathBuf>,
    /// Straight from the NATS stream: the configured one, or the one at `--nats=URL`.
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(super) nats: Option<String>,

    /// Ask the hooks that were in force then, by what the log holds of them.
    #[arg(long, conflicts_with = "hooks")]
    pub(super) as_recorded: bool,
    /// Ask the hooks in this file.
    #[arg(long, value_name = "FILE")]
    pub(super) hooks: Option<PathBuf>,

    /// Ask rules only; what depends on a command is then not comparable.
    #[arg(long)]
    pub(super) rules_only: bool,
    /// Say which commands would run, or what observers would be given, and run nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Run the commands without asking.
    #[arg(short, long)]
    pub(super) yes: bool,
    /// How many events may have their commands run at the same time, out of recorded order; left out
    /// where plugins are asked.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) jobs: usize,
    /// Ask commands N times each: one that answers differently on the same input is found out. Plugins
    /// are asked once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) repeat: u32,
    /// Seconds that the commands of one event may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub(super) time_limit: f64,
    /// Megabytes that each process may use.
    #[arg(long, value_name = "MB", default_value_t = 1024)]
    pub(super) memory: u64,

    /// Show each difference, not only the sum.
    #[arg(long)]
    pub(super) list: bool,
    /// One event in depth: what came in, each hook's verdict then and now, the answers, the timing.
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["check", "junit", "fail_on", "last"])]
    pub(super) explain: Option<i64>,
    /// Write a JUnit report here, for CI.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Exit with 1 when this happened.
    #[arg(long, value_name = "WHAT")]
    pub(super) fail_on: Option<FailOn>,

    /// Give the events to observers once more, outside of the live stream and marked as a replay.
    #[arg(long, conflicts_with_all = ["check", "explain", "junit", "fail_on"])]
    pub(super) to_observers: bool,
    /// With --to-observers: only this one (may be said several times).
    #[arg(long, value_name = "NAME", requires = "to_observers")]
    pub(super) observer: Vec<String>,
    /// With --to-observers: publish them on replay subjects, for `hookbus observe NAME --replay RUN`.
    #[arg(long, requires = "to_observers", conflicts_with = "observer")]
    pub(super) publish: bool,
    /// With --publish: on this server, in place of the configured one.
    #[arg(long, value_name = "URL", requires = "publish")]
    pub(super) to_nats: Option<String>,
    /// With --to-observers: `at-once`, `recorded`, or so many times as fast (`10x`).
    #[arg(long, value_name = "PACE", default_value = "at-once", requires = "to_observers")]
    pub(super) pace: Pace,

    /// A policy test: drive the events in the expectations file, and exit with 1 on a difference.
    #[arg(long)]
    pub(super) check: bool,
    /// The expectations file (default: beside the hooks file, as `<name>.expect.jsonl`).
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(super) expect: Option<PathBuf>,
    /// With --check: write what the hooks say now, about the selected events or those in the file.
    #[arg(long, requires = "check", conflicts_with = "rules_only")]
    pub(super) update: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a number from 1 on".to_owned())
}

/// What makes the exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Something would be refused that was not.
    Blocked,
    /// Something would be let through that was not.
    Allowed,
    /// Something would be answered differently.
    Changed,
    /// Any of these, a hook that fails, or one that does not stand by its word.
    Any,
}

/// How fast events are given to observers: no wait, or the recorded one divided by this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace(pub(super) Option<f64>);

impl std::str::FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let factor = match text {
            "at-once" => return Ok(Self(None)),
            "recorded" => Some(1.0),
            times => times.strip_suffix('x').and_then(|times| times.parse().ok()),
        };
        match factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0) {
            Some(factor) => Ok(Self(Some(factor))),
            None => Err("write `at-once`, `recorded`, or a factor such as `10x`".to_owned()),
        }
    }
}

impl Arguments {
    /// How much is needed of each event.
    pub(super) const fn detail(&self) -> Detail {
        if self.update || self.explain.is_some() {
            Detail::Whole
        } else if self.junit.is_some() {
            Detail::Everything
        } else {
            Detail::Differences
        }
    }

    /// What else has to be said to ask the same hooks about the same log.
    pub(super) fn as_said(&self) -> String {
        let path = |name: &str, path: &PathBuf| format!(" {name} {}", path.display());
        let parts = [
            self.log.as_ref().map(|log| path("--log", log)),
            self.nats.as_ref().map(|_| " --nats".to_owned()),
            self.hooks.as_ref().map(|hooks| path("--hooks", hooks)),
            self.as_recorded.then(|| " --as-recorded".to_owned()),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Whether events of the log were asked for.
    pub(super) const fn selects(&self) -> bool {
        self.all
            || !self.sessions.is_empty()
            || self.agent.is_some()
            || self.kind.is_some()
            || self.tool.is_some()
            || self.since.is_some()
            || self.until.is_some()
            || self.last.is_some()
            || self.explain.is_some()
    }
}
