//! What a shell line does, as far as it can be told without running it: the programs it starts, the files it
//! touches, the hosts it talks to, the code it runs from elsewhere, and what cannot be told.

use super::word::Word;

/// What a shell line does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellView {
    /// The programs, in the order in which they are written. Wrappers (`sudo`, `env`, `xargs`, `sh -c`) are
    /// listed too, before what they start.
    pub programs: Vec<Invocation>,
    /// The files that are read, written or deleted.
    pub files: Vec<FileUse>,
    /// The hosts that are contacted.
    pub hosts: Vec<HostUse>,
    /// Code that is not in the line itself, and runs.
    pub foreign_code: Vec<ForeignCode>,
    /// What cannot be understood. Empty if all of the line is.
    pub opaque: Vec<Opaque>,
}

/// One program that a line starts. A builtin of the shell (`cd`, `export`) counts as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program as written, expanded: `git`, `/usr/bin/git`.
    pub program: Word,
    /// Its arguments.
    pub args: Vec<Word>,
    /// The variables that are set for it alone (`A=b program`).
    pub env: Vec<(String, Word)>,
    /// The directory that it runs in.
    pub cwd: Directory,
    /// Whether it runs with the rights of another user: behind `sudo`, `doas`, `su`, `pkexec`.
    pub privileged: bool,
    /// The programs whose output it reads on stdin, as indexes into `ShellView::programs`.
    pub stdin_from: Vec<usize>,
    /// The text that it gets on stdin, if that is in the line: a here-document, a here-string, `echo text |`.
    pub stdin_text: Option<Word>,
    /// Whether more arguments follow that are not known: `xargs rm`, `rm $FILES`, `find … -exec rm {} +`.
    pub more_args: bool,
    /// The new container that it runs in (`docker run`), whose files are not those of this machine.
    pub container: Option<Container>,
}

/// A container that a line starts: which of its directories are directories of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// Pairs of a directory of this machine and its path inside.
    pub mounts: Vec<(String, String)>,
    /// The directory inside that relative paths start from, if the line says so.
    pub directory: Option<String>,
    /// Where relative paths of this machine start.
    pub base: Directory,
}

/// A directory in a line: where a program runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Directory {
    /// Where the line starts.
    #[default]
    Start,
    /// This one: absolute, or relative to where the line starts.
    Path(String),
    /// Not known: behind `cd $X`.
    Unknown,
}

/// A file that a line touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The path as the program gets it; relative to `base`.
    pub path: Word,
    /// Where a relative path starts.
    pub base: Directory,
    /// What happens to it.
    pub access: Access,
    /// Whether everything below it is affected too (`rm -r`, `chmod -R`, `cp -r`).
    pub recursive: bool,
    /// The program, as an index into `ShellView::programs`. None for a redirection without a program (`> file`).
    pub by: Option<usize>,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// It is read, listed, or searched.
    Read,
    /// It is created, changed, or overwritten; its mode or owner is changed.
    Write,
    /// It is removed, or moved away.
    Delete,
}

/// A host that a line talks to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostUse {
    /// The URL or address as written.
    pub text: Word,
    /// `https`, `ssh`, …; empty if it is not known.
    pub scheme: String,
    /// The host, without user and port; empty if it is not known.
    pub host: String,
    /// The program, as an index into `ShellView::programs`. None for `/dev/tcp/…`.
    pub by: Option<usize>,
}

/// Code that a program runs and that is not written in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignCode {
    /// Where it comes from.
    pub source: CodeSource,
    /// The program that runs it, as an index into `ShellView::programs`.
    pub by: usize,
}

/// Where code comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeSource {
    /// The network: `curl … | sh`, `sh <(curl …)`, `curl -o x …; sh x`.
    Download,
    /// A text that is decoded or decrypted first: `base64 -d | sh`.
    Decoded,
    /// The output of another program: `generate | sh`, `eval "$(generate)"`.
    Output,
    /// A variable that is not known: `eval "$x"`, `sh -c "$x"`.
    Variable,
}

/// A part of a line that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// Why.
    pub kind: OpaqueKind,
    /// The part, as written, shortened.
    pub text: String,
}

/// Why a part of a line cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpaqueKind {
    /// It is not a shell line that bash would run, or is too long or nested too deep to be read.
    Syntax,
    /// The program's name is not known: `$X -rf /`.
    Program,
    /// The code that runs is not in the line: every [`ForeignCode`] is opaque too.
    Code,
}
