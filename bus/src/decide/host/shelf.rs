//! The plugins of one hooks file: looked for every now and then, kept as long as they stay the same.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use super::super::code_files::Extent;
use super::folder::{Found, find};
use super::log;
use super::lying::Lists;
use super::plugin::Plugin;
use super::process::Launch;

/// The disk is not looked at more often than this while everything runs.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where everything a plugin prints goes, beside the hooks file.
pub(super) const LOG: &str = "plugins.log";

type Key = (PathBuf, Launch);

/// Which of a directory's plugins are meant, and where what they print goes.
#[derive(Debug, Clone, Copy)]
pub(in crate::decide) struct Meant<'a> {
    pub(in crate::decide) lists: &'a Lists,
    /// How much of a plugin's directory is its code.
    pub(in crate::decide) extent: Extent,
    /// The directory that their log is in.
    pub(in crate::decide) log_in: &'a Path,
}

/// All plugins that a hooks file names.
#[derive(Debug)]
pub(in crate::decide) struct Shelf {
    /// Whether a plugin that fails is left alone for a while, so that no agent waits for it again and again.
    rests: bool,
    folders: Mutex<HashMap<Key, Seen>>,
    /// Whoever looks, looks alone: else a plugin could be there twice.
    looking: AsyncMutex<()>,
    /// Where nothing was loaded from, and somebody knows.
    empty: Mutex<HashSet<PathBuf>>,
}

#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    lists: Lists,
    plugins: Vec<Arc<Plugin>>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            rests: true,
            folders: Mutex::default(),
            looking: AsyncMutex::default(),
            empty: Mutex::default(),
        }
    }
}

impl Shelf {
    /// For somebody who asks again where a plugin fails, and has the time.
    pub(in crate::decide) fn of_the_patient() -> Self {
        Self { rests: false, ..Self::default() }
    }

    /// The plugins at `place`, in the order of their names. The disk is read on a thread of its own; where
    /// that takes longer than `limit`, what was there before counts.
    pub(in crate::decide) async fn plugins(
        self: &Arc<Self>,
        place: &Path,
        meant: Meant<'_>,
        launch: &Launch,
        limit: Duration,
    ) -> Option<Vec<Arc<Plugin>>> {
        let key = (place.to_owned(), launch.clone());
        if let Some(plugins) = self.fresh(&key, meant.lists) {
            return Some(plugins);
        }
        let look = async {
            let _alone = self.looking.lock().await;
            if let Some(plugins) = self.fresh(&key, meant.lists) {
                return Some(plugins);
            }
            let Meant { lists, extent, log_in } = meant;
            let (shelf, log_in, lists) = (Arc::clone(self), log_in.to_owned(), lists.clone());
            let key = key.clone();
            let look = move || shelf.look(key, Meant { lists: &lists, extent, log_in: &log_in });
            tokio::task::spawn_blocking(look).await.ok()
        };
        match tokio::time::timeout(limit, look).await {
            Ok(Some(plugins)) => Some(plugins),
            Ok(None) | Err(_) => self.known(&key).map(|seen| seen.plugins),
        }
    }

    /// Lets go of all plugins there that are started so: who is not agreed to any more does not run either. Each
    /// has a few seconds for what it was told, and for its goodbye.
    pub(in crate::decide) fn let_go(&self, key: &Key) {
        drop(self.folders.lock().unwrap_or_else(PoisonError::into_inner).remove(key));
    }

    /// Whether somebody asked before, because nothing at `place` is loaded.
    pub(in crate::decide) fn was_seen_empty(&self, place: &Path) -> bool {
        let mut empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        !empty.insert(place.to_owned())
    }

    fn known(&self, key: &Key) -> Option<Seen> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// What was seen a moment ago. What is about to be started is looked at in any case: it runs what lies
    /// there now.
    fn fresh(&self, key: &Key, lists: &Lists) -> Option<Vec<Arc<Plugin>>> {
        let seen = self.known(key).filter(|seen| seen.lists == *lists)?;
        let counts = seen.at.elapsed() < LOOK_EVERY
            && !seen.plugins.is_empty()
            && !seen.plugins.iter().any(|plugin| plugin.is_cold());
        counts.then_some(seen.plugins)
    }

    fn look(&self, key: Key, meant: Meant<'_>) -> Vec<Arc<Plugin>> {
        log::make_room(&meant.log_in.join(LOG));
        let known = self.known(&key).map(|seen| seen.plugins).unwrap_or_default();
        let plugins: Vec<Arc<Plugin>> = find(&key.0, meant.lists)
            .into_iter()
            .map(|found| Found { extent: meant.extent, ..found })
            .map(|found| match known.iter().find(|plugin| plugin.found == found) {
                Some(plugin) => {
                    plugin.look();
                    Arc::clone(plugin)
                }
                None => {
                    let log = meant.log_in.join(LOG);
                    Arc::new(Plugin::new(found, key.1.clone(), log, self.rests))
                }
            })
            .collect();
        if !plugins.is_empty() {
            self.empty.lock().unwrap_or_else(PoisonError::into_inner).remove(&key.0);
        }
        let lists = meant.lists.clone();
        let seen = Seen { at: Instant::now(), lists, plugins: plugins.clone() };
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(key, seen);
        plugins
    }
}
