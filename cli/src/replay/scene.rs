//! What a replay needs before it starts: the events, the hooks, and where expectations are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hookbus::decide::{Hooks, HooksSource, Reach, Standing};
use hookbus::event::Seq;
use hookbus::log::{LogPath, LogReader, Query, Selection};
use hookbus_replay::{Detail, Expectations, ExpectationsWriter, LogSource, Policy, Source};

use super::options::Arguments;
use crate::log::known_kind;
use crate::output;
use crate::reading::{known_agent, moment};
use crate::settings::Settings;

/// So many rows are worked on at once where only rules are asked.
const MANY: u32 = 4096;
/// Where every event is handed on whole.
const SOME: u32 = 64;
/// Where commands run: progress shows, and several may run side by side.
const FEW: u32 = 4;

/// The events and the hooks.
pub(super) struct Scene {
    pub(super) source: Box<dyn Source>,
    pub(super) policy: Policy,
    /// How the hooks are called in the report.
    pub(super) hooks: String,
    /// Where expectations are, if they are what this is about.
    pub(super) expectations: Option<PathBuf>,
    /// Whether a line of the expectations cannot be read.
    pub(super) damaged: bool,
}

impl Scene {
    pub(super) fn set(arguments: &Arguments, settings: &Settings) -> Result<Self> {
        let log = log_path(arguments, settings);
        let (policy, hooks) = policy(arguments, settings, &log)?;
        let expectations = arguments.check.then(|| expectations_path(arguments, settings));
        let from_file = arguments.check && !(arguments.update && arguments.selects());
        if let (true, Some(path)) = (from_file, &expectations) {
            if arguments.as_recorded {
                bail!(
                    "expectations hold no hooks to ask; leave --as-recorded out, or name --hooks"
                );
            }
            let read = Expectations::read(path)?;
            let damaged = read.damaged() > 0;
            return Ok(Self { source: Box::new(read), policy, hooks, expectations, damaged });
        }
        if !arguments.selects() {
            bail!(
                "say what to replay: a session (`hookbus sessions` lists them), `last`, a filter \
                 such as `--since 7d`, or `--all`"
            );
        }
        let selection = selection(arguments, &LogReader::open(&log)?)?;
        let rows = match arguments.detail() {
            _ if policy.has_commands() && !arguments.rules_only => FEW,
            Detail::Whole => SOME,
            Detail::Everything | Detail::Differences => MANY,
        };
        let source = Box::new(LogSource::open(log, selection, rows)?);
        Ok(Self { source, policy, hooks, expectations, damaged: false })
    }

    pub(super) fn expectations_to_write(
        &self,
        arguments: &Arguments,
    ) -> Result<Option<ExpectationsWriter>> {
        let Some(path) = self.expectations.as_ref().filter(|_| arguments.update) else {
            return Ok(None);
        };
        let writer = ExpectationsWriter::start(path, &self.hooks);
        writer.map(Some).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn log_path(arguments: &Arguments, settings: &Settings) -> LogPath {
    match &arguments.log {
        None => LogPath::in_home(&settings.home),
        Some(path) if path.is_dir() => LogPath::in_home(path),
        Some(path) => LogPath::of_file(path),
    }
}

fn selection(arguments: &Arguments, log: &LogReader) -> Result<Selection> {
    let session = |prefix: &String| match prefix.as_str() {
        "last" => Ok(log.sessions()?.pop().map_or_else(String::new, |last| last.session)),
        prefix => log.find_session(prefix),
    };
    let seq = match arguments.explain {
        None => None,
        Some(seq) => match log.event_at(Seq::from_i64(seq))? {
            Some(event) => Some(event),
            None => bail!("there is no event at {seq}; `hookbus log` shows what is where"),
        },
    };
    Ok(Selection {
        query: Query {
            seq,
            session: None,
            bus: None,
            agent: arguments.agent.as_deref().map(known_agent).transpose()?,
            kind: arguments.kind.as_deref().map(known_kind).transpose()?,
            name: None,
            tool: arguments.tool.clone(),
            since: arguments.since.as_deref().map(moment).transpose()?,
            until: arguments.until.as_deref().map(moment).transpose()?,
        },
        sessions: arguments.sessions.iter().map(session).collect::<Result<_, _>>()?,
        last: arguments.last,
    })
}

/// The hooks to ask, and what they are called.
fn policy(arguments: &Arguments, settings: &Settings, log: &LogPath) -> Result<(Policy, String)> {
    if arguments.as_recorded {
        let policy = Policy::as_recorded(&LogReader::open(log)?)?;
        return Ok((policy, "the hooks that were in force".to_owned()));
    }
    if let Some(file) = &arguments.hooks {
        let hooks = candidate(file)?;
        return Ok((Policy::Given(Box::new(hooks)), file.display().to_string()));
    }
    let source = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let in_force = source.in_force();
    if let Some(problem) = in_force.standing.problem() {
        let what = match in_force.standing {
            Standing::LastGood(_) => "its last good version is asked",
            Standing::Current | Standing::NoFile | Standing::NothingGood(_) => "no hook is asked",
        };
        output::aside(format!("{}: {problem}; {what}", source.file().display()));
    }
    let name = source.file().display().to_string();
    Ok((Policy::Given(Box::new(in_force.hooks.clone())), name))
}

fn candidate(file: &Path) -> Result<Hooks> {
    let text = fs::read_to_string(file).with_context(|| {
        format!("cannot read {}; name a hooks file with --hooks", file.display())
    })?;
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let base = whole.parent().unwrap_or(Path::new("/"));
    let hooks = match Hooks::parse(&text, base) {
        Ok(hooks) => hooks,
        Err(problem) => bail!("{}: {problem}", file.display()),
    };
    for problem in hooks.problems.iter().filter(|problem| problem.reach != Reach::Nothing) {
        output::aside(format!("{}: {problem}; this hook counts as failed", file.display()));
    }
    Ok(hooks)
}

fn expectations_path(arguments: &Arguments, settings: &Settings) -> PathBuf {
    let beside = || {
        let policy = arguments.hooks.clone();
        policy.unwrap_or_else(|| settings.home.join("hookbus.yaml")).with_extension("expect.jsonl")
    };
    arguments.expect.clone().unwrap_or_else(beside)
}
