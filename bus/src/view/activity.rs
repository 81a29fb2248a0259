//! What happens now: the fold over the latest rows, for `hookbus top`. How many events a second, which decisions held agents
//! back, how often hooks were asked and how long they took. Keeps a bounded number of each, however long it is fed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use super::{DecisionView, HookSaid};
use crate::event::{Outcome, RecordedDecision, Seq, Time, VerdictFigure};
use crate::log::{Row, RowHead};

/// How many decisions that held an agent back are kept.
const MOST_HELD: usize = 100;

/// How many verdicts are kept for the figures of hooks.
const MOST_VERDICTS: usize = 50_000;

/// How many seconds a rate looks back.
const MINUTE: usize = 60;

const SECOND: i64 = 1_000_000;

/// What happens now.
#[derive(Debug, Clone)]
pub struct Activity {
    /// How far back the figures of hooks reach.
    window: Duration,
    /// How many events each second had.
    events: BTreeMap<i64, u64>,
    /// The decisions that held an agent back, the latest last.
    held: VecDeque<HeldBack>,
    verdicts: VecDeque<TimedVerdict>,
}

/// A decision that held an agent back: a block, or a question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Its row.
    pub seq: Seq,
    /// The row of the event that it is about.
    pub cause: Option<Seq>,
    /// When it was made.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// `block`, `stop` or `ask`.
    pub outcome: Outcome,
    /// The hook that it comes from.
    pub hook: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The tool that it is about.
    pub tool: Option<String>,
    /// What the event is about: the command, the path, the prompt. None until it was looked up.
    pub about: Option<String>,
}

/// How many events there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates {
    /// The events of each of the last 60 whole seconds, the latest last.
    pub seconds: [u64; MINUTE],
    /// The events of the present second, which is not over yet.
    pub present: u64,
}

/// What a hook did within the window, and how long it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookFigures {
    /// Its name.
    pub hook: String,
    /// Whether these are its verdicts in shadow mode.
    pub shadow: bool,
    /// How often it was asked.
    pub calls: usize,
    /// How often it blocked or stopped.
    pub blocked: usize,
    /// How often it wanted the user to be asked.
    pub asked: usize,
    /// How often it failed.
    pub failed: usize,
    /// How often it was not asked, because it is not approved.
    pub unapproved: usize,
    /// Half of its calls took at most so long.
    pub p50: Option<Duration>,
    /// 19 of 20 took at most so long.
    pub p95: Option<Duration>,
}

#[derive(Debug, Clone)]
struct TimedVerdict {
    at: Time,
    hook: String,
    shadow: bool,
    figure: VerdictFigure,
    took: Option<Duration>,
}

impl Activity {
    /// Nothing yet; figures of hooks will reach so far back.
    pub fn new(window: Duration) -> Self {
        let (events, held, verdicts) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { window, events, held, verdicts }
    }

    /// Counts a row.
    pub fn add(&mut self, head: &RowHead) {
        if head.is_event() {
            *self.events.entry(second_of(head.at)).or_default() += 1;
        }
    }

    /// Counts what a decision says; its row was counted by [`add`](Self::add).
    pub fn add_decision(&mut self, row: &Row) {
        let Ok(decision) = RecordedDecision::from_json(row.payload_json()) else { return };
        for verdict in decision.verdicts {
            let millis = verdict.ms.map(|ms| ms / 1000.0);
            self.verdicts.push_back(TimedVerdict {
                at: row.at,
                shadow: verdict.shadow,
                figure: verdict.figure(),
                took: millis.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                hook: verdict.hook,
            });
        }
        let view = DecisionView::new(row, None);
        if let Some(outcome) = view.outcome.filter(|_| view.refuses() || view.asks()) {
            self.hold(row, outcome, &view);
        }
        let excess = self.verdicts.len().saturating_sub(MOST_VERDICTS);
        self.verdicts.drain(..excess);
    }

    fn hold(&mut self, row: &Row, outcome: Outcome, view: &DecisionView) {
        let is_cause = |said: &&HookSaid| {
            !said.shadow && (said.effect == outcome || said.effect.refuses() && outcome.refuses())
        };
        let said = view.said.iter().find(is_cause);
        self.held.push_back(HeldBack {
            seq: row.seq,
            cause: row.cause,
            at: row.at,
            agent: row.agent.clone(),
            session: row.session.clone(),
            outcome,
            hook: said.map(|said| said.hook.clone()),
            reason: said.and_then(|said| said.reason.clone()).or_else(|| view.note.clone()),
            tool: row.tool.clone(),
            about: None,
        });
        if self.held.len() > MOST_HELD {
            self.held.pop_front();
        }
    }

    /// Forgets what is older than the window.
    pub fn forget_before(&mut self, now: Time) {
        let oldest = now.before(self.window);
        // Rows from the spool come later than others, so the order is almost, not exactly, that of time.
        while self.verdicts.front().is_some_and(|verdict| verdict.at < oldest) {
            self.verdicts.pop_front();
        }
        let minute = Duration::from_secs(u64::try_from(MINUTE).unwrap_or(u64::MAX));
        self.events = self.events.split_off(&second_of(now.before(minute)));
    }

    /// How many events there are.
    pub fn rates(&self, now: Time) -> Rates {
        let count = |back| self.events.get(&(second_of(now) - back)).copied().unwrap_or(0);
        let mut seconds = [0; MINUTE];
        for (second, back) in seconds.iter_mut().rev().zip(1..) {
            *second = count(back);
        }
        Rates { seconds, present: count(0) }
    }

    /// The decisions that held an agent back, the latest last.
    pub const fn held(&self) -> &VecDeque<HeldBack> {
        &self.held
    }

    /// The decisions whose event was not looked up yet.
    pub fn unexplained(&mut self) -> impl Iterator<Item = &mut HeldBack> {
        self.held.iter_mut().filter(|held| held.about.is_none())
    }

    /// What the hooks did, those that were asked most often first.
    pub fn hooks(&self) -> Vec<HookFigures> {
        let mut all: HashMap<(&str, bool), (HookFigures, Vec<Duration>)> = HashMap::new();
        for verdict in &self.verdicts {
            let (figures, spans) = all.entry((&verdict.hook, verdict.shadow)).or_default();
            figures.calls += 1;
            match verdict.figure {
                VerdictFigure::Blocked => figures.blocked += 1,
                VerdictFigure::Asked => figures.asked += 1,
                VerdictFigure::Failed => figures.failed += 1,
                VerdictFigure::Unapproved => figures.unapproved += 1,
                VerdictFigure::Rewritten
                | VerdictFigure::Context
                | VerdictFigure::Allowed
                | VerdictFigure::Nothing => {}
            }
            spans.extend(verdict.took);
        }
        let counted = all.into_iter().map(|((hook, shadow), (figures, mut spans))| {
            spans.sort_unstable();
            HookFigures {
                hook: hook.to_owned(),
                shadow,
                p50: percentile(&spans, 50),
                p95: percentile(&spans, 95),
                ..figures
            }
        });
        let mut figures: Vec<HookFigures> = counted.collect();
        figures.sort_by(|one, other| {
            (other.calls, &one.hook, one.shadow).cmp(&(one.calls, &other.hook, other.shadow))
        });
        figures
    }
}

impl Rates {
    /// The events of the last whole second.
    pub const fn last_second(&self) -> u64 {
        self.seconds[MINUTE - 1]
    }

    /// The events of the last minute: of the present second and the 59 before it.
    pub fn last_minute(&self) -> u64 {
        self.present + self.seconds[1..].iter().sum::<u64>()
    }

    /// Events a second, in the last minute.
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    pub fn per_second(&self) -> f64 {
        self.last_minute() as f64 / MINUTE as f64
    }
}

/// The smallest of the sorted `spans` that so many percent of them do not exceed.
fn percentile(spans: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (spans.len() * percent).div_ceil(100).max(1);
    spans.get(rank - 1).copied()
}

fn second_of(at: Time) -> i64 {
    at.micros().div_euclid(SECOND)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{decision, payload, row};
    use super::*;
    use crate::event::Kind;

    fn head(row: &Row) -> RowHead {
        RowHead {
            seq: row.seq,
            at: row.at,
            agent: row.agent.clone(),
            session: row.session.clone(),
            name: row.name.clone(),
            kind: Kind::parse(&row.kind).expect("a kind"),
            tool: row.tool.clone(),
        }
    }

    /// A row of a call, so many seconds after the first one.
    fn call(second: i64) -> Row {
        row(second, "hermes", &payload("hermes", "pre_tool_call"))
    }

    #[test]
    fn rates_count_events_of_whole_seconds_and_no_decisions() {
        let mut activity = Activity::new(Duration::from_mins(15));
        for second in [1, 2, 2, 30, 61, 61, 62] {
            activity.add(&head(&call(second)));
            activity.add(&head(&decision(99, &call(second), "block")));
        }
        // Within second 62, so that 61 is the last whole one, and 2 is a minute ago.
        let now = Time::from_micros(call(62).at.micros() + 300_000);
        let rates = activity.rates(now);
        assert_eq!((rates.last_second(), rates.last_minute()), (2, 4));
        assert!((rates.per_second() * 15.0 - 1.0).abs() < 0.001);
        activity.forget_before(now);
        assert_eq!(activity.rates(now), rates, "only what is not shown is forgotten");
        assert_eq!(activity.rates(call(200).at).last_minute(), 0);
    }

    #[test]
    fn the_latest_blocks_and_questions_are_kept_with_the_hook_that_held_the_agent_back() {
        let mut activity = Activity::new(Duration::from_mins(15));
        for outcome in ["block", "context", "ask", "none", "stop"] {
            activity.add_decision(&decision(2, &call(1), outcome));
        }
        let held: Vec<(Outcome, Option<&str>)> =
            activity.held().iter().map(|held| (held.outcome, held.hook.as_deref())).collect();
        let hook = Some("guard");
        assert_eq!(held, [(Outcome::Block, hook), (Outcome::Ask, hook), (Outcome::Stop, hook)]);
        assert_eq!(activity.held()[0].reason.as_deref(), Some("no"));
        assert_eq!(activity.unexplained().count(), 3);
        for seq in 3..500 {
            activity.add_decision(&decision(seq, &call(1), "block"));
        }
        assert_eq!(activity.held().len(), MOST_HELD);
        assert_eq!(activity.held().back().map(|held| held.seq), Some(Seq::from_i64(499)));
    }

    #[test]
    fn hooks_are_counted_within_the_window_with_their_latencies() {
        let mut activity = Activity::new(Duration::from_mins(1));
        for at in 1..=100 {
            let took = f64::from(i32::try_from(at).expect("small"));
            let verdicts = json!([
                {"hook": "slow", "verdict": if at % 2 == 0 { "block" } else { "none" }, "ms": took},
                {"hook": "slow", "verdict": "block", "ms": 1.0, "shadow": true},
                {"hook": "broken", "verdict": "none", "failed": true, "failure": "exit 3"},
            ]);
            let told = json!({"outcome": "none", "verdicts": verdicts}).to_string().into_bytes();
            activity.add_decision(&Row { payload: told, ..decision(at, &call(at), "none") });
        }
        let figures = activity.hooks();
        let names: Vec<(&str, bool)> = figures.iter().map(|it| (&*it.hook, it.shadow)).collect();
        assert_eq!(names, [("broken", false), ("slow", false), ("slow", true)]);
        assert_eq!((figures[0].calls, figures[0].failed, figures[0].p50), (100, 100, None));
        assert_eq!((figures[1].calls, figures[1].blocked), (100, 50));
        let millis = |number| Some(Duration::from_millis(number));
        assert_eq!((figures[1].p50, figures[1].p95), (millis(50), millis(95)));
        activity.forget_before(call(130).at);
        assert_eq!(activity.hooks()[0].calls, 31, "those of the last minute");
    }
}
