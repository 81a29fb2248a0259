//! The files that a command line names directly: its program if that is a path, the script after an
//! interpreter, and every other word that is a script. What these import or run, programs on the PATH, and
//! what a shell line reaches through variables (other than `$HOME`), `cd` or `eval` are not found.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::caller::Caller;
use crate::exec::{has_script_ending, is_path};
use crate::sys::fs::may_execute;

/// Programs whose first argument is a script.
const INTERPRETERS: [&str; 16] = [
    "bash", "bun", "dash", "deno", "fish", "ksh", "node", "perl", "php", "pypy", "python", "ruby",
    "sh", "tsx", "uv", "zsh",
];

/// Those whose first argument is a subcommand and not a file, unless it looks like one.
const WITH_SUBCOMMANDS: [&str; 3] = ["bun", "deno", "uv"];

/// Programs here belong to the system and change with its updates, so approvals do not cover them.
const SYSTEM_FOLDERS: [&str; 7] =
    ["/usr/bin/", "/usr/sbin/", "/usr/lib/", "/bin/", "/sbin/", "/nix/store/", "/opt/homebrew/"];

/// The files that a command line names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptPaths {
    /// Those that exist, in the order of the words.
    pub(crate) files: Vec<PathBuf>,
    /// The program or script, if it does not exist.
    pub(crate) missing: Option<PathBuf>,
    /// The program, if it exists and may not be executed. A script after an interpreter needs no permission for that.
    pub(super) not_executable: Option<PathBuf>,
}

/// The files that `words` name, for a client whose working directory is `caller.cwd`.
pub(crate) fn script_paths(words: &[OsString], caller: &Caller) -> ScriptPaths {
    // Agents run hooks by `bash -c '…'`: look at the command inside.
    let inner = match words {
        [shell, flag, line] if is_shell(shell) && flag == "-c" => {
            let inner = line.to_str().and_then(shlex::split).unwrap_or_default();
            inner.into_iter().map(|word| caller.expand_home(with_tilde(word))).collect()
        }
        [..] => words.to_vec(),
    };
    let mut paths = ScriptPaths::default();
    let Some((program, arguments)) = inner.split_first() else { return paths };
    // Without `.` components, which would only confuse the user who is asked.
    let resolve = |word: &OsStr| -> PathBuf { caller.cwd.join(word).components().collect() };
    let name = interpreter_name(program);
    let script = name.as_ref().and_then(|_| first_operand(arguments));
    // `bash guard` runs the file `guard` of the working directory, if there is one.
    let takes_bare_names = name.is_some_and(|name| !WITH_SUBCOMMANDS.contains(&name.as_str()));
    let bare = arguments.first().filter(|_| takes_bare_names && script.is_none());
    if let Some(file) = bare.map(|word| resolve(word)).filter(|file| file.is_file()) {
        paths.add(file);
    }
    for word in Some(program).filter(|program| is_path(program)).into_iter().chain(script) {
        paths.add_main(resolve(word), is_literal(word));
    }
    let program = Some(program).filter(|program| is_path(program)).map(|program| resolve(program));
    paths.not_executable = program.filter(|file| file.is_file() && !may_execute(file));
    for word in arguments {
        let path = resolve(word);
        if path.is_file() && (has_script_ending(word) || is_path(word) && is_executable(&path)) {
            paths.add(path);
        }
    }
    paths
}

impl ScriptPaths {
    fn add(&mut self, path: PathBuf) {
        if !is_of_system(&path) && !self.files.contains(&path) {
            self.files.push(path);
        }
    }

    /// Adds a file that must exist for the command to work. What a variable stands for is not known here, so
    /// only a literal path can be missing.
    fn add_main(&mut self, path: PathBuf, is_literal: bool) {
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => self.add(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_literal => {
                self.missing.get_or_insert(path);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// The script of an interpreter: its first argument, if that looks like a file. An option before it may take
/// a value or hold the code itself, so then there is none.
fn first_operand(arguments: &[OsString]) -> Option<&OsString> {
    let first = arguments.first()?;
    let is_option = first.as_encoded_bytes().starts_with(b"-");
    (!is_option && (has_script_ending(first) || is_path(first))).then_some(first)
}

/// Whether a word is a path as it stands: not a URL, and nothing that a shell or a template replaces.
fn is_literal(word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    !text.contains(['$', '`', '*', '?', '{', '@']) && !text.contains("://")
}

/// `$HOME/x` as `~/x`.
fn with_tilde(word: String) -> String {
    let rest = word.strip_prefix("$HOME/").or_else(|| word.strip_prefix("${HOME}/"));
    rest.map(|rest| format!("~/{rest}")).unwrap_or(word)
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

fn interpreter_name(program: &OsStr) -> Option<String> {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    // `python3.11` is `python`.
    let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.contains(&name).then(|| name.to_owned())
}

fn is_shell(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "bash" || name == "sh")
}

fn is_of_system(file: &Path) -> bool {
    let is_in = |file: &Path| SYSTEM_FOLDERS.iter().any(|folder| file.starts_with(folder));
    // `/usr/bin/../../home/x` is not of the system; a link to the system's Python is.
    let is_link = || fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_symlink());
    let leads_away = file.components().any(|part| part == Component::ParentDir);
    let real = if leads_away || is_link() { file.canonicalize().ok() } else { None };
    is_in(real.as_deref().unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts() -> (tempfile::TempDir, Caller) {
        let folder = tempfile::tempdir().expect("a directory");
        for name in ["p.sh", "policy.py", "notes.txt", "test"] {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let cwd = folder.path().to_owned();
        let env = vec![("HOME".into(), cwd.clone().into_os_string())];
        (folder, Caller { cwd, env, ..Caller::default() })
    }

    fn named(line: &str, caller: &Caller) -> (Vec<String>, Option<String>) {
        let words = shlex::split(line).expect("words").into_iter().map(OsString::from);
        let paths = script_paths(&words.collect::<Vec<_>>(), caller);
        let name =
            |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (paths.files.iter().map(name).collect(), paths.missing.as_ref().map(name))
    }

    #[test]
    fn files_that_are_named_directly_are_found() {
        let (_folder, caller) = scripts();
        for (line, files) in [
            ("./p.sh", vec!["p.sh"]),
            ("sh p.sh --log notes.txt", vec!["p.sh"]),
            ("python3.11 policy.py ./p.sh", vec!["policy.py", "p.sh"]),
            ("bash -c './p.sh --strict'", vec!["p.sh"]),
            ("bash -c '~/p.sh'", vec!["p.sh"]),
            ("bash -c '\"$HOME\"/p.sh ./notes.txt'", vec!["p.sh"]),
            ("/usr/bin/env policy.py", vec!["policy.py"]),
            ("bash test", vec!["test"]),
            ("bash -c 'sh test --strict'", vec!["test"]),
            ("sh nothing", vec![]),
            ("uv test", vec![]),
            ("python3 -m test", vec![]),
            ("echo test", vec![]),
            ("jq . notes.txt", vec![]),
            ("true", vec![]),
            ("", vec![]),
        ] {
            let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
            assert_eq!(named(line, &caller), (files, None), "{line}");
        }
    }

    #[test]
    fn only_a_program_or_its_script_can_be_missing() {
        let (_folder, caller) = scripts();
        for line in ["./gone.py", "python3 gone.py", "bash -c './gone.py'", "sh ./gone.py p.sh"] {
            assert_eq!(named(line, &caller).1.as_deref(), Some("gone.py"), "{line}");
        }
        for line in [
            "python3 policy.py gone.py",
            "python3 -c pass gone.py",
            "python3 {script}.py",
            "deno https://example.org/gone.ts",
            "jq . gone.py",
            "sh -c 'python3 $UNKNOWN/gone.py'",
            "sh -c '$UNKNOWN/gone.py'",
            "bash -c '/opt/*/gone.py'",
        ] {
            assert_eq!(named(line, &caller).1, None, "{line}");
        }
    }
}
