//! A mistake in `hookbus.yaml`: what is broken stays in force as it was, from memory or from the log, and the user
//! is told.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;

use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::payloads::{self, gemini_shell, hermes_shell};
use serde_json::Value;

const GOOD: &str = "\
trust: home
hooks:
  tool.before:
    - name: no-rm
      tool: shell
      rule: { when: { command: 'rm -rf' }, block: not here }
    - rule: { when: { command: 'dd if=' }, block: no disks }
  turn.start:
    - name: house-rules
      rule: { context: be kind }
";

/// What a user mistypes: the text, what it becomes, and what the message has to say.
const MISTAKES: [(&str, &str, &str); 17] = [
    ("block: not here", "blokc: not here", "did you mean `block`?"),
    ("command: 'rm -rf'", "command: 'rm (-rf'", "is not a regex"),
    ("command: 'rm -rf'", "comand: 'rm -rf'", "did you mean `command`?"),
    ("{ when: { command: 'rm", "{ whne: { command: 'rm", "did you mean `when`?"),
    ("tool: shell", "tool: shel", "did you mean `shell`?"),
    ("tool: shell", "tol: shell", "did you mean `tool`?"),
    ("tool: shell", "agent: hermess", "hermess"),
    ("tool: shell", "tool: shell\n      matcher: '*('", "is not a regex"),
    ("name: no-rm", "nmae: no-rm", "did you mean `name`?"),
    ("name: no-rm", "name: no-rm\n      on_failure: blok", "`allow` or `block`"),
    ("name: no-rm", "name: no-rm\n      mode: observ", "`mode` is"),
    ("name: no-rm", "name: no-rm\n      sequential: maybe", "`sequential` is a switch"),
    ("tool.before:", "tool.befor:", "did you mean `tool.before`?"),
    ("tool.before:", "tool.before: later\n  pre_tool_calls:", "did you mean `pre_tool_call`?"),
    ("  turn.start:", "turn.start:", "put it under `hooks:`"),
    (
        "- rule: { when: { command: 'dd if=' }, block: no disks }",
        "- no disks",
        "a hook is a mapping",
    ),
    ("hooks:", "hoks:", "did you mean `hooks`?"),
];

fn reason(home: &Home, command: &str) -> Value {
    home.answer("hermes", &hermes_shell(command))["reason"].clone()
}

fn assert_in_force(home: &Home, what: &str) {
    assert_eq!(reason(home, "rm -rf /"), "not here (hookbus rule no-rm)", "{what}");
    assert_eq!(reason(home, "dd if=/dev/zero"), "no disks (hookbus rule tool.before#2)", "{what}");
    assert_eq!(reason(home, "ls"), Value::Null, "{what}");
    let turn = payloads::one("hermes", "pre_llm_call");
    assert_eq!(home.answer("hermes", &turn)["context"], "be kind", "{what}");
}

#[test]
fn a_mistake_leaves_every_guard_in_force_with_a_daemon_and_without() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks_file(GOOD);
        let _daemon = (mode == "running").then(|| home.serve());
        assert_in_force(&home, mode);
        for (from, to, message) in MISTAKES {
            let what = format!("{mode}: {to}");
            let broken = GOOD.replace(from, to);
            assert_ne!(broken, GOOD, "{what}");
            for save in ["", "# saved again, with the mistake\n"] {
                home.write_hooks_file(&format!("{broken}{save}"));
                assert_in_force(&home, &what);
            }
            let listed = home.run(&["hooks", "list"]);
            assert_eq!(listed.status.code(), Some(1), "{what}");
            let listed = String::from_utf8_lossy(&listed.stdout);
            assert!(listed.contains(message), "{what}: {listed}");
            assert!(
                listed.contains("kept as it was") || listed.contains("last good"),
                "{what}: {listed}"
            );
            home.write_hooks_file(GOOD);
            assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(0));
            assert_in_force(&home, &what);
        }
        assert!(home.is_sound());
    }
}

#[test]
fn the_log_alone_remembers_what_was_in_force() {
    let home = Home::with_daemon("running");
    home.write_hooks_file(GOOD);
    let mut daemon = home.serve();
    assert_in_force(&home, "as written");
    // One mistake while the daemon runs, and another one behind it that the daemon never sees.
    home.write_hooks_file(&GOOD.replace("block: not here", "blokc: not here"));
    assert_in_force(&home, "in the daemon's memory");
    daemon.kill();
    let twice = GOOD.replace("block: not here", "blokc: not here").replace("context:", "contxt:");
    home.write_hooks_file(&twice);
    let _daemon = home.serve();
    assert_in_force(&home, "from the log");
    // Each version once, and what each holds is what was in force.
    let loaded = home.log(&["--kind", "hooks.loaded"]);
    assert_eq!(loaded.len(), 2, "{loaded:?}");
    let kept = loaded[1]["payload"]["content"].as_str().unwrap_or_default();
    assert!(
        kept.contains("not here") && kept.contains("be kind") && !kept.contains("blokc"),
        "{kept}"
    );
    let hashes: Vec<Value> = home.decisions().iter().map(|it| it["hooks"].clone()).collect();
    assert!(
        hashes.contains(&loaded[0]["payload"]["hash"])
            && hashes.contains(&loaded[1]["payload"]["hash"])
    );
}

#[test]
fn an_editor_that_empties_the_file_before_it_writes_a_mistake_loses_no_guard() {
    let home = Home::with_daemon("running");
    home.write_hooks_file(GOOD);
    let _daemon = home.serve();
    assert_in_force(&home, "as written");
    for broken in
        [GOOD.replace("block: not here", "blokc: not here"), GOOD.replace("hooks:", "hooks: [")]
    {
        home.write_hooks_file("");
        // The daemon reads the file at this moment.
        home.run(&["status"]);
        home.write_hooks_file(&broken);
        assert_in_force(&home, &broken);
    }
}

#[test]
fn an_emptied_file_a_link_that_leads_nowhere_and_a_huge_file_switch_nothing_off() {
    let huge = format!("{GOOD}{}", "# nothing to see here\n".repeat(3_000_000));
    let not_ended = format!("{}\n{GOOD}", "#".repeat(1 << 20));
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let file = home.path().join("hookbus.yaml");
        let refused = |what: &str, message: &str| {
            for _ in 0..2 {
                assert_in_force(&home, &format!("{mode}: {what}"));
            }
            let listed = home.run(&["hooks", "list"]);
            let text = String::from_utf8_lossy(&listed.stdout);
            assert_eq!(listed.status.code(), Some(1), "{what}: {text}");
            assert!(text.contains(message) && text.contains("last good"), "{what}: {text}");
        };
        home.write_hooks_file("");
        let _daemon = (mode == "running").then(|| home.serve());
        assert_eq!(reason(&home, "rm -rf /"), Value::Null, "nothing was there before");
        assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(0), "an empty file is fine");
        for (text, message) in [
            ("", "write `hooks: {}`"),
            (" \n\t\n", "write `hooks: {}`"),
            ("# mine\n---\n  # later\n", "write `hooks: {}`"),
            ("trust: home\nhooks:\n", "write `hooks: {}`"),
            ("trust: home\nhooks:\n  tool.before:\n", "write `hooks: {}`"),
            (&huge, "larger than 1024 KiB"),
            (&not_ended, "larger than 1024 KiB"),
        ] {
            home.write_hooks_file(GOOD);
            assert_in_force(&home, mode);
            home.write_hooks_file(text);
            refused(text.get(..20).unwrap_or(text), message);
        }
        // Settings are kept as well, also without any hooks.
        home.write_hooks_file("on_failure: block\n");
        assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(0));
        home.answer("hermes", &hermes_shell("ls"));
        home.write_hooks_file("");
        assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(1));
        home.write_hooks_file(GOOD);
        assert_in_force(&home, mode);
        fs::remove_file(&file).expect("a file");
        std::os::unix::fs::symlink(home.work().join("gone.yaml"), &file).expect("a link");
        refused("a link that leads nowhere", "leads nowhere");
        // What says plainly that there are no hooks counts.
        fs::remove_file(&file).expect("a link");
        assert_eq!(reason(&home, "rm -rf /"), Value::Null, "{mode}: the file is deleted");
        home.write_hooks_file("");
        assert_eq!(reason(&home, "rm -rf /"), Value::Null, "{mode}: empty after deleted");
        home.write_hooks_file(GOOD);
        assert_in_force(&home, mode);
        home.write_hooks_file("hooks: {}\n");
        assert_eq!(reason(&home, "rm -rf /"), Value::Null, "{mode}: written");
        assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(0));
        assert!(home.is_sound());
    }
}

#[test]
fn a_command_with_a_quote_that_is_never_closed_is_a_mistake_where_no_shell_reads_it() {
    for (event, is_split) in [("tool.before", true), ("pre_tool_call", true), ("BeforeTool", false)]
    {
        let home = Home::new();
        let script = home.script("guard.sh", "#!/bin/sh\necho guarded >&2\nexit 2\n");
        let hooks = |line: &str| {
            format!(
                "trust: home\nhooks:\n  {event}:\n    - name: guard\n      command: \"{line}\"\n"
            )
        };
        home.write_hooks_file(&hooks(&format!("{script} 'a b'")));
        let (agent, payload) = match event {
            "BeforeTool" => ("gemini", gemini_shell("ls")),
            _ => ("hermes", hermes_shell("ls")),
        };
        assert_eq!(home.answer(agent, &payload)["reason"], "guarded", "{event}");
        home.write_hooks_file(&hooks(&format!("{script} 'a b")));
        let listed = home.run(&["hooks", "list"]);
        let text = String::from_utf8_lossy(&listed.stdout);
        assert_eq!(listed.status.code(), Some(i32::from(is_split)), "{event}: {text}");
        if is_split {
            assert!(text.contains("never closed") && text.contains("kept as it was"), "{text}");
            assert_eq!(home.answer(agent, &payload)["reason"], "guarded", "{event}: kept");
            // Without an earlier version it counts as failed, and its policy decides.
            let new = Home::new();
            new.write_hooks_file(&hooks(&format!("{script} 'a b")));
            assert_eq!(new.answer(agent, &payload), Value::Null, "{event}");
            let verdict = new.last_decision()["verdicts"][0].to_string();
            assert!(verdict.contains("never closed"), "{event}: {verdict}");
        }
    }
}

#[test]
fn what_the_user_deletes_or_corrects_is_not_kept() {
    let home = Home::new();
    home.write_hooks_file(GOOD);
    assert_in_force(&home, "as written");
    let broken = GOOD.replace("block: not here", "blokc: not here");
    home.write_hooks_file(&broken);
    assert_eq!(reason(&home, "rm -rf /"), "not here (hookbus rule no-rm)");
    // Another entry changes while this one is broken.
    home.write_hooks_file(&broken.replace("no disks", "never"));
    assert_eq!(
        (reason(&home, "rm -rf /"), reason(&home, "dd if=")),
        ("not here (hookbus rule no-rm)".into(), "never (hookbus rule tool.before#2)".into())
    );
    home.write_hooks_file(&broken.replace("blokc: not here", "block: corrected"));
    assert_eq!(reason(&home, "rm -rf /"), "corrected (hookbus rule no-rm)");
    let start = GOOD.find("    - name: no-rm").unwrap_or_default();
    let end = GOOD.find("    - rule: { when: { command: 'dd").unwrap_or_default();
    home.write_hooks_file(&format!("{}{}", &GOOD[..start], &GOOD[end..]));
    assert_eq!(reason(&home, "rm -rf /"), Value::Null, "deleted");
    assert_eq!(reason(&home, "dd if="), "no disks (hookbus rule tool.before#1)");
    home.write_hooks_file("hooks: {}\n");
    assert_eq!(reason(&home, "dd if="), Value::Null, "deleted");
}

#[test]
fn without_an_earlier_version_what_can_be_read_counts_and_on_failure_decides_about_the_rest() {
    let entry = "    - name: guard\n      rule: { when: { command: rm }, block: no }\n";
    let hooks = format!("hooks:\n  tool.before:\n{entry}");
    for mistake in
        ["on_failur: block", "trsut: home", "trust: me", "plugins: [a]", "log: full", "color: blue"]
    {
        let home = Home::new();
        home.write_hooks_file(&format!("{mistake}\n{hooks}"));
        assert_eq!(reason(&home, "rm x"), "no (hookbus rule guard)", "{mistake}");
        assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(1), "{mistake}");
    }
    // A key that means nothing does not switch the entry off.
    let home = Home::new();
    home.write_hooks_file(&format!("{hooks}      ticket: 12\n"));
    assert_eq!(reason(&home, "rm x"), "no (hookbus rule guard)");
    let listed = home.run(&["hooks", "list"]);
    assert!(
        String::from_utf8_lossy(&listed.stdout).contains("`ticket` means nothing here; remove it")
    );
    assert_eq!(listed.status.code(), Some(1));
    // An entry that cannot be used counts as failed; a misspelled `on_failure` counts as `block`.
    for (policy, decision) in [
        ("", Value::Null),
        ("on_failure: block", "block".into()),
        ("on_failur: allow", "block".into()),
    ] {
        let home = Home::new();
        home.write_hooks_file(&format!("{}      {policy}\n", hooks.replace("block:", "blokc:")));
        assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["decision"], decision, "{policy}");
        let list = home.run(&["hooks", "list"]);
        assert!(!String::from_utf8_lossy(&list.stdout).contains("kept"), "{list:?}");
    }
}

#[test]
fn mappings_to_refer_to_are_allowed_under_x() {
    let home = Home::with_hooks(
        "x-base: &base {tool: shell}\nhooks:\n  tool.before:\n    - {<<: *base, rule: {block: no}}\n",
    );
    assert_eq!(reason(&home, "ls"), "no (hookbus rule tool.before#1)");
    assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(0));
}

#[test]
fn a_kept_command_runs_with_the_approval_of_its_own_text() {
    let home = Home::new();
    let script = |name: &str| {
        home.script(
            name,
            &format!("#!/bin/sh\necho '{{\"decision\":\"block\",\"reason\":\"{name}\"}}'\n"),
        )
    };
    let (approved, other) = (script("approved.sh"), script("other.sh"));
    let entry = |command: &str, more: &str| {
        format!(
            "hooks:\n  tool.before:\n    - name: guard\n      command: {command}\n      {more}\n"
        )
    };
    home.write_hooks_file(&entry(&approved, ""));
    home.approve();
    assert_eq!(reason(&home, "ls"), "approved.sh");
    home.write_hooks_file(&entry(&approved, "timeot: 5"));
    assert_eq!(reason(&home, "ls"), "approved.sh");
    // The new text is broken, so its command does not run, approved or not.
    home.write_hooks_file(&entry(&other, "timeot: 5"));
    assert_eq!(reason(&home, "ls"), "approved.sh");
    // Nothing waits for an approval, and what was approved stays so.
    home.approve();
    assert_eq!(reason(&home, "ls"), "approved.sh");
    home.write_hooks_file(&entry(&other, "timeout: 5"));
    assert_eq!(reason(&home, "ls"), Value::Null, "correct, and not approved");
    // A kept entry whose script changes has lapsed, as always.
    home.write_hooks_file(&entry(&approved, ""));
    assert_eq!(reason(&home, "ls"), "approved.sh");
    home.write_hooks_file(&entry(&approved, "timeot: 5"));
    home.script("approved.sh", "#!/bin/sh\n# changed\n");
    let lapsed = reason(&home, "ls");
    assert!(lapsed.to_string().contains("has changed since it was approved"), "{lapsed}");
}

#[test]
fn status_doctor_and_list_say_what_is_kept_and_where() {
    let home = Home::new();
    home.write_hooks_file(GOOD);
    assert_in_force(&home, "as written");
    home.write_hooks_file(&GOOD.replace("block: not here", "blokc: not here"));
    for words in [&["status"][..], &["status", "--check"], &["hooks", "doctor"], &["hooks", "list"]]
    {
        let output = home.run(words);
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.contains("a rule has no `blokc`"));
        let line = line.unwrap_or_else(|| panic!("{words:?}: {text}"));
        assert!(line.contains('6') && line.ends_with("kept as it was"), "{words:?}: {line}");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
    }
    let output = home.run(&["hooks", "list", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&list["problems"][0]["kept"], &list["hooks"][0]["action"]),
        (&true.into(), &"rule".into())
    );
    assert_eq!(list["hooks"][0]["line"], 4, "its line in the file on disk");
}

#[test]
fn a_bus_whose_hooks_file_has_a_mistake_is_not_healthy() {
    let home = Home::with_daemon("running");
    let _daemon = home.serve();
    let is_healthy = || home.run(&["status", "--check"]).status.success();
    home.write_hooks_file(GOOD);
    assert_in_force(&home, "as written");
    assert!(is_healthy());
    for (text, mistake, _) in MISTAKES {
        home.write_hooks_file(&GOOD.replace(text, mistake));
        home.answer("hermes", &hermes_shell("ls"));
        assert!(!is_healthy(), "{mistake}");
    }
    home.write_hooks_file(GOOD);
    home.answer("hermes", &hermes_shell("ls"));
    assert!(is_healthy());
}

#[test]
fn an_observer_with_a_mistake_stays_as_it_was() {
    let home = Home::new();
    let observer =
        "hooks:\n  '*':\n    - { name: audit, mode: observe, command: 'true', tries: 3 }\n";
    home.write_hooks(observer);
    home.answer("hermes", &hermes_shell("ls"));
    home.write_hooks(&observer.replace("tries: 3", "tires: 3"));
    let names = |home: &Home| {
        let output = home.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        status["observers"][0]["name"].clone()
    };
    assert_eq!(names(&home), "audit");
    home.write_hooks(&observer.replace("command: 'true'", "command: ''"));
    assert_eq!(names(&home), "audit");
}

#[test]
fn paths_of_observers_may_begin_with_the_home_directory() {
    let home = Home::with_hooks(
        "hooks:\n  '*':\n    - { name: keep, mode: observe, archive: ~/archive }\n",
    );
    home.answer("hermes", &hermes_shell("ls"));
    let user = home.work();
    let output =
        home.command(["observe", "keep", "--drain"]).env("HOME", &user).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert!(user.join("archive/log.db").exists(), "{:?}", path_text(&user));
}

/// Handles an event while another process holds the log, so that it goes to the spool.
fn spool_one(home: &Home, command: &str) {
    let lock = fs::File::options().write(true).open(home.path().join("log.lock"));
    let lock = lock.expect("the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("it is free");
    home.answer("hermes", &hermes_shell(command));
    drop(lock);
    let waiting = home.run(&["status", "--json"]);
    let waiting: Value = serde_json::from_slice(&waiting.stdout).expect("JSON");
    assert_eq!(waiting["spool"]["waiting"], 1, "{waiting}");
}

fn take_in(home: &Home) {
    let _daemon = home.serve();
    wait_until("the spool is empty", || {
        let status = home.run(&["status", "--json"]);
        serde_json::from_slice::<Value>(&status.stdout).is_ok_and(|it| it["spool"]["waiting"] == 0)
    });
}

#[test]
fn a_spooled_event_does_not_bring_back_the_policy_of_its_time() {
    let early = "hooks:\n  turn.start:\n    - name: early\n      rule: { context: hi }\n";
    for recorded_before in [true, false] {
        let home = Home::with_daemon("running");
        let first = if recorded_before { "early" } else { "first" };
        home.write_hooks_file(&early.replace("early", first));
        home.answer("hermes", &hermes_shell("ls"));
        home.write_hooks_file(early);
        spool_one(&home, "ls spooled");
        // The guard is in force, and recorded, before the spooled event is taken in.
        home.write_hooks_file(GOOD);
        let spool = home.path().join("spool");
        fs::rename(&spool, home.work().join("spool")).expect("our directory");
        assert_in_force(&home, "as written");
        if spool.exists() {
            fs::remove_dir_all(&spool).expect("our directory");
        }
        fs::rename(home.work().join("spool"), &spool).expect("our directory");
        let changes = home.log(&["--kind", "settings.changed"]);
        take_in(&home);
        let loaded = home.log(&["--kind", "hooks.loaded"]);
        let late: Vec<&Value> =
            loaded.iter().filter(|row| row["context"]["late"] == true).collect();
        // A version that the log holds already is not recorded again.
        assert_eq!(late.len(), usize::from(!recorded_before), "{loaded:?}");
        assert_eq!(home.log(&["--kind", "settings.changed"]), changes);
        let event = home.log(&["--kind", "tool.before"]);
        assert!(event.iter().any(|row| row["context"]["late"] == true), "{event:?}");
        home.write_hooks_file(&GOOD.replace("block: not here", "blokc: not here"));
        assert_in_force(&home, "from the log");
        assert!(home.is_sound());
    }
}

/// The answer to a shell call of Gemini whose wiring has these options.
fn gemini_answer(home: &Home, options: &[&str]) -> Value {
    let command = home.command([&["hook", "gemini"], options].concat());
    let output = feed(command, gemini_shell("ls").to_string().as_bytes());
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&output.stdout).unwrap_or_default()
}

#[test]
fn hooks_that_are_not_known_are_told_and_block_if_the_wiring_says_so() {
    let unreadable = |home: &Home| {
        home.write_hooks_file(GOOD);
        reason(home, "ls");
        fs::remove_file(home.path().join("hookbus.yaml")).expect("a hooks file");
        fs::create_dir(home.path().join("hookbus.yaml")).expect("a directory in its place");
        for file in ["log.db", "log.db-wal", "log.db-shm"] {
            fs::write(home.path().join(file), "no database").expect("a broken log");
        }
    };
    let never_good = |home: &Home| home.write_hooks_file("hooks: [");
    for (what, mode, break_hooks) in [
        ("unreadable", "off", &unreadable as &dyn Fn(&Home)),
        ("never good", "off", &never_good),
        ("never good, with a daemon", "running", &never_good),
    ] {
        let home = Home::with_daemon(mode);
        break_hooks(&home);
        let _daemon = (mode == "running").then(|| home.serve());
        let told = gemini_answer(&home, &[]);
        let message = told["systemMessage"].as_str().unwrap_or_default();
        assert!(message.contains("no earlier version is known"), "{what}: {told}");
        assert_eq!(told["decision"], Value::Null, "{what}: {told}");
        let blocked = gemini_answer(&home, &["--on-failure", "block"]);
        let why = blocked["reason"].as_str().unwrap_or_default();
        assert_eq!(blocked["decision"], "deny", "{what}: {blocked}");
        assert!(why.contains("hookbus does not know your hooks"), "{what}: {why}");
    }
}

#[test]
fn hooks_that_are_known_or_not_there_do_not_block_for_the_wiring() {
    let home = Home::new();
    let block = ["--on-failure", "block"];
    fs::create_dir_all(home.path()).expect("a home");
    assert_eq!(gemini_answer(&home, &block), Value::Null, "there is no file");
    home.write_hooks_file(GOOD);
    assert_eq!(gemini_answer(&home, &block), Value::Null);
    home.write_hooks_file("hooks: [");
    assert_eq!(gemini_answer(&home, &block)["decision"], Value::Null, "the last good version");
}
