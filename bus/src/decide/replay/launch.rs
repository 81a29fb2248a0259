//! Launching a recorded command in a replay: it runs in the sandbox, but its program and script are looked up
//! in the recorded working directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::super::plan::Plan;
use super::shell_words::simple_commands;
use crate::caller::Caller;
use crate::config::{Action, Hook};
use crate::event::Agent;
use crate::exec::{is_path, script_word};

/// What a hook would run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandPreview {
    /// The command line, or the directory of plugins, with resolved paths.
    pub line: String,
    /// Variables that its entry sets.
    pub env: Vec<(String, String)>,
}

impl CommandPreview {
    /// What `hook` would run in a replay of an event of `agent` from `caller`.
    pub fn new(plan: &Plan<'_>, hook: &Hook, agent: Agent, caller: &Caller) -> Self {
        let base = &plan.active(hook).file.base;
        match &hook.action {
            Action::Command(command) => {
                let words = hook.dialect(agent).argv(&command.text, caller, base);
                let words = words.map(|it| in_original_folder(it, caller)).unwrap_or_default();
                let line = match words.as_slice() {
                    [] => command.text.clone(),
                    [bash, flag, line] if bash == "bash" && flag == "-c" => {
                        line.to_string_lossy().into_owned()
                    }
                    words => {
                        let words: Vec<_> = words.iter().map(|it| it.to_string_lossy()).collect();
                        shlex::try_join(words.iter().map(AsRef::as_ref))
                            .unwrap_or_else(|_| words.join(" "))
                    }
                };
                Self { line, env: command.env.clone() }
            }
            Action::Python(python) => {
                let folder = caller.resolve(&python.folder, base);
                Self { line: folder.to_string_lossy().into_owned(), env: Vec::new() }
            }
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Analytics(_)
            | Action::Broken(_)
            | Action::Unapproved { .. } => Self { line: String::new(), env: Vec::new() },
        }
    }
}

/// The same words, with a program and script that are relative to the recorded working directory given by
/// their whole path. Other words stay as they are.
pub(in super::super) fn in_original_folder(words: Vec<OsString>, caller: &Caller) -> Vec<OsString> {
    match words.as_slice() {
        [bash, flag, line] if bash == "bash" && flag == "-c" => {
            let moved = line.to_str().map(|line| line_in_original_folder(line, caller).into());
            vec![bash.clone(), flag.clone(), moved.unwrap_or_else(|| line.clone())]
        }
        [..] => {
            let absolute = absolute_words(&words, caller);
            let replace = |(at, word): (usize, OsString)| {
                absolute.iter().find(|(index, _)| *index == at).map_or(word, |(_, it)| it.clone())
            };
            words.into_iter().enumerate().map(replace).collect()
        }
    }
}

/// The words that are a program or a script, by index, with their whole path.
fn absolute_words(words: &[OsString], caller: &Caller) -> Vec<(usize, OsString)> {
    // A bare name is a program on the PATH.
    let program = words.first().filter(|word| is_path(word)).map(|_| 0);
    let script = script_word(words);
    let mut indexes: Vec<usize> = program.into_iter().chain(script).collect();
    indexes.dedup();
    let absolute = |at: usize| {
        let word =
            words.get(at).filter(|word| !word.is_empty() && Path::new(word).is_relative())?;
        let path: PathBuf = caller.cwd.join(word).components().collect();
        path.is_file().then(|| (at, path.into_os_string()))
    };
    indexes.into_iter().filter_map(absolute).collect()
}

fn line_in_original_folder(line: &str, caller: &Caller) -> String {
    let mut changed = line.to_owned();
    // From the end, so that earlier ranges stay valid.
    for command in simple_commands(line).into_iter().rev() {
        let (words, ranges): (Vec<OsString>, Vec<_>) =
            command.into_iter().map(|(word, range)| (OsString::from(word), range)).unzip();
        let mut absolute = absolute_words(&words, caller);
        absolute.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        for (at, path) in absolute {
            // A path that is not UTF-8 cannot be put into a line.
            let Some(path) = path.to_str() else { continue };
            let quoted = shlex::try_quote(path).map_or_else(|_| path.to_owned(), String::from);
            if let Some(range) = ranges.get(at) {
                changed.replace_range(range.clone(), &quoted);
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_programs_are_found_in_the_recorded_directory() {
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(folder.path().join("hooks")).expect("a directory");
        std::fs::write(folder.path().join("hooks/a.py"), "").expect("a script");
        let script = folder.path().join("hooks/a.py").to_string_lossy().into_owned();
        let caller = Caller { cwd: folder.path().to_owned(), ..Caller::default() };
        let moved = |words: &[&str]| {
            let moved = in_original_folder(words.iter().map(OsString::from).collect(), &caller);
            moved.into_iter().map(|word| word.into_string().expect("text")).collect::<Vec<_>>()
        };
        assert_eq!(moved(&["python3", "hooks/a.py", "b/c"]), ["python3", &script, "b/c"]);
        let line = moved(&["bash", "-c", "python3 hooks/a.py || true"]);
        assert_eq!(line, ["bash", "-c", &format!("python3 {script} || true")]);
        assert_eq!(moved(&["/bin/sh", "-c", "x"]), ["/bin/sh", "-c", "x"]);
        assert_eq!(moved(&["hooks/a.py", "hooks/a.py"]), [&script, "hooks/a.py"]);
        assert_eq!(moved(&["true", "hooks/a"]), ["true", "hooks/a"]);
        let line = moved(&["bash", "-c", "echo xhooks/a.py; \"hooks/a.py\" hooks/a.py"]);
        assert_eq!(line, ["bash", "-c", &format!("echo xhooks/a.py; {script} hooks/a.py")]);
    }
}
