//! Moving the shell hooks of Hermes' `config.yaml` to `hookbus.yaml`, where they mean the same. Only
//! those that a person has agreed to: the others would run here without anybody having been asked.

use serde_json::{Map, Value, json};

use super::yaml_edit::{self, CannotEdit, Step};

/// A hook and the event it is for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moved {
    event: String,
    entry: Value,
    /// When its script had last been changed as somebody agreed to it.
    pub(super) script_time: Option<String>,
}

impl Moved {
    /// Whether it is this command on this event.
    pub(super) fn is(&self, event: &str, command: &str) -> bool {
        self.event == event && self.entry["command"] == json!(command)
    }
}

/// The entries under `hooks:`: event, place, entry.
pub(super) fn entries(config: &Value) -> Vec<(String, usize, Value)> {
    let events = config.get("hooks").and_then(Value::as_object);
    let list = |(event, list): (&String, &Value)| {
        let list = list.as_array().cloned().unwrap_or_default();
        let event = event.clone();
        list.into_iter()
            .enumerate()
            .map(move |(place, entry)| (event.clone(), place, entry))
            .collect::<Vec<_>>()
    };
    events.into_iter().flatten().flat_map(list).collect()
}

/// `text` without the hooks that may be moved, and those.
pub(super) fn take_out(
    text: &str,
    allowlist: Option<&str>,
    remarks: &mut Vec<String>,
) -> Result<(String, Vec<Moved>), CannotEdit> {
    let config = yaml_edit::read(text)?;
    let accepts_all = config.get("hooks_auto_accept") == Some(&Value::Bool(true));
    let allowlist: Value =
        allowlist.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let approvals =
        allowlist.get("approvals").and_then(Value::as_array).cloned().unwrap_or_default();
    let (mut paths, mut moved) = (Vec::new(), Vec::new());
    for (event, place, entry) in entries(&config) {
        let Some(command) = entry.get("command").and_then(Value::as_str) else { continue };
        let approved =
            |row: &Value| row["event"] == json!(event) && row["command"] == json!(command);
        let approval = approvals.iter().find(|row| approved(row));
        if accepts_all || approval.is_some() {
            let key = |word: &str| Step::Key(word.to_owned());
            paths.push(vec![key("hooks"), key(&event), Step::Item(place)]);
            let time = approval.map(|row| &row["script_mtime_at_approval"]);
            let script_time = time.and_then(Value::as_str).map(str::to_owned);
            moved.push(Moved { event, entry, script_time });
        } else {
            remarks.push(format!(
                "`{command}` on {event} stays in Hermes: nobody has agreed to it there yet"
            ));
        }
    }
    Ok((yaml_edit::remove(text, &paths)?, moved))
}

/// `text` with these hooks in it, after the ones that are there.
pub(super) fn put_in(text: &str, moved: &[Moved]) -> Result<String, CannotEdit> {
    let before = yaml_edit::read(text)?;
    let mut expected = if before.is_null() { json!({}) } else { before };
    let mut edited = text.to_owned();
    for Moved { event, entry, .. } in moved {
        let hooks = expected.as_object_mut().map(|root| root.entry("hooks").or_insert(Value::Null));
        let hooks = hooks.ok_or_else(|| CannotEdit::Unexpected("hooks".to_owned()))?;
        if hooks.is_null() {
            *hooks = Value::Object(Map::new());
        }
        let list = hooks.as_object_mut().map(|hooks| hooks.entry(event).or_insert(json!([])));
        let list = list.and_then(Value::as_array_mut);
        list.ok_or_else(|| CannotEdit::Unexpected(format!("hooks.{event}")))?.push(entry.clone());
        // JSON is YAML, and quotes what needs it.
        edited = yaml_edit::append_under(&edited, "hooks", event, &entry.to_string())?;
    }
    if yaml_edit::read(&edited)? == expected {
        Ok(edited)
    } else {
        Err(CannotEdit::Unusual("hooks".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# mine\nhooks:\n  pre_tool_call:\n    - matcher: terminal\n      command: ~/a.sh\n    - command: ~/b.sh\nmodel: x\n";

    #[test]
    fn hooks_with_consent_move_and_the_others_stay() {
        let allowed =
            json!({"approvals": [{"event": "pre_tool_call", "command": "~/a.sh"}]}).to_string();
        let mut remarks = Vec::new();
        let (left, moved) = take_out(CONFIG, Some(&allowed), &mut remarks).expect("an edit");
        assert_eq!(left, "# mine\nhooks:\n  pre_tool_call:\n    - command: ~/b.sh\nmodel: x\n");
        assert_eq!(remarks.len(), 1);
        for (before, after) in [
            (
                "",
                "hooks:\n  pre_tool_call:\n    - {\"matcher\":\"terminal\",\"command\":\"~/a.sh\"}\n",
            ),
            (
                "hooks:\n  pre_tool_call:\n  - rule: {block: x}\n  # next\n  tool.after: []\nnats: {url: x}\n",
                "hooks:\n  pre_tool_call:\n  - rule: {block: x}\n  - {\"matcher\":\"terminal\",\"command\":\"~/a.sh\"}\n  # next\n  tool.after: []\nnats: {url: x}\n",
            ),
            (
                "hooks:\n    tool.after: [] # none\n\nnats: {url: x}\n",
                "hooks:\n    tool.after: [] # none\n    pre_tool_call:\n      - {\"matcher\":\"terminal\",\"command\":\"~/a.sh\"}\n\nnats: {url: x}\n",
            ),
        ] {
            assert_eq!(put_in(before, &moved).expect("an edit"), after);
        }
    }
}
