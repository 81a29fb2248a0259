//! What `hookbus hooks test` says about the hooks that match a call and those that do not.

use anyhow::Result;
use hookbus::config::NotFor;
use hookbus::decide::HookReport;
use hookbus::dialect::{Capabilities, dialect_of};
use hookbus::event::{Decision, Event, Outcome, Verdict, VerdictRecord};
use hookbus::view::subject;
use serde_json::{Value, json};

use crate::output::{self, Paint, count, sanitize, shorten, shorten_middle, wrapped};
use crate::rule_report::condition_lines;

/// Longest name of a hook, in characters.
const LONGEST_NAME: usize = 60;

/// Which hooks that do not match are listed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// Those that are for this event and tool, without the rules of packs.
    Near,
    /// All.
    All,
}

/// The event, the decision and what each hook makes of the event, for `--json`.
pub(super) fn to_json(
    event: &Event,
    decision: Option<&Decision>,
    hooks: &[HookReport<'_>],
) -> Value {
    let tool = event.tool.as_ref();
    json!({
        "agent": event.agent.as_str(),
        "event": event.name,
        "kind": event.kind.as_str(),
        "tool": tool.map(|tool| &tool.name),
        "tool_class": tool.map(|tool| tool.class.as_str()),
        "input": event.field("tool_input"),
        "cwd": event.field("cwd"),
        "decision": decision.map(Decision::to_json),
        "hooks": hooks.iter().map(HookReport::to_json).collect::<Vec<_>>(),
    })
}

/// One line about the call.
pub(super) fn title(event: &Event, paint: Paint) -> String {
    let class = event.tool.as_ref().map(|tool| tool.class);
    let what = event.fields().map(|fields| subject(class, fields)).unwrap_or_default();
    let tool = event.tool.as_ref().map_or("", |tool| tool.name.as_str());
    let place = format!("{} of {}", sanitize(&event.name), event.agent);
    let call = format!("{} {}", shorten(tool, 40), shorten(&what, 200));
    format!("{}  {}", paint.bold(call.trim()), paint.dim(&place))
}

/// What each hook said that matches, with the conditions of its rule, and the answer to the agent.
pub(super) fn print_verdicts(
    event: &Event,
    decision: &Decision,
    hooks: &[HookReport<'_>],
    paint: Paint,
) -> Result<()> {
    for verdict in &decision.verdicts {
        let report = hooks.iter().find(|report| report.hook.name == verdict.hook);
        let name = titled(&verdict.hook, report.and_then(|report| report.hook.pack.as_deref()));
        output::line(format!("{}  {}", paint.bold(&name), verdict_word(verdict, paint)))?;
        let Verdict { reason, stop_reason, context, .. } = &verdict.verdict;
        let said = reason.as_ref().or(stop_reason.as_ref()).or(context.as_ref());
        for (text, before) in
            [(said, ""), (verdict.failure.as_ref(), "failed: "), (verdict.note.as_ref(), "note: ")]
        {
            let text = text.map(|text| format!("{before}{text}")).unwrap_or_default();
            wrapped(&text, "    ").into_iter().try_for_each(output::line)?;
        }
        let rule = report.and_then(|report| report.rule.as_ref());
        let seen = rule.map(|rule| condition_lines(rule, "    ", paint)).unwrap_or_default();
        seen.into_iter().try_for_each(output::line)?;
    }
    if dialect_of(event.agent).capabilities(event) == Capabilities::NONE {
        output::line(format!("the agent takes no answer at {}", sanitize(&event.name)))?;
        return Ok(());
    }
    let answer = decision.answer.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    wrapped(&format!("the agent gets {answer}"), "").into_iter().try_for_each(output::line)?;
    Ok(())
}

/// What a hook said, in one word or two.
fn verdict_word(verdict: &VerdictRecord, paint: Paint) -> String {
    let is_shadow = verdict.shadow;
    let outcome = Outcome::of(&verdict.verdict);
    let word = match (verdict.refused, is_shadow, outcome) {
        (true, _, _) => "not run: it is not approved".to_owned(),
        (false, _, Outcome::None) => "no objection".to_owned(),
        (false, true, outcome) => format!("would {outcome} (shadow)"),
        (false, false, outcome) => outcome.to_string(),
    };
    let exit = verdict.exit.map_or_else(String::new, |code| format!(", exit {code}"));
    let word = match outcome {
        Outcome::Block | Outcome::Stop if !is_shadow => paint.bad(&word),
        Outcome::None | Outcome::Allow if !verdict.refused => paint.good(&word),
        Outcome::None
        | Outcome::Allow
        | Outcome::Context
        | Outcome::Rewrite
        | Outcome::Ask
        | Outcome::Block
        | Outcome::Stop => paint.notable(&word),
    };
    format!("{word}{exit}")
}

/// The name of a hook, with its pack.
fn titled(name: &str, pack: Option<&str>) -> String {
    let from = pack.map_or_else(String::new, |pack| format!(" (pack {})", sanitize(pack)));
    format!("{}{from}", shorten_middle(name, LONGEST_NAME))
}

/// The hooks that do not match, and why not.
pub(super) fn print_others(hooks: &[HookReport<'_>], listed: Listed, paint: Paint) -> Result<()> {
    let others = || hooks.iter().filter(|report| report.matches() == Some(false));
    let is_for_others =
        |report: &&HookReport<'_>| matches!(report.not_for, Some(NotFor::Event | NotFor::Tool));
    let is_near = |report: &&HookReport<'_>| report.hook.pack.is_none() && !is_for_others(report);
    let shown: Vec<&HookReport<'_>> = match listed {
        Listed::All => others().collect(),
        Listed::Near => others().filter(is_near).collect(),
    };
    if !shown.is_empty() {
        output::line("did not match:")?;
    }
    for report in &shown {
        let name = titled(&report.hook.name, report.hook.pack.as_deref());
        output::line(format!("  {}", paint.bold(&name)))?;
        let why = report.why_not().unwrap_or_default();
        wrapped(&why, "      ").into_iter().try_for_each(output::line)?;
    }
    if listed == Listed::All {
        return Ok(());
    }
    let of_packs = others().filter(|report| report.hook.pack.is_some()).count();
    let elsewhere = others().count() - of_packs - shown.len();
    let mut left_out = Vec::new();
    if elsewhere > 0 {
        left_out.push(format!("{} for other events or tools", count(elsewhere, "hook")));
    }
    if of_packs > 0 {
        left_out.push(format!("{} of packs", count(of_packs, "rule")));
    }
    if !left_out.is_empty() {
        let rest = format!("{} did not match; --all lists them", left_out.join(" and "));
        output::line(paint.dim(&rest))?;
    }
    Ok(())
}

/// Whether the decision holds the agent back.
pub(super) fn holds_back(decision: Option<&Decision>) -> bool {
    decision.is_some_and(|decision| match decision.outcome {
        Outcome::Block | Outcome::Stop | Outcome::Ask => true,
        Outcome::None | Outcome::Allow | Outcome::Context | Outcome::Rewrite => false,
    })
}
