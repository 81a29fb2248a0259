//! `hookbus boot` by hand and from an observer: nothing that the agent said is lost, and whoever asked hears what
//! became of it.

use std::fs;
use std::process::Output;

use hookbus_tests::home::{Home, feed, shown, wait_until};
use hookbus_tests::plugins::write;
use serde_json::{Value, json};

/// A home with a checklist beside it.
fn with_a_checklist() -> (Home, String) {
    let home = Home::new();
    write(&home.work(), "BOOT.md", "1. Water the plants.\n");
    let checklist = shown(&home.work().join("BOOT.md"));
    (home, checklist)
}

fn log(home: &Home) -> String {
    fs::read_to_string(home.path().join("boot.log")).unwrap_or_default()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_an_agent_said_before_it_failed_is_kept_with_how_it_ended() {
    let (home, file) = with_a_checklist();
    let body = "echo 'The cactus is dry.'; echo '[SILENT] otherwise'; echo no water >&2";
    let delivered = home.work().join("delivered");
    let deliver = format!("cat > {}", shown(&delivered));
    for (end, how) in [("exit 3", "exit code 3"), ("kill -9 $$", "signal 9")] {
        let agent = home.script("agent", &format!("#!/bin/sh\n{body}\n{end}\n"));
        let words =
            ["boot", "--wait", "--file", &file, "--deliver", &deliver, "--json", "--", &agent];
        let report = home.json(&words)["report"].to_string();
        let read = fs::read_to_string(&delivered).expect("it was delivered");
        for words in [how, "The cactus is dry.", "no water"] {
            assert!(report.contains(words), "{words}: {report}");
            assert!(read.contains(words), "{words}: {read}");
            assert!(log(&home).contains(words), "{words}: {}", log(&home));
        }
    }
}

#[test]
fn whoever_does_not_wait_is_told_that_it_has_begun() {
    let (home, file) = with_a_checklist();
    let agent = home.script("agent", "#!/bin/sh\necho 'The cactus is dry.'\n");
    let begun = home.json(&["boot", "--file", &file, "--json", "--", &agent]);
    let boot_log = shown(&home.path().join("boot.log"));
    assert_eq!(begun, json!({"file": file, "begun": true, "log": boot_log, "report": null}));
    wait_until("it is done", || log(&home).contains("The cactus is dry."));
    let text = home.text(&["boot", "--file", &file, "--", &agent]);
    assert!(text.contains("in the background") && text.contains(&boot_log), "{text}");
    wait_until("it is done", || log(&home).matches("The cactus is dry.").count() == 2);
    let waited = home.json(&["boot", "--wait", "--file", &file, "--json", "--", &agent]);
    assert_eq!(waited["report"], "The cactus is dry.");
    assert_eq!(waited["begun"], true);
}

#[test]
fn a_checklist_that_is_not_there_is_said() {
    let (home, file) = with_a_checklist();
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    let missing = shown(&home.work().join("missing.md"));
    for wait in [&["--wait"][..], &[]] {
        let words = [&["boot", "--file", &missing], wait, &["--", &agent]].concat();
        let output = home.run(&words);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(said(&output).contains(&missing) && said(&output).contains("--file"), "{output:?}");
    }
    // The usual one need not be there.
    let boot = |words: &[&str]| {
        let empty = home.work().join("hermes");
        let output = home.command(words).env("HERMES_HOME", empty).output().expect("hookbus runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = boot(&["boot", "--", &agent]);
    assert!(text.contains("BOOT.md") && text.contains("nothing to do"), "{text}");
    let json: Value = serde_json::from_str(&boot(&["boot", "--json", "--", &agent])).expect("JSON");
    assert_eq!((&json["begun"], &json["report"]), (&json!(false), &Value::Null));
    assert!(json["why"].to_string().contains("BOOT.md"), "{json}");
    // One that cannot be read is not taken for an empty one.
    fs::write(&file, b"\xff\xfe").expect("no text");
    let output = home.run(&["boot", "--file", &file, "--", &agent]);
    assert!(!output.status.success() && said(&output).contains("cannot read"), "{output:?}");
    assert_eq!(log(&home), "");
}

#[test]
fn an_observer_is_told_nothing_on_stdout_and_the_log_knows() {
    let (home, file) = with_a_checklist();
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    let start =
        |id: &str| json!({"hook_event_name": "gateway:startup", "hookbus": {"id": id}}).to_string();
    let missing = shown(&home.work().join("missing.md"));
    let heard =
        feed(home.command(["boot", "--file", &missing, "--", &agent]), start("first").as_bytes());
    assert_eq!((heard.exit, heard.stdout.as_str()), (Some(0), ""), "a start is no reason to fail");
    assert!(log(&home).contains("first") && log(&home).contains(&missing), "{}", log(&home));
    let heard =
        feed(home.command(["boot", "--file", &file, "--", &agent]), start("second").as_bytes());
    assert_eq!((heard.exit, heard.stdout.as_str()), (Some(0), ""));
    wait_until("the agent was asked", || log(&home).contains("asked"));
    let told_twice = home.command(["boot", "--json", "--file", &file, "--", &agent]);
    let heard = feed(told_twice, start("second").as_bytes());
    let json: Value = serde_json::from_str(&heard.stdout).expect("JSON");
    assert_eq!(json["begun"], false, "{json}");
    assert!(json["why"].to_string().contains("second"), "{json}");
}

#[test]
fn the_agent_works_where_the_gateway_was_started() {
    let (home, file) = with_a_checklist();
    let place = home.work().join("started");
    fs::create_dir(&place).expect("a directory");
    let agent = home.script("agent", "#!/bin/sh\npwd\n");
    let start = json!({"cwd": shown(&place), "hookbus": {"id": "one"}});
    let mut command = home.command(["boot", "--file", &file, "--", &agent]);
    command.current_dir(home.work());
    feed(command, start.to_string().as_bytes());
    wait_until("it is done", || log(&home).contains(&shown(&place)));
}
