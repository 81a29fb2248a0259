//! A scratch home and the real `hookbus` in it. Everything a home starts is ended by its own id
//! when the home is dropped.

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

/// Nothing here takes this long; whoever waits longer waits in vain.
const PATIENCE: Duration = Duration::from_mins(1);

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
pub struct Served {
    child: Child,
}

/// What a hook said to its agent.
#[derive(Debug)]
pub struct Heard {
    /// Its exit code.
    pub exit: Option<i32>,
    /// Its stdout, which belongs to the agent.
    pub stdout: String,
    /// Its stderr, which should stay empty.
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
        let folder = folder.expect("a place for temporary files");
        Self { folder, mode, program: binary() }
    }

    /// A home whose `hookbus` is not older than the test. A daemon makes room for a newer client, and
    /// a test that calls it by itself would count as one.
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

    /// A directory beside the home, where agents may work.
    pub fn work(&self) -> PathBuf {
        let work = self.folder.path().join("work");
        fs::create_dir_all(&work).expect("a place to work");
        work
    }

    /// Writes `hookbus.yaml`, as somebody who trusts what they write there; consent has tests of its own.
    pub fn write_hooks(&self, yaml: &str) {
        let text = match yaml.trim_start().strip_prefix('{') {
            _ if yaml.contains("trust:") => yaml.to_owned(),
            Some(rest) => format!("{{trust: home, {rest}"),
            None => format!("{yaml}\ntrust: home\n"),
        };
        self.write_hooks_file(&text);
    }

    /// Writes `hookbus.yaml` with this text and nothing else.
    pub fn write_hooks_file(&self, text: &str) {
        fs::create_dir_all(self.path()).expect("a home");
        fs::write(self.path().join("hookbus.yaml"), text).expect("a hooks file");
    }

    /// Writes an executable script outside of the home; gives back its path.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script");
        path.to_string_lossy().into_owned()
    }

    /// `hookbus` with this home; more is up to the test.
    pub fn command<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
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

    /// Runs a verb to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().expect("hookbus runs")
    }

    /// Runs a verb that must succeed; gives back its stdout.
    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "hookbus {arguments:?} failed: {stderr}");
        String::from_utf8(output.stdout).expect("hookbus prints text")
    }

    /// Runs a verb that prints JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).expect("hookbus prints JSON")
    }

    /// An event at the front door.
    pub fn hook(&self, agent: &str, payload: impl AsRef<[u8]>) -> Heard {
        feed(self.command(["hook", agent]), payload.as_ref())
    }

    /// An event at the front door that is answered with JSON; `Null` for silence.
    pub fn answer(&self, agent: &str, payload: &Value) -> Value {
        let heard = self.hook(agent, payload.to_string());
        assert_eq!((heard.exit, heard.stderr.as_str()), (Some(0), ""), "the agent is never harmed");
        match heard.stdout.as_str() {
            "" => Value::Null,
            answer => serde_json::from_str(answer).expect("an answer is JSON"),
        }
    }

    /// The rows of the log that fit, as `hookbus log --json` prints them.
    pub fn log(&self, filters: &[&str]) -> Vec<Value> {
        let text = self.text(&[&["log", "--json"], filters].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
    }

    /// The decisions in the log, oldest first.
    pub fn decisions(&self) -> Vec<Value> {
        self.log(&["--kind", "decision"]).into_iter().map(|row| row["payload"].clone()).collect()
    }

    /// Starts a daemon and waits until it answers.
    pub fn serve(&self) -> Served {
        self.serve_with(&[])
    }

    /// The same with more options.
    pub fn serve_with(&self, options: &[&str]) -> Served {
        let child = self
            .command([&["serve"], options].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hookbus serve starts");
        let served = Served { child };
        wait_until("the daemon answers", || self.run(&["status"]).status.success());
        served
    }

    /// Whether a daemon answers.
    pub fn has_daemon(&self) -> bool {
        self.run(&["status"]).status.success()
    }

    /// Whether the chain is sound.
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

impl Served {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and the funeral.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is ours to wait for");
    }

    /// Whether it has left by itself.
    pub fn has_left(&mut self) -> bool {
        self.child.try_wait().expect("it is ours to ask about").is_some()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !self.has_left() {
            self.kill();
        }
    }
}

/// Runs a command with this on its stdin.
pub fn feed(mut command: Command, stdin: &[u8]) -> Heard {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("hookbus starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let bytes = stdin.to_vec();
    // In its own thread: a large payload does not fit the pipe while nobody reads.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
    let output = child.wait_with_output().expect("hookbus ends");
    writer.join().expect("the payload is written");
    Heard {
        exit: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Waits for something that must come true.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(10));
    }
}

/// The `hookbus` that was built with these tests: `HOOKBUS_TEST_BINARY`, or beside them.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("HOOKBUS_TEST_BINARY") {
        return PathBuf::from(path);
    }
    let tests = std::env::current_exe().expect("a test knows its own file");
    let binary = tests.ancestors().nth(2).map(|profile| profile.join("hookbus"));
    let binary = binary.filter(|path| path.is_file());
    binary.unwrap_or_else(|| panic!("there is no hookbus beside the tests; run tests/run"))
}

/// Where a path leads, for scripts that need it.
pub fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
