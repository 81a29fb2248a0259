//! A row of the log as a message: a CloudEvents 1.0 envelope in JSON. The payload is in it as it
//! arrived: JSON stands there byte for byte, anything else is base64.

use async_nats::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::event::{BusId, EventId, subject};
use crate::log::Row;

/// The header with the place in the log, which tells a relay where to go on.
pub(super) const SEQ: &str = "Hookbus-Seq";

/// The header with the head of the chain at this row.
pub(super) const HASH: &str = "Hookbus-Hash";

/// A message on its way.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) id: EventId,
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// What a row is published as. `stored` names the object that holds a payload too large for a
/// message.
pub(super) fn message(bus: BusId, row: &Row, stored: Option<&str>) -> Message {
    let mut headers = HeaderMap::new();
    headers.insert(SEQ, row.seq.to_string().as_str());
    headers.insert(HASH, hex::encode(row.hash).as_str());
    headers.insert("Content-Type", "application/cloudevents+json");
    let subject = subject(bus, &row.agent, &row.session, &row.name);
    Message { id: row.id, subject, headers, body: body(bus, row, stored) }
}

fn body(bus: BusId, row: &Row, stored: Option<&str>) -> Vec<u8> {
    let context: Option<Value> =
        row.context.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let mut attributes = json!({
        "specversion": "1.0",
        "id": row.id.to_string(),
        "source": format!("urn:hookbus:{bus}"),
        "type": format!("hookbus.{}", row.kind),
        "subject": row.session,
        "time": row.at.to_string(),
        "datacontenttype": "application/json",
        // Extensions: the rest of the row.
        "seq": row.seq.as_i64(),
        "agent": row.agent,
        "eventname": row.name,
        "hash": hex::encode(row.hash),
    });
    for (key, value) in [("turn", &row.turn), ("tool", &row.tool), ("toolclass", &row.tool_class)] {
        if let Some(value) = value {
            attributes[key] = json!(value);
        }
    }
    if let Some(cause) = row.cause {
        attributes["cause"] = json!(cause.as_i64());
    }
    if let Some(context) = context {
        attributes["context"] = json!(context.to_string());
    }
    let data = match stored {
        Some(object) => {
            attributes["dataref"] = json!(object);
            return attributes.to_string().into_bytes();
        }
        None => std::str::from_utf8(&row.payload)
            .ok()
            .and_then(|text| serde_json::from_str::<&RawValue>(text).ok().map(|_| text)),
    };
    let Some(data) = data else {
        attributes["datacontenttype"] = json!("application/octet-stream");
        attributes["data_base64"] = json!(STANDARD.encode(&row.payload));
        return attributes.to_string().into_bytes();
    };
    // Put in as text: serialising it anew would change it.
    let mut body = attributes.to_string();
    body.truncate(body.len() - 1);
    body.push_str(",\"data\":");
    body.push_str(data);
    body.push('}');
    body.into_bytes()
}
