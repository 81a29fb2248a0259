//! A rule: conditions on an event's fields, and one fixed answer. It is evaluated in process, with regexes that
//! are compiled when the file is read; nothing is started for it.

use serde_json::Value;

use super::field::{FieldsOf, find, is_incomplete, misspelled};
use super::problem::{Problem, did_you_mean};
use super::yaml::{Data, Node};
use crate::dialect::{Pattern, PatternFailure, PatternSize};
use crate::event::{Event, Rewrite, Ruling, Verdict};

/// Gives its verdict if all conditions hold.
#[derive(Debug, Clone)]
pub struct Rule {
    conditions: Vec<Condition>,
    verdict: Verdict,
}

/// Holds if one of the regexes matches a text at the path.
#[derive(Debug, Clone)]
struct Condition {
    path: String,
    any_of: Vec<Pattern>,
}

const ANSWERS: [&str; 6] = ["block", "ask", "stop", "context", "allow", "rewrite"];

impl Rule {
    /// The rule's verdict about `event`; none if it does not apply. Fails only if all depends on a condition that
    /// cannot be checked.
    pub fn verdict(&self, event: &Event) -> Result<Option<Verdict>, PatternFailure> {
        let mut failure = None;
        for condition in &self.conditions {
            match condition.holds(event, self.fields()) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(why) => failure = Some(why),
            }
        }
        failure.map_or_else(|| Ok(Some(self.verdict.clone())), Err)
    }

    /// Whether it holds the agent back or changes what the agent does, so that it must not fail open.
    pub fn is_guard(&self) -> bool {
        let Verdict { ruling, stop, rewrite, .. } = &self.verdict;
        matches!(ruling, Some(Ruling::Block | Ruling::Ask)) || *stop || rewrite.is_some()
    }

    fn fields(&self) -> FieldsOf {
        match self.verdict.ruling {
            Some(Ruling::Allow) => FieldsOf::TheAgentFirst,
            Some(Ruling::Block | Ruling::Ask) | None => FieldsOf::Everyone,
        }
    }

    /// Whether the rule might apply, if all of the payload had been kept. For an event that it has no verdict
    /// about.
    pub(crate) fn may_apply(&self, event: &Event) -> bool {
        let holds_or_is_unknown = |it: &Condition| {
            is_incomplete(event, &it.path) || it.holds(event, self.fields()).unwrap_or(true)
        };
        event.is_partial() && self.conditions.iter().all(holds_or_is_unknown)
    }

    /// Reads the value of `rule:`, for the hook called `name`.
    pub(super) fn read(node: &Node, name: &str) -> Result<Self, Problem> {
        let Some(pairs) = node.pairs() else {
            return Err(Problem::broken_entry(
                node.line,
                "a rule is a mapping; write `rule: { when: { command: '…' }, block: why }`",
            ));
        };
        let mut conditions = Vec::new();
        let mut verdict = None;
        for pair in pairs {
            if pair.key == "when" {
                conditions = conditions_in(&pair.value)?;
            } else if ANSWERS.contains(&pair.key.as_str()) {
                if verdict.is_some() {
                    return Err(Problem::broken_entry(
                        pair.line,
                        format!(
                            "a rule has one answer, `{}` is a second one; write two rules",
                            pair.key
                        ),
                    ));
                }
                verdict = Some(answer(&pair.key, &pair.value, name)?);
            } else {
                let similar = did_you_mean(&pair.key, ANSWERS.into_iter().chain(["when"]));
                let hint =
                    similar.map_or_else(String::new, |key| format!("; did you mean `{key}`?"));
                return Err(Problem::broken_entry(
                    pair.line,
                    format!("a rule has no `{}`{hint} (when, {})", pair.key, ANSWERS.join(", ")),
                ));
            }
        }
        let verdict = verdict.ok_or_else(|| {
            let answers = ANSWERS.join("`, `");
            Problem::broken_entry(node.line, format!("a rule needs an answer: one of `{answers}`"))
        })?;
        Ok(Self { conditions, verdict })
    }
}

impl Condition {
    fn holds(&self, event: &Event, of: FieldsOf) -> Result<bool, PatternFailure> {
        let texts = find(event, &self.path, of);
        let mut result = Ok(false);
        for (pattern, text) in
            self.any_of.iter().flat_map(|pattern| texts.iter().map(move |text| (pattern, text)))
        {
            match pattern.is_match(text) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(why) => result = Err(why),
            }
        }
        result
    }
}

fn conditions_in(node: &Node) -> Result<Vec<Condition>, Problem> {
    let Some(pairs) = node.pairs() else {
        return Err(Problem::broken_entry(
            node.line,
            "`when` maps paths to regexes; write `when: { command: 'rm\\s+-rf' }`",
        ));
    };
    pairs
        .iter()
        .map(|pair| {
            if let Some(field) = misspelled(&pair.key) {
                let key = &pair.key;
                let why = format!(
                    "no agent sends a `{key}`; did you mean `{field}`? (a tool's own field: `tool_input.{key}`)"
                );
                return Err(Problem::broken_entry(pair.line, why));
            }
            let texts = pair.value.texts().filter(|texts| !texts.is_empty()).ok_or_else(|| {
                let key = &pair.key;
                Problem::broken_entry(
                    pair.line,
                    format!("`{key}` needs a regex; write `{key}: 'text'`"),
                )
            })?;
            let any_of = texts
                .iter()
                .map(|text| {
                    Pattern::compile(text, text, PatternSize::Large)
                        .map_err(|why| Problem::broken_entry(pair.value.line, why))
                })
                .collect::<Result<_, _>>()?;
            Ok(Condition { path: pair.key.clone(), any_of })
        })
        .collect()
}

fn answer(key: &str, node: &Node, name: &str) -> Result<Verdict, Problem> {
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
