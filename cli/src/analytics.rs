//! The analytics database of the home, for the verbs that read it: where it is, and bringing it up to date with the log
//! first, so that they work without a daemon.

use std::path::PathBuf;

use anyhow::{Context, Result};
use hookbus::active::HooksSource;
use hookbus::caller::Caller;
use hookbus::config::{Action, Hook, NatsSettings, ObserverSource};
use hookbus::event::{Clock, SystemClock};
use hookbus::log::LogPath;
use hookbus_subscribers::analytics::{
    AnalyticsDatabase, AnalyticsError, CatchUp, catch_up, rebuild,
};

use crate::output::{self, Progress, count};
use crate::settings::Settings;

/// The database of a home whose hooks file names none.
const DEFAULT: &str = "analytics.db";

/// Whether a database is brought up to date, or built anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    UpToDate,
    Rebuilt,
}

/// The database of the home, as its analytics observer is configured.
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    pub(crate) log: LogPath,
    /// Its observer reads NATS: it holds other buses too, which the log of this machine does not know.
    is_fed_by_nats: bool,
}

impl Database {
    pub(crate) fn of(settings: &Settings) -> Self {
        let log = LogPath::in_home(&settings.home);
        let active = HooksSource::new(&settings.home, log.clone()).active();
        let path_of = |hook: &Hook| {
            let Action::Analytics(path) = &hook.action else { return None };
            hook.is_observer().then(|| (path.clone(), hook.observer.source))
        };
        let urls = settings.nats_urls(None);
        let nats = NatsSettings::with_servers(active.file.nats.clone(), urls.as_deref());
        let caller = Caller { env: settings.environment(), ..Caller::default() };
        match active.file.hooks.iter().find_map(path_of) {
            Some((path, source)) => Self {
                path: caller.expand_home(path).into(),
                log,
                is_fed_by_nats: source != Some(ObserverSource::Log) && nats.is_some(),
            },
            None => Self { path: settings.home.join(DEFAULT), log, is_fed_by_nats: false },
        }
    }

    /// Counts what the database does not hold yet, with a progress line. If it cannot be written, what it holds has to do.
    pub(crate) fn refresh(&self, freshness: Freshness) -> Result<()> {
        let mut progress: Option<Progress> = None;
        let mut show = |done, total| {
            progress.get_or_insert_with(|| Progress::new(total, "rows")).update(done);
        };
        let now = SystemClock.now();
        let done = match freshness {
            Freshness::UpToDate => catch_up(&self.log, &self.path, now, &mut show),
            // From the log of this machine, and the observer reads the stream again from its start.
            Freshness::Rebuilt if self.is_fed_by_nats => AnalyticsDatabase::open(&self.path, now)
                .and_then(|mut database| database.reset(now))
                .and_then(|()| catch_up(&self.log, &self.path, now, &mut show)),
            Freshness::Rebuilt => rebuild(&self.log, &self.path, now, &mut show),
        };
        drop(progress);
        match done {
            Ok(CatchUp { damaged, .. }) => {
                if damaged > 0 {
                    let rows = count(usize::try_from(damaged).unwrap_or(usize::MAX), "damaged row");
                    output::to_stderr(format!("{rows} not counted; `hookbus verify` tells more"));
                }
                Ok(())
            }
            Err(error) if freshness == Freshness::UpToDate && self.is_usable(&error) => {
                output::to_stderr(output::sanitize(&format!("not brought up to date: {error}")));
                Ok(())
            }
            Err(error) => Err(error).context("no figures"),
        }
    }

    /// Whether what is there can be read although it cannot be brought up to date.
    fn is_usable(&self, error: &AnalyticsError) -> bool {
        matches!(error, AnalyticsError::Sqlite(_) | AnalyticsError::File { .. })
            && std::fs::metadata(&self.path).is_ok_and(|file| file.len() > 0)
    }
}
