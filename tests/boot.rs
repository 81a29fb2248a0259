//! `hookbus boot`, by hand and from an observer: the agent's report is kept and delivered, and errors are reported.

use std::fs;
use std::process::Output;

use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::plugins::write;
use serde_json::{Value, json};

/// A home, and a checklist in the directory beside it.
fn home_with_checklist() -> (Home, String) {
    let home = Home::new();
    write(&home.work(), "BOOT.md", "1. Water the plants.\n");
    let checklist = path_text(&home.work().join("BOOT.md"));
    (home, checklist)
}

fn boot_log(home: &Home) -> String {
    fs::read_to_string(home.path().join("boot.log")).unwrap_or_default()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_report_of_a_failed_agent_holds_its_output_and_exit_status() {
    let (home, file) = home_with_checklist();
    let body = "echo 'The cactus is dry.'; echo '[SILENT] otherwise'; echo no water >&2";
    let delivered = home.work().join("delivered");
    let deliver = format!("cat > {}", path_text(&delivered));
    for (end, how) in [("exit 3", "exit code 3"), ("kill -9 $$", "signal 9")] {
        let agent = home.script("agent", &format!("#!/bin/sh\n{body}\n{end}\n"));
        let arguments =
            ["boot", "--wait", "--file", &file, "--deliver", &deliver, "--json", "--", &agent];
        let report = home.json(&arguments)["report"].to_string();
        let sent = fs::read_to_string(&delivered).expect("the report was delivered");
        for words in [how, "The cactus is dry.", "no water"] {
            assert!(report.contains(words), "{words}: {report}");
            assert!(sent.contains(words), "{words}: {sent}");
            assert!(boot_log(&home).contains(words), "{words}: {}", boot_log(&home));
        }
    }
}

#[test]
fn without_wait_boot_says_that_the_agent_runs_in_the_background() {
    let (home, file) = home_with_checklist();
    let agent = home.script("agent", "#!/bin/sh\necho 'The cactus is dry.'\n");
    let begun = home.json(&["boot", "--file", &file, "--json", "--", &agent]);
    let log_path = path_text(&home.path().join("boot.log"));
    assert_eq!(begun, json!({"file": file, "begun": true, "log": log_path, "report": null}));
    wait_until("the agent has finished", || boot_log(&home).contains("The cactus is dry."));
    let text = home.text(&["boot", "--file", &file, "--", &agent]);
    assert!(text.contains("in the background") && text.contains(&log_path), "{text}");
    wait_until("the agent has finished", || {
        boot_log(&home).matches("The cactus is dry.").count() == 2
    });
    let waited = home.json(&["boot", "--wait", "--file", &file, "--json", "--", &agent]);
    assert_eq!(waited["report"], "The cactus is dry.");
    assert_eq!(waited["begun"], true);
}

#[test]
fn a_missing_checklist_is_an_error_only_if_it_was_named() {
    let (home, file) = home_with_checklist();
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    let missing = path_text(&home.work().join("missing.md"));
    for wait in [&["--wait"][..], &[]] {
        let arguments = [&["boot", "--file", &missing], wait, &["--", &agent]].concat();
        let output = home.run(&arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            stderr(&output).contains(&missing) && stderr(&output).contains("--file"),
            "{output:?}"
        );
    }
    // The default checklist may be missing.
    let boot = |arguments: &[&str]| {
        let empty = home.work().join("hermes");
        let output =
            home.command(arguments).env("HERMES_HOME", empty).output().expect("hookbus runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = boot(&["boot", "--", &agent]);
    assert!(text.contains("BOOT.md") && text.contains("nothing to do"), "{text}");
    let json: Value = serde_json::from_str(&boot(&["boot", "--json", "--", &agent])).expect("JSON");
    assert_eq!((&json["begun"], &json["report"]), (&json!(false), &Value::Null));
    assert!(json["why"].to_string().contains("BOOT.md"), "{json}");
    // A file that is not text is an error, not an empty checklist.
    fs::write(&file, b"\xff\xfe").expect("the file is writable");
    let output = home.run(&["boot", "--file", &file, "--", &agent]);
    assert!(!output.status.success() && stderr(&output).contains("cannot read"), "{output:?}");
    assert_eq!(boot_log(&home), "");
}

#[test]
fn from_an_observer_boot_prints_nothing_and_logs_to_boot_log() {
    let (home, file) = home_with_checklist();
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    let start =
        |id: &str| json!({"hook_event_name": "gateway:startup", "hookbus": {"id": id}}).to_string();
    let missing = path_text(&home.work().join("missing.md"));
    let ran =
        feed(home.command(["boot", "--file", &missing, "--", &agent]), start("first").as_bytes());
    assert_eq!(
        (ran.exit, ran.stdout.as_str()),
        (Some(0), ""),
        "a missing checklist must not fail the observer"
    );
    assert!(
        boot_log(&home).contains("first") && boot_log(&home).contains(&missing),
        "{}",
        boot_log(&home)
    );
    let ran =
        feed(home.command(["boot", "--file", &file, "--", &agent]), start("second").as_bytes());
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), ""));
    wait_until("the agent ran", || boot_log(&home).contains("asked"));
    let redelivered = home.command(["boot", "--json", "--file", &file, "--", &agent]);
    let ran = feed(redelivered, start("second").as_bytes());
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(json["begun"], false, "{json}");
    assert!(json["why"].to_string().contains("second"), "{json}");
}

#[test]
fn the_agent_runs_in_the_working_directory_of_the_gateway() {
    let (home, file) = home_with_checklist();
    let cwd = home.work().join("started");
    fs::create_dir(&cwd).expect("a directory");
    let agent = home.script("agent", "#!/bin/sh\npwd\n");
    let start = json!({"cwd": path_text(&cwd), "hookbus": {"id": "one"}});
    let mut command = home.command(["boot", "--file", &file, "--", &agent]);
    command.current_dir(home.work());
    feed(command, start.to_string().as_bytes());
    wait_until("the agent has finished", || boot_log(&home).contains(&path_text(&cwd)));
}
