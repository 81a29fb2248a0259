//! Options and arguments of programs that hold a shell line: `tar --to-command`, `rsync -e`, `go test -exec`, and
//! scripts of other programs that start one: `psql -c '\! line'`.

use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::word::Word;
use super::shells::CodeRun;
use super::variable_lines::has_variables;
use super::{git_lines, makefiles};

/// A program and its options that hold a shell line.
struct Row {
    names: &'static [&'static str],
    options: &'static [&'static str],
    /// What stands before the line in the value.
    prefixes: &'static [&'static str],
    /// Whether the value holds a line only behind a prefix.
    only_prefixed: bool,
}

const fn lines(names: &'static [&'static str], options: &'static [&'static str]) -> Row {
    Row { names, options, prefixes: &[], only_prefixed: false }
}

const fn prefixed(
    names: &'static [&'static str],
    options: &'static [&'static str],
    prefixes: &'static [&'static str],
) -> Row {
    Row { names, options, prefixes, only_prefixed: true }
}

const TABLE: &[Row] = &[
    prefixed(&["tar", "gtar", "bsdtar"], &["--checkpoint-action"], &["exec="]),
    lines(
        &["tar", "gtar", "bsdtar"],
        &[
            "--to-command",
            "-I",
            "--use-compress-program",
            "--rsh-command",
            "--rsh",
            "-F",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    lines(&["go"], &["-exec", "-toolexec", "--exec", "--toolexec"]),
    lines(&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    prefixed(
        &["ssh", "scp", "sftp", "autossh", "mosh"],
        &["-o"],
        &["ProxyCommand=", "LocalCommand=", "ProxyCommand ", "LocalCommand ", "KnownHostsCommand="],
    ),
    lines(&["scp", "sftp"], &["-S"]),
    lines(&["man"], &["-P", "--pager", "-H", "--html"]),
    lines(&["nodemon"], &["-x", "--exec"]),
    lines(&["zip"], &["-TT", "--unzip-command"]),
    lines(&["tcpdump"], &["-z"]),
    prefixed(
        &["gdb", "lldb"],
        &["-ex", "-iex", "--ex", "-o", "--eval-command", "--one-line"],
        &["!", "shell ", "platform shell ", "make "],
    ),
];

/// Whether the options of a program may hold lines.
pub(super) fn has_lines(name: &str) -> bool {
    TABLE.iter().any(|row| row.names.contains(&name))
        || has_variables(name)
        || matches!(
            name,
            "git"
                | "psql"
                | "mysql"
                | "mariadb"
                | "make"
                | "gmake"
                | "sed"
                | "gsed"
                | "expect"
                | "concurrently"
                | "watchexec"
                | "cargo"
                | "onchange"
                | "chokidar"
                | "powershell"
                | "pwsh"
        )
}

impl Follower<'_> {
    /// Follows the lines in the options of a program.
    pub(super) fn option_lines(&mut self, name: &str, index: usize, call: &Call, input: &Flow) {
        if !has_lines(name) {
            return;
        }
        let args = call.args.get(1..).unwrap_or_default();
        let mut found: Vec<(String, Origin)> = Vec::new();
        for row in TABLE.iter().filter(|row| row.names.contains(&name)) {
            for (value, origin) in values(args, row.options) {
                let behind = row.prefixes.iter().find_map(|prefix| value.strip_prefix(prefix));
                match behind {
                    Some(line) => found.push((line.to_owned(), origin)),
                    None if !row.only_prefixed => found.push((value, origin)),
                    None => {}
                }
            }
        }
        match name {
            "git" => {
                found.extend(git_lines::lines(args));
                found.extend(git_lines::settings(|variable| self.variable_of(variable, call)));
            }
            "less" => {
                let typed = args.iter().filter_map(|arg| {
                    let line = arg.word.as_str().strip_prefix("+!")?;
                    Some((line.to_owned(), arg.origin))
                });
                found.extend(typed);
            }
            "make" | "gmake" => found.extend(self.make_lines(args, input)),
            "sed" | "gsed" => found.extend(self.sed_lines(args, index, call)),
            "psql" | "mysql" | "mariadb" => {
                let text = input.text.iter().map(|text| (text.clone(), input.origin));
                for (code, origin) in
                    values(args, &["-c", "-e", "--command", "--execute"]).into_iter().chain(text)
                {
                    found.extend(client_lines(&code).map(|line| (line, origin)));
                }
            }
            "expect" => {
                let text = input.text.iter().map(|text| (text.clone(), input.origin));
                for (code, origin) in values(args, &["-c"]).into_iter().chain(text) {
                    found.extend(spawned(&code).map(|line| (line, origin)));
                }
            }
            "gdb" | "lldb" => found.extend(debugged(args)),
            "powershell" | "pwsh" => self.powershell(index, args, input),
            _ => found.extend(watched(name, args)),
        }
        found.dedup();
        for (line, origin) in found {
            if !line.trim().is_empty() {
                self.run_code(CodeRun::new(index, line.trim(), origin), call, &Flow::default());
            }
        }
        // A pager that starts itself is followed once.
        if !std::mem::replace(&mut self.in_variable, true) {
            for (line, origin) in self.variable_lines(name, call) {
                let code = CodeRun::new(index, line.trim(), origin);
                self.run_code(code, call, &Flow::unknown(Origin::Output));
            }
            self.in_variable = false;
        }
    }

    fn make_lines(&self, args: &[Arg], input: &Flow) -> Vec<(String, Origin)> {
        let mut found = Vec::new();
        for (code, origin) in values(args, &["--eval", "-E"]) {
            found.extend(makefiles::lines(&code).into_iter().map(|line| (line, origin)));
        }
        let mut files: Vec<String> = values(args, &["-f", "--file", "--makefile"])
            .into_iter()
            .map(|(file, _)| file)
            .collect();
        if files.is_empty() {
            files.extend(["GNUmakefile", "makefile", "Makefile"].map(str::to_owned));
        }
        for file in files {
            let flow = match file.as_str() {
                "-" | "/dev/stdin" => Some(input.clone()),
                path => self.written_flow(&Word::literal(path)),
            };
            if let Some(Flow { text: Some(text), origin, .. }) = flow {
                found.extend(makefiles::lines(&text).into_iter().map(|line| (line, origin)));
            }
        }
        found
    }
}

/// The values of options: `-x v`, `--name v`, `--name=v`, `-name=v`, `-xv`.
pub(super) fn values(args: &[Arg], names: &[&str]) -> Vec<(String, Origin)> {
    let mut found = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.word.as_str();
        if text == "--" {
            break;
        }
        if names.contains(&text) {
            found.extend(rest.next().map(|value| (value.word.as_str().to_owned(), value.origin)));
            continue;
        }
        let joined = names.iter().find_map(|name| {
            let behind = text.strip_prefix(name)?;
            match behind.strip_prefix('=') {
                Some(value) => Some(value),
                None => (name.len() == 2).then_some(behind),
            }
        });
        found.extend(joined.map(|value| (value.to_owned(), arg.origin)));
    }
    found
}

/// `\! line` of a database client, and `… PROGRAM 'line'` of the server.
fn client_lines(code: &str) -> impl Iterator<Item = String> {
    let escaped = code.lines().filter_map(|line| line.split_once("\\!").map(|(_, line)| line));
    let programs = code
        .match_indices("PROGRAM '")
        .chain(code.match_indices("program '"))
        .filter_map(|(at, found)| code.get(at + found.len()..)?.split('\'').next());
    let systems = code.split([';', '\n']).filter_map(|line| line.trim().strip_prefix("system "));
    escaped.chain(systems).chain(programs).take(16).map(|line| line.trim().to_owned())
}

/// What an `expect` script starts.
fn spawned(code: &str) -> impl Iterator<Item = String> {
    code.split([';', '\n', '[', '{']).take(64).filter_map(|statement| {
        let statement = statement.trim();
        // `send "line\r"` types the line into what was started before.
        if let Some(keys) = statement.strip_prefix("send ") {
            let keys = keys.trim_start_matches("-- ").trim().trim_matches('"');
            return Some(keys.replace("\\r", "\n").replace("\\n", "\n"));
        }
        let line =
            ["spawn ", "exec ", "system "].iter().find_map(|name| statement.strip_prefix(name))?;
        Some(line.trim_start_matches("-noecho ").trim_end_matches([']', '}']).to_owned())
    })
}

/// What a debugger starts besides shell lines: the program with the arguments of `run`, and Python code.
fn debugged(args: &[Arg]) -> Vec<(String, Origin)> {
    const COMMANDS: &[&str] =
        &["-ex", "-iex", "--ex", "-o", "--eval-command", "--one-line", "-eval-command"];
    let from = super::options::leading(args, COMMANDS);
    let program = args.get(from).map(|arg| arg.word.as_str());
    let mut found = Vec::new();
    for (command, origin) in values(args, COMMANDS) {
        let behind = |names: &[&str]| {
            let (name, rest) = command.split_once(char::is_whitespace)?;
            names.contains(&name).then(|| rest.trim().to_owned())
        };
        if let Some(code) = behind(&["python", "py", "python-interactive", "pi", "script"]) {
            let quoted = shlex::try_quote(&code).map(|code| format!("python3 -c {code}"));
            found.extend(quoted.ok().map(|line| (line, origin)));
        } else if let (Some(words), Some(program)) = (behind(&["run", "r", "start"]), program) {
            found.push((format!("{program} {words}"), origin));
        }
    }
    found
}

/// Programs that start a line when files change, or several lines at once.
fn watched(name: &str, args: &[Arg]) -> Vec<(String, Origin)> {
    let joined = |args: &[Arg]| {
        let (line, origin) = super::options::joined(args);
        vec![(line, origin)]
    };
    let behind_dashes = args.iter().position(|arg| arg.word.as_str() == "--").map(|at| at + 1);
    match name {
        "concurrently" => {
            let is_line =
                |word: &Word| !word.as_str().starts_with('-') && word.as_str().contains(' ');
            let lines = args.iter().filter(|arg| is_line(&arg.word));
            lines.map(|arg| (arg.word.as_str().to_owned(), arg.origin)).collect()
        }
        "cargo" if args.iter().any(|arg| arg.word.as_str() == "watch") => {
            let own = values(args, &["-x", "--exec"]);
            let own = own.into_iter().map(|(line, origin)| (format!("cargo {line}"), origin));
            values(args, &["-s", "--shell"]).into_iter().chain(own).collect()
        }
        "watchexec" => {
            const VALUES: &[&str] = &[
                "-w",
                "--watch",
                "-e",
                "--exts",
                "-f",
                "--filter",
                "-i",
                "--ignore",
                "-d",
                "--debounce",
                "-s",
                "--signal",
                "--shell",
                "-o",
                "--project-origin",
                "--workdir",
            ];
            let from = behind_dashes.unwrap_or_else(|| super::options::leading(args, VALUES));
            joined(args.get(from..).unwrap_or_default())
        }
        "onchange" => joined(behind_dashes.and_then(|from| args.get(from..)).unwrap_or_default()),
        // `rsync -avze 'line'`
        "rsync" => {
            let is_cluster = |arg: &Arg| {
                let text = arg.word.as_str();
                text.len() > 2 && super::remote::is_cluster(text, 'e') && text.ends_with('e')
            };
            let line = args.iter().position(is_cluster).and_then(|at| args.get(at + 1));
            line.map(|arg| (arg.word.as_str().to_owned(), arg.origin)).into_iter().collect()
        }
        "chokidar" => values(args, &["-c", "--command"]),
        _ => Vec::new(),
    }
}
