//! From the text of a hooks file to [`HooksFile`], with a list of what is wrong with it.

mod use_packs;

use serde_json::{Map, Value};

use super::approval::Trust;
use super::daemon::{self, DaemonMode};
use super::entry::{self, EntrySource};
use super::event_key::EventKey;
use super::examples::run_examples;
use super::hook::{Action, Hook, Mode};
use super::hooks_file::{HooksFile, IsApproved};
use super::matcher::EntryTrust;
use super::nats::NatsSettings;
use super::observer::break_taken_names;
use super::packs;
use super::problem::{Place, Problem, did_you_mean, hint};
use super::recorded_settings::recorded_settings;
use super::recording;
use super::redaction;
use super::retention::{self, Retention};
use super::yaml::{self, Data, Node, Pair};
use crate::event::{BusIdentity, OnFailure};
use crate::files::sha256;
use crate::log::Durability;

const KEYS: [&str; 17] = [
    "name",
    "use",
    "change",
    "packs",
    "trust",
    "hooks",
    "hooks_auto_accept",
    "nats",
    "daemon",
    "on_failure",
    "log",
    "max_continuations",
    "redact",
    "retain",
    "record",
    "plugins",
    "shadow",
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
    match yaml::parse(text)?.filter(|root| !root.is_null()) {
        Some(root) => {
            let file = parse_tree(&root, file, is_approved)?;
            let pairs = root.pairs().unwrap_or_default();
            Ok(with_content(file, without_nats(text, pairs)))
        }
        None => Ok(with_content(file, text.to_owned())),
    }
}

/// Whether a text says nothing about hooks that is meant to be said: it is empty, has comments only, or ends where its
/// hooks should begin. `hooks: {}` says that there are none.
pub(crate) fn is_blank(text: &str) -> bool {
    let Ok(root) = yaml::parse(text) else { return false };
    let is_unfinished = |hooks: &Node| match &hooks.data {
        Data::Map(events) => !events.is_empty() && events.iter().all(|it| it.value.is_null()),
        Data::Scalar(_) | Data::List(_) => hooks.is_null(),
    };
    root.is_none_or(|root| {
        let uses = root.pairs().and_then(|pairs| pairs.iter().find(|pair| pair.key == "use"));
        if uses.is_some_and(|uses| !uses.value.is_null()) {
            return false;
        }
        let hooks = root.pairs().and_then(|pairs| pairs.iter().find(|pair| pair.key == "hooks"));
        root.is_null() || hooks.is_some_and(|hooks| is_unfinished(&hooks.value))
    })
}

/// Reads the document `root` into `file`, which is empty. The caller sets the content.
pub(super) fn parse_tree(
    root: &Node,
    file: HooksFile,
    is_approved: IsApproved<'_>,
) -> Result<HooksFile, Problem> {
    let mut parser = Parser { file, is_approved };
    parser.root(root)?;
    parser.file.problems.sort_by_key(|problem| problem.line);
    Ok(parser.file)
}

/// The file with this content, which the log records.
pub(super) fn with_content(file: HooksFile, content: String) -> HooksFile {
    let content = packs::with_packs(content, &file.packs);
    HooksFile { hash: sha256(content.as_bytes()), content, ..file }
}

struct Parser<'a> {
    file: HooksFile,
    is_approved: IsApproved<'a>,
}

impl Parser<'_> {
    /// Reads all settings.
    fn root(&mut self, root: &Node) -> Result<(), Problem> {
        let Some(pairs) = root.pairs() else {
            return Err(Problem::broken_file(
                root.line,
                "the file is a mapping; start it with `hooks:` and put event names under it",
            ));
        };
        let has = |key: &str| pairs.iter().any(|pair| pair.key == key && !pair.value.is_null());
        for pair in pairs {
            if is_known(&pair.key) {
                self.setting(pair)?;
            } else {
                self.unknown_setting(pair, &has)?;
            }
        }
        self.use_packs(pairs);
        if self.file.shadow {
            // Not while the entries are read: the setting may stand behind them.
            let hooks = self.file.hooks.iter_mut().filter(|hook| !hook.names_mode());
            hooks.for_each(Hook::put_in_shadow);
        }
        self.drop_duplicates();
        self.run_examples();
        let problems = break_taken_names(&mut self.file.hooks);
        self.file.problems.extend(problems);
        if self.file.project.is_some() {
            self.apply_project_limits()?;
        }
        self.file.settings = recorded_settings(pairs, &KEYS);
        Ok(())
    }

    /// Runs the examples of the file's own rules. Those of the packs are run by our tests.
    fn run_examples(&mut self) {
        let own = self.file.hooks.iter().filter(|hook| hook.pack.is_none());
        let missed = own.flat_map(|hook| {
            let results = run_examples(hook).into_iter();
            results.filter_map(move |it| Some((hook, it.line, it.expected, it.text, it.missed?)))
        });
        let problems: Vec<Problem> = missed
            .map(|(hook, line, expected, text, why)| {
                let text: String = text.chars().take(80).collect();
                let why = format!("the example `{text}` should {}, but {why}", verb(&expected));
                Problem::missed_example(line, why).about(&hook.name, hook.place.clone())
            })
            .collect();
        self.file.problems.extend(problems);
    }

    fn remark(&mut self, line: usize, message: impl Into<String>) {
        self.file.problems.push(Problem::remark(line, message));
    }

    /// A setting that cannot be used as it is written.
    fn mistake(&mut self, pair: &Pair, setting: &str, why: impl Into<String>) {
        let problem = Problem::broken_entry(pair.line, why);
        self.file.problems.push(problem.about(&pair.key, Place::Setting(setting.to_owned())));
    }

    /// A mistake inside of a block.
    fn mistake_in(&mut self, block: &Pair, pair: &Pair, why: &str) {
        let problem = Problem::broken_entry(pair.line, why);
        self.file.problems.push(problem.about(&block.key, Place::Setting(block.key.clone())));
    }

    /// A key that is no setting: a mistake, and without any `hooks` beside it a broken file, because the hooks
    /// are probably under it.
    fn unknown_setting(&mut self, pair: &Pair, has: &dyn Fn(&str) -> bool) -> Result<(), Problem> {
        let key = pair.key.as_str();
        let is_event = EventKey::parse(key).is_ok();
        let why = if is_event {
            format!(
                "`{key}` is an event; put it under `hooks:`, with two more spaces before each line"
            )
        } else {
            let otherwise = "; remove it, or call it `x-…` if you only refer to it";
            format!("`{key}` means nothing here{}", hint(key, KEYS, otherwise))
        };
        if !has("hooks") {
            return Err(Problem::broken_file(pair.line, why));
        }
        if is_event {
            let problem = Problem::broken_entry(pair.line, why);
            self.file.problems.push(problem.about(key, Place::Event(key.to_owned())));
            return Ok(());
        }
        let meant = meant_setting(key);
        if meant == "on_failure" && !has(meant) {
            // It was meant to say something: the strict reading is the safe one.
            self.file.on_failure = OnFailure::Block;
        }
        if meant == "daemon" && !has(meant) && self.file.project.is_none() {
            // A daemon in the wrong place would take the home from the right one.
            self.file.daemon.mode = DaemonMode::Running;
        }
        self.mistake(pair, meant, why);
        Ok(())
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
            "hooks_auto_accept" => match pair.value.flag() {
                Some(flag) => self.file.auto_accept = flag,
                None if pair.value.is_null() => {}
                None => self.mistake(pair, key, "`hooks_auto_accept` is `true` or `false`"),
            },
            "shadow" => self.shadow(pair),
            "trust" => self.trust(pair),
            "nats" => {
                match NatsSettings::read(pair.value.to_json().as_object().unwrap_or(&Map::new())) {
                    Ok(nats) => self.file.nats = Some(nats),
                    Err(why) => self.mistake(pair, key, why.to_string()),
                }
            }
            "daemon" => {
                let (settings, wrong) = daemon::read(&pair.value, pair.line);
                self.file.daemon = settings;
                for (line, why) in wrong {
                    self.remark(line, why);
                }
            }
            "on_failure" => match pair.value.text().and_then(|text| OnFailure::parse(&text)) {
                Some(policy) => self.file.on_failure = policy,
                None => {
                    self.file.on_failure = OnFailure::Block;
                    let why = "`on_failure` is `allow` or `block`; without an earlier value it counts as `block`";
                    self.mistake(pair, key, why);
                }
            },
            "name" => self.name(pair),
            "record" => self.recording(pair),
            "redact" => self.redaction(pair),
            "retain" => self.retention(pair),
            "plugins" => self.plugin_lists(pair),
            "log" => self.log_settings(pair),
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
                    self.mistake(pair, key, "`max_continuations` is a number from 1 to 1000");
                }
            },
            // Keys that begin with `x-` are the user's own: mappings that others are merged from.
            _ => {}
        }
        Ok(())
    }

    fn name(&mut self, pair: &Pair) {
        let name = pair.value.text().unwrap_or_default();
        match BusIdentity::refuse_name(&name) {
            None => self.file.name = Some(name),
            Some(why) => self.mistake(pair, "name", why),
        }
    }

    fn recording(&mut self, pair: &Pair) {
        match recording::read(&pair.value, pair.line) {
            Ok(recording) => self.file.recording = recording,
            Err((line, why)) => {
                let why = format!("{why}; without an earlier value everything is recorded");
                let problem = Problem::broken_entry(line, why);
                let place = Place::Setting(pair.key.clone());
                self.file.problems.push(problem.about(&pair.key, place));
            }
        }
    }

    fn redaction(&mut self, pair: &Pair) {
        match redaction::read(&pair.value, pair.line) {
            Ok(redaction) => self.file.redaction = redaction,
            Err((line, why)) => {
                let why = format!("{why}; without an earlier value the built-in detectors count");
                let problem = Problem::broken_entry(line, why);
                let place = Place::Setting(pair.key.clone());
                self.file.problems.push(problem.about(&pair.key, place));
            }
        }
    }

    fn retention(&mut self, pair: &Pair) {
        self.file.retention = match retention::read(&pair.value, pair.line) {
            Ok(rules) => Retention::Rules(rules),
            Err((line, why)) => {
                let why = format!("{why}; until then nothing is removed");
                let problem = Problem::broken_entry(line, why.clone());
                let place = Place::Setting(pair.key.clone());
                self.file.problems.push(problem.about(&pair.key, place));
                Retention::Broken { line, why }
            }
        };
    }

    fn shadow(&mut self, pair: &Pair) {
        let flag = pair.value.flag();
        if flag.is_none() {
            let why =
                "`shadow` is `true` or `false`; without an earlier value it counts as `false`";
            self.mistake(pair, "shadow", why);
        }
        self.file.shadow = flag.unwrap_or(false);
    }

    fn trust(&mut self, pair: &Pair) {
        self.file.trust = match pair.value.text().as_deref() {
            Some("home") => Trust::Home,
            Some("nobody") => Trust::Nobody,
            Some(_) | None => {
                self.mistake(
                    pair,
                    "trust",
                    "`trust` is `home` or `nobody`; without an earlier value it counts as `nobody`",
                );
                Trust::Nobody
            }
        };
    }

    /// The `plugins:` block, which is the same as in Hermes' own configuration.
    fn plugin_lists(&mut self, block: &Pair) {
        let why = "under `plugins` there are two lists of names; write `plugins: { enabled: [x], disabled: [] }`";
        let Some(pairs) = self.block(block, why) else { return };
        for pair in pairs {
            let list = if pair.value.is_null() { Some(Vec::new()) } else { pair.value.texts() };
            match (pair.key.as_str(), list) {
                ("enabled", Some(list)) => self.file.plugins.enabled = list,
                ("disabled", Some(list)) => self.file.plugins.disabled = list,
                _ => self.mistake_in(block, pair, why),
            }
        }
    }

    fn log_settings(&mut self, block: &Pair) {
        let why = "under `log` there is one setting; write `log: { synchronous: full }` (the default) or `log: { synchronous: normal }`";
        let Some(pairs) = self.block(block, why) else { return };
        for pair in pairs {
            match (pair.key.as_str(), pair.value.text().as_deref()) {
                ("synchronous", Some("full")) => self.file.durability = Durability::PowerCut,
                ("synchronous", Some("normal")) => self.file.durability = Durability::ProcessDeath,
                _ => self.mistake_in(block, pair, why),
            }
        }
    }

    /// The settings in a block; none if it is empty or, which is a mistake, no mapping.
    fn block<'n>(&mut self, block: &'n Pair, why: &str) -> Option<&'n [Pair]> {
        let pairs = block.value.pairs();
        if pairs.is_none() && !block.value.is_null() {
            self.mistake(block, &block.key, why);
        }
        pairs
    }

    /// The `hooks:` block, as a mapping or in the list form of Hermes' plugin guide.
    fn hooks(&mut self, node: &Node) -> Result<(), Problem> {
        match &node.data {
            _ if node.is_null() => {}
            Data::Map(pairs) => pairs.iter().for_each(|pair| self.event(pair)),
            Data::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.list_item(item, Place::Entry { event: None, index });
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
        let place = Place::Event(pair.key.clone());
        let on = match EventKey::parse(&pair.key) {
            Ok(on) => on,
            Err(why) => {
                let problem = Problem::broken_entry(pair.line, why.to_string());
                return self.file.problems.push(problem.about(&pair.key, place));
            }
        };
        match &pair.value.data {
            Data::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let event = Some(pair.key.clone());
                    self.entry(item, &on, &Place::Entry { event, index });
                }
            }
            Data::Map(_) | Data::Scalar(_) => {
                let key = &pair.key;
                let why = format!(
                    "`{key}` needs a list of hooks; put `- ` before the first line of each"
                );
                // It is clear which hook was intended, so it counts as failed, not as absent.
                let source = self.source(&on, &pair.value);
                let intended = entry::read(&pair.value, &on, &place, &source, &mut Vec::new());
                // Of a hook that is not approved nothing but its approval counts.
                let broken = |hook: Hook| {
                    let is_unread = matches!(hook.action, Action::Unapproved { .. });
                    let broken = Action::Broken(why.clone());
                    Hook { action: if is_unread { hook.action } else { broken }, ..hook }
                };
                self.file.hooks.extend(intended.map(broken));
                let problem = Problem::broken_entry(pair.line, why);
                self.file.problems.push(problem.about(key, place));
            }
        }
    }

    fn list_item(&mut self, item: &Node, place: Place) {
        let event = item.pairs().and_then(|pairs| pairs.iter().find(|pair| pair.key == "event"));
        let (line, why) = match event.map(|event| (event, event.value.text().unwrap_or_default())) {
            None => (
                item.line,
                "in a list of hooks each one names its event; write `- event: pre_tool_call`"
                    .to_owned(),
            ),
            Some((event, text)) => match EventKey::parse(&text) {
                Ok(on) => return self.entry(item, &on, &place),
                Err(why) => (event.line, why.to_string()),
            },
        };
        let about = format!("hook {}", place.number());
        self.file.problems.push(Problem::broken_entry(line, why).about(&about, place));
    }

    fn entry(&mut self, item: &Node, on: &EventKey, place: &Place) {
        let mut problems = Vec::new();
        let hook = entry::read(item, on, place, &self.source(on, item), &mut problems);
        let number = place.number();
        let name = hook.as_ref().map_or_else(|| format!("{on}#{number}"), |hook| hook.name.clone());
        self.file.hooks.extend(hook);
        let problems = problems.into_iter().map(|problem| problem.about(&name, place.clone()));
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
                    known.on_failure = OnFailure::stricter(known.on_failure, hook.on_failure);
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
        if let Some(first) = self.file.problems.get(MOST_PROJECT_HOOKS) {
            let why = "a project's file has a hundred mistakes at most; correct some of them";
            return Err(Problem::broken_file(first.line, why));
        }
        for hook in &mut self.file.hooks {
            hook.of_project = true;
            if hook.mode == Mode::Observe {
                let why = "a project has no observers; put this one into your own hookbus.yaml";
                let problem = Problem::broken_entry(hook.line, why);
                self.file.problems.push(problem.about(&hook.name, hook.place.clone()));
                hook.action = Action::Broken(why.to_owned());
            }
        }
        Ok(())
    }
}

/// What an example of this answer should do.
fn verb(expected: &str) -> String {
    match expected {
        "pass" => "pass".to_owned(),
        answer => format!("get `{answer}`"),
    }
}

/// The setting that a key at the top level stands for: itself, or the one that it resembles.
pub(super) fn meant_setting(key: &str) -> &str {
    if is_known(key) { key } else { did_you_mean(key, KEYS).unwrap_or(key) }
}

/// Whether this is a setting, or a key of the user's own.
fn is_known(key: &str) -> bool {
    KEYS.contains(&key) || key.starts_with("x-")
}

/// The settings of a document as the log records them: without `nats:`, and with known keys only.
pub(super) fn recorded_content(pairs: &[Pair]) -> String {
    let recorded =
        pairs.iter().filter(|pair| pair.key != "nats" && KEYS.contains(&pair.key.as_str()));
    let settings = recorded.map(|pair| (pair.key.clone(), pair.value.to_json()));
    Value::Object(settings.collect()).to_string()
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
    recorded_content(pairs)
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
