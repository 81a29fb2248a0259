//! Small edits of a YAML file as text, so that comments, order and quoting stay as they were. The
//! parsed tree only says where things stand. Each edit is checked by reading its result: either it
//! changed what it was meant to and nothing else, or it is refused.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value, json};

use super::lines::{Lines, flow_end};

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotEdit {
    /// It cannot be read.
    #[error("it is not YAML: {0}")]
    NotYaml(String),
    /// Something else stands where a list or a mapping was expected.
    #[error("`{0}` is not what it should be; mend it by hand")]
    Unexpected(String),
    /// The text is written in a way that this cannot edit safely.
    #[error("`{0}` is written in a way that cannot be edited safely; edit it by hand")]
    Unusual(String),
    /// A hook that cannot stay, because everything would come twice, and cannot go, because something else would too.
    #[error(
        "`{command}` on {event} calls the bus, in a script or beside something else, so with the bridge that event would come twice; \
         take `hookbus hook hermes` out of it by hand, or all of it, then run this again"
    )]
    CallsUsToo {
        /// Its event.
        event: String,
        /// What it runs.
        command: String,
    },
}

/// The content of a YAML file; `Null` for an empty one.
pub(super) fn read(text: &str) -> Result<Value, CannotEdit> {
    Ok(parse(text)?.as_ref().map_or(Value::Null, to_json))
}

fn parse(text: &str) -> Result<Option<MarkedYaml<'_>>, CannotEdit> {
    let documents = MarkedYaml::load_from_str(text);
    let mut documents = documents.map_err(|error| CannotEdit::NotYaml(error.to_string()))?;
    match documents.len() {
        0 | 1 => Ok(documents.pop()),
        _ => Err(CannotEdit::Unexpected("---".to_owned())),
    }
}

/// Adds `item` to the list at `parent: key:`, both made where they are missing.
pub(super) fn add_to_list(
    text: &str,
    parent: &str,
    key: &str,
    item: &str,
) -> Result<String, CannotEdit> {
    let place = format!("{parent}.{key}");
    let unexpected = || CannotEdit::Unexpected(place.clone());
    let mut expected = read(text)?;
    if expected.is_null() {
        expected = json!({});
    }
    let section =
        expected.as_object_mut().ok_or_else(unexpected)?.entry(parent).or_insert(Value::Null);
    if section.is_null() {
        *section = json!({});
    }
    let list = section.as_object_mut().ok_or_else(unexpected)?.entry(key).or_insert(Value::Null);
    if list.is_null() {
        *list = json!([]);
    }
    let list = list.as_array_mut().ok_or_else(unexpected)?;
    if list.iter().any(|known| known == item) {
        return Ok(text.to_owned());
    }
    list.push(json!(item));
    let edited = insert_item(&without_nulls(text, parent, key)?, parent, key, item)?;
    let same = read(&edited).is_ok_and(|found| sorted(found) == sorted(expected));
    if same { Ok(edited) } else { Err(CannotEdit::Unusual(place)) }
}

/// The same text with room under `parent: key:` where somebody wrote `null` or `~`.
fn without_nulls(text: &str, parent: &str, key: &str) -> Result<String, CannotEdit> {
    let root = parse(text)?;
    let lines = Lines(text);
    let section = root.as_ref().and_then(|root| Some((root, entry(root, parent)?.1, "{}")));
    let list = section.and_then(|(_, section, _)| Some((section, entry(section, key)?.1, "[]")));
    let null = [section, list].into_iter().flatten().find(|(_, value, _)| is_null(value));
    Ok(null.map_or_else(
        || text.to_owned(),
        |(holder, value, flow)| lines.without_null(value, lines.is_flow(holder).then_some(flow)),
    ))
}

fn insert_item(text: &str, parent: &str, key: &str, item: &str) -> Result<String, CannotEdit> {
    let root = parse(text)?;
    let lines = Lines(text);
    let block = |indent: &str| format!("{indent}{key}:\n{indent}  - {item}\n");
    let Some(root) = root.filter(|root| !is_null(root)) else {
        return Ok(lines.with_line_at_the_end(&format!("{parent}:\n{}", block("  "))));
    };
    let flow_entry = format!("\"{key}\": [\"{item}\"]");
    let Some((parent_key, section)) = entry(&root, parent) else {
        return Ok(if lines.is_flow(&root) {
            lines.put_into_flow(&root, &format!("\"{parent}\": {{{flow_entry}}}"))
        } else {
            lines.with_line_at_the_end(&format!("{parent}:\n{}", block("  ")))
        });
    };
    let Some((list_key, list)) = entry(section, key) else {
        return Ok(match first_key(section) {
            _ if lines.is_flow(section) => lines.put_into_flow(section, &flow_entry),
            Some(first) => lines.insert_before(first, &block(&" ".repeat(column(first)))),
            None => lines.insert_after(parent_key, &block(&" ".repeat(column(parent_key) + 2))),
        });
    };
    Ok(match first_item(list) {
        _ if lines.is_flow(list) => lines.put_into_flow(list, &format!("\"{item}\"")),
        Some(first) => {
            let line = lines.line(first.span.start.line());
            let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
            lines.insert_before(first, &format!("{indent}- {item}\n"))
        }
        None => {
            lines.insert_after(list_key, &format!("{}- {item}\n", " ".repeat(column(list_key) + 2)))
        }
    })
}

/// Puts `item` at the end of the list at `parent: key:`, both made where they are missing. The caller
/// checks the result.
pub(super) fn append_under(
    text: &str,
    parent: &str,
    key: &str,
    item: &str,
) -> Result<String, CannotEdit> {
    let text = &without_nulls(text, parent, key)?;
    let root = parse(text)?.filter(|root| !is_null(root));
    let lines = Lines(text);
    let unusual = || CannotEdit::Unusual(format!("{parent}.{key}"));
    let block = |indent: &str| format!("{indent}{key}:\n{indent}  - {item}\n");
    let into_flow = |node: &MarkedYaml<'_>, entry: &str| {
        lines.put_at_the_end_of_flow(node, entry).ok_or_else(unusual)
    };
    let section = root.as_ref().and_then(|root| entry(root, parent));
    let Some((parent_key, section)) = section else {
        return match root.as_ref().filter(|root| lines.is_flow(root)) {
            Some(root) => into_flow(root, &format!("\"{parent}\": {{\"{key}\": [{item}]}}")),
            None => Ok(lines.with_line_at_the_end(&format!("{parent}:\n{}", block("  ")))),
        };
    };
    let Some((list_key, list)) = entry(section, key) else {
        if lines.is_flow(section) {
            return into_flow(section, &format!("\"{key}\": [{item}]"));
        }
        let indent = first_key(section).map_or(column(parent_key) + 2, column);
        return Ok(lines.insert_at_the_end_of(parent_key, &block(&" ".repeat(indent))));
    };
    if lines.is_flow(list) {
        return into_flow(list, item);
    }
    let Some(first) = first_item(list) else {
        let indent = " ".repeat(column(list_key) + 2);
        return Ok(lines.insert_after(list_key, &format!("{indent}- {item}\n")));
    };
    let line = lines.line(first.span.start.line());
    let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
    Ok(lines.insert_at_the_end_of(list_key, &format!("{indent}- {item}\n")))
}

/// Takes away what stands at each of `paths` (a key, or an item by its number), and whatever is left
/// empty by that.
pub(super) fn remove(text: &str, paths: &[Vec<Step>]) -> Result<String, CannotEdit> {
    let mut edited = text.to_owned();
    // From the end, so that the numbers of what is still to come stay right.
    let mut waiting = paths.to_vec();
    while let Some(path) = waiting.pop() {
        let mut alike = reached_alike(&edited, &path, &waiting)?;
        waiting.retain(|other| !alike.contains(other));
        alike.push(path);
        // The first of them is where the text stands.
        if let [path, shared @ ..] = alike.as_slice() {
            edited = remove_one(&edited, path, shared)?;
        }
    }
    Ok(edited)
}

/// One step to a place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a mapping.
    Key(String),
    /// Into a list.
    Item(usize),
}

/// Those of `others` that an anchor makes the same item of the same text.
fn reached_alike(
    text: &str,
    path: &[Step],
    others: &[Vec<Step>],
) -> Result<Vec<Vec<Step>>, CannotEdit> {
    let Some(root) = parse(text)? else { return Ok(Vec::new()) };
    let place = |path: &[Step]| {
        let (_, parents) = path.split_last()?;
        node_at(&root, parents).filter(|list| items(list).len() > 1)?;
        let item = node_at(&root, path)?;
        Some((item.span.start.line(), item.span.start.col()))
    };
    let wanted = place(path);
    let alike = |other: &&Vec<Step>| wanted.is_some() && place(other) == wanted;
    Ok(others.iter().filter(alike).cloned().collect())
}

fn node_at<'a, 'b>(root: &'a MarkedYaml<'b>, path: &[Step]) -> Option<&'a MarkedYaml<'b>> {
    path.iter().try_fold(root, |node, step| match step {
        Step::Key(key) => entry(node, key).map(|(_, value)| value),
        Step::Item(number) => items(node).get(*number).copied(),
    })
}

fn remove_one(text: &str, path: &[Step], shared: &[Vec<Step>]) -> Result<String, CannotEdit> {
    let place = shown(path);
    let before = read(text)?;
    // What would be left empty goes too.
    let mut path = path.to_vec();
    while let [parent @ .., _] = path.as_slice()
        && !parent.is_empty()
        && at(&before, parent).is_some_and(|value| size(value) == 1)
    {
        path.pop();
    }
    let mut expected = before;
    take_out(&mut expected, &path);
    for other in shared {
        take_out(&mut expected, other);
    }
    let root = parse(text)?.ok_or_else(|| CannotEdit::Unexpected(place.clone()))?;
    let edited = cut(text, &root, &path).ok_or_else(|| CannotEdit::Unusual(place.clone()))?;
    let found = read(&edited)?;
    let emptied = found.is_null() && size(&expected) == 0;
    if emptied || found == expected { Ok(edited) } else { Err(CannotEdit::Unusual(place)) }
}

fn shown(path: &[Step]) -> String {
    let word = |step: &Step| match step {
        Step::Key(key) => key.clone(),
        Step::Item(number) => format!("{}", number + 1),
    };
    path.iter().map(word).collect::<Vec<_>>().join(".")
}

fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Item(number) => value.get(number),
    })
}

fn take_out(value: &mut Value, path: &[Step]) {
    match (path, value) {
        ([Step::Key(key)], Value::Object(map)) => {
            map.shift_remove(key);
        }
        ([Step::Item(number)], Value::Array(items)) if *number < items.len() => {
            items.remove(*number);
        }
        ([Step::Key(key), rest @ ..], Value::Object(map)) => {
            if let Some(inner) = map.get_mut(key) {
                take_out(inner, rest);
            }
        }
        ([Step::Item(number), rest @ ..], Value::Array(items)) => {
            if let Some(inner) = items.get_mut(*number) {
                take_out(inner, rest);
            }
        }
        _ => {}
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn cut(text: &str, root: &MarkedYaml<'_>, path: &[Step]) -> Option<String> {
    let lines = Lines(text);
    let (last, parents) = path.split_last()?;
    let parent = node_at(root, parents)?;
    // Where each entry of the parent begins.
    let (starts, wanted): (Vec<&MarkedYaml<'_>>, usize) = match (last, &parent.data) {
        (Step::Key(key), YamlData::Mapping(pairs)) => {
            let keys: Vec<_> = pairs.iter().map(|(key, _)| key).collect();
            let wanted = keys.iter().position(|known| text_of(known).as_deref() == Some(key))?;
            (keys, wanted)
        }
        (Step::Item(number), YamlData::Sequence(list)) => (list.iter().collect(), *number),
        _ => return None,
    };
    let start = starts.get(wanted)?;
    let next = starts.get(wanted + 1);
    if lines.is_flow(parent) {
        let from = lines.place(start);
        return Some(match next {
            Some(next) => [&text[..from], &text[lines.place(next)..]].concat(),
            None => {
                let end = flow_end(text, lines.body(parent))?;
                let kept = text[..from].trim_end().trim_end_matches(',').len();
                [&text[..kept], &text[end - 1..]].concat()
            }
        });
    }
    let first = start.span.start.line();
    let indent = lines.line(first).len() - lines.line(first).trim_start_matches(' ').len();
    let end = next.map_or_else(|| lines.end_of_block(first, indent), |next| next.span.start.line());
    let end = lines.give_back(first, end, indent);
    Some([lines.before(first), lines.from(end)].concat())
}

fn entry<'a, 'b>(
    node: &'a MarkedYaml<'b>,
    wanted: &str,
) -> Option<(&'a MarkedYaml<'b>, &'a MarkedYaml<'b>)> {
    node.data.as_mapping()?.iter().find(|(key, _)| text_of(key).as_deref() == Some(wanted))
}

fn first_key<'a, 'b>(node: &'a MarkedYaml<'b>) -> Option<&'a MarkedYaml<'b>> {
    node.data.as_mapping()?.keys().next()
}

fn items<'a, 'b>(node: &'a MarkedYaml<'b>) -> Vec<&'a MarkedYaml<'b>> {
    node.data.as_sequence().into_iter().flatten().collect()
}

fn first_item<'a, 'b>(node: &'a MarkedYaml<'b>) -> Option<&'a MarkedYaml<'b>> {
    items(node).first().copied()
}

fn column(node: &MarkedYaml<'_>) -> usize {
    node.span.start.col()
}

fn is_null(node: &MarkedYaml<'_>) -> bool {
    to_json(node).is_null()
}

fn text_of(node: &MarkedYaml<'_>) -> Option<String> {
    match to_json(node) {
        Value::String(text) => Some(text),
        other @ (Value::Bool(_) | Value::Number(_)) => Some(other.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn to_json(node: &MarkedYaml<'_>) -> Value {
    match &node.data {
        YamlData::Value(Scalar::Null) => Value::Null,
        YamlData::Value(Scalar::Boolean(value)) => json!(value),
        YamlData::Value(Scalar::Integer(value)) => json!(value),
        YamlData::Value(Scalar::FloatingPoint(value)) => json!(value.into_inner()),
        YamlData::Value(Scalar::String(text)) => json!(text.to_string()),
        YamlData::Representation(text, ..) => json!(text.to_string()),
        YamlData::Sequence(list) => list.iter().map(to_json).collect(),
        YamlData::Mapping(pairs) => {
            let pair = |(key, value): (&MarkedYaml<'_>, &MarkedYaml<'_>)| {
                (text_of(key).unwrap_or_else(|| to_json(key).to_string()), to_json(value))
            };
            Value::Object(pairs.iter().map(pair).collect::<Map<_, _>>())
        }
        YamlData::Tagged(_, inner) => to_json(inner),
        YamlData::Alias(_) | YamlData::BadValue => Value::Null,
    }
}

/// Without the order of keys and of the items in lists, which an insertion may choose.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(sorted).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(map) => {
            let mut pairs: Vec<(String, Value)> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            pairs.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(pairs.into_iter().collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> String {
        add_to_list(text, "plugins", "enabled", "hookbus").expect("an edit")
    }

    #[test]
    fn a_list_gets_one_more_item_and_everything_else_stays() {
        for (before, after) in [
            ("", "plugins:\n  enabled:\n    - hookbus\n"),
            ("# mine\nmodel: x", "# mine\nmodel: x\nplugins:\n  enabled:\n    - hookbus\n"),
            (
                "plugins:\n  enabled: # on\n  - a # one\n  - b\nmodel: x\n",
                "plugins:\n  enabled: # on\n  - hookbus\n  - a # one\n  - b\nmodel: x\n",
            ),
            (
                "plugins:\n    disabled: [z]\n",
                "plugins:\n    enabled:\n      - hookbus\n    disabled: [z]\n",
            ),
            ("plugins:\n  enabled:\n", "plugins:\n  enabled:\n    - hookbus\n"),
            ("plugins:\n  enabled: []\n", "plugins:\n  enabled: [\"hookbus\"]\n"),
            ("plugins:\n", "plugins:\n  enabled:\n    - hookbus\n"),
            (
                "{\"plugins\": {\"enabled\": [\"a\"]}}",
                "{\"plugins\": {\"enabled\": [\"hookbus\", \"a\"]}}",
            ),
            ("{\"model\": {}}", "{\"plugins\": {\"enabled\": [\"hookbus\"]}, \"model\": {}}"),
            ("plugins: {}\n", "plugins: {\"enabled\": [\"hookbus\"]}\n"),
        ] {
            assert_eq!(added(before), after, "{before}");
            assert_eq!(added(after), after, "once is enough");
        }
    }

    #[test]
    fn what_is_no_list_is_left_alone() {
        for text in ["plugins: none\n", "plugins:\n  enabled: all\n", "- a\n", "a: [\n"] {
            assert!(add_to_list(text, "plugins", "enabled", "hookbus").is_err(), "{text}");
        }
    }

    fn without(text: &str, path: &[Step]) -> String {
        remove(text, &[path.to_vec()]).expect("an edit")
    }

    fn key(name: &str) -> Step {
        Step::Key(name.to_owned())
    }

    #[test]
    fn what_is_taken_out_leaves_the_rest_as_it_was() {
        let text = "a: 1\nhooks:\n  # before\n  x:\n    - command: one\n      timeout: 5\n    # about two\n    - command: two\n  y:\n  - command: three\n\n# about b\nb: 2\n";
        let one = without(text, &[key("hooks"), key("x"), Step::Item(0)]);
        assert_eq!(one, text.replace("    - command: one\n      timeout: 5\n", ""));
        let y = without(text, &[key("hooks"), key("y"), Step::Item(0)]);
        assert_eq!(
            y,
            text.replace("  y:\n  - command: three\n", ""),
            "the key goes with its last item"
        );
        assert_eq!(without(text, &[key("hooks")]), "a: 1\n\n# about b\nb: 2\n");
    }

    #[test]
    fn what_is_taken_out_of_brackets_leaves_no_comma() {
        let text = r#"{"hooks": {"x": [{"command": "one"}, {"command": "two"}], "y": [{"command": "}"}]}, "b": 2}"#;
        for (path, after) in [
            (
                vec![key("hooks"), key("x"), Step::Item(0)],
                text.replace(r#"{"command": "one"}, "#, ""),
            ),
            (
                vec![key("hooks"), key("x"), Step::Item(1)],
                text.replace(r#", {"command": "two"}"#, ""),
            ),
            (
                vec![key("hooks"), key("y"), Step::Item(0)],
                text.replace(r#", "y": [{"command": "}"}]"#, ""),
            ),
            (vec![key("hooks")], r#"{"b": 2}"#.to_owned()),
        ] {
            assert_eq!(without(text, &path), after, "{path:?}");
        }
    }
}
