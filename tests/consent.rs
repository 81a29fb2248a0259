//! Consent: a hook that runs something runs only after the user has approved it, and no longer when it has
//! changed since. `hooks approve`, `hooks revoke`, observers, replays and the file of approvals.

use std::fs;
use std::thread;

use hookbus_tests::agents::{Act, run_at_terminal};
use hookbus_tests::consent::{
    LAPSED, NOT_APPROVED, approve_at_terminal, assert_lapsed, block_reason, blocking_script,
    last_failure, tool_call,
};
use hookbus_tests::home::{Home, path_text, write_executable};
use hookbus_tests::plugins::write;
use serde_json::{Value, json};

/// A home with one unapproved hook, a script that blocks.
fn guarded(more: &str) -> (Home, String) {
    let home = Home::new();
    let script = home.script("guard.sh", &blocking_script("guarded"));
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{{ command: {script}{more} }}] }}"));
    (home, script)
}

#[test]
fn an_unapproved_hook_does_not_run_and_its_failure_says_how_to_approve_it() {
    let (home, script) = guarded("");
    assert_eq!(block_reason(&home), "");
    assert_eq!(last_failure(&home), NOT_APPROVED);
    assert_eq!(home.last_decision()["verdicts"][0]["refused"], "consent");
    let (strict, _) = guarded(", on_failure: block");
    assert!(block_reason(&strict).contains(NOT_APPROVED));
    // This is the default.
    home.write_hooks_file(&format!(
        "trust: nobody\nhooks: {{ pre_tool_call: [{{ command: {script} }}] }}"
    ));
    assert_eq!(block_reason(&home), "");
    assert_eq!(last_failure(&home), NOT_APPROVED);
}

#[test]
fn an_approved_hook_runs_until_it_is_edited_and_then_blocks() {
    let (home, script) = guarded("");
    let without_terminal = home.run(&["hooks", "approve"]);
    assert!(!without_terminal.status.success(), "the question needs a terminal");
    let (exit, screen) = home.approve_with(&["--json"]);
    assert!(exit == Some(0) && screen.contains(r#""approved":1"#), "{screen}");
    assert_eq!(block_reason(&home), "guarded");
    fs::write(&script, blocking_script("edited")).expect("an edit");
    assert_lapsed(&home, "edited");
    home.approve();
    assert_eq!(block_reason(&home), "edited");
    fs::remove_file(&script).expect("the script");
    assert_lapsed(&home, "removed");
    home.script("guard.sh", &blocking_script("edited"));
    assert_eq!(home.json(&["hooks", "revoke", &script, "--json"])["revoked"], 1);
    assert_eq!(block_reason(&home), "");
    assert!(!home.run(&["hooks", "revoke", &script]).status.success(), "nothing left to revoke");
}

#[test]
fn a_lapsed_hook_with_on_failure_allow_does_not_block() {
    let (home, script) = guarded(", on_failure: allow");
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
    fs::write(&script, blocking_script("edited")).expect("an edit");
    assert_eq!(block_reason(&home), "");
    assert_eq!(last_failure(&home), LAPSED);
}

#[test]
fn an_edited_entry_has_to_be_approved_again() {
    let (home, script) = guarded("");
    home.approve();
    for more in [", timeout: 7", ", env: { HOW: two }", ", matcher: terminal", ", name: other"] {
        home.write_hooks_file(&format!(
            "hooks: {{ pre_tool_call: [{{ command: {script}{more} }}] }}"
        ));
        assert_lapsed(&home, more);
        home.approve();
        assert_eq!(block_reason(&home), "guarded", "{more}");
    }
    // Comments and the layout of the file are not part of the entry.
    home.write_hooks_file(&format!(
        "# mine\nhooks:\n  pre_tool_call:\n    - command: {script} # mine\n      name: other\n"
    ));
    assert_eq!(block_reason(&home), "guarded");
}

#[test]
fn without_a_terminal_neither_the_option_nor_the_variable_approves() {
    let (home, _) = guarded("");
    for arguments in [&["hooks", "approve"][..], &["hooks", "approve", "--accept-hooks"]] {
        let mut command = home.command(arguments);
        let refused = command.env("HOOKBUS_ACCEPT_HOOKS", "1").output().expect("hookbus runs");
        assert!(!refused.status.success(), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        if arguments.len() == 3 {
            assert!(stderr.contains("at a terminal"), "{stderr}");
            assert!(stderr.contains("`hooks_auto_accept: true`"), "{stderr}");
        }
        assert_eq!(block_reason(&home), "", "{arguments:?}");
    }
    // Input and output at a terminal are not enough: it belongs to another process.
    let command = home.command(["hooks", "approve", "--accept-hooks"]);
    let acts = [Act::See("[y/N]"), Act::Type("n"), Act::Enter];
    let (exit, screen) = run_at_terminal(command, &acts);
    assert_eq!(exit, Some(1), "{screen}");
    assert_eq!(block_reason(&home), "");
    assert!(!home.path().join("consent.json").exists());
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
}

#[test]
fn the_setting_approves_without_asking_but_not_the_hooks_of_a_project() {
    let (home, script) = guarded("");
    home.write_hooks_file(&format!(
        "hooks_auto_accept: true\nhooks: {{ pre_tool_call: [{{ command: {script} }}] }}\n"
    ));
    home.text(&["hooks", "approve"]);
    assert_eq!(block_reason(&home), "guarded");
    let project = home.work().join("project");
    write(
        &project.join(".hookbus"),
        "hookbus.yaml",
        "hooks: { tool.before: [{ name: theirs, rule: { block: no } }] }",
    );
    let mut command = home.command(["hooks", "approve", "--accept-hooks"]);
    let refused = command.current_dir(&project).output().expect("hookbus runs");
    assert!(!refused.status.success());
    assert!(!fs::read_to_string(home.path().join("consent.json")).expect("it").contains("theirs"));
}

#[test]
fn an_approval_of_an_earlier_version_still_counts() {
    // SHA-256 of `{"env":[]}`: earlier versions covered the variables of an entry, not its whole text.
    const TERMS: &str = "5093e7a8c7aca31f9731ba52b78fae03a552e59c3dfefa1fd3e5b9bf6f799a71";
    let home = Home::new();
    let script = home.work().join("guard.sh");
    // Earlier versions wrote the path of a relative command with the dot.
    for (command, path) in [
        (path_text(&script), path_text(&script)),
        ("./guard.sh".to_owned(), path_text(&home.work()) + "/./guard.sh"),
    ] {
        let write_entry = |more: &str| {
            home.write_hooks_file(&format!(
                "hooks: {{ pre_tool_call: [{{ command: {command}{more} }}] }}"
            ));
        };
        let file = home.path().join("consent.json");
        write_executable(&script, &blocking_script("guarded"));
        write_entry(", timeout: 5");
        home.approve();
        let text = fs::read_to_string(&file).expect("approvals");
        let mut approvals: Value = serde_json::from_str(&text).expect("JSON");
        let hash = approvals["approvals"][0]["files"][0]["hash"].take();
        let earlier = json!({"approvals": [{
            "event": "pre_tool_call", "command": command, "terms": TERMS,
            "files": [{"path": path, "hash": hash}], "approved_at": "2026-11-16T10:00:00Z",
        }]});
        fs::write(&file, earlier.to_string()).expect("approvals");
        assert_eq!(block_reason(&home), "guarded", "{path}");
        let waiting = home.json(&["hooks", "approve", "--json"]);
        assert_eq!(waiting, json!({"approved": 0, "waiting": 0}));
        write_executable(&script, &blocking_script("edited"));
        assert_lapsed(&home, "edited");
        write_executable(&script, &blocking_script("guarded"));
        write_entry(", env: { A: b }");
        assert_lapsed(&home, "other variables");
        fs::remove_file(&file).expect("approvals");
    }
}

#[test]
fn two_entries_that_run_the_same_script_have_an_approval_each() {
    let home = Home::new();
    let script = home.script("guard.sh", &blocking_script("'$HOW'"));
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ command: {script}, env: {{ HOW: one }} }}, {{ command: {script}, env: {{ HOW: two }} }}] }}"
    ));
    home.approve();
    block_reason(&home);
    let verdicts = home.last_decision()["verdicts"].clone();
    assert_eq!([&verdicts[0]["reason"], &verdicts[1]["reason"]], [&json!("one"), &json!("two")]);
    assert_eq!(home.json(&["hooks", "approve", "--json"])["waiting"], 0);
}

#[test]
fn revoking_a_name_revokes_every_hook_of_that_name() {
    let home = Home::new();
    let [one, two] = ["one.sh", "two.sh"].map(|name| home.script(name, &blocking_script("x")));
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ name: guard, command: {one} }}, {{ name: guard, command: {two} }}] }}"
    ));
    home.approve();
    assert_eq!(home.json(&["hooks", "revoke", "guard", "--json"])["revoked"], 2);
    block_reason(&home);
    let last = home.last_decision();
    for index in [0, 1] {
        assert_eq!(last["verdicts"][index]["refused"], "consent", "{last}");
    }
}

#[test]
fn concurrent_approvals_are_all_stored() {
    let home = Home::new();
    let scripts: Vec<String> =
        (0..12).map(|n| home.script(&format!("guard{n}.sh"), &blocking_script("x"))).collect();
    let entries: Vec<String> = scripts.iter().map(|it| format!("{{ command: {it} }}")).collect();
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{}] }}", entries.join(", ")));
    thread::scope(|scope| {
        let processes: Vec<_> = scripts
            .iter()
            .map(|script| {
                let home = &home;
                scope.spawn(move || assert_eq!(home.approve_with(&[script]).0, Some(0)))
            })
            .collect();
        for process in processes {
            process.join().expect("it approved");
        }
    });
    assert_eq!(home.json(&["hooks", "approve", "--json"]), json!({"approved": 0, "waiting": 0}));
    let unknown = home.run(&["hooks", "approve", "nowhere.sh"]);
    assert!(!unknown.status.success(), "there is no such hook");
}

#[test]
fn the_question_shows_every_file_the_settings_and_what_is_not_covered() {
    let home = Home::new();
    let gateway = home.work().join("hooks/greet");
    for (name, text) in [
        ("HOOK.yaml", "name: greet\nevents: [agent:start]\n"),
        ("handler.py", "def handle(e, c): pass  # the handler\n"),
        ("long.py", &"pass\n".repeat(1000)),
    ] {
        write(&gateway, name, text);
    }
    write(&gateway.join("_impl"), "deep.py", "pass  # a nested module\n");
    home.write_hooks_file(&format!(
        "hooks:\n  '*':\n    - python: {}\n    - command: python3 -m elsewhere\n      env: {{ A: b }}\n",
        path_text(&home.work().join("hooks"))
    ));
    let no = [Act::See("[y/N]"), Act::Type("n"), Act::Enter];
    let (exit, screen) = approve_at_terminal(&home, &[], &[no, no].concat());
    assert_eq!(exit, Some(1), "{screen}");
    for text in ["# the handler", "# a nested module", "long.py: 5.0 kB", "with: A=b"] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    for text in [
        "not covered: what these files import or run, and programs on the PATH;",
        "name more files with `files: […]` in the entry",
    ] {
        assert_eq!(screen.matches(text).count(), 2, "{text}: {screen}");
    }
}

#[test]
fn a_script_that_changes_while_the_user_reads_it_is_not_approved() {
    let (home, script) = guarded("");
    let edit = || fs::write(&script, "#!/bin/sh\n").is_ok();
    let acts = [Act::See("approve this hook?"), Act::Until(&edit), Act::Type("y"), Act::Enter];
    let (exit, screen) = approve_at_terminal(&home, &[], &acts);
    assert_eq!(exit, Some(1), "{screen}");
    assert!(screen.contains("it changed while you looked at it"), "{screen}");
    assert!(!home.path().join("consent.json").exists());
}

#[test]
fn an_observer_waits_for_its_approval_and_then_gets_earlier_events() {
    for more in ["", ", long_lived: true"] {
        let home = Home::new();
        let seen = home.work().join("seen");
        // A relative path, which is looked up in the directory where an observer runs.
        home.write_hooks_file(&format!(
            "hooks:\n  '*':\n    - {{ name: look, mode: observe, command: sh look.sh, tries: 1{more} }}\n"
        ));
        write(&home.path(), "look.sh", &format!("echo x >> {}\n", path_text(&seen)));
        home.answer("hermes", &tool_call());
        let observe =
            || home.run(&["observe", "look", "--source", "log", "--from", "start", "--drain"]);
        let refused = observe();
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && stderr.contains("hookbus hooks approve"), "{stderr}");
        assert!(!seen.exists());
        assert_eq!(home.text(&["dead", "list", "look", "--json"]), "", "no dead letters");
        home.approve();
        observe();
        assert!(seen.exists(), "earlier events are delivered now{more}");
    }
}

#[test]
fn an_observer_runs_the_script_beside_its_hooks_file_and_not_one_in_the_working_directory() {
    let home = Home::new();
    home.write_hooks_file(
        "hooks:\n  pre_tool_call:\n    - { name: look, mode: observe, command: sh notify.sh, tries: 1 }\n",
    );
    let ran = home.work().join("ran");
    for (folder, text) in [(home.path(), "approved"), (home.work(), "other")] {
        write(&folder, "notify.sh", &format!("echo {text} >> {}\n", path_text(&ran)));
    }
    home.approve();
    home.answer("hermes", &tool_call());
    home.text(&["observe", "look", "--source", "log", "--from", "start", "--drain"]);
    assert_eq!(fs::read_to_string(&ran).expect("it ran"), "approved\n");
}

#[test]
fn a_hook_that_was_refused_is_refused_in_a_replay_and_does_not_run() {
    for on_failure in ["", ", on_failure: block", ", on_failure: allow"] {
        let (home, script) = guarded(on_failure);
        let ran = home.work().join("ran");
        let counting =
            blocking_script("x").replace("echo", &format!("echo x >> {}\necho", path_text(&ran)));
        fs::write(&script, &counting).expect("a script");
        let assert_unchanged = |events: u64| {
            let report = home.json(&["replay", "--all", "--as-recorded", "--yes", "--json"]);
            let count = |class: &str| report["summary"][class].as_u64();
            assert_eq!(
                (count("events"), count("unchanged")),
                (Some(events), Some(events)),
                "{on_failure}: {report}"
            );
        };
        block_reason(&home);
        assert_unchanged(1);
        assert!(!ran.exists(), "it was never approved");
        home.approve();
        block_reason(&home);
        fs::write(&script, format!("{counting}# edited\n")).expect("an edit");
        block_reason(&home);
        assert_unchanged(3);
        let runs = fs::read_to_string(&ran).expect("it ran").lines().count();
        assert_eq!(runs, 2, "once for the event, once in the replay");
    }
}
