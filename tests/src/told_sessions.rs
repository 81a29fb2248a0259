//! Sessions of the four agents with everything that a reader should see: a failed command, blocks, questions, a denied model
//! request, sub-agents, emoji and wide text; and what `hookbus` prints about them in a window of some width.

use regex::Regex;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::home::Home;
use crate::told::{event, matches_snapshot, stable, tell};

/// The hooks of these sessions.
pub const POLICY: &str = "name: snapshots
hooks:
  tool.before:
    - { name: no-force-push, rule: { when: { command: 'push --force' }, block: Force pushes need a person. } }
    - { name: look-first, mode: shadow, rule: { when: { command: 'deploy' }, block: Not on a Friday. } }
  AfterTool:
    - { name: no-leak, rule: { when: { command: 'printenv' }, block: The output holds secrets. } }
  BeforeModel:
    - { name: budget, rule: { when: { model: 'costly' }, block: The budget is spent. } }
  turn.start:
    - { name: house-rules, rule: { context: 'Run the tests. 👩‍💻 漢字' } }
";

/// A turn of Hermes: a failed command, a block, a question that was denied, a sub-agent, wide text.
fn hermes(home: &Home) {
    let session = "20261116_003555_7a3d78";
    let of = |name: &str, fields: Value| event("hermes", name, session, &fields);
    let call = |id: &str, command: &str| json!({"tool_input": {"command": command}, "extra": {"tool_call_id": id}});
    let result = |id: &str, command: &str, result: &str| json!({"tool_input": {"command": command}, "extra": {"tool_call_id": id, "result": result}});
    let asked = json!({"session_id": "", "extra": {
        "turn_id": format!("{session}:t:1"), "tool_call_id": "c3", "command": "rm -rf build"}});
    let refused = "{\"output\": \"\", \"exit_code\": -1, \"error\": \"BLOCKED: the user said no\", \"status\": \"blocked\"}";
    tell(
        home,
        "hermes",
        &[
            of("on_session_start", json!({})),
            of(
                "pre_llm_call",
                json!({"extra": {"user_message": "Bitte baue das Projekt 🦀 漢字 und pushe es,\nbut test it first."}}),
            ),
            of(
                "pre_tool_call",
                call(
                    "c1",
                    "cargo test --workspace && echo 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
                ),
            ),
            of(
                "post_tool_call",
                result(
                    "c1",
                    "cargo test --workspace && echo 漢字",
                    "{\"output\": \"running 3 tests\\ntest a ... ok\\nerror: test b failed 👩‍💻\", \"exit_code\": 101, \"error\": null}",
                ),
            ),
            of("pre_tool_call", call("c2", "git push --force origin main")),
            of(
                "post_tool_call",
                json!({"tool_input": {"command": "git push --force origin main"}, "extra": {
                "tool_call_id": "c2", "status": "blocked", "error_type": "plugin_block",
                "error_message": "Force pushes need a person.", "result": "{\"error\": \"Force pushes need a person.\"}"}}),
            ),
            of("pre_tool_call", call("c3", "rm -rf build")),
            of("pre_approval_request", asked.clone()),
            of("post_approval_response", asked),
            of("post_tool_call", result("c3", "rm -rf build", refused)),
        ],
    );
    hermes_subagent(home, session);
    tell(
        home,
        "hermes",
        &[
            of("post_api_request", json!({})),
            of("transform_llm_output", json!({"extra": {"response_text": "I could not push."}})),
            of("post_llm_call", json!({"extra": {"assistant_response": "I could not push."}})),
            of("on_session_end", json!({})),
        ],
    );
}

/// A sub-agent with a session of its own, in which a command fails.
fn hermes_subagent(home: &Home, session: &str) {
    let child = "20261116_003600_00ead1";
    let of = |name: &str, fields: Value| event("hermes", name, session, &fields);
    tell(
        home,
        "hermes",
        &[
            of("subagent_start", json!({})),
            event(
                "hermes",
                "pre_llm_call",
                child,
                &json!({"extra": {"user_message": "say hi from the child"}}),
            ),
            event("hermes", "pre_tool_call", child, &json!({"tool_input": {"command": "exit 3"}})),
            event(
                "hermes",
                "post_tool_call",
                child,
                &json!({"tool_input": {"command": "exit 3"}, "extra": {
                "result": "{\"output\": \"\", \"exit_code\": 3, \"error\": null}"}}),
            ),
            of("subagent_stop", json!({"extra": {"child_session_id": child}})),
        ],
    );
}

/// Gemini: a search, a denied result, a model request that was denied, a call that ran although it was blocked.
fn gemini(home: &Home) {
    let session = "454a3468-974b-40dd-b623-f151f14381ca";
    let of = |name: &str, fields: Value| event("gemini", name, session, &fields);
    let shell = |command: &str| json!({"tool_input": {"command": command}});
    let printed = |command: &str, text: &str| {
        json!({"tool_input": {"command": command}, "tool_response": {
            "llmContent": format!("<untrusted_context>\nOutput: {text}\nProcess Group PGID: 7\n</untrusted_context>")}})
    };
    let search = json!({"tool_name": "grep_search", "tool_input": {
        "pattern": "TODO", "dir_path": "src", "file_path": null, "content": null}});
    let mut found = search.clone();
    found["tool_response"] = json!({"llmContent": "Found 2 matches", "returnDisplay": "2 matches"});
    tell(
        home,
        "gemini",
        &[
            of("SessionStart", json!({})),
            of("BeforeAgent", json!({"prompt": "What is left to do?"})),
            of("BeforeModel", json!({})),
            of("AfterModel", json!({"llm_response": {"text": "Let me look. "}})),
            of("BeforeTool", search),
            of("AfterTool", found),
            of("BeforeTool.shell", shell("printenv")),
            of("Notification", json!({"details": {"command": "printenv"}})),
            of("AfterTool.shell", printed("printenv", "TOKEN=1")),
            of("BeforeTool.shell", shell("git push --force")),
            of("AfterTool.shell", printed("git push --force", "forced update")),
            of("BeforeTool.shell", shell("./deploy.sh")),
            of("AfterTool.shell", printed("./deploy.sh", "done")),
            of("BeforeModel", json!({})),
            of("AfterModel", json!({"llm_response": {"text": "Two things "}})),
            of("AfterModel", json!({"llm_response": {"text": "are left."}})),
            of("BeforeModel", json!({"llm_request": {"model": "costly-model"}})),
            // Gemini 0.61 tells the chunks of a request together, and all but the first once more.
            of(
                "AfterAgent",
                json!({"prompt_response": "Let me look. \nTwo things are left. are left."}),
            ),
            of("SessionEnd", json!({})),
        ],
    );
}

fn claude_and_codex(home: &Home) {
    let claude = "75992cd6-01ce-406f-9a98-e6ed573e3427";
    let names = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse.Agent",
        "SubagentStart",
        "PostToolUse.Agent",
        "PermissionRequest",
    ];
    let mut events: Vec<Value> =
        names.iter().map(|name| event("claude", name, claude, &json!({}))).collect();
    let exit = json!({"tool_use_id": "toolu_9", "tool_input": {"command": "exit 3"}});
    events.push(event("claude", "PreToolUse", claude, &exit));
    events.push(event("claude", "PostToolUseFailure", claude, &exit));
    events.push(event("claude", "StopFailure", claude, &json!({})));
    tell(home, "claude", &events);
    let codex = "01a1e1c7-e6cc-73b1-9c1d-2c43b3af2126";
    let names = [
        "SessionStart",
        "UserPromptSubmit",
        "SubagentStart",
        "UserPromptSubmit.subagent",
        "SubagentStop",
        "Stop",
    ];
    let mut events: Vec<Value> =
        names.iter().map(|name| event("codex", name, codex, &json!({}))).collect();
    let call = json!({"tool_use_id": "call_2", "tool_input": {"command": "exit 7"}});
    events.insert(2, event("codex", "PreToolUse", codex, &call));
    let mut result = call;
    result["tool_response"] = json!("what it printed\n");
    events.insert(3, event("codex", "PostToolUse", codex, &result));
    tell(home, "codex", &events);
}

/// A home with all of them.
pub fn recorded() -> Home {
    let home = Home::with_hooks(POLICY);
    hermes(&home);
    gemini(&home);
    claude_and_codex(&home);
    home
}

/// What `hookbus` prints in a window of this width. No line may be wider.
pub fn printed(home: &Home, arguments: &[&str], columns: &str, colour: bool) -> String {
    let mut command = home.command(arguments);
    command.env("COLUMNS", columns).env("TZ", "UTC").env_remove("NO_COLOR");
    // No agent of this machine.
    command.env("HOME", home.work()).env("PATH", "/usr/bin:/bin");
    command.env_remove("HERMES_HOME").env_remove("GEMINI_CLI_HOME");
    if colour {
        command.env("CLICOLOR_FORCE", "1");
    }
    let output = command.output().expect("hookbus runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("hookbus: "), "{arguments:?}: {errors}");
    let window: usize = columns.parse().expect("a number");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let wide = stripped(line).width();
        assert!(wide <= window, "{arguments:?}: {wide} columns in a window of {window}: {line}");
    }
    let mut text = stable(&String::from_utf8(output.stdout).expect("text"), home);
    // What differs from machine to machine: who, the bus, hashes, sizes of files.
    for (pattern, stand_in) in [
        (r"[\w.-]+@[\w.-]+", "USER@HOST"),
        (r"user \S+ on \S+", "user USER on HOST"),
        (r"snapshots \([0-9a-f]{8}\)", "snapshots (BUS)"),
        (r"snapshots [0-9a-f]{8}\b", "snapshots BUS"),
        (r"head (\d+) [0-9a-f]{12}", "head $1 HASH"),
        (r"\b\d+(\.\d)? kB", "SIZE"),
        (r"  DURATION \(DURATION each\)", ""),
    ] {
        let pattern = Regex::new(pattern).expect("a pattern");
        text = pattern.replace_all(&text, stand_in).into_owned();
    }
    text
}

/// Compares with snapshots at 80 and 120 columns, with and without colours.
pub fn matches_snapshots(home: &Home, name: &str, arguments: &[&str]) {
    for columns in ["80", "120"] {
        for colour in [false, true] {
            let text = printed(home, arguments, columns, colour);
            let ending = if colour { "-colour" } else { "" };
            matches_snapshot(&format!("{name}-{columns}{ending}"), &text.replace('\x1b', "␛"));
            let plain = stripped(&text);
            assert_eq!(plain, printed(home, arguments, columns, false), "colours only colour");
        }
    }
}

/// Without colours.
pub fn stripped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}
