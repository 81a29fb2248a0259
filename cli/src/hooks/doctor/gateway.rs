//! Checks timeouts against the deadline of a gateway: at its events every chat waits, so the bridge waits less than
//! elsewhere, whatever `timeout:` says.

use std::time::Duration;

use hookbus::config::Hook;
use hookbus::dialect::kind_of;
use hookbus::event::Agent;
use serde_json::Value;

use super::super::EffectiveHooks;
use super::finding::Finding;

/// Where the bridge waits no longer than the gateway's deadline; `command:help` stands for all commands.
const GATEWAY_EVENTS: [&str; 9] = [
    "pre_gateway_dispatch",
    "gateway:startup",
    "session:start",
    "session:end",
    "session:reset",
    "agent:start",
    "agent:step",
    "agent:end",
    "command:help",
];

/// The hooks whose `timeout:` cannot be kept at an event of a gateway.
pub(super) fn check(hooks: &EffectiveHooks, deadline: Duration) -> Vec<Finding> {
    let all = hooks.files().flat_map(|(_, active)| &active.file.hooks);
    let too_long = |hook: &&Hook| {
        hook.is_asked()
            && hook.timeout() > deadline
            && has_own_timeout(hook)
            && hook.agent.is_none_or(|agent| agent == Agent::Hermes)
            && GATEWAY_EVENTS
                .iter()
                .any(|name| hook.on.covers_name(name, kind_of(Agent::Hermes, name).as_str()))
    };
    all.filter(too_long)
        .map(|hook| {
            let (about, timeout) = (format!("{} on {}", hook.name, hook.on), hook.timeout());
            let (timeout, deadline) = (timeout.as_secs_f64(), deadline.as_secs_f64());
            Finding::bad(
                about,
                format!(
                    "`timeout: {timeout}` is longer than the {deadline} s that Hermes' gateway waits at its events, and there it counts as failed after that; \
                     lower it, or run `hookbus connect hermes --gateway-deadline {timeout}`"
                ),
            )
        })
        .collect()
}

/// Whether the entry itself has a `timeout:`. The usual one is longer than the deadline of any gateway.
fn has_own_timeout(hook: &Hook) -> bool {
    let written: Value = serde_json::from_str(&hook.written).unwrap_or_default();
    written.get("timeout").is_some()
}
