//! The parts of a Markdown document that can be checked: fenced blocks, links, and the anchors of headings.

use std::collections::HashMap;

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line of the opening fence.
    pub line: usize,
    /// The first word behind the fence: `yaml`, `console`, …; empty if there is none.
    pub language: String,
    /// The rest of that line: `title=…`, `exit=1`, `no-run: why`.
    pub info: String,
    /// What is in it, with a line end behind every line.
    pub text: String,
}

impl Block {
    /// The value of `key=value` behind the fence.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.info.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }
}

/// A link to another document or to a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its line.
    pub line: usize,
    /// The path; empty for a heading of the same document.
    pub path: String,
    /// The part behind `#`, if there is one.
    pub anchor: Option<String>,
}

/// The fenced blocks of a document, in order.
pub fn blocks(document: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in document.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(block), None) => block.text.extend([line, "\n"]),
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(fence)) => {
                let (language, info) = fence.split_once(' ').unwrap_or((fence, ""));
                let (language, info) = (language.to_owned(), info.trim().to_owned());
                open = Some(Block { line: number + 1, language, info, text: String::new() });
            }
            (None, None) => {}
        }
    }
    found
}

/// The lines outside of fenced blocks, with their numbers.
fn prose(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    document.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.starts_with("```");
        in_block ^= fence;
        (!in_block && !fence).then_some((number + 1, line))
    })
}

/// The links of a document that lead into this repository.
pub fn links(document: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in prose(document) {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (path, anchor) = match target.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor.to_owned())),
                None => (target, None),
            };
            found.push(Link { line, path: path.to_owned(), anchor });
        }
    }
    found
}

/// What a link can name behind `#`: the headings, in the form that GitHub gives them.
pub fn anchors(document: &str) -> Vec<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let headings = prose(document).filter(|(_, line)| line.starts_with('#'));
    let slugs = headings.map(|(_, line)| slug(line.trim_start_matches('#').trim()));
    let mut found = Vec::new();
    for slug in slugs {
        let seen = times.entry(slug.clone()).or_default();
        found.push(if *seen == 0 { slug } else { format!("{slug}-{seen}") });
        *seen += 1;
    }
    found
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_language_and_its_options() {
        let document = "# A\n\n```yaml title=~/a.yaml\nkey: 1\n```\n\n```\n```\n";
        let found = blocks(document);
        assert_eq!(found[0].option("title"), Some("~/a.yaml"));
        assert_eq!((found[0].line, found[0].text.as_str()), (3, "key: 1\n"));
        assert_eq!(found[1].language, "");
    }

    #[test]
    fn headings_have_the_anchors_that_github_gives_them() {
        let document =
            "# The `hookbus` command\n## What is promised, when?\n## A\n```\n# no\n```\n## A\n";
        assert_eq!(anchors(document), ["the-hookbus-command", "what-is-promised-when", "a", "a-1"]);
    }

    #[test]
    fn links_into_the_repository_are_found_and_others_are_not() {
        let found =
            links("[a](b.md#c) and [d](#e)\n[f](https://example.org/#g)\n```\n[h](i)\n```\n");
        let link = |path: &str, anchor: &str| Link {
            line: 1,
            path: path.to_owned(),
            anchor: Some(anchor.to_owned()),
        };
        assert_eq!(found, [link("b.md", "c"), link("", "e")]);
    }
}
