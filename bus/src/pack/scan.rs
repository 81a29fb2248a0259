//! Finds where JSON values end, without parsing them. Tolerant: what is inside of a string or a number is not checked.

use memchr::memchr;

/// A position in bytes that are probably JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
}

impl Scanner<'_> {
    /// The next byte that is not white space; moves there.
    pub(super) fn next(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            if !is_space(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Moves behind the next byte if it is `byte`.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.next() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Moves behind the string that starts here; false if it does not end.
    pub(super) fn skip_string(&mut self) -> bool {
        let inside = self.at + 1;
        let mut from = inside;
        while let Some(found) = memchr(b'"', self.text.get(from..).unwrap_or_default()) {
            let quote = from + found;
            let before = self.text.get(inside..quote).unwrap_or_default();
            let backslashes = before.iter().rev().take_while(|&&byte| byte == b'\\').count();
            from = quote + 1;
            if backslashes % 2 == 0 {
                self.at = from;
                return true;
            }
        }
        false
    }

    /// Moves behind the number or word that starts here; false if there is none.
    pub(super) fn skip_word(&mut self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = |&byte: &u8| {
            is_space(byte) || matches!(byte, b',' | b':' | b']' | b'}' | b'[' | b'{' | b'"')
        };
        let len = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += len;
        len > 0
    }

    /// Moves behind the object or list that starts here, however deep it is; false if it does not end.
    pub(super) fn skip_container(&mut self) -> bool {
        let mut depth = 0_usize;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'"' => {
                    if !self.skip_string() {
                        return false;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return true;
            }
        }
        false
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
