//! `env`, and programs that run others as another user: `sudo`, `doas`, `pkexec`, `run0`, `su`, `runuser`.

use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::syntax::split_assignment;
use super::super::view::Directory;
use super::super::word::Word;
use super::options;
use super::shells::CodeRun;

const SUDO_VALUES: &[&str] = &[
    "-u",
    "-g",
    "-h",
    "-p",
    "-C",
    "-D",
    "-R",
    "-T",
    "-U",
    "-r",
    "-t",
    "-a",
    "-c",
    "--user",
    "--group",
    "--host",
    "--prompt",
    "--chdir",
    "--chroot",
    "--command-timeout",
    "--other-user",
    "--role",
    "--type",
    "--close-from",
    "--auth-type",
];

impl Follower<'_> {
    pub(super) fn env(&mut self, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let mut inner = call.with(Vec::new());
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let text = arg.word.as_str();
            at += 1;
            match text {
                "-u" | "--unset" => at += 1,
                "-C" | "--chdir" => {
                    inner.directory = entered(&call.directory, args.get(at));
                    at += 1;
                }
                "-S" | "--split-string" => return self.env_split(args.get(at..), &inner, input),
                _ if text.starts_with("-S") => {
                    let mut words = args.get(at - 1..).unwrap_or_default().to_vec();
                    if let Some(first) = words.first_mut() {
                        first.word = Word::literal(text.get(2..).unwrap_or_default());
                    }
                    return self.env_split(Some(&words), &inner, input);
                }
                _ if text.starts_with('-') => {
                    if let Some(target) = text.strip_prefix("--chdir=") {
                        let target = Arg { word: Word::literal(target), ..Arg::default() };
                        inner.directory = entered(&call.directory, Some(&target));
                    }
                }
                _ => match split_assignment(text) {
                    Some((name, _, _, value)) => {
                        let value = Word::literal(value);
                        self.run_variable(name, &Arg { word: value.clone(), ..arg.clone() });
                        inner.env.push((name.to_owned(), value));
                    }
                    None => {
                        inner.args = args.get(at - 1..).unwrap_or_default().to_vec();
                        return self.launch(inner, input);
                    }
                },
            }
        }
        Flow::unknown(Origin::Output)
    }

    /// `env -S 'program and arguments' more`.
    fn env_split(&mut self, args: Option<&[Arg]>, inner: &Call, input: &Flow) -> Flow {
        let (line, _) = options::joined(args.unwrap_or_default());
        self.in_subshell(|follower| {
            follower.scope.directory = inner.directory.clone();
            follower.run_text(&line, input)
        })
    }

    pub(super) fn sudo(&mut self, name: &str, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let mut behind = options::leading(args, SUDO_VALUES);
        let mut inner = call.with(Vec::new());
        inner.privileged = true;
        let leading = args.get(..behind).unwrap_or_default();
        if let Some(target) = options::value(leading, &["-D", "--chdir"]) {
            inner.directory = entered(&call.directory, Some(target));
        }
        while let Some((variable, _, _, value)) =
            args.get(behind).and_then(|arg| split_assignment(arg.word.as_str()))
        {
            inner.env.push((variable.to_owned(), Word::literal(value)));
            behind += 1;
        }
        let starts_shell = name != "pkexec"
            && leading
                .iter()
                .any(|arg| matches!(arg.word.as_str(), "-s" | "-i" | "--shell" | "--login"));
        inner.args = args.get(behind..).unwrap_or_default().to_vec();
        if starts_shell {
            let (line, origin) = options::joined(&inner.args);
            if line.is_empty() {
                return self.shell_stdin(index, &inner, input);
            }
            return self.run_code(CodeRun::new(index, &line, origin), &inner, input);
        }
        if inner.args.is_empty() {
            return Flow::unknown(Origin::Output);
        }
        self.launch(inner, input)
    }

    /// `su user -c 'line'`, `runuser -u user program`.
    pub(super) fn su(&mut self, name: &str, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let mut inner = call.with(Vec::new());
        inner.privileged = true;
        if let Some(line) = options::value(args, &["-c", "--command", "--session-command"]) {
            return self.run_code(CodeRun::of(index, line), &inner, input);
        }
        if let Some(line) = options::joined_value(args, "--command") {
            return self.run_code(CodeRun::new(index, line, Origin::Line), &inner, input);
        }
        let behind =
            options::leading(args, &["-u", "-g", "-G", "-s", "--user", "--group", "--shell"]);
        if name == "runuser"
            && behind < args.len()
            && options::value(args, &["-u", "--user"]).is_some()
        {
            inner.args = args.get(behind..).unwrap_or_default().to_vec();
            return self.launch(inner, input);
        }
        self.shell_stdin(index, &inner, input)
    }
}

/// The directory behind an option such as `-C`.
fn entered(from: &Directory, target: Option<&Arg>) -> Directory {
    match target {
        Some(arg) if arg.word.is_known() => super::super::follow::join(from, arg.word.as_str()),
        Some(_) | None => Directory::Unknown,
    }
}
