//! `hookbus.yaml`, a person's own or a project's: from its text to the hooks in it, and a list of what is
//! wrong with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Map;
use sha2::{Digest, Sha256};

use super::code_files::Extent;
use super::consent::Consents;
use super::consent::Trust;
use super::entry;
use super::hook::{Action, Hook, OnFailure};
use super::host::{Lists, Meant, Shelf};
use super::problem::did_you_mean;
use super::yaml::{self, Data, Node, Pair};
use super::{EventKey, Problem};
use crate::log::Durability;
use crate::relay::NatsSettings;

/// How often an agent may be sent on by the answer to its "I am done", unless the file says.
const CONTINUATIONS: u32 = 8;

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

/// A hooks file, read.
#[derive(Debug, Clone)]
pub struct Hooks {
    /// The file, if it is a project's and not the person's own.
    pub project: Option<PathBuf>,
    /// Whether entries that nobody agreed to are left unread.
    pub(super) agreed_only: bool,
    /// SHA-256 of the content, in hex.
    pub hash: String,
    /// The text, less what concerns NATS: the log and everybody who reads it may know the hooks,
    /// but not how to log in.
    pub content: String,
    /// Where to publish.
    pub nats: Option<NatsSettings>,
    /// The directory that relative commands under a kind start from.
    pub(super) base: PathBuf,
    /// The hooks, in the order they are written.
    pub hooks: Vec<Hook>,
    /// What is wrong with the file, by line.
    pub problems: Vec<Problem>,
    /// What happens when the bus itself cannot do its work.
    pub on_failure: OnFailure,
    /// What an acknowledged append survives.
    pub durability: Durability,
    /// How many continuations in a row an agent is sent on.
    pub max_continuations: u32,
    /// Whose entries run without having been agreed to.
    pub trust: Trust,
    /// What was agreed to.
    pub consents: Arc<Consents>,
    /// Whether `hooks approve` asks.
    pub auto_accept: bool,
    /// Which plugins of a directory are loaded.
    pub(super) plugins: Lists,
    /// The processes of the plugins; they end with the last copy of these hooks.
    pub(super) shelf: Arc<Shelf>,
}

impl Hooks {
    /// No hooks at all.
    pub fn none(base: &Path) -> Self {
        Self {
            project: None,
            agreed_only: false,
            hash: hash_of(""),
            content: String::new(),
            nats: None,
            base: base.to_owned(),
            hooks: Vec::new(),
            problems: Vec::new(),
            on_failure: OnFailure::Allow,
            durability: Durability::default(),
            max_continuations: CONTINUATIONS,
            trust: Trust::Nobody,
            consents: Arc::new(Consents::beside(base)),
            auto_accept: false,
            plugins: Lists::default(),
            shelf: Arc::default(),
        }
    }

    /// Reads the text of a person's own file in `base`. Fails only where nothing of it can be used.
    pub fn parse(text: &str, base: &Path) -> Result<Self, Problem> {
        Self::none(base).read(text)
    }

    /// These hooks without a question of consent: whoever asks for a replay has agreed to what it runs.
    #[must_use]
    pub fn taken_at_their_word(self) -> Self {
        Self { trust: Trust::Home, ..self }
    }

    pub(super) fn read(self, text: &str) -> Result<Self, Problem> {
        self.fits_a_project(text)?;
        let mut hooks = self;
        let Some(root) = yaml::parse(text)?.filter(|root| !root.is_null()) else {
            hooks.call_it(text.to_owned());
            return Ok(hooks);
        };
        let Some(pairs) = root.pairs() else {
            return Err(Problem::broken_file(
                root.line,
                "the file is a mapping; start it with `hooks:` and put event names under it",
            ));
        };
        for pair in pairs {
            hooks.setting(pair)?;
        }
        hooks.call_it(without_nats(text, &root, pairs));
        hooks.drop_repeated();
        hooks.tell_observers_apart();
        if hooks.project.is_some() {
            hooks.as_a_project_may()?;
        }
        hooks.problems.sort_by_key(|problem| problem.line);
        Ok(hooks)
    }

    /// Which plugins are loaded, and where they print to.
    pub(super) fn meant(&self) -> Meant<'_> {
        let home = self.consents.file().parent().unwrap_or(&self.base);
        Meant { lists: &self.plugins, extent: Extent::of(self.project.is_some()), log_in: home }
    }

    fn call_it(&mut self, content: String) {
        self.hash = hash_of(&content);
        self.content = content;
    }

    fn setting(&mut self, pair: &Pair) -> Result<(), Problem> {
        let remark = |message: String| Problem::remark(pair.line, message);
        let key = pair.key.as_str();
        if KEYS.contains(&key) && !self.has_a_say_in(key) {
            let why = format!("`{key}` counts in your own hookbus.yaml only, and is ignored here");
            self.problems.push(remark(why));
            return Ok(());
        }
        match key {
            "hooks" => self.block(&pair.value)?,
            "hooks_auto_accept" => self.auto_accept = pair.value.flag() == Some(true),
            "trust" => match pair.value.text().as_deref() {
                Some("home") => self.trust = Trust::Home,
                Some("nobody") => self.trust = Trust::Nobody,
                Some(_) | None => {
                    self.trust = Trust::Nobody;
                    self.problems.push(remark(
                        "`trust` is `home` or `nobody`; this one is taken for `nobody` until you mend it".to_owned(),
                    ));
                }
            },
            "nats" => {
                match NatsSettings::read(pair.value.to_json().as_object().unwrap_or(&Map::new())) {
                    Ok(nats) => self.nats = Some(nats),
                    Err(why) => {
                        self.problems.push(Problem::broken_entry(pair.line, why.to_string()));
                    }
                }
            }
            "on_failure" => match pair.value.text().and_then(|text| OnFailure::parse(&text)) {
                Some(policy) => self.on_failure = policy,
                None => {
                    return Err(Problem::broken_file(
                        pair.line,
                        "`on_failure` is `allow` or `block`",
                    ));
                }
            },
            "plugins" => self.plugin_lists(&pair.value),
            "log" => self.log_settings(&pair.value),
            "max_continuations" => match pair.value.number() {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked on the line above"
                )]
                Some(number) if (1.0..=1000.0).contains(&number) => {
                    self.max_continuations = number as u32;
                }
                Some(_) | None => {
                    self.problems
                        .push(remark("`max_continuations` is a number from 1 to 1000".to_owned()));
                }
            },
            other => self.problems.push(remark(match did_you_mean(other, KEYS) {
                Some(near) => format!("`{other}` means nothing here; did you mean `{near}`?"),
                None => format!("`{other}` means nothing here and is ignored"),
            })),
        }
        Ok(())
    }

    /// As in Hermes' own configuration.
    fn plugin_lists(&mut self, node: &Node) {
        for pair in node.pairs().unwrap_or_default() {
            let list = if pair.value.is_null() { Some(Vec::new()) } else { pair.value.texts() };
            match (pair.key.as_str(), list) {
                ("enabled", Some(list)) => self.plugins.enabled = list,
                ("disabled", Some(list)) => self.plugins.disabled = list,
                _ => self.problems.push(Problem::remark(
                    pair.line,
                    "under `plugins` there are two lists of names: `enabled` and `disabled`",
                )),
            }
        }
    }

    fn log_settings(&mut self, node: &Node) {
        for pair in node.pairs().unwrap_or_default() {
            match (pair.key.as_str(), pair.value.text().as_deref()) {
                ("synchronous", Some("full")) => self.durability = Durability::PowerCut,
                ("synchronous", Some("normal")) => self.durability = Durability::ProcessDeath,
                _ => self.problems.push(Problem::remark(
                    pair.line,
                    "under `log` there is `synchronous: full` (the default) or `synchronous: normal`",
                )),
            }
        }
    }

    /// The `hooks:` block, in its mapping form or in the list form of Hermes' plugin guide.
    fn block(&mut self, node: &Node) -> Result<(), Problem> {
        match &node.data {
            _ if node.is_null() => Ok(()),
            Data::Map(pairs) => {
                for pair in pairs {
                    self.event(pair);
                }
                Ok(())
            }
            Data::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.list_item(item, index + 1);
                }
                Ok(())
            }
            Data::Scalar(_) => Err(Problem::broken_file(
                node.line,
                "`hooks` is a mapping from events to lists; write `hooks:`, then `  tool.before:`, then `    - …`",
            )),
        }
    }

    fn event(&mut self, pair: &Pair) {
        // Hermes keeps a setting of its own between the events.
        if pair.key == "output_spill" || pair.value.is_null() {
            return;
        }
        let on = match EventKey::parse(&pair.key) {
            Ok(on) => on,
            Err(why) => return self.problems.push(Problem::broken_entry(pair.line, why)),
        };
        match &pair.value.data {
            Data::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let mut problems = Vec::new();
                    let hook =
                        entry::read(item, &on, index + 1, self.reading(&on, item), &mut problems);
                    self.hooks.extend(hook);
                    self.problems.extend(problems);
                }
            }
            Data::Map(_) | Data::Scalar(_) => {
                let key = &pair.key;
                let why = format!(
                    "`{key}` needs a list of hooks; put `- ` before the first line of each"
                );
                // What it was meant to be can be seen, so that it counts as failed, not as absent.
                let reading = self.reading(&on, &pair.value);
                let meant = entry::read(&pair.value, &on, 1, reading, &mut Vec::new());
                self.hooks
                    .extend(meant.map(|hook| Hook { action: Action::Broken(why.clone()), ..hook }));
                self.problems.push(Problem::broken_entry(pair.line, why));
            }
        }
    }

    fn list_item(&mut self, item: &Node, index: usize) {
        let event = item.pairs().and_then(|pairs| pairs.iter().find(|pair| pair.key == "event"));
        let Some(event) = event else {
            return self.problems.push(Problem::broken_entry(
                item.line,
                "in a list of hooks each one names its event; write `- event: pre_tool_call`",
            ));
        };
        match EventKey::parse(&event.value.text().unwrap_or_default()) {
            Ok(on) => {
                let mut problems = Vec::new();
                let hook = entry::read(item, &on, index, self.reading(&on, item), &mut problems);
                self.hooks.extend(hook);
                self.problems.extend(problems);
            }
            Err(why) => self.problems.push(Problem::broken_entry(event.line, why)),
        }
    }

    /// The same command on the same events counts once, as in Hermes, even with other time-outs.
    fn drop_repeated(&mut self) {
        let mut kept: Vec<Hook> = Vec::new();
        for hook in self.hooks.drain(..) {
            match kept.iter_mut().find(|known| known.is_same_command(&hook)) {
                Some(known) => {
                    // Of two failure policies the stricter one holds.
                    if hook.on_failure == Some(OnFailure::Block) {
                        known.on_failure = hook.on_failure;
                    }
                    self.problems.push(Problem::remark(
                        hook.line,
                        "the same hook stands above already and counts once; remove this one",
                    ));
                }
                None => kept.push(hook),
            }
        }
        self.hooks = kept;
    }
}

/// The file without its `nats:` part: cut out by lines, or written anew where it shares a line.
fn without_nats(text: &str, root: &Node, pairs: &[Pair]) -> String {
    let Some(nats) = pairs.iter().find(|pair| pair.key == "nats") else { return text.to_owned() };
    if pairs.iter().filter(|pair| pair.line == nats.line).count() > 1 {
        let mut rest = root.to_json();
        rest.as_object_mut().map(|fields| fields.remove("nats"));
        return rest.to_string();
    }
    let end =
        pairs.iter().map(|pair| pair.line).find(|line| *line > nats.line).unwrap_or(usize::MAX);
    let kept = |(index, _): &(usize, &str)| !(nats.line..end).contains(&(index + 1));
    text.split_inclusive('\n').enumerate().filter(kept).map(|(_, line)| line).collect()
}

/// The hash that names a version of the hooks.
fn hash_of(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_to_log_in_is_not_part_of_the_hooks() {
        let block = "# mine\nnats:\n  url: nats://a\n  user: me\n  password: hush\nhooks:\n  '*':\n    - rule: {context: x}\n";
        let flow = "{nats: {url: nats://a, token: hush}, hooks: {'*': [{rule: {context: x}}]}}";
        for text in [block, flow] {
            let hooks = Hooks::parse(text, Path::new("/")).expect("hooks");
            assert!(hooks.nats.is_some() && hooks.problems.is_empty(), "{:?}", hooks.problems);
            assert!(!hooks.content.contains("hush"), "{}", hooks.content);
            assert!(!format!("{hooks:?}").contains("hush"));
            let again = Hooks::parse(&hooks.content, Path::new("/")).expect("hooks");
            assert_eq!((again.hash, again.hooks.len()), (hooks.hash, 1), "{}", hooks.content);
        }
    }
}
