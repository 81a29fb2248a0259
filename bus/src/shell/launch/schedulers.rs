//! `at`, `batch` and `crontab`: lines that run later.

use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::word::UNKNOWN;
use super::options;
use super::shells::CodeRun;

/// How many fields of a crontab say when a line runs.
const FIELDS: usize = 5;

impl Follower<'_> {
    pub(super) fn scheduler(
        &mut self,
        name: &str,
        index: usize,
        call: &Call,
        input: &Flow,
    ) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        if name == "crontab" {
            return self.crontab(index, args, call, input);
        }
        let file = options::value(args, &["-f"]).and_then(|file| self.file_flow(file));
        self.shell_stdin(index, call, file.as_ref().unwrap_or(input));
        self.output(index, input)
    }

    fn crontab(&mut self, index: usize, args: &[Arg], call: &Call, input: &Flow) -> Flow {
        let given = |letter: char| args.iter().any(|arg| arg.word.as_str() == format!("-{letter}"));
        if given('l') {
            // What is there already is not known, but what the line adds to it is.
            return Flow { text: Some(format!("{UNKNOWN}\n")), ..Flow::unknown(Origin::Output) };
        }
        if given('r') || given('e') {
            return self.output(index, input);
        }
        let at = options::leading(args, &["-u"]);
        let flow = match args.get(at) {
            Some(file) if file.word.as_str() != "-" => self.file_flow(file).unwrap_or_default(),
            Some(_) | None => input.clone(),
        };
        match &flow.text {
            Some(text) => {
                let lines: Vec<&str> = text.lines().filter_map(scheduled).collect();
                let text = lines.join("\n");
                self.run_code(CodeRun::new(index, &text, flow.origin), call, &Flow::default());
            }
            None => {
                self.shell_stdin(index, call, &flow);
            }
        }
        self.output(index, input)
    }

    /// What a file holds, if the line has made it.
    fn file_flow(&self, file: &Arg) -> Option<Flow> {
        if file.stream { Some(self.stream()) } else { self.written_flow(&file.word) }
    }
}

/// The shell line in a line of a crontab.
fn scheduled(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', UNKNOWN]) {
        return None;
    }
    let fields = if line.starts_with('@') { 1 } else { FIELDS };
    let mut rest = line;
    for _ in 0..fields {
        rest = rest.split_once(char::is_whitespace)?.1.trim_start();
    }
    // What follows a `%` is the input of the program.
    Some(rest.split_once('%').map_or(rest, |(line, _)| line))
}
