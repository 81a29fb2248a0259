//! Text from agents, models and files that is shown to a person. Characters that move the cursor, change colours,
//! reverse the text or are invisible could hide what is shown.

/// Whether a character is visible and nothing else: not a control character, and not one of Unicode's format
/// characters (invisible ones, direction marks, tags).
pub fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Text as one line of at most `most` characters, with characters that are not plain replaced.
pub fn one_line(text: &str, most: usize) -> String {
    if text.len() <= most && is_one_ascii_line(text) {
        return text.to_owned();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = |character| if is_plain(character) { character } else { '\u{fffd}' };
    let flat: String = words.join(" ").chars().map(plain).collect();
    if flat.chars().count() <= most {
        return flat;
    }
    flat.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Whether a text is nothing but visible ASCII characters with single spaces between them, as most names are.
fn is_one_ascii_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_plain = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    is_plain
        && bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
        && !bytes.windows(2).any(|pair| pair == b"  ")
}
