//! The files that a call touches, resolved: those that a file tool names, those in a patch, and those that a shell line
//! reads, writes and deletes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::commands::CommandFact;
use super::field::{FieldText, files_in_patches, find_texts};
use super::place::Place;
use super::wildcard::may_be;
use crate::event::{Event, ToolClass};
use crate::shell::{Access, Directory, FileUse, UNKNOWN};

/// A file that a call touches.
#[derive(Debug)]
pub struct FileFact<'a> {
    written: Cow<'a, str>,
    path: Resolved,
    /// Whether the shell expands wildcards in it.
    is_glob: bool,
    /// What happens to it.
    pub access: Access,
    /// The program that touches it; none if the tool itself does.
    pub by: Option<ProgramIndex>,
    source: Source,
}

/// Where a path is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In a field, the first one of its name, or in a patch.
    FirstField,
    /// In another field of the same name.
    Field,
    /// In a shell line.
    Line,
}

/// A program of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramIndex {
    /// The index of the line.
    pub line: usize,
    /// The index of the program in it.
    pub program: usize,
}

#[derive(Debug)]
enum Resolved {
    Path(PathBuf),
    /// It cannot be told before the command runs.
    Unknown,
    /// It is a text that is no path.
    NoPath,
}

impl FileFact<'_> {
    /// A directory that is known already.
    pub(super) fn of_directory(path: &Path) -> FileFact<'static> {
        FileFact {
            written: Cow::Borrowed(""),
            path: Resolved::Path(path.to_owned()),
            is_glob: false,
            access: Access::Read,
            by: None,
            source: Source::Line,
        }
    }

    /// The text of the field that names it, if a field does.
    pub(super) fn field_text(&self) -> Option<&str> {
        match self.source {
            Source::FirstField | Source::Field => Some(self.written.as_ref()),
            Source::Line => None,
        }
    }

    /// Where it leads, if that is known.
    pub fn path(&self) -> Option<&Path> {
        match &self.path {
            Resolved::Path(path) => Some(path),
            Resolved::Unknown | Resolved::NoPath => None,
        }
    }

    /// Whether it cannot be told before the command runs which file it is.
    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self.path, Resolved::Unknown)
    }

    /// Whether the shell expands wildcards in it, so that it may lead to other files too.
    pub(super) const fn is_glob(&self) -> bool {
        self.is_glob
    }

    /// Whether wildcards are written in it, and not only unknown parts.
    pub(super) fn is_written_glob(&self) -> bool {
        self.is_glob && !self.written.contains(UNKNOWN)
    }

    /// The directory of which everything is meant: `dir/*`.
    pub(super) fn whole_directory(&self) -> Option<&Path> {
        let mut path = self.path().filter(|_| self.is_glob && !self.written.contains(UNKNOWN))?;
        // Names that have nothing in common.
        let is_all = |name: &str| {
            may_be(name, "ab") && may_be(name, "Zz-9") || matches!(name, ".*" | ".[!.]*")
        };
        let mut whole = None;
        while let Some(folder) = path
            .parent()
            .filter(|_| path.file_name().and_then(|name| name.to_str()).is_some_and(is_all))
        {
            (path, whole) = (folder, Some(folder));
        }
        whole
    }

    /// Whether the first field of a name has it, which is the agent's own, if the agent has one.
    pub(super) fn is_in_first_field(&self) -> bool {
        self.source == Source::FirstField
    }

    /// As a person reads it: where it leads, or what is written.
    pub fn shown(&self) -> String {
        let is_whole = !self.written.contains(UNKNOWN);
        match self.path().filter(|_| is_whole) {
            Some(path) => path.to_string_lossy().into_owned(),
            None => self.written.replace(UNKNOWN, "…"),
        }
    }
}

/// The files of `event` and of its shell lines; the first `most` of them.
pub(super) fn files_of<'a>(
    event: &'a Event,
    commands: &'a [CommandFact],
    place: &Place,
    most: usize,
) -> Vec<FileFact<'a>> {
    let access = access_of_tool(event);
    let mut files = Vec::new();
    for FieldText { text, is_first, is_string } in find_texts(event, "path").into_iter().take(most)
    {
        let path = if is_string { resolve(&text, &place.cwd, place) } else { Resolved::NoPath };
        let source = if is_first { Source::FirstField } else { Source::Field };
        files.push(FileFact { written: text, path, is_glob: false, access, by: None, source });
    }
    for (text, access) in moved_files(event, access) {
        let path = resolve(text, &place.cwd, place);
        let (written, source) = (Cow::Borrowed(text), Source::Line);
        files.push(FileFact { written, path, is_glob: false, access, by: None, source });
    }
    for (text, access) in files_in_patches(event).take(most.saturating_sub(files.len())) {
        let path = resolve(text, &place.cwd, place);
        let (written, source) = (Cow::Borrowed(text), Source::FirstField);
        files.push(FileFact { written, path, is_glob: false, access, by: None, source });
    }
    for (line, command) in commands.iter().enumerate() {
        let base = start_of(command, place);
        let left = most.saturating_sub(files.len());
        files.extend(command.view.files.iter().take(left).map(|used| {
            let path = base.as_deref().map_or(Resolved::Unknown, |it| of_shell(used, it, place));
            let by = used.by.map(|program| ProgramIndex { line, program });
            let written = Cow::Borrowed(used.path.as_str());
            let is_glob = used.path.is_glob() || !used.path.is_known() || is_below_glob(&used.base);
            let access = used.access;
            FileFact { written, path, is_glob, access, by, source: Source::Line }
        }));
    }
    files
}

/// The directory that a line starts in; none if it is not known.
pub(super) fn start_of(command: &CommandFact, place: &Place) -> Option<PathBuf> {
    match &command.directory {
        None => Some(place.cwd.clone()),
        Some(folder) => match resolve(folder, &place.cwd, place) {
            Resolved::Path(path) => Some(path),
            Resolved::Unknown | Resolved::NoPath => None,
        },
    }
}

/// Whether a line has changed to a directory by a wildcard.
fn is_below_glob(base: &Directory) -> bool {
    match base {
        Directory::Path(path) => path.contains(['*', '?', '[']),
        Directory::Start | Directory::Unknown => false,
    }
}

fn of_shell(used: &FileUse, start: &Path, place: &Place) -> Resolved {
    let text = used.path.as_str();
    if text.starts_with(UNKNOWN) {
        return Resolved::Unknown;
    }
    let base = match &used.base {
        Directory::Start => start.to_owned(),
        Directory::Path(path) => start.join(path),
        Directory::Unknown if text.starts_with(['/', '~']) => start.to_owned(),
        Directory::Unknown => return Resolved::Unknown,
    };
    // An unknown part stands for anything, like a wildcard: of `~/$X/id_rsa` directory and name are known.
    resolve(&text.replace(UNKNOWN, "*"), &base, place)
}

/// Where `text` leads, from the absolute directory `base`.
fn resolve(text: &str, base: &Path, place: &Place) -> Resolved {
    if text.contains('\0') {
        return Resolved::NoPath;
    }
    let plain = file_url(text);
    let text = plain.as_deref().unwrap_or(text);
    let path = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = place.claimed_home.as_ref().or(place.home.as_ref());
            home.map(|home| home.join(rest.trim_start_matches('/')))
        }
        Some(rest) => Some(home_of_other(rest, base, text)),
        None => Some(base.join(text)),
    };
    path.and_then(|path| place.follow(&path)).map_or(Resolved::Unknown, Resolved::Path)
}

/// `~name/x`: the home directory of another user, where it usually is. A file may also have such a name.
fn home_of_other(rest: &str, base: &Path, text: &str) -> PathBuf {
    let (user, below) = rest.split_once('/').unwrap_or((rest, ""));
    match user {
        "root" => Path::new("/root").join(below),
        _ if user.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it)) => {
            Path::new("/home").join(user).join(below)
        }
        _ => base.join(text),
    }
}

/// The path in a `file:` URL.
fn file_url(text: &str) -> Option<String> {
    let rest = text.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((byte, rest)) = left.split_first() {
        let digits = rest.get(..2).filter(|_| *byte == b'%');
        let decoded =
            digits.and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(*byte));
        left = if decoded.is_some() { &rest[2..] } else { rest };
    }
    String::from_utf8(bytes).ok()
}

/// The files of a tool that copies or moves them, which has two of them.
fn moved_files(event: &Event, access: Access) -> impl Iterator<Item = (&str, Access)> {
    let moves = event.tool.as_ref().is_some_and(|tool| {
        let name = tool.name.to_ascii_lowercase();
        name.contains("move") || name.contains("rename")
    });
    let from = if moves { Access::Delete } else { Access::Read };
    let is_writer = access != Access::Read;
    let fields = [
        ("source", from),
        ("source_path", from),
        ("old_path", from),
        ("destination", Access::Write),
        ("destination_path", Access::Write),
        ("new_path", Access::Write),
        ("filePath", access),
        ("target_file", access),
        ("target_path", access),
        ("uri", access),
    ];
    let input = event.tool_input();
    let is_meant = move |name: &str| is_writer || matches!(name, "filePath" | "uri");
    let fields = fields.into_iter().filter(move |(name, _)| is_meant(name));
    fields.filter_map(move |(name, access)| Some((input?.get(name)?.as_str()?, access)))
}

/// What a tool does with the files that its fields name.
fn access_of_tool(event: &Event) -> Access {
    let Some(tool) = &event.tool else { return Access::Read };
    match tool.class {
        ToolClass::FileWrite => Access::Write,
        ToolClass::Mcp | ToolClass::Other => access_by_name(&tool.name),
        ToolClass::Shell
        | ToolClass::FileRead
        | ToolClass::FileSearch
        | ToolClass::WebFetch
        | ToolClass::WebSearch
        | ToolClass::Browser
        | ToolClass::Agent
        | ToolClass::Memory
        | ToolClass::Todo => Access::Read,
    }
}

/// What a tool that we do not know probably does, by its name.
fn access_by_name(name: &str) -> Access {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["delete", "remove", "unlink", "rmdir"]) {
        Access::Delete
    } else if has(&[
        "write", "edit", "create", "move", "rename", "append", "patch", "save", "replace",
        "insert", "mkdir", "copy", "upload",
    ]) {
        Access::Write
    } else {
        Access::Read
    }
}
