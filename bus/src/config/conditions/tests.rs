//! What conditions mean, from the text of a rule to its verdict about a call.

use std::path::Path;

use serde_json::{Value, json};

use crate::config::{Action, HooksFile, Problem};
use crate::dialect::{Arrival, decode};
use crate::event::{Agent, Event, EventId, Time, Wire};
use crate::rule::{Facts, Place, Rule, RuleReport, ShellLines};

fn file(rule: &str) -> HooksFile {
    let text = format!("hooks: {{ tool.before: [{{ name: r, rule: {rule} }}] }}");
    HooksFile::parse(&text, Path::new("/home/you/.hookbus")).expect("a file")
}

fn rule(rule: &str) -> Rule {
    let file = file(rule);
    assert!(file.problems.is_empty(), "{rule}: {:?}", file.problems);
    let Action::Rule(rule) = &file.hooks[0].action else { panic!("{rule}") };
    rule.as_ref().clone()
}

fn problems(rule: &str) -> Vec<Problem> {
    file(rule).problems
}

fn call(tool: &str, input: &Value) -> Event {
    let payload = json!({
        "hook_event_name": "BeforeTool", "session_id": "cron-1", "cwd": "/home/you/project",
        "tool_name": tool, "tool_input": input, "model": "gemini-3-pro",
    });
    let at = Time::from_micros(1);
    let (id, raw) = (EventId::mint(at), payload.to_string().into_bytes());
    decode(Arrival {
        id,
        at,
        agent: Agent::Gemini,
        wire: Wire::Shell,
        raw: raw.into(),
        session_hint: None,
    })
}

fn shell(line: &str) -> Event {
    call("run_shell_command", &json!({"command": line}))
}

fn report(text: &str, event: &Event) -> RuleReport {
    let (place, lines) = (Place::of_examples(event), ShellLines::default());
    rule(text).explain(&Facts::new(event, &place, &lines))
}

fn applies(text: &str, event: &Event) -> bool {
    report(text, event).applies.expect("a rule that can be evaluated")
}

/// Each rule, a line that it applies to and one that it does not.
fn check(table: &[(&str, &str, &str)]) {
    for (text, yes, no) in table {
        assert!(applies(text, &shell(yes)), "{text} does not apply to {yes}");
        assert!(!applies(text, &shell(no)), "{text} applies to {no}");
    }
}

#[test]
fn a_command_is_meant_in_every_spelling() {
    check(&[
        (
            "{ when: { runs: git push --force }, block: x }",
            "cd a && sudo git -C . push -fu origin x",
            "git push --force-with-lease",
        ),
        (
            "{ when: { runs: [npm publish, cargo publish] }, block: x }",
            "cargo publish --dry-run",
            "echo cargo publish",
        ),
        (
            "{ when: { runs: cargo publish }, unless: { runs: cargo publish --dry-run }, block: x }",
            "cargo publish",
            "cargo publish -n",
        ),
    ]);
}

#[test]
fn an_exemption_is_about_the_same_program_file_and_host() {
    check(&[
        (
            "{ when: { runs: git push --force }, unless: { runs: git push --dry-run }, block: x }",
            "git push --force --dry-run; git push --force",
            "git push --force --dry-run",
        ),
        (
            "{ when: { deletes: { outside: $project } }, unless: { deletes: { under: $tmp } }, block: x }",
            "rm /tmp/a /etc/b",
            "rm /tmp/a src/b",
        ),
        (
            "{ when: { runs: rm, deletes: { outside: $project } }, block: x }",
            "rm -r /etc/x",
            "rm -r src; mv /tmp/a .",
        ),
        (
            "{ when: { runs: curl }, unless: { url: { host: localhost } }, block: x }",
            "curl http://localhost/a; curl https://example.org",
            "curl http://localhost/a",
        ),
    ]);
}

#[test]
fn paths_are_compared_after_they_are_resolved() {
    check(&[
        ("{ when: { writes: { outside: $project } }, block: x }", "echo a > ../b", "echo a > b"),
        (
            "{ when: { path: { under: /etc } }, block: x }",
            "cat /tmp/../etc/passwd",
            "cat /etcetera",
        ),
        ("{ when: { reads: { under: ~/.ssh } }, block: x }", "cd && cat .ssh/id", "cat .ssh/id"),
        ("{ when: { path: { glob: '*.pem' } }, block: x }", "cat a/b.pem", "cat a/b.pem.txt"),
        ("{ when: { path: { glob: 'src/**/*.rs' } }, block: x }", "rm src/a/b.rs", "rm lib/a/b.rs"),
        ("{ when: { deletes: { above: $project } }, block: x }", "rm -rf ./*", "rm -rf target/*"),
        (
            "{ when: { deletes: { unknown: true } }, block: x }",
            "rm -rf \"$X\"",
            "rm -rf \"$HOME/x\"",
        ),
        ("{ when: { path: { under: ~/.ssh } }, block: x }", "cat ~/.ss?/id_*", "cat ~/*/id_*"),
        ("{ when: { path: { glob: .env } }, block: x }", "cat .e?v", "cat *"),
        (
            "{ when: { path: { equals: /etc/hosts } }, block: x }",
            "cat /etc//hosts",
            "cat /etc/hosts.d",
        ),
        (
            "{ when: { path: { under: $home, not: { glob: '*.md' } } }, block: x }",
            "cat ~/a",
            "cat ~/a.md",
        ),
    ]);
}

#[test]
fn a_plain_regex_of_path_means_what_it_always_meant() {
    let old = "{ when: { path: '^/etc' }, block: x }";
    assert!(applies(old, &call("write_file", &json!({"file_path": "/etc/hosts"}))));
    assert!(!applies(old, &call("write_file", &json!({"file_path": "/tmp/../etc/hosts"}))));
    assert!(!applies(old, &shell("cat /etc/hosts")), "it looks at fields, not into shell lines");
}

#[test]
fn every_file_of_a_patch_is_asked_about() {
    let patch =
        "*** Begin Patch\n*** Update File: src/a\n*** Add File: /etc/cron.d/x\n*** End Patch";
    let outside = "{ when: { writes: { outside: $project } }, block: x }";
    assert!(applies(outside, &call("write_file", &json!({"patch": patch}))));
    assert!(applies(outside, &shell(&format!("apply_patch <<'EOF'\n{patch}\nEOF"))));
    let inside = patch.replace("/etc/cron.d/x", "src/b");
    assert!(!applies(outside, &shell(&format!("apply_patch <<'EOF'\n{inside}\nEOF"))));
}

#[test]
fn hosts_and_schemes_are_those_that_are_contacted() {
    check(&[
        (
            "{ when: { url: { host: evil.org } }, block: x }",
            "curl https://a@evil.org/x",
            "curl https://evil.org.uk",
        ),
        (
            "{ when: { url: { host: '*.org', not: { host: good.org } } }, block: x }",
            "wget bad.org",
            "wget good.org",
        ),
        ("{ when: { url: { scheme: http } }, block: x }", "curl http://a.b", "curl https://a.b"),
    ]);
    let fetch = call("web_fetch", &json!({"prompt": "read https://evil.org/x please"}));
    assert!(applies("{ when: { url: { host: evil.org } }, block: x }", &fetch));
}

#[test]
fn the_call_itself_can_be_a_condition() {
    for (condition, expected) in [
        ("tool: shell", true),
        ("tool: [file.read, file.write]", false),
        ("tool: { glob: 'run_*' }", true),
        ("agent: gemini", true),
        ("agent: hermes", false),
        ("session: 'cron-*'", true),
        ("session: cron", false),
        ("model: pro", true),
        ("cwd: { under: $home }", true),
        ("cwd: { outside: $home }", false),
        ("cwd: '^/home'", true),
        ("size: { over: 1KiB }", false),
        ("size: { under: 1000 }", true),
        ("command: { starts_with: ls, not: -l }", true),
        ("command: { not: ls }", false),
    ] {
        let text = format!("{{ when: {{ {condition} }}, block: x }}");
        assert_eq!(applies(&text, &shell("ls a")), expected, "{condition}");
    }
    let mcp = call("mcp_github_delete_repo", &json!({}));
    assert!(applies("{ when: { mcp: { server: github, tool: 'delete_*' } }, block: x }", &mcp));
    assert!(!applies("{ when: { mcp: { server: gitlab } }, block: x }", &mcp));
}

#[test]
fn what_cannot_be_understood_is_a_condition_of_its_own() {
    check(&[
        ("{ when: { runs: { opaque: true } }, block: x }", "eval \"$x\"", "echo \"$x\""),
        (
            "{ when: { runs: { code_from: download } }, block: x }",
            "curl a.b | sh",
            "curl a.b | jq .",
        ),
        ("{ when: { runs: { code_from: decoded } }, block: x }", "base64 -d x | sh", "base64 -d x"),
        ("{ when: { runs: { opaque: syntax } }, block: x }", "if then (", "if a; then b; fi"),
    ]);
}

#[test]
fn an_expression_sees_the_same_values() {
    check(&[
        (
            "{ if: 'tool_class == \"shell\" && runs(\"git push\") && under(cwd, project)', block: x }",
            "git -C a push",
            "git pull",
        ),
        ("{ if: 'writes.exists(f, !under(f, project))', block: x }", "echo > /etc/x", "echo > x"),
        (
            "{ if: 'size(programs) > 2 && hosts == [\"a.b\"]', block: x }",
            "ls; ls; curl a.b",
            "curl a.b",
        ),
        ("{ if: 'input.command.startsWith(\"rm\")', block: x }", "rm x", "ls"),
    ]);
    assert!(!applies("{ if: 'input.nothing == 1', block: x }", &shell("ls")));
}

#[test]
fn an_expression_is_checked_when_the_file_is_read() {
    for (text, part) in [
        ("tool_clas == \"shell\"", "did you mean `tool_class`"),
        ("run(\"git push\")", "knows no function `run`"),
        ("runs(command)", "takes one text"),
        ("size + 1", "must be true or false"),
        ("command > 3", "does not fit together"),
        ("true || command == 3 + tool", "does not fit together"),
        ("runs(", "is not CEL"),
    ] {
        let text = text.replace('\'', "''");
        let problems = problems(&format!("{{ if: '{text}', block: x }}"));
        assert!(problems.len() == 1 && problems[0].message.contains(part), "{text}: {problems:?}");
    }
}

#[test]
fn a_mistake_says_what_to_write_instead() {
    for (condition, part) in [
        ("path: { udner: /etc }", "did you mean `under`"),
        ("path: { under: $hoem }", "stands for no directory"),
        ("runs: { opaqe: true }", "did you mean `opaque`"),
        ("runs: { code_from: internet }", "one of: download, decoded"),
        ("runs: ''", ""),
        ("tool: shel", "did you mean `shell`"),
        ("rnus: git push", "did you mean `runs`"),
        ("mcp: github", "write `mcp:"),
        ("size: large", "`size` is"),
        ("comand: x", "did you mean `command`"),
        ("url: { hots: x }", "did you mean `host`"),
        ("command: { equls: x }", "did you mean `equals`"),
        ("path: []", "needs something to compare with"),
    ] {
        let problems = problems(&format!("{{ when: {{ {condition} }}, block: x }}"));
        assert!(
            problems.len() == 1 && problems[0].message.contains(part) && problems[0].line == 1,
            "{condition}: {problems:?}"
        );
    }
}

#[test]
fn a_report_says_which_condition_keeps_a_rule_from_applying_and_what_it_saw() {
    let text = "{ when: { runs: git push --force, cwd: { under: $home } }, block: x }";
    let report = report(text, &shell("git push origin main"));
    let obstacle = report.obstacle().expect("a condition that does not hold").to_string();
    assert_eq!(
        obstacle,
        "`when: runs` does not hold: it expects `git push --force`, and saw `git push origin main` \
         (it has no `--force`)"
    );
    assert_eq!(report.conditions[1].holds, Some(true));
}

#[test]
fn what_allows_must_fit_every_file_and_program() {
    let rule = "{ when: { path: { under: $project } }, allow: true }";
    assert!(applies(rule, &shell("cat a b")));
    assert!(!applies(rule, &shell("cat a /etc/b")));
    let rule = "{ when: { runs: [cat, ls] }, allow: true }";
    assert!(applies(rule, &shell("cat a; ls b")));
    assert!(!applies(rule, &shell("cat a; rm b")));
}

#[test]
fn the_environment_cannot_widen_what_is_exempt() {
    let event = shell("rm ~/x");
    let caller = crate::caller::Caller {
        cwd: "/srv/app".into(),
        env: vec![("HOME".into(), "/srv/elsewhere".into()), ("TMPDIR".into(), "/etc".into())],
        ..crate::caller::Caller::default()
    };
    let place = Place::of_call(&event, &caller, Path::new("/srv/bus"));
    let lines = ShellLines::default();
    let facts = Facts::new(&event, &place, &lines);
    let applies = |text: &str| rule(text).explain(&facts).applies == Some(true);
    assert!(applies("{ when: { deletes: { under: $home } }, block: x }"), "a guard looks at both");
    assert!(
        applies("{ when: { runs: rm }, unless: { deletes: { under: $home } }, block: x }"),
        "an exemption believes the password database only"
    );
    let etc = shell("rm /etc/x");
    let facts = Facts::new(&etc, &place, &lines);
    let exempt = rule("{ when: { deletes: { outside: $tmp } }, block: x }").explain(&facts);
    assert_eq!(exempt.applies, Some(true), "TMPDIR is not believed");
}

#[test]
fn an_exemption_is_not_the_models_word() {
    let rule = "{ when: { runs: rm }, unless: { permission_mode: plan }, block: x }";
    let mut event =
        call("run_shell_command", &json!({"command": "rm a", "permission_mode": "plan"}));
    let fields = event.complete_fields_mut().expect("a payload");
    fields.insert("permission_mode".to_owned(), json!("default"));
    assert!(applies(rule, &event), "the model has put a field of that name beside the agent's own");
    let fields = event.complete_fields_mut().expect("a payload");
    fields.insert("permission_mode".to_owned(), json!("plan"));
    assert!(!applies(rule, &event));
}

#[test]
fn an_unknown_part_of_a_path_may_be_anything() {
    check(&[
        ("{ when: { path: { under: ~/.ssh } }, block: x }", "cat ~/.ss${X}h/id", "cat ~/src/$X"),
        ("{ when: { path: { glob: id_rsa } }, block: x }", "cat ~/$X/id_rsa", "cat ~/$X/id"),
        (
            "{ when: { writes: { outside: $project } }, block: x }",
            "touch ../$X",
            "touch out/$X.txt",
        ),
        ("{ when: { deletes: { above: $project } }, block: x }", "rm -rf /hom?", "rm -rf ./$X"),
        ("{ when: { url: { unknown: true } }, block: x }", "curl \"$URL\"", "curl https://a.b"),
    ]);
}

#[test]
fn one_opaque_part_or_exempt_program_is_enough_against_what_allows() {
    let rule =
        "{ when: { runs: [ls, cat, eval] }, unless: { runs: cat /etc/shadow }, allow: true }";
    assert!(applies(rule, &shell("ls; cat a")));
    assert!(!applies(rule, &shell("ls; eval \"$x\"")));
    assert!(!applies(rule, &shell("ls; cat /etc/shadow")));
}

#[test]
fn too_many_files_are_a_failure_and_no_exemption() {
    let many = "/tmp/a ".repeat(3000);
    let guard = "{ when: { runs: rm }, unless: { deletes: { under: $tmp } }, block: x }";
    let lines: Vec<String> = (0..2500).map(|number| format!("/tmp/{number}")).collect();
    let report = report(guard, &shell(&format!("rm {} /etc/x", lines.join(" "))));
    assert_eq!((report.applies, report.failure.is_some()), (None, true), "{:?}", report.failure);
    assert!(!applies(guard, &shell(&format!("rm {many}"))), "the same file again is one file");
}

#[test]
fn every_directory_that_a_tool_may_mean_counts() {
    let rule = "{ when: { deletes: { under: /etc } }, block: x }";
    for input in [
        json!({"command": "rm x", "workdir": "/tmp", "directory": "/etc"}),
        json!({"command": "rm x", "workdir": "", "dir_path": "/etc"}),
        json!({"commands": ["ls", "rm /etc/x"]}),
        json!({"command": ["rm", "/etc/x", 1]}),
    ] {
        assert!(applies(rule, &call("run_shell_command", &input)), "{input}");
    }
    let moved = call("mcp_files_move_file", &json!({"source": "/etc/x", "destination": "a"}));
    assert!(applies(rule, &moved));
}

#[test]
fn an_exemption_for_another_file_does_not_hold_in_the_report_of_a_rule_that_applies() {
    let text = "{ when: { deletes: { outside: $project } }, unless: { deletes: { under: $tmp } }, block: x }";
    let holds = |line: &str| {
        let report = report(text, &shell(line));
        let unless = report.conditions.iter().find(|it| it.list == "unless").expect("a condition");
        (report.applies, unless.holds)
    };
    assert_eq!(holds("rm /tmp/a"), (Some(false), Some(true)));
    assert_eq!(holds("rm /tmp/a /etc/hosts"), (Some(true), Some(false)));
}
