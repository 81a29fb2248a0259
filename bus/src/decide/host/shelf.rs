//! The plugins of one hooks file, each with its process once it was asked something.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex as AsyncMutex;

use super::super::surroundings::Surroundings;
use super::folder::{Found, Lists, MANIFESTS, find};
use super::process::{Launch, Process, Trouble};

/// A plugin that hung is left alone for this long: the agent pays for it once.
const REST: Duration = Duration::from_secs(30);

/// Where everything a plugin prints goes, beside the hooks file.
const LOG: &str = "plugins.log";

type Folder = (Option<SystemTime>, Vec<Arc<Plugin>>);

/// All plugins that a hooks file names.
#[derive(Debug, Default)]
pub(in crate::decide) struct Shelf {
    folders: Mutex<HashMap<(PathBuf, Launch), Folder>>,
}

/// One plugin.
#[derive(Debug)]
pub(in crate::decide) struct Plugin {
    pub(super) found: Found,
    launch: Launch,
    log: PathBuf,
    state: AsyncMutex<State>,
}

#[derive(Debug)]
enum State {
    Cold,
    Warm(Box<Process>),
    Resting { until: Instant, why: String },
}

/// What a plugin said about an event.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Value,
    pub(super) hash: String,
}

impl Shelf {
    /// The plugins at `place`, in the order of their names.
    pub(in crate::decide) fn plugins(
        &self,
        place: &Path,
        base: &Path,
        lists: &Lists,
        launch: &Launch,
    ) -> Vec<Arc<Plugin>> {
        // What a plugin writes beside its own code is no change.
        let changed = manifest_of(place).or_else(|| edited(place));
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (place.to_owned(), launch.clone());
        let known = folders.get(&key);
        if let Some((then, plugins)) = known
            && *then == changed
        {
            return plugins.clone();
        }
        let same = |found: &Found| known?.1.iter().find(|plugin| plugin.found == *found).cloned();
        let plugin = |found: Found| {
            let state = AsyncMutex::new(State::Cold);
            Arc::new(Plugin { found, launch: launch.clone(), log: base.join(LOG), state })
        };
        let found = find(place, lists).into_iter();
        let plugins: Vec<Arc<Plugin>> =
            found.map(|found| same(&found).unwrap_or_else(|| plugin(found))).collect();
        folders.insert(key, (changed, plugins.clone()));
        plugins
    }
}

impl Shelf {
    /// The hash of all plugins at `place`.
    pub(in crate::decide) fn hash(
        &self,
        place: &Path,
        base: &Path,
        lists: &Lists,
        launch: &Launch,
    ) -> String {
        let plugins = self.plugins(place, base, lists, launch);
        let hashes: Vec<String> = plugins.iter().map(|plugin| plugin.found.hash()).collect();
        hex::encode(Sha256::digest(hashes.concat()))
    }
}

fn manifest_of(place: &Path) -> Option<SystemTime> {
    MANIFESTS.iter().find_map(|name| edited(&place.join(name)))
}

fn edited(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

impl Plugin {
    /// What it is called.
    pub(in crate::decide) fn name(&self) -> &str {
        &self.found.key
    }

    /// Asks about an event; nothing if the plugin has no hook for it. All of it takes `limit` at most.
    pub(super) async fn call(
        &self,
        name: &str,
        payload: &Value,
        place: &Surroundings,
        limit: Duration,
    ) -> Result<Option<Reply>, String> {
        let end = Instant::now() + limit;
        let left = || end.saturating_duration_since(Instant::now());
        let Ok(mut state) = tokio::time::timeout(limit, self.state.lock()).await else {
            return Err("it is busy with another event".to_owned());
        };
        // A process that died between two events is started again; one that dies twice has failed.
        for last in [false, true] {
            let tried = self.try_call(&mut state, name, payload, place, left()).await;
            match tried {
                Ok(reply) => return Ok(reply),
                Err(Trouble::Died(why)) => {
                    *state = State::Cold;
                    if last {
                        return Err(why);
                    }
                }
                Err(Trouble::Resting(why)) => return Err(why),
                Err(Trouble::Hung(why) | Trouble::Broken(why)) => {
                    *state = State::Resting { until: Instant::now() + REST, why: why.clone() };
                    return Err(why);
                }
            }
        }
        Ok(None)
    }

    async fn try_call(
        &self,
        state: &mut State,
        name: &str,
        payload: &Value,
        place: &Surroundings,
        limit: Duration,
    ) -> Result<Option<Reply>, Trouble> {
        let started = Instant::now();
        if let State::Warm(process) = state
            && process.edited != self.found.edited()
        {
            *state = State::Cold;
        }
        if let State::Resting { until, why } = state {
            if Instant::now() < *until {
                return Err(Trouble::Resting(format!("left alone for a while: {why}")));
            }
            *state = State::Cold;
        }
        if matches!(state, State::Cold) {
            let process =
                Process::start(&self.found, &self.launch, place, &self.log, limit).await?;
            *state = State::Warm(Box::new(process));
        }
        let State::Warm(process) = state else { return Ok(None) };
        if !process.listens_to(name) {
            return Ok(None);
        }
        let left = limit.saturating_sub(started.elapsed());
        let answer = process.ask(name, payload, place, left).await?;
        Ok(Some(Reply { answer, hash: process.hash.clone() }))
    }
}
