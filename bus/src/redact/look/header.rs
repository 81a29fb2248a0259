//! Credentials in HTTP headers: `Authorization`, bare `Bearer …`, cookies. Headers are found as lines, as options of `curl`, and
//! as members of a JSON object.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::plausible::{is_placeholder, is_words, looks_random};
use super::{Look, Operator, Rank, assignment};

const SCHEMES: [(&str, &str); 9] = [
    ("bearer", "bearer-token"),
    ("basic", "basic-auth"),
    ("token", "authorization"),
    ("digest", "authorization"),
    ("negotiate", "authorization"),
    ("ntlm", "authorization"),
    ("apikey", "authorization"),
    ("api-key", "authorization"),
    ("key", "authorization"),
];
/// What `Set-Cookie` says about a cookie.
const ATTRIBUTES: [&str; 5] = ["path", "domain", "expires", "max-age", "samesite"];
const SESSION_NAMES: [&str; 7] = ["sess", "auth", "token", "sid", "jwt", "csrf", "xsrf"];

/// `Authorization: Bearer …`, `"authorization": "Basic …"`, `Authorization=token …`.
pub(crate) fn authorization(look: &mut Look<'_>, keyword: Range<usize>) {
    let Some(found) = assignment(look, keyword, 0) else { return };
    // "Device Authorization RFC8628" is no header; `proxy_set_header Authorization "Basic …"` is one.
    let is_prose = found.operator == Operator::Beside && !found.quoted;
    if matches!(found.operator, Operator::Compares | Operator::Is) || is_prose {
        return;
    }
    credentials(look, found.value.start);
}

/// `Bearer …` without a header in front of it: only a value that looks random counts.
pub(crate) fn bearer(look: &mut Look<'_>, keyword: Range<usize>) {
    let start = look.skip_blanks(keyword.end, 4);
    let value = look.value_at(start).range;
    let text = look.slice(value.clone());
    if looks_random(text, 16) && !is_placeholder(text) {
        look.add(value, "bearer-token", Rank::Placed);
    }
}

fn credentials(look: &mut Look<'_>, start: usize) {
    let rest = look.from(start);
    let word = rest
        .iter()
        .take(16)
        .take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-')
        .count();
    let scheme = rest.get(..word).unwrap_or_default();
    let known = SCHEMES.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name.as_bytes()));
    let (kind, start) = match known {
        Some((_, kind)) if matches!(rest.get(word), Some(b' ' | b':')) => {
            (*kind, look.skip_blanks(start + word + 1, 4))
        }
        Some((_, kind)) if rest.get(word..).is_some_and(|rest| rest.starts_with(b"%20")) => {
            (*kind, start + word + 3)
        }
        // A scheme of a service: `Bot …`, `SSWS …`, `GenieKey …`.
        None if rest.get(word) == Some(&b' ') => {
            let next = look.skip_blanks(start + word, 4);
            let value = look.value_at(next).range;
            let is_token = word > 0 && looks_random(look.slice(value), 16);
            ("authorization", if is_token { next } else { start })
        }
        Some(_) | None => ("authorization", start),
    };
    if scheme.eq_ignore_ascii_case(b"digest") {
        return digest(look, start);
    }
    let value = look.value_at(start).range;
    let text = look.slice(value.clone());
    let is_code = text.iter().any(|byte| b"(){}[]".contains(byte));
    let long_enough = text.len() >= if known.is_some() { 4 } else { 8 };
    // `Basic dXNlcjpwYXNz` has no digit; what counts is that a user and a password come out of it.
    let is_pair = STANDARD.decode(text).is_ok_and(|pair| pair.contains(&b':') && pair.is_ascii());
    if long_enough && !is_code && !is_placeholder(text) && (is_pair || !is_words(text)) {
        look.add(value, kind, Rank::Placed);
    }
}

/// `{"name": "sessionid", "value": "…"}`: a cookie of a browser. `"sessionId": "…"` is an id of an agent.
pub(crate) fn session_cookie(look: &mut Look<'_>, keyword: Range<usize>) {
    let Some(found) = assignment(look, keyword.start + 1..keyword.end - 1, 0) else { return };
    if found.operator == Operator::Pair && looks_random(look.slice(found.value.clone()), 16) {
        look.add(found.value, "cookie", Rank::Placed);
    }
}

/// `Digest username="jo", …, response="…"`: the response is what proves the password.
fn digest(look: &mut Look<'_>, start: usize) {
    let line = look.from(start);
    let line = line.get(..1024).unwrap_or(line);
    let end = memchr::memchr(b'\n', line).unwrap_or(line.len());
    look.spend(end);
    let found = line.get(..end).and_then(|line| memchr::memmem::find(line, b"response="));
    if let Some(at) = found {
        let value = look.value_at(start + at + 9).range;
        look.add(value, "authorization", Rank::Placed);
    }
}

/// The values in `Cookie: a=b; c=d` and `Set-Cookie: a=b; Path=/`.
pub(crate) fn cookies(look: &mut Look<'_>, keyword: Range<usize>) {
    let Some(found) = assignment(look, keyword, 0) else { return };
    if !matches!(found.operator, Operator::Colon | Operator::Blank | Operator::Equals) {
        return;
    }
    let mut at = found.value.start;
    for _ in 0..64 {
        let rest = look.from(at);
        let name = rest
            .iter()
            .take(64)
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte))
            .count();
        if name == 0 || rest.get(name) != Some(&b'=') {
            return;
        }
        let start = at + name + 1;
        let ends = |byte: &u8| *byte <= b' ' || b";\"'`".contains(byte);
        let len = look.from(start).iter().take(8192).take_while(|byte| !ends(byte)).count();
        look.spend(name + len);
        let value = start..start + len;
        let name =
            String::from_utf8_lossy(rest.get(..name).unwrap_or_default()).to_ascii_lowercase();
        let text = look.slice(value.clone());
        let is_session = SESSION_NAMES.iter().any(|part| name.contains(part));
        let counts = looks_random(text, 8) || (is_session && len >= 8 && !is_words(text));
        if counts && !ATTRIBUTES.contains(&name.as_str()) && !is_placeholder(text) {
            look.add(value, "cookie", Rank::Placed);
        }
        let next = look.from(start + len);
        let Some(rest) = next.strip_prefix(b";") else { return };
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        at = start + len + 1 + blanks;
    }
}
