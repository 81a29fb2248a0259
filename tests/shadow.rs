//! Hooks in shadow mode: they are asked and recorded, and have no effect; `hooks shadow` reports what they would have
//! done, `hooks promote` turns them on.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::Path;

use hookbus_tests::agents::{Act, run_at_terminal};
use hookbus_tests::consent::{LAPSED, NOT_APPROVED, approve_in, blocking_plugin, blocking_script};
use hookbus_tests::home::{Home, feed, path_text};
use hookbus_tests::plugins::plugin;
use serde_json::{Value, json};

/// A rule in shadow mode that would block force pushes, and one that decides.
const RULES: &str = "# mine
hooks:
  tool.before:
    - name: no-force-push   # careful
      mode: shadow          # until Friday
      rule: { when: { command: '--force' }, block: \"no force\" }
    # this one counts
    - { name: no-rm, rule: { when: { command: '^rm ' }, block: no rm } }
";

fn call(session: &str, command: &str) -> Value {
    json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal", "session_id": session,
           "tool_input": {"command": command}})
}

fn answer(home: &Home, command: &str) -> Value {
    home.answer("hermes", &call("s", command))
}

fn hooks_file(home: &Home) -> String {
    fs::read_to_string(home.path().join("hookbus.yaml")).expect("a hooks file")
}

/// The report about one hook.
fn report(home: &Home, hook: &str) -> Value {
    let report = home.json(&["hooks", "shadow", "--json", "--hook", hook]);
    assert_eq!(report["hooks"].as_array().map(Vec::len), Some(1), "{report}");
    report["hooks"][0].clone()
}

#[test]
fn a_rule_in_shadow_mode_is_recorded_and_lets_the_call_through_with_a_daemon_and_without() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks(RULES);
        let _daemon = (mode == "running").then(|| home.serve());
        assert_eq!(answer(&home, "git push --force"), Value::Null);
        let decision = home.last_decision();
        let verdict = &decision["verdicts"][0];
        assert_eq!((&decision["outcome"], &decision["answer"]), (&json!("none"), &Value::Null));
        assert_eq!(
            (&verdict["hook"], &verdict["verdict"], &verdict["shadow"]),
            (&json!("no-force-push"), &json!("block"), &json!(true))
        );
        assert_eq!(
            answer(&home, "rm --force")["reason"],
            "no rm (hookbus rule no-rm)",
            "the other rule counts"
        );
        let verdicts = home.last_decision()["verdicts"].clone();
        assert_eq!((&verdicts[0]["shadow"], &verdicts[1]["shadow"]), (&json!(true), &Value::Null));
        assert!(home.text(&["sessions"]).contains("2 events, 1 blocked"));
        let shown = home.text(&["show", "last"]);
        assert!(shown.contains("2 events, 2 decisions, 2 tool calls, 1 blocked"), "{shown}");
        assert!(shown.contains("would have been blocked by no-force-push (shadow): no force"));
        let log = home.text(&["log", "--kind", "decision"]);
        assert!(log.contains("no-force-push (shadow): block (no force)"), "{log}");
        assert!(home.is_sound());
    }
}

#[test]
fn a_command_in_shadow_mode_never_blocks() {
    let home = Home::new();
    let (crash, rude) = (
        home.script("crash.sh", "#!/bin/sh\nexit 3\n"),
        home.script("rude.sh", &blocking_script("rude")),
    );
    home.write_hooks(&format!(
        "hooks:
  tool.before:
    - {{ name: crash, mode: shadow, on_failure: block, command: {crash} }}
    - {{ name: gone, mode: shadow, on_failure: block, command: /nonexistent/guard }}
    - {{ name: broken, mode: shadow, on_failure: block, rule: {{ blokc: x }} }}
    - {{ name: rude, mode: shadow, command: {rude} }}
"
    ));
    for mode in ["off", "running"] {
        let _daemon = (mode == "running").then(|| home.serve());
        let mut hook = home.command(["hook", "hermes"]);
        hook.env("HOOKBUS_DAEMON", mode);
        let output = feed(hook, call("s", "ls").to_string().as_bytes());
        let outcome = (output.exit, output.stdout.as_str(), output.stderr.as_str());
        let is_about_file =
            |notice: &Value| notice.is_null() || notice["about"].to_string().contains("blokc");
        let decision = home.last_decision();
        assert!(is_about_file(&decision["notice"]), "{decision}");
        assert_eq!((outcome.0, outcome.2), (Some(0), ""), "{mode}");
        assert!(!outcome.1.contains("\"block\""), "{mode}: {}", outcome.1);
        assert_eq!(decision["outcome"], "none", "{mode}");
        let verdicts = decision["verdicts"].as_array().expect("verdicts");
        assert_eq!(verdicts.len(), 4, "{decision}");
        assert!(verdicts.iter().all(|it| it["verdict"] == "block" && it["shadow"] == true));
    }
    // Nor does it stop events that cannot be read.
    assert_eq!(home.hook("hermes", "{\"hook_event_name\": \"pre_tool_call\", ").stdout, "");
    let crash = report(&home, "crash");
    assert_eq!((&crash["blocked"], &crash["failed"]), (&json!(2), &json!(2)), "{crash}");
    let rude = report(&home, "rude");
    assert_eq!((&rude["blocked"], &rude["failed"]), (&json!(2), &json!(0)), "{rude}");
}

#[test]
fn a_command_in_shadow_mode_that_is_not_approved_does_not_run() {
    let home = Home::new();
    let script = home.script("guard.sh", &blocking_script("no"));
    home.write_hooks_file(&format!(
        "hooks: {{ tool.before: [{{ name: guard, mode: shadow, on_failure: block, command: {script} }}] }}\n"
    ));
    assert_eq!(answer(&home, "ls"), Value::Null);
    let verdict = home.last_decision()["verdicts"][0].clone();
    assert_eq!((&verdict["refused"], &verdict["shadow"]), (&json!("consent"), &json!(true)));
    let found = report(&home, "guard");
    assert_eq!((&found["unapproved"], &found["verdicts"]), (&json!(1), &json!(0)));
    home.approve();
    assert_eq!(answer(&home, "ls"), Value::Null);
    assert_eq!(home.last_decision()["verdicts"][0]["reason"], "no", "it was asked");
    assert_eq!(report(&home, "guard")["blocked"], 1);
}

#[test]
fn what_a_hook_in_shadow_mode_would_add_or_change_reaches_neither_agent_nor_next_hook() {
    let home = Home::new();
    let no_plan = "#!/bin/sh\nif grep -q '\"plan\"'; then echo 'no plan' >&2; exit 2; fi\n";
    let no_plan = home.script("no-plan.sh", no_plan);
    home.write_hooks(&format!(
        "hooks:
  tool.before:
    - {{ name: dry-run, mode: shadow, rule: {{ when: {{ command: apply }}, rewrite: {{ command: plan }} }} }}
    - {{ name: no-plan, sequential: true, command: {no_plan} }}
  turn.start:
    - {{ name: news, mode: shadow, rule: {{ context: news }} }}
"
    ));
    let payload = json!({"hook_event_name": "BeforeTool", "session_id": "g", "tool_name": "run_shell_command",
                         "tool_input": {"command": "apply"}});
    assert_eq!(home.answer("gemini", &payload), Value::Null);
    assert_eq!(home.last_decision()["verdicts"][0]["rewrite"], json!({"command": "plan"}));
    let payload = json!({"hook_event_name": "BeforeAgent", "session_id": "g", "prompt": "hi"});
    assert_eq!(home.answer("gemini", &payload), Value::Null);
    assert_eq!(home.last_decision()["verdicts"][0]["context"], "news");
    let (changed, added) = (report(&home, "dry-run"), report(&home, "news"));
    assert_eq!((&changed["rewritten"], &added["context"]), (&json!(1), &json!(1)));
    // Enforced, the rewrite reaches the hook behind it.
    home.write_hooks(&hooks_file(&home).replace("mode: shadow, ", ""));
    let payload = json!({"hook_event_name": "BeforeTool", "session_id": "g", "tool_name": "run_shell_command",
                         "tool_input": {"command": "apply"}});
    assert_eq!(home.answer("gemini", &payload)["reason"], "no plan");
}

#[test]
fn plugins_can_be_in_shadow_mode() {
    let home = Home::new();
    let guard = plugin(&home, "guard", &blocking_plugin("guarded"));
    plugin(&home, "other", "def register(ctx):\n    pass\n");
    let all = path_text(guard.parent().expect("a directory"));
    let text = format!(
        "plugins: {{ enabled: [guard, other] }}\nhooks:\n  tool.before:\n    - {{ name: all, mode: shadow, python: {all} }}\n"
    );
    home.write_hooks(&text);
    for mode in ["off", "running"] {
        let _daemon = (mode == "running").then(|| home.serve());
        let mut hook = home.command(["hook", "hermes"]);
        hook.env("HOOKBUS_DAEMON", mode);
        assert_eq!(feed(hook, call("s", "ls").to_string().as_bytes()).stdout, "");
        let verdict = home.last_decision()["verdicts"][0].clone();
        assert_eq!((&verdict["reason"], &verdict["shadow"]), (&json!("guarded"), &json!(true)));
    }
    // A directory with several plugins is one hook, which is promoted by its own name.
    let text = home.text(&["hooks", "shadow", "--hook", "all"]);
    assert!(text.starts_with("all (guard)\n") && !text.contains("no verdict yet"), "{text}");
    assert!(text.ends_with("hookbus hooks promote all\n"), "{text}");
    home.text(&["hooks", "promote", "all", "--yes"]);
    assert_eq!(answer(&home, "ls")["reason"], "guarded");
}

#[test]
fn a_question_without_a_person_is_noted_as_a_block() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ name: careful, mode: shadow, rule: { ask: sure? } }] }",
    );
    assert_eq!(answer(&home, "ls"), Value::Null);
    let verdict = home.last_decision()["verdicts"][0].clone();
    assert_eq!(verdict["verdict"], "ask");
    assert!(verdict["note"].as_str().is_some_and(|note| note.ends_with("blocked instead")));
    assert_eq!(report(&home, "careful")["blocked"], 1);
}

#[test]
fn a_whole_file_can_be_in_shadow_mode() {
    let home = Home::with_hooks(&format!(
        "shadow: true\n{}    - {{ name: always, mode: decide, rule: {{ when: {{ command: dd }}, block: no dd }} }}\n",
        RULES.replace("      mode: shadow          # until Friday\n", "")
    ));
    assert_eq!(answer(&home, "rm --force"), Value::Null);
    assert_eq!(answer(&home, "dd x")["reason"], "no dd (hookbus rule always)");
    let listed = home.json(&["hooks", "list", "--json"]);
    let modes: Vec<&Value> =
        listed["hooks"].as_array().expect("hooks").iter().map(|hook| &hook["mode"]).collect();
    assert_eq!(modes, ["shadow", "shadow", "decide"]);
    home.write_hooks(&hooks_file(&home).replace("shadow: true", "shadow: perhaps"));
    assert_eq!(answer(&home, "rm --force"), Value::Null, "the last good value counts");
    let (ok, listed) =
        (home.run(&["hooks", "list"]).status.success(), home.run(&["hooks", "list"]));
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(!ok && listed.contains("`shadow` is `true` or `false`"), "{listed}");
    home.write_hooks(&hooks_file(&home).replace("shadow: perhaps\n", ""));
    assert_eq!(answer(&home, "rm --force")["reason"], "no force (hookbus rule no-force-push)");
    let changes = home.log(&["--kind", "settings.changed"]);
    let last = changes.last().expect("a change")["payload"]["changes"][0].clone();
    assert_eq!(last["key"], "shadow", "{changes:?}");
}

#[test]
fn a_mistyped_mode_leaves_the_last_good_version_in_force() {
    let home = Home::with_hooks(RULES);
    assert_eq!(answer(&home, "git push --force"), Value::Null);
    home.write_hooks(&RULES.replace("mode: shadow ", "mode: shadw "));
    assert_eq!(answer(&home, "git push --force"), Value::Null, "it is still in shadow mode");
    let listed = String::from_utf8_lossy(&home.run(&["hooks", "list"]).stdout).into_owned();
    assert!(listed.contains("`mode` is `decide` (the default), `shadow` or `observe`"), "{listed}");
    let new = Home::with_hooks(&RULES.replace("mode: shadow ", "mode: shadw "));
    assert_eq!(
        answer(&new, "git push --force")["reason"],
        "no force (hookbus rule no-force-push)",
        "the strict reading"
    );
}

#[test]
fn a_projects_rule_can_be_in_shadow_mode() {
    let home = Home::with_hooks(RULES);
    let project = home.work().join("project");
    fs::create_dir_all(project.join(".hookbus")).expect("a project");
    let entry =
        "{ name: no-deploy, mode: shadow, rule: { when: { command: deploy }, block: not here } }";
    let text = format!("hooks:\n  tool.before:\n    - {entry}\n");
    fs::write(project.join(".hookbus/hookbus.yaml"), &text).expect("hooks");
    let in_project = |folder: &Path, arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.current_dir(folder);
        let mut payload = call("p", "deploy");
        payload["cwd"] = json!(path_text(folder));
        feed(command, payload.to_string().as_bytes()).stdout
    };
    assert_eq!(in_project(&project, &["hook", "hermes"]), "");
    let verdict = home.last_decision()["verdicts"][0].clone();
    assert!(verdict["failure"].as_str().is_some_and(|why| why.starts_with(NOT_APPROVED)));
    approve_in(&home, &project);
    assert_eq!(in_project(&project, &["hook", "hermes"]), "");
    let verdict = home.last_decision()["verdicts"][0].clone();
    let found = (&verdict["reason"], &verdict["shadow"], &verdict["project"]);
    assert_eq!(found, (&json!("not here"), &json!(true), &json!(true)));
    assert!(in_project(&project, &["hooks", "list"]).contains("shadow  rule"));
    assert!(
        in_project(&project, &["hooks", "shadow"]).contains("no-deploy\n  1 verdict in 1 session")
    );
}

#[test]
fn the_report_counts_calls_and_sessions() {
    let home = Home::with_hooks(RULES);
    assert!(home.text(&["hooks", "shadow"]).starts_with("no-force-push  no verdict yet\n"));
    for (session, command) in
        [("a", "git push --force"), ("a", "git push --force"), ("b", "x --force"), ("c", "ls")]
    {
        home.answer("hermes", &call(session, command));
    }
    let found = report(&home, "no-force-push");
    let counts =
        ["verdicts", "blocked", "sessions", "failed", "none"].map(|key| found[key].clone());
    assert_eq!(counts, [json!(3), json!(3), json!(2), json!(0), json!(0)], "{found}");
    assert_eq!(
        found["most_affected"],
        json!([{"call": "terminal  git push --force", "times": 2, "first": 2},
               {"call": "terminal  x --force", "times": 1, "first": 6}])
    );
    let text = home.text(&["hooks", "shadow"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("        3  would have been blocked\n"), "{text}");
    assert!(text.contains("        2 ×  terminal git push --force (first at 2)\n"), "{text}");
    assert!(text.ends_with("hookbus hooks promote no-force-push\n"), "{text}");
    let first = found["first"].as_str().expect("a time");
    let later = home.json(&["hooks", "shadow", "--json", "--since", "2100-01-01"]);
    assert_eq!(later["hooks"][0]["verdicts"], 0, "{first}");
    let unknown = home.run(&["hooks", "shadow", "--hook", "no-force-pull"]);
    let error = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(error.contains("did you mean `no-force-push`?"), "{error}");
}

#[test]
fn hooks_test_says_that_a_verdict_has_no_effect() {
    let home = Home::with_hooks(RULES);
    let payload = home.work().join("push.json");
    fs::write(&payload, r#"{"tool_input": {"command": "git push --force"}}"#).expect("a payload");
    let text =
        home.text(&["hooks", "test", "pre_tool_call", "--payload-file", &path_text(&payload)]);
    assert!(text.contains("would block") && text.contains("no effect"), "{text}");
    assert!(text.contains("outcome: none"), "{text}");
}

#[test]
fn promote_edits_the_file_in_place_and_then_the_rule_blocks() {
    let home = Home::new();
    home.write_hooks_file(RULES);
    assert_eq!(answer(&home, "git push --force"), Value::Null);
    let refused = home.run(&["hooks", "promote", "no-force-push"]);
    let shown = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!((refused.status.code(), hooks_file(&home).as_str()), (Some(1), RULES));
    assert!(shown.contains("-       mode: shadow          # until Friday"), "{shown}");
    let done = home.text(&["hooks", "promote", "no-force-push", "--yes"]);
    assert!(done.contains("no-force-push decides from now on"), "{done}");
    assert!(!done.contains("approve"), "a rule needs no approval: {done}");
    assert_eq!(
        hooks_file(&home),
        RULES.replace("      mode: shadow          # until Friday\n", "")
    );
    assert_eq!(
        answer(&home, "git push --force")["reason"],
        "no force (hookbus rule no-force-push)"
    );
    for (name, why) in [
        ("no-rm", "is not in shadow mode: it decides already"),
        ("no-force", "has no hook `no-force`"),
    ] {
        let output = home.run(&["hooks", "promote", name, "--yes"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && error.contains(why), "{error}");
    }
    home.write_hooks_file(RULES);
    let output = home.run(&["hooks", "promote", "no-force-pull", "--yes"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("did you mean `no-force-push`?"), "{error}");
}

#[test]
fn promote_asks_at_a_terminal() {
    for (reply, is_changed) in [("n", false), ("y", true)] {
        let home = Home::new();
        home.write_hooks_file(RULES);
        let command = home.command_at_terminal(["hooks", "promote", "no-force-push"]);
        let acts = [Act::See("make this change?"), Act::Type(reply), Act::Enter];
        let (exit, screen) = run_at_terminal(command, &acts);
        assert_eq!(exit, Some(i32::from(!is_changed)), "{screen}");
        assert_eq!(hooks_file(&home) != RULES, is_changed, "{screen}");
    }
}

#[test]
fn promote_in_a_file_in_shadow_mode_names_the_mode_and_all_ends_it() {
    let home = Home::new();
    let text = format!(
        "shadow: true  # a new policy\n{}",
        RULES.replace("      mode: shadow          # until Friday\n", "")
    );
    home.write_hooks_file(&text);
    home.text(&["hooks", "promote", "no-rm", "--yes"]);
    assert!(hooks_file(&home).contains("block: no rm }, mode: decide }"), "{}", hooks_file(&home));
    assert_eq!(answer(&home, "rm x")["reason"], "no rm (hookbus rule no-rm)");
    assert_eq!(answer(&home, "git push --force"), Value::Null);
    home.write_hooks_file(&text);
    let done = home.text(&["hooks", "promote", "--all", "--yes"]);
    assert!(done.contains("no-force-push decides") && done.contains("no-rm decides"), "{done}");
    let after = hooks_file(&home);
    assert!(
        !after.contains("shadow") && after.ends_with(text.split_once('\n').expect("lines").1),
        "{after}"
    );
    assert_eq!(
        answer(&home, "git push --force")["reason"],
        "no force (hookbus rule no-force-push)"
    );
    assert!(home.text(&["hooks", "promote", "--all", "--yes"]).contains("nothing has changed"));
}

#[test]
fn a_promoted_command_has_to_be_approved_again() {
    let home = Home::new();
    let script = home.script("guard.sh", &blocking_script("guarded"));
    home.write_hooks_file(&format!(
        "hooks:\n  tool.before:\n    - name: guard\n      mode: shadow\n      command: {script}\n"
    ));
    home.approve();
    assert_eq!(answer(&home, "ls"), Value::Null);
    let done = home.text(&["hooks", "promote", "guard", "--yes"]);
    assert!(
        done.contains("approved again: guard") && done.contains("hookbus hooks approve"),
        "{done}"
    );
    let blocked = answer(&home, "ls")["reason"].as_str().unwrap_or_default().to_owned();
    assert!(blocked.contains(LAPSED), "{blocked}");
    home.approve();
    assert_eq!(answer(&home, "ls")["reason"], "guarded");
}

#[test]
fn promote_leaves_a_mode_alone_that_several_entries_share() {
    let home = Home::new();
    let text = "x-shared: &shared { mode: shadow, tool: shell }
hooks:
  tool.before:
    - { <<: *shared, name: a, rule: { when: { command: aaa }, block: a } }
    - { <<: *shared, name: b, rule: { when: { command: bbb }, block: b } }
";
    home.write_hooks_file(text);
    assert_eq!(answer(&home, "aaa"), Value::Null);
    home.text(&["hooks", "promote", "a", "--yes"]);
    assert_eq!(answer(&home, "aaa")["reason"], "a (hookbus rule a)", "{}", hooks_file(&home));
    assert_eq!(answer(&home, "bbb"), Value::Null);
}

#[test]
fn a_replay_of_a_session_with_hooks_in_shadow_mode_changes_nothing() {
    let home = Home::with_hooks(RULES);
    for command in ["git push --force", "rm --force", "ls"] {
        answer(&home, command);
    }
    for options in [&["--as-recorded"][..], &[]] {
        let arguments = [&["replay", "--all"], options].concat();
        let replayed = home.json(&[&arguments[..], &["--json"]].concat());
        assert_eq!(replayed["summary"]["unchanged"], replayed["summary"]["events"], "{replayed}");
        let text = home.text(&arguments);
        assert!(text.contains("no-force-push (shadow)") && text.contains("2 → 2"), "{text}");
        assert!(!text.contains("no-rm (shadow)"), "{text}");
    }
    let without = RULES.replace("      mode: shadow          # until Friday\n", "");
    let candidate = home.work().join("candidate.yaml");
    fs::write(&candidate, without).expect("hooks");
    let replayed = home.json(&["replay", "--all", "--json", "--hooks", &path_text(&candidate)]);
    assert_eq!(replayed["summary"]["newly_blocked"], 1, "{replayed}");
    assert_eq!(replayed["most_affected"][0]["call"], "terminal  git push --force");
    let explained = home.text(&["replay", "--explain", "2"]);
    assert!(explained.contains("no-force-push (shadow)"), "{explained}");
}
