//! Broken parts stay as they were: by name, by content, and if in doubt all that could be meant.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::config::Hook;

fn parse(text: &str) -> HooksFile {
    HooksFile::parse(text, Path::new("/")).expect("a file")
}

fn merge(text: &str, earlier: &str) -> HooksFile {
    parse(text).with_last_good(text, &parse(earlier), &|_, _| true)
}

/// The names of the hooks in force; a broken one has a `!` before it.
fn names(file: &HooksFile) -> Vec<String> {
    let shown = |hook: &Hook| {
        let mark = if hook.is_broken() { "!" } else { "" };
        format!("{mark}{}", hook.name)
    };
    file.hooks.iter().map(shown).collect()
}

const A: &str = "{ name: a, rule: { when: { command: rm }, block: A } }";
const B: &str = "{ name: b, rule: { when: { command: dd }, block: B } }";

fn file(lists: &[(&str, &[&str])]) -> String {
    let list = |(event, entries): &(&str, &[&str])| {
        let entries: Vec<String> = entries.iter().map(|entry| format!("    - {entry}")).collect();
        format!("  {event}:\n{}", entries.join("\n"))
    };
    format!("hooks:\n{}\n", lists.iter().map(list).collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_broken_entry_is_as_it_was_and_the_rest_is_as_written() {
    let before = file(&[("tool.before", &[A, B])]);
    let after =
        file(&[("tool.before", &[&A.replace("block: A", "blokc: A"), &B.replace("dd", "mv")])]);
    let merged = merge(&after, &before);
    assert_eq!(names(&merged), ["a", "b"]);
    assert_eq!(merged.hooks[0].written, parse(&before).hooks[0].written);
    assert_eq!(merged.hooks[1].written, parse(&after).hooks[1].written);
    assert_eq!((merged.hooks[0].line, merged.hooks[1].line), (3, 4));
    let problem = &merged.problems[0];
    assert!(problem.kept && problem.message.ends_with("kept as it was"), "{problem}");
    assert_eq!((problem.about.as_str(), problem.line), ("a", 3));
}

#[test]
fn the_content_is_what_is_in_force_and_stays_the_same_when_merged_again() {
    let before = file(&[
        ("tool.before", &[A, B]),
        ("turn.start", &["rule: { context: \"it's [\\\"1\\\"]\" }"]),
    ]);
    for (from, to) in [
        ("block: A", "blokc: A"),
        ("tool.before", "tool.befor"),
        ("turn.start:\n    -", "turn.start:\n     "),
    ] {
        let after = before.replace(from, to);
        let once = merge(&after, &before);
        assert_eq!(once.hooks.len(), 3, "{after}");
        let again = merge(&after, &once.content);
        assert_eq!((&again.content, &again.hash), (&once.content, &once.hash), "{after}");
        let alone = parse(&once.content);
        assert_eq!((alone.problems.len(), &alone.hash), (0, &once.hash), "{}", once.content);
        let written = |file: &HooksFile| {
            file.hooks.iter().map(|hook| hook.written.clone()).collect::<Vec<_>>()
        };
        assert_eq!(written(&alone), written(&once));
    }
}

#[test]
fn the_version_before_may_itself_have_kept_something() {
    let before = parse(&file(&[("tool.before", &[A, B])]));
    let broken = file(&[("tool.before", &[&A.replace("block", "blokc"), B])]);
    let once = parse(&broken).with_last_good(&broken, &before, &|_, _| true);
    let worse = file(&[("tool.before", &[&A.replace("block", "blokc"), &B.replace("dd", "(")])]);
    let twice = parse(&worse).with_last_good(&worse, &once, &|_, _| true);
    assert_eq!(names(&twice), ["a", "b"]);
    assert_eq!(twice.hooks[0].written, before.hooks[0].written);
}

#[test]
fn a_deleted_entry_is_gone() {
    let before = file(&[("tool.before", &[A, B])]);
    let broken = B.replace("block", "blokc");
    assert_eq!(names(&merge(&file(&[("tool.before", &[&broken])]), &before)), ["b"]);
    assert_eq!(names(&merge(&file(&[("tool.before", &[B])]), &before)), ["b"]);
}

#[test]
fn instead_of_a_new_broken_hook_everything_stays_that_it_could_be_another_version_of() {
    let before = file(&[("tool.before", &[A]), ("turn.start", &[B])]);
    let other = "{ name: c, tool: shel, rule: { block: C } }";
    let merged = merge(&file(&[("tool.before", &[other])]), &before);
    assert_eq!(names(&merged), ["a"]);
    assert!(merged.problems[0].kept, "{:?}", merged.problems);
    let merged = merge(&file(&[("tool.before", &[A, other])]), &before);
    assert_eq!(names(&merged), ["a", "!c"]);
    assert!(!merged.problems[0].kept, "{:?}", merged.problems);
}

#[test]
fn beside_a_mistake_that_was_there_before_a_deletion_counts() {
    let broken = "rule: { blokc: x }";
    let named = "{ name: c, tool: shel, rule: { block: C } }";
    for before in [
        file(&[("tool.before", &[A, B, broken])]),
        file(&[("tool.before", &[A, B, named])]),
        format!("{}  tool.bogus: [{B}]\n", file(&[("tool.before", &[A, B])])),
        format!("{}turn.start: [{B}]\n", file(&[("tool.before", &[A, B])])),
    ] {
        let after = before.replace(&format!("    - {A}\n"), "");
        assert_ne!(before, after);
        let merged = merge(&after, &before);
        let in_force: Vec<String> =
            names(&merged).into_iter().filter(|name| !name.starts_with('!')).collect();
        assert_eq!(in_force, ["b"], "{after}");
        assert!(merged.problems.iter().all(|problem| !problem.kept), "{after}");
    }
}

#[test]
fn while_an_unnamed_entry_is_broken_nothing_of_its_list_is_dropped() {
    let (one, two) =
        ("rule: { when: { command: rm }, block: one }", "rule: { when: { path: x }, block: two }");
    let before = file(&[("tool.before", &[one, two])]);
    let kept = |entries: &[&str]| {
        let merged = merge(&file(&[("tool.before", entries)]), &before);
        merged.hooks.into_iter().map(|hook| hook.written).collect::<Vec<_>>()
    };
    let was = parse(&before).hooks.into_iter().map(|hook| hook.written).collect::<Vec<_>>();
    // One of them is gone, and it is not clear which one is broken.
    assert_eq!(kept(&[&two.replace("path: x", "path: '('")]), was);
    // The other one is there, so it is clear.
    assert_eq!(kept(&[one, "rule: { whne: { path: y }, block: other }"]), was);
    assert_eq!(kept(&["nonsense", one]), [was[1].clone(), was[0].clone()]);
    // A further one is new, and has no earlier form.
    let merged = merge(&file(&[("tool.before", &[one, two, "rule: { blokc: x }"])]), &before);
    assert_eq!(merged.hooks.iter().filter(|hook| hook.is_broken()).count(), 1);
    // Its name is misspelled.
    let named = file(&[("tool.before", &[A, B])]);
    let merged = merge(&file(&[("tool.before", &[A, &B.replace("name", "nmae")])]), &named);
    assert_eq!(names(&merged), ["a", "b"]);
}

#[test]
fn a_mistake_in_a_file_of_the_other_form_keeps_all_hooks_as_they_were() {
    let list = "hooks:\n  - { event: pre_tool_call, command: a }\n  - { event: post_tool_call, command: b }\n";
    let events = "hooks:\n  pre_tool_call: [{ command: a }]\n  post_tool_call: [{ command: b }]\n";
    for (before, after) in [
        (list, events.replace("command: b", "comand: b")),
        (list, events.replace("post_tool_call", "post_tool_cal")),
        (events, list.replace("command: b", "comand: b")),
    ] {
        let merged = merge(&after, before);
        assert_eq!(names(&merged), ["a", "b"], "{after}");
        assert!(merged.problems.iter().all(|problem| problem.kept), "{after}");
    }
}

#[test]
fn the_entries_under_a_broken_key_stay() {
    let before = file(&[("tool.before", &[A]), ("turn.start", &[B])]);
    for after in [
        file(&[("tool.befor", &[A]), ("turn.start", &[B])]),
        file(&[("tool.before", &[A]), ("turn.strat", &[&B.replace("dd", "mv")])]),
        format!("hooks:\n  tool.before: {A}\n  turn.start: [{B}]\n"),
        format!("hooks:\n  tool.before: later\n  turn.start: [{B}]\n"),
        format!("hooks:\n  turn.start: [{B}]\ntool.before: [{A}]\n"),
    ] {
        let merged = merge(&after, &before);
        let mut found = names(&merged);
        found.sort();
        assert_eq!(found, ["a", "b"], "{after}");
        assert!(merged.problems.iter().all(|problem| problem.kept), "{after}");
    }
    // One of two entries was moved under a mistyped key.
    let merged = merge(
        &file(&[("tool.before", &[B]), ("tool.befor", &[A])]),
        &file(&[("tool.before", &[A, B])]),
    );
    assert_eq!(names(&merged), ["b", "a"]);
}

#[test]
fn a_broken_entry_is_kept_although_another_event_has_one_of_its_name() {
    let merged = merge(
        &file(&[("pre_tool_call", &[&A.replace("rule", "rul")]), ("tool.before", &[A])]),
        &file(&[("pre_tool_call", &[B, A])]),
    );
    let hooks: Vec<_> =
        merged.hooks.iter().map(|hook| (hook.on.to_string(), hook.is_broken())).collect();
    assert_eq!(hooks, [("pre_tool_call".to_owned(), false), ("tool.before".to_owned(), false)]);
}

#[test]
fn an_entry_that_moved_to_another_event_and_broke_stays_where_it_was() {
    let merged = merge(
        &file(&[("tool.before", &[B]), ("pre_tool_call", &[&A.replace("rule", "rul")])]),
        &file(&[("tool.before", &[A, B])]),
    );
    let hooks: Vec<_> =
        merged.hooks.iter().map(|hook| (hook.on.to_string(), hook.name.as_str())).collect();
    assert_eq!(hooks, [("tool.before".to_owned(), "b"), ("tool.before".to_owned(), "a")]);
}

#[test]
fn a_broken_setting_keeps_its_earlier_value() {
    let rest = file(&[("tool.before", &[A])]);
    let before = format!(
        "on_failure: block\ntrust: home\nmax_continuations: 3\nplugins: {{ enabled: [x] }}\n{rest}"
    );
    let after =
        format!("on_failur: allow\ntrust: hoem\nmax_continuations: many\nplugins: [x]\n{rest}");
    let merged = merge(&after, &before);
    assert_eq!(merged.on_failure, crate::event::OnFailure::Block);
    assert_eq!(merged.trust, crate::config::Trust::Home);
    assert_eq!((merged.max_continuations, merged.plugins.enabled.len()), (3, 1));
    assert_eq!(merged.problems.iter().filter(|problem| problem.kept).count(), 4);
    assert_eq!(names(&merged), ["a"]);
}

#[test]
fn without_an_earlier_value_the_readable_rest_counts_and_failures_block() {
    let rest = file(&[("tool.before", &[A])]);
    for setting in ["on_failur: allow", "on_failure: alow"] {
        let merged = merge(&format!("{setting}\n{rest}"), "");
        assert_eq!(merged.on_failure, crate::event::OnFailure::Block, "{setting}");
        assert_eq!((names(&merged).len(), merged.problems.len()), (1, 1));
        assert!(!merged.problems[0].kept);
    }
}

#[test]
fn nats_settings_stay_in_memory_and_out_of_the_content() {
    let rest = file(&[("tool.before", &[A])]);
    let before = parse(&format!("nats: {{ url: nats://a, token: hush }}\n{rest}"));
    let after = format!("nats: {{ urk: nats://a, token: hush }}\n{rest}");
    let merged = parse(&after).with_last_good(&after, &before, &|_, _| true);
    assert_eq!(merged.nats, before.nats);
    assert!(!merged.content.contains("hush"), "{}", merged.content);
}

#[test]
fn the_list_form_keeps_its_entries() {
    let before = "hooks:\n  - { event: pre_tool_call, command: a }\n  - { event: post_tool_call, command: b }\n";
    for (from, to) in [("command: a", "comand: a"), ("event: pre_tool_call", "event: pre_tool_cal")]
    {
        let merged = merge(&before.replace(from, to), before);
        assert_eq!(names(&merged), ["a", "b"], "{to}");
    }
}

/// An entry, with mistakes if `broken`.
fn any_entry(broken: bool) -> impl Strategy<Value = String> {
    let mut parts = vec!["tool: shell", "on_failure: block", "agent: gemini", "timeout: 3"];
    let mut actions = vec![
        "name: a, rule: { block: x }",
        "name: b, command: x",
        "command: y",
        "rule: { context: z }",
    ];
    if broken {
        parts.extend(["nmae: c", "tool: shel", "on_failure: maybe", "matcher: '('"]);
        actions.extend([
            "name: a, rule: { blokc: x }",
            "name: b, comand: x",
            "rule: { context: [] }",
            "name: c",
        ]);
    }
    let parts = prop::collection::btree_set(prop::sample::select(parts), 0..3);
    (prop::sample::select(actions), parts).prop_map(|(action, parts)| {
        let mut keys: Vec<&str> = Vec::new();
        let parts = parts.into_iter().filter(|part| {
            let key = part.split(':').next().unwrap_or_default();
            let is_new = !keys.contains(&key);
            keys.push(key);
            is_new
        });
        let parts: Vec<&str> = std::iter::once(action).chain(parts).collect();
        format!("{{ {} }}", parts.join(", "))
    })
}

/// A file, with mistakes if `broken`: its entries under events, or in one list.
fn any_file(broken: bool) -> impl Strategy<Value = String> {
    let mut keys = vec!["tool.before", "turn.start", "pre_tool_call"];
    let mut settings = vec!["", "trust: home\n", "on_failure: block\n"];
    if broken {
        keys.push("tool.befor");
        settings.extend(["on_failure: blok\n", "trsut: home\n", "turn.end: []\n", "turn.end: x\n"]);
    }
    let entries = prop::collection::vec(any_entry(broken), 0..4);
    let lists = prop::collection::btree_map(prop::sample::select(keys), entries, 0..4);
    let is_list = prop::bool::weighted(0.1);
    (lists, prop::sample::select(settings), is_list).prop_map(|(lists, setting, is_list)| {
        let of_event = |(event, entries): (&str, Vec<String>)| {
            format!("  {event}: [{}]\n", entries.join(", "))
        };
        let in_list = |(event, entries): (&str, Vec<String>)| {
            let item = |entry: &String| {
                format!("  - {}\n", entry.replacen('{', &format!("{{ event: {event},"), 1))
            };
            entries.iter().map(item).collect::<String>()
        };
        let hooks: String = if is_list {
            lists.into_iter().map(in_list).collect()
        } else {
            lists.into_iter().map(of_event).collect()
        };
        match (is_list, hooks.is_empty()) {
            (true, true) => format!("{setting}hooks: []\n"),
            (true, false) => format!("{setting}hooks:\n{hooks}"),
            (false, _) => format!("{setting}hooks:\n  session.end: []\n{hooks}"),
        }
    })
}

/// What is in force.
fn in_force(file: &HooksFile) -> Vec<String> {
    let shown = |hook: &Hook| format!("{}: {} {}", hook.on, hook.written, hook.is_broken());
    file.hooks.iter().map(shown).collect()
}

fn is_it(hook: &Hook) -> impl Fn(&Hook) -> bool {
    |it| (&it.written, &it.on) == (&hook.written, &hook.on)
}

proptest! {
    #[test]
    fn a_good_file_merged_with_anything_is_itself(text in any_file(false), earlier in any_file(true)) {
        let (file, merged) = (parse(&text), merge(&text, &earlier));
        prop_assert!(!file.has_mistakes(), "{:?}", file.problems);
        prop_assert_eq!((merged.content, merged.problems), (file.content, file.problems));
    }

    #[test]
    fn a_second_merge_changes_nothing(text in any_file(true), earlier in any_file(true)) {
        let once = merge(&text, &earlier);
        let again = merge(&text, &once.content);
        prop_assert_eq!(&again.content, &once.content);
        prop_assert_eq!(in_force(&again), in_force(&once));
    }

    #[test]
    fn no_good_entry_of_the_new_text_is_lost(text in any_file(true), earlier in any_file(true)) {
        let (file, merged) = (parse(&text), merge(&text, &earlier));
        let broken = broken_places(&file.problems);
        // Of hooks that have another form and a mistake nothing counts.
        let is_list = |text: &str| text.contains("hooks: []") || text.contains("  - {");
        if is_list(&text) != is_list(&earlier) {
            return Ok(());
        }
        for hook in file.hooks.iter().filter(|hook| !broken.contains(&hook.place)) {
            // The same command may be there already, in a kept entry.
            prop_assert!(merged.hooks.iter().any(is_it(hook)) || hook.is_command(), "{}", hook.written);
        }
    }

    #[test]
    fn against_a_good_version_no_entry_that_is_still_there_by_name_stays_broken(
        text in any_file(true), earlier in any_file(false),
    ) {
        let (merged, old) = (merge(&text, &earlier), parse(&earlier));
        for hook in merged.hooks.iter().filter(|hook| hook.is_broken() && hook.written.contains("\"name\"")) {
            let was_there = old.hooks.iter().filter(|it| (&it.name, &it.on) == (&hook.name, &hook.on)).count();
            let is_there = merged.hooks.iter().filter(|it| (&it.name, &it.on) == (&hook.name, &hook.on)).count();
            // As often as it was there before, it is in force; a further one of the name is new.
            prop_assert!(was_there < is_there, "{} {}", hook.name, merged.content);
        }
    }

    /// While it is not clear which hook a mistake is about, none of that list is dropped.
    #[test]
    fn a_mistake_that_could_be_about_any_hook_loses_none(text in any_file(true), earlier in any_file(false)) {
        let (file, merged, old) = (parse(&text), merge(&text, &earlier), parse(&earlier));
        let is_named = |hook: &Hook| hook.written.contains("\"name\"");
        let is_unclear = |new: &Hook| {
            let namesakes = |hooks: &[Hook]| hooks.iter().filter(|it| is_named(it) && it.name == new.name).count();
            new.is_broken() && (!is_named(new) || namesakes(&old.hooks) == 0)
        };
        let unclear: Vec<&Hook> = file.hooks.iter().filter(|new| is_unclear(new)).collect();
        for hook in old.hooks.iter().filter(|hook| unclear.iter().any(|new| new.on == hook.on)) {
            // It was edited under its own name, or the same command is there already.
            let is_edited = is_named(hook) && file.hooks.iter().any(|new| new.name == hook.name);
            prop_assert!(merged.hooks.iter().any(is_it(hook)) || is_edited || hook.is_command(), "{}", hook.written);
        }
    }
}
