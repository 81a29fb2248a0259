//! The plugins of one hooks file: looked for every now and then, kept as long as they stay the same.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use super::folder::{Lists, find};
use super::plugin::Plugin;
use super::process::Launch;

/// The disk is not looked at more often than this while everything runs.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where everything a plugin prints goes, beside the hooks file.
const LOG: &str = "plugins.log";

type Key = (PathBuf, Launch);

/// All plugins that a hooks file names.
#[derive(Debug, Default)]
pub(in crate::decide) struct Shelf {
    folders: Mutex<HashMap<Key, Seen>>,
    /// Whoever looks, looks alone: else a plugin could be there twice.
    looking: AsyncMutex<()>,
}

#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    plugins: Vec<Arc<Plugin>>,
}

impl Shelf {
    /// The plugins at `place`, in the order of their names. The disk is read on a thread of its own; where
    /// that takes longer than `limit`, what was there before counts.
    pub(in crate::decide) async fn plugins(
        self: &Arc<Self>,
        place: &Path,
        base: &Path,
        lists: &Lists,
        launch: &Launch,
        limit: Duration,
    ) -> Option<Vec<Arc<Plugin>>> {
        let key = (place.to_owned(), launch.clone());
        if let Some(plugins) = self.fresh(&key) {
            return Some(plugins);
        }
        let look = async {
            let _alone = self.looking.lock().await;
            if let Some(plugins) = self.fresh(&key) {
                return Some(plugins);
            }
            let (shelf, base, lists) = (Arc::clone(self), base.to_owned(), lists.clone());
            let key = key.clone();
            tokio::task::spawn_blocking(move || shelf.look(key, &base, &lists)).await.ok()
        };
        match tokio::time::timeout(limit, look).await {
            Ok(Some(plugins)) => Some(plugins),
            Ok(None) | Err(_) => self.known(&key).map(|seen| seen.plugins),
        }
    }

    fn known(&self, key: &Key) -> Option<Seen> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// What was seen a moment ago. What is about to be started is looked at in any case: it runs what lies
    /// there now.
    fn fresh(&self, key: &Key) -> Option<Vec<Arc<Plugin>>> {
        let seen = self.known(key)?;
        let counts = seen.at.elapsed() < LOOK_EVERY
            && !seen.plugins.is_empty()
            && !seen.plugins.iter().any(|plugin| plugin.is_cold());
        counts.then_some(seen.plugins)
    }

    fn look(&self, key: Key, base: &Path, lists: &Lists) -> Vec<Arc<Plugin>> {
        let known = self.known(&key).map(|seen| seen.plugins).unwrap_or_default();
        let plugins: Vec<Arc<Plugin>> = find(&key.0, lists)
            .into_iter()
            .map(|found| match known.iter().find(|plugin| plugin.found == found) {
                Some(plugin) => {
                    plugin.look();
                    Arc::clone(plugin)
                }
                None => Arc::new(Plugin::new(found, key.1.clone(), base.join(LOG))),
            })
            .collect();
        let seen = Seen { at: Instant::now(), plugins: plugins.clone() };
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(key, seen);
        plugins
    }
}
