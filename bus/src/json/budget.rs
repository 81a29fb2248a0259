//! Reading JSON in bounded memory. A parsed value takes 32 bytes and more, also a `0` that takes two in the text:
//! a payload of 64 MB could take gigabytes. So of a payload with very many values only a part is kept: every list
//! and object keeps its first entries, and the texts and numbers near the root are kept in any case. What was left
//! out is named, so that no reader takes a part for the whole; so is a value that is nested too deep.

use serde_json::Value;

use super::{JsonError, MAX_DEPTH, read_with_places};

/// Up to this many bytes everything is kept.
const SMALL: usize = 1 << 20;

/// The most values that are kept of anything larger.
const MOST_VALUES: usize = 500_000;

/// Texts and numbers of objects up to this depth are kept beyond that, up to this many: what rules look at.
const NEAR_ROOT: usize = 3;
const MOST_NEAR_ROOT: usize = 20_000;

/// The most places that are named; with more of them the root is named, which covers all.
const MOST_PLACES: usize = 100;

/// About how many bytes of a path are named.
const LONGEST_PLACE: usize = 200;

/// JSON, of which parts may have been left out.
#[derive(Debug, Clone, PartialEq)]
pub struct PartialJson {
    /// What was kept.
    pub value: Value,
    /// The lists and objects that are not complete, as dotted paths; an empty path is the root.
    pub incomplete: Vec<String>,
}

/// Parses `bytes` as [`read_leniently`](super::read_leniently) does, without values beyond the budget.
pub fn read_within_budget(bytes: &[u8]) -> Result<PartialJson, JsonError> {
    if bytes.len() <= SMALL || may_hold(bytes) <= MOST_VALUES {
        return read_with_places(bytes);
    }
    let mut pruner = Pruner {
        bytes,
        at: 0,
        kept: Vec::new(),
        path: Vec::new(),
        incomplete: Vec::new(),
        near_root: MOST_NEAR_ROOT,
    };
    pruner.skip_space();
    let mut room = 2 * MOST_VALUES;
    pruner.value(&mut room, 0).ok_or(JsonError::TooManyValues(MOST_VALUES))?;
    // Whatever follows makes it invalid, as it would without a budget.
    pruner.skip_space();
    let rest = &bytes[pruner.at..];
    if !rest.is_empty() {
        return Err(JsonError::TooManyValues(MOST_VALUES));
    }
    let Pruner { kept, mut incomplete, .. } = pruner;
    let read = read_with_places(&kept)?;
    incomplete.extend(read.incomplete);
    Ok(PartialJson { value: read.value, incomplete })
}

/// Adds the place that `keys` lead to. They are as the JSON has them, with quotes and escapes. Of a long path only the
/// beginning is named, which covers all that is under it: long keys must not fill the memory.
pub(super) fn note_place(places: &mut Vec<String>, keys: &[&[u8]]) {
    // The root is named already.
    if places.len() > MOST_PLACES {
        return;
    }
    let mut bytes = 0;
    let is_short = |key: &&&[u8]| {
        bytes += key.len();
        bytes <= LONGEST_PLACE
    };
    let keys = keys.iter().take_while(is_short);
    let text = |key: &&[u8]| {
        let read = serde_json::from_slice::<String>(key).ok();
        read.unwrap_or_else(|| String::from_utf8_lossy(key).trim_matches('"').to_owned())
    };
    let place = match places.len() {
        0..MOST_PLACES => keys.map(text).collect::<Vec<_>>().join("."),
        _ => String::new(),
    };
    if !places.contains(&place) {
        places.push(place);
    }
}

/// At most how many values are in `bytes`: commas and brackets inside of texts count too, if there are few.
fn may_hold(bytes: &[u8]) -> usize {
    let is_mark = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
    let marks = bytes.iter().filter(is_mark).count();
    if marks <= MOST_VALUES {
        return marks + 1;
    }
    let (mut at, mut count) = (0, 1);
    while let Some(byte) = bytes.get(at) {
        if *byte == b'"' {
            at = end_of_string(bytes, at);
        } else {
            count += usize::from(is_mark(&byte));
            at += 1;
        }
    }
    count
}

/// The position behind the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(next_quote_or_backslash) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn next_quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, b'"' | b'\\'))
}

/// Copies JSON and leaves out what is beyond the budget.
struct Pruner<'a> {
    bytes: &'a [u8],
    at: usize,
    kept: Vec<u8>,
    /// The keys on the way to the present value, as they are written.
    path: Vec<&'a [u8]>,
    incomplete: Vec<String>,
    /// How many more texts and numbers near the root are kept beyond the budget.
    near_root: usize,
}

impl<'a> Pruner<'a> {
    fn next(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.next().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Copies one value; none if it is malformed. A list or object may use half of `room`, so that there is
    /// always some left for what follows it.
    fn value(&mut self, room: &mut usize, depth: usize) -> Option<()> {
        match self.next()? {
            b'{' | b'[' if depth == MAX_DEPTH => {
                self.note_incomplete();
                self.skip_value()?;
                self.kept.extend_from_slice(b"null");
                Some(())
            }
            b'{' | b'[' => {
                let share = *room / 2;
                let mut left = share;
                self.container(&mut left, depth)?;
                *room -= share - left;
                Some(())
            }
            _ => {
                let start = self.at;
                self.skip_value()?;
                self.kept.extend_from_slice(&self.bytes[start..self.at]);
                Some(())
            }
        }
    }

    fn container(&mut self, room: &mut usize, depth: usize) -> Option<()> {
        let is_object = self.next()? == b'{';
        let (open, close) = if is_object { (b'{', b'}') } else { (b'[', b']') };
        self.kept.push(open);
        self.at += 1;
        let (mut is_first, mut is_complete) = (true, true);
        loop {
            self.skip_space();
            match self.next()? {
                b',' => {
                    self.at += 1;
                    continue;
                }
                byte if byte == close => break,
                b'}' | b']' => return None,
                _ => {}
            }
            if *room == 0 && !(is_object && depth < NEAR_ROOT) {
                is_complete = false;
                self.skip_rest()?;
                break;
            }
            let key = if is_object { self.key()? } else { &[] };
            let is_container = matches!(self.next()?, b'{' | b'[');
            if *room == 0 && (is_container || self.near_root == 0) {
                is_complete = false;
                self.skip_value()?;
                continue;
            }
            if *room > 0 {
                *room -= 1;
            } else {
                self.near_root -= 1;
            }
            if !is_first {
                self.kept.push(b',');
            }
            is_first = false;
            if is_object {
                self.kept.extend_from_slice(key);
                self.kept.push(b':');
                self.path.push(key);
            }
            self.value(room, depth + 1)?;
            if is_object {
                self.path.pop();
            }
        }
        if !is_complete {
            self.note_incomplete();
        }
        self.at += 1;
        self.kept.push(close);
        Some(())
    }

    /// The key of an object's entry, with its quotes; moves on to the value.
    fn key(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        if self.next()? != b'"' {
            return None;
        }
        self.at = end_of_string(self.bytes, start);
        let key = &self.bytes[start..self.at];
        self.skip_space();
        if self.next()? != b':' {
            return None;
        }
        self.at += 1;
        self.skip_space();
        Some(key)
    }

    /// Moves to the end of the present list or object.
    fn skip_rest(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.next()? {
                b'"' => self.at = end_of_string(self.bytes, self.at) - 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return Some(()),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Moves behind one value, however deep it is.
    fn skip_value(&mut self) -> Option<()> {
        let (start, mut depth) = (self.at, 0_usize);
        loop {
            match self.next() {
                Some(b'"') => self.at = end_of_string(self.bytes, self.at),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b'}' | b']' | b',') if depth == 0 => break,
                Some(_) => self.at += 1,
                None => break,
            }
            let after_word = self.next().is_none_or(|next| next.is_ascii_whitespace());
            let ended = matches!(self.bytes.get(self.at - 1), Some(b'"' | b'}' | b']'));
            if depth == 0 && (ended || after_word) {
                break;
            }
        }
        (depth == 0 && self.at > start).then_some(())
    }

    fn note_incomplete(&mut self) {
        note_place(&mut self.incomplete, &self.path);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn zeros(count: usize) -> String {
        format!("[{}0]", "0, ".repeat(count))
    }

    #[test]
    fn a_long_list_is_cut_and_what_is_beside_it_is_kept() {
        let raw = format!(
            r#"{{"tool_input": {{"pad": {}, "command": "rm -rf /", "n": 1}}, "tool_name": "sh"}}"#,
            zeros(2_000_000)
        );
        let PartialJson { value, incomplete } = read_within_budget(raw.as_bytes()).expect("JSON");
        assert_eq!(value["tool_input"]["command"], "rm -rf /");
        assert_eq!((&value["tool_input"]["n"], &value["tool_name"]), (&json!(1), &json!("sh")));
        assert_eq!(incomplete, ["tool_input.pad"]);
        let kept = value["tool_input"]["pad"].as_array().map_or(0, Vec::len);
        assert!(0 < kept && kept < MOST_VALUES, "{kept}");
    }

    #[test]
    fn many_long_lists_do_not_hide_a_text_near_the_root() {
        let list = |n: usize| format!("\"p{n}\": {}, ", zeros(50_000));
        let lists = (0..40).map(list).collect::<Vec<_>>().concat();
        let raw = format!(r#"{{"tool_input": {{{lists} "command": "rm -rf /"}}}}"#);
        let PartialJson { value, incomplete } = read_within_budget(raw.as_bytes()).expect("JSON");
        assert_eq!(value["tool_input"]["command"], "rm -rf /");
        assert!(incomplete.iter().all(|place| place.starts_with("tool_input")), "{incomplete:?}");
    }

    #[test]
    fn an_object_with_too_many_keys_is_named() {
        let keys = (0..2_000_000).map(|n: u32| format!("\"{n}\":0,")).collect::<Vec<_>>().concat();
        let raw = format!(r#"{{"tool_input": {{{keys} "comm\u0061nd": "rm -rf /"}}}}"#);
        let read = read_within_budget(raw.as_bytes()).expect("JSON");
        assert_eq!(read.incomplete, ["tool_input"]);
    }

    #[test]
    fn large_texts_and_few_values_are_kept_whole() {
        let value = json!({"a": ",[{".repeat(1 << 20), "b": [1, "\\\"", {"c": null}]});
        let read = read_within_budget(value.to_string().as_bytes()).expect("JSON");
        assert_eq!(read, PartialJson { value, incomplete: Vec::new() });
    }

    #[test]
    fn a_value_that_is_too_deep_is_named() {
        let deep = format!("{}{}", "[".repeat(800_000), "]".repeat(800_000));
        let raw = format!(r#"{{"deep": {deep}, "command": "rm -rf /"}}"#);
        let read = read_within_budget(raw.as_bytes()).expect("JSON");
        assert_eq!(
            (&read.value["command"], &read.incomplete[0]),
            (&json!("rm -rf /"), &"deep".to_owned())
        );
    }

    #[test]
    fn a_place_under_long_keys_is_named_by_its_beginning_and_many_places_by_the_root() {
        let long = json!("k".repeat(300)).to_string();
        let (tool_input, command) = (br#""tool_input""#.as_slice(), br#""command""#.as_slice());
        let mut places = Vec::new();
        note_place(&mut places, &[tool_input, command]);
        note_place(&mut places, &[tool_input, long.as_bytes(), command]);
        assert_eq!(places, ["tool_input.command", "tool_input"]);
        for n in 0..1000 {
            note_place(&mut places, &[json!(n.to_string()).to_string().as_bytes()]);
        }
        assert_eq!((places.len(), places[MOST_PLACES].as_str()), (MOST_PLACES + 1, ""));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            r#"[ -~\\"]{0,8}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec(("[a-z\"\\\\]{0,4}", inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn with_room_enough_the_copy_is_the_same_json(value in json_value(), pretty: bool) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let mut pruner = Pruner {
                bytes: text.as_bytes(), at: 0, kept: Vec::new(), path: Vec::new(),
                incomplete: Vec::new(), near_root: 0,
            };
            let mut room = 1 << 20;
            prop_assert!(pruner.value(&mut room, 0).is_some());
            prop_assert_eq!(pruner.at, text.len());
            prop_assert_eq!(serde_json::from_slice::<Value>(&pruner.kept).ok(), Some(value));
            prop_assert!(pruner.incomplete.is_empty());
        }

        #[test]
        fn no_text_like_json_makes_the_pruner_panic(
            text in r#"[\{\}\[\]",:\\u0-9a-fNInx\- ]{0,60}"#, rooms in 0_usize..8
        ) {
            let mut pruner = Pruner {
                bytes: text.as_bytes(), at: 0, kept: Vec::new(), path: Vec::new(),
                incomplete: Vec::new(), near_root: 1,
            };
            let mut room = rooms;
            prop_assert!(pruner.value(&mut room, 0).is_none() || pruner.at <= text.len());
        }
    }
}
