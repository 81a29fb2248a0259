//! A YAML text by its lines, and the places in it that the parsed tree points at.

use saphyr::{MarkedYaml, YamlData};

/// A text by its lines, which are counted from 1.
pub(super) struct Lines<'a>(pub(super) &'a str);

impl<'a> Lines<'a> {
    pub(super) fn start(&self, line: usize) -> usize {
        let ends = self.0.match_indices('\n').map(|(place, _)| place + 1);
        std::iter::once(0).chain(ends).nth(line - 1).unwrap_or(self.0.len())
    }

    pub(super) fn before(&self, line: usize) -> &'a str {
        &self.0[..self.start(line)]
    }

    pub(super) fn from(&self, line: usize) -> &'a str {
        &self.0[self.start(line)..]
    }

    pub(super) fn line(&self, line: usize) -> &'a str {
        self.from(line).lines().next().unwrap_or_default()
    }

    pub(super) fn count(&self) -> usize {
        self.0.lines().count()
    }

    pub(super) fn place(&self, node: &MarkedYaml<'_>) -> usize {
        let line = self.from(node.span.start.line());
        let column = line.char_indices().nth(node.span.start.col());
        self.start(node.span.start.line()) + column.map_or(line.len(), |(place, _)| place)
    }

    pub(super) fn is_flow(&self, node: &MarkedYaml<'_>) -> bool {
        self.0[self.body(node)..].starts_with(['{', '['])
    }

    /// Where it begins behind its anchor.
    pub(super) fn body(&self, node: &MarkedYaml<'_>) -> usize {
        let place = self.place(node);
        let text = &self.0[place..];
        let anchor = text.split(char::is_whitespace).next().filter(|word| word.starts_with('&'));
        let behind = anchor.map_or(text, |word| text[word.len()..].trim_start_matches(' '));
        place + text.len() - behind.len()
    }

    pub(super) fn put_into_flow(&self, node: &MarkedYaml<'_>, entry: &str) -> String {
        let (head, tail) = self.0.split_at(self.body(node) + 1);
        let comma = if is_empty(node) { "" } else { ", " };
        [head, entry, comma, tail].concat()
    }

    pub(super) fn insert_before(&self, node: &MarkedYaml<'_>, lines: &str) -> String {
        let line = node.span.start.line();
        [self.before(line), lines, self.from(line)].concat()
    }

    pub(super) fn insert_after(&self, node: &MarkedYaml<'_>, lines: &str) -> String {
        let line = node.span.start.line() + 1;
        let head = self.before(line);
        let gap = if head.ends_with('\n') || head.is_empty() { "" } else { "\n" };
        [head, gap, lines, self.from(line)].concat()
    }

    pub(super) fn insert_at_the_end_of(&self, key: &MarkedYaml<'_>, lines: &str) -> String {
        let (first, indent) = (key.span.start.line(), key.span.start.col());
        let end = self.give_back(first, self.end_of_block(first, indent), indent);
        let head = self.before(end);
        let gap = if head.ends_with('\n') { "" } else { "\n" };
        [head, gap, lines, self.from(end)].concat()
    }

    pub(super) fn with_line_at_the_end(&self, lines: &str) -> String {
        let ends = |line: &usize| self.line(*line).split_whitespace().next() == Some("...");
        if let Some(end) = (1..=self.count()).find(ends) {
            return [self.before(end), lines, self.from(end)].concat();
        }
        let gap = if self.0.ends_with('\n') || self.0.is_empty() { "" } else { "\n" };
        [self.0, gap, lines].concat()
    }

    /// The same text without a `null` that somebody wrote out, which nothing can be put under.
    pub(super) fn without_null(&self, node: &MarkedYaml<'_>, in_flow: Option<&str>) -> String {
        let (head, tail) = self.0.split_at(self.place(node));
        let word = ["null", "Null", "NULL", "~"].into_iter().find(|word| tail.starts_with(word));
        let tail = &tail[word.map_or(0, str::len)..];
        match (word, in_flow) {
            (None, _) => self.0.to_owned(),
            (Some(_), Some(instead)) => [head, instead, tail].concat(),
            (Some(_), None) => [head.trim_end_matches(' '), tail].concat(),
        }
    }

    pub(super) fn put_at_the_end_of_flow(
        &self,
        node: &MarkedYaml<'_>,
        entry: &str,
    ) -> Option<String> {
        let end = flow_end(self.0, self.body(node))? - 1;
        let head = self.0[..end].trim_end();
        let comma = if head.ends_with(['[', '{', ',']) { "" } else { ", " };
        Some([head, comma, entry, &self.0[end..]].concat())
    }

    /// The line after the block that begins at `first` with this indent.
    pub(super) fn end_of_block(&self, first: usize, indent: usize) -> usize {
        let is_item = self.line(first).trim_start().starts_with('-');
        let inside = |line: &usize| {
            let text = self.line(*line);
            let body = text.trim_start_matches(' ');
            let deeper = text.len() - body.len() > indent;
            let same = text.len() - body.len() == indent;
            // A list may stand as far left as its key.
            body.is_empty()
                || body.starts_with('#')
                || deeper
                || (same && !is_item && body.starts_with('-'))
        };
        (first + 1..=self.count()).find(|line| !inside(line)).unwrap_or(self.count() + 1)
    }

    /// Blank lines and comments at the end of a block belong to what follows.
    pub(super) fn give_back(&self, first: usize, end: usize, indent: usize) -> usize {
        let outside = |line: usize| {
            let text = self.line(line);
            let body = text.trim_start_matches(' ');
            body.is_empty() || (body.starts_with('#') && text.len() - body.len() <= indent)
        };
        (first + 1..end).rev().find(|line| !outside(*line)).map_or(first + 1, |last| last + 1)
    }
}

/// The place after the bracket that closes the one at `start`.
pub(super) fn flow_end(text: &str, start: usize) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (place, letter) in text[start..].char_indices() {
        match (quote, letter) {
            (Some('"'), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(start + place + 1);
                }
            }
            (None, _) => {}
        }
    }
    None
}

fn is_empty(node: &MarkedYaml<'_>) -> bool {
    match &node.data {
        YamlData::Mapping(pairs) => pairs.is_empty(),
        YamlData::Sequence(list) => list.is_empty(),
        YamlData::Value(_)
        | YamlData::Representation(..)
        | YamlData::Tagged(..)
        | YamlData::Alias(_)
        | YamlData::BadValue => true,
    }
}
