//! Redirections: the files and hosts that they name, and what a command reads through them.

use std::borrow::Cow;

use super::super::syntax::{Redirect, RedirectKind, Script};
use super::super::view::{Access, FileUse, HostUse};
use super::super::word::Word;
use super::flow::{Flow, Origin};
use super::follower::{Follower, Part, Written};
use super::scope;

/// How many descriptors of a line are remembered.
const DESCRIPTORS: usize = 16;

/// What the redirections of one command do.
#[derive(Debug, Default)]
pub(super) struct Redirected {
    pub(super) files: Vec<FileUse>,
    pub(super) hosts: Vec<HostUse>,
    /// What it reads on stdin, if that is redirected.
    pub(super) stdin: Option<Flow>,
    /// The file that its output goes to.
    pub(super) stdout: Option<Target>,
    /// The code of `> >(…)`, which reads its output.
    pub(super) readers: Vec<String>,
}

/// A file that output goes to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) path: Word,
    pub(crate) append: bool,
}

impl Follower<'_> {
    /// Expands the redirections of a command.
    pub(super) fn redirects(
        &mut self,
        redirects: &[Redirect<'_>],
        script: &Script<'_>,
    ) -> Redirected {
        let mut redirected = Redirected::default();
        for redirect in redirects {
            self.redirect(redirect, script, &mut redirected);
        }
        redirected
    }

    fn redirect(&mut self, redirect: &Redirect<'_>, script: &Script<'_>, to: &mut Redirected) {
        match redirect.kind {
            RedirectKind::HereString => {
                let arg = self.expand_one(redirect.target);
                let mut flow = Flow::text(format!("{}\n", arg.word.as_str()));
                flow.origin = arg.origin;
                self.opened_to_read(redirect, flow, to);
            }
            RedirectKind::HereDocument(index) => {
                let Some(document) = script.documents.get(index) else { return };
                let (text, origin) = if document.expands && document.text.contains(['$', '`', '\\'])
                {
                    self.expand_quoted(&document.text)
                } else {
                    (Cow::Borrowed(&*document.text).into_owned(), Origin::Line)
                };
                let flow = Flow { text: Some(text), ..Flow::unknown(origin) };
                self.opened_to_read(redirect, flow, to);
            }
            RedirectKind::Duplicate if is_descriptor(redirect.target) => {
                if redirect.fd.is_none_or(|fd| fd == "0")
                    && let Some(flow) = self.descriptor(redirect.target)
                {
                    to.stdin = Some(flow);
                }
            }
            RedirectKind::Read => self.opened(redirect, &[Access::Read], to),
            RedirectKind::ReadWrite => self.opened(redirect, &[Access::Read, Access::Write], to),
            RedirectKind::Write | RedirectKind::Append | RedirectKind::Duplicate => {
                self.opened(redirect, &[Access::Write], to);
            }
        }
    }

    /// A text that a command reads on stdin, or under the number of another descriptor.
    fn opened_to_read(&mut self, redirect: &Redirect<'_>, flow: Flow, to: &mut Redirected) {
        match redirect.fd.filter(|fd| *fd != "0") {
            None => to.stdin = Some(flow),
            Some(fd) if self.descriptors.len() < DESCRIPTORS => {
                self.descriptors.push((fd.to_owned(), flow));
            }
            Some(_) => self.cut(redirect.target),
        }
    }

    /// A redirection that opens a file, or a substitution in its place.
    fn opened(&mut self, redirect: &Redirect<'_>, accesses: &[Access], to: &mut Redirected) {
        let reads = accesses.contains(&Access::Read);
        if let Some(code) =
            redirect.target.strip_prefix("<(").and_then(|code| code.strip_suffix(')'))
        {
            to.stdin = Some(self.substitute_flow(code));
            return;
        }
        if let Some(code) =
            redirect.target.strip_prefix(">(").and_then(|code| code.strip_suffix(')'))
        {
            to.readers.push(code.to_owned());
            return;
        }
        let arg = self.expand_one(redirect.target);
        let path = arg.word;
        if let Some(host) = network_host(&path) {
            to.hosts.push(host);
            if reads {
                to.stdin = Some(Flow::unknown(Origin::Download));
            }
            return;
        }
        if is_no_file(path.as_str()) {
            return;
        }
        if reads && redirect.fd.is_none_or(|fd| fd == "0") {
            let mut flow = self.written_flow(&path).unwrap_or_default();
            flow.origin = flow.origin.max(Origin::File);
            to.stdin = Some(flow);
        }
        if !reads && redirect.fd.is_none_or(|fd| fd == "1") {
            let append = redirect.kind == RedirectKind::Append;
            to.stdout = Some(Target { path: path.clone(), append });
        }
        for access in accesses {
            to.files.push(FileUse {
                path: path.clone(),
                base: self.scope.directory.clone(),
                access: *access,
                recursive: false,
                by: None,
            });
        }
    }

    /// Adds the files and hosts of redirections, as uses by this program.
    pub(super) fn place(&mut self, redirected: Redirected, by: Option<usize>) {
        let files = redirected.files.into_iter().map(|file| FileUse { by, ..file });
        self.view.files.extend(files);
        self.view.hosts.extend(redirected.hosts.into_iter().map(|host| HostUse { by, ..host }));
    }

    /// Remembers what a file holds now.
    pub(crate) fn wrote(&mut self, target: &Target, flow: Flow, by: Option<usize>) {
        if let Some(by) = by.filter(|_| !target.append) {
            self.remember_cat(by, &target.path);
        }
        let Some(path) = target.path.identity().map(|path| self.located(path)) else { return };
        if target.append
            && let Some(written) = self
                .written
                .iter_mut()
                .find(|written| written.path == path && written.part == Part::File)
        {
            written.flow.append(flow);
            return;
        }
        self.written.retain(|written| written.path != path || written.part != Part::File);
        if self.written.len() < super::super::limits::VARIABLES {
            self.written.push(Written { path, flow, part: Part::File });
        }
    }

    /// Remembers what the files below a directory hold now.
    pub(crate) fn wrote_below(&mut self, directory: &str, flow: Flow) {
        let here = matches!(directory, "." | "./" | "");
        let path = self.located(if here { "." } else { directory.trim_end_matches('/') });
        let path = if path == "." { String::new() } else { path };
        let part = if here { Part::Among } else { Part::Below };
        if self.written.len() < super::super::limits::VARIABLES {
            self.written.push(Written { path, flow, part });
        }
    }

    /// What the line has written to a file before.
    pub(crate) fn written_flow(&self, path: &Word) -> Option<Flow> {
        if self.written.is_empty() {
            return None;
        }
        let path = self.located(path.identity()?);
        self.written_at(&path, |part| part != Part::File)
    }

    /// The same for a script of another language: data is unpacked beside those more often than code.
    pub(crate) fn written_script(&self, path: &Word) -> Option<Flow> {
        if self.written.is_empty() {
            return None;
        }
        let path = self.located(path.identity()?);
        self.written_at(&path, |part| part == Part::Below)
    }

    fn written_at(&self, path: &str, counts: impl Fn(Part) -> bool) -> Option<Flow> {
        let exact = |written: &&Written| written.part == Part::File && written.path == path;
        let below = |written: &&Written| counts(written.part) && is_below(path, &written.path);
        let found = self.written.iter().find(exact).or_else(|| self.written.iter().rfind(below));
        found.map(|written| written.flow.clone())
    }

    /// Forgets the files whose paths are made of a variable that gets another value.
    pub(crate) fn forget_written(&mut self, variable: &str) {
        let variable = format!("${variable}");
        self.written.retain(|written| !written.path.contains(&variable));
    }

    /// A path from where the line starts, as text.
    pub(crate) fn located(&self, path: &str) -> String {
        if path.starts_with('$') {
            return path.to_owned();
        }
        let mut plain = path;
        while let Some(rest) = plain.strip_prefix("./") {
            plain = rest;
        }
        match scope::join(&self.scope.directory, plain) {
            super::super::view::Directory::Path(path) => path,
            super::super::view::Directory::Start | super::super::view::Directory::Unknown => {
                plain.to_owned()
            }
        }
    }
}

/// Whether a path is below a directory; an empty one is where the line starts.
fn is_below(path: &str, directory: &str) -> bool {
    if directory.is_empty() {
        return !path.starts_with(['/', '~', '$']) && !path.starts_with("..");
    }
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether the word behind `>&` is a descriptor, not a file.
fn is_descriptor(target: &str) -> bool {
    target == "-"
        || target.strip_suffix('-').unwrap_or(target).bytes().all(|byte| byte.is_ascii_digit())
        || target.starts_with('$')
}

/// Devices that keep nothing.
fn is_no_file(path: &str) -> bool {
    matches!(
        path,
        "/dev/null"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/tty"
            | "/dev/zero"
            | "/dev/full"
    ) || path.starts_with("/dev/fd/")
}

/// `/dev/tcp/host/port` and `/dev/udp/host/port`, which bash connects to.
fn network_host(path: &Word) -> Option<HostUse> {
    let text = path.as_str();
    let (scheme, rest) = text
        .strip_prefix("/dev/tcp/")
        .map(|rest| ("tcp", rest))
        .or_else(|| text.strip_prefix("/dev/udp/").map(|rest| ("udp", rest)))?;
    let host = rest.split('/').next().unwrap_or_default();
    let host = if host.contains(super::super::word::UNKNOWN) { "" } else { host };
    Some(HostUse { text: path.clone(), scheme: scheme.to_owned(), host: host.to_owned(), by: None })
}
