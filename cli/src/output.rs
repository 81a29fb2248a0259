//! The one way to stdout, for everything but the front door: a result is text for people or JSON
//! for programs. Also the little colour there is, and the progress line of long jobs.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Local};
use hookbus::event::Time;

/// Writes one line. A reader that hung up (`| head`) ends the program quietly.
pub(crate) fn line(text: impl AsRef<str>) -> Result<(), StdoutClosed> {
    clear_bar();
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_ref().as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .map_err(|_| StdoutClosed)
}

/// Writes bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), StdoutClosed> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|_| StdoutClosed)
}

/// Writes a word to the person, beside the result.
pub(crate) fn aside(text: impl AsRef<str>) {
    clear_bar();
    let mut stderr = io::stderr().lock();
    if writeln!(stderr, "{}", text.as_ref()).is_err() {
        tracing::debug!("nobody reads stderr");
    }
}

/// Whether a progress line stands on the terminal.
static BAR: AtomicBool = AtomicBool::new(false);

/// Takes the progress line away, so that a line of the result does not stick to it.
fn clear_bar() {
    if BAR.swap(false, Ordering::Relaxed) && io::stderr().write_all(b"\r\x1b[K").is_err() {
        tracing::debug!("nobody reads stderr");
    }
}

/// Nobody reads stdout any more.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output any more")]
pub(crate) struct StdoutClosed;

/// Colours that mean something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn notable(self, text: &str) -> String {
        self.wrap("36", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A moment in the person's own time zone.
pub(crate) fn local_time(at: Time) -> DateTime<Local> {
    at.to_utc().with_timezone(&Local)
}

/// A duration as people say it.
pub(crate) fn format_duration(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if span.as_millis() == 0 => "<1 ms".to_owned(),
        0 => format!("{} ms", span.as_millis()),
        1..=59 => format!("{:.1} s", span.as_secs_f64()),
        60..=3599 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `1 event`, `2 events`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Text of an agent's, a model's or a stranger's making, made safe for a terminal: what could move the cursor,
/// change colours, turn the text around or not be seen at all could hide a line of the record.
pub(crate) fn sanitize(text: &str) -> String {
    text.chars().map(|letter| if is_harmless(letter) { letter } else { '\u{fffd}' }).collect()
}

/// The same for text of several lines.
pub(crate) fn sanitize_lines(text: &str) -> String {
    text.split('\n').map(sanitize).collect::<Vec<_>>().join("\n")
}

/// Whether a letter is seen and does nothing else: no control letter, and none that Unicode has for the
/// format only (invisible ones, the direction of writing, tags).
fn is_harmless(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// One harmless line of text, cut to `most` characters.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let flat = sanitize(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if flat.chars().count() <= most {
        return flat;
    }
    flat.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The same for a hook's name, cut in the middle: one that has none goes by its command or its directory, and what tells
/// it from the next stands at the end.
pub(crate) fn shorten_middle(name: &str, most: usize) -> String {
    let flat = shorten(name, usize::MAX);
    let length = flat.chars().count();
    if length <= most {
        return flat;
    }
    let (start, end) = (most / 4, most - most / 4 - 1);
    flat.chars().take(start).chain(['…']).chain(flat.chars().skip(length - end)).collect()
}

/// How far a long job is, on stderr, from the second second on and only for a person.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    shown: Option<Instant>,
    whole: u64,
    what: &'static str,
}

impl Progress {
    pub(crate) fn of(whole: u64, what: &'static str) -> Self {
        Self { started: Instant::now(), shown: None, whole, what }
    }

    pub(crate) fn at(&mut self, done: u64) {
        let due = self.shown.map_or(Duration::from_secs(1), |_| Duration::from_millis(100));
        let since = self.shown.unwrap_or(self.started).elapsed();
        if since < due || !io::stderr().is_terminal() {
            return;
        }
        self.shown = Some(Instant::now());
        let share = done.saturating_mul(30).checked_div(self.whole).unwrap_or(30).min(30);
        let bar: String = (0..30).map(|at| if at < share { '█' } else { '░' }).collect();
        let elapsed = self.started.elapsed();
        let (rate, left) = pace(done, self.whole, elapsed);
        BAR.store(true, Ordering::Relaxed);
        let mut stderr = io::stderr().lock();
        let text =
            format!("\r{bar} {done}/{} {} · {rate}/s · {left} left \x1b[K", self.whole, self.what);
        if stderr.write_all(text.as_bytes()).is_err() {
            self.whole = 0;
        }
    }
}

/// How fast it goes, and how long it will take.
fn pace(done: u64, whole: u64, elapsed: Duration) -> (String, String) {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
    // In thousandths, so that what is slow has a rate as well.
    let rate = u128::from(done) * 1_000_000_000 / u128::from(micros);
    let left = u128::from(whole.saturating_sub(done)) * u128::from(micros);
    let left = left.checked_div(u128::from(done)).map_or_else(
        || "?".to_owned(),
        |micros| format_duration(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))),
    );
    let whole = rate / 1000;
    (if whole >= 10 { whole.to_string() } else { format!("{whole}.{}", rate % 1000 / 100) }, left)
}

impl Drop for Progress {
    fn drop(&mut self) {
        clear_bar();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_hides_or_turns_text_around_reaches_a_terminal() {
        for letter in "\u{1b}\u{7f}\u{9b}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\n".chars() {
            assert_eq!(sanitize(&format!("a{letter}b")), "a\u{fffd}b", "{letter:?}");
        }
        let fine = "naïve 漢字 🦀 שלום — ok";
        assert_eq!(
            (sanitize(fine), sanitize_lines("a\nb\u{1b}")),
            (fine.into(), "a\nb\u{fffd}".into())
        );
    }

    #[test]
    fn a_name_that_is_too_long_keeps_both_of_its_ends() {
        let name = "/home/somebody/.hermes/plugins (calculator)";
        assert_eq!(shorten_middle(name, 30), "/home/s…s/plugins (calculator)");
        assert_eq!(shorten_middle(name, 30).chars().count(), 30);
        assert_eq!(shorten_middle("guard", 30), "guard");
        assert_eq!(shorten_middle("漢字漢字漢字漢字", 4), "漢…漢字");
    }

    #[test]
    fn what_is_slow_has_a_rate_as_well() {
        let told = |done, seconds| pace(done, 100, Duration::from_secs(seconds));
        assert_eq!(told(1, 10), ("0.1".to_owned(), "16 min 30 s".to_owned()));
        assert_eq!(told(50, 1), ("50".to_owned(), "1.0 s".to_owned()));
        assert_eq!(told(0, 1).1, "?");
    }
}
