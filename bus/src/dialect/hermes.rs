//! Hermes Agent over its shell-hook wire, as 0.19 really behaves: three events take an answer,
//! the first block wins, contexts are joined by a blank line, everything else is silence.

use serde_json::{Value, json};

use super::Takes;
use crate::event::{Body, Event, Ruling, Verdict};

/// What Hermes acts on at this event.
pub(super) fn takes(event: &Event) -> Takes {
    match Hears::at(event) {
        Hears::Block | Hears::Continue => Takes { block: true, ..Takes::NOTHING },
        Hears::Context => Takes { context: true, ..Takes::NOTHING },
        Hears::Nothing => Takes::NOTHING,
    }
}

/// The first block wins whole; contexts add up.
pub(super) fn merge(event: &Event, verdicts: &[&Verdict]) -> Verdict {
    match Hears::at(event) {
        Hears::Block => first(verdicts, |_| true),
        // Without a message a `continue` is none, and the next hook has the word.
        Hears::Continue => first(verdicts, |verdict| message(verdict).is_some()),
        Hears::Context => {
            let said: Vec<&str> =
                verdicts.iter().filter_map(|verdict| verdict.context.as_deref()).collect();
            let context = (!said.is_empty()).then(|| said.join("\n\n"));
            Verdict { context, ..Verdict::silent() }
        }
        Hears::Nothing => Verdict::silent(),
    }
}

/// The first block that counts, else the first opinion.
fn first(verdicts: &[&Verdict], counts: impl Fn(&Verdict) -> bool) -> Verdict {
    let blocks = |verdict: &&&Verdict| verdict.ruling == Some(Ruling::Block) && counts(verdict);
    let speaks = |verdict: &&&Verdict| verdict.ruling.is_some_and(|it| it != Ruling::Block);
    let found = verdicts.iter().find(blocks).or_else(|| verdicts.iter().find(speaks));
    found.map_or_else(Verdict::silent, |first| Verdict {
        ruling: first.ruling,
        reason: first.reason.clone(),
        ..Verdict::silent()
    })
}

fn message(verdict: &Verdict) -> Option<&str> {
    verdict.reason.as_deref().filter(|text| !text.trim().is_empty())
}

/// The answer as Hermes 0.19 and its successors both understand it.
pub(super) fn encode(event: &Event, merged: &Verdict) -> Option<Value> {
    let blocked = merged.ruling == Some(Ruling::Block);
    match Hears::at(event) {
        // Without a reason Hermes puts in its own words, as it would for the hook itself.
        Hears::Block if blocked => Some(match &merged.reason {
            Some(reason) => json!({"decision": "block", "reason": reason}),
            None => json!({"decision": "block"}),
        }),
        Hears::Continue if blocked => {
            Some(json!({"action": "continue", "message": message(merged)?}))
        }
        Hears::Context => merged.context.as_ref().map(|context| json!({"context": context})),
        Hears::Block | Hears::Continue | Hears::Nothing => None,
    }
}

/// What Hermes listens for, by event.
#[derive(Clone, Copy)]
enum Hears {
    Block,
    Continue,
    Context,
    Nothing,
}

impl Hears {
    fn at(event: &Event) -> Self {
        match (event.name.as_str(), &event.body) {
            // Nobody knows which event it was: the one answer that can stop a tool call.
            ("pre_tool_call", _) | (_, Body::Unreadable { .. }) => Self::Block,
            ("pre_verify", _) => Self::Continue,
            ("pre_llm_call", _) => Self::Context,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrival, Ending, Manner, Said, decode, understand};
    use super::*;
    use crate::event::{Agent, EventId, Time};

    fn event(name: &str) -> Event {
        let at = Time::from_micros(1_700_000_000_000_000);
        let raw =
            json!({"hook_event_name": name, "tool_name": "terminal"}).to_string().into_bytes();
        decode(Arrival { id: EventId::mint(at), at, agent: Agent::Hermes, raw, session_hint: None })
    }

    fn told(name: &str, printed: &[(&str, &str, i32)]) -> Option<Value> {
        let event = event(name);
        let verdicts: Vec<Verdict> = printed
            .iter()
            .map(|(stdout, stderr, exit)| {
                let (stdout, stderr) = (stdout.as_bytes(), stderr.as_bytes());
                let said = Said { stdout, stderr, ending: Ending::Exit(*exit) };
                understand(Manner::Hermes, event.kind, &said).verdict
            })
            .collect();
        encode(&event, &merge(&event, &verdicts.iter().collect::<Vec<_>>()))
    }

    #[test]
    fn the_first_block_wins() {
        let first = r#"{"action": "block", "message": "first"}"#;
        let second = r#"{"decision": "block", "reason": "second"}"#;
        let expected = Some(json!({"decision": "block", "reason": "first"}));
        assert_eq!(
            told("pre_tool_call", &[("", "", 0), (first, "", 0), (second, "", 0)]),
            expected
        );
    }

    #[test]
    fn a_block_counts_whatever_the_exit_code_and_without_a_reason() {
        let block = r#"{"decision": "block"}"#;
        assert_eq!(told("pre_tool_call", &[(block, "", 1)]), Some(json!({"decision": "block"})));
    }

    #[test]
    fn contexts_are_joined_by_a_blank_line() {
        let said =
            [(r#"{"context": "one"}"#, "", 0), ("{}", "", 0), (r#"{"context": "two"}"#, "", 0)];
        assert_eq!(told("pre_llm_call", &said), Some(json!({"context": "one\n\ntwo"})));
    }

    #[test]
    fn an_agent_that_wants_to_finish_can_be_sent_on() {
        for word in [
            r#"{"action": "continue", "message": "test it"}"#,
            r#"{"decision": "BLOCK", "reason": "test it"}"#,
        ] {
            let expected = Some(json!({"action": "continue", "message": "test it"}));
            assert_eq!(told("pre_verify", &[(word, "", 0)]), expected, "{word}");
        }
        let wordless = (r#"{"action": "continue"}"#, "", 0);
        assert_eq!(told("pre_verify", &[wordless]), None, "it needs a message");
        let next = (r#"{"action": "continue", "message": "next"}"#, "", 0);
        let expected = Some(json!({"action": "continue", "message": "next"}));
        assert_eq!(told("pre_verify", &[wordless, next]), expected);
    }

    #[test]
    fn everywhere_else_there_is_silence() {
        for name in [
            "post_tool_call",
            "transform_llm_output",
            "on_session_end",
            "kanban_task_claimed",
            "news",
        ] {
            assert_eq!(
                told(name, &[(r#"{"decision": "block", "context": "x"}"#, "no", 2)]),
                None,
                "{name}"
            );
        }
    }

    #[test]
    fn a_clear_block_in_another_spelling_counts_here_too() {
        for (stdout, stderr, exit) in [
            (r#"{"decision": "deny", "reason": "no"}"#, "", 0),
            (
                r#"{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}"#,
                "",
                0,
            ),
            ("", "no", 2),
        ] {
            let expected = Some(json!({"decision": "block", "reason": "no"}));
            assert_eq!(told("pre_tool_call", &[(stdout, stderr, exit)]), expected, "{stdout}");
        }
        assert_eq!(
            told("pre_tool_call", &[("", "", 2)]),
            None,
            "without a word it is only a failure"
        );
    }
}
