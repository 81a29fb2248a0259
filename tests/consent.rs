//! Agreeing to what hooks run, trying them, and the doctor who says what is wrong and how to mend it.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hookbus_tests::agents::{Act, before_a_person};
use hookbus_tests::home::{Home, feed, shown, wait_until};
use serde_json::{Value, json};

fn call() -> Value {
    json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal", "tool_input": {}, "session_id": "s"})
}

const BLOCK: &str = "#!/bin/sh\necho '{\"decision\":\"block\",\"reason\":\"guarded\"}'\n";

/// A home that trusts nobody, with a guard that blocks.
fn guarded(on_failure: &str) -> (Home, String) {
    let home = Home::new();
    let script = home.script("guard.sh", BLOCK);
    home.write_hooks(&format!(
        "trust: nobody\nhooks:\n  pre_tool_call:\n    - command: {script}\n{on_failure}"
    ));
    (home, script)
}

#[test]
fn what_nobody_agreed_to_does_not_run_and_says_what_to_type() {
    let (home, _) = guarded("");
    assert_eq!(home.answer("hermes", &call()), Value::Null);
    let failure = home.decisions()[0]["verdicts"][0]["failure"].clone();
    assert!(failure.as_str().is_some_and(|why| why.contains("hookbus hooks approve")), "{failure}");
    let (strict, _) = guarded("      on_failure: block\n");
    assert!(strict.answer("hermes", &call())["reason"].to_string().contains("nobody has agreed"));
}

#[test]
fn what_was_agreed_to_runs_until_it_is_edited_and_then_blocks() {
    let (home, script) = guarded("");
    let refused = home.run(&["hooks", "approve"]);
    assert!(!refused.status.success(), "nobody is asked where nobody sits");
    assert_eq!(home.json(&["hooks", "approve", "--accept-hooks", "--json"])["approved"], 1);
    assert_eq!(home.answer("hermes", &call())["reason"], "guarded");
    fs::write(&script, BLOCK.replace("guarded", "edited")).expect("an edit");
    let answer = home.answer("hermes", &call());
    assert!(
        answer["reason"].as_str().is_some_and(|why| why.contains("has changed since")),
        "{answer}"
    );
    home.text(&["hooks", "approve", "--accept-hooks"]);
    assert_eq!(home.answer("hermes", &call())["reason"], "edited");
    assert_eq!(home.json(&["hooks", "revoke", &script, "--json"])["revoked"], 1);
    assert_eq!(home.answer("hermes", &call()), Value::Null);
    assert!(
        !home.run(&["hooks", "revoke", &script]).status.success(),
        "there is nothing left to take back"
    );
}

#[test]
fn the_variable_and_the_setting_agree_in_place_of_a_person() {
    let (home, _) = guarded("");
    let mut command = home.command(["hooks", "approve"]);
    assert!(command.env("HOOKBUS_ACCEPT_HOOKS", "1").status().expect("hookbus runs").success());
    assert_eq!(home.answer("hermes", &call())["reason"], "guarded");
    let (home, script) = guarded("");
    home.write_hooks(&format!("trust: nobody\nhooks_auto_accept: true\nhooks: {{ pre_tool_call: [{{ command: {script} }}] }}\n"));
    home.text(&["hooks", "approve"]);
    assert_eq!(home.answer("hermes", &call())["reason"], "guarded");
}

#[test]
fn a_plugin_directory_is_agreed_to_as_a_whole() {
    let home = Home::new();
    let folder = home.work().join("plugin");
    let code = "def register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: 'hello')\n";
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("plugin.yaml"), "name: p\n").expect("a file");
    fs::write(folder.join("__init__.py"), code).expect("a file");
    home.write_hooks(&format!(
        "trust: nobody\nhooks: {{ '*': [{{ python: {} }}] }}\n",
        shown(&folder)
    ));
    let turn = json!({"hook_event_name": "pre_llm_call", "session_id": "s", "extra": {}});
    // A plugin that fails says nothing either: what is recorded tells one from the other.
    let refused = |why: &str| {
        assert_eq!(home.answer("hermes", &turn), Value::Null);
        let said = home.decisions().pop().expect("a decision")["verdicts"][0].clone();
        assert_eq!(said["refused"], "consent", "{said}");
        assert!(said["failure"].to_string().contains(why), "{said}");
    };
    refused("nobody has agreed to it");
    home.text(&["hooks", "approve", "--accept-hooks"]);
    assert_eq!(home.answer("hermes", &turn), json!({"context": "hello"}));
    fs::write(folder.join("more.py"), "x = 1\n").expect("a file");
    refused("it has changed since it was agreed to");
}

#[test]
fn a_made_up_event_shows_what_each_hook_says_and_leaves_no_trace() {
    let home = Home::new();
    let script = home.script("guard.sh", BLOCK);
    home.write_hooks(&format!("hooks: {{ tool.before: [{{ name: guard, tool: shell, command: {script} }}, {{ name: rm, rule: {{ when: {{ command: rm }}, block: no rm }} }}] }}"));
    let tried = home.json(&["hooks", "test", "pre_tool_call", "--for-tool", "terminal", "--json"]);
    assert_eq!(
        (&tried["outcome"], &tried["verdicts"][0]["reason"]),
        (&json!("block"), &json!("guarded"))
    );
    assert_eq!(tried["verdicts"][1], Value::Null);
    let file = home.work().join("payload.json");
    fs::write(&file, r#"{"tool_input": {"command": "rm x"}}"#).expect("a payload");
    let shown = home.text(&[
        "hooks",
        "test",
        "pre_tool_call",
        "--for-tool",
        "read_file",
        "--payload-file",
        &shown(&file),
    ]);
    assert!(shown.contains("no rm") && !shown.contains("guarded"), "{shown}");
    assert!(!home.path().join("log.db").exists(), "nothing is recorded");
    assert!(!home.run(&["hooks", "test", "pre_tool_cal"]).status.success());
}

#[test]
fn the_doctor_says_what_is_wrong_and_how_to_mend_it() {
    let home = Home::new();
    let plain = home.script("plain.sh", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("a mode");
    let orphan = home.script("orphan.sh", "#!/no/such/interpreter\n");
    let chatty = home.script("chatty.sh", "#!/bin/sh\necho not json\n");
    let fine = home.script("fine.sh", BLOCK);
    let hermes = home.work().join("hermes");
    fs::create_dir_all(&hermes).expect("a place for Hermes");
    home.write_hooks(&format!(
        "hooks:\n  pre_tool_call:\n    - command: {plain}\n    - command: {orphan}\n    - command: {chatty}\n    - command: {fine}\n    - command: ~/nowhere.sh\n"
    ));
    let doctor = || {
        let mut command = home.command(["hooks", "doctor", "--json"]);
        let output = command
            .env("HERMES_HOME", &hermes)
            .env("HOME", home.work())
            .output()
            .expect("hookbus runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.success(), report["findings"].as_array().cloned().expect("findings"))
    };
    let (well, findings) = doctor();
    let about = |findings: &[Value], word: &str| {
        let found = findings.iter().find(|finding| finding["about"].to_string().contains(word));
        found.cloned().unwrap_or_else(|| panic!("nothing about {word}: {findings:?}"))
    };
    assert!(!well);
    for (word, mend) in [
        ("plain.sh", "chmod +x"),
        ("orphan.sh", "install it"),
        ("chatty.sh", "not one JSON object"),
        ("nowhere.sh", "does not exist"),
        ("Hermes", "hookbus connect hermes"),
        ("events", "hookbus connect hermes"),
    ] {
        let finding = about(&findings, word);
        assert!(finding["finding"].to_string().contains(mend), "{finding}");
    }
    assert_eq!(about(&findings, "fine.sh")["ok"], true);

    home.write_hooks(&format!("hooks: {{ pre_tool_call: [{{ command: {fine} }}] }}"));
    home.answer("hermes", &call());
    let mut connect = home.command(["connect", "hermes", "--yes"]);
    assert!(connect.env("HERMES_HOME", &hermes).status().expect("hookbus runs").success());
    let (well, findings) = doctor();
    assert!(well, "{findings:?}");
}

/// A home that trusts nobody with one entry, agreed to.
fn agreed(entry: &str) -> Home {
    let home = Home::new();
    home.write_hooks(&format!("trust: nobody\nhooks:\n  pre_tool_call:\n    - {entry}\n"));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    home
}

/// A directory to work in, with these files.
fn place_with(home: &Home, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let place = home.work().join(name);
    fs::create_dir_all(&place).expect("a folder");
    for (file, text) in files {
        let file = place.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, text).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    place
}

fn approve_in(home: &Home, place: &Path) {
    let mut command = home.command(["hooks", "approve", "--accept-hooks"]);
    assert!(command.current_dir(place).status().expect("hookbus runs").success());
}

/// What an agent in `place` hears, and why its first hook did not answer, if so.
fn heard_in(home: &Home, place: &Path) -> (Value, String) {
    let mut command = home.command(["hook", "hermes"]);
    command.current_dir(place);
    let heard = feed(command, call().to_string().as_bytes()).stdout;
    let last = home.decisions().pop().expect("a decision");
    let failure = last["verdicts"][0]["failure"].as_str().unwrap_or_default().to_owned();
    (serde_json::from_str::<Value>(&heard).unwrap_or_default()["reason"].clone(), failure)
}

fn is_refused(home: &Home) -> bool {
    let answer = home.answer("hermes", &call());
    answer["reason"].as_str().is_some_and(|why| why.contains("has changed since"))
}

#[test]
fn a_script_behind_a_shell_or_a_module_is_found_and_its_edit_noticed() {
    for command in [
        "sh -c 'exec ./p.sh --x'",
        "sh -c 'sh < p.sh'",
        "dash -c 'sh<p.sh'",
        "python3 -m pol",
        "env X=1 sh -ec 'bash -c ./p.sh'",
    ] {
        let home = agreed("command: placeholder");
        let write = |reason: &str| {
            let script = home.work().join("p.sh");
            fs::write(&script, BLOCK.replace("guarded", reason)).expect("a script");
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a mode");
            let code = format!("print('{{\"decision\":\"block\",\"reason\":\"{reason}\"}}')\n");
            fs::write(home.work().join("pol.py"), code).expect("a module");
        };
        write("guarded");
        home.write_hooks(&format!(
            "trust: nobody\nhooks:\n  pre_tool_call:\n    - command: \"{command}\"\n"
        ));
        home.text(&["hooks", "approve", "--accept-hooks"]);
        assert_eq!(home.answer("hermes", &call())["reason"], "guarded", "{command}");
        write("edited");
        assert!(is_refused(&home), "{command}");
    }
}

#[test]
fn other_variables_or_another_interpreter_are_another_agreement() {
    let says_how = "echo '{\"decision\":\"block\",\"reason\":\"'$HOW'\"}'";
    let home = Home::new();
    let script = home.script("how.sh", &format!("#!/bin/sh\n{says_how}\n"));
    let entry = |how: &str| format!("{{ command: {script}, env: {{ HOW: {how} }} }}");
    let home = agreed(&entry("one"));
    assert_eq!(home.answer("hermes", &call())["reason"], "one");
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{}] }}", entry("two")));
    assert!(is_refused(&home), "BASH_ENV and the like decide what runs");

    let plugin = place_with(
        &home,
        "plugin",
        &[
            ("plugin.yaml", "name: p\n"),
            ("_impl/a.py", "said = 'one'\n"),
            (
                "__init__.py",
                "from ._impl.a import said\ndef register(ctx):\n    \
                 ctx.register_hook('pre_tool_call', lambda **k: {'action': 'block', 'message': said})\n",
            ),
        ],
    );
    let entry = format!("python: {}", shown(&plugin));
    let home = agreed(&format!("{{ {entry} }}"));
    assert_eq!(home.answer("hermes", &call())["reason"], "one");
    fs::write(plugin.join("_impl/a.py"), "said = 'two'\n").expect("an edit");
    assert!(is_refused(&home), "a module behind an underscore is code too");
    let home = agreed(&format!("{{ {entry} }}"));
    assert_eq!(home.answer("hermes", &call())["reason"], "two");
    let other = home.script("other", "#!/bin/sh\nexec python3 \"$@\"\n");
    let with = format!("hooks: {{ pre_tool_call: [{{ {entry}, interpreter: {other} }}] }}");
    home.write_hooks_file(&with);
    assert!(is_refused(&home));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    assert_eq!(home.answer("hermes", &call())["reason"], "two");
}

#[test]
fn an_observer_runs_only_after_somebody_agreed() {
    for way in ["", ", long_lived: true"] {
        let home = Home::new();
        let seen = home.work().join("seen");
        // By a name of its own, which is looked for where it runs.
        home.write_hooks_file(&format!(
            "hooks:\n  '*':\n    - {{ name: look, mode: observe, command: sh look.sh, tries: 1{way} }}\n"
        ));
        let text = format!("echo x >> {}\n", shown(&seen));
        fs::write(home.path().join("look.sh"), text).expect("a script");
        home.answer("hermes", &call());
        let look =
            || home.run(&["observe", "look", "--source", "log", "--from", "start", "--drain"]);
        let waits = look();
        let said = String::from_utf8_lossy(&waits.stderr).into_owned();
        assert!(!waits.status.success() && said.contains("hookbus hooks approve"), "{said}");
        assert!(!seen.exists());
        assert_eq!(home.text(&["dead", "list", "look", "--json"]), "", "nothing is set aside");
        home.text(&["hooks", "approve", "--accept-hooks"]);
        look();
        assert!(seen.exists(), "what happened before is seen now{way}");
    }
}

/// `hookbus hooks approve` before a person who does this.
fn approve_at_a_terminal(home: &Home, acts: &[Act<'_>]) -> (Option<i32>, String) {
    let mut command = home.command(["hooks", "approve"]);
    command.env("HOME", home.work());
    before_a_person(command, acts)
}

#[test]
fn an_observer_runs_what_lies_beside_its_file_wherever_the_event_comes_from() {
    let home = Home::new();
    home.write_hooks_file(
        "hooks:\n  pre_tool_call:\n    - { name: look, mode: observe, command: sh notify.sh, tries: 1 }\n",
    );
    let said = home.work().join("said");
    for (place, who) in [(home.path(), "agreed"), (home.work(), "stranger")] {
        let text = format!("echo {who} >> {}\n", shown(&said));
        fs::write(place.join("notify.sh"), text).expect("a script");
    }
    home.text(&["hooks", "approve", "--accept-hooks"]);
    home.answer("hermes", &call());
    home.text(&["observe", "look", "--source", "log", "--from", "start", "--drain"]);
    assert_eq!(fs::read_to_string(&said).expect("it ran"), "agreed\n");
}

#[test]
fn whoever_is_asked_sees_every_file_and_is_told_where_none_can_be_made_out() {
    let home = Home::new();
    let gateway = home.work().join("hooks/greet");
    fs::create_dir_all(gateway.join("_impl")).expect("a folder");
    fs::write(gateway.join("HOOK.yaml"), "name: greet\nevents: [agent:start]\n").expect("a file");
    fs::write(gateway.join("handler.py"), "def handle(e, c): pass  # the handler\n")
        .expect("a file");
    fs::write(gateway.join("_impl/deep.py"), "pass  # the depths\n").expect("a file");
    fs::write(gateway.join("long.py"), "pass\n".repeat(1000)).expect("a file");
    home.write_hooks(&format!(
        "trust: nobody\nhooks:\n  '*':\n    - python: {}\n    - command: python3 -m elsewhere\n      env: {{ A: b }}\n",
        shown(&home.work().join("hooks"))
    ));
    let no = [Act::See("[y/N]"), Act::Type("n"), Act::Enter];
    let (exit, asked) = approve_at_a_terminal(&home, &[no, no].concat());
    assert_eq!(exit, Some(1), "{asked}");
    for word in [
        "# the handler",
        "# the depths",
        "long.py: 5000 bytes",
        "with: A=b",
        "cannot find all files that this runs",
    ] {
        assert!(asked.contains(word), "{word}: {asked}");
    }
}

#[test]
fn the_doctor_tries_each_entry_once_and_knows_a_home_when_it_sees_one() {
    let home = Home::new();
    let tally = home.work().join("tally");
    let count = |name: &str, end: &str| {
        home.script(name, &format!("#!/bin/sh\necho x >> {}\n{end}\n", shown(&tally)))
    };
    let (good, bad) = (count("guard", ":"), count("guard2", "echo not json"));
    let plugin = home.work().join("plugin");
    fs::create_dir_all(&plugin).expect("a folder");
    fs::write(plugin.join("plugin.yaml"), "name: p\n").expect("a file");
    let code = "def register(ctx): ctx.register_hook('pre_tool_call', lambda **k: None)\n";
    fs::write(plugin.join("__init__.py"), code).expect("a file");
    let python = home.work().join("python");
    fs::write(&python, "#!/bin/sh\nexec python3 \"$@\"\n").expect("a program");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a mode");
    home.write_hooks(&format!(
        "plugins: {{ enabled: [p, gone] }}\nhooks:\n  pre_tool_call:\n    - {{ name: guard2, command: {bad} }}\n    - {{ name: guard, command: {good} }}\n    - {{ name: own, python: {}, interpreter: ~/python }}\n",
        shown(&plugin)
    ));
    let mut command = home.command(["hooks", "doctor", "--json"]);
    let output = command.env("HOME", home.work()).output().expect("hookbus runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let ok = |name: &str| {
        let start = format!("{name} on");
        let rows = report["findings"].as_array().into_iter().flatten();
        let mut rows = rows.filter(|row| row["about"].to_string().contains(&start));
        rows.next().expect("a finding")["ok"].clone()
    };
    assert_eq!(
        (ok("guard"), ok("guard2"), ok("own")),
        (json!(true), json!(false), json!(true)),
        "{report}"
    );
    assert_eq!(fs::read_to_string(&tally).expect("a tally").lines().count(), 2);
    let findings = report["findings"].to_string();
    assert!(
        findings.contains("the plugin gone") && !findings.contains("the plugin p"),
        "{findings}"
    );
}

#[test]
fn what_a_person_looked_at_is_what_they_agree_to() {
    let home = Home::new();
    let script = home.script("guard.sh", BLOCK);
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{{ command: {script} }}] }}"));
    let edit = || fs::write(&script, "#!/bin/sh\n").is_ok();
    let acts = [Act::See("approve this hook?"), Act::Until(&edit), Act::Type("y"), Act::Enter];
    let (exit, said) = approve_at_a_terminal(&home, &acts);
    assert_eq!(exit, Some(1), "{said}");
    assert!(said.contains("it changed while you looked at it"), "{said}");
    assert!(!home.path().join("consent.json").exists());
}

#[test]
fn what_a_hook_writes_and_what_lies_around_is_no_part_of_it() {
    let home = Home::new();
    let state = "#!/bin/sh\necho x >> \"$1\"\necho '{\"decision\":\"block\",\"reason\":\"'$(wc -l < \"$1\")'\"}'\n";
    let script = home.script("guard.sh", state);
    let plugin = home.work().join("plugin");
    fs::create_dir_all(&plugin).expect("a folder");
    fs::write(plugin.join("plugin.yaml"), "name: p\n").expect("a file");
    let code = "import os\ndef step(**k):\n    open(os.path.join(os.path.dirname(__file__), 'state.json'), 'a').write('x')\n\
                def register(ctx):\n    ctx.register_hook('pre_tool_call', step)\n";
    fs::write(plugin.join("__init__.py"), code).expect("a file");
    fs::write(home.work().join("state.json"), "").expect("a file");
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ command: {script} state.json }}, {{ command: echo test . }}, {{ python: {} }}] }}",
        shown(&plugin)
    ));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    for name in ["test", "index.js", "__main__.py"] {
        fs::write(home.work().join(name), "lies around").expect("a file");
    }
    for times in ["1", "2", "3"] {
        assert_eq!(home.answer("hermes", &call())["reason"], times);
    }
    let failed = |verdict: &Value| verdict["failure"].to_string().contains("agreed");
    let last = home.decisions().pop().expect("a decision");
    assert!(!last["verdicts"].as_array().expect("verdicts").iter().any(failed), "{last}");
}

#[test]
fn the_same_words_in_two_places_are_agreed_to_in_each() {
    let home = Home::new();
    home.write_hooks_file("hooks: { pre_tool_call: [{ command: ./check.sh }], BeforeTool: [{ command: $GEMINI_PROJECT_DIR/check.sh }] }");
    let places = ["a", "b"].map(|name| {
        let place = home.work().join(name);
        fs::create_dir_all(&place).expect("a folder");
        let text = BLOCK.replace("guarded", name);
        fs::write(place.join("check.sh"), text).expect("a script");
        fs::set_permissions(place.join("check.sh"), fs::Permissions::from_mode(0o755))
            .expect("a mode");
        place
    });
    let answer = |place: &Path, agent: &str| {
        let payload = json!({"hook_event_name": if agent == "hermes" { "pre_tool_call" } else { "BeforeTool" },
            "tool_name": "terminal", "tool_input": {}, "session_id": "s"});
        let mut command = home.command(["hook", agent]);
        command.current_dir(place).env("GEMINI_PROJECT_DIR", place);
        let heard = feed(command, payload.to_string().as_bytes()).stdout;
        serde_json::from_str::<Value>(&heard).unwrap_or_default()["reason"].clone()
    };
    for place in &places {
        assert_eq!(answer(place, "hermes"), Value::Null, "new here, not changed");
        let mut command = home.command(["hooks", "approve", "--accept-hooks"]);
        assert!(command.current_dir(place).status().expect("hookbus runs").success());
    }
    for (place, name) in places.iter().zip(["a", "b"]) {
        assert_eq!(answer(place, "hermes"), name);
        assert_eq!(answer(place, "gemini"), name);
    }
}

#[test]
fn the_same_words_in_two_places_that_share_a_file_are_agreed_to_in_each() {
    let home = Home::new();
    let run = home.script("run.sh", "#!/bin/sh\nexec sh \"$1\"\n");
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ command: sh {run} check.sh }}] }}"
    ));
    let places = ["a", "b"]
        .map(|name| place_with(&home, name, &[("check.sh", &BLOCK.replace("guarded", name))]));
    for place in &places {
        approve_in(&home, place);
    }
    for (place, name) in places.iter().zip(["a", "b"]) {
        assert_eq!(heard_in(&home, place), (json!(name), String::new()));
    }
    fs::write(places[0].join("check.sh"), BLOCK).expect("an edit");
    assert!(heard_in(&home, &places[0]).1.contains("has changed since"));
    assert_eq!(heard_in(&home, &places[1]), (json!("b"), String::new()));
}

#[test]
fn where_no_file_can_be_found_nothing_runs_that_was_agreed_to_with_one() {
    let home = Home::new();
    home.write_hooks_file("hooks: { pre_tool_call: [{ command: python3 pol }] }");
    let says = |word: &str| format!("print('{{\"decision\":\"block\",\"reason\":\"{word}\"}}')\n");
    let good = place_with(&home, "good", &[("pol/__main__.py", &says("good"))]);
    let evil = place_with(&home, "evil", &[("pol/__main__.py", &says("evil"))]);
    let source = evil.join("pol/__main__.py");
    let compile =
        "import py_compile, sys; py_compile.compile(sys.argv[1], cfile=sys.argv[1] + 'c')";
    let made = std::process::Command::new("python3").args(["-c", compile]).arg(&source).status();
    assert!(made.expect("python3 runs").success());
    fs::remove_file(&source).expect("ours");
    approve_in(&home, &good);
    assert_eq!(heard_in(&home, &good).0, "good");
    let (reason, failure) = heard_in(&home, &evil);
    assert_eq!(reason, Value::Null);
    assert!(failure.contains("nobody has agreed"), "{failure}");
    fs::rename(evil.join("pol/__main__.pyc"), good.join("pol/__main__.pyc")).expect("moved");
    fs::remove_file(good.join("pol/__main__.py")).expect("ours");
    let (reason, failure) = heard_in(&home, &good);
    assert!(failure.contains("has changed since"), "{reason} {failure}");
}

#[test]
fn another_program_earlier_on_the_path_does_not_run_in_place_of_the_one_agreed_to() {
    let home = Home::new();
    home.write_hooks_file("hooks: { pre_tool_call: [{ command: guardx -c 'echo x > ran' }] }");
    let (first, second) =
        (home.work().join("first"), place_with(&home, "second", &[("guardx", BLOCK)]));
    fs::create_dir(&first).expect("a folder");
    let path = std::env::join_paths([&first, &second, Path::new("/usr/bin"), Path::new("/bin")]);
    let path = path.expect("a path");
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PATH", &path);
        feed(command, call().to_string().as_bytes()).stdout
    };
    run(&["hooks", "approve", "--accept-hooks"]);
    assert!(run(&["hook", "hermes"]).contains("guarded"));
    fs::copy("/bin/sh", first.join("guardx")).expect("a program");
    run(&["hook", "hermes"]);
    let last = home.decisions().pop().expect("a decision");
    assert_eq!(last["verdicts"][0]["refused"], "consent", "{last}");
    assert!(!home.work().join("ran").exists());
}

#[test]
fn an_interpreter_of_ones_own_is_agreed_to_as_it_is() {
    let home = Home::new();
    let turn = json!({"hook_event_name": "pre_llm_call", "session_id": "s", "extra": {}});
    let folder = place_with(
        &home,
        "plugin",
        &[
            ("plugin.yaml", "name: p\n"),
            (
                "__init__.py",
                "def register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: 'hello')\n",
            ),
        ],
    );
    let python = home.script("python3", "#!/bin/sh\nexec python3 \"$@\"\n");
    home.write_hooks_file(&format!(
        "hooks: {{ '*': [{{ python: {}, interpreter: {python} }}] }}",
        shown(&folder)
    ));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    assert_eq!(home.answer("hermes", &turn), json!({"context": "hello"}));
    let ran = home.work().join("ran");
    let edited = format!("#!/bin/sh\necho x > {}\nexec python3 \"$@\"\n", shown(&ran));
    fs::write(&python, edited).expect("an edit");
    home.answer("hermes", &turn);
    let last = home.decisions().pop().expect("a decision");
    assert!(last["verdicts"][0]["failure"].to_string().contains("has changed since"), "{last}");
    assert!(!ran.exists(), "nobody agreed to that");
}

#[test]
fn what_was_agreed_to_anew_runs_anew_wherever_in_a_plugin_it_was_edited() {
    let home = Home::with_daemon("running");
    let shared = place_with(&home, "shared", &[("words.py", "word = 'old'\n")]);
    let plugin = place_with(
        &home,
        "plugin",
        &[
            ("plugin.yaml", "name: p\n"),
            ("say.sh", "#!/bin/sh\necho old\n"),
            (
                "__init__.py",
                "import os, subprocess\nfrom .lib.words import word\nhere = os.path.dirname(__file__)\n\
                 said = subprocess.check_output([here + '/say.sh'], text=True).strip()\n\
                 def register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: word + ' ' + said)\n",
            ),
        ],
    );
    std::os::unix::fs::symlink(&shared, plugin.join("lib")).expect("a link");
    home.write_hooks_file(&format!("hooks: {{ '*': [{{ python: {} }}] }}", shown(&plugin)));
    let _daemon = home.serve();
    let turn = json!({"hook_event_name": "pre_llm_call", "session_id": "s", "extra": {}});
    home.text(&["hooks", "approve", "--accept-hooks"]);
    assert_eq!(home.answer("hermes", &turn), json!({"context": "old old"}));
    let hash = || home.decisions().pop().expect("a decision")["verdicts"][0]["script"].clone();
    let first = hash();
    for (file, text, says) in [
        (shared.join("words.py"), "word = 'new'\n", "new old"),
        (plugin.join("say.sh"), "#!/bin/sh\necho new\n", "new new"),
    ] {
        fs::write(file, text).expect("an edit");
        home.text(&["hooks", "approve", "--accept-hooks"]);
        wait_until(says, || home.answer("hermes", &turn) == json!({"context": says}));
    }
    assert_ne!(hash(), first, "the log says which version spoke");
}

#[test]
fn in_a_home_whose_name_is_no_text_a_guard_guards_as_in_any_other() {
    for (command, event) in [("./g.sh", "tool.before"), ("~/g.sh", "pre_tool_call")] {
        let home = Home::new();
        let odd = home.work().join(OsStr::from_bytes(b"h\xff"));
        fs::create_dir(&odd).expect("a home");
        let write = |name: &str, text: &str| {
            fs::write(odd.join(name), text).expect("a file");
            fs::set_permissions(odd.join(name), fs::Permissions::from_mode(0o755)).expect("a mode");
        };
        write("hookbus.yaml", &format!("hooks: {{ \"{event}\": [{{ command: {command} }}] }}"));
        write("g.sh", BLOCK);
        let run = |arguments: &[&str]| {
            let mut command = home.command(arguments);
            command.env("HOOKBUS_HOME", &odd).env("HOME", &odd);
            feed(command, call().to_string().as_bytes())
        };
        let agreed = run(&["hooks", "approve", "--accept-hooks"]);
        assert_eq!(agreed.exit, Some(0), "{command}: {agreed:?}");
        let heard = run(&["hook", "hermes"]).stdout;
        assert!(heard.contains("guarded"), "{command}: {heard}");
        let well = run(&["hooks", "doctor"]).stdout;
        assert!(!well.contains("does not exist"), "{command}: {well}");
        write("g.sh", &BLOCK.replace("guarded", "edited"));
        let heard = run(&["hook", "hermes"]).stdout;
        assert!(heard.contains("has changed since"), "{command}: {heard}");
    }
}

#[test]
fn what_is_taken_back_is_taken_back_from_every_hook_of_that_name() {
    let home = Home::new();
    let (one, two) = (home.script("one.sh", BLOCK), home.script("two.sh", BLOCK));
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ name: guard, command: {one} }}, {{ name: guard, command: {two} }}] }}"
    ));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    assert_eq!(home.json(&["hooks", "revoke", "guard", "--json"])["revoked"], 2);
    home.answer("hermes", &call());
    let last = home.decisions().pop().expect("a decision");
    for at in [0, 1] {
        assert_eq!(last["verdicts"][at]["refused"], "consent", "{last}");
    }
}

#[test]
fn many_who_agree_at_once_all_do() {
    let home = Home::new();
    let names: Vec<String> = (0..12).map(|n| home.script(&format!("guard{n}.sh"), BLOCK)).collect();
    let entries: Vec<String> = names.iter().map(|name| format!("{{ command: {name} }}")).collect();
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{}] }}", entries.join(", ")));
    let all: Vec<_> = names
        .iter()
        .map(|name| {
            home.command(["hooks", "approve", "--accept-hooks", name])
                .spawn()
                .expect("hookbus runs")
        })
        .collect();
    for mut one in all {
        assert!(one.wait().expect("it ends").success());
    }
    assert_eq!(home.json(&["hooks", "approve", "--json"]), json!({"approved": 0, "waiting": 0}));
    assert!(
        !home.run(&["hooks", "approve", "nowhere.sh"]).status.success(),
        "there is no such hook"
    );
    // What cannot be read is not written over.
    fs::write(home.path().join("consent.json"), "{").expect("a file");
    let refused = home.run(&["hooks", "approve", "--accept-hooks"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("consent.json is broken"),
        "{refused:?}"
    );
    assert_eq!(fs::read(home.path().join("consent.json")).expect("the file"), b"{");
}

#[test]
fn code_that_python_compiled_is_not_run_in_place_of_what_was_agreed_to() {
    let home = Home::new();
    let plugin = home.work().join("plugin");
    fs::create_dir_all(plugin.join("inner")).expect("a folder");
    fs::write(plugin.join("plugin.yaml"), "name: p\n").expect("a file");
    let code = |word: &str| {
        format!(
            "from .inner import word\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: '{word} ' + word)\n"
        )
    };
    fs::write(plugin.join("inner/__init__.py"), "word = 'good'\n").expect("a file");
    fs::write(plugin.join("__init__.py"), code("good")).expect("a file");
    home.write_hooks_file(&format!("hooks: {{ '*': [{{ python: {} }}] }}", shown(&plugin)));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    // Compiled from something else, and marked as not to be checked.
    let compile = "import py_compile, sys, os\nfor name, text in [('__init__.py', sys.argv[2]), ('inner/__init__.py', \"word = 'evil'\")]:\n    \
        path = os.path.join(sys.argv[1], name)\n    kept = open(path).read()\n    open(path, 'w').write(text)\n    \
        py_compile.compile(path, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n    open(path, 'w').write(kept)\n";
    let made = std::process::Command::new("python3")
        .args(["-c", compile, &shown(&plugin), &code("evil")])
        .status();
    assert!(made.expect("python3 runs").success() && plugin.join("inner/__pycache__").is_dir());
    let turn = json!({"hook_event_name": "pre_llm_call", "session_id": "s", "extra": {}});
    assert_eq!(home.answer("hermes", &turn), json!({"context": "good good"}));
}

#[test]
fn what_nobody_had_agreed_to_is_refused_as_recorded_and_does_not_run() {
    for on_failure in ["", "      on_failure: block\n", "      on_failure: allow\n"] {
        let (home, script) = guarded(on_failure);
        let ran = home.work().join("ran");
        let marks = BLOCK.replace("echo", &format!("echo x >> {}\necho", shown(&ran)));
        fs::write(&script, &marks).expect("a script");
        let replay = |events: u64| {
            let report = home.json(&["replay", "--all", "--as-recorded", "--yes", "--json"]);
            let sum = |class: &str| report["summary"][class].as_u64();
            assert_eq!(
                (sum("events"), sum("unchanged")),
                (Some(events), Some(events)),
                "{on_failure}: {report}"
            );
        };
        home.answer("hermes", &call());
        replay(1);
        assert!(!ran.exists(), "nobody ever agreed to it");
        home.text(&["hooks", "approve", "--accept-hooks"]);
        home.answer("hermes", &call());
        fs::write(&script, format!("{marks}# edited\n")).expect("an edit");
        home.answer("hermes", &call());
        replay(3);
        let times = fs::read_to_string(&ran).expect("a tally").lines().count();
        assert_eq!(times, 2, "once then and once again");
    }
}

#[test]
fn a_file_more_or_less_or_another_in_its_place_has_changed_what_was_agreed_to() {
    let home = Home::new();
    let folder = home.work().join("plugs");
    let code = |says: &str| {
        format!("def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **k: {says})\n")
    };
    for (name, says) in [("guard", "{'action': 'block', 'message': 'guarded'}"), ("logger", "None")]
    {
        let plugin = folder.join(name);
        fs::create_dir_all(&plugin).expect("a folder");
        fs::write(plugin.join("plugin.yaml"), format!("name: {name}\n")).expect("a file");
        fs::write(plugin.join("__init__.py"), code(says)).expect("a file");
    }
    let script = home.script("guard.sh", BLOCK);
    let write = |entry: &str| {
        home.write_hooks_file(&format!(
            "plugins: {{ enabled: [guard, logger] }}\nhooks: {{ pre_tool_call: [{{ {entry} }}] }}"
        ));
        home.text(&["hooks", "approve", "--accept-hooks"]);
        assert_eq!(home.answer("hermes", &call())["reason"], "guarded");
    };
    let has_changed =
        || home.answer("hermes", &call())["reason"].to_string().contains("has changed since");
    let entry = format!("python: {}", shown(&folder));
    write(&entry);
    fs::write(folder.join("guard/more.py"), "").expect("one more");
    assert!(has_changed());
    fs::remove_file(folder.join("guard/more.py")).expect("ours");
    write(&entry);
    fs::write(folder.join("guard/state.yaml"), "n: 1").expect("what it keeps");
    assert_eq!(home.answer("hermes", &call())["reason"], "guarded");
    fs::copy(folder.join("logger/__init__.py"), folder.join("guard/__init__.py")).expect("swapped");
    assert!(has_changed());
    fs::write(folder.join("guard/__init__.py"), code("{'action': 'block', 'message': 'guarded'}"))
        .expect("back");
    write(&entry);
    fs::remove_dir_all(folder.join("guard")).expect("gone");
    assert!(has_changed());
    write(&format!("command: {script}"));
    fs::remove_file(&script).expect("gone");
    assert!(has_changed());
}

#[test]
fn a_plugin_that_nobody_had_agreed_to_is_not_even_told_in_a_replay() {
    let home = Home::with_daemon("running");
    let (folder, told) = (home.work().join("plugin"), home.work().join("told"));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("plugin.yaml"), "name: p\n").expect("a file");
    let code = format!(
        "def hear(user_message='', **rest):\n    with open('{}', 'a') as told:\n        told.write(user_message + '\\n')\n\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', hear)\n",
        shown(&told)
    );
    fs::write(folder.join("__init__.py"), code).expect("a file");
    home.write_hooks_file(&format!("hooks: {{ '*': [{{ python: {} }}] }}\n", shown(&folder)));
    let _daemon = home.serve();
    let turn = |message: &str| {
        home.answer("hermes", &json!({"hook_event_name": "pre_llm_call", "session_id": "s", "extra": {"user_message": message}}))
    };
    turn("one");
    home.text(&["hooks", "approve", "--accept-hooks"]);
    turn("two");
    let report = home.json(&["replay", "-n", "1", "--as-recorded", "--yes", "--json"]);
    assert_eq!(report["summary"]["unchanged"], 1, "{report}");
    assert_eq!(fs::read_to_string(&told).expect("what it was told"), "two\ntwo\n");
}

#[test]
fn two_entries_that_run_the_same_script_in_two_ways_are_both_agreed_to() {
    let home = Home::new();
    let script = home.script(
        "guard.sh",
        "#!/bin/sh\necho \"{\\\"decision\\\":\\\"block\\\",\\\"reason\\\":\\\"$HOW\\\"}\"\n",
    );
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ command: {script}, env: {{ HOW: one }} }}, {{ command: {script}, env: {{ HOW: two }} }}] }}"
    ));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    home.answer("hermes", &call());
    let verdicts = home.decisions().pop().expect("a decision")["verdicts"].clone();
    assert_eq!([&verdicts[0]["reason"], &verdicts[1]["reason"]], [&json!("one"), &json!("two")]);
    assert_eq!(home.json(&["hooks", "approve", "--json"])["waiting"], 0);
}

#[test]
fn a_home_that_is_also_known_by_a_link_has_one_consent() {
    let home = Home::new();
    let guard = |reason: &str| home.script("guard.sh", &BLOCK.replace("guarded", reason));
    let script = guard("guarded");
    home.write_hooks_file(&format!("hooks: {{ pre_tool_call: [{{ command: {script} }}] }}"));
    let link = home.work().join("link");
    std::os::unix::fs::symlink(home.path(), &link).expect("a link");
    fs::create_dir_all(home.path()).expect("a home");
    fs::write(home.path().join("own.sh"), BLOCK).expect("a script");
    home.write_hooks_file("hooks: { tool.before: [{ command: sh ./own.sh }] }");
    let mut command = home.command(["hooks", "approve", "--accept-hooks"]);
    let approved = command.env("HOOKBUS_HOME", &link).current_dir(home.path()).output();
    assert!(approved.expect("hookbus runs").status.success());
    fs::write(home.path().join("own.sh"), BLOCK.replace("guarded", "edited")).expect("an edit");
    let mut event = call();
    event["cwd"] = json!(shown(&home.path()));
    let mut command = home.command(["hook", "hermes"]);
    command.current_dir(home.path());
    let heard = feed(command, event.to_string().as_bytes()).stdout;
    assert!(heard.contains("has changed since"), "{heard}");
}
