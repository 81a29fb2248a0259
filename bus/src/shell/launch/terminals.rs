//! `tmux` and `screen`: programs that run in a terminal that stays, and keys that are typed into one.

use super::super::expand::unescape_ansi;
use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::limits;
use super::super::word::Word;
use super::options;
use super::shells::CodeRun;

/// How deep commands of tmux may hold others: `if-shell`, `set-hook`.
const DEPTH: usize = 4;

impl Follower<'_> {
    pub(super) fn tmux(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let at = options::leading(args, &["-L", "-S", "-f", "-c", "-T"]);
        let (leading, rest) = args.split_at(at);
        if let Some(line) = options::value(leading, &["-c"]) {
            self.run_code(CodeRun::of(index, line), call, input);
        }
        self.tmux_commands(index, rest, call, DEPTH);
        self.output(index, input)
    }

    /// Commands of tmux, with `;` between them.
    fn tmux_commands(&mut self, index: usize, args: &[Arg], call: &Call, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return self.cut("tmux") };
        for words in args.split_inclusive(|arg| arg.word.as_str().ends_with(';')) {
            let mut words = words.to_vec();
            if let Some(last) = words.last_mut()
                && let Some(shorter) = last.word.as_str().strip_suffix(';')
            {
                last.word = Word::literal(shorter);
            }
            words.retain(|arg| !arg.word.as_str().is_empty());
            self.tmux_command(index, &words, call, depth);
        }
    }

    fn tmux_command(&mut self, index: usize, words: &[Arg], call: &Call, depth: usize) {
        let Some((name, args)) = words.split_first() else { return };
        let values: &[&str] = match name.word.as_str() {
            "new-session" | "new" => &["-c", "-e", "-F", "-f", "-n", "-s", "-t", "-x", "-y"],
            "new-window" | "neww" => &["-c", "-e", "-F", "-n", "-t"],
            "split-window" | "splitw" => &["-c", "-e", "-F", "-l", "-p", "-t"],
            "respawn-pane" | "respawnp" | "respawn-window" | "respawnw" => &["-c", "-e", "-t"],
            "display-popup" | "popup" => {
                &["-b", "-c", "-d", "-e", "-h", "-s", "-S", "-t", "-T", "-w", "-x", "-y"]
            }
            "run-shell" | "run" => &["-d", "-t", "-c"],
            "pipe-pane" | "pipep" | "if-shell" | "if" | "set-hook" => &["-t"],
            "send-keys" | "send" => &["-t", "-N", "-c"],
            "bind-key" | "bind" => &["-T", "-N"],
            "set-option" | "set" => &["-t"],
            _ => return,
        };
        let rest = args.get(options::leading(args, values)..).unwrap_or_default();
        let first = rest.first();
        match name.word.as_str() {
            "send-keys" | "send" => {
                let (line, origin) = typed(rest);
                self.run_code(CodeRun::new(index, &line, origin), call, &Flow::default());
            }
            "if-shell" | "if" => {
                self.run_line(index, rest.get(..1), call);
                for command in rest.iter().skip(1) {
                    self.tmux_text(index, command, call, depth);
                }
            }
            "set-hook" | "bind-key" | "bind" => match rest.get(1..).unwrap_or_default() {
                [command] => self.tmux_text(index, command, call, depth),
                words => self.tmux_commands(index, words, call, depth),
            },
            "set-option" | "set" => {
                if first.is_some_and(|option| option.word.as_str().starts_with("default-")) {
                    self.run_line(index, rest.get(1..2), call);
                }
            }
            _ => self.run_line(index, Some(rest), call),
        }
    }

    /// A command of tmux in one word.
    fn tmux_text(&mut self, index: usize, text: &Arg, call: &Call, depth: usize) {
        let words = shlex::split(text.word.as_str()).unwrap_or_default();
        let args: Vec<Arg> = words
            .into_iter()
            .map(|word| Arg { word: Word::literal(word), ..text.clone() })
            .collect();
        self.tmux_commands(index, &args, call, depth);
    }

    /// One word is a shell line; several are a program and its arguments.
    fn run_line(&mut self, index: usize, words: Option<&[Arg]>, call: &Call) {
        match words.unwrap_or_default() {
            [] => {}
            [line] => {
                self.run_code(CodeRun::of(index, line), call, &Flow::default());
            }
            words => {
                self.launch(call.with(words.to_vec()), &Flow::default());
            }
        }
    }

    pub(super) fn screen(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let (mut at, mut sends, mut attaches) = (0, false, false);
        while let Some(option) = args.get(at).and_then(|arg| arg.word.as_str().strip_prefix('-')) {
            let letters = if option == "Logfile" { "S" } else { option };
            sends |= letters.ends_with('X');
            attaches |= letters.contains(['r', 'x', 'R', 'D']);
            attaches &= !letters.contains('m');
            at += 1 + usize::from(letters.ends_with(['S', 'c', 'e', 'h', 'p', 's', 't', 'T']));
        }
        let rest = args.get(at..).unwrap_or_default();
        match rest.split_first() {
            Some((name, words)) if sends => match name.word.as_str() {
                "stuff" => {
                    let (text, origin) = options::joined(words);
                    let line = unescape_ansi(&text).replace("^M", "\n").replace('\r', "\n");
                    self.run_code(CodeRun::new(index, &line, origin), call, &Flow::default());
                }
                "exec" | "screen" => {
                    let from = words.iter().take_while(|arg| !is_program(arg)).count();
                    self.launch(call.with(words.get(from..).unwrap_or_default().to_vec()), input);
                }
                _ => {}
            },
            Some(_) if !attaches => {
                self.launch(call.with(rest.to_vec()), input);
            }
            Some(_) | None => {}
        }
        self.output(index, input)
    }
}

/// Whether a word can be a program, and is no option or pattern of descriptors (`.!|`).
fn is_program(arg: &Arg) -> bool {
    arg.word.as_str().starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '~' | '_'))
        || arg.word.as_str().starts_with("./")
}

/// The text that keys type.
fn typed(keys: &[Arg]) -> (String, Origin) {
    let mut line = String::new();
    for key in keys.iter().take(limits::WORDS) {
        match key.word.as_str() {
            "Enter" | "KPEnter" | "C-m" | "C-j" | "^M" => line.push('\n'),
            "Space" => line.push(' '),
            "Tab" => line.push('\t'),
            "Escape" | "BSpace" | "Up" | "Down" | "Left" | "Right" => {}
            key if key.len() == 3 && (key.starts_with("C-") || key.starts_with("M-")) => {}
            key => line.push_str(key),
        }
    }
    (line, keys.iter().map(|arg| arg.origin).max().unwrap_or_default())
}
