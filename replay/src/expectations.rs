//! The file of a policy test: recorded events and the decisions that are expected, as JSON lines. It needs
//! no log. The first line identifies the format.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hookbus::event::{Decision, Event, EventId, Seq, Time};
use hookbus::log::{ReadError, RecordedEvent, ScannedRow};
use serde_json::{Value, json};

use crate::compare::Category;
use crate::replayed_event::ReplayedEvent;
use crate::source::{EventReader, EventSource};

/// Version of the format.
const VERSION: i64 = 1;

/// Most events in a chunk.
const CHUNK_EVENTS: usize = 16;

/// Most bytes in a chunk.
const CHUNK_BYTES: usize = 1 << 20;

/// Why an expectations file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExpectationsError {
    /// The file does not exist.
    #[error(
        "there are no expectations at {0} yet; write them with `hookbus replay --check --update <session>`"
    )]
    Missing(PathBuf),
    /// The file has another format.
    #[error("{0} is not an expectations file of hookbus; name another file with --expect")]
    Foreign(PathBuf),
    /// A later version of hookbus wrote it.
    #[error("{path} has format version {found}, this hookbus knows {VERSION}; use a newer hookbus")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// The operating system reports an error.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Hex(#[from] hex::FromHexError),
    #[error("it has no `{0}`")]
    Missing(&'static str),
    #[error("its `id` is not an event id")]
    BadId,
}

/// An expectations file. Keeps the position of each line and reads the lines when they are needed.
#[derive(Debug)]
pub struct Expectations {
    path: PathBuf,
    chunks: Vec<Vec<LinePosition>>,
    /// How often in a row hooks had made the agent continue before an event, where that is not 0.
    continuations: HashMap<Seq, u32>,
    damaged: usize,
}

#[derive(Debug, Clone, Copy)]
struct LinePosition {
    number: i64,
    start: u64,
    length: usize,
}

impl Expectations {
    /// Scans the file at `path`. The replay reports lines that cannot be read.
    pub fn open(path: &Path) -> Result<Self, ExpectationsError> {
        let io_error = |error: io::Error| {
            let path = path.to_owned();
            if error.kind() == io::ErrorKind::NotFound {
                ExpectationsError::Missing(path)
            } else {
                ExpectationsError::Io { path, error }
            }
        };
        let mut file = BufReader::new(File::open(path).map_err(io_error)?);
        let mut bytes = Vec::new();
        let mut start = file.read_until(b'\n', &mut bytes).map_err(io_error)? as u64;
        let head: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match head.get("hookbus_expectations").and_then(Value::as_i64) {
            None => return Err(ExpectationsError::Foreign(path.to_owned())),
            Some(found) if found > VERSION => {
                return Err(ExpectationsError::Newer { path: path.to_owned(), found });
            }
            Some(_) => {}
        }
        let mut expectations = Self {
            path: path.to_owned(),
            chunks: Vec::new(),
            continuations: HashMap::new(),
            damaged: 0,
        };
        for number in 2.. {
            bytes.clear();
            let length = file.read_until(b'\n', &mut bytes).map_err(io_error)?;
            if length == 0 {
                break;
            }
            if !bytes.trim_ascii().is_empty() {
                expectations.add(LinePosition { number, start, length }, &bytes);
            }
            start += length as u64;
        }
        Ok(expectations)
    }

    fn add(&mut self, line: LinePosition, bytes: &[u8]) {
        match parse_line(bytes) {
            Ok((_, 0)) => {}
            Ok((row, continuations)) => drop(self.continuations.insert(row.seq, continuations)),
            Err(_) => self.damaged += 1,
        }
        let is_full = |chunk: &Vec<LinePosition>| {
            let bytes: usize = chunk.iter().map(|line| line.length).sum();
            chunk.len() >= CHUNK_EVENTS || bytes + line.length > CHUNK_BYTES
        };
        match self.chunks.last_mut().filter(|chunk| !is_full(chunk)) {
            Some(chunk) => chunk.push(line),
            None => self.chunks.push(vec![line]),
        }
    }

    /// Number of lines that cannot be read.
    pub const fn damaged_lines(&self) -> usize {
        self.damaged
    }
}

impl EventSource for Expectations {
    fn chunks(&self) -> u64 {
        self.chunks.len() as u64
    }

    fn rows_per_chunk(&self) -> u64 {
        CHUNK_EVENTS as u64
    }

    fn open(&self) -> Result<Box<dyn EventReader + '_>, ReadError> {
        Ok(Box::new(self))
    }
}

impl EventReader for &Expectations {
    fn read_chunk(&self, index: u64, each: &mut dyn FnMut(ScannedRow)) -> Result<(), ReadError> {
        let chunk = usize::try_from(index).ok().and_then(|index| self.chunks.get(index));
        for line in chunk.into_iter().flatten() {
            each(match line.read(&self.path) {
                Ok(row) => ScannedRow::Selected(row),
                Err(error) => {
                    let why = format!("line {} of the expectations: {error}", line.number);
                    ScannedRow::Damaged { seq: Seq::from_i64(line.number), why }
                }
            });
        }
        Ok(())
    }

    fn continuations_before(&self, _event: &Event, seq: Seq, most: u32) -> u32 {
        self.continuations.get(&seq).copied().unwrap_or(0).min(most)
    }
}

impl LinePosition {
    fn read(self, path: &Path) -> Result<RecordedEvent, LineError> {
        let mut file = File::open(path)?;
        let mut bytes = vec![0; self.length];
        file.seek(SeekFrom::Start(self.start))?;
        file.read_exact(&mut bytes)?;
        parse_line(&bytes).map(|(row, _)| row)
    }
}

/// Writes an expectations file. It replaces the old one when it is complete.
#[derive(Debug)]
pub struct ExpectationsWriter {
    path: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
    /// Events written so far.
    pub events: usize,
    /// Events left out, because they could not be decided on.
    pub left_out: usize,
    is_finished: bool,
}

impl ExpectationsWriter {
    /// Creates a temporary file beside `path`; `hooks` names the hooks file.
    pub fn create(path: &Path, hooks: &str) -> io::Result<Self> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut file = BufWriter::new(File::create(&partial)?);
        let header = json!({
            "hookbus_expectations": VERSION,
            "hooks": hooks,
            "about": "run with `hookbus replay --check`, written with `hookbus replay --check --update`",
        });
        writeln!(file, "{header}")?;
        Ok(Self {
            path: path.to_owned(),
            partial,
            file,
            events: 0,
            left_out: 0,
            is_finished: false,
        })
    }

    /// Writes the next event with its replayed decision, which becomes the expected one.
    pub fn write(&mut self, event: &ReplayedEvent) -> io::Result<()> {
        let Some(row) = &event.row else { return Ok(()) };
        if event.comparison.category == Category::NotComparable && event.replayed.is_none() {
            self.left_out += 1;
            return Ok(());
        }
        let (text, bytes) = match std::str::from_utf8(&row.payload) {
            Ok(text) => (Some(text), None),
            Err(_) => (None, Some(hex::encode(&row.payload))),
        };
        let mut line = json!({
            "seq": row.seq.as_i64(),
            "id": row.id.to_string(),
            "time": row.at.micros(),
            "agent": row.agent,
            "session": row.session,
            "kind": row.kind,
            "context": row.context,
            "payload": text,
            "decision": event.replayed.as_ref().map(expected_decision),
        });
        if event.continuations > 0 {
            line["sent_on"] = json!(event.continuations);
        }
        if let Some(bytes) = bytes {
            line["payload_hex"] = json!(bytes);
        }
        self.events += 1;
        writeln!(self.file, "{line}")
    }

    /// Completes the file and moves it to its path.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        fs::rename(&self.partial, &self.path)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for ExpectationsWriter {
    fn drop(&mut self) {
        // An incomplete file is of no use.
        if !self.is_finished {
            drop(fs::remove_file(&self.partial));
        }
    }
}

/// A decision without the fields that vary: durations and the hash of the hooks.
fn expected_decision(decision: &Decision) -> Value {
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

/// Reads an event, and how often in a row hooks had made the agent continue before it.
fn parse_line(line: &[u8]) -> Result<(RecordedEvent, u32), LineError> {
    let line: Value = serde_json::from_slice(line)?;
    let text = |key: &str| line[key].as_str().map(str::to_owned);
    let required = |key: &'static str| text(key).ok_or(LineError::Missing(key));
    let number = |key: &'static str| line[key].as_i64().ok_or(LineError::Missing(key));
    let payload = match (text("payload"), text("payload_hex")) {
        (Some(payload), _) => payload.into_bytes(),
        (None, Some(bytes)) => hex::decode(bytes)?,
        (None, None) => return Err(LineError::Missing("payload")),
    };
    let continuations = line["sent_on"].as_u64().and_then(|times| u32::try_from(times).ok());
    let row = RecordedEvent {
        seq: Seq::from_i64(number("seq")?),
        id: required("id")?.parse::<EventId>().map_err(|_| LineError::BadId)?,
        at: Time::from_micros(number("time")?),
        agent: required("agent")?,
        session: required("session")?,
        kind: required("kind")?,
        context: text("context"),
        payload,
        is_removed: false,
        decision: Some(&line["decision"])
            .filter(|decision| !decision.is_null())
            .map(|decision| decision.to_string().into_bytes()),
        origin: None,
    };
    Ok((row, continuations.unwrap_or(0)))
}
