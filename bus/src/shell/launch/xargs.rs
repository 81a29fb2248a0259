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
        let words = if from_file { None } else { listed(leading, input) };
        match placeholder(leading) {
            Some(placeholder) => {
                let words = if from_file { None } else { lines(leading, input) };
                self.for_each_line(call, program, &placeholder, words, input)
            }
            None => {
                let mut inner = call.with(program.to_vec());
                inner.more_args |= input.items.is_empty()
                    && words.as_ref().is_none_or(|words| words.iter().any(|word| !word.is_known()));
                if words.is_none() && is_shell_without_code(program) {
                    let origin = input.origin.max(Origin::Output);
                    inner.args.push(Arg { word: Word::unknown(), origin, stream: false });
                }
                let words = words.unwrap_or_default().into_iter();
                inner.args.extend(words.map(|word| Arg {
                    word,
                    origin: input.origin,
                    stream: false,
                }));
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
        lines: Option<Vec<Word>>,
        input: &Flow,
    ) -> Flow {
        let known = lines.is_some();
        let origin = if known { input.origin } else { input.origin.max(Origin::Output) };
        let lines = lines.unwrap_or_else(|| vec![Word::unknown()]);
        let mut flow = Flow::text("");
        let left_out = lines.iter().skip(limits::LOOP_VALUES).map(Word::as_str);
        if let Some(text) = left_out.into_iter().find(|text| limits::is_more_than_a_name(text)) {
            self.cut(text);
        }
        for line in lines.iter().take(limits::LOOP_VALUES) {
            let args = program.iter().map(|arg| replaced(arg, placeholder, line, origin));
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
        } else if let Some(words) = self::lines(args.get(..behind).unwrap_or_default(), input) {
            let words = words.iter().take(limits::LOOP_VALUES);
            lines.extend(words.map(|word| word.as_str().to_owned()));
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

/// `xargs bash -c`: the shell gets its code from stdin.
fn is_shell_without_code(program: &[Arg]) -> bool {
    let (Some(shell), Some(last)) = (program.first(), program.last()) else { return false };
    let name = shell.word.as_str().rsplit('/').next().unwrap_or_default();
    matches!(super::kinds::kind(name), super::kinds::Kind::Shell)
        && super::remote::is_cluster(last.word.as_str(), 'c')
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

/// The words that are read on stdin: the paths of a list, or the words of a text. None if they are not known.
fn listed(options: &[Arg], input: &Flow) -> Option<Vec<Word>> {
    if !input.items.is_empty() || separator(options).is_some() {
        return lines(options, input);
    }
    let text = input.text.as_deref()?;
    let words = text.split_whitespace().take(limits::WORDS);
    Some(words.map(|word| Word::literal(word.trim_matches(['\'', '"']))).collect())
}

/// The lines that are read on stdin, or what else the separator splits.
fn lines(options: &[Arg], input: &Flow) -> Option<Vec<Word>> {
    if !input.items.is_empty() {
        return Some(input.items.clone());
    }
    let separator = separator(options).unwrap_or('\n');
    let lines = input.text.as_deref()?.split(separator).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty()).take(limits::WORDS);
    Some(lines.map(Word::literal).collect())
}

/// What separates the words if not blanks: `-0`, `-d '\n'`.
fn separator(options: &[Arg]) -> Option<char> {
    let mut words = options.iter().map(|arg| arg.word.as_str());
    while let Some(word) = words.next() {
        let value = match word {
            "--null" => return Some('\0'),
            "-d" | "--delimiter" => words.next()?,
            _ => match word.strip_prefix("--delimiter=").or_else(|| word.strip_prefix("-d")) {
                Some(value) => value,
                None if is_null_cluster(word) => return Some('\0'),
                None => continue,
            },
        };
        return match value {
            "\\n" => Some('\n'),
            "\\0" => Some('\0'),
            "\\t" => Some('\t'),
            _ => value.chars().next(),
        };
    }
    None
}

/// `-0`, `-0r`, `-r0`.
fn is_null_cluster(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|letters| {
        letters.contains('0')
            && letters.chars().all(|c| matches!(c, '0' | 'r' | 't' | 'p' | 'x' | 'o'))
    })
}

/// An argument with the placeholder filled in.
fn replaced(arg: &Arg, placeholder: &str, value: &Word, origin: Origin) -> Arg {
    if placeholder.is_empty() || !arg.word.as_str().contains(placeholder) {
        return arg.clone();
    }
    let text = arg.word.as_str().replace(placeholder, value.as_str());
    let word = Word::new(text, arg.word.is_glob() || value.is_glob());
    Arg { word, origin: origin.max(arg.origin), stream: false }
}
