//! The windows that stdout and stderr are fitted to: set once, before a verb runs. A line that is wider is broken between
//! words, with what follows indented; colours go on. In a pipe lines stay as they are, and so does JSON.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};

use unicode_segmentation::UnicodeSegmentation;

use super::width::width;
use crate::settings::{Format, Window};

/// The widths; 0 for lines that stay as they are.
static STDOUT: AtomicUsize = AtomicUsize::new(0);
static STDERR: AtomicUsize = AtomicUsize::new(0);

/// The width that text is wrapped for where the window is not known.
const USUAL: usize = 80;

/// Sets what lines are fitted to from now on.
pub(crate) fn fit_to(window: Window, format: Format) {
    let is_fitted = window.is_fitted && format == Format::Text;
    STDOUT.store(if is_fitted { window.columns } else { 0 }, Ordering::Relaxed);
    let stderr = terminal_size::terminal_size_of(std::io::stderr());
    let columns = stderr.filter(|_| std::io::stderr().is_terminal()).map_or(0, |(it, _)| it.0);
    STDERR.store(usize::from(columns), Ordering::Relaxed);
}

/// The width that text is wrapped for.
pub(crate) fn columns() -> usize {
    fitted_columns().unwrap_or(USUAL)
}

/// The width that lines are fitted to; none if they stay as they are.
pub(crate) fn fitted_columns() -> Option<usize> {
    Some(STDOUT.load(Ordering::Relaxed)).filter(|columns| *columns > 0)
}

/// The width of the terminal that stderr is; none if it is no terminal.
pub(super) fn stderr_columns() -> Option<usize> {
    Some(STDERR.load(Ordering::Relaxed)).filter(|columns| *columns > 0)
}

/// Text as it goes to stdout: each line fitted, what follows `hang` columns to the right, or else a bit further than
/// the line itself.
pub(super) fn fitted(text: &str, hang: Option<usize>) -> String {
    fitted_to(STDOUT.load(Ordering::Relaxed), text, hang)
}

/// Text as it goes to stderr.
pub(super) fn fitted_for_stderr(text: &str) -> String {
    fitted_to(STDERR.load(Ordering::Relaxed), text, None)
}

fn fitted_to(columns: usize, text: &str, hang: Option<usize>) -> String {
    if columns == 0 {
        return text.to_owned();
    }
    text.split('\n').flat_map(|line| broken(line, columns, hang)).collect::<Vec<_>>().join("\n")
}

/// One line as lines of at most so many columns. A longer word of ASCII stays whole: a path or a command can be copied.
fn broken(line: &str, columns: usize, hang: Option<usize>) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    let own = line.len() - line.trim_start_matches(' ').len();
    let hang = hang.map_or((own + 2).min(columns / 2), |hang| hang.min(columns.saturating_sub(24)));
    let mut lines =
        Lines { done: Vec::new(), line: String::new(), taken: 0, colour: String::new() };
    for (at, word) in line.split(' ').enumerate() {
        let (gap, wide) = (usize::from(at > 0), width(word));
        let has_text = lines.taken > if lines.done.is_empty() { own } else { hang };
        if wide > columns - hang && !word.is_ascii() && !word.contains('\x1b') {
            lines.push(" ", gap);
            for character in word.graphemes(true) {
                if lines.taken + width(character) > columns {
                    lines.end(hang);
                }
                lines.push(character, width(character));
            }
            continue;
        }
        if lines.taken + gap + wide > columns && has_text && wide > 0 {
            lines.end(hang);
        } else if gap > 0 {
            lines.push(" ", 1);
        }
        lines.push(word, wide);
        lines.note_colour(word);
    }
    lines.done.push(lines.line.trim_end().to_owned());
    lines.done
}

/// The lines so far, and the one that is being filled.
struct Lines {
    done: Vec<String>,
    line: String,
    taken: usize,
    /// The colour that is switched on.
    colour: String,
}

impl Lines {
    fn push(&mut self, text: &str, wide: usize) {
        if wide > 0 || !text.trim().is_empty() {
            self.line.push_str(text);
            self.taken += wide;
        }
    }

    fn end(&mut self, hang: usize) {
        let line = std::mem::take(&mut self.line);
        let reset = if self.colour.is_empty() { "" } else { "\x1b[0m" };
        self.done.push(format!("{}{reset}", line.trim_end()));
        self.line = format!("{}{}", " ".repeat(hang), self.colour);
        self.taken = hang;
    }

    fn note_colour(&mut self, word: &str) {
        for code in word.split("\x1b[").skip(1) {
            let code = code.split_once('m').map_or("", |(code, _)| code);
            self.colour = if code == "0" { String::new() } else { format!("\x1b[{code}m") };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_line_is_broken_between_words_and_its_colour_goes_on() {
        let line = "  \x1b[31mone two three four\x1b[0m five";
        assert_eq!(
            broken(line, 13, None),
            [
                "  \x1b[31mone two\x1b[0m",
                "    \x1b[31mthree\x1b[0m",
                "    \x1b[31mfour\x1b[0m five"
            ]
        );
        let (line, lines) = (
            "log  one two three of four and five",
            ["log  one two three of four and", "     five"],
        );
        assert_eq!(broken(line, 30, Some(5)), lines);
        assert_eq!(broken("short", 12, None), ["short"]);
    }

    #[test]
    fn a_path_stays_whole_and_wide_text_is_broken() {
        let path = "/a/very/long/path/that/is/wider";
        assert_eq!(
            broken(&format!("in {path} now"), 16, None),
            ["in", &format!("  {path}"), "  now"]
        );
        for line in broken(&"漢字".repeat(20), 15, None) {
            assert!(width(&line) <= 15, "{line}");
        }
        let all = broken("a 👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻", 10, None).concat();
        assert_eq!(all.matches("👩‍💻").count(), 8, "{all}");
    }
}
