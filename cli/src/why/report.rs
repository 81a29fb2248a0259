//! What `hookbus why` says about one decision.

use hookbus::config::NotFor;
use hookbus::decide::HookReport;
use hookbus::event::{Outcome, RecordedDecision, RecordedVerdict};
use hookbus::view::EventView;
use hookbus_replay::HooksError;
use serde_json::{Value, json};

use super::aftermath::{Aftermath, Fate};
use super::found::FoundDecision;
use crate::output::{Paint, count, local_time, sanitize, shorten, shorten_middle, wrapped};
use crate::rule_report::condition_lines;

/// Longest name of a hook, in characters.
const LONGEST_NAME: usize = 60;

/// A decision and everything that explains it.
pub(super) struct Report<'a> {
    pub(super) found: &'a FoundDecision,
    /// None if no hook had anything to say, or a later version wrote it.
    pub(super) decision: Option<&'a RecordedDecision>,
    /// The hooks that were in force.
    pub(super) hooks: Vec<HookReport<'a>>,
    /// Why these are not known.
    pub(super) hooks_error: Option<&'a HooksError>,
    /// What the agent did next, if the event is a tool call.
    pub(super) aftermath: Option<&'a Aftermath>,
}

impl Report<'_> {
    fn outcome(&self) -> Option<Outcome> {
        self.decision.map(|decision| decision.outcome)
    }

    /// The hook that gave a recorded verdict.
    fn hook_of(&self, verdict: &RecordedVerdict) -> Option<&HookReport<'_>> {
        let same_file = |it: &&HookReport<'_>| it.hook.of_project == verdict.of_project;
        self.hooks.iter().filter(same_file).find(|it| verdict.is_by(&it.hook.name))
    }

    /// The verdicts that a hook gave: several for a directory of plugins.
    fn gave_verdict(&self, report: &HookReport<'_>) -> bool {
        let verdicts = self.decision.map_or(&[][..], |decision| decision.verdicts.as_slice());
        verdicts
            .iter()
            .any(|it| it.of_project == report.hook.of_project && it.is_by(&report.hook.name))
    }

    pub(super) fn to_json(&self) -> Value {
        let FoundDecision { event, decision } = self.found;
        let payload = event.payload_json();
        json!({
            "seq": event.seq.as_i64(),
            "decision_seq": decision.as_ref().map(|row| row.seq.as_i64()),
            "time": event.at.to_string(),
            "agent": event.agent,
            "session": event.session,
            "name": event.name,
            "kind": event.kind,
            "tool": event.tool,
            "about": payload.is_object().then(|| EventView::new(event).subject()),
            "payload": payload,
            "decision": decision.as_ref().map(hookbus::log::Row::payload_json),
            "hooks": self.hooks.iter().map(HookReport::to_json).collect::<Vec<_>>(),
            "hooks_error": self.hooks_error.map(ToString::to_string),
            "next": self.aftermath.map(|aftermath| aftermath.to_json(self.outcome())),
        })
    }

    pub(super) fn lines(&self, all: bool, paint: Paint) -> Vec<String> {
        let mut lines = self.title(paint);
        lines.push(String::new());
        lines.extend(self.answer_lines(paint));
        for verdict in self.decision.iter().flat_map(|decision| &decision.verdicts) {
            lines.push(String::new());
            lines.extend(self.verdict_lines(verdict, paint));
        }
        if let Some(error) = self.hooks_error {
            lines.push(String::new());
            lines.extend(wrapped(&format!("conditions cannot be shown: {error}"), ""));
        }
        lines.extend(self.other_lines(all, paint));
        if let Some(aftermath) = self.aftermath {
            lines.push(String::new());
            lines.push(paint.bold("what the agent did next"));
            lines.extend(next_lines(aftermath, self.outcome(), paint));
        }
        lines
    }

    /// What the event is: where, when, what about.
    fn title(&self, paint: Paint) -> Vec<String> {
        let event = &self.found.event;
        let (name, kind, agent) = (&event.name, &event.kind, &event.agent);
        let first = format!("seq {}: {name} ({kind}) of {agent}", event.seq);
        let when = local_time(event.at).format("%Y-%m-%d %H:%M:%S%.3f");
        let session = shorten_middle(&event.session, 40);
        let about = EventView::new(event).subject();
        let about =
            format!("{} {}", event.tool.as_deref().unwrap_or_default(), shorten(&about, 300));
        let mut lines =
            vec![paint.bold(&sanitize(&first)), paint.dim(&format!("  {when}, session {session}"))];
        lines.extend(wrapped(&about, "  ").into_iter().map(|line| paint.notable(&line)));
        lines
    }

    fn answer_lines(&self, paint: Paint) -> Vec<String> {
        let Some(decision) = self.decision else {
            let why = match &self.found.decision {
                Some(_) => "this version of hookbus cannot read the decision about it",
                None => "no hook had anything to say about it",
            };
            return vec![why.to_owned()];
        };
        let word = match decision.outcome {
            Outcome::Block => paint.bad("blocked"),
            Outcome::Stop => paint.bad("stopped"),
            Outcome::Ask => paint.notable("asked about"),
            Outcome::Rewrite => paint.notable("changed"),
            Outcome::Context => paint.notable("context was added"),
            Outcome::Allow => paint.good("allowed"),
            Outcome::None => paint.good("not held back"),
        };
        let took = decision.ms.map_or_else(String::new, |ms| format!(" in {ms:.1} ms"));
        let mut lines = vec![format!("{}{took}", paint.bold(&word))];
        let answer = decision.answer.as_ref();
        let answer = answer.map_or_else(|| "nothing".to_owned(), Value::to_string);
        let answer = shorten(&answer, 600);
        lines.extend(wrapped(&format!("the agent was answered: {answer}"), "  "));
        if !decision.waited_for {
            lines.push(format!("  {}", paint.bad("the agent did not wait for the answer")));
        }
        lines.extend(decision.note.iter().flat_map(|note| wrapped(note, "  ")));
        if let Some(notice) = &decision.notice {
            lines.extend(wrapped(&format!("the user was told: {}", notice.text), "  "));
        }
        lines
    }

    fn verdict_lines(&self, verdict: &RecordedVerdict, paint: Paint) -> Vec<String> {
        let report = self.hook_of(verdict);
        let pack = report.and_then(|report| report.hook.pack.as_deref());
        let from = match (pack, verdict.of_project) {
            (Some(pack), _) => format!(" (pack {})", sanitize(pack)),
            (None, true) => " (of the project)".to_owned(),
            (None, false) => String::new(),
        };
        let word = match (verdict.unapproved, verdict.is_silent(), verdict.shadow) {
            (true, _, _) => paint.bad("not run: it was not approved"),
            (false, true, _) => "no objection".to_owned(),
            (false, false, true) => format!("would {} (shadow)", sanitize(&verdict.verdict)),
            (false, false, false) => sanitize(&verdict.verdict),
        };
        let exit = verdict.exit.map_or_else(String::new, |code| format!(", exit {code}"));
        let took = verdict.ms.map_or_else(String::new, |ms| format!(", {ms:.1} ms"));
        let name = shorten_middle(&verdict.hook, LONGEST_NAME);
        let mut lines = vec![format!("{}{from}: {word}{exit}{took}", paint.bold(&name))];
        let context = verdict.context.as_ref().and_then(Value::as_str);
        let rewrite = verdict.rewrite.as_ref().map(|input| format!("new input: {input}"));
        let said = verdict.reason.as_deref().or(context).map(str::to_owned).or(rewrite);
        lines.extend(said.iter().flat_map(|text| wrapped(&shorten(text, 600), "    ")));
        let failure = verdict.failure.iter().map(|why| format!("it failed: {why}"));
        let failure = failure.flat_map(|why| wrapped(&why, "    "));
        lines.extend(failure.map(|line| paint.bad(&line)));
        lines.extend(verdict.note.iter().flat_map(|note| wrapped(note, "    ")));
        let rule = report.and_then(|report| report.rule.as_ref());
        lines.extend(rule.into_iter().flat_map(|rule| condition_lines(rule, "    ", paint)));
        lines
    }

    /// The hooks without a verdict, and why they have none.
    fn other_lines(&self, all: bool, paint: Paint) -> Vec<String> {
        let others = || self.hooks.iter().filter(|it| !self.gave_verdict(it));
        let is_near = |it: &&HookReport<'_>| {
            let is_elsewhere = matches!(it.not_for, Some(NotFor::Event | NotFor::Tool));
            all || it.hook.pack.is_none() && !is_elsewhere
        };
        let mut lines = Vec::new();
        for report in others().filter(is_near) {
            if lines.is_empty() {
                lines.extend([String::new(), "did not match:".to_owned()]);
            }
            let name = shorten_middle(&report.hook.name, LONGEST_NAME);
            lines.push(format!("  {}", paint.bold(&name)));
            let why = report.why_not();
            let why = why.unwrap_or_else(|| "it matches, and has no verdict in the log".to_owned());
            lines.extend(wrapped(&why, "      "));
        }
        let left_out = others().count() - others().filter(is_near).count();
        if left_out > 0 {
            let rest = format!("{} did not match; --all lists them", count(left_out, "other hook"));
            lines.push(paint.dim(&rest));
        }
        lines
    }
}

/// What happened to the call, and to those that are like it.
fn next_lines(aftermath: &Aftermath, outcome: Option<Outcome>, paint: Paint) -> Vec<String> {
    let fate = fate_line(&aftermath.fate, outcome, paint);
    let mut lines = vec![format!("  {fate}")];
    for attempt in &aftermath.attempts {
        let what = if attempt.is_same { "the same call" } else { "a similar call" };
        let decided = match attempt.outcome {
            Some(Outcome::Block) => "blocked",
            Some(Outcome::Stop) => "stopped",
            Some(Outcome::Ask) => "asked about",
            Some(_) | None => "not held back",
        };
        let is_blocked = matches!(attempt.outcome, Some(Outcome::Block | Outcome::Stop));
        let ran = match attempt.fate.ran(attempt.outcome) {
            Some(true) if is_blocked => paint.bad(", it ran all the same"),
            Some(true) => ", it ran".to_owned(),
            Some(false) => ", it did not run".to_owned(),
            None => String::new(),
        };
        let again = format!("the model tried again: seq {}, {what}, {decided}", attempt.seq);
        lines.push(format!("  {}{ran}", paint.notable(&again)));
        lines.push(format!("      {}", shorten(&attempt.gist, 70)));
    }
    lines
}

fn fate_line(fate: &Fate, outcome: Option<Outcome>, paint: Paint) -> String {
    let status = |status: &str| match status {
        "ok" => String::new(),
        other => format!(", status {}", shorten(other, 30)),
    };
    match (fate, outcome) {
        (Fate::Ran { seq, status: how }, Some(Outcome::Block | Outcome::Stop)) => {
            let text = format!("it ran all the same: seq {seq} is its result{}", status(how));
            paint.bad(&text)
        }
        (Fate::Ran { seq, status: how }, Some(Outcome::Ask)) => {
            let text =
                format!("it ran, so a person said yes: seq {seq} is its result{}", status(how));
            paint.notable(&text)
        }
        (Fate::Ran { seq, status: how }, _) => {
            format!("it ran: seq {seq} is its result{}", status(how))
        }
        (Fate::Refused { seq, status }, _) => {
            let status = shorten(status, 30);
            paint.good(&format!("it did not run: seq {seq} says `{status}`"))
        }
        (Fate::NoResult, Some(Outcome::Block | Outcome::Stop | Outcome::Ask)) => {
            paint.good("it did not run: no result of it is recorded")
        }
        (Fate::NoResult, _) => "no result of it is recorded".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hookbus::event::Seq;

    use super::*;

    #[test]
    fn a_blocked_call_that_ran_is_told_in_red() {
        let ran = Fate::Ran { seq: Seq::from_i64(9), status: "ok".to_owned() };
        let line = |outcome| fate_line(&ran, Some(outcome), Paint(true));
        assert_eq!(line(Outcome::Block), "\x1b[31mit ran all the same: seq 9 is its result\x1b[0m");
        assert!(line(Outcome::Ask).contains("a person said yes"));
        assert_eq!(line(Outcome::Context), "it ran: seq 9 is its result");
    }

    #[test]
    fn a_call_without_a_result_did_not_run_only_if_it_was_held_back() {
        let line = |outcome| fate_line(&Fate::NoResult, outcome, Paint(false));
        assert_eq!(line(Some(Outcome::Block)), "it did not run: no result of it is recorded");
        assert_eq!(line(None), "no result of it is recorded");
    }
}
