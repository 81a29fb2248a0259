//! Code that bash runs though no command names it: values of prompts and of `BASH_ENV`, `PROMPT_COMMAND`, the callbacks
//! of `mapfile` and `compgen`.

use super::super::expand::unescape_ansi;
use super::super::word::{UNKNOWN, Word};
use super::flow::{Flow, Origin};
use super::follower::Follower;
use super::simple::{Arg, Call};

impl Follower<'_> {
    /// Follows what a shell runs because a variable has this value.
    pub(crate) fn run_variable(&mut self, name: &str, value: &Arg) {
        let text = value.word.as_str();
        match name {
            "PS0" | "PS1" | "PS2" | "PS4" | "PROMPT" | "RPROMPT" => {
                self.prompt(text);
            }
            "PROMPT_COMMAND" => self.callback(text),
            "BASH_ENV" | "ENV" => {
                if runs_something(text) {
                    self.expand_quoted(text);
                }
                // A shell sources this file when it starts. Only one that the line has made is code of the line.
                if value.stream || self.written_flow(&value.word).is_some() {
                    let mut call = Call::of(vec![Word::literal("source")], &self.scope);
                    call.args.push(value.clone());
                    self.launch(call, &Flow::default());
                }
            }
            _ => {}
        }
    }

    /// What a prompt shows, also `${x@P}`; its substitutions run.
    pub(crate) fn prompt(&mut self, text: &str) -> (String, Origin) {
        if !text.contains(['$', '`', '\\']) {
            return (text.to_owned(), Origin::Line);
        }
        // `\044(line)` is `$(line)`: backslashes are read first.
        let plain = unescape_ansi(text);
        if runs_something(&plain) { self.expand_quoted(&plain) } else { (plain, Origin::Variable) }
    }

    /// A prompt whose text is not known: what it runs is not in the line.
    pub(crate) fn unknown_prompt(&mut self) {
        let mut call = Call::of(vec![Word::literal("eval")], &self.scope);
        call.args.push(Arg { word: Word::unknown(), origin: Origin::Variable, stream: false });
        self.launch(call, &Flow::default());
    }

    /// Follows a line that runs later, in this shell.
    fn callback(&mut self, line: &str) {
        // `PROMPT_COMMAND="$PROMPT_COMMAND; line"`: what was there before is not the line's.
        let line = line.replace(UNKNOWN, "true");
        if !line.trim().is_empty() {
            self.in_subshell(|follower| follower.run_text(&line, &Flow::default()));
        }
    }

    /// The lines that `mapfile -C` and `compgen -C` run, and the words of `compgen -W`, which are expanded.
    pub(super) fn callbacks(&mut self, args: &[Arg]) {
        for pair in args.windows(2) {
            let [option, value] = pair else { continue };
            match option.word.as_str() {
                "-C" => self.callback(value.word.as_str()),
                "-W" if runs_something(value.word.as_str()) => {
                    self.expand_quoted(value.word.as_str());
                }
                _ => {}
            }
        }
    }
}

fn runs_something(text: &str) -> bool {
    text.contains("$(") || text.contains('`') || text.contains("${")
}
