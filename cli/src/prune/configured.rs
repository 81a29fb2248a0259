//! `hookbus prune` without conditions: the rules of `retain:` in `hookbus.yaml`, as the daemon runs them once an hour. What a
//! run did is written to a file of the home, for `hookbus status` and for the next daemon.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hookbus::active::HooksSource;
use hookbus::config::RetainRule;
use hookbus::event::{Clock, SystemClock};
use hookbus::log::{
    LogPath, OtherRun, PruneError, PruneRequest, Pruned, Strength, plan_prune, prune, selects_any,
};
use hookbus::server::retention_file;
use serde_json::{Value, json};

use super::{Arguments, describe_plan, done_json, number, plan_json, published_row, user_at_host};
use crate::cli::Exit;
use crate::output::{self, Progress, size};
use crate::prompt::{self, PromptOn};
use crate::settings::{Format, Settings};

pub(super) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let active = hooks.active();
    let rules = match active.retain_rules() {
        Ok([]) => bail!(
            "say what to prune, with --older-than, --max-size, --session, --agent or --kind, or write rules under \
             `retain:` in hookbus.yaml; nothing was removed"
        ),
        Ok(rules) => rules,
        Err(why) => {
            write_state(&settings.home, &Outcome::default(), Some(&why))?;
            bail!("{why}; nothing was removed");
        }
    };
    if arguments.dry_run {
        return dry_run(rules, arguments, format, settings);
    }
    if !arguments.yes {
        if !prompt::is_interactive(PromptOn::Stderr) {
            bail!("nobody can be asked here; look at `--dry-run`, and pass `--yes` to remove it");
        }
        dry_run(rules, arguments, Format::Text, settings)?;
        if !prompt::yes_no(PromptOn::Stderr, "remove that? It cannot be undone.")? {
            output::to_stderr("nothing was removed");
            return Ok(Exit::Failure);
        }
    }
    let mut outcome = Outcome::default();
    let ran = run_rules(rules, arguments, settings, &mut outcome);
    if let Err(error) = &ran
        && let Some(PruneError::OtherRun) = error.downcast_ref()
        && arguments.scheduled
    {
        // Its turn comes again.
        return Ok(Exit::Success);
    }
    let why = ran.as_ref().err().map(|error| format!("{error:#}"));
    write_state(&settings.home, &outcome, why.as_deref())?;
    ran?;
    output::line(match format {
        Format::Json => json!({
            "payloads": outcome.payloads,
            "rows": outcome.rows,
            "rules": outcome.rules,
        })
        .to_string(),
        Format::Text => outcome.to_string(),
    })?;
    Ok(Exit::Success)
}

/// What the rules removed together.
#[derive(Debug, Default)]
struct Outcome {
    payloads: u64,
    rows: u64,
    damaged: u64,
    sizes: Option<(u64, u64)>,
    /// What each rule did that found anything.
    rules: Vec<Value>,
}

impl Outcome {
    fn add(&mut self, rule: &RetainRule, done: &Pruned) {
        self.payloads += done.payloads;
        self.rows += done.rows;
        self.damaged += done.damaged;
        let before = self.sizes.map_or(done.bytes_before, |(before, _)| before);
        self.sizes = Some((before, done.bytes_after));
        let mut done = done_json(done);
        done["line"] = json!(rule.line);
        self.rules.push(done);
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((before, after)) = self.sizes else {
            return f.write_str("nothing to remove");
        };
        let (payloads, rows) = (number(self.payloads, "payload"), number(self.rows, "row"));
        let (before, after) = (size(before), size(after));
        write!(f, "removed {payloads} and {rows}: the log had {before} and has {after} now")
    }
}

fn request(
    rule: &RetainRule,
    arguments: &Arguments,
    settings: &Settings,
    by: &str,
) -> Result<PruneRequest> {
    let other_run = if arguments.scheduled { OtherRun::GiveUp } else { OtherRun::WaitFor };
    let request = rule.to_request(SystemClock.now(), by, other_run);
    let up_to = match rule.strength {
        Strength::Payloads => None,
        Strength::Rows => published_row(arguments.nats.as_deref(), settings)?,
    };
    Ok(PruneRequest { up_to, ..request })
}

fn dry_run(
    rules: &[RetainRule],
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let (log, by) = (LogPath::in_home(&settings.home), user_at_host());
    let mut plans = Vec::new();
    for rule in rules {
        let request = request(rule, arguments, settings, &by)?;
        let plan = plan_prune(&log, &request)?;
        if format == Format::Text {
            let what = describe_plan(&plan, rule.strength);
            output::line(format!("hookbus.yaml, line {}: would remove {what}", rule.line))?;
        }
        let mut plan = plan_json(&plan);
        plan["line"] = json!(rule.line);
        plans.push(plan);
    }
    if format == Format::Json {
        output::line(json!({"dry_run": true, "rules": plans}).to_string())?;
    }
    Ok(Exit::Success)
}

fn run_rules(
    rules: &[RetainRule],
    arguments: &Arguments,
    settings: &Settings,
    outcome: &mut Outcome,
) -> Result<()> {
    let log = LogPath::in_home(&settings.home);
    let user = user_at_host();
    let by = if arguments.scheduled { format!("retain: of {user}") } else { user };
    for rule in rules {
        let request = request(rule, arguments, settings, &by)
            .with_context(|| format!("hookbus.yaml, line {}", rule.line))?;
        if !selects_any(&log, &request)? {
            continue;
        }
        let mut progress = None;
        let done = prune(&log, &request, &SystemClock, |done, total| {
            progress.get_or_insert_with(|| Progress::new(total, "events")).update(done);
        })?;
        outcome.add(rule, &done);
    }
    Ok(())
}

/// Tells what a run did. Written beside and renamed, so that it is never read by half.
fn write_state(home: &Path, outcome: &Outcome, error: Option<&str>) -> Result<()> {
    if !home.is_dir() {
        return Ok(());
    }
    let state = json!({
        "at": SystemClock.now().to_string(),
        "payloads": outcome.payloads,
        "rows": outcome.rows,
        "damaged": outcome.damaged,
        "bytes_before": outcome.sizes.map(|(before, _)| before),
        "bytes_after": outcome.sizes.map(|(_, after)| after),
        "error": error,
    });
    let file = retention_file(home);
    let unfinished = file.with_extension(format!("json.{}", std::process::id()));
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut new =
            options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        new.write_all(state.to_string().as_bytes())?;
        fs::rename(&unfinished, &file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
