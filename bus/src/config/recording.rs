//! The `record:` part of `hookbus.yaml`: what is recorded of which events. The most specific key counts.

use std::fmt;

use super::event_key::EventKey;
use super::yaml::{Node, Pair};
use crate::event::{Agent, Event};
use crate::record::{FieldPath, RecordChoice};

/// What is recorded of which events; everything of those that no entry is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    entries: Vec<(RecordKey, RecordChoice)>,
}

/// The events that an entry is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordKey {
    agent: Option<Agent>,
    /// None for all events of the agent.
    event: Option<EventKey>,
}

const WHY: &str =
    "write `everything`, `outline`, `nothing`, or `{ without: [field, other.field] }`";

impl Recording {
    /// What is recorded of `event`.
    pub fn choice(&self, event: &Event) -> &RecordChoice {
        let covering = self.entries.iter().filter(|(key, _)| key.covers(event));
        let best = covering.max_by_key(|(key, _)| key.specificity());
        best.map_or(&RecordChoice::Everything, |(_, choice)| choice)
    }

    /// The entries, as they are shown.
    pub fn describe(&self) -> Vec<String> {
        self.entries.iter().map(|(key, choice)| format!("{key}: {choice}")).collect()
    }
}

impl RecordKey {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(agent) = text.parse::<Agent>() {
            return Ok(Self { agent: Some(agent), event: None });
        }
        let (agent, event) = match text.split_once(':') {
            Some((agent, event)) => match agent.parse::<Agent>() {
                Ok(agent) => (Some(agent), event),
                Err(_) => (None, text),
            },
            None => (None, text),
        };
        let event = EventKey::parse(event).map_err(|why| {
            format!("{why}; an agent can stand alone or before it (`gemini`, `gemini:AfterModel`)")
        })?;
        if let EventKey::Kind(kind) = &event
            && (kind.is_of_bus() || kind.as_str() == "decision")
        {
            return Err(format!("rows of kind `{kind}` are always recorded; remove this"));
        }
        Ok(Self { agent, event: Some(event) })
    }

    fn covers(&self, event: &Event) -> bool {
        self.agent.is_none_or(|agent| agent == event.agent)
            && self.event.as_ref().is_none_or(|key| key.covers(event))
    }

    /// A name counts before a kind, a kind before a pattern, a pattern before an agent, an agent before `*`; with an agent
    /// before it each counts before the same without; a longer pattern before a shorter one.
    fn specificity(&self) -> (u8, bool, usize) {
        let (class, length) = match &self.event {
            Some(EventKey::Name(_)) => (4, 0),
            Some(EventKey::Kind(_)) => (3, 0),
            Some(EventKey::Pattern(pattern)) if pattern.trim_matches('*').is_empty() => {
                (u8::from(self.agent.is_some()), 0)
            }
            Some(EventKey::Pattern(pattern)) => (2, pattern.len()),
            None => (1, 0),
        };
        (class, self.agent.is_some(), length)
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.agent, &self.event) {
            (Some(agent), Some(event)) => write!(f, "{}:{event}", agent.as_str()),
            (Some(agent), None) => f.write_str(agent.as_str()),
            (None, Some(event)) => event.fmt(f),
            (None, None) => f.write_str("*"),
        }
    }
}

/// Reads the setting. An error says what is wrong, by line.
pub(super) fn read(node: &Node, line: usize) -> Result<Recording, (usize, String)> {
    if node.is_null() {
        return Ok(Recording::default());
    }
    let why = "`record` is a mapping from events to what is recorded of them; write `record: { model.chunk: outline }`";
    let pairs = node.pairs().ok_or_else(|| (line, why.to_owned()))?;
    let mut entries: Vec<(RecordKey, RecordChoice)> = Vec::new();
    for pair in pairs {
        let wrong = |why: String| (pair.line, why);
        let key = RecordKey::parse(&pair.key).map_err(wrong)?;
        if entries.iter().any(|(known, _)| *known == key) {
            return Err(wrong(format!("`{key}` is written twice; keep one of them")));
        }
        let choice = choice(&pair.value).ok_or_else(|| wrong(format!("`{key}`: {WHY}")))?;
        entries.push((key, choice));
    }
    Ok(Recording { entries })
}

fn choice(node: &Node) -> Option<RecordChoice> {
    if let Some(word) = node.text() {
        return RecordChoice::parse(&word);
    }
    match node.pairs()? {
        [Pair { key, value, .. }] if key == "without" => {
            let paths: Option<Vec<FieldPath>> =
                value.texts()?.iter().map(|path| FieldPath::parse(path)).collect();
            paths.filter(|paths| !paths.is_empty()).map(RecordChoice::Without)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::HooksFile;
    use crate::dialect::{Arrival, decode};
    use crate::event::{Agent, EventId, Time, Wire};

    fn choice_for(yaml: &str, agent: Agent, name: &str) -> String {
        let text = format!("record:\n{yaml}hooks: {{}}\n");
        let file = HooksFile::parse(&text, Path::new("/")).expect("a file");
        assert!(file.problems.is_empty(), "{:?}", file.problems);
        let at = Time::from_micros(1_700_000_000_000_000);
        let raw = serde_json::json!({"hook_event_name": name}).to_string().into_bytes();
        let (id, wire, session_hint) = (EventId::mint(at), Wire::Shell, None);
        let event = decode(Arrival { id, at, agent, wire, raw: raw.into(), session_hint });
        file.recording.choice(&event).to_string()
    }

    #[test]
    fn the_most_specific_key_counts_in_any_order() {
        let yaml = "  '*': nothing\n  gemini: outline\n  model.*: everything\n  model.chunk: outline\n  \
                    gemini:model.before: nothing\n  AfterModel: {without: [llm_request, a.*.b]}\n  hermes:command:*: outline\n";
        for (agent, name, expected) in [
            (Agent::Hermes, "pre_tool_call", "nothing"),
            (Agent::Gemini, "BeforeTool", "outline"),
            (Agent::Hermes, "post_api_request", "everything"),
            (Agent::Gemini, "AfterModel", "without llm_request, a.*.b"),
            (Agent::Gemini, "BeforeModel", "nothing"),
            (Agent::Hermes, "pre_api_request", "everything"),
            (Agent::Hermes, "command:deploy", "outline"),
        ] {
            assert_eq!(choice_for(yaml, agent, name), expected, "{name}");
            let reversed: Vec<&str> = yaml.lines().rev().collect();
            let reversed = reversed.join("\n") + "\n";
            assert_eq!(choice_for(&reversed, agent, name), expected, "{name}, reversed");
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_changes_nothing() {
        for (wrong, line, told) in [
            ("record: outline\n", 1, "mapping"),
            ("record:\n  model.chunk: outlin\n", 2, "everything"),
            ("record:\n  tool.before: outline\n  model.chunck: outline\n", 3, "did you mean"),
            ("record:\n  AfterModel: {without: []}\n", 2, "without"),
            ("record:\n  AfterModel: {without: ['*']}\n", 2, "without"),
            ("record:\n  AfterModel: {with: [a]}\n", 2, "without"),
            ("record:\n  hooks.loaded: nothing\n", 2, "always recorded"),
            ("record:\n  decision: nothing\n", 2, "always recorded"),
        ] {
            let text = format!("{wrong}hooks: {{}}\n");
            let file = HooksFile::parse(&text, Path::new("/")).expect("a file");
            let [problem] = file.problems.as_slice() else {
                panic!("{wrong}: {:?}", file.problems)
            };
            assert_eq!(problem.line, line, "{wrong}");
            assert!(problem.message.contains(told), "{wrong}: {}", problem.message);
            assert!(file.has_mistakes(), "{wrong}");
            let good = "record: {model.chunk: nothing}\nhooks: {}\n";
            let earlier = HooksFile::parse(good, Path::new("/")).expect("a file");
            let kept = file.with_last_good(&text, &earlier, &|_, _| true);
            assert_eq!(kept.recording.describe(), ["model.chunk: nothing"], "{wrong}");
        }
    }

    #[test]
    fn a_project_has_no_say_in_what_is_recorded() {
        let text = "record: {'*': nothing}\nhooks: {}\n";
        let file =
            HooksFile::parse_project(text, Path::new("/p/.hookbus/hookbus.yaml"), &|_, _| true);
        let file = file.expect("a file");
        assert_eq!(file.recording.describe(), [""; 0]);
        assert!(file.problems[0].message.contains("your own hookbus.yaml only"));
    }
}
