//! A notice: a text of the bus itself for the user of the agent, such as "2 of 9 hooks are not in force". It is
//! recorded with the decision that it was given with.

use serde_json::{Value, json};

/// A text for the user, and the problems that it tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The text.
    pub text: String,
    /// The problems, so that each is told once per session.
    pub about: Vec<String>,
    /// Whether the agent shows it out of the answer (`systemMessage`). If not, the client gets it beside the answer.
    pub in_answer: bool,
}

/// The key of an answer under which Gemini, Claude Code and Codex show their user a text.
const SYSTEM_MESSAGE: &str = "systemMessage";

impl Notice {
    /// The answer with the notice in it, after a text for the user that the hooks gave.
    pub fn add_to(&self, answer: Option<Value>) -> Option<Value> {
        if !self.in_answer {
            return answer;
        }
        let mut answer = answer.unwrap_or_else(|| json!({}));
        let text = match answer[SYSTEM_MESSAGE].as_str() {
            Some(of_hooks) => format!("{of_hooks}\n{}", self.text),
            None => self.text.clone(),
        };
        answer[SYSTEM_MESSAGE] = json!(text);
        Some(answer)
    }

    /// The answer without the notice: what the hooks came to.
    pub fn remove_from(&self, answer: Option<Value>) -> Option<Value> {
        let mut answer = answer?;
        if let Some(text) = answer.get(SYSTEM_MESSAGE).and_then(Value::as_str) {
            let of_hooks = text.strip_suffix(&self.text).map(|rest| rest.trim_end_matches('\n'));
            let of_hooks = of_hooks.map(str::to_owned);
            match (of_hooks, answer.as_object_mut()) {
                (Some(rest), Some(fields)) if rest.is_empty() => {
                    fields.remove(SYSTEM_MESSAGE);
                }
                (Some(rest), Some(fields)) => {
                    fields.insert(SYSTEM_MESSAGE.to_owned(), json!(rest));
                }
                (None, _) | (_, None) => {}
            }
        }
        (answer != json!({})).then_some(answer)
    }

    /// As it is recorded in a decision.
    pub(super) fn to_json(&self) -> Value {
        json!({"text": self.text, "about": self.about, "in_answer": self.in_answer})
    }

    /// Reads it from a decision.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let about = value["about"].as_array()?.iter().filter_map(Value::as_str);
        Some(Self {
            text: value["text"].as_str()?.to_owned(),
            about: about.map(str::to_owned).collect(),
            in_answer: value["in_answer"].as_bool()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_notice_an_answer_is_what_the_hooks_came_to() {
        let notice =
            Notice { text: "one\ntwo".to_owned(), about: vec!["a".to_owned()], in_answer: true };
        for of_hooks in [
            None,
            Some(json!({"decision": "deny", "reason": "no"})),
            Some(json!({"systemMessage": "of a hook"})),
        ] {
            let told = notice.add_to(of_hooks.clone());
            assert!(told.as_ref().is_some_and(|it| it.to_string().contains("two")), "{told:?}");
            assert_eq!(notice.remove_from(told), of_hooks);
        }
        assert_eq!(Notice::read(&notice.to_json()), Some(notice));
    }
}
