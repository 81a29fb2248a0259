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
        self.0[self.place(node)..].starts_with(['{', '['])
    }

    pub(super) fn put_into_flow(&self, node: &MarkedYaml<'_>, entry: &str) -> String {
        let (head, tail) = self.0.split_at(self.place(node) + 1);
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
        let gap = if self.0.ends_with('\n') || self.0.is_empty() { "" } else { "\n" };
        [self.0, gap, lines].concat()
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
