//! An event of any agent in the form that Hermes plugins expect: Hermes' name for it, and a payload in Hermes'
//! shape. An event that Hermes does not have is not for plugins.

use serde_json::{Map, Value, json};

use super::discovery::PluginForm;
use crate::dialect::{Capabilities, dialect_of};
use crate::event::{Agent, Event, Kind};

/// Hermes' name of the event for a plugin of this form; none if Hermes has no such event.
pub(super) fn plugin_event_name(event: &Event, form: PluginForm) -> Option<String> {
    let is_gateway_event = event.name.contains(':');
    match (event.agent, form) {
        (Agent::Hermes, PluginForm::Plugin) => (!is_gateway_event).then(|| event.name.clone()),
        (Agent::Hermes, PluginForm::Gateway) => is_gateway_event.then(|| event.name.clone()),
        (Agent::Gemini | Agent::Claude | Agent::Codex | Agent::Other(_), PluginForm::Plugin) => {
            plugin_name(event.kind).map(str::to_owned)
        }
        (Agent::Gemini | Agent::Claude | Agent::Codex | Agent::Other(_), PluginForm::Gateway) => {
            gateway_name(event.kind).map(str::to_owned)
        }
    }
}

/// Whether a gateway hook's answer to the event can have an effect.
pub(crate) fn can_gateway_hooks_answer(event: &Event) -> bool {
    dialect_of(event.agent).capabilities(event) != Capabilities::NONE
        && plugin_event_name(event, PluginForm::Gateway).is_some()
}

/// Whether a subscription to `pattern` covers the event `name`: `command:*` covers every command.
pub(super) fn subscription_covers(pattern: &str, name: &str) -> bool {
    pattern == name
        || pattern
            .strip_suffix(":*")
            .is_some_and(|family| name.split(':').next() == Some(family) && name.contains(':'))
}

/// Kind, name of the plugin callback, name of the gateway hook.
const TABLE: [(Kind, Option<&str>, Option<&str>); 14] = [
    (Kind::SessionStart, Some("on_session_start"), Some("session:start")),
    (Kind::SessionEnd, Some("on_session_finalize"), Some("session:end")),
    (Kind::SessionReset, Some("on_session_reset"), Some("session:reset")),
    (Kind::TurnStart, Some("pre_llm_call"), Some("agent:start")),
    (Kind::TurnAnswer, Some("post_llm_call"), None),
    (Kind::TurnEnd, Some("on_session_end"), Some("agent:end")),
    (Kind::ModelBefore, Some("pre_api_request"), None),
    (Kind::ModelAfter, Some("post_api_request"), None),
    (Kind::ToolBefore, Some("pre_tool_call"), None),
    (Kind::ToolAfter, Some("post_tool_call"), None),
    (Kind::ApprovalRequest, Some("pre_approval_request"), None),
    (Kind::ApprovalAnswer, Some("post_approval_response"), None),
    (Kind::SubagentStart, Some("subagent_start"), None),
    (Kind::SubagentStop, Some("subagent_stop"), None),
];

fn plugin_name(kind: Kind) -> Option<&'static str> {
    TABLE.iter().find(|(known, ..)| *known == kind).and_then(|(_, plugin, _)| *plugin)
}

fn gateway_name(kind: Kind) -> Option<&'static str> {
    TABLE.iter().find(|(known, ..)| *known == kind).and_then(|(_, _, gateway)| *gateway)
}

/// The payload in Hermes' shape. Another agent's fields are put where a plugin looks for them.
pub(super) fn plugin_payload(event: &Event) -> Value {
    let Some(fields) = event.fields() else { return json!({}) };
    if event.agent == Agent::Hermes {
        return Value::Object(fields.clone());
    }
    let mut extra: Map<String, Value> = fields.clone();
    let rename = [
        ("prompt", &["user_message", "message"][..]),
        ("prompt_response", &["assistant_response", "response"][..]),
        ("tool_response", &["result"][..]),
    ];
    for (theirs, names) in rename {
        if let Some(value) = fields.get(theirs) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            extra.extend(names.iter().map(|name| ((*name).to_owned(), json!(text))));
        }
    }
    for top in ["hook_event_name", "tool_name", "tool_input", "session_id", "cwd"] {
        extra.remove(top);
    }
    for (missing, value) in
        [("task_id", json!(event.session)), ("platform", json!(event.agent.as_str()))]
    {
        extra.entry(missing).or_insert(value);
    }
    json!({
        "hook_event_name": event.name,
        "tool_name": fields.get("tool_name"),
        "tool_input": fields.get("tool_input"),
        "session_id": event.session,
        "cwd": fields.get("cwd"),
        "extra": extra,
    })
}
