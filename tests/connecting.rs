//! `hookbus connect hermes` and `hookbus disconnect hermes`: what they write, what they leave alone, and that
//! `disconnect` restores unchanged files byte for byte and loses nothing in changed ones.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use hookbus_tests::agents::{Act, hermes_program, run_at_terminal};
use hookbus_tests::consent::blocking_script;
use hookbus_tests::home::{Home, everything, path_text};
use hookbus_tests::plugins::write;
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::{Value, json};

const CONFIG: &str = "# my Hermes
model:
  default: some-model   # the cheap one

hooks:
  # keep an eye on the shell
  pre_tool_call:
    - matcher: terminal
      command: ~/bin/guard.sh   # mine
      timeout: 5
    - command: /opt/bin/hookbus hook hermes --deadline 20
  on_session_end:
  - command: hookbus hook hermes

plugins:
  enabled:
    - disk-cleanup # tidy
  disabled: [old]

display: {interface: cli}
";

struct Hermes<'a> {
    home: &'a Home,
    folder: PathBuf,
}

impl<'a> Hermes<'a> {
    fn with(home: &'a Home, config: &str) -> Self {
        let folder = home.work().join("hermes");
        fs::create_dir_all(&folder).expect("a directory");
        fs::write(folder.join("config.yaml"), config).expect("a configuration");
        Self { home, folder }
    }

    fn run(&self, words: &[&str]) -> Output {
        self.home.command(words).env("HERMES_HOME", &self.folder).output().expect("hookbus runs")
    }

    fn done(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--yes", "--json"]].concat());
        assert!(output.status.success(), "{words:?}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn config(&self) -> String {
        fs::read_to_string(self.folder.join("config.yaml")).expect("a configuration")
    }

    fn edit_config(&self, edit: impl Fn(&str) -> String) {
        fs::write(self.folder.join("config.yaml"), edit(&self.config())).expect("an edit");
    }

    /// The file with the hooks that `disconnect` could not put back.
    fn removed_hooks(&self) -> String {
        fs::read_to_string(self.folder.join("config.yaml.removed-hooks")).unwrap_or_default()
    }
}

#[test]
fn connecting_and_disconnecting_leaves_every_file_as_it_was() {
    let without_newline = "model: x";
    let flow = r#"{"model": {}, "plugins": {"enabled": []}, "hooks": {"pre_tool_call": [{"command": "hookbus hook hermes"}]}}"#;
    for config in [CONFIG, "", without_newline, flow, "plugins:\n", "plugins: {enabled: [a, b]}\n"]
    {
        for connects in [&["keep"][..], &["move"], &["keep", "move"]] {
            let home = Home::with_hooks("# mine\nhooks: {}\n");
            let hermes = Hermes::with(&home, config);
            let approved =
                json!({"approvals": [{"event": "pre_tool_call", "command": "~/bin/guard.sh"}]});
            fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
                .expect("consent");
            fs::write(home.path().join("hookbus.yaml"), "on_failure: allow # mine\n")
                .expect("hooks");
            let before = everything(&home.work());
            let ours = everything(&home.path());
            for hooks in connects {
                hermes.done(&["connect", "hermes", "--hooks", hooks]);
            }
            assert!(hermes.folder.join("plugins/hookbus/__init__.py").is_file());
            assert!(hermes.folder.join("hooks/hookbus/handler.py").is_file());
            // Python creates this directory when Hermes loads the plugin.
            fs::create_dir_all(hermes.folder.join("plugins/hookbus/__pycache__")).expect("a cache");
            hermes.done(&["disconnect", "hermes"]);
            assert_eq!(everything(&home.work()), before, "{config} {connects:?}");
            // What the log holds of the approvals stays, and so does the user's own PATH for other agents' hooks.
            let mut left = everything(&home.path());
            left.retain(|path, _| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name != "environment.json" && !name.starts_with("log.")
            });
            assert_eq!(left, ours, "{config} {connects:?}");
        }
    }
}

#[test]
fn connecting_keeps_comments_and_removes_shell_hooks_that_call_the_bus() {
    let home = Home::new();
    let hermes = Hermes::with(&home, CONFIG);
    hermes.done(&["connect", "hermes"]);
    let expected = CONFIG
        .replace("    - command: /opt/bin/hookbus hook hermes --deadline 20\n", "")
        .replace("  on_session_end:\n  - command: hookbus hook hermes\n", "")
        .replace("    - disk-cleanup # tidy\n", "    - disk-cleanup # tidy\n    - hookbus\n");
    assert_eq!(hermes.config(), expected, "with them, events would arrive twice");
}

#[test]
fn connecting_twice_changes_nothing_more() {
    let home = Home::new();
    let hermes = Hermes::with(&home, CONFIG);
    let first = hermes.done(&["connect", "hermes", "--gateway-deadline", "7"]);
    let (all, files) = (everything(&home.work()), first["files"].as_array().map(Vec::len));
    let second = hermes.done(&["connect", "hermes"]);
    assert_eq!((files, second["files"].clone()), (Some(9), json!([])));
    assert_eq!(everything(&home.work()), all, "the deadline of the first time is kept");
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), CONFIG);
    assert_eq!(hermes.done(&["disconnect", "hermes"])["files"], json!([]));
}

#[test]
fn what_the_user_changed_after_connecting_stays() {
    for connects_again in [false, true] {
        let home = Home::new();
        let hermes = Hermes::with(&home, CONFIG);
        hermes.done(&["connect", "hermes"]);
        hermes.edit_config(|text| {
            text.replace("- disk-cleanup # tidy", "- disk-cleanup # tidy\n    - another")
                .replace("some-model ", "other-model")
                + "# the end\n"
        });
        let edited = hermes.config();
        fs::write(hermes.folder.join("plugins/mine.txt"), "mine").expect("a file");
        if connects_again {
            hermes.done(&["connect", "hermes"]);
        }
        let report = hermes.done(&["disconnect", "hermes"]);
        assert_eq!(hermes.config(), edited.replace("    - hookbus\n", ""));
        assert!(hermes.folder.join("plugins/mine.txt").is_file());
        assert!(!hermes.folder.join("plugins/hookbus").exists());
        // The shell hooks that called the bus cannot be put back: a remark says so, and they are kept.
        let remarks = report["remarks"].to_string();
        for word in ["config.yaml.removed-hooks", "pre_tool_call", "hookbus hook hermes"] {
            assert!(remarks.contains(word), "{word}: {remarks}");
        }
        let kept = parsed(&hermes.removed_hooks());
        let was = &parsed(CONFIG)["hooks"];
        assert_eq!(kept["hooks"]["pre_tool_call"], json!([was["pre_tool_call"][1]]));
        assert_eq!(kept["hooks"]["on_session_end"], was["on_session_end"]);
    }
}

#[test]
fn a_list_that_connect_created_and_the_user_extended_stays() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    hermes.done(&["connect", "hermes"]);
    let longer = hermes.config() + "    - another\n";
    fs::write(hermes.folder.join("config.yaml"), longer).expect("an edit");
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), "model: x\nplugins:\n  enabled:\n    - another\n");
}

#[test]
fn hooks_that_are_approved_in_hermes_move_and_run_under_the_bus() {
    let home = Home::new();
    let script = guard(&home, "guard.sh");
    let config = format!(
        "hooks:\n  pre_tool_call:\n    - matcher: terminal\n      command: {script}\n    - command: ~/never-approved.sh\n"
    );
    let hermes = Hermes::with(&home, &config);
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": script}]});
    fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
        .expect("consent");
    let report = hermes.done(&["connect", "hermes", "--hooks", "move"]);
    assert!(report["remarks"].to_string().contains("not approved"), "{report}");
    assert!(!hermes.config().contains("guard.sh") && hermes.config().contains("never-approved"));
    let call =
        json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal", "tool_input": {}});
    assert_eq!(home.answer("hermes", &call), json!({"decision": "block", "reason": "guarded"}));
    let consents = fs::read_to_string(home.path().join("consent.json")).expect("approvals");
    assert!(consents.contains(&script) && !consents.contains("never-approved"), "{consents}");
    // `connect` without `--hooks`: what was moved stays moved.
    assert_eq!(hermes.done(&["connect", "hermes"])["files"], json!([]));
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), config);
    assert_eq!(home.answer("hermes", &call), Value::Null);
    assert!(!home.path().join("consent.json").exists(), "approvals are removed with the hooks");
}

#[test]
fn a_moved_matcher_with_look_around_still_guards() {
    let home = Home::new();
    let script = guard(&home, "guard.sh");
    let config = format!(
        "hooks:\n  pre_tool_call:\n    - matcher: '(?!read_).*'\n      command: {script}\n      note: kept by Hermes\n"
    );
    let hermes = Hermes::with(&home, &config);
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": script}]});
    fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
        .expect("consent");
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    assert!(!hermes.config().contains("guard.sh"), "it moved");
    let call = |tool: &str| {
        let call = json!({"hook_event_name": "pre_tool_call", "tool_name": tool, "tool_input": {}});
        home.answer("hermes", &call)
    };
    assert_eq!(call("terminal"), json!({"decision": "block", "reason": "guarded"}));
    assert_eq!(call("read_file"), Value::Null);
}

#[test]
fn approvals_that_move_with_hooks_are_rows_and_block_when_their_file_is_lost() {
    let home = Home::new();
    let script = guard(&home, "guard.sh");
    let config = format!("hooks:\n  pre_tool_call:\n    - command: {script}\n");
    let hermes = Hermes::with(&home, &config);
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": script}]});
    fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
        .expect("consent");
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    let [approved] = home.log(&["--kind", "hooks.approved"]).try_into().expect("one row");
    assert_eq!(approved["payload"]["how"], "connect");
    let approvals = home.path().join("consent.json");
    let text = fs::read(&approvals).expect("approvals");
    fs::remove_file(&approvals).expect("approvals");
    let call =
        json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal", "tool_input": {}});
    let answer = home.answer("hermes", &call);
    assert_eq!(answer["decision"], "block", "{answer}");
    assert!(answer["reason"].to_string().contains("approv"), "not asked: {answer}");
    fs::write(&approvals, text).expect("approvals");
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(home.log(&["--kind", "hooks.revoked"]).len(), 1);
    assert!(home.is_sound());
}

#[test]
fn a_hook_that_the_bus_cannot_run_stays_in_hermes() {
    let home = Home::new();
    let script = guard(&home, "guard.sh");
    let config = format!(
        "hooks_auto_accept: true\nhooks:\n  pre_tool_call:\n    - matcher: 'term(inal'\n      command: {script}\n"
    );
    let hermes = Hermes::with(&home, &config);
    let report = hermes.done(&["connect", "hermes", "--hooks", "move"]);
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("stays in Hermes") && remarks.contains("is not a regex"), "{report}");
    assert!(hermes.config().contains(&script));
}

#[test]
fn a_moved_hook_is_approved_only_if_its_script_is_the_one_that_was_approved_in_hermes() {
    let home = Home::new();
    let script = guard(&home, "guard.sh");
    let config = format!("hooks:\n  pre_tool_call:\n    - command: {script}\n");
    let hermes = Hermes::with(&home, &config);
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": script,
        "script_mtime_at_approval": "2020-01-01T00:00:00Z"}]});
    fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
        .expect("consent");
    let report = hermes.done(&["connect", "hermes", "--hooks", "move"]);
    assert!(report["remarks"].to_string().contains("has changed since you approved"), "{report}");
    let call = json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal"});
    assert_eq!(home.answer("hermes", &call), Value::Null);
    // An approval that the user gives later stays.
    home.approve();
    assert_eq!(hermes.done(&["connect", "hermes"])["files"], json!([]));
    assert_eq!(home.answer("hermes", &call)["decision"], "block");
    let consents = fs::read(home.path().join("consent.json")).expect("consents");
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(fs::read(home.path().join("consent.json")).expect("consents"), consents);
}

#[test]
fn nothing_is_written_without_a_yes() {
    let home = Home::new();
    let hermes = Hermes::with(&home, CONFIG);
    let before = everything(&home.work());
    let output = hermes.run(&["connect", "hermes"]);
    let (shown, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    assert!(shown.contains("+     - hookbus") && stderr.contains("--yes"), "{shown}{stderr}");
    assert_eq!(everything(&home.work()), before);
}

#[test]
fn a_configuration_that_cannot_be_edited_safely_is_left_alone() {
    let home = Home::new();
    for config in ["plugins: all\n", "- a list\n", "a: [\n", "plugins:\n  enabled: everything\n"] {
        let hermes = Hermes::with(&home, config);
        let output = hermes.run(&["connect", "hermes", "--yes"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{config}");
        assert!(stderr.contains("stays as it is"), "{stderr}");
        assert_eq!(hermes.config(), config);
        assert!(!hermes.folder.join("plugins").exists(), "all or nothing");
    }
}

#[test]
fn without_a_hermes_the_error_names_the_option() {
    let home = Home::new();
    let nowhere = home.work().join("nowhere");
    let output = home.run(&["connect", "hermes", "--yes", "--hermes-home", &path_text(&nowhere)]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("--hermes-home"), "{stderr}");
}

#[test]
fn at_a_terminal_the_change_is_shown_and_asked_about() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x # mine\n");
    let at_a_terminal = |verb: &str, answer: &'static str| {
        let mut command = home.command([verb, "hermes"]);
        command.env("HERMES_HOME", &hermes.folder).env("HOME", home.work());
        let acts = [Act::See("[y/N]"), Act::Type(answer), Act::Enter];
        run_at_terminal(command, &acts).1
    };
    let asked = at_a_terminal("connect", "n");
    assert!(asked.contains("- hookbus") && asked.contains("[y/N]"), "{asked}");
    assert_eq!(hermes.config(), "model: x # mine\n");
    let done = at_a_terminal("connect", "y");
    assert!(done.contains("connected"), "{done}");
    assert_eq!(hermes.config(), "model: x # mine\nplugins:\n  enabled:\n    - hookbus\n");
    at_a_terminal("disconnect", "y");
    assert_eq!(hermes.config(), "model: x # mine\n");
}

/// A Hermes with this configuration, in which the hook `~/guard.sh` is approved.
fn with_a_guard<'a>(home: &'a Home, config: &str) -> Hermes<'a> {
    let hermes = Hermes::with(home, config);
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": "~/guard.sh"}]});
    fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
        .expect("consent");
    hermes
}

const GUARDED: &str = "# mine
plugins:
  enabled:
    - a
hooks:
  pre_tool_call:
    - matcher: terminal
      command: ~/guard.sh # mine
      timeout: 5
model:
  default: x
";

/// A YAML text as JSON.
fn parsed(text: &str) -> Value {
    fn to_json(node: &Yaml<'_>) -> Value {
        let named = |(key, value): (&Yaml<'_>, &Yaml<'_>)| {
            (key.as_str().unwrap_or_default().to_owned(), to_json(value))
        };
        node.as_mapping()
            .map(|pairs| pairs.iter().map(named).collect())
            .or_else(|| Some(node.as_sequence()?.iter().map(to_json).collect()))
            .or_else(|| Some(json!(node.as_integer()?)))
            .or_else(|| Some(json!(node.as_str()?)))
            .unwrap_or_default()
    }
    let documents = Yaml::load_from_str(text).expect("YAML");
    documents.first().map(to_json).unwrap_or_default()
}

/// Whether `~/guard.sh` is in: Hermes' configuration, the file of removed hooks, `hookbus.yaml`.
fn where_the_guard_is(hermes: &Hermes<'_>) -> [bool; 3] {
    let ours = fs::read_to_string(hermes.home.path().join("hookbus.yaml")).unwrap_or_default();
    [hermes.config(), hermes.removed_hooks(), ours].map(|text| text.contains("~/guard.sh"))
}

#[test]
fn moved_hooks_are_never_lost_whichever_file_changes() {
    for (config_changes, hooks_change, expected) in [
        (false, false, [true, false, false]),
        (false, true, [true, false, true]),
        (true, false, [false, true, false]),
        (true, true, [false, true, true]),
    ] {
        for connects_again in [false, true] {
            let home = Home::new();
            let hermes = with_a_guard(&home, GUARDED);
            hermes.done(&["connect", "hermes", "--hooks", "move"]);
            assert_eq!(where_the_guard_is(&hermes), [false, false, true]);
            if config_changes {
                append(&hermes.folder.join("config.yaml"), "# edited\n");
            }
            if hooks_change {
                let file = home.path().join("hookbus.yaml");
                let moved = fs::read_to_string(&file).expect("hooks");
                fs::write(&file, moved.replace(":5", ":9")).expect("an edit");
            }
            if connects_again {
                assert_eq!(hermes.done(&["connect", "hermes"])["files"], json!([]));
            }
            let report = hermes.done(&["disconnect", "hermes"]);
            let case = format!("{config_changes} {hooks_change} {connects_again}");
            assert_eq!(where_the_guard_is(&hermes), expected, "{case}");
            let remarks = report["remarks"].to_string();
            assert_eq!(remarks.contains("removed-hooks"), config_changes, "{case}: {remarks}");
            assert_eq!(remarks.contains("stay in it"), hooks_change, "{case}: {remarks}");
            if config_changes {
                assert_eq!(parsed(&hermes.removed_hooks())["hooks"], parsed(GUARDED)["hooks"]);
                assert!(remarks.contains("~/guard.sh"), "it can be copied from there: {remarks}");
            }
        }
    }
}

#[test]
fn hooks_are_kept_when_hermes_rewrites_its_configuration() {
    let home = Home::new();
    let hermes = with_a_guard(&home, GUARDED);
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    let set = std::process::Command::new(hermes_program())
        .args(["config", "set", "model.default", "y"])
        .env("HERMES_HOME", &hermes.folder)
        .env("HOME", home.work())
        .output()
        .expect("Hermes runs");
    assert!(set.status.success(), "{set:?}");
    hermes.done(&["disconnect", "hermes"]);
    let now = parsed(&hermes.config());
    assert_eq!(
        (&now["model"]["default"], &now["plugins"]["enabled"]),
        (&json!("y"), &json!(["a"]))
    );
    assert_eq!(parsed(&hermes.removed_hooks())["hooks"], parsed(GUARDED)["hooks"]);
}

#[test]
fn moved_hooks_of_a_hermes_that_is_gone_are_kept_in_the_home_of_hookbus() {
    let home = Home::new();
    let hermes = with_a_guard(&home, GUARDED);
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    fs::remove_dir_all(&hermes.folder).expect("no Hermes");
    let report = hermes.done(&["disconnect", "hermes"]);
    let kept = home.path().join("config.yaml.removed-hooks");
    assert!(report["remarks"].to_string().contains(&path_text(&kept)), "{report}");
    assert!(fs::read_to_string(kept).expect("the hooks").contains("~/guard.sh"));
}

#[test]
fn a_configuration_that_is_no_yaml_any_more_is_left_alone_with_instructions() {
    let home = Home::new();
    let hermes = with_a_guard(&home, GUARDED);
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    append(&hermes.folder.join("config.yaml"), "broken: [\n");
    let (work, ours) = (everything(&home.work()), everything(&home.path()));
    let output = hermes.run(&["disconnect", "hermes", "--yes"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    for word in ["nothing has changed", "by hand", "plugins: enabled:", "run this again"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    assert_eq!((everything(&home.work()), everything(&home.path())), (work, ours));
    hermes.edit_config(|text| text.replace("broken: [\n", ""));
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), GUARDED);
}

#[test]
fn a_connection_of_an_earlier_version_can_be_undone() {
    for changes in [false, true] {
        let home = Home::new();
        let hermes = with_a_guard(&home, GUARDED);
        hermes.done(&["connect", "hermes", "--hooks", "move"]);
        let record = fs::read_dir(home.path().join("connected")).expect("records").next();
        let record = record.expect("a record").expect("a record").path();
        let json: Value = serde_json::from_slice(&fs::read(&record).expect("JSON")).expect("JSON");
        let old = json!({"files": json["files"], "made": json["made"]});
        fs::write(&record, old.to_string()).expect("a record");
        if changes {
            append(&hermes.folder.join("config.yaml"), "# edited\n");
        }
        hermes.done(&["disconnect", "hermes"]);
        assert_eq!(where_the_guard_is(&hermes), [!changes, changes, false]);
        assert!(!hermes.folder.join("plugins").exists());
    }
}

#[test]
fn a_disabled_bridge_is_enabled_and_disabled_again_however_often_it_is_connected() {
    for config in
        ["plugins:\n  disabled: [hookbus, z]\n", "plugins:\n  disabled:\n  - hookbus # no\nm: 1\n"]
    {
        let home = Home::new();
        let hermes = Hermes::with(&home, config);
        for _ in 0..3 {
            hermes.done(&["connect", "hermes"]);
        }
        hermes.done(&["disconnect", "hermes"]);
        assert_eq!(hermes.config(), config);
    }
}

#[test]
fn ordinary_ways_to_write_a_configuration_are_understood() {
    let shared = "hooks:\n  pre_tool_call: &bus\n    - command: hookbus hook hermes\n    - command: mine\n  post_tool_call: *bus\n";
    for config in [
        "plugins:\n  enabled: null\n",
        "plugins:\n  enabled: ~ # none\n  disabled: []\n",
        "plugins: null\nm: 1\n",
        "plugins: ~\n",
        "{plugins: null, m: 1}\n",
        "model: x\n...\n",
        "model: x\n... # the end\n",
        shared,
        "hooks:\n  pre_tool_call: &bus [{command: hookbus hook hermes}, {command: mine}]\n  post_tool_call: *bus\n",
    ] {
        let home = Home::new();
        let hermes = Hermes::with(&home, config);
        hermes.done(&["connect", "hermes"]);
        let now = parsed(&hermes.config());
        assert_eq!(now["plugins"]["enabled"], json!(["hookbus"]), "{}", hermes.config());
        assert!(!hermes.config().contains("hook hermes"), "{}", hermes.config());
        hermes.done(&["connect", "hermes"]);
        hermes.done(&["disconnect", "hermes"]);
        assert_eq!(hermes.config(), config);
    }
}

#[test]
fn a_symlink_to_the_same_hermes_is_the_same_connection() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    let other = home.work().join("alias");
    std::os::unix::fs::symlink(&hermes.folder, &other).expect("a link");
    hermes.done(&["connect", "hermes"]);
    let alias = Hermes { home: &home, folder: other };
    assert_eq!(alias.done(&["connect", "hermes"])["files"], json!([]));
    alias.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), "model: x\n");
}

#[test]
fn a_symlink_to_a_missing_file_stays_a_symlink() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "");
    let (link, target) = (hermes.folder.join("config.yaml"), home.work().join("dotfiles.yaml"));
    fs::remove_file(&link).expect("no file");
    std::os::unix::fs::symlink("../dotfiles.yaml", &link).expect("a link");
    hermes.done(&["connect", "hermes"]);
    assert!(link.is_symlink() && target.is_file());
    hermes.done(&["disconnect", "hermes"]);
    assert!(link.is_symlink() && !target.exists());
}

#[test]
fn a_home_that_connect_creates_is_private() {
    let home = Home::new();
    let hermes = with_a_guard(&home, GUARDED);
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    for (path, file) in everything(&home.path()) {
        let mode = fs::metadata(&path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, if file.is_some() { 0o600 } else { 0o700 }, "{}", path.display());
    }
}

#[test]
fn the_doctor_notices_when_hermes_does_not_load_the_bridge_or_cannot_reach_the_bus() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    let finding = || {
        let output = hermes.run(&["hooks", "doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = report["findings"].as_array().cloned().unwrap_or_default();
        let about =
            |row: &&Value| row["about"].as_str().is_some_and(|text| text.starts_with("Hermes"));
        rows.iter().find(about).expect("a finding")["finding"].clone()
    };
    let bridge = |key: &str, value: &str| {
        let file = hermes.folder.join("plugins/hookbus/bridge.json");
        let mut json: Value =
            serde_json::from_slice(&fs::read(&file).expect("settings")).expect("JSON");
        json[key] = json!(value);
        fs::write(file, json.to_string()).expect("settings");
    };
    let remove = |name: &str| fs::remove_file(hermes.folder.join(name)).expect("a file less");
    let disable = || append(&hermes.folder.join("config.yaml"), "  disabled: [hookbus]\n");
    let cases: [(&dyn Fn(), &str); 5] = [
        (&disable, "disabled"),
        (&|| remove("plugins/hookbus/bridge.json"), "is missing"),
        (&|| remove("hooks/hookbus/bridge.json"), "is missing"),
        (&|| bridge("hookbus", "/bin/true"), "/bin/true"),
        (&|| bridge("home", "/nowhere"), "another home"),
    ];
    for (break_it, word) in cases {
        hermes.done(&["connect", "hermes"]);
        assert_eq!(finding(), Value::Null);
        break_it();
        let found = finding().to_string();
        assert!(found.contains(word) && found.contains("hookbus connect"), "{word}: {found}");
    }
}

#[test]
fn the_doctor_looks_at_every_hermes_that_was_connected() {
    let home = Home::new();
    let usual = Hermes::with(&home, "model: x\n");
    let other = home.work().join("other hermes");
    fs::create_dir_all(&other).expect("a directory");
    usual.done(&["connect", "hermes"]);
    usual.done(&["connect", "hermes", "--hermes-home", &path_text(&other)]);
    let findings = || {
        let output = usual.run(&["hooks", "doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = report["findings"].as_array().cloned().unwrap_or_default();
        let about = |row: &&Value| row["about"].to_string().contains("Hermes in");
        rows.iter().filter(about).map(|row| row["finding"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(findings(), [Value::Null, Value::Null]);
    fs::remove_dir_all(other.join("plugins")).expect("no plugins");
    let reports = |words: &str| {
        let found = findings();
        assert!(found[0].is_null(), "the usual one is connected: {found:?}");
        let found = found[1].to_string();
        assert!(found.contains(words) && found.contains("--hermes-home '"), "{found}");
    };
    reports("is missing");
    usual.done(&["connect", "hermes", "--hermes-home", &path_text(&other)]);
    assert_eq!(findings(), [Value::Null, Value::Null], "as the finding says, that fixes it");
    // The record about a Hermes that was deleted can be removed.
    fs::remove_dir_all(&other).expect("no Hermes");
    reports("hookbus disconnect hermes");
    usual.done(&["disconnect", "hermes", "--hermes-home", &path_text(&other)]);
    assert_eq!(findings(), [Value::Null]);
    let record = fs::read_dir(home.path().join("connected")).expect("records").next();
    let record = record.expect("a record").expect("a record").path();
    fs::write(record, "nonsense").expect("a broken record");
    assert!(findings()[0].to_string().contains("is broken"), "{:?}", findings());
}

/// Writes a script that blocks.
fn guard(home: &Home, name: &str) -> String {
    home.script(name, &blocking_script("guarded"))
}

/// A Hermes of this name with this hook, which is approved there.
fn another_hermes<'a>(home: &'a Home, name: &str, command: &str) -> Hermes<'a> {
    let folder = home.work().join(name);
    fs::create_dir_all(&folder).expect("a directory");
    let config = format!("# mine\nhooks:\n  pre_tool_call:\n    - command: {command}\n");
    fs::write(folder.join("config.yaml"), config).expect("a configuration");
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": command}]});
    fs::write(folder.join("shell-hooks-allowlist.json"), approved.to_string()).expect("consent");
    Hermes { home, folder }
}

/// How many hooks are not approved yet.
fn unapproved(home: &Home) -> Value {
    let output = home.run(&["hooks", "approve", "--json"]);
    serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["waiting"].clone()
}

fn append(file: &Path, text: &str) {
    let known = fs::read_to_string(file).unwrap_or_default();
    fs::write(file, known + text).expect("an edit");
}

#[test]
fn changes_that_others_make_while_the_question_is_open_are_not_lost() {
    let home = Home::new();
    home.write_hooks_file(&format!(
        "hooks:\n  post_tool_call:\n    - command: {}\n",
        guard(&home, "own.sh")
    ));
    let hermes = another_hermes(&home, "hermes", &guard(&home, "theirs.sh"));
    let at_a_terminal = |words: &[&str], meanwhile: &dyn Fn()| {
        let mut command = home.command(words);
        command.env("HERMES_HOME", &hermes.folder).env("HOME", home.work());
        let meanwhile = || {
            meanwhile();
            true
        };
        let again = [Act::See("meanwhile"), Act::See("[y/N]"), Act::Type("y"), Act::Enter];
        let once = [Act::See("[y/N]"), Act::Until(&meanwhile), Act::Type("y"), Act::Enter];
        run_at_terminal(command, &[&once[..], &again].concat())
    };
    let (config, hooks) = (hermes.folder.join("config.yaml"), home.path().join("hookbus.yaml"));
    let (exit, screen) = at_a_terminal(&["connect", "hermes", "--hooks", "move"], &|| {
        home.approve();
        append(&config, "model: first\n");
        append(&hooks, "on_failure: allow # first\n");
    });
    assert_eq!(exit, Some(0), "{screen}");
    let read = |file: &Path| fs::read_to_string(file).expect("a file");
    assert!(read(&config).contains("first") && read(&config).contains("- hookbus"));
    assert!(read(&hooks).contains("first") && read(&hooks).contains("theirs.sh"));
    assert_eq!(unapproved(&home), 0, "{}", read(&home.path().join("consent.json")));

    let (exit, screen) = at_a_terminal(&["disconnect", "hermes"], &|| {
        home.text(&["hooks", "revoke", &path_text(&home.path().with_file_name("own.sh"))]);
        append(&config, "# second\n");
        append(&hooks, "# second\n");
    });
    assert_eq!(exit, Some(0), "{screen}");
    assert!(read(&config).contains("second") && !read(&config).contains("- hookbus"));
    assert!(hermes.removed_hooks().contains("theirs.sh"));
    assert!(read(&hooks).contains("second") && read(&hooks).contains("theirs.sh"));
    assert_eq!(unapproved(&home), 1, "what was revoked stays revoked");
}

#[test]
fn concurrent_connects_and_approvals_lose_nothing() {
    for round in 0..6 {
        let home = Home::new();
        let own: Vec<String> = (0..3).map(|n| guard(&home, &format!("own{n}.sh"))).collect();
        let entries = own.iter().map(|name| format!("    - command: {name}\n"));
        let entries = entries.collect::<Vec<_>>().concat();
        home.write_hooks_file(&format!(
            "hooks_auto_accept: true\nhooks:\n  post_tool_call:\n{entries}"
        ));
        let theirs = ["one", "two"].map(|name| guard(&home, &format!("{name}.sh")));
        let [one, two] = [0, 1].map(|n| another_hermes(&home, ["h-one", "h-two"][n], &theirs[n]));
        let before = everything(&home.work());
        let connect = ["connect", "hermes", "--hooks", "move", "--yes", "--json"];
        let connects = [&one, &two, &one].map(|hermes| {
            let mut command = home.command(connect);
            command.env("HERMES_HOME", &hermes.folder);
            command
        });
        let approvals = own.iter().map(|name| home.command(["hooks", "approve", name]));
        let all: Vec<_> = connects
            .into_iter()
            .chain(approvals)
            .map(|mut command| {
                let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
                command.spawn().expect("hookbus starts")
            })
            .collect();
        for child in all {
            let ended = child.wait_with_output().expect("hookbus ends");
            assert!(ended.status.success(), "round {round}: {ended:?}");
        }
        let hooks = fs::read_to_string(home.path().join("hookbus.yaml")).expect("hooks");
        assert!(theirs.iter().all(|name| hooks.matches(name.as_str()).count() == 1), "{hooks}");
        assert_eq!(unapproved(&home), 0, "round {round}");
        for hermes in [&one, &two] {
            hermes.done(&["disconnect", "hermes"]);
        }
        assert_eq!(everything(&home.work()), before, "round {round}");
        assert_eq!(unapproved(&home), 0, "approvals of other hooks stay");
    }
}

#[test]
fn a_call_of_the_bus_inside_of_a_wrapped_command_is_removed_too() {
    let home = Home::new();
    for command in [
        "sh -c 'command -v hookbus >/dev/null && exec hookbus hook hermes || true'",
        "bash -c 'hookbus hook hermes'",
        "bash -lc \"HOOKBUS_HOME=~/.hookbus $HOME/.local/bin/hookbus hook --deadline 20 hermes 2>>/tmp/bus.log\"",
        "sh -c '/opt/bin/hookbus hook hermes; exit 0'",
        "env HOOKBUS_DAEMON=off hookbus hook hermes",
    ] {
        let own = "  post_tool_call:\n    - command: sh -c 'echo hookbus >> /tmp/notes'\n";
        let config = format!(
            "# mine\nhooks:\n  pre_tool_call:\n    - command: {} # the bus\n{own}",
            json!(command)
        );
        let hermes = Hermes::with(&home, &config);
        let before = everything(&home.work());
        hermes.done(&["connect", "hermes"]);
        let expected = format!("# mine\nhooks:\n{own}plugins:\n  enabled:\n    - hookbus\n");
        assert_eq!(hermes.config(), expected, "{command}");
        hermes.done(&["disconnect", "hermes"]);
        assert_eq!(everything(&home.work()), before, "{command}");
    }
}

#[test]
fn a_command_that_calls_the_bus_and_does_other_work_has_to_be_changed_by_hand() {
    let home = Home::new();
    let script = home.script("both.sh", "#!/bin/sh\ntee -a /tmp/mine | hookbus hook hermes\n");
    let by_shell = format!("bash {script}");
    for command in ["sh -c 'echo x >> /tmp/mine; hookbus hook hermes'", &script, &by_shell] {
        let config = format!("hooks:\n  pre_tool_call:\n    - command: {}\n", json!(command));
        let hermes = Hermes::with(&home, &config);
        let before = everything(&home.work());
        for hooks in ["keep", "move"] {
            let output = hermes.run(&["connect", "hermes", "--yes", "--hooks", hooks]);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            for words in ["stays as it is", "pre_tool_call", "`hookbus hook hermes`", "by hand"] {
                assert!(stderr.contains(words), "{words}: {stderr}");
            }
            assert_eq!(everything(&home.work()), before, "nothing arrives twice, nothing is lost");
        }
    }
}

/// A plugin of Hermes, in its own directory.
fn plugin_of(hermes: &Hermes<'_>, name: &str) {
    let folder = hermes.folder.join("plugins").join(name);
    write(&folder, "plugin.yaml", &format!("name: {name}\n"));
    write(&folder, "__init__.py", "def register(ctx): pass\n");
}

#[test]
fn a_plugin_that_both_hermes_and_the_bus_would_run_is_reported() {
    let home = Home::new();
    let config = "plugins:\n  enabled: [both, theirs, off]\n  disabled: [off]\n";
    let hermes = Hermes::with(&home, config);
    for name in ["both", "theirs", "ours", "off"] {
        plugin_of(&hermes, name);
    }
    let gateway = hermes.folder.join("hooks/greet");
    write(&gateway, "HOOK.yaml", "name: greet\nevents: [agent:start]\n");
    write(&gateway, "handler.py", "def handle(e, c): pass\n");
    let connected = |hooks: &str| {
        home.write_hooks(hooks);
        let remarks = hermes.done(&["connect", "hermes"])["remarks"].clone();
        hermes.done(&["disconnect", "hermes"]);
        let remarks = remarks.as_array().cloned().unwrap_or_default();
        remarks.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let plugins = path_text(&hermes.folder.join("plugins"));
    let remarks = connected(&format!(
        "plugins: {{ enabled: [both, ours, off] }}\nhooks: {{ '*': [{{ python: {plugins} }}] }}"
    ));
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    for word in ["`both`", "twice", "plugins: enabled:", "hookbus.yaml"] {
        assert!(remarks[0].contains(word), "{word}: {remarks:?}");
    }
    let remarks = connected(&format!("hooks: {{ '*': [{{ python: {plugins}/both }}] }}"));
    assert!(remarks.len() == 1 && remarks[0].contains("`both`"), "{remarks:?}");
    let remarks = connected(&format!(
        "hooks: {{ '*': [{{ python: {} }}] }}",
        path_text(&hermes.folder.join("hooks"))
    ));
    assert!(remarks.len() == 1 && remarks[0].contains("`greet`"), "{remarks:?}");
    assert!(remarks[0].contains("gateway") && remarks[0].contains("twice"), "{remarks:?}");
    for fine in [
        format!("hooks: {{ '*': [{{ python: {plugins}/both, agent: gemini }}] }}"),
        format!("hooks: {{ BeforeTool: [{{ python: {plugins}/both }}] }}"),
        format!("hooks: {{ '*': [{{ python: {plugins}/ours }}] }}"),
        format!("hooks: {{ '*': [{{ python: {plugins} }}] }}"),
    ] {
        assert_eq!(connected(&fine), Vec::<String>::new(), "{fine}");
    }
    let both = format!("hooks: {{ '*': [{{ python: {plugins}/both }}] }}");
    home.write_hooks(&both);
    let twice = || {
        let output = hermes.run(&["hooks", "doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = report["findings"].as_array().cloned().unwrap_or_default();
        rows.iter().filter(|row| row["finding"].to_string().contains("twice")).count()
    };
    assert_eq!(twice(), 0, "this Hermes does not call the bus");
    hermes.done(&["connect", "hermes"]);
    assert_eq!(twice(), 1);
}

#[test]
fn with_without_daemon_allow_the_user_is_told_to_keep_a_daemon_running() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    let remarks = |words: &[&str]| hermes.done(words)["remarks"].to_string();
    for words in [&["connect", "hermes", "--without-daemon", "allow"][..], &["connect", "hermes"]] {
        let text = remarks(words);
        assert!(text.contains("hookbus serve") && text.contains("--without-daemon hook"), "{text}");
    }
    assert_eq!(remarks(&["connect", "hermes", "--without-daemon", "hook"]), "[]");
}

#[test]
fn what_the_user_wrote_into_files_of_the_bridge_is_backed_up() {
    let home = Home::new();
    let hermes = Hermes::with(&home, CONFIG);
    let (plugin, gateway) =
        (hermes.folder.join("plugins/hookbus"), hermes.folder.join("hooks/hookbus"));
    let edit = |file: &Path, text: &str| append(file, text);
    let kept = |file: &Path| fs::read_to_string(file).unwrap_or_default();
    hermes.done(&["connect", "hermes"]);
    edit(&plugin.join("client.py"), "# first\n");
    let report = hermes.done(&["connect", "hermes"]);
    assert!(report["remarks"].to_string().contains("client.py.edited"), "{report}");
    assert!(kept(&plugin.join("client.py.edited")).ends_with("# first\n"));
    assert!(!kept(&plugin.join("client.py")).contains("# first"));
    assert_eq!(hermes.done(&["connect", "hermes"])["remarks"], json!([]));
    edit(&plugin.join("client.py"), "# second\n");
    edit(&gateway.join("handler.py"), "# third\n");
    let refused = hermes.run(&["disconnect", "hermes"]);
    let shown = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(!refused.status.success() && shown.contains("handler.py.edited"), "{refused:?}");
    let report = hermes.done(&["disconnect", "hermes"]);
    for name in ["client.py.edited2", "handler.py.edited"] {
        assert!(report["remarks"].to_string().contains(name), "{report}");
    }
    assert!(kept(&plugin.join("client.py.edited2")).ends_with("# second\n"));
    assert!(kept(&gateway.join("handler.py.edited")).ends_with("# third\n"));
    let left = |folder: &Path| fs::read_dir(folder).map(Iterator::count).unwrap_or_default();
    assert_eq!((left(&plugin), left(&gateway)), (2, 1), "nothing else, so Hermes loads neither");
    assert_eq!(hermes.config(), CONFIG);
}

#[test]
fn an_orphaned_bridge_is_removed_although_its_record_is_lost() {
    let home = Home::new();
    let config = "model: x # mine\nplugins:\n  enabled:\n    - a # one\n";
    let hermes = Hermes::with(&home, config);
    fs::create_dir_all(hermes.folder.join("plugins")).expect("a folder");
    fs::create_dir_all(hermes.folder.join("hooks")).expect("a folder");
    let before = everything(&home.work());
    let lose = || fs::remove_dir_all(home.path()).expect("no home");
    hermes.done(&["connect", "hermes"]);
    lose();
    let output = hermes.run(&["disconnect", "hermes"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "not without a yes");
    for word in ["-     - hookbus", "plugins/hookbus/client.py", "hooks/hookbus/HOOK.yaml"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let report = hermes.done(&["disconnect", "hermes"]);
    assert!(report["remarks"].to_string().contains("lost"), "{report}");
    assert_eq!(everything(&home.work()), before);
    assert_eq!(hermes.done(&["disconnect", "hermes"])["files"], json!([]));

    // A new connection does not mistake the orphaned bridge for files of the user.
    hermes.done(&["connect", "hermes"]);
    lose();
    hermes.done(&["connect", "hermes"]);
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(everything(&home.work()), before);

    // The name is not in the list any more, but a gateway would still load the rest.
    hermes.done(&["connect", "hermes"]);
    lose();
    fs::write(hermes.folder.join("config.yaml"), config).expect("an edit");
    append(&hermes.folder.join("hooks/hookbus/handler.py"), "# mine\n");
    hermes.done(&["disconnect", "hermes"]);
    assert!(!hermes.folder.join("plugins/hookbus").exists());
    let kept = hermes.folder.join("hooks/hookbus/handler.py.edited");
    assert!(fs::read_to_string(&kept).expect("it is kept").ends_with("# mine\n"));
    assert!(!hermes.folder.join("hooks/hookbus/HOOK.yaml").exists());
    fs::remove_dir_all(hermes.folder.join("hooks/hookbus")).expect("no rest");
    assert_eq!(everything(&home.work()), before);

    // A file that cannot be edited: the error says what to do.
    hermes.done(&["connect", "hermes"]);
    lose();
    append(&hermes.folder.join("config.yaml"), "broken: [\n");
    let (broken, output) =
        (everything(&home.work()), hermes.run(&["disconnect", "hermes", "--yes"]));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    for word in ["by hand", "plugins: enabled:", "plugins/hookbus", "hooks/hookbus"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    assert_eq!(everything(&home.work()), broken);
}

#[test]
fn a_connection_of_another_home_has_to_be_undone_from_there() {
    let (home, other) = (Home::new(), Home::new());
    let hermes = Hermes::with(&home, CONFIG);
    hermes.done(&["connect", "hermes"]);
    let before = everything(&home.work());
    let mut command = other.command(["disconnect", "hermes", "--yes"]);
    let output = command.env("HERMES_HOME", &hermes.folder).output().expect("hookbus runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let way = format!("--home {}", path_text(&home.path()));
    assert!(!output.status.success() && stderr.contains(&way), "{stderr}");
    assert_eq!(everything(&home.work()), before);
    // A plugin that only has the same name is left alone.
    let theirs = Hermes::with(&other, CONFIG);
    write(&theirs.folder.join("plugins/hookbus"), "plugin.yaml", "name: hookbus\n");
    assert_eq!(theirs.done(&["disconnect", "hermes"])["files"], json!([]));
    assert!(theirs.folder.join("plugins/hookbus/plugin.yaml").is_file());
}

#[test]
fn nothing_to_do_is_no_failure() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    for verb in ["disconnect", "connect", "connect", "disconnect", "disconnect"] {
        let output = hermes.run(&[verb, "hermes", "--yes"]);
        assert!(output.status.success(), "{verb}: {output:?}");
    }
}
