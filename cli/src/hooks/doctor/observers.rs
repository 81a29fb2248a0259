//! Checks the observers by the state that they report: errors, and dead letters.

use serde_json::Value;

use super::finding::Finding;
use crate::output::count;
use crate::settings::Settings;
use crate::status;

/// What is wrong with them.
pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let state = status::state(settings);
    let observers = state["observers"].as_array().cloned().unwrap_or_default();
    observers.iter().flat_map(check_one).collect()
}

fn check_one(observer: &Value) -> Vec<Finding> {
    let name = observer["name"].as_str().unwrap_or_default();
    let about = format!("the observer {name}");
    let mut findings = Vec::new();
    if let (Some("in trouble"), Some(why)) =
        (observer["state"].as_str(), observer["error"].as_str())
    {
        findings.push(Finding::bad(
            about.clone(),
            format!(
                "it cannot work: {why}; `hookbus status --observer {name}` shows when it can again"
            ),
        ));
    }
    let dead = observer["dead_letters"].as_u64().and_then(|dead| usize::try_from(dead).ok());
    if let Some(dead) = dead.filter(|dead| *dead > 0) {
        findings.push(Finding::bad(
            about,
            format!(
                "{} set aside after the last retry; `hookbus dead list {name}` says why, `hookbus dead retry {name} --all` tries them again once that is fixed",
                count(dead, "event")
            ),
        ));
    }
    findings
}
