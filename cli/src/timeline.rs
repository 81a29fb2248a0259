//! Builds the timeline of a session from its rows: turns, tool calls joined with their results, decisions with their
//! reasons, sub-agents inside their parents. Pure: `show.rs` reads the log and prints.

use std::time::Duration;

use hookbus::event::{Kind, RecordedDecision, RecordedVerdict, Time};
use hookbus::log::Row;
use serde_json::{Value, json};

use crate::log::summarize;

/// A whole session.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) session: String,
    pub(crate) agent: String,
    pub(crate) cwd: Option<String>,
    pub(crate) first: Option<Time>,
    pub(crate) last: Option<Time>,
    pub(crate) events: usize,
    pub(crate) decisions: usize,
    pub(crate) blocked: usize,
    pub(crate) turns: Vec<Turn>,
}

/// Everything from one prompt to the next. Events before the first prompt form a turn without one.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) prompt: Option<String>,
    pub(crate) items: Vec<Item>,
    /// Model requests and chunks are only counted.
    pub(crate) model_requests: usize,
    pub(crate) model_chunks: usize,
}

/// One event of a timeline.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) seq: i64,
    pub(crate) at: Time,
    pub(crate) name: String,
    pub(crate) kind: ItemKind,
    pub(crate) text: String,
    pub(crate) decision: Option<DecisionSummary>,
}

/// What an item is about.
#[derive(Debug)]
pub(crate) enum ItemKind {
    /// A tool call, joined with its result.
    Tool { tool: String, call_id: Option<String>, input: Value, result: Option<CallResult> },
    /// A sub-agent, with the timeline of its own session if that is recorded.
    Subagent { session: Option<String>, inside: Option<Box<Timeline>>, result: Option<CallResult> },
    /// Any other event.
    Plain,
    /// Shown only if there is a decision about it.
    Hidden,
}

/// How a tool call or a sub-agent ended.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) status: String,
    pub(crate) took: Duration,
}

/// The decision about an item.
#[derive(Debug)]
pub(crate) struct DecisionSummary {
    pub(crate) outcome: String,
    pub(crate) hooks: Vec<HookVerdict>,
    /// A remark on the decision as a whole.
    pub(crate) note: Option<String>,
    /// What the bus told the user.
    pub(crate) notice: Option<String>,
}

/// What one hook contributed to a decision.
#[derive(Debug)]
pub(crate) struct HookVerdict {
    pub(crate) hook: String,
    pub(crate) verdict: String,
    /// The failure, else the reason of the verdict, else the context it adds.
    pub(crate) reason: Option<String>,
    pub(crate) failed: bool,
    /// The hook did not run because it is not approved.
    pub(crate) refused: bool,
    /// The hook was in shadow mode: the verdict had no effect.
    pub(crate) shadow: bool,
    /// What the agent does not support of this verdict, and what happened instead.
    pub(crate) note: Option<String>,
}

impl From<RecordedVerdict> for HookVerdict {
    fn from(recorded: RecordedVerdict) -> Self {
        let RecordedVerdict {
            hook,
            verdict,
            reason,
            context,
            failure,
            unapproved,
            shadow,
            note,
            ..
        } = recorded;
        let context = context.and_then(|context| context.as_str().map(str::to_owned));
        Self {
            hook,
            verdict,
            failed: failure.is_some(),
            reason: failure.or(reason).or(context),
            refused: unapproved,
            shadow,
            note,
        }
    }
}

impl HookVerdict {
    fn to_json(&self) -> Value {
        let Self { hook, verdict, reason, failed, refused, shadow, note } = self;
        json!({
            "hook": hook, "verdict": verdict, "reason": reason,
            "failed": failed, "refused": refused, "shadow": shadow, "note": note,
        })
    }
}

impl Timeline {
    /// Builds the timeline of one session. `child_timeline` loads that of a sub-agent's session.
    pub(crate) fn new(
        session: &str,
        rows: &[Row],
        child_timeline: &mut dyn FnMut(&str) -> Option<Self>,
    ) -> Self {
        let mut timeline = Self { session: session.to_owned(), ..Self::default() };
        for row in rows {
            timeline.add(row, child_timeline);
        }
        timeline
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "every other kind is a plain line")]
    fn add(&mut self, row: &Row, child_timeline: &mut dyn FnMut(&str) -> Option<Self>) {
        let payload = row.payload_json();
        if row.kind == Kind::Decision.as_str() {
            return self.add_decision(row, payload);
        }
        if self.first.is_none() {
            self.first = Some(row.at);
            self.agent.clone_from(&row.agent);
        }
        self.cwd = self.cwd.take().or_else(|| payload["cwd"].as_str().map(str::to_owned));
        self.last = Some(row.at);
        self.events += 1;
        match Kind::parse(&row.kind).unwrap_or(Kind::Other) {
            Kind::TurnStart => {
                let prompt = summarize(row, &payload);
                self.turns.push(Turn { prompt: Some(prompt), ..Turn::default() });
                self.push(row, ItemKind::Plain, String::new());
            }
            Kind::ModelBefore => self.turn().model_requests += 1,
            Kind::ModelChunk => self.turn().model_chunks += 1,
            Kind::ToolBefore => {
                let call = ItemKind::Tool {
                    tool: row.tool.clone().unwrap_or_default(),
                    call_id: call_id(&payload),
                    input: payload["tool_input"].clone(),
                    result: None,
                };
                let text = summarize(&Row { tool: None, ..row.clone() }, &payload);
                self.push(row, call, text);
            }
            Kind::ToolAfter | Kind::ToolFailed => self.finish_tool(row, &payload),
            Kind::SubagentStart => {
                let session = payload["extra"]["child_session_id"].as_str().map(str::to_owned);
                let inside = session.as_deref().and_then(child_timeline).map(Box::new);
                let text = summarize(row, &payload);
                self.push(row, ItemKind::Subagent { session, inside, result: None }, text);
            }
            Kind::SubagentStop => self.finish_subagent(row, &payload),
            Kind::ToolSelect | Kind::ToolOutput | Kind::ModelAfter | Kind::CompactBefore => {
                self.push(row, ItemKind::Hidden, String::new());
            }
            _ => self.push(row, ItemKind::Plain, summarize(row, &payload)),
        }
    }

    fn turn(&mut self) -> &mut Turn {
        if self.turns.is_empty() {
            self.turns.push(Turn::default());
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    fn push(&mut self, row: &Row, kind: ItemKind, text: String) {
        let item = Item {
            seq: row.seq.as_i64(),
            at: row.at,
            name: row.name.clone(),
            kind,
            text,
            decision: None,
        };
        self.turn().items.push(item);
    }

    /// All items, latest first.
    fn items(&mut self) -> impl Iterator<Item = &mut Item> {
        self.turns.iter_mut().rev().flat_map(|turn| turn.items.iter_mut().rev())
    }

    fn add_decision(&mut self, row: &Row, payload: Value) {
        self.decisions += 1;
        let decision = match RecordedDecision::from_json(payload) {
            Ok(RecordedDecision { outcome, verdicts, note, notice, .. }) => {
                self.blocked += usize::from(outcome.refuses());
                let hooks = verdicts.into_iter().map(HookVerdict::from).collect();
                let notice = notice.map(|notice| notice.text);
                DecisionSummary { outcome: outcome.to_string(), hooks, note, notice }
            }
            // A later version may write outcomes that this one does not know.
            Err(_) => {
                let outcome = "?".to_owned();
                DecisionSummary { outcome, hooks: Vec::new(), note: None, notice: None }
            }
        };
        let cause = row.cause.map(hookbus::event::Seq::as_i64);
        if let Some(item) = self.items().find(|item| Some(item.seq) == cause) {
            item.decision = Some(decision);
        }
    }

    /// Joins a result with its call: by call id if the agent sends one, else with the oldest open call of the same
    /// tool and input.
    fn finish_tool(&mut self, row: &Row, payload: &Value) {
        let id = call_id(payload);
        let open: Vec<&mut Item> = self
            .items()
            .filter(|item| match &item.kind {
                ItemKind::Tool { tool, call_id, input, result: None } => match (&id, call_id) {
                    (Some(id), Some(call_id)) => id == call_id,
                    _ => Some(tool) == row.tool.as_ref() && *input == payload["tool_input"],
                },
                ItemKind::Tool { .. }
                | ItemKind::Subagent { .. }
                | ItemKind::Plain
                | ItemKind::Hidden => false,
            })
            .collect();
        let status = tool_status(row, payload);
        let reported = payload["extra"]["duration_ms"].as_u64().or(payload["duration_ms"].as_u64());
        match open.into_iter().last() {
            Some(item) => {
                let took = reported.map_or_else(|| row.at.since(item.at), Duration::from_millis);
                if let ItemKind::Tool { result, .. } = &mut item.kind {
                    *result = Some(CallResult { status, took });
                }
            }
            None => {
                self.push(row, ItemKind::Plain, format!("{} {status}", summarize(row, payload)));
            }
        }
    }

    fn finish_subagent(&mut self, row: &Row, payload: &Value) {
        let child = payload["extra"]["child_session_id"].as_str();
        let status = payload["extra"]["child_status"].as_str().unwrap_or("done").to_owned();
        let reported = payload["extra"]["duration_ms"].as_u64();
        let open = self.items().find(|item| {
            matches!(&item.kind, ItemKind::Subagent { session, result: None, .. } if session.as_deref() == child)
        });
        match open {
            Some(item) => {
                let took = reported.map_or_else(|| row.at.since(item.at), Duration::from_millis);
                if let ItemKind::Subagent { result, .. } = &mut item.kind {
                    *result = Some(CallResult { status, took });
                }
            }
            None => self.push(row, ItemKind::Plain, summarize(row, payload)),
        }
    }

    /// For `--json`.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "session": self.session,
            "agent": self.agent,
            "cwd": self.cwd,
            "first": self.first.map(|at| at.to_string()),
            "last": self.last.map(|at| at.to_string()),
            "events": self.events,
            "decisions": self.decisions,
            "blocked": self.blocked,
            "turns": self.turns.iter().map(Turn::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Turn {
    /// The items to show.
    pub(crate) fn visible_items(&self) -> impl Iterator<Item = &Item> {
        let is_visible =
            |item: &&Item| !matches!(item.kind, ItemKind::Hidden) || item.decision.is_some();
        self.items.iter().filter(is_visible)
    }

    fn to_json(&self) -> Value {
        json!({
            "prompt": self.prompt,
            "model_requests": self.model_requests,
            "model_chunks": self.model_chunks,
            "items": self.visible_items().map(Item::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Item {
    fn to_json(&self) -> Value {
        let result = |result: &Option<CallResult>| {
            result.as_ref().map(|result| {
                json!({"status": result.status, "ms": u64::try_from(result.took.as_millis()).unwrap_or(u64::MAX)})
            })
        };
        let mut value = json!({
            "seq": self.seq, "time": self.at.to_string(), "name": self.name, "text": self.text,
            "decision": self.decision.as_ref().map(|decision| json!({
                "outcome": decision.outcome,
                "note": decision.note,
                "notice": decision.notice,
                "hooks": decision.hooks.iter().map(HookVerdict::to_json).collect::<Vec<_>>(),
            })),
        });
        match &self.kind {
            ItemKind::Tool { tool, input, result: ended, .. } => {
                value["tool"] = json!(tool);
                value["input"] = input.clone();
                value["result"] = json!(result(ended));
            }
            ItemKind::Subagent { session, inside, result: ended } => {
                value["subagent"] = json!(session);
                value["result"] = json!(result(ended));
                value["inside"] = inside.as_ref().map_or(Value::Null, |inside| inside.to_json());
            }
            ItemKind::Plain | ItemKind::Hidden => {}
        }
        value
    }
}

/// The id that an agent gives a tool call, in its start and its result.
pub(crate) fn call_id(payload: &Value) -> Option<String> {
    let id = payload["extra"]["tool_call_id"].as_str().or(payload["tool_use_id"].as_str());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

/// How a tool call ended, in the agent's words; `ok` if it does not say.
pub(crate) fn tool_status(row: &Row, payload: &Value) -> String {
    if row.kind == Kind::ToolFailed.as_str() || payload["tool_response"]["error"].is_object() {
        return "failed".to_owned();
    }
    payload["extra"]["status"].as_str().unwrap_or("ok").to_owned()
}
