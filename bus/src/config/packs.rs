//! Packs: rules that ship with the binary, and that `use: [starter]` puts in force. The log records the text of the packs
//! together with the file. A replay reads that recorded text, so it asks the rules that were in force when the event
//! happened, also after an update of hookbus.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::problem::{Problem, hint};
use super::rule::ANSWERS;
use super::yaml::{self, Data, Node, Pair};

/// Every pack, in the order in which their rules are asked.
pub const PACKS: [(&str, &str); 7] = [
    ("shell", include_str!("../../packs/shell.yaml")),
    ("git", include_str!("../../packs/git.yaml")),
    ("remote-code", include_str!("../../packs/remote-code.yaml")),
    ("secrets", include_str!("../../packs/secrets.yaml")),
    ("outside", include_str!("../../packs/outside.yaml")),
    ("cloud", include_str!("../../packs/cloud.yaml")),
    // Last: `rm -rf ~` also deletes hookbus' own files, and Hermes shows the reason of the first rule that blocks. The one of
    // `shell` fits better.
    ("self", include_str!("../../packs/self.yaml")),
];

/// Stands for all of them.
const STARTER: &str = "starter";

/// The keys that `change:` can set in a rule of a pack, besides its answer.
const CHANGES: [&str; 5] = ["mode", "unless", "agent", "session", "on_failure"];

/// A pack that a file uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsedPack {
    pub(super) name: String,
    /// The line of its name in the file.
    pub(super) line: usize,
    /// Whether its rules only say what they would do.
    pub(super) shadow: bool,
}

/// Reads `use:`, a list of names or of `{pack: name, shadow: true}`. What is wrong comes beside what can be used.
pub(super) fn used_packs(node: &Node, recorded: Option<&Node>) -> (Vec<UsedPack>, Vec<Problem>) {
    let (mut used, mut problems): (Vec<UsedPack>, Vec<Problem>) = (Vec::new(), Vec::new());
    let items = match &node.data {
        Data::List(items) => items.as_slice(),
        Data::Scalar(_) if node.is_null() => &[],
        Data::Scalar(_) | Data::Map(_) => std::slice::from_ref(node),
    };
    for item in items {
        match used_pack(item, recorded) {
            Ok((name, shadow)) => {
                for name in expand(&name, recorded) {
                    // The same pack again, by its own name: what is said there counts.
                    used.retain(|known| known.name != name);
                    used.push(UsedPack { name: name.to_owned(), line: item.line, shadow });
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        // It was meant to say something: the strict reading is the safe one, if there is no earlier version.
        let missing = known_packs(recorded)
            .into_iter()
            .filter(|name| !used.iter().any(|it| it.name == *name));
        let missing: Vec<UsedPack> = missing
            .map(|name| UsedPack { name: name.to_owned(), line: node.line, shadow: false })
            .collect();
        used.extend(missing);
    }
    let order = known_packs(recorded);
    used.sort_by_key(|it| order.iter().position(|name| *name == it.name));
    (used, problems)
}

fn expand<'a>(name: &'a str, recorded: Option<&'a Node>) -> Vec<&'a str> {
    if name == STARTER { known_packs(recorded) } else { vec![name] }
}

/// The packs that there are: those in a recorded content, else ours.
fn known_packs(recorded: Option<&Node>) -> Vec<&str> {
    match recorded.and_then(Node::pairs) {
        Some(pairs) => pairs.iter().map(|pair| pair.key.as_str()).collect(),
        None => PACKS.iter().map(|(name, _)| *name).collect(),
    }
}

fn used_pack(item: &Node, recorded: Option<&Node>) -> Result<(String, bool), Problem> {
    let names = || known_packs(recorded).into_iter().chain([STARTER]);
    let shape =
        "`use` lists packs; write `use: [starter]` or `use: [git, { pack: cloud, shadow: true }]`";
    let broken = |line: usize| Problem::broken_entry(line, shape);
    let (name, shadow) = match item.pairs() {
        None => (item.text().ok_or_else(|| broken(item.line))?, false),
        Some(pairs) => {
            let get = |key: &str| pairs.iter().find(|pair| pair.key == key);
            let name = get("pack").and_then(|pair| pair.value.text());
            let shadow = match get("shadow") {
                None => false,
                Some(pair) => pair.value.flag().ok_or_else(|| broken(pair.line))?,
            };
            if let Some(pair) =
                pairs.iter().find(|it| !["pack", "shadow"].contains(&it.key.as_str()))
            {
                return Err(broken(pair.line));
            }
            (name.ok_or_else(|| broken(item.line))?, shadow)
        }
    };
    if names().any(|known| known == name) {
        return Ok((name, shadow));
    }
    let known = names().collect::<Vec<_>>().join(", ");
    let why = format!("there is no pack `{name}`{} (one of: {known})", hint(&name, names(), ""));
    Err(Problem::broken_entry(item.line, why))
}

/// The text of a pack: as `recorded` in the content of a file, else ours.
pub(super) fn text_of<'a>(name: &str, recorded: Option<&'a Node>) -> Option<Cow<'a, str>> {
    match recorded.and_then(Node::pairs) {
        Some(pairs) => pairs.iter().find(|pair| pair.key == name)?.value.text().map(Into::into),
        None => PACKS.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).into()),
    }
}

/// The entries of a pack, with the event key that each is under.
pub(super) fn entries(text: &str) -> Result<Vec<(String, Node)>, Problem> {
    let root = yaml::parse(text)?;
    let hooks =
        root.as_ref().and_then(Node::pairs).into_iter().flatten().find(|it| it.key == "hooks");
    let events = hooks.and_then(|hooks| hooks.value.pairs()).unwrap_or_default();
    let entries = events.iter().flat_map(|event| match &event.value.data {
        Data::List(items) => items.iter().map(|item| (event.key.clone(), item.clone())).collect(),
        Data::Scalar(_) | Data::Map(_) => Vec::new(),
    });
    Ok(entries.collect())
}

/// The name of an entry.
pub(super) fn name_of(entry: &Node) -> Option<String> {
    get(entry, "name")?.text()
}

fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.pairs()?.iter().find(|pair| pair.key == key).map(|pair| &pair.value)
}

/// What `change:` says about one rule of a pack.
pub(super) enum Change {
    /// It is switched off.
    Off,
    /// It is the entry with these pairs changed.
    To(Node),
}

/// The entry as `change` wants it.
pub(super) fn changed(entry: &Node, change: &Pair) -> Result<Change, Problem> {
    if change.value.flag() == Some(false) {
        return Ok(Change::Off);
    }
    let shape = format!(
        "`{}` is `off`, or a mapping with one of: {}, block, ask; write `{}: off`",
        change.key,
        CHANGES.join(", "),
        change.key
    );
    let Some(pairs) = change.value.pairs().filter(|pairs| !pairs.is_empty()) else {
        return Err(Problem::broken_entry(change.line, shape));
    };
    let (mut entry, mut has_answer) = (entry.clone(), false);
    for pair in pairs {
        match pair.key.as_str() {
            "unless" if pair.value.pairs().is_none() => {
                return Err(Problem::broken_entry(pair.line, shape));
            }
            "unless" => add_unless(&mut entry, pair),
            "block" | "ask" if !std::mem::replace(&mut has_answer, true) => {
                set_answer(&mut entry, pair);
            }
            key if CHANGES.contains(&key) => set(&mut entry, pair.clone()),
            _ => return Err(Problem::broken_entry(pair.line, shape)),
        }
    }
    Ok(Change::To(entry))
}

/// Sets a pair of a mapping, in place of the one with its key.
pub(super) fn set(node: &mut Node, pair: Pair) {
    let Data::Map(pairs) = &mut node.data else { return };
    match pairs.iter_mut().find(|known| known.key == pair.key) {
        Some(known) => *known = pair,
        None => pairs.push(pair),
    }
}

fn rule_of(entry: &mut Node) -> Option<&mut Node> {
    let Data::Map(pairs) = &mut entry.data else { return None };
    pairs.iter_mut().find(|pair| pair.key == "rule").map(|pair| &mut pair.value)
}

fn set_answer(entry: &mut Node, answer: &Pair) {
    let Some(rule) = rule_of(entry) else { return };
    if let Data::Map(pairs) = &mut rule.data {
        // Examples that expect the old answer would be wrong now.
        pairs.retain(|pair| !ANSWERS.contains(&pair.key.as_str()) && pair.key != "examples");
    }
    set(rule, answer.clone());
}

/// Adds exemptions to those of the rule: a list means any of them.
fn add_unless(entry: &mut Node, unless: &Pair) {
    let Some(rule) = rule_of(entry) else { return };
    let Data::Map(pairs) = &mut rule.data else { return };
    pairs.retain(|pair| pair.key != "examples");
    let Some(own) = pairs.iter_mut().find(|pair| pair.key == "unless") else {
        return pairs.push(unless.clone());
    };
    for pair in unless.value.pairs().unwrap_or_default() {
        let known = get(&own.value, &pair.key).cloned();
        let items = |node: Node| match node.data {
            Data::List(items) => items,
            Data::Scalar(_) | Data::Map(_) => vec![node],
        };
        let both: Vec<Node> =
            known.into_iter().chain([pair.value.clone()]).flat_map(items).collect();
        let value = Node { line: pair.line, data: Data::List(both) };
        set(&mut own.value, Pair { value, ..pair.clone() });
    }
}

/// `content`, which records no packs yet, with the texts of the packs that it uses, so that it means the same to every
/// later version.
pub(super) fn with_packs(content: String, packs: &[(String, String)]) -> String {
    if packs.is_empty() {
        return content;
    }
    let texts: Map<String, Value> =
        packs.iter().map(|(name, text)| (name.clone(), Value::String(text.clone()))).collect();
    let texts = Value::Object(texts);
    let first =
        content.lines().map(str::trim_start).find(|it| !it.is_empty() && !it.starts_with('#'));
    // A mapping in block style can be continued by another key.
    if first.is_some_and(|line| line.starts_with(|letter: char| letter.is_ascii_alphanumeric())) {
        return format!("{}\npacks: {texts}\n", content.trim_end_matches('\n'));
    }
    match yaml::parse(&content).ok().flatten().map(|root| root.to_json()) {
        Some(Value::Object(mut all)) => {
            all.insert("packs".to_owned(), texts);
            Value::Object(all).to_string()
        }
        _ => content,
    }
}
