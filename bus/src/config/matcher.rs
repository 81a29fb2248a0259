//! A hook's `matcher:`. What it is compared with depends on the agent: the same key can be an event
//! name of several (three agents have a `SessionStart`), and each compares in its own way.

use super::event_key::EventKey;
use crate::dialect::{
    Common, Dialect, Matcher, ParsedMatcher, PatternFailure, dialect_of, is_cheap_regex,
};
use crate::event::{Agent, Event};

/// A matcher, read once for each agent that has an event of the key's name.
#[derive(Debug, Clone)]
pub struct HookMatcher {
    text: String,
    /// For events under an agent's own name. None: everything matches.
    by_agent: Vec<(Agent, Option<Matcher>)>,
    /// For all other events.
    common: Option<Matcher>,
}

/// A matcher that cannot be used; the text says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidMatcher(String);

/// Whether the entry may be read in full, or was not approved by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryTrust {
    /// In full.
    Trusted,
    /// Not approved: a regex in it that would take much time and memory to compile matches everything instead.
    Untrusted,
}

impl HookMatcher {
    /// Reads a matcher under `key`, for `agent` only if given. Returns the matcher (none matches everything)
    /// and remarks for the user.
    pub(super) fn parse(
        key: &EventKey,
        agent: Option<Agent>,
        text: &str,
        trust: EntryTrust,
    ) -> Result<(Option<Self>, Vec<String>), InvalidMatcher> {
        let text = text.trim();
        if text.is_empty() || trust == EntryTrust::Untrusted && !is_cheap_regex(text) {
            return Ok((None, Vec::new()));
        }
        let mut remarks = Vec::new();
        let mut accept = |parsed: ParsedMatcher| {
            let (matcher, remark) = match parsed {
                ParsedMatcher::Everything(remark) => (None, remark),
                ParsedMatcher::Some(matcher, remark) => (Some(matcher), remark),
                ParsedMatcher::Invalid(why) => return Err(InvalidMatcher(why)),
            };
            remarks.extend(remark);
            Ok(matcher)
        };
        let owners: Vec<Agent> = Agent::ALL
            .into_iter()
            .filter(|owner| key.is_name_of(*owner) && agent.is_none_or(|only| only == *owner))
            .collect();
        let mut by_agent = Vec::new();
        for owner in &owners {
            by_agent.push((*owner, accept(dialect_of(*owner).matcher(&key.to_string(), text))?));
        }
        let common =
            if owners.is_empty() { accept(Common.matcher(&key.to_string(), text))? } else { None };
        remarks.dedup();
        let matches_everything = common.is_none() && by_agent.iter().all(|(_, it)| it.is_none());
        let matcher = Self { text: text.to_owned(), by_agent, common };
        Ok(((!matches_everything).then_some(matcher), remarks))
    }

    /// The text in the file.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether `event` matches, for a hook under `key`.
    pub(super) fn matches(&self, key: &EventKey, event: &Event) -> Result<bool, PatternFailure> {
        self.for_event(key, event).map_or(Ok(true), |matcher| matcher.matches(event))
    }

    /// Whether matching can fail.
    pub(super) fn can_fail(&self) -> bool {
        let of_agents = self.by_agent.iter().filter_map(|(_, matcher)| matcher.as_ref());
        of_agents.chain(&self.common).any(Matcher::can_fail)
    }

    fn for_event(&self, key: &EventKey, event: &Event) -> Option<&Matcher> {
        let own = self.by_agent.iter().find(|(agent, _)| *agent == event.agent);
        let matcher = match own.filter(|_| key.is_name_of(event.agent)) {
            Some((_, matcher)) => matcher,
            None => &self.common,
        };
        matcher.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::{Arrival, decode};
    use crate::event::{EventId, Time, Wire};

    fn event(agent: Agent, payload: &serde_json::Value) -> Event {
        let at = Time::from_micros(1);
        let (id, raw) = (EventId::mint(at), payload.to_string().into_bytes());
        decode(Arrival { id, at, agent, wire: Wire::Shell, raw: raw.into(), session_hint: None })
    }

    fn matcher(key: &str, text: &str) -> (EventKey, HookMatcher) {
        let key = EventKey::parse(key).expect("a key");
        let read = HookMatcher::parse(&key, None, text, EntryTrust::Trusted).expect("a matcher");
        (key, read.0.expect("not everything"))
    }

    #[test]
    fn under_a_shared_event_name_each_agent_compares_in_its_own_way() {
        let (key, matcher) = matcher("SessionStart", "startup");
        for agent in [Agent::Gemini, Agent::Claude, Agent::Codex] {
            let start = |source: &str| {
                event(agent, &json!({"hook_event_name": "SessionStart", "source": source}))
            };
            assert_eq!(matcher.matches(&key, &start("startup")), Ok(true), "{agent}");
            assert_eq!(matcher.matches(&key, &start("resume")), Ok(false), "{agent}");
        }
    }

    #[test]
    fn gemini_searches_the_tool_name_and_hermes_matches_all_of_it() {
        let call = |agent, name: &str| {
            event(agent, &json!({"hook_event_name": name, "tool_name": "write_file"}))
        };
        let (key, searched) = matcher("BeforeTool", "write");
        assert_eq!(searched.matches(&key, &call(Agent::Gemini, "BeforeTool")), Ok(true));
        let (key, anchored) = matcher("pre_tool_call", "write");
        assert_eq!(anchored.matches(&key, &call(Agent::Hermes, "pre_tool_call")), Ok(false));
    }
}
