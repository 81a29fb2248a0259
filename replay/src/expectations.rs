//! A policy test: recorded events and what the policy is expected to say about them, in one file of
//! JSON lines that needs no log. The first line says what the file is.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hookbus::event::{Decision, Event, EventId, Seq, Time};
use hookbus::log::{Case, Found, ReadError};
use serde_json::{Value, json};

use crate::compare::Class;
use crate::judge::Judged;
use crate::source::{Reading, Source};

/// The version of the format.
const VERSION: i64 = 1;

/// So many events make a part.
const PART: usize = 16;

/// Or so many bytes.
const PART_BYTES: usize = 1 << 20;

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

/// Expectations: where each line of the file is. The lines themselves are read when they are due.
#[derive(Debug)]
pub struct Expectations {
    path: PathBuf,
    parts: Vec<Vec<Line>>,
    /// How often in a row the agent had been sent on before an event, where it had been.
    sent_on: HashMap<Seq, u32>,
    damaged: usize,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    number: i64,
    start: u64,
    length: usize,
}

impl Expectations {
    /// Looks through the file at `path`. A line that cannot be read is told by the replay.
    pub fn read(path: &Path) -> Result<Self, BadExpectations> {
        let unusable = |error: io::Error| {
            let path = path.to_owned();
            if error.kind() == io::ErrorKind::NotFound {
                BadExpectations::Missing(path)
            } else {
                BadExpectations::Io { path, error }
            }
        };
        let mut file = BufReader::new(File::open(path).map_err(unusable)?);
        let mut bytes = Vec::new();
        let mut start = file.read_until(b'\n', &mut bytes).map_err(unusable)? as u64;
        let head: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match head.get("hookbus_expectations").and_then(Value::as_i64) {
            None => return Err(BadExpectations::Foreign(path.to_owned())),
            Some(found) if found > VERSION => {
                return Err(BadExpectations::Newer { path: path.to_owned(), found });
            }
            Some(_) => {}
        }
        let mut found =
            Self { path: path.to_owned(), parts: Vec::new(), sent_on: HashMap::new(), damaged: 0 };
        for number in 2.. {
            bytes.clear();
            let length = file.read_until(b'\n', &mut bytes).map_err(unusable)?;
            if length == 0 {
                break;
            }
            if !bytes.trim_ascii().is_empty() {
                found.note(Line { number, start, length }, &bytes);
            }
            start += length as u64;
        }
        Ok(found)
    }

    fn note(&mut self, line: Line, bytes: &[u8]) {
        match case(bytes) {
            Ok((case, sent_on)) if sent_on > 0 => drop(self.sent_on.insert(case.seq, sent_on)),
            Ok(_) => {}
            Err(_) => self.damaged += 1,
        }
        let is_full = |part: &Vec<Line>| {
            let size: usize = part.iter().map(|line| line.length).sum();
            part.len() >= PART || size + line.length > PART_BYTES
        };
        match self.parts.last_mut().filter(|part| !is_full(part)) {
            Some(part) => part.push(line),
            None => self.parts.push(vec![line]),
        }
    }

    /// How many lines cannot be read.
    pub const fn damaged(&self) -> usize {
        self.damaged
    }
}

impl Source for Expectations {
    fn parts(&self) -> u64 {
        self.parts.len() as u64
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
        let part = usize::try_from(index).ok().and_then(|index| self.parts.get(index));
        let mut file = File::open(&self.path);
        for line in part.into_iter().flatten() {
            let read = file.as_mut().map_err(|error| error.to_string()).and_then(|file| {
                let mut bytes = vec![0; line.length];
                file.seek(SeekFrom::Start(line.start))
                    .and_then(|_| file.read_exact(&mut bytes))
                    .map_err(|error| error.to_string())?;
                case(&bytes)
            });
            each(match read {
                Ok((case, _)) => Found::Case(case),
                Err(why) => {
                    let why = format!("line {} of the expectations: {why}", line.number);
                    Found::Damaged { seq: Seq::from_i64(line.number), why }
                }
            });
        }
        Ok(())
    }

    fn sent_on_before(&self, _event: &Event, seq: Seq, most: u32) -> u32 {
        self.sent_on.get(&seq).copied().unwrap_or(0).min(most)
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
    /// How many were left out, as nobody can say what the hooks say about them.
    pub left_out: usize,
    in_place: bool,
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
        Ok(Self { path: path.to_owned(), partial, file, events: 0, left_out: 0, in_place: false })
    }

    /// The next event, and what is expected of it: what the hooks say now.
    pub fn write(&mut self, judged: &Judged) -> io::Result<()> {
        let Some(case) = &judged.case else { return Ok(()) };
        if judged.comparison.class == Class::NotComparable && judged.now.is_none() {
            self.left_out += 1;
            return Ok(());
        }
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
        if judged.sent_on > 0 {
            line["sent_on"] = json!(judged.sent_on);
        }
        if let Some(bytes) = bytes {
            line["payload_hex"] = json!(bytes);
        }
        self.events += 1;
        writeln!(self.file, "{line}")
    }

    /// Puts the file in its place.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        fs::rename(&self.partial, &self.path)?;
        self.in_place = true;
        Ok(())
    }
}

impl Drop for ExpectationsWriter {
    fn drop(&mut self) {
        // Half of them are of no use to anybody.
        if !self.in_place {
            drop(fs::remove_file(&self.partial));
        }
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

/// The event of a line, and how often in a row the agent had been sent on before it.
fn case(line: &[u8]) -> Result<(Case, u32), String> {
    let line: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let text = |key: &str| line[key].as_str().map(str::to_owned);
    let needed = |key: &str| text(key).ok_or_else(|| format!("it has no `{key}`"));
    let number = |key: &str| line[key].as_i64().ok_or_else(|| format!("it has no `{key}`"));
    let payload = match (text("payload"), text("payload_hex")) {
        (Some(payload), _) => payload.into_bytes(),
        (None, Some(bytes)) => hex::decode(bytes).map_err(|error| error.to_string())?,
        (None, None) => return Err("it has no `payload`".to_owned()),
    };
    let sent_on = line["sent_on"].as_u64().and_then(|times| u32::try_from(times).ok());
    let case = Case {
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
        origin: None,
    };
    Ok((case, sent_on.unwrap_or(0)))
}
