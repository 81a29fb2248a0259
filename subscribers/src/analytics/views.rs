//! What can be queried and exported: the views with their columns. `cli/docs/query.md` shows the same, and a test compares
//! it with the database.

/// A view.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// What one row of it is.
    pub about: &'static str,
    /// Whether it is a view of the log, and not of the analytics database.
    pub is_of_log: bool,
    /// Its columns.
    pub columns: &'static [Column],
}

/// A column of a view. Any value may be null unless it is a number that counts.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// What it means.
    pub about: &'static str,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Real,
    /// 0 or 1.
    Flag,
    /// A time: text in UTC, `2026-11-16T14:05:00.000000Z`.
    Time,
}

impl ColumnKind {
    /// The word in the documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Real => "number",
            Self::Flag => "0 or 1",
            Self::Time => "time",
        }
    }
}

impl View {
    /// The view with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        VIEWS.iter().find(|view| view.name == name)
    }

    /// The column that says when a row happened; none if it has no time.
    pub fn time_column(&self) -> Option<&'static Column> {
        let is_time = |column: &&Column| column.kind == Time;
        self.columns.iter().find(is_time)
    }
}

use ColumnKind::{Flag, Integer, Real, Text, Time};

const fn column(name: &'static str, kind: ColumnKind, about: &'static str) -> Column {
    Column { name, kind, about }
}

/// A view of the analytics database.
const fn view(name: &'static str, about: &'static str, columns: &'static [Column]) -> View {
    View { name, about, is_of_log: false, columns }
}

const BUS: Column = column("bus", Text, "the bus that recorded it");
const SESSION: Column = column("session", Text, "the session");
const AGENT: Column = column("agent", Text, "the agent");
const PROJECT: Column = column(
    "project",
    Text,
    "the repository in which the session began, else its working directory",
);
const MODEL: Column = column("model", Text, "the model, as far as it was known then");
const HOST: Column = column("host", Text, "the machine");
const TURN: Column =
    column("turn", Integer, "the number of the turn in its session; null before the first");
const TOOL: Column = column("tool", Text, "the agent's name for the tool");
const TOOL_CLASS: Column = column("tool_class", Text, "our name for what the tool does");
const INPUT: Column = column("input_tokens", Integer, "tokens that went to the model");
const OUTPUT: Column = column("output_tokens", Integer, "tokens that the model wrote");
const COST: Column = column("cost_usd", Real, "cost in US dollars, where the agent reports it");
const HOUR: Column = column("hour", Time, "the hour in which it began");
const USES: Column = column("uses", Integer, "how many calls name it");

/// Every view.
pub const VIEWS: [View; 10] = [
    View {
        name: "events",
        about: "a row of the log: an event of an agent, a decision, or a row about the bus itself",
        is_of_log: true,
        columns: &[
            BUS,
            column("seq", Integer, "its place in the log"),
            column("id", Text, "its id"),
            column("time", Time, "when it happened"),
            AGENT,
            SESSION,
            column("turn", Text, "the agent's id of the turn"),
            column("name", Text, "the agent's name for it"),
            column("kind", Text, "our name for it"),
            TOOL,
            TOOL_CLASS,
            column("cause", Integer, "for a decision: the `seq` of its event"),
            column("context", Text, "JSON: working directory, session variables, marks"),
            column("payload", Text, "JSON: what the agent sent, whole; null if it was removed"),
            column("removed", Flag, "whether the payload was removed on purpose"),
            column("hash", Text, "the hash of the row"),
        ],
    },
    view(
        "sessions",
        "a session of an agent",
        &[
            BUS,
            SESSION,
            column("agent", Text, "the agent of its first event"),
            PROJECT,
            column("model", Text, "the last model"),
            HOST,
            column("started", Time, "its first event"),
            column("last_active", Time, "its last event"),
            column("ended", Time, "when the agent said that it ended"),
            column("prompt", Text, "the first prompt, shortened"),
            column("events", Integer, "how many events, without decisions"),
            column("turns", Integer, "how many turns"),
            column("tool_calls", Integer, "how many tool calls"),
            column("failed", Integer, "how many of them failed"),
            column("decisions", Integer, "how many decisions"),
            column("blocked", Integer, "how many of them blocked or stopped"),
            column("asked", Integer, "how many of them asked"),
            INPUT,
            OUTPUT,
            COST,
            column("first_seq", Integer, "its first row"),
            column("last_seq", Integer, "its last row"),
        ],
    ),
    view(
        "turns",
        "everything from one prompt to the next",
        &[
            BUS,
            SESSION,
            column("turn", Integer, "its number in the session, from 1"),
            column("turn_id", Text, "the agent's id"),
            column("seq", Integer, "the event that began it"),
            column("started", Time, "when it began"),
            column("ended", Time, "when the agent said that it was done"),
            column("prompt", Text, "the prompt, shortened"),
            column("events", Integer, "how many events"),
            column("tool_calls", Integer, "how many tool calls"),
            column("failed", Integer, "how many failed results came in it"),
            column("blocked", Integer, "how many decisions blocked or stopped"),
            INPUT,
            OUTPUT,
            COST,
        ],
    ),
    view(
        "tool_calls",
        "a tool call with its decision and its result",
        &[
            BUS,
            column("seq", Integer, "the event before it; of an agent that sends none, the result"),
            SESSION,
            TURN,
            AGENT,
            PROJECT,
            MODEL,
            HOST,
            TOOL,
            TOOL_CLASS,
            column("about", Text, "the command, path, address or input, shortened"),
            column("started", Time, "when it was called"),
            column("ended", Time, "when the result came"),
            column(
                "took_ms",
                Real,
                "how long it took: as the agent says, else between the two events",
            ),
            column(
                "status",
                Text,
                "`ok`, `failed`, `denied` (it did not run), `unknown` (the agent does not say), `pending` (no result is recorded)",
            ),
            column("exit_code", Integer, "the exit code of a command"),
            column("error", Text, "the error, shortened"),
            column("outcome", Text, "what was decided about it"),
            column("hook", Text, "the hook that decided"),
            column("ran_anyway", Flag, "whether it was blocked and ran all the same"),
            column("result_seq", Integer, "the event with its result"),
        ],
    ),
    view(
        "decisions",
        "what the bus answered to an event",
        &[
            BUS,
            column("seq", Integer, "its row"),
            column("cause", Integer, "the event that it is about"),
            SESSION,
            AGENT,
            PROJECT,
            MODEL,
            HOST,
            column("time", Time, "when it was made"),
            TOOL,
            TOOL_CLASS,
            column(
                "outcome",
                Text,
                "`block`, `stop`, `ask`, `rewrite`, `context`, `allow`, `none`; `unknown` if a later version wrote it",
            ),
            column("hook", Text, "the hook that it comes from"),
            column("reason", Text, "the reason, shortened"),
            column("took_ms", Real, "how long it took"),
            column("waited_for", Flag, "whether the agent was still waiting"),
        ],
    ),
    view(
        "verdicts",
        "what one hook said in a decision",
        &[
            BUS,
            column("seq", Integer, "the row of the decision"),
            column("number", Integer, "its place in the decision, from 1"),
            column("cause", Integer, "the event that it is about"),
            SESSION,
            AGENT,
            PROJECT,
            column("time", Time, "when the decision was made"),
            column("hook", Text, "the hook"),
            column("verdict", Text, "what it said, as in `outcome` of a decision"),
            column("shadow", Flag, "whether it was in shadow mode, and had no effect"),
            column("failed", Flag, "whether the hook failed"),
            column("unapproved", Flag, "whether it was not asked because it is not approved"),
            column("of_project", Flag, "whether it is a project's"),
            column("reason", Text, "the reason or the failure, shortened"),
            column("exit_code", Integer, "the exit code of a command"),
            column("took_ms", Real, "how long it took"),
        ],
    ),
    view(
        "hooks",
        "a hook, with all of its verdicts; what it said in shadow mode is a row of its own",
        &[
            column("hook", Text, "the hook"),
            column("shadow", Flag, "whether these are its verdicts in shadow mode"),
            column("calls", Integer, "how many verdicts"),
            column("blocked", Integer, "how many blocked or stopped"),
            column("asked", Integer, "how many asked"),
            column("rewritten", Integer, "how many changed the input"),
            column("context", Integer, "how many added context"),
            column("allowed", Integer, "how many allowed"),
            column("failed", Integer, "how many failed, whatever that came to"),
            column("unapproved", Integer, "how often it was not asked because it is not approved"),
            column("mean_ms", Real, "the mean time"),
            column(
                "p50_ms",
                Real,
                "half of the calls took at most so long (upper bound of a histogram)",
            ),
            column("p95_ms", Real, "19 of 20 took at most so long; null above a minute"),
        ],
    ),
    view(
        "usage",
        "tokens and cost of a request to a model, where the agent reports them",
        &[
            BUS,
            column("seq", Integer, "the first event that told it"),
            SESSION,
            TURN,
            AGENT,
            PROJECT,
            MODEL,
            HOST,
            column("time", Time, "when it was told first"),
            column("covers", Text, "`request`, or `subagent` for all requests of a sub-agent"),
            INPUT,
            OUTPUT,
            column("cache_read_tokens", Integer, "tokens that were read from a cache"),
            column("cache_write_tokens", Integer, "tokens that were written to a cache"),
            column("reasoning_tokens", Integer, "tokens of reasoning"),
            column("total_tokens", Integer, "all tokens, as the agent counts them"),
            COST,
        ],
    ),
    view(
        "files",
        "a file that tool calls of a session name in one hour, also calls that were blocked",
        &[
            BUS,
            HOUR,
            AGENT,
            PROJECT,
            MODEL,
            HOST,
            SESSION,
            column("path", Text, "the file; absolute where the working directory is known"),
            column("access", Text, "`read`, `write` or `delete`"),
            USES,
        ],
    ),
    view(
        "hosts",
        "a host that tool calls of a session name in one hour, also calls that were blocked",
        &[
            BUS,
            HOUR,
            AGENT,
            PROJECT,
            MODEL,
            column("machine", Text, "the machine on which the agent ran"),
            SESSION,
            column("host", Text, "the host, without user and port"),
            USES,
        ],
    ),
];
