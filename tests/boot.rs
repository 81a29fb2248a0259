//! `hookbus boot`, by hand and from an observer: the agent's report is kept and delivered, and errors are reported.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use hookbus_tests::home::{Home, binary, feed, path_text, wait_until};
use hookbus_tests::plugins::{call, write};
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

/// The event of a gateway that starts.
fn gateway_start() -> Value {
    call("gateway:startup", &json!({"platforms": ["chat"]}))
}

#[test]
fn an_observer_runs_the_checklist_once_per_start_of_the_gateway() {
    let home = Home::with_daemon("running");
    let work = home.work();
    let agent = home.script(
        "agent",
        &format!(
            "#!/bin/sh\nprintf '%s\\n---\\n' \"$2\" >> {0}/prompts\ncat {0}/answer\n",
            path_text(&work)
        ),
    );
    let deliver = format!("cat > {}/delivered", path_text(&work));
    let boot = format!("{} boot --deliver '{deliver}' -- {agent} -z", path_text(&binary()));
    home.write_hooks(&format!(
        "hooks:\n  gateway:startup: [{{ name: boot, mode: observe, source: log, command: \"{boot}\" }}]\n"
    ));
    let daemon = home.serve();
    let start = || {
        let mut command = home.command(["hook", "hermes", "--wire", "bridge"]);
        command.env("HERMES_HOME", &work);
        let output = feed(command, gateway_start().to_string().as_bytes());
        assert_eq!((output.exit, output.stdout.as_str()), (Some(0), ""));
    };
    let read = |file: &str| fs::read_to_string(work.join(file)).unwrap_or_default();
    let handled = || home.json(&["status", "--json"])["observers"][0]["handled"].clone();
    start();
    wait_until("the event is handled", || handled() == 1);
    assert_eq!((read("prompts"), boot_log(&home)), (String::new(), String::new()), "no checklist");
    fs::write(work.join("BOOT.md"), "1. Water the plants.\n").expect("a checklist");
    fs::write(work.join("answer"), "[SILENT]").expect("an answer");
    start();
    wait_until("the agent has run", || boot_log(&home).contains("nothing to report"));
    assert!(read("prompts").contains("Water the plants."));
    assert!(!work.join("delivered").exists());
    fs::write(work.join("answer"), "The cactus is dry.").expect("an answer");
    start();
    wait_until("the report is delivered", || read("delivered") == "The cactus is dry.");
    wait_until("the report is logged", || boot_log(&home).contains("The cactus is dry."));
    // The same start, delivered again or replayed, is handled once.
    let pid = home.json(&["status", "--json"])["observers"][0]["pid"].to_string();
    drop(daemon);
    wait_until("the observer is gone", || !Path::new("/proc").join(&pid).exists());
    home.text(&["replay", "--all", "--to-observers", "--yes"]);
    let log = boot_log(&home);
    assert!(log.contains("the event comes from a replay"), "the start without a checklist: {log}");
    fs::remove_dir_all(home.path().join("observers/boot")).expect("its position");
    let again = home.json(&["observe", "boot", "--drain", "--from", "start", "--json"]);
    assert_eq!(again["handled"], 3, "{again}");
    assert_eq!(read("prompts").matches("---").count(), 2, "{}", boot_log(&home));
}

#[test]
fn an_old_start_of_the_gateway_is_skipped() {
    let (home, file) = home_with_checklist();
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    let boot = |hookbus: &Value| {
        let command = home.command(["boot", "--wait", "--file", &file, "--", &agent]);
        let event = json!({"hook_event_name": "gateway:startup", "hookbus": hookbus});
        feed(command, event.to_string().as_bytes()).stdout
    };
    home.answer("hermes", &gateway_start());
    let now = home.log(&["--name", "gateway:startup"])[0]["time"].clone();
    assert_eq!(boot(&json!({"id": "early", "time": "2026-01-02T03:04:05Z", "replay": false})), "");
    let log = boot_log(&home);
    assert!(log.contains("for event early") && log.contains("more than ten minutes ago"), "{log}");
    assert_eq!(boot(&json!({"id": "now", "time": now, "replay": false})), "asked\n");
    assert_eq!(boot(&json!({"id": "now", "time": now, "replay": false})), "", "once");
}

#[test]
fn a_start_whose_agent_could_not_be_started_is_tried_again() {
    let home = Home::with_new_binary("off");
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    write(&home.work(), "BOOT.md", "1. Water the plants.\n");
    fs::create_dir_all(home.path()).expect("a home");
    let file = path_text(&home.work().join("BOOT.md"));
    let boot = || {
        let mut command = home.command(["boot", "--file", &file, "--", &agent]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("hookbus starts")
    };
    let send_event = |mut child: Child| {
        let event = json!({"hook_event_name": "gateway:startup", "hookbus": {"id": "once"}});
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(event.to_string().as_bytes()).expect("it reads");
        drop(stdin);
        child.wait_with_output().expect("hookbus ends")
    };
    // Its program is removed while it runs, so that it cannot start itself in the background.
    let (first, program) = (boot(), home.path().with_file_name("hookbus"));
    fs::copy(&program, home.work().join("copy")).expect("a copy");
    fs::remove_file(&program).expect("no program");
    let failed = send_event(first);
    assert!(!failed.status.success(), "{failed:?}");
    assert!(stderr(&failed).contains("in the background"), "{failed:?}");
    fs::rename(home.work().join("copy"), &program).expect("the program again");
    for _ in 0..2 {
        assert!(send_event(boot()).status.success(), "{}", boot_log(&home));
    }
    wait_until("the agent has run", || boot_log(&home).contains("asked"));
    let counts = ["begins", "could not begin"].map(|words| boot_log(&home).matches(words).count());
    assert_eq!(counts, [2, 1], "{}", boot_log(&home));
}
