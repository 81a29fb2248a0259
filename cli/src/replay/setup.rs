//! What a replay needs before it starts: the events, the hooks, and the expectations file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hookbus::active::{ActiveHooks, HooksSource, HooksStatus, is_project_file};
use hookbus::config::{HooksFile, Reach};
use hookbus::log::{LogPath, LogReader};
use hookbus_replay::{
    Detail, EventSource, Expectations, ExpectationsWriter, LogSource, RecordedHooks, ReplayHooks,
    canonical_hooks_path,
};

use super::cleanup::TempDirectory;
use super::input::{InputLog, selection};
use super::options::Arguments;
use crate::output::{self, count, sanitize};
use crate::settings::Settings;

/// Rows in a chunk.
const CHUNK: u32 = 4096;
/// Rows in a chunk if results hold whole payloads, which may be large.
const CHUNK_WITH_PAYLOADS: u32 = 4;

/// The events and hooks of a replay.
pub(super) struct ReplaySetup {
    pub(super) source: Box<dyn EventSource>,
    pub(super) hooks: ReplayHooks,
    /// The name of the hooks in the report.
    pub(super) hooks_name: String,
    /// The expectations file, with `--check`.
    pub(super) expectations: Option<PathBuf>,
    /// Whether the expectations file has lines that cannot be read.
    pub(super) has_damaged_lines: bool,
    /// The log that the events come from; none if they come from an expectations file.
    pub(super) log: Option<LogPath>,
    /// Holds the log if it is a temporary copy.
    _copy: Option<TempDirectory>,
}

impl ReplaySetup {
    pub(super) fn new(arguments: &Arguments, settings: &Settings) -> Result<Self> {
        if arguments.check && !arguments.update && arguments.selects() {
            bail!(
                "--check replays the events in the expectations file; add --update to write the \
                 selected events there, or leave out the selection"
            );
        }
        if arguments.check && !(arguments.update && arguments.selects()) {
            return Self::from_expectations(arguments, settings);
        }
        if !arguments.selects() {
            bail!(
                "say what to replay: a session (`hookbus sessions` lists them), `last`, a filter \
                 such as `--since 7d`, or `--all`"
            );
        }
        let InputLog { path, copy } = InputLog::locate(arguments, settings)?;
        let reader = LogReader::open(&path)?;
        let selection = selection(arguments, &reader)?;
        let mut recorded = RecordedHooks::read(&reader)?;
        let is_own = !reader.is_archive()
            && is_own_log(&path, settings)
            && recorded.were_recorded_at(&hooks_file(settings));
        if !is_own {
            recorded = recorded.of_foreign_recording();
        }
        if arguments.check {
            // An expectations file holds no hooks of projects.
            recorded = recorded.without_projects();
        }
        let (hooks, hooks_name) = if arguments.as_recorded {
            (ReplayHooks::AsRecorded(recorded), "the hooks that were in force".to_owned())
        } else {
            fixed_hooks(arguments, settings, Some(recorded))?
        };
        let rows = match arguments.detail() {
            Detail::Payloads => CHUNK_WITH_PAYLOADS,
            Detail::AllEvents | Detail::Differences => CHUNK,
        };
        Ok(Self {
            source: Box::new(LogSource::open(path.clone(), selection, rows)?),
            hooks,
            hooks_name,
            expectations: arguments.check.then(|| expectations_path(arguments, settings)),
            has_damaged_lines: false,
            log: Some(path),
            _copy: copy,
        })
    }

    /// Replays the events in the expectations file.
    fn from_expectations(arguments: &Arguments, settings: &Settings) -> Result<Self> {
        if arguments.as_recorded {
            bail!("an expectations file holds no hooks; leave out --as-recorded, or use --hooks");
        }
        let (hooks, hooks_name) = fixed_hooks(arguments, settings, None)?;
        let path = expectations_path(arguments, settings);
        let expectations = Expectations::open(&path)?;
        let damaged = expectations.damaged_lines();
        if damaged > 0 && arguments.update {
            bail!(
                "{} has {} that cannot be read and would be lost; repair or remove them first \
                 (`hookbus replay --check` lists them)",
                path.display(),
                count(damaged, "line")
            );
        }
        Ok(Self {
            source: Box::new(expectations),
            hooks,
            hooks_name,
            expectations: Some(path),
            has_damaged_lines: damaged > 0,
            log: None,
            _copy: None,
        })
    }

    /// Writes the expectations file, with `--update`.
    pub(super) fn expectations_writer(
        &self,
        arguments: &Arguments,
    ) -> Result<Option<ExpectationsWriter>> {
        let Some(path) = self.expectations.as_ref().filter(|_| arguments.update) else {
            return Ok(None);
        };
        let writer = ExpectationsWriter::create(path, &self.hooks_name);
        writer.map(Some).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The file with the hooks of this home.
fn hooks_file(settings: &Settings) -> PathBuf {
    HooksSource::new(&settings.home, LogPath::in_home(&settings.home)).file().to_owned()
}

/// Whether a log is the one of this home. It may still be a copy of another home's log: the hooks in it tell.
fn is_own_log(path: &LogPath, settings: &Settings) -> bool {
    let canonical = |path: &LogPath| path.file().canonicalize().ok();
    canonical(path).is_some_and(|path| Some(path) == canonical(&LogPath::in_home(&settings.home)))
}

/// The same hooks for all events: those of `--hooks`, or the configured ones. Also returns their name.
fn fixed_hooks(
    arguments: &Arguments,
    settings: &Settings,
    recorded: Option<RecordedHooks>,
) -> Result<(ReplayHooks, String)> {
    let has_projects = recorded.as_ref().is_some_and(RecordedHooks::has_projects);
    let (hooks, name) = match &arguments.hooks {
        Some(file) => (candidate(file, settings)?, file.display().to_string()),
        None => configured(settings, has_projects),
    };
    let hooks = Arc::new(ActiveHooks::for_replay(hooks));
    Ok((ReplayHooks::Fixed { hooks, recorded }, name))
}

/// The configured hooks and the name of their file. Tells the user if they are not what the file says.
fn configured(settings: &Settings, has_projects: bool) -> (HooksFile, String) {
    let source = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let name = source.file().display().to_string();
    let active = source.active();
    if let Some(problem) = active.status.problem() {
        let consequence = match active.status {
            HooksStatus::LastGood(_) => "the last good version is used",
            HooksStatus::Current | HooksStatus::NoFile | HooksStatus::NothingGood(_) => {
                "no hook is used"
            }
        };
        output::to_stderr(sanitize(&format!("{name}: {problem}; {consequence}")));
    }
    if active.status == HooksStatus::NoFile {
        let consequence = if has_projects {
            "no hook of your own is used (those of projects are, as recorded)"
        } else {
            "no hook is used"
        };
        output::to_stderr(format!(
            "there is no {name}, so {consequence}; name a file with --hooks, or use --as-recorded"
        ));
    }
    (active.file.clone(), name)
}

/// The hooks in the file of `--hooks`.
fn candidate(file: &Path, settings: &Settings) -> Result<HooksFile> {
    let text = fs::read_to_string(file).with_context(|| {
        format!("cannot read {}; name a hooks file with --hooks", file.display())
    })?;
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let base = absolute.parent().unwrap_or(Path::new("/"));
    let parsed = if is_project_file(&absolute, &settings.home, settings.default_home.as_deref()) {
        HooksFile::parse_project(&text, &canonical_hooks_path(&absolute), &|_, _| true)
    } else {
        HooksFile::parse(&text, base)
    };
    let hooks = match parsed {
        Ok(hooks) => hooks,
        Err(problem) => bail!("{}: {problem}", file.display()),
    };
    for problem in hooks.problems.iter().filter(|problem| problem.reach != Reach::Nothing) {
        let text = format!("{}: {problem}; it counts as far as it can be read", file.display());
        output::to_stderr(sanitize(&text));
    }
    Ok(hooks)
}

fn expectations_path(arguments: &Arguments, settings: &Settings) -> PathBuf {
    let beside_hooks = || {
        let hooks = arguments.hooks.clone();
        hooks.unwrap_or_else(|| settings.home.join("hookbus.yaml")).with_extension("expect.jsonl")
    };
    arguments.expect.clone().unwrap_or_else(beside_hooks)
}
