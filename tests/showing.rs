//! What people read: `show`, `sessions` and `log` of sessions of the four agents, as snapshots at two widths, with and
//! without colours, and what a reader can tell from them.

use hookbus_tests::agents::run_at_terminal;
use hookbus_tests::home::Home;
use hookbus_tests::payloads;
use hookbus_tests::told::{event, tell};
use hookbus_tests::told_sessions::{POLICY, matches_snapshots, printed, recorded};
use serde_json::{Value, json};

#[test]
fn every_text_is_as_its_snapshot_at_two_widths_with_and_without_colour() {
    let home = recorded();
    for (name, arguments) in [
        ("show-hermes", &["show", "7a3d78"][..]),
        ("show-hermes-full", &["show", "7a3d78", "--full"]),
        ("show-gemini", &["show", "454a3468"]),
        ("show-claude", &["show", "75992cd6"]),
        ("show-codex", &["show", "b3af2126", "--full"]),
        ("sessions", &["sessions"]),
        ("sessions-failed", &["sessions", "--failed", "-n", "2"]),
        ("log", &["log"]),
        ("log-blocked", &["log", "--blocked"]),
        ("log-failed", &["log", "--failed"]),
    ] {
        matches_snapshots(&home, name, arguments);
    }
}

#[test]
fn from_show_alone_a_reader_can_say_what_happened() {
    let home = recorded();
    let hermes = printed(&home, &["show", "7a3d78"], "120", false);
    for words in [
        "failed, exit 101",
        "error: test b failed 👩‍💻",
        "2 more lines",
        "blocked by no-force-push: Force pushes need a person.",
        "rm -rf build (delete in root path)",
        "answered: deny",
        "say hi from the child",
        "failed, exit 3",
        "< I could not push.",
        "in sub-agents: 3 events, 1 decision, 1 turn, 1 tool call, 1 failed",
    ] {
        assert!(hermes.contains(words), "{words} is not in\n{hermes}");
    }
    assert_eq!(hermes.matches("I could not push.").count(), 1, "{hermes}");
    assert_eq!(hermes.matches("blocked by").count(), 1, "{hermes}");
    let gemini = printed(&home, &["show", "454a3468"], "120", false);
    for words in [
        "“TODO” in src",
        "result blocked by no-leak: The output holds secrets.",
        "blocked by budget: The budget is spent.",
        "RAN ALTHOUGH IT WAS BLOCKED",
        "it ran although it was blocked: the agent did not obey the decision",
        "would have been blocked by look-first (shadow): Not on a Friday.",
        "user was asked",
        "Two things are left.",
    ] {
        assert!(gemini.contains(words), "{words} is not in\n{gemini}");
    }
    assert_eq!(gemini.matches("are left.").count(), 1, "the end of the answer once: {gemini}");
    assert!(printed(&home, &["show", "b3af2126"], "120", false).contains("status unknown"));
}

#[test]
fn the_numbers_of_the_header_are_those_of_the_body() {
    let home = recorded();
    for session in ["7a3d78", "454a3468", "75992cd6", "b3af2126"] {
        let shown = home.json(&["show", session, "--json"]);
        assert_eq!(shown["shape"], 2);
        let items: Vec<&Value> = shown["turns"]
            .as_array()
            .expect("turns")
            .iter()
            .flat_map(|turn| turn["items"].as_array().expect("items"))
            .collect();
        let failed = items.iter().filter(|item| item["result"]["status"] == "failed").count();
        let turns = shown["turns"].as_array().expect("turns");
        let failed = failed + turns.iter().filter(|turn| !turn["failure"].is_null()).count();
        let decisions = items.iter().flat_map(|item| item["decisions"].as_array().expect("a list"));
        let blocked = decisions.filter(|decision| decision["outcome"] == "block").count();
        assert_eq!(shown["totals"]["failed"], failed, "{session}");
        assert_eq!(shown["totals"]["blocked"], blocked, "{session}");
    }
}

#[test]
fn the_html_file_needs_nothing_else_and_hostile_payloads_stay_text() {
    let home = Home::with_hooks(POLICY);
    let hostile = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x";
    let call = json!({"tool_input": {"command": hostile}, "extra": {"result": hostile}});
    tell(
        &home,
        "hermes",
        &[
            event("hermes", "pre_llm_call", hostile, &json!({"extra": {"user_message": hostile}})),
            event("hermes", "pre_tool_call", hostile, &call),
            event("hermes", "post_tool_call", hostile, &call),
        ],
    );
    let file = home.work().join("report.html");
    home.text(&["show", "last", "--html", &file.to_string_lossy()]);
    let page = std::fs::read_to_string(&file).expect("a page");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    for forbidden in ["<script", "<img", "http://", "https://", "src=x onerror=alert(1)>\""] {
        assert!(!page.contains(forbidden), "{forbidden}: {page}");
    }
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    assert_eq!(page, home.text(&["show", "last", "--html", "-"]));
}

#[test]
fn sessions_are_filtered_and_found_by_their_short_ids() {
    let home = recorded();
    let listed = |filters: &[&str]| -> Vec<String> {
        let text = home.text(&[&["sessions", "--json"], filters].concat());
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.map(|it| it["short"].as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(listed(&[]), ["b3af2126", "75992cd6", "454a3468", "7a3d78", "00ead1"]);
    assert_eq!(listed(&["--agent", "gemini"]), ["454a3468"]);
    assert_eq!(listed(&["--blocked"]), ["454a3468", "7a3d78"]);
    assert_eq!(listed(&["--failed", "--agent", "claude"]), ["75992cd6"]);
    assert_eq!(listed(&["--grep", "LEFT to do"]), ["454a3468"]);
    assert_eq!(listed(&["--project", "project", "-n", "1"]).len(), 1);
    assert_eq!(listed(&["--project", "elsewhere"]).len(), 0);
    assert_eq!(listed(&["--since", "1h"]).len(), 5);
    let first = home.text(&["sessions", "--json", "-n", "1"]);
    let first: Value = serde_json::from_str(&first).expect("JSON");
    assert!(first["session"].as_str().expect("a text").starts_with("01a1e1c7"), "latest first");
    for verb in [&["show", "last", "--json"][..], &["log", "--session", "last", "--json"]] {
        assert!(home.text(verb).contains("01a1e1c7"), "{verb:?}");
    }
    assert!(home.text(&["why", "7a3d78"]).contains("no-force-push"));
}

#[test]
fn log_filters_by_what_happened_and_rejects_unknown_values() {
    let home = recorded();
    let rows = |filters: &[&str]| home.log(filters);
    assert_eq!(rows(&["--blocked"]).len(), 4);
    assert_eq!(rows(&["--blocked", "--hook", "budget"]).len(), 1);
    assert_eq!(rows(&["--hook", "look-first"]).len(), 1);
    assert_eq!(rows(&["--failed", "--agent", "claude"]).len(), 2);
    assert!(rows(&["--grep", "forced update"]).len() == 1);
    assert!(!rows(&["--project", "project", "--blocked"]).is_empty());
    for (verb, words) in [
        (&["log", "--tool", "nonsens"][..], "no tool `nonsens`"),
        (&["log", "--tool", "terminl"], "did you mean `terminal`?"),
        (&["log", "--name", "BeforeTol"], "did you mean `BeforeTool`?"),
        (&["log", "--kind", "tol.*"], "there is no kind `tol.*`"),
        (&["log", "--hook", "budgte"], "did you mean `budget`?"),
        (&["log", "--session", "nowhere"], "hookbus sessions"),
    ] {
        let output = home.run(verb);
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
    }
}

#[test]
fn at_a_terminal_log_prints_one_screenful_and_more_goes_to_a_pager() {
    let home = Home::new();
    for number in 0..60 {
        let mut call = payloads::hermes_shell(&format!("echo number-{number}"));
        call["session_id"] = json!(format!("session-{number}"));
        home.hook("hermes", call.to_string());
    }
    let at_terminal = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PAGER", "sed 's/^/paged: /'");
        run_at_terminal(command, &[])
    };
    let (exit, screen) = at_terminal(&["log"]);
    assert_eq!(exit, Some(0));
    assert!(screen.contains("number-59") && !screen.contains("number-5 "), "{screen}");
    assert!(screen.lines().count() <= 40 && screen.contains("hookbus log --all"), "{screen}");
    let (_, paged) = at_terminal(&["log", "--all"]);
    assert!(paged.contains("paged: ") && paged.contains("number-0"), "{paged}");
    let (_, listed) = at_terminal(&["sessions"]);
    assert!(listed.contains("hookbus sessions -n") && listed.lines().count() <= 40, "{listed}");
    assert_eq!(home.text(&["log"]).lines().count(), 60, "in a pipe everything");
    assert_eq!(home.text(&["sessions"]).lines().count(), 120, "in a pipe everything");
}
