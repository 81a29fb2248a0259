//! What every other command prints: text as snapshots at two widths, with and without colours, fitted to the window; JSON
//! with the keys that `cli/docs/output.md` documents, no more and no fewer; `last` wherever a session is expected.

#![expect(clippy::expect_used, clippy::panic, reason = "a failed setup fails the test")]

use std::fs;
use std::process::{Command, Stdio};

use hookbus_tests::home::{Home, feed, wait_until};
use hookbus_tests::payloads::hermes_shell;
use hookbus_tests::shapes::Shapes;
use hookbus_tests::told_sessions::{POLICY, matches_snapshots, printed, recorded};
use serde_json::{Value, json};

/// A policy with an example that is missed, a mistake, a long reason and wide text.
const CHECKED: &str = "hooks:
  tool.before:
    - name: 漢字-guard
      rule:
        when: { command: 'push --force' }
        block: '👩‍💻 Force pushes to a branch that others use need a person who has looked at them first. 漢字漢字漢字漢字漢字'
        examples:
          block: ['git push --force', 'git push --forec origin 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字']
          pass: ['git push']
    - { name: without-examples, rule: { when: { command: 'rm' }, ask: Sure? } }
";

#[test]
fn every_other_text_fits_the_window_and_is_as_its_snapshot() {
    let home = recorded();
    home.text(&[
        "hold",
        "7a3d78",
        "--note",
        "an incident with a rather long note 👩‍💻 漢字漢字漢字漢字漢字",
    ]);
    for (name, arguments) in [
        ("hold-list", &["hold", "--list"][..]),
        ("why", &["why", "last"]),
        ("why-context", &["why", "4", "--all"]),
        ("hooks-list", &["hooks", "list"]),
        ("hooks-shadow", &["hooks", "shadow"]),
        ("hooks-test", &["hooks", "test", "--command", "git push --force origin 漢字 👩‍💻"]),
        ("hooks-doctor", &["hooks", "doctor"]),
        ("prune", &["prune", "--agent", "hermes", "--dry-run"]),
        ("scan", &["scan"]),
        ("verify", &["verify"]),
        ("replay", &["replay", "--all"]),
        ("replay-list", &["replay", "--all", "--hooks", "/dev/null", "--list"]),
        (
            "query",
            &[
                "query",
                "SELECT seq, agent, name, payload ->> '$.tool_input.command' AS command FROM events WHERE tool IS NOT NULL",
            ],
        ),
        ("query-views", &["query", "--views"]),
        ("status", &["status"]),
        ("hookbus", &[]),
    ] {
        matches_snapshots(&home, name, arguments);
    }
    let checked = home.work().join("checked.yaml");
    fs::write(&checked, CHECKED).expect("a file");
    matches_snapshots(&home, "hooks-check", &["hooks", "check", "checked.yaml"]);
    for arguments in [
        &["stats"][..],
        &["stats", "--by", "tool"],
        &["hooks", "test", "pre_tool_call"],
        &["replay", "--explain", "7"],
        &["anchor"],
        &["backup", "copy.db"],
        &["compact"],
        &["prune", "--agent", "gemini", "--yes"],
    ] {
        printed(&home, arguments, "80", true);
    }
}

#[test]
fn without_a_home_hookbus_says_how_to_begin() {
    let home = Home::new();
    let alone = printed(&home, &[], "80", false);
    for words in ["Nothing is set up yet", "hookbus demo", "hookbus init", "hookbus --help"] {
        assert!(alone.contains(words), "{words} is not in\n{alone}");
    }
    assert!(!home.path().exists(), "looking makes no home");
    home.write_hooks("hooks: {}");
    let begun = printed(&home, &[], "80", false);
    assert!(
        begun.starts_with("all is well") && begun.contains("nothing was recorded yet"),
        "{begun}"
    );
    home.write_hooks("hooks: { tool.before: [{ name: broken, rule: { blokc: x } }] }");
    for verb in [&[][..], &["status"]] {
        let broken = printed(&home, verb, "80", false);
        let first = broken.lines().next().expect("a line");
        assert_eq!(first, "1 thing is wrong:", "{broken}");
        assert!(broken.contains("a rule has no `blokc`"), "{broken}");
        assert_eq!(broken.matches("blokc").count(), 1, "told once: {broken}");
    }
}

#[test]
fn last_and_short_ids_work_wherever_a_session_is_expected() {
    let home = recorded();
    for session in ["last", "7a3d78"] {
        for verb in [
            &["show", session][..],
            &["log", "--session", session],
            &["replay", session],
            &["hold", session],
            &["hold", session, "--release"],
            &["export", session],
            &["scan", "--session", session],
            &["prune", "--session", session, "--dry-run"],
        ] {
            home.text(verb);
        }
    }
    home.text(&["why", "7a3d78"]);
    home.text(&["why", "last"]);
    let exported = home.text(&["export", "last"]);
    let of_last = |line: &&str| line.contains("01a1e1c7-e6cc");
    assert_eq!(exported.lines().filter(of_last).count(), 8, "the rows of the latest session");
}

/// The lines of JSON that a command prints, whatever it exits with.
fn lines(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let mut command = home.command([arguments, &["--json"]].concat());
    // What `connect` writes to is in the home of the test.
    command.env("GEMINI_CLI_HOME", home.work()).env("HOME", home.work());
    let output = command.stdin(Stdio::null()).output().expect("hookbus runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let whole = serde_json::from_str::<Value>(&text);
    let read = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {line} {}", String::from_utf8_lossy(&output.stderr))
        })
    };
    whole.map_or_else(|_| text.lines().map(read).collect(), |value| vec![value])
}

/// The keys that need what this test has not got: a NATS server, a daemon that hangs, a damaged log, plugins.
const ELSEWHERE: &[&str] = &[
    "status---json relay",
    "status---json relay.",
    "status---json log.error",
    "status---json hung.pid",
    "status---json observers.process",
    "hookbus---json installed",
    "hookbus---json daemon",
    "log---json bus",
    "log---json removed",
    "log---json redacted",
    "sessions---json bus",
    "verify---json buses",
    "verify---json repaired",
    "dead-list---json refused",
    "dead-list---json message",
    "dead-list---json subject",
    "dead-list---json body",
    "hooks-list---json error.",
    "hooks-list---json project",
    "hooks-list---json nearer",
    "hooks-list---json problems.",
    "decisions ",
    "show---json turns.items.role",
    "replay---json unsteady.",
    "replay---json not_comparable.",
    "replay---json written",
    "replay---to-observers---json published",
    "replay---to-observers---json run",
    "replay---to-observers---json subjects",
    "replay---to-observers---json would_be_published",
    "replay---to-observers---json observers.",
    "a-difference ",
    "a-command-of-a-replay ",
    "stop---json killed",
    "stats---by---json",
    "figures ",
    "figures-of-",
    "prune---json ",
    "prune---dry-run---json ",
    "why---json next.",
];

/// Commands in one home, one after the other, and the sections that document what they print.
const SAMPLES: &[(&str, &[&str])] = &[
    ("hookbus --json", &[]),
    ("log --json", &["log"]),
    ("sessions --json", &["sessions"]),
    ("show --json", &["show", "7a3d78"]),
    ("show --json", &["show", "454a3468"]),
    ("show --json", &["show", "75992cd6"]),
    ("show --json", &["show", "b3af2126"]),
    ("why --json", &["why", "last"]),
    ("why --json", &["why", "7a3d78"]),
    ("hooks list --json", &["hooks", "list"]),
    ("hooks test --json", &["hooks", "test", "--command", "git push --force"]),
    ("Decisions", &["hooks", "test", "pre_tool_call"]),
    ("hooks check --json", &["hooks", "check"]),
    ("hooks check --json", &["hooks", "check", "checked.yaml"]),
    ("hooks approve --json", &["hooks", "approve"]),
    ("hooks revoke --json", &["hooks", "revoke", "no-force-push"]),
    ("hooks shadow --json", &["hooks", "shadow"]),
    ("hooks promote --json", &["hooks", "promote", "look-first", "--yes"]),
    ("hooks doctor --json", &["hooks", "doctor"]),
    ("status --json", &["status"]),
    ("status --check --json", &["status", "--check"]),
    ("top --json", &["top"]),
    ("stats --json", &["stats"]),
    ("stats --by --json", &["stats", "--by", "site"]),
    ("query --views --json", &["query", "--views"]),
    ("anchor --json", &["anchor", "--to", "checkpoints", "--to", "nowhere/checkpoints"]),
    ("verify --json", &["verify"]),
    ("verify --json", &["verify", "--against", "checkpoints"]),
    ("verify --json", &["verify", "--from", "last"]),
    ("verify --json", &["verify", "--repair"]),
    ("backup --json", &["backup", "copy.db"]),
    ("scan --json", &["scan"]),
    ("scan --redact --json", &["scan", "--redact", "--yes"]),
    ("compact --json", &["compact"]),
    ("hold --json", &["hold", "last"]),
    ("hold --list --json", &["hold", "--list"]),
    ("replay --json", &["replay", "--all", "--hooks", "/dev/null"]),
    ("replay --explain --json", &["replay", "--explain", "7"]),
    ("replay --step --json", &["replay", "--step", "7a3d78"]),
    ("replay --dry-run --json", &["replay", "--all", "--dry-run"]),
    ("export --json", &["export", "--output", "rows.jsonl"]),
    ("import --json", &["import", "rows.jsonl", "--into", "archive"]),
    ("prune --dry-run --json", &["prune", "--agent", "gemini", "--dry-run"]),
    ("prune --json", &["prune", "--agent", "gemini", "--yes"]),
    ("restore --json", &["restore", "copy.db"]),
    ("init --print --json", &["init", "--print"]),
    ("boot --json", &["boot"]),
    ("man --json", &["man", "--out", "man"]),
    ("stop --json", &["stop"]),
];

#[test]
fn every_json_has_the_keys_that_are_documented() {
    let mut shapes = Shapes::documented();
    let home = recorded();
    for payload in [hermes_shell("git push --force"), hermes_shell("deploy 👩‍💻")] {
        home.hook("hermes", payload.to_string());
    }
    fs::write(home.work().join("checked.yaml"), format!("{CHECKED}    - {{ nmae: x }}\n"))
        .expect("a file");
    let mut check = |title: &str, home: &Home, arguments: &[&str]| {
        let values = lines(home, arguments);
        assert!(!values.is_empty(), "{arguments:?} prints nothing");
        for value in &values {
            shapes.check(title, value).unwrap_or_else(|wrong| panic!("{arguments:?}: {wrong}"));
        }
    };
    check("hookbus --json", &Home::new(), &[]);
    for &(title, arguments) in SAMPLES {
        check(title, &home, arguments);
    }
    let archive = home.work().join("archive").to_string_lossy().into_owned();
    check("verify --json", &home, &["--home", &archive, "verify"]);
    check("sessions --json", &home, &["--home", &archive, "sessions"]);
    check("top --json", &home, &["--home", &archive, "top"]);
    check("log --json", &home, &["--home", &archive, "log"]);
    let fresh = Home::new();
    fs::create_dir_all(fresh.work().join(".gemini")).expect("a directory");
    check("init --json", &fresh, &["init", "--yes"]);
    check("demo --json", &fresh, &["demo"]);
    check("connect --json", &fresh, &["connect", "gemini", "--yes"]);
    check("disconnect --json", &fresh, &["disconnect", "gemini", "--yes"]);
    check_observers(&mut check);
    check_flaws(&mut check);
    let is_elsewhere = |key: &String| ELSEWHERE.iter().any(|known| key.starts_with(known));
    let unseen: Vec<String> =
        shapes.never_seen().into_iter().filter(|key| !is_elsewhere(key)).collect();
    assert_eq!(unseen, Vec::<String>::new(), "documented, and printed by no command above");
}

/// A log with a secret in it, and without one of its indexes.
fn check_flaws(check: &mut impl FnMut(&str, &Home, &[&str])) {
    let home = Home::with_hooks("redact: false\nhooks: {}");
    let token = format!("{}a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6wxyz", "ghp_");
    home.hook("hermes", hermes_shell(&format!("git push {token}")).to_string());
    check("scan --json", &home, &["scan"]);
    let program =
        "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute('DROP INDEX events_by_session')";
    let log = home.path().join("log.db");
    let dropped = Command::new("python3").args(["-c", program]).arg(log).status();
    assert!(dropped.expect("python3 runs").success());
    check("verify --json", &home, &["verify"]);
}

/// A daemon with an observer that fails.
fn check_observers(check: &mut impl FnMut(&str, &Home, &[&str])) {
    let home = Home::with_daemon("running");
    home.write_hooks(&format!(
        "{POLICY}  tool.after:\n    - {{ name: audit, mode: observe, command: 'false', tries: 1 }}\nretain: [{{ older_than: 365d }}]\n"
    ));
    let daemon = home.serve();
    let payload = hookbus_tests::payloads::one("hermes", "post_tool_call").to_string();
    feed(home.command(["hook", "hermes"]), payload.as_bytes());
    wait_until("the observer has failed", || {
        home.json(&["status", "--json"])["observers"][0]["dead_letters"] == 1
    });
    let letter = lines(&home, &["dead", "list"])[0]["event"]["id"].clone();
    let letter = letter.as_str().expect("an id").to_owned();
    for (title, arguments) in [
        ("status --json", &["status"][..]),
        ("hookbus --json", &[]),
        ("dead list --json", &["dead", "list"]),
        ("dead show --json", &["dead", "show", "audit", &letter]),
        ("dead retry --json", &["dead", "retry", "audit", "--all"]),
        ("dead drop --json", &["dead", "drop", "audit", "--all"]),
        ("prune --json", &["prune", "--yes"]),
        ("prune --dry-run --json", &["prune", "--dry-run"]),
        ("status --json", &["status"]),
        ("replay --to-observers --json", &["replay", "--all", "--to-observers", "--dry-run"]),
        ("stop --json", &["stop"]),
    ] {
        check(title, &home, arguments);
    }
    drop(daemon);
    check("observe --json", &home, &["observe", "audit", "--drain"]);
}

#[test]
fn the_numbers_of_the_shapes_are_listed_and_each_command_is_documented() {
    let home = Home::new();
    let shapes = home.json(&["--json"])["shapes"].clone();
    let documented = Shapes::documented();
    let sections = documented.sections();
    for (command, number) in shapes.as_object().expect("an object") {
        let anchor = format!("{}---json", command.replace(' ', "-"));
        // Its keys are those of the query.
        assert!(command == "query" || sections.contains(&anchor.as_str()), "{command}");
        assert_eq!(*number, if command == "show" { json!(2) } else { json!(1) }, "{command}");
    }
}
