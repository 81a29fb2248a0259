//! `ssh` and programs with a shell line in an option: `watch`, `flock`, `script`, `nix-shell`.

use super::super::follow::{Call, Flow, Follower, Origin};
use super::super::view::Directory;
use super::options;
use super::shells::CodeRun;

const SSH_VALUES: &[&str] = &[
    "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-Q",
    "-R", "-S", "-W", "-w", "-B", "-P", "-M",
];

impl Follower<'_> {
    /// The remote shell runs the words behind the host as a line, or what it reads on stdin.
    pub(super) fn ssh(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let host = options::leading(args, SSH_VALUES);
        let rest = args.get(host + 1..).unwrap_or_default();
        let rest = rest.get(options::leading(rest, SSH_VALUES)..).unwrap_or_default();
        let mut inner = call.with(Vec::new());
        inner.directory = Directory::Unknown;
        if rest.is_empty() {
            let no_shell = args.iter().any(|arg| arg.word.as_str() == "-N");
            if !no_shell {
                self.shell_stdin(index, &inner, input);
            }
        } else {
            let (line, origin) = options::joined(rest);
            self.run_code(CodeRun::new(index, &line, origin), &inner, input);
        }
        Flow::unknown(Origin::Output)
    }

    pub(super) fn line_option(
        &mut self,
        name: &str,
        index: usize,
        call: &Call,
        input: &Flow,
    ) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let (line, values, words): (&[&str], &[&str], usize) = match name {
            "flock" => (&["-c", "--command"], &["-w", "-E", "--timeout", "--wait"], 1),
            "script" => {
                (&["-c", "--command"], &["-T", "-O", "-I", "-B", "-t", "-m", "-E", "-o"], 1)
            }
            "nix-shell" => (&["--run", "--command"], &[], usize::MAX),
            "entr" => (&["-s"], &[], 0),
            _ => (&[], &["-n", "--interval", "-q"], 0),
        };
        if let Some(line) = options::value(args, line) {
            return self.run_code(CodeRun::of(index, line), call, input);
        }
        if let Some(joined) = line.iter().find_map(|option| options::joined_value(args, option)) {
            return self.run_code(CodeRun::new(index, joined, Origin::Line), call, input);
        }
        // `script -qc 'line' file`, `entr -rs 'line'`
        let letter = match name {
            "script" => Some('c'),
            "entr" => Some('s'),
            _ => None,
        };
        let clusters = letter
            .and_then(|letter| args.iter().position(|arg| is_cluster(arg.word.as_str(), letter)));
        if let Some(line) = clusters.and_then(|at| args.get(at + 1)) {
            return self.run_code(CodeRun::of(index, line), call, input);
        }
        let behind = options::leading(args, values).saturating_add(words);
        let rest = args.get(behind..).unwrap_or_default();
        if rest.is_empty() {
            return Flow::unknown(Origin::Output);
        }
        if name == "watch" && options::value(args, &["-x", "--exec"]).is_none() {
            let (line, origin) = options::joined(rest);
            return self.run_code(CodeRun::new(index, &line, origin), call, input);
        }
        self.launch(call.with(rest.to_vec()), input)
    }
}

/// Whether short options such as `-qec` hold this one.
pub(super) fn is_cluster(text: &str, letter: char) -> bool {
    text.strip_prefix('-').is_some_and(|letters| {
        !letters.starts_with('-')
            && letters.contains(letter)
            && letters.chars().all(|c| c.is_ascii_alphabetic())
    })
}
