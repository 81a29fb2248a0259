//! Whether a person has agreed to what a hook runs. Agreement is to an event, a command and everything that
//! [`evidence`] finds behind it: an edited script has to be agreed to again. Of a project's file every entry
//! has to be agreed to, word for word, before it is even looked into.

mod agreed_files;
pub(super) mod evidence;
mod file;
mod gate;
pub(super) mod named;
mod readings;
mod wrapper;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use self::evidence::Exhibit;
use self::evidence::{Evidence, Scene};
pub use self::file::Consents;
use self::file::Entry;
pub(super) use self::gate::{Gate, KeptGate};
pub(super) use self::readings::Readings;
use super::Hooks;
use super::hook::Hook;
use super::surroundings::Surroundings;

/// Whose entries run without having been agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those that the person wrote into their own file.
    Home,
    /// Nobody's.
    #[default]
    Nobody,
}

/// How a person stands to an entry, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// They agreed to it as it is.
    Given,
    /// They were never asked.
    Never,
    /// They agreed to something else under the same words.
    Lapsed,
}

/// An entry that has to be agreed to, as it is shown to whoever is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreeable {
    /// The project's file it stands in, if it is not the person's own.
    pub project: Option<PathBuf>,
    /// The key it stands under.
    pub event: String,
    /// The hook's name.
    pub hook: String,
    /// The command or the directory, as written; what else it is, and its name.
    pub command: String,
    /// Whether anything outside of the bus runs for it.
    pub runs_something: bool,
    /// The words that are run; none where the command cannot be split.
    pub words: Vec<OsString>,
    /// The entry as it is written, as JSON.
    pub written: String,
    /// What it says about how it is run: variables, the interpreter.
    pub settings: Vec<String>,
    /// The hash of what it says.
    pub terms: String,
    /// The files behind it.
    pub files: Vec<Exhibit>,
    /// What is different from what the person agreed to before, if they did.
    pub news: Option<News>,
    /// Whether all code that runs is among them, as far as can be told.
    pub made_out: bool,
    /// There are more files than anybody can look through.
    pub too_many: bool,
    /// What its words run and is not there.
    pub missing: Vec<PathBuf>,
    /// How the person stands to it.
    pub agreement: Agreement,
    /// Where in the file it stands.
    pub line: usize,
}

/// What has become of the files that somebody agreed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// Those that hold something else, or were not there.
    pub changed: Vec<PathBuf>,
    /// Those that are not there any more, or do not count.
    pub gone: Vec<PathBuf>,
}

impl Agreeable {
    /// Why nobody can agree to it as it is, if so, ending with the way out.
    pub fn obstacle(&self) -> Option<String> {
        if self.too_many {
            return Some("too many files to agree to; name a smaller directory".to_owned());
        }
        let file = self.missing.first()?.display();
        Some(format!("{file} is not there; put it there, or mend the entry, and run this again"))
    }

    /// What an agreement to it is kept under.
    pub(in crate::decide) fn words_of(&self) -> Entry<'_> {
        let Self { project, event, command, .. } = self;
        Entry { project: project.as_deref(), event, command }
    }
}

/// Why a hook must not be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::decide) struct Objection {
    pub(in crate::decide) agreement: Agreement,
    pub(in crate::decide) why: String,
    /// Whether that is known; else it could not be found out.
    pub(in crate::decide) looked_into: bool,
    /// Whether nothing was ever agreed to but hooks of the gateway, which most events pass by.
    pub(in crate::decide) of_gateway: bool,
}

impl Objection {
    /// How much is to be said against it: of two the worse counts.
    pub(in crate::decide) const fn weight(&self) -> (Agreement, bool) {
        (self.agreement, !self.of_gateway)
    }
}

/// Why `hook` must not run what stands behind it, if so.
pub(in crate::decide) fn objection(
    consents: &Consents,
    project: Option<&Path>,
    hook: &Hook,
    found: &Evidence,
) -> Option<Objection> {
    let (event, command) = (hook.on.to_string(), hook.what_runs());
    let entry = Entry { project, event: &event, command: &command };
    if found.too_many {
        let why = "it has too many files to be agreed to; name a smaller directory".to_owned();
        return Some(Objection { looked_into: true, ..unseen(consents, entry, found, why) });
    }
    match consents.to(entry, found) {
        Agreement::Given => None,
        Agreement::Never => Some(against(Agreement::Never, "nobody has agreed to it", project)),
        Agreement::Lapsed => {
            let of_gateway = consents.knows_only_gateway_hooks(entry);
            Some(Objection { of_gateway, ..changed(project) })
        }
    }
}

/// What is said against something that nobody can look through, because of `why`. Whoever had agreed to it before
/// must not lose it by what was put there since.
pub(in crate::decide) fn unseen(
    consents: &Consents,
    entry: Entry<'_>,
    found: &Evidence,
    why: String,
) -> Objection {
    let (agreement, of_gateway) = match consents.to(entry, found) {
        Agreement::Never => (Agreement::Never, false),
        Agreement::Given | Agreement::Lapsed => {
            (Agreement::Lapsed, consents.knows_only_gateway_hooks(entry))
        }
    };
    Objection { agreement, why, looked_into: false, of_gateway }
}

/// What is said against something else than what was agreed to.
pub(in crate::decide) fn changed(project: Option<&Path>) -> Objection {
    against(Agreement::Lapsed, "it has changed since it was agreed to", project)
}

fn against(agreement: Agreement, what: &str, project: Option<&Path>) -> Objection {
    // The model may read this: it is not the one to agree, and a path can hold anybody's words.
    let place = if project.is_some() { ", inside of the project" } else { "" };
    let why = format!("{what}; a person has to look at it with `hookbus hooks approve`{place}");
    Objection { agreement, why, looked_into: true, of_gateway: false }
}

impl Hooks {
    /// Everything in these hooks that has to be agreed to.
    pub fn agreeables(&self, place: &Surroundings) -> Vec<Agreeable> {
        self.hooks.iter().filter_map(|hook| self.agreeable(hook, place)).collect()
    }

    /// These hooks with nothing but `entry` in them.
    #[must_use]
    pub fn alone(&self, entry: &Agreeable) -> Self {
        let is_it = |hook: &&Hook| {
            let known = hook.summary();
            (&known.name, &known.event, known.line) == (&entry.hook, &entry.event, entry.line)
                && hook.what_runs() == entry.command
        };
        Self { hooks: self.hooks.iter().find(is_it).cloned().into_iter().collect(), ..self.clone() }
    }

    /// `entry` as it is now.
    pub fn again(&self, entry: &Agreeable, place: &Surroundings) -> Option<Agreeable> {
        self.alone(entry).agreeables(place).pop()
    }

    fn agreeable(&self, hook: &Hook, place: &Surroundings) -> Option<Agreeable> {
        let Self { base, plugins: lists, consents, .. } = self;
        let found = evidence::of(hook, Scene { place, base, lists, read: &consents.readings })?;
        let objection = objection(&self.consents, self.project.as_deref(), hook, &found);
        let (event, command) = (hook.on.to_string(), hook.what_runs());
        let entry = Entry { project: self.project.as_deref(), event: &event, command: &command };
        let news = self.consents.news(entry, &found);
        let Evidence { words, settings, terms, files, made_out, too_many, missing, .. } = found;
        Some(Agreeable {
            project: self.project.clone(),
            hook: hook.name.clone(),
            event,
            command,
            runs_something: hook.runs_outside(),
            written: hook.written.clone(),
            agreement: objection.map_or(Agreement::Given, |objection| objection.agreement),
            news,
            line: hook.line,
            words,
            settings,
            terms,
            files,
            made_out,
            too_many,
            missing,
        })
    }

    /// Why an entry of a project must not even be looked into, if so: nobody agreed to these words.
    pub(in crate::decide) fn unread(&self, hook: &Hook) -> Option<Objection> {
        let project = self.project.as_deref().filter(|_| self.trust == Trust::Nobody)?;
        let terms = evidence::terms_of(&hook.written);
        if self.consents.knows_words(project, &hook.on.to_string(), &terms) {
            return None;
        }
        let nothing = Evidence { terms, ..Evidence::default() };
        objection(&self.consents, Some(project), hook, &nothing)
    }
}
