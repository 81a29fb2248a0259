//! Looking names up in the dialects' tables. A name that is in no table is still an event, of kind
//! `other`.

use super::dialect_of;
use crate::event::{Agent, Kind, ToolClass};

/// The kind of the event that `agent` calls `name`.
pub fn kind_of(agent: Agent, name: &str) -> Kind {
    first_match(dialect_of(agent).events(), name).unwrap_or(Kind::Other)
}

/// Whether `agent` has an event of exactly this name.
pub fn is_event_of(agent: Agent, name: &str) -> bool {
    let events = dialect_of(agent).events();
    events.iter().any(|(pattern, _)| !pattern.ends_with('*') && *pattern == name)
}

/// Whether `name` can be an event of `agent`: by its exact name, or as one of a family.
pub fn can_be_event_of(agent: Agent, name: &str) -> bool {
    first_match(dialect_of(agent).events(), name).is_some()
}

/// Every event name of `agent`; a name that ends in `*` stands for a family.
pub fn event_names(agent: Agent) -> impl Iterator<Item = &'static str> {
    dialect_of(agent).events().iter().map(|(name, _)| *name)
}

/// The tools of `agent` and what they do. A name that ends in `*` stands for a family.
pub fn tools_of(agent: Agent) -> &'static [(&'static str, ToolClass)] {
    dialect_of(agent).tools()
}

/// What the tool that `agent` calls `name` does.
pub fn tool_class_of(agent: Agent, name: &str) -> ToolClass {
    first_match(dialect_of(agent).tools(), name).unwrap_or(ToolClass::Other)
}

fn first_match<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    };
    table.iter().find(|(pattern, _)| matches(pattern)).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_follows_the_meaning_of_an_event_and_not_its_name() {
        assert_eq!(kind_of(Agent::Hermes, "pre_llm_call"), Kind::TurnStart);
        assert_eq!(kind_of(Agent::Hermes, "pre_api_request"), Kind::ModelBefore);
        assert_eq!(kind_of(Agent::Hermes, "on_session_end"), Kind::TurnEnd);
        assert_eq!(kind_of(Agent::Hermes, "on_session_finalize"), Kind::SessionEnd);
        assert_eq!(kind_of(Agent::Gemini, "AfterModel"), Kind::ModelChunk);
        assert_eq!(kind_of(Agent::Hermes, "command:deploy"), Kind::Command);
    }

    #[test]
    fn an_unknown_name_is_still_an_event() {
        assert_eq!(kind_of(Agent::Gemini, "pre_tool_call"), Kind::Other);
        assert_eq!(kind_of(Agent::Hermes, ""), Kind::Other);
        let other = Agent::named("opencode").expect("a name");
        assert_eq!(kind_of(other, "pre_tool_call"), Kind::Other);
    }

    #[test]
    fn one_class_covers_the_shells_of_all_agents() {
        for (agent, name) in [
            (Agent::Hermes, "terminal"),
            (Agent::Gemini, "run_shell_command"),
            (Agent::Claude, "Bash"),
            (Agent::Codex, "Bash"),
        ] {
            assert_eq!(tool_class_of(agent, name), ToolClass::Shell, "{agent} {name}");
        }
        assert_eq!(tool_class_of(Agent::Gemini, "mcp_echo_shout"), ToolClass::Mcp);
        assert_eq!(tool_class_of(Agent::Hermes, "mcp__lab__echo"), ToolClass::Mcp);
    }

    #[test]
    fn the_agents_have_as_many_events_as_their_releases() {
        let shell_hooks = event_names(Agent::Hermes).take_while(|name| !name.contains(':'));
        assert_eq!(shell_hooks.count(), 23);
        assert_eq!(event_names(Agent::Gemini).count(), 11);
        assert_eq!(event_names(Agent::Claude).count(), 33);
        assert_eq!(event_names(Agent::Codex).count(), 11);
    }
}
