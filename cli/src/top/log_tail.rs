//! Follows the log for `hookbus top`. Each look reads only the rows that are new since the last one; the first one reads
//! the last few thousand. Holds no transaction between two looks, and never writes. A log that is missing, locked or
//! replaced is told as such, and opened again at the next look.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::Result;
use hookbus::event::{Kind, Seq, Time};
use hookbus::log::{LogPath, LogReader, Query, RowHead};
use hookbus::view::{Activity, EventView, HeldBack, HookFigures, Rates};

use super::live_session::LiveSession;
use crate::sessions::Detail;

/// How far back figures reach: a session without events for so long is idle.
pub(super) const WINDOW: Duration = Duration::from_mins(15);

/// How many rows the first look reads.
const FIRST_ROWS: usize = 5000;

/// How many rows are read in one query.
const PAGE: usize = 2000;

/// If more rows than this are new, the log is looked at as if for the first time.
const MOST_NEW: i64 = 50_000;

/// How many sessions are kept, and how many of those that the first look finds.
const MOST_SESSIONS: usize = 200;
const FIRST_SESSIONS: usize = 40;

/// How much of what was before the first look is counted of each session.
const BEFORE: Detail = Detail { rows: 200, prompts: false };

/// What the log tells.
#[derive(Debug, Clone)]
pub(super) struct LogFigures {
    /// When it was looked at.
    pub(super) at: Time,
    /// The last row; none if the log is empty.
    pub(super) head: Option<Seq>,
    /// Why the log cannot be read.
    pub(super) error: Option<String>,
    pub(super) rates: Rates,
    /// The sessions, the one with the latest event first.
    pub(super) sessions: Vec<LiveSession>,
    /// The decisions that held an agent back, the latest first.
    pub(super) held: Vec<HeldBack>,
    pub(super) hooks: Vec<HookFigures>,
}

impl LogFigures {
    /// Nothing yet.
    pub(super) fn empty(at: Time) -> Self {
        let rates = Activity::new(WINDOW).rates(at);
        let (sessions, held, hooks) = (Vec::new(), Vec::new(), Vec::new());
        Self { at, head: None, error: None, rates, sessions, held, hooks }
    }
}

/// Follows a log.
#[derive(Debug)]
pub(super) struct LogTail {
    path: LogPath,
    open: Option<OpenLog>,
}

/// The log as it was at the last look.
#[derive(Debug)]
struct OpenLog {
    reader: LogReader,
    /// Which file it is: device and inode.
    file: Option<(u64, u64)>,
    last: Option<Seq>,
    activity: Activity,
    sessions: HashMap<String, LiveSession>,
}

impl LogTail {
    pub(super) const fn new(path: LogPath) -> Self {
        Self { path, open: None }
    }

    /// Looks at the log. What cannot be read now is tried again at the next look.
    pub(super) fn look(&mut self, now: Time) -> LogFigures {
        self.refresh(now).unwrap_or_else(|error| LogFigures {
            error: Some(format!("{error:#}")),
            ..LogFigures::empty(now)
        })
    }

    fn refresh(&mut self, now: Time) -> Result<LogFigures> {
        if fs::metadata(self.path.file()).map_or(0, |file| file.len()) == 0 {
            self.open = None;
            return Ok(LogFigures::empty(now));
        }
        let file = file_id(&self.path);
        let mut open = match self.open.take() {
            Some(open) if open.file == file && open.can_go_on()? => open,
            Some(_) | None => OpenLog::new(&self.path, file)?,
        };
        open.read_new(now)?;
        Ok(self.open.insert(open).figures(now))
    }
}

fn file_id(path: &LogPath) -> Option<(u64, u64)> {
    fs::metadata(path.file()).ok().map(|file| (file.dev(), file.ino()))
}

impl OpenLog {
    fn new(path: &LogPath, file: Option<(u64, u64)>) -> Result<Self> {
        let reader = LogReader::open(path)?;
        let (activity, sessions) = (Activity::new(WINDOW), HashMap::new());
        Ok(Self { reader, file, last: None, activity, sessions })
    }

    /// Whether the rows after the last look can be read one by one: the log did not become shorter, nor much longer.
    fn can_go_on(&self) -> Result<bool> {
        let Some(last) = self.last else { return Ok(true) };
        let head = self.reader.head()?.map_or(0, |(seq, _)| seq.as_i64());
        Ok((0..=MOST_NEW).contains(&(head - last.as_i64())))
    }

    fn read_new(&mut self, now: Time) -> Result<()> {
        match self.last {
            None => {
                let heads = self.reader.last_heads(FIRST_ROWS)?;
                self.begin_sessions(&heads)?;
                self.add(&heads)?;
            }
            Some(mut last) => loop {
                let heads = self.reader.heads_after(last, PAGE)?;
                self.add(&heads)?;
                match heads.last() {
                    Some(head) if heads.len() == PAGE => last = head.seq,
                    Some(_) | None => break,
                }
            },
        }
        self.activity.forget_before(now);
        self.forget_sessions();
        self.explain_held()
    }

    /// Reads the beginnings of the sessions that were active last; older ones are left out.
    fn begin_sessions(&mut self, heads: &[RowHead]) -> Result<()> {
        let Some(first) = heads.first() else { return Ok(()) };
        for head in heads.iter().rev().filter(|head| head.is_event()) {
            if self.sessions.len() >= FIRST_SESSIONS {
                break;
            }
            if !self.sessions.contains_key(&head.session) {
                self.begin_session(&head.session, first.seq)?;
            }
        }
        Ok(())
    }

    /// Reads where a session begins, and counts its rows before `before`.
    fn begin_session(&mut self, session: &str, before: Seq) -> Result<()> {
        if let Some(live) = LiveSession::read(&self.reader, session, before, BEFORE)? {
            self.sessions.insert(session.to_owned(), live);
        }
        Ok(())
    }

    fn add(&mut self, heads: &[RowHead]) -> Result<()> {
        let is_first = self.last.is_none();
        for head in heads {
            self.activity.add(head);
            if !is_first && head.is_event() && !self.sessions.contains_key(&head.session) {
                self.begin_session(&head.session, head.seq)?;
            }
            if let Some(live) = self.sessions.get_mut(&head.session) {
                live.add(head);
                if matches!(head.kind, Kind::TurnStart | Kind::AgentStart) {
                    live.read_prompt(&self.reader)?;
                }
            }
            self.last = Some(head.seq);
        }
        // A damaged row is left out; `hookbus verify` tells about it.
        for row in self.reader.endings_of(heads)?.into_iter().flatten() {
            if row.kind == Kind::Decision.as_str() {
                self.activity.add_decision(&row);
            }
            if let Some(live) = self.sessions.get_mut(&row.session) {
                live.summary.add_ending(&row);
            }
        }
        Ok(())
    }

    fn forget_sessions(&mut self) {
        if self.sessions.len() <= MOST_SESSIONS {
            return;
        }
        let mut times: Vec<Time> = self.sessions.values().map(|live| live.summary.last).collect();
        times.sort_unstable();
        if let Some(oldest) = times.get(times.len() - MOST_SESSIONS).copied() {
            self.sessions.retain(|_, live| live.summary.last >= oldest);
        }
    }

    /// Looks up what the events are about that were blocked or asked about.
    fn explain_held(&mut self) -> Result<()> {
        for held in self.activity.unexplained() {
            let query = Query { seq: held.cause, ..Query::default() };
            let row = match held.cause {
                Some(_) => self.reader.after_with_damage(&query, None, 1)?.pop(),
                None => None,
            };
            let about = row.and_then(Result::ok).map(|row| EventView::new(&row).subject());
            held.about = Some(about.unwrap_or_default());
        }
        Ok(())
    }

    fn figures(&self, now: Time) -> LogFigures {
        let mut sessions: Vec<LiveSession> = self.sessions.values().cloned().collect();
        sessions.sort_by(|one, other| {
            let key = |live: &LiveSession| (live.summary.last, live.last_seq);
            key(other).cmp(&key(one))
        });
        LogFigures {
            at: now,
            head: self.last,
            error: None,
            rates: self.activity.rates(now),
            sessions,
            held: self.activity.held().iter().rev().cloned().collect(),
            hooks: self.activity.hooks(),
        }
    }
}
