//! `hookbus hooks promote`: turns hooks in shadow mode on, by an edit of the user's own hookbus.yaml. Comments, order and
//! quoting stay. The edited text is parsed before it replaces the file: only the mode of these hooks may differ.

mod packs;

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hookbus::config::{Hook, HooksFile, Mode, Place, Problem, Reach, Trust};
use serde_json::{Value, json};

use super::effective::unknown_name_hint;
use crate::cli::Exit;
use crate::confirm::{Confirmed, confirm};
use crate::output::{self, Paint, sanitize};
use crate::prompt::{PromptOn, is_interactive, yes_no};
use crate::settings::{Format, Settings};
use crate::yaml::{self, EntryPath};
use crate::{diff, files};

const EXAMPLES: &str = "\
Examples:
  hookbus hooks promote no-force-push   Turn one hook on
  hookbus hooks promote git-force-push  Turn one rule of a pack on
  hookbus hooks promote --all           Turn all of them on";

/// The arguments of `hookbus hooks promote`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Names of hooks in shadow mode
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// Turn on every hook in shadow mode, and remove `shadow: true` from the file
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// An edit of hookbus.yaml that turns hooks on.
#[derive(Debug, PartialEq, Eq)]
struct Promotion {
    before: String,
    after: String,
    /// The hooks that are turned on, each once.
    names: Vec<String>,
    /// Those of them that have to be approved again, because their entry changes.
    to_approve: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let file = settings.home.join("hookbus.yaml");
    let paint = Paint(settings.colour);
    let make_plan = || Promotion::make(&file, arguments);
    let can_ask = format == Format::Text && is_interactive(PromptOn::Stdout);
    let ask = |plan: &Promotion| {
        if format == Format::Text && plan.is_change() {
            output::line(format!("  changed  {}", sanitize(&file.to_string_lossy())))?;
            diff::show(&plan.before, &plan.after, usize::MAX, paint)?;
        }
        let needs_no_answer = arguments.yes || !plan.is_change();
        Ok(needs_no_answer || can_ask && yes_no(PromptOn::Stdout, "make this change?")?)
    };
    let (plan, _lock) = match confirm(&settings.home, make_plan, ask)? {
        Confirmed::Yes(plan, lock) => (plan, lock),
        Confirmed::No(plan) => {
            if format == Format::Json {
                output::line(plan.to_json(&file, false).to_string())?;
            }
            bail!("nothing has changed; pass --yes to make this change");
        }
    };
    if plan.is_change() {
        files::write(&file, &plan.after)?;
    }
    match format {
        Format::Json => output::line(plan.to_json(&file, plan.is_change()).to_string())?,
        Format::Text => plan.print_done(paint)?,
    }
    Ok(Exit::Success)
}

impl Promotion {
    fn make(file: &Path, arguments: &Arguments) -> Result<Self> {
        let shown = sanitize(&file.to_string_lossy());
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let base = file.parent().unwrap_or(Path::new("/"));
        let parse = |text: &str| HooksFile::parse(text, base);
        let before = parse(&text).map_err(|Problem { line, message, .. }| {
            anyhow!("{shown}:{line}: {}; fix it first", sanitize(&message))
        })?;
        let wanted = if arguments.all {
            before.hooks.iter().filter(|hook| hook.is_shadow()).collect()
        } else {
            find(&before, &arguments.names)?
        };
        let (names, mut after) = (unique_names(&wanted), Some(text.clone()));
        let is_changed = !wanted.is_empty() || arguments.all && before.shadow;
        if is_changed {
            let is_good = |text: &String| {
                parse(text).is_ok_and(|after| is_only_promoted(&before, &after, &wanted))
            };
            after = edits(&text, &before, &wanted, arguments.all).find(is_good);
        }
        let Some(after) = after else {
            bail!(
                "{shown} cannot be edited without changing something else; edit it by hand: {}",
                by_hand(&before, arguments.all)
            );
        };
        let to_approve = to_approve(&before, &parse(&after).unwrap_or_else(|_| before.clone()));
        Ok(Self { before: text, after, names, to_approve })
    }

    fn is_change(&self) -> bool {
        self.before != self.after
    }

    fn to_json(&self, file: &Path, changed: bool) -> Value {
        json!({"file": file.to_string_lossy(), "changed": changed, "promoted": self.names,
               "approve": self.to_approve, "diff": diff::changed_lines(&self.before, &self.after)})
    }

    fn print_done(&self, paint: Paint) -> Result<()> {
        if !self.is_change() {
            output::line("no hook of your hookbus.yaml is in shadow mode; nothing has changed")?;
        } else if self.names.is_empty() {
            output::line("new hooks decide from now on")?;
        }
        for name in &self.names {
            output::line(format!("{} decides from now on", paint.bold(&sanitize(name))))?;
        }
        if !self.to_approve.is_empty() {
            let names = sanitize(&self.to_approve.join(", "));
            output::line(paint.notable(&format!("to be approved again: {names}")))?;
            output::line("An approval covers the entry, and that has changed. Until you run")?;
            output::line(
                "`hookbus hooks approve`, the hook blocks unless it says `on_failure: allow`.",
            )?;
        }
        Ok(())
    }
}

fn by_hand(file: &HooksFile, all: bool) -> &'static str {
    match (file.shadow, all) {
        (true, true) => "remove `shadow: true` and every `mode: shadow`",
        (true, false) => "write `mode: decide` into the entry",
        (false, _) => "remove `mode: shadow` from the entry",
    }
}

/// The hooks with these names, all of which are in shadow mode.
fn find<'f>(file: &'f HooksFile, names: &[String]) -> Result<Vec<&'f Hook>> {
    let mut found = Vec::new();
    for name in names {
        let named: Vec<&Hook> = file.hooks.iter().filter(|hook| hook.name == *name).collect();
        let shown = sanitize(name);
        let Some(first) = named.first() else {
            let shadow = file.hooks.iter().filter(|hook| hook.is_shadow());
            let hint = unknown_name_hint(name, shadow.map(|hook| hook.name.as_str()));
            bail!("your hookbus.yaml has no hook `{shown}`; {hint}");
        };
        let shadow: Vec<&Hook> = named.iter().copied().filter(|hook| hook.is_shadow()).collect();
        if shadow.is_empty() {
            bail!(match first.mode {
                Mode::Observe => format!("`{shown}` is an observer, which never decides"),
                Mode::Decide | Mode::Shadow => {
                    format!("`{shown}` is not in shadow mode: it decides already")
                }
            });
        }
        found.extend(shadow);
    }
    Ok(found)
}

fn unique_names(hooks: &[&Hook]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for hook in hooks {
        if !names.contains(&hook.name) {
            names.push(hook.name.clone());
        }
    }
    names
}

/// The texts that turn these hooks on, the shortest first. Not every one keeps the rest of the file as it is: a mode may
/// come from a mapping that several entries refer to.
fn edits<'a>(
    text: &'a str,
    file: &'a HooksFile,
    wanted: &'a [&Hook],
    all: bool,
) -> impl Iterator<Item = String> + 'a {
    let (of_packs, own): (Vec<&Hook>, Vec<&Hook>) = wanted.iter().partition(|it| it.pack.is_some());
    let paths: Vec<EntryPath> = own.iter().filter_map(|hook| entry_path(&hook.place)).collect();
    let is_complete = paths.len() == own.len();
    let drops_setting = all && file.shadow;
    let without_mode = (drops_setting || !file.shadow).then_some(None);
    let modes = without_mode.into_iter().chain([Some("decide")]).filter(move |_| is_complete);
    let own_edits = modes.filter_map(move |mode| {
        let setting = drops_setting.then_some("shadow");
        yaml::set_in_entries(text, &paths, ("mode", mode), setting).ok()
    });
    let untouched = (own.is_empty() && !drops_setting).then(|| text.to_owned());
    untouched.into_iter().chain(own_edits).map(move |text| {
        let names: Vec<&str> = of_packs.iter().map(|hook| hook.name.as_str()).collect();
        if names.is_empty() { text } else { packs::promote(&text, &names, all) }
    })
}

fn entry_path(place: &Place) -> Option<EntryPath> {
    match place {
        Place::Entry { event, index } => Some(EntryPath { event: event.clone(), index: *index }),
        Place::File | Place::Setting(_) | Place::Event(_) => None,
    }
}

/// Whether `after` is `before` with these hooks turned on, and has no other mistakes.
fn is_only_promoted(before: &HooksFile, after: &HooksFile, wanted: &[&Hook]) -> bool {
    let is_wanted = |hook: &Hook| wanted.iter().any(|it| std::ptr::eq(*it, hook));
    let is_right = |(old, new): (&Hook, &Hook)| {
        let is_same = (&old.name, &old.on) == (&new.name, &new.on);
        let is_as_it_was = old.mode == new.mode && old.written == new.written;
        is_same && if is_wanted(old) { new.mode == Mode::Decide } else { is_as_it_was }
    };
    let settings = |file: &HooksFile| {
        let mut settings = file.settings.clone();
        for key in ["shadow", "use", "change"] {
            settings.remove(key);
        }
        settings
    };
    let mistakes = |file: &HooksFile| -> Vec<String> {
        let is_mistake = |problem: &&Problem| problem.reach != Reach::Nothing;
        file.problems.iter().filter(is_mistake).map(|it| it.message.clone()).collect()
    };
    let known = mistakes(before);
    before.hooks.len() == after.hooks.len()
        && before.hooks.iter().zip(&after.hooks).all(is_right)
        && settings(before) == settings(after)
        && before.nats == after.nats
        && mistakes(after).iter().all(|mistake| known.contains(mistake))
}

/// The hooks whose approval lapses: it covers the text of their entry.
fn to_approve(before: &HooksFile, after: &HooksFile) -> Vec<String> {
    let is_changed = |(old, new): &(&Hook, &Hook)| old.written != new.written && new.runs_outside();
    let pairs = before.hooks.iter().zip(&after.hooks).filter(|_| after.trust != Trust::Home);
    let changed: Vec<&Hook> = pairs.filter(is_changed).map(|(_, new)| new).collect();
    unique_names(&changed)
}
