//! Reading a few fields of a payload. What is between them is passed over: it must be JSON, but it is not checked for what
//! only a reader of its values can find (a number out of range, half of a surrogate pair, very deep nesting), all of which
//! [`read_within_budget`](super::read_within_budget) repairs.

use std::fmt;

use serde_core::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// The fields with these names of the object in `bytes`, and of the objects among them. Texts and objects are kept; any
/// other value is null. None if `bytes` is not an object in JSON.
pub fn read_fields(bytes: &[u8], names: &[&str]) -> Option<Map<String, Value>> {
    let mut reader = serde_json::Deserializer::from_str(str::from_utf8(bytes).ok()?);
    let value = Kept(names).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    match value {
        Value::Object(fields) => Some(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// A value that is kept, with the fields that have these names.
#[derive(Clone, Copy)]
struct Kept<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Kept<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kept<'_> {
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
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = fields.next_key_seed(Name(self.0))? {
            match name {
                Some(name) => {
                    let value = fields.next_value_seed(self)?;
                    kept.insert(name.to_owned(), value);
                }
                None => {
                    fields.next_value::<IgnoredAny>()?;
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
    use proptest::prelude::*;

    use super::*;
    use crate::json::read_within_budget;

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
    fn fails_where_there_is_no_object() {
        for text in [
            "",
            "[]",
            "\"a\"",
            "{\"c\":NaN}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":1} x",
            "{\"c\":\"\t\"}",
        ] {
            assert_eq!(read_fields(text.as_bytes(), &NAMES), None, "{text}");
        }
        assert_eq!(read_fields(b"{\"c\":\"\xff\"}", &NAMES), None);
    }

    /// The payload of an event is only parsed when a hook asks for a field; until then it counts as readable.
    fn is_readable_if_its_fields_are(text: &str) {
        if let Some(fields) = read_fields(text.as_bytes(), &NAMES) {
            let whole = read_within_budget(text.as_bytes()).map(|read| read.value);
            let Ok(Value::Object(whole)) = whole else { panic!("{text}") };
            for (name, value) in &fields {
                assert!(
                    value.is_null() || value.is_object() || whole.get(name) == Some(value),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn what_has_fields_can_be_read_whole() {
        let deep = format!("{{\"c\":{}{},\"a\":\"x\"}}", "[".repeat(5000), "]".repeat(5000));
        for text in [
            "{\"c\":1e999,\"a\":\"x\"}",
            "{\"c\":\"\\ud800\",\"a\":\"x\"}",
            "{\"c\":\"\\ud800\\u0041\",\"\\ud800\":1}",
            "{\"c\":-0.0e-999,\"a\":\"x\"}",
            deep.as_str(),
        ] {
            is_readable_if_its_fields_are(text);
        }
        assert!(read_fields(deep.as_bytes(), &NAMES).is_some());
    }

    proptest! {
        #[test]
        fn any_text_that_has_fields_can_be_read_whole(
            parts in proptest::collection::vec(
                "\"a\":|\"b\":|\"extra\":|\"\\\\ud8[0-9]0\":|[{}\\[\\],:]|\"[a-z\\\\\"u0-9]{0,6}\"|-?[0-9]{1,3}(e[0-9]{3})?|null|tru", 0..14),
        ) {
            is_readable_if_its_fields_are(&format!("{{{}}}", parts.join("")));
            is_readable_if_its_fields_are(&format!("{{\"a\":\"x\",\"c\":{}}}", parts.join("")));
        }
    }
}
