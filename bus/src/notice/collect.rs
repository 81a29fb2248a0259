//! What the user should know at one event: the hooks that are not in force, those that failed now, and whether the
//! policy changed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Told;
use super::finding::{Finding, describe};
use super::policy;
use crate::active::{ActiveHooks, HookSets, NotInForce};
use crate::caller::Caller;
use crate::config::{Approval, Hook, KEPT, Mode, Reach};
use crate::dialect::{NoticePlace, dialect_of};
use crate::event::{Decision, Event, Kind, Notice};
use crate::log::{LogPath, LogReader};

/// How long the approvals may be checked at the start of a session. Hooks that could not be checked by then are told
/// with the first event that they affect.
const LONGEST_CHECK: Duration = Duration::from_millis(500);

const NEVER_APPROVED: &str = "never approved";
const APPROVAL_LAPSED: &str = "changed since it was approved";
const APPROVAL_LOST: &str = "its approval is gone from consent.json";
const UNREADABLE: &str = "the approvals cannot be read";

/// One event with its decision.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The event.
    pub event: &'a Event,
    /// The client that it came from.
    pub caller: &'a Caller,
    /// The hooks in force.
    pub hooks: &'a HookSets,
    /// The decision, if a hook was asked.
    pub decision: Option<&'a Decision>,
    /// How long this may take.
    pub time: Duration,
}

/// What the user is told at this event, if there is anything that was not told in this session yet.
pub async fn notice(situation: Situation<'_>, told: &Told, log: &LogPath) -> Option<Notice> {
    let session = &situation.event.session;
    let passes_unseen = situation.unseen().is_some();
    if session.is_empty() && !passes_unseen || !situation.has_findings() {
        return None;
    }
    let answer = situation.decision.and_then(|decision| decision.answer.as_ref());
    let in_answer = match situation.place(answer) {
        NoticePlace::InAnswer => true,
        NoticePlace::Beside => false,
        NoticePlace::Nowhere => return None,
    };
    let mut findings = situation.findings(log).await;
    if session.is_empty() {
        // It cannot be known what was told before: only what has just happened is told.
        findings.retain(|finding| matches!(finding, Finding::Unreadable { .. }));
    } else {
        let new = told.take_new(log, session, findings.iter().map(Finding::key));
        findings.retain(|finding| new.contains(&finding.key()));
    }
    if findings.is_empty() {
        return None;
    }
    let text = describe(&findings, situation.own_hooks().count());
    Some(Notice { text, about: findings.iter().map(Finding::key).collect(), in_answer })
}

/// What the user is told of the hooks that were not asked or must not run, when only rules are asked. Each time: it
/// happens seldom, and there is no time to find out what was told.
pub fn notice_of_failures(situation: Situation<'_>) -> Option<Notice> {
    let place = situation.place(situation.decision.and_then(|decision| decision.answer.as_ref()));
    let failed = situation.failures().map(|(hook, _, why)| situation.failed_hook(hook, why));
    let findings: Vec<Finding> = failed.chain(situation.unseen()).collect();
    if findings.is_empty() || place == NoticePlace::Nowhere {
        return None;
    }
    let about = findings.iter().map(Finding::key).collect();
    Some(Notice { text: describe(&findings, 0), about, in_answer: place == NoticePlace::InAnswer })
}

impl<'a> Situation<'a> {
    /// Whether there may be anything to tell. Only in memory, because this is asked at every event.
    fn has_findings(&self) -> bool {
        let own = &self.hooks.own;
        self.event.kind == Kind::SessionStart
            || self.unseen().is_some()
            || self.failures().next().is_some()
            || own.status.problem().is_some()
            || own.file.problems.iter().any(|problem| problem.reach == Reach::Entry)
    }

    fn place(&self, answer: Option<&Value>) -> NoticePlace {
        dialect_of(self.event.agent).notice_place(self.event, answer, self.caller)
    }

    async fn findings(&self, log: &LogPath) -> Vec<Finding> {
        let own = &self.hooks.own;
        let mut findings: Vec<Finding> =
            Finding::of_file(&own.status, &own.snapshot.path).into_iter().collect();
        // Hooks do not decide for agents whose events are only recorded.
        if dialect_of(self.event.agent).is_answered() {
            findings.extend(self.inactive().await);
            findings.extend(self.failed(&findings));
            findings.extend(self.unseen());
        }
        if self.event.kind == Kind::SessionStart {
            findings.extend(self.policy_change(log));
        }
        findings
    }

    /// An event that cannot be read and is let through, if there are hooks that might have stopped it.
    fn unseen(&self) -> Option<Finding> {
        let why = self.event.why_unreadable()?;
        if self.decision.is_some() || !dialect_of(self.event.agent).is_answered() {
            return None;
        }
        let may_decide =
            |hook: &&Hook| hook.mode == Mode::Decide && hook.concerns(self.event.agent);
        let hooks = self.hooks.hooks().filter(may_decide).count();
        (hooks > 0).then(|| Finding::Unreadable { hooks, why: why.to_owned() })
    }

    /// The hooks that are not in force. Approvals are checked at the start of a session, and when one is missing.
    async fn inactive(&self) -> Vec<Finding> {
        let mut findings = self.malformed();
        let is_refused = self.failures().any(|(_, refused, _)| refused);
        if self.event.kind != Kind::SessionStart && !is_refused {
            return findings;
        }
        let deadline = Instant::now() + self.time.min(LONGEST_CHECK);
        for hook in self.own_hooks().filter(|hook| hook.mode == Mode::Decide) {
            if let Some(why) = self.refusal(&self.hooks.own, hook, deadline).await {
                findings.push(Finding::Hook { name: hook.name.clone(), why: why.to_owned() });
            }
        }
        let store = self.hooks.own.approvals.store();
        if self.hooks.project.is_none() && store.lost_project(&self.caller.cwd).is_some() {
            findings.push(Finding::ProjectGone);
        }
        if let Some(project) = &self.hooks.project {
            let mut refusals = Vec::new();
            let decides = |hook: &&Hook| !hook.is_shadow() && hook.concerns(self.event.agent);
            for hook in project.file.hooks.iter().filter(decides) {
                refusals.extend(self.refusal(project, hook, deadline).await);
            }
            for why in [NEVER_APPROVED, APPROVAL_LAPSED, APPROVAL_LOST, UNREADABLE] {
                let count = refusals.iter().filter(|it| **it == why).count();
                findings.extend((count > 0).then_some(Finding::Project { count, why }));
            }
        }
        findings
    }

    /// Why `hook` must not run, if that could be found out in time.
    async fn refusal(
        &self,
        active: &ActiveHooks,
        hook: &Hook,
        deadline: Instant,
    ) -> Option<&'static str> {
        let left = deadline.saturating_duration_since(Instant::now());
        let refusal = active.approvals.refusal(hook, self.caller, left).await?;
        match refusal.approval {
            Approval::NotApproved if refusal.checked => Some(NEVER_APPROVED),
            Approval::Lapsed if refusal.checked && !active.approvals.store().is_readable() => {
                Some(UNREADABLE)
            }
            Approval::Lapsed if refusal.checked => Some(APPROVAL_LAPSED),
            Approval::Lost if refusal.checked => Some(APPROVAL_LOST),
            Approval::Approved | Approval::NotApproved | Approval::Lapsed | Approval::Lost => None,
        }
    }

    /// The user's own entries that are not in force as they are written, each once, with its first mistake.
    fn malformed(&self) -> Vec<Finding> {
        let own = &self.hooks.own;
        let mut seen = HashSet::new();
        // The file as a whole has a finding of its own.
        let entries = own.not_in_force().into_iter().filter(|it| it.hook != own.snapshot.path);
        entries
            .filter(|it| it.hook.is_empty() || seen.insert(it.hook.clone()))
            .map(|NotInForce { hook, why, is_hook, line, kept }| {
                let name = if hook.is_empty() { format!("line {line}") } else { hook };
                // The sentence around it says that for all of them.
                let why = why.strip_suffix(KEPT).unwrap_or(&why);
                let why = format!("line {line}: {why}");
                match (kept, is_hook) {
                    (true, _) => Finding::Kept { name, why },
                    (false, true) => Finding::Hook { name, why },
                    (false, false) => Finding::File(format!("hookbus.yaml, {why}")),
                }
            })
            .collect()
    }

    /// The hooks that were asked and failed, apart from those that are not in force.
    fn failed(&self, known: &[Finding]) -> Vec<Finding> {
        let is_known = |hook: &str| {
            known
                .iter()
                .any(|finding| matches!(finding, Finding::Hook { name, .. } if name == hook))
        };
        self.failures()
            .filter(|(hook, refused, _)| !refused && !is_known(hook))
            .map(|(hook, _, why)| self.failed_hook(hook, why))
            .collect()
    }

    fn failed_hook(&self, hook: &str, why: &str) -> Finding {
        let (name, event) = (hook.to_owned(), self.event.name.clone());
        Finding::Failed { name, event, why: why.to_owned() }
    }

    /// The hooks that failed or must not run. Those in shadow mode are left out: no guard is missing without them, and
    /// `hookbus hooks shadow` tells of them.
    fn failures(&self) -> impl Iterator<Item = (&'a str, bool, &'a str)> {
        let verdicts = self.decision.into_iter().flat_map(|decision| &decision.verdicts);
        let verdicts = verdicts.filter(|verdict| !verdict.shadow);
        verdicts.filter_map(|it| Some((it.hook.as_str(), it.refused, it.failure.as_deref()?)))
    }

    fn policy_change(&self, log: &LogPath) -> Option<Finding> {
        let (event, own) = (self.event, &self.hooks.own);
        let log = LogReader::open(log).ok()?;
        let change = log.policy_change(event.agent, &event.session, &own.file.hash).ok()??;
        Some(policy::finding(&change, own))
    }

    /// The user's own hooks that are for this agent.
    fn own_hooks(&self) -> impl Iterator<Item = &'a Hook> {
        let agent = self.event.agent;
        self.hooks.own.file.hooks.iter().filter(move |hook| hook.concerns(agent))
    }
}
