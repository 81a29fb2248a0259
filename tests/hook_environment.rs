//! The environment of hooks: what an agent may have loaded from a repository's files changes no program that a hook
//! runs. Poisoned variables, a poisoned PATH and a poisoned HOME, for commands, plugins, observers and replays.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookbus_tests::agents::run_at_terminal;
use hookbus_tests::consent::{blocking_script, tool_call};
use hookbus_tests::home::{Home, feed, path_text, write_executable};
use hookbus_tests::plugins::{plugin, write};
use serde_json::{Value, json};

/// A library that leaves a mark when it is loaded into a program that a hook runs.
const LIBRARY: &str = r#"#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) {
    if (!getenv("IN_HOOK")) return;
    FILE *mark = fopen(MARK, "a");
    if (mark) { fputs("library\n", mark); fclose(mark); }
}
"#;

/// What a hostile repository brings along, and the variables that point to it.
struct Poison {
    folder: PathBuf,
}

impl Poison {
    fn new(home: &Home) -> Self {
        let poison = Self { folder: home.work().join("repository") };
        let mark = path_text(&poison.mark());
        write(&poison.folder, "x.c", LIBRARY);
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o", "x.so", "x.c"])
            .arg(format!("-DMARK=\"{mark}\""))
            .current_dir(&poison.folder)
            .status();
        assert!(built.expect("a C compiler").success());
        write(&poison.folder, "env.sh", &format!("[ -z \"$IN_HOOK\" ] || echo shell >> {mark}\n"));
        write(
            &poison.folder,
            "sitecustomize.py",
            &format!(
                "import os\nif 'IN_HOOK' in os.environ:\n    open('{mark}', 'a').write('python\\n')\n"
            ),
        );
        write(
            &poison.folder,
            "x.js",
            &format!("process.env.IN_HOOK && require('fs').appendFileSync('{mark}', 'node\\n')\n"),
        );
        write(
            &poison.folder,
            "X.pm",
            &format!(
                "package X; if ($ENV{{IN_HOOK}}) {{ open(my $f, '>>', '{mark}'); print $f 'perl' }} 1;\n"
            ),
        );
        for name in ["bash", "sh", "python3", "node", "perl", "guard"] {
            let script =
                format!("#!/bin/sh\n[ -z \"$IN_HOOK\" ] || echo {name} >> {mark}\nexit 0\n");
            write_executable(&poison.folder.join("bin").join(name), &script);
        }
        poison
    }

    /// Where everything that was loaded or run leaves its name.
    fn mark(&self) -> PathBuf {
        self.folder.join("mark")
    }

    #[track_caller]
    fn assert_without_effect(&self, what: &str) {
        let mark = fs::read_to_string(self.mark()).unwrap_or_default();
        assert_eq!(mark, "", "{what}");
    }

    fn path(&self) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.folder.join("bin")).chain(std::env::split_paths(&path));
        std::env::join_paths(folders).expect("a search path")
    }

    fn poison(&self, command: &mut Command) {
        let file = |name: &str| self.folder.join(name);
        command
            .current_dir(&self.folder)
            .env("PATH", self.path())
            .env("LD_PRELOAD", file("x.so"))
            .env("BASH_ENV", file("env.sh"))
            .env("ENV", file("env.sh"))
            .env("BASH_FUNC_guard%%", "() { echo function >> mark; }")
            .env("PYTHONPATH", &self.folder)
            .env("PYTHONHOME", "/nonexistent")
            .env("NODE_OPTIONS", format!("--require {}", path_text(&file("x.js"))))
            .env("PERL5LIB", &self.folder)
            .env("PERL5OPT", "-MX")
            .env("GIT_SSH_COMMAND", "false")
            .env("HOOKBUS_IDLE", "7")
            .env("HOOKBUS_NATS_URL", "nats://stranger")
            .env("PLAIN", "kept");
    }

    /// The answer to a tool call of a poisoned agent.
    fn answer(&self, home: &Home, agent: &str, payload: &Value) -> String {
        let mut command = home.command(["hook", agent]);
        self.poison(&mut command);
        // What the test itself needs.
        command.env_remove("HOOKBUS_NATS_URL");
        feed(command, payload.to_string().as_bytes()).stdout
    }
}

/// Programs of several languages that print which variables they have, and block.
fn write_guards(folder: &Path) {
    let report = r#"printf '{"decision": "block", "reason": "%s"}' "$(env | cut -d= -f1 | sort | tr '\n' ' ')""#;
    write_executable(&folder.join("bash-guard"), &format!("#!/usr/bin/env bash\n{report}\n"));
    write_executable(
        &folder.join("python-guard"),
        "#!/usr/bin/env python3\nimport json, os\nprint(json.dumps({'decision': 'block', 'reason': ' '.join(sorted(os.environ))}))\n",
    );
    write_executable(
        &folder.join("node-guard"),
        "#!/usr/bin/env node\nconsole.log(JSON.stringify({decision: 'block', reason: Object.keys(process.env).sort().join(' ')}))\n",
    );
    write_executable(
        &folder.join("perl-guard"),
        "#!/usr/bin/env perl\nprint '{\"decision\": \"block\", \"reason\": \"', join(' ', sort keys %ENV), '\"}'\n",
    );
}

/// Approves everything, by a user whose PATH starts with `folder`.
fn approve_with_path(home: &Home, folder: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    let mut command = home.command_at_terminal(["hooks", "approve", "--accept-hooks"]);
    command.env("PATH", std::env::join_paths(folders).expect("a search path"));
    let (exit, screen) = run_at_terminal(command, &[]);
    assert_eq!(exit, Some(0), "{screen}");
}

#[test]
fn variables_that_change_what_a_program_is_do_not_reach_commands() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let poison = Poison::new(&home);
        let bin = home.work().join("own");
        write_guards(&bin);
        let _daemon = (mode == "running").then(|| home.serve());
        for guard in ["bash-guard", "python-guard", "node-guard", "perl-guard"] {
            for command in [path_text(&bin.join(guard)), guard.to_owned()] {
                home.write_hooks_file(&format!(
                    "hooks: {{ pre_tool_call: [{{ command: {command}, env: {{ IN_HOOK: y }} }}] }}"
                ));
                approve_with_path(&home, &bin);
                let answer = poison.answer(&home, "hermes", &tool_call());
                poison.assert_without_effect(&command);
                let names: Vec<&str> = answer.split([' ', '"']).collect();
                assert!(
                    names.contains(&"PLAIN") && names.contains(&"IN_HOOK"),
                    "{command}: {answer}"
                );
                for stripped in [
                    "LD_PRELOAD",
                    "BASH_ENV",
                    "ENV",
                    "PYTHONPATH",
                    "PYTHONHOME",
                    "NODE_OPTIONS",
                    "PERL5OPT",
                    "GIT_SSH_COMMAND",
                    "HOOKBUS_IDLE",
                    "HOOKBUS_DAEMON",
                ] {
                    assert!(!names.contains(&stripped), "{command} has {stripped}: {answer}");
                }
                assert!(!answer.contains("BASH_FUNC"), "{command}: {answer}");
            }
        }
    }
}

#[test]
fn a_program_earlier_on_the_agents_path_is_not_run() {
    let home = Home::new();
    let poison = Poison::new(&home);
    let own = home.work().join("own");
    write_executable(&own.join("guard"), &blocking_script("guarded"));
    let payload = json!({"hook_event_name": "BeforeTool", "tool_name": "run_shell_command",
        "tool_input": {"command": "ls"}, "session_id": "g"});
    for (event, agent, payload) in
        [("pre_tool_call", "hermes", tool_call()), ("BeforeTool", "gemini", payload)]
    {
        home.write_hooks_file(&format!(
            "hooks: {{ {event}: [{{ command: guard, env: {{ IN_HOOK: y }} }}] }}"
        ));
        approve_with_path(&home, &own);
        // Gemini's hooks run in a bash, which is looked up too.
        let answer = poison.answer(&home, agent, &payload);
        assert!(answer.contains("guarded"), "{agent}: {answer}");
        poison.assert_without_effect(agent);
    }
}

#[test]
fn an_approved_hook_blocks_while_the_recorded_path_cannot_be_read() {
    let home = Home::new();
    let poison = Poison::new(&home);
    let own = home.work().join("own");
    write_executable(&own.join("guard"), &blocking_script("guarded"));
    home.write_hooks_file("hooks: { pre_tool_call: [{ command: guard, env: { IN_HOOK: y } }] }");
    approve_with_path(&home, &own);
    let recorded = home.path().join("environment.json");
    let text = fs::read_to_string(&recorded).expect("the user's PATH");
    for broken in ["", &text[..text.len() / 2], "{}"] {
        fs::write(&recorded, broken).expect("a broken file");
        let answer = poison.answer(&home, "hermes", &tool_call());
        assert!(answer.contains("environment.json") && answer.contains("block"), "{answer}");
        poison.assert_without_effect("a broken file");
    }
    fs::write(&recorded, &text).expect("the user's PATH");
    assert!(poison.answer(&home, "hermes", &tool_call()).contains("guarded"));
}

#[test]
fn an_entry_gets_the_variables_that_it_names_as_the_agent_has_them() {
    let home = Home::new();
    let poison = Poison::new(&home);
    let entry = |more: &str| {
        home.write_hooks_file(&format!(
            "hooks: {{ pre_tool_call: [{{ command: guard, env: {{ IN_HOOK: y }}{more} }}] }}"
        ));
    };
    entry("");
    home.approve();
    poison.answer(&home, "hermes", &tool_call());
    poison.assert_without_effect("there is no guard on the user's own PATH");
    let failure = home.last_decision()["verdicts"][0]["failure"].clone();
    assert!(failure.to_string().contains("is not on your own PATH"), "{failure}");
    entry(", pass_env: [PATH]");
    let lapsed = poison.answer(&home, "hermes", &tool_call());
    assert!(lapsed.contains("changed since it was approved"), "the approval covers it: {lapsed}");
    home.approve();
    poison.answer(&home, "hermes", &tool_call());
    assert_eq!(fs::read_to_string(poison.mark()).expect("it ran"), "guard\n");
}

#[test]
fn pass_env_is_for_entries_that_run_something() {
    let home = Home::new();
    for entry in [
        "{ rule: { block: no }, pass_env: [PATH] }",
        "{ mode: observe, webhook: 'http://127.0.0.1:1', name: w, pass_env: [PATH] }",
        "{ command: x, pass_env: { PATH: y } }",
        "{ command: x, pass_env: ['HOOKBUS_HOME'] }",
        "{ command: x, pass_env: ['LD_*'] }",
    ] {
        home.write_hooks_file(&format!("hooks: {{ tool.before: [{entry}] }}"));
        let listed = home.run(&["hooks", "list"]);
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(!listed.status.success() && text.contains("`pass_env`"), "{entry}: {text}");
    }
    home.write_hooks_file("hooks: { tool.before: [{ command: 'true', pass_env: [PATH, X_Y] }] }");
    assert!(home.run(&["hooks", "list"]).status.success());
}

#[test]
fn variables_that_change_what_a_program_is_do_not_reach_plugins() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let poison = Poison::new(&home);
        let code = "import os\nos.environ['IN_HOOK'] = 'y'\nimport subprocess\n\
            def ask(**k):\n    subprocess.run(['bash', '-c', ':'])\n    \
            return {'action': 'block', 'message': ' '.join(sorted(os.environ))}\n\
            def register(ctx):\n    ctx.register_hook('pre_tool_call', ask)\n";
        let folder = path_text(&plugin(&home, "asked", code));
        home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{{ python: {folder} }}] }}"));
        home.approve();
        let _daemon = (mode == "running").then(|| home.serve());
        // The second call finds a warm process, which gets the agent's environment again.
        for _ in 0..2 {
            let answer = poison.answer(&home, "hermes", &tool_call());
            assert!(answer.contains(" PLAIN "), "{answer}");
            for stripped in ["LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "NODE_OPTIONS", "HOOKBUS_IDLE"]
            {
                assert!(!answer.contains(stripped), "{stripped}: {answer}");
            }
            poison.assert_without_effect(mode);
        }
    }
}

#[test]
fn the_home_directory_of_a_command_is_the_users_own() {
    let home = Home::new();
    let (own, repository) = (home.work().join("me"), home.work().join("repository"));
    write_executable(&own.join("guard.sh"), &blocking_script("guarded"));
    write_executable(&repository.join("guard.sh"), "#!/bin/sh\n");
    for (event, agent, command) in [
        ("pre_tool_call", "hermes", "~/guard.sh"),
        ("BeforeTool", "gemini", "~/guard.sh"),
        ("BeforeTool", "gemini", "\"$HOME/guard.sh\""),
    ] {
        let command = json!(command);
        home.write_hooks_file(&format!("hooks: {{ {event}: [{{ command: {command} }}] }}"));
        let mut approve = home.command_at_terminal(["hooks", "approve", "--accept-hooks"]);
        approve.env("HOME", &own);
        assert_eq!(run_at_terminal(approve, &[]).0, Some(0));
        let mut hook = home.command(["hook", agent]);
        hook.env("HOME", &repository).current_dir(&repository);
        let payload = json!({"hook_event_name": event, "tool_name": "terminal", "tool_input": {}, "session_id": "s"});
        let answer = feed(hook, payload.to_string().as_bytes()).stdout;
        assert!(answer.contains("guarded"), "{command}: {answer} {}", home.last_decision());
    }
}

#[test]
fn without_a_recorded_path_the_agents_counts_without_its_project() {
    let home = Home::new();
    let project = home.work().join("repository");
    fs::create_dir_all(project.join(".git")).expect("a repository");
    let elsewhere = home.work().join("elsewhere");
    write_executable(&project.join("bin/guard"), "#!/bin/sh\n");
    write_executable(&elsewhere.join("guard"), &blocking_script("guarded"));
    home.write_hooks("hooks: { pre_tool_call: [{ command: guard, on_failure: block }] }");
    let mut hook = home.command(["hook", "hermes"]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [Path::new("bin").to_owned(), project.join("bin"), elsewhere];
    let path = folders.into_iter().chain(std::env::split_paths(&path));
    hook.env("PATH", std::env::join_paths(path).expect("a search path")).current_dir(&project);
    let answer = feed(hook, tool_call().to_string().as_bytes()).stdout;
    assert!(answer.contains("guarded"), "{answer} {}", home.last_decision());
    let doctor = String::from_utf8_lossy(&home.run(&["hooks", "doctor"]).stdout).into_owned();
    assert!(doctor.contains("your own PATH is not recorded yet"), "{doctor}");
    home.approve();
    let doctor = String::from_utf8_lossy(&home.run(&["hooks", "doctor"]).stdout).into_owned();
    assert!(!doctor.contains("not recorded yet"), "{doctor}");
}

#[test]
fn a_recorded_path_leaves_out_relative_directories_and_those_of_the_project() {
    let home = Home::with_hooks("hooks: {}");
    let project = home.work().join("repository");
    fs::create_dir_all(project.join(".git")).expect("a repository");
    let mut approve = home.command_at_terminal(["hooks", "approve"]);
    let path = format!("{}:.::bin:/usr/bin:/bin", path_text(&project.join("bin")));
    approve.env("PATH", path).current_dir(&project);
    assert_eq!(run_at_terminal(approve, &[]).0, Some(0));
    let text = fs::read_to_string(home.path().join("environment.json")).expect("it is recorded");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(recorded["path"], json!(["/usr/bin", "/bin"]));
}

#[test]
fn observers_and_replays_run_without_these_variables_too() {
    let home = Home::new();
    let poison = Poison::new(&home);
    let seen = path_text(&home.work().join("seen"));
    let own = home.work().join("own");
    write_executable(&own.join("look"), &format!("#!/usr/bin/env bash\nenv >> {seen}\n"));
    write_executable(
        &own.join("stay"),
        &format!("#!/usr/bin/env bash\nenv >> {seen}\nwhile read -r x; do echo '{{}}'; done\n"),
    );
    write_executable(&own.join("guard"), &blocking_script("guarded"));
    home.write_hooks_file(
        "hooks:\n  tool.before:\n    - { name: look, mode: observe, command: look, env: { IN_HOOK: y } }\n    \
         - { name: stay, mode: observe, command: stay, long_lived: true, env: { IN_HOOK: y } }\n    \
         - { name: guard, command: guard, env: { IN_HOOK: y } }\n",
    );
    approve_with_path(&home, &own);
    poison.answer(&home, "hermes", &tool_call());
    for observer in ["look", "stay"] {
        let mut observe =
            home.command(["observe", observer, "--source", "log", "--from", "start", "--drain"]);
        poison.poison(&mut observe);
        observe.env_remove("HOOKBUS_NATS_URL");
        let output = observe.output().expect("hookbus runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let env = fs::read_to_string(&seen).expect("both ran");
    assert_eq!(env.matches("PLAIN=kept").count(), 2, "{env}");
    for stripped in ["LD_PRELOAD", "BASH_ENV", "HOOKBUS_IDLE"] {
        assert!(!env.contains(&format!("\n{stripped}=")), "{stripped}: {env}");
    }
    poison.assert_without_effect("observers");
    let mut replay = home.command(["replay", "--all", "--as-recorded", "--yes", "--json"]);
    poison.poison(&mut replay);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(own).chain(std::env::split_paths(&path));
    replay.env("PATH", std::env::join_paths(path).expect("a search path"));
    let output = replay.output().expect("hookbus runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["summary"]["unchanged"], 1, "{report}");
    poison.assert_without_effect("a replay");
}
