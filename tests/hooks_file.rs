//! `hookbus.yaml`: what its entries do, and the messages about its mistakes.

use hookbus_tests::home::{Home, feed, is_alive, wait_until};
use hookbus_tests::payloads::{self, gemini_shell, hermes_shell};
use serde_json::{Value, json};

#[test]
fn a_hooks_section_of_hermes_works_unchanged() {
    let home = Home::new();
    let block = home.script(
        "block.sh",
        "#!/bin/sh\ncat >/dev/null\necho '{\"decision\":\"block\",\"reason\":\"by script\"}'\n",
    );
    home.write_hooks(&format!(
        "hooks:\n  output_spill:\n    enabled: true\n  pre_tool_call:\n    - matcher: \"term.*\"\n      command: \"{block}\"\n      timeout: 10\n  \
         post_tool_call:\n    - command: 'true'\nhooks_auto_accept: false\n"
    ));
    assert_eq!(
        home.answer("hermes", &hermes_shell("ls")),
        json!({"decision": "block", "reason": "by script"})
    );
    let mut other = hermes_shell("ls");
    other["tool_name"] = json!("my_terminal");
    assert_eq!(home.answer("hermes", &other), Value::Null, "Hermes matches whole names");
    assert_eq!(home.text(&["hooks", "list"]).lines().count(), 2);
}

#[test]
fn the_list_form_of_hermes_plugin_guide_is_read_too() {
    let home = Home::new();
    let note = home.script("note.sh", "#!/bin/sh\nprintf '%s\\n' \"$@\" > args.txt\n");
    home.write_hooks(&format!(
        "hooks:\n  - event: post_tool_call\n    command: \"{note} 'Tool ran: {{tool_name}}' {{unknown}} {{status}}\"\n    when:\n      tools: [terminal, patch]\n"
    ));
    let mut payload = payloads::one("hermes", "post_tool_call");
    payload["tool_name"] = json!("terminal");
    home.answer("hermes", &payload);
    let args = std::fs::read_to_string(home.work().join("args.txt")).expect("the hook ran");
    assert_eq!(args, "Tool ran: terminal\n{unknown}\nok\n");
    payload["tool_name"] = json!("read_file");
    home.answer("hermes", &payload);
    assert_eq!(home.decisions().len(), 1, "only the tools it names");
}

#[test]
fn the_value_of_a_placeholder_stays_one_argument() {
    let home = Home::new();
    let note = home.script("note.sh", "#!/bin/sh\nprintf '%s\\n' \"$#\" > count.txt\n");
    home.write_hooks(&format!(
        "hooks:\n  - event: pre_tool_call\n    command: \"{note} {{tool_name}}\"\n"
    ));
    let mut payload = hermes_shell("ls");
    payload["tool_name"] = json!("a b'; touch pwned; '");
    home.answer("hermes", &payload);
    assert_eq!(std::fs::read_to_string(home.work().join("count.txt")).expect("it ran"), "1\n");
    assert!(!home.work().join("pwned").exists());
}

#[test]
fn every_kind_of_rule_answer_is_encoded_for_gemini() {
    let cases = [
        (
            "block: because",
            json!({"decision": "deny", "reason": "because (hookbus rule BeforeTool#1)"}),
            "block",
        ),
        (
            "stop: enough",
            json!({"continue": false, "stopReason": "enough (hookbus rule BeforeTool#1)"}),
            "stop",
        ),
        ("allow: true", Value::Null, "allow"),
        (
            "rewrite: {command: ls}",
            json!({"hookSpecificOutput": {"hookEventName": "BeforeTool",
                   "tool_input": {"command": "ls", "description": "a test"}}}),
            "rewrite",
        ),
        // This Gemini has no terminal; told to ask, it would end the session without a message.
        (
            "ask: are you sure",
            json!({"decision": "deny",
                   "reason": "are you sure (no person can be asked here, so it is blocked) (hookbus rule BeforeTool#1)"}),
            "block",
        ),
        // Gemini accepts no context here; that is no reason to block.
        ("context: by the way", Value::Null, "none"),
    ];
    for (answer, expected, outcome) in cases {
        let home = Home::with_hooks(&format!("hooks:\n  BeforeTool:\n    - rule: {{{answer}}}\n"));
        assert_eq!(home.answer("gemini", &gemini_shell("rm x")), expected, "{answer}");
        assert_eq!(home.decisions()[0]["outcome"], outcome, "{answer}");
    }
}

#[test]
fn an_answer_that_hermes_does_not_accept_becomes_a_block_unless_on_failure_is_allow() {
    for (answer, policy, blocked) in [
        ("rewrite: {command: ls}", "", true),
        ("rewrite: {command: ls}", "on_failure: allow", false),
        ("ask: sure?", "", true),
        ("ask: sure?", "on_failure: allow", false),
        ("stop: enough", "", true),
        ("stop: enough", "on_failure: allow", false),
    ] {
        let home = Home::with_hooks(&format!(
            "hooks:\n  tool.before:\n    - rule: {{{answer}}}\n      {policy}\n"
        ));
        let sent = home.answer("hermes", &hermes_shell("rm x"));
        assert_eq!(sent["decision"] == "block", blocked, "{answer} {policy}: {sent}");
        let decision = &home.decisions()[0];
        assert_eq!(decision["outcome"], if blocked { "block" } else { "none" });
        let note = decision["verdicts"][0]["note"].as_str().expect("a note");
        assert!(note.contains(if blocked { "blocked instead" } else { "left out" }), "{note}");
    }
}

#[test]
fn a_question_that_cannot_be_asked_blocks_and_the_reason_says_so() {
    let home = Home::with_hooks("hooks: {tool.before: [{name: asker, rule: {ask: sure?}}]}");
    let reason = "sure? (no person can be asked here, so it is blocked) (hookbus rule asker)";
    let shell = home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(shell, json!({"decision": "block", "reason": reason}));
    let mut bridge = home.command(["hook", "hermes", "--wire", "bridge"]);
    bridge.env("HERMES_YOLO_MODE", "1");
    let output = feed(bridge, hermes_shell("ls").to_string().as_bytes());
    let answer: Value = serde_json::from_str(&output.stdout).expect("an answer");
    assert_eq!(answer, json!({"action": "block", "message": reason}));
    // The hook's own reason is recorded unchanged.
    for decision in home.decisions() {
        assert_eq!(decision["verdicts"][0]["reason"], "sure?");
    }
    // A question without a reason gets one.
    let silent = home.script(
        "silent.sh",
        "#!/bin/sh\necho '{\"hookSpecificOutput\": {\"permissionDecision\": \"ask\"}}'\n",
    );
    home.write_hooks(&format!("hooks: {{tool.before: [{{name: silent, command: {silent}}}]}}"));
    assert_eq!(
        home.answer("hermes", &hermes_shell("ls"))["reason"],
        "hook `silent` wanted to ask a person, and no person can be asked"
    );
}

#[test]
fn the_note_names_what_the_hook_wanted_to_change() {
    let home = Home::with_hooks(
        "hooks:\n  turn.output: [{name: t, rule: {rewrite: {text: x}}}]\n  \
         tool.output: [{name: o, rule: {rewrite: {text: x}}}]\n  \
         message.in: [{name: m, rule: {rewrite: {text: x}}}]\n  \
         command: [{name: c, rule: {rewrite: {command: x}}}]\n  \
         tool.before: [{name: b, rule: {rewrite: {command: x}}}]\n",
    );
    for (event, wanted) in [
        ("transform_llm_output", "another text"),
        ("transform_tool_result", "another text"),
        ("pre_gateway_dispatch", "another text"),
        ("command:reset", "another command"),
        ("pre_tool_call", "another tool input"),
    ] {
        home.answer("hermes", &json!({"hook_event_name": event, "session_id": "s", "extra": {}}));
        let decision = home.last_decision();
        let note = decision["verdicts"][0]["note"].as_str().expect("a note");
        let start = format!("wanted {wanted}, which hermes does not accept here");
        assert!(note.starts_with(&start), "{event}: {note}");
    }
}

#[test]
fn conditions_look_in_the_tool_input_and_then_in_the_payload() {
    let cases = [
        ("command: 'git\\s+push'", hermes_shell("git  push --force"), "hermes", true),
        ("command: 'git\\s+push'", hermes_shell("git pull"), "hermes", false),
        ("{command: push, cwd: project}", hermes_shell("git push"), "hermes", true),
        ("{command: push, cwd: nowhere}", hermes_shell("git push"), "hermes", false),
        ("extra.tool_call_id: call_2", hermes_shell("x"), "hermes", true),
        ("path: 'hello\\.txt$'", payloads::one("gemini", "BeforeTool"), "gemini", true),
        ("text: 'from model'", payloads::one("gemini", "BeforeTool"), "gemini", true),
        ("command: ['never', 'pu.h']", hermes_shell("git push"), "hermes", true),
    ];
    for (when, payload, agent, applies) in cases {
        let when = if when.starts_with('{') { when.to_owned() } else { format!("{{{when}}}") };
        let home = Home::with_hooks(&format!(
            "hooks:\n  tool.before:\n    - rule: {{when: {when}, block: no}}\n"
        ));
        assert_eq!(home.answer(agent, &payload) != Value::Null, applies, "{when}");
        assert_eq!(
            home.log(&["--kind", "decision"]).len(),
            usize::from(applies),
            "no decision row without a verdict"
        );
    }
}

#[test]
fn an_answer_with_an_unknown_word_is_a_failure_and_its_policy_decides() {
    for (event, agent) in [
        ("tool.before", "hermes"),
        ("tool.before", "gemini"),
        ("pre_tool_call", "hermes"),
        ("BeforeTool", "gemini"),
    ] {
        let payload = if agent == "hermes" { hermes_shell("x") } else { gemini_shell("x") };
        for (answer, is_known) in [
            (r#"{"decision":"blok","reason":"why"}"#, false),
            (r#"{"action":"blcok","message":"why"}"#, false),
            (r#"{"hookSpecificOutput":{"permissionDecision":"denied"}}"#, false),
            (r#"{"hookSpecificOutput":{"decision":{"behavior":"dney"}}}"#, false),
            (r#"{"decision":"Approve"}"#, true),
            (r#"{"decision":""}"#, true),
            (r#"{"decision":null}"#, true),
            (r#"{"hookSpecificOutput":{"permissionDecision":"allow"}}"#, true),
        ] {
            for policy in ["block", "allow"] {
                let what = format!("{event}, {agent}, {policy}: {answer}");
                let home = Home::new();
                let text = format!("#!/bin/sh\ncat >/dev/null\necho '{answer}'\n");
                let script = home.script("hook.sh", &text);
                home.write_hooks(&format!(
                    "hooks:\n  {event}:\n    - command: {script}\n      on_failure: {policy}\n"
                ));
                let said = home.answer(agent, &payload).to_string();
                let is_blocked = policy == "block" && !is_known;
                assert_eq!(
                    said.contains("unknown word") && said.contains("\"decision\""),
                    is_blocked,
                    "{what}: {said}"
                );
                let verdict = home.last_decision()["verdicts"][0].clone();
                assert_eq!(verdict["failed"] == true, !is_known, "{what}: {verdict}");
            }
        }
    }
}

#[test]
fn under_a_kind_scripts_can_answer_in_any_dialect() {
    let blocks = [
        r#"echo '{"decision":"block","reason":"why"}'"#,
        r#"echo '{"action":"block","message":"why"}'"#,
        r#"echo '{"decision":"deny","reason":"why"}'"#,
        r#"echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"why"}}'"#,
        r#"echo '{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"why"}}}'"#,
        "echo why >&2; exit 2",
    ];
    for body in blocks {
        let home = Home::new();
        let script = home.script("hook.sh", &format!("#!/bin/sh\ncat >/dev/null\n{body}\n"));
        home.write_hooks(&format!("hooks:\n  tool.before:\n    - command: {script}\n"));
        assert_eq!(home.answer("hermes", &hermes_shell("x"))["reason"], "why", "hermes: {body}");
        assert_eq!(home.answer("gemini", &gemini_shell("x"))["reason"], "why", "gemini: {body}");
    }
    for body in [
        r#"echo '{"context":"news"}'"#,
        r#"echo '{"hookSpecificOutput":{"additionalContext":"news"}}'"#,
        "echo news",
    ] {
        let home = Home::new();
        let script = home.script("hook.sh", &format!("#!/bin/sh\ncat >/dev/null\n{body}\n"));
        home.write_hooks(&format!("hooks:\n  turn.start:\n    - command: {script}\n"));
        let turn = payloads::one("hermes", "pre_llm_call");
        assert_eq!(home.answer("hermes", &turn), json!({"context": "news"}), "{body}");
        let turn = payloads::one("gemini", "BeforeAgent");
        assert_eq!(
            home.answer("gemini", &turn)["hookSpecificOutput"]["additionalContext"],
            "news",
            "{body}"
        );
    }
}

#[test]
fn on_failure_decides_what_a_failing_hook_does() {
    let failures = ["exit 1", "echo garbage", "kill -KILL $$", "sleep 30"];
    for body in failures {
        for (policy, blocked) in
            [("", false), ("on_failure: block", true), ("fail_closed: true", true)]
        {
            let home = Home::new();
            let script = home.script("hook.sh", &format!("#!/bin/sh\ncat >/dev/null\n{body}\n"));
            home.write_hooks(&format!(
                "hooks:\n  tool.before:\n    - command: {script}\n      timeout: 0.5\n      {policy}\n"
            ));
            let answer = home.answer("gemini", &gemini_shell("x"));
            assert_eq!(answer["decision"] == "deny", blocked, "{body} {policy}: {answer}");
            let verdict = &home.decisions()[0]["verdicts"][0];
            assert_eq!(verdict["failed"], true, "{body}");
            assert_eq!(verdict["policy"], if blocked { "block" } else { "allow" });
        }
    }
}

#[test]
fn a_hook_that_times_out_is_killed_with_its_children() {
    let home = Home::new();
    let script = home.script("hook.sh", "#!/bin/sh\nsleep 60 &\necho $! > child.pid\nwait\n");
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - command: {script}\n      timeout: 5\n"
    ));
    home.answer("hermes", &hermes_shell("x"));
    let child = std::fs::read_to_string(home.work().join("child.pid")).expect("it ran");
    wait_until("the child is gone", || !is_alive(child.trim()));
}

#[test]
fn a_background_child_of_a_hook_does_not_delay_the_answer() {
    let home = Home::new();
    let script = home.script(
        "hook.sh",
        "#!/bin/sh\n(until [ -e go ]; do sleep 0.05; done; touch gone) &\n\
         echo '{\"decision\":\"block\",\"reason\":\"quick\"}'\n",
    );
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - command: {script}\n      timeout: 20\n"
    ));
    // If hookbus waited for the end of the pipe, the timeout would come first and discard the answer.
    assert_eq!(home.answer("hermes", &hermes_shell("x"))["reason"], "quick");
    std::fs::write(home.work().join("go"), "").expect("a file");
    wait_until("the child was not killed, and has ended", || home.work().join("gone").exists());
}

#[test]
fn hooks_run_concurrently_and_are_merged_in_the_order_of_the_file() {
    let home = Home::new();
    let slow = home.script(
        "slow.sh",
        "#!/bin/sh\ncat >/dev/null\nsleep 0.4\necho '{\"context\":\"first\"}'\n",
    );
    let quick =
        home.script("quick.sh", "#!/bin/sh\ncat >/dev/null\necho '{\"context\":\"second\"}'\n");
    home.write_hooks(&format!(
        "hooks:\n  turn.start:\n    - command: {slow}\n    - command: {quick}\n    - rule: {{context: third}}\n"
    ));
    let answer = home.answer("hermes", &payloads::one("hermes", "pre_llm_call"));
    assert_eq!(answer, json!({"context": "first\n\nsecond\n\nthird"}));
    let answer = home.answer("gemini", &payloads::one("gemini", "BeforeAgent"));
    assert_eq!(answer["hookSpecificOutput"]["additionalContext"], "first\nsecond\nthird");
}

#[test]
fn a_sequential_hook_gets_the_input_that_the_hook_before_rewrote() {
    let home = Home::new();
    let add = home.script(
        "add.py",
        "#!/usr/bin/env python3\nimport json, sys\ne = json.load(sys.stdin)\ni = dict(e['tool_input'])\n\
         i['command'] += sys.argv[1]\nprint(json.dumps({'hookSpecificOutput': {'tool_input': i}}))\n",
    );
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - {{command: {add} b, sequential: true}}\n    - {{command: {add} c}}\n"
    ));
    let answer = home.answer("gemini", &gemini_shell("a"));
    assert_eq!(answer["hookSpecificOutput"]["tool_input"]["command"], "abc");
}

#[test]
fn a_mistake_is_reported_with_its_line_and_a_correction() {
    let yaml = "\
hooks:
  pre_tool_cal:
    - command: x
  tool.before:
    - name: bad-regex
      rule: { when: { command: '(' }, block: no }
    - name: bad-class
      tool: shel
      rule: { block: no }
    - rule: { blok: no }
    - {}
    - command: x
      timeot: 5
    - command: y
      on_failure: maybe
  BeforeTool: {command: x}
";
    let home = Home::with_hooks(yaml);
    let listed = home.run(&["hooks", "list"]);
    assert_eq!(listed.status.code(), Some(1));
    let listed = String::from_utf8_lossy(&listed.stdout);
    for message in [
        "hookbus.yaml:2: unknown event `pre_tool_cal`; did you mean `pre_tool_call`?",
        "hookbus.yaml:6: `(` is not a regex",
        "hookbus.yaml:8: unknown tool class `shel`; did you mean `shell`?",
        "hookbus.yaml:10: a rule has no `blok`; did you mean `block`?",
        "hookbus.yaml:11: this hook does nothing",
        "hookbus.yaml:13: `timeot` means nothing here; did you mean `timeout`?",
        "hookbus.yaml:15: `on_failure` is `allow` or `block`",
        "hookbus.yaml:16: `BeforeTool` needs a list of hooks",
    ] {
        assert!(listed.contains(message), "{message}\nis not in\n{listed}");
    }
}

#[test]
fn a_failure_policy_without_a_value_or_with_a_wrong_one_counts_as_block() {
    for policy in ["on_failure:", "on_failure: maybe", "fail_closed:", "fail_closed: ture"] {
        let home = Home::with_hooks(&format!(
            "hooks:\n  tool.before:\n    - name: a\n      command: 'false'\n      {policy}\n"
        ));
        let answer = home.answer("hermes", &hermes_shell("ls"));
        assert_eq!(answer["decision"], "block", "{policy}");
        let listed = String::from_utf8_lossy(&home.run(&["hooks", "list"]).stdout).into_owned();
        assert!(listed.contains("hookbus.yaml:5: `"), "{policy}: {listed}");
        assert!(listed.contains("on failure: block"), "{policy}: {listed}");
    }
    let home = Home::with_hooks("on_failure:\nhooks: {}\n");
    let answer = home.hook("gemini", "an event that cannot be read").stdout;
    assert!(answer.contains("deny"), "the same for the whole file: {answer}");
}

#[test]
fn a_filter_without_a_value_leaves_the_guard_in_force_and_an_empty_one_is_a_mistake() {
    let guard = |filter: &str| {
        format!(
            "hooks:\n  tool.before:\n    - name: a\n      {filter}\n      rule: {{ block: no }}\n"
        )
    };
    let home = Home::new();
    for filter in ["session:", "tool:", "agent:", "matcher:"] {
        home.write_hooks(&guard(filter));
        assert_eq!(
            home.answer("hermes", &hermes_shell("ls"))["reason"],
            "no (hookbus rule a)",
            "{filter}"
        );
        assert!(home.run(&["hooks", "list"]).status.success(), "{filter}: for everything");
    }
    // It was good before, so it stays as it was.
    for filter in ["session: ''", "session: '  '", "session: [a, b]"] {
        home.write_hooks(&guard(filter));
        assert_eq!(
            home.answer("hermes", &hermes_shell("ls"))["reason"],
            "no (hookbus rule a)",
            "{filter}"
        );
        let listed = String::from_utf8_lossy(&home.run(&["hooks", "list"]).stdout).into_owned();
        assert!(listed.contains("`session` is one id"), "{filter}: {listed}");
    }
}

#[test]
fn a_broken_entry_counts_as_failed() {
    let entry = "hooks:\n  tool.before:\n    - name: typo\n      tool: shell\n      rule: { when: { command: '(' }, block: no }\n";
    let home = Home::with_hooks(entry);
    assert_eq!(home.answer("hermes", &hermes_shell("ls")), Value::Null);
    assert_eq!(home.decisions()[0]["verdicts"][0]["failed"], true);
    home.write_hooks(&format!("{entry}      on_failure: block\n"));
    assert_eq!(home.answer("hermes", &hermes_shell("ls"))["decision"], "block");
    let read = payloads::one("hermes", "pre_tool_call.nested_execute_code_no_session");
    assert_eq!(home.answer("hermes", &read), Value::Null, "only for tools that it matches");
}

#[test]
fn a_broken_file_leaves_its_last_good_version_active() {
    let good =
        "trust: home\nhooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: kept}\n";
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks(good);
        let _daemon = (mode == "running").then(|| home.serve());
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm x"))["reason"],
            "kept (hookbus rule tool.before#1)"
        );
        home.write_hooks("hooks:\n  tool.before:\n   - rule: {block: [\n");
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm x"))["reason"],
            "kept (hookbus rule tool.before#1)",
            "{mode}"
        );
        let listed = home.run(&["hooks", "list"]);
        let text = String::from_utf8_lossy(&listed.stdout);
        assert!(text.contains("its last good version is in force"), "{text}");
        assert!(text.contains("hookbus.yaml:"), "{text}");
        assert_eq!(listed.status.code(), Some(1));
        home.write_hooks(
            "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: fixed}\n",
        );
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm x"))["reason"],
            "fixed (hookbus rule tool.before#1)",
            "{mode}: re-read"
        );
        let loaded = home.log(&["--kind", "hooks.loaded"]);
        assert_eq!(loaded.len(), 2, "each version once");
        assert_eq!(loaded[0]["payload"]["content"], good);
        let decisions = home.decisions();
        assert_eq!(decisions[0]["hooks"], loaded[0]["payload"]["hash"]);
        assert_eq!(decisions[2]["hooks"], loaded[1]["payload"]["hash"]);
    }
}

#[test]
fn the_same_command_twice_runs_once() {
    let home = Home::new();
    let count = home.script("count.sh", "#!/bin/sh\necho x >> ran.txt\n");
    home.write_hooks(&format!(
        "hooks:\n  pre_tool_call:\n    - command: {count}\n    - {{command: {count}, timeout: 5}}\n"
    ));
    home.answer("hermes", &hermes_shell("ls"));
    assert_eq!(std::fs::read_to_string(home.work().join("ran.txt")).expect("it ran"), "x\n");
}

#[test]
fn a_verdict_has_the_hash_of_the_script_that_gave_it() {
    let home = Home::new();
    let text = "#!/bin/sh\ncat >/dev/null\n";
    let script = home.script("hook.sh", text);
    home.write_hooks(&format!("hooks:\n  tool.before:\n    - command: sh {script}\n"));
    home.answer("hermes", &hermes_shell("ls"));
    home.script("hook.sh", "#!/bin/sh\ncat >/dev/null\n# changed\n");
    home.answer("hermes", &hermes_shell("ls"));
    let scripts: Vec<Value> =
        home.decisions().iter().map(|decision| decision["verdicts"][0]["script"].clone()).collect();
    assert!(
        scripts.iter().all(|hash| hash.as_str().is_some_and(|hash| hash.len() == 64)),
        "{scripts:?}"
    );
    assert_ne!(scripts[0], scripts[1]);
}

#[test]
fn continuations_are_limited() {
    let home = Home::with_hooks(
        "max_continuations: 3\nhooks:\n  AfterAgent:\n    - rule: {block: not done yet}\n",
    );
    let mut done = payloads::one("gemini", "AfterAgent");
    assert_eq!(home.answer("gemini", &done)["decision"], "deny");
    done["stop_hook_active"] = json!(true);
    let decisions: Vec<Value> =
        (0..4).map(|_| home.answer("gemini", &done)["decision"].clone()).collect();
    assert_eq!(decisions, [json!("deny"), json!("deny"), Value::Null, Value::Null]);
    let first_allowed = home.decisions()[3].clone();
    let note = first_allowed["note"].as_str().unwrap_or_default();
    for text in ["told to continue 3 times in a row", "max_continuations"] {
        assert!(note.contains(text), "{first_allowed}");
    }
    done["stop_hook_active"] = json!(false);
    assert_eq!(home.answer("gemini", &done)["decision"], "deny", "each turn is counted separately");
}

#[test]
fn path_and_command_are_found_under_the_names_that_tools_use() {
    let cases = [
        ("gemini", "read_many_files", json!({"include": ["src/*.rs", ".env"]}), "path: '\\.env$'"),
        (
            "hermes",
            "patch",
            json!({"mode": "patch", "patch": "*** Begin Patch\n*** Update File: .env\n+x"}),
            "path: '\\.env$'",
        ),
        ("hermes", "process", json!({"action": "submit", "data": "rm -rf /"}), "command: 'rm -rf'"),
        ("hermes", "terminal", json!({"command": ["rm", "-rf", "/"]}), "command: 'rm -rf /'"),
    ];
    for (agent, tool, input, when) in cases {
        let home = Home::with_hooks(&format!(
            "hooks:\n  tool.before:\n    - rule: {{when: {{{when}}}, block: no}}\n"
        ));
        let mut payload = if agent == "hermes" { hermes_shell("x") } else { gemini_shell("x") };
        payload["tool_name"] = json!(tool);
        payload["tool_input"] = input;
        assert_eq!(
            home.answer(agent, &payload)["reason"],
            "no (hookbus rule tool.before#1)",
            "{tool} {when}"
        );
    }
}

#[test]
fn merge_keys_are_read_and_a_second_document_is_refused() {
    let home = Home::with_hooks(
        "base: &base {tool: shell, on_failure: block}\nhooks:\n  tool.before:\n    - {<<: *base, rule: {block: no}}\n",
    );
    assert_eq!(
        home.answer("hermes", &hermes_shell("ls"))["reason"],
        "no (hookbus rule tool.before#1)"
    );
    let read = payloads::one("hermes", "pre_tool_call.nested_execute_code_no_session");
    assert_eq!(home.answer("hermes", &read), Value::Null, "the merged `tool` applies");
    home.write_hooks("hooks: {}\n---\nhooks: {}\n");
    let listed = home.run(&["hooks", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("one document"), "{listed:?}");
}

#[test]
fn an_entry_without_a_dash_counts_as_failed() {
    let home = Home::with_hooks(
        "hooks:\n  tool.before: {on_failure: block, rule: {when: {command: rm}, block: no}}\n",
    );
    assert_eq!(home.answer("hermes", &hermes_shell("ls"))["decision"], "block");
}

#[test]
fn a_matcher_that_is_no_regex_is_a_failure() {
    let home = Home::with_hooks(
        "hooks:\n  pre_tool_call:\n    - {matcher: 'term(inal', on_failure: block, rule: {block: no}}\n    - {matcher: 'terminal\\Z', rule: {block: end}}\n",
    );
    assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(1));
    assert_eq!(home.answer("hermes", &hermes_shell("ls"))["decision"], "block");
}

#[test]
fn a_field_in_the_tools_input_does_not_hide_the_agents_own() {
    let home = Home::with_hooks(
        "hooks:
  tool.before:
    - { name: not-in-prod, rule: { when: { cwd: '^/prod', command: deploy }, block: not here } }
    - { name: fine-at-home, rule: { when: { cwd: '^/home/me' }, allow: true } }
",
    );
    let call = |cwd: &str, input: Value| {
        let call = json!({"hook_event_name": "BeforeTool", "session_id": "s", "cwd": cwd,
            "tool_name": "run_shell_command", "tool_input": input});
        home.answer("gemini", &call)
    };
    for input in [json!({"command": "deploy"}), json!({"command": "deploy", "cwd": "/tmp"})] {
        assert_eq!(call("/prod", input)["decision"], "deny");
    }
    call("/home/me", json!({"command": "ls"}));
    assert_eq!(home.last_decision()["verdicts"][0]["hook"], "fine-at-home");
    let decisions = home.decisions().len();
    call("/srv", json!({"command": "ls", "cwd": "/home/me"}));
    assert_eq!(home.decisions().len(), decisions, "the model's word allows nothing");
}

#[test]
fn look_around_and_back_references_work_in_matchers_and_rules() {
    let home = Home::with_hooks(
        "hooks:\n  pre_tool_call:\n    - {matcher: '(?!read_).*', rule: {block: hermes}}\n  \
         BeforeTool:\n    - {matcher: '(?<!safe_)run_shell', rule: {block: gemini}}\n  \
         tool.before:\n    - {matcher: '(?=.*term).*', rule: {when: {command: ['rm (?!-i)', '(\\w)\\1\\1\\1']}, block: kind}}\n",
    );
    assert_eq!(home.run(&["hooks", "list"]).status.code(), Some(0));
    let hermes = |tool: &str, command: &str| {
        let mut payload = hermes_shell(command);
        payload["tool_name"] = json!(tool);
        home.answer("hermes", &payload)["reason"].clone()
    };
    assert_eq!(hermes("write_file", "ls"), "hermes (hookbus rule pre_tool_call#1)");
    assert_eq!(hermes("read_file", "ls"), Value::Null);
    assert_eq!(hermes("read_term", "rm -i x"), Value::Null);
    assert_eq!(hermes("read_term", "rm x"), "kind (hookbus rule tool.before#1)");
    assert_eq!(hermes("read_term", "echo aaaa"), "kind (hookbus rule tool.before#1)");
    assert_eq!(
        home.answer("gemini", &gemini_shell("ls"))["reason"],
        "gemini (hookbus rule BeforeTool#1)"
    );
}

#[test]
fn a_regex_that_gives_up_does_not_let_the_call_pass() {
    for (policy, decision) in [("", json!("block")), ("on_failure: allow", Value::Null)] {
        let home = Home::with_hooks(&format!(
            "hooks:\n  tool.before:\n    - {{name: guard, rule: {{when: {{command: 'rm (?!-i)'}}, block: no}}, {policy}}}\n"
        ));
        // Longer than the engine takes; the command at its end would be found.
        let long = format!("echo {}; rm x", "x".repeat(40_000));
        let answer = home.answer("hermes", &hermes_shell(&long));
        assert_eq!(answer["decision"], decision, "{answer}");
        let verdict = home.last_decision()["verdicts"][0].clone();
        assert_eq!(verdict["failed"], true, "{verdict}");
        assert!(verdict["failure"].to_string().contains("look-around"), "{verdict}");
        assert_eq!(home.answer("hermes", &hermes_shell("ls")), Value::Null);
    }
    let home = Home::with_hooks(
        "hooks:\n  pre_tool_call:\n    - {name: guard, matcher: '(a|aa)+\\1b', rule: {context: x}}\n",
    );
    let mut payload = hermes_shell("ls");
    payload["tool_name"] = json!("a".repeat(60));
    assert_eq!(home.answer("hermes", &payload)["decision"], "block", "the matcher gave up");
    assert!(home.last_decision().to_string().contains("steps"), "{}", home.last_decision());
}

#[test]
fn of_two_gemini_entries_that_run_once_the_stricter_policy_counts() {
    let home = Home::new();
    let fails = home.script("fails.sh", "#!/bin/sh\ncat >/dev/null\nexit 1\n");
    home.write_hooks(&format!(
        "hooks:\n  BeforeTool:\n    - {{name: g, command: {fails}, matcher: run_shell_command}}\n    \
         - {{name: g, command: {fails}, matcher: 'run_.*', on_failure: block}}\n"
    ));
    assert_eq!(home.answer("gemini", &gemini_shell("ls"))["decision"], "deny");
    assert_eq!(home.decisions()[0]["verdicts"].as_array().map(Vec::len), Some(1), "it ran once");
}

#[test]
fn under_a_kind_only_a_block_counts_from_a_program_that_then_fails() {
    let cases = [
        (r#"{"decision":"block","reason":"why"}"#, 1, false, "block"),
        (r#"{"decision":"allow"}"#, 1, true, "block"),
        (r#"{"context":"news"}"#, 3, true, "block"),
        ("{}", 1, true, "block"),
        (r#"{"decision":"allow"}"#, 2, false, "block"),
        (r#"{"decision":"allow"}"#, 0, false, "allow"),
    ];
    for (json, exit, failed, outcome) in cases {
        let home = Home::new();
        let script = home
            .script("hook.sh", &format!("#!/bin/sh\ncat >/dev/null\necho '{json}'\nexit {exit}\n"));
        home.write_hooks(&format!(
            "hooks:\n  tool.before:\n    - {{command: {script}, on_failure: block}}\n"
        ));
        home.answer("hermes", &hermes_shell("ls"));
        let decision = home.last_decision();
        assert_eq!(decision["verdicts"][0]["failed"] == true, failed, "{json} {exit}: {decision}");
        assert_eq!(decision["outcome"], outcome, "{json} {exit}: {decision}");
    }
}

#[test]
fn two_entries_with_different_environments_both_run() {
    let home = Home::new();
    let say = home.script(
        "say.sh",
        "#!/bin/sh\necho \"{\\\"decision\\\":\\\"$D\\\",\\\"reason\\\":\\\"$D\\\"}\"\n",
    );
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - {{command: {say}, env: {{D: allow}}}}\n    - {{command: {say}, env: {{D: block}}}}\n"
    ));
    assert_eq!(home.answer("hermes", &hermes_shell("ls"))["reason"], "block");
}
