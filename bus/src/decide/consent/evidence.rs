//! What somebody agrees to who agrees to an entry: what it says about how it is run, and the content of the
//! scripts and the plugin code that it names. What those read or import from elsewhere is not in here, and what
//! they write is not code.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::code_files::{CodeFile, CodeFiles, Extent};
use super::super::hook::{Action, Command, Hook, Mode, Python};
use super::super::host::{self, Lists, Loaded};
use super::super::launch;
use super::super::surroundings::Surroundings;
use super::named;
use super::readings::{Reader, Readings, sha256};

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhibit {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds: a SHA-256 in hex, or what was looked at instead.
    pub hash: String,
}

impl Exhibit {
    /// Whether it held just this; where its content was not looked at, nothing speaks against it.
    pub fn held(&self, content: &[u8]) -> bool {
        !self.is_of_content() || self.hash == sha256(content)
    }

    fn is_of_content(&self) -> bool {
        self.hash.len() == 64 && self.hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// What stands behind an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::decide) struct Evidence {
    /// The words that are run; none where the command cannot be split.
    pub(in crate::decide) words: Vec<OsString>,
    /// What the entry says about how: variables, the interpreter.
    pub(in crate::decide) settings: Vec<String>,
    /// The hash of what the entry says.
    pub(in crate::decide) terms: String,
    /// The files.
    pub(in crate::decide) files: Vec<Exhibit>,
    /// The directory of plugins that they are in.
    pub(in crate::decide) root: Option<PathBuf>,
    /// Which plugins in it are loaded, by their directories, and which are not.
    pub(in crate::decide) plugins: Loaded,
    /// Where the words were looked for.
    pub(in crate::decide) place: PathBuf,
    /// Which files these were looked for as, whether or not they are there.
    pub(in crate::decide) looked_for: Vec<PathBuf>,
    /// Whether all code that runs is among them, as far as can be told.
    pub(in crate::decide) made_out: bool,
    /// There are more files than anybody can look through.
    pub(in crate::decide) too_many: bool,
    /// What the words run and is not there.
    pub(in crate::decide) missing: Vec<PathBuf>,
}

/// What is looked through for an entry.
#[derive(Debug, Clone, Copy)]
pub(in crate::decide) struct Scene<'a> {
    pub(in crate::decide) place: &'a Surroundings,
    /// The directory of the hooks file.
    pub(in crate::decide) base: &'a Path,
    /// Which plugins of a directory are loaded.
    pub(in crate::decide) lists: &'a Lists,
    pub(in crate::decide) read: &'a Readings,
}

/// What stands behind `hook`; none where there is nothing to agree to.
pub(in crate::decide) fn of(hook: &Hook, scene: Scene<'_>) -> Option<Evidence> {
    let place = &*standing(hook, scene);
    let found = match &hook.action {
        Action::Command(command) => Some(of_command(hook, command, Scene { place, ..scene })),
        Action::Python(python) => Some(of_python(hook, python, Scene { place, ..scene })),
        Action::Rule(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Broken(_)
        | Action::Unread { .. } => None,
    };
    if !hook.of_project {
        return found;
    }
    // A stranger may have written a project's file: all that its entries say is agreed to, those too that run
    // nothing. A rule can change what the agent does.
    let found = found.unwrap_or_else(|| Evidence { made_out: true, ..Evidence::default() });
    Some(Evidence { terms: terms_of(&hook.written), ..found })
}

/// What stands behind `hook` without a look into any file: what it says, and where it is looked for.
pub(in crate::decide) fn unseen(hook: &Hook, scene: Scene<'_>) -> Option<Evidence> {
    let found = match &hook.action {
        Action::Command(command) => {
            let place = standing(hook, scene);
            let words = launch::words(command, hook.manner(), &place, scene.base);
            let named = named::by(&words.unwrap_or_default(), &command.env, &place);
            let (terms, looked_for) = (terms_of_command(command), named.looked_for);
            Evidence { terms, looked_for, place: place.cwd.clone(), ..Evidence::default() }
        }
        Action::Python(python) => {
            let folder = launch::folder(&python.folder, scene.place, scene.base);
            let (terms, place) = (terms_of_python(python), folder.clone());
            Evidence { terms, place, root: Some(folder), ..Evidence::default() }
        }
        Action::Rule(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Broken(_)
        | Action::Unread { .. } => return None,
    };
    let terms = if hook.of_project { terms_of(&hook.written) } else { found.terms };
    Some(Evidence { terms, ..found })
}

/// An observer runs in the directory of its file, wherever its events come from.
fn standing<'a>(hook: &Hook, scene: Scene<'a>) -> Cow<'a, Surroundings> {
    match hook.mode {
        Mode::Observe => {
            Cow::Owned(Surroundings { cwd: scene.base.to_owned(), ..scene.place.clone() })
        }
        Mode::Decide => Cow::Borrowed(scene.place),
    }
}

fn terms_of_command(command: &Command) -> String {
    digest(&json!({"env": command.env}))
}

fn terms_of_python(python: &Python) -> String {
    digest(&json!({"interpreter": python.launch.interpreter.to_string_lossy()}))
}

/// The hash of all that an entry of a project says.
pub(in crate::decide) fn terms_of(written: &str) -> String {
    sha256(written.as_bytes())
}

fn of_command(hook: &Hook, command: &Command, scene: Scene<'_>) -> Evidence {
    let Scene { place, base, read, .. } = scene;
    let words = launch::words(command, hook.manner(), place, base).unwrap_or_default();
    let named = named::by(&words, &command.env, place);
    let mut reader = read.reader();
    let mut files: Vec<Exhibit> = named.files.iter().map(|file| reader.exhibit(file)).collect();
    let code = CodeFiles::below(&named.folders, Extent::of(hook.of_project));
    files.extend(exhibits(&code.files, &mut reader));
    Evidence {
        settings: command.env.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        terms: terms_of_command(command),
        made_out: named.is_made_out(),
        too_many: code.too_many,
        files,
        root: None,
        plugins: Loaded::default(),
        place: place.cwd.clone(),
        looked_for: named.looked_for,
        missing: named.missing,
        words,
    }
}

/// The code of the plugins that are loaded, and no other: a directory may hold many that nobody asked for.
fn of_python(hook: &Hook, python: &Python, scene: Scene<'_>) -> Evidence {
    let Scene { place, base, lists, read } = scene;
    let folder = launch::folder(&python.folder, place, base);
    let interpreter = launch::with_home(&python.launch.interpreter, place);
    let words = vec![interpreter.clone()];
    // Where it is started, and looked for.
    let place = &Surroundings { cwd: "/".into(), ..place.clone() };
    let own = named::by(&words, &[], place);
    let mut reader = read.reader();
    let mut files: Vec<Exhibit> = own.files.iter().map(|file| reader.exhibit(file)).collect();
    let plugins = host::loaded(&folder, lists, &read.manifests);
    let code = CodeFiles::below(&plugins.folders, Extent::of(hook.of_project));
    // Each plugin for itself: how one counts does not depend on which others are loaded.
    for folder in &plugins.folders {
        let (mut reader, its_own) =
            (read.reader(), |file: &&CodeFile| file.path.starts_with(folder));
        files.extend(exhibits(code.files.iter().filter(its_own), &mut reader));
    }
    Evidence {
        settings: vec![format!("interpreter {}", interpreter.display())],
        terms: terms_of_python(python),
        words,
        made_out: !code.files.is_empty(),
        too_many: code.too_many,
        files,
        plugins,
        place: folder.clone(),
        looked_for: Vec::new(),
        missing: own.missing,
        root: Some(folder),
    }
}

fn exhibits<'f>(
    code: impl IntoIterator<Item = &'f CodeFile>,
    reader: &mut Reader<'_>,
) -> Vec<Exhibit> {
    let exhibit = |file: &CodeFile| Exhibit {
        path: file.path.clone(),
        hash: reader.hash(&file.path, file.stamp),
    };
    code.into_iter().map(exhibit).collect()
}

fn digest(value: &Value) -> String {
    sha256(value.to_string().as_bytes())
}
