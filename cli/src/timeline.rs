//! A session as a person thinks of it: turns, tool calls with their results, decisions with their
//! reasons, sub-agents inside their parents. Values in, values out.

use std::time::Duration;

use hookbus::event::{Kind, Time};
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

/// What happened from one prompt to the next; the first may have none.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) prompt: Option<String>,
    pub(crate) items: Vec<Item>,
    /// Model requests, chunks and the like are only counted.
    pub(crate) model_requests: usize,
    pub(crate) model_chunks: usize,
}

/// One line of a timeline.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) seq: i64,
    pub(crate) at: Time,
    pub(crate) name: String,
    pub(crate) what: What,
    pub(crate) text: String,
    pub(crate) decision: Option<Said>,
}

/// What a line is about.
#[derive(Debug)]
pub(crate) enum What {
    /// A tool call, joined with its result.
    Tool { tool: String, call: Option<String>, input: Value, result: Option<Outcome> },
    /// A sub-agent, with its own session inside where it has one.
    Subagent { session: Option<String>, inside: Option<Box<Timeline>>, result: Option<Outcome> },
    /// Anything else.
    Plain,
    /// Seen in the log; no line of its own unless something was decided about it.
    Quiet,
}

/// How something ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: String,
    pub(crate) took: Duration,
}

/// A decision about the line above it.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) outcome: String,
    pub(crate) hooks: Vec<HookSaid>,
    /// About the decision as a whole.
    pub(crate) note: Option<String>,
}

/// What one hook had to do with a decision.
#[derive(Debug)]
pub(crate) struct HookSaid {
    pub(crate) hook: String,
    pub(crate) verdict: String,
    /// Why it failed, else why it says so, else what it says.
    pub(crate) reason: Option<String>,
    pub(crate) failed: bool,
    /// It was not asked for want of consent.
    pub(crate) refused: bool,
    /// What the agent could not take of it, and what became of that.
    pub(crate) note: Option<String>,
}

impl HookSaid {
    fn read(verdict: &Value) -> Self {
        let text = |key: &str| verdict[key].as_str().map(str::to_owned);
        Self {
            hook: text("hook").unwrap_or_default(),
            verdict: text("verdict").unwrap_or_default(),
            reason: text("failure").or_else(|| text("reason")).or_else(|| text("context")),
            failed: verdict["failed"] == true,
            refused: verdict.get("refused").is_some(),
            note: text("note"),
        }
    }

    fn to_json(&self) -> Value {
        let Self { hook, verdict, reason, failed, refused, note } = self;
        json!({
            "hook": hook, "verdict": verdict, "reason": reason,
            "failed": failed, "refused": refused, "note": note,
        })
    }
}

impl Timeline {
    /// Arranges the rows of one session. `inside` finds the timeline of a sub-agent's session.
    pub(crate) fn of(
        session: &str,
        rows: &[Row],
        inside: &mut dyn FnMut(&str) -> Option<Self>,
    ) -> Self {
        let mut timeline = Self { session: session.to_owned(), ..Self::default() };
        for row in rows {
            timeline.add(row, inside);
        }
        timeline
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "every other kind is a plain line")]
    fn add(&mut self, row: &Row, inside: &mut dyn FnMut(&str) -> Option<Self>) {
        let payload = row.payload_json();
        if row.kind == Kind::Decision.as_str() {
            return self.decide(row, &payload);
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
                self.push(row, What::Plain, String::new());
            }
            Kind::ModelBefore => self.turn().model_requests += 1,
            Kind::ModelChunk => self.turn().model_chunks += 1,
            Kind::ToolBefore => {
                let what = What::Tool {
                    tool: row.tool.clone().unwrap_or_default(),
                    call: call_id(&payload),
                    input: payload["tool_input"].clone(),
                    result: None,
                };
                let text = summarize(&Row { tool: None, ..row.clone() }, &payload);
                self.push(row, what, text);
            }
            Kind::ToolAfter | Kind::ToolFailed => self.finish_tool(row, &payload),
            Kind::SubagentStart => {
                let session = payload["extra"]["child_session_id"].as_str().map(str::to_owned);
                let inside = session.as_deref().and_then(inside).map(Box::new);
                let text = summarize(row, &payload);
                self.push(row, What::Subagent { session, inside, result: None }, text);
            }
            Kind::SubagentStop => self.finish_subagent(row, &payload),
            Kind::ToolSelect | Kind::ToolOutput | Kind::ModelAfter | Kind::CompactBefore => {
                self.push(row, What::Quiet, String::new());
            }
            _ => self.push(row, What::Plain, summarize(row, &payload)),
        }
    }

    fn turn(&mut self) -> &mut Turn {
        if self.turns.is_empty() {
            self.turns.push(Turn::default());
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    fn push(&mut self, row: &Row, what: What, text: String) {
        let item = Item {
            seq: row.seq.as_i64(),
            at: row.at,
            name: row.name.clone(),
            what,
            text,
            decision: None,
        };
        self.turn().items.push(item);
    }

    fn items(&mut self) -> impl Iterator<Item = &mut Item> {
        self.turns.iter_mut().rev().flat_map(|turn| turn.items.iter_mut().rev())
    }

    fn decide(&mut self, row: &Row, payload: &Value) {
        let outcome = payload["outcome"].as_str().unwrap_or("?").to_owned();
        self.decisions += 1;
        self.blocked += usize::from(matches!(outcome.as_str(), "block" | "stop"));
        let hooks = payload["verdicts"].as_array().into_iter().flatten().map(HookSaid::read);
        let note = payload["note"].as_str().map(str::to_owned);
        let said = Said { outcome, hooks: hooks.collect(), note };
        let cause = row.cause.map(hookbus::event::Seq::as_i64);
        if let Some(item) = self.items().find(|item| Some(item.seq) == cause) {
            item.decision = Some(said);
        }
    }

    /// By call id where the agent has one, else the oldest open call of that name and input.
    fn finish_tool(&mut self, row: &Row, payload: &Value) {
        let id = call_id(payload);
        let open: Vec<&mut Item> = self
            .items()
            .filter(|item| match &item.what {
                What::Tool { tool, call, input, result: None } => match (&id, call) {
                    (Some(id), Some(call)) => id == call,
                    _ => Some(tool) == row.tool.as_ref() && *input == payload["tool_input"],
                },
                What::Tool { .. } | What::Subagent { .. } | What::Plain | What::Quiet => false,
            })
            .collect();
        let status = tool_status(row, payload);
        let told = payload["extra"]["duration_ms"].as_u64().or(payload["duration_ms"].as_u64());
        match open.into_iter().last() {
            Some(item) => {
                let took = told.map_or_else(|| row.at.since(item.at), Duration::from_millis);
                if let What::Tool { result, .. } = &mut item.what {
                    *result = Some(Outcome { status, took });
                }
            }
            None => self.push(row, What::Plain, format!("{} {status}", summarize(row, payload))),
        }
    }

    fn finish_subagent(&mut self, row: &Row, payload: &Value) {
        let child = payload["extra"]["child_session_id"].as_str();
        let status = payload["extra"]["child_status"].as_str().unwrap_or("done").to_owned();
        let told = payload["extra"]["duration_ms"].as_u64();
        let open = self.items().find(|item| {
            matches!(&item.what, What::Subagent { session, result: None, .. } if session.as_deref() == child)
        });
        match open {
            Some(item) => {
                let took = told.map_or_else(|| row.at.since(item.at), Duration::from_millis);
                if let What::Subagent { result, .. } = &mut item.what {
                    *result = Some(Outcome { status, took });
                }
            }
            None => self.push(row, What::Plain, summarize(row, payload)),
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
    /// The lines worth reading.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Item> {
        let worth = |item: &&Item| !matches!(item.what, What::Quiet) || item.decision.is_some();
        self.items.iter().filter(worth)
    }

    fn to_json(&self) -> Value {
        json!({
            "prompt": self.prompt,
            "model_requests": self.model_requests,
            "model_chunks": self.model_chunks,
            "items": self.lines().map(Item::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Item {
    fn to_json(&self) -> Value {
        let result = |result: &Option<Outcome>| {
            result.as_ref().map(|result| {
                json!({"status": result.status, "ms": u64::try_from(result.took.as_millis()).unwrap_or(u64::MAX)})
            })
        };
        let mut value = json!({
            "seq": self.seq, "time": self.at.to_string(), "name": self.name, "text": self.text,
            "decision": self.decision.as_ref().map(|said| json!({
                "outcome": said.outcome,
                "note": said.note,
                "hooks": said.hooks.iter().map(HookSaid::to_json).collect::<Vec<_>>(),
            })),
        });
        match &self.what {
            What::Tool { tool, input, result: ended, .. } => {
                value["tool"] = json!(tool);
                value["input"] = input.clone();
                value["result"] = json!(result(ended));
            }
            What::Subagent { session, inside, result: ended } => {
                value["subagent"] = json!(session);
                value["result"] = json!(result(ended));
                value["inside"] = inside.as_ref().map_or(Value::Null, |inside| inside.to_json());
            }
            What::Plain | What::Quiet => {}
        }
        value
    }
}

fn call_id(payload: &Value) -> Option<String> {
    let id = payload["extra"]["tool_call_id"].as_str().or(payload["tool_use_id"].as_str());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

fn tool_status(row: &Row, payload: &Value) -> String {
    if row.kind == Kind::ToolFailed.as_str() || payload["tool_response"]["error"].is_object() {
        return "failed".to_owned();
    }
    payload["extra"]["status"].as_str().unwrap_or("ok").to_owned()
}
