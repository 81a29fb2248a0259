//! Writes to stdout and stderr for all verbs but `hookbus hook`: results as text for people or JSON for programs,
//! colours, text made safe for a terminal, and the progress line of long jobs. No verb writes a character that moves
//! the cursor or reverses text, in JSON either: people read that at a terminal too.

mod human;
mod pager;
mod width;
mod window;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Local};
use hookbus::event::{Time, is_plain};

pub(crate) use human::{number, when};
pub(crate) use pager::Pager;
pub(crate) use width::{fit, fit_middle, pad, pad_left, width, wrap};
pub(crate) use window::{columns, fit_to, fitted_columns};

/// Writes one line to stdout, as several if the window is narrower. When the reader has closed it (`| head`), the program
/// ends quietly.
pub(crate) fn line(text: impl AsRef<str>) -> Result<(), StdoutClosed> {
    whole_line(window::fitted(text.as_ref(), None))
}

/// Writes a label and what it says. If the window is narrower, what follows stands below the text, not below the label.
pub(crate) fn labelled(label: &str, text: &str) -> Result<(), StdoutClosed> {
    let line = format!("{label}{text}");
    whole_line(window::fitted(line.trim_end(), Some(width(label))))
}

/// Writes one line to stdout however wide it is: CSV, code, a payload.
pub(crate) fn whole_line(text: impl AsRef<str>) -> Result<(), StdoutClosed> {
    clear_progress();
    if let Some(written) = pager::line(&escape(text.as_ref())) {
        return written;
    }
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(escape(text.as_ref()).as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .map_err(|_| StdoutClosed)
}

/// Writes a part of a line to stdout.
pub(crate) fn part(text: &str) -> Result<(), StdoutClosed> {
    bytes(escape(text).as_bytes())
}

/// Writes a payload to stdout: byte for byte to a file or a program, readable and harmless to a terminal.
pub(crate) fn payload(payload: &[u8]) -> Result<(), StdoutClosed> {
    if !io::stdout().is_terminal() {
        return bytes(payload);
    }
    to_stderr(
        "shown for a terminal, with control characters replaced; `> file` writes the bytes as they are",
    );
    whole_line(sanitize_lines(&String::from_utf8_lossy(payload)))
}

/// Stdout for lines of JSON that hold payloads: as they are to a file or a program, escaped to a terminal.
pub(crate) struct JsonLines {
    stdout: io::StdoutLock<'static>,
    to_terminal: bool,
}

impl JsonLines {
    pub(crate) fn on_stdout() -> Self {
        Self { stdout: io::stdout().lock(), to_terminal: io::stdout().is_terminal() }
    }
}

impl Write for JsonLines {
    /// Whole lines only.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if self.to_terminal {
            self.stdout.write_all(escape(&String::from_utf8_lossy(lines)).as_bytes())?;
        } else {
            self.stdout.write_all(lines)?;
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Writes bytes to stdout unchanged.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), StdoutClosed> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|_| StdoutClosed)
}

/// Writes one line to stderr: a message to the user that is not part of the result.
pub(crate) fn to_stderr(text: impl AsRef<str>) {
    clear_progress();
    let mut stderr = io::stderr().lock();
    let text = window::fitted_for_stderr(text.as_ref());
    if writeln!(stderr, "{}", escape(&text)).is_err() {
        tracing::debug!("stderr is closed");
    }
}

/// Whether the terminal shows a progress line at the moment.
static PROGRESS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Erases the progress line before something else is printed.
fn clear_progress() {
    if PROGRESS_SHOWN.swap(false, Ordering::Relaxed) && io::stderr().write_all(b"\r\x1b[K").is_err()
    {
        tracing::debug!("stderr is closed");
    }
}

/// The reader of stdout has closed it.
#[derive(Debug, thiserror::Error)]
#[error("the reader of the output has closed it")]
pub(crate) struct StdoutClosed;

/// Colours text by meaning, if colours are switched on.
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
        let is_coloured = self.0 && !text.is_empty();
        if is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A time in the local time zone.
pub(crate) fn local_time(at: Time) -> DateTime<Local> {
    at.to_utc().with_timezone(&Local)
}

/// A duration for people: `12 ms`, `1.7 s`, `2 min 05 s`.
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

/// A number of bytes, as people read it: `512 bytes`, `3.4 MB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    }
    // In tenths of the unit.
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    let name = UNITS.get(unit).unwrap_or(&"");
    if tenths < 100 {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    } else {
        format!("{} {name}", tenths / 10)
    }
}

/// `1 event`, `2 events`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// The same for large numbers: `1,234 rows`.
pub(crate) fn counted(of: u64, what: &str) -> String {
    if of == 1 { format!("1 {what}") } else { format!("{} {what}s", number(of)) }
}

/// Escapes what could move the cursor of a terminal or reverse text, as JSON does it: within a JSON string the meaning
/// stays the same. The control characters below U+0020 stay: JSON has none of them, and text for people has line
/// breaks and colours of our own (what others wrote is made safe by [`sanitize`]).
fn escape(text: &str) -> Cow<'_, str> {
    let is_escaped = |character: char| character >= '\u{7f}' && !is_plain(character);
    // Most output is ASCII.
    if text.bytes().all(|byte| byte < 0x7f) || !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let escaped = |character: char| {
        let units = character.encode_utf16(&mut [0; 2]).to_vec();
        units.into_iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
    };
    let shown = |(character, joins): (char, bool)| {
        if is_escaped(character) && !joins { escaped(character) } else { character.to_string() }
    };
    Cow::Owned(with_joiners(text).map(shown).collect())
}

/// The characters of a text, each with whether it joins two pictures to one emoji: `👩` and `💻` to `👩‍💻`.
/// Elsewhere a joiner is invisible and could hide something.
fn with_joiners(text: &str) -> impl Iterator<Item = (char, bool)> {
    let is_picture = |it: char| matches!(it, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}');
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    std::iter::from_fn(move || {
        let character = characters.next()?;
        let joins = character == '\u{200d}'
            && (is_picture(before) || before == '\u{fe0f}')
            && characters.peek().is_some_and(|next| is_picture(*next));
        before = character;
        Some((character, joins))
    })
}

/// Makes text from agents, models and files safe for a terminal. Characters that move the cursor, change colours,
/// reverse the text or are invisible could hide a line of the record; each is replaced.
pub(crate) fn sanitize(text: &str) -> String {
    let plain = |(character, joins)| {
        if joins || is_plain(character) { character } else { '\u{fffd}' }
    };
    with_joiners(text).map(plain).collect()
}

/// The same for text of several lines: line breaks stay.
pub(crate) fn sanitize_lines(text: &str) -> String {
    text.split('\n').map(sanitize).collect::<Vec<_>>().join("\n")
}

/// Text as one sanitized line of at most `most` columns.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    fit(&sanitize(&text.split_whitespace().collect::<Vec<_>>().join(" ")), most)
}

/// Text in sanitized lines that fit the window, each behind `indent`. A longer word stays whole.
pub(crate) fn wrapped(text: &str, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let (mut taken, columns) = (0, columns());
    for word in sanitize_lines(text).split_whitespace() {
        let wide = width(word);
        match lines.last_mut() {
            Some(line) if taken + 1 + wide <= columns => {
                line.push(' ');
                line.push_str(word);
                taken += 1 + wide;
            }
            Some(_) | None => {
                lines.push(format!("{indent}{word}"));
                taken = width(indent) + wide;
            }
        }
    }
    lines
}

/// The same as [`shorten`] for the name of a hook, cut in the middle: an unnamed hook is called by its command or
/// directory, and those differ at the end.
pub(crate) fn shorten_middle(name: &str, most: usize) -> String {
    fit_middle(&shorten(name, usize::MAX), most)
}

/// The progress line of a long job: on stderr, at a terminal only, after the first second.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    shown: Option<Instant>,
    total: u64,
    unit: &'static str,
}

impl Progress {
    pub(crate) fn new(total: u64, unit: &'static str) -> Self {
        Self { started: Instant::now(), shown: None, total, unit }
    }

    /// Redraws the line, at most ten times a second.
    pub(crate) fn update(&mut self, done: u64) {
        let due = self.shown.map_or(Duration::from_secs(1), |_| Duration::from_millis(100));
        let since = self.shown.unwrap_or(self.started).elapsed();
        if since < due || !io::stderr().is_terminal() {
            return;
        }
        self.shown = Some(Instant::now());
        let share = done.saturating_mul(30).checked_div(self.total).unwrap_or(30).min(30);
        let bar: String = (0..30).map(|at| if at < share { '█' } else { '░' }).collect();
        let elapsed = self.started.elapsed();
        let (rate, left) = rate_and_time_left(done, self.total, elapsed);
        PROGRESS_SHOWN.store(true, Ordering::Relaxed);
        let mut stderr = io::stderr().lock();
        let text = format!("{bar} {done}/{} {} · {rate}/s · {left} left", self.total, self.unit);
        // A line that the terminal broke could not be drawn over.
        let most = window::stderr_columns().unwrap_or(usize::MAX).saturating_sub(1);
        let text = format!("\r{} \x1b[K", fit(&text, most));
        if stderr.write_all(text.as_bytes()).is_err() {
            self.total = 0;
        }
    }
}

/// The rate per second, and the time that is left.
fn rate_and_time_left(done: u64, total: u64, elapsed: Duration) -> (String, String) {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
    // In thousandths, so that slow jobs do not show a rate of 0.
    let rate = u128::from(done) * 1_000_000_000 / u128::from(micros);
    let left = u128::from(total.saturating_sub(done)) * u128::from(micros);
    let left = left.checked_div(u128::from(done)).map_or_else(
        || "?".to_owned(),
        |micros| format_duration(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))),
    );
    let whole = rate / 1000;
    (if whole >= 10 { whole.to_string() } else { format!("{whole}.{}", rate % 1000 / 100) }, left)
}

impl Drop for Progress {
    fn drop(&mut self) {
        clear_progress();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_hide_or_reverse_text_are_replaced() {
        for character in "\u{1b}\u{7f}\u{9b}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\n".chars() {
            assert_eq!(sanitize(&format!("a{character}b")), "a\u{fffd}b", "{character:?}");
        }
        let fine = "naïve 漢字 🦀 👩‍💻 שלום — ok";
        assert_eq!(
            (sanitize(fine), sanitize_lines("a\nb\u{1b}")),
            (fine.into(), "a\nb\u{fffd}".into())
        );
    }

    #[test]
    fn sizes_have_two_digits_or_more() {
        for (bytes, expected) in [
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (12_345, "12 kB"),
            (999_999, "999 kB"),
            (1_000_000, "1.0 MB"),
            (529_000_000, "529 MB"),
            (3_450_000_000, "3.4 GB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn escaped_json_means_the_same() {
        let text = "a\u{7f}\u{9b}\u{202e}\u{2066}\u{200f}\u{61c}\u{e0041}b naïve 漢字 🦀";
        let json = serde_json::Value::from(text).to_string();
        let escaped = escape(&json);
        assert_eq!(serde_json::from_str::<String>(&escaped).expect("JSON"), text);
        assert!(escaped.contains("\\u202e") && escaped.contains("naïve 漢字 🦀"), "{escaped}");
        assert!(escaped.chars().all(is_plain), "{escaped}");
        assert_eq!(escape("\x1b[31mred\x1b[0m\n"), "\x1b[31mred\x1b[0m\n", "our own colours");
    }

    #[test]
    fn a_long_name_is_cut_in_the_middle() {
        let name = "/home/jane/.hermes/plugins (calculator)";
        assert_eq!(shorten_middle(name, 30), "/home/j…s/plugins (calculator)");
        assert_eq!(shorten_middle(name, 30).chars().count(), 30);
        assert_eq!(shorten_middle("guard", 30), "guard");
        assert_eq!(shorten_middle("漢字漢字漢字漢字", 8), "漢…漢字");
    }

    #[test]
    fn long_text_is_wrapped_between_words() {
        let text = "expected `git push --force` ".repeat(4);
        let lines = wrapped(&text, "    ");
        assert!(lines.iter().all(|line| width(line) <= columns()), "{lines:?}");
        let whole: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        assert_eq!(whole.join(" "), text.trim());
        let (long, none): (_, [&str; 0]) = ("x".repeat(100), []);
        assert_eq!(wrapped(&long, "  "), [format!("  {long}")]);
        assert_eq!(wrapped(" ", "  "), none);
    }

    #[test]
    fn a_slow_job_has_a_rate_with_decimals() {
        let shown = |done, seconds| rate_and_time_left(done, 100, Duration::from_secs(seconds));
        assert_eq!(shown(1, 10), ("0.1".to_owned(), "16 min 30 s".to_owned()));
        assert_eq!(shown(50, 1), ("50".to_owned(), "1.0 s".to_owned()));
        assert_eq!(shown(0, 1).1, "?");
    }
}
