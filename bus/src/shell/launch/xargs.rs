//! `xargs` and `parallel`: programs whose arguments come from stdin or from a list.

use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::limits;
use super::super::word::{UNKNOWN, Word};
use super::options;
use super::shells::CodeRun;

const XARGS_VALUES: &[&str] = &[
    "-I",
    "-n",
    "-P",
    "-L",
    "-d",
    "-s",
    "-a",
    "-E",
    "-J",
    "-R",
    "-S",
    "--max-args",
    "--max-procs",
    "--max-lines",
    "--delimiter",
    "--arg-file",
    "--replace",
    "--max-chars",
];

impl Follower<'_> {
    pub(super) fn xargs(&mut self, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let behind = options::leading(args, XARGS_VALUES);
        let (leading, program) = args.split_at(behind);
        if program.is_empty() {
            return input.clone();
        }
        let from_file = options::value(leading, &["-a", "--arg-file"]).is_some();
        let text = input.text.as_deref().filter(|_| !from_file);
        match placeholder(leading) {
            Some(placeholder) => self.for_each_line(call, program, &placeholder, text, input),
            None => {
                let mut inner = call.with(program.to_vec());
                match text {
                    Some(text) => inner.args.extend(text.split_whitespace().map(|word| Arg {
                        word: Word::literal(word.trim_matches(['\'', '"'])),
                        origin: input.origin,
                        stream: false,
                    })),
                    None => inner.more_args = true,
                }
                inner.more_args |= text.is_some_and(|text| text.contains(UNKNOWN));
                self.launch(inner, &Flow::default())
            }
        }
    }

    /// Starts the program once per line, which stands where the placeholder is.
    fn for_each_line(
        &mut self,
        call: &Call,
        program: &[Arg],
        placeholder: &str,
        text: Option<&str>,
        input: &Flow,
    ) -> Flow {
        let unknown = UNKNOWN.to_string();
        let origin = if text.is_some() { input.origin } else { input.origin.max(Origin::Output) };
        let lines: Vec<&str> = match text {
            Some(text) => text.lines().take(limits::LOOP_VALUES).collect(),
            None => vec![&unknown],
        };
        let mut flow = Flow::text("");
        for line in lines {
            let args = program.iter().map(|arg| replaced(arg, placeholder, line.trim(), origin));
            flow.append(self.launch(call.with(args.collect()), &Flow::default()));
        }
        flow
    }

    /// `parallel program {} ::: values`. The program is a shell line.
    pub(super) fn parallel(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let behind = options::leading(
            args,
            &[
                "-j",
                "-n",
                "-N",
                "-S",
                "-a",
                "-I",
                "--jobs",
                "--colsep",
                "--joblog",
                "--delay",
                "--timeout",
            ],
        );
        let rest = args.get(behind..).unwrap_or_default();
        let list = rest.iter().position(|arg| matches!(arg.word.as_str(), ":::" | ":::+" | "::::"));
        let (program, values) = rest.split_at(list.unwrap_or(rest.len()));
        let (line, origin) = options::joined(program);
        let mut lines: Vec<String> = Vec::new();
        if values.first().is_some_and(|arg| arg.word.as_str() == ":::") {
            let values = values.iter().skip(1).map(|arg| arg.word.as_str());
            lines.extend(values.take(limits::LOOP_VALUES).map(str::to_owned));
        } else if let Some(text) = &input.text {
            lines.extend(text.lines().take(limits::LOOP_VALUES).map(str::to_owned));
        } else {
            lines.push(UNKNOWN.to_string());
        }
        let mut flow = Flow::text("");
        for value in lines {
            let code = if line.is_empty() {
                value
            } else if line.contains("{}") {
                line.replace("{}", &value)
            } else {
                format!("{line} {value}")
            };
            let origin = if code.contains(UNKNOWN) {
                origin.max(input.origin).max(Origin::Output)
            } else {
                origin
            };
            flow.append(self.run_code(CodeRun::new(index, &code, origin), call, &Flow::default()));
        }
        flow
    }
}

/// What `-I` names: `-I{}`, `-I X`, `--replace=X`, `-i`.
fn placeholder(options: &[Arg]) -> Option<String> {
    let mut words = options.iter().map(|arg| arg.word.as_str());
    while let Some(word) = words.next() {
        match word {
            "-I" | "-J" => return Some(words.next().unwrap_or("{}").to_owned()),
            "-i" | "--replace" => return Some("{}".to_owned()),
            _ => {
                let joined = word.strip_prefix("-I").or_else(|| word.strip_prefix("--replace="));
                if let Some(joined) = joined {
                    return Some(joined.to_owned());
                }
            }
        }
    }
    None
}

/// An argument with the placeholder filled in.
fn replaced(arg: &Arg, placeholder: &str, value: &str, origin: Origin) -> Arg {
    if placeholder.is_empty() || !arg.word.as_str().contains(placeholder) {
        return arg.clone();
    }
    let text = arg.word.as_str().replace(placeholder, value);
    Arg { word: Word::literal(text), origin: origin.max(arg.origin), stream: false }
}
