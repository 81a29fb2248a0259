//! Sessions of the four agents, told through the real `hookbus hook`, and snapshots of what people read about them.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Value, json};

use crate::home::Home;
use crate::payloads;

/// A recorded payload in another session, with other fields.
pub fn event(agent: &str, name: &str, session: &str, fields: &Value) -> Value {
    let mut payload = payloads::one(agent, name);
    payload["session_id"] = json!(session);
    merge(&mut payload, fields);
    payload
}

/// Puts the fields of `other` into `value`, objects inside of objects too.
fn merge(value: &mut Value, other: &Value) {
    match (value, other) {
        (Value::Object(own), Value::Object(other)) => {
            for (key, inner) in other {
                merge(own.entry(key).or_insert(Value::Null), inner);
            }
        }
        (value, other) => *value = other.clone(),
    }
}

/// Sends events of one agent.
pub fn tell(home: &Home, agent: &str, events: &[Value]) {
    for event in events {
        home.hook(agent, event.to_string());
    }
}

/// What differs from run to run, replaced: times, durations, hashes, numbers of rows stay.
pub fn stable(text: &str, home: &Home) -> String {
    let mut text = text.replace(&*home.work().to_string_lossy(), "DIRECTORY");
    for (pattern, stand_in) in [
        (r"/\S*hookbus-test-\S*", "HOME"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", "YYYY-MM-DD hh:mm:ss"),
        (r"\d\d-\d\d \d\d:\d\d:\d\d", "MM-DD hh:mm:ss"),
        (r"\d\d:\d\d:\d\d(\.\d+)?", "hh:mm:ss"),
        (r"\b(today|yesterday) \d\d:\d\d\b", "today hh:mm"),
        (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
        (r"(<1 ms|\b\d+(\.\d)? (ms|s)\b)( \d+ s)?", "DURATION"),
        (r#""ms":[0-9.]+"#, r#""ms":0"#),
    ] {
        let pattern = Regex::new(pattern).expect("a pattern");
        text = pattern.replace_all(&text, stand_in).into_owned();
    }
    text
}

/// Compares with `tests/snapshots/<name>.txt`; with `UPDATE_SNAPSHOTS=1` writes it.
pub fn matches_snapshot(name: &str, text: &str) {
    let file: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, text).expect("a snapshot");
        return;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        expected == text,
        "{name} differs; UPDATE_SNAPSHOTS=1 accepts it\n--- expected\n{expected}\n--- now\n{text}"
    );
}
