//! Masks what differs between two runs of the same script: temporary paths, the model's address, ids, times.
//! Everything else stays as it is.

use serde_json::Value;

use super::Run;

/// What is masked. `#` is a digit, `%` a hexadecimal digit; the last column says
/// which characters after a match still belong to it.
const PATTERNS: [(&str, &str, &str); 11] = [
    ("########_######_%%%%%%:%%%%%%%%-%%%%-%%%%-%%%%-%%%%%%%%%%%%:%%%%%%%%", "<turn>", ""),
    ("%%%%%%%%-%%%%-%%%%-%%%%-%%%%%%%%%%%%", "<uuid>", ""),
    ("########_######_%%%%%%", "<session>", ""),
    ("####-##-##T##:##:##", "<time>", "0123456789.:+Z"),
    ("####-##-## ##:##:##", "<time>", "0123456789.,"),
    ("####-##-##T##-##", "<time>", "0123456789-"),
    ("1############", "<milliseconds>", "0123456789"),
    ("1#########.#", "<seconds>", "0123456789"),
    ("Process Group PGID: #", "Process Group PGID: <pid>", "0123456789"),
    ("127.0.0.1:#", "<model>", "0123456789"),
    ("Conversation started: ", "Conversation started: <day>", DAY),
];

const DAY: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789, ";

/// Gemini CLI starts every conversation with the date, paths and a listing of the working directory.
const PREAMBLE: (&str, &str) = ("<session_context>", "</session_context>");

#[derive(Debug)]
pub(super) struct Mask {
    /// The temporary directory, with and without links resolved.
    roots: Vec<String>,
}

impl Mask {
    pub(super) fn of(run: &Run) -> Self {
        let root = run.scratch.root();
        let resolved = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        Self { roots: [resolved.as_path(), root].map(|path| path.display().to_string()).into() }
    }

    pub(super) fn text(&self, text: &str) -> String {
        let mut text = without_preamble(text);
        for root in &self.roots {
            text = text.replace(root, "<scratch>");
        }
        without_patterns(&text)
    }

    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let masked =
                    |(name, field): (&String, &Value)| (self.text(name), self.value(field));
                fields.iter().map(masked).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

fn without_preamble(text: &str) -> String {
    let (opening, closing) = PREAMBLE;
    match (text.find(opening), text.rfind(closing)) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{opening}…{}", &text[..from], &text[to..])
        }
        _ => text.to_owned(),
    }
}

fn without_patterns(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        // An id does not start in the middle of a word or a longer number.
        let found = (!before.is_ascii_alphanumeric()).then(|| at_the_start(rest)).flatten();
        if let Some((name, length)) = found {
            masked.push_str(name);
            rest = &rest[length..];
            before = ' ';
        } else {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
            before = first;
        }
    }
    masked
}

/// The mask for the pattern at the start of `text`, and how many bytes it covers.
fn at_the_start(text: &str) -> Option<(&'static str, usize)> {
    PATTERNS.iter().find_map(|(pattern, name, trailing)| {
        let fits = text.len() >= pattern.len()
            && pattern.bytes().zip(text.bytes()).all(|(wanted, byte)| match wanted {
                b'#' => byte.is_ascii_digit(),
                b'%' => byte.is_ascii_hexdigit(),
                exact => byte == exact,
            });
        let covered = || {
            let rest = &text.as_bytes()[pattern.len()..];
            pattern.len()
                + rest.iter().take_while(|byte| trailing.as_bytes().contains(byte)).count()
        };
        fits.then(|| (*name, covered()))
    })
}

#[cfg(test)]
mod tests {
    use super::{without_patterns, without_preamble};

    #[test]
    fn ids_and_times_are_masked_and_the_rest_stays() {
        let cases = [
            ("session_id: 20261116_043025_1753bc", "session_id: <session>"),
            (
                "20261116_043025_1753bc:c1004e7f-0a1b-4c2d-8e3f-001122334455:0f0f0f0f:api:1",
                "<turn>:api:1",
            ),
            ("write_file_1794802945985_0", "write_file_<milliseconds>_0"),
            ("at 2026-11-16T04:22:11.123Z, done", "at <time>, done"),
            ("c1004e7f-0a1b-4c2d-8e3f-001122334455!", "<uuid>!"),
            ("see http://127.0.0.1:40123/v1", "see http://<model>/v1"),
            ("Process Group PGID: 9434\n", "Process Group PGID: <pid>\n"),
            (
                "Conversation started: Monday, May 4, 2026\nModel",
                "Conversation started: <day>\nModel",
            ),
            ("42 files, 1234567 bytes, ünïcode", "42 files, 1234567 bytes, ünïcode"),
        ];
        for (text, masked) in cases {
            assert_eq!(without_patterns(text), masked);
        }
    }

    #[test]
    fn a_preamble_is_cut_and_the_text_around_it_stays() {
        let text = "a <session_context>\ntoday</session_context> b";
        assert_eq!(without_preamble(text), "a <session_context>…</session_context> b");
        assert_eq!(without_preamble("no preamble"), "no preamble");
    }
}
