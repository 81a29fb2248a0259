//! How Gemini merges several answers to one event, in the configured order.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::event_rules::{Strategy, own_answers};
use crate::event::{Event, Rewrite, Ruling, Verdict};

/// One verdict out of many.
pub(super) fn merge(event: &Event, verdicts: &[&Verdict]) -> Verdict {
    let mut merged = match Strategy::of(event) {
        Strategy::Or => any_deny_wins(event, verdicts),
        Strategy::Replace => later_fields_win(verdicts),
        Strategy::ToolConfig => strictest_tool_config(verdicts),
        Strategy::Notice => Verdict {
            notice: verdicts.iter().rev().find_map(|verdict| verdict.notice.clone()),
            quiet: verdicts.iter().any(|verdict| verdict.quiet),
            ..Verdict::silent()
        },
    };
    merged.own.retain(|key, _| own_answers(event).contains(&key.as_str()));
    merged
}

fn any_deny_wins(event: &Event, verdicts: &[&Verdict]) -> Verdict {
    let has = |ruling| verdicts.iter().any(|verdict| verdict.ruling == Some(ruling));
    let ruling = [Ruling::Block, Ruling::Ask, Ruling::Allow].into_iter().find(|r| has(*r));
    let mut own = Map::new();
    for verdict in verdicts {
        own.extend(verdict.own.clone());
    }
    Verdict {
        ruling,
        reason: joined(verdicts, |verdict| verdict.reason.as_deref()),
        stop: verdicts.iter().any(|verdict| verdict.stop),
        stop_reason: joined(verdicts, |verdict| verdict.stop_reason.as_deref()),
        context: joined(verdicts, |verdict| verdict.context.as_deref()),
        rewrite: last_input(event, verdicts),
        notice: joined(verdicts, |verdict| verdict.notice.as_deref()),
        quiet: verdicts.iter().any(|verdict| verdict.quiet),
        own,
    }
}

/// Gemini uses the whole input of the last hook, so a change by path is applied to the input that the hooks
/// before it left.
fn last_input(event: &Event, verdicts: &[&Verdict]) -> Option<Rewrite> {
    let empty = Map::new();
    let mut input = None;
    for rewrite in verdicts.iter().filter_map(|verdict| verdict.rewrite.as_ref()) {
        let before = input.as_ref().or(event.tool_input()).unwrap_or(&empty);
        input = Some(rewrite.apply(before));
    }
    input.map(Rewrite::Whole)
}

fn joined<'a>(
    verdicts: &[&'a Verdict],
    text: impl Fn(&'a Verdict) -> Option<&'a str>,
) -> Option<String> {
    let texts: Vec<&str> = verdicts.iter().filter_map(|verdict| text(verdict)).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn later_fields_win(verdicts: &[&Verdict]) -> Verdict {
    let mut merged = Verdict::silent();
    for verdict in verdicts {
        merged.ruling = verdict.ruling.or(merged.ruling);
        merged.stop |= verdict.stop;
        merged.quiet |= verdict.quiet;
        for (merged, later) in [
            (&mut merged.reason, &verdict.reason),
            (&mut merged.stop_reason, &verdict.stop_reason),
            (&mut merged.notice, &verdict.notice),
        ] {
            if later.is_some() {
                merged.clone_from(later);
            }
        }
        merged.own.extend(verdict.own.clone());
    }
    merged
}

fn strictest_tool_config(verdicts: &[&Verdict]) -> Verdict {
    let configs: Vec<&Value> =
        verdicts.iter().filter_map(|verdict| verdict.own.get("toolConfig")).collect();
    if configs.is_empty() {
        return Verdict::silent();
    }
    let mode = ["NONE", "ANY", "AUTO"]
        .into_iter()
        .find(|mode| configs.iter().any(|config| config["mode"] == *mode))
        .unwrap_or("AUTO");
    let names: BTreeSet<&str> = configs
        .iter()
        .filter_map(|config| config["allowedFunctionNames"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let names = if mode == "NONE" { BTreeSet::new() } else { names };
    let config = json!({"mode": mode, "allowedFunctionNames": names});
    Verdict { own: Map::from_iter([("toolConfig".to_owned(), config)]), ..Verdict::silent() }
}
