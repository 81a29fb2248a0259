//! The terminal as one screen, for `top` and `replay --step`: opened and, whatever happens, given back as it was. Keys are
//! read on a thread of their own, so that a program that draws what happens elsewhere waits for both.

mod keys_page;
mod theme;

use std::io::stdout;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, Frame};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use keys_page::draw_keys;
pub(crate) use theme::Theme;

/// Whether the screen is open. Held while something is drawn: a signal must not give the terminal back in the middle of it.
static IS_OPEN: Mutex<bool> = Mutex::new(false);

/// How long a signal waits until something is drawn. A terminal that takes no more output would block it for ever.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

fn is_open() -> MutexGuard<'static, bool> {
    IS_OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The open screen. Dropping it gives the terminal back.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn open() -> Result<Self> {
        let mut open = is_open();
        *open = true;
        let terminal = ratatui::try_init();
        drop(open);
        match terminal {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error).context("cannot use the terminal")
            }
        }
    }

    /// Draws everything; only what changed is written.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<()> {
        let open = is_open();
        let drawn = self.terminal.draw(draw);
        drop(open);
        drawn.context("cannot draw on the terminal")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, if a screen is open.
fn restore() {
    give_back(&mut is_open());
}

fn give_back(open: &mut bool) {
    if std::mem::take(open) {
        let restored = ratatui::try_restore();
        if let Err(error) = restored.and_then(|()| execute!(stdout(), Show)) {
            tracing::debug!(%error, "cannot restore the terminal");
        }
    }
}

/// Gives the terminal back before a signal ends the process; nothing is drawn any more.
pub(crate) fn restore_for_exit() {
    for _ in 0..TRIES {
        match IS_OPEN.try_lock() {
            Ok(mut open) => {
                give_back(&mut open);
                // Never released, so that no other thread draws before the process ends.
                return std::mem::forget(open);
            }
            Err(TryLockError::Poisoned(open)) => return give_back(&mut open.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
        }
    }
}

/// Gives the terminal back when a signal ends the process.
pub(crate) fn restore_on_signals() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let receiver = |kind: SignalKind| {
        let guard = runtime.enter();
        let receiver = signal(kind);
        drop(guard);
        receiver.context("cannot handle signals")
    };
    let mut hangup = receiver(SignalKind::hangup())?;
    let mut interrupt = receiver(SignalKind::interrupt())?;
    let mut terminate = receiver(SignalKind::terminate())?;
    thread::spawn(move || {
        let code = runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => 129,
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            }
        });
        restore_for_exit();
        exit(code);
    });
    Ok(())
}

#[expect(clippy::exit, reason = "a signal ends the whole process, whatever it is doing")]
fn exit(code: i32) {
    std::process::exit(code)
}

/// What the user did at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// The window has another size.
    Resized,
    /// The terminal cannot be read any more.
    Gone,
}

/// Reads the keyboard, on a thread that ends with the process. Where the terminal is gone, reading may not return, but then
/// drawing fails, which ends the program.
pub(crate) fn read_input(mut each: impl FnMut(Input) -> bool + Send + 'static) {
    thread::spawn(move || {
        loop {
            let input = match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Input::Key(key),
                Ok(Event::Resize(..)) => Input::Resized,
                Ok(_) => continue,
                Err(_) => Input::Gone,
            };
            if !each(input) || input == Input::Gone {
                break;
            }
        }
    });
}

/// Whether a key is Ctrl-C, which ends every screen.
pub(crate) fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}
