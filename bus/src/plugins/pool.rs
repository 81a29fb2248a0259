//! The running plugins of one hooks file. The disk is read again every few seconds; a plugin keeps its
//! process for as long as its directory stays the same.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use super::code_files::CodeExtent;
use super::instance::{OnRepeatedFailure, PluginInstance};
use super::log::{FILE_NAME, PluginLog};
use super::plugin_dir::{PluginDir, find};
use crate::config::{PluginLists, PythonLaunch};
use crate::files::rotate_if_large;
use crate::redact::Redactor;

/// How long a listing of the disk is used.
const LISTING_LIFETIME: Duration = Duration::from_secs(2);

type Key = (PathBuf, PythonLaunch);

/// Which plugins of a directory are loaded, and where their output goes.
#[derive(Debug, Clone)]
pub struct PluginSelection<'a> {
    /// The plugins that are enabled and disabled by name.
    pub lists: &'a PluginLists,
    /// Whether they belong to a project: then all of a plugin's directory counts as its code.
    pub of_project: bool,
    /// The directory of their log.
    pub log_folder: &'a Path,
    /// What removes secrets from that log; none if redaction is switched off.
    pub redactor: Option<Arc<Redactor>>,
}

impl PluginSelection<'_> {
    /// Where they print to.
    pub(super) fn log(&self) -> PluginLog {
        PluginLog { path: self.log_folder.join(FILE_NAME), redactor: self.redactor.clone() }
    }
}

/// The plugins that a hooks file names.
#[derive(Debug)]
pub struct PluginPool {
    on_repeated_failure: OnRepeatedFailure,
    folders: Mutex<HashMap<Key, Listing>>,
    /// Held while the disk is read: two readers at once could start a plugin twice.
    listing: AsyncMutex<()>,
    /// Directories that load no plugin, where that was reported.
    empty: Mutex<HashSet<PathBuf>>,
}

#[derive(Debug, Clone)]
struct Listing {
    at: Instant,
    lists: PluginLists,
    plugins: Vec<Arc<PluginInstance>>,
}

impl Default for PluginPool {
    fn default() -> Self {
        Self {
            on_repeated_failure: OnRepeatedFailure::BackOff,
            folders: Mutex::default(),
            listing: AsyncMutex::default(),
            empty: Mutex::default(),
        }
    }
}

impl PluginPool {
    /// A pool without back-off, for callers that retry themselves (replay, observers).
    pub fn without_backoff() -> Self {
        Self { on_repeated_failure: OnRepeatedFailure::TryAgain, ..Self::default() }
    }

    /// The plugins at `path`, in the order of their names. The disk is read on another thread; if that takes
    /// longer than `limit`, the previous listing counts; without one the result is none.
    pub async fn plugins(
        self: &Arc<Self>,
        path: &Path,
        selection: PluginSelection<'_>,
        launch: &PythonLaunch,
        limit: Duration,
    ) -> Option<Vec<Arc<PluginInstance>>> {
        let key = (path.to_owned(), launch.clone());
        if let Some(plugins) = self.fresh(&key, selection.lists) {
            return Some(plugins);
        }
        let list = async {
            let _lock = self.listing.lock().await;
            if let Some(plugins) = self.fresh(&key, selection.lists) {
                return Some(plugins);
            }
            let PluginSelection { lists, of_project, log_folder, redactor } = selection;
            let (pool, log_folder, lists) =
                (Arc::clone(self), log_folder.to_owned(), lists.clone());
            let key = key.clone();
            let list = move || {
                let log_folder = &log_folder;
                let lists = &lists;
                pool.list(key, &PluginSelection { lists, of_project, log_folder, redactor })
            };
            tokio::task::spawn_blocking(list).await.ok()
        };
        match tokio::time::timeout(limit, list).await {
            Ok(Some(plugins)) => Some(plugins),
            Ok(None) | Err(_) => self.last_listing(&key).map(|listing| listing.plugins),
        }
    }

    /// Ends the plugins of a directory, because they are not approved any more. Each has a few seconds to
    /// handle what is in its queue and to run its exit handlers.
    pub fn end(&self, key: &Key) {
        drop(self.folders.lock().unwrap_or_else(PoisonError::into_inner).remove(key));
    }

    /// Whether it was reported before that nothing at `path` is loaded. From now on it counts as reported.
    pub(crate) fn mark_empty_reported(&self, path: &Path) -> bool {
        let mut empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        !empty.insert(path.to_owned())
    }

    fn last_listing(&self, key: &Key) -> Option<Listing> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// The listing, if it is recent. A plugin that is about to start is read again in any case: it must run
    /// the code that is there now.
    fn fresh(&self, key: &Key, lists: &PluginLists) -> Option<Vec<Arc<PluginInstance>>> {
        let listing = self.last_listing(key).filter(|listing| listing.lists == *lists)?;
        let is_fresh = listing.at.elapsed() < LISTING_LIFETIME
            && !listing.plugins.is_empty()
            && !listing.plugins.iter().any(|plugin| plugin.is_cold());
        is_fresh.then_some(listing.plugins)
    }

    fn list(&self, key: Key, selection: &PluginSelection<'_>) -> Vec<Arc<PluginInstance>> {
        let log = selection.log();
        rotate_if_large(&log.path);
        let extent = CodeExtent::of(selection.of_project);
        let running = self.last_listing(&key).map(|listing| listing.plugins).unwrap_or_default();
        let plugins: Vec<Arc<PluginInstance>> = find(&key.0, selection.lists)
            .into_iter()
            .map(|dir| PluginDir { extent, ..dir })
            .map(|dir| match running.iter().find(|plugin| plugin.dir == dir) {
                Some(plugin) => {
                    plugin.refresh_code();
                    Arc::clone(plugin)
                }
                None => {
                    let (launch, policy) = (key.1.clone(), self.on_repeated_failure);
                    Arc::new(PluginInstance::new(dir, launch, log.clone(), policy))
                }
            })
            .collect();
        if !plugins.is_empty() {
            self.empty.lock().unwrap_or_else(PoisonError::into_inner).remove(&key.0);
        }
        let lists = selection.lists.clone();
        let listing = Listing { at: Instant::now(), lists, plugins: plugins.clone() };
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(key, listing);
        plugins
    }
}
