//! Secrets: hooks and the agent see them, and nothing that hookbus writes holds one. The log keeps a mark with kind,
//! length and fingerprint in its place.

#![expect(clippy::expect_used, reason = "a test that cannot set up its files has failed")]

use std::fs;
use std::path::Path;

use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::payloads::{gemini_shell, hermes_shell, one};
use hookbus_tests::plugins::plugin;
use serde_json::{Value, json};

/// Tokens in the form that services issue, put together here so that no scanner takes this file for a leak.
fn secrets() -> Vec<String> {
    let letters = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    vec![
        ["gh", "p_", letters].concat(),
        ["AK", "IA", "Q7TR2XWPL5MZK9VB"].concat(),
        ["xox", "b-", "2345678901-2345678901234-", &letters[..24]].concat(),
        ["sk_", "live_", &letters[..24]].concat(),
        ["postgres://shop:", "Tr0ub4dor-and-3", "@db.example.org/shop"].concat(),
        [
            "eyJhbGciOiJIUzI1NiJ9.",
            "eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
            "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        ]
        .concat(),
    ]
}

/// What must not be found: of an address only its password is secret.
fn needle(secret: &str) -> &str {
    secret.strip_prefix("postgres://shop:").and_then(|it| it.split('@').next()).unwrap_or(secret)
}

/// The files of a home, and below it, that hold the text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.windows(text.len()).any(|it| it == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

fn assert_nowhere(home: &Home) {
    for secret in secrets() {
        let files = files_with(&home.path(), needle(&secret));
        assert_eq!(files, [""; 0], "{secret}");
    }
}

/// A session of four agents with every secret in a command, in a result and in a message, each in other escapes.
fn record_secrets(home: &Home) {
    for secret in secrets() {
        home.hook("hermes", hermes_shell(&format!("curl -H 'X-Key: {secret}' x")).to_string());
        home.hook("gemini", gemini_shell(&format!("export TOKEN=\"{secret}\"; ./run")).to_string());
        for (agent, name) in [("claude", "PreToolUse"), ("codex", "PreToolUse")] {
            let mut payload = one(agent, name);
            payload["tool_input"] = json!({"command": format!("echo {secret}")});
            home.hook(agent, payload.to_string());
        }
        let mut after = one("hermes", "post_tool_call");
        let inner = json!({"output": format!("line 1\n{secret}\nline 3")}).to_string();
        after["extra"]["result"] = json!(json!({"stdout": inner}).to_string());
        home.hook("hermes", after.to_string());
    }
    home.hook("hermes", format!("no json at all, but {}", secrets()[0]));
    let mut call = hermes_shell("echo");
    call["session_id"] = json!(secrets()[1]);
    call["tool_name"] = json!(secrets()[0]);
    home.hook("hermes", call.to_string());
}

#[test]
fn nothing_in_the_home_holds_a_secret() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks("hooks: { tool.before: [{ name: r, rule: { context: noted } }] }");
        let daemon = (mode == "running").then(|| home.serve());
        record_secrets(&home);
        assert_nowhere(&home);
        let text: String = home.log(&[]).iter().map(Value::to_string).collect();
        for kind in ["[redacted:github", "[redacted:aws", "[redacted:slack", "[redacted:stripe"] {
            assert!(text.contains(kind), "{kind}");
        }
        assert!(home.is_sound());
        drop(daemon);
    }
}

#[test]
fn what_a_plugin_prints_is_kept_without_secrets() {
    let pem: String = ["-----BEGIN RSA PRIV", "ATE KEY-----\\n"].concat();
    let code = format!(
        "import subprocess, sys\n\
         def before(**event):\n    \
             print('called with', event)\n    \
             sys.stderr.write('{pem}' + 'MIIEpAIBAAKCAQEA7bq2x0Qv\\n' * 20)\n    \
             sys.stderr.write('-----END RSA ' + 'PRIVATE KEY-----\\n')\n    \
             subprocess.run(['echo', 'a child says', str(event)])\n\
         def register(ctx):\n    ctx.register_hook('pre_tool_call', before)\n"
    );
    for mode in ["off", "auto"] {
        let home = Home::with_daemon(mode);
        let folder = plugin(&home, "chatty", &code);
        home.write_hooks(&format!(
            "hooks:\n  pre_tool_call:\n    - python: {}\n",
            folder.display()
        ));
        for secret in secrets() {
            home.hook("hermes", hermes_shell(&format!("deploy {secret}")).to_string());
        }
        let printed = fs::read_to_string(home.path().join("plugins.log")).expect("a log");
        assert_eq!(printed.matches("chatty: called with").count(), secrets().len(), "{printed}");
        assert_eq!(printed.matches("chatty: a child says").count(), secrets().len(), "{printed}");
        assert!(printed.contains("[redacted:github-"), "{printed}");
        assert!(!printed.contains("MIIEpAIBAAKCAQEA7bq2x0Qv"), "{printed}");
        assert_nowhere(&home);
    }
}

#[test]
fn the_same_secret_has_the_same_fingerprint_and_another_home_another_one() {
    let [first, second] = [(); 2].map(|()| {
        let home = Home::new();
        record_secrets(&home);
        let log: String = home.log(&[]).iter().map(Value::to_string).collect();
        let marks: Vec<&str> = log.split("[redacted:github").skip(1).collect();
        let print = |mark: &&str| mark.split(']').next().unwrap_or_default().to_owned();
        let prints: Vec<String> = marks.iter().map(print).collect();
        assert!(prints.len() >= 5 && prints.iter().all(|it| *it == prints[0]), "{prints:?}");
        prints[0].clone()
    });
    assert_ne!(first, second);
}

#[test]
fn hooks_see_the_secret_and_the_agent_hears_what_they_answer() {
    let secret = &secrets()[0];
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        let script = home.script(
            "guard.sh",
            "#!/bin/sh\ntoken=$(grep -o 'gh[p]_[A-Za-z0-9]*')\nprintf '{\"decision\":\"block\",\"reason\":\"not %s\"}' \"$token\"\n",
        );
        home.write_hooks(&format!(
            "hooks: {{ tool.before: [{{ name: guard, command: {script} }}] }}"
        ));
        let daemon = (mode == "running").then(|| home.serve());
        let answer = home.answer("hermes", &hermes_shell(&format!("echo {secret}")));
        assert!(answer.to_string().contains(secret.as_str()), "{answer}");
        let decision = home.last_decision().to_string();
        assert!(decision.contains("not [redacted:github"), "{decision}");
        assert_nowhere(&home);
        drop(daemon);
    }
}

#[test]
fn a_rule_can_be_about_a_secret_and_replay_says_what_it_cannot_compare() {
    let home = Home::new();
    home.write_hooks(
        "hooks:\n  tool.before:\n    - { name: leak, rule: { when: { secret: 'github*' }, block: no tokens } }\n    \
         - { name: shape, rule: { when: { command: 'sk_live_[a-z]' }, block: no keys } }\n",
    );
    let [github, stripe] =
        [&secrets()[0], &secrets()[3]].map(|it| hermes_shell(&format!("echo {it}")));
    assert!(home.answer("hermes", &github).to_string().contains("no tokens"));
    assert!(home.answer("hermes", &stripe).to_string().contains("no keys"));
    assert_eq!(home.answer("hermes", &hermes_shell("echo hello")), Value::Null);
    // The mark still tells the kind; the text itself is gone.
    let report = home.json(&["replay", "--all", "--json"]);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["unchanged"], &summary["not_comparable"]),
        (&json!(2), &json!(1)),
        "{report:#}"
    );
    assert!(report["not_comparable"].to_string().contains("redacted"), "{report:#}");
}

#[test]
fn what_is_redacted_is_for_the_user_to_say() {
    let home = Home::new();
    let secret = &secrets()[0];
    home.write_hooks(
        "redact:\n  patterns: [{ name: internal, regex: 'itk-[0-9]{6}' }]\n  keys: [x-shop-*]\n  paths: [tool_input.env.*]\n",
    );
    let mut call = hermes_shell("curl -d itk-123456 x");
    call["tool_input"]["env"] = json!({"A": "plain value"});
    call["tool_input"]["x-shop-pin"] = json!("pin 4711");
    home.answer("hermes", &call);
    for gone in ["itk-123456", "plain value", "pin 4711"] {
        assert_eq!(files_with(&home.path(), gone), [""; 0], "{gone}");
    }
    assert!(home.text(&["scan"]).starts_with("no secrets found in "));
    home.write_hooks("redact: false\n");
    home.answer("hermes", &hermes_shell(&format!("echo {secret}")));
    assert!(!files_with(&home.path(), secret).is_empty());
    // `scan` finds what was recorded that way, and does not print it.
    let scanned = home.run(&["scan", "--json"]);
    let text = String::from_utf8_lossy(&scanned.stdout).into_owned();
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(scanned.status.code(), Some(1));
    assert_eq!(report["kinds"][0]["kind"], "github-token", "{report}");
    assert!(!text.contains(secret.as_str()));
    // A mistake does not switch it off.
    let home = Home::new();
    home.write_hooks("redact: { patern: x }\n");
    home.answer("hermes", &hermes_shell(&format!("echo {secret}")));
    assert_eq!(files_with(&home.path(), secret), [""; 0]);
    let problems = home.run(&["hooks", "check"]);
    let text = String::from_utf8_lossy(&problems.stdout).into_owned();
    assert!(text.contains("`redact` is `false`"), "{text}");
}

#[test]
fn the_spool_and_the_log_of_the_daemon_hold_no_secret() {
    let home = Home::with_daemon("running");
    let secret = &secrets()[0];
    let script = home.script("fails.sh", "#!/bin/sh\ncat >&2\nexit 3\n");
    home.write_hooks(&format!("hooks: {{ tool.before: [{{ name: fails, command: {script} }}] }}"));
    let daemon = home.serve();
    home.answer("hermes", &hermes_shell(&format!("echo {secret}")));
    drop(daemon);
    // Without a log that can be written, events wait in the spool.
    fs::remove_file(home.path().join("log.db")).expect("a log");
    fs::create_dir(home.path().join("log.db")).expect("a directory in its place");
    home.answer("hermes", &hermes_shell(&format!("echo {secret}")));
    wait_until("an event in the spool", || {
        fs::read_dir(home.path().join("spool")).is_ok_and(|mut files| files.next().is_some())
    });
    assert_nowhere(&home);
}
