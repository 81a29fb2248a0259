//! `hookbus replay`: with the recorded hooks nothing changes, with a candidate exactly what it changes; the log
//! stays the same; no command runs without confirmation.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hookbus_tests::agents::{Act, Gemini, Hermes, run_at_terminal};
use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::payloads::{self, gemini_shell, hermes_shell, one};
use hookbus_tests::recording::{Mixed, damage, query};
use hookbus_tests::wiring::Agent;
use serde_json::{Value, json};

const RULES: &str = r"
hooks:
  tool.before:
    - { name: no-rm, tool: shell, rule: { when: { command: 'rm -rf' }, block: not on my machine } }
    - { name: rewrite, agent: gemini, tool: file.write, rule: { rewrite: { content: ours } } }
  turn.start:
    - { name: house, rule: { context: run the tests } }
  turn.end:
    - { name: more, rule: { block: not good enough } }
  '*':
    - { name: yes, rule: { allow: true } }
";

/// A script that blocks `push`, configured as a hook.
fn guard(home: &Home) -> String {
    let script = home.script(
        "guard.py",
        "#!/usr/bin/env python3\nimport json, sys\nevent = json.load(sys.stdin)\n\
         if 'push' in json.dumps(event.get('tool_input')):\n    \
         print(json.dumps({'decision': 'block', 'reason': 'no push at ' + event['hookbus']['time']}))\n",
    );
    format!("hooks:\n  tool.before:\n    - {{ name: guard, command: {script} }}\n")
}

/// Sends every sample payload of an agent through `hookbus hook`.
fn record_all(home: &Home, agent: &str) {
    let payloads = payloads::all().into_iter().filter(|(of, ..)| of == agent);
    for (_, name, bytes) in payloads {
        // There is no git repository here to make a worktree in.
        let exit = i32::from(name.contains("WorktreeCreate"));
        assert_eq!(home.hook(agent, bytes).exit, Some(exit), "{name}");
    }
}

fn replay(home: &Home, arguments: &[&str]) -> Output {
    home.run(&[&["replay"], arguments].concat())
}

fn report(home: &Home, arguments: &[&str]) -> Value {
    home.json(&[&["replay", "--json"], arguments].concat())
}

fn text_of(output: &Output) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Asserts that events were replayed and all are unchanged.
fn assert_unchanged(report: &Value) {
    let summary = &report["summary"];
    assert!(summary["events"].as_u64() > Some(0), "{report}");
    assert_eq!(summary["unchanged"], summary["events"], "{report:#}");
    assert_eq!(report["changes"], json!([]));
}

fn candidate(home: &Home, yaml: &str) -> String {
    let path = home.work().join("candidate.yaml");
    fs::write(&path, yaml).expect("a candidate");
    path_text(&path)
}

#[test]
fn every_payload_of_every_agent_is_unchanged_as_recorded() {
    for agent in ["hermes", "gemini", "claude", "codex"] {
        let home = Home::with_daemon("running");
        home.write_hooks(RULES);
        let _daemon = home.serve();
        record_all(&home, agent);
        assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
        assert_unchanged(&report(&home, &["--all"]));
    }
}

#[test]
fn commands_are_unchanged_as_recorded() {
    let home = Home::new();
    home.write_hooks(&guard(&home));
    for command in ["ls", "git push", "make"] {
        home.answer("hermes", &hermes_shell(command));
        home.answer("gemini", &gemini_shell(command));
    }
    assert_eq!(home.decisions().iter().filter(|it| it["outcome"] == "block").count(), 2);
    home.write_hooks("hooks: {}");
    let report = report(&home, &["--all", "--as-recorded", "--yes"]);
    assert_unchanged(&report);
    assert_eq!(report["summary"]["events"], 6);
    assert_eq!(report["hooks"][0]["now"], 2);
    // In parallel the results are the same, in the same order.
    let none = candidate(&home, "hooks: {}");
    let in_parallel = ["--all", "--as-recorded", "--yes", "--jobs", "4"];
    assert_unchanged(&self::report(&home, &in_parallel));
    let gone = self::report(&home, &["--all", "--hooks", &none]);
    assert_eq!(gone["summary"]["newly_allowed"], 2, "{gone}");
}

#[test]
fn a_real_hermes_session_is_unchanged_as_recorded() {
    let home = Home::new();
    let policy = format!("{}  turn.start: [{{ rule: {{ context: be brief }} }}]\n", guard(&home));
    home.write_hooks(&policy);
    Hermes::working("replayed").through_everywhere(&home, "off").go();
    assert_unchanged(&report(&home, &["last", "--as-recorded", "--yes"]));
}

#[test]
fn a_real_gemini_session_is_unchanged_as_recorded() {
    let home = Home::new();
    let policy = format!("{}  turn.start: [{{ rule: {{ context: be brief }} }}]\n", guard(&home));
    home.write_hooks(&policy);
    Gemini::working("replayed").through_everywhere(&home, "off").go();
    assert_unchanged(&report(&home, &["last", "--as-recorded", "--yes"]));
}

#[test]
fn continuations_and_whether_the_user_could_be_asked_are_taken_from_the_log() {
    let home = Home::with_hooks(
        "max_continuations: 2\nhooks:\n  turn.end: [{ rule: { block: go on } }]\n  \
         tool.before: [{ agent: gemini, rule: { ask: may it? } }]\n",
    );
    let mut done = one("gemini", "AfterAgent");
    for active in [false, true, true, true, false, true] {
        done["stop_hook_active"] = json!(active);
        home.answer("gemini", &done);
    }
    home.answer("gemini", &gemini_shell("ls"));
    let outcomes: Vec<Value> =
        home.decisions().iter().map(|decision| decision["outcome"].clone()).collect();
    assert_eq!(outcomes, ["block", "block", "none", "none", "block", "block", "block"]);
    assert_eq!(home.decisions()[6]["can_ask"], false);
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    // In the middle of a session the continuations before still count.
    assert_unchanged(&report(&home, &["-n", "5", "--as-recorded"]));
    assert_eq!(report(&home, &["-n", "5"])["summary"]["events"], 5);
}

#[test]
fn a_new_question_notes_what_happens_if_the_user_cannot_be_asked() {
    let home = Home::new();
    home.answer("gemini", &gemini_shell("ls"));
    let asks = candidate(&home, "hooks: { tool.before: [{ name: asks, rule: { ask: may it? } }] }");
    let report = report(&home, &["--all", "--hooks", &asks]);
    let change = &report["changes"][0];
    assert_eq!((&change["then"], &change["now"]), (&json!("none"), &json!("ask")), "{report}");
    assert!(
        change["notes"][0].as_str().expect("a note").contains("if the user could not be asked")
    );
}

#[test]
fn a_candidate_with_one_more_rule_yields_exactly_the_calls_that_it_matches() {
    let (some, _) = RULES.split_once("  '*':").expect("a rule for everything");
    let some = format!("log: {{ synchronous: normal }}{some}");
    let home = Home::with_hooks(&some);
    Mixed { events: 100_000, sessions: 400 }.record(&home);
    let strict = some.replace(
        "  turn.start:\n",
        "    - { name: no-push, tool: shell, rule: { when: { command: 'push.*--force' }, block: no } }\n  turn.start:\n",
    );
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    let report = report(&home, &["--all", "--hooks", &candidate(&home, &strict)]);
    let found: Vec<i64> = report["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|change| change["seq"].as_i64().expect("a position"))
        .collect();
    let expected: Vec<i64> = query(
        &home,
        "SELECT seq FROM events WHERE kind = 'tool.before' AND agent IN ('hermes', 'gemini') \
         AND tool IN ('terminal', 'run_shell_command') \
         AND payload ->> '$.tool_input.command' LIKE '%push%--force%' ORDER BY seq",
    );
    assert!(expected.len() > 1000, "{}", expected.len());
    assert_eq!(found, expected);
    let summary = &report["summary"];
    assert_eq!(summary["newly_blocked"], json!(expected.len()), "{summary}");
    assert_eq!(summary["events"].as_u64(), Some(100_000));
    for change in report["changes"].as_array().into_iter().flatten() {
        assert_eq!((&change["hook"], &change["now"]), (&json!("no-push"), &json!("block")));
    }
}

#[test]
fn the_log_stays_byte_for_byte_the_same() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks(&guard(&home));
        let daemon = (mode == "running").then(|| home.serve());
        home.answer("hermes", &hermes_shell("git push"));
        // A killed daemon leaves a write-ahead log behind, which other readers would move into the log.
        drop(daemon);
        let files = || {
            ["log.db", "log.db-wal"].map(|name| fs::read(home.path().join(name)).expect("a file"))
        };
        let before = files();
        assert!(!before[1].is_empty(), "the write-ahead log is not empty");
        assert_unchanged(&report(&home, &["--all", "--yes"]));
        home.text(&["replay", "--all", "--as-recorded", "--rules-only"]);
        assert!(before == files(), "{mode}");
    }
}

#[test]
fn commands_never_run_without_confirmation() {
    let home = Home::new();
    let mark = home.work().join("ran");
    let touch = home.script("touch.sh", &format!("#!/bin/sh\n: > {}\n", path_text(&mark)));
    home.write_hooks(&format!("hooks: {{ tool.before: [{{ command: {touch} }}] }}"));
    home.answer("hermes", &hermes_shell("ls"));
    fs::remove_file(&mark).expect("it ran live");
    for arguments in [&["--all", "--as-recorded"][..], &["--all"], &["--all", "--json"]] {
        let output = replay(&home, arguments);
        assert_eq!(output.status.code(), Some(1));
        let text = text_of(&output);
        assert!(text.contains(&touch) && text.contains("--yes"), "{text}");
    }
    let dry = home.text(&["replay", "--all", "--as-recorded", "--dry-run"]);
    assert!(dry.contains(&touch) && dry.contains("1 ×"), "{dry}");
    let rules = report(&home, &["--all", "--rules-only"]);
    assert_eq!(rules["summary"]["not_comparable"], 1, "{rules}");
    assert!(!mark.exists(), "nothing ran");
    assert_unchanged(&report(&home, &["--all", "--yes"]));
    assert!(mark.exists());
}

#[test]
fn the_user_is_asked_before_commands_run() {
    let home = Home::new();
    let mark = home.work().join("ran");
    home.answer("hermes", &hermes_shell("ls"));
    let touch = home.script("touch.sh", &format!("#!/bin/sh\n: > {}\n", path_text(&mark)));
    home.write_hooks(&format!("hooks: {{ tool.before: [{{ command: {touch} }}] }}"));
    for (answer, exit, ran) in [("n", 1, false), ("y", 0, true)] {
        let acts = [Act::See("touch.sh"), Act::See("[y/N]"), Act::Type(answer), Act::Enter];
        let (ended, screen) = run_at_terminal(home.command(["replay", "--all"]), &acts);
        assert_eq!((ended, mark.exists()), (Some(exit), ran), "{screen}");
    }
}

#[test]
fn commands_run_in_a_scratch_directory_and_can_recognise_a_replay() {
    let home = Home::new();
    let seen = home.work().join("seen");
    let look = home.script(
        "look.sh",
        &format!("#!/bin/sh\n{{ cat; echo; env; pwd; }} > {}\n", path_text(&seen)),
    );
    // Relative to the client's working directory, as Hermes resolves it.
    fs::create_dir_all(home.work().join("hooks")).expect("a directory");
    fs::copy(&look, home.work().join("hooks/look.sh")).expect("a script");
    home.write_hooks("hooks: { pre_tool_call: [{ command: hooks/look.sh }] }");
    home.answer("hermes", &hermes_shell("ls"));
    fs::remove_file(&seen).expect("it ran live");
    assert_unchanged(&report(&home, &["--all", "--yes"]));
    let seen = fs::read_to_string(&seen).expect("the script was found");
    let payload: Value =
        serde_json::from_str(seen.lines().next().expect("a payload")).expect("JSON");
    let event = &home.log(&["--kind", "tool.before"])[0];
    for key in ["id", "seq", "time"] {
        assert_eq!(payload["hookbus"][key], event[key], "{key}");
    }
    assert!(seen.contains("HOOKBUS_REPLAY=1"));
    for name in ["HOME", "TMPDIR", "HOOKBUS_HOME", "PWD"] {
        let line = seen.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        let path = line.unwrap_or_else(|| panic!("{name} is set"));
        assert!(path.contains("hookbus-replay-"), "{name}={path}");
        assert!(!Path::new(path).exists(), "the scratch directory is removed");
    }
}

#[test]
fn commands_are_listed_with_resolved_paths_and_variables() {
    let home = Home::new();
    fs::write(home.work().join("c.sh"), "#!/bin/sh\n").expect("a script");
    home.write_hooks("hooks: { pre_tool_call: [{ command: ./c.sh, env: { LD_PRELOAD: x.so } }] }");
    home.answer("hermes", &hermes_shell("ls"));
    let text = home.text(&["replay", "--all", "--dry-run"]);
    assert!(text.contains(&path_text(&home.work().join("c.sh"))), "{text}");
    assert!(text.contains("with LD_PRELOAD=x.so"), "{text}");
    let json = report(&home, &["--all", "--dry-run", "--repeat", "3"]);
    assert_eq!(json["commands"][0]["env"]["LD_PRELOAD"], "x.so");
    assert_eq!(json["commands"][0]["times"], 3);
}

#[test]
fn a_replay_that_a_signal_ends_leaves_nothing_behind() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let home = Home::new();
        let mark = home.work().join("pid");
        let hangs = home
            .script("hangs.sh", &format!("#!/bin/sh\necho $$ > {}\nsleep 600\n", path_text(&mark)));
        home.answer("hermes", &hermes_shell("ls"));
        home.write_hooks(&format!("hooks: {{ tool.before: [{{ command: {hangs} }}] }}"));
        let tmp = home.path().join("..");
        // Left by a killed replay, and in use by a running process.
        let (dead, alive) = (tmp.join("hookbus-replay-4194305-x"), tmp.join("hookbus-replay-1-x"));
        fs::create_dir_all(&dead).expect("a folder");
        fs::create_dir_all(&alive).expect("a folder");
        let mut child = home.command(["replay", "--all", "--yes"]).spawn().expect("it starts");
        wait_until("it runs", || fs::read_to_string(&mark).is_ok_and(|pid| pid.ends_with('\n')));
        let id = child.id().to_string();
        Command::new("kill").args(["-s", signal, &id]).status().expect("kill");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        let pid = fs::read_to_string(&mark).expect("a process");
        wait_until("its command is gone", || {
            let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            state.map_or(true, |state| state.contains(") Z "))
        });
        let left = fs::read_dir(&tmp).expect("a folder").flatten().map(|it| it.file_name());
        let left: Vec<_> = left.filter(|it| it.to_string_lossy().contains("-replay-")).collect();
        assert_eq!(left, ["hookbus-replay-1-x"]);
    }
}

#[test]
fn a_blocking_rule_settles_an_event_without_its_commands() {
    let home = Home::new();
    home.answer("hermes", &hermes_shell("rm -rf /"));
    home.answer("hermes", &hermes_shell("ls"));
    let both = candidate(
        &home,
        "hooks:\n  tool.before:\n    - { name: no-rm, rule: { when: { command: rm }, block: no } }\n    \
         - { name: other, command: /bin/true }\n",
    );
    let report = report(&home, &["--all", "--rules-only", "--hooks", &both]);
    let summary = &report["summary"];
    assert_eq!((&summary["newly_blocked"], &summary["not_comparable"]), (&json!(1), &json!(1)));
}

#[test]
fn a_replay_goes_on_after_hooks_that_hang_or_exceed_the_memory_limit() {
    let home = Home::new();
    for _ in 0..2 {
        home.answer("hermes", &hermes_shell("ls"));
    }
    let hangs = home.script("hangs.sh", "#!/bin/sh\nsleep 600 & wait\n");
    let eats =
        home.script("eats.py", "#!/usr/bin/env python3\nx = b'x' * (4 << 30)\nprint('{}')\n");
    let greedy = candidate(
        &home,
        &format!(
            "hooks:\n  tool.before:\n    - {{ name: hangs, command: {hangs}, timeout: 1 }}\n    \
             - {{ name: eats, command: {eats} }}\n    \
             - {{ name: no-ls, rule: {{ when: {{ command: ls }}, block: no }} }}\n"
        ),
    );
    let arguments = ["--all", "--yes", "--memory", "500", "--hooks", &greedy];
    let report = report(&home, &arguments);
    assert_eq!(report["summary"]["failed"], 2, "{report}");
    let why = |name: &str| {
        let hooks = report["hooks"].as_array().expect("hooks");
        let hook = hooks.iter().find(|hook| hook["hook"] == name).expect("the hook");
        assert_eq!(hook["failed"], 2, "{hook}");
        hook["failure"].as_str().expect("why").to_owned()
    };
    assert!(why("hangs").contains("no answer within 1.0 s"), "{}", why("hangs"));
    assert!(why("eats").contains("MemoryError"), "{}", why("eats"));
    let text = text_of(&replay(&home, &arguments));
    assert!(text.contains("failed 2 times, first at 1: no answer within"), "{text}");
    // The event is reported as newly blocked, although a hook failed.
    let output = replay(&home, &[&arguments[..], &["--fail-on", "blocked"]].concat());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn repeat_finds_a_nondeterministic_hook() {
    let home = Home::new();
    home.answer("hermes", &hermes_shell("ls"));
    let fickle = home.script(
        "fickle.sh",
        "#!/bin/sh\n[ -e \"$HOME/asked\" ] && exit\n: > \"$HOME/asked\"\n\
         echo '{\"decision\": \"block\", \"reason\": \"the first time\"}'\n",
    );
    let hooks = format!(
        "hooks: {{ tool.before: [{{ name: fickle, command: {fickle} }}, {{ name: steady, command: /bin/true }}] }}"
    );
    let fickle = candidate(&home, &hooks);
    let report = report(&home, &["--all", "--yes", "--repeat", "3", "--hooks", &fickle]);
    assert_eq!(report["summary"]["unsteady"], 1, "{report}");
    assert_eq!(report["unsteady"][0]["hook"], "fickle");
    assert_eq!(report["unsteady"][0]["answers"], json!(["block (the first time)", "none"]));
}

#[test]
fn a_damaged_log_is_replayed_with_a_remark_for_each_damaged_row() {
    let home = Home::with_hooks(RULES);
    home.answer("hermes", &one("hermes", "on_session_start"));
    for command in ["ls", "rm -rf /", "rm -rf /tmp", "ls -l", "make", "true"] {
        home.answer("hermes", &hermes_shell(command));
    }
    let calls: Vec<i64> =
        query(&home, "SELECT seq FROM events WHERE kind = 'tool.before' ORDER BY seq");
    let [first, second, third, fourth, fifth, _] = calls[..] else {
        panic!("six calls: {calls:?}")
    };
    damage(
        &home,
        &[
            // A decision that is not JSON, an id that is too short, a kind of a later version, a
            // decision about a missing event, an event older than the one before.
            &format!("UPDATE events SET payload = '{{\"outc' WHERE cause = {second}"),
            &format!("UPDATE events SET id = x'0102' WHERE seq = {first}"),
            &format!("UPDATE events SET kind = 'tool.someday' WHERE seq = {third}"),
            &format!("UPDATE events SET cause = 4711 WHERE cause = {fifth}"),
            &format!("UPDATE events SET time = time - 60000000 WHERE seq = {fourth}"),
        ],
    );
    let report = report(&home, &["--all", "--as-recorded"]);
    let summary = &report["summary"];
    assert_eq!(summary["events"], 6, "{report:#}");
    let remarks = report["remarks"].to_string();
    for line in [
        format!("row {first} is damaged (its id has 2 bytes instead of 16): skipped"),
        format!("row {third} has kind `tool.someday`, which this version of hookbus does not know"),
        "is a decision about an event that is not in the log".to_owned(),
        format!("1 event is older than the event before it in its session (the first at {fourth})"),
        "has no end".to_owned(),
    ] {
        assert!(remarks.contains(&line), "{line}: {remarks}");
    }
    let why = report["not_comparable"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("the recorded decision cannot be read"), "{why}");
    assert_eq!(report["not_comparable"][0]["first"], second);
    // The event whose decision now points elsewhere has no decision.
    assert_eq!((&summary["changed"], &summary["unchanged"]), (&json!(1), &json!(4)), "{report:#}");
}

#[test]
fn a_log_with_an_overwritten_page_is_replayed_around_it() {
    const PAGE: usize = 4096;
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/0001.db");
    let mut bytes = fs::read(corpus).expect("a log");
    bytes[9 * PAGE..10 * PAGE].fill(0);
    let home = Home::new();
    fs::create_dir_all(home.path()).expect("a home");
    fs::write(home.path().join("log.db"), bytes).expect("a damaged log");
    let report = report(&home, &["--all", "--as-recorded", "--rules-only"]);
    let summary = &report["summary"];
    assert!(summary["unchanged"].as_u64() > Some(15), "{report:#}");
    assert_eq!(report["changes"], json!([]));
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("is damaged (database disk image is malformed)"), "{remarks}");
}

#[test]
fn agents_that_are_only_recorded_and_a_missing_hooks_file_are_reported() {
    let home = Home::new();
    home.answer("claude", &one("claude", "PreToolUse"));
    let output = replay(&home, &["--all"]);
    let text = text_of(&output);
    assert!(text.contains("1 × claude: its events are only recorded"), "{text}");
    assert!(text.contains("there is no ") && text.contains("so no hook is used"), "{text}");
    let empty = home.work().join("empty.jsonl");
    fs::write(&empty, "\n").expect("a file");
    let report = report(&home, &["--all", "--log", &path_text(&empty)]);
    assert_eq!(report["summary"]["events"], 0);
}

#[test]
fn reasons_are_grouped_by_hook_and_not_by_failure_text() {
    let home = Home::new();
    let script = home.script("guard.sh", "#!/bin/sh\necho $$ >&2\nexit 7\n");
    home.write_hooks(&format!(
        "hooks: {{ tool.before: [{{ name: guard, on_failure: block, command: {script} }}] }}"
    ));
    for _ in 0..3 {
        home.answer("hermes", &hermes_shell("ls"));
    }
    home.script("guard.sh", "#!/bin/sh\n");
    let report = report(&home, &["--all", "--yes"]);
    let reasons = report["not_comparable"].as_array().expect("reasons");
    assert_eq!((reasons.len(), &reasons[0]["events"]), (1, &json!(3)), "{reasons:?}");
}

#[test]
fn selections_find_the_events_they_describe() {
    let home = Home::new();
    let in_session = |mut payload: Value, session: &str| {
        payload["session_id"] = json!(session);
        payload
    };
    for session in ["alpha-1", "alpha-2", "beta-1"] {
        home.answer("hermes", &in_session(hermes_shell("ls"), session));
        home.answer("gemini", &in_session(gemini_shell("ls"), session));
        home.answer("gemini", &in_session(one("gemini", "AfterTool"), session));
    }
    let events = |arguments: &[&str]| report(&home, arguments)["summary"]["events"].clone();
    for (arguments, expected) in [
        (&["--all"][..], 9),
        (&["beta"], 3),
        (&["alpha-1", "beta"], 6),
        (&["last"], 3),
        (&["--agent", "hermes"], 3),
        (&["--kind", "tool.*"], 9),
        (&["--kind", "tool.after"], 3),
        (&["--tool", "shell"], 6),
        (&["--since", "1h"], 9),
        (&["--until", "1h"], 0),
        (&["--agent", "gemini", "-n", "2"], 2),
    ] {
        assert_eq!(events(arguments), expected, "{arguments:?}");
    }
    let elsewhere = Home::new();
    for path in [home.path(), home.path().join("log.db")] {
        let report = report(&elsewhere, &["--all", "--log", &path_text(&path)]);
        assert_eq!(report["summary"]["events"], 9);
    }
    for (arguments, hint) in [
        (&[][..], "say what to replay"),
        (&["alpha"], "matches several sessions"),
        (&["--agent", "hermse"], "unknown agent"),
        (&["--kind", "tool.befor"], "did you mean `tool.before`"),
        (&["--explain", "4711"], "there is no event at 4711"),
        (&["-n", "0"], "a number of at least 1"),
        (&["--explain", "1", "--junit", "x"], "cannot be used with"),
        (&["--all", "--hooks", "nowhere.yaml"], "cannot read nowhere.yaml"),
        (&["--check"], "there are no expectations"),
    ] {
        let output = replay(&home, arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(text_of(&output).contains(hint), "{arguments:?}: {}", text_of(&output));
    }
}

#[test]
fn the_exit_code_follows_fail_on() {
    let home = Home::with_hooks(RULES);
    home.answer("hermes", &hermes_shell("rm -rf /"));
    home.answer("hermes", &hermes_shell("git push"));
    let lax = candidate(&home, &RULES.replace("rm -rf", "git push"));
    let code = |arguments: &[&str]| {
        replay(&home, &[&["--all", "--hooks", &lax], arguments].concat()).status.code()
    };
    for (what, expected) in [("blocked", 1), ("allowed", 1), ("changed", 1), ("any", 1)] {
        assert_eq!(code(&["--fail-on", what]), Some(expected), "{what}");
    }
    assert_eq!(code(&[]), Some(0));
    let reworded = candidate(&home, &RULES.replace("not on my machine", "never"));
    for (what, expected) in [("blocked", 0), ("allowed", 0), ("changed", 1), ("any", 1)] {
        let output = replay(&home, &["--all", "--hooks", &reworded, "--fail-on", what]);
        assert_eq!(output.status.code(), Some(expected), "{what}");
    }
    assert_eq!(replay(&home, &["--all", "--fail-on", "any"]).status.code(), Some(0));
}

#[test]
fn explain_shows_one_event_in_detail() {
    let home = Home::with_hooks(RULES);
    home.answer("hermes", &hermes_shell("rm -rf /"));
    let decision = home.log(&["--kind", "decision"])[0]["seq"].as_i64().expect("a position");
    let reworded = candidate(&home, &RULES.replace("not on my machine", "never"));
    // The position of the decision selects its event.
    let text = home.text(&["replay", "--explain", &decision.to_string(), "--hooks", &reworded]);
    for part in ["rm -rf /", "no-rm", "not on my machine", "never", "changed", " ms"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let explained = report(&home, &["--explain", &decision.to_string(), "--hooks", &reworded]);
    assert_eq!(explained["payload"]["tool_input"]["command"], "rm -rf /");
    assert_eq!(explained["decision_then"]["verdicts"][0]["reason"], "not on my machine");
    assert_eq!(explained["decision_now"]["verdicts"][0]["reason"], "never");
    // The hint in the report is a complete command.
    let hint = home.text(&["replay", "--all", "--hooks", &reworded]);
    assert!(
        hint.contains(&format!("`hookbus replay --hooks {reworded} --explain <seq>`")),
        "{hint}"
    );
    home.text(&["replay", "--all", "--explain", &decision.to_string(), "--hooks", &reworded]);
    let output = replay(&home, &["--explain", &decision.to_string(), "--agent", "gemini"]);
    assert!(text_of(&output).contains("not among the selected ones"), "{}", text_of(&output));
    let list = home.text(&["replay", "--all", "--list", "--hooks", &reworded]);
    assert!(list.contains("block (not on my machine) → block (never)"), "{list}");
}

#[test]
fn a_changed_script_is_noted_beside_the_difference() {
    let home = Home::new();
    let script = home.script("guard.sh", "#!/bin/sh\nexit 0\n");
    home.write_hooks(&format!("hooks: {{ tool.before: [{{ name: guard, command: {script} }}] }}"));
    home.answer("hermes", &hermes_shell("ls"));
    home.script("guard.sh", "#!/bin/sh\necho '{\"decision\": \"block\", \"reason\": \"no\"}'\n");
    let report = report(&home, &["--all", "--as-recorded", "--yes"]);
    assert_eq!(report["summary"]["newly_blocked"], 1, "{report}");
    let note = report["changes"][0]["notes"][0].as_str().expect("a note");
    assert!(note.contains("the script of hook `guard` has changed since"), "{note}");
}

#[test]
fn a_hook_that_failed_when_recorded_and_answers_now_is_not_comparable() {
    let home = Home::new();
    let script = home.script("guard.sh", "#!/bin/sh\nexit 7\n");
    home.write_hooks(&format!(
        "hooks: {{ tool.before: [{{ name: guard, on_failure: block, command: {script} }}] }}"
    ));
    home.answer("hermes", &hermes_shell("ls"));
    assert_unchanged(&report(&home, &["--all", "--as-recorded", "--yes"]));
    home.script("guard.sh", "#!/bin/sh\nexit 0\n");
    let report = report(&home, &["--all", "--as-recorded", "--yes"]);
    assert_eq!(report["summary"]["not_comparable"], 1, "{report}");
    let why = report["not_comparable"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("hook `guard` failed when recorded (exit code 7)"), "{why}");
}

#[test]
fn a_repaired_entry_is_a_difference() {
    let home = Home::with_hooks("hooks: { tool.before: [{ name: no-rm, rule: { blok: no } }] }");
    home.answer("hermes", &hermes_shell("rm x"));
    let good = candidate(&home, "hooks: { tool.before: [{ name: no-rm, rule: { block: no } }] }");
    let report = report(&home, &["--all", "--hooks", &good]);
    assert_eq!(report["summary"]["newly_blocked"], 1, "{report}");
}

#[test]
fn decisions_of_kept_entries_are_unchanged_as_recorded() {
    let home = Home::with_hooks(RULES);
    let calls = ["rm -rf /", "ls"];
    let record = |hooks: &str| {
        home.write_hooks(hooks);
        for command in calls {
            home.answer("hermes", &hermes_shell(command));
            home.answer("gemini", &gemini_shell(command));
        }
    };
    record(RULES);
    let typo = RULES.replace("block: not on", "blokc: not on");
    record(&typo);
    record(&typo.replace("  '*':", "  '*.nothing':"));
    record(
        "hooks:\n  tool.before:\n    - { name: new, rule: { when: { command: ls }, block: new } }\n",
    );
    let blocked = home.decisions().iter().filter(|it| it["outcome"] == "block").count();
    assert_eq!(blocked, 3 * 2 + 2, "every version blocked what it had to");
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    // The hooks in force now, of which one is kept, give the same answers as when they were recorded.
    home.write_hooks(&RULES.replace("block: not good", "block: good"));
    home.answer("hermes", &hermes_shell("ls"));
    home.write_hooks(&typo);
    let now = report(&home, &["--all"]);
    assert_eq!(
        now["summary"]["newly_allowed"], 2,
        "only those of the version without the rule: {now}"
    );
}

#[test]
fn an_event_whose_decision_was_interrupted_is_not_comparable() {
    let home = Home::new();
    let script = home.script("hangs.sh", "#!/bin/sh\necho $$ > pid\nexec sleep 600\n");
    home.write_hooks(&format!("hooks: {{ tool.before: [{{ command: {script} }}] }}"));
    let mut hook = home.command(["hook", "hermes"]);
    let mut hook = hook.stdin(Stdio::piped()).spawn().expect("a hook");
    let mut stdin = hook.stdin.take().expect("a pipe");
    stdin.write_all(hermes_shell("ls").to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let pid = home.work().join("pid");
    wait_until("it runs", || fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')));
    hook.kill().expect("it is ours");
    hook.wait().expect("it is ours");
    let blocks = candidate(&home, "hooks: { tool.before: [{ rule: { block: no } }] }");
    let report = report(&home, &["--all", "--hooks", &blocks]);
    let why = report["not_comparable"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("no decision was recorded"), "{report}");
    // The command outlives the killed hook.
    let pid = fs::read_to_string(pid).expect("a process");
    Command::new("kill").arg(pid.trim()).status().expect("kill");
}

#[test]
fn an_answer_that_a_skipped_command_may_have_given_is_not_comparable() {
    let home = Home::new();
    let script =
        home.script("no.sh", "#!/bin/sh\necho '{\"decision\": \"block\", \"reason\": \"a\"}'\n");
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - {{ command: {script} }}\n    - {{ rule: {{ block: b }} }}\n"
    ));
    home.answer("hermes", &hermes_shell("ls"));
    let summary = &report(&home, &["--all", "--rules-only"])["summary"];
    assert_eq!(
        (&summary["changed"], &summary["not_comparable"]),
        (&json!(0), &json!(1)),
        "{summary}"
    );
}

#[test]
fn arguments_of_a_command_stay_unchanged() {
    let home = Home::new();
    let seen = path_text(&home.work().join("seen"));
    let tell = home.script("tell.sh", &format!("#!/bin/sh\necho \"$@\" >> {seen}\n"));
    fs::copy(tell, home.work().join("tell.sh")).expect("a script");
    fs::write(home.work().join("a.txt"), "").expect("a file");
    home.write_hooks("hooks:\n  - { on: tool.before, command: './../tell.sh a.txt {command}' }\n");
    home.answer("hermes", &hermes_shell("a.txt"));
    home.write_hooks("hooks:\n  BeforeTool: [{ command: './tell.sh tell.sh xtell.sh' }]\n");
    home.answer("gemini", &gemini_shell("a.txt"));
    let live = fs::read_to_string(&seen).expect("it ran");
    fs::remove_file(&seen).expect("it ran");
    assert_unchanged(&report(&home, &["--all", "--as-recorded", "--yes"]));
    assert_eq!(fs::read_to_string(&seen).expect("it ran"), live);
}

#[test]
fn numbers_in_answers_survive_the_round_trip() {
    let home = Home::new();
    let script = home.script(
        "numbers.py",
        "#!/usr/bin/env python3\nimport json, math\n\
         at = [math.sin(n) * 10.0 ** (n % 600 - 300) for n in range(500)]\n\
         print(json.dumps({'hookSpecificOutput': {'tool_input': {'at': at}}}))\n",
    );
    home.write_hooks(&format!("hooks: {{ BeforeTool: [{{ command: {script} }}] }}"));
    home.answer("gemini", &gemini_shell("ls"));
    assert_unchanged(&report(&home, &["--all", "--yes"]));
}

#[test]
fn recorded_session_variables_count_when_commands_are_listed() {
    let home = Home::new();
    home.write_hooks("hooks: { tool.before: [{ session: 'only-*', command: /bin/true }] }");
    let mut payload = hermes_shell("ls");
    for key in ["session_id", "extra"] {
        payload.as_object_mut().expect("an object").remove(key);
    }
    let mut hook = home.command(["hook", "hermes"]);
    hook.env("HERMES_SESSION_ID", "only-this");
    feed(hook, payload.to_string().as_bytes());
    let listed = report(&home, &["--all", "--dry-run"]);
    assert_eq!(listed["commands"][0]["times"], 1, "{listed}");
}

#[test]
fn a_recorded_session_becomes_a_policy_test() {
    let home = Home::with_hooks(RULES);
    home.answer("hermes", &hermes_shell("rm -rf /"));
    home.answer("hermes", &hermes_shell("git push"));
    home.hook("hermes", b"\xff\xfe no text at all");
    let policy = candidate(&home, RULES);
    let expectations = home.work().join("candidate.expect.jsonl");
    home.text(&["replay", "--check", "--update", "--all", "--hooks", &policy]);
    assert!(expectations.exists(), "it is beside the hooks file");

    // Another machine, without a log or hooks.
    let ci = Home::new();
    let check =
        |arguments: &[&str]| replay(&ci, &[&["--check", "--hooks", &policy], arguments].concat());
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    assert!(text_of(&output).contains("3  unchanged"), "{}", text_of(&output));

    candidate(&home, &RULES.replace("rm -rf", "git push"));
    let junit = home.work().join("report.xml");
    let output = check(&["--junit", &path_text(&junit)]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let (tests, failures) = read_junit(&junit);
    assert_eq!((tests, failures), (2, 2), "the unreadable event has no verdict");

    // The change is intended: expectations are updated without a log.
    assert_eq!(check(&["--update"]).status.code(), Some(0));
    assert_eq!(check(&[]).status.code(), Some(0));

    // A line that cannot be read fails the check.
    let text = fs::read_to_string(&expectations).expect("expectations");
    fs::write(&expectations, format!("{text}{{\"seq\": 99, \"pay\n")).expect("a damaged file");
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output).contains("line 5 of the expectations"), "{}", text_of(&output));
}

#[test]
fn a_check_of_nothing_fails_and_an_update_that_would_lose_events_writes_nothing() {
    let home = Home::with_hooks(RULES);
    home.answer("hermes", &hermes_shell("rm -rf /"));
    let expect = home.work().join("e.jsonl");
    let check = |arguments: &[&str]| {
        let output =
            replay(&home, &[&["--check", "--expect", &path_text(&expect)], arguments].concat());
        (output.status.code(), text_of(&output))
    };
    assert_eq!(check(&["--update", "--all"]).0, Some(0));
    assert_eq!(check(&[]).0, Some(0));
    let whole = fs::read(&expect).expect("expectations");
    // No event is selected, commands are skipped, or the selection would be ignored.
    for (arguments, hint) in [
        (&["--update", "--until", "1h"][..], "nothing was written"),
        (&["--update", "--rules-only", "--all"], "cannot be used with"),
        (&["last"], "add --update"),
    ] {
        let (code, message) = check(arguments);
        assert!(code == Some(1) && message.contains(hint), "{arguments:?}: {message}");
        assert_eq!(fs::read(&expect).expect("expectations"), whole, "{arguments:?}");
    }
    // Without its command an event is not checked.
    home.write_hooks("hooks: { tool.before: [{ command: /bin/true }] }");
    assert_eq!(check(&["--rules-only"]).0, Some(1));
    let text = String::from_utf8(whole).expect("text");
    let head = text.lines().next().expect("a head");
    fs::write(&expect, format!("{head}\n")).expect("a file");
    let (code, message) = check(&[]);
    assert!(code == Some(1) && message.contains("nothing was checked"), "{message}");
    fs::write(&expect, format!("{text}{{\"seq\n")).expect("a file");
    let (code, message) = check(&["--update"]);
    assert!(code == Some(1) && message.contains("1 line that cannot be read"), "{message}");
    assert!(fs::read_to_string(&expect).expect("a file").contains("{\"seq\n"));
    assert!(!home.work().join("e.jsonl.partial").exists());
}

#[test]
fn a_check_knows_the_continuations_before_its_events() {
    let home =
        Home::with_hooks("max_continuations: 2\nhooks: { turn.end: [{ rule: { block: go on } }] }");
    let mut done = one("gemini", "AfterAgent");
    for active in [false, true, true, true] {
        done["stop_hook_active"] = json!(active);
        home.answer("gemini", &done);
    }
    home.text(&["replay", "--check", "--update", "-n", "1"]);
    let written = home.text(&["replay", "--check", "--json"]);
    assert_unchanged(&serde_json::from_str(&written).expect("JSON"));
    let file = fs::read_to_string(home.path().join("hookbus.expect.jsonl")).expect("expectations");
    assert!(file.contains("\"outcome\":\"none\""), "{file}");
}

#[test]
fn no_report_is_printed_if_an_output_file_cannot_be_written() {
    let home = Home::with_hooks(RULES);
    home.answer("hermes", &hermes_shell("ls"));
    for file in ["--junit", "--expect"] {
        let mut arguments = vec!["--json", "--all", file, "nowhere/report"];
        if file == "--expect" {
            arguments.extend(["--check", "--update"]);
        }
        let output = replay(&home, &arguments);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(1), 0),
            "{}",
            text_of(&output)
        );
    }
}

#[test]
fn junit_is_well_formed_for_any_payload() {
    let home = Home::with_hooks(RULES);
    home.answer(
        "hermes",
        &hermes_shell("rm -rf <a & b> \"]]>\" \u{1b}[31m \u{7} 'x' \u{fffe} é 😀"),
    );
    home.answer("hermes", &hermes_shell("ls"));
    let none = candidate(&home, "hooks: {}");
    let junit = home.work().join("report.xml");
    home.text(&["replay", "--all", "--hooks", &none, "--junit", &path_text(&junit)]);
    assert_eq!(read_junit(&junit), (2, 2));
}

/// Number of test cases and failures, read with Python's XML parser; the totals at the top must match.
fn read_junit(path: &PathBuf) -> (u64, u64) {
    let script = "import sys, xml.etree.ElementTree as t\nr = t.parse(sys.argv[1]).getroot()\n\
                  s = r.find('testsuite')\nc = s.findall('testcase')\n\
                  assert len(c) == int(s.get('tests')), s.attrib\n\
                  f = [x for x in c if x.find('failure') is not None]\n\
                  assert len(f) == int(s.get('failures')), s.attrib\nprint(len(c), len(f))";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .expect("python3");
    let text = text_of(&output);
    assert!(output.status.success(), "{text}");
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

#[test]
fn logs_of_earlier_versions_verify_and_replay_unchanged() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut seen = 0;
    for entry in fs::read_dir(corpus).expect("the corpus directory") {
        let file = entry.expect("a readable folder").path();
        if file.extension().is_none_or(|end| end != "db") {
            continue;
        }
        let home = Home::new();
        fs::create_dir_all(home.path()).expect("a home");
        fs::copy(&file, home.path().join("log.db")).expect("a log");
        assert!(home.is_sound(), "{}", file.display());
        // It was recorded in another home, so that its one command is approved by name.
        let report = report(&home, &["--all", "--as-recorded", "--run", "command"]);
        assert_unchanged(&report);
        let hooks = report["hooks"].to_string();
        for name in ["no-rm", "house", "more", "rewrite", "asks", "command", "old-rule"] {
            assert!(hooks.contains(name), "{name}: {hooks}");
        }
        seen += 1;
    }
    assert!(seen > 0, "the corpus holds logs");
}
