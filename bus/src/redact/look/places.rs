//! Secrets at places of their own that no name tells: members of a JSON Web Key, a line of `.pgpass`, parameters of a URL that
//! sign it or pay for it, the columns of an `INSERT`, logins of Oracle, Neo4j and Go's `MySQL` driver, what a script of `expect`
//! sends, the unseal keys of Vault.

use std::ops::Range;

use super::plausible::{is_placeholder, looks_random};
use super::strength::Strength;
use super::{Look, Rank};

/// Parameters whose names say little.
pub(crate) const PARAMETERS: [&str; 11] = [
    "signature=",
    "?key=",
    "&key=",
    "appid=",
    "?sig=",
    "&sig=",
    "?code=",
    "&code=",
    "samlresponse=",
    "&hmac=",
    "assertion=",
];
/// The ports of `PostgreSQL` in `.pgpass`.
pub(crate) const PGPASS_PORTS: [&str; 3] = [":5432:", ":5433:", ":6432:"];

const MAX_OBJECT: usize = 4096;

/// The value of a parameter of a URL, if it looks random.
pub(crate) fn url_parameter(look: &mut Look<'_>, keyword: Range<usize>) {
    let value = look.value_at(keyword.end).range;
    let text = look.slice(value.clone());
    // `value%20with%20blanks` looks random by its escapes alone.
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let escape = *first == b'%'
            && behind.get(..2).is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit));
        if !escape {
            plain.push(*first);
        }
        rest = behind.get(if escape { 2 } else { 0 }..).unwrap_or_default();
    }
    if looks_random(&plain, 20) && !is_placeholder(text) {
        look.add(value, "url-token", Rank::Placed);
    }
}

/// `"type": "random_password", … "result": "…"` in a state file of Terraform.
pub(crate) fn random_password(look: &mut Look<'_>, keyword: Range<usize>) {
    let rest = look.from(keyword.end);
    let rest = rest.get(..2048).unwrap_or(rest);
    look.spend(rest.len() / 8);
    if let Some(at) = memchr::memmem::find(rest, b"\"result\"") {
        let colon = look.skip_blanks(keyword.end + at + 8, 4);
        let open = look.skip_blanks(colon + 1, 4);
        if look.byte(colon) == Some(b':') && look.byte(open) == Some(b'"') {
            let value = look.quoted(open);
            look.add(value, "password", Rank::Placed);
        }
    }
}

/// The members of a JSON Web Key that only a private or a symmetric key has.
pub(crate) fn json_web_key(look: &mut Look<'_>, keyword: Range<usize>) {
    let before = look.before(keyword.start);
    let low = before.len().saturating_sub(MAX_OBJECT);
    let start =
        memchr::memrchr(b'{', before.get(low..).unwrap_or_default()).map_or(low, |at| low + at);
    let behind = look.from(keyword.end);
    let behind = behind.get(..MAX_OBJECT).unwrap_or(behind);
    let end = keyword.end + memchr::memchr(b'}', behind).unwrap_or(behind.len());
    look.spend(end - start);
    let object = look.slice(start..end);
    for member in ["\"d\"", "\"k\"", "\"p\"", "\"q\"", "\"dp\"", "\"dq\"", "\"qi\""] {
        let Some(at) = memchr::memmem::find(object, member.as_bytes()) else { continue };
        let colon = look.skip_blanks(start + at + member.len(), 4);
        let open = look.skip_blanks(colon + 1, 4);
        if look.byte(colon) == Some(b':') && look.byte(open) == Some(b'"') {
            let value = look.quoted(open);
            if value.len() >= 16 {
                look.add(value, "json-web-key", Rank::Placed);
            }
        }
    }
}

/// `host:5432:database:user:password`.
pub(crate) fn pgpass(look: &mut Look<'_>, keyword: Range<usize>) {
    let is_end = |byte: &u8| *byte <= b' ' || b"\"'`<>|".contains(byte);
    let before = look.before(keyword.start);
    let host =
        before.iter().rev().take(256).take_while(|byte| !is_end(byte) && **byte != b':').count();
    let rest = look.from(keyword.end);
    let len = rest.iter().take(512).take_while(|byte| !is_end(byte)).count();
    look.spend(host + len);
    let mut fields = rest.get(..len).unwrap_or_default().splitn(3, |byte| *byte == b':');
    let (Some(database), Some(user), Some(password)) =
        (fields.next(), fields.next(), fields.next())
    else {
        return;
    };
    let is_pgpass = host > 0 && !database.is_empty() && !user.is_empty();
    if is_pgpass && password.len() >= 4 && !is_placeholder(password) {
        let end = keyword.end + len;
        look.add(end - password.len()..end, "password", Rank::Placed);
    }
}

/// `user/password@host` behind `jdbc:oracle:thin:`, `sqlplus` and its options.
pub(crate) fn oracle_login(look: &mut Look<'_>, keyword: Range<usize>) {
    let is_end = |byte: &u8| *byte <= b' ' || b"\"'".contains(byte);
    let mut start = keyword.end;
    for _ in 0..8 {
        let rest = look.from(start);
        let len = rest.iter().take(256).take_while(|byte| !is_end(byte)).count();
        look.spend(len + 1);
        let login = rest.get(..len).unwrap_or_default();
        if len > 0 && !login.starts_with(b"-") {
            let (slash, at) = (memchr::memchr(b'/', login), memchr::memchr(b'@', login));
            if let (Some(slash), Some(at)) = (slash, at)
                && slash + 4 < at
                && !is_placeholder(login.get(slash + 1..at).unwrap_or_default())
            {
                look.add(start + slash + 1..start + at, "url-password", Rank::Placed);
            }
            return;
        }
        start += len + 1;
    }
}

/// `NEO4J_AUTH=neo4j/password`.
pub(crate) fn neo4j_auth(look: &mut Look<'_>, keyword: Range<usize>) {
    let start = look.skip_blanks(keyword.end + 1, 2);
    let rest = look.from(start);
    let user = rest.iter().take(40).take_while(|byte| **byte > b' ' && **byte != b'/').count();
    look.spend(user + 4);
    if rest.get(user) != Some(&b'/') {
        return;
    }
    let value = look.value_at(start + user + 1).range;
    let text = look.slice(value.clone());
    if text.len() >= 4 && !is_placeholder(text) {
        look.add(value, "password", Rank::Placed);
    }
}

/// `user:password@tcp(host:3306)/database`, as Go's driver for `MySQL` has it.
pub(crate) fn go_mysql_login(look: &mut Look<'_>, keyword: Range<usize>) {
    let before = look.before(keyword.start);
    let is_part = |byte: &&u8| **byte > b' ' && !b"\"'`".contains(byte);
    let len = before.iter().rev().take(256).take_while(is_part).count();
    look.spend(len);
    let start = keyword.start - len;
    let login = look.slice(start..keyword.start);
    let Some(colon) = memchr::memchr(b':', login) else { return };
    let password = login.get(colon + 1..).unwrap_or_default();
    if password.len() >= 3 && !is_placeholder(password) {
        look.add(start + colon + 1..keyword.start, "url-password", Rank::Placed);
    }
}

/// What a script of `expect` sends after it was asked for a password.
pub(crate) fn sent_password(look: &mut Look<'_>, keyword: Range<usize>) {
    let before = look.before(keyword.start);
    let before = before.get(before.len().saturating_sub(80)..).unwrap_or_default();
    look.spend(before.len());
    let was_asked = [&b"assword"[..], b"assphrase"]
        .iter()
        .any(|word| memchr::memmem::find(before, word).is_some());
    if !was_asked {
        return;
    }
    let value = look.quoted(keyword.end - 1);
    let text = look.slice(value.clone()).trim_ascii_end(); // `send "secret\r"`
    if text.len() >= 4 && !is_placeholder(text) {
        look.add(value.start..value.start + text.len(), "password", Rank::Placed);
    }
}

/// `Unseal Key 1: …` as Vault prints it.
pub(crate) fn unseal_key(look: &mut Look<'_>, keyword: Range<usize>) {
    let rest = look.from(keyword.end);
    let rest = rest.get(..8).unwrap_or(rest);
    look.spend(rest.len());
    let Some(colon) = memchr::memchr(b':', rest) else { return };
    let start = look.skip_gap(keyword.end + colon + 1, 8);
    let value = look.value_at(start).range;
    if looks_random(look.slice(value.clone()), 20) {
        look.add(value, "secret-key", Rank::Placed);
    }
}

/// `INSERT INTO users (name, password) VALUES ('jo', 'secret')`: the values of columns with telling names.
pub(crate) fn insert_values(look: &mut Look<'_>, keyword: Range<usize>) {
    let rest = look.from(keyword.end);
    let rest = rest.get(..2048).unwrap_or(rest);
    let Some(open) = memchr::memchr(b'(', rest) else { return };
    let Some(close) = memchr::memchr(b')', rest.get(open..).unwrap_or_default()) else { return };
    let columns = rest.get(open + 1..open + close).unwrap_or_default();
    look.spend(open + close);
    let trim = |name: &[u8]| -> Vec<u8> {
        name.iter().copied().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').collect()
    };
    let strengths: Vec<Option<Strength>> = columns
        .split(|byte| *byte == b',')
        .map(|name| Strength::of(&trim(name)).map(|(strength, _)| strength))
        .collect();
    let behind = rest.get(open + close + 1..).unwrap_or_default();
    let gap = behind.iter().take_while(|byte| **byte <= b' ').count();
    let is_values =
        behind.get(gap..gap + 6).is_some_and(|word| word.eq_ignore_ascii_case(b"values"));
    if is_values && strengths.iter().any(Option::is_some) {
        let mut at = keyword.end + open + close + 1 + gap + 6;
        for _ in 0..256 {
            match tuple(look, at, &strengths) {
                Some(end) => at = end,
                None => return,
            }
        }
    }
}

/// Adds the secret values of the tuple that starts behind `at`. Returns where it ends.
fn tuple(look: &mut Look<'_>, at: usize, strengths: &[Option<Strength>]) -> Option<usize> {
    let gap =
        look.from(at).iter().take(16).take_while(|byte| **byte <= b' ' || **byte == b',').count();
    if look.byte(at + gap) != Some(b'(') {
        return None;
    }
    let mut at = at + gap + 1;
    for strength in strengths {
        at = look.skip_blanks(at, 8);
        if look.byte(at) == Some(b'\'') {
            let value = look.quoted(at);
            at = value.end + 1;
            let text = look.slice(value.clone());
            let counts = match strength {
                Some(Strength::Strong) => text.len() >= 4,
                Some(Strength::Medium | Strength::Weak) => looks_random(text, 8),
                None => false,
            };
            if counts && !is_placeholder(text) {
                look.add(value, "password", Rank::Placed);
            }
        }
        let len = look.from(at).iter().take(256).take_while(|byte| !b",)\n".contains(byte)).count();
        look.spend(len + 1);
        at += len;
        match look.byte(at) {
            Some(b',') => at += 1,
            Some(b')') => return Some(at + 1),
            Some(_) | None => return None,
        }
    }
    None
}
