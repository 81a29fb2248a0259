//! The payload of an event, parsed. A long one is parsed when a hook first asks for a field: most events that carry a whole
//! conversation concern no hook.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// A parsed payload. Parsing cannot fail: an unreadable payload is a body too.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A JSON object.
    Read(Map<String, Value>),
    /// A JSON object of which only a part was kept, here or by our bridge, because it was too large or
    /// nested too deep.
    Partial {
        /// What was kept.
        fields: Map<String, Value>,
        /// The values that are not complete, as dotted paths; an empty path is the payload.
        incomplete: Vec<String>,
    },
    /// Anything else.
    Unreadable {
        /// Why it cannot be read.
        why: String,
    },
}

impl Body {
    /// The payload's fields; none if it could not be read.
    pub const fn fields(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Read(fields) | Self::Partial { fields, .. } => Some(fields),
            Self::Unreadable { .. } => None,
        }
    }
}

/// A body, or how to get it from the payload.
#[derive(Debug, Clone)]
pub struct LazyBody {
    /// The fields that were read in advance; none if all were.
    ids: Option<Map<String, Value>>,
    body: OnceLock<Body>,
    parse: fn(&[u8]) -> Body,
}

impl LazyBody {
    /// The body of a payload that is certainly a JSON object with these `ids`; `parse` reads the rest when it is first
    /// asked for.
    pub const fn of_object(ids: Map<String, Value>, parse: fn(&[u8]) -> Body) -> Self {
        Self { ids: Some(ids), body: OnceLock::new(), parse }
    }

    pub(super) const fn ids(&self) -> Option<&Map<String, Value>> {
        self.ids.as_ref()
    }

    /// The body of `raw`.
    pub(super) fn get(&self, raw: &[u8]) -> &Body {
        self.body.get_or_init(|| (self.parse)(raw))
    }

    /// The body of `raw`, to be changed.
    pub(super) fn get_mut(&mut self, raw: &[u8]) -> Option<&mut Body> {
        self.get(raw);
        self.body.get_mut()
    }

    /// Why the payload cannot be read; none if it can. Parses nothing: what is not parsed yet is an object.
    pub(super) fn why_unreadable(&self) -> Option<&str> {
        match self.body.get()? {
            Body::Unreadable { why } => Some(why),
            Body::Read(_) | Body::Partial { .. } => None,
        }
    }
}

impl From<Body> for LazyBody {
    fn from(body: Body) -> Self {
        // `parse` is never called: there is a body.
        let parse = |_: &[u8]| Body::Unreadable { why: String::new() };
        Self { ids: None, body: OnceLock::from(body), parse }
    }
}
