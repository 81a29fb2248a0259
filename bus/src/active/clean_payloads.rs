//! The last payload without secrets of each session and event, so that the daemon searches only what the next one adds.
//! Bounded: forgets those that were not used for the longest time.

use std::sync::Arc;

use crate::event::{Agent, Event, Payload};
use crate::redact::{CleanPayload, Redacted, Redactor};

/// Shorter payloads are searched as a whole.
const SHORTEST: usize = 64 << 10;
/// What is kept in all, and what of it one payload may take.
const MOST_BYTES: usize = 48 << 20;
const LONGEST: usize = MOST_BYTES / 4;
const MOST: usize = 64;

/// The payloads; the one used last is the last.
#[derive(Debug, Default)]
pub(super) struct CleanPayloads {
    kept: Vec<Kept>,
}

#[derive(Debug)]
struct Kept {
    agent: Agent,
    session: String,
    name: String,
    /// What has searched it.
    redactor: Arc<Redactor>,
    payload: CleanPayload<Payload>,
}

impl CleanPayloads {
    /// The payload of `event` without secrets.
    pub(super) fn redact<'e>(
        &mut self,
        redactor: &Arc<Redactor>,
        event: &'e Event,
    ) -> Redacted<'e> {
        let raw: &[u8] = &event.raw;
        if !(SHORTEST..=LONGEST).contains(&raw.len()) {
            return redactor.redact(raw);
        }
        let is_of = |kept: &Kept| {
            kept.agent == event.agent && kept.session == event.session && kept.name == event.name
        };
        let known = self.kept.iter().position(is_of).map(|index| self.kept.remove(index));
        let known = known.filter(|known| Arc::ptr_eq(&known.redactor, redactor));
        let is_clean = known.as_ref().is_some_and(|it| redactor.is_clean_beside(raw, &it.payload));
        let redacted = if is_clean { Redacted::unchanged(raw) } else { redactor.redact(raw) };
        if redacted.found.is_empty() {
            self.kept.push(Kept {
                agent: event.agent,
                session: event.session.clone(),
                name: event.name.clone(),
                redactor: Arc::clone(redactor),
                payload: CleanPayload::new(event.raw.clone()),
            });
            self.shrink();
        }
        redacted
    }

    fn shrink(&mut self) {
        let mut bytes: usize = self.kept.iter().map(|kept| kept.payload.len()).sum();
        let mut unused = 0;
        for kept in &self.kept {
            if bytes <= MOST_BYTES && self.kept.len() - unused <= MOST {
                break;
            }
            bytes -= kept.payload.len();
            unused += 1;
        }
        self.kept.drain(..unused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Arrival, decode};
    use crate::event::{EventId, Time, Wire};
    use crate::redact::{FingerprintKey, RedactionSettings};

    fn redactor(off: &[&str]) -> Arc<Redactor> {
        let off = off.iter().map(|kind| (*kind).to_owned()).collect();
        let settings = RedactionSettings { off, ..RedactionSettings::default() };
        Arc::new(Redactor::new(FingerprintKey::new([7; 32]), &settings).expect("valid settings"))
    }

    fn event(session: &str, text: &str) -> Event {
        let at = Time::from_micros(1_700_000_000_000_000);
        let history = "all sorts of words ".repeat(5_000);
        let raw = format!(
            r#"{{"hook_event_name":"pre_llm_call","session_id":"{session}","history":"{history}","last":"{text}"}}"#
        );
        let (id, wire, agent) = (EventId::mint(at), Wire::Shell, Agent::Hermes);
        decode(Arrival { id, at, agent, wire, raw: raw.into_bytes().into(), session_hint: None })
    }

    #[test]
    fn a_secret_is_found_however_much_was_clean_before_and_other_settings_start_anew() {
        let (mut clean, strict, lax) =
            (CleanPayloads::default(), redactor(&[]), redactor(&["github-token"]));
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let kinds = redactor(&[]).redact(token.as_bytes()).found;
        assert_eq!(kinds.first().map(|found| found.kind.as_str()), Some("github-token"));
        for text in ["one", "two", "three"] {
            assert!(clean.redact(&strict, &event("s", text)).found.is_empty());
        }
        assert_eq!(clean.redact(&strict, &event("s", &token)).found.len(), 1);
        // Clean to a redactor that does not look for it; the stricter one searches it as a whole.
        assert!(clean.redact(&lax, &event("s", &token)).found.is_empty());
        assert_eq!(clean.redact(&strict, &event("s", &token)).found.len(), 1);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut clean, redactor) = (CleanPayloads::default(), redactor(&[]));
        for number in 0..200 {
            let found = clean.redact(&redactor, &event(&format!("session-{number}"), "x")).found;
            assert!(found.is_empty());
        }
        assert_eq!(clean.kept.len(), MOST);
        assert_eq!(clean.kept.last().map(|kept| kept.session.as_str()), Some("session-199"));
    }
}
