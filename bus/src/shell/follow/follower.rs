//! The follower: what has been found so far, the state of the shell, and the bounds.

use super::super::launch::CopiedProgram;
use super::super::limits;
use super::super::start::Start;
use super::super::syntax;
use super::super::view::{Opaque, OpaqueKind, ShellView};
use super::super::word::{UNKNOWN, Word};
use super::flow::{Flow, Origin};
use super::scope::Scope;
use super::simple::Call;

/// A function that the line defines.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) body: String,
    pub(crate) called: bool,
    /// Whether it is running: a function that calls itself is followed once.
    pub(crate) active: bool,
}

/// A file that the line has written before, by its path from where the line starts.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) flow: Flow,
    pub(crate) part: Part,
}

/// Which files a [`Written`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The file itself.
    File,
    /// All files below a directory.
    Below,
    /// Some of the files where the line runs, among those that were there before: an archive was unpacked there.
    Among,
}

/// Follows a script.
#[derive(Debug)]
pub(crate) struct Follower<'s> {
    pub(crate) start: &'s Start,
    pub(crate) view: ShellView,
    pub(crate) scope: Scope,
    pub(crate) functions: Vec<Function>,
    pub(crate) written: Vec<Written>,
    /// The programs that the line has copied or linked before.
    pub(crate) copied_programs: Vec<CopiedProgram>,
    /// What the command that is being followed reads; its substitutions read that too.
    pub(crate) stdin: Flow,
    /// What the latest `<(…)` prints.
    stream: Flow,
    /// What the line has opened for reading under other numbers than 0: `3<<< text`.
    pub(super) descriptors: Vec<(String, Flow)>,
    /// Whether a line in a variable is being followed: `PAGER=bat` and `bat`, which uses it too.
    pub(crate) in_variable: bool,
    depth: usize,
    commands: usize,
    code_bytes: usize,
    expanded_bytes: usize,
    cut: bool,
}

impl<'s> Follower<'s> {
    pub(crate) fn new(start: &'s Start) -> Self {
        Self {
            start,
            view: ShellView::default(),
            scope: Scope::default(),
            functions: Vec::new(),
            written: Vec::new(),
            copied_programs: Vec::new(),
            stdin: Flow::default(),
            stream: Flow::default(),
            descriptors: Vec::new(),
            in_variable: false,
            depth: 0,
            commands: 0,
            code_bytes: 0,
            expanded_bytes: 0,
            cut: false,
        }
    }

    /// Follows a text as a script, in the present scope.
    pub(crate) fn run_text(&mut self, text: &str, input: &Flow) -> Flow {
        self.code_bytes += text.len();
        if self.code_bytes > limits::CODE_BYTES {
            self.cut(text);
            return Flow::unknown(Origin::Output);
        }
        let script = syntax::parse(text);
        let flow = self.deeper(text, |follower| follower.list(&script.list, &script, input));
        let flow = flow.unwrap_or_else(|| Flow::unknown(Origin::Output));
        if script.unread.is_empty() { flow } else { self.run_rough(script.unread, input) }
    }

    /// Lists what can be recognised in a text that bash would refuse.
    fn run_rough(&mut self, text: &str, input: &Flow) -> Flow {
        self.opaque(OpaqueKind::Syntax, text);
        self.deeper(text, |follower| {
            for words in syntax::fragments(text) {
                if !follower.count(text) {
                    break;
                }
                let words = words.into_iter().map(Word::literal).collect();
                follower.launch(Call::of(words, &follower.scope), input);
            }
        });
        Flow::unknown(Origin::Output)
    }

    /// The functions that the line defines and does not call: what they would do counts too.
    pub(crate) fn run_uncalled_functions(&mut self) {
        let mut next = 0;
        while let Some(function) = self.functions.get_mut(next) {
            next += 1;
            if !function.called {
                function.called = true;
                function.active = true;
                let body = function.body.clone();
                self.in_subshell(|follower| {
                    follower.scope.parameters = None;
                    follower.run_text(&body, &Flow::default());
                });
                if let Some(function) = self.functions.get_mut(next - 1) {
                    function.active = false;
                }
            }
        }
    }

    /// Remembers what `<(…)` prints, for the shell that runs it.
    pub(crate) fn remember_stream(&mut self, flow: &Flow) {
        self.stream = flow.clone();
    }

    /// What the latest `<(…)` prints.
    pub(crate) fn stream(&self) -> Flow {
        self.stream.clone()
    }

    /// What the line has opened for reading as `/dev/fd/3`.
    pub(crate) fn opened_as(&self, path: &str) -> Option<Flow> {
        let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"));
        self.descriptor(number?)
    }

    /// What a descriptor reads.
    pub(super) fn descriptor(&self, number: &str) -> Option<Flow> {
        let known = self.descriptors.iter().rev().find(|(known, _)| known == number);
        known.map(|(_, flow)| flow.clone())
    }

    /// Runs in a copy of the scope.
    pub(crate) fn in_subshell<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        self.spend(self.scope.variables.len() * 4);
        let outer = self.scope.clone();
        let result = run(self);
        self.scope = outer;
        result
    }

    /// Runs one level deeper; None, and a cut, if that is too deep.
    pub(crate) fn deeper<T>(&mut self, text: &str, run: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= limits::DEPTH {
            self.cut(text);
            return None;
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        Some(result)
    }

    /// Counts one command; false, and a cut, if there are too many.
    pub(crate) fn count(&mut self, text: &str) -> bool {
        self.commands += 1;
        let within = self.commands <= limits::COMMANDS
            && self.may_expand()
            && self.view.programs.len() < limits::PROGRAMS;
        if !within {
            self.cut(text);
        }
        within
    }

    /// Whether words are still expanded.
    pub(crate) const fn may_expand(&self) -> bool {
        self.expanded_bytes <= limits::EXPANDED_BYTES
    }

    /// Counts the bytes of expanded words.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.expanded_bytes += bytes;
    }

    /// Reports, once, that something was left out.
    pub(crate) fn cut(&mut self, text: &str) {
        if !self.cut {
            self.cut = true;
            self.opaque(OpaqueKind::Syntax, text);
        }
    }

    pub(crate) fn opaque(&mut self, kind: OpaqueKind, text: &str) {
        let mut shown: String = text.trim().chars().take(limits::SHOWN_CHARS).collect();
        if shown.contains(UNKNOWN) {
            shown = shown.replace(UNKNOWN, "…");
        }
        let opaque = Opaque { kind, text: shown };
        // The first one of each kind is always listed: a rule may be about that kind.
        let is_first = !self.view.opaque.iter().any(|known| known.kind == kind);
        let has_room = self.view.opaque.len() < limits::OPAQUE || is_first;
        if has_room && !self.view.opaque.contains(&opaque) {
            self.view.opaque.push(opaque);
        }
    }
}
