//! `hooks check` runs the examples of rules; `hooks test` tells what a command, a path or an address would meet, and why.

use std::fs;

use hookbus_tests::home::{Home, feed, path_text};
use serde_json::{Value, json};

const POLICY: &str = r"
hooks:
  tool.before:
    - name: no-force-push
      tool: shell
      rule:
        when: { command: 'git\s+push\s.*--force' }
        unless: { cwd: { under: /nowhere } }
        block: Force pushes need a person.
        examples:
          block: ['git push --force', 'git push origin main']
          pass: [git push, 'git push --force-with-lease']
    - name: hands-off
      tool: file.write
      rule:
        when: { path: { under: $hookbus } }
        block: These files are not for agents.
        examples: { block: [~/.hookbus/hookbus.yaml], pass: [src/main.rs] }
    - name: only-gemini
      agent: gemini
      rule: { when: { command: curl }, ask: Sure? }
";

/// The policy without the examples that are missed.
fn sound_policy() -> String {
    POLICY.replace(", 'git push origin main'", "").replace(", 'git push --force-with-lease'", "")
}

fn stdout(home: &Home, arguments: &[&str]) -> (Option<i32>, String) {
    let output = home.run(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[track_caller]
fn assert_fits_a_terminal(text: &str, home: &Home) {
    let path = path_text(&home.path());
    let is_long = |line: &&str| line.chars().count() > 80 && !line.contains(&path);
    assert_eq!(text.lines().find(is_long), None, "{text}");
}

#[test]
fn a_missed_example_is_told_with_its_line_its_condition_and_what_that_saw() {
    let home = Home::new();
    home.write_hooks_file(POLICY);
    let (exit, text) = stdout(&home, &["hooks", "check"]);
    assert_eq!(exit, Some(1), "{text}");
    let file = path_text(&home.path().join("hookbus.yaml"));
    for part in [
        format!("{file}:11: no-force-push: expected block: git push origin main\n"),
        "`when: command` does not hold".to_owned(),
        "`git push origin main`".to_owned(),
        format!("{file}:12: no-force-push: should pass: git push --force-with-lease\n"),
        "the rule applies to it".to_owned(),
        "6 examples of 2 rules: 2 missed".to_owned(),
        "1 rule has no examples".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} in\n{text}");
    }
    assert_fits_a_terminal(&text, &home);
    let (_, listed) = stdout(&home, &["hooks", "list"]);
    assert!(listed.contains("the example `git push origin main` should"), "{listed}");
}

#[test]
fn a_sound_file_passes_and_json_has_every_example() {
    let home = Home::new();
    home.write_hooks_file(&sound_policy());
    let (exit, text) = stdout(&home, &["hooks", "check"]);
    assert_eq!(exit, Some(0), "{text}");
    assert!(text.contains("4 examples of 2 rules: all as expected"), "{text}");
    let report = home.json(&["hooks", "check", "--json"]);
    let file = &report["files"][0];
    assert_eq!(
        (&report["sound"], &file["missed"], &file["rules"]),
        (&json!(true), &json!(0), &json!(3))
    );
    assert_eq!(file["examples"].as_array().map(Vec::len), Some(4));
    assert_eq!(file["examples"][0]["expected"], "block");
}

#[test]
fn another_file_can_be_checked_and_its_mistakes_count() {
    let home = Home::new();
    let file = home.work().join("candidate.yaml");
    fs::write(&file, sound_policy().replace("unless:", "unles:")).expect("a file");
    let name = path_text(&file);
    let (exit, text) = stdout(&home, &["hooks", "check", &name]);
    assert_eq!(exit, Some(1), "{text}");
    assert!(text.contains("did you mean `unless`?"), "{text}");
    fs::write(&file, "hooks: [\n").expect("a file");
    let (exit, text) = stdout(&home, &["hooks", "check", &name]);
    assert_eq!(exit, Some(1), "{text}");
    let output = home.run(&["hooks", "check", "/nonexistent.yaml"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read /nonexistent.yaml"));
    assert!(stdout(&home, &["hooks", "check"]).1.contains("`hookbus init` writes one"));
}

#[test]
fn the_file_of_a_project_is_checked_without_an_approval() {
    let home = Home::new();
    let project = home.work().join("project");
    fs::create_dir_all(project.join(".hookbus")).expect("a project");
    fs::write(project.join(".hookbus/hookbus.yaml"), POLICY).expect("a file");
    let mut check = home.command(["hooks", "check", "--json"]);
    let output = check.current_dir(&project).output().expect("hookbus runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!((&report["sound"], &report["files"][0]["missed"]), (&json!(false), &json!(2)));
}

#[test]
fn a_junit_report_has_a_case_per_example() {
    let home = Home::new();
    home.write_hooks_file(POLICY);
    let junit = home.work().join("examples.xml");
    assert_eq!(stdout(&home, &["hooks", "check", "--junit", &path_text(&junit)]).0, Some(1));
    let xml = fs::read_to_string(&junit).expect("a report");
    assert!(
        xml.contains(
            "<testsuite name=\"hookbus hooks check\" tests=\"00000006\" failures=\"00000002\""
        ),
        "{xml}"
    );
    assert!(
        xml.contains("name=\"block: git push origin main\"><failure type=\"missed example\""),
        "{xml}"
    );
}

#[test]
fn the_examples_of_packs_are_run_and_counted_apart() {
    let home = Home::new();
    home.write_hooks_file(&format!("use: [starter]\n{}", sound_policy()));
    let (_, text) = stdout(&home, &["hooks", "check"]);
    assert!(text.contains("4 examples of 2 rules: all as expected"), "{text}");
    assert!(text.contains(" of packs: "), "{text}");
}

#[test]
fn a_command_is_tested_with_what_each_condition_saw() {
    let home = Home::with_hooks(POLICY);
    let text = home.text(&["hooks", "test", "--command", "git push --force origin main"]);
    for part in [
        "terminal git push --force origin main  pre_tool_call of hermes",
        "no-force-push  block",
        "    Force pushes need a person.",
        "when command holds: /git\\s+push\\s.*--force/",
        "unless cwd does not hold: under /nowhere",
        "(hookbus rule",
        "only-gemini\n      it is for gemini only",
        "1 hook for other events or tools did not match; --all lists them",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_fits_a_terminal(&text, &home);
    let gemini = home.text(&["hooks", "test", "--command", "ls", "--agent", "gemini", "--all"]);
    for part in [
        "run_shell_command ls  BeforeTool of gemini",
        "nothing holds this call back",
        "it is for the tools file.write only",
    ] {
        assert!(gemini.contains(part), "{part} in\n{gemini}");
    }
    assert!(!home.path().join("log.db").exists(), "nothing is recorded");
}

#[test]
fn a_path_and_an_address_are_tested_with_the_tools_of_the_agent() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [
            { name: hands-off, tool: file.write, rule: { when: { path: { under: $hookbus } }, block: no } },
            { name: no-ads, tool: web.fetch, rule: { when: { url: { host: ads.example } }, block: no ads } } ] }",
    );
    let policy = path_text(&home.path().join("hookbus.yaml"));
    for agent in ["hermes", "gemini"] {
        let test = |option: &str, value: &str| {
            home.json(&["hooks", "test", "--agent", agent, option, value, "--json"])
        };
        let blocked = test("--path", &policy);
        assert_eq!(blocked["decision"]["outcome"], "block", "{agent}: {blocked}");
        assert_eq!(test("--path", "notes.txt")["decision"], Value::Null, "{agent}");
        let blocked = test("--url", "https://ads.example/x");
        assert_eq!(blocked["decision"]["outcome"], "block", "{agent}: {blocked}");
        let hooks = blocked["hooks"].as_array().expect("hooks");
        assert_eq!((&hooks[0]["matches"], &hooks[1]["matches"]), (&json!(false), &json!(true)));
        assert_eq!(hooks[1]["rule"]["conditions"][0]["holds"], true);
        let read = home.json(&[
            "hooks",
            "test",
            "--agent",
            agent,
            "--path",
            &policy,
            "--for-tool",
            "read_file",
            "--json",
        ]);
        assert_eq!((&read["tool_class"], &read["decision"]), (&json!("file.read"), &Value::Null));
    }
}

#[test]
fn a_command_is_read_from_stdin_and_the_working_directory_counts() {
    let home = Home::with_hooks(POLICY);
    let test = home.command(["hooks", "test", "--command", "-", "--json"]);
    let output = feed(test, b"git push --force\n");
    let report: Value = serde_json::from_str(&output.stdout).expect("a report");
    assert_eq!(report["input"]["command"], "git push --force");
    assert_eq!(report["decision"]["outcome"], "block");
    let work = path_text(&home.work());
    let report = home.json(&["hooks", "test", "--command", "ls", "--cwd", &work, "--json"]);
    assert_eq!(report["cwd"], json!(work));
    let output = home.run(&["hooks", "test", "--command", "ls", "--cwd", "/nonexistent"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot work in /nonexistent"));
}

#[test]
fn a_sample_event_is_shown_as_before_and_needs_its_name() {
    let home = Home::with_hooks(POLICY);
    assert_eq!(home.text(&["hooks", "test", "pre_tool_call"]), "no hook matches this event\n");
    let all = home.text(&["hooks", "test", "pre_tool_call", "--all"]);
    assert!(all.contains("did not match:") && all.contains("no-force-push"), "{all}");
    let output = home.run(&["hooks", "test"]);
    assert_eq!(output.status.code(), Some(1));
    let claude = home.text(&["hooks", "test", "--command", "ls", "--agent", "claude"]);
    assert!(claude.contains("events of claude are recorded only"), "{claude}");
}
