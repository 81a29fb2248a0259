//! The hooks that apply in the current directory: the user's own and those of the project, with what is not approved
//! yet.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Result, bail};
use hookbus::decide::{
    Agreeable, Asked, HooksSource, InForce, Projects, Standing, Surroundings, Trust,
};
use hookbus::log::LogPath;

use crate::output::{self, sanitize};
use crate::settings::Settings;

/// This process as the caller of hooks, with the variables that agents set for them.
pub(crate) fn current_caller() -> Surroundings {
    let cwd = std::env::current_dir().unwrap_or_default();
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for name in ["GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"] {
        if env.iter().all(|(known, _)| known != name) {
            env.push((name.into(), cwd.clone().into()));
        }
    }
    Surroundings { cwd, env, pid: Some(std::process::id()), ..Surroundings::default() }
}

/// The hooks that apply in the current directory.
pub(super) struct EffectiveHooks {
    pub(super) own: (HooksSource, Arc<InForce>),
    pub(super) project: Option<(Arc<HooksSource>, Arc<InForce>)>,
    /// A project file nearer to the current directory, of which nothing is approved: it does not apply yet.
    pub(super) nearer: Option<(Arc<HooksSource>, Arc<InForce>)>,
}

impl EffectiveHooks {
    pub(super) fn load(settings: &Settings) -> Self {
        let log = LogPath::in_home(&settings.home);
        let own = HooksSource::new(&settings.home, log.clone());
        let own_in_force = own.in_force();
        let (projects, caller) = (Projects::new(&settings.home, log), current_caller());
        let load = |source: Arc<HooksSource>| {
            let in_force = Arc::new(source.to_look_at());
            (source, in_force)
        };
        let project = projects.source(&caller);
        let is_another = |nearest: &Arc<HooksSource>| {
            project.as_ref().is_some_and(|project| project.file() != nearest.file())
        };
        let nearer = projects.nearest(&caller).filter(is_another).map(load);
        Self { own: (own, own_in_force), project: project.map(load), nearer }
    }

    /// Reports files that cannot be parsed. It is an error if the user's own file has no earlier version that is in
    /// force: without any hooks, every other answer would look like an all-clear.
    pub(super) fn ensure_readable(&self) -> Result<()> {
        for (source, in_force) in self.files() {
            let file = sanitize(&source.file().display().to_string());
            let Some(problem) = in_force.standing.problem() else { continue };
            let error = format!("{file}:{}: {}", problem.line, sanitize(&problem.message));
            let is_void = matches!(in_force.standing, Standing::NothingGood(_));
            if is_void && in_force.hooks.project.is_none() {
                bail!("{error}; no hooks are in force until you fix it");
            }
            let what = if is_void { "none of its hooks" } else { "its last good version" };
            let verb = if is_void { "are" } else { "is" };
            output::to_stderr(format!("{error}; {what} {verb} in force until you fix it"));
        }
        Ok(())
    }

    /// The hooks to ask about an event.
    pub(super) fn hook_sets(&self) -> Asked<'_> {
        Asked { own: &self.own.1.hooks, project: self.project.as_ref().map(|it| &it.1.hooks) }
    }

    /// Everything in these files that needs approval.
    pub(super) fn approval_items(&self) -> Vec<Agreeable> {
        self.files().flat_map(|(_, in_force)| approval_items(in_force)).collect()
    }

    /// Reads an entry and its files again.
    pub(super) fn reread(&self, entry: &Agreeable) -> Option<Agreeable> {
        let mut files = self.files().map(|(_, in_force)| &in_force.hooks);
        files.find(|hooks| hooks.project == entry.project)?.again(entry, &current_caller())
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&HooksSource, &InForce)> {
        let projects = self.project.iter().chain(&self.nearer);
        let projects = projects.map(|(source, in_force)| (&**source, &**in_force));
        std::iter::once((&self.own.0, &*self.own.1)).chain(projects)
    }
}

/// What needs approval in one file; nothing in the user's own file with `trust: home`.
pub(super) fn approval_items(in_force: &InForce) -> Vec<Agreeable> {
    let hooks = &in_force.hooks;
    if hooks.trust == Trust::Home { Vec::new() } else { hooks.agreeables(&current_caller()) }
}
