//! `hooks doctor` and `hooks test`: what is wrong is found, with the hook that it concerns and what to do.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use hookbus_tests::consent::{blocking_script, tool_call};
use hookbus_tests::home::{Home, path_text, write_executable};
use hookbus_tests::plugins::{gateway_hook, plugin, write};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The doctor's findings. There is no Hermes unless the test makes one.
fn findings(home: &Home) -> Vec<Value> {
    let hermes = home.work().join("hermes");
    let mut command = home.command(["hooks", "doctor", "--json"]);
    command.env("HERMES_HOME", hermes).env("HOME", home.work());
    let output = command.output().expect("hookbus runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().cloned().expect("findings");
    let wrong = findings.iter().any(|finding| finding["ok"] == false);
    assert_eq!(output.status.code(), Some(i32::from(wrong)), "{findings:?}");
    findings
}

/// The findings whose subject has all of these words; `ok` for good ones.
fn about(findings: &[Value], words: &[&str]) -> Vec<String> {
    let is_it = |finding: &&Value| {
        let about = finding["about"].as_str().unwrap_or_default();
        words.iter().all(|word| about.contains(word))
    };
    let found = findings.iter().filter(is_it);
    found.map(|finding| finding["finding"].as_str().unwrap_or("ok").to_owned()).collect()
}

fn says(findings: &[Value], subject: &[&str], words: &[&str]) {
    let found = about(findings, subject);
    let has_words = |text: &String| words.iter().all(|word| text.contains(word));
    assert!(found.iter().any(has_words), "{subject:?} {words:?}: {found:?} of {findings:?}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const NOTHING: &str = "def register(ctx): pass\n";

#[test]
fn a_directory_from_which_nothing_is_loaded_is_reported_with_what_to_do() {
    let home = Home::new();
    let (empty, bare) = (home.work().join("empty"), home.work().join("bare"));
    fs::create_dir_all(&empty).expect("a folder");
    write(&bare, "__init__.py", NOTHING);
    let off = plugin(&home, "one", NOTHING);
    plugin(&home, "two", NOTHING);
    let (off, gone) = (off.parent().expect("a folder"), home.work().join("gone"));
    for (folder, mode, advice) in [
        (empty.as_path(), "decide", "plugin.yaml"),
        (&bare, "decide", "plugin.yaml"),
        (off, "decide", "(one, two) is loaded; name it under `plugins: enabled:`"),
        (&gone, "decide", "check the path"),
        (&gone, "observe", "check the path"),
        (off, "observe", "`plugins: enabled:`"),
    ] {
        home.write_hooks(&format!(
            "hooks: {{ '*': [{{ name: own, mode: {mode}, python: {} }}] }}",
            path_text(folder)
        ));
        says(&findings(&home), &["own on *"], &[advice]);
        let list = home.run(&["hooks", "list"]);
        assert!(!list.status.success() && text(&list).contains(advice), "{list:?}");
        let json: Value =
            serde_json::from_slice(&home.run(&["hooks", "list", "--json"]).stdout).expect("JSON");
        assert!(json["problems"].to_string().contains(advice), "{json}");
    }
}

/// One callback for each of these events, in Hermes' own signature.
const GOOD: &str = "
def tool(tool_name, args, task_id, session_id, tool_call_id, **k): args['command'].lower()
def result(tool_name, args, result, duration_ms, status, **k): result.lower()
def turn(session_id, user_message, conversation_history, is_first_turn, model, platform, **k): user_message.lower()
def answer(user_message, assistant_response, conversation_history, **k): assistant_response.lower()
def message(event, gateway, session_store, **k): (event.text.lower(), event.source.chat_id.lower())
def api(request_messages, model, **k): len(request_messages)
def response(assistant_message, usage, api_duration, **k): (assistant_message.content.lower(), usage['input_tokens'])
def output(command, output, returncode, **k): output.lower()
def child(parent_session_id, child_role, child_goal, **k): child_goal.lower()
def verify(final_response, changed_paths, attempt, **k): changed_paths[0]
def approval(command, description, pattern_keys, surface, **k): command.lower()
def register(ctx):
    ctx.register_hook('pre_tool_call', tool)
    ctx.register_hook('post_tool_call', result)
    ctx.register_hook('transform_tool_result', result)
    ctx.register_hook('pre_llm_call', turn)
    ctx.register_hook('post_llm_call', answer)
    ctx.register_hook('pre_gateway_dispatch', message)
    ctx.register_hook('pre_api_request', api)
    ctx.register_hook('post_api_request', response)
    ctx.register_hook('transform_terminal_output', output)
    ctx.register_hook('subagent_start', child)
    ctx.register_hook('pre_verify', verify)
    ctx.register_hook('pre_approval_request', approval)
";

#[test]
fn each_plugin_is_called_with_every_event_it_listens_to_and_failures_name_the_plugin() {
    let home = Home::new();
    let hook = |event: &str, body: &str| {
        format!("def f(**k):\n    {body}\ndef register(ctx): ctx.register_hook('{event}', f)\n")
    };
    plugin(&home, "good", GOOD);
    plugin(&home, "late", &hook("pre_llm_call", "raise ValueError('too late')"));
    plugin(&home, "tail", &hook("post_tool_call", "1 / 0"));
    plugin(&home, "theirs", "import hermes_constants\n");
    plugin(&home, "bare", "x = 1\n");
    plugin(&home, "leaver", &hook("pre_tool_call", "import os; os._exit(3)"));
    plugin(&home, "sleeper", &hook("pre_tool_call", "import time; time.sleep(60)"));
    plugin(&home, "hookless", NOTHING);
    plugin(&home, "typo", &hook("pre_tool_cal", "pass"));
    let needy = plugin(&home, "needy", NOTHING);
    write(&needy, "plugin.yaml", "name: needy\nrequires_env: [MISSING_VARIABLE]\n");
    let folder = needy.parent().expect("a folder").to_owned();
    home.write_hooks(&format!(
        "plugins: {{ enabled: [good, late, tail, theirs, bare, leaver, sleeper, hookless, typo, needy] }}\nhooks:\n  '*':\n    - {{ name: all, python: {}, timeout: 5 }}\n",
        path_text(&folder)
    ));
    let found = findings(&home);
    assert_eq!(about(&found, &["all (good) on *"]), ["ok"], "{found:?}");
    assert_eq!(
        about(&found, &["all (tail) on *"]),
        ["ok"],
        "an event that it only observes is not tried"
    );
    for (name, words) in [
        ("late", ["pre_llm_call", "ValueError: too late", "plugins.log"]),
        ("theirs", ["No module named 'hermes_constants'", "interpreter:", "Hermes"]),
        ("bare", ["register", "`register(ctx)`", "__init__.py"]),
        ("leaver", ["pre_tool_call", "its process is gone", "exit"]),
        ("sleeper", ["pre_tool_call", "no answer within", "timeout:"]),
        ("hookless", ["registers no hook", "plugins: enabled:", "remove it"]),
        ("typo", ["`pre_tool_cal`", "did you mean", "`pre_tool_call`"]),
        ("needy", ["MISSING_VARIABLE", "set it", "needs"]),
    ] {
        says(&found, &[&format!("all ({name}) on *")], &words);
    }
    home.write_hooks(&format!(
        "hooks: {{ pre_verify: [{{ name: one, python: {} }}] }}",
        path_text(&folder.join("late"))
    ));
    says(&findings(&home), &["one on pre_verify"], &["pre_llm_call", "put it under"]);
}

#[test]
fn gateway_hooks_are_loaded_and_tried() {
    let home = Home::new();
    let handler = "async def handle(event_type, context): context['message'].lower()\n";
    gateway_hook(
        &home,
        "good",
        "[agent:start, 'session:*', 'command:deploy']",
        "async def handle(event_type, context): context['platform'].lower()\n",
    );
    gateway_hook(&home, "plain", "agent:start", handler);
    gateway_hook(&home, "odd", "[agent:start\nname: [", handler);
    gateway_hook(&home, "none", "[agent:start]", "def handel(e, c): pass\n");
    gateway_hook(&home, "quiet", "[]", handler);
    let raises = "def handle(event_type, context): raise KeyError(event_type)\n";
    let started = home.work().join("started");
    let boot = format!("def handle(e, c): open({:?}, 'w')\n", path_text(&started));
    gateway_hook(&home, "boot", "['gateway:startup']", &boot);
    gateway_hook(&home, "raises", "['command:*']", raises);
    home.write_hooks(&format!(
        "hooks: {{ '*': [{{ name: all, python: {} }}] }}",
        path_text(&home.work().join("hooks"))
    ));
    let found = findings(&home);
    assert_eq!(about(&found, &["all (good) on *"]), ["ok"], "{found:?}");
    assert_eq!(about(&found, &["all (boot) on *"]), ["ok"], "{found:?}");
    assert!(!started.exists(), "`gateway:startup` is not tried");
    for (name, words) in [
        ("plain", ["letter by letter", "events: [agent:start]"]),
        ("odd", ["HOOK.yaml", "fix"]),
        ("none", ["no attribute 'handle'", "`handle(event_type, context)`"]),
        ("quiet", ["events:", "HOOK.yaml"]),
        ("raises", ["command:", "KeyError"]),
    ] {
        says(&found, &[&format!("all ({name}) on *")], &words);
    }
}

#[test]
fn a_failing_observer_is_found() {
    let home = Home::new();
    let needy = plugin(&home, "needy", GOOD);
    write(&needy, "plugin.yaml", "name: needy\nrequires_env: [MISSING_VARIABLE]\n");
    let broken = plugin(&home, "broken", "import nothing_of_the_kind\n");
    let fails = home.script("fails.sh", "#!/bin/sh\nexit 3\n");
    home.write_hooks(&format!(
        "hooks:\n  '*':\n    - {{ name: needy, mode: observe, python: {} }}\n    - {{ name: broken, mode: observe, python: {} }}\n    - {{ name: fails, mode: observe, command: {fails}, tries: 1 }}\n",
        path_text(&needy),
        path_text(&broken)
    ));
    home.answer("hermes", &tool_call());
    home.run(&["observe", "fails", "--source", "log", "--from", "start", "--drain"]);
    let found = findings(&home);
    says(&found, &["needy on *"], &["MISSING_VARIABLE", "set it"]);
    says(&found, &["broken on *"], &["nothing_of_the_kind", "interpreter:"]);
    says(&found, &["the observer fails"], &["set aside", "hookbus dead list fails", "dead retry"]);
}

#[test]
fn a_failing_command_is_reported_with_what_to_do() {
    let home = Home::new();
    let script = |name: &str, body: &str| home.script(name, &format!("#!/bin/sh\n{body}\n"));
    let (odd, chatty) = (script("odd", "echo oops >&2; exit 7"), script("chatty", "echo hello"));
    let (slow, killed) = (script("slow", "sleep 60"), script("killed", "kill -9 $$"));
    let held = script("held", "sleep 60 &");
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - {{ name: odd, command: {odd} }}\n    - {{ name: chatty, command: {chatty} }}\n    - {{ name: slow, command: {slow}, timeout: 1 }}\n    - {{ name: killed, command: {killed} }}\n    - {{ name: held, command: {held}, timeout: 1 }}\n"
    ));
    let found = findings(&home);
    for (name, words) in [
        ("odd", ["exit code 7: oops", "exit 0", "hookbus hooks test pre_tool_call"]),
        ("chatty", ["not one JSON object", "stderr", "hookbus hooks test pre_tool_call"]),
        ("slow", ["no answer within", "timeout:", "mode: observe"]),
        ("killed", ["killed by signal 9", "hookbus hooks test pre_tool_call", "fix"]),
        ("held", ["holds its output open", ">/dev/null", "&"]),
    ] {
        says(&found, &[&format!("{name} on tool.before")], &words);
    }
}

#[test]
fn the_doctor_knows_what_connect_can_fix_and_what_it_cannot() {
    let home = Home::new();
    let hermes = home.work().join("hermes");
    fs::create_dir_all(&hermes).expect("a directory");
    fs::write(hermes.join("config.yaml"), "model: [x\nplugins: {\n").expect("a configuration");
    let found = findings(&home);
    says(&found, &["Hermes in"], &["config.yaml", "not valid YAML", "fix it by hand, then"]);
    fs::write(hermes.join("config.yaml"), "model: x\n").expect("a configuration");
    says(&findings(&home), &["Hermes in"], &["not connected", "hookbus connect hermes"]);
    says(&findings(&home), &["events"], &["hookbus connect hermes"]);
    let mut connect = home.command(["connect", "hermes", "--yes"]);
    assert!(connect.env("HERMES_HOME", &hermes).status().expect("hookbus runs").success());
    let found = about(&findings(&home), &["events"]);
    assert!(!found[0].contains("connect hermes") && found[0].contains("restart"), "{found:?}");
}

#[test]
fn shell_hooks_that_name_no_home_are_reported_because_a_variable_could_lead_them_elsewhere() {
    let home = Home::new();
    let hermes = home.work().join("hermes");
    fs::create_dir_all(&hermes).expect("a directory");
    let wired = |options: &str| {
        let config =
            format!("hooks:\n  pre_tool_call: [{{command: hookbus hook hermes{options}}}]\n");
        fs::write(hermes.join("config.yaml"), config).expect("a configuration");
        findings(&home)
    };
    let at = path_text(&home.path());
    let advice = format!("add `--home {at}` to it");
    for options in ["", " --deadline 20", " --home ~/.hookbus"] {
        let words = ["does not name its home", "HOOKBUS_HOME", "hookbus connect hermes", &advice];
        says(&wired(options), &["Hermes in"], &words);
    }
    says(&wired(" --home /srv/other"), &["Hermes in"], &["another home", "/srv/other"]);
    let named = format!(" --home {at} --on-failure block");
    assert_eq!(about(&wired(&named), &["Hermes in"]), ["ok"]);
}

#[test]
fn a_timeout_that_a_gateway_does_not_wait_for_is_reported() {
    let home = Home::new();
    let hermes = home.work().join("hermes");
    fs::create_dir_all(&hermes).expect("a directory");
    fs::write(hermes.join("config.yaml"), "model: x\n").expect("a configuration");
    home.write_hooks(
        "hooks:
  message.in: [{ name: long, command: 'true', timeout: 30 }, { name: usual, command: 'true' }]
  'command:*': [{ name: short, command: 'true', timeout: 1 }]
  tool.before: [{ name: elsewhere, command: 'true', timeout: 30 }]
",
    );
    assert!(!findings(&home).iter().any(|it| it.to_string().contains("gateway-deadline")));
    let mut connect = home.command(["connect", "hermes", "--yes"]);
    assert!(connect.env("HERMES_HOME", &hermes).status().expect("hookbus runs").success());
    let found = findings(&home);
    says(&found, &["long on message.in"], &["`timeout: 30`", "2 s", "--gateway-deadline 30"]);
    assert_eq!(found.iter().filter(|it| it.to_string().contains("gateway-deadline")).count(), 1);
}

#[test]
fn hooks_that_only_observe_are_shown_with_their_failure_and_their_time() {
    let home = Home::new();
    plugin(&home, "good", GOOD);
    plugin(&home, "other", NOTHING);
    let fails = "def f(**k): 1 / 0\ndef register(ctx): ctx.register_hook('post_tool_call', f)\n";
    let folder = plugin(&home, "fails", fails);
    let called = home.work().join("called");
    gateway_hook(
        &home,
        "greet",
        "[agent:start]",
        &format!("def handle(e, c): open({:?}, 'a').write(e)\n", path_text(&called)),
    );
    let hooks = |top: &str| {
        home.write_hooks_file(&format!(
            "{top}\nplugins: {{ enabled: [good, other, fails] }}\nhooks:\n  '*':\n    - {{ name: all, python: {} }}\n    - {{ name: gate, python: {} }}\n",
            path_text(folder.parent().expect("a folder")),
            path_text(&home.work().join("hooks"))
        ));
    };
    hooks("trust: home");
    let tried = home.text(&["hooks", "test", "post_tool_call", "--for-tool", "terminal"]);
    for word in [
        "all (good)",
        "all (fails)",
        "ran ",
        " ms",
        "failed: f raised ZeroDivisionError",
        "takes no answer",
    ] {
        assert!(tried.contains(word), "{word}: {tried}");
    }
    assert!(!tried.contains("all (other)") && !tried.contains("gate"), "{tried}");
    for event in [
        "post_llm_call",
        "pre_api_request",
        "post_api_request",
        "subagent_start",
        "pre_approval_request",
    ] {
        let tried = home.text(&["hooks", "test", event]);
        assert!(tried.contains("all (good)") && !tried.contains("failed"), "{event}: {tried}");
    }
    let json = home.json(&["hooks", "test", "post_tool_call", "--json"]);
    let names: Vec<&Value> =
        json["verdicts"].as_array().into_iter().flatten().map(|one| &one["hook"]).collect();
    assert_eq!(names, ["all (fails)", "all (good)"], "{json}");
    let tried = home.text(&["hooks", "test", "agent:start"]);
    assert!(tried.contains("gate") && tried.contains("ran "), "{tried}");
    assert_eq!(fs::read_to_string(&called).expect("it ran"), "agent:start", "and once only");
    hooks("trust: nobody");
    let tried = home.text(&["hooks", "test", "agent:start"]);
    assert!(tried.contains("it has not been approved"), "{tried}");
    assert_eq!(fs::read_to_string(&called).expect("it ran"), "agent:start", "it did not run");
}

#[test]
fn a_sample_event_is_sent_as_the_connected_hermes_would_send_it() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ name: safer, tool: shell, rule: { rewrite: { command: true } } }] }",
    );
    let hermes = home.work().join("hermes");
    fs::create_dir_all(&hermes).expect("a directory");
    let run = |words: &[&str]| {
        let output = home.command(words).env("HERMES_HOME", &hermes).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        text(&output)
    };
    let tried = run(&["hooks", "test", "pre_tool_call"]);
    assert!(tried.contains("outcome: block") && tried.contains("over the shell wire"), "{tried}");
    run(&["connect", "hermes", "--yes"]);
    let tried = run(&["hooks", "test", "pre_tool_call"]);
    assert!(tried.contains("outcome: rewrite") && tried.contains("over the bridge"), "{tried}");
    let tried = run(&["hooks", "test", "pre_tool_call", "--wire", "shell"]);
    assert!(tried.contains("outcome: block"), "{tried}");
}

#[test]
fn a_payload_in_the_form_of_hermes_hooks_test_is_understood() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ name: rm, tool: shell, rule: { when: { command: 'rm -rf' }, block: no rm } }], turn.start: [{ rule: { when: { text: secret }, context: careful } }] }",
    );
    let file = home.work().join("payload.json");
    let outcome = |event: &str, payload: &Value| {
        fs::write(&file, payload.to_string()).expect("a payload");
        home.json(&["hooks", "test", event, "--payload-file", &path_text(&file), "--json"])["outcome"]
            .clone()
    };
    let call = json!({"tool_name": "terminal", "args": {"command": "rm -rf /"}});
    assert_eq!(outcome("pre_tool_call", &call), "block");
    let call = json!({"tool_name": "terminal", "tool_input": {"command": "rm -rf /"}});
    assert_eq!(outcome("pre_tool_call", &call), "block");
    let turn = json!({"session_id": "x", "user_message": "a secret"});
    assert_eq!(outcome("pre_llm_call", &turn), "context");
    let turn = json!({"session_id": "x", "extra": {"user_message": "a secret"}});
    assert_eq!(outcome("pre_llm_call", &turn), "context");
}

#[test]
fn an_unknown_event_is_answered_with_similar_ones() {
    let home = Home::with_hooks("hooks: {}");
    for (words, expected) in [
        (&["BeforeTool"][..], &["--agent gemini", "`pre_tool_call`"][..]),
        (&["pre_tool_cal"], &["did you mean `pre_tool_call`"]),
        (&["tool.before"], &["`pre_tool_call`"]),
        (&["tool.before", "--agent", "gemini"], &["`BeforeTool`"]),
        (&["beforetool"], &["BeforeTool", "--agent gemini"]),
        (&["xyz"], &["pre_tool_call", "agent:start", "on_session_start"]),
    ] {
        let output = home.run(&[&["hooks", "test"], words].concat());
        let text = text(&output);
        assert!(!output.status.success(), "{words:?}");
        assert!(expected.iter().all(|word| text.contains(word)), "{words:?}: {text}");
    }
}

#[test]
fn a_hooks_file_that_cannot_be_parsed_is_reported() {
    let home = Home::new();
    home.write_hooks_file("hooks: [\n");
    for words in [&["hooks", "test", "pre_tool_call"][..], &["hooks", "approve"]] {
        let output = home.run(words);
        let text = text(&output);
        assert!(!output.status.success(), "{words:?}: {text}");
        assert!(text.contains("hookbus.yaml") && text.contains("fix"), "{words:?}: {text}");
    }
    let good = Home::new();
    good.write_hooks_file("hooks: { '*': [{ rule: { block: no } }] }\n");
    good.answer("hermes", &tool_call());
    good.write_hooks_file("hooks: [\n");
    let output = good.run(&["hooks", "test", "pre_tool_call"]);
    assert!(output.status.success(), "its last good version is active");
    assert!(
        text(&output).contains("last good version") && text(&output).contains("outcome: block")
    );
}

fn connected(home: &Home, config: &str, options: &[&str]) -> PathBuf {
    let hermes = home.work().join("hermes");
    write(&hermes, "config.yaml", config);
    let mut connect = home.command([&["connect", "hermes", "--yes"], options].concat());
    assert!(connect.env("HERMES_HOME", &hermes).status().expect("hookbus runs").success());
    hermes
}

#[test]
fn a_hanging_daemon_is_found() {
    let home = Home::with_daemon("running");
    let daemon = home.serve();
    assert_eq!(about(&findings(&home), &["daemon"]), Vec::<String>::new());
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::STOP).expect("ours");
    let found = findings(&home);
    kill_process(pid, Signal::CONT).expect("ours");
    let pid = format!("pid {}", daemon.pid());
    says(&found, &["the daemon"], &[&pid, "does not answer", "hookbus stop"]);
}

#[test]
fn without_daemon_allow_needs_a_daemon_that_keeps_running() {
    let home = Home::with_daemon("running");
    connected(&home, "model: x\n", &["--without-daemon", "allow"]);
    let found = findings(&home);
    says(&found, &["Hermes in"], &["no daemon", "hookbus serve", "--without-daemon hook"]);
    says(&found, &["events"], &["none has arrived yet", "hookbus serve"]);
    assert!(!about(&found, &["events"])[0].contains("connect hermes"), "{found:?}");
    let exits_when_idle = home.serve_with(&["--idle", "60"]);
    says(&findings(&home), &["Hermes in"], &["exits after", "without calls", "hookbus serve"]);
    drop(exits_when_idle);
    let _daemon = home.serve();
    assert_eq!(about(&findings(&home), &["Hermes in"]), ["ok"]);
}

#[test]
fn a_shell_hook_that_calls_the_bus_beside_the_bridge_is_found() {
    let home = Home::new();
    let hermes = connected(&home, "model: x\n", &[]);
    let config = fs::read_to_string(hermes.join("config.yaml")).expect("a configuration");
    for (command, advice) in [
        ("bash -c 'hookbus hook hermes'", "run `hookbus connect hermes`"),
        ("bash -c 'date >> /tmp/x; hookbus hook hermes'", "by hand"),
    ] {
        let hook = format!("hooks:\n  pre_tool_call:\n    - command: {}\n", json!(command));
        write(&hermes, "config.yaml", &(config.clone() + &hook));
        says(&findings(&home), &["Hermes in"], &["twice", advice]);
    }
}

#[test]
fn a_sample_event_shows_the_verdict_of_each_hook_and_is_not_recorded() {
    let home = Home::new();
    let script = home.script("guard.sh", &blocking_script("guarded"));
    home.write_hooks(&format!("hooks: {{ tool.before: [{{ name: guard, tool: shell, command: {script} }}, {{ name: rm, rule: {{ when: {{ command: rm }}, block: no rm }} }}] }}"));
    let tried = home.json(&["hooks", "test", "pre_tool_call", "--for-tool", "terminal", "--json"]);
    assert_eq!(
        (&tried["outcome"], &tried["verdicts"][0]["reason"]),
        (&json!("block"), &json!("guarded"))
    );
    assert_eq!(tried["verdicts"][1], Value::Null);
    let file = home.work().join("payload.json");
    fs::write(&file, r#"{"tool_input": {"command": "rm x"}}"#).expect("a payload");
    let tried = home.text(&[
        "hooks",
        "test",
        "pre_tool_call",
        "--for-tool",
        "read_file",
        "--payload-file",
        &path_text(&file),
    ]);
    assert!(tried.contains("no rm") && !tried.contains("guarded"), "{tried}");
    assert!(!home.path().join("log.db").exists());
}

#[test]
fn a_script_that_cannot_run_is_found_and_a_working_setup_has_no_findings() {
    let home = Home::new();
    let plain = home.script("plain.sh", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("a mode");
    let orphan = home.script("orphan.sh", "#!/no/such/interpreter\n");
    let chatty = home.script("chatty.sh", "#!/bin/sh\necho not json\n");
    let fine = home.script("fine.sh", &blocking_script("guarded"));
    write(&home.work().join("hermes"), "config.yaml", "model: x\n");
    home.write_hooks(&format!(
        "hooks:\n  pre_tool_call:\n    - command: {plain}\n    - command: {orphan}\n    - command: {chatty}\n    - command: {fine}\n    - command: ~/nowhere.sh\n"
    ));
    let found = findings(&home);
    for (subject, advice) in [
        ("plain.sh", "chmod +x"),
        ("orphan.sh", "install it"),
        ("chatty.sh", "not one JSON object"),
        ("nowhere.sh", "does not exist"),
        ("Hermes", "hookbus connect hermes"),
        ("events", "hookbus connect hermes"),
    ] {
        says(&found, &[subject], &[advice]);
    }
    assert_eq!(about(&found, &["fine.sh"]), ["ok"]);

    home.write_hooks(&format!("hooks: {{ pre_tool_call: [{{ command: {fine} }}] }}"));
    home.answer("hermes", &tool_call());
    connected(&home, "model: x\n", &[]);
    let found = findings(&home);
    assert!(found.iter().all(|finding| finding["ok"] == true), "{found:?}");
}

#[test]
fn each_entry_is_tried_once_and_an_interpreter_below_the_home_directory_is_found() {
    let home = Home::new();
    let runs = home.work().join("runs");
    let count = |name: &str, end: &str| {
        home.script(name, &format!("#!/bin/sh\necho x >> {}\n{end}\n", path_text(&runs)))
    };
    let (good, bad) = (count("guard", ":"), count("guard2", "echo not json"));
    let code = "def register(ctx): ctx.register_hook('pre_tool_call', lambda **k: None)\n";
    let folder = plugin(&home, "p", code);
    write_executable(&home.work().join("python"), "#!/bin/sh\nexec python3 \"$@\"\n");
    home.write_hooks(&format!(
        "plugins: {{ enabled: [p, gone] }}\nhooks:\n  pre_tool_call:\n    - {{ name: guard2, command: {bad} }}\n    - {{ name: guard, command: {good} }}\n    - {{ name: own, python: {}, interpreter: ~/python }}\n",
        path_text(&folder)
    ));
    let found = findings(&home);
    for (name, is_ok) in [("guard", true), ("guard2", false), ("own", true)] {
        let subject = format!("{name} on");
        assert_eq!(about(&found, &[&subject]) == ["ok"], is_ok, "{name}: {found:?}");
    }
    assert_eq!(fs::read_to_string(&runs).expect("they ran").lines().count(), 2);
    assert_eq!(about(&found, &["the plugin p"]), [""; 0]);
    assert!(!about(&found, &["the plugin gone"]).is_empty(), "{found:?}");
}
