//! Rules end to end: the same for every agent and wire, with a daemon and without, and in a replay; packs are recorded
//! with the hooks; a mistake in `use:` or `change:` does not switch a pack off.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::os::unix::fs::symlink;

use hookbus_tests::home::{Home, feed, path_text};
use serde_json::{Value, json};

const STAY: &str = "hooks:\n  tool.before:\n    - name: stay\n      rule:\n        \
                    when: { writes: { outside: $project } }\n        block: Stay in the project.\n";

/// A tool call of an agent in `cwd`.
fn call(agent: &str, cwd: &str, line: &str) -> Value {
    let (name, tool) = match agent {
        "hermes" => ("pre_tool_call", "terminal"),
        "gemini" => ("BeforeTool", "run_shell_command"),
        _ => ("PreToolUse", "Bash"),
    };
    json!({"hook_event_name": name, "session_id": "s", "cwd": cwd, "tool_name": tool,
           "tool_input": {"command": line}})
}

/// A home with these hooks, and a project in its work directory.
fn with_project(hooks: &str) -> (Home, String) {
    let home = Home::with_hooks(hooks);
    let project = home.work().join("project");
    fs::create_dir_all(project.join(".git")).expect("a project");
    fs::create_dir_all(home.work().join("outside")).expect("a directory");
    symlink("../outside", project.join("link")).expect("a link");
    (home, path_text(&project))
}

#[test]
fn a_rule_means_the_same_for_every_agent_with_a_daemon_and_without() {
    let (home, project) = with_project(STAY);
    let ask = || {
        for agent in ["hermes", "gemini"] {
            for (line, is_held_back) in [
                ("echo x > link/file", true),
                ("bash -c 'cd link && touch a'", true),
                ("echo x > src.txt", false),
                ("cat ../outside/file", false),
            ] {
                let answer = home.answer(agent, &call(agent, &project, line));
                assert_eq!(!answer.is_null(), is_held_back, "{agent}: {line}: {answer}");
            }
        }
    };
    ask();
    home.set_daemon_mode("running");
    let _daemon = home.serve();
    ask();
    let bridge = |line: &str| {
        let mut event = call("hermes", &project, line);
        event["extra"] = json!({});
        let command = home.command(["hook", "hermes", "--wire", "bridge"]);
        feed(command, event.to_string().as_bytes()).stdout
    };
    assert!(bridge("echo x > link/file").contains("Stay in the project"));
    assert!(!bridge("echo x > a").contains("Stay in the project"));
}

#[test]
fn agents_that_are_only_recorded_get_no_answer() {
    let (home, project) = with_project(STAY);
    for agent in ["claude", "codex"] {
        assert_eq!(home.answer(agent, &call(agent, &project, "echo x > /etc/x")), Value::Null);
    }
    assert_eq!(home.decisions(), Vec::<Value>::new());
}

#[test]
fn a_replay_follows_the_links_of_then() {
    let (home, project) = with_project(STAY);
    home.answer("gemini", &call("gemini", &project, "echo x > link/file"));
    home.answer("gemini", &call("gemini", &project, "echo x > plain/file"));
    // What is on disk now must not count.
    fs::remove_file(format!("{project}/link")).expect("a link");
    symlink("/", format!("{project}/plain")).expect("a link");
    fs::remove_dir(format!("{project}/.git")).expect("a directory");
    let report = home.json(&["replay", "--all", "--as-recorded", "--json"]);
    assert_eq!(report["summary"]["unchanged"], 2, "{report}");
    let context = &home.log(&[])[1]["context"];
    assert!(context.to_string().contains("outside/file"), "{context}");
}

#[test]
fn the_rules_of_a_pack_are_recorded_with_the_hooks() {
    let (home, project) = with_project("use: [git]\n");
    let force = call("gemini", &project, "git push -f");
    assert!(!home.answer("gemini", &force).is_null());
    let loaded = home.log(&["--kind", "hooks.loaded"]);
    assert!(loaded[0].to_string().contains("git-force-push"), "{loaded:?}");
    // A later version may have another pack: the recorded one counts.
    let report = home.json(&["replay", "--all", "--as-recorded", "--json"]);
    assert_eq!(report["summary"]["unchanged"], 1, "{report}");
    // The same file again is not another version.
    home.answer("gemini", &force);
    assert_eq!(home.log(&["--kind", "hooks.loaded"]).len(), 1);
}

#[test]
fn rules_of_packs_are_switched_off_and_changed_by_name() {
    let force = |home: &Home, project: &str| {
        home.answer("gemini", &call("gemini", project, "git push -f")).to_string()
    };
    let (home, project) = with_project("use: [starter]\nchange: { git-force-push: off }\n");
    assert_eq!(force(&home, &project), "null");
    home.write_hooks("use: [starter]\nchange: { git-force-push: { block: Ask Maria. } }\n");
    assert!(force(&home, &project).contains("Ask Maria."));
    home.write_hooks(
        "use: [starter]\nchange: { git-force-push: { unless: { cwd: { under: $tmp } } } }\n",
    );
    assert!(
        force(&home, &project).contains("force push"),
        "what is around a project is not temporary"
    );
    home.write_hooks(&format!(
        "use: [starter]\nchange: {{ git-force-push: {{ unless: {{ cwd: {{ under: '{project}' }} }} }} }}\n"
    ));
    assert_eq!(force(&home, &project), "null");
    home.write_hooks("use: [{ pack: starter, shadow: true }]\n");
    assert_eq!(force(&home, &project), "null");
    assert_eq!(home.last_decision()["verdicts"][0]["shadow"], true);
}

#[test]
fn a_mistake_in_use_or_change_does_not_switch_a_pack_off() {
    let (home, project) = with_project("use: [git]\n");
    let is_held_back =
        || !home.answer("gemini", &call("gemini", &project, "git push -f")).is_null();
    assert!(is_held_back());
    for broken in [
        "use: [gti]\n",
        "use: [git, nothing]\n",
        "use: { git: on }\n",
        "usee: [git]\n",
        "use: [git]\nchange: { git-force-psuh: off }\n",
        "use: [git]\nchange: { git-force-push: { bolck: x } }\n",
        "use: [git]\nchange: { git-force-push: { unless: { rnus: x } } }\n",
        "use: [git]\nchange: { git-force-push: { unless: x } }\n",
        "use: [git]\nchange: off\n",
    ] {
        home.write_hooks(broken);
        assert!(is_held_back(), "{broken}");
        let listed = home.run(&["hooks", "list"]);
        assert_eq!(listed.status.code(), Some(1), "{broken}");
    }
    home.write_hooks("hooks: {}\n");
    assert!(!is_held_back(), "no packs are meant");
}

#[test]
fn a_project_cannot_use_or_change_packs() {
    let (home, project) = with_project("use: [git]\n");
    let folder = format!("{project}/.hookbus");
    fs::create_dir_all(&folder).expect("a directory");
    let text = "use: []\nchange: { git-force-push: off }\nhooks: {}\n";
    fs::write(format!("{folder}/hookbus.yaml"), text).expect("a file");
    let answer = home.answer("gemini", &call("gemini", &project, "git push -f"));
    assert!(!answer.is_null());
}

#[test]
fn an_old_rule_means_what_it_meant() {
    let (home, project) = with_project(
        "hooks:\n  tool.before:\n    - name: etc\n      rule: { when: { path: '^/etc' }, block: no }\n",
    );
    let write = |path: &str| {
        let mut event = call("gemini", &project, "");
        event["tool_name"] = json!("write_file");
        event["tool_input"] = json!({"file_path": path, "content": "x"});
        !home.answer("gemini", &event).is_null()
    };
    assert!(write("/etc/hosts"));
    assert!(!write("/tmp/../etc/hosts"), "a plain text is compared as it is written");
    assert!(home.answer("gemini", &call("gemini", &project, "cat /etc/hosts")).is_null());
}
