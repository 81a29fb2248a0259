//! A user who follows a document from its first line to its last, in a scratch home with the real `hookbus` on the PATH.
//! Hooks use no daemon: nothing is left running, and no observer works beside the steps.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;
use tempfile::TempDir;

use super::markdown::{Block, blocks};
use super::transcript::{Step, steps};
use crate::agents::{Act, run_at_terminal};
use crate::home::{binary, feed};

/// How the user's home is called in the output that documents show.
const SHOWN_HOME: &str = "/home/you";

/// Runs one command where the one before it left the directory and the environment. The scratch home is temporary, and
/// `connect` has to be told that this is intended.
const STEP: &str = r#"exec 2>&1
hookbus() { if [ "$1" = connect ]; then set -- "$@" --allow-temporary-home; fi; command hookbus "$@"; }
cd "$(cat "$STATE/directory")" && . "$STATE/environment"
eval "$1"
code=$?
pwd > "$STATE/directory"
export -p > "$STATE/environment"
exit "$code""#;

/// A scratch home and the problems that were found while a document was followed in it.
#[derive(Debug)]
pub struct Walkthrough {
    folder: TempDir,
    problems: Vec<String>,
}

impl Default for Walkthrough {
    /// An empty home.
    fn default() -> Self {
        let folder = tempfile::Builder::new().prefix("hookbus-docs-").tempdir();
        let folder = folder.expect("a place for temporary files");
        for name in ["home", "state", "alone"] {
            fs::create_dir(folder.path().join(name)).expect("a directory");
        }
        let walk = Self { folder, problems: Vec::new() };
        fs::write(walk.state().join("environment"), "").expect("a file");
        fs::write(walk.state().join("directory"), walk.home().as_os_str().as_encoded_bytes())
            .expect("a file");
        walk
    }
}

impl Walkthrough {
    /// Follows a document; gives back what is wrong with its examples.
    pub fn follow(mut self, document: &str) -> Vec<String> {
        for block in blocks(document) {
            self.check(&block);
        }
        self.problems
    }

    /// Runs a command that prepares the home for a document.
    pub fn prepare(&self, command: &str) {
        let (exit, output) = self.run(command, &[]);
        assert_eq!(exit, Some(0), "{command}: {output}");
    }

    fn check(&mut self, block: &Block) {
        let title = block.option("title");
        let is_hooks = title.is_none_or(|path| path.ends_with("hookbus.yaml"));
        let problem = match block.language.as_str() {
            "yaml" if is_hooks => self.check_hooks(&block.text),
            "yaml" => Yaml::load_from_str(&block.text).err().map(|error| error.to_string()),
            "json" => serde_json::from_str::<Value>(&block.text).err().map(|it| it.to_string()),
            "python" => self.check_python(&block.text),
            "console" => return self.check_console(block),
            _ => None,
        };
        if let Some(problem) = problem {
            self.problems.push(format!("line {}: {problem}", block.line));
        }
        if let Some(path) = title {
            self.write(path, &block.text);
        }
    }

    /// A complete `hookbus.yaml`, alone in a home of its own.
    fn check_hooks(&self, text: &str) -> Option<String> {
        let alone = self.folder.path().join("alone");
        fs::write(alone.join("hookbus.yaml"), text).expect("a hooks file");
        let mut command = self.command(&binary());
        let listed = command.args(["hooks", "list", "--json"]).env("HOOKBUS_HOME", &alone).output();
        let listed: Value =
            serde_json::from_slice(&listed.expect("hookbus runs").stdout).expect("JSON");
        let fine = listed["error"].is_null() && listed["problems"] == Value::Array(Vec::new());
        (!fine).then(|| format!("{} {}", listed["error"], listed["problems"]))
    }

    fn check_python(&self, text: &str) -> Option<String> {
        let mut command = self.command(Path::new("python3"));
        command.args(["-c", "import ast, sys; ast.parse(sys.stdin.read())"]);
        let parsed = feed(command, text.as_bytes());
        (parsed.exit != Some(0)).then_some(parsed.stderr)
    }

    fn check_console(&mut self, block: &Block) {
        if block.info.starts_with("no-run: ") {
            return;
        }
        let steps = steps(block.line, &block.text);
        let last_exit = block.option("exit").map_or(Some(0), |code| code.parse().ok());
        for (number, step) in steps.iter().enumerate() {
            let expected = if number + 1 == steps.len() { last_exit } else { Some(0) };
            let (exit, output) = self.run(&step.command, &step.answers());
            let Step { line, command, shown } = step;
            if exit != expected {
                self.problems.push(format!(
                    "line {line}: `{command}` ended with {exit:?}, not {expected:?}:\n{output}"
                ));
            } else if !step.is_shown_as(&output) {
                let shown = shown.join("\n");
                self.problems.push(format!(
                    "line {line}: `{command}` prints\n{output}\nand the document shows\n{shown}\n"
                ));
            }
        }
    }

    /// Runs a command to its end, at a terminal if there is something to answer: its exit code, and all that it printed.
    fn run(&self, command: &str, answers: &[&'static str]) -> (Option<i32>, String) {
        let mut shell = self.command(Path::new("setsid"));
        // At a terminal the shell owns it, as a user's does.
        let needs_terminal = !answers.is_empty() || command.contains("--accept-hooks");
        shell.args(needs_terminal.then_some("--ctty"));
        shell.args([
            "--wait",
            "timeout",
            "--foreground",
            "60",
            "bash",
            "-c",
            STEP,
            "bash",
            command,
        ]);
        let (exit, output) = if needs_terminal {
            let answer = |answer: &'static str| [Act::See("[y/N]"), Act::Type(answer), Act::Enter];
            let acts: Vec<Act<'_>> = answers.iter().flat_map(|it| answer(it)).collect();
            run_at_terminal(shell, &acts)
        } else {
            let output = shell.stdin(Stdio::null()).output().expect("bash runs");
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let home = self.home().to_string_lossy().into_owned();
        (exit, output.replace('\r', "").replace(&home, SHOWN_HOME))
    }

    fn command(&self, program: &Path) -> Command {
        let path = env::var_os("PATH").unwrap_or_default();
        let beside = binary().parent().map(Path::to_path_buf);
        let path = env::join_paths(beside.into_iter().chain(env::split_paths(&path)));
        let mut command = Command::new(program);
        command
            .env_clear()
            .current_dir(self.home())
            .env("PATH", path.expect("a search path"))
            .env("HOME", self.home())
            .env("STATE", self.state())
            .env("TMPDIR", self.state())
            .env("XDG_RUNTIME_DIR", self.state())
            .env("HOOKBUS_DAEMON", "off")
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("TERM", "dumb");
        command
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home().join(path.trim_start_matches("~/"));
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }
}
