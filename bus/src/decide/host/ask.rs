//! Asking one plugin about one event, and what its return values mean.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::super::consent::KeptGate;
use super::super::consent::Objection;
use super::super::surroundings::Surroundings;
use super::moment::{name, payload};
use super::plugin::{Plugin, Question, Reply, Time, Turn, Unanswered};
use crate::dialect::returned;
use crate::event::{Event, Heard, Rewrite, Verdict};

/// What a plugin had to say.
#[derive(Debug)]
pub(in crate::decide) struct Told {
    pub(in crate::decide) verdict: Verdict,
    pub(in crate::decide) failure: Option<String>,
    pub(in crate::decide) hash: Option<String>,
    pub(in crate::decide) heard: Option<Heard>,
    /// Whether all of it was said before, and nothing is new.
    pub(in crate::decide) again: bool,
    /// It failed because nobody has agreed to it as it is now.
    pub(in crate::decide) objection: Option<Objection>,
}

/// Where a plugin stands, and what is asked before it is started there.
#[derive(Debug, Clone)]
pub(in crate::decide) struct Stand {
    pub(in crate::decide) place: Surroundings,
    pub(in crate::decide) gate: Option<Arc<KeptGate>>,
}

/// Asks `plugin` about `event`; nothing where it has no hook for it.
pub(in crate::decide) async fn ask(
    plugin: &Arc<Plugin>,
    event: &Event,
    stand: &Stand,
    time: Time,
) -> Option<Told> {
    let name = name(event, plugin.found.form)?;
    if let Some(why) = obstacle(plugin, &stand.place) {
        return Some(Told {
            again: plugin.says_again_what_it_needs() && plugin.found.broken.is_none(),
            ..failed(why)
        });
    }
    match plugin.call(question(name, event, stand), time).await {
        Ok(None) => None,
        Ok(Some(reply)) => Some(understood(event, reply)),
        Err(Unanswered::Failed(why)) => Some(failed(why)),
        Err(Unanswered::Refused(objection)) => {
            Some(Told { objection: Some(objection.clone()), ..failed(objection.why) })
        }
    }
}

/// Tells `plugin` about `event` when its turn comes, where nothing can be said; what went wrong before
/// it knew of it.
pub(in crate::decide) async fn tell(
    plugin: &Arc<Plugin>,
    turn: Turn,
    event: &Event,
    stand: &Stand,
    limit: Duration,
) -> Result<(), String> {
    let Some(name) = name(event, plugin.found.form) else { return Ok(()) };
    if let Some(why) = obstacle(plugin, &stand.place) {
        return if plugin.says_again_what_it_needs() { Ok(()) } else { Err(why) };
    }
    let told = plugin.tell(turn, question(name, event, stand), limit).await;
    told.map_err(|unanswered| unanswered.why().to_owned())
}

pub(super) fn question(name: String, event: &Event, stand: &Stand) -> Question {
    let (session, payload) = (event.session.clone(), payload(event));
    let Stand { place, gate } = stand.clone();
    Question { id: event.id, name, session, payload, place, gate }
}

fn failed(why: String) -> Told {
    Told {
        verdict: Verdict::silent(),
        failure: Some(why),
        hash: None,
        heard: None,
        again: false,
        objection: None,
    }
}

/// Why it cannot be asked anything.
pub(super) fn obstacle(plugin: &Plugin, place: &Surroundings) -> Option<String> {
    if let Some(why) = &plugin.found.broken {
        return Some(why.clone());
    }
    // The documentation's word: without its variables a plugin is disabled.
    let missing: Vec<String> = plugin
        .found
        .needed_variables()
        .into_iter()
        .filter(|name| place.var(name).is_none_or(std::ffi::OsStr::is_empty))
        .collect();
    (!missing.is_empty())
        .then(|| format!("disabled: it needs {}; set it where the agent runs", missing.join(", ")))
}

fn understood(event: &Event, reply: Reply) -> Told {
    let Reply { answer, hash, heard } = reply;
    let list = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
    let said: Vec<Verdict> =
        list("returns").iter().map(|value| returned(event.kind, value)).collect();
    let contexts: Vec<&str> =
        said.iter().filter_map(|verdict| verdict.context.as_deref()).collect();
    let context = (!contexts.is_empty()).then(|| contexts.join("\n\n"));
    let first = said.iter().find(|verdict| verdict.ruling.is_some() || verdict.rewrite.is_some());
    let mut verdict = first.cloned().unwrap_or_default();
    verdict.context = context;
    if let Some(Value::Object(args)) = answer.get("args") {
        verdict.rewrite = Some(Rewrite::Whole(args.clone()));
    }
    let errors: Vec<String> =
        list("errors").iter().filter_map(|error| error.as_str().map(str::to_owned)).collect();
    let failure = (!errors.is_empty()).then(|| errors.join("; "));
    Told { verdict, failure, hash: Some(hash), heard: Some(heard), again: false, objection: None }
}
