//! The starter packs against a corpus of shell lines: every bad line is blocked or asked about, and fewer than one in a
//! hundred good ones is. The lines are in `shell_lines/`; they were written without a look at the packs.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::path::Path;
use std::sync::Arc;

use hookbus::active::{ActiveHooks, HookSets};
use hookbus::caller::Caller;
use hookbus::config::{HooksFile, PACKS, run_examples};
use hookbus::decide::{HookResult, plan, run_rules};
use hookbus::dialect::{Arrival, decode};
use hookbus::event::{Agent, Event, EventId, Ruling, Time, Wire};
use hookbus::rule::{Facts, Place, ShellLines};
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::json;

const HOME: &str = "/home/dev";
const PROJECT: &str = "/home/dev/work/shop";

/// The lines of a file of the corpus, with the section that each is in.
fn lines(file: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("shell_lines").join(file);
    let text = std::fs::read_to_string(path).expect("a file of the corpus");
    let documents = Yaml::load_from_str(&text).expect("YAML");
    let sections = documents[0].as_mapping().expect("sections");
    let of_section = |(name, lines): (&Yaml<'_>, &Yaml<'_>)| {
        let name = name.as_str().expect("a name").to_owned();
        let lines = lines.as_vec().expect("a list").iter();
        let lines: Vec<_> = lines
            .map(|line| line.as_str().expect("a line").replace("@PROJECT@", PROJECT))
            .collect();
        lines.into_iter().map(move |line| (name.clone(), line)).collect::<Vec<_>>()
    };
    sections.iter().flat_map(of_section).collect()
}

fn starter() -> HookSets {
    let file =
        HooksFile::parse("use: [starter]\n", &Path::new(HOME).join(".hookbus")).expect("hooks");
    assert!(file.problems.is_empty(), "{:#?}", file.problems);
    HookSets::own(Arc::new(ActiveHooks::for_replay(file)))
}

fn call(line: &str) -> Event {
    let payload = json!({
        "hook_event_name": "BeforeTool",
        "session_id": "corpus",
        "cwd": PROJECT,
        "tool_name": "run_shell_command",
        "tool_input": {"command": line},
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

/// The hooks that hold a line back.
fn held_back_by(line: &str, hooks: &HookSets) -> Vec<String> {
    let event = call(line);
    let caller = Caller {
        cwd: PROJECT.into(),
        env: vec![("HOME".into(), HOME.into())],
        ..Caller::default()
    };
    let plan = plan(&event, hooks);
    let (place, lines) = (Place::of_call(&event, &caller, plan.home()), ShellLines::default());
    let results = run_rules(&plan, &Facts::new(&event, &place, &lines), std::time::Duration::MAX);
    let holds = |ruling| matches!(ruling, Some(Ruling::Block | Ruling::Ask));
    let records = results.iter().map(HookResult::record);
    records
        .filter(|record| holds(record.verdict.ruling))
        .map(|record| record.hook.clone())
        .collect()
}

#[test]
fn every_bad_line_is_held_back() {
    let hooks = starter();
    let lines = lines("bad.yaml");
    assert!(lines.len() >= 300);
    let missed: Vec<String> = lines
        .iter()
        .filter(|(_, line)| held_back_by(line, &hooks).is_empty())
        .map(|(section, line)| format!("{section}: {line}"))
        .collect();
    assert!(missed.is_empty(), "{} of {} pass:\n{}", missed.len(), lines.len(), missed.join("\n"));
}

#[test]
fn good_lines_are_not_interrupted() {
    let hooks = starter();
    let lines = lines("good.yaml");
    assert!(lines.len() >= 500);
    let caught: Vec<String> = lines
        .iter()
        .map(|(section, line)| (section, line, held_back_by(line, &hooks)))
        .filter(|(_, _, hooks)| !hooks.is_empty())
        .map(|(section, line, hooks)| format!("{section}: {line}   <- {}", hooks.join(", ")))
        .collect();
    assert!(
        caught.len() * 100 < lines.len(),
        "{} of {} are held back:\n{}",
        caught.len(),
        lines.len(),
        caught.join("\n")
    );
}

/// Written without a look at the packs or at the other corpus. The packs were extended once by what it showed (89 % of
/// the bad lines were held back before that), so it is no measure of lines that are new; it keeps what was reached.
#[test]
fn of_another_corpus_few_bad_lines_pass_and_few_good_ones_are_interrupted() {
    let hooks = starter();
    let (bad, good) = (lines("other_bad.yaml"), lines("other_good.yaml"));
    assert!(bad.len() >= 500 && good.len() >= 800);
    let is_held_back = |(_, line): &&(String, String)| !held_back_by(line, &hooks).is_empty();
    let (stopped, caught) =
        (bad.iter().filter(is_held_back).count(), good.iter().filter(is_held_back).count());
    assert!(stopped * 100 >= bad.len() * 95, "{stopped} of {} bad lines are held back", bad.len());
    assert!(caught * 100 <= good.len(), "{caught} of {} good lines are held back", good.len());
}

/// Written without a look at the packs. Of the third set 86 % of the bad lines were held back before the packs were
/// extended by what it showed, and 1.2 % of the good ones; of the fourth, which is about other areas, 69 % before and 89 %
/// after that. Lines that may be seen either way were left out then. The fifth and the sixth were written after that: 97 % of
/// the bad lines of each were held back at first sight, and 1.0 % and 0.7 % of the good ones.
#[test]
fn of_the_later_corpora_few_bad_lines_pass_and_few_good_ones_are_interrupted() {
    let hooks = starter();
    let is_held_back = |(_, line): &&(String, String)| !held_back_by(line, &hooks).is_empty();
    for corpus in ["third", "fourth", "fifth", "sixth"] {
        let (bad, good) =
            (lines(&format!("{corpus}_bad.yaml")), lines(&format!("{corpus}_good.yaml")));
        assert!(bad.len() >= 180 && good.len() >= 250);
        let passing: Vec<_> = bad.iter().filter(|line| !is_held_back(line)).collect();
        let caught: Vec<_> = good.iter().filter(is_held_back).collect();
        assert!(passing.len() * 100 <= bad.len() * 2, "of {} pass: {passing:#?}", bad.len());
        assert!(caught.len() * 100 <= good.len() * 2, "of {} caught: {caught:#?}", good.len());
    }
}

#[test]
fn every_example_of_the_packs_comes_out_as_expected() {
    let hooks = starter();
    let file = &hooks.own.file;
    let results: Vec<_> = file.hooks.iter().flat_map(run_examples).collect();
    assert!(results.len() > 200, "{}", results.len());
    let missed: Vec<_> = results.iter().filter(|result| result.missed.is_some()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    // A rule with a mistake would be left out.
    let written = PACKS.iter().flat_map(|(_, text)| text.lines());
    let names: Vec<&str> =
        written.filter_map(|line| line.strip_prefix("    - name: ")).map(str::trim).collect();
    let loaded: Vec<&str> = file.hooks.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, loaded);
    for hook in &file.hooks {
        assert!(hook.name.starts_with(hook.pack.as_deref().expect("a pack")), "{}", hook.name);
        let has_examples = hook.examples.len() > 1 || hook.name == "shell-unreadable";
        assert!(has_examples, "{} has no examples", hook.name);
    }
}
