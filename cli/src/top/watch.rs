//! The loop of `hookbus top` at a terminal. The log, the state of the daemon and the keyboard are read on threads of their
//! own, so that a daemon that hangs or a log that is locked never keeps a key from being heard.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use hookbus::event::{Clock, Seq, SystemClock};
use hookbus::log::LogPath;
use serde_json::Value;

use super::draw::draw;
use super::log_tail::{LogFigures, LogTail};
use super::model::{Model, Next};
use crate::args::{open_log, short_session};
use crate::output::shorten;
use crate::screen::{Input, Screen, Theme, read_input};
use crate::settings::Settings;
use crate::status;
use crate::step::{self, SessionEvents, StepModel, StepNext};

/// The daemon is not asked more often than this.
const BETWEEN_STATES: Duration = Duration::from_secs(2);

/// How many of its latest rows are read of a session that is opened.
const MOST_ROWS: usize = 2000;

/// Something that the screen shows or reacts to.
enum Message {
    Input(Input),
    Log(Box<LogFigures>),
    State(Value),
}

/// The session that is open, and the screen of it.
struct Opened {
    events: SessionEvents,
    model: StepModel,
}

/// What is on the screen.
struct Watch<'a> {
    settings: &'a Settings,
    model: Model,
    opened: Option<Opened>,
}

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    GoOn,
    End,
}

pub(super) fn run(settings: &Settings, interval: Duration) -> Result<()> {
    let (sender, messages) = channel();
    let mut screen = Screen::open()?;
    follow_log(settings, interval, sender.clone());
    follow_state(settings, interval, sender.clone());
    read_input(move |input| sender.send(Message::Input(input)).is_ok());
    let model = Model::new(LogFigures::empty(SystemClock.now()));
    let mut watch = Watch { settings, model, opened: None };
    let theme = Theme { colour: settings.colour };
    loop {
        screen.draw(|frame| match &mut watch.opened {
            Some(opened) => step::draw(frame, &mut opened.model, theme),
            None => draw(frame, &watch.model, theme),
        })?;
        if watch.take(&messages)? == Flow::End {
            return Ok(());
        }
    }
}

fn follow_log(settings: &Settings, interval: Duration, sender: Sender<Message>) {
    let path = LogPath::in_home(&settings.home);
    thread::spawn(move || {
        let mut tail = LogTail::new(path);
        while sender.send(Message::Log(Box::new(tail.look(SystemClock.now())))).is_ok() {
            thread::sleep(interval);
        }
    });
}

fn follow_state(settings: &Settings, interval: Duration, sender: Sender<Message>) {
    let settings = settings.clone();
    thread::spawn(move || {
        while sender.send(Message::State(status::state(&settings))).is_ok() {
            thread::sleep(interval.max(BETWEEN_STATES));
        }
    });
}

impl Watch<'_> {
    /// Takes the next message, and those that wait behind it.
    fn take(&mut self, messages: &Receiver<Message>) -> Result<Flow> {
        let first = messages.recv().context("all readers have ended")?;
        for message in std::iter::once(first).chain(messages.try_iter()) {
            if self.handle(message) == Flow::End {
                return Ok(Flow::End);
            }
        }
        Ok(Flow::GoOn)
    }

    fn handle(&mut self, message: Message) -> Flow {
        match message {
            Message::Input(Input::Gone) => return Flow::End,
            Message::Input(Input::Resized) => {}
            Message::Input(Input::Key(key)) => match &mut self.opened {
                Some(opened) => match opened.model.press(key) {
                    StepNext::Stay => opened.show_current(),
                    StepNext::Back => self.opened = None,
                    StepNext::Quit => return Flow::End,
                },
                None => match self.model.press(key) {
                    Next::Stay => {}
                    Next::Quit => return Flow::End,
                    Next::Open { session, at } => self.open(&session, at),
                },
            },
            Message::Log(figures) => {
                self.model.set_log(*figures);
                self.follow_opened();
            }
            Message::State(state) => self.model.set_state(state),
        }
        Flow::GoOn
    }

    fn open(&mut self, session: &str, at: Option<Seq>) {
        match Opened::read(self.settings, session, at) {
            Ok(opened) => self.opened = Some(opened),
            Err(error) => self.model.message = Some(shorten(&format!("{error:#}"), 200)),
        }
    }

    /// Shows what was recorded since in the open session.
    fn follow_opened(&mut self) {
        let Some(opened) = &mut self.opened else { return };
        let sessions = &self.model.snapshot.log.sessions;
        let own = sessions.iter().find(|live| live.summary.session == opened.events.session());
        if own.is_some_and(|live| Some(live.last_seq) > opened.events.last())
            && opened.events.read_new().is_ok()
        {
            let steps = opened.events.steps();
            opened.model.set_steps(steps);
            opened.show_current();
        }
    }
}

impl Opened {
    fn read(settings: &Settings, session: &str, at: Option<Seq>) -> Result<Self> {
        let mut events = SessionEvents::read_last(open_log(settings)?, session, MOST_ROWS)?;
        let cut = if events.is_cut { ", latest" } else { "" };
        let title = format!("{}{cut}", shorten(&short_session(session), 20));
        let mut model = StepModel::new(title, events.steps(), HashMap::new());
        match at {
            Some(seq) => model.go_to_row(seq),
            None => model.go_to_end(),
        }
        let mut opened = Self { events, model };
        opened.show_current();
        Ok(opened)
    }

    fn show_current(&mut self) {
        if let Some(step) = self.model.wants() {
            let sources = self.events.sources(step);
            self.model.set_sources(&sources);
        }
    }
}
