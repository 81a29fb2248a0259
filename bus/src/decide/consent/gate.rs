//! The gate before everything that runs: was it agreed to, as it lies there now? Whoever waits at it waits for a
//! hook's own time at most, and nobody else waits: what may take long to look through is not looked through on the
//! thread that all agents share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::hook::{Action, Hook};
use super::super::host::Lists;
use super::super::surroundings::Surroundings;
use super::super::{Hooks, launch};
use super::evidence::{Evidence, Scene};
use super::file::{Consents, Entry};
use super::{Objection, Trust, changed, objection, unseen};
use super::{evidence, named};

/// So little is looked at quicker than it is handed to another thread.
const LITTLE: Little = Little { files: 32, bytes: 256 << 10 };

/// What is asked about before `hook` runs in `place`.
#[derive(Debug, Clone, Copy)]
pub(in crate::decide) struct Gate<'a> {
    pub(in crate::decide) consents: &'a Arc<Consents>,
    pub(in crate::decide) project: Option<&'a Path>,
    /// The directory of the hooks file.
    pub(in crate::decide) base: &'a Path,
    /// Which plugins of a directory are loaded.
    pub(in crate::decide) lists: &'a Lists,
    pub(in crate::decide) hook: &'a Hook,
    pub(in crate::decide) place: &'a Surroundings,
}

/// The same for later, or for another thread.
#[derive(Debug)]
pub(in crate::decide) struct KeptGate {
    consents: Arc<Consents>,
    project: Option<PathBuf>,
    base: PathBuf,
    lists: Lists,
    hook: Hook,
    place: Surroundings,
}

impl KeptGate {
    /// Why the plugin in `folder` must not be started, if so, with everything looked at that lies behind its hook. It
    /// may have been loaded a moment ago, and be none of what is loaded now.
    pub(in crate::decide) fn objection_to(&self, folder: &Path) -> Option<Objection> {
        let gate = self.gate();
        let found = gate.evidence()?;
        let is_another = !found.plugins.folders.iter().any(|loaded| loaded == folder);
        objection(gate.consents, gate.project, gate.hook, &found)
            .or_else(|| is_another.then(|| changed(gate.project)))
    }

    fn gate(&self) -> Gate<'_> {
        let Self { consents, project, base, lists, hook, place } = self;
        Gate { consents, project: project.as_deref(), base, lists, hook, place }
    }
}

impl Gate<'_> {
    pub(in crate::decide) fn kept(self) -> KeptGate {
        KeptGate {
            consents: Arc::clone(self.consents),
            project: self.project.map(Path::to_owned),
            base: self.base.to_owned(),
            lists: self.lists.clone(),
            hook: self.hook.clone(),
            place: self.place.clone(),
        }
    }

    /// Why the hook must not run, if so; that nobody knows it after `limit` is a reason too.
    pub(in crate::decide) async fn objection_within(self, limit: Duration) -> Option<Objection> {
        if self.is_quickly_looked_at() {
            return self.objection();
        }
        let kept = self.kept();
        let looking = tokio::task::spawn_blocking(move || kept.gate().objection());
        match tokio::time::timeout(limit, looking).await {
            Ok(Ok(objection)) => objection,
            Ok(Err(error)) => self.unseen(format!("looking into it broke off: {error}")),
            Err(_) => self.unseen(format!(
                "what it runs could not be looked through within {:.1} s, to see whether it was agreed to; name less, or raise `timeout`",
                limit.as_secs_f64()
            )),
        }
    }

    /// What is said against it, as long as nobody can look into it.
    fn unseen(self, why: String) -> Option<Objection> {
        let found = evidence::unseen(self.hook, self.scene())?;
        let (event, command) = (self.hook.on.to_string(), self.hook.what_runs());
        let entry = Entry { project: self.project, event: &event, command: &command };
        Some(unseen(self.consents, entry, &found, why))
    }

    /// Why the hook must not run, if so, however long it takes to find out.
    pub(in crate::decide) fn objection(self) -> Option<Objection> {
        objection(self.consents, self.project, self.hook, &self.evidence()?)
    }

    fn evidence(self) -> Option<Evidence> {
        evidence::of(self.hook, self.scene())
    }

    fn scene(&self) -> Scene<'_> {
        let Self { consents, place, base, lists, .. } = self;
        Scene { place, base, lists, read: &consents.readings }
    }

    fn is_quickly_looked_at(self) -> bool {
        let mut little = LITTLE;
        match &self.hook.action {
            Action::Command(command) => {
                let words = launch::words(command, self.hook.manner(), self.place, self.base);
                let named = named::by(&words.unwrap_or_default(), &command.env, self.place);
                named.files.iter().chain(&named.folders).all(|path| little.holds(path))
            }
            Action::Python(python) => {
                little.holds(&launch::folder(&python.folder, self.place, self.base))
            }
            // Nothing lies behind these.
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Broken(_)
            | Action::Unread { .. } => true,
        }
    }
}

/// How much may still be there.
struct Little {
    files: usize,
    bytes: u64,
}

impl Little {
    /// Whether this, and all that is below it, is not too much; it is looked at no further than that.
    fn holds(&mut self, path: &Path) -> bool {
        let Some(files) = self.files.checked_sub(1) else { return false };
        self.files = files;
        let Ok(about) = fs::metadata(path) else { return true };
        if about.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            return entries.into_iter().all(|entry| self.holds(&entry.path()));
        }
        let bytes = self.bytes.checked_sub(about.len());
        self.bytes = bytes.unwrap_or(0);
        bytes.is_some()
    }
}

impl Hooks {
    /// Why `hook` must not be asked, if so, found out within `limit`.
    pub(in crate::decide) async fn objection(
        &self,
        hook: &Hook,
        place: &Surroundings,
        limit: Duration,
    ) -> Option<Objection> {
        if let Some(unread) = self.unread(hook) {
            return Some(unread);
        }
        self.gate(hook, place)?.objection_within(limit).await
    }

    /// The gate before `hook`; none where everything is agreed to.
    pub(in crate::decide) fn gate<'a>(
        &'a self,
        hook: &'a Hook,
        place: &'a Surroundings,
    ) -> Option<Gate<'a>> {
        let (consents, project, base) = (&self.consents, self.project.as_deref(), &self.base);
        let gate = Gate { consents, project, base, lists: &self.plugins, hook, place };
        (self.trust == Trust::Nobody).then_some(gate)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::consent::Agreement;
    use super::*;
    use crate::event::Time;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn what_cannot_be_looked_through_in_time_does_not_run_and_holds_nobody() {
        let place = tempfile::tempdir().expect("a place");
        let folder = place.path().join("pkg");
        fs::create_dir(&folder).expect("a folder");
        fill(&folder);
        let text = "hooks: { tool.before: [{ command: python3 -m pkg }, { command: ls }] }";
        let hooks = Hooks::parse(text, place.path()).expect("hooks");
        let here = Surroundings { cwd: place.path().to_owned(), ..Surroundings::default() };
        let runtime = runtime();
        let objection = |hook: usize, limit: Duration| {
            runtime.block_on(hooks.objection(&hooks.hooks[hook], &here, limit)).expect("one")
        };
        let hasty = objection(0, Duration::from_millis(1));
        assert!(
            !hasty.looked_into && hasty.why.contains("could not be looked through"),
            "{hasty:?}"
        );
        assert_eq!(hasty.agreement, Agreement::Never);
        // Where there is little to look at, no time is needed.
        let little = objection(1, Duration::ZERO);
        assert!(little.looked_into && little.why.contains("nobody has agreed"), "{little:?}");
        runtime.shutdown_background();
    }

    /// Nothing on the disk, and a lot to read.
    fn fill(folder: &Path) {
        for n in 0..200 {
            let file = fs::File::create(folder.join(format!("{n}.py"))).expect("a file");
            file.set_len(1 << 20).expect("a large file");
        }
    }

    #[test]
    fn what_was_agreed_to_and_cannot_be_looked_through_any_more_has_changed() {
        let place = tempfile::tempdir().expect("a place");
        let (folder, there) = (place.path().join("pkg"), place.path().join("there/pkg"));
        for folder in [&folder, &there] {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(folder.join("__main__.py"), "").expect("a file");
        }
        let text = "hooks: { tool.before: [{ command: python3 -m pkg }] }";
        let hooks = Hooks::parse(text, place.path()).expect("hooks");
        let in_place = |cwd: &Path| Surroundings { cwd: cwd.into(), ..Surroundings::default() };
        let entries = hooks.agreeables(&in_place(place.path()));
        let text = hooks.consents.with(&[&entries[0]], &entries, Time::from_micros(1));
        fs::write(hooks.consents.file(), text.expect("a text")).expect("a consent");
        let runtime = runtime();
        let agreement = |place: &Path| {
            let (place, limit) = (in_place(place), Duration::from_millis(1));
            let objection = runtime.block_on(hooks.objection(&hooks.hooks[0], &place, limit))?;
            assert!(!objection.looked_into, "{objection:?}");
            Some(objection.agreement)
        };
        assert_eq!(agreement(place.path()), None);
        fill(&folder);
        fill(&there);
        assert_eq!(agreement(place.path()), Some(Agreement::Lapsed));
        assert_eq!(agreement(&place.path().join("there")), Some(Agreement::Never));
        runtime.shutdown_background();
    }
}
