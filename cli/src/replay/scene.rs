//! What a replay needs before it starts: the events, the hooks, and where expectations are.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hookbus::decide::{Hooks, HooksSource, Reach, Standing, is_of_a_project};
use hookbus::event::{Clock, Seq, SystemClock};
use hookbus::log::{Archive, LogPath, LogReader, Query, Selection};
use hookbus_replay::{
    Detail, Expectations, ExpectationsWriter, LogSource, Policy, Recorded, Source, real_place,
};

use hookbus_subscribers::copy_stream;

use super::litter::Folder;
use super::options::Arguments;
use crate::args::{nats_settings, parse_agent, parse_kind, parse_time};
use crate::export::wanted_session;
use crate::hooks::current_caller;
use crate::import;
use crate::output::{self, Progress, sanitize};
use crate::settings::Settings;

/// So many rows are worked on at once where only rules are asked.
const MANY: u32 = 4096;
/// Where every event is handed on whole: payloads may be large.
const FEW: u32 = 4;

/// The events and the hooks.
pub(super) struct Scene {
    pub(super) source: Box<dyn Source>,
    pub(super) policy: Policy,
    /// The hooks that were in force, where the events come from a log.
    pub(super) recorded: Option<Arc<Recorded>>,
    /// How the hooks are called in the report.
    pub(super) hooks: String,
    /// Where expectations are, if they are what this is about.
    pub(super) expectations: Option<PathBuf>,
    /// Whether a line of the expectations cannot be read.
    pub(super) damaged: bool,
    /// The log, where it had to be copied to be read.
    _copy: Option<Folder>,
}

impl Scene {
    pub(super) fn set(arguments: &Arguments, settings: &Settings) -> Result<Self> {
        if arguments.check && !arguments.update && arguments.selects() {
            bail!(
                "--check drives the events in the expectations file; add --update to write these \
                 events there, or leave the selection out"
            );
        }
        let expectations = arguments.check.then(|| expectations_path(arguments, settings));
        let from_file = arguments.check && !(arguments.update && arguments.selects());
        if let (true, Some(path)) = (from_file, &expectations) {
            return Self::of_expectations(path.clone(), arguments, settings);
        }
        if !arguments.selects() {
            bail!(
                "say what to replay: a session (`hookbus sessions` lists them), `last`, a filter \
                 such as `--since 7d`, or `--all`"
            );
        }
        let Located { log, copy } = locate(arguments, settings)?;
        let reader = LogReader::open(&log)?;
        let selection = selection(arguments, &reader)?;
        let mut recorded = Recorded::read(&reader)?;
        if arguments.check {
            // Expectations hold events and answers, but no hooks of projects.
            recorded = recorded.without_projects();
        }
        let recorded = Arc::new(recorded);
        let (policy, hooks) = if arguments.as_recorded {
            let policy = Policy::AsRecorded(Arc::clone(&recorded));
            (policy, "the hooks that were in force".to_owned())
        } else {
            given(arguments, settings, recorded.has_projects())?
        };
        let recorded = Some(recorded);
        let rows = match arguments.detail() {
            Detail::Whole => FEW,
            Detail::Everything | Detail::Differences => MANY,
        };
        let source = Box::new(LogSource::open(log, selection, rows)?);
        Ok(Self { source, policy, recorded, hooks, expectations, damaged: false, _copy: copy })
    }

    /// The events that are in the expectations.
    fn of_expectations(path: PathBuf, arguments: &Arguments, settings: &Settings) -> Result<Self> {
        if arguments.as_recorded {
            bail!("expectations hold no hooks to ask; leave --as-recorded out, or name --hooks");
        }
        let (policy, hooks) = given(arguments, settings, false)?;
        let read = Expectations::read(&path)?;
        let damaged = read.damaged() > 0;
        if damaged && arguments.update {
            bail!(
                "{} has {} that cannot be read and would be lost; mend or remove them first \
                 (`hookbus replay --check` names them)",
                path.display(),
                output::count(read.damaged(), "line")
            );
        }
        Ok(Self {
            source: Box::new(read),
            policy,
            recorded: None,
            hooks,
            expectations: Some(path),
            damaged,
            _copy: None,
        })
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

/// The log to read; a copy that goes when it is dropped, where it came in another form.
pub(super) struct Located {
    pub(super) log: LogPath,
    pub(super) copy: Option<Folder>,
}

pub(super) fn locate(arguments: &Arguments, settings: &Settings) -> Result<Located> {
    let as_it_is = |log| Ok(Located { log, copy: None });
    if let Some(url) = &arguments.nats {
        return copy_of_stream(
            Some(url.as_str()).filter(|url| !url.is_empty()),
            arguments,
            settings,
        );
    }
    match &arguments.log {
        None => as_it_is(LogPath::in_home(&settings.home)),
        Some(path) if path.is_dir() => as_it_is(LogPath::in_home(path)),
        Some(path) if !is_exported(path)? => as_it_is(LogPath::of_file(path)),
        Some(path) => {
            let (log, copy) = scratch_log()?;
            for mistake in import::take_in(path, &log)?.mistakes {
                output::to_stderr(sanitize(&format!("{}: {mistake}; left out", path.display())));
            }
            Ok(Located { log, copy: Some(copy) })
        }
    }
}

/// Whether a file is what `hookbus export` writes.
fn is_exported(path: &Path) -> Result<bool> {
    let mut file =
        fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut start = [0; 64];
    let length = file.read(&mut start)?;
    let start = start[..length].trim_ascii_start();
    // A file of nothing but space is an export of nothing.
    Ok(start.starts_with(b"{") || (start.is_empty() && length > 0))
}

fn scratch_log() -> Result<(LogPath, Folder)> {
    let copy = Folder::for_a_copy()?;
    Ok((LogPath::in_home(copy.path()), copy))
}

fn copy_of_stream(
    url: Option<&str>,
    arguments: &Arguments,
    settings: &Settings,
) -> Result<Located> {
    let nats =
        nats_settings(url, settings).context("no NATS server is configured; write `--nats=URL`")?;
    let (log, copy) = scratch_log()?;
    let mut archive = Archive::open(&log, SystemClock.now())?;
    let since = arguments.since.as_deref().map(parse_time).transpose()?;
    let mut progress = None;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let copied = runtime.block_on(copy_stream(&nats, since, &mut archive, |done, whole| {
        progress.get_or_insert_with(|| Progress::new(whole, "messages")).update(done);
    }));
    drop(progress);
    for mistake in copied? {
        output::to_stderr(sanitize(&format!("{mistake}; left out")));
    }
    Ok(Located { log, copy: Some(copy) })
}

pub(super) fn selection(arguments: &Arguments, log: &LogReader) -> Result<Selection> {
    let session = |start: &String| wanted_session(log, start);
    let seq = match arguments.explain {
        None => None,
        Some(seq) => match log.event_at(Seq::from_i64(seq))? {
            Some(event) => Some(event),
            None => bail!(
                "there is no event at {seq} (the hooks that came into force are none); `hookbus log` \
                 shows what is where"
            ),
        },
    };
    Ok(Selection {
        query: Query {
            seq,
            session: None,
            bus: None,
            agent: arguments.agent.as_deref().map(parse_agent).transpose()?,
            kind: arguments.kind.as_deref().map(parse_kind).transpose()?,
            name: None,
            tool: arguments.tool.clone(),
            since: arguments.since.as_deref().map(parse_time).transpose()?,
            until: arguments.until.as_deref().map(parse_time).transpose()?,
        },
        sessions: arguments.sessions.iter().map(session).collect::<Result<_, _>>()?,
        last: arguments.last,
    })
}

/// The hooks to ask whatever was in force, and what they are called. Those of `projects` may be asked too.
fn given(arguments: &Arguments, settings: &Settings, projects: bool) -> Result<(Policy, String)> {
    if let Some(file) = &arguments.hooks {
        let hooks = candidate(file, settings)?;
        let hooks = hooks.taken_at_their_word();
        return Ok((Policy::Given(Box::new(hooks)), file.display().to_string()));
    }
    let source = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let in_force = source.in_force();
    if let Some(problem) = in_force.standing.problem() {
        let what = match in_force.standing {
            Standing::LastGood(_) => "its last good version is asked",
            Standing::Current | Standing::NoFile | Standing::NothingGood(_) => "no hook is asked",
        };
        output::to_stderr(sanitize(&format!("{}: {problem}; {what}", source.file().display())));
    }
    if in_force.standing == Standing::NoFile {
        let asked = if projects {
            "no hook of your own is asked (those of projects are, as recorded)"
        } else {
            "no hook is asked"
        };
        output::to_stderr(format!(
            "there is no {}, so {asked}; name one with --hooks, or say --as-recorded",
            source.file().display()
        ));
    }
    let name = source.file().display().to_string();
    let hooks = in_force.hooks.clone().taken_at_their_word();
    Ok((Policy::Given(Box::new(hooks)), name))
}

fn candidate(file: &Path, settings: &Settings) -> Result<Hooks> {
    let text = fs::read_to_string(file).with_context(|| {
        format!("cannot read {}; name a hooks file with --hooks", file.display())
    })?;
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let base = whole.parent().unwrap_or(Path::new("/"));
    let read = if is_of_a_project(&whole, &settings.home, &current_caller()) {
        Hooks::parse_project(&text, &real_place(&whole))
    } else {
        Hooks::parse(&text, base)
    };
    let hooks = match read {
        Ok(hooks) => hooks,
        Err(problem) => bail!("{}: {problem}", file.display()),
    };
    for problem in hooks.problems.iter().filter(|problem| problem.reach != Reach::Nothing) {
        let text = format!("{}: {problem}; this hook counts as failed", file.display());
        output::to_stderr(sanitize(&text));
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
