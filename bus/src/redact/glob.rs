//! Names with `*` and `?`, compared without regard to case.

/// A name pattern: `*` stands for any text, `?` for one character.
#[derive(Debug, Clone)]
pub(super) struct Glob(Vec<u8>);

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        Self(pattern.to_ascii_lowercase().into_bytes())
    }

    /// The longest part without wildcards: what a matching name certainly contains.
    pub(super) fn literal(&self) -> &[u8] {
        let parts = self.0.split(|byte| matches!(byte, b'*' | b'?'));
        parts.max_by_key(|part| part.len()).unwrap_or_default()
    }

    /// Linear in the text for each `*`, with one place to go back to.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        let (mut pattern, mut at) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        loop {
            match (self.0.get(pattern), name.get(at)) {
                (None, None) => return true,
                (Some(b'*'), _) => {
                    star = Some((pattern + 1, at));
                    pattern += 1;
                    continue;
                }
                (Some(b'?'), Some(_)) => {}
                (Some(wanted), Some(byte)) if *wanted == byte.to_ascii_lowercase() => {}
                (Some(_) | None, _) => {
                    let Some((behind, from)) = star.filter(|(_, from)| *from < name.len()) else {
                        return false;
                    };
                    star = Some((behind, from + 1));
                    (pattern, at) = (behind, from + 1);
                    continue;
                }
            }
            (pattern, at) = (pattern + 1, at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, name) in [
            ("password", "PassWord"),
            ("*_pin", "card_pin"),
            ("a*b*c", "a1b2bc"),
            ("p?n", "pin"),
            ("*", ""),
        ] {
            assert!(Glob::new(pattern).matches(name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in
            [("password", "passwords"), ("*_pin", "pin"), ("a*b*c", "a1b2"), ("p?n", "pn")]
        {
            assert!(!Glob::new(pattern).matches(name.as_bytes()), "{pattern} {name}");
        }
        assert_eq!(Glob::new("*secret*x").literal(), b"secret");
    }
}
