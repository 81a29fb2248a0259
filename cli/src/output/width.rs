//! Text as wide as a terminal shows it: colours take no room, an emoji with joiners or a Chinese character takes two
//! columns. Cuts, pads and wraps by that width, never inside of a character as a person sees it.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// How many columns a text takes. Colours that we wrote take none.
pub(crate) fn width(text: &str) -> usize {
    let mut total = 0;
    let mut rest = text;
    while let Some((before, coloured)) = rest.split_once("\x1b[") {
        total += UnicodeWidthStr::width(before);
        rest = coloured.split_once('m').map_or("", |(_, after)| after);
    }
    total + UnicodeWidthStr::width(rest)
}

/// Plain text cut to at most so many columns; what was cut off shows as `…`.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut cut, mut taken) = (String::new(), 0);
    for character in text.graphemes(true) {
        let wide = UnicodeWidthStr::width(character);
        if taken + wide + 1 > columns {
            break;
        }
        taken += wide;
        cut.push_str(character);
    }
    cut + "…"
}

/// The same, cut in the middle: what is at its start and, more of it, at its end stays.
pub(crate) fn fit_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (start, end) = (columns / 4, columns.saturating_sub(columns / 4 + 1));
    let characters: Vec<&str> = text.graphemes(true).collect();
    let fitting = |characters: &mut dyn Iterator<Item = &&str>, most: usize| {
        let mut taken = 0;
        let fits = |character: &&&str| {
            taken += UnicodeWidthStr::width(**character);
            taken <= most
        };
        characters.take_while(fits).count()
    };
    let before = fitting(&mut characters.iter(), start);
    let after = fitting(&mut characters.iter().rev(), end);
    let after = &characters[characters.len() - after..];
    format!("{}…{}", characters[..before].concat(), after.concat())
}

/// Text with spaces behind it, up to so many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Text with spaces before it, up to so many columns.
pub(crate) fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Plain text as lines of at most so many columns, wrapped between words. Its own line breaks stay; a longer word is
/// broken. After `most` lines the rest shows as `…`.
pub(crate) fn wrap(text: &str, columns: usize, most: usize) -> Vec<String> {
    let columns = columns.max(10);
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        // What cannot be shown is not wrapped.
        if lines.len() > most {
            break;
        }
        let (mut line, mut taken) = (String::new(), 0);
        for word in paragraph.split_word_bounds() {
            let wide = UnicodeWidthStr::width(word);
            if taken + wide > columns && taken > 0 {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                taken = 0;
            }
            for character in word.graphemes(true) {
                let wide = UnicodeWidthStr::width(character);
                if taken + wide > columns {
                    lines.push(std::mem::take(&mut line));
                    taken = 0;
                }
                let is_blank_start = taken == 0 && !lines.is_empty() && character.trim().is_empty();
                if !is_blank_start {
                    line.push_str(character);
                    taken += wide;
                }
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = fit(&format!("{last} …"), columns);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_what_a_terminal_shows() {
        for (text, columns) in [
            ("plain", 5),
            ("\x1b[31mred\x1b[0m", 3),
            ("漢字", 4),
            ("👩‍💻", 2),
            ("🇩🇪 ok", 5),
            ("naïve", 5),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn a_cut_never_splits_what_a_person_sees_as_one_character() {
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit("a👩‍💻b", 3), "a…");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(pad("漢", 4), "漢  ");
        assert_eq!(pad_left("7", 3), "  7");
    }

    #[test]
    fn text_is_wrapped_between_words_and_long_words_are_broken() {
        assert_eq!(wrap("one two three four", 10, 9), ["one two", "three four"]);
        assert_eq!(wrap(&"x".repeat(25), 10, 9), ["x".repeat(10), "x".repeat(10), "x".repeat(5)]);
        assert_eq!(wrap("漢字漢字漢字漢字", 10, 9), ["漢字漢字漢", "字漢字"]);
        assert_eq!(wrap("a\nb\nc", 10, 2), ["a", "b …"]);
        for line in wrap(&"wörd 漢字 👩‍💻 ".repeat(30), 17, 99) {
            assert!(width(&line) <= 17, "{line:?}");
        }
    }
}
