//! What is different between a decision of then and one of now. How long something took is never
//! a difference.

use hookbus::event::{Decision, Outcome};

use crate::recorded::Then;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The agent hears the same.
    Unchanged,
    /// It was let through and would be refused.
    NewlyBlocked,
    /// It was refused and would be let through.
    NewlyAllowed,
    /// The agent hears something else: another reason, context, rewrite, question.
    Changed,
    /// A hook fails that did not fail then.
    Failed,
    /// Nobody can say.
    NotComparable,
}

impl Class {
    /// Every class, in the order they are shown.
    pub const ALL: [Self; 6] = [
        Self::Unchanged,
        Self::NewlyBlocked,
        Self::NewlyAllowed,
        Self::Changed,
        Self::Failed,
        Self::NotComparable,
    ];

    /// The word in reports.
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

    /// The key in `summary`.
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
}

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// What became of the event.
    pub class: Class,
    /// The hook that makes the difference.
    pub hook: Option<String>,
    /// Why, where there is more to say than both answers.
    pub why: Option<String>,
    /// What one should know about it.
    pub notes: Vec<String>,
}

impl Comparison {
    pub(crate) fn of(class: Class) -> Self {
        Self { class, hook: None, why: None, notes: Vec::new() }
    }

    pub(crate) fn impossible(why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::of(Class::NotComparable) }
    }
}

/// Whether an outcome keeps the agent from going on.
pub(crate) const fn refuses(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Block | Outcome::Stop)
}

/// Compares what the agent was told with what it would be told. No decision is no opinion.
pub fn compare(then: Option<&Then>, now: Option<&Decision>) -> Comparison {
    let outcome_then = then.map_or(Outcome::None, |then| then.outcome);
    let outcome_now = now.map_or(Outcome::None, |now| now.outcome);
    if let Some((hook, why)) = newly_failed(then, now) {
        return Comparison {
            hook: Some(hook.to_owned()),
            why: Some(format!("hook `{hook}` failed: {why}")),
            notes: script_notes(then, now),
            ..Comparison::of(Class::Failed)
        };
    }
    let same_answer =
        then.and_then(|then| then.answer.as_ref()) == now.and_then(|now| now.answer.as_ref());
    if outcome_then == outcome_now && (same_answer || same_failures(then, now)) {
        return Comparison::of(Class::Unchanged);
    }
    if let Some((hook, why)) = recovered(then, now) {
        let why = format!("hook `{hook}` failed then ({why}), and does not now");
        return Comparison { hook: Some(hook.to_owned()), ..Comparison::impossible(why) };
    }
    let class = match (refuses(outcome_then), refuses(outcome_now)) {
        (false, true) => Class::NewlyBlocked,
        (true, false) => Class::NewlyAllowed,
        (true, true) | (false, false) => Class::Changed,
    };
    let hook = responsible(class, then, now).map(str::to_owned);
    Comparison { hook, notes: script_notes(then, now), ..Comparison::of(class) }
}

fn failed_then(then: Option<&Then>) -> impl Iterator<Item = (&str, &str)> {
    let verdicts = then.into_iter().flat_map(|then| &then.verdicts);
    verdicts.filter_map(|said| Some((said.hook.as_str(), said.failure.as_deref()?)))
}

fn failed_now(now: Option<&Decision>) -> impl Iterator<Item = (&str, &str)> {
    let verdicts = now.into_iter().flat_map(|now| &now.verdicts);
    verdicts.filter_map(|said| Some((said.hook.as_str(), said.failure.as_deref()?)))
}

fn newly_failed<'a>(then: Option<&Then>, now: Option<&'a Decision>) -> Option<(&'a str, &'a str)> {
    failed_now(now).find(|(hook, _)| !failed_then(then).any(|(failed, _)| failed == *hook))
}

/// A failure is told in other words each time (a process id, a path); what counts is who failed.
fn same_failures(then: Option<&Then>, now: Option<&Decision>) -> bool {
    let names_then: Vec<&str> = failed_then(then).map(|(hook, _)| hook).collect();
    let names_now: Vec<&str> = failed_now(now).map(|(hook, _)| hook).collect();
    !names_then.is_empty() && names_then == names_now
}

/// What failed then and answers now depended on something outside that nobody recorded.
fn recovered<'a>(then: Option<&'a Then>, now: Option<&Decision>) -> Option<(&'a str, &'a str)> {
    let answers = |hook: &str| {
        let mut verdicts = now.into_iter().flat_map(|now| &now.verdicts);
        verdicts.any(|said| said.hook == hook && said.failure.is_none())
    };
    failed_then(then).find(|(hook, _)| answers(hook))
}

/// The hook that makes the difference: the one that refuses on one side only, else the first whose
/// word is another.
fn responsible<'a>(
    class: Class,
    then: Option<&'a Then>,
    now: Option<&'a Decision>,
) -> Option<&'a str> {
    let before: Vec<(&str, &str, Option<&str>)> = then
        .into_iter()
        .flat_map(|then| &then.verdicts)
        .map(|said| (said.hook.as_str(), said.verdict.as_str(), said.reason.as_deref()))
        .collect();
    let after: Vec<(&str, &str, Option<&str>)> = now
        .into_iter()
        .flat_map(|now| &now.verdicts)
        .map(|said| {
            let reason = said.verdict.reason.as_deref().or(said.verdict.stop_reason.as_deref());
            (said.hook.as_str(), Outcome::of(&said.verdict).as_str(), reason)
        })
        .collect();
    let only_after = || after.iter().find(|said| !before.contains(said));
    let only_before = || before.iter().find(|said| !after.contains(said));
    let found = match class {
        Class::NewlyAllowed => only_before().or_else(only_after),
        Class::Unchanged
        | Class::NewlyBlocked
        | Class::Changed
        | Class::Failed
        | Class::NotComparable => only_after().or_else(only_before),
    };
    // The same words may still carry another context or rewrite.
    found.or(after.first()).or(before.first()).map(|(hook, ..)| *hook)
}

fn script_notes(then: Option<&Then>, now: Option<&Decision>) -> Vec<String> {
    let Some((then, now)) = then.zip(now) else { return Vec::new() };
    let changed = |hook: &str, script: Option<&str>| {
        let before = then.verdicts.iter().find(|said| said.hook == hook);
        let before = before.and_then(|said| said.script.as_deref());
        before.is_some() && script.is_some() && before != script
    };
    now.verdicts
        .iter()
        .filter(|said| changed(&said.hook, said.script.as_deref()))
        .map(|said| format!("the script of hook `{}` is not what it was then", said.hook))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hookbus::event::{Verdict, VerdictRecord};
    use serde_json::{Value, json};

    use super::*;

    fn then(outcome: &str, answer: &Value, verdicts: &Value) -> Then {
        let row = json!({"hooks": "h", "outcome": outcome, "answer": answer, "verdicts": verdicts});
        Then::read(row.to_string().as_bytes()).expect("a decision")
    }

    fn now(verdict: Verdict, answer: Value, failure: Option<&str>) -> Decision {
        Decision {
            hooks: "h".to_owned(),
            outcome: Outcome::of(&verdict),
            verdicts: vec![VerdictRecord {
                hook: "guard".to_owned(),
                verdict,
                exit: None,
                took: Duration::from_millis(7),
                failure: failure.map(str::to_owned),
                policy: "allow",
                script: Some("new".to_owned()),
                note: None,
            }],
            answer: Some(answer).filter(|answer| !answer.is_null()),
            took: Duration::from_millis(9),
            waited_for: true,
            can_ask: None,
            note: None,
        }
    }

    #[test]
    fn what_the_agent_hears_decides() {
        let no = json!({"decision": "block", "reason": "no"});
        let blocked = then(
            "block",
            &no,
            &json!([{"hook": "guard", "verdict": "block", "reason": "no", "ms": 3.0}]),
        );
        let same = now(Verdict::block("no"), no, None);
        assert_eq!(compare(Some(&blocked), Some(&same)).class, Class::Unchanged);
        assert_eq!(compare(None, None).class, Class::Unchanged);
        let fresh = compare(None, Some(&same));
        assert_eq!((fresh.class, fresh.hook.as_deref()), (Class::NewlyBlocked, Some("guard")));
        let gone = compare(Some(&blocked), None);
        assert_eq!((gone.class, gone.hook.as_deref()), (Class::NewlyAllowed, Some("guard")));
        let reworded =
            now(Verdict::block("never"), json!({"decision": "block", "reason": "never"}), None);
        assert_eq!(compare(Some(&blocked), Some(&reworded)).class, Class::Changed);
    }

    #[test]
    fn a_failure_is_told_apart_from_a_change() {
        let failed = now(Verdict::silent(), Value::Null, Some("exit code 3"));
        assert_eq!(compare(None, Some(&failed)).class, Class::Failed);
        let failed_too =
            json!([{"hook": "guard", "verdict": "none", "failed": true, "failure": "exit code 1"}]);
        let then_failed = then("none", &Value::Null, &failed_too);
        assert_eq!(compare(Some(&then_failed), Some(&failed)).class, Class::Unchanged);
        let answers = now(Verdict::block("no"), json!({"decision": "block"}), None);
        let compared = compare(Some(&then_failed), Some(&answers));
        assert_eq!(compared.class, Class::NotComparable);
        assert!(compared.why.is_some_and(|why| why.contains("exit code 1")));
    }

    #[test]
    fn another_script_is_told_beside_the_difference() {
        let silent = then(
            "none",
            &Value::Null,
            &json!([{"hook": "guard", "verdict": "none", "script": "old"}]),
        );
        let blocks = now(Verdict::block("no"), json!({"decision": "block"}), None);
        let compared = compare(Some(&silent), Some(&blocks));
        assert_eq!(compared.notes, ["the script of hook `guard` is not what it was then"]);
    }
}
