//! What a project's file may say, and how much of it is read before somebody agreed to it.

use std::path::Path;
use std::sync::Arc;

use super::consent::Consents;
use super::consent::evidence;
use super::entry::Reading;
use super::hook::{Action, Mode};
use super::yaml::Node;
use super::{EventKey, Hooks, Problem};

/// A project's file is read before anybody has agreed to it: it must not cost anybody much.
pub(super) const LARGEST: usize = 64 << 10;
const MOST: usize = 100;

/// What a project has a say in.
const ITS_OWN: [&str; 2] = ["hooks", "plugins"];

impl Hooks {
    /// No hooks of the project with this `file`; what was agreed to of them is in `consents`.
    pub(super) fn none_of_project(file: &Path, consents: Arc<Consents>) -> Self {
        let base = file.parent().unwrap_or(Path::new("/"));
        Self { project: Some(file.to_owned()), agreed_only: true, consents, ..Self::none(base) }
    }

    /// Reads the text of a project's `file`, with nobody's agreement to anything in it.
    pub fn parse_project(text: &str, file: &Path) -> Result<Self, Problem> {
        Self::none_of_project(file, Arc::default()).read_whole().read(text)
    }

    /// The same, but entries are read whether or not somebody agreed to them: by whoever is about to.
    pub(super) fn read_whole(self) -> Self {
        Self { agreed_only: false, ..self }
    }

    /// How an entry is read: one of a project that nobody agreed to is not looked into.
    pub(super) fn reading(&self, on: &EventKey, entry: &Node) -> Reading<'_> {
        let agreed = match &self.project {
            Some(file) if self.agreed_only => {
                let terms = evidence::terms_of(&entry.to_json().to_string());
                self.consents.knows_words(file, &on.to_string(), &terms)
            }
            Some(_) | None => true,
        };
        Reading { base: &self.base, agreed }
    }

    /// Whether the text is short enough to be read at all.
    pub(super) fn fits_a_project(&self, text: &str) -> Result<(), Problem> {
        if self.project.is_some() && text.len() > LARGEST {
            let why = "a project's hooks file has 64 KiB at most; make it shorter";
            return Err(Problem::broken_file(1, why));
        }
        Ok(())
    }

    /// Whether this setting counts here.
    pub(super) fn has_a_say_in(&self, key: &str) -> bool {
        self.project.is_none() || ITS_OWN.contains(&key)
    }

    /// An observer has a place in the log and a process of its own: it belongs to a person.
    pub(super) fn as_a_project_may(&mut self) -> Result<(), Problem> {
        if let Some(first) = self.hooks.get(MOST) {
            let why = "a project has a hundred hooks at most; this is one too many";
            return Err(Problem::broken_file(first.line, why));
        }
        for hook in &mut self.hooks {
            hook.of_project = true;
            if hook.mode == Mode::Observe {
                let why = "a project has no observers; put this one into your own hookbus.yaml";
                self.problems.push(Problem::broken_entry(hook.line, why));
                hook.action = Action::Broken(why.to_owned());
            }
        }
        Ok(())
    }
}
