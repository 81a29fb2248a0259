//! A policy test: recorded events and what the policy is expected to say about them, in one file of
//! JSON lines that needs no log. The first line says what the file is.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use hookbus::event::{Decision, Event, EventId, Seq, Time};
use hookbus::json::read_leniently;
use hookbus::log::{Case, Found, ReadError};
use serde_json::{Value, json};

use crate::judge::Judged;
use crate::source::{Reading, Source};

/// The version of the format.
const VERSION: i64 = 1;

/// So many events make a part.
const PART: usize = 16;

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadExpectations {
    /// There is none.
    #[error(
        "there are no expectations at {0} yet; write them with `hookbus replay --check --update <session>`"
    )]
    Missing(PathBuf),
    /// It is something else.
    #[error("{0} holds no expectations of hookbus; name another file with --expect")]
    Foreign(PathBuf),
    /// A later version wrote it.
    #[error("{path} has version {found}, this hookbus knows {VERSION}; use a newer hookbus")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// The system says no.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Expectations, read.
#[derive(Debug)]
pub struct Expectations {
    lines: Vec<Result<Case, (i64, String)>>,
}

impl Expectations {
    /// Reads the file at `path`. A line that cannot be read is told by the replay.
    pub fn read(path: &Path) -> Result<Self, BadExpectations> {
        let text = fs::read_to_string(path).map_err(|error| {
            let path = path.to_owned();
            if error.kind() == io::ErrorKind::NotFound {
                BadExpectations::Missing(path)
            } else {
                BadExpectations::Io { path, error }
            }
        })?;
        let mut lines = text.lines();
        let head: Value =
            lines.next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        match head.get("hookbus_expectations").and_then(Value::as_i64) {
            None => return Err(BadExpectations::Foreign(path.to_owned())),
            Some(found) if found > VERSION => {
                return Err(BadExpectations::Newer { path: path.to_owned(), found });
            }
            Some(_) => {}
        }
        let lines = (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty());
        let lines = lines.map(|(number, line)| case(line).map_err(|why| (number, why))).collect();
        Ok(Self { lines })
    }

    /// How many lines cannot be read.
    pub fn damaged(&self) -> usize {
        self.lines.iter().filter(|line| line.is_err()).count()
    }
}

impl Source for Expectations {
    fn parts(&self) -> u64 {
        self.lines.len().div_ceil(PART) as u64
    }

    fn rows_per_part(&self) -> u64 {
        PART as u64
    }

    fn open(&self) -> Result<Box<dyn Reading + '_>, ReadError> {
        Ok(Box::new(self))
    }
}

impl Reading for &Expectations {
    fn part(&self, index: u64, each: &mut dyn FnMut(Found)) -> Result<(), ReadError> {
        let from = usize::try_from(index).unwrap_or(usize::MAX).saturating_mul(PART);
        for line in self.lines.iter().skip(from).take(PART) {
            each(match line {
                Ok(case) => Found::Case(case.clone()),
                Err((number, why)) => {
                    let why = format!("line {number} of the expectations: {why}");
                    Found::Damaged { seq: Seq::from_i64(*number), why }
                }
            });
        }
        Ok(())
    }

    fn sent_on_before(&self, event: &Event, seq: Seq, most: u32) -> u32 {
        let earlier = self.lines.iter().flatten().filter(|case| {
            case.seq < seq && case.session == event.session && case.agent == event.agent.as_str()
        });
        let earlier: Vec<Value> = earlier
            .map(|case| read_leniently(&case.payload).unwrap_or_default())
            .filter(|payload| payload["hook_event_name"] == event.name)
            .collect();
        let sent_on = |payload: &&Value| payload["stop_hook_active"] == Value::Bool(true);
        let in_a_row = earlier.iter().rev().take_while(sent_on).count();
        u32::try_from(in_a_row).unwrap_or(most).min(most)
    }
}

/// Writes expectations; the file appears when all of them are written.
#[derive(Debug)]
pub struct ExpectationsWriter {
    path: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
    /// How many events were written.
    pub events: usize,
}

impl ExpectationsWriter {
    /// Starts a file beside `path`.
    pub fn start(path: &Path, hooks: &str) -> io::Result<Self> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut file = BufWriter::new(File::create(&partial)?);
        let head = json!({
            "hookbus_expectations": VERSION,
            "hooks": hooks,
            "about": "run with `hookbus replay --check`, written with `hookbus replay --check --update`",
        });
        writeln!(file, "{head}")?;
        Ok(Self { path: path.to_owned(), partial, file, events: 0 })
    }

    /// The next event, and what is expected of it: what the hooks say now.
    pub fn write(&mut self, judged: &Judged) -> io::Result<()> {
        let Some(case) = &judged.case else { return Ok(()) };
        let (text, bytes) = match std::str::from_utf8(&case.payload) {
            Ok(text) => (Some(text), None),
            Err(_) => (None, Some(hex::encode(&case.payload))),
        };
        let mut line = json!({
            "seq": case.seq.as_i64(),
            "id": case.id.to_string(),
            "time": case.at.micros(),
            "agent": case.agent,
            "session": case.session,
            "kind": case.kind,
            "context": case.context,
            "payload": text,
            "decision": judged.now.as_ref().map(timeless),
        });
        if let Some(bytes) = bytes {
            line["payload_hex"] = json!(bytes);
        }
        self.events += 1;
        writeln!(self.file, "{line}")
    }

    /// Puts the file in its place.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        fs::rename(&self.partial, &self.path)
    }
}

/// A decision without what is another number each time.
fn timeless(decision: &Decision) -> Value {
    let mut row = decision.to_json();
    if let Some(fields) = row.as_object_mut() {
        fields.shift_remove("ms");
        fields.shift_remove("hooks");
    }
    for verdict in row["verdicts"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = verdict.as_object_mut() {
            fields.shift_remove("ms");
        }
    }
    row
}

fn case(line: &str) -> Result<Case, String> {
    let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let text = |key: &str| line[key].as_str().map(str::to_owned);
    let needed = |key: &str| text(key).ok_or_else(|| format!("it has no `{key}`"));
    let number = |key: &str| line[key].as_i64().ok_or_else(|| format!("it has no `{key}`"));
    let payload = match (text("payload"), text("payload_hex")) {
        (Some(payload), _) => payload.into_bytes(),
        (None, Some(bytes)) => hex::decode(bytes).map_err(|error| error.to_string())?,
        (None, None) => return Err("it has no `payload`".to_owned()),
    };
    Ok(Case {
        seq: Seq::from_i64(number("seq")?),
        id: needed("id")?.parse::<EventId>().map_err(|_| "its `id` is none".to_owned())?,
        at: Time::from_micros(number("time")?),
        agent: needed("agent")?,
        session: needed("session")?,
        kind: needed("kind")?,
        context: text("context"),
        payload,
        decision: Some(&line["decision"])
            .filter(|decision| !decision.is_null())
            .map(|decision| decision.to_string().into_bytes()),
    })
}
