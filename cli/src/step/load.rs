//! Reads the events of a session, and the payload of one of them when it is shown: payloads can be large, so that not all
//! of them are kept.

use anyhow::Result;
use hookbus::event::{RecordedDecision, Seq};
use hookbus::json::read_leniently;
use hookbus::log::{LogReader, Query, ReadError, Row};
use hookbus::view::{REMOVED, Step, Steps};
use serde_json::Value;

use super::detail::Sources;

/// The events of a session, read from a log.
#[derive(Debug)]
pub(crate) struct SessionEvents {
    log: LogReader,
    session: String,
    steps: Steps,
    /// The last row that was read.
    last: Option<Seq>,
    /// Whether earlier rows were left out.
    pub(crate) is_cut: bool,
}

impl SessionEvents {
    /// All events of a session.
    pub(crate) fn read(log: LogReader, session: &str) -> Result<Self> {
        let mut events = Self::new(log, session);
        events.read_new()?;
        Ok(events)
    }

    /// Those of its last `rows` rows.
    pub(crate) fn read_last(log: LogReader, session: &str, rows: usize) -> Result<Self> {
        let mut events = Self::new(log, session);
        let last = events.log.last(&events.query(), rows)?;
        events.is_cut = last.len() == rows;
        for row in last {
            events.steps.add(&row);
            events.last = Some(row.seq);
        }
        Ok(events)
    }

    fn new(log: LogReader, session: &str) -> Self {
        let steps = Steps::new(session);
        Self { log, session: session.to_owned(), steps, last: None, is_cut: false }
    }

    fn query(&self) -> Query {
        Query { session: Some(self.session.clone()), ..Query::default() }
    }

    /// Adds what was recorded since.
    pub(crate) fn read_new(&mut self) -> Result<()> {
        let (query, steps) = (self.query(), &mut self.steps);
        self.last = self.log.each(&query, self.last, |row| {
            steps.add(&row);
            Ok::<_, ReadError>(())
        })?;
        Ok(())
    }

    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// The last row that was read.
    pub(crate) const fn last(&self) -> Option<Seq> {
        self.last
    }

    /// The events so far.
    pub(crate) fn steps(&mut self) -> Vec<Step> {
        self.steps.steps().to_vec()
    }

    /// The row of an event, and of the decision about it.
    fn row(&self, seq: Seq) -> Result<Option<Row>> {
        let query = Query { seq: Some(seq), ..Query::default() };
        Ok(self.log.last(&query, 1)?.pop())
    }

    /// What is read only when an event is shown.
    pub(crate) fn sources(&self, step: &Step) -> Sources {
        let payload = match self.row(step.seq) {
            Ok(Some(row)) => serde_json::to_string_pretty(&payload_of(&row)).unwrap_or_default(),
            Ok(None) => "(the row is not in the log any more)".to_owned(),
            Err(error) => format!("(cannot be read: {error:#})"),
        };
        let decision = step.decision.as_ref().and_then(|decision| {
            let row = self.row(decision.seq).ok().flatten()?;
            RecordedDecision::from_json(row.payload_json()).ok()
        });
        Sources { payload, decision }
    }

    /// The payload of an event, as JSON.
    pub(crate) fn payload(&self, seq: Seq) -> Result<Value> {
        Ok(self.row(seq)?.map_or(Value::Null, |row| payload_of(&row)))
    }
}

/// The payload of a row as JSON; as text if it is no JSON.
fn payload_of(row: &Row) -> Value {
    if row.removed.is_some() {
        return Value::String(REMOVED.to_owned());
    }
    read_leniently(&row.payload)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&row.payload).into_owned()))
}
