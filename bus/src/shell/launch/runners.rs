//! Tools that run a program in an environment: `npx`, `uv run`, `poetry run`, `bundle exec`, `direnv exec`, …

use super::super::follow::{Call, Flow, Follower, Origin};
use super::options;
use super::shells::CodeRun;

/// A tool, its subcommand (empty if it has none), and how many words stand between that and the program.
const TABLE: &[(&str, &str, usize)] = &[
    ("npx", "", 0),
    ("bunx", "", 0),
    ("pnpx", "", 0),
    ("uvx", "", 0),
    ("dotenv", "", 0),
    ("dotenvx", "run", 0),
    ("npm", "exec", 0),
    ("npm", "x", 0),
    ("pnpm", "exec", 0),
    ("pnpm", "dlx", 0),
    ("yarn", "exec", 0),
    ("yarn", "dlx", 0),
    ("bun", "x", 0),
    ("uv", "run", 0),
    ("poetry", "run", 0),
    ("pipenv", "run", 0),
    ("pdm", "run", 0),
    ("hatch", "run", 0),
    ("rye", "run", 0),
    ("pixi", "run", 0),
    ("pipx", "run", 0),
    ("bundle", "exec", 0),
    ("mise", "exec", 0),
    ("mise", "x", 0),
    ("asdf", "exec", 0),
    ("pyenv", "exec", 0),
    ("rbenv", "exec", 0),
    ("nodenv", "exec", 0),
    ("direnv", "exec", 1),
    ("conda", "run", 0),
    ("mamba", "run", 0),
    ("micromamba", "run", 0),
    ("nix", "develop", 0),
    ("nix", "shell", 0),
    ("doppler", "run", 0),
    ("op", "run", 0),
    ("infisical", "run", 0),
    ("aws-vault", "exec", 1),
    ("chamber", "exec", 1),
    ("perf", "record", 0),
    ("perf", "stat", 0),
    ("perf", "trace", 0),
    ("perf", "mem", 1),
    ("perf", "kmem", 1),
    ("perf", "lock", 1),
    ("perf", "sched", 1),
    ("vagrant", "ssh", 0),
    ("rustup", "run", 1),
    ("dotnet", "exec", 0),
    ("composer", "exec", 0),
    ("devbox", "run", 0),
    ("flatpak-spawn", "", 0),
    ("distrobox", "enter", 1),
    ("toolbox", "run", 0),
];

const VALUES: &[&str] = &[
    "-p",
    "--package",
    "-n",
    "--name",
    "--with",
    "--python",
    "--extra",
    "--group",
    "--env-file",
    "--directory",
    "--project",
    "-w",
    "--workspace",
    "--filter",
    "-C",
    "--prefix",
    "-e",
    "-o",
    "-f",
    "--from",
    "--only-group",
    "--with-requirements",
    "--index-url",
    "-P",
    "--config",
    "-m",
    "--module",
];

/// Options of `perf` that take the next word.
const PERF_VALUES: &[&str] = &[
    "-e",
    "--event",
    "-o",
    "--output",
    "-F",
    "-c",
    "-C",
    "-r",
    "--repeat",
    "-I",
    "-D",
    "-m",
    "-x",
    "-G",
    "--call-graph",
    "--freq",
    "--timeout",
    "-u",
];

/// The options of a tool that take the next word.
fn values_of(name: &str) -> &'static [&'static str] {
    if name == "perf" { PERF_VALUES } else { VALUES }
}

/// Whether a program is in the table.
pub(super) fn is_runner(name: &str) -> bool {
    TABLE.iter().any(|(tool, _, _)| *tool == name)
}

impl Follower<'_> {
    pub(super) fn runner(&mut self, name: &str, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let found = TABLE.iter().filter(|(tool, _, _)| *tool == name).find_map(|row| {
            let (_, subcommand, words) = row;
            if subcommand.is_empty() {
                return Some((0, *words));
            }
            let at = options::leading(args, values_of(name));
            let matches = args.get(at).is_some_and(|arg| arg.word.as_str() == *subcommand);
            matches.then_some((at + 1, *words))
        });
        let Some((from, words)) = found else {
            if super::super::code::language(name).is_some() {
                return self.interpreter(name, index, call, input);
            }
            return self.output(index, input);
        };
        let rest = args.get(from..).unwrap_or_default();
        let leading = rest.get(..options::leading(rest, values_of(name)) + 2).unwrap_or(rest);
        if let Some(line) = has_line_option(name)
            .then(|| options::value(leading, &["-c", "--command", "--call"]))
            .flatten()
        {
            if name == "nix" {
                let at = rest.iter().position(|arg| arg.word == line.word).unwrap_or_default();
                return self.launch(call.with(rest.get(at..).unwrap_or_default().to_vec()), input);
            }
            return self.run_code(CodeRun::of(index, line), call, input);
        }
        let dashes = rest.iter().position(|arg| arg.word.as_str() == "--");
        let behind = match dashes {
            Some(dashes) if is_behind_options(name) => dashes + 1,
            Some(_) | None => options::leading(rest, values_of(name)) + words,
        };
        let rest = rest.get(behind..).unwrap_or_default();
        let rest = if rest.first().is_some_and(|arg| arg.word.as_str() == "--") {
            rest.get(1..).unwrap_or_default()
        } else {
            rest
        };
        if rest.is_empty() || name == "nix" {
            return Flow::unknown(Origin::Output);
        }
        self.launch(call.with(rest.to_vec()), input)
    }
}

/// Tools with an option that holds a shell line, or, for `nix`, the program.
fn has_line_option(name: &str) -> bool {
    matches!(name, "npx" | "npm" | "pnpx" | "pnpm" | "nix" | "vagrant")
}

/// Tools whose program always stands behind `--`.
fn is_behind_options(name: &str) -> bool {
    matches!(
        name,
        "mise"
            | "doppler"
            | "op"
            | "aws-vault"
            | "chamber"
            | "infisical"
            | "dotenvx"
            | "dotenv"
            | "distrobox"
    )
}
