//! Which files an approval of a command covers: those that its words name directly, and those under `files:`.
//! A covered file that changes or disappears lapses the approval.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hookbus_tests::agents::{Act, run_at_terminal};
use hookbus_tests::consent::{
    LAPSED, NOT_APPROVED, approve_at_terminal, approve_in, assert_lapsed, block_reason,
    block_reason_in, blocking_plugin, blocking_script, last_failure, tool_call,
};
use hookbus_tests::home::{Home, feed, path_text, write_executable};
use hookbus_tests::plugins::{plugin, write};
use serde_json::{Value, json};

/// Writes a hooks file with one entry.
fn write_entry(home: &Home, entry: &str) {
    home.write_hooks_file(&format!("hooks:\n  pre_tool_call:\n    - {{ name: guard, {entry} }}\n"));
}

/// A home with the approved command, and `p.sh` and `p.py` in the working directory, which block.
fn approved(command: &str) -> Home {
    let home = Home::new();
    write_scripts(&home, "guarded");
    write_entry(&home, &format!("command: {}", json!(command)));
    home.approve();
    assert_eq!(block_reason(&home), "guarded", "{command}");
    home
}

fn write_scripts(home: &Home, reason: &str) {
    write_executable(&home.work().join("p.sh"), &blocking_script(reason));
    let code = format!("print('{{\"decision\": \"block\", \"reason\": \"{reason}\"}}')\n");
    write(&home.work(), "p.py", &code);
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|this_process| this_process.uid() == 0)
}

#[test]
fn files_that_a_command_names_directly_are_covered() {
    for command in [
        "./p.sh",
        "./p.sh --strict",
        "sh p.sh",
        "python3 p.py",
        "sh -c './p.sh --x'",
        "sh -c 'exec ./p.sh --x'",
        "sh -c 'sh < p.sh'",
        "bash -c 'python3 p.py'",
        // The wrapper is not looked through, but the script is one of the words.
        "timeout 5 ./p.sh",
        "env X=1 python3 p.py",
    ] {
        let home = approved(command);
        write_scripts(&home, "edited");
        assert_lapsed(&home, command);
        home.approve();
        assert_eq!(block_reason(&home), "edited", "{command}");
        for name in ["p.sh", "p.py"] {
            fs::remove_file(home.work().join(name)).expect("a script");
        }
        assert_lapsed(&home, command);
    }
}

#[test]
fn an_approved_script_that_is_not_executable_blocks() {
    for (command, needs_permission) in [
        ("./p.sh", true),
        ("sh -c './p.sh --x'", true),
        ("sh -c 'exec ./p.sh --x'", true),
        ("timeout 5 ./p.sh", true),
        ("sh p.sh", false),
        ("sh -c 'sh < p.sh'", false),
    ] {
        let home = approved(command);
        let script = home.work().join("p.sh");
        let set_mode = |mode| {
            fs::set_permissions(&script, fs::Permissions::from_mode(mode)).expect("our file");
        };
        // The second takes the permission from its owner alone.
        for mode in [0o644, 0o655] {
            set_mode(mode);
            let reason = block_reason(&home);
            // Some cases are seen only when the hook runs. An approval of an earlier version can be for a script that
            // never was executable, so no text says that it was.
            let is_void = reason.contains("is not executable") && reason.contains("chmod +x");
            assert!(!reason.contains("any more"), "{command}: {reason}");
            // Root may execute what anyone may.
            let is_expected = needs_permission && (mode == 0o644 || !is_root());
            assert_eq!(is_void, is_expected, "{command}: {reason}");
            assert!(!reason.is_empty(), "{command} blocks");
        }
        set_mode(0o755);
        assert_eq!(block_reason(&home), "guarded", "{command}: what the reason says helps");
    }
}

#[test]
fn a_script_that_may_not_be_executed_cannot_be_approved() {
    let home = Home::new();
    write(&home.work(), "plain.sh", &blocking_script("guarded"));
    write_entry(&home, "command: ./plain.sh");
    let (exit, screen) = home.approve_with(&[]);
    assert_eq!(exit, Some(1), "{screen}");
    assert!(screen.contains("chmod +x"), "{screen}");
}

#[test]
fn a_script_behind_a_variable_or_a_module_name_is_not_covered_and_the_question_says_so() {
    for command in ["sh -c 'sh $GUARD_HOME/p.sh'", "python3 -m p"] {
        let home = Home::new();
        write_scripts(&home, "guarded");
        write_entry(&home, &format!("command: {}, env: {{ GUARD_HOME: . }}", json!(command)));
        let yes = [Act::See("approve this hook?"), Act::Type("y"), Act::Enter];
        let (exit, screen) = approve_at_terminal(&home, &[], &yes);
        assert_eq!(exit, Some(0), "{screen}");
        assert!(screen.contains("not covered: what these files import or run"), "{screen}");
        assert!(!screen.contains("guarded"), "no file is shown: {screen}");
        assert_eq!(block_reason(&home), "guarded", "{command}");
        write_scripts(&home, "edited");
        assert_eq!(block_reason(&home), "edited", "{command}");
    }
}

#[test]
fn a_program_behind_a_variable_can_be_approved() {
    let home = Home::new();
    write_scripts(&home, "guarded");
    let command = json!("sh -c '$GUARD_HOME/p.sh'");
    write_entry(&home, &format!("command: {command}, env: {{ GUARD_HOME: . }}"));
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
}

#[test]
fn a_program_on_the_path_is_not_covered() {
    let home = Home::new();
    let program = home.work().join("bin/guardx");
    write_executable(&program, &blocking_script("guarded"));
    write_entry(&home, "command: guardx --now");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = format!("{}:{}", path_text(&home.work().join("bin")), path.to_string_lossy());
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PATH", &path);
        feed(command, tool_call().to_string().as_bytes()).stdout
    };
    let mut approve = home.command_at_terminal(["hooks", "approve", "--accept-hooks"]);
    approve.env("PATH", &path);
    run_at_terminal(approve, &[]);
    assert!(run(&["hook", "hermes"]).contains("guarded"));
    write_executable(&program, &blocking_script("edited"));
    assert!(run(&["hook", "hermes"]).contains("edited"));
}

#[test]
fn files_that_the_entry_lists_are_covered() {
    let home = Home::new();
    write_scripts(&home, "guarded");
    write(&home.path().join("rules"), "a.json", "{}");
    let elsewhere = home.work().join("more.json");
    fs::write(&elsewhere, "{}").expect("a file");
    write_entry(
        &home,
        &format!("command: python3 -m p, files: [rules/a.json, {}]", path_text(&elsewhere)),
    );
    let yes = [Act::See("approve this hook?"), Act::Type("y"), Act::Enter];
    let (exit, screen) = approve_at_terminal(&home, &[], &yes);
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("rules/a.json") && screen.contains("more.json"), "{screen}");
    assert_eq!(block_reason(&home), "guarded");
    for file in [home.path().join("rules/a.json"), elsewhere] {
        fs::write(&file, "{\"edited\": true}").expect("an edit");
        assert_lapsed(&home, "edited");
        home.approve();
        assert_eq!(block_reason(&home), "guarded");
        fs::remove_file(&file).expect("a file");
        assert_lapsed(&home, "removed");
        fs::write(&file, "{\"edited\": true}").expect("restored");
        assert_eq!(block_reason(&home), "guarded");
    }
    write_entry(&home, "command: python3 -m p, files: [rules/a.json]");
    assert_lapsed(&home, "another list");
}

#[test]
fn listed_files_of_a_plugin_are_covered() {
    let home = Home::new();
    let folder = plugin(&home, "guard", &blocking_plugin("guarded"));
    write(&home.path(), "rules.json", "{}");
    write_entry(&home, &format!("python: {}, files: [rules.json]", path_text(&folder)));
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
    write(&home.path(), "rules.json", "[]");
    assert_lapsed(&home, "edited");
}

#[test]
fn an_entry_with_a_missing_file_cannot_be_approved() {
    for (entry, missing) in [
        ("command: python3 p.py, files: [rules.json]", "home/rules.json"),
        ("command: python3 gone.py, on_failure: allow", "work/gone.py"),
        ("command: ./gone.sh, on_failure: allow", "work/gone.sh"),
        ("command: sh -c './gone.sh', on_failure: allow", "work/gone.sh"),
    ] {
        let home = Home::new();
        write_scripts(&home, "guarded");
        write_entry(&home, entry);
        let (exit, screen) = home.approve_with(&[]);
        assert_eq!(exit, Some(1));
        assert!(screen.contains(&format!("{missing} does not exist; create it")), "{screen}");
        assert!(!home.path().join("consent.json").exists());
        let (exit, screen) = approve_at_terminal(&home, &[], &[]);
        assert!(exit == Some(1) && screen.contains("does not exist"), "{screen}");
        assert!(!screen.contains("approve this hook?"), "{screen}");
        assert_eq!(block_reason(&home), "", "{entry}");
    }
}

#[test]
fn a_script_can_be_approved_once_it_exists() {
    let home = Home::new();
    let script = path_text(&home.work().join("p.py"));
    write_entry(&home, &format!("command: python3 {script}"));
    assert_eq!(home.approve_with(&[]).0, Some(1));
    let doctor = String::from_utf8_lossy(&home.run(&["hooks", "doctor"]).stdout).into_owned();
    assert!(doctor.contains(&format!("{script}` does not exist")), "{doctor}");
    write_scripts(&home, "guarded");
    home.approve();
    assert_eq!(block_reason(&home), "guarded");
}

#[test]
fn a_missing_script_is_a_failure_and_not_a_block() {
    for (program, on_failure, blocks) in [
        ("python3", ", on_failure: allow", false),
        ("python3", ", on_failure: block", true),
        // Deleting a guard must not switch it off.
        ("python3", "", true),
        ("dash", ", on_failure: allow", false),
        ("perl", ", on_failure: allow", false),
    ] {
        let home = Home::new();
        let script = path_text(&home.work().join("audit.py"));
        home.write_hooks(&format!(
            "hooks: {{ pre_tool_call: [{{ name: audit, command: {program} {script}{on_failure} }}] }}"
        ));
        let reason = block_reason(&home);
        assert_eq!(!reason.is_empty(), blocks, "{program}: {reason}");
        let verdict = home.last_decision()["verdicts"][0].clone();
        let failure = verdict["failure"].as_str().unwrap_or_default();
        assert!(failure.contains("audit.py` does not exist"), "{program}: {verdict}");
        assert_eq!(verdict["exit"], 2, "{program}");
    }
}

#[test]
fn exit_code_2_of_an_existing_script_is_a_block() {
    let home = Home::new();
    write(&home.work().join("there"), "no.py", "import sys\nsys.exit(2)\n");
    write(&home.work(), "no.sh", "echo no >&2\nexit 2\n");
    for command in [
        "sh no.sh".to_owned(),
        "timeout 5 sh no.sh".to_owned(),
        // In a line of several commands a file that does not exist may be intended.
        "sh -c 'test -f missing.sh && . ./missing.sh; sh no.sh'".to_owned(),
        "sh -c 'cd there && python3 no.py || { echo no >&2; exit 2; }'".to_owned(),
        format!("sh {} missing.py", path_text(&home.work().join("no.sh"))),
        "perl -ne 'if (/pre/) { print STDERR qq(no); exit 2 }'".to_owned(),
        "python3 -Ic 'import sys; print(8, file=sys.stderr); sys.exit(2) # /no/such.py'".to_owned(),
    ] {
        let entry = format!("hooks: {{ pre_tool_call: [{{ command: {} }}] }}", json!(command));
        home.write_hooks(&entry);
        assert!(!block_reason(&home).is_empty(), "{command}");
        assert_eq!(last_failure(&home), "", "{command}");
        home.write_hooks_file(&entry);
        home.approve();
    }
}

/// Approves a script that counts its runs in `state.json`, and runs it three times.
fn assert_state_is_not_covered(state: &str) {
    let home = Home::new();
    let text = "#!/bin/sh\necho x >> \"$1\"\necho '{\"decision\":\"block\",\"reason\":\"'$(wc -l < \"$1\")'\"}'\n";
    let script = home.script("guard.sh", text);
    write(&home.work(), "state.json", "");
    write_entry(&home, &format!("command: {script} {state}"));
    home.approve();
    for count in ["1", "2", "3"] {
        assert_eq!(block_reason(&home), count, "{state}");
    }
}

#[test]
fn a_file_that_a_hook_writes_is_not_covered() {
    assert_state_is_not_covered("state.json");
}

#[test]
fn a_file_that_a_hook_writes_is_not_covered_if_it_is_named_by_a_path() {
    assert_state_is_not_covered("./state.json");
}

#[test]
fn a_word_that_is_also_a_file_name_is_not_covered() {
    let home = Home::new();
    write_scripts(&home, "guarded");
    write_entry(&home, "command: ./p.sh test .");
    home.approve();
    for name in ["test", "index.js", "__main__.py"] {
        write(&home.work(), name, "new");
    }
    assert_eq!(block_reason(&home), "guarded");
}

/// Two working directories, each with a script `check.sh` that blocks with the directory's name.
fn two_folders(home: &Home) -> [(PathBuf, &'static str); 2] {
    ["a", "b"].map(|name| {
        let folder = home.work().join(name);
        write_executable(&folder.join("check.sh"), &blocking_script(name));
        (folder, name)
    })
}

#[test]
fn a_relative_command_is_approved_for_each_working_directory() {
    let home = Home::new();
    home.write_hooks_file("hooks: { pre_tool_call: [{ command: ./check.sh }], BeforeTool: [{ command: $GEMINI_PROJECT_DIR/check.sh }] }");
    let gemini_reason = |folder: &Path| {
        let mut payload = tool_call();
        payload["hook_event_name"] = json!("BeforeTool");
        let mut command = home.command(["hook", "gemini"]);
        command.current_dir(folder).env("GEMINI_PROJECT_DIR", folder);
        let answer = feed(command, payload.to_string().as_bytes()).stdout;
        serde_json::from_str::<Value>(&answer).unwrap_or_default()["reason"].clone()
    };
    let folders = two_folders(&home);
    for (folder, _) in &folders {
        assert_eq!(block_reason_in(&home, folder), "", "not approved here, which is not lapsed");
        assert_eq!(last_failure(&home), NOT_APPROVED);
        approve_in(&home, folder);
    }
    for (folder, name) in &folders {
        assert_eq!(block_reason_in(&home, folder), *name);
        assert_eq!(gemini_reason(folder), *name);
    }
}

#[test]
fn a_copy_in_another_directory_is_not_approved() {
    let home = Home::new();
    write_entry(&home, "command: ./check.sh");
    let [(approved, _), (other, _)] = two_folders(&home);
    approve_in(&home, &approved);
    fs::copy(approved.join("check.sh"), other.join("check.sh")).expect("a copy");
    assert_eq!(block_reason_in(&home, &other), "");
    assert_eq!(last_failure(&home), NOT_APPROVED);
    assert_eq!(block_reason_in(&home, &approved), "a");
}

#[test]
fn approvals_for_two_directories_with_a_shared_file_are_independent() {
    let home = Home::new();
    let run = home.script("run.sh", "#!/bin/sh\nexec sh \"$1\"\n");
    write_entry(&home, &format!("command: sh {run} check.sh"));
    let folders = two_folders(&home);
    for (folder, _) in &folders {
        approve_in(&home, folder);
    }
    for (folder, name) in &folders {
        assert_eq!(block_reason_in(&home, folder), *name);
    }
    let [(first, _), (second, _)] = &folders;
    fs::write(first.join("check.sh"), blocking_script("edited")).expect("an edit");
    assert!(block_reason_in(&home, first).contains(LAPSED));
    assert_eq!(block_reason_in(&home, second), "b");
}

#[test]
fn a_home_whose_path_is_not_utf8_has_approvals_too() {
    for (command, event) in [("./g.sh", "tool.before"), ("~/g.sh", "pre_tool_call")] {
        let home = Home::new();
        let odd = home.work().join(OsStr::from_bytes(b"h\xff"));
        let write = |name: &str, text: &str| write_executable(&odd.join(name), text);
        write("hookbus.yaml", &format!("hooks: {{ \"{event}\": [{{ command: {command} }}] }}"));
        write("g.sh", &blocking_script("guarded"));
        let run = |arguments: &[&str]| {
            let mut command = home.command(arguments);
            command.env("HOOKBUS_HOME", &odd).env("HOME", &odd);
            feed(command, tool_call().to_string().as_bytes())
        };
        let mut approve = home.command_at_terminal(["hooks", "approve", "--accept-hooks"]);
        approve.env("HOOKBUS_HOME", &odd).env("HOME", &odd);
        let (exit, screen) = run_at_terminal(approve, &[]);
        assert_eq!(exit, Some(0), "{command}: {screen}");
        let answer = run(&["hook", "hermes"]).stdout;
        assert!(answer.contains("guarded"), "{command}: {answer}");
        let doctor = run(&["hooks", "doctor"]).stdout;
        assert!(!doctor.contains("does not exist"), "{command}: {doctor}");
        write("g.sh", &blocking_script("edited"));
        let answer = run(&["hook", "hermes"]).stdout;
        assert!(answer.contains("has changed since"), "{command}: {answer}");
    }
}

#[test]
fn an_approval_that_was_given_through_a_link_to_the_home_counts() {
    let home = Home::new();
    home.write_hooks_file("hooks: { tool.before: [{ command: sh ./own.sh }] }");
    write(&home.path(), "own.sh", &blocking_script("guarded"));
    let link = home.work().join("link");
    std::os::unix::fs::symlink(home.path(), &link).expect("a link");
    let mut command = home.command_at_terminal(["hooks", "approve", "--accept-hooks"]);
    command.env("HOOKBUS_HOME", &link).current_dir(home.path());
    assert_eq!(run_at_terminal(command, &[]).0, Some(0));
    assert_eq!(block_reason_in(&home, &home.path()), "guarded");
    write(&home.path(), "own.sh", &blocking_script("edited"));
    assert!(block_reason_in(&home, &home.path()).contains(LAPSED));
}
