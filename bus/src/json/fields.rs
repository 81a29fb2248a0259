//! Reading a few fields of a payload. All of it is parsed, so that it fails where a whole parse fails, but only the
//! fields that are asked for take memory and time to be kept.

use std::fmt;

use serde_core::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The fields with these names of the object in `bytes`, and of the objects among them. Texts and objects are kept; any
/// other value is null. None if `bytes` is not an object in strict JSON.
pub fn read_fields(bytes: &[u8], names: &[&str]) -> Option<Map<String, Value>> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Part::Kept(names).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    match value {
        Value::Object(fields) => Some(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// A value, and what to do with it.
#[derive(Clone, Copy)]
enum Part<'n> {
    /// Keep it, with the fields that have these names.
    Kept(&'n [&'n str]),
    /// Parse it only.
    Passed,
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(match self {
            Self::Kept(_) => Value::String(text.to_owned()),
            Self::Passed => Value::Null,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element_seed(Self::Passed)?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let names = match self {
            Self::Kept(names) => names,
            Self::Passed => &[],
        };
        let mut kept = Map::new();
        while let Some(name) = fields.next_key_seed(Name(names))? {
            match name {
                Some(name) => {
                    let value = fields.next_value_seed(Self::Kept(names))?;
                    kept.insert(name.to_owned(), value);
                }
                None => {
                    fields.next_value_seed(Self::Passed)?;
                }
            }
        }
        Ok(Value::Object(kept))
    }
}

/// The name of a field: that of the list which it is equal to.
struct Name<'n>(&'n [&'n str]);

impl<'de, 'n> DeserializeSeed<'de> for Name<'n> {
    type Value = Option<&'n str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for Name<'n> {
    type Value = Option<&'n str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().copied().find(|name| *name == text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a", "b", "extra"];

    #[test]
    fn keeps_the_texts_that_are_asked_for_also_in_objects() {
        let read = |text: &str| read_fields(text.as_bytes(), &NAMES).map(Value::Object);
        for (text, kept) in [
            (r#"{"a":"1","c":"2","extra":{"b":"3","c":[1]}}"#, r#"{"a":"1","extra":{"b":"3"}}"#),
            (r#"{"a":"1","a":"2"}"#, r#"{"a":"2"}"#),
            (r#"{"a":5,"b":["x"]}"#, r#"{"a":null,"b":null}"#),
            (r#"{"\u0061":"x"}"#, r#"{"a":"x"}"#),
            ("{}", "{}"),
        ] {
            assert_eq!(read(text).map(|it| it.to_string()).as_deref(), Some(kept), "{text}");
        }
    }

    #[test]
    fn fails_where_the_whole_parse_fails() {
        let deep = format!("{{\"c\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for text in [
            "",
            "[]",
            "\"a\"",
            "{\"c\":NaN}",
            "{\"c\":1e999}",
            "{\"c\":\"\\ud800\"}",
            "{\"a\":1} x",
            deep.as_str(),
        ] {
            assert!(!serde_json::from_str::<Value>(text).is_ok_and(|it| it.is_object()), "{text}");
            assert_eq!(read_fields(text.as_bytes(), &NAMES), None, "{text}");
        }
    }
}
