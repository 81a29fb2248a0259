//! YAML as a tree of nodes with line numbers, so that every problem can name its line. Duplicate keys and very
//! deep nesting are refused.

use std::collections::HashSet;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};

use super::problem::Problem;

/// A value in a YAML file, and the line it starts at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
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

/// The document in `text`; none if the file is empty.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Problem> {
    if let Some(line) = too_deep(text) {
        let why = "this is nested deeper than any hook needs; write it flatter";
        return Err(Problem::broken_file(line, why));
    }
    let documents = MarkedYaml::load_from_str(text).map_err(|error| {
        let message = error.to_string();
        Problem::broken_file(line_in(&message), format!("this is not YAML: {message}"))
    })?;
    if let [_, second, ..] = documents.as_slice() {
        let line = second.span.start.line();
        return Err(Problem::broken_file(line, "the file is one document; remove the `---`"));
    }
    let document = documents.first().map(convert);
    match document.as_ref().and_then(duplicate_key) {
        Some(pair) => {
            let why = format!("`{}` is here twice; remove one", pair.key);
            Err(Problem::broken_file(pair.line, why))
        }
        None => Ok(document),
    }
}

/// A key that a mapping has twice. Some YAML readers use the first value and some the last, so the file could
/// mean two things. The parser finds only exact duplicates; to other readers `!x key` and `key` are the same.
fn duplicate_key(node: &Node) -> Option<&Pair> {
    match &node.data {
        Data::Scalar(_) => None,
        Data::List(items) => items.iter().find_map(duplicate_key),
        Data::Map(pairs) => {
            let mut seen = HashSet::new();
            let second = pairs.iter().find(|pair| !seen.insert(&pair.key));
            second.or_else(|| pairs.iter().find_map(|pair| duplicate_key(&pair.value)))
        }
    }
}

/// The line where the nesting gets too deep. Trees are walked and dropped recursively, so a very deep one would
/// overflow the stack and end the agent's hook.
fn too_deep(text: &str) -> Option<usize> {
    let (mut indents, mut brackets) = (Vec::new(), 0_usize);
    for (number, line) in text.lines().enumerate() {
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        if body.is_empty() || body.starts_with('#') {
            continue;
        }
        indents.retain(|outer| *outer < indent);
        indents.push(indent);
        let dashes = body.split(' ').take_while(|word| matches!(*word, "-" | "?")).count();
        let (mut quote, mut is_escaped) = (None, false);
        for letter in body.chars() {
            if std::mem::take(&mut is_escaped) {
                continue;
            }
            match (letter, quote) {
                ('\\', Some('"')) => is_escaped = true,
                ('\'' | '"', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                ('[' | '{', None) => brackets += 1,
                (']' | '}', None) => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            if indents.len() + dashes + brackets > DEEPEST {
                return Some(number + 1);
            }
        }
    }
    None
}

/// More levels than any hooks file needs, and far too few to overflow a stack.
const DEEPEST: usize = 100;

/// The line in an error of the parser, which has it only in its text: `… at char 7 line 2 column 3`.
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
        YamlData::Mapping(pairs) => Data::Map(resolve_merge_keys(
            pairs
                .iter()
                .map(|(key, value)| {
                    let key = convert(key);
                    Pair { key: key.display(), line: key.line, value: convert(value) }
                })
                .collect(),
        )),
        YamlData::Tagged(_, inner) => convert(inner).data,
        YamlData::Alias(_) | YamlData::BadValue => Data::Scalar(Value::Null),
    };
    Node { line: node.span.start.line(), data }
}

/// Resolves `<<: *base`, which adds the entries of another mapping, as Hermes' YAML parser does. A mapping's
/// own entries come first and take precedence.
fn resolve_merge_keys(pairs: Vec<Pair>) -> Vec<Pair> {
    let (bases, mut own): (Vec<Pair>, Vec<Pair>) =
        pairs.into_iter().partition(|pair| pair.key == "<<");
    let bases = bases.into_iter().flat_map(|pair| match pair.value.data {
        Data::List(items) => items,
        Data::Map(_) | Data::Scalar(_) => vec![pair.value],
    });
    for pair in bases.flat_map(|base| base.pairs().unwrap_or_default().to_vec()) {
        if own.iter().all(|known| known.key != pair.key) {
            own.push(pair);
        }
    }
    own
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
    /// A scalar as text: a string, or a number.
    pub(super) fn text(&self) -> Option<String> {
        match &self.data {
            Data::Scalar(Value::String(text)) => Some(text.clone()),
            Data::Scalar(Value::Number(number)) => Some(number.to_string()),
            Data::Scalar(_) | Data::List(_) | Data::Map(_) => None,
        }
    }

    /// A boolean; `yes`, `no`, `on` and `off` count too, as in Hermes.
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

    /// One text or a list of texts.
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

    /// Whether it is `null`, which is also what an empty value is.
    pub(super) fn is_null(&self) -> bool {
        self.data == Data::Scalar(Value::Null)
    }

    /// As JSON, without the lines.
    pub(crate) fn to_json(&self) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_entries_take_precedence_over_merged_ones() {
        let text = "a: &base {x: 1, y: 2}\nb: {<<: *base, y: 3}\n";
        let json = parse(text).expect("YAML").expect("a document").to_json();
        assert_eq!(json["b"], serde_json::json!({"y": 3, "x": 1}));
    }

    #[test]
    fn deep_nesting_is_refused_before_the_tree_is_built() {
        let deep = [
            "- ".repeat(20_000) + "x",
            "[".repeat(20_000),
            "{a: ".repeat(20_000),
            (0..5000).fold(String::new(), |text, n| text + &" ".repeat(n) + "a:\n"),
        ];
        for text in deep {
            assert!(parse(&text).is_err(), "{}", &text[..40]);
        }
        let brackets = "a: '[[['\n".repeat(3) + &"# [[[\n".repeat(200);
        assert!(too_deep(&brackets).is_none(), "brackets in quotes and comments do not nest");
    }
}
