//! The NATS subject of an event: `hookbus.<bus>.<agent>.<session>.<event>`, with `:` in an event's name
//! written as `.`, so that `command:*` is `….command.>`.
//!
//! Each part is escaped reversibly: letters, digits, `_` and `-` are unchanged, every other byte becomes
//! `%` and two hex digits, an empty part becomes `%`. A part that is too long for the server's control
//! line is cut, and its hash is added; the envelope has the complete text.

use sha2::{Digest, Sha256};

use super::BusId;

/// The longest token, in bytes.
const MAX_TOKEN: usize = 160;

/// How many bytes of a longer one remain before its hash.
const CUT_AFTER: usize = 60;

/// The most tokens for an event's name; the last one holds the rest of the name.
const MAX_NAME_TOKENS: usize = 8;

/// The subject of an event.
pub fn subject(bus: BusId, agent: &str, session: &str, name: &str) -> String {
    let name: Vec<String> = name.splitn(MAX_NAME_TOKENS, ':').map(encode_token).collect();
    format!("hookbus.{bus}.{}.{}.{}", encode_token(agent), encode_token(session), name.join("."))
}

/// The subject filter for events of this name, of one agent or of all.
pub fn event_filter(agent: Option<&str>, name: &str) -> String {
    let name: Vec<String> = name.splitn(MAX_NAME_TOKENS, ':').map(encode_token).collect();
    format!("hookbus.*.{}.*.{}", agent.map_or_else(|| "*".to_owned(), encode_token), name.join("."))
}

/// The subject filter for everything that one bus publishes.
pub fn bus_subjects(bus: BusId) -> String {
    format!("hookbus.{bus}.>")
}

/// The agent, the session and the event's name in a subject; none if it is not a subject of hookbus, or
/// if a part of it was cut.
pub fn parse_subject(subject: &str) -> Option<(String, String, String)> {
    let mut tokens = subject.strip_prefix("hookbus.")?.split('.').skip(1);
    let (agent, session) = (decode_token(tokens.next()?)?, decode_token(tokens.next()?)?);
    let name = tokens.map(decode_token).collect::<Option<Vec<_>>>()?.join(":");
    Some((agent, session, name))
}

/// Encodes any text as one token. Also safe as the name of a file or a key.
pub fn encode_token(text: &str) -> String {
    if text.is_empty() {
        return "%".to_owned();
    }
    let escaped = escape(text);
    if escaped.len() <= MAX_TOKEN {
        return escaped;
    }
    let mut start: String = String::new();
    for piece in text.chars().map(|letter| escape(&letter.to_string())) {
        if start.len() + piece.len() > CUT_AFTER {
            break;
        }
        start.push_str(&piece);
    }
    // `%h` is not an escape sequence, so no other text has this token.
    format!("{start}%h{}", hex::encode(&Sha256::digest(text.as_bytes())[..16]))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => out.push(char::from(byte)),
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    out
}

/// Decodes a token; none if it is invalid or was cut.
pub fn decode_token(token: &str) -> Option<String> {
    if token == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Time;
    use super::*;

    fn bus() -> BusId {
        BusId::mint(Time::from_micros(1_700_000_000_000_000))
    }

    #[test]
    fn only_special_characters_are_escaped() {
        let bus = bus();
        assert_eq!(
            subject(bus, "hermes", "20261116_003429_2e141a", "pre_tool_call"),
            format!("hookbus.{bus}.hermes.20261116_003429_2e141a.pre_tool_call"),
        );
        assert!(subject(bus, "hermes", "s", "command:deploy").ends_with(".s.command.deploy"));
        assert!(subject(bus, "a b", "", "*.>").ends_with(".a%20b.%.%2A%2E%3E"));
    }

    proptest! {
        #[test]
        fn any_names_are_read_as_they_were_written(agent in ".{0,8}", session in ".{0,13}", name in ".{0,13}") {
            let subject = subject(bus(), &agent, &session, &name);
            prop_assert_eq!(parse_subject(&subject), Some((agent, session, name)));
        }

        #[test]
        fn every_subject_is_valid_for_a_server(session in ".{0,600}", name in "[:.a*> ]{0,600}") {
            let subject = subject(bus(), "agent", &session, &name);
            prop_assert!(subject.len() < 2000);
            prop_assert!(subject.split('.').all(|token| !token.is_empty()));
            let is_valid = |c: char| c.is_ascii_alphanumeric() || "_-%.".contains(c);
            prop_assert!(subject.chars().all(is_valid), "{}", subject);
        }

        #[test]
        fn different_sessions_have_different_subjects(a in ".{0,300}", b in ".{0,300}") {
            prop_assume!(a != b);
            prop_assert_ne!(subject(bus(), "x", &a, "n"), subject(bus(), "x", &b, "n"));
        }
    }
}
