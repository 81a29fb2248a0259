//! `hookbus connect gemini` and `hookbus disconnect gemini`: what they write, what they leave alone, and that
//! `disconnect` restores an unchanged file byte for byte and loses nothing in a changed one.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hookbus_tests::agents::gemini::EVENTS;
use hookbus_tests::agents::{Act, run_at_terminal};
use hookbus_tests::home::{Home, binary, everything, feed, path_text};
use hookbus_tests::payloads;
use serde_json::{Value, json};

const SETTINGS: &str = r#"// my Gemini
{
  "ui": { "theme": "Dracula" }, // the dark one
  /* guards,
     mine */
  "hooks": {
    "BeforeTool": [
      { "matcher": "write_file", "hooks": [{ "type": "command", "command": "~/guard.sh" }] }, // keep
      { "hooks": [{ "type": "command", "command": "command -v hookbus >/dev/null && exec hookbus hook gemini || true" }] }
    ],
    "SessionEnd": [{ "hooks": [{ "type": "command", "name": "bus", "command": "sh -c 'hookbus hook gemini'" }] }]
  }
}
"#;

/// Gemini's user settings in a directory of their own.
struct Gemini<'a> {
    home: &'a Home,
    user: PathBuf,
}

impl<'a> Gemini<'a> {
    /// Without any settings.
    fn new(home: &'a Home) -> Self {
        let user = home.work().join("user");
        fs::create_dir_all(&user).expect("a home directory");
        Self { home, user: user.canonicalize().expect("a path") }
    }

    fn with(home: &'a Home, settings: &str) -> Self {
        let gemini = Self::new(home);
        write(&gemini.file(), settings);
        gemini
    }

    fn file(&self) -> PathBuf {
        self.user.join(".gemini/settings.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).expect("settings")
    }

    fn settings(&self) -> Value {
        settings_in(&self.file())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command.env("HOME", &self.user).env_remove("GEMINI_CLI_HOME");
        command.env("HERMES_HOME", self.user.join("none"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("hookbus runs")
    }

    fn done(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--yes", "--json"]].concat());
        assert!(output.status.success(), "{words:?}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(&[words, &["--yes"]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// What the doctor says about Gemini.
    fn findings(&self) -> Vec<String> {
        let output = self.run(&["hooks", "doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let findings = report["findings"].as_array().cloned().expect("findings");
        let ours = findings.iter().filter(|finding| {
            finding["about"].as_str().is_some_and(|about| about.contains("Gemini CLI"))
        });
        ours.map(|finding| {
            let ok = finding["about"].as_str().unwrap_or_default();
            finding["finding"].as_str().unwrap_or(ok).to_owned()
        })
        .collect()
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}

/// The settings in a file, read without its comments.
fn settings_in(file: &Path) -> Value {
    let text = fs::read_to_string(file).expect("settings");
    let lines = text.replace("/* guards,\n     mine */", "");
    let lines = lines.lines().map(|line| line.split("// ").next().unwrap_or_default());
    serde_json::from_str(&lines.collect::<String>()).expect("JSON")
}

/// The commands on an event.
fn commands(settings: &Value, event: &str) -> Vec<String> {
    let groups = settings["hooks"][event].as_array().cloned().unwrap_or_default();
    let hooks =
        groups.iter().flat_map(|group| group["hooks"].as_array().cloned().unwrap_or_default());
    hooks.map(|hook| hook["command"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn connecting_and_disconnecting_leaves_every_file_as_it_was() {
    for settings in [
        Some(SETTINGS),
        Some("{}"),
        Some(""),
        Some("{\n}\n"),
        Some("{\"hooks\": {\"BeforeTool\": []}}"),
        Some("{\r\n\t\"ui\": {} // tabs\r\n}\r\n"),
        None,
    ] {
        let home = Home::new();
        let gemini = settings.map_or_else(|| Gemini::new(&home), |text| Gemini::with(&home, text));
        let before = everything(&home.work());
        let report = gemini.done(&["connect", "gemini"]);
        assert_eq!(report["agent"], "gemini");
        assert_eq!(report["files"], json!([path_text(&gemini.file())]));
        let connected = everything(&home.work());
        assert_eq!(gemini.done(&["connect", "gemini"])["files"], json!([]), "nothing more to do");
        assert_eq!(everything(&home.work()), connected);
        gemini.done(&["disconnect", "gemini"]);
        assert_eq!(everything(&home.work()), before, "{settings:?}");
        // The user's own PATH, which connect records, stays for the hooks of other agents.
        let left = fs::read_dir(home.path()).into_iter().flatten().flatten();
        let left: Vec<_> = left.map(|file| file.file_name()).collect();
        assert!(left.iter().all(|name| name == "environment.json"), "{left:?}");
        assert_eq!(gemini.done(&["disconnect", "gemini"])["files"], json!([]));
    }
}

#[test]
fn every_event_gets_one_pinned_call_and_everything_else_stays() {
    let home = Home::new();
    let gemini = Gemini::with(&home, SETTINGS);
    let report = gemini.done(&["connect", "gemini", "--deadline", "70", "--on-failure", "block"]);
    let text = gemini.text();
    for kept in [
        "// my Gemini\n{\n",
        "\"Dracula\" }, // the dark one",
        "/* guards,\n     mine */",
        "// keep\n",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    let settings = gemini.settings();
    assert_eq!(settings["ui"], json!({"theme": "Dracula"}));
    assert_eq!(commands(&settings, "BeforeTool")[0], "~/guard.sh");
    for event in EVENTS {
        let calls = commands(&settings, event);
        let calls: Vec<&String> =
            calls.iter().filter(|call| call.contains("hook gemini")).collect();
        assert_eq!(calls.len(), 1, "{event}: events would arrive twice: {calls:?}");
        let pinned = format!(
            " hook gemini --home '{}' --deadline 70 --on-failure block",
            path_text(&home.path().canonicalize().expect("a home"))
        );
        assert!(calls[0].contains(&pinned), "{event}: {calls:?}");
        let groups = settings["hooks"][event].as_array().expect("groups");
        let hook = &groups.last().expect("a group")["hooks"][0];
        assert_eq!((&hook["type"], &hook["name"]), (&json!("command"), &json!("hookbus")));
        assert_eq!(hook["timeout"], 75_000, "longer than the deadline");
    }
    let payloads = payloads::all();
    let sent: BTreeSet<&str> = payloads
        .iter()
        .filter(|(agent, ..)| agent == "gemini")
        .filter_map(|(_, file, _)| file.split('.').next())
        .collect();
    let hooks = settings["hooks"].as_object().expect("hooks by event");
    assert_eq!(hooks.keys().map(String::as_str).collect::<BTreeSet<_>>(), sent);
    assert!(report["remarks"].to_string().contains("1 other hook stays in Gemini"), "{report}");
    // Options that are not given again stay; others take effect.
    assert_eq!(gemini.done(&["connect", "gemini"])["files"], json!([]));
    gemini.done(&["connect", "gemini", "--on-failure", "allow"]);
    let call = commands(&gemini.settings(), "BeforeTool").pop().expect("a call");
    assert!(call.contains("--deadline 70;") && !call.contains("block"), "{call}");
    gemini.done(&["disconnect", "gemini"]);
    assert_eq!(gemini.text(), SETTINGS);
}

#[test]
fn the_change_and_the_home_are_shown_first_and_nothing_is_written_without_a_yes() {
    let home = Home::new();
    for settings in [Some(SETTINGS), None] {
        let gemini = settings.map_or_else(|| Gemini::new(&home), |text| Gemini::with(&home, text));
        let before = everything(&home.work());
        let output = gemini.run(&["connect", "gemini"]);
        let (shown, told) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1));
        assert!(told.contains("--yes"), "{told}");
        let home_line = format!("calls hookbus with the home {}", home.path().display());
        for words in [home_line.as_str(), "+     \"BeforeAgent\": [{\"hooks\":[{", "settings.json"]
        {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert_eq!(everything(&home.work()), before);
        fs::remove_dir_all(&gemini.user).expect("our own");
    }
}

#[test]
fn what_the_user_changed_after_connecting_stays_and_only_our_hooks_go() {
    for connects_again in [false, true] {
        let home = Home::new();
        let gemini = Gemini::with(&home, SETTINGS);
        gemini.done(&["connect", "gemini"]);
        let edited = gemini.text().replace("Dracula", "Light") + "// the end\n";
        fs::write(gemini.file(), &edited).expect("an edit");
        if connects_again {
            assert_eq!(gemini.done(&["connect", "gemini"])["files"], json!([]));
        }
        let report = gemini.done(&["disconnect", "gemini"]);
        let kept = r#"// my Gemini
{
  "ui": { "theme": "Light" }, // the dark one
  /* guards,
     mine */
  "hooks": {
    "BeforeTool": [
      { "matcher": "write_file", "hooks": [{ "type": "command", "command": "~/guard.sh" }] } // keep
    ],
    "SessionEnd": []
  }
}
// the end
"#;
        assert_eq!(gemini.text(), kept, "lists that connect made are gone");
        assert!(report["remarks"].to_string().contains("not put back"), "{report}");
    }
}

#[test]
fn a_file_that_connect_made_is_removed_also_after_gemini_rewrote_it_unless_it_holds_more() {
    for (more, stays) in [(json!({}), false), (json!({"ui": {"theme": "Light"}}), true)] {
        let home = Home::new();
        let gemini = Gemini::new(&home);
        gemini.done(&["connect", "gemini"]);
        let mut settings = gemini.settings();
        settings
            .as_object_mut()
            .expect("settings")
            .extend(more.as_object().cloned().expect("more"));
        fs::write(gemini.file(), settings.to_string()).expect("an edit");
        gemini.done(&["disconnect", "gemini"]);
        assert_eq!(gemini.file().exists(), stays);
        if stays {
            assert_eq!(gemini.settings(), more);
        } else {
            assert!(!gemini.user.join(".gemini").exists());
        }
    }
}

#[test]
fn a_file_that_gemini_cannot_read_is_refused_with_the_line_and_stays() {
    for (text, words) in [
        ("{\n  \"ui\": {},\n}\n", ["line 2", "fix that line"]),
        ("{\n  \"a\": 1\n  \"b\": 2\n}\n", ["line 2", "fix that line"]),
        ("[]\n", ["one JSON object", "fix it"]),
        ("{\"hooks\": []}\n", ["`hooks`", "an object"]),
        ("{\"hooks\": {\"BeforeTool\": {}}}\n", ["hooks.BeforeTool", "a list"]),
        ("{\"hooks\": {}, \"hooks\": {}}\n", ["`hooks` is in it twice", "remove one"]),
    ] {
        let home = Home::new();
        let gemini = Gemini::with(&home, text);
        let told = gemini.refused(&["connect", "gemini"]);
        for word in words.into_iter().chain(["stays as it is"]) {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert_eq!(gemini.text(), text);
    }
    // After connecting, too: then `disconnect` leaves it alone.
    let home = Home::new();
    let gemini = Gemini::with(&home, "{}");
    gemini.done(&["connect", "gemini"]);
    let broken = gemini.text() + "}";
    fs::write(gemini.file(), &broken).expect("an edit");
    let told = gemini.refused(&["disconnect", "gemini"]);
    assert!(told.contains("by hand") && told.contains("line"), "{told}");
    assert_eq!(gemini.text(), broken);
}

#[test]
fn a_hook_that_calls_the_bus_beside_other_work_has_to_be_changed_by_the_user() {
    let home = Home::new();
    let script = home.script("both.sh", "#!/bin/sh\nlogger x\nhookbus hook gemini\n");
    for command in [script.as_str(), "tee /tmp/x | hookbus hook gemini"] {
        let hook =
            json!({"hooks": {"AfterTool": [{"hooks": [{"type": "command", "command": command}]}]}});
        let gemini = Gemini::with(&home, &hook.to_string());
        let told = gemini.refused(&["connect", "gemini"]);
        assert!(told.contains(command) && told.contains("twice"), "{told}");
        assert_eq!(gemini.settings(), hook);
    }
}

#[test]
fn a_project_has_its_own_file_and_gemini_cli_home_is_followed() {
    let home = Home::new();
    let gemini = Gemini::with(&home, "{}");
    let project = home.work().join("my project");
    fs::create_dir_all(&project).expect("a project");
    let folder = path_text(&project);
    let report = gemini.done(&["connect", "gemini", "--project", &folder]);
    let file = project.join(".gemini/settings.json");
    assert_eq!(commands(&settings_in(&file), "BeforeTool").len(), 1);
    assert_eq!(gemini.text(), "{}");
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("does not trust") && remarks.contains("do not commit"), "{remarks}");
    // Without a value: the current directory.
    let here = |words: &[&str]| {
        let output = gemini.command(words).current_dir(&project).output().expect("hookbus runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(here(&["connect", "gemini", "--yes", "--project"]).contains("connected already"));
    let trusted = json!({path_text(&project.canonicalize().expect("a path")): "TRUST_FOLDER"});
    fs::write(gemini.user.join(".gemini/trustedFolders.json"), trusted.to_string()).expect("trust");
    assert!(!here(&["connect", "gemini", "--yes", "--project"]).contains("does not trust"));
    here(&["disconnect", "gemini", "--yes", "--project"]);
    assert!(!project.join(".gemini").exists());

    let elsewhere = home.work().join("elsewhere");
    let run = |verb: &str| {
        let mut command = gemini.command(&[verb, "gemini", "--yes"]);
        command.env("GEMINI_CLI_HOME", &elsewhere).output().expect("hookbus runs")
    };
    assert!(run("connect").status.success());
    assert!(elsewhere.join(".gemini/settings.json").is_file());
    assert_eq!(gemini.text(), "{}");
    assert!(run("disconnect").status.success());
    assert!(!elsewhere.exists());
}

#[test]
fn links_stay_links() {
    let home = Home::new();
    let gemini = Gemini::new(&home);
    let dotfiles = home.work().join("dotfiles");
    write(&dotfiles.join("gemini.json"), SETTINGS);
    fs::create_dir_all(gemini.user.join(".gemini")).expect("a folder");
    symlink(dotfiles.join("gemini.json"), gemini.file()).expect("a link");
    let report = gemini.done(&["connect", "gemini"]);
    assert!(report["remarks"].to_string().contains("dotfiles/gemini.json"), "{report}");
    assert!(gemini.file().is_symlink());
    assert!(fs::read_to_string(dotfiles.join("gemini.json")).expect("a file").contains("--home"));
    gemini.done(&["disconnect", "gemini"]);
    assert!(gemini.file().is_symlink());
    assert_eq!(gemini.text(), SETTINGS);
}

#[test]
fn the_written_line_works_with_paths_full_of_spaces_quotes_and_variables() {
    let home =
        Home::with_hooks("daemon: off\nhooks: { tool.before: [{ rule: { block: not today } }] }");
    let folder = home.work().join("it's \"a\" $HOME ${HOME} $GEMINI_CWD `id`\nand more");
    fs::create_dir_all(&folder).expect("a folder");
    let (program, bus) = (folder.join("hookbus"), folder.join("bus"));
    fs::copy(binary(), &program).expect("a copy");
    fs::rename(home.path(), &bus).expect("a home with that name");
    let gemini = Gemini::new(&home);
    let mut connect = Command::new(&program);
    let connected = connect
        .args(["connect", "gemini", "--yes", "--allow-temporary-home"])
        .env("HOME", &gemini.user)
        .env("HOOKBUS_HOME", &bus)
        .output()
        .expect("hookbus runs");
    assert!(connected.status.success(), "{connected:?}");
    let line = commands(&gemini.settings(), "BeforeTool").pop().expect("a line");
    let has_variable = |(at, _): (usize, &str)| !line[at + 1..].starts_with('\'');
    assert!(!line.match_indices('$').any(has_variable), "Gemini would replace it: {line}");
    let call = json!({"hook_event_name": "BeforeTool", "session_id": "s", "tool_name": "read_file", "tool_input": {}});
    let mut bash = Command::new("bash");
    bash.args(["-c", &line]);
    let answer = feed(bash, call.to_string().as_bytes());
    assert!(answer.stdout.contains("not today"), "{answer:?}");
    fs::remove_file(&program).expect("our copy");
    let line = commands(&gemini.settings(), "SessionStart").pop().expect("a line");
    let told = Command::new("bash").args(["-c", &line]).output().expect("bash");
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert!(
        told["systemMessage"].as_str().is_some_and(|text| text.contains("is missing")),
        "{told}"
    );
}

#[test]
fn a_change_while_the_question_is_open_is_not_lost() {
    let home = Home::new();
    let gemini = Gemini::with(&home, "{\n  \"a\": 1\n}\n");
    let at_a_terminal = |verb: &str, text: &str| {
        let edit = || {
            fs::write(gemini.file(), gemini.text().replace("\"a\": 1", text)).expect("an edit");
            true
        };
        let once = [Act::See("[y/N]"), Act::Until(&edit), Act::Type("y"), Act::Enter];
        let again = [Act::See("meanwhile"), Act::See("[y/N]"), Act::Type("y"), Act::Enter];
        run_at_terminal(gemini.command(&[verb, "gemini"]), &[&once[..], &again].concat())
    };
    let (exit, screen) = at_a_terminal("connect", "\"a\": 1, // first\n  \"b\": 2");
    assert_eq!(exit, Some(0), "{screen}");
    assert!(gemini.text().contains("// first") && gemini.text().contains("--home"), "{screen}");
    let (exit, screen) = at_a_terminal("disconnect", "\"a\": 2");
    assert_eq!(exit, Some(0), "{screen}");
    assert_eq!(gemini.text(), "{\n  \"a\": 2, // first\n  \"b\": 2\n}\n");
}

#[test]
fn a_connection_from_another_home_is_replaced_and_comes_back() {
    let (one, two) = (Home::new(), Home::new());
    let first = Gemini::with(&one, "{}");
    let second = Gemini { home: &two, user: first.user.clone() };
    first.done(&["connect", "gemini"]);
    let to_one = first.text();
    second.done(&["connect", "gemini"]);
    assert_eq!(commands(&second.settings(), "BeforeTool").len(), 1);
    second.done(&["disconnect", "gemini"]);
    assert_eq!(first.text(), to_one, "the connection of the first home is back");
    let told = second.refused(&["disconnect", "gemini"]);
    assert!(told.contains("--home") && told.contains("disconnect gemini"), "{told}");
    first.done(&["disconnect", "gemini"]);
    assert_eq!(first.text(), "{}");
}

#[test]
fn without_its_record_a_connection_can_be_removed_and_made_again() {
    for connects_again in [true, false] {
        let home = Home::new();
        let gemini = Gemini::with(&home, "{\n  \"a\": 1\n}\n");
        gemini.done(&["connect", "gemini"]);
        fs::remove_dir_all(home.path()).expect("no home");
        if connects_again {
            assert_eq!(gemini.done(&["connect", "gemini"])["files"], json!([]));
        }
        gemini.done(&["disconnect", "gemini"]);
        assert_eq!(gemini.text(), "{\n  \"a\": 1\n}\n");
    }
}

#[test]
fn options_of_the_other_agent_are_refused() {
    let home = Home::new();
    let gemini = Gemini::with(&home, "{}");
    for (words, option) in [
        (&["connect", "gemini", "--hooks", "move"][..], "--hooks"),
        (&["connect", "gemini", "--gateway-deadline", "2"], "--gateway-deadline"),
        (&["connect", "hermes", "--project"], "--project"),
        (&["disconnect", "hermes", "--project"], "--project"),
    ] {
        let told = gemini.refused(words);
        assert!(told.contains(option), "{words:?}: {told}");
    }
    assert_eq!(gemini.text(), "{}");
}

/// Writes these settings; the doctor then has a finding with all of these words.
fn doctor_says(gemini: &Gemini<'_>, settings: &Value, words: &[&str]) {
    fs::write(gemini.file(), settings.to_string()).expect("settings");
    let found = gemini.findings();
    let has_words = |text: &String| words.iter().all(|word| text.contains(word));
    assert!(found.iter().any(has_words), "{words:?}: {found:?}");
}

const CONNECT: &str = "run `hookbus connect gemini`";

#[test]
fn the_doctor_tells_whether_gemini_is_connected_and_when_its_last_event_came() {
    let home = Home::new();
    let gemini = Gemini::with(&home, "{}");
    assert_eq!(gemini.findings(), Vec::<String>::new(), "it is not connected, and need not be");
    gemini.done(&["connect", "gemini"]);
    let good = gemini.findings();
    assert!(good.len() == 1 && good[0].contains("is connected"), "{good:?}");
    assert!(good[0].contains("no event of it has arrived yet"), "{good:?}");
    home.answer("gemini", &json!({"hook_event_name": "SessionStart", "session_id": "s"}));
    assert!(gemini.findings()[0].contains("its last event came"), "{:?}", gemini.findings());
    doctor_says(&gemini, &json!({"hooks": {}}), &["calls the bus any more", CONNECT, "disconnect"]);
    fs::write(gemini.file(), "{").expect("settings");
    let found = gemini.findings();
    assert!(found.len() == 1 && found[0].contains("line 1"), "{found:?}");
    fs::remove_file(gemini.file()).expect("no settings");
    let found = gemini.findings();
    assert!(found.len() == 1 && found[0].contains("no longer exists"), "{found:?}");
}

#[test]
fn the_doctor_finds_events_that_do_not_arrive_or_arrive_twice() {
    type Change = fn(&mut Value);
    let home = Home::new();
    let gemini = Gemini::with(&home, "{}");
    gemini.done(&["connect", "gemini"]);
    let wired = gemini.settings();
    let changes: [(Change, &[&str]); 7] = [
        (
            |it| drop(it["hooks"].as_object_mut().expect("hooks").remove("AfterTool")),
            &["no hook calls the bus at AfterTool", CONNECT],
        ),
        (
            |it| {
                let more =
                    json!({"hooks": [{"type": "command", "command": "hookbus hook gemini"}]});
                it["hooks"]["BeforeTool"].as_array_mut().expect("groups").push(more);
            },
            &["several hooks call the bus at BeforeTool", CONNECT],
        ),
        (
            |it| {
                let hook = &mut it["hooks"]["BeforeTool"][0]["hooks"][0];
                hook["command"] = json!("hookbus hook gemini");
            },
            &["does not name its home", ".env", CONNECT],
        ),
        (
            |it| it["hooks"]["BeforeTool"][0]["matcher"] = json!("write_file"),
            &["BeforeTool is only for `write_file`", CONNECT],
        ),
        (
            |it| it["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"] = json!(1000),
            &["1000 ms", "55 s", CONNECT],
        ),
        (
            |it| it["hooksConfig"] = json!({"enabled": false}),
            &["hooksConfig.enabled", "set it to true"],
        ),
        (
            |it| it["hooksConfig"] = json!({"disabled": ["hookbus"]}),
            &["hooksConfig.disabled", "/hooks enable hookbus"],
        ),
    ];
    for (change, words) in changes {
        let mut settings = wired.clone();
        change(&mut settings);
        doctor_says(&gemini, &settings, words);
    }
}

#[test]
fn the_doctor_finds_a_program_that_cannot_run_and_another_home() {
    let home = Home::new();
    let gemini = Gemini::with(&home, "{}");
    gemini.done(&["connect", "gemini"]);
    let wired = gemini.settings().to_string();
    let own = path_text(&home.path().canonicalize().expect("a home"));
    let program = path_text(&binary().canonicalize().expect("a program"));
    let plain = home.work().join("plain");
    fs::write(&plain, "").expect("a file");
    let plain = path_text(&plain);
    for (from, to, why) in [
        (&own, "/srv/other", "another home of hookbus, /srv/other"),
        (&program, "/srv/gone", "/srv/gone that it names does not exist"),
        (&program, plain.as_str(), "is not executable"),
        (&program, "/bin/true", "names the program /bin/true, not"),
    ] {
        let settings = serde_json::from_str(&wired.replace(from, to)).expect("JSON");
        doctor_says(&gemini, &settings, &[why, CONNECT]);
    }
}

#[test]
fn a_project_that_is_connected_beside_the_user_or_switches_hooks_off_is_reported() {
    let home = Home::new();
    let gemini = Gemini::with(&home, "{\"security\": {\"folderTrust\": {\"enabled\": false}}}");
    gemini.done(&["connect", "gemini"]);
    // The doctor runs in this directory, which is the project.
    let folder = home.work();
    let project = folder.join(".gemini/settings.json");
    let same = gemini.done(&["connect", "gemini", "--project", &path_text(&folder)]);
    assert!(!same["remarks"].to_string().contains("twice"), "Gemini runs equal hooks once: {same}");
    assert_eq!(gemini.findings().iter().filter(|text| text.contains("is connected")).count(), 2);
    let options = ["connect", "gemini", "--deadline", "5", "--project", &path_text(&folder)];
    let other = gemini.done(&options);
    assert!(other["remarks"].to_string().contains("arrive twice"), "{other}");
    let found = gemini.findings();
    assert!(found.iter().any(|text| text.contains("arrive twice")), "{found:?}");
    gemini.done(&["disconnect", "gemini", "--project", &path_text(&folder)]);
    assert!(!project.exists());
    write(&project, "{\"hooksConfig\": {\"disabled\": [\"hookbus\"]}}");
    let found = gemini.findings();
    let is_told =
        |text: &String| text.contains("keeps Gemini from calling the bus in this project");
    assert!(found.iter().any(is_told), "{found:?}");
}
