//! Shells, `eval`, `source` and `trap`: code in the arguments, on stdin, or in a file.

use super::super::follow::{Arg, Call, Flow, Follower, Origin, Value};
use super::super::view::{ForeignCode, OpaqueKind};
use super::super::word::{UNKNOWN, Word};
use super::options;
use super::remote::is_cluster;

/// Code that a program runs.
#[derive(Debug)]
pub(crate) struct CodeRun<'a> {
    /// The program that runs it.
    by: usize,
    text: &'a str,
    origin: Origin,
    /// `$0`, `$1`, …
    parameters: Option<Vec<Word>>,
}

impl<'a> CodeRun<'a> {
    pub(crate) const fn new(by: usize, text: &'a str, origin: Origin) -> Self {
        Self { by, text, origin, parameters: None }
    }

    pub(super) fn of(by: usize, arg: &'a Arg) -> Self {
        Self::new(by, arg.word.as_str(), arg.origin)
    }
}

impl Follower<'_> {
    /// Runs a shell line in a shell of its own.
    pub(crate) fn run_code(&mut self, code: CodeRun<'_>, call: &Call, input: &Flow) -> Flow {
        self.report_foreign(code.by, code.text, code.origin);
        if code.text.chars().all(|c| c == UNKNOWN || c.is_whitespace()) {
            return Flow::unknown(code.origin.max(Origin::Output));
        }
        self.in_subshell(|follower| {
            follower.scope.directory = call.directory.clone();
            follower.scope.privileged = call.privileged;
            follower.scope.parameters = code.parameters;
            for (name, value) in &call.env {
                follower.scope.set(name, Value::text(value.as_str(), Origin::Line));
            }
            follower.run_text(code.text, input)
        })
    }

    /// Reports code that is not written in the line.
    pub(crate) fn report_foreign(&mut self, by: usize, text: &str, origin: Origin) {
        let foreign = match origin {
            Origin::Line | Origin::File | Origin::Harmless => false,
            // Code with an unknown value in it is common (`bash -c "cd $DIR && make"`); its programs tell.
            Origin::Variable | Origin::Output => text.trim_start().starts_with(UNKNOWN),
            Origin::Decoded | Origin::Download => true,
        };
        if let (true, Some(source)) = (foreign, origin.code_source()) {
            let code = ForeignCode { source, by };
            if self.view.foreign_code.contains(&code) {
                return;
            }
            self.view.foreign_code.push(code);
            let shown = self.view.programs.get(by).map(|program| {
                let words = program.args.iter().map(Word::as_str);
                let words: Vec<&str> =
                    std::iter::once(program.program.as_str()).chain(words).collect();
                words.join(" ")
            });
            self.opaque(OpaqueKind::Code, &shown.unwrap_or_default());
        }
    }

    /// Runs what a shell reads on stdin.
    pub(super) fn shell_stdin(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let unknown = UNKNOWN.to_string();
        let text = input.text.as_deref().unwrap_or(&unknown);
        if input.is_nothing() {
            return Flow::unknown(Origin::Output);
        }
        self.run_code(CodeRun::new(index, text, input.origin), call, &Flow::default())
    }

    pub(super) fn shell(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let (mut code, mut stdin) = (false, false);
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let text = arg.word.as_str();
            match text {
                "-o" | "-O" | "+o" | "+O" => at += 1,
                "--rcfile" | "--init-file" => {
                    at += 1;
                    if let Some(file) = args.get(at) {
                        self.run_variable("BASH_ENV", file); // sourced at the start, too
                    }
                }
                "--" | "-" => {
                    at += 1;
                    break;
                }
                "--command" | "-Command" => code = true,
                _ if text.starts_with("--command=") => {
                    let line = text.split_once('=').map_or("", |(_, line)| line);
                    return self.run_code(CodeRun::new(index, line, arg.origin), call, input);
                }
                _ if text.starts_with("--") => {}
                _ if text.starts_with(['-', '+']) && text.len() > 1 => {
                    code |= is_cluster(text, 'c');
                    stdin |= is_cluster(text, 's');
                    at +=
                        usize::from(text.starts_with('-') && text.ends_with('o') && text.len() > 2);
                }
                _ => break,
            }
            at += 1;
        }
        let rest = args.get(at..).unwrap_or_default();
        match rest.split_first() {
            Some((line, parameters)) if code => {
                let mut run = CodeRun::of(index, line);
                run.origin = as_code(run.origin);
                let parameters = parameters.iter().map(|arg| arg.word.clone());
                run.parameters = (!call.more_args).then(|| parameters.collect());
                self.run_code(run, call, input)
            }
            Some((file, _)) if !stdin => self.run_file(index, file, call, input),
            Some(_) | None if code => Flow::unknown(Origin::Output),
            Some(_) | None => self.shell_stdin(index, call, input),
        }
    }

    /// Runs a script file: foreign if the line has downloaded it, code if the line has written it.
    fn run_file(&mut self, index: usize, file: &Arg, call: &Call, input: &Flow) -> Flow {
        let path = file.word.as_str();
        if matches!(path, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
            return self.shell_stdin(index, call, input);
        }
        if file.stream {
            let stream = self.stream();
            return self.shell_stdin(index, call, &stream);
        }
        match self.opened_as(path).or_else(|| self.written_flow(&file.word)) {
            Some(flow) => self.shell_stdin(index, call, &flow),
            None => Flow::unknown(Origin::Output),
        }
    }

    pub(super) fn eval(&mut self, index: usize, args: &[Arg], input: &Flow) -> Flow {
        let args = if args.first().is_some_and(|arg| arg.word.as_str() == "--") {
            args.get(1..).unwrap_or_default()
        } else {
            args
        };
        let (line, origin) = options::joined(args);
        let origin = as_code(origin);
        self.report_foreign(index, &line, origin);
        if line.trim().chars().all(|c| c == UNKNOWN) {
            return Flow::unknown(origin.max(Origin::Output));
        }
        self.run_text(&line, input)
    }

    pub(super) fn source(&mut self, index: usize, args: &[Arg], input: &Flow) -> Flow {
        let Some(file) = args.first() else { return Flow::default() };
        let flow = if file.stream {
            self.stream()
        } else if file.word.as_str() == "/dev/stdin" {
            input.clone()
        } else {
            self.written_flow(&file.word).unwrap_or_default()
        };
        let unknown = UNKNOWN.to_string();
        self.report_foreign(index, flow.text.as_deref().unwrap_or(&unknown), flow.origin);
        match &flow.text {
            Some(text) => self.run_text(text, input),
            None => Flow::unknown(Origin::Output),
        }
    }

    /// `trap 'line' EXIT`.
    pub(super) fn trap(&mut self, index: usize, args: &[Arg]) -> Flow {
        let mut operands = args.iter().filter(|arg| arg.word.as_str() != "--");
        let line = operands.next();
        if let (Some(line), Some(_)) = (line, operands.next()) {
            let text = line.word.as_str();
            if !text.starts_with('-') && !text.is_empty() {
                self.report_foreign(index, text, line.origin);
                if text.chars().any(|c| c != UNKNOWN) {
                    self.in_subshell(|follower| follower.run_text(text, &Flow::default()));
                }
            }
        }
        Flow::text("")
    }

    /// A program that the line has written or downloaded before.
    pub(super) fn run_written_program(&mut self, index: usize, input: &Flow) {
        let Some(program) = self.view.programs.get(index) else { return };
        let is_path = |path: &str| path.contains('/') || path.starts_with('$');
        let path = program.program.identity().filter(|path| is_path(path));
        let Some(flow) = path.and_then(|_| self.written_flow(&program.program)) else {
            return;
        };
        let call = Call::of(Vec::new(), &self.scope);
        let shebang = flow.text.as_deref().and_then(|text| text.strip_prefix("#!"));
        let interpreter = shebang.and_then(|text| text.lines().next()).unwrap_or("sh");
        let name = interpreter.split_whitespace().last().unwrap_or("sh");
        let name = name.rsplit('/').next().unwrap_or("sh").to_owned();
        if super::super::code::language(&name).is_some() {
            self.interpreted(&name, index, &flow, input);
        } else {
            self.shell_stdin(index, &call, &flow);
        }
    }
}

/// `eval "$(cat file)"`: what a file holds is the output of a program here, not a script that is run by its name.
const fn as_code(origin: Origin) -> Origin {
    match origin {
        Origin::File => Origin::Output,
        Origin::Line
        | Origin::Harmless
        | Origin::Variable
        | Origin::Output
        | Origin::Decoded
        | Origin::Download => origin,
    }
}
