//! Why a hook is not for an event: the first of its filters that does not fit.

use super::event_key::wildcard_matches;
use super::hook::Hook;
use crate::event::Event;

/// The filter of a hook that an event does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFor {
    /// The event key that it is under.
    Event,
    /// `agent:`.
    Agent,
    /// `session:`.
    Session,
    /// `tool:`.
    Tool,
    /// `matcher:`.
    Matcher,
}

impl Hook {
    /// Why it is not for this event; none if it is. It is for the event if its matcher fails:
    /// [`Self::matcher_failure`].
    pub fn not_for(&self, event: &Event) -> Option<NotFor> {
        let tool = event.tool.as_ref();
        let has_class = || tool.is_some_and(|tool| self.tools.contains(&tool.class));
        let has_name = || tool.is_some_and(|tool| self.tool_names.contains(&tool.name));
        if !self.on.covers(event) {
            return Some(NotFor::Event);
        }
        if self.agent.is_some_and(|agent| agent != event.agent) {
            return Some(NotFor::Agent);
        }
        if self.session.as_ref().is_some_and(|it| !wildcard_matches(it, &event.session)) {
            return Some(NotFor::Session);
        }
        if !(self.tools.is_empty() || has_class()) || !(self.tool_names.is_empty() || has_name()) {
            return Some(NotFor::Tool);
        }
        let matcher = self.matcher.as_ref();
        let matches = matcher.is_none_or(|it| it.matches(&self.on, event).unwrap_or(true));
        (!matches).then_some(NotFor::Matcher)
    }

    /// What the hook is for instead, in a few words.
    pub fn describe_not_for(&self, not_for: NotFor) -> String {
        let only = |what: &str| format!("it is for {what} only");
        match not_for {
            NotFor::Event => only(&format!("`{}`", self.on)),
            NotFor::Agent => only(self.agent.as_ref().map_or("", |agent| agent.as_str())),
            NotFor::Session => {
                only(&format!("sessions `{}`", self.session.as_deref().unwrap_or_default()))
            }
            NotFor::Tool => {
                let classes = self.tools.iter().map(|class| class.as_str());
                let names = self.tool_names.iter().map(String::as_str);
                only(&format!("the tools {}", classes.chain(names).collect::<Vec<_>>().join(", ")))
            }
            NotFor::Matcher => {
                let matcher = self.matcher.as_ref().map_or("", |matcher| matcher.text());
                format!("its matcher `{matcher}` does not match")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::HooksFile;
    use crate::dialect::{Arrival, decode};
    use crate::event::{Agent, EventId, Time, Wire};

    fn why(entry: &str) -> Option<String> {
        let text = format!("hooks: {{ {entry} }}");
        let hook = HooksFile::parse(&text, Path::new("/")).expect("a file").hooks.remove(0);
        let raw = br#"{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"write_file"}"#;
        let at = Time::from_micros(1);
        let (id, agent, wire) = (EventId::mint(at), Agent::Gemini, Wire::Shell);
        let arrival = Arrival { id, at, agent, wire, raw: raw.to_vec().into(), session_hint: None };
        let event = decode(arrival);
        assert_eq!(hook.is_for(&event), hook.not_for(&event).is_none());
        hook.not_for(&event).map(|it| hook.describe_not_for(it))
    }

    #[test]
    fn each_filter_says_what_the_hook_is_for() {
        let rule = "rule: { block: no }";
        for (entry, expected) in [
            (format!("tool.after: [{{ {rule} }}]"), Some("it is for `tool.after` only")),
            (format!("tool.before: [{{ agent: hermes, {rule} }}]"), {
                Some("it is for hermes only")
            }),
            (format!("tool.before: [{{ session: 'x*', {rule} }}]"), {
                Some("it is for sessions `x*` only")
            }),
            (format!("tool.before: [{{ tool: [shell, web.fetch], {rule} }}]"), {
                Some("it is for the tools shell, web.fetch only")
            }),
            (format!("BeforeTool: [{{ matcher: 'read_.*', {rule} }}]"), {
                Some("its matcher `read_.*` does not match")
            }),
            (format!("tool.before: [{{ tool: file.write, {rule} }}]"), None),
        ] {
            assert_eq!(why(&entry).as_deref(), expected, "{entry}");
        }
    }
}
