//! Rows that are larger than SQLite takes: only the beginning of their payload is stored, with a mark in
//! `context` that says so. The alternative would be an event that is in no log at all.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::row::RowDraft;

/// SQLite takes rows of up to 1,000,000,000 bytes. A payload above this size is cut before it is appended.
const MAX_PAYLOAD: usize = 900_000_000;

/// How much of a payload is kept that is cut for its size.
const KEPT: usize = 64 << 20;

/// How much is kept if SQLite refused the row, for its size or for lack of memory.
const KEPT_IF_REFUSED: usize = 1 << 20;

/// How much of any other text of the row is kept then.
const KEPT_TEXT: usize = 4 << 10;

impl RowDraft {
    /// The row, cut if it is larger than SQLite takes.
    #[must_use]
    pub(super) fn fit(mut self) -> Self {
        if self.payload.len() > MAX_PAYLOAD {
            self.context = Some(marked(self.context.as_deref(), &self.payload));
            self.payload = self.payload[..boundary(&self.payload, KEPT)].to_vec().into();
        }
        self
    }

    /// The beginning of a row that SQLite refused; none if nothing can be left out.
    pub(super) fn cut(&self) -> Option<Self> {
        let texts = [Some(&self.session), self.turn.as_ref(), Some(&self.name), self.tool.as_ref()];
        let is_long = texts.into_iter().flatten().any(|text| text.len() > KEPT_TEXT);
        if self.payload.len() <= KEPT_IF_REFUSED && !is_long {
            return None;
        }
        let text = |text: &String| text[..boundary(text.as_bytes(), KEPT_TEXT)].to_owned();
        Some(Self {
            id: self.id,
            at: self.at,
            agent: self.agent.clone(),
            session: text(&self.session),
            turn: self.turn.as_ref().map(text),
            name: text(&self.name),
            kind: self.kind,
            tool: self.tool.as_ref().map(text),
            tool_class: self.tool_class.clone(),
            context: Some(marked(self.context.as_deref(), &self.payload)),
            payload: self.payload[..boundary(&self.payload, KEPT_IF_REFUSED)].to_vec().into(),
        })
    }
}

/// The context with the mark `cut`: the size of the whole payload, and its SHA-256, to recognise it by. The
/// mark of an earlier cut stays.
fn marked(context: Option<&str>, payload: &[u8]) -> String {
    let mut fields = match context.and_then(|text| serde_json::from_str(text).ok()) {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => Map::new(),
    };
    let mark = || json!({"bytes": payload.len(), "sha256": hex::encode(Sha256::digest(payload))});
    fields.entry("cut").or_insert_with(mark);
    Value::Object(fields).to_string()
}

/// The largest position up to `most` that does not split a character, so that text stays text.
fn boundary(bytes: &[u8], most: usize) -> usize {
    if bytes.len() <= most {
        return bytes.len();
    }
    let is_continuation = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    // A character has at most four bytes; other bytes are not text and are cut anywhere.
    (most.saturating_sub(3)..=most).rev().find(|at| !is_continuation(*at)).unwrap_or(most)
}
