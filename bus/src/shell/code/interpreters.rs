//! Interpreters: the code in their arguments, on stdin, or in a file that the line has written.

use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::launch::CodeRun;
use super::super::word::UNKNOWN;
use super::calls;
use super::languages::{Language, language};

impl Follower<'_> {
    pub(crate) fn interpreter(
        &mut self,
        name: &str,
        index: usize,
        call: &Call,
        input: &Flow,
    ) -> Flow {
        let Some(language) = language(name) else { return Flow::unknown(Origin::Output) };
        let args = call.args.get(1..).unwrap_or_default();
        let mut ran = false;
        let mut operands: Vec<&Arg> = Vec::new();
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let text = arg.word.as_str();
            at += 1;
            if language.is_code_option(text) {
                if let Some(code) = args.get(at) {
                    self.foreign_text(language, index, code.word.as_str(), code.origin, call);
                    ran = true;
                }
                at += 1;
            } else if language.other_values().contains(&text) {
                at += 1;
            } else if let Some(code) =
                text.strip_prefix("--eval=").or_else(|| text.strip_prefix("--print="))
            {
                self.foreign_text(language, index, code, arg.origin, call);
                ran = true;
            } else if language == Language::Vim && text.starts_with('+') {
                self.foreign_text(
                    language,
                    index,
                    text.get(1..).unwrap_or_default(),
                    arg.origin,
                    call,
                );
            } else if !text.starts_with('-') || text == "-" {
                operands.push(arg);
            }
        }
        if !ran {
            self.operands(language, index, &operands, args, call, input);
        }
        self.interpreter_output(language, index, input)
    }

    /// Code that is an operand, or comes from a file or stdin.
    fn operands(
        &mut self,
        language: Language,
        index: usize,
        operands: &[&Arg],
        args: &[Arg],
        call: &Call,
        input: &Flow,
    ) {
        match language {
            Language::Awk => {
                let in_file = args.iter().any(|arg| arg.word.as_str() == "-f");
                if let (Some(code), false) = (operands.first(), in_file) {
                    self.search(language, index, code.word.as_str(), call);
                }
            }
            Language::Sqlite => {
                for code in operands.iter().skip(1) {
                    self.search(language, index, code.word.as_str(), call);
                }
                if let Some(text) = &input.text {
                    self.search(language, index, text, call);
                }
            }
            Language::Vim | Language::Lisp => {}
            Language::Python
            | Language::Perl
            | Language::Ruby
            | Language::JavaScript
            | Language::Php
            | Language::Lua
            | Language::Rarer
            | Language::Osascript => {
                let module = args
                    .iter()
                    .any(|arg| matches!(arg.word.as_str(), "-m" | "--version" | "-V" | "-v"));
                match operands.first() {
                    Some(file)
                        if file.word.as_str() != "-" && file.word.as_str() != "/dev/stdin" =>
                    {
                        let flow = if file.stream {
                            Some(self.stream())
                        } else {
                            self.written_script(&file.word)
                        };
                        if let Some(flow) = flow {
                            self.run_flow(language, index, &flow, call);
                        }
                    }
                    Some(_) => self.run_flow(language, index, input, call),
                    None if !module => self.run_flow(language, index, input, call),
                    None => {}
                }
            }
        }
    }

    fn run_flow(&mut self, language: Language, index: usize, flow: &Flow, call: &Call) {
        let unknown = UNKNOWN.to_string();
        let text = flow.text.as_deref().unwrap_or(&unknown);
        if !flow.is_nothing() {
            self.foreign_text(language, index, text, flow.origin, call);
        }
    }

    /// Code of an interpreter that the line has written to a file.
    pub(crate) fn interpreted(&mut self, name: &str, index: usize, flow: &Flow, _input: &Flow) {
        let call = Call::of(Vec::new(), &self.scope);
        if let Some(language) = language(name) {
            self.run_flow(language, index, flow, &call);
        }
    }

    fn foreign_text(
        &mut self,
        language: Language,
        index: usize,
        text: &str,
        origin: Origin,
        call: &Call,
    ) {
        self.report_foreign(index, text, origin);
        self.search(language, index, text, call);
    }

    /// Finds what code does.
    fn search(&mut self, language: Language, index: usize, text: &str, call: &Call) {
        if !self.count(text) {
            return;
        }
        for effect in calls::effects(language, text, self.start.home.as_deref()) {
            match effect {
                calls::Effect::Line(line) => {
                    let origin =
                        if line.contains(UNKNOWN) { Origin::Variable } else { Origin::Line };
                    self.run_code(CodeRun::new(index, &line, origin), call, &Flow::default());
                }
                calls::Effect::Program(words) => {
                    let words = words.into_iter().map(super::super::word::Word::literal);
                    let args = words.map(|word| Arg { word, ..Arg::default() }).collect();
                    self.launch(call.with(args), &Flow::default());
                }
                calls::Effect::File(path, access, recursive) => {
                    self.view.files.push(super::super::view::FileUse {
                        path: super::super::word::Word::literal(path),
                        base: call.directory.clone(),
                        access,
                        recursive,
                        by: Some(index),
                    });
                }
                calls::Effect::Host(url) => {
                    let host = super::super::effects::host_of_url(&url, index);
                    if !self.view.hosts.contains(&host) {
                        self.view.hosts.push(host);
                    }
                }
                calls::Effect::Evaluated(code) => {
                    self.deeper(&code, |follower| follower.search(language, index, &code, call));
                }
                calls::Effect::Code(origin) => {
                    self.report_foreign(index, &UNKNOWN.to_string(), origin);
                }
            }
        }
    }

    fn interpreter_output(&mut self, language: Language, index: usize, input: &Flow) -> Flow {
        let mut flow = super::known_output(self, index, input);
        if language != Language::Awk {
            flow.origin = flow.origin.max(Origin::Output);
        }
        flow
    }
}
