//! The state of the screen of `hookbus top`, and what each key does to it. Pure: figures and keys come in, what to do next
//! goes out. What is selected is remembered by its id, so that it stays selected while the lists change.

use hookbus::event::Seq;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::log_tail::LogFigures;
use super::snapshot::Snapshot;
use crate::screen::is_interrupt;

/// How far Page Up and Page Down go.
const PAGE: isize = 10;

/// A list on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Panel {
    Sessions,
    Held,
    Hooks,
}

/// What the program does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Goes on.
    Stay,
    Quit,
    /// Shows the events of a session, at this row if one is named.
    Open {
        session: String,
        at: Option<Seq>,
    },
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) snapshot: Snapshot,
    pub(super) panel: Panel,
    pub(super) shows_help: bool,
    /// Why the last key did nothing.
    pub(super) message: Option<String>,
    session: Option<String>,
    held: Option<Seq>,
    hook: usize,
}

impl Model {
    pub(super) fn new(log: LogFigures) -> Self {
        Self {
            snapshot: Snapshot { log, state: Value::Null },
            panel: Panel::Sessions,
            shows_help: false,
            message: None,
            session: None,
            held: None,
            hook: 0,
        }
    }

    /// Takes what the log tells now. If it cannot be read, what was known stays on the screen.
    pub(super) fn set_log(&mut self, log: LogFigures) {
        if log.error.is_some() {
            self.snapshot.log.at = log.at;
            self.snapshot.log.error = log.error;
        } else {
            self.snapshot.log = log;
        }
    }

    /// Takes what `hookbus status` tells now.
    pub(super) fn set_state(&mut self, state: Value) {
        self.snapshot.state = state;
    }

    /// How many lines a panel has.
    fn length(&self, panel: Panel) -> usize {
        match panel {
            Panel::Sessions => self.snapshot.log.sessions.len(),
            Panel::Held => self.snapshot.log.held.len(),
            Panel::Hooks => self.snapshot.log.hooks.len(),
        }
    }

    /// The line of a panel that is selected; none if it is empty.
    pub(super) fn selected(&self, panel: Panel) -> Option<usize> {
        let log = &self.snapshot.log;
        let at = match panel {
            Panel::Sessions => {
                let is_it =
                    |id: &String| log.sessions.iter().position(|live| live.summary.session == *id);
                self.session.as_ref().and_then(is_it)
            }
            Panel::Held => {
                self.held.and_then(|seq| log.held.iter().position(|held| held.seq == seq))
            }
            Panel::Hooks => Some(self.hook),
        };
        let last = self.length(panel).checked_sub(1)?;
        Some(at.unwrap_or(0).min(last))
    }

    fn select(&mut self, at: usize) {
        let log = &self.snapshot.log;
        match self.panel {
            Panel::Sessions => {
                self.session = log.sessions.get(at).map(|live| live.summary.session.clone());
            }
            Panel::Held => self.held = log.held.get(at).map(|held| held.seq),
            Panel::Hooks => self.hook = at,
        }
    }

    fn go(&mut self, by: isize) {
        let Some(last) = self.length(self.panel).checked_sub(1) else { return };
        let at = self.selected(self.panel).unwrap_or(0);
        self.select(at.saturating_add_signed(by).min(last));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key does nothing")]
    pub(super) fn press(&mut self, key: KeyEvent) -> Next {
        self.message = None;
        if is_interrupt(key) {
            return Next::Quit;
        }
        if self.shows_help {
            self.shows_help = false;
            return if key.code == KeyCode::Char('q') { Next::Quit } else { Next::Stay };
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Next::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => self.panel = self.panel.next(),
            KeyCode::BackTab | KeyCode::Left => self.panel = self.panel.next().next(),
            KeyCode::Down | KeyCode::Char('j' | 'n') => self.go(1),
            KeyCode::Up | KeyCode::Char('k' | 'p') => self.go(-1),
            KeyCode::PageDown => self.go(PAGE),
            KeyCode::PageUp => self.go(-PAGE),
            KeyCode::Char('d') if key.modifiers.contains(KeyModifiers::CONTROL) => self.go(PAGE),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => self.go(-PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.go(isize::MAX),
            KeyCode::Enter => return self.open(),
            _ => self.message = Some("? shows the keys".to_owned()),
        }
        Next::Stay
    }

    fn open(&mut self) -> Next {
        let at = self.selected(self.panel);
        let log = &self.snapshot.log;
        let chosen = match (self.panel, at) {
            (Panel::Sessions, Some(at)) => {
                log.sessions.get(at).map(|live| (live.summary.session.clone(), None))
            }
            (Panel::Held, Some(at)) => {
                log.held.get(at).map(|held| (held.session.clone(), held.cause))
            }
            (Panel::Hooks, _) | (_, None) => None,
        };
        match chosen {
            Some((session, at)) => Next::Open { session, at },
            None => {
                self.message = Some("Enter opens a session or a block".to_owned());
                Next::Stay
            }
        }
    }
}

impl Panel {
    const fn next(self) -> Self {
        match self {
            Self::Sessions => Self::Held,
            Self::Held => Self::Hooks,
            Self::Hooks => Self::Sessions,
        }
    }
}
