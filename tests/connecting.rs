//! `hookbus connect hermes` and `hookbus disconnect hermes`: what they write, what they leave alone, and
//! that the way back leads to where one came from.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use hookbus_tests::agents::{Act, before_a_person, hermes_program};
use hookbus_tests::home::{Home, shown};
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
        fs::create_dir_all(&folder).expect("a place for Hermes");
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
}

/// Every file and directory below, with its bytes.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        if next.is_dir() {
            let entries = fs::read_dir(&next).expect("a readable folder");
            waiting.extend(entries.map(|entry| entry.expect("an entry").path()));
            found.insert(next, None);
        } else {
            let bytes = fs::read(&next).expect("a readable file");
            found.insert(next, Some(bytes));
        }
    }
    found
}

#[test]
fn connecting_and_disconnecting_leaves_every_file_as_it_was() {
    let without_newline = "model: x";
    let flow = r#"{"model": {}, "plugins": {"enabled": []}, "hooks": {"pre_tool_call": [{"command": "hookbus hook hermes"}]}}"#;
    for config in [CONFIG, "", without_newline, flow, "plugins:\n", "plugins: {enabled: [a, b]}\n"]
    {
        for hooks in ["keep", "move"] {
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
            hermes.done(&["connect", "hermes", "--hooks", hooks]);
            assert!(hermes.folder.join("plugins/hookbus/__init__.py").is_file());
            assert!(hermes.folder.join("hooks/hookbus/handler.py").is_file());
            // What Python leaves behind when Hermes loads it.
            fs::create_dir_all(hermes.folder.join("plugins/hookbus/__pycache__")).expect("a cache");
            hermes.done(&["disconnect", "hermes"]);
            assert_eq!(everything(&home.work()), before, "{config} {hooks}");
            assert_eq!(everything(&home.path()), ours, "{config} {hooks}");
        }
    }
}

#[test]
fn a_connection_keeps_comments_and_leaves_one_wire() {
    let home = Home::new();
    let hermes = Hermes::with(&home, CONFIG);
    hermes.done(&["connect", "hermes"]);
    let expected = CONFIG
        .replace("    - command: /opt/bin/hookbus hook hermes --deadline 20\n", "")
        .replace("  on_session_end:\n  - command: hookbus hook hermes\n", "")
        .replace("    - disk-cleanup # tidy", "    - hookbus\n    - disk-cleanup # tidy");
    assert_eq!(hermes.config(), expected, "our own shell hooks would fire a second time");
}

#[test]
fn connecting_twice_changes_nothing_more() {
    let home = Home::new();
    let hermes = Hermes::with(&home, CONFIG);
    let first = hermes.done(&["connect", "hermes", "--gateway-deadline", "7"]);
    let (all, files) = (everything(&home.work()), first["files"].as_array().map(Vec::len));
    let second = hermes.done(&["connect", "hermes"]);
    assert_eq!((files, second["files"].clone()), (Some(9), json!([])));
    assert_eq!(everything(&home.work()), all, "the deadline of the first time holds");
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), CONFIG);
    assert_eq!(hermes.done(&["disconnect", "hermes"])["files"], json!([]));
}

#[test]
fn what_a_person_changed_in_between_stays() {
    let home = Home::new();
    let hermes = Hermes::with(&home, CONFIG);
    hermes.done(&["connect", "hermes"]);
    let edit = |text: &str| {
        text.replace("- disk-cleanup # tidy", "- disk-cleanup # tidy\n    - another")
            .replace("some-model ", "other-model")
            + "# the end\n"
    };
    fs::write(hermes.folder.join("config.yaml"), edit(&hermes.config())).expect("an edit");
    fs::write(hermes.folder.join("plugins/mine.txt"), "mine").expect("a file");
    hermes.done(&["connect", "hermes"]);
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), edit(CONFIG));
    assert!(hermes.folder.join("plugins/mine.txt").is_file());
    assert!(!hermes.folder.join("plugins/hookbus").exists());
}

#[test]
fn a_list_that_we_began_and_a_person_went_on_with_stays_theirs() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    hermes.done(&["connect", "hermes"]);
    let longer = hermes.config() + "    - another\n";
    fs::write(hermes.folder.join("config.yaml"), longer).expect("an edit");
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), "model: x\nplugins:\n  enabled:\n    - another\n");
}

#[test]
fn hooks_that_somebody_agreed_to_move_and_run_under_the_bus() {
    let home = Home::new();
    let script = home
        .script("guard.sh", "#!/bin/sh\necho '{\"decision\":\"block\",\"reason\":\"guarded\"}'\n");
    let config = format!(
        "hooks:\n  pre_tool_call:\n    - matcher: terminal\n      command: {script}\n    - command: ~/never-agreed.sh\n"
    );
    let hermes = Hermes::with(&home, &config);
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": script}]});
    fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
        .expect("consent");
    let report = hermes.done(&["connect", "hermes", "--hooks", "move"]);
    assert!(report["remarks"].to_string().contains("nobody has agreed"), "{report}");
    assert!(!hermes.config().contains("guard.sh") && hermes.config().contains("never-agreed"));
    let call =
        json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal", "tool_input": {}});
    assert_eq!(home.answer("hermes", &call), json!({"decision": "block", "reason": "guarded"}));
    let consents =
        fs::read_to_string(home.path().join("consent.json")).expect("consent came along");
    assert!(consents.contains(&script) && !consents.contains("never-agreed"), "{consents}");
    // Run again without a word about hooks: what was moved stays moved.
    assert_eq!(hermes.done(&["connect", "hermes"])["files"], json!([]));
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), config);
    assert_eq!(home.answer("hermes", &call), Value::Null);
    assert!(!home.path().join("consent.json").exists(), "it went with the hooks");
}

#[test]
fn consent_comes_along_with_a_moved_hook_only_for_the_script_that_it_was_given_to() {
    let home = Home::new();
    let script = home.script("guard.sh", "#!/bin/sh\necho '{\"decision\":\"block\"}'\n");
    let config = format!("hooks:\n  pre_tool_call:\n    - command: {script}\n");
    let hermes = Hermes::with(&home, &config);
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": script,
        "script_mtime_at_approval": "2020-01-01T00:00:00Z"}]});
    fs::write(hermes.folder.join("shell-hooks-allowlist.json"), approved.to_string())
        .expect("consent");
    let report = hermes.done(&["connect", "hermes", "--hooks", "move"]);
    assert!(report["remarks"].to_string().contains("has changed since you agreed"), "{report}");
    let call = json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal"});
    assert_eq!(home.answer("hermes", &call), Value::Null);
    // What is agreed to later stays, whatever is connected and disconnected.
    home.text(&["hooks", "approve", "--accept-hooks"]);
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
    let (shown, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    assert!(shown.contains("+     - hookbus") && said.contains("--yes"), "{shown}{said}");
    assert_eq!(everything(&home.work()), before);
}

#[test]
fn a_configuration_that_cannot_be_edited_safely_is_left_alone() {
    let home = Home::new();
    for config in ["plugins: all\n", "- a list\n", "a: [\n", "plugins:\n  enabled: everything\n"] {
        let hermes = Hermes::with(&home, config);
        let output = hermes.run(&["connect", "hermes", "--yes"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{config}");
        assert!(said.contains("stays as it is"), "{said}");
        assert_eq!(hermes.config(), config);
        assert!(!hermes.folder.join("plugins").exists(), "all or nothing");
    }
}

#[test]
fn without_a_hermes_one_is_told_where_to_look() {
    let home = Home::new();
    let nowhere = home.work().join("nowhere");
    let output = home.run(&["connect", "hermes", "--yes", "--hermes-home", &shown(&nowhere)]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--hermes-home"), "{said}");
}

#[test]
fn a_person_at_a_terminal_sees_the_change_and_is_asked() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x # mine\n");
    let at_a_terminal = |verb: &str, answer: &'static str| {
        let mut command = home.command([verb, "hermes"]);
        command.env("HERMES_HOME", &hermes.folder).env("HOME", home.work());
        let acts = [Act::See("[y/N]"), Act::Type(answer), Act::Enter];
        before_a_person(command, &acts).1
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

/// A Hermes with one hook of its own that was agreed to, and this configuration around it.
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

/// What a YAML text says.
fn meaning(text: &str) -> Value {
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

#[test]
fn hooks_return_although_hermes_wrote_its_file_anew() {
    let home = Home::new();
    // Hermes indents its lists in a way of its own.
    let hermes = with_a_guard(&home, &GUARDED.replace("    - a\n", "  - a\n"));
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    let set = std::process::Command::new(hermes_program())
        .args(["config", "set", "model.default", "y"])
        .env("HERMES_HOME", &hermes.folder)
        .env("HOME", home.work())
        .output()
        .expect("Hermes runs");
    assert!(set.status.success(), "{set:?}");
    hermes.done(&["disconnect", "hermes"]);
    let now = meaning(&hermes.config());
    assert_eq!(now["hooks"], meaning(GUARDED)["hooks"], "{}", hermes.config());
    assert_eq!(
        (&now["model"]["default"], &now["plugins"]["enabled"]),
        (&json!("y"), &json!(["a"]))
    );
    assert!(!home.path().join("hookbus.yaml").exists());
}

#[test]
fn hooks_return_beside_those_that_a_person_wrote_since() {
    for between in ["connect", "nothing"] {
        for added in
            ["hooks:\n  pre_tool_call:\n    - command: ~/new.sh\n", "hooks: {}\n", "hooks: null\n"]
        {
            let home = Home::new();
            let hermes = with_a_guard(&home, GUARDED);
            hermes.done(&["connect", "hermes", "--hooks", "move"]);
            let edited =
                hermes.config().replace("plugins:\n  enabled:\n", "plugins:\n    enabled:\n");
            fs::write(hermes.folder.join("config.yaml"), edited + added).expect("an edit");
            if between == "connect" {
                hermes.done(&["connect", "hermes"]);
            }
            hermes.done(&["disconnect", "hermes"]);
            let now = meaning(&hermes.config());
            let entries = now["hooks"]["pre_tool_call"].as_array().cloned().unwrap_or_default();
            let guard = meaning(GUARDED)["hooks"]["pre_tool_call"][0].clone();
            assert!(entries.contains(&guard), "{added} {between}: {}", hermes.config());
            assert_eq!(entries.len(), if added.contains("new.sh") { 2 } else { 1 });
        }
    }
}

#[test]
fn what_cannot_be_put_back_is_shown_and_nothing_is_deleted() {
    let home = Home::new();
    let hermes = with_a_guard(&home, GUARDED);
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    let broken = hermes.config() + "hooks: all\n";
    fs::write(hermes.folder.join("config.yaml"), &broken).expect("an edit");
    let (work, ours) = (everything(&home.work()), everything(&home.path()));
    let output = hermes.run(&["disconnect", "hermes", "--yes"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("~/guard.sh"), "{said}");
    assert_eq!((everything(&home.work()), everything(&home.path())), (work, ours));
    fs::write(hermes.folder.join("config.yaml"), broken.replace("hooks: all\n", ""))
        .expect("an edit");
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(hermes.config(), GUARDED);
}

#[test]
fn a_ban_on_the_bridge_returns_however_often_one_connected() {
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
fn a_moved_hook_that_was_worked_on_ends_up_in_one_place() {
    for (edit, returns, stays, said) in [
        ("\"timeout\":5", Some(json!(9)), false, "as it is now"),
        ("\"timeout\":5}", None, true, "stays there"),
        ("~/guard.sh", Some(json!(5)), true, "as it was"),
        ("", Some(json!(5)), false, ""),
    ] {
        let home = Home::new();
        let hermes = with_a_guard(&home, GUARDED);
        hermes.done(&["connect", "hermes", "--hooks", "move"]);
        let file = home.path().join("hookbus.yaml");
        let moved = fs::read_to_string(&file).expect("hooks");
        let edited = match edit {
            "\"timeout\":5" => moved.replace(edit, "\"timeout\":9"),
            "\"timeout\":5}" => moved.replace(edit, "\"timeout\":9,\"tool\":\"shell\"}"),
            "~/guard.sh" => moved.replace(edit, "~/other.sh"),
            _ => moved.replace("pre_tool_call:\n", "pre_tool_call:\n    - command: ~/added.sh\n"),
        };
        assert_ne!(edited, moved);
        fs::write(&file, edited).expect("an edit");
        let report = hermes.done(&["disconnect", "hermes"]);
        let guard = meaning(&hermes.config())["hooks"]["pre_tool_call"][0].clone();
        assert_eq!(guard.get("timeout").cloned(), returns, "{edit}");
        let left = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(left.contains("timeout"), stays, "{edit}: {left}");
        assert_eq!(left.contains("added"), edit.is_empty(), "{left}");
        assert!(report["remarks"].to_string().contains(said), "{report}");
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
        let now = meaning(&hermes.config());
        assert_eq!(now["plugins"]["enabled"], json!(["hookbus"]), "{}", hermes.config());
        assert!(!hermes.config().contains("hook hermes"), "{}", hermes.config());
        hermes.done(&["connect", "hermes"]);
        hermes.done(&["disconnect", "hermes"]);
        assert_eq!(hermes.config(), config);
    }
}

#[test]
fn another_spelling_of_the_same_place_is_the_same_connection() {
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
fn a_link_to_a_file_that_is_not_there_yet_stays_a_link() {
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
fn a_home_that_connecting_makes_is_private() {
    let home = Home::new();
    let hermes = with_a_guard(&home, GUARDED);
    hermes.done(&["connect", "hermes", "--hooks", "move"]);
    for (path, file) in everything(&home.path()) {
        let mode = fs::metadata(&path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, if file.is_some() { 0o600 } else { 0o700 }, "{}", path.display());
    }
}

#[test]
fn the_doctor_notices_when_hermes_does_not_load_or_reach_us() {
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
    let ban = || {
        let banned = hermes.config() + "  disabled: [hookbus]\n";
        fs::write(hermes.folder.join("config.yaml"), banned).expect("a ban");
    };
    let breaks: [(&dyn Fn(), &str); 5] = [
        (&ban, "disabled"),
        (&|| remove("plugins/hookbus/bridge.json"), "is missing"),
        (&|| remove("hooks/hookbus/bridge.json"), "is missing"),
        (&|| bridge("hookbus", "/bin/true"), "/bin/true"),
        (&|| bridge("home", "/nowhere"), "another home"),
    ];
    for (harm, word) in breaks {
        hermes.done(&["connect", "hermes"]);
        assert_eq!(finding(), Value::Null);
        harm();
        let found = finding().to_string();
        assert!(found.contains(word) && found.contains("hookbus connect"), "{word}: {found}");
    }
}

#[test]
fn the_doctor_looks_at_every_hermes_that_was_connected() {
    let home = Home::new();
    let usual = Hermes::with(&home, "model: x\n");
    let other = home.work().join("other hermes");
    fs::create_dir_all(&other).expect("a place for Hermes");
    usual.done(&["connect", "hermes"]);
    usual.done(&["connect", "hermes", "--hermes-home", &shown(&other)]);
    let findings = || {
        let output = usual.run(&["hooks", "doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = report["findings"].as_array().cloned().unwrap_or_default();
        let about = |row: &&Value| row["about"].to_string().contains("Hermes in");
        rows.iter().filter(about).map(|row| row["finding"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(findings(), [Value::Null, Value::Null]);
    fs::remove_dir_all(other.join("plugins")).expect("no plugins");
    let said = |words: &str| {
        let found = findings();
        assert!(found[0].is_null(), "the usual one is well: {found:?}");
        let found = found[1].to_string();
        assert!(found.contains(words) && found.contains("--hermes-home '"), "{found}");
    };
    said("is missing");
    usual.done(&["connect", "hermes", "--hermes-home", &shown(&other)]);
    assert_eq!(findings(), [Value::Null, Value::Null], "as it said, that mends it");
    // One that is gone for good can be forgotten.
    fs::remove_dir_all(&other).expect("no Hermes");
    said("hookbus disconnect hermes");
    usual.done(&["disconnect", "hermes", "--hermes-home", &shown(&other)]);
    assert_eq!(findings(), [Value::Null]);
    let record = fs::read_dir(home.path().join("connected")).expect("records").next();
    let record = record.expect("a record").expect("a record").path();
    fs::write(record, "nonsense").expect("a broken record");
    assert!(findings()[0].to_string().contains("is broken"), "{:?}", findings());
}

/// A guard that blocks, in a script of its own.
fn guard(home: &Home, name: &str) -> String {
    home.script(name, "#!/bin/sh\necho '{\"decision\":\"block\",\"reason\":\"guarded\"}'\n")
}

/// A Hermes of this name with this hook, which somebody agreed to there.
fn another_hermes<'a>(home: &'a Home, name: &str, command: &str) -> Hermes<'a> {
    let folder = home.work().join(name);
    fs::create_dir_all(&folder).expect("a place for Hermes");
    let config = format!("# mine\nhooks:\n  pre_tool_call:\n    - command: {command}\n");
    fs::write(folder.join("config.yaml"), config).expect("a configuration");
    let approved = json!({"approvals": [{"event": "pre_tool_call", "command": command}]});
    fs::write(folder.join("shell-hooks-allowlist.json"), approved.to_string()).expect("consent");
    Hermes { home, folder }
}

/// How many hooks still wait for somebody's agreement.
fn waiting(home: &Home) -> Value {
    let output = home.run(&["hooks", "approve", "--json"]);
    serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["waiting"].clone()
}

fn append(file: &Path, text: &str) {
    let known = fs::read_to_string(file).unwrap_or_default();
    fs::write(file, known + text).expect("an edit");
}

#[test]
fn what_somebody_does_while_the_question_is_open_is_not_lost() {
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
        before_a_person(command, &[&once[..], &again].concat())
    };
    let (config, hooks) = (hermes.folder.join("config.yaml"), home.path().join("hookbus.yaml"));
    let (exit, screen) = at_a_terminal(&["connect", "hermes", "--hooks", "move"], &|| {
        home.text(&["hooks", "approve", "--accept-hooks"]);
        append(&config, "model: first\n");
        append(&hooks, "on_failure: allow # first\n");
    });
    assert_eq!(exit, Some(0), "{screen}");
    let read = |file: &Path| fs::read_to_string(file).expect("a file");
    assert!(read(&config).contains("first") && read(&config).contains("- hookbus"));
    assert!(read(&hooks).contains("first") && read(&hooks).contains("theirs.sh"));
    assert_eq!(waiting(&home), 0, "{}", read(&home.path().join("consent.json")));

    let (exit, screen) = at_a_terminal(&["disconnect", "hermes"], &|| {
        home.text(&["hooks", "revoke", &shown(&home.path().with_file_name("own.sh"))]);
        append(&config, "# second\n");
        append(&hooks, "# second\n");
    });
    assert_eq!(exit, Some(0), "{screen}");
    assert!(read(&config).contains("second") && read(&config).contains("theirs.sh"));
    assert!(read(&hooks).contains("second") && !read(&hooks).contains("theirs.sh"));
    assert_eq!(waiting(&home), 1, "what was taken back stays taken back");
}

#[test]
fn many_who_connect_and_agree_at_once_lose_nothing() {
    for round in 0..6 {
        let home = Home::new();
        let own: Vec<String> = (0..3).map(|n| guard(&home, &format!("own{n}.sh"))).collect();
        let entries = own.iter().map(|name| format!("    - command: {name}\n"));
        let entries = entries.collect::<Vec<_>>().concat();
        home.write_hooks_file(&format!("hooks:\n  post_tool_call:\n{entries}"));
        let theirs = ["one", "two"].map(|name| guard(&home, &format!("{name}.sh")));
        let [one, two] = [0, 1].map(|n| another_hermes(&home, ["h-one", "h-two"][n], &theirs[n]));
        let before = everything(&home.work());
        let connect = ["connect", "hermes", "--hooks", "move", "--yes", "--json"];
        let connecting = [&one, &two, &one].map(|hermes| {
            let mut command = home.command(connect);
            command.env("HERMES_HOME", &hermes.folder);
            command
        });
        let agreeing =
            own.iter().map(|name| home.command(["hooks", "approve", "--accept-hooks", name]));
        let all: Vec<_> = connecting
            .into_iter()
            .chain(agreeing)
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
        assert_eq!(waiting(&home), 0, "round {round}");
        for hermes in [&one, &two] {
            hermes.done(&["disconnect", "hermes"]);
        }
        assert_eq!(everything(&home.work()), before, "round {round}");
        assert_eq!(waiting(&home), 0, "what was agreed to by itself stays");
    }
}

#[test]
fn a_call_of_the_bus_inside_of_a_wrapped_command_is_a_wire_too() {
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
fn a_command_that_calls_the_bus_and_does_more_is_for_a_person_to_part() {
    let home = Home::new();
    let script = home.script("both.sh", "#!/bin/sh\ntee -a /tmp/mine | hookbus hook hermes\n");
    let by_shell = format!("bash {script}");
    for command in ["sh -c 'echo x >> /tmp/mine; hookbus hook hermes'", &script, &by_shell] {
        let config = format!("hooks:\n  pre_tool_call:\n    - command: {}\n", json!(command));
        let hermes = Hermes::with(&home, &config);
        let before = everything(&home.work());
        for hooks in ["keep", "move"] {
            let output = hermes.run(&["connect", "hermes", "--yes", "--hooks", hooks]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            for words in ["stays as it is", "pre_tool_call", "`hookbus hook hermes`", "by hand"] {
                assert!(said.contains(words), "{words}: {said}");
            }
            assert_eq!(everything(&home.work()), before, "nothing comes twice, nothing is lost");
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
fn a_plugin_that_hermes_and_the_bus_would_both_run_is_named() {
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
    let plugins = shown(&hermes.folder.join("plugins"));
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
        shown(&hermes.folder.join("hooks"))
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
fn whoever_wants_no_process_started_is_told_that_a_daemon_has_to_run() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    let remarks = |words: &[&str]| hermes.done(words)["remarks"].to_string();
    for words in [&["connect", "hermes", "--without-daemon", "allow"][..], &["connect", "hermes"]] {
        let said = remarks(words);
        assert!(said.contains("hookbus serve") && said.contains("--without-daemon hook"), "{said}");
    }
    assert_eq!(remarks(&["connect", "hermes", "--without-daemon", "hook"]), "[]");
}

#[test]
fn what_a_person_wrote_into_the_bridge_is_kept_beside_it() {
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
fn what_is_plainly_ours_is_taken_out_although_the_record_of_it_is_lost() {
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

    // Connecting anew does not take what was left behind for what Hermes had without us.
    hermes.done(&["connect", "hermes"]);
    lose();
    hermes.done(&["connect", "hermes"]);
    hermes.done(&["disconnect", "hermes"]);
    assert_eq!(everything(&home.work()), before);

    // The name is out of the list, but a gateway would still load the rest.
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

    // What cannot be edited is said, with what to do.
    hermes.done(&["connect", "hermes"]);
    lose();
    append(&hermes.folder.join("config.yaml"), "broken: [\n");
    let (broken, output) =
        (everything(&home.work()), hermes.run(&["disconnect", "hermes", "--yes"]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    for word in ["by hand", "plugins: enabled:", "plugins/hookbus", "hooks/hookbus"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(everything(&home.work()), broken);
}

#[test]
fn a_connection_of_another_home_is_taken_back_from_there() {
    let (home, other) = (Home::new(), Home::new());
    let hermes = Hermes::with(&home, CONFIG);
    hermes.done(&["connect", "hermes"]);
    let before = everything(&home.work());
    let mut command = other.command(["disconnect", "hermes", "--yes"]);
    let output = command.env("HERMES_HOME", &hermes.folder).output().expect("hookbus runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let way = format!("HOOKBUS_HOME={}", shown(&home.path()));
    assert!(!output.status.success() && said.contains(&way), "{said}");
    assert_eq!(everything(&home.work()), before);
    // Nothing that only has the name.
    let theirs = Hermes::with(&other, CONFIG);
    write(&theirs.folder.join("plugins/hookbus"), "plugin.yaml", "name: hookbus\n");
    assert_eq!(theirs.done(&["disconnect", "hermes"])["files"], json!([]));
    assert!(theirs.folder.join("plugins/hookbus/plugin.yaml").is_file());
}

#[test]
fn having_nothing_to_do_is_no_failure() {
    let home = Home::new();
    let hermes = Hermes::with(&home, "model: x\n");
    for verb in ["disconnect", "connect", "connect", "disconnect", "disconnect"] {
        let output = hermes.run(&[verb, "hermes", "--yes"]);
        assert!(output.status.success(), "{verb}: {output:?}");
    }
}
