//! From the text of a hooks file to [`HooksFile`], with a list of what is wrong with it.

use serde_json::{Map, Value};

use super::approval::Trust;
use super::entry::{self, EntrySource};
use super::event_key::EventKey;
use super::hook::{Action, Hook, Mode};
use super::hooks_file::{HooksFile, IsApproved};
use super::matcher::EntryTrust;
use super::nats::NatsSettings;
use super::observer::break_taken_names;
use super::problem::{Problem, did_you_mean};
use super::yaml::{self, Data, Node, Pair};
use crate::event::OnFailure;
use crate::files::sha256;
use crate::log::Durability;

const KEYS: [&str; 8] = [
    "trust",
    "hooks",
    "hooks_auto_accept",
    "nats",
    "on_failure",
    "log",
    "max_continuations",
    "plugins",
];

/// The keys that count in a project's file.
const PROJECT_KEYS: [&str; 2] = ["hooks", "plugins"];

/// A project's file is read before the user approved anything in it, so its size is limited.
pub(crate) const LARGEST_PROJECT_FILE: usize = 64 << 10;
const MOST_PROJECT_HOOKS: usize = 100;

/// Reads `text` into `file`, which is empty.
pub(super) fn parse(
    text: &str,
    file: HooksFile,
    is_approved: IsApproved<'_>,
) -> Result<HooksFile, Problem> {
    if file.project.is_some() && text.len() > LARGEST_PROJECT_FILE {
        let why = "a project's hooks file has 64 KiB at most; make it shorter";
        return Err(Problem::broken_file(1, why));
    }
    let mut parser = Parser { file, is_approved };
    let content = match yaml::parse(text)?.filter(|root| !root.is_null()) {
        Some(root) => parser.root(text, &root)?,
        None => text.to_owned(),
    };
    let mut file = parser.file;
    file.hash = sha256(content.as_bytes());
    file.content = content;
    file.problems.sort_by_key(|problem| problem.line);
    Ok(file)
}

struct Parser<'a> {
    file: HooksFile,
    is_approved: IsApproved<'a>,
}

impl Parser<'_> {
    /// Reads all settings; returns the content to record.
    fn root(&mut self, text: &str, root: &Node) -> Result<String, Problem> {
        let Some(pairs) = root.pairs() else {
            return Err(Problem::broken_file(
                root.line,
                "the file is a mapping; start it with `hooks:` and put event names under it",
            ));
        };
        for pair in pairs {
            self.setting(pair)?;
        }
        self.drop_duplicates();
        let problems = break_taken_names(&mut self.file.hooks);
        self.file.problems.extend(problems);
        if self.file.project.is_some() {
            self.apply_project_limits()?;
        }
        Ok(without_nats(text, pairs))
    }

    fn remark(&mut self, line: usize, message: impl Into<String>) {
        self.file.problems.push(Problem::remark(line, message));
    }

    fn setting(&mut self, pair: &Pair) -> Result<(), Problem> {
        let key = pair.key.as_str();
        let counts = self.file.project.is_none() || PROJECT_KEYS.contains(&key);
        if KEYS.contains(&key) && !counts {
            let why = format!("`{key}` counts in your own hookbus.yaml only, and is ignored here");
            self.remark(pair.line, why);
            return Ok(());
        }
        match key {
            "hooks" => self.hooks(&pair.value)?,
            "hooks_auto_accept" => self.file.auto_accept = pair.value.flag() == Some(true),
            "trust" => self.trust(pair),
            "nats" => {
                match NatsSettings::read(pair.value.to_json().as_object().unwrap_or(&Map::new())) {
                    Ok(nats) => self.file.nats = Some(nats),
                    Err(why) => {
                        let problem = Problem::broken_entry(pair.line, why.to_string());
                        self.file.problems.push(problem);
                    }
                }
            }
            "on_failure" => match pair.value.text().and_then(|text| OnFailure::parse(&text)) {
                Some(policy) => self.file.on_failure = policy,
                None => {
                    let why = "`on_failure` is `allow` or `block`";
                    return Err(Problem::broken_file(pair.line, why));
                }
            },
            "plugins" => self.plugin_lists(&pair.value),
            "log" => self.log_settings(&pair.value),
            "max_continuations" => match pair.value.number() {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked on the line below"
                )]
                Some(number) if (1.0..=1000.0).contains(&number) => {
                    self.file.max_continuations = number as u32;
                }
                Some(_) | None => {
                    self.remark(pair.line, "`max_continuations` is a number from 1 to 1000");
                }
            },
            other => {
                let message = match did_you_mean(other, KEYS) {
                    Some(key) => format!("`{other}` means nothing here; did you mean `{key}`?"),
                    None => format!("`{other}` means nothing here and is ignored"),
                };
                self.remark(pair.line, message);
            }
        }
        Ok(())
    }

    fn trust(&mut self, pair: &Pair) {
        self.file.trust = match pair.value.text().as_deref() {
            Some("home") => Trust::Home,
            Some("nobody") => Trust::Nobody,
            Some(_) | None => {
                self.remark(
                    pair.line,
                    "`trust` is `home` or `nobody`; this one counts as `nobody` until you correct it",
                );
                Trust::Nobody
            }
        };
    }

    /// The `plugins:` block, which is the same as in Hermes' own configuration.
    fn plugin_lists(&mut self, node: &Node) {
        for pair in node.pairs().unwrap_or_default() {
            let list = if pair.value.is_null() { Some(Vec::new()) } else { pair.value.texts() };
            match (pair.key.as_str(), list) {
                ("enabled", Some(list)) => self.file.plugins.enabled = list,
                ("disabled", Some(list)) => self.file.plugins.disabled = list,
                _ => self.remark(
                    pair.line,
                    "under `plugins` there are two lists of names: `enabled` and `disabled`",
                ),
            }
        }
    }

    fn log_settings(&mut self, node: &Node) {
        for pair in node.pairs().unwrap_or_default() {
            match (pair.key.as_str(), pair.value.text().as_deref()) {
                ("synchronous", Some("full")) => self.file.durability = Durability::PowerCut,
                ("synchronous", Some("normal")) => self.file.durability = Durability::ProcessDeath,
                _ => self.remark(
                    pair.line,
                    "under `log` there is `synchronous: full` (the default) or `synchronous: normal`",
                ),
            }
        }
    }

    /// The `hooks:` block, as a mapping or in the list form of Hermes' plugin guide.
    fn hooks(&mut self, node: &Node) -> Result<(), Problem> {
        match &node.data {
            _ if node.is_null() => {}
            Data::Map(pairs) => pairs.iter().for_each(|pair| self.event(pair)),
            Data::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.list_item(item, index + 1);
                }
            }
            Data::Scalar(_) => {
                return Err(Problem::broken_file(
                    node.line,
                    "`hooks` is a mapping from events to lists; write `hooks:`, then `  tool.before:`, then `    - …`",
                ));
            }
        }
        Ok(())
    }

    fn event(&mut self, pair: &Pair) {
        // Hermes has a setting of its own among the events.
        if pair.key == "output_spill" || pair.value.is_null() {
            return;
        }
        let on = match EventKey::parse(&pair.key) {
            Ok(on) => on,
            Err(why) => {
                let problem = Problem::broken_entry(pair.line, why.to_string());
                return self.file.problems.push(problem);
            }
        };
        match &pair.value.data {
            Data::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.entry(item, &on, index + 1);
                }
            }
            Data::Map(_) | Data::Scalar(_) => {
                let key = &pair.key;
                let why = format!(
                    "`{key}` needs a list of hooks; put `- ` before the first line of each"
                );
                // It is clear which hook was intended, so it counts as failed, not as absent.
                let source = self.source(&on, &pair.value);
                let intended = entry::read(&pair.value, &on, 1, &source, &mut Vec::new());
                let broken = |hook| Hook { action: Action::Broken(why.clone()), ..hook };
                self.file.hooks.extend(intended.map(broken));
                self.file.problems.push(Problem::broken_entry(pair.line, why));
            }
        }
    }

    fn list_item(&mut self, item: &Node, index: usize) {
        let event = item.pairs().and_then(|pairs| pairs.iter().find(|pair| pair.key == "event"));
        let Some(event) = event else {
            return self.file.problems.push(Problem::broken_entry(
                item.line,
                "in a list of hooks each one names its event; write `- event: pre_tool_call`",
            ));
        };
        match EventKey::parse(&event.value.text().unwrap_or_default()) {
            Ok(on) => self.entry(item, &on, index),
            Err(why) => {
                let problem = Problem::broken_entry(event.line, why.to_string());
                self.file.problems.push(problem);
            }
        }
    }

    fn entry(&mut self, item: &Node, on: &EventKey, index: usize) {
        let mut problems = Vec::new();
        let hook = entry::read(item, on, index, &self.source(on, item), &mut problems);
        self.file.hooks.extend(hook);
        self.file.problems.extend(problems);
    }

    fn source(&self, on: &EventKey, entry: &Node) -> EntrySource {
        let is_trusted =
            self.file.project.is_none() || (self.is_approved)(on, &entry.to_json().to_string());
        let trust = if is_trusted { EntryTrust::Trusted } else { EntryTrust::Untrusted };
        EntrySource { base: self.file.base.clone(), trust }
    }

    /// The same command on the same events counts once, as in Hermes, even with other timeouts.
    fn drop_duplicates(&mut self) {
        let mut unique: Vec<Hook> = Vec::new();
        for hook in std::mem::take(&mut self.file.hooks) {
            match unique.iter_mut().find(|known| known.is_same_command(&hook)) {
                Some(known) => {
                    // Of two failure policies the stricter one counts.
                    if hook.on_failure == Some(OnFailure::Block) {
                        known.on_failure = hook.on_failure;
                    }
                    self.remark(
                        hook.line,
                        "this hook repeats one above and counts once; remove it",
                    );
                }
                None => unique.push(hook),
            }
        }
        self.file.hooks = unique;
    }

    /// A project has a limited number of hooks, and no observers: those have a position and a process,
    /// which belong to the user.
    fn apply_project_limits(&mut self) -> Result<(), Problem> {
        if let Some(first) = self.file.hooks.get(MOST_PROJECT_HOOKS) {
            let why = "a project has a hundred hooks at most; this is one too many";
            return Err(Problem::broken_file(first.line, why));
        }
        for hook in &mut self.file.hooks {
            hook.of_project = true;
            if hook.mode == Mode::Observe {
                let why = "a project has no observers; put this one into your own hookbus.yaml";
                self.file.problems.push(Problem::broken_entry(hook.line, why));
                hook.action = Action::Broken(why.to_owned());
            }
        }
        Ok(())
    }
}

/// The file without its `nats:` part: the lines of that part are cut out. If what is left is not exactly the
/// rest of the file (flow style, merged mappings), the rest is written again as JSON, with known keys only.
fn without_nats(text: &str, pairs: &[Pair]) -> String {
    let Some(nats) = pairs.iter().find(|pair| pair.key == "nats") else { return text.to_owned() };
    let end =
        pairs.iter().map(|pair| pair.line).find(|line| *line > nats.line).unwrap_or(usize::MAX);
    let stays = |(index, _): &(usize, &str)| !(nats.line..end).contains(&(index + 1));
    let cut: String =
        text.split_inclusive('\n').enumerate().filter(stays).map(|(_, line)| line).collect();
    let rest: Map<String, Value> = pairs
        .iter()
        .filter(|pair| pair.key != "nats")
        .map(|pair| (pair.key.clone(), pair.value.to_json()))
        .collect();
    let left = yaml::parse(&cut).ok().map(|node| node.map_or(Value::Null, |node| node.to_json()));
    let is_the_rest = left.is_some_and(|left| {
        if left.is_null() { rest.is_empty() } else { left == Value::Object(rest.clone()) }
    });
    if is_the_rest && pairs.iter().all(|pair| KEYS.contains(&pair.key.as_str())) {
        return cut;
    }
    let known = rest.into_iter().filter(|(key, _)| KEYS.contains(&key.as_str()));
    Value::Object(known.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn credentials_that_a_merged_mapping_brings_in_are_not_recorded() {
        let text = "x: &a {nats: {url: nats://a, token: hush}}\n<<: *a\nhooks: {'*': [{rule: {context: x}}]}\n";
        let file = HooksFile::parse(text, Path::new("/")).expect("hooks");
        assert!(file.nats.is_some() && file.hooks.len() == 1);
        assert!(!file.content.contains("hush"), "{}", file.content);
    }

    #[test]
    fn credentials_are_not_part_of_the_recorded_content() {
        let block = "# mine\nnats:\n  url: nats://a\n  user: me\n  password: hush\nhooks:\n  '*':\n    - rule: {context: x}\n";
        let flow = "{nats: {url: nats://a, token: hush}, hooks: {'*': [{rule: {context: x}}]}}";
        let lines =
            "{nats: {url: nats://a,\n token: hush},\n hooks: {'*': [{rule: {context: x}}]}}";
        let last = "{hooks: {'*': [{rule: {context: x}}]},\nnats: {url: nats://a, token: hush}}";
        for text in [block, flow, lines, last] {
            let file = HooksFile::parse(text, Path::new("/")).expect("hooks");
            assert!(file.nats.is_some() && file.problems.is_empty(), "{:?}", file.problems);
            assert!(!file.content.contains("hush"), "{}", file.content);
            assert!(!format!("{file:?}").contains("hush"));
            let again = HooksFile::parse(&file.content, Path::new("/")).expect("hooks");
            assert_eq!((again.hash, again.hooks.len()), (file.hash, 1), "{}", file.content);
        }
    }
}
