//! What is on the screen of the stepper, and what each key does to it. Pure: events and keys come in; the caller reads the
//! payload of the current event when [`StepModel::wants`] names one.

use std::collections::HashMap;

use hookbus::event::Seq;
use hookbus::view::Step;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Compared;
use super::detail::{Detail, Sources};
use crate::screen::is_interrupt;

/// How far Ctrl-F and Ctrl-B go.
const PAGE: isize = 10;

/// What the program does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepNext {
    /// Goes on.
    Stay,
    /// Leaves the stepper.
    Back,
    /// Ends the program.
    Quit,
}

/// In which direction something is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// The state of the stepper.
#[derive(Debug)]
pub(crate) struct StepModel {
    /// What the list is headed with; safe for a terminal.
    pub(super) title: String,
    /// What the right side is headed with.
    pub(super) about: String,
    pub(super) steps: Vec<Step>,
    pub(super) compared: HashMap<Seq, Compared>,
    pub(super) current: usize,
    /// How many lines of the detail are above its window.
    pub(super) scroll: usize,
    /// The text that is being typed after `/`.
    pub(super) typing: Option<String>,
    pub(super) shows_help: bool,
    pub(super) message: Option<String>,
    searched: Option<String>,
    detail: Option<(Seq, Detail)>,
}

impl StepModel {
    /// The events of a session, at the first of them.
    pub(crate) fn new(title: String, steps: Vec<Step>, compared: HashMap<Seq, Compared>) -> Self {
        Self {
            title,
            about: String::new(),
            steps,
            compared,
            current: 0,
            scroll: 0,
            typing: None,
            shows_help: false,
            message: None,
            searched: None,
            detail: None,
        }
    }

    /// Heads the right side with this text, which is safe for a terminal.
    pub(crate) fn set_about(&mut self, about: String) {
        self.about = about;
    }

    /// Goes to the event in this row, or to the last one before it.
    pub(crate) fn go_to_row(&mut self, seq: Seq) {
        let after = self.steps.partition_point(|step| step.seq <= seq);
        self.set_current(after.saturating_sub(1));
    }

    /// Goes to the last event.
    pub(crate) fn go_to_end(&mut self) {
        self.set_current(self.steps.len().saturating_sub(1));
    }

    /// Takes the events as they are now; at the last one it stays at the last one.
    pub(crate) fn set_steps(&mut self, steps: Vec<Step>) {
        let was_at_end = self.current + 1 >= self.steps.len();
        self.steps = steps;
        self.detail = None;
        if was_at_end && self.scroll == 0 {
            self.go_to_end();
        }
    }

    pub(super) fn step(&self) -> Option<&Step> {
        self.steps.get(self.current)
    }

    /// The event that has to be read before it can be shown.
    pub(crate) fn wants(&self) -> Option<&Step> {
        let step = self.step()?;
        let is_known = self.detail.as_ref().is_some_and(|(seq, _)| *seq == step.seq);
        (!is_known).then_some(step)
    }

    /// Takes what was read of the current event.
    pub(crate) fn set_sources(&mut self, sources: &Sources) {
        let Some(step) = self.step() else { return };
        let detail = Detail::new(step, self.compared.get(&step.seq), sources);
        self.detail = Some((step.seq, detail));
    }

    pub(super) fn detail(&self) -> Option<&Detail> {
        self.detail.as_ref().map(|(_, detail)| detail)
    }

    fn set_current(&mut self, at: usize) {
        if at != self.current {
            self.scroll = 0;
        }
        self.current = at;
    }

    fn go(&mut self, by: isize) {
        let last = self.steps.len().saturating_sub(1);
        let to = self.current.saturating_add_signed(by).min(last);
        if to == self.current && by != 0 {
            let end = if by > 0 { "the last event" } else { "the first event" };
            self.message = Some(format!("this is {end}"));
        }
        self.set_current(to);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key does nothing")]
    pub(crate) fn press(&mut self, key: KeyEvent) -> StepNext {
        self.message = None;
        if is_interrupt(key) {
            return StepNext::Quit;
        }
        if self.typing.is_some() {
            self.type_key(key);
            return StepNext::Stay;
        }
        if self.shows_help {
            self.shows_help = false;
            return StepNext::Stay;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return StepNext::Back,
            KeyCode::Char('d') if is_control => self.scroll += 10,
            KeyCode::Char('u') if is_control => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Char('f') if is_control => self.go(PAGE),
            KeyCode::Char('b') if is_control => self.go(-PAGE),
            KeyCode::Char(character) => self.press_letter(character),
            KeyCode::F(1) => self.shows_help = true,
            KeyCode::Down | KeyCode::Right | KeyCode::Enter => self.go(1),
            KeyCode::Up | KeyCode::Left => self.go(-1),
            KeyCode::PageDown => self.scroll += 10,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Home => self.set_current(0),
            KeyCode::End => self.go_to_end(),
            _ => self.message = Some("? shows the keys".to_owned()),
        }
        StepNext::Stay
    }

    fn press_letter(&mut self, character: char) {
        use Direction::{Backward, Forward};
        match character {
            'n' | 'j' => self.go(1),
            'p' | 'k' => self.go(-1),
            'g' => self.set_current(0),
            'G' => self.go_to_end(),
            ' ' => self.scroll += 10,
            'b' => self.jump(Forward, "block", |_, step| step.is_blocked()),
            'B' => self.jump(Backward, "block", |_, step| step.is_blocked()),
            'f' => self.jump(Forward, "failure", |_, step| step.has_failure()),
            'F' => self.jump(Backward, "failure", |_, step| step.has_failure()),
            'd' => self.jump(Forward, "difference", Self::is_different),
            'D' => self.jump(Backward, "difference", Self::is_different),
            '/' => self.typing = Some(String::new()),
            '?' | 'h' => self.shows_help = true,
            _ => self.message = Some("? shows the keys".to_owned()),
        }
    }

    fn is_different(&self, step: &Step) -> bool {
        self.compared.get(&step.seq).is_some_and(Compared::differs)
    }

    /// Goes to the next event for which `is_meant` holds; says so if there is none.
    fn jump(&mut self, direction: Direction, what: &str, is_meant: impl Fn(&Self, &Step) -> bool) {
        let is_it = |at: &usize| self.steps.get(*at).is_some_and(|step| is_meant(self, step));
        let found = match direction {
            Direction::Forward => (self.current + 1..self.steps.len()).find(is_it),
            Direction::Backward => (0..self.current).rev().find(is_it),
        };
        match (found, direction) {
            (Some(at), _) => self.set_current(at),
            (None, Direction::Forward) => self.message = Some(format!("no further {what}")),
            (None, Direction::Backward) => self.message = Some(format!("no earlier {what}")),
        }
    }

    /// A key while a text to search for is typed.
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key does nothing")]
    fn type_key(&mut self, key: KeyEvent) {
        let Some(typed) = &mut self.typing else { return };
        match key.code {
            KeyCode::Esc => self.typing = None,
            KeyCode::Backspace if typed.is_empty() => self.typing = None,
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Char(character) => typed.push(character),
            KeyCode::Enter => {
                let typed = self.typing.take().filter(|typed| !typed.is_empty());
                self.searched = typed.or_else(|| self.searched.take());
                self.search();
            }
            _ => {}
        }
    }

    /// Goes to the next event with the text; after the last one it begins at the first.
    fn search(&mut self) {
        let Some(searched) = self.searched.as_deref().map(str::to_lowercase) else {
            self.message = Some("type a text behind /".to_owned());
            return;
        };
        let has_it = |at: &usize| {
            let step = self.steps.get(*at);
            step.is_some_and(|step| texts_of(step).any(|it| it.to_lowercase().contains(&searched)))
        };
        let ahead = (self.current + 1..self.steps.len()).find(has_it);
        match ahead.or_else(|| (0..=self.current).find(has_it)) {
            Some(at) => {
                if at <= self.current {
                    self.message = Some("searched on from the first event".to_owned());
                }
                self.set_current(at);
            }
            None => self.message = Some("not found".to_owned()),
        }
    }
}

/// What a search looks at: everything but the rest of the payload.
fn texts_of(step: &Step) -> impl Iterator<Item = &str> {
    let said = step.decision.iter().flat_map(|decision| &decision.said);
    let hooks = said.flat_map(|said| [Some(said.hook.as_str()), said.reason.as_deref()]);
    let outcome = step.result.as_ref().map(|result| &result.outcome);
    let result = outcome.map(|it| [it.error.as_deref(), it.output.as_deref()]);
    let own = [Some(step.name.as_str()), Some(step.kind.as_str()), Some(step.about.as_str())];
    let more = [step.tool.as_deref(), step.failure.as_deref()];
    let all = own.into_iter().chain(more).chain(hooks).chain(result.into_iter().flatten());
    all.flatten()
}
