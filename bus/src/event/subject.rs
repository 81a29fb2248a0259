//! Where an event is published: `hookbus.<bus>.<agent>.<session>.<event>`, with `:` in an event's
//! name written as `.`, so that `command:*` is `….command.>`.
//!
//! Anything that a subject cannot hold is escaped, reversibly: letters, digits, `_` and `-` stand
//! for themselves, every other byte is `%` and two hex digits, nothing at all is a lone `%`. Only
//! what is too long for a server's control line is shortened: its start and its hash remain, and
//! the envelope has the whole of it.

use sha2::{Digest, Sha256};

use super::BusId;

/// A token up to this many bytes is kept whole.
const LONGEST_TOKEN: usize = 160;

/// How much of a longer one remains readable.
const KEPT: usize = 60;

/// An event's name has this many parts at most; more of them stay together in the last.
const MOST_PARTS: usize = 8;

/// The subject of an event.
pub fn subject(bus: BusId, agent: &str, session: &str, name: &str) -> String {
    let name: Vec<String> = name.splitn(MOST_PARTS, ':').map(token).collect();
    format!("hookbus.{bus}.{}.{}.{}", token(agent), token(session), name.join("."))
}

/// The subject of every event of this name, of one agent or of all.
pub fn event_subjects(agent: Option<&str>, name: &str) -> String {
    let name: Vec<String> = name.splitn(MOST_PARTS, ':').map(token).collect();
    format!("hookbus.*.{}.*.{}", agent.map_or_else(|| "*".to_owned(), token), name.join("."))
}

/// Everything that one bus publishes.
pub fn subjects_of(bus: BusId) -> String {
    format!("hookbus.{bus}.>")
}

/// The agent, the session and the event's name in a subject; none if it is not one of ours, or
/// if a part of it was shortened.
pub fn read_subject(subject: &str) -> Option<(String, String, String)> {
    let mut tokens = subject.strip_prefix("hookbus.")?.split('.').skip(1);
    let (agent, session) = (untoken(tokens.next()?)?, untoken(tokens.next()?)?);
    let name = tokens.map(untoken).collect::<Option<Vec<_>>>()?.join(":");
    Some((agent, session, name))
}

/// Any text as one token: also a safe name for a file or a key.
pub fn token(text: &str) -> String {
    if text.is_empty() {
        return "%".to_owned();
    }
    let escaped = escape(text);
    if escaped.len() <= LONGEST_TOKEN {
        return escaped;
    }
    let mut start: String = String::new();
    for piece in text.chars().map(|letter| escape(&letter.to_string())) {
        if start.len() + piece.len() > KEPT {
            break;
        }
        start.push_str(&piece);
    }
    // No escape has an `h` in it, so that nothing else can look like this.
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

/// The text of a token; none if it is not one, or was shortened.
pub fn untoken(token: &str) -> Option<String> {
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
    fn plain_names_stay_plain() {
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
        fn any_names_come_back_as_they_were(agent in ".{0,8}", session in ".{0,13}", name in ".{0,13}") {
            let subject = subject(bus(), &agent, &session, &name);
            prop_assert_eq!(read_subject(&subject), Some((agent, session, name)));
        }

        #[test]
        fn a_subject_is_always_one_a_server_takes(session in ".{0,600}", name in "[:.a*> ]{0,600}") {
            let subject = subject(bus(), "agent", &session, &name);
            prop_assert!(subject.len() < 2000);
            prop_assert!(subject.split('.').all(|token| !token.is_empty()));
            let fine = |c: char| c.is_ascii_alphanumeric() || "_-%.".contains(c);
            prop_assert!(subject.chars().all(fine), "{}", subject);
        }

        #[test]
        fn different_sessions_have_different_subjects(a in ".{0,300}", b in ".{0,300}") {
            prop_assume!(a != b);
            prop_assert_ne!(subject(bus(), "x", &a, "n"), subject(bus(), "x", &b, "n"));
        }
    }
}
