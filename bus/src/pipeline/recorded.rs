//! What is recorded of an event: its payload and its context without secrets, and without what `record:` leaves out. Hooks
//! and the agent get the original.

use std::borrow::Cow;
use std::sync::Arc;

use super::redact_decision;
use crate::active::{ActiveRedaction, HookSets};
use crate::dialect::{derive, mark_recorded, redact_context};
use crate::event::{Derived, DerivedFrom, Event, Payload};
use crate::log::RowDraft;
use crate::record::{Columns, RecordChoice, leave_out};
use crate::redact::{FoundSecret, KnownSecrets, Redacted, Redactor};

/// The part of an event that is recorded.
#[derive(Debug)]
pub(super) struct Recorded<'a> {
    redactor: Option<&'a Redactor>,
    payload: Payload,
    /// The secrets that were replaced in it.
    found: Vec<FoundSecret>,
    /// The same, to be looked for in other texts about the event; none if there are none.
    known: Option<KnownSecrets>,
    /// The columns that follow from the payload without its secrets; none if it held none. A text of the payload can be a secret
    /// at one place and a session or a tool at another, where it stays.
    columns: Option<Derived>,
    choice: &'a RecordChoice,
    /// What is left of the payload, if something is left out.
    left: Option<Payload>,
}

impl<'a> Recorded<'a> {
    /// What `redactor` (none: redaction is off) and the settings of `hooks` leave of the event.
    pub(super) fn new(
        event: &'a Event,
        redactor: Option<&'a Arc<Redactor>>,
        hooks: &'a HookSets,
        redaction: &ActiveRedaction,
    ) -> Self {
        let Redacted { bytes, found } = match redactor {
            Some(redactor) => redaction.redact(redactor, event),
            None => Redacted::unchanged(&event.raw),
        };
        let payload = match bytes {
            Cow::Borrowed(_) => event.raw.clone(),
            Cow::Owned(redacted) => redacted.into(),
        };
        let choice = hooks.own.file.recording.choice(event);
        let redactor = redactor.map(Arc::as_ref);
        let known = KnownSecrets::of(&found);
        let columns = known.as_ref().map(|_| columns_of(event, &payload));
        let mut recorded = Self { redactor, payload, found, known, columns, choice, left: None };
        if *choice != RecordChoice::Everything {
            // As they are in the payload now.
            let row = recorded.redact_columns(RowDraft::of_event(event, None, Vec::new()));
            let (turn, tool) = (row.turn.unwrap_or_default(), row.tool.unwrap_or_default());
            let columns = Columns { texts: [&row.session, &turn, &tool, &row.name] };
            let key = redaction.key();
            recorded.left = leave_out(&recorded.payload, choice, columns, &key).map(Payload::from);
        }
        recorded.left.as_ref().unwrap_or(&recorded.payload).digest_ahead();
        recorded
    }

    /// Whether the event gets no row if no hook answers.
    pub(super) fn is_nothing(&self) -> bool {
        *self.choice == RecordChoice::Nothing
    }

    /// The secrets that were replaced; none if nothing looked for them.
    pub(super) fn secrets(&self) -> Option<Vec<FoundSecret>> {
        self.redactor.map(|_| self.found.clone())
    }

    /// The row of the event with this context.
    pub(super) fn row(&self, event: &Event, context: &str) -> RowDraft {
        let (payload, context) = match &self.left {
            Some(left) => {
                // Of an event that is not to be recorded, but was answered, the outline is.
                let choice = match self.choice {
                    RecordChoice::Nothing => &RecordChoice::Outline,
                    choice @ (RecordChoice::Everything
                    | RecordChoice::Without(_)
                    | RecordChoice::Outline) => choice,
                };
                (left.clone(), mark_recorded(context, choice.as_str()))
            }
            None => (self.payload.clone(), context.to_owned()),
        };
        self.redact_columns(RowDraft::of_event(event, Some(context), payload))
    }

    /// The columns of a row without secrets. They follow from the payload, so they are redacted as that is.
    pub(super) fn redact_columns(&self, row: RowDraft) -> RowDraft {
        let Some(redactor) = self.redactor else { return row };
        let clean = |text: String| self.clean_text(redactor, text);
        let clean_context = |context: String| {
            let known = self.known.as_ref();
            known.and_then(|known| redact_context(&context, known)).unwrap_or(context)
        };
        let Derived { session, turn, tool, tool_classes, .. } =
            self.columns.clone().unwrap_or_default();
        RowDraft {
            session: session.known().unwrap_or_else(|| clean(row.session)),
            turn: turn.known().unwrap_or_else(|| row.turn.map(clean)),
            name: clean(row.name),
            tool: tool.known().unwrap_or_else(|| row.tool.map(clean)),
            tool_class: match tool_classes.known() {
                Some(classes) => classes.into_iter().next().flatten(),
                None => row.tool_class,
            },
            context: row.context.map(clean_context).map(clean),
            ..row
        }
    }

    /// A column or a context without secrets, also those that only the place in the payload told.
    fn clean_text(&self, redactor: &Redactor, text: String) -> String {
        let known = self.known.as_ref().and_then(|known| known.redact_text(&text)).unwrap_or(text);
        redactor.redact_text(&known).into_owned()
    }

    /// The session as it is recorded.
    pub(super) fn session(&self, event: &Event) -> String {
        self.redact_columns(RowDraft::of_event(event, None, Vec::new())).session
    }

    /// The bytes of a decision about the event without secrets; none if there are none in it.
    pub(super) fn redact_decision(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let redactor = self.redactor?;
        let known = redact_decision(bytes, redactor, &self.found, self.known.as_ref());
        let redacted = redactor.redact(known.as_deref().unwrap_or(bytes));
        match redacted.bytes {
            Cow::Owned(bytes) => Some(bytes),
            Cow::Borrowed(_) => known,
        }
    }
}

fn columns_of(event: &Event, payload: &[u8]) -> Derived {
    let agent = event.agent.as_str();
    derive(&DerivedFrom { agent, name: &event.name, context: None, payload: Some(payload) })
}
