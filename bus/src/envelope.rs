//! A row of the log as it travels: a CloudEvents 1.0 envelope in JSON, the same over NATS, in an
//! exported file and to a webhook. What is read back is the row, byte for byte: a payload that is
//! JSON stands in `data` as it arrived, anything else is base64.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use serde_json::value::RawValue;

use crate::event::{BusId, Seq};

use crate::event::Time;
use crate::log::Row;

/// What the source of our envelopes starts with; the id of the bus follows.
const SOURCE: &str = "urn:hookbus:";

/// What their type starts with; the kind follows.
const TYPE: &str = "hookbus.";

/// A row that came from elsewhere, at the place it has in its own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Travelled {
    /// Whose row it is.
    pub bus: BusId,
    /// The row.
    pub row: Row,
    /// Where its payload is kept, if it was too large to travel along.
    pub stored: Option<String>,
}

/// Why something is not a row of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an envelope of hookbus: {0}")]
pub struct NotOurs(String);

/// Writes the envelope of a row of `bus`. `stored` names the place that holds a payload too large
/// to travel along.
pub fn write(bus: BusId, row: &Row, stored: Option<&str>) -> Vec<u8> {
    compose(bus, row, stored.map_or(Carried::AsItIs, Carried::Elsewhere))
}

/// Writes the envelope on one line, for a file with one a line: a payload of several lines is base64.
pub fn line(bus: BusId, row: &Row) -> Vec<u8> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let one = !row.payload.trim_ascii().iter().any(is_end);
    let mut line = compose(bus, row, if one { Carried::AsItIs } else { Carried::Encoded });
    line.push(b'\n');
    line
}

/// How a payload travels.
#[derive(Debug, Clone, Copy)]
enum Carried<'a> {
    /// As JSON where it is JSON.
    AsItIs,
    /// In base64.
    Encoded,
    /// Not: it is kept here.
    Elsewhere(&'a str),
}

fn compose(bus: BusId, row: &Row, carried: Carried<'_>) -> Vec<u8> {
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
    envelope.payload(&row.payload, carried);
    envelope.0.push('}');
    envelope.0.into_bytes()
}

/// A JSON object under construction: serialising a payload anew would change it.
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

    fn payload(&mut self, payload: &[u8], carried: Carried<'_>) {
        let json = || {
            let text = std::str::from_utf8(payload).ok()?;
            Some((text, serde_json::from_str::<&RawValue>(text).ok()?.get()))
        };
        let json = match carried {
            Carried::AsItIs => json(),
            Carried::Encoded => None,
            Carried::Elsewhere(place) => {
                self.text("datacontenttype", "application/json");
                return self.text("dataref", place);
            }
        };
        let Some((whole, value)) = json else {
            self.text("datacontenttype", "application/octet-stream");
            return self.text("data_base64", &STANDARD.encode(payload));
        };
        self.text("datacontenttype", "application/json");
        // The space around a value is part of the payload, and of its hash.
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

/// Reads an envelope back.
pub fn read(envelope: &[u8]) -> Result<Travelled, NotOurs> {
    let fields: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_slice(envelope).map_err(|error| NotOurs(error.to_string()))?;
    let fields = Fields(fields);
    let row = Row {
        seq: Seq::from_i64(fields.number("seq")?.ok_or_else(|| missing("seq"))?),
        id: fields.needed("id")?.parse().map_err(|_| odd("id"))?,
        at: DateTime::parse_from_rfc3339(&fields.needed("time")?)
            .map(|at| Time::from(at.to_utc()))
            .map_err(|_| odd("time"))?,
        agent: fields.needed("agent")?,
        session: fields.needed("subject")?,
        turn: fields.text("turn")?,
        name: fields.needed("eventname")?,
        kind: fields.needed("type")?.strip_prefix(TYPE).ok_or_else(|| odd("type"))?.to_owned(),
        tool: fields.text("tool")?,
        tool_class: fields.text("toolclass")?,
        cause: fields.number("cause")?.map(Seq::from_i64),
        context: fields.text("context")?,
        payload: fields.payload()?,
        hash: hex::decode(fields.needed("hash")?)
            .ok()
            .and_then(|hash| hash.try_into().ok())
            .ok_or_else(|| odd("hash"))?,
        origin: None,
    };
    let source = fields.needed("source")?;
    let bus = source.strip_prefix(SOURCE).and_then(|bus| bus.parse().ok());
    Ok(Travelled { bus: bus.ok_or_else(|| odd("source"))?, row, stored: fields.text("dataref")? })
}

struct Fields<'a>(HashMap<Cow<'a, str>, &'a RawValue>);

impl Fields<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, NotOurs> {
        let value = self.0.get(key).map(|value| serde_json::from_str::<String>(value.get()));
        value.transpose().map_err(|_| odd(key))
    }

    fn needed(&self, key: &str) -> Result<String, NotOurs> {
        self.text(key)?.ok_or_else(|| missing(key))
    }

    fn number(&self, key: &str) -> Result<Option<i64>, NotOurs> {
        let value = self.0.get(key).map(|value| value.get().parse());
        value.transpose().map_err(|_| odd(key))
    }

    fn payload(&self) -> Result<Vec<u8>, NotOurs> {
        if let Some(data) = self.0.get("data") {
            let space = |key| Ok(self.text(key)?.unwrap_or_default());
            return Ok([&space("databefore")?, data.get(), &space("dataafter")?]
                .concat()
                .into_bytes());
        }
        match self.text("data_base64")? {
            Some(data) => STANDARD.decode(data).map_err(|_| odd("data_base64")),
            None => Ok(Vec::new()),
        }
    }
}

fn missing(key: &str) -> NotOurs {
    NotOurs(format!("it has no `{key}`"))
}

fn odd(key: &str) -> NotOurs {
    NotOurs(format!("its `{key}` is not as ours are"))
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
            hash: [9; 32],
            origin: None,
        }
    }

    fn bus() -> BusId {
        BusId::mint(Time::from_micros(1))
    }

    proptest! {
        #[test]
        fn any_row_comes_back_as_it_was(
            payload in any::<Vec<u8>>(), session in any::<String>(), context in any::<Option<String>>()
        ) {
            let (bus, row) = (bus(), row(payload, session, context));
            let envelope = write(bus, &row, None);
            prop_assert!(serde_json::from_slice::<Value>(&envelope).is_ok());
            let line = line(bus, &row);
            prop_assert_eq!(line.split(|byte| *byte == b'\n').count(), 2);
            prop_assert_eq!(read(&line).map(|read| read.row), Ok(row.clone()));
            prop_assert_eq!(read(&envelope), Ok(Travelled { bus, row, stored: None }));
        }

        #[test]
        fn nothing_makes_the_reader_stumble(bytes in any::<Vec<u8>>()) {
            drop(read(&bytes));
        }
    }

    #[test]
    fn a_payload_stays_as_it_was_written() {
        for payload in
            ["{\"a\": 1.0}\n", "{\n}", " [1]", "1", "NaN", "", "\"\"", "{\"a\":\"\\u00e9\"}"]
        {
            let row = row(payload.into(), "s".to_owned(), None);
            for envelope in [write(bus(), &row, None), line(bus(), &row)] {
                assert_eq!(read(&envelope).expect("ours").row.payload, payload.as_bytes());
            }
        }
    }

    #[test]
    fn a_large_payload_is_referred_to() {
        let row = row(b"{}".to_vec(), "s".to_owned(), None);
        let read = read(&write(bus(), &row, Some("BUCKET/1"))).expect("ours");
        assert_eq!((read.row.payload, read.stored.as_deref()), (Vec::new(), Some("BUCKET/1")));
    }
}
