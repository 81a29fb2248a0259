//! What one decision hook said, in whichever dialect it said it.

use serde_json::{Map, Value};

/// One hook's answer. Every field may be absent: a hook without an opinion is the default value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Whether the agent may go on.
    pub ruling: Option<Ruling>,
    /// Why, for whoever hears it: the model when blocked, the person when asked.
    pub reason: Option<String>,
    /// The agent should stop altogether (Gemini's `continue: false`).
    pub stop: bool,
    /// What to say when it stops; `reason` where this is absent.
    pub stop_reason: Option<String>,
    /// Text for the model.
    pub context: Option<String>,
    /// Other tool input than the model asked for.
    pub rewrite: Option<Rewrite>,
    /// Text for the person (`systemMessage`).
    pub notice: Option<String>,
    /// Keep the hook's own output out of sight (`suppressOutput`).
    pub quiet: bool,
    /// What only one dialect has a word for: `llm_request`, `toolConfig`, `clearContext`, …
    pub own: Map<String, Value>,
}

/// Whether an action may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It may.
    Allow,
    /// A person shall be asked.
    Ask,
    /// It may not.
    Block,
}

/// A change to the input of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Rewrite {
    /// This is the input now.
    Whole(Map<String, Value>),
    /// These dotted paths have these values now; the rest stays.
    Paths(Vec<(String, Value)>),
}

impl Verdict {
    /// A refusal.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { ruling: Some(Ruling::Block), reason: Some(reason.into()), ..Self::default() }
    }

    /// Nothing to say.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Whether there is nothing in it.
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

impl Rewrite {
    /// The input after this change. Steps into objects, makes the ones that are missing, and puts
    /// the value in place of anything else that is in the way.
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
        // A key that holds a dot itself wins over a step into an object.
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
