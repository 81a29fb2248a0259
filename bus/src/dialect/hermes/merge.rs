//! How Hermes merges verdicts: the first answer wins, contexts are joined.

use serde_json::Value;

use super::answer_slots::AnswerSlot;
use crate::event::{Event, Rewrite, Ruling, Verdict};

/// The verdicts merged, in their given order.
pub(super) fn merge(event: &Event, verdicts: &[&Verdict]) -> Verdict {
    match AnswerSlot::at(event) {
        AnswerSlot::Block => first(verdicts, |_| true),
        AnswerSlot::Directive => directive(verdicts),
        // A `continue` without a message does not count; the next hook's may.
        AnswerSlot::Continue => first(verdicts, |verdict| message(verdict).is_some()),
        AnswerSlot::Context => {
            let contexts: Vec<&str> =
                verdicts.iter().filter_map(|verdict| verdict.context.as_deref()).collect();
            let context = (!contexts.is_empty()).then(|| contexts.join("\n\n"));
            Verdict { context, ..Verdict::silent() }
        }
        AnswerSlot::Text => deciding(verdicts, |verdict| new_text(verdict).is_some()),
        AnswerSlot::Message => {
            let decides = |verdict: &Verdict| match verdict.ruling {
                Some(Ruling::Block | Ruling::Allow) => true,
                Some(Ruling::Ask) | None => new_text(verdict).is_some(),
            };
            deciding(verdicts, decides)
        }
        AnswerSlot::Command => deciding(verdicts, |verdict| {
            verdict.ruling == Some(Ruling::Block) || new_command(verdict).is_some()
        }),
        AnswerSlot::Nothing => Verdict::silent(),
    }
}

/// The first block that counts, else the first other ruling.
fn first(verdicts: &[&Verdict], counts: impl Fn(&Verdict) -> bool) -> Verdict {
    let blocks = |verdict: &&&Verdict| verdict.ruling == Some(Ruling::Block) && counts(verdict);
    let rules_otherwise =
        |verdict: &&&Verdict| verdict.ruling.is_some_and(|it| it != Ruling::Block);
    let found = verdicts.iter().find(blocks).or_else(|| verdicts.iter().find(rules_otherwise));
    found.map_or_else(Verdict::silent, |first| Verdict {
        ruling: first.ruling,
        reason: first.reason.clone(),
        ..Verdict::silent()
    })
}

/// Block beats ask, ask beats allow; changes to the input are combined unless blocked.
fn directive(verdicts: &[&Verdict]) -> Verdict {
    let with = |ruling: Ruling| verdicts.iter().find(|verdict| verdict.ruling == Some(ruling));
    let first = with(Ruling::Block).or_else(|| with(Ruling::Ask)).or_else(|| with(Ruling::Allow));
    let mut merged = first.map_or_else(Verdict::silent, |first| Verdict {
        ruling: first.ruling,
        reason: first.reason.clone(),
        own: first.own.clone(),
        ..Verdict::silent()
    });
    if merged.ruling != Some(Ruling::Block) {
        let changes = verdicts.iter().filter_map(|verdict| verdict.rewrite.as_ref());
        merged.rewrite = changes.fold(None, |before, change| Some(join(before, change)));
    }
    merged
}

/// Both changes, the later one last.
fn join(before: Option<Rewrite>, change: &Rewrite) -> Rewrite {
    match (before, change) {
        (Some(Rewrite::Paths(mut paths)), Rewrite::Paths(more)) => {
            paths.extend(more.iter().cloned());
            Rewrite::Paths(paths)
        }
        (Some(Rewrite::Whole(input)), change) => Rewrite::Whole(change.apply(&input)),
        (None | Some(Rewrite::Paths(_)), change) => change.clone(),
    }
}

/// The whole of the first verdict that decides.
fn deciding(verdicts: &[&Verdict], decides: impl Fn(&Verdict) -> bool) -> Verdict {
    let found = verdicts.iter().find(|verdict| decides(verdict));
    found.map_or_else(Verdict::silent, |first| (*first).clone())
}

/// The reason, if it is not blank.
pub(super) fn message(verdict: &Verdict) -> Option<&str> {
    verdict.reason.as_deref().filter(|text| !text.trim().is_empty())
}

/// The text that replaces the event's own, under any of the names that the events use for it.
pub(super) fn new_text(verdict: &Verdict) -> Option<String> {
    changed(verdict, &["text", "output", "result", "response_text"])
}

/// The command that replaces the one given, and its arguments.
pub(super) fn new_command(verdict: &Verdict) -> Option<(String, String)> {
    let name = changed(verdict, &["command_name", "command"])?;
    Some((name, changed(verdict, &["raw_args", "args"]).unwrap_or_default()))
}

fn changed(verdict: &Verdict, names: &[&str]) -> Option<String> {
    let value = match verdict.rewrite.as_ref()? {
        Rewrite::Whole(whole) => names.iter().find_map(|name| whole.get(*name)),
        Rewrite::Paths(paths) => paths
            .iter()
            .rev()
            .find_map(|(path, value)| names.contains(&path.as_str()).then_some(value)),
    }?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}
