//! An observer's plugins: each event goes to every one of a directory that has a callback for it, in warm
//! processes, under Hermes' names and with Hermes' arguments. What they return counts for nothing; only whether
//! all of it went through does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::code_files::Extent;
use super::hook::{Action, Hook, Python};
use super::host::{self, Launch, Meant, Plugin, Shelf, Stand, Time};
use super::idle::NoneLoaded;
use super::launch;
use super::observe::{Place, surroundings};
use super::observer::{Observer, heard};
use super::run::join_in_order;
use super::surroundings::Surroundings;
use crate::event::EventId;
use crate::log::Row;

/// The plugins of one observer, warm as long as this is kept.
#[derive(Debug)]
pub struct Onlookers {
    shelf: Arc<Shelf>,
    /// Who has heard the event that is being tried, in this process.
    told: Option<(EventId, Vec<String>)>,
}

impl Default for Onlookers {
    fn default() -> Self {
        Self { shelf: Arc::new(Shelf::of_the_patient()), told: None }
    }
}

impl Onlookers {
    /// Tells all of them of `row`; the error says who failed, and why. Tried again, only those hear it who failed.
    pub async fn tell(
        &mut self,
        observer: &Observer,
        hook: &Hook,
        row: &Row,
        place: &Place,
    ) -> Result<(), String> {
        let Action::Python(python) = &hook.action else {
            return Err("it has no plugin".to_owned());
        };
        let then = surroundings(observer, row, place);
        if let Some(objection) = observer.objection_in_time(hook, &then).await {
            if objection.looked_into {
                self.shelf.let_go(&place_of(observer, python, &then));
            }
            return Err(objection.why);
        }
        let plugins = self.plugins(observer, python, &then).await?;
        // Rows of our own making: Hermes has no word for them.
        let Some(event) = heard(row) else { return Ok(()) };
        let mut told = match self.told.take() {
            Some((event, told)) if event == row.id => told,
            Some(_) | None => Vec::new(),
        };
        let gate = observer.gate(hook, &then).map(|gate| Arc::new(gate.kept()));
        let (event, stand) = (&event, &Stand { place: then, gate });
        let left = plugins.iter().filter(|plugin| !told.iter().any(|name| name == plugin.name()));
        let telling = left.map(|plugin| async move {
            let answer = host::ask(plugin, event, stand, Time::all(python.timeout)).await;
            (plugin.name().to_owned(), answer.and_then(|answer| answer.failure))
        });
        let mut failures = Vec::new();
        for (name, failure) in join_in_order(telling).await {
            match failure {
                Some(why) if plugins.len() == 1 => failures.push(why),
                Some(why) => failures.push(format!("{name}: {why}")),
                None => told.push(name),
            }
        }
        self.told = Some((row.id, told));
        if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
    }

    async fn plugins(
        &self,
        observer: &Observer,
        python: &Python,
        place: &Surroundings,
    ) -> Result<Vec<Arc<Plugin>>, String> {
        let (folder, launch) = place_of(observer, python, place);
        let (lists, log_in) = (&observer.plugins, observer.base.as_path());
        let meant = Meant { lists, extent: Extent::ItsOwn, log_in };
        let plugins = self.shelf.plugins(&folder, meant, &launch, python.timeout).await;
        let plugins =
            plugins.ok_or_else(|| format!("{} could not be read in time", folder.display()))?;
        if let (true, Some(why)) = (plugins.is_empty(), NoneLoaded::find(&folder, lists)) {
            return Err(why.said_of(&folder));
        }
        Ok(plugins)
    }

    /// Whether there is somebody to tell, and has what it says it needs; the error says what to set right.
    pub fn are_ready(
        &self,
        observer: &Observer,
        env: &[(OsString, OsString)],
    ) -> Result<(), String> {
        let Action::Python(python) = &observer.first().action else { return Ok(()) };
        let place = Surroundings { env: env.to_vec(), ..Surroundings::default() };
        let folder = launch::folder(&python.folder, &place, &observer.base);
        if let Some(why) = NoneLoaded::find(&folder, &observer.plugins) {
            return Err(why.said_of(&folder));
        }
        let found = host::needs(&folder, &observer.plugins);
        let missing = |name: &&String| {
            !Surroundings::is_recorded(name)
                && place.var(name).is_none_or(std::ffi::OsStr::is_empty)
        };
        for (plugin, needed) in &found {
            let missing: Vec<&str> = needed.iter().filter(missing).map(String::as_str).collect();
            if !missing.is_empty() {
                let missing = missing.join(", ");
                return Err(format!(
                    "{plugin} needs {missing}; set it where the observer runs, or take the plugin out"
                ));
            }
        }
        Ok(())
    }
}

/// Where an observer's plugins are, and what they are started with.
fn place_of(observer: &Observer, python: &Python, place: &Surroundings) -> (PathBuf, Launch) {
    let interpreter = launch::with_home(&python.launch.interpreter, place);
    let launch = Launch { interpreter, ..python.launch };
    (launch::folder(&python.folder, place, &observer.base), launch)
}
