//! Wrappers whose program stands in a place of its own, or whose operands are shell lines: `capsh`, `setarch`, `sg`,
//! `faketime`, `hyperfine`, queues.

use super::super::follow::{Arg, Call, Flow, Follower};
use super::super::word::Word;
use super::options;
use super::shells::CodeRun;

impl Follower<'_> {
    /// Wrappers whose program stands in a place of its own, or whose operands are shell lines.
    pub(super) fn odd_wrapper(
        &mut self,
        name: &str,
        index: usize,
        call: &Call,
        input: &Flow,
    ) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let position = |word: &str| args.iter().position(|arg| arg.word.as_str() == word);
        let behind = |at: usize| args.get(at + 1..).unwrap_or_default();
        let bash = || Arg { word: Word::literal("bash"), ..Arg::default() };
        let inner: Vec<Arg> = match name {
            // The words behind `--` are arguments of bash, those behind `==` of capsh again.
            "capsh" => match (position("--"), position("==")) {
                (Some(at), None) => std::iter::once(bash()).chain(behind(at).to_vec()).collect(),
                (_, Some(at)) => call.args.iter().take(1).chain(behind(at)).cloned().collect(),
                (None, None) => Vec::new(),
            },
            // `setarch [architecture] [options] program`
            "setarch" => {
                let from = options::leading(args, &[]);
                let named = args.get(from).is_some_and(|arg| is_architecture(arg.word.as_str()));
                let rest = args.get(from + usize::from(named)..).unwrap_or_default();
                rest.get(options::leading(rest, &[])..).unwrap_or_default().to_vec()
            }
            // `faketime [-f] time program`
            "faketime" => {
                let flags = args.iter().take_while(|arg| {
                    matches!(arg.word.as_str(), "-f" | "-m" | "--exclude-monotonic")
                });
                behind(flags.count()).to_vec()
            }
            "sg" | "newgrp" => {
                let line = args.iter().skip(1).find(|arg| !arg.word.as_str().starts_with('-'));
                std::iter::once(bash())
                    .chain(line.map(|_| Arg { word: Word::literal("-c"), ..Arg::default() }))
                    .chain(line.cloned())
                    .filter(|_| line.is_some())
                    .collect()
            }
            "hyperfine" => {
                for line in hyperfine_lines(args) {
                    self.run_code(CodeRun::of(index, line), call, &Flow::default());
                }
                Vec::new()
            }
            // A subcommand, then the program, most of the time behind `--`.
            _ => {
                let starts = args.first().is_some_and(|arg| {
                    matches!(arg.word.as_str(), "add" | "run" | "record" | "action")
                });
                let rest = behind(0);
                let from = options::leading(rest, &["-g", "--group", "-l", "--label", "-d", "-n"]);
                match rest.get(from..).unwrap_or_default() {
                    [line] if starts => {
                        return self.run_code(CodeRun::of(index, line), call, input);
                    }
                    rest if starts => rest.to_vec(),
                    _ => Vec::new(),
                }
            }
        };
        if inner.is_empty() {
            return self.output(index, input);
        }
        self.launch(call.with(inner), input)
    }
}

fn is_architecture(word: &str) -> bool {
    ["linux32", "linux64", "uname26", "i386", "i486", "i586", "i686", "x86_64", "aarch64", "arm64"]
        .contains(&word)
        || ["arm", "ppc", "s390", "mips", "sparc", "parisc", "alpha", "riscv", "ia64"]
            .iter()
            .any(|family| word.starts_with(family))
}

/// The lines that `hyperfine` runs: its operands, and those of `--prepare` and the like.
fn hyperfine_lines(args: &[Arg]) -> Vec<&Arg> {
    const LINES: &[&str] =
        &["-p", "--prepare", "-s", "--setup", "-c", "--cleanup", "-C", "--conclude", "--reference"];
    const VALUES: &[&str] = &[
        "-w",
        "--warmup",
        "-m",
        "--min-runs",
        "-M",
        "--max-runs",
        "-r",
        "--runs",
        "-S",
        "--shell",
        "-u",
        "--time-unit",
        "-n",
        "--command-name",
        "-L",
        "--parameter-list",
        "-P",
        "--parameter-scan",
        "--style",
        "--sort",
        "--output",
        "--input",
        "--export-json",
        "--export-csv",
        "--export-markdown",
        "--export-asciidoc",
    ];
    let mut lines = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.word.as_str();
        if LINES.contains(&text) {
            lines.extend(rest.next());
        } else if VALUES.contains(&text) {
            rest.next();
            if matches!(text, "-L" | "--parameter-list") {
                rest.next();
            }
        } else if !text.starts_with('-') {
            lines.push(arg);
        }
    }
    lines
}
