//! The spool: events that could not be appended to the log wait in files, none of them blocks the others, and
//! each is in the log exactly once afterwards.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use hookbus_tests::home::{Home, feed, wait_until};
use hookbus_tests::mounts::hook_in_read_only_home;
use hookbus_tests::payloads::hermes_shell;
use serde_json::Value;

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

/// Moves the log away and puts a directory in its place, so that events are spooled.
fn break_log(home: &Home) {
    for file in ["log.db", "log.db-wal", "log.db-shm"] {
        fs::rename(home.path().join(file), home.work().join(file)).expect("our file");
    }
    fs::create_dir(home.path().join("log.db")).expect("a directory instead of the file");
}

fn mend_log(home: &Home) {
    fs::remove_dir(home.path().join("log.db")).expect("our directory");
    for file in ["log.db", "log.db-wal", "log.db-shm"] {
        fs::rename(home.work().join(file), home.path().join(file)).expect("our file");
    }
}

/// A home with a log of one event, and `count` more in the spool, with their commands.
fn home_with_backlog(mode: &'static str, count: usize) -> (Home, Vec<String>) {
    let home = Home::with_daemon(mode);
    home.write_hooks(GUARD);
    assert_eq!(home.answer("hermes", &hermes_shell("ls")), Value::Null);
    break_log(&home);
    let commands: Vec<String> = (0..count).map(|number| format!("rm spooled-{number}")).collect();
    for command in &commands {
        assert_eq!(
            home.answer("hermes", &hermes_shell(command))["reason"],
            "guarded (hookbus rule tool.before#1)"
        );
    }
    assert_eq!(files(&home.path().join("spool"), "").len(), count);
    mend_log(&home);
    (home, commands)
}

/// The files of a directory whose name ends like this.
fn files(directory: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    files.filter(|path| path.to_string_lossy().ends_with(end)).collect()
}

fn spool_is_empty(home: &Home) -> bool {
    files(&home.path().join("spool"), "").is_empty()
}

/// The spool files of all homes in the places outside of homes.
fn shared_files() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let bases = [PathBuf::from("/tmp"), PathBuf::from(format!("/run/user/{user}"))];
    let homes =
        bases.iter().flat_map(|base| files(&base.join(format!("hookbus-spool-{user}")), ""));
    homes.flat_map(|home| files(&home, "")).collect()
}

/// Every command is in the log once, with one decision.
fn assert_each_once(home: &Home, commands: &[String]) {
    let mut events: HashMap<String, Vec<i64>> = HashMap::new();
    let mut decisions: HashMap<i64, usize> = HashMap::new();
    for row in home.log(&[]) {
        if let Some(command) = row["payload"]["tool_input"]["command"].as_str() {
            events.entry(command.to_owned()).or_default().extend(row["seq"].as_i64());
        }
        if let Some(cause) = row["cause"].as_i64() {
            *decisions.entry(cause).or_default() += 1;
        }
    }
    for command in commands {
        let seqs = events.get(command).map_or(&[][..], Vec::as_slice);
        assert_eq!(seqs.len(), 1, "{command} is in the rows {seqs:?}");
        assert_eq!(decisions.get(&seqs[0]), Some(&1), "{command} has one decision");
    }
    assert!(home.is_sound());
}

/// A client was killed after it had written the file, but before it had given it its name.
#[test]
fn a_file_without_its_final_name_is_told_and_taken_in_by_the_running_daemon() {
    let (home, commands) = home_with_backlog("running", 1);
    let waiting = files(&home.path().join("spool"), "").pop().expect("a file");
    let id = waiting.file_name().and_then(OsStr::to_str).and_then(|name| name.split('.').next());
    let part = waiting.with_file_name(format!("{}.4711-0.part", id.expect("an id")));
    fs::rename(&waiting, &part).expect("our file");
    let written = fs::metadata(&part).and_then(|file| file.modified()).expect("a time");
    let set_age = |minutes: u64| {
        let file = fs::File::options().write(true).open(&part).expect("our file");
        file.set_modified(written - Duration::from_mins(minutes)).expect("a time");
    };
    let _daemon = home.serve();
    let status = || String::from_utf8_lossy(&home.run(&["status"]).stdout).into_owned();
    assert!(!status().contains("spool"), "it may be on its way: {}", status());
    set_age(2);
    assert!(status().contains("1 event was not written to the end"), "{}", status());
    let doctor = home.run(&["hooks", "doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("1 event was not written to the end"), "{doctor}");
    // The directory has not changed, so that the daemon has no other reason to look at it.
    thread::sleep(Duration::from_secs(3));
    set_age(11);
    wait_until("the spool is empty", || spool_is_empty(&home));
    assert_each_once(&home, &commands);
}

#[test]
fn a_backlog_shows_in_status_and_doctor_until_it_is_taken_in() {
    let (home, commands) = home_with_backlog("off", 3);
    let status = home.run(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout);
    assert!(status.contains("3 events wait for the log, the oldest for"), "{status}");
    assert!(
        status.contains("not a database") || status.contains("open"),
        "with the cause: {status}"
    );
    let state = home.run(&["status", "--json"]);
    let state: Value = serde_json::from_slice(&state.stdout).expect("JSON");
    assert_eq!(state["spool"]["waiting"], 3);
    assert!(state["spool"]["oldest_age_s"].is_number(), "{state}");
    let doctor = home.run(&["hooks", "doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("3 events wait for the log"));
    assert_eq!(doctor.status.code(), Some(1));
    home.answer("hermes", &hermes_shell("ls"));
    wait_until("the spool is empty", || spool_is_empty(&home));
    assert_each_once(&home, &commands);
    let state = home.run(&["status", "--json"]);
    let state: Value = serde_json::from_slice(&state.stdout).expect("JSON");
    assert_eq!((&state["spool"]["waiting"], &state["spool"]["unreadable"]), (&0.into(), &0.into()));
    let status = home.run(&["status"]);
    assert!(!String::from_utf8_lossy(&status.stdout).contains("spool"));
}

#[test]
fn a_file_that_holds_no_event_is_set_aside_and_told_and_blocks_nothing() {
    for mode in ["off", "running"] {
        let (home, commands) = home_with_backlog(mode, 4);
        let spool = home.path().join("spool");
        // Their names sort before those of the events.
        let id = "00000000-0000-7000-8000-000000000000";
        fs::write(spool.join(format!("{id}.json")), "{\"event\": {\"id\": ").expect("a file");
        fs::write(spool.join("0-garbage.json"), [0xff, 0, 1]).expect("a file");
        fs::create_dir(spool.join("0-directory.json")).expect("a directory");
        let fifo = spool.join("0-fifo.json");
        assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
        let _daemon = (mode == "running").then(|| home.serve());
        home.answer("hermes", &hermes_shell("ls"));
        wait_until("only those files are left", || {
            files(&spool, ".unreadable").len() == 4 && files(&spool, "").len() == 4
        });
        assert_each_once(&home, &commands);
        let status = String::from_utf8_lossy(&home.run(&["status"]).stdout).into_owned();
        assert!(status.contains("no event, set aside"), "{mode}: {status}");
        assert!(status.contains("0-garbage.unreadable"), "{mode}: {status}");
        let doctor = String::from_utf8_lossy(&home.run(&["hooks", "doctor"]).stdout).into_owned();
        assert!(doctor.contains("0-garbage.unreadable"), "{mode}: {doctor}");
        let check = home.run(&["status", "--check"]);
        let unhealthy = String::from_utf8_lossy(&check.stdout).into_owned();
        assert!(unhealthy.contains("0-garbage.unreadable"), "{mode}: {unhealthy}");
        assert_eq!(check.status.code(), Some(1), "{mode}");
    }
}

#[test]
fn a_file_of_an_earlier_version_is_taken_in() {
    let (home, commands) = home_with_backlog("off", 1);
    let spool = home.path().join("spool");
    let file = files(&spool, "").pop().expect("the event");
    let mut content: Value = serde_json::from_slice(&fs::read(&file).expect("it")).expect("JSON");
    let fields = content.as_object_mut().expect("an object");
    assert!(fields.remove("home").is_some() && fields.remove("why").is_some());
    fs::remove_file(&file).expect("our file");
    fs::write(file.with_extension("json"), content.to_string()).expect("a file");
    home.answer("hermes", &hermes_shell("ls"));
    wait_until("the spool is empty", || spool_is_empty(&home));
    assert_each_once(&home, &commands);
}

#[test]
fn processes_that_take_in_the_same_spool_at_once_append_each_event_once() {
    let (home, commands) = home_with_backlog("off", 60);
    let (home, more) = (&home, 8);
    thread::scope(|scope| {
        for number in 0..more {
            scope.spawn(move || home.answer("hermes", &hermes_shell(&format!("ls {number}"))));
        }
    });
    let _daemon = home.serve();
    wait_until("the spool is empty", || spool_is_empty(home));
    assert_each_once(home, &commands);
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 60 + more + 1);
}

#[test]
fn a_process_that_is_killed_while_it_takes_in_the_spool_loses_and_doubles_nothing() {
    let (home, commands) = home_with_backlog("running", 60);
    for round in 0..12 {
        let mut child = home
            .command(["serve"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hookbus serve starts");
        thread::sleep(Duration::from_millis(4 * round + 4));
        child.kill().expect("our child");
        child.wait().expect("our child");
    }
    let _daemon = home.serve();
    wait_until("the spool is empty", || spool_is_empty(&home));
    assert_each_once(&home, &commands);
}

#[test]
fn a_daemon_takes_in_what_a_client_with_another_environment_spooled_outside_of_the_home() {
    let home = Home::with_daemon("running");
    home.write_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let mut hook = hook_in_read_only_home(&home, &hermes_shell("rm x"));
    let hook = hook.env("XDG_RUNTIME_DIR", home.work()).env("TMPDIR", home.work());
    let output = hook.output().expect("unshare runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("guarded"), "{output:?}");
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 1);
    let _daemon = home.serve();
    wait_until("it is in the log", || home.log(&["--kind", "tool.before"]).len() == 2);
    assert_each_once(&home, &["rm x".to_owned()]);
}

#[test]
fn a_file_that_names_another_home_is_not_taken_in() {
    let home = Home::with_hooks(GUARD);
    home.answer("hermes", &hermes_shell("ls"));
    let mut hook = hook_in_read_only_home(&home, &hermes_shell("rm x"));
    let output = hook.current_dir(home.work()).output().expect("unshare runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("guarded"), "{output:?}");
    let waiting = home.run(&["status", "--json"]);
    let waiting: Value = serde_json::from_slice(&waiting.stdout).expect("JSON");
    assert_eq!(waiting["spool"]["waiting"], 1);
    // As if another home had the same directory: the file says whose it is.
    let own = shared_files().into_iter().find(|file| {
        let work = home.work().to_string_lossy().into_owned();
        fs::read_to_string(file).is_ok_and(|text| text.contains(&work))
    });
    let own = own.expect("the spooled event");
    let text = fs::read_to_string(&own).expect("text");
    let digest = own.parent().and_then(Path::file_name).expect("the home").to_string_lossy();
    assert!(text.contains(&*digest), "the file names its home as its directory does");
    fs::write(&own, text.replace(&*digest, &"0".repeat(64))).expect("our file");
    feed(home.command(["hook", "hermes"]), hermes_shell("ls").to_string().as_bytes());
    wait_until("it is set aside", || {
        let status = home.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        status["spool"]["unreadable"] == 1
    });
    assert_eq!(home.decisions().len(), 0, "it is not in this log");
    fs::remove_dir_all(own.parent().expect("a directory")).expect("our directory");
}

#[test]
fn a_large_event_does_not_block_those_behind_it_and_is_taken_in_without_a_daemon() {
    let (home, mut commands) = home_with_backlog("off", 0);
    break_log(&home);
    let large = format!("rm {}", "x".repeat(40 << 20));
    for command in [&large, "rm spooled-1", "rm spooled-2"] {
        assert_eq!(
            home.answer("hermes", &hermes_shell(command))["reason"],
            "guarded (hookbus rule tool.before#1)"
        );
        commands.push(command.to_owned());
    }
    mend_log(&home);
    // As if a client had been killed while it took in the large one.
    let is_large = |file: &PathBuf| fs::metadata(file).is_ok_and(|file| file.len() > 40 << 20);
    let files = files(&home.path().join("spool"), "");
    let file = files.iter().find(|file| is_large(file)).expect("it waits");
    fs::rename(file, file.with_extension("taken")).expect("our file");
    home.answer("hermes", &hermes_shell("ls"));
    assert!(spool_is_empty(&home), "one client has taken in all of them");
    let small =
        |row: &Value| row["payload"]["tool_input"]["command"].as_str().map(str::len) < Some(99);
    let rows = home.log(&["--kind", "tool.before"]);
    assert_eq!(rows.len(), 5);
    assert!(!small(&rows[4]) && rows[..4].iter().all(small), "the large one came last");
    assert_each_once(&home, &commands);
}

#[test]
fn a_huge_file_that_holds_no_event_is_set_aside_before_it_is_read() {
    let (home, _) = home_with_backlog("off", 1);
    let spool = home.path().join("spool");
    let name = &files(&spool, "")[0];
    for (number, beginning) in [(1, ""), (2, "{")] {
        let path = name.with_extension(format!("{number}.json"));
        fs::write(&path, beginning).expect("our file");
        let file = fs::OpenOptions::new().write(true).open(&path).expect("our file");
        file.set_len(3 << 30).expect("a file without blocks");
    }
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(files(&spool, ".unreadable").len(), 2, "{:?}", files(&spool, ""));
    assert_eq!(files(&spool, "").len(), 2);
}
