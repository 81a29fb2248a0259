//! Where the events of a replay come from: which log, and which events of it. An exported file or a NATS
//! stream is first copied into a temporary log.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hookbus::event::{Clock, Seq, SystemClock};
use hookbus::log::{Archive, LogPath, LogReader, Query, Selection};
use hookbus_subscribers::copy_stream;

use super::cleanup::TempDirectory;
use super::options::Arguments;
use crate::args::find_session;
use crate::args::{nats_settings, parse_agent, parse_kind, parse_time};
use crate::import;
use crate::output::{self, Progress, sanitize};
use crate::settings::Settings;

/// Most mistakes to print one by one.
const MOST_MISTAKES: usize = 10;

/// The log to read.
pub(super) struct InputLog {
    pub(super) path: LogPath,
    /// Holds the log if it is a temporary copy; removed when dropped.
    pub(super) copy: Option<TempDirectory>,
}

impl InputLog {
    /// Finds the log that `--log`, `--nats` or the home names.
    pub(super) fn locate(arguments: &Arguments, settings: &Settings) -> Result<Self> {
        let in_place = |path| Ok(Self { path, copy: None });
        if let Some(url) = &arguments.nats {
            let url = Some(url.as_str()).filter(|url| !url.is_empty());
            return Self::copy_stream(url, arguments, settings);
        }
        match &arguments.log {
            None => in_place(LogPath::in_home(&settings.home)),
            Some(path) if path.is_dir() => in_place(LogPath::in_home(path)),
            Some(path) if !is_export(path)? => in_place(LogPath::of_file(path)),
            Some(path) => Self::copy_export(path),
        }
    }

    fn copy_export(file: &Path) -> Result<Self> {
        let (path, copy) = temporary_log()?;
        for mistake in import::import_file(file, &path)?.mistakes {
            output::to_stderr(sanitize(&format!("{}: {mistake}; skipped", file.display())));
        }
        Ok(Self { path, copy: Some(copy) })
    }

    fn copy_stream(url: Option<&str>, arguments: &Arguments, settings: &Settings) -> Result<Self> {
        let nats = nats_settings(url, settings)
            .context("no NATS server is configured; name one with `--nats=URL`")?;
        let (path, copy) = temporary_log()?;
        let mut archive = Archive::open(&path, SystemClock.now())?;
        let since = arguments.since.as_deref().map(parse_time).transpose()?;
        let mut progress = None;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let copied = runtime.block_on(copy_stream(&nats, since, &mut archive, |done, total| {
            progress.get_or_insert_with(|| Progress::new(total, "messages")).update(done);
        }));
        drop(progress);
        let mistakes = copied?;
        for mistake in mistakes.iter().take(MOST_MISTAKES) {
            output::to_stderr(sanitize(&format!("{mistake}; skipped")));
        }
        if mistakes.len() > MOST_MISTAKES {
            output::to_stderr(format!("and {} more", mistakes.len() - MOST_MISTAKES));
        }
        Ok(Self { path, copy: Some(copy) })
    }
}

/// Whether `hookbus export` wrote a file.
fn is_export(path: &Path) -> Result<bool> {
    let mut file =
        fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut start = [0; 64];
    let length = file.read(&mut start)?;
    let start = start[..length].trim_ascii_start();
    // A file with nothing but whitespace is an export without rows.
    Ok(start.starts_with(b"{") || (start.is_empty() && length > 0))
}

fn temporary_log() -> Result<(LogPath, TempDirectory)> {
    let copy = TempDirectory::for_log_copy()?;
    Ok((LogPath::in_home(copy.path()), copy))
}

/// The events that the arguments select.
pub(super) fn selection(arguments: &Arguments, log: &LogReader) -> Result<Selection> {
    let seq = match arguments.explain {
        None => None,
        Some(seq) => match log.replay().event_at(Seq::from_i64(seq))? {
            Some(event) => Some(event),
            None => bail!(
                "there is no event at {seq} (rows of kind `hooks.loaded` are not events); `hookbus \
                 log` lists the rows"
            ),
        },
    };
    let sessions = arguments.sessions.iter().map(|start| find_session(log, start));
    Ok(Selection {
        query: Query {
            seq,
            session: None,
            bus: None,
            agent: arguments.agent.as_deref().map(parse_agent).transpose()?,
            kinds: Vec::new(),
            kind: arguments.kind.as_deref().map(parse_kind).transpose()?,
            name: None,
            tool: arguments.tool.clone(),
            since: arguments.since.as_deref().map(parse_time).transpose()?,
            until: arguments.until.as_deref().map(parse_time).transpose()?,
        },
        sessions: sessions.collect::<Result<_>>()?,
        last: arguments.last,
    })
}
