//! The environment of an agent decides nothing: agents load the `.env` file of a repository. A call that names its home is
//! not led elsewhere by any variable, the daemon that it starts inherits none, and a home that cannot be opened is told.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use hookbus_tests::agents::{Gemini, Hermes};
use hookbus_tests::consent::approve_in;
use hookbus_tests::home::{Home, HookOutput, binary, feed, path_text, wait_until};
use hookbus_tests::payloads::{gemini_shell, hermes_shell, one};
use hookbus_tests::wiring::{Agent, recorded_events};
use serde_json::{Value, json};

const GUARD: &str = "hooks: { tool.before: [{ name: guard, tool: shell, rule: { when: { command: 'push --force|made' }, block: guarded } }] }";

/// What a hostile repository would put into its `.env` file: another home with a policy of its own, another server for
/// the log, and every other setting.
struct Poison {
    folder: PathBuf,
    server: TcpListener,
}

impl Poison {
    fn in_work_of(home: &Home) -> Self {
        let folder = home.work().join("hostile");
        fs::create_dir_all(&folder).expect("a folder");
        let own = format!(
            "trust: home\nhooks: {{ '*': [{{ command: touch {}/ran }}] }}\n",
            path_text(&folder)
        );
        fs::write(folder.join("hookbus.yaml"), own).expect("hooks");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        server.set_nonblocking(true).expect("a socket");
        Self { folder, server }
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let port = self.server.local_addr().expect("a port").port();
        let folder = path_text(&self.folder);
        vec![
            ("HOOKBUS_HOME", folder.clone()),
            ("HOOKBUS_NATS_URL", format!("nats://127.0.0.1:{port}")),
            ("HOOKBUS_DAEMON", "off".to_owned()),
            ("HOOKBUS_IDLE", "0".to_owned()),
            ("HOOKBUS_ACCEPT_HOOKS", "1".to_owned()),
            ("HOOKBUS_LOG", "trace".to_owned()),
            ("HOOKBUS_REPLAY", "1".to_owned()),
            ("HOOKBUS_OF_A_LATER_VERSION", "1".to_owned()),
            ("XDG_RUNTIME_DIR", folder.clone()),
            ("TMPDIR", folder.clone()),
            ("HOME", folder),
        ]
    }

    /// Whether it had no effect: its hook did not run, its home holds nothing new, and nothing called its server.
    fn is_harmless(&self) -> bool {
        let files = fs::read_dir(&self.folder).expect("a folder").count();
        files == 1 && self.server.accept().is_err()
    }
}

/// `hookbus hook` as `connect` wires it, in a poisoned environment.
fn pinned(home: &Home, agent: &str, options: &[&str], poison: &Poison) -> Command {
    let at = path_text(&home.path());
    let mut command = home.command([&["hook", agent, "--home", &at][..], options].concat());
    command.envs(poison.variables()).env("MARK", "kept");
    command
}

fn answer(command: Command, payload: &Value) -> Value {
    let output = feed(command, payload.to_string().as_bytes());
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
}

/// The lines of an environment that begin with `HOOKBUS_`, each once.
fn variables_of_hookbus(shown: &str) -> BTreeSet<String> {
    shown.lines().filter(|line| line.starts_with("HOOKBUS_")).map(str::to_owned).collect()
}

/// What hookbus itself sets for a hook: the home that it really has.
fn only_the_home(home: &Home) -> BTreeSet<String> {
    BTreeSet::from([format!("HOOKBUS_HOME={}", path_text(&home.path()))])
}

fn push() -> Value {
    hermes_shell("git push --force")
}

// ---- pinned calls ------------------------------------------------------------------------------------

#[test]
fn no_variable_of_an_agent_leads_a_pinned_call_to_another_home() {
    let home = Home::new();
    home.write_hooks(&format!("{GUARD}\ndaemon: running"));
    let poison = Poison::in_work_of(&home);
    let at = path_text(&home.path());
    let blocked = json!({"decision": "block", "reason": "guarded (hookbus rule guard)"});
    for has_daemon in [false, true] {
        let daemon = has_daemon.then(|| home.serve());
        assert_eq!(answer(pinned(&home, "hermes", &[], &poison), &push()), blocked);
        let gemini = gemini_shell("git push --force");
        assert_eq!(answer(pinned(&home, "gemini", &[], &poison), &gemini)["decision"], "deny");
        // Not the form that is parsed without clap.
        let mut before = home.command(["--home", &at, "hook", "hermes"]);
        before.envs(poison.variables());
        assert_eq!(answer(before, &push()), blocked);
        drop(daemon);
    }
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 6);
    let mut status = home.command(["--home", &at, "status", "--json"]);
    let status = status.envs(poison.variables()).output().expect("hookbus runs");
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["log"]["file"], format!("{at}/log.db"), "every verb can be pinned");
    assert!(poison.is_harmless());
}

#[test]
fn the_variables_of_hookbus_do_not_reach_a_hook_and_all_others_do() {
    for has_daemon in [false, true] {
        let home = Home::new();
        let script = home.script("show", "#!/bin/sh\nenv > shown\n");
        home.write_hooks(&format!(
            "daemon: running\nhooks: {{ tool.before: [{{ command: {script} }}] }}"
        ));
        let daemon = has_daemon.then(|| home.serve());
        let poison = Poison::in_work_of(&home);
        assert_eq!(answer(pinned(&home, "hermes", &[], &poison), &push()), Value::Null);
        let shown = fs::read_to_string(home.work().join("shown")).expect("the hook ran");
        assert!(shown.contains("MARK=kept"), "{shown}");
        assert_eq!(variables_of_hookbus(&shown), only_the_home(&home), "{shown}");
        drop(daemon);
    }
}

#[test]
fn the_home_directory_of_an_agents_environment_does_not_switch_a_projects_hooks_off() {
    let home = Home::new();
    home.write_hooks("daemon: running\nhooks: {}");
    let project = home.work().join("project");
    fs::create_dir_all(project.join(".hookbus")).expect("a project");
    fs::write(project.join(".hookbus/hookbus.yaml"), GUARD).expect("hooks");
    approve_in(&home, &project);
    let poison = Poison::in_work_of(&home);
    for has_daemon in [false, true] {
        let daemon = has_daemon.then(|| home.serve());
        let mut command = pinned(&home, "hermes", &[], &poison);
        command.current_dir(&project).env("HOME", &project);
        assert_eq!(
            answer(command, &push())["reason"],
            "guarded (hookbus rule guard)",
            "with a daemon: {has_daemon}"
        );
        drop(daemon);
    }
}

#[test]
fn an_accepting_variable_approves_nothing_in_a_pinned_run() {
    let home = Home::new();
    let script = home.script("guard", "#!/bin/sh\n");
    home.write_hooks_file(&format!("hooks: {{ tool.before: [{{ command: {script} }}] }}\n"));
    let at = path_text(&home.path());
    let mut approve = home.command(["--home", &at, "hooks", "approve"]);
    let output = approve.env("HOOKBUS_ACCEPT_HOOKS", "1").output().expect("hookbus runs");
    assert!(!output.status.success(), "{output:?}");
    assert!(!home.path().join("consent.json").exists());
}

#[test]
fn a_relative_home_is_refused_with_a_sentence() {
    let home = Home::new();
    for words in [&["hook", "hermes", "--home", "bus"][..], &["--home", ".hb", "status"]] {
        let output = feed(home.command(words), b"{}");
        assert_eq!((output.exit, output.stdout.as_str()), (Some(1), ""), "{words:?}");
        assert!(output.stderr.contains("a home is an absolute path"), "{}", output.stderr);
    }
}

#[test]
fn a_bridge_of_an_earlier_version_is_answered() {
    let home = Home::with_hooks(GUARD);
    let id = "0197a0b0c0d07000800000000000000a";
    let words = ["hook", "hermes", "--wire", "bridge", "--id", id, "--deadline", "49.500"];
    assert_eq!(
        answer(home.command(words), &push()),
        json!({"action": "block", "message": "guarded (hookbus rule guard)"}),
        "it names its home by variable"
    );
}

// ---- the daemon that a hook starts ----------------------------------------------------------------------

/// The environment of the daemon of this home.
fn daemon_environment(home: &Home) -> Vec<String> {
    wait_until("the daemon answers", || home.has_daemon());
    let pid = home.json(&["status", "--json"])["daemon"]["pid"].to_string();
    let raw = fs::read(format!("/proc/{pid}/environ")).expect("our own process");
    let text = String::from_utf8(raw).expect("text");
    text.split('\0').filter(|pair| !pair.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_daemon_that_a_hook_started_has_nothing_of_the_agents_environment() {
    for is_pinned in [true, false] {
        let home = Home::with_daemon("auto");
        home.write_hooks(GUARD);
        let poison = Poison::in_work_of(&home);
        let mut command = pinned(&home, "hermes", &[], &poison);
        if !is_pinned {
            command = home.command(["hook", "hermes"]);
            let not_the_home = |name: &str| name != "HOOKBUS_HOME" && name != "HOOKBUS_DAEMON";
            let rest = poison.variables().into_iter().filter(|(name, _)| not_the_home(name));
            command.envs(rest).env("MARK", "kept");
        }
        command.env("PATH", format!("{}:/usr/bin:/bin", path_text(&poison.folder)));
        assert_eq!(answer(command, &push())["decision"], "block");
        let environment = daemon_environment(&home);
        let hostile = path_text(&poison.folder);
        for pair in &environment {
            let name = pair.split('=').next().unwrap_or_default();
            assert!(["PATH", "LANG", "HOME", "USER", "LOGNAME"].contains(&name), "{pair}");
            assert!(!pair.contains(&hostile), "{pair}");
        }
        assert!(environment.iter().any(|pair| pair.starts_with("HOME=/")), "{environment:?}");
        let status = home.json(&["status", "--json"]);
        assert_eq!(status["daemon"]["leaves_after_idle_s"], 900, "not as HOOKBUS_IDLE says");
        assert!(status["relay"].is_null(), "{status}");
        assert!(poison.is_harmless());
    }
}

#[test]
fn observers_of_that_daemon_get_their_variables_from_a_file_of_the_home() {
    let home = Home::with_daemon("auto");
    let shown = home.work().join("shown");
    let script = home.script(
        "show",
        &format!("#!/bin/sh\nenv > {0}.part; mv {0}.part {0}\n", path_text(&shown)),
    );
    home.write_hooks(&format!(
        "hooks: {{ tool.before: [{{ name: show, mode: observe, command: {script} }}] }}"
    ));
    fs::write(home.path().join("observers.env"), "# for webhooks\nTOKEN=\"of the user\"\n")
        .expect("a file");
    let poison = Poison::in_work_of(&home);
    answer(pinned(&home, "hermes", &[], &poison), &push());
    wait_until("the daemon answers", || home.has_daemon());
    wait_until("the observer ran", || {
        answer(pinned(&home, "hermes", &[], &poison), &push());
        shown.exists()
    });
    let shown = fs::read_to_string(&shown).expect("variables");
    let has = |pair: &str| shown.lines().any(|line| line == pair);
    assert!(has("TOKEN=of the user") && !shown.contains("MARK"), "{shown}");
    assert!(has(&format!("HOOKBUS_HOME={}", home.path().display())), "for `hookbus boot`: {shown}");
    assert!(!shown.contains(&path_text(&poison.folder)), "{shown}");
    assert!(poison.is_harmless());
}

#[test]
fn a_home_that_is_served_elsewhere_is_never_served_by_a_client() {
    let home = Home::with_daemon("auto");
    home.write_hooks(&format!("{GUARD}\ndaemon: running"));
    let at = path_text(&home.path());
    for words in [&["hook", "hermes"][..], &["hook", "hermes", "--home", &at]] {
        assert_eq!(answer(home.command(words), &push())["decision"], "block");
    }
    // A client starts a daemon before it exits, and records that it tried.
    assert!(!home.path().join("serve.lock").exists() && !home.has_daemon());
    let daemon = home.serve();
    home.answer("hermes", &push());
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 1, "one that runs is used");
    drop(daemon);
    home.write_hooks(&format!("{GUARD}\ndaemon: off"));
    let refused = home.run(&["serve"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`daemon: off`"), "{refused:?}");
}

// ---- a home that cannot be opened -----------------------------------------------------------------------

/// Runs `hookbus` as a user who may not open the home. As root it becomes another user, otherwise the home is locked.
fn as_other_user(home: &Home, words: &[&str], payload: &Value) -> HookOutput {
    let above = home.path().parent().expect("a folder").to_owned();
    let program = above.join("hookbus");
    fs::set_permissions(&above, fs::Permissions::from_mode(0o755)).expect("our folder");
    let is_root = fs::metadata(home.path()).expect("a home").uid() == 0;
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]).arg(&program);
        command
    } else {
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o000)).expect("our folder");
        Command::new(&program)
    };
    command.args(words).current_dir("/");
    let output = feed(command, payload.to_string().as_bytes());
    if !is_root {
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).expect("our folder");
    }
    output
}

/// The spool files of that user that hold this text.
fn spooled_by_other_user(text: &str) -> Vec<PathBuf> {
    let in_folder = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()).collect()
    };
    let folders = in_folder(Path::new("/tmp/hookbus-spool-65534"));
    let files = folders.iter().flat_map(|folder| in_folder(folder));
    files.filter(|file| fs::read_to_string(file).is_ok_and(|it| it.contains(text))).collect()
}

#[test]
fn a_home_of_another_user_blocks_if_the_wiring_says_so_and_is_told_otherwise() {
    let home = Home::with_new_binary("off");
    home.write_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let at = path_text(&home.path());
    // The second time the directory can be searched, and only the files in it are private.
    for mode in [0o700, 0o755] {
        fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).expect("our folder");
        let ask = |agent: &str, policy: &str, payload: &Value| -> Value {
            let words = ["hook", agent, "--home", &at, "--on-failure", policy];
            let output = as_other_user(&home, &words, payload);
            assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
            serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
        };
        let push = hermes_shell(&format!("git push --force # {at}"));
        let blocked = ask("hermes", "block", &push);
        let reason = blocked["reason"].as_str().unwrap_or_default();
        assert_eq!(blocked["decision"], "block", "{blocked}");
        for word in [at.as_str(), "cannot open its home", "permission denied", "uid"] {
            assert!(reason.contains(word), "{word}: {reason}");
        }
        let blocked = ask("gemini", "block", &gemini_shell("git push --force"));
        assert_eq!(blocked["decision"], "deny", "{blocked}");
        let verify = ask("hermes", "block", &one("hermes", "pre_verify"));
        assert_eq!(verify, Value::Null, "an agent that may not end its turn would go on for ever");

        assert_eq!(ask("hermes", "allow", &push), Value::Null);
        assert_eq!(ask("gemini", "allow", &gemini_shell("git push --force")), Value::Null);
        let told = ask("gemini", "allow", &one("gemini", "SessionStart"));
        let told = told["systemMessage"].as_str().unwrap_or_default().to_owned();
        assert!(told.contains("nothing is recorded") && told.contains(&at), "{told}");
        let told = ask("hermes", "allow", &one("hermes", "pre_llm_call"));
        assert!(told["context"].to_string().contains("Tell the user: hookbus cannot"), "{told}");
    }
    assert_eq!(spooled_by_other_user(&at), Vec::<PathBuf>::new(), "the bus would never read it");
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 1);
}

#[test]
fn a_pinned_home_whose_mount_is_missing_is_told_and_not_created() {
    let home = Home::new();
    let at = path_text(&home.path());
    let ask = |policy: &str, payload: &Value| {
        answer(home.command(["hook", "gemini", "--home", &at, "--on-failure", policy]), payload)
    };
    let blocked = ask("block", &gemini_shell("ls"));
    assert!(blocked["reason"].to_string().contains("does not exist"), "{blocked}");
    let told = ask("allow", &one("gemini", "SessionStart"));
    assert!(told["systemMessage"].to_string().contains("is mounted here"), "{told}");
    assert!(!home.path().exists());
    fs::create_dir(home.path()).expect("a mount point");
    let blocked = ask("block", &gemini_shell("ls"));
    assert!(blocked["reason"].to_string().contains("it is empty"), "{blocked}");
    home.write_hooks("daemon: off\nhooks: {}");
    assert_eq!(ask("block", &gemini_shell("ls")), Value::Null);
}

// ---- real agents --------------------------------------------------------------------------------------

#[test]
fn a_connected_hermes_with_a_poisoned_environment_calls_the_bus_that_it_was_connected_to() {
    let home = Home::with_daemon("auto");
    let script = home.script("show", "#!/bin/sh\nenv >> $MARK\n");
    home.write_hooks(&format!(
        "{}\n  turn.start: [{{ command: {script} }}]\n",
        "hooks:\n  tool.before: [{ tool: shell, rule: { when: { command: made }, block: guarded } }]"
    ));
    let poison = Poison::in_work_of(&home);
    let seen = path_text(&home.work().join("seen"));
    let not_of_hermes = |name: &str| name.starts_with("HOOKBUS_") || name == "XDG_RUNTIME_DIR";
    let variables = poison.variables().into_iter().filter(|(name, _)| not_of_hermes(name));
    let run = variables
        .fold(Hermes::working("poisoned").connected(&home, "auto"), |run, (name, value)| {
            run.env(name, &value)
        })
        .env("MARK", &seen)
        .go();
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None), "{}", run.stderr);
    assert!(!recorded_events(&home, "hermes").is_empty());
    let shown = fs::read_to_string(&seen).expect("the hook ran");
    assert!(shown.contains("MARK="), "{shown}");
    assert_eq!(variables_of_hookbus(&shown), only_the_home(&home), "{shown}");
    let environment = daemon_environment(&home);
    assert!(!environment.iter().any(|pair| pair.contains("HOOKBUS_")), "{environment:?}");
    assert!(poison.is_harmless());
}

#[test]
fn the_env_file_of_a_repository_leads_a_real_gemini_to_no_other_bus() {
    let home = Home::with_daemon("auto");
    home.write_hooks(GUARD);
    let poison = Poison::in_work_of(&home);
    let is_ours = |name: &str| name.starts_with("HOOKBUS_");
    let variables = poison.variables().into_iter().filter(|(name, _)| is_ours(name));
    let lines: Vec<String> = variables.map(|(name, value)| format!("{name}={value}")).collect();
    let env_file = lines.join("\n");
    let run_with = |options: &str| {
        let command = format!("{} hook gemini{options}", path_text(&binary()));
        let gemini = Gemini::working("hostile repository").hook_on_every_event(&command);
        gemini.file(".env", &env_file).go()
    };
    let run = run_with(&format!(" --home {}", path_text(&home.path())));
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None), "{}", run.stderr);
    assert!(!recorded_events(&home, "gemini").is_empty());
    let environment = daemon_environment(&home);
    assert!(!environment.iter().any(|pair| pair.contains("HOOKBUS_")), "{environment:?}");
    assert!(poison.is_harmless());
    run_with("");
    assert!(!poison.is_harmless(), "Gemini does load the file: without --home it decides");
}

/// A Hermes whose bus is gone: neither a daemon nor the program is there.
const WITHOUT_PROGRAM: &str = "
import os, sys
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
client = next(module for name, module in sys.modules.items() if name.endswith('hookbus.client'))
client.SETTINGS['hookbus'] += '-gone'
print(invoke_hook('pre_tool_call', tool_name='terminal', args={'command': 'git push --force'}, session_id='s'))
print(invoke_hook('post_tool_call', tool_name='terminal', args={}, result='', session_id='s'))
";

#[test]
fn a_bridge_that_can_ask_nothing_blocks_tools_if_connect_was_told_so() {
    for (options, blocks) in [(&["--on-failure", "block"][..], true), (&[], false)] {
        let home = Home::with_hooks("hooks: {}");
        let hermes = Hermes::new("gone").connected_with(&home, "running", options);
        let run = hermes.env("PATH", &with_another_hookbus(&home)).run_python(WITHOUT_PROGRAM);
        let lines: Vec<&str> = run.stdout.lines().collect();
        let is_blocked = lines.first().is_some_and(|line| line.contains("'action': 'block'"));
        assert_eq!(is_blocked, blocks, "{} {}", run.stdout, run.stderr);
        assert_eq!(lines.get(1), Some(&"[]"), "{}", run.stdout);
        assert!(!home.work().join("other/ran").exists(), "PATH is the agent's");
    }
}

/// A `PATH` on which a repository's own `hookbus` comes first.
fn with_another_hookbus(home: &Home) -> String {
    let folder = home.work().join("other");
    let ran = path_text(&folder.join("ran"));
    hookbus_tests::home::write_executable(
        &folder.join("hookbus"),
        &format!("#!/bin/sh\ntouch {ran}\n"),
    );
    format!("{}:/usr/local/bin:/usr/bin:/bin", path_text(&folder))
}

// ---- connect ----------------------------------------------------------------------------------------------

#[test]
fn connect_shows_its_home_and_refuses_one_in_a_temporary_directory_unless_told_twice() {
    let home = Home::new();
    let hermes = home.work().join("hermes");
    fs::create_dir_all(&hermes).expect("a directory");
    let connect = |options: &[&str]| {
        let mut command = Command::new(binary());
        command
            .args(["connect", "hermes", "--yes", "--home", &path_text(&home.path())])
            .args(options)
            .env("HERMES_HOME", &hermes)
            .env("TMPDIR", home.path().parent().expect("a folder"));
        let output = command.output().expect("hookbus runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let (done, text) = connect(&[]);
    assert!(!done && !hermes.join("plugins").exists(), "{text}");
    for word in
        ["temporary directory", "another program could replace it", "--allow-temporary-home"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    let (done, text) = connect(&["--allow-temporary-home"]);
    assert!(done, "{text}");
    let shown = format!("calls hookbus with the home {}", home.path().display());
    assert!(text.contains(&shown), "{text}");
    let (done, text) =
        connect(&["--allow-temporary-home", "--on-failure", "block", "--without-daemon", "allow"]);
    assert!(!done && text.contains("contradict"), "{text}");
}
