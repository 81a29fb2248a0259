//! Observers, as they say of themselves how they are: what they set aside, and what keeps them from their work.

use serde_json::Value;

use super::finding::Finding;
use crate::output::count;
use crate::settings::Settings;
use crate::status;

/// What is wrong with them.
pub(super) fn look(settings: &Settings) -> Vec<Finding> {
    let state = status::state(settings);
    let observers = state["observers"].as_array().cloned().unwrap_or_default();
    observers.iter().flat_map(of_one).collect()
}

fn of_one(observer: &Value) -> Vec<Finding> {
    let name = observer["name"].as_str().unwrap_or_default();
    let about = format!("the observer {name}");
    let mut findings = Vec::new();
    if let (Some("in trouble"), Some(why)) =
        (observer["state"].as_str(), observer["error"].as_str())
    {
        findings.push(Finding::bad(
            about.clone(),
            format!(
                "it is in trouble: {why}; `hookbus status --observer {name}` says when it is over"
            ),
        ));
    }
    let dead = observer["dead_letters"].as_u64().and_then(|dead| usize::try_from(dead).ok());
    if let Some(dead) = dead.filter(|dead| *dead > 0) {
        findings.push(Finding::bad(
            about,
            format!(
                "{} set aside after its last try; `hookbus dead list {name}` says why, `hookbus dead retry {name} --all` tries again once that is mended",
                count(dead, "event")
            ),
        ));
    }
    findings
}
