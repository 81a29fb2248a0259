//! Scripts that were agreed to: nothing that an agent puts beside or before them switches them off, and one that
//! is not there is no guard.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hookbus_tests::agents::before_a_person;
use hookbus_tests::home::{Home, feed, shown};
use hookbus_tests::plugins::{plugin, tool, write};
use serde_json::{Value, json};

const GUARD: &str = "print('{\"decision\": \"block\", \"reason\": \"guarded\"}')\n";

/// More than anybody can look through.
const TOO_MANY: usize = 2001;

fn hooks(home: &Home, entry: &str) {
    home.write_hooks_file(&format!("hooks:\n  pre_tool_call:\n    - {{ name: guard, {entry} }}\n"));
}

fn approve(home: &Home) {
    home.text(&["hooks", "approve", "--accept-hooks"]);
}

fn payload() -> String {
    tool("pre_tool_call", "terminal", &json!({"command": "x"}), &json!({})).to_string()
}

/// Why the tool was refused, if so, by an agent in `place` that looks for programs there.
fn heard(home: &Home, place: &Path, path: &str) -> String {
    let mut command = home.command(["hook", "hermes"]);
    command.current_dir(place).env("PATH", path);
    let heard = feed(command, payload().as_bytes()).stdout;
    let answer: Value = serde_json::from_str(&heard).unwrap_or_default();
    answer["reason"].as_str().unwrap_or_default().to_owned()
}

fn path() -> String {
    std::env::var_os("PATH").unwrap_or_default().to_string_lossy().into_owned()
}

fn crowd(folder: &Path) {
    for number in 0..TOO_MANY {
        // Before what was agreed to, in the order of names.
        write(folder, &format!("_{number}.py"), "");
    }
}

fn executable(folder: &Path, name: &str, text: &str) -> PathBuf {
    write(folder, name, text);
    let file = folder.join(name);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
    file
}

#[test]
fn a_guard_is_not_switched_off_by_files_beside_it() {
    let home = Home::new();
    let (here, there) = (home.work(), home.work().join("there"));
    write(&here.join("pkg"), "__main__.py", GUARD);
    write(&there.join("pkg"), "__main__.py", GUARD);
    hooks(&home, "command: python3 -m pkg");
    approve(&home);
    assert_eq!(heard(&home, &here, &path()), "guarded");
    crowd(&here.join("pkg"));
    let said = heard(&home, &here, &path());
    assert!(said.contains("too many files"), "{said}");
    // In another place nobody ever agreed to so much.
    crowd(&there.join("pkg"));
    assert_eq!(heard(&home, &there, &path()), "");

    let code = "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **k: {'action': 'block', 'message': 'guarded'})\n";
    let folder = plugin(&home, "guard", code);
    hooks(&home, &format!("python: {}", shown(&folder)));
    approve(&home);
    assert_eq!(heard(&home, &here, &path()), "guarded");
    crowd(&folder);
    let said = heard(&home, &here, &path());
    assert!(said.contains("too many files"), "{said}");
}

#[test]
fn a_guard_is_not_switched_off_by_a_program_that_is_found_first() {
    let home = Home::new();
    let place = |name: &str| home.work().join(name);
    let script = "#!/bin/sh\necho '{\"decision\": \"block\", \"reason\": \"guarded\"}'\n";
    executable(&place("bin"), "guard", script);
    executable(&place("other"), "guard", &format!("{script}# of another place\n"));
    fs::create_dir_all(place("first")).expect("a folder");
    let with = |folders: &[&str]| {
        let folders: Vec<String> = folders.iter().map(|name| shown(&place(name))).collect();
        format!("{}:{}", folders.join(":"), path())
    };
    hooks(&home, "command: guard --now");
    let mut approve = home.command(["hooks", "approve", "--accept-hooks"]);
    assert!(approve.env("PATH", with(&["first", "bin"])).status().expect("hookbus").success());
    let said = || heard(&home, &home.work(), &with(&["first", "bin"]));
    assert_eq!(said(), "guarded");
    executable(&place("first"), "guard", "#!/bin/sh\nexit 0\n");
    assert!(said().contains("has changed since"), "{}", said());
    fs::copy("/bin/true", place("first").join("guard")).expect("no script at all");
    assert!(said().contains("has changed since"), "{}", said());
    // Whoever looks elsewhere means another one, which nobody was asked about.
    assert_eq!(heard(&home, &home.work(), &with(&["other"])), "");
}

#[test]
fn a_guard_is_not_switched_off_by_a_file_that_is_taken_for_it() {
    for (command, agreed, instead) in [
        ("python3 -W ignore guard", "guard", "ignore"),
        ("python3 -m guard", "guard.py", "guard/__init__.py"),
    ] {
        let home = Home::new();
        write(&home.work(), agreed, GUARD);
        hooks(&home, &format!("command: {command}"));
        approve(&home);
        assert_eq!(heard(&home, &home.work(), &path()), "guarded", "{command}");
        let instead = home.work().join(instead);
        write(instead.parent().expect("a folder"), "__main__.py", "");
        write(
            instead.parent().expect("a folder"),
            &shown(Path::new(instead.file_name().expect("a name"))),
            "",
        );
        let said = heard(&home, &home.work(), &path());
        assert!(said.contains("has changed since"), "{command}: {said}");
        // The same words somewhere else are about something else.
        let there = home.work().join("there");
        write(&there, agreed, "pass\n");
        assert_eq!(heard(&home, &there, &path()), "", "{command}");
    }
}

#[test]
fn a_script_that_is_not_there_is_a_failure_and_no_block() {
    for (program, on_failure, blocks) in [
        ("python3", ", on_failure: allow", false),
        ("python3", ", on_failure: block", true),
        // Deleting a guard does not open the door.
        ("python3", "", true),
        ("dash", ", on_failure: allow", false),
        ("timeout 5 python3", ", on_failure: allow", false),
        ("perl", ", on_failure: allow", false),
    ] {
        let home = Home::new();
        let script = shown(&home.work().join("audit.py"));
        home.write_hooks(&format!(
            "hooks: {{ pre_tool_call: [{{ name: audit, command: {program} {script}{on_failure} }}] }}"
        ));
        let said = heard(&home, &home.work(), &path());
        assert_eq!(!said.is_empty(), blocks, "{program}: {said}");
        let verdict = home.decisions().pop().expect("a decision")["verdicts"][0].clone();
        let why = verdict["failure"].as_str().unwrap_or_default();
        assert!(why.contains("audit.py` does not exist"), "{program}: {verdict}");
        assert_eq!(verdict["exit"], 2, "{program}");
    }
}

#[test]
fn an_exit_of_two_stays_a_block_where_the_script_is_there() {
    let home = Home::new();
    let there = home.work().join("there");
    write(&there, "no.py", "import sys\nsys.exit('no') if False else sys.exit(2)\n");
    write(&home.work(), "no.sh", "echo no >&2\nexit 2\n");
    // Nobody can tell what is missing in a line of several commands.
    for command in [
        "sh no.sh".to_owned(),
        "sh -c 'test -f missing.sh && . ./missing.sh; sh no.sh'".to_owned(),
        "sh -c 'cd there && python3 no.py || { echo no >&2; exit 2; }'".to_owned(),
        format!("sh {} missing.py", shown(&home.work().join("no.sh"))),
        "perl -ne 'if (/pre/) { print STDERR qq(no); exit 2 }'".to_owned(),
        "python3 -Ic 'import sys; print(8, file=sys.stderr); sys.exit(2) # /no/such.py'".to_owned(),
    ] {
        home.write_hooks(&format!(
            "hooks: {{ pre_tool_call: [{{ command: {} }}] }}",
            json!(command)
        ));
        assert!(!heard(&home, &home.work(), &path()).is_empty(), "{command}");
        home.write_hooks_file(&format!(
            "hooks: {{ pre_tool_call: [{{ command: {} }}] }}",
            json!(command)
        ));
        approve(&home);
    }
}

#[test]
fn nobody_agrees_to_a_script_that_is_not_there() {
    let home = Home::new();
    let script = shown(&home.work().join("audit.py"));
    hooks(&home, &format!("command: python3 {script}, on_failure: allow"));
    let approved = home.run(&["hooks", "approve", "--accept-hooks"]);
    let said = String::from_utf8_lossy(&approved.stderr).into_owned();
    assert!(!approved.status.success());
    assert!(said.contains(&format!("{script} is not there")), "{said}");
    assert!(!home.path().join("consent.json").exists());
    let mut command = home.command(["hooks", "approve"]);
    command.env("HOME", home.work());
    let (exit, shown) = before_a_person(command, &[]);
    assert!(exit == Some(1) && shown.contains("is not there"), "{shown}");
    assert!(!shown.contains("approve this hook?"), "{shown}");
    let doctor = home.run(&["hooks", "doctor"]);
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(found.contains(&format!("{script}` does not exist")), "{found}");
    write(&home.work(), "audit.py", GUARD);
    approve(&home);
    assert_eq!(heard(&home, &home.work(), &path()), "guarded");
}
