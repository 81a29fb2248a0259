//! Which code an approval of a plugin directory covers: that of the plugins that are loaded from it, and no
//! other. Any difference between what was approved and what would be loaded lapses the approval.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use hookbus_tests::agents::Act;
use hookbus_tests::consent::{
    LAPSED, NOT_APPROVED, approve_at_terminal, assert_lapsed, block_reason, blocking_plugin,
};
use hookbus_tests::home::{Home, feed, path_text, wait_until, write_executable};
use hookbus_tests::plugins::{call, gateway_hook, plugin, write};
use serde_json::{Value, json};

/// More files than an approval can cover.
const TOO_MANY: usize = 2001;

/// A home with a directory of two plugins, of which `guard` is enabled and approved.
fn guarded() -> (Home, PathBuf) {
    let home = Home::new();
    let guard = plugin(&home, "guard", &blocking_plugin("guarded"));
    plugin(&home, "other", &blocking_plugin("other"));
    let all = guard.parent().expect("a directory").to_owned();
    write_lists(&home, &all, "enabled: [guard]");
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
    (home, all)
}

/// Writes a hooks file with the directory and these lists of plugins.
fn write_lists(home: &Home, all: &Path, lists: &str) {
    home.write_hooks_file(&format!(
        "plugins: {{ {lists} }}\nhooks:\n  '*':\n    - {{ name: all, python: {} }}\n",
        path_text(all)
    ));
}

/// Writes a hooks file with one plugin entry.
fn write_entry(home: &Home, folder: &Path, more: &str) {
    home.write_hooks_file(&format!(
        "hooks: {{ '*': [{{ name: hooks, python: {}{more} }}] }}",
        path_text(folder)
    ));
}

fn turn() -> Value {
    call("pre_llm_call", &json!({}))
}

/// The answer to a slash command of the gateway.
fn command_answer(home: &Home) -> Value {
    let payload = call("command:help", &json!({"command": "help"})).to_string();
    let hook = home.command(["hook", "hermes", "--wire", "bridge"]);
    serde_json::from_str(&feed(hook, payload.as_bytes()).stdout).unwrap_or(Value::Null)
}

fn connect(home: &Home, verb: &str) {
    let mut command = home.command([verb, "hermes", "--yes"]);
    let output = command.env("HERMES_HOME", home.work()).env("HOME", home.work()).output();
    let output = output.expect("hookbus runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_plugin_runs_only_as_it_was_approved() {
    let home = Home::new();
    let code = "def register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: 'hello')\n";
    let folder = plugin(&home, "p", code);
    write_entry(&home, &folder, "");
    // A plugin that fails also answers nothing, so the recorded verdict is checked.
    let assert_refused = |why: &str| {
        assert_eq!(home.answer("hermes", &turn()), Value::Null);
        let verdict = home.last_decision()["verdicts"][0].clone();
        assert_eq!((&verdict["refused"], &verdict["failure"]), (&json!("consent"), &json!(why)));
    };
    assert_refused(NOT_APPROVED);
    home.approve();
    assert_eq!(home.answer("hermes", &turn()), json!({"context": "hello"}));
    write(&folder, "more.py", "x = 1\n");
    assert_refused(LAPSED);
}

#[test]
fn a_plugin_that_is_not_loaded_may_change() {
    let (home, all) = guarded();
    write(&all.join("other"), "__init__.py", "x = 1\n");
    write(&all.join("other"), "plugin.yaml", "name: another\n");
    write(&all.join("new"), "plugin.yaml", "name: new\n");
    write(&all, "notes.py", "x = 1\n");
    assert_eq!(block_reason(&home), "guarded");
    fs::remove_dir_all(all.join("other")).expect("a plugin");
    assert_eq!(block_reason(&home), "guarded");
}

type Edit<'a> = &'a dyn Fn(&Home, &Path);

fn rename(all: &Path, from: &str, to: &str) {
    fs::rename(all.join(from), all.join(to)).expect("a rename");
}

#[test]
fn every_change_of_what_would_be_loaded_lapses_the_approval() {
    let edits: [(&str, Edit<'_>); 14] = [
        ("another plugin is enabled too", &|home, all| {
            write_lists(home, all, "enabled: [guard, other]");
        }),
        ("its directory is hidden", &|_, all| rename(all, "guard", "_guard")),
        ("it gets another name", &|_, all| write(&all.join("guard"), "plugin.yaml", "name: g\n")),
        ("it looks like the bridge", &|_, all| {
            write(&all.join("guard"), "bridge.json", "{}");
            write(&all.join("guard"), "client.py", "");
        }),
        ("a bridge takes its name", &|_, all| {
            write(&all.join("x"), "plugin.yaml", "name: guard\n");
            write(&all.join("x"), "bridge.json", "{}");
            write(&all.join("x"), "client.py", "");
        }),
        ("a provider takes its name", &|_, all| {
            write(&all.join("x"), "plugin.yaml", "name: guard\nkind: exclusive\n");
        }),
        ("its manifest is removed", &|_, all| {
            fs::remove_file(all.join("guard/plugin.yaml")).expect("a manifest");
        }),
        ("it is removed", &|_, all| fs::remove_dir_all(all.join("guard")).expect("a plugin")),
        ("the directory of plugins becomes a plugin", &|_, all| {
            write(all, "plugin.yaml", "name: one\n");
            write(all, "__init__.py", &blocking_plugin("one"));
        }),
        ("it is edited", &|_, all| {
            write(&all.join("guard"), "__init__.py", &blocking_plugin("edited"));
        }),
        ("its code is replaced by that of another plugin", &|_, all| {
            fs::copy(all.join("other/__init__.py"), all.join("guard/__init__.py")).expect("a copy");
        }),
        ("a module is added", &|_, all| write(&all.join("guard"), "more.py", "")),
        ("a module is added in a directory with an underscore", &|_, all| {
            write(&all.join("guard/_impl"), "a.py", "");
        }),
        ("it is disabled", &|home, all| {
            write_lists(home, all, "enabled: [guard], disabled: [guard]");
        }),
    ];
    for (what, edit) in edits {
        let (home, all) = guarded();
        edit(&home, &all);
        assert_lapsed(&home, what);
    }
}

#[test]
fn loading_another_plugin_instead_of_the_approved_one_lapses_the_approval() {
    let edits: [(&str, Edit<'_>); 4] = [
        ("another plugin takes its name", &|_, all| {
            write(&all.join("other"), "plugin.yaml", "name: guard\n");
        }),
        ("it is moved", &|_, all| rename(all, "guard", "old")),
        ("another plugin is enabled", &|home, all| write_lists(home, all, "enabled: [other]")),
        ("it is disabled and another plugin is enabled", &|home, all| {
            write_lists(home, all, "enabled: [guard, other], disabled: [guard]");
        }),
    ];
    for (what, edit) in edits {
        let (home, all) = guarded();
        edit(&home, &all);
        assert_lapsed(&home, what);
    }
}

#[test]
fn disabling_one_of_several_approved_plugins_has_to_be_approved() {
    let (home, all) = guarded();
    write_lists(&home, &all, "enabled: [guard, other]");
    home.approve();
    write_lists(&home, &all, "enabled: [guard, other], disabled: [guard]");
    assert_lapsed(&home, "fewer plugins than approved");
    home.approve();
    assert_eq!(block_reason(&home), "other");
}

#[test]
fn state_that_a_plugin_writes_is_not_covered() {
    let home = Home::new();
    let code = "import os\ncount = 0\ndef before(**k):\n    global count\n    count += 1\n    \
                open(os.path.join(os.path.dirname(__file__), 'state.json'), 'a').write('x')\n    \
                open(os.path.join(os.path.dirname(__file__), 'state.yaml'), 'a').write('n: 1')\n    \
                return {'action': 'block', 'message': 'guarded'}\n\
                def register(ctx):\n    ctx.register_hook('pre_tool_call', before)\n";
    write_entry(&home, &plugin(&home, "p", code), "");
    home.approve();
    for _ in 0..3 {
        assert_eq!(block_reason(&home), "guarded");
    }
}

#[test]
fn more_files_than_an_approval_can_cover_lapse_it() {
    let home = Home::new();
    let folder = plugin(&home, "guard", &blocking_plugin("guarded"));
    write_entry(&home, &folder, "");
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
    for number in 0..TOO_MANY {
        // Sorted before the approved files.
        write(&folder, &format!("_{number}.py"), "");
    }
    let reason = block_reason(&home);
    assert!(reason.contains("too many files"), "{reason}");
}

#[test]
fn another_or_an_edited_interpreter_lapses_the_approval() {
    let home = Home::new();
    let folder = plugin(&home, "p", &blocking_plugin("guarded"));
    write_entry(&home, &folder, "");
    home.approve();
    let python = home.script("python3", "#!/bin/sh\nexec python3 \"$@\"\n");
    write_entry(&home, &folder, &format!(", interpreter: {python}"));
    assert_lapsed(&home, "another interpreter");
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
    let ran = home.work().join("ran");
    let edited = format!("#!/bin/sh\necho x > {}\nexec python3 \"$@\"\n", path_text(&ran));
    fs::write(&python, edited).expect("an edit");
    assert_lapsed(&home, "an edited interpreter");
    assert!(!ran.exists(), "it did not run");
}

#[test]
fn an_edited_plugin_is_restarted_after_its_approval() {
    let home = Home::with_daemon("running");
    let shared = home.work().join("shared");
    write(&shared, "words.py", "word = 'old'\n");
    let code = "import os, subprocess\nfrom .lib.words import word\nhere = os.path.dirname(__file__)\n\
                said = subprocess.check_output([here + '/say.sh'], text=True).strip()\n\
                def register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: word + ' ' + said)\n";
    let folder = plugin(&home, "p", code);
    write_executable(&folder.join("say.sh"), "#!/bin/sh\necho old\n");
    std::os::unix::fs::symlink(&shared, folder.join("lib")).expect("a link");
    write_entry(&home, &folder, "");
    let _daemon = home.serve();
    home.approve();
    assert_eq!(home.answer("hermes", &turn()), json!({"context": "old old"}));
    let hash = || home.last_decision()["verdicts"][0]["script"].clone();
    let first = hash();
    for (file, text, context) in [
        (shared.join("words.py"), "word = 'new'\n", "new old"),
        (folder.join("say.sh"), "#!/bin/sh\necho new\n", "new new"),
    ] {
        fs::write(file, text).expect("an edit");
        home.approve();
        wait_until(context, || home.answer("hermes", &turn()) == json!({"context": context}));
    }
    assert_ne!(hash(), first, "the log has the hash of the version that answered");
}

#[test]
fn compiled_python_files_are_not_run_instead_of_the_approved_code() {
    let home = Home::new();
    let code = |word: &str| {
        format!(
            "from .inner import word\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: '{word} ' + word)\n"
        )
    };
    let folder = plugin(&home, "p", &code("good"));
    write(&folder.join("inner"), "__init__.py", "word = 'good'\n");
    write_entry(&home, &folder, "");
    home.approve();
    // Compiled from other code, and marked as not to be checked against the source.
    let compile = "import py_compile, sys, os\nfor name, text in [('__init__.py', sys.argv[2]), ('inner/__init__.py', \"word = 'evil'\")]:\n    \
        path = os.path.join(sys.argv[1], name)\n    kept = open(path).read()\n    open(path, 'w').write(text)\n    \
        py_compile.compile(path, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n    open(path, 'w').write(kept)\n";
    let compiled = std::process::Command::new("python3")
        .args(["-c", compile, &path_text(&folder), &code("evil")])
        .status();
    assert!(compiled.expect("python3 runs").success() && folder.join("inner/__pycache__").is_dir());
    assert_eq!(home.answer("hermes", &turn()), json!({"context": "good good"}));
}

#[test]
fn an_approval_of_an_earlier_version_still_counts() {
    // SHA-256 of `{"interpreter":"python3"}`: earlier versions covered the interpreter, not the whole entry.
    const TERMS: &str = "b78dafb897f4111a5f90e6dc3257ed495e6cb3091117130a8c503410cc6daabc";
    let (home, all) = guarded();
    let file = home.path().join("consent.json");
    let text = fs::read_to_string(&file).expect("approvals");
    let mut approvals: Value = serde_json::from_str(&text).expect("JSON");
    approvals["approvals"][0]["terms"] = json!(TERMS);
    fs::write(&file, approvals.to_string()).expect("approvals");
    assert_eq!(block_reason(&home), "guarded");
    write(&all.join("guard"), "__init__.py", &blocking_plugin("edited"));
    assert_lapsed(&home, "edited");
}

#[test]
fn the_bridge_in_an_approved_directory_changes_nothing() {
    let home = Home::new();
    plugin(&home, "guard", &blocking_plugin("guarded"));
    let handler =
        "def handle(event_type, context):\n    return {'decision': 'deny', 'message': 'said'}\n";
    gateway_hook(&home, "greeter", "['command:*']", handler);
    let (plugins, hooks) = (home.work().join("plugins"), home.work().join("hooks"));
    home.write_hooks_file(&format!(
        "plugins: {{ enabled: [guard] }}\nhooks:\n  '*':\n    - {{ name: plugins, python: {} }}\n    - {{ name: hooks, python: {} }}\n",
        path_text(&plugins),
        path_text(&hooks)
    ));
    home.approve();
    let assert_works = |when: &str| {
        let answers = (block_reason(&home), command_answer(&home)["message"].clone());
        assert_eq!(answers, ("guarded".to_owned(), json!("said")), "{when}");
    };
    assert_works("before");
    connect(&home, "connect");
    assert!(
        plugins.join("hookbus/client.py").is_file() && hooks.join("hookbus/client.py").is_file()
    );
    assert_works("connected");
    home.approve();
    connect(&home, "disconnect");
    assert_works("disconnected");
}

#[test]
fn lapsed_gateway_hooks_block_only_the_events_that_they_can_answer() {
    let home = Home::new();
    let code = "def handle(event_type, context):\n    return None\n";
    let hook = gateway_hook(&home, "greeter", "['command:*']", code);
    let hooks = home.work().join("hooks");
    write_entry(&home, &hooks, "");
    home.approve();
    write(&hook, "handler.py", &code.replace("None", "{}"));
    for more in ["", ", on_failure: block"] {
        write_entry(&home, &hooks, more);
        assert_eq!(block_reason(&home), "", "{more}");
        let verdict = home.last_decision()["verdicts"][0].clone();
        assert_eq!((&verdict["refused"], &verdict["verdict"]), (&json!("consent"), &json!("none")));
        let answer = command_answer(&home);
        assert!(answer.to_string().contains(LAPSED), "{answer}");
    }
    // With an approved plugin in the directory, every event is blocked.
    plugin(&home, "guard", &blocking_plugin("guarded"));
    fs::rename(home.work().join("plugins/guard"), hooks.join("guard")).expect("a move");
    write_lists(&home, &hooks, "enabled: [guard]");
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
    write(&hook, "handler.py", code);
    assert_lapsed(&home, "edited");
}

#[test]
fn a_plugin_that_was_not_approved_gets_no_events_in_a_replay() {
    let home = Home::with_daemon("running");
    let received = home.work().join("received");
    let code = format!(
        "def before(user_message='', **rest):\n    with open('{}', 'a') as received:\n        received.write(user_message + '\\n')\n\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', before)\n",
        path_text(&received)
    );
    write_entry(&home, &plugin(&home, "p", &code), "");
    let _daemon = home.serve();
    let send = |message: &str| {
        home.answer("hermes", &call("pre_llm_call", &json!({"user_message": message})));
    };
    send("one");
    home.approve();
    send("two");
    let report = home.json(&["replay", "-n", "1", "--as-recorded", "--yes", "--json"]);
    assert_eq!(report["summary"]["unchanged"], 1, "{report}");
    assert_eq!(fs::read_to_string(&received).expect("its events"), "two\ntwo\n");
}

#[test]
fn the_question_lists_files_that_do_not_fit_a_screen_and_shows_the_changed_ones() {
    let (home, all) = guarded();
    let screen = |options: &[&str]| {
        let no = [Act::See("approve this hook?"), Act::Type("n"), Act::Enter];
        approve_at_terminal(&home, options, &no).1
    };
    for name in ["one.py", "two.py", "three.py"] {
        write(&all.join("guard"), name, &format!("# {name}\n").repeat(120));
    }
    home.text(&["hooks", "revoke", "all"]);
    let new = screen(&[]);
    assert!(new.lines().count() < 30 && new.contains("one.py: 1.0 kB"), "{new}");
    assert!(screen(&["--whole"]).contains("| # three.py"));
    home.approve();
    write(&all.join("guard"), "two.py", "# edited\n");
    write(&all.join("guard"), "four.py", "# new\n");
    fs::remove_file(all.join("guard/one.py")).expect("a file");
    let lapsed = screen(&[]);
    for text in ["| # edited", "| # new", "one.py: removed", "three.py: 1.3 kB", "--whole"] {
        assert!(lapsed.contains(text), "{text}: {lapsed}");
    }
    assert!(!lapsed.contains("| # three.py"), "{lapsed}");
    assert!(lapsed.find("two.py") < lapsed.find("three.py"), "changed files come first: {lapsed}");
    assert!(!lapsed.contains("other/__init__.py"), "it is not loaded: {lapsed}");
    assert!(screen(&["--whole"]).matches("| # three.py").count() == 120);
}
