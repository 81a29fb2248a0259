//! What is broken in a state that `hookbus status` shows, and whether all is well. "No events yet" is healthy.

use anyhow::Result;
use serde_json::Value;

use super::details::{describe_spool, waiting};
use crate::output::{self, Paint, count, counted, sanitize};

/// Rows that wait for the relay for longer than this are not on their way.
const LONGEST_RELAY_LAG_S: u64 = 60;

/// Events that wait in the spool for longer than this are not on their way into the log.
const LONGEST_SPOOL_AGE_S: u64 = 60;

/// Whether all is well, in one line, and what is not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Headline {
    /// What is broken, in one sentence each.
    pub(crate) problems: Vec<String>,
}

/// The headline of a state. A daemon that the next hook starts is not missed.
pub(crate) fn headline(state: &Value) -> Headline {
    let is_missed = state["daemon_optional"] != true;
    Headline { problems: if is_missed { problems(state) } else { other_problems(state) } }
}

impl Headline {
    pub(crate) fn print(&self, paint: Paint) -> Result<()> {
        if self.problems.is_empty() {
            return Ok(output::line(paint.good("all is well"))?);
        }
        let verb = if self.problems.len() == 1 { "is" } else { "are" };
        let title = format!("{} {verb} wrong:", count(self.problems.len(), "thing"));
        output::line(paint.bad(&title))?;
        for problem in &self.problems {
            output::labelled("  - ", &sanitize(problem))?;
        }
        Ok(())
    }
}

/// Everything that is broken, in one sentence each.
pub(super) fn problems(state: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let is_hung = !state["hung"].is_null();
    if state["daemon"].is_null() && state["daemon_off"] != true && !is_hung {
        problems.push("no daemon is running; start `hookbus serve`".to_owned());
    }
    problems.extend(other_problems(state));
    problems
}

/// The same without a daemon that does not run.
fn other_problems(state: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if !state["hung"].is_null() {
        problems.push("the daemon does not answer; `hookbus stop` ends it".to_owned());
    }
    problems.extend(state["log"]["error"].as_str().map(|error| format!("the log: {error}")));
    problems.extend(describe_damage(&state["log"]).map(|line| format!("the log: {line}")));
    problems.extend(problems_of_spool(&state["spool"]));
    problems.extend(problems_of_hooks(&state["hooks"]));
    problems.extend(problem_of_relay(&state["relay"]));
    let retention = &state["retention"];
    let has_rules = retention["rules"].as_u64() > Some(0);
    let failed = retention["last"]["error"].as_str().filter(|_| has_rules);
    problems.extend(failed.map(|error| format!("retain: the last run failed: {error}")));
    let observers = state["observers"].as_array().into_iter().flatten();
    // The others run elsewhere, and are checked there.
    let supervised = observers.filter(|observer| !observer["process"].is_null());
    problems.extend(supervised.filter_map(problem_of_observer));
    problems
}

/// Losses of rows that the daemon noticed.
fn describe_damage(log: &Value) -> impl Iterator<Item = String> {
    let file = log["damage_file"].as_str().unwrap_or_default();
    let lines = log["damage"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.map(move |line| sanitize(&format!("{line} (delete {file} when you have read this)")))
}

/// Whatever keeps a guard from being in force as it is written. Remarks do not.
fn problems_of_hooks(hooks: &Value) -> impl Iterator<Item = String> {
    let errors = ["error", "consent_error"].into_iter().filter_map(|key| hooks[key].as_str());
    let broken = hooks["broken"].as_array().into_iter().flatten().filter_map(Value::as_str);
    errors.chain(broken).map(|error| format!("the hooks: {error}"))
}

/// A few events that have just been put into the spool are on their way, and healthy. Files that were not written to the
/// end mend themselves, or become unreadable, which is told.
fn problems_of_spool(spool: &Value) -> Vec<String> {
    let is_old = spool["oldest_age_s"].as_u64().is_some_and(|age| age > LONGEST_SPOOL_AGE_S);
    let mut spool = spool.clone();
    spool["incomplete"] = Value::from(0);
    if !is_old {
        spool["waiting"] = Value::from(0);
    }
    describe_spool(&spool).into_iter().map(|line| format!("the spool: {line}")).collect()
}

fn problem_of_relay(relay: &Value) -> Option<String> {
    let phase = relay["phase"].as_str()?;
    let error = relay["error"].as_str().unwrap_or("no server has answered yet");
    if phase != "publishing" {
        return Some(format!("the relay is {phase}: {error}"));
    }
    let (rows, age) = (relay["lag_events"].as_u64()?, relay["lag_s"].as_u64()?);
    (rows > 0 && age > LONGEST_RELAY_LAG_S)
        .then(|| format!("the relay is behind: {}", waiting(rows, "row", Some(age))))
}

/// What is broken about one observer.
pub(super) fn problem_of_observer(observer: &Value) -> Option<String> {
    let name = observer["name"].as_str().unwrap_or("?");
    let state = observer["state"].as_str().unwrap_or("not running");
    if !["working", "standing by"].contains(&state) {
        let error = observer["error"].as_str().map_or_else(String::new, |it| format!(": {it}"));
        return Some(format!("the observer {name} is {state}{error}"));
    }
    if let Some(dead) = observer["dead_letters"].as_u64().filter(|dead| *dead > 0) {
        let dead = counted(dead, "dead letter");
        return Some(format!("the observer {name} has {dead}; run `hookbus dead list`"));
    }
    let error = observer["error"].as_str()?;
    Some(format!("the observer {name} fails: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_daemon_that_the_next_hook_starts_is_not_missed() {
        let state = |optional: bool| json!({"daemon": null, "daemon_off": false, "daemon_optional": optional});
        assert_eq!(headline(&state(true)).problems, Vec::<String>::new());
        assert_eq!(headline(&state(false)).problems.len(), 1, "none starts by itself");
        assert_eq!(problems(&state(true)).len(), 1, "a health check wants one");
        let hung = json!({"daemon": null, "hung": {"pid": 7}, "daemon_optional": true});
        assert_eq!(
            headline(&hung).problems,
            ["the daemon does not answer; `hookbus stop` ends it"]
        );
    }

    #[test]
    fn events_that_have_waited_for_the_log_for_long_are_a_problem() {
        let spool = |age: u64| json!({"waiting": 2, "oldest_age_s": age, "why": "disk full", "incomplete": 1});
        assert_eq!(problems_of_spool(&spool(LONGEST_SPOOL_AGE_S)), Vec::<String>::new());
        let problems = problems_of_spool(&spool(LONGEST_SPOOL_AGE_S + 1));
        assert!(problems[0].contains("2 events wait for the log"), "{problems:?}");
        assert!(problems[0].ends_with("disk full"), "{problems:?}");
        assert_eq!(problems_of_spool(&Value::Null), Vec::<String>::new());
    }
}
