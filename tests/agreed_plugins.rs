//! Agreeing to a directory of plugins: what is loaded from it counts, and nothing else. Nothing runs that nobody
//! agreed to, however it came to be loaded, and a guard that was agreed to is not switched off by an edit.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use hookbus_tests::agents::{Act, before_a_person};
use hookbus_tests::home::{Home, feed, shown};
use hookbus_tests::plugins::{call, gateway_hook, plugin, tool, write};
use serde_json::{Value, json};

const CHANGED: &str = "it has changed since it was agreed to";

fn blocking(word: &str) -> String {
    format!(
        "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **k: {{'action': 'block', 'message': '{word}'}})\n"
    )
}

/// A home with a directory of two plugins, of which the guard is enabled and was agreed to.
fn guarded() -> (Home, PathBuf) {
    let home = Home::new();
    let guard = plugin(&home, "guard", &blocking("guarded"));
    plugin(&home, "other", &blocking("other"));
    let all = guard.parent().expect("a directory").to_owned();
    enable(&home, &all, "enabled: [guard]");
    approve(&home);
    assert_eq!(heard(&home), "guarded");
    (home, all)
}

fn enable(home: &Home, all: &Path, lists: &str) {
    home.write_hooks_file(&format!(
        "plugins: {{ {lists} }}\nhooks:\n  '*':\n    - {{ name: all, python: {} }}\n",
        shown(all)
    ));
}

fn approve(home: &Home) {
    home.text(&["hooks", "approve", "--accept-hooks"]);
}

fn before() -> Value {
    tool("pre_tool_call", "terminal", &json!({"command": "x"}), &json!({}))
}

/// What a slash command of the gateway is answered.
fn command(home: &Home) -> Value {
    let payload = call("command:help", &json!({"command": "help"})).to_string();
    let heard =
        feed(home.command(["hook", "hermes", "--wire", "bridge"]), payload.as_bytes()).stdout;
    serde_json::from_str(&heard).unwrap_or(Value::Null)
}

/// Why the tool was refused, if so.
fn heard(home: &Home) -> String {
    home.answer("hermes", &before())["reason"].as_str().unwrap_or_default().to_owned()
}

fn connect(home: &Home, verb: &str) {
    let mut command = home.command([verb, "hermes", "--yes"]);
    let done = command.env("HERMES_HOME", home.work()).env("HOME", home.work()).output();
    let done = done.expect("hookbus runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_bridge_beside_what_was_agreed_to_changes_nothing() {
    let home = Home::new();
    plugin(&home, "guard", &blocking("guarded"));
    let said =
        "def handle(event_type, context):\n    return {'decision': 'deny', 'message': 'said'}\n";
    gateway_hook(&home, "greeter", "['command:*']", said);
    let (plugins, hooks) = (home.work().join("plugins"), home.work().join("hooks"));
    home.write_hooks_file(&format!(
        "plugins: {{ enabled: [guard] }}\nhooks:\n  '*':\n    - {{ name: plugins, python: {} }}\n    - {{ name: hooks, python: {} }}\n",
        shown(&plugins),
        shown(&hooks)
    ));
    approve(&home);
    let works = |when: &str| {
        assert_eq!(
            (heard(&home).as_str(), command(&home)["message"].clone()),
            ("guarded", json!("said")),
            "{when}"
        );
    };
    works("before");
    connect(&home, "connect");
    assert!(
        plugins.join("hookbus/client.py").is_file() && hooks.join("hookbus/client.py").is_file()
    );
    works("connected");
    approve(&home);
    connect(&home, "disconnect");
    works("disconnected");
}

#[test]
fn a_plugin_that_is_not_loaded_may_change() {
    let (home, all) = guarded();
    write(&all.join("other"), "__init__.py", "x = 1\n");
    write(&all.join("other"), "plugin.yaml", "name: another\n");
    write(&all.join("new"), "plugin.yaml", "name: new\n");
    write(&all, "notes.py", "x = 1\n");
    assert_eq!(heard(&home), "guarded");
    fs::remove_dir_all(all.join("other")).expect("a plugin");
    assert_eq!(heard(&home), "guarded");
}

type Edit<'a> = &'a dyn Fn(&Home, &Path);

#[test]
fn nothing_else_is_loaded_than_what_was_agreed_to_and_no_guard_is_lost() {
    let renamed = |all: &Path, from: &str, to: &str| fs::rename(all.join(from), all.join(to));
    let edits: [(&str, Edit<'_>); 13] = [
        ("another is enabled", &|home, all| enable(home, all, "enabled: [guard, other]")),
        ("another in its place", &|home, all| enable(home, all, "enabled: [other]")),
        ("under the name of one that is", &|_, all| {
            write(&all.join("other"), "plugin.yaml", "name: guard\n");
        }),
        ("directories change places", &|_, all| {
            renamed(all, "guard", "old").expect("a rename");
            renamed(all, "other", "guard").expect("a rename");
        }),
        ("it is hidden", &|_, all| renamed(all, "guard", "_guard").expect("a rename")),
        ("it has another name", &|_, all| write(&all.join("guard"), "plugin.yaml", "name: g\n")),
        ("it looks like the bridge", &|_, all| {
            write(&all.join("guard"), "bridge.json", "{}");
            write(&all.join("guard"), "client.py", "");
        }),
        ("a bridge of its name", &|_, all| {
            write(&all.join("x"), "plugin.yaml", "name: guard\n");
            write(&all.join("x"), "bridge.json", "{}");
            write(&all.join("x"), "client.py", "");
        }),
        ("a provider of its name", &|_, all| {
            write(&all.join("x"), "plugin.yaml", "name: guard\nkind: exclusive\n");
        }),
        ("its manifest is gone", &|_, all| {
            fs::remove_file(all.join("guard/plugin.yaml")).expect("a manifest");
        }),
        ("it is gone", &|_, all| fs::remove_dir_all(all.join("guard")).expect("a plugin")),
        ("all of them are one", &|_, all| {
            write(all, "plugin.yaml", "name: one\n");
            write(all, "__init__.py", &blocking("one"));
        }),
        ("it is edited", &|_, all| write(&all.join("guard"), "__init__.py", &blocking("edited"))),
    ];
    for (what, edit) in edits {
        let (home, all) = guarded();
        edit(&home, &all);
        let heard = heard(&home);
        assert!(heard.contains(CHANGED), "{what}: {heard}");
    }
}

#[test]
fn a_plugin_that_somebody_switches_off_is_not_missed() {
    let (home, all) = guarded();
    enable(&home, &all, "enabled: [guard, other]");
    approve(&home);
    enable(&home, &all, "enabled: [guard], disabled: [other]");
    assert_eq!(heard(&home), "guarded");
    enable(&home, &all, "enabled: [guard, other], disabled: [guard]");
    assert_eq!(heard(&home), "other");
    enable(&home, &all, "disabled: [guard, other]");
    assert_eq!(heard(&home), "");
    let failed = &home.decisions().pop().expect("a decision")["verdicts"];
    assert!(!failed.to_string().contains(CHANGED), "{failed}");
}

/// As `hooks approve` wrote it when all code in the directory counted.
#[test]
fn what_was_agreed_to_with_the_whole_directory_stays_agreed_to() {
    let (home, all) = guarded();
    let file = home.path().join("consent.json");
    let text = fs::read_to_string(&file).expect("consents");
    let mut consents: Value = serde_json::from_str(&text).expect("JSON");
    write(&all, "stray.py", "");
    write(&all.join("_off/p"), "plugin.yaml", "name: p\n");
    let rest = ["other/plugin.yaml", "other/__init__.py", "stray.py", "_off/p/plugin.yaml"];
    let rest = rest.map(|name| json!({"path": all.join(name), "hash": sha256(&all.join(name))}));
    consents["approvals"][0]["files"].as_array_mut().expect("files").extend(rest);
    fs::write(&file, consents.to_string()).expect("consents");
    assert_eq!(heard(&home), "guarded");
    fs::remove_file(all.join("stray.py")).expect("a file");
    write(&all.join("other"), "__init__.py", "x = 1\n");
    assert_eq!(heard(&home), "guarded");
    write(&all.join("guard"), "__init__.py", "x = 1\n");
    assert!(heard(&home).contains(CHANGED));
}

fn sha256(path: &Path) -> String {
    let sum = std::process::Command::new("sha256sum").arg(path).output().expect("sha256sum");
    String::from_utf8_lossy(&sum.stdout).split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn gateway_hooks_that_changed_block_only_what_they_could_have_answered() {
    let home = Home::new();
    let code = "def handle(event_type, context):\n    return None\n";
    let hook = gateway_hook(&home, "greeter", "['command:*']", code);
    let entry = |more: &str| {
        home.write_hooks_file(&format!(
            "hooks: {{ '*': [{{ name: hooks, python: {}{more} }}] }}",
            shown(&home.work().join("hooks"))
        ));
    };
    entry("");
    approve(&home);
    write(&hook, "handler.py", &code.replace("None", "{}"));
    for more in ["", ", on_failure: block"] {
        entry(more);
        assert_eq!(heard(&home), "", "{more}");
        let said = home.decisions().pop().expect("a decision")["verdicts"][0].clone();
        assert_eq!((&said["refused"], &said["verdict"]), (&json!("consent"), &json!("none")));
        let answer = command(&home);
        assert!(answer.to_string().contains(CHANGED), "{answer}");
    }
    // Beside a plugin that was agreed to it is another matter.
    plugin(&home, "guard", &blocking("guarded"));
    fs::rename(home.work().join("plugins/guard"), home.work().join("hooks/guard")).expect("a move");
    home.write_hooks_file(&format!(
        "plugins: {{ enabled: [guard] }}\nhooks: {{ '*': [{{ name: hooks, python: {} }}] }}",
        shown(&home.work().join("hooks"))
    ));
    approve(&home);
    assert_eq!(heard(&home), "guarded");
    write(&hook, "handler.py", code);
    assert!(heard(&home).contains(CHANGED));
}

#[test]
fn more_than_a_screen_of_files_is_listed_and_what_changed_is_shown() {
    let (home, all) = guarded();
    let asked = |arguments: &[&str]| {
        let mut command = home.command([&["hooks", "approve"], arguments].concat());
        command.env("HOME", home.work());
        let no = [Act::See("approve this hook?"), Act::Type("n"), Act::Enter];
        before_a_person(command, &no).1
    };
    for name in ["one.py", "two.py", "three.py"] {
        write(&all.join("guard"), name, &format!("# {name}\n").repeat(120));
    }
    home.text(&["hooks", "revoke", "all"]);
    let new = asked(&[]);
    assert!(new.lines().count() < 30 && new.contains("one.py: 1080 bytes"), "{new}");
    assert!(asked(&["--whole"]).contains("| # three.py"));
    approve(&home);
    write(&all.join("guard"), "two.py", "# edited\n");
    write(&all.join("guard"), "four.py", "# new\n");
    fs::remove_file(all.join("guard/one.py")).expect("a file");
    let lapsed = asked(&[]);
    for said in ["| # edited", "| # new", "one.py: removed", "three.py: 1320 bytes", "--whole"] {
        assert!(lapsed.contains(said), "{said}: {lapsed}");
    }
    assert!(!lapsed.contains("| # three.py"), "{lapsed}");
    assert!(lapsed.find("two.py") < lapsed.find("three.py"), "what changed comes first: {lapsed}");
    assert!(!lapsed.contains("other/__init__.py"), "it is not loaded: {lapsed}");
    assert!(asked(&["--whole"]).matches("| # three.py").count() == 120);
}
