//! What is recorded of an event: its payload and its context without secrets, and without what `record:` leaves out. Hooks
//! and the agent get the original.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::active::{ActiveRedaction, HookSets};
use crate::dialect::mark_recorded;
use crate::event::{Event, Payload};
use crate::log::RowDraft;
use crate::record::{Columns, RecordChoice, leave_out};
use crate::redact::{FingerprintKey, FoundSecret, Mark, Redacted, Redactor};

/// The part of an event that is recorded.
#[derive(Debug)]
pub(super) struct Recorded<'a> {
    redactor: Option<&'a Redactor>,
    payload: Payload,
    /// The secrets that were replaced in it.
    found: Vec<FoundSecret>,
    /// What tells whether a text is one of the secrets of the payload; none if it holds none.
    key: Option<FingerprintKey>,
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
        let key = (!found.is_empty()).then(|| redaction.key());
        let mut recorded = Self { redactor, payload, found, key, choice, left: None };
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
        let clean = |text: String| match redactor.redact_text(&text) {
            Cow::Borrowed(_) => self.mark_of(&text).unwrap_or(text),
            Cow::Owned(redacted) => redacted,
        };
        RowDraft {
            session: clean(row.session),
            turn: row.turn.map(clean),
            name: clean(row.name),
            tool: row.tool.map(clean),
            context: row.context.map(clean).map(|context| self.clean_context(context)),
            ..row
        }
    }

    /// The mark of a text that the payload held as a secret: a path or a key of the user's settings says so, and the text
    /// itself does not.
    fn mark_of(&self, text: &str) -> Option<String> {
        let fingerprint = self.key.as_ref()?.fingerprint(text.as_bytes());
        let found = self.found.iter().find(|found| found.fingerprint == fingerprint)?;
        let FoundSecret { kind, chars, fingerprint, .. } = found.clone();
        Some(Mark { kind, chars, fingerprint }.to_string())
    }

    /// A context without the texts that the payload held as secrets.
    fn clean_context(&self, context: String) -> String {
        if self.key.is_none() {
            return context;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&context) else { return context };
        if self.clean_strings(&mut value) { value.to_string() } else { context }
    }

    /// Whether a string of the value was replaced.
    fn clean_strings(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.mark_of(text) {
                Some(mark) => {
                    *text = mark;
                    true
                }
                None => false,
            },
            // Each of them, also behind one that was replaced.
            Value::Array(items) => {
                items.iter_mut().filter_map(|it| self.clean_strings(it).then_some(())).count() > 0
            }
            Value::Object(members) => {
                members.values_mut().filter_map(|it| self.clean_strings(it).then_some(())).count()
                    > 0
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Other bytes about the same event without secrets; none if there are none in it.
    pub(super) fn redact(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let redacted = self.redactor?.redact(bytes);
        (!redacted.found.is_empty()).then(|| redacted.bytes.into_owned())
    }
}
