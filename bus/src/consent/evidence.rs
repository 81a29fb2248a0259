//! What an approval of an entry covers: the entry's text, and the content of the files behind it. What those
//! files import or read from elsewhere is not covered, and state that a plugin writes is not code.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::script_paths::{ScriptPaths, script_paths};
use crate::caller::Caller;
use crate::config::{Action, Command, Hook, Mode, PluginLists, Python};
use crate::files::{FileDigest, HashCache, sha256};
use crate::plugins::{CodeExtent, CodeFile, CodeFiles, ManifestCache, loaded_dirs};

/// What is behind an entry now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The program and its arguments; empty if the command line cannot be split.
    pub(super) words: Vec<OsString>,
    /// How it runs, by the entry: variables, the interpreter.
    pub(super) settings: Vec<String>,
    /// The hash of the entry's text.
    pub(super) entry_digest: String,
    /// The same hash as versions before `files:` computed it; an old approval may hold it.
    pub(super) old_digest: String,
    /// The files.
    pub(super) files: Vec<FileDigest>,
    /// The directories of the loaded plugins.
    pub(super) plugin_folders: Vec<PathBuf>,
    /// There are more files than the limits allow.
    pub(super) too_many: bool,
    /// Files that the entry needs and that do not exist.
    pub(super) missing: Vec<PathBuf>,
    /// The program, if it may not be executed.
    pub(super) not_executable: Option<PathBuf>,
    /// The same entry can stand for other files in another working directory.
    pub(super) depends_on_cwd: bool,
}

/// What finding the evidence needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lookup<'a> {
    pub(super) caller: &'a Caller,
    /// The directory of the hooks file.
    pub(super) base: &'a Path,
    /// Which plugins of a directory are loaded.
    pub(super) lists: &'a PluginLists,
    pub(super) hashes: &'a HashCache,
    pub(super) manifests: &'a ManifestCache,
}

/// The evidence for `hook`; none if it needs no approval, as a rule in the user's own file.
pub(super) fn collect(hook: &Hook, lookup: Lookup<'_>) -> Option<Evidence> {
    let caller = &*caller_of(hook, lookup);
    let lookup = Lookup { caller, ..lookup };
    let found = match &hook.action {
        Action::Command(command) => of_command(hook, command, lookup),
        Action::Python(python) => of_python(hook, python, lookup),
        // A project's file may come from anyone, and even a rule changes what the agent does.
        Action::Rule(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Analytics(_)
        | Action::Broken(_)
        | Action::Unapproved { .. }
            if hook.of_project =>
        {
            Evidence { old_digest: entry_digest(&hook.written), ..Evidence::default() }
        }
        Action::Rule(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Analytics(_)
        | Action::Broken(_)
        | Action::Unapproved { .. } => return None,
    };
    Some(Evidence { entry_digest: entry_digest(&hook.written), ..found })
}

/// The hash of an entry's text.
pub(super) fn entry_digest(written: &str) -> String {
    sha256(written.as_bytes())
}

/// An observer runs in the directory of its hooks file, wherever its events come from.
fn caller_of<'a>(hook: &Hook, lookup: Lookup<'a>) -> Cow<'a, Caller> {
    match hook.mode {
        Mode::Observe => {
            Cow::Owned(Caller { cwd: lookup.base.to_owned(), ..lookup.caller.clone() })
        }
        Mode::Decide | Mode::Shadow => Cow::Borrowed(lookup.caller),
    }
}

fn of_command(hook: &Hook, command: &Command, lookup: Lookup<'_>) -> Evidence {
    let Lookup { caller, base, hashes, .. } = lookup;
    let mut reader = hashes.reader();
    let mut evidence = Evidence {
        settings: command
            .env
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .chain(passed(&command.pass_env))
            .collect(),
        old_digest: old_digest(hook, &json!({"env": command.env})),
        depends_on_cwd: true,
        ..Evidence::default()
    };
    for dialect in hook.possible_dialects() {
        let words = dialect.argv(&command.text, caller, base).unwrap_or_default();
        let ScriptPaths { files, missing, not_executable } = script_paths(&words, caller);
        evidence.not_executable = evidence.not_executable.or(not_executable);
        evidence.add_files(files.iter().map(|file| reader.digest(file)));
        evidence.missing.extend(missing);
        evidence.words = words;
    }
    evidence.add_listed(&command.files, lookup);
    evidence
}

/// The code of the plugins that are loaded, and no other: a directory may hold many that are not.
fn of_python(hook: &Hook, python: &Python, lookup: Lookup<'_>) -> Evidence {
    let Lookup { caller, base, lists, hashes, manifests } = lookup;
    let folder = caller.resolve(&python.folder, base);
    let interpreter = caller.expand_home(&python.launch.interpreter);
    let words = vec![interpreter.clone()];
    // Its process starts in the root directory.
    let root = Caller { cwd: "/".into(), ..caller.clone() };
    let ScriptPaths { files, missing, not_executable } = script_paths(&words, &root);
    let mut reader = hashes.reader();
    let mut evidence = Evidence {
        settings: std::iter::once(format!("interpreter {}", interpreter.display()))
            .chain(passed(&python.launch.pass_env))
            .collect(),
        old_digest: old_digest(
            hook,
            &json!({"interpreter": python.launch.interpreter.to_string_lossy()}),
        ),
        files: files.iter().map(|file| reader.digest(file)).collect(),
        missing: missing.into_iter().collect(),
        not_executable,
        plugin_folders: loaded_dirs(&folder, lists, manifests),
        words,
        ..Evidence::default()
    };
    let code = CodeFiles::below(&evidence.plugin_folders, CodeExtent::of(hook.of_project));
    evidence.too_many = code.too_many;
    // A budget for each plugin: its hashes do not depend on which others are loaded.
    for folder in &evidence.plugin_folders.clone() {
        let mut reader = hashes.reader();
        let own = code.files.iter().filter(|file| file.path.starts_with(folder));
        let digest = |file: &CodeFile| FileDigest {
            path: file.path.clone(),
            hash: reader.hash(&file.path, file.stamp),
        };
        evidence.add_files(own.map(digest));
    }
    evidence.add_listed(&python.files, lookup);
    evidence
}

/// The variables that the hook gets as the agent has them, for the user who is asked.
fn passed(pass_env: &[String]) -> Option<String> {
    (!pass_env.is_empty()).then(|| format!("{} as the agent has it", pass_env.join(", ")))
}

/// Versions before `files:` covered less of an entry in the user's own file, and did not know `pass_env:`.
fn old_digest(hook: &Hook, covered: &serde_json::Value) -> String {
    if hook.of_project || !hook.pass_env().is_empty() {
        entry_digest(&hook.written)
    } else {
        sha256(covered.to_string().as_bytes())
    }
}

impl Evidence {
    fn add_files(&mut self, files: impl IntoIterator<Item = FileDigest>) {
        for file in files {
            if !self.files.iter().any(|known| known.path == file.path) {
                self.files.push(file);
            }
        }
    }

    /// Adds the files under `files:`, which are beside the hooks file.
    fn add_listed(&mut self, listed: &[String], Lookup { caller, base, hashes, .. }: Lookup<'_>) {
        let mut reader = hashes.reader();
        for path in listed.iter().map(|path| caller.resolve(path, base)) {
            if path.is_file() {
                self.add_files([reader.digest(&path)]);
            } else {
                self.missing.push(path);
            }
        }
    }
}
