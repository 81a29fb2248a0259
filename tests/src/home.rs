//! A temporary home and the real `hookbus` in it. Dropping the home ends the daemon that its hooks started.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::agents::run_at_terminal;

/// How long [`wait_until`] waits. Nothing here takes this long.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// A home for one test.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    /// `HOOKBUS_DAEMON` for the hooks of this home.
    mode: &'static str,
    program: PathBuf,
}

/// A daemon that a test started; killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
}

/// The result of a process, usually of `hookbus hook`.
#[derive(Debug)]
pub struct HookOutput {
    /// Its exit code.
    pub exit: Option<i32>,
    /// Its stdout, which belongs to the agent.
    pub stdout: String,
    /// Its stderr, which a hook leaves empty.
    pub stderr: String,
}

impl Home {
    /// An empty home; hooks handle their events by themselves.
    pub fn new() -> Self {
        Self::with_daemon("off")
    }

    /// An empty home with this `HOOKBUS_DAEMON`.
    pub fn with_daemon(mode: &'static str) -> Self {
        let folder = tempfile::Builder::new().prefix("hookbus-test-").tempdir();
        let folder = folder.expect("a temporary directory");
        Self { folder, mode, program: binary() }
    }

    /// A home whose `hookbus` is not older than the test. A daemon exits when a newer client calls, and
    /// a test that calls the socket itself would count as one.
    pub fn with_new_binary(mode: &'static str) -> Self {
        let mut home = Self::with_daemon(mode);
        let copy = home.folder.path().join("hookbus");
        fs::copy(&home.program, &copy).expect("a copy");
        home.program = copy;
        home
    }

    /// A home with these hooks.
    pub fn with_hooks(yaml: &str) -> Self {
        let home = Self::new();
        home.write_hooks(yaml);
        home
    }

    /// The directory that `HOOKBUS_HOME` names.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The working directory for agents and commands, beside the home.
    pub fn work(&self) -> PathBuf {
        let work = self.folder.path().join("work");
        fs::create_dir_all(&work).expect("a working directory");
        work
    }

    /// Writes `hookbus.yaml` with `trust: home`, so that nothing needs an approval.
    pub fn write_hooks(&self, yaml: &str) {
        let text = match yaml.trim_start().strip_prefix('{') {
            _ if yaml.contains("trust:") => yaml.to_owned(),
            Some(rest) => format!("{{trust: home, {rest}"),
            None => format!("{yaml}\ntrust: home\n"),
        };
        self.write_hooks_file(&text);
    }

    /// Writes `hookbus.yaml` with exactly this text.
    pub fn write_hooks_file(&self, text: &str) {
        fs::create_dir_all(self.path()).expect("a home");
        fs::write(self.path().join("hookbus.yaml"), text).expect("a hooks file");
    }

    /// Writes `daemon:` into `hookbus.yaml`, for calls that name their home and so heed no variable.
    pub fn set_daemon_mode(&self, mode: &str) {
        let text = fs::read_to_string(self.path().join("hookbus.yaml")).unwrap_or_default();
        if mode != "auto" && !text.contains("daemon:") {
            self.write_hooks_file(&match text.trim_start().strip_prefix('{') {
                Some(rest) => format!("{{daemon: {mode}, {rest}"),
                None => format!("{text}\ndaemon: {mode}\n"),
            });
        }
    }

    /// Writes an executable script outside of the home; returns its path.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        write_executable(&path, text);
        path_text(&path)
    }

    /// `hookbus` with this home, ready to be started.
    pub fn command<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        self.in_home(Command::new(&self.program), arguments)
    }

    /// The same, to be run at a terminal that belongs to it alone, as a user's shell runs it.
    pub fn command_at_terminal<I: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = I>,
    ) -> Command {
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(&self.program);
        self.in_home(command, arguments)
    }

    fn in_home<I: AsRef<OsStr>>(
        &self,
        mut command: Command,
        arguments: impl IntoIterator<Item = I>,
    ) -> Command {
        command.args(arguments);
        let has_word = |word: &str| command.get_args().any(|given| given == word);
        if has_word("connect") && !has_word("man") {
            command.arg("--allow-temporary-home"); // every home of a test is temporary
        }
        command
            .current_dir(self.work())
            .env("HOOKBUS_HOME", self.path())
            .env("HOOKBUS_DAEMON", self.mode)
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("NO_COLOR", "1")
            .env_remove("HERMES_SESSION_ID")
            .env_remove("GEMINI_SESSION_ID");
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().expect("hookbus runs")
    }

    /// Runs a command that must succeed; returns its stdout.
    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "hookbus {arguments:?} failed: {stderr}");
        String::from_utf8(output.stdout).expect("hookbus prints text")
    }

    /// Runs a command that prints JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).expect("hookbus prints JSON")
    }

    /// Runs `hookbus hook` with this payload.
    pub fn hook(&self, agent: &str, payload: impl AsRef<[u8]>) -> HookOutput {
        feed(self.command(["hook", agent]), payload.as_ref())
    }

    /// Runs `hookbus hook` with this payload; returns the JSON that it prints, `Null` if it prints nothing.
    pub fn answer(&self, agent: &str, payload: &Value) -> Value {
        let output = self.hook(agent, payload.to_string());
        assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""), "a hook never fails");
        match output.stdout.as_str() {
            "" => Value::Null,
            answer => serde_json::from_str(answer).expect("an answer is JSON"),
        }
    }

    /// The rows of the log that match, as `hookbus log --json` prints them.
    pub fn log(&self, filters: &[&str]) -> Vec<Value> {
        let text = self.text(&[&["log", "--json"], filters].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
    }

    /// The decisions in the log, oldest first.
    pub fn decisions(&self) -> Vec<Value> {
        self.log(&["--kind", "decision"]).into_iter().map(|row| row["payload"].clone()).collect()
    }

    /// The last decision in the log.
    pub fn last_decision(&self) -> Value {
        self.decisions().pop().expect("a decision")
    }

    /// Approves everything that waits for an approval.
    pub fn approve(&self) {
        let (exit, screen) = self.approve_with(&[]);
        assert_eq!(exit, Some(0), "{screen}");
    }

    /// Runs `hookbus hooks approve --accept-hooks` at a terminal; returns its exit code and the screen.
    pub fn approve_with(&self, options: &[&str]) -> (Option<i32>, String) {
        let command =
            self.command_at_terminal([&["hooks", "approve", "--accept-hooks"], options].concat());
        run_at_terminal(command, &[])
    }

    /// Starts a daemon and waits until it answers.
    pub fn serve(&self) -> Daemon {
        self.serve_with(&[])
    }

    /// The same with more options.
    pub fn serve_with(&self, options: &[&str]) -> Daemon {
        let child = self
            .command([&["serve"], options].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hookbus serve starts");
        let daemon = Daemon { child };
        wait_until("the daemon answers", || self.run(&["status"]).status.success());
        daemon
    }

    /// Whether a daemon answers.
    pub fn has_daemon(&self) -> bool {
        self.run(&["status"]).status.success()
    }

    /// Whether `hookbus verify` finds the hash chain intact.
    pub fn is_sound(&self) -> bool {
        self.run(&["verify"]).status.success()
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A daemon that a hook started in the background belongs to this home.
        if self.mode == "auto" {
            drop(self.run(&["stop"]));
        }
    }
}

impl Daemon {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGKILL and waits for the exit.
    pub fn kill(&mut self) {
        self.child.kill().expect("our child");
        self.child.wait().expect("our child");
    }

    /// Whether it has exited.
    pub fn has_exited(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_some()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !self.has_exited() {
            self.kill();
        }
    }
}

/// Runs a command with this stdin.
pub fn feed(mut command: Command, stdin: &[u8]) -> HookOutput {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("hookbus starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let bytes = stdin.to_vec();
    // In its own thread: a payload larger than the pipe blocks the writer until the child reads it.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
    let output = child.wait_with_output().expect("hookbus ends");
    writer.join().expect("the payload is written");
    HookOutput {
        exit: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Waits until the condition holds; fails the test after a minute.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WAIT_LIMIT, "timed out waiting until {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Whether this process runs; a zombie does not count.
pub fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// The `hookbus` that was built with these tests: `HOOKBUS_TEST_BINARY`, or beside them.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("HOOKBUS_TEST_BINARY") {
        return PathBuf::from(path);
    }
    let tests = std::env::current_exe().expect("a test knows its own file");
    let binary = tests.ancestors().nth(2).map(|profile| profile.join("hookbus"));
    let binary = binary.filter(|path| path.is_file());
    binary.unwrap_or_else(|| panic!("hookbus is not built; run tests/run"))
}

/// Writes an executable, and creates its directory.
pub fn write_executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("an executable");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("an executable");
}

/// A path as text, for hooks files, scripts and arguments.
pub fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Every file and directory below `folder`, with its bytes.
pub fn everything(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        if next.is_dir() {
            let entries = fs::read_dir(&next).expect("a readable folder");
            waiting.extend(entries.map(|entry| entry.expect("an entry").path()));
            found.insert(next, None);
        } else {
            let bytes = fs::read(&next).expect("a readable file");
            found.insert(next, Some(bytes));
        }
    }
    found
}
