//! `hookbus prune`: removes payloads or rows on purpose. The log stays verifiable, and the space is given back.

mod configured;

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::config::parse_pruned_kind;
use hookbus::event::{Seq, SystemClock};
use hookbus::log::{
    LogPath, OtherRun, PrunePlan, PruneRequest, Pruned, Query, Strength, plan_prune, prune,
};
use hookbus::relay::published_head;
use hookbus::sys::process::host_name;
use hookbus::sys::user::account;
use serde_json::json;

use crate::args::{find_session, nats_settings, open_log, parse_agent, parse_size, parse_time};
use crate::cli::Exit;
use crate::output::{self, Progress, count, sanitize, size};
use crate::prompt::{self, PromptOn};
use crate::settings::{Format, Settings};

/// The arguments of `hookbus prune`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Arguments {
    /// Only events before this time: 90d (ago), 2026-11-16, RFC 3339
    #[arg(long, value_name = "TIME", help_heading = "Selection")]
    older_than: Option<String>,
    /// Only the oldest events, until the log has at most this size, such as 2GB
    #[arg(long, value_name = "SIZE", help_heading = "Selection")]
    max_size: Option<String>,
    /// Only this session: its id, a unique prefix of it, its short form, or `last`
    #[arg(long, value_name = "ID", help_heading = "Selection")]
    session: Option<String>,
    /// Only events of this agent: hermes, gemini, claude or codex
    #[arg(long, value_name = "AGENT", help_heading = "Selection")]
    agent: Option<String>,
    /// Only this kind of event, such as model.before or `model.*`
    #[arg(long, value_name = "KIND", help_heading = "Selection")]
    kind: Option<String>,
    /// Remove payloads only, which is the default: rows stay, with hashes of what was in them
    #[arg(long, conflicts_with = "rows")]
    payloads: bool,
    /// Remove the rows too, with the decisions about them
    #[arg(long)]
    rows: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove it without a question
    #[arg(long, short)]
    yes: bool,
    /// As the daemon runs the rules of `retain:`
    #[arg(long, hide = true)]
    scheduled: bool,
    /// NATS servers, separated by commas [default: `HOOKBUS_NATS_URL`, else hookbus.yaml]
    #[arg(long, value_name = "URLS", hide = true)]
    nats: Option<String>,
}

impl Arguments {
    /// Whether no condition is given, so that the rules of hookbus.yaml count.
    const fn is_about_rules(&self) -> bool {
        let by_column = self.session.is_some() || self.agent.is_some() || self.kind.is_some();
        !by_column && self.older_than.is_none() && self.max_size.is_none()
    }
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    if arguments.is_about_rules() {
        if arguments.rows || arguments.payloads {
            bail!(
                "say what to prune, with --older-than, --max-size, --session, --agent or --kind; the rules under `retain:` \
                 in hookbus.yaml say themselves what goes; nothing was removed"
            );
        }
        return configured::run(arguments, format, settings);
    }
    let request = request(arguments, settings)?;
    let log = LogPath::in_home(&settings.home);
    if arguments.dry_run {
        let plan = plan_prune(&log, &request)?;
        output::line(match format {
            Format::Json => plan_json(&plan).to_string(),
            Format::Text => format!("would remove {}", describe_plan(&plan, request.strength)),
        })?;
        return stays(&plan.held, plan.latest.as_deref(), format);
    }
    if !arguments.yes {
        if !prompt::is_interactive(PromptOn::Stderr) {
            bail!("nobody can be asked here; look at `--dry-run`, and pass `--yes` to remove it");
        }
        let plan = plan_prune(&log, &request)?;
        if plan.events > 0 {
            let what = describe_plan(&plan, request.strength);
            let question = format!("remove {what}? It cannot be undone.");
            if !prompt::yes_no(PromptOn::Stderr, &question)? {
                output::to_stderr("nothing was removed");
                return Ok(Exit::Failure);
            }
        }
    }
    let mut progress = None;
    let done = prune(&log, &request, &SystemClock, |done, total| {
        progress.get_or_insert_with(|| Progress::new(total, "events")).update(done);
    })?;
    drop(progress);
    output::line(match format {
        Format::Json => done_json(&done).to_string(),
        Format::Text => describe_done(&done, request.strength),
    })?;
    if let Some(most) = request.max_bytes.filter(|most| done.bytes_after > *most) {
        output::to_stderr(format!(
            "the log is still larger than {}: what else is in it was not selected{}",
            size(most),
            if request.strength == Strength::Payloads { "; `--rows` removes rows too" } else { "" }
        ));
    }
    if done.damaged > 0 {
        output::to_stderr(format!(
            "{} not as recorded and stay; `hookbus verify` shows them",
            if done.damaged == 1 {
                "1 event is".to_owned()
            } else {
                format!("{} events are", done.damaged)
            }
        ));
    }
    stays(&done.held, done.latest.as_deref(), format)
}

fn request(arguments: &Arguments, settings: &Settings) -> Result<PruneRequest> {
    let find = |prefix: &str| find_session(&open_log(settings)?, prefix);
    let kind = arguments.kind.as_deref().map(parse_pruned_kind).transpose();
    let kind = kind.map_err(anyhow::Error::msg)?;
    let query = Query {
        session: arguments.session.as_deref().map(find).transpose()?,
        agent: arguments.agent.as_deref().map(parse_agent).transpose()?,
        kind,
        until: arguments.older_than.as_deref().map(parse_time).transpose()?,
        ..Query::default()
    };
    let max_bytes = arguments.max_size.as_deref().map(parse_size).transpose()?;
    let strength = if arguments.rows { Strength::Rows } else { Strength::Payloads };
    let up_to = if arguments.rows { published_row(None, settings)? } else { None };
    let (by, other_run) = (user_at_host(), OtherRun::WaitFor);
    Ok(PruneRequest { query, strength, up_to, max_bytes, by, other_run })
}

/// The last row that the NATS stream holds; none if there is no `nats:`. A stream has to get every row: its readers refuse
/// one whose number is too high for the stream.
fn published_row(urls: Option<&str>, settings: &Settings) -> Result<Option<Seq>> {
    let Some(nats) = nats_settings(urls, settings) else { return Ok(None) };
    let bus = open_log(settings)?.bus()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let head = runtime.block_on(published_head(&nats, bus)).context(
        "cannot tell which rows the NATS stream has got, and rows are removed only after that; \
         try again later, or remove payloads only",
    )?;
    Ok(Some(head.map_or(Seq::from_i64(0), |(seq, _)| seq)))
}

/// Who runs this command, for records in the log.
pub(crate) fn user_at_host() -> String {
    let user = account().map_or("?", |account| account.name.as_str());
    format!("{user}@{}", host_name())
}

fn number(of: u64, what: &str) -> String {
    count(usize::try_from(of).unwrap_or(usize::MAX), what)
}

fn describe_plan(plan: &PrunePlan, strength: Strength) -> String {
    let of = match strength {
        Strength::Payloads => "the payloads of ",
        Strength::Rows => "",
    };
    format!(
        "{of}{} and {} about them, of {}: about {}",
        number(plan.events, "event"),
        number(plan.decisions, "decision"),
        number(plan.sessions, "session"),
        size(plan.bytes),
    )
}

fn describe_done(done: &Pruned, strength: Strength) -> String {
    let what = match strength {
        Strength::Payloads => number(done.payloads, "payload"),
        Strength::Rows => number(done.rows, "row"),
    };
    let (before, after) = (size(done.bytes_before), size(done.bytes_after));
    format!("removed {what}: the log had {before} and has {after} now")
}

/// Says which sessions stay although the selection names them.
fn stays(held: &[String], latest: Option<&str>, format: Format) -> Result<Exit> {
    if format == Format::Json {
        return Ok(Exit::Success);
    }
    for session in held {
        let session = sanitize(session);
        output::line(format!(
            "session {session} is held and stays; `hookbus hold --release {session}` allows it to be pruned"
        ))?;
    }
    if let Some(session) = latest {
        let session = sanitize(session);
        output::line(format!(
            "session {session} was active last and stays; `--session {session}` prunes it"
        ))?;
    }
    Ok(Exit::Success)
}

fn plan_json(plan: &PrunePlan) -> serde_json::Value {
    json!({
        "dry_run": true,
        "events": plan.events,
        "decisions": plan.decisions,
        "sessions": plan.sessions,
        "bytes": plan.bytes,
        "held": plan.held,
        "latest": plan.latest,
    })
}

fn done_json(done: &Pruned) -> serde_json::Value {
    json!({
        "payloads": done.payloads,
        "rows": done.rows,
        "damaged": done.damaged,
        "bytes_before": done.bytes_before,
        "bytes_after": done.bytes_after,
        "held": done.held,
        "latest": done.latest,
    })
}
