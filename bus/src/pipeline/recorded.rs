//! What is recorded of an event: its payload and its context without secrets. Hooks and the agent get the original.

use std::borrow::Cow;

use crate::event::Event;
use crate::log::RowDraft;
use crate::redact::{FoundSecret, Redacted, Redactor};

/// The part of an event that is recorded.
#[derive(Debug)]
pub(super) struct Recorded<'a> {
    redactor: Option<&'a Redactor>,
    payload: Redacted<'a>,
}

impl<'a> Recorded<'a> {
    /// What `redactor` leaves of the event; all of it without one.
    pub(super) fn new(event: &'a Event, redactor: Option<&'a Redactor>) -> Self {
        let whole = || Redacted { bytes: Cow::Borrowed(event.raw.as_slice()), found: Vec::new() };
        let payload = redactor.map_or_else(whole, |redactor| redactor.redact(&event.raw));
        Self { redactor, payload }
    }

    /// The secrets that were replaced; none if nothing looked for them.
    pub(super) fn secrets(&self) -> Option<Vec<FoundSecret>> {
        self.redactor.map(|_| self.payload.found.clone())
    }

    /// The row of the event with this context.
    pub(super) fn row(&self, event: &Event, context: &str) -> RowDraft {
        let payload = self.payload.bytes.to_vec();
        self.redact_columns(RowDraft::of_event(event, Some(context.to_owned()), payload))
    }

    /// The columns of a row without secrets. They follow from the payload, so they are redacted as that is.
    pub(super) fn redact_columns(&self, row: RowDraft) -> RowDraft {
        let Some(redactor) = self.redactor else { return row };
        let clean = |text: String| match redactor.redact_text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        };
        RowDraft {
            session: clean(row.session),
            turn: row.turn.map(clean),
            name: clean(row.name),
            tool: row.tool.map(clean),
            context: row.context.map(clean),
            ..row
        }
    }

    /// Other bytes about the same event without secrets; none if there are none in it.
    pub(super) fn redact(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let redacted = self.redactor?.redact(bytes);
        (!redacted.found.is_empty()).then(|| redacted.bytes.into_owned())
    }
}
