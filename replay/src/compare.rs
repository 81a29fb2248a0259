//! Compares a recorded decision with a replayed one: what the agent would receive. Timing is never a
//! difference.

use std::borrow::Cow;

use hookbus::decide::without_added_texts;
use hookbus::event::{Decision, Outcome, PluginHistory};
use serde_json::Value;

use hookbus::event::{RecordedDecision, RecordedVerdict};

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// The agent receives the same answer.
    Unchanged,
    /// It was let through and is refused now.
    NewlyBlocked,
    /// It was refused and is let through now.
    NewlyAllowed,
    /// Another reason, context, rewrite or question.
    Changed,
    /// A hook fails that did not fail when recorded.
    Failed,
    /// The decisions cannot be compared, for a reason that is given.
    NotComparable,
}

impl Category {
    /// Every category, in the order of the report.
    pub const ALL: [Self; 6] = [
        Self::Unchanged,
        Self::NewlyBlocked,
        Self::NewlyAllowed,
        Self::Changed,
        Self::Failed,
        Self::NotComparable,
    ];

    /// The name in reports for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::NewlyBlocked => "newly blocked",
            Self::NewlyAllowed => "newly allowed",
            Self::Changed => "changed",
            Self::Failed => "failed",
            Self::NotComparable => "not comparable",
        }
    }

    /// The key in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::NewlyBlocked => "newly_blocked",
            Self::NewlyAllowed => "newly_allowed",
            Self::Changed => "changed",
            Self::Failed => "failed",
            Self::NotComparable => "not_comparable",
        }
    }

    /// Whether the agent receives another answer, and no hook failed.
    pub(crate) const fn is_other_answer(self) -> bool {
        match self {
            Self::NewlyBlocked | Self::NewlyAllowed | Self::Changed => true,
            Self::Unchanged | Self::Failed | Self::NotComparable => false,
        }
    }
}

/// What differs between two decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The kind of difference.
    pub category: Category,
    /// The hook that causes the difference.
    pub hook: Option<String>,
    /// The reason, for `failed` and `not comparable`.
    pub why: Option<String>,
    /// Remarks about this event.
    pub notes: Vec<String>,
}

impl Comparison {
    fn new(category: Category) -> Self {
        Self { category, hook: None, why: None, notes: Vec::new() }
    }

    pub(crate) fn not_comparable(why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::new(Category::NotComparable) }
    }
}

/// Compares the answer that the agent received with the one it would receive. No decision means an empty
/// answer. `was_malformed` says whether the entry of a hook was malformed in the recorded hooks, which
/// made it fail every time.
pub fn compare(
    recorded: Option<&RecordedDecision>,
    replayed: Option<&Decision>,
    was_malformed: &dyn Fn(&str) -> bool,
) -> Comparison {
    let recorded_outcome = recorded.map_or(Outcome::None, |decision| decision.outcome);
    let replayed_outcome = replayed.map_or(Outcome::None, |decision| decision.outcome);
    let before = &*recorded.map_or_else(Cow::default, |it| enforced(&it.verdicts));
    if let Some((hook, failure)) = newly_failed(before, replayed) {
        return Comparison {
            hook: Some(hook.to_owned()),
            why: Some(format!("hook `{hook}` failed: {failure}")),
            notes: changed_scripts(recorded, replayed),
            ..Comparison::new(Category::Failed)
        };
    }
    let same_answer = is_same_answer(
        recorded.and_then(|decision| decision.answer.as_ref()),
        replayed.and_then(|decision| decision.answer.as_ref()),
    );
    if recorded_outcome == replayed_outcome && same_answer {
        return Comparison::new(Category::Unchanged);
    }
    let after = replayed.map_or_else(Vec::new, |it| RecordedDecision::from(it).verdicts);
    let after = enforced(&after);
    if recorded_outcome == replayed_outcome && only_failures_differ(before, &after) {
        return Comparison::new(Category::Unchanged);
    }
    let category = match (recorded_outcome.refuses(), replayed_outcome.refuses()) {
        (false, true) => Category::NewlyBlocked,
        (true, false) => Category::NewlyAllowed,
        (true, true) | (false, false) => Category::Changed,
    };
    if let Some(verdict) = recovered(category, before, &after, was_malformed) {
        let hook = &verdict.hook;
        let failure = verdict.failure.as_deref().unwrap_or_default();
        let why = format!("hook `{hook}` failed when recorded ({failure}) and answers now");
        return Comparison { hook: Some(hook.clone()), ..Comparison::not_comparable(why) };
    }
    let hook = responsible(category, before, &after).map(str::to_owned);
    Comparison { hook, notes: changed_scripts(recorded, replayed), ..Comparison::new(category) }
}

/// The verdicts that had an effect: without those of hooks in shadow mode.
fn enforced(verdicts: &[RecordedVerdict]) -> Cow<'_, [RecordedVerdict]> {
    if verdicts.iter().any(|verdict| verdict.shadow) {
        verdicts.iter().filter(|verdict| !verdict.shadow).cloned().collect()
    } else {
        Cow::Borrowed(verdicts)
    }
}

/// Ignores text that the bus itself adds to an answer: an older log may have been written without it.
fn is_same_answer(recorded: Option<&Value>, replayed: Option<&Value>) -> bool {
    recorded == replayed || recorded.map(without_added_texts) == replayed.map(without_added_texts)
}

/// The first hook that fails now and did not fail when recorded, with its error.
fn newly_failed<'a>(
    before: &[RecordedVerdict],
    replayed: Option<&'a Decision>,
) -> Option<(&'a str, &'a str)> {
    let failed_before =
        |hook: &str| before.iter().any(|verdict| verdict.failure.is_some() && verdict.hook == hook);
    let verdicts = replayed.into_iter().flat_map(|decision| &decision.verdicts);
    let verdicts = verdicts.filter(|verdict| !verdict.shadow);
    let mut failed =
        verdicts.filter_map(|verdict| Some((verdict.hook.as_str(), verdict.failure.as_deref()?)));
    failed.find(|(hook, _)| !failed_before(hook))
}

/// Whether both sides differ only in the text of failures. It varies between runs (a process id, a path),
/// and a hook that blocks when it fails passes it on to the agent.
fn only_failures_differ(before: &[RecordedVerdict], after: &[RecordedVerdict]) -> bool {
    let failures = |side: &[RecordedVerdict]| -> Vec<(String, String)> {
        let failed = side.iter().filter(|verdict| verdict.failure.is_some());
        failed.map(|verdict| (verdict.hook.clone(), verdict.verdict.clone())).collect()
    };
    let others = |verdict: &&RecordedVerdict| verdict.failure.is_none() && !verdict.is_silent();
    let reaches_agent =
        |verdict: &RecordedVerdict| verdict.failure.is_some() && !verdict.is_silent();
    before.iter().any(reaches_agent)
        && failures(before) == failures(after)
        && before.iter().filter(others).count() == after.iter().filter(others).count()
        && before
            .iter()
            .filter(others)
            .zip(after.iter().filter(others))
            .all(|(recorded, replayed)| recorded.is_same_as(replayed))
}

/// The hook that failed when recorded, answers now and thereby causes the difference. Its failure depended
/// on something that is not in the log, so the decisions cannot be compared. A malformed entry fails
/// regardless of anything else, so it does not count.
fn recovered<'a>(
    category: Category,
    before: &'a [RecordedVerdict],
    after: &[RecordedVerdict],
    was_malformed: &dyn Fn(&str) -> bool,
) -> Option<&'a RecordedVerdict> {
    let answer = |failed: &RecordedVerdict| {
        after.iter().find(|verdict| verdict.hook == failed.hook && verdict.failure.is_none())
    };
    let has_recovered = |verdict: &RecordedVerdict| {
        verdict.failure.is_some()
            && !was_malformed(&verdict.hook)
            && answer(verdict).is_some_and(|now| now.verdict != verdict.verdict || !now.is_silent())
    };
    let is_other = |verdict: &&RecordedVerdict| {
        !before.iter().any(|failed| failed.hook == verdict.hook && has_recovered(failed))
    };
    // Another hook may cause the same difference by itself.
    let differs_without_it = match category {
        Category::NewlyBlocked => {
            only_in(after, before).filter(is_other).any(RecordedVerdict::refuses)
        }
        Category::NewlyAllowed => before.iter().filter(is_other).any(RecordedVerdict::refuses),
        Category::Unchanged | Category::Changed | Category::Failed | Category::NotComparable => {
            false
        }
    };
    before.iter().find(|verdict| has_recovered(verdict)).filter(|_| !differs_without_it)
}

/// The verdicts of `one` that `other` does not have.
fn only_in<'a>(
    one: &'a [RecordedVerdict],
    other: &[RecordedVerdict],
) -> impl Iterator<Item = &'a RecordedVerdict> {
    one.iter().filter(|verdict| !other.iter().any(|there| verdict.is_same_as(there)))
}

/// The hook that causes the difference: the one that refuses on one side only, else the first with
/// another verdict.
fn responsible<'a>(
    category: Category,
    before: &'a [RecordedVerdict],
    after: &'a [RecordedVerdict],
) -> Option<&'a str> {
    let refusing = match category {
        Category::NewlyBlocked => only_in(after, before).find(|verdict| verdict.refuses()),
        Category::NewlyAllowed => only_in(before, after).find(|verdict| verdict.refuses()),
        Category::Unchanged | Category::Changed | Category::Failed | Category::NotComparable => {
            None
        }
    };
    let has_content = |verdict: &&RecordedVerdict| !verdict.is_silent();
    let found = refusing
        .or_else(|| only_in(after, before).find(has_content))
        .or_else(|| only_in(before, after).find(has_content));
    // The same verdicts can still lead to another answer.
    found.or(after.first()).or(before.first()).map(|verdict| verdict.hook.as_str())
}

/// Says why the state of a plugin is unknown, from its recorded and its replayed state.
pub(crate) type UnknownState<'a> = &'a dyn Fn(&str, [Option<PluginHistory>; 2]) -> Option<String>;

/// Why the difference may come from the state of plugins alone: all hooks with another verdict have
/// unchanged code, and `unknown_state` gives a reason for each of them.
pub(crate) fn explained_by_unknown_state(
    recorded: &RecordedDecision,
    replayed: &Decision,
    comparison: &Comparison,
    unknown_state: UnknownState<'_>,
) -> Option<String> {
    let replayed = RecordedDecision::from(replayed);
    let (before, after) = (&*enforced(&recorded.verdicts), &*enforced(&replayed.verdicts));
    let reason = |hook: &str| {
        let code_and_state = |side: &[RecordedVerdict]| {
            let verdict = side.iter().find(|verdict| verdict.hook == hook)?;
            Some((verdict.script.clone()?, verdict.plugin_state))
        };
        let ((old_code, old_state), (new_code, new_state)) =
            code_and_state(before).zip(code_and_state(after))?;
        (old_code == new_code).then(|| unknown_state(hook, [old_state, new_state])).flatten()
    };
    let responsible = comparison.hook.as_deref()?;
    let mut different = only_in(before, after).chain(only_in(after, before));
    let all = different.all(|verdict| reason(&verdict.hook).is_some());
    reason(responsible).filter(|_| all)
}

/// A note for each hook whose script has changed.
fn changed_scripts(
    recorded: Option<&RecordedDecision>,
    replayed: Option<&Decision>,
) -> Vec<String> {
    let Some((recorded, replayed)) = recorded.zip(replayed) else { return Vec::new() };
    let has_changed = |hook: &str, script: Option<&str>| {
        let before = recorded.verdicts.iter().find(|verdict| verdict.hook == hook);
        let before = before.and_then(|verdict| verdict.script.as_deref());
        before.is_some() && script.is_some() && before != script
    };
    replayed
        .verdicts
        .iter()
        .filter(|verdict| !verdict.shadow)
        .filter(|verdict| has_changed(&verdict.hook, verdict.script.as_deref()))
        .map(|verdict| format!("the script of hook `{}` has changed since", verdict.hook))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hookbus::event::{OnFailure, Ruling, Verdict, VerdictRecord};
    use serde_json::json;

    use super::*;

    fn recorded(outcome: &str, answer: &Value, verdicts: &Value) -> RecordedDecision {
        let row = json!({"hooks": "h", "outcome": outcome, "answer": answer, "verdicts": verdicts});
        RecordedDecision::from_json(row).expect("a decision")
    }

    fn replayed(verdict: Verdict, answer: Value, failure: Option<&str>) -> Decision {
        Decision {
            hooks: "h".to_owned(),
            outcome: Outcome::of(&verdict),
            verdicts: vec![VerdictRecord {
                hook: "guard".to_owned(),
                verdict,
                exit: None,
                took: Duration::from_millis(7),
                failure: failure.map(str::to_owned),
                policy: OnFailure::Allow,
                script: Some("new".to_owned()),
                history: None,
                refused: false,
                of_project: false,
                shadow: false,
                note: None,
            }],
            answer: Some(answer).filter(|answer| !answer.is_null()),
            took: Duration::from_millis(9),
            waited_for: true,
            can_ask: None,
            note: None,
            notice: None,
        }
    }

    fn compared(recorded: &RecordedDecision, replayed: &Decision) -> Comparison {
        compare(Some(recorded), Some(replayed), &|_| false)
    }

    #[test]
    fn the_answer_decides_the_category() {
        let no = json!({"decision": "block", "reason": "no"});
        let blocked = recorded(
            "block",
            &no,
            &json!([{"hook": "guard", "verdict": "block", "reason": "no", "ms": 3.0}]),
        );
        let same = replayed(Verdict::block("no"), no, None);
        assert_eq!(compared(&blocked, &same).category, Category::Unchanged);
        assert_eq!(compare(None, None, &|_| false).category, Category::Unchanged);
        let added = compare(None, Some(&same), &|_| false);
        assert_eq!(
            (added.category, added.hook.as_deref()),
            (Category::NewlyBlocked, Some("guard"))
        );
        let removed = compare(Some(&blocked), None, &|_| false);
        let found = (removed.category, removed.hook.as_deref());
        assert_eq!(found, (Category::NewlyAllowed, Some("guard")));
        let answer = json!({"decision": "block", "reason": "never"});
        let reworded = replayed(Verdict::block("never"), answer, None);
        assert_eq!(compared(&blocked, &reworded).category, Category::Changed);
    }

    #[test]
    fn text_that_the_bus_adds_is_not_a_difference() {
        let asks = json!([{"hook": "guard", "verdict": "ask", "reason": "sure?"}]);
        let older = recorded("block", &json!({"action": "block", "message": "sure?"}), &asks);
        let category = |message: &str| {
            let answer = json!({"action": "block", "message": message});
            let asked = Verdict { reason: Some("sure?".to_owned()), ..Verdict::block("") };
            compared(&older, &replayed(asked, answer, None)).category
        };
        let added = "(nobody can be asked here, so it is blocked)";
        assert_eq!(category(&format!("sure? {added}")), Category::Unchanged);
        assert_eq!(category(&format!("no! {added}")), Category::Changed);
    }

    #[test]
    fn a_new_failure_is_not_a_change() {
        let failed = replayed(Verdict::silent(), Value::Null, Some("exit code 3"));
        assert_eq!(compare(None, Some(&failed), &|_| false).category, Category::Failed);
        let verdict =
            json!([{"hook": "guard", "verdict": "none", "failed": true, "failure": "exit code 1"}]);
        let failed_before = recorded("none", &Value::Null, &verdict);
        assert_eq!(compared(&failed_before, &failed).category, Category::Unchanged);
        let answers = replayed(Verdict::block("no"), json!({"decision": "block"}), None);
        let recovered = compared(&failed_before, &answers);
        assert_eq!(recovered.category, Category::NotComparable);
        assert!(recovered.why.is_some_and(|why| why.contains("exit code 1")));
    }

    /// Two decisions by `guard`, which failed when recorded, and `rule`.
    fn with_recorded_failure(
        guard: (&str, Verdict, Option<&str>),
        rule: (&str, Verdict),
    ) -> (RecordedDecision, Decision) {
        let verdicts = json!([
            {"hook": "guard", "verdict": guard.0, "reason": "hook `guard` failed: 1", "failure": "1"},
            {"hook": "rule", "verdict": rule.0, "reason": "old"},
        ]);
        let refused = guard.0 == "block" || rule.0 == "block";
        let outcome = if refused { "block" } else { "none" };
        let mut after = replayed(guard.1, json!({"now": true}), guard.2);
        let by_rule = VerdictRecord {
            hook: "rule".to_owned(),
            verdict: rule.1,
            failure: None,
            ..after.verdicts[0].clone()
        };
        if after.outcome != Outcome::Block {
            after.outcome = Outcome::of(&by_rule.verdict);
        }
        after.verdicts.push(by_rule);
        (recorded(outcome, &json!({"then": true}), &verdicts), after)
    }

    #[test]
    fn a_failure_does_not_hide_the_change_of_another_hook() {
        let fails = || Verdict::block("hook `guard` failed: 2");
        for (reason, category) in [("old", Category::Unchanged), ("new", Category::Changed)] {
            let rule = ("block", Verdict::block(reason));
            let (before, after) = with_recorded_failure(("block", fails(), Some("2")), rule);
            assert_eq!(compared(&before, &after).category, category, "{reason}");
        }
    }

    #[test]
    fn a_recovered_hook_does_not_hide_the_difference_that_another_hook_causes() {
        let silent = || ("none", Verdict::silent(), None);
        let (before, after) = with_recorded_failure(silent(), ("none", Verdict::block("no")));
        let comparison = compared(&before, &after);
        let found = (comparison.category, comparison.hook.as_deref());
        assert_eq!(found, (Category::NewlyBlocked, Some("rule")));
        let (before, after) = with_recorded_failure(silent(), ("block", Verdict::silent()));
        assert_eq!(compared(&before, &after).category, Category::NewlyAllowed);
        // The recovered hook blocks, and what it would have answered is unknown, unless its entry was
        // malformed.
        let blocks = ("none", Verdict::block("no"), None);
        let (before, after) = with_recorded_failure(blocks, ("none", Verdict::silent()));
        assert_eq!(compared(&before, &after).category, Category::NotComparable);
        let repaired = compare(Some(&before), Some(&after), &|hook| hook == "guard");
        assert_eq!(repaired.category, Category::NewlyBlocked);
    }

    #[test]
    fn the_hook_that_refuses_is_named() {
        let (_, mut after) = with_recorded_failure(
            ("none", Verdict { context: Some("hi".to_owned()), ..Verdict::silent() }, None),
            ("none", Verdict::block("no")),
        );
        after.outcome = Outcome::Block;
        let comparison = compare(None, Some(&after), &|_| false);
        assert_eq!(comparison.hook.as_deref(), Some("rule"));
        let before = RecordedDecision::from(&after);
        let allow = Verdict { ruling: Some(Ruling::Allow), ..Verdict::silent() };
        let comparison = compared(&before, &replayed(allow, Value::Null, None));
        let found = (comparison.category, comparison.hook.as_deref());
        assert_eq!(found, (Category::NewlyAllowed, Some("rule")));
    }

    #[test]
    fn what_a_hook_in_shadow_mode_says_is_no_difference() {
        let silent = recorded("none", &Value::Null, &json!([]));
        for failure in [None, Some("1")] {
            let mut now = replayed(Verdict::block("no"), Value::Null, failure);
            now.outcome = Outcome::None;
            now.verdicts[0].shadow = true;
            for before in [None, Some(&silent), Some(&RecordedDecision::from(&now))] {
                let category = compare(before, Some(&now), &|_| false).category;
                assert_eq!(category, Category::Unchanged);
            }
            let shadow = RecordedDecision::from(&now);
            // The same hook, turned on.
            now.outcome = Outcome::Block;
            now.verdicts[0].shadow = false;
            let category =
                if failure.is_some() { Category::Failed } else { Category::NewlyBlocked };
            let comparison = compared(&shadow, &now);
            assert_eq!(
                (comparison.category, comparison.hook.as_deref()),
                (category, Some("guard"))
            );
        }
    }

    #[test]
    fn a_changed_script_is_noted() {
        let silent = recorded(
            "none",
            &Value::Null,
            &json!([{"hook": "guard", "verdict": "none", "script": "old"}]),
        );
        let blocks = replayed(Verdict::block("no"), json!({"decision": "block"}), None);
        let notes = compared(&silent, &blocks).notes;
        assert_eq!(notes, ["the script of hook `guard` has changed since"]);
    }
}
