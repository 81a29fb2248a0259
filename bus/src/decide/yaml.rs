//! YAML as a tree that knows its lines, so that every complaint can name one.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};

use super::Problem;

/// A value in a YAML file, and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Pair>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: Node,
}

/// The first document in `text`; none in an empty file.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Problem> {
    let documents = MarkedYaml::load_from_str(text).map_err(|error| {
        let shown = error.to_string();
        Problem::broken_file(line_in(&shown), format!("this is not YAML: {shown}"))
    })?;
    Ok(documents.first().map(convert))
}

/// The reader's errors carry their place only as text: `… at char 7 line 2 column 3`.
fn line_in(error: &str) -> usize {
    let digits = error.split("line ").nth(1).unwrap_or_default();
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(1)
}

fn convert(node: &MarkedYaml<'_>) -> Node {
    let data = match &node.data {
        YamlData::Value(scalar) => Data::Scalar(scalar_value(scalar)),
        YamlData::Representation(text, ..) => Data::Scalar(Value::String(text.to_string())),
        YamlData::Sequence(items) => Data::List(items.iter().map(convert).collect()),
        YamlData::Mapping(pairs) => Data::Map(
            pairs
                .iter()
                .map(|(key, value)| {
                    let key = convert(key);
                    Pair { key: key.display(), line: key.line, value: convert(value) }
                })
                .collect(),
        ),
        YamlData::Tagged(_, inner) => convert(inner).data,
        YamlData::Alias(_) | YamlData::BadValue => Data::Scalar(Value::Null),
    };
    Node { line: node.span.start.line(), data }
}

fn scalar_value(scalar: &Scalar<'_>) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => Value::Bool(*value),
        Scalar::Integer(value) => Value::from(*value),
        Scalar::FloatingPoint(value) => Value::from(value.into_inner()),
        Scalar::String(text) => Value::String(text.to_string()),
    }
}

impl Node {
    /// The text of a scalar that is text; numbers count as what was written.
    pub(super) fn text(&self) -> Option<String> {
        match &self.data {
            Data::Scalar(Value::String(text)) => Some(text.clone()),
            Data::Scalar(Value::Number(number)) => Some(number.to_string()),
            Data::Scalar(_) | Data::List(_) | Data::Map(_) => None,
        }
    }

    /// A switch; the older `yes` and `on` count too, as Hermes reads them.
    pub(super) fn flag(&self) -> Option<bool> {
        match &self.data {
            Data::Scalar(Value::Bool(value)) => Some(*value),
            Data::Scalar(Value::String(text)) => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" => Some(true),
                "no" | "off" => Some(false),
                _ => None,
            },
            Data::Scalar(_) | Data::List(_) | Data::Map(_) => None,
        }
    }

    /// A number.
    pub(super) fn number(&self) -> Option<f64> {
        match &self.data {
            Data::Scalar(value) => value.as_f64(),
            Data::List(_) | Data::Map(_) => None,
        }
    }

    /// One text or a list of them.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        match &self.data {
            Data::List(items) => items.iter().map(Self::text).collect(),
            Data::Scalar(_) | Data::Map(_) => Some(vec![self.text()?]),
        }
    }

    /// The entries of a mapping.
    pub(super) fn pairs(&self) -> Option<&[Pair]> {
        match &self.data {
            Data::Map(pairs) => Some(pairs),
            Data::Scalar(_) | Data::List(_) => None,
        }
    }

    /// Whether nothing was written.
    pub(super) fn is_null(&self) -> bool {
        self.data == Data::Scalar(Value::Null)
    }

    /// As JSON, without the lines.
    pub(super) fn to_json(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Map(pairs) => Value::Object(
                pairs
                    .iter()
                    .map(|pair| (pair.key.clone(), pair.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    fn display(&self) -> String {
        self.text().unwrap_or_else(|| self.to_json().to_string())
    }
}
