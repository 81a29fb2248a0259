//! The verdict: one decision hook's answer, in the same form for all dialects. What the agent gets is a
//! [`Decision`](super::Decision), merged from the verdicts.

use serde_json::{Map, Value};

/// One hook's answer. Every field may be absent: a hook without an opinion is the default value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Whether the agent may go on.
    pub ruling: Option<Ruling>,
    /// Why. The model reads it if the action is blocked, the user if they are asked.
    pub reason: Option<String>,
    /// The agent should stop altogether (Gemini's `continue: false`).
    pub stop: bool,
    /// Why it stops, if not for `reason`.
    pub stop_reason: Option<String>,
    /// Text for the model.
    pub context: Option<String>,
    /// Other tool input than the model asked for.
    pub rewrite: Option<Rewrite>,
    /// Text for the user (`systemMessage`).
    pub notice: Option<String>,
    /// Hide the hook's own output from the user (`suppressOutput`).
    pub quiet: bool,
    /// Answers that only one agent has: `llm_request`, `toolConfig`, `clearContext`, …
    pub own: Map<String, Value>,
}

/// Whether an action may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It may.
    Allow,
    /// The user has to be asked.
    Ask,
    /// It may not.
    Block,
}

/// A change to the input of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Rewrite {
    /// Replaces the whole input.
    Whole(Map<String, Value>),
    /// Sets the values at these dotted paths; the rest stays.
    Paths(Vec<(String, Value)>),
}

impl Verdict {
    /// A refusal.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { ruling: Some(Ruling::Block), reason: Some(reason.into()), ..Self::default() }
    }

    /// No answer.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Whether it is no answer.
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

impl Rewrite {
    /// The input after this change. Along a path, missing objects are created, and any other value is replaced
    /// by an object.
    pub fn apply(&self, input: &Map<String, Value>) -> Map<String, Value> {
        match self {
            Self::Whole(whole) => whole.clone(),
            Self::Paths(paths) => {
                let mut changed = input.clone();
                for (path, value) in paths {
                    set(&mut changed, path, value.clone());
                }
                changed
            }
        }
    }
}

fn set(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        // A key that contains the dot itself takes precedence over a path into an object.
        Some((first, rest)) if !map.contains_key(path) => {
            let inner = map.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
        Some(_) | None => {
            map.insert(path.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rewrite_by_path_leaves_the_rest_alone() {
        let Value::Object(input) = json!({"command": "ls", "options": {"cwd": "/", "tty": true}})
        else {
            panic!("an object");
        };
        let rewrite = Rewrite::Paths(vec![
            ("command".into(), json!("ls -l")),
            ("options.cwd".into(), json!("/tmp")),
            ("new.deep".into(), json!(1)),
        ]);
        assert_eq!(
            Value::Object(rewrite.apply(&input)),
            json!({"command": "ls -l", "options": {"cwd": "/tmp", "tty": true}, "new": {"deep": 1}})
        );
    }
}
