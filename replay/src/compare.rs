//! What is different between a decision of then and one of now. How long something took is never
//! a difference.

use hookbus::decide::without_our_words;
use hookbus::event::{Decision, Heard, Outcome};
use serde_json::Value;

use crate::recorded::{Then, ThenVerdict};

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

/// Compares what the agent was told with what it would be told. No decision is no opinion. `broken`
/// says of a hook whether its entry was malformed then: it could not but fail.
pub fn compare(
    then: Option<&Then>,
    now: Option<&Decision>,
    broken: &dyn Fn(&str) -> bool,
) -> Comparison {
    let outcome_then = then.map_or(Outcome::None, |then| then.outcome);
    let outcome_now = now.map_or(Outcome::None, |now| now.outcome);
    let before = then.map_or(&[][..], |then| then.verdicts.as_slice());
    if let Some((hook, why)) = newly_failed(before, now) {
        return Comparison {
            hook: Some(hook.to_owned()),
            why: Some(format!("hook `{hook}` failed: {why}")),
            notes: script_notes(then, now),
            ..Comparison::of(Class::Failed)
        };
    }
    let same_answer = is_same(
        then.and_then(|then| then.answer.as_ref()),
        now.and_then(|now| now.answer.as_ref()),
    );
    if outcome_then == outcome_now && same_answer {
        return Comparison::of(Class::Unchanged);
    }
    let after = now.and_then(Then::of).map_or_else(Vec::new, |now| now.verdicts);
    if outcome_then == outcome_now && only_failures_differ(before, &after) {
        return Comparison::of(Class::Unchanged);
    }
    let class = match (refuses(outcome_then), refuses(outcome_now)) {
        (false, true) => Class::NewlyBlocked,
        (true, false) => Class::NewlyAllowed,
        (true, true) | (false, false) => Class::Changed,
    };
    if let Some(said) = recovered(class, before, &after, broken) {
        let hook = &said.hook;
        let failure = said.failure.as_deref().unwrap_or_default();
        let why = format!("hook `{hook}` failed then ({failure}), and does not now");
        return Comparison { hook: Some(hook.clone()), ..Comparison::impossible(why) };
    }
    let hook = responsible(class, before, &after).map(str::to_owned);
    Comparison { hook, notes: script_notes(then, now), ..Comparison::of(class) }
}

/// A log may be older than what the bus adds to the words of hooks.
fn is_same(then: Option<&Value>, now: Option<&Value>) -> bool {
    then == now || then.map(without_our_words) == now.map(without_our_words)
}

fn newly_failed<'a>(
    before: &[ThenVerdict],
    now: Option<&'a Decision>,
) -> Option<(&'a str, &'a str)> {
    let failed_then =
        |hook: &str| before.iter().any(|said| said.failure.is_some() && said.hook == hook);
    let verdicts = now.into_iter().flat_map(|now| &now.verdicts);
    let mut failed =
        verdicts.filter_map(|said| Some((said.hook.as_str(), said.failure.as_deref()?)));
    failed.find(|(hook, _)| !failed_then(hook))
}

impl ThenVerdict {
    fn is_silent(&self) -> bool {
        self.verdict.is_empty() || self.verdict == Outcome::None.as_str()
    }

    fn refuses(&self) -> bool {
        Outcome::parse(&self.verdict).is_some_and(refuses)
    }

    /// Whether it comes to the same, in the same words.
    fn says_the_same(&self, other: &Self) -> bool {
        (&self.hook, &self.verdict, &self.reason, &self.more)
            == (&other.hook, &other.verdict, &other.reason, &other.more)
    }
}

/// A failure is told in other words each time (a process id, a path), and a hook that blocks when it
/// fails tells the agent so. That is no difference if everybody else says the same.
fn only_failures_differ(before: &[ThenVerdict], after: &[ThenVerdict]) -> bool {
    let failed = |said: &&ThenVerdict| said.failure.is_some();
    let who = |side: &[ThenVerdict]| -> Vec<(String, String)> {
        let failed = side.iter().filter(failed);
        failed.map(|said| (said.hook.clone(), said.verdict.clone())).collect()
    };
    let told = before.iter().any(|said| failed(&said) && !said.is_silent());
    let others = |said: &&ThenVerdict| !failed(said) && !said.is_silent();
    told && who(before) == who(after)
        && before.iter().filter(others).count() == after.iter().filter(others).count()
        && before
            .iter()
            .filter(others)
            .zip(after.iter().filter(others))
            .all(|(then, now)| then.says_the_same(now))
}

/// The hook that failed then, answers now, and makes the difference by it: that it failed depended on
/// something outside that nobody recorded. A malformed entry depends on nothing.
fn recovered<'a>(
    class: Class,
    before: &'a [ThenVerdict],
    after: &[ThenVerdict],
    broken: &dyn Fn(&str) -> bool,
) -> Option<&'a ThenVerdict> {
    let answer = |failed: &ThenVerdict| {
        after.iter().find(|said| said.hook == failed.hook && said.failure.is_none())
    };
    let has_recovered = |said: &ThenVerdict| {
        said.failure.is_some()
            && !broken(&said.hook)
            && answer(said).is_some_and(|now| now.verdict != said.verdict || !now.is_silent())
    };
    let is_other = |said: &&ThenVerdict| {
        !before.iter().any(|failed| failed.hook == said.hook && has_recovered(failed))
    };
    // Somebody else would have made the same difference.
    let without_it = match class {
        Class::NewlyBlocked => only_in(after, before).filter(is_other).any(ThenVerdict::refuses),
        Class::NewlyAllowed => before.iter().filter(is_other).any(ThenVerdict::refuses),
        Class::Unchanged | Class::Changed | Class::Failed | Class::NotComparable => false,
    };
    before.iter().find(|said| has_recovered(said)).filter(|_| !without_it)
}

/// What one side says and the other does not.
fn only_in<'a>(
    one: &'a [ThenVerdict],
    other: &[ThenVerdict],
) -> impl Iterator<Item = &'a ThenVerdict> {
    one.iter().filter(|said| !other.iter().any(|there| said.says_the_same(there)))
}

/// The hook that makes the difference: the one that refuses on one side only, else the first whose
/// word is another.
fn responsible<'a>(
    class: Class,
    before: &'a [ThenVerdict],
    after: &'a [ThenVerdict],
) -> Option<&'a str> {
    let refuser = match class {
        Class::NewlyBlocked => only_in(after, before).find(|said| said.refuses()),
        Class::NewlyAllowed => only_in(before, after).find(|said| said.refuses()),
        Class::Unchanged | Class::Changed | Class::Failed | Class::NotComparable => None,
    };
    let speaks = |said: &&ThenVerdict| !said.is_silent();
    let found = refuser
        .or_else(|| only_in(after, before).find(speaks))
        .or_else(|| only_in(before, after).find(speaks));
    // The same words may still come to something else.
    found.or(after.first()).or(before.first()).map(|said| said.hook.as_str())
}

/// What is not known about what a hook remembers, by what it could remember then and now.
pub(crate) type Gap<'a> = &'a dyn Fn(&str, [Option<Heard>; 2]) -> Option<String>;

/// Why nobody can tell whether the policy changed, or only what hooks know from other events: where all
/// that is different comes from hooks whose code is the same as then, and `gap` says what is not known
/// about the memory of each.
pub(crate) fn unknown_memory(
    then: Option<&Then>,
    now: Option<&Decision>,
    comparison: &Comparison,
    gap: Gap<'_>,
) -> Option<String> {
    let (then, now) = then.zip(now.and_then(Then::of))?;
    let (before, after) = (&then.verdicts, &now.verdicts);
    let gap_of = |hook: &str| {
        let own = |side: &[ThenVerdict]| {
            let said = side.iter().find(|said| said.hook == hook)?;
            Some((said.script.clone()?, said.heard))
        };
        let ((code_then, heard_then), (code_now, heard_now)) = own(before).zip(own(after))?;
        (code_then == code_now).then(|| gap(hook, [heard_then, heard_now])).flatten()
    };
    let responsible = comparison.hook.as_deref()?;
    let different = only_in(before, after).chain(only_in(after, before));
    let all = different.map(|said| said.hook.as_str()).all(|hook| gap_of(hook).is_some());
    gap_of(responsible).filter(|_| all)
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
    use serde_json::json;

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
                heard: None,
                refused: false,
                of_project: false,
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
        assert_eq!(compare(Some(&blocked), Some(&same), &|_| false).class, Class::Unchanged);
        assert_eq!(compare(None, None, &|_| false).class, Class::Unchanged);
        let fresh = compare(None, Some(&same), &|_| false);
        assert_eq!((fresh.class, fresh.hook.as_deref()), (Class::NewlyBlocked, Some("guard")));
        let gone = compare(Some(&blocked), None, &|_| false);
        assert_eq!((gone.class, gone.hook.as_deref()), (Class::NewlyAllowed, Some("guard")));
        let reworded =
            now(Verdict::block("never"), json!({"decision": "block", "reason": "never"}), None);
        assert_eq!(compare(Some(&blocked), Some(&reworded), &|_| false).class, Class::Changed);
    }

    #[test]
    fn how_the_bus_puts_it_is_no_difference() {
        let asks = json!([{"hook": "guard", "verdict": "ask", "reason": "sure?"}]);
        let older = then("block", &json!({"action": "block", "message": "sure?"}), &asks);
        let told = |message: &str| {
            let answer = json!({"action": "block", "message": message});
            let asked = Verdict { reason: Some("sure?".to_owned()), ..Verdict::block("") };
            compare(Some(&older), Some(&now(asked, answer, None)), &|_| false).class
        };
        assert_eq!(told("sure? (nobody can be asked here, so it is blocked)"), Class::Unchanged);
        assert_eq!(told("no! (nobody can be asked here, so it is blocked)"), Class::Changed);
    }

    #[test]
    fn a_failure_is_told_apart_from_a_change() {
        let failed = now(Verdict::silent(), Value::Null, Some("exit code 3"));
        assert_eq!(compare(None, Some(&failed), &|_| false).class, Class::Failed);
        let failed_too =
            json!([{"hook": "guard", "verdict": "none", "failed": true, "failure": "exit code 1"}]);
        let then_failed = then("none", &Value::Null, &failed_too);
        assert_eq!(compare(Some(&then_failed), Some(&failed), &|_| false).class, Class::Unchanged);
        let answers = now(Verdict::block("no"), json!({"decision": "block"}), None);
        let compared = compare(Some(&then_failed), Some(&answers), &|_| false);
        assert_eq!(compared.class, Class::NotComparable);
        assert!(compared.why.is_some_and(|why| why.contains("exit code 1")));
    }

    /// Two decisions by `guard`, which failed then, and `rule`.
    fn beside_a_failure(
        guard: (&str, Verdict, Option<&str>),
        rule: (&str, Verdict),
    ) -> (Then, Decision) {
        let rows = json!([
            {"hook": "guard", "verdict": guard.0, "reason": "hook `guard` failed: 1", "failure": "1"},
            {"hook": "rule", "verdict": rule.0, "reason": "old"},
        ]);
        let refused = guard.0 == "block" || rule.0 == "block";
        let outcome = if refused { "block" } else { "none" };
        let mut now = now(guard.1, json!({"now": true}), guard.2);
        let own = VerdictRecord {
            hook: "rule".to_owned(),
            verdict: rule.1,
            failure: None,
            ..now.verdicts[0].clone()
        };
        now.outcome =
            if now.outcome == Outcome::Block { now.outcome } else { Outcome::of(&own.verdict) };
        now.verdicts.push(own);
        (then(outcome, &json!({"then": true}), &rows), now)
    }

    #[test]
    fn a_failure_excuses_nobody_else() {
        let fails = || Verdict::block("hook `guard` failed: 2");
        for (word, class) in [("old", Class::Unchanged), ("new", Class::Changed)] {
            let (then, now) =
                beside_a_failure(("block", fails(), Some("2")), ("block", Verdict::block(word)));
            assert_eq!(compare(Some(&then), Some(&now), &|_| false).class, class, "{word}");
        }
    }

    #[test]
    fn a_failure_of_then_hides_no_difference_that_somebody_else_makes() {
        let silent = || ("none", Verdict::silent(), None);
        let (then, now) = beside_a_failure(silent(), ("none", Verdict::block("no")));
        let compared = compare(Some(&then), Some(&now), &|_| false);
        let found = (compared.class, compared.hook.as_deref());
        assert_eq!(found, (Class::NewlyBlocked, Some("rule")));
        let (then, now) = beside_a_failure(silent(), ("block", Verdict::silent()));
        assert_eq!(compare(Some(&then), Some(&now), &|_| false).class, Class::NewlyAllowed);
        // It blocks by itself: nobody knows what it would have said then. A malformed entry could
        // not but fail.
        let blocks = ("none", Verdict::block("no"), None);
        let (then, now) = beside_a_failure(blocks, ("none", Verdict::silent()));
        assert_eq!(compare(Some(&then), Some(&now), &|_| false).class, Class::NotComparable);
        let repaired = compare(Some(&then), Some(&now), &|hook| hook == "guard");
        assert_eq!(repaired.class, Class::NewlyBlocked);
    }

    #[test]
    fn the_hook_that_refuses_is_named() {
        let (_, mut after) = beside_a_failure(
            ("none", Verdict { context: Some("hi".to_owned()), ..Verdict::silent() }, None),
            ("none", Verdict::block("no")),
        );
        after.outcome = Outcome::Block;
        let compared = compare(None, Some(&after), &|_| false);
        assert_eq!(compared.hook.as_deref(), Some("rule"));
        let before = Then::of(&after).expect("a decision");
        let gone = Verdict { ruling: Some(hookbus::event::Ruling::Allow), ..Verdict::silent() };
        let compared = compare(Some(&before), Some(&now(gone, Value::Null, None)), &|_| false);
        let found = (compared.class, compared.hook.as_deref());
        assert_eq!(found, (Class::NewlyAllowed, Some("rule")));
    }

    #[test]
    fn another_script_is_told_beside_the_difference() {
        let silent = then(
            "none",
            &Value::Null,
            &json!([{"hook": "guard", "verdict": "none", "script": "old"}]),
        );
        let blocks = now(Verdict::block("no"), json!({"decision": "block"}), None);
        let compared = compare(Some(&silent), Some(&blocks), &|_| false);
        assert_eq!(compared.notes, ["the script of hook `guard` is not what it was then"]);
    }
}
