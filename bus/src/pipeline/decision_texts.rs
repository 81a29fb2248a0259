//! The texts of hooks in a recorded decision: reasons, context, rewrites and answers, without the secrets of the event. What the bus
//! itself wrote there stays as it is.

use serde_json::{Map, Value, json};

use crate::event::Rewrite;
use crate::redact::{FoundSecret, KnownSecrets, Redactor};

/// The fields of a decision, of its verdicts and of its notice that hold such texts.
const OF_HOOKS: [&str; 8] =
    ["answer", "context", "failure", "note", "own", "reason", "rewrite", "text"];

/// The decision without the secrets that were found in the payload, and without those in the places of a rewritten input that the
/// settings name. None if it holds none of them.
pub fn redact_decision(
    decision: &[u8],
    redactor: &Redactor,
    found: &[FoundSecret],
    known: Option<&KnownSecrets>,
) -> Option<Vec<u8>> {
    if known.is_none() && !redactor.has_places() {
        return None;
    }
    let mut decision: Value = serde_json::from_slice(decision).ok()?;
    let rewritten =
        if redactor.has_places() { in_rewrites(&decision, redactor) } else { Vec::new() };
    let changed = if rewritten.is_empty() {
        redact_texts(&mut decision, known?)
    } else {
        redact_texts(&mut decision, &KnownSecrets::of(&[found, &rewritten].concat())?)
    };
    changed.then(|| decision.to_string().into_bytes())
}

/// The secrets in rewritten inputs, looked at in the place that an input has in a payload.
fn in_rewrites(decision: &Value, redactor: &Redactor) -> Vec<FoundSecret> {
    let verdicts = decision.get("verdicts").and_then(Value::as_array).into_iter().flatten();
    let inputs = verdicts.filter_map(|verdict| match verdict.get("rewrite")? {
        Value::Array(paths) => {
            let path = |it: &Value| Some((it.get(0)?.as_str()?.to_owned(), it.get(1)?.clone()));
            let paths = Rewrite::Paths(paths.iter().filter_map(path).collect());
            Some(Value::Object(paths.apply(&Map::new())))
        }
        whole @ (Value::Object(_)
        | Value::String(_)
        | Value::Number(_)
        | Value::Bool(_)
        | Value::Null) => Some(whole.clone()),
    });
    inputs.flat_map(|input| redactor.redact_value(&mut json!({"tool_input": input}))).collect()
}

fn redact_texts(decision: &mut Value, secrets: &KnownSecrets) -> bool {
    let Value::Object(fields) = decision else { return false };
    let mut changed = false;
    for (name, value) in fields {
        changed |= match (name.as_str(), value) {
            (name, value) if OF_HOOKS.contains(&name) => secrets.redact_value(value),
            ("verdicts", Value::Array(verdicts)) => {
                verdicts.iter_mut().fold(false, |changed, it| redact_texts(it, secrets) | changed)
            }
            ("notice", notice) => redact_texts(notice, secrets),
            _ => false,
        };
    }
    changed
}
