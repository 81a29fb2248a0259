//! A row of the log outside of it: a CloudEvents 1.0 envelope in JSON, the same over NATS, in an exported
//! file and to a webhook. Reading an envelope gives the same row, byte for byte: a payload that is JSON is
//! copied unchanged into `data`, any other payload is base64.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use serde_json::value::RawValue;

use crate::event::{BusId, BusIdentity, Seq, payload_digest};

use crate::event::Time;
use crate::log::{Received, Redaction, Row, StoredPayload};

/// The prefix of `source`; the id of the bus follows.
const SOURCE: &str = "urn:hookbus:";

/// The prefix of `type`; the kind follows.
const TYPE: &str = "hookbus.";

/// Why bytes are not an envelope of hookbus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a hookbus envelope: {0}")]
pub struct EnvelopeError(String);

/// Writes the envelope of a row of `bus`. `stored` says where the payload is, if it is too large for the
/// envelope.
pub fn write(bus: BusId, row: &Row, stored: Option<&StoredPayload>) -> Vec<u8> {
    compose(bus, row, stored.map_or(PayloadForm::Unchanged, PayloadForm::StoredAt))
}

/// Writes the envelope as one line of a JSON Lines file: a payload of several lines is base64.
pub fn line(bus: BusId, row: &Row) -> Vec<u8> {
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let is_one_line = !row.payload.trim_ascii().iter().any(is_line_end);
    let form = if is_one_line { PayloadForm::Unchanged } else { PayloadForm::Base64 };
    let mut line = compose(bus, row, form);
    line.push(b'\n');
    line
}

/// How the envelope holds the payload.
#[derive(Debug, Clone, Copy)]
enum PayloadForm<'a> {
    /// As JSON, byte for byte; in base64 if it is not JSON.
    Unchanged,
    /// In base64.
    Base64,
    /// Not at all: this object holds it.
    StoredAt(&'a StoredPayload),
}

fn compose(bus: BusId, row: &Row, form: PayloadForm<'_>) -> Vec<u8> {
    let (bus, seq, cause) = match &row.origin {
        Some(origin) => (origin.bus, origin.seq, origin.cause),
        None => (bus, row.seq, row.cause),
    };
    let mut envelope = Attributes(String::with_capacity(row.payload.len() + 700));
    envelope.text("specversion", "1.0");
    envelope.text("id", &row.id.to_string());
    envelope.text("source", &format!("{SOURCE}{bus}"));
    envelope.text("type", &format!("{TYPE}{}", row.kind));
    envelope.text("subject", &row.session);
    envelope.text("time", &row.at.to_string());
    // Extensions: the rest of the row.
    envelope.number("seq", seq);
    envelope.text("agent", &row.agent);
    envelope.text("eventname", &row.name);
    envelope.text("hash", &hex::encode(row.hash));
    for (key, value) in [
        ("turn", &row.turn),
        ("tool", &row.tool),
        ("toolclass", &row.tool_class),
        ("context", &row.context),
    ] {
        if let Some(value) = value {
            envelope.text(key, value);
        }
    }
    if let Some(cause) = cause {
        envelope.number("cause", cause);
    }
    if let Some(BusIdentity { host, user, home, name }) = row.identity.as_deref() {
        for (key, value) in [("host", host), ("user", user), ("home", home), ("busname", name)] {
            envelope.text(key, value);
        }
    }
    match &row.removed {
        // Without `data`: an empty payload would be another one.
        Some(digest) => {
            envelope.text("datahash", &hex::encode(digest));
            envelope.key("dataremoved");
            envelope.0.push_str("true");
        }
        None => {
            let is_redacted = row.redaction.is_some_and(|it| it.original.is_some());
            envelope.payload(&row.payload, form, is_redacted);
        }
    }
    if let Some(Redaction { original, now, of_columns }) = &row.redaction {
        if let (Some(original), None) = (original, &row.removed) {
            envelope.text("datahash", &hex::encode(original));
            envelope.text("dataredacted", &hex::encode(now));
        }
        if *of_columns {
            envelope.key("contextredacted");
            envelope.0.push_str("true");
        }
    }
    envelope.0.push('}');
    envelope.0.into_bytes()
}

/// A JSON object under construction. Written by hand, because serialising a payload would change its
/// bytes.
struct Attributes(String);

impl Attributes {
    fn key(&mut self, key: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        if value.bytes().all(plain) {
            self.0.push('"');
            self.0.push_str(value);
            self.0.push('"');
        } else {
            self.0.push_str(&serde_json::Value::from(value).to_string());
        }
    }

    fn number(&mut self, key: &str, value: Seq) {
        self.key(key);
        // Writing to a string cannot fail.
        write!(self.0, "{value}").unwrap_or_default();
    }

    /// The digest of a redacted payload is written elsewhere.
    fn payload(&mut self, payload: &[u8], form: PayloadForm<'_>, is_redacted: bool) {
        let json = || {
            let text = std::str::from_utf8(payload).ok()?;
            Some((text, serde_json::from_str::<&RawValue>(text).ok()?.get()))
        };
        let json = match form {
            PayloadForm::Unchanged => json(),
            PayloadForm::Base64 => None,
            PayloadForm::StoredAt(stored) => {
                self.text("datacontenttype", "application/json");
                if let Some(digest) = stored.digest.filter(|_| !is_redacted) {
                    self.text("datahash", &hex::encode(digest));
                }
                return self.text("dataref", &stored.object);
            }
        };
        let Some((whole, value)) = json else {
            self.text("datacontenttype", "application/octet-stream");
            return self.text("data_base64", &STANDARD.encode(payload));
        };
        self.text("datacontenttype", "application/json");
        // White space around the value is part of the payload, and of its hash.
        if let Some((before, after)) = whole.split_once(value)
            && whole.len() > value.len()
        {
            self.text("databefore", before);
            self.text("dataafter", after);
        }
        self.key("data");
        self.0.push_str(value);
    }
}

/// Reads an envelope.
pub fn read(envelope: &[u8]) -> Result<Received, EnvelopeError> {
    let fields: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_slice(envelope).map_err(|error| EnvelopeError(error.to_string()))?;
    let fields = Fields(fields);
    let digest = fields.hash("datahash")?;
    let is_true = |key: &str| fields.0.get(key).is_some_and(|value| value.get() == "true");
    let is_removed = is_true("dataremoved");
    let removed = digest.filter(|_| is_removed);
    let redacted = fields.hash("dataredacted")?.filter(|_| !is_removed);
    if (is_removed || redacted.is_some()) && digest.is_none() {
        return Err(missing("datahash"));
    }
    let payload = if is_removed { Vec::new() } else { fields.payload()? };
    let object = fields.text("dataref")?;
    if redacted.is_some_and(|now| object.is_none() && now != payload_digest(&payload)) {
        return Err(invalid("dataredacted"));
    }
    let redaction = match (redacted, is_true("contextredacted")) {
        (None, false) => None,
        (Some(now), of_columns) => Some(Redaction { original: digest, now, of_columns }),
        (None, true) => {
            let now = digest.unwrap_or_else(|| payload_digest(&payload));
            Some(Redaction { original: removed, now, of_columns: true })
        }
    };
    let row = Row {
        seq: Seq::from_i64(fields.number("seq")?.ok_or_else(|| missing("seq"))?),
        id: fields.required("id")?.parse().map_err(|_| invalid("id"))?,
        at: DateTime::parse_from_rfc3339(&fields.required("time")?)
            .map(|at| Time::from(at.to_utc()))
            .map_err(|_| invalid("time"))?,
        agent: fields.required("agent")?,
        session: fields.required("subject")?,
        turn: fields.text("turn")?,
        name: fields.required("eventname")?,
        kind: fields
            .required("type")?
            .strip_prefix(TYPE)
            .ok_or_else(|| invalid("type"))?
            .to_owned(),
        tool: fields.text("tool")?,
        tool_class: fields.text("toolclass")?,
        cause: fields.number("cause")?.map(Seq::from_i64),
        context: fields.text("context")?,
        payload,
        removed,
        redaction,
        hash: fields.hash("hash")?.ok_or_else(|| missing("hash"))?,
        origin: None,
        identity: None,
    };
    let row = Row { identity: fields.identity(&row)?, ..row };
    let source = fields.required("source")?;
    let bus = source.strip_prefix(SOURCE).and_then(|bus| bus.parse().ok());
    Ok(Received {
        bus: bus.ok_or_else(|| invalid("source"))?,
        row,
        stored: object.map(|object| StoredPayload { object, digest: redacted.or(digest) }),
    })
}

struct Fields<'a>(HashMap<Cow<'a, str>, &'a RawValue>);

impl Fields<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, EnvelopeError> {
        let value = self.0.get(key).map(|value| serde_json::from_str::<String>(value.get()));
        value.transpose().map_err(|_| invalid(key))
    }

    fn required(&self, key: &str) -> Result<String, EnvelopeError> {
        self.text(key)?.ok_or_else(|| missing(key))
    }

    fn number(&self, key: &str) -> Result<Option<i64>, EnvelopeError> {
        let value = self.0.get(key).map(|value| value.get().parse());
        value.transpose().map_err(|_| invalid(key))
    }

    fn hash(&self, key: &str) -> Result<Option<[u8; 32]>, EnvelopeError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let hash = hex::decode(text).ok().and_then(|hash| hash.try_into().ok());
        hash.map(Some).ok_or_else(|| invalid(key))
    }

    /// Who recorded the row. What the row does not refer to, and so its hash does not cover, does not count.
    fn identity(&self, row: &Row) -> Result<Option<Arc<BusIdentity>>, EnvelopeError> {
        let (Some(host), Some(user), Some(home), Some(name)) =
            (self.text("host")?, self.text("user")?, self.text("home")?, self.text("busname")?)
        else {
            return Ok(None);
        };
        let claimed = BusIdentity::new(&host, &user, &home, Some(&name));
        Ok((row.identity_key() == Some(claimed.key())).then(|| Arc::new(claimed)))
    }

    fn payload(&self) -> Result<Vec<u8>, EnvelopeError> {
        if let Some(data) = self.0.get("data") {
            let space = |key| Ok(self.text(key)?.unwrap_or_default());
            return Ok([&space("databefore")?, data.get(), &space("dataafter")?]
                .concat()
                .into_bytes());
        }
        match self.text("data_base64")? {
            Some(data) => STANDARD.decode(data).map_err(|_| invalid("data_base64")),
            None => Ok(Vec::new()),
        }
    }
}

fn missing(key: &str) -> EnvelopeError {
    EnvelopeError(format!("it has no `{key}`"))
}

fn invalid(key: &str) -> EnvelopeError {
    EnvelopeError(format!("its `{key}` is invalid"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::event::EventId;

    fn row(payload: Vec<u8>, session: String, context: Option<String>) -> Row {
        let at = Time::from_micros(1_700_000_000_123_456);
        Row {
            seq: Seq::from_i64(7),
            id: EventId::mint(at),
            at,
            agent: "hermes".to_owned(),
            session,
            turn: Some("t\"1".to_owned()),
            name: "pre_tool_call".to_owned(),
            kind: "tool.before".to_owned(),
            tool: Some("terminal".to_owned()),
            tool_class: None,
            cause: Some(Seq::from_i64(6)),
            context,
            payload,
            removed: None,
            redaction: None,
            hash: [9; 32],
            origin: None,
            identity: None,
        }
    }

    fn bus() -> BusId {
        BusId::mint(Time::from_micros(1))
    }

    proptest! {
        #[test]
        fn any_row_is_read_as_it_was_written(
            payload in any::<Vec<u8>>(), session in any::<String>(), context in any::<Option<String>>()
        ) {
            let (bus, row) = (bus(), row(payload, session, context));
            let envelope = write(bus, &row, None);
            prop_assert!(serde_json::from_slice::<Value>(&envelope).is_ok());
            let line = line(bus, &row);
            prop_assert_eq!(line.split(|byte| *byte == b'\n').count(), 2);
            prop_assert_eq!(read(&line).map(|read| read.row), Ok(row.clone()));
            prop_assert_eq!(read(&envelope), Ok(Received { bus, row, stored: None }));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in any::<Vec<u8>>()) {
            drop(read(&bytes));
        }
    }

    #[test]
    fn a_payload_keeps_its_bytes() {
        for payload in
            ["{\"a\": 1.0}\n", "{\n}", " [1]", "1", "NaN", "", "\"\"", "{\"a\":\"\\u00e9\"}"]
        {
            let row = row(payload.into(), "s".to_owned(), None);
            for envelope in [write(bus(), &row, None), line(bus(), &row)] {
                assert_eq!(read(&envelope).expect("an envelope").row.payload, payload.as_bytes());
            }
        }
    }

    #[test]
    fn an_envelope_says_that_a_payload_was_removed() {
        let digest = payload_digest(b"gone");
        let row = Row { removed: Some(digest), ..row(Vec::new(), "s".to_owned(), None) };
        for envelope in [write(bus(), &row, None), line(bus(), &row)] {
            let json: Value = serde_json::from_slice(&envelope).expect("JSON");
            assert_eq!((&json["data"], &json["dataremoved"]), (&Value::Null, &Value::Bool(true)));
            let read = read(&envelope).expect("an envelope");
            assert_eq!((&read.row, read.payload_digest()), (&row, Some(digest)));
        }
        let without_digest = br#"{"dataremoved":true}"#;
        assert!(read(without_digest).is_err());
    }

    #[test]
    fn who_recorded_a_row_counts_only_if_the_row_refers_to_it() {
        let identity = Arc::new(BusIdentity::new("laptop", "anna", "/h", Some("build \"2\"")));
        let context = format!(r#"{{"cwd":"/x","by":"{}"}}"#, identity.key());
        let row = Row {
            identity: Some(Arc::clone(&identity)),
            ..row(b"{}".to_vec(), "s".to_owned(), Some(context))
        };
        let envelope = write(bus(), &row, None);
        assert_eq!(read(&envelope).expect("an envelope").row, row);
        let mut forged: Value = serde_json::from_slice(&envelope).expect("JSON");
        assert_eq!((&forged["host"], &forged["user"]), (&"laptop".into(), &"anna".into()));
        forged["user"] = "root".into();
        let read = read(forged.to_string().as_bytes()).expect("an envelope");
        assert_eq!(read.row.identity, None);
    }

    #[test]
    fn a_large_payload_is_a_reference() {
        let row = row(b"{}".to_vec(), "s".to_owned(), None);
        let stored = StoredPayload::new("BUCKET", row.id, &row.payload);
        let read = read(&write(bus(), &row, Some(&stored))).expect("an envelope");
        assert_eq!((&read.row.payload, &read.stored), (&Vec::new(), &Some(stored)));
        assert_eq!(read.payload_digest(), Some(payload_digest(b"{}")));
    }
}
