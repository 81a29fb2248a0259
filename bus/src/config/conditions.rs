//! Reading the conditions of a rule: `when` and `unless`. A mistake says what to write instead.

use super::problem::{Problem, did_you_mean, hint};
use super::yaml::{Data, Node, Pair};
use crate::event::{Agent, ToolClass};
use crate::rule::{
    Condition, Directory, FileKey, HostMatch, PathGlob, PathMatch, ProgramMatch, ProgramMatches,
    REASONS, SOURCES, SizeMatch, TextMatch, ToolMatch, misspelled,
};
use crate::shell::CommandPattern;

/// The keys that are no fields of an event.
const KEYS: [&str; 12] = [
    "runs", "path", "reads", "writes", "deletes", "url", "tool", "agent", "session", "cwd", "mcp",
    "size",
];

/// The conditions in the mapping under `list`, which is `when` or `unless`.
pub(super) fn conditions(node: &Node, list: &str) -> Result<Vec<Condition>, Problem> {
    let Some(pairs) = node.pairs() else {
        let why = format!(
            "`{list}` maps what is looked at to what it must be; write `{list}: {{ runs: git push --force }}`"
        );
        return Err(Problem::broken_entry(node.line, why));
    };
    pairs.iter().map(condition).collect()
}

fn condition(pair: &Pair) -> Result<Condition, Problem> {
    let node = &pair.value;
    if let Some(key) = FileKey::ALL.into_iter().find(|key| key.as_str() == pair.key) {
        return any_of(pair, |node| path_match(node, written_or_resolved(key)))
            .map(|paths| Condition::File(key, paths));
    }
    Ok(match pair.key.as_str() {
        "runs" => Condition::Runs(ProgramMatches::new(any_of(pair, program_match)?)),
        "url" => Condition::Host(any_of(pair, host_match)?),
        "cwd" => Condition::Cwd(any_of(pair, |node| path_match(node, PlainText::Written))?),
        "tool" => Condition::Tool(any_of(pair, tool_match)?),
        "agent" => Condition::Agent(any_of(pair, agent)?),
        "session" => Condition::Session(any_of(pair, |node| text_match(node, PlainText::Glob))?),
        "model" => Condition::Model(any_of(pair, |node| text_match(node, PlainText::Written))?),
        "mcp" => mcp(node)?,
        "size" => Condition::Size(size(node)?),
        "secret" => Condition::Secret(any_of(pair, |node| text_match(node, PlainText::Glob))?),
        field => Condition::Field(
            known_field(field, pair)?.to_owned(),
            any_of(pair, |node| text_match(node, PlainText::Written))?,
        ),
    })
}

/// A field of an event. A word that is probably a misspelled one is a mistake.
fn known_field<'p>(field: &'p str, pair: &Pair) -> Result<&'p str, Problem> {
    let near = || KEYS.into_iter().find(|key| strsim::damerau_levenshtein(field, key) == 1);
    let meant = if field.contains('.') { None } else { misspelled(field).or_else(near) };
    match meant {
        None => Ok(field),
        Some(meant) => {
            let why = format!(
                "no agent sends a `{field}`; did you mean `{meant}`? (a tool's own field: `tool_input.{field}`)"
            );
            Err(Problem::broken_entry(pair.line, why))
        }
    }
}

/// One value or a list, which means any of them.
fn any_of<T>(pair: &Pair, read: impl Fn(&Node) -> Result<T, Problem>) -> Result<Vec<T>, Problem> {
    let missing = || {
        let key = &pair.key;
        let why = format!("`{key}` needs something to compare with; write `{key}: 'text'`");
        Problem::broken_entry(pair.line, why)
    };
    match &pair.value.data {
        Data::List(items) if items.is_empty() => Err(missing()),
        Data::List(items) => items.iter().map(read).collect(),
        Data::Scalar(_) if pair.value.is_null() => Err(missing()),
        Data::Scalar(_) | Data::Map(_) => Ok(vec![read(&pair.value)?]),
    }
}

/// What a plain text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainText {
    /// A regex that is searched in the text of a field, as it stands in the payload.
    Written,
    /// A regex that is searched in the resolved path.
    Resolved,
    /// All of the text, in which `*` stands for anything.
    Glob,
}

const fn written_or_resolved(key: FileKey) -> PlainText {
    match key {
        FileKey::Path => PlainText::Written,
        FileKey::Reads | FileKey::Writes | FileKey::Deletes => PlainText::Resolved,
    }
}

fn text_match(node: &Node, plain: PlainText) -> Result<TextMatch, Problem> {
    let broken = |why: String| Problem::broken_entry(node.line, why);
    if let Some(text) = node.text() {
        return match plain {
            PlainText::Written | PlainText::Resolved => TextMatch::regex(&text),
            PlainText::Glob => TextMatch::word("glob", &text),
        }
        .map_err(broken);
    }
    let Some(pairs) = node.pairs().filter(|pairs| !pairs.is_empty()) else {
        let words = TextMatch::WORDS.join(", ");
        return Err(broken(format!("write a text, or a mapping with one of: {words}")));
    };
    let read = |pair: &Pair| match pair.key.as_str() {
        "not" => any_of(pair, |node| text_match(node, plain)).map(TextMatch::Not),
        word => text_word(word, pair, &TextMatch::WORDS),
    };
    one_or(pairs.iter().map(read).collect::<Result<_, _>>()?, TextMatch::All)
        .ok_or_else(|| broken("write a text".into()))
}

/// `equals: text` and its like; a list of texts means any of them.
fn text_word(word: &str, pair: &Pair, known: &[&str]) -> Result<TextMatch, Problem> {
    if !TextMatch::WORDS.contains(&word) {
        return Err(unknown_word(pair, known));
    }
    let texts = any_of(pair, |node| {
        let text = node.text().ok_or_else(|| {
            Problem::broken_entry(pair.line, format!("`{word}` needs a text; write `{word}: text`"))
        })?;
        TextMatch::word(word, &text).map_err(|why| Problem::broken_entry(pair.line, why))
    })?;
    one_or(texts, TextMatch::Any).ok_or_else(|| unknown_word(pair, known))
}

/// The only one of `items`; more of them as `together`.
fn one_or<T>(mut items: Vec<T>, together: impl Fn(Vec<T>) -> T) -> Option<T> {
    match items.len() {
        0 | 1 => items.pop(),
        _ => Some(together(items)),
    }
}

fn unknown_word(pair: &Pair, known: &[&str]) -> Problem {
    let hint = hint(&pair.key, known.iter().copied(), "");
    let known = known.join(", ");
    let why = format!("`{}` compares nothing here{hint} (one of: {known})", pair.key);
    Problem::broken_entry(pair.line, why)
}

fn path_match(node: &Node, plain: PlainText) -> Result<PathMatch, Problem> {
    if node.text().is_some() {
        let text = text_match(node, plain)?;
        return Ok(match plain {
            PlainText::Written => PathMatch::Written(text),
            PlainText::Resolved | PlainText::Glob => PathMatch::Text(text),
        });
    }
    let known: Vec<&str> = PathMatch::WORDS.into_iter().chain(TextMatch::WORDS).collect();
    let Some(pairs) = node.pairs().filter(|pairs| !pairs.is_empty()) else {
        let why = format!("write a text, or a mapping with one of: {}", known.join(", "));
        return Err(Problem::broken_entry(node.line, why));
    };
    let read = |pair: &Pair| {
        let broken = |why: String| Problem::broken_entry(pair.line, why);
        Ok(match pair.key.as_str() {
            "under" => PathMatch::Under(directories(pair)?),
            "outside" => PathMatch::Outside(directories(pair)?),
            "above" => PathMatch::Above(directories(pair)?),
            "unknown" if pair.value.flag() == Some(true) => PathMatch::Unknown,
            "unknown" => return Err(broken("write `unknown: true`".into())),
            "not" => PathMatch::Not(any_of(pair, |node| path_match(node, PlainText::Resolved))?),
            "glob" => {
                let globs = any_of(pair, |node| {
                    let text = node.text().unwrap_or_default();
                    PathGlob::parse(&text).map(PathMatch::Glob).map_err(broken)
                })?;
                one_or(globs, PathMatch::Any).ok_or_else(|| broken("write a glob".into()))?
            }
            word => PathMatch::Text(text_word(word, pair, &known)?),
        })
    };
    let all: Vec<PathMatch> = pairs.iter().map(read).collect::<Result<_, Problem>>()?;
    one_or(all, PathMatch::All).ok_or_else(|| Problem::broken_entry(node.line, "write a path"))
}

fn directories(pair: &Pair) -> Result<Vec<Directory>, Problem> {
    any_of(pair, |node| {
        let text = node.text().unwrap_or_default();
        Directory::parse(&text).map_err(|why| Problem::broken_entry(pair.line, why))
    })
}

fn program_match(node: &Node) -> Result<ProgramMatch, Problem> {
    let broken = |why: String| Problem::broken_entry(node.line, why);
    if let Some(text) = node.text() {
        if text.split_whitespace().any(|word| word.starts_with('~')) {
            let why = "a command in `runs` has no `~`: it would never match; write the path as a condition, `runs: rm -rf` with `deletes: { under: ~ }`";
            return Err(broken(why.to_owned()));
        }
        return CommandPattern::parse(&text)
            .map(ProgramMatch::command)
            .map_err(|why| broken(why.to_string()));
    }
    let pairs = node.pairs().unwrap_or_default();
    let [pair] = pairs else {
        let why = "`runs` takes a command as you would type it, or `{opaque: true}`; write `runs: git push --force`";
        return Err(broken(why.to_owned()));
    };
    let word = pair.value.text().unwrap_or_default();
    match pair.key.as_str() {
        "opaque" if pair.value.flag() == Some(true) => Ok(ProgramMatch::Opaque(None)),
        "opaque" => named(&word, &REASONS, pair).map(|it| ProgramMatch::Opaque(Some(it))),
        "code_from" => named(&word, &SOURCES, pair).map(ProgramMatch::CodeFrom),
        _ => Err(unknown_word(pair, &["opaque", "code_from"])),
    }
}

fn named<T: Clone>(word: &str, known: &[(&str, T)], pair: &Pair) -> Result<T, Problem> {
    let found = known.iter().find(|(name, _)| *name == word).map(|(_, value)| value.clone());
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let hint = hint(word, names.iter().copied(), "");
        let why = format!("`{}` is one of: {}{hint}", pair.key, names.join(", "));
        Problem::broken_entry(pair.line, why)
    })
}

/// A host is compared as a whole: `example.org` is not `www.example.org`, which `*.example.org` is.
fn host_match(node: &Node) -> Result<HostMatch, Problem> {
    if node.text().is_some() {
        let written = Some(text_match(node, PlainText::Written)?);
        return Ok(HostMatch { written, ..HostMatch::default() });
    }
    let Some(pairs) = node.pairs().filter(|pairs| !pairs.is_empty()) else {
        let why = "`url` takes a regex, or a host; write `url: { host: '*.example.org' }`";
        return Err(Problem::broken_entry(node.line, why));
    };
    let mut read = HostMatch::default();
    for pair in pairs {
        let texts = || any_of(pair, |node| text_match(&lower_case(node), PlainText::Glob));
        match pair.key.as_str() {
            "host"
                if pair.value.texts().is_some_and(|it| it.iter().any(|it| it.contains("://"))) =>
            {
                let why = "a host has no scheme: it would never match; write `url: { host: example.org, scheme: https }`";
                return Err(Problem::broken_entry(pair.line, why));
            }
            "host" => read.host = texts()?,
            "scheme" => read.scheme = texts()?,
            "not" => read.not = any_of(pair, host_match)?,
            "unknown" if pair.value.flag() == Some(true) => read.unknown = true,
            "regex" | "contains" | "starts_with" | "equals" | "glob" | "ends_with" => {
                read.text.push(text_word(&pair.key, pair, &TextMatch::WORDS)?);
            }
            _ => return Err(unknown_word(pair, &["host", "scheme", "not", "regex", "contains"])),
        }
    }
    Ok(read)
}

fn lower_case(node: &Node) -> Node {
    match node.text() {
        Some(text) => Node { data: Data::Scalar(text.to_lowercase().into()), ..node.clone() },
        None => node.clone(),
    }
}

/// A tool class, or a comparison of the agent's own tool name.
fn tool_match(node: &Node) -> Result<ToolMatch, Problem> {
    let Some(text) = node.text() else {
        return text_match(node, PlainText::Written).map(ToolMatch::Name);
    };
    if let Some(class) = ToolClass::parse(&text) {
        return Ok(ToolMatch::Class(class));
    }
    let classes = || ToolClass::ALL.iter().map(|class| class.as_str());
    let hint = match did_you_mean(&text, classes()) {
        Some(class) => format!("; did you mean `{class}`?"),
        None => String::new(),
    };
    let known = classes().collect::<Vec<_>>().join(", ");
    let why = format!(
        "unknown tool class `{text}`{hint} (one of: {known}; an agent's own tool name: `{{equals: {text}}}`)"
    );
    Err(Problem::broken_entry(node.line, why))
}

fn agent(node: &Node) -> Result<Agent, Problem> {
    let text = node.text().unwrap_or_default();
    Agent::named(&text).ok_or_else(|| {
        Problem::broken_entry(
            node.line,
            format!("`{text}` is no name of an agent; write `agent: gemini`"),
        )
    })
}

fn mcp(node: &Node) -> Result<Condition, Problem> {
    let (mut server, mut tool) = (Vec::new(), Vec::new());
    let why = "`mcp` takes a server and a tool; write `mcp: { server: github, tool: 'delete_*' }`";
    let pairs = node.pairs().filter(|pairs| !pairs.is_empty());
    for pair in pairs.ok_or_else(|| Problem::broken_entry(node.line, why))? {
        let texts = any_of(pair, |node| text_match(node, PlainText::Glob))?;
        match pair.key.as_str() {
            "server" => server = texts,
            "tool" => tool = texts,
            _ => return Err(unknown_word(pair, &["server", "tool"])),
        }
    }
    Ok(Condition::Mcp(server, tool))
}

/// `{over: 64KiB}`, `{under: 1000}`.
fn size(node: &Node) -> Result<SizeMatch, Problem> {
    let why = "`size` is `{ over: 64KiB }` or `{ under: 1000 }`";
    let problem = || Problem::broken_entry(node.line, why);
    let [pair] = node.pairs().unwrap_or_default() else { return Err(problem()) };
    let bytes = pair.value.text().and_then(|text| bytes_in(&text)).ok_or_else(problem)?;
    match pair.key.as_str() {
        "over" => Ok(SizeMatch::Over(bytes)),
        "under" => Ok(SizeMatch::Under(bytes)),
        _ => Err(problem()),
    }
}

fn bytes_in(text: &str) -> Option<usize> {
    let digits =
        text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let unit: usize = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "k" | "kib" => 1 << 10,
        "mb" => 1_000_000,
        "m" | "mib" => 1 << 20,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests;
