//! Reading a rule: its conditions, its answer, its examples. What a rule means is in `rule/`.

use serde_json::Value;

use super::conditions::conditions;
use super::problem::{Problem, did_you_mean};
use super::yaml::{Data, Node, Pair};
use crate::event::{Rewrite, Ruling, Verdict};
use crate::rule::{Expression, Rule};

/// The keys that say what a rule answers.
pub(super) const ANSWERS: [&str; 6] = ["block", "ask", "stop", "context", "allow", "rewrite"];

/// The other keys of a rule.
const OTHERS: [&str; 4] = ["when", "unless", "if", "examples"];

/// Reads the value of `rule:`, for the hook called `name`.
pub(super) fn read(node: &Node, name: &str) -> Result<Rule, Problem> {
    let Some(pairs) = node.pairs() else {
        return Err(Problem::broken_entry(
            node.line,
            "a rule is a mapping; write `rule: { when: { runs: git push --force }, block: why }`",
        ));
    };
    let (mut when, mut unless, mut expression, mut verdict) = (Vec::new(), Vec::new(), None, None);
    for pair in pairs {
        match pair.key.as_str() {
            "when" => when = conditions(&pair.value, "when")?,
            "unless" => unless = conditions(&pair.value, "unless")?,
            "if" => expression = Some(condition_in_cel(pair)?),
            // Read and run by `examples.rs`, when the whole file is known.
            "examples" => {}
            key if !ANSWERS.contains(&key) => return Err(unknown_key(pair)),
            key if verdict.is_some() => {
                let why =
                    format!("a rule has one answer, `{key}` is a second one; write two rules");
                return Err(Problem::broken_entry(pair.line, why));
            }
            key => verdict = Some(answer(key, &pair.value, name)?),
        }
    }
    let verdict = verdict.ok_or_else(|| {
        let answers = ANSWERS.join("`, `");
        Problem::broken_entry(node.line, format!("a rule needs an answer: one of `{answers}`"))
    })?;
    Ok(Rule { when, unless, expression, verdict })
}

fn unknown_key(pair: &Pair) -> Problem {
    let similar = did_you_mean(&pair.key, ANSWERS.into_iter().chain(OTHERS));
    let hint = similar.map_or_else(String::new, |key| format!("; did you mean `{key}`?"));
    let why = format!(
        "a rule has no `{}`{hint} ({}, {})",
        pair.key,
        OTHERS.join(", "),
        ANSWERS.join(", ")
    );
    Problem::broken_entry(pair.line, why)
}

fn condition_in_cel(pair: &Pair) -> Result<Expression, Problem> {
    let text = pair.value.text().unwrap_or_default();
    if text.trim().is_empty() {
        let why = "`if` is an expression in CEL; write `if: 'tool_class == \"shell\" && runs(\"git push\")'`";
        return Err(Problem::broken_entry(pair.line, why));
    }
    Expression::parse(&text).map_err(|why| Problem::broken_entry(pair.value.line, why))
}

pub(super) fn answer(key: &str, node: &Node, name: &str) -> Result<Verdict, Problem> {
    let reason = || match (node.text(), node.flag()) {
        (Some(text), _) if !text.trim().is_empty() => Ok(text),
        (_, Some(true)) => Ok(format!("not allowed by hook `{name}`")),
        _ => Err(Problem::broken_entry(
            node.line,
            format!("`{key}` needs a reason the agent can act on; write `{key}: why`"),
        )),
    };
    let silent = Verdict::silent;
    Ok(match key {
        "block" => Verdict::block(reason()?),
        "ask" => Verdict { ruling: Some(Ruling::Ask), reason: Some(reason()?), ..silent() },
        "stop" => Verdict { stop: true, stop_reason: Some(reason()?), ..silent() },
        "context" => match node.text().filter(|text| !text.trim().is_empty()) {
            Some(text) => Verdict { context: Some(text), ..silent() },
            None => {
                return Err(Problem::broken_entry(
                    node.line,
                    "`context` needs a text; write `context: \"what the model should know\"`",
                ));
            }
        },
        "allow" if node.flag() == Some(true) => Verdict { ruling: Some(Ruling::Allow), ..silent() },
        "allow" => {
            return Err(Problem::broken_entry(node.line, "write `allow: true`"));
        }
        _ => Verdict { rewrite: Some(rewrite(node)?), ..silent() },
    })
}

fn rewrite(node: &Node) -> Result<Rewrite, Problem> {
    match &node.data {
        Data::Map(pairs) if !pairs.is_empty() => Ok(Rewrite::Paths(
            pairs
                .iter()
                .map(|pair| (pair.key.clone(), pair.value.to_json()))
                .collect::<Vec<(String, Value)>>(),
        )),
        Data::Map(_) | Data::Scalar(_) | Data::List(_) => Err(Problem::broken_entry(
            node.line,
            "`rewrite` maps paths in the tool's input to values; write `rewrite: { command: 'ls' }`",
        )),
    }
}
