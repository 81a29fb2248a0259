//! Credentials at places of their own: `"auth"` of Docker's configuration, `IDENTIFIED BY` of SQL.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::plausible::{is_placeholder, looks_random};
use super::{Look, Rank, assignment};

/// `"auth": "dXNlcjpwYXNz"`: user and password in base64, as Docker, Podman and Helm store them.
pub(crate) fn docker_auth(look: &mut Look<'_>, keyword: Range<usize>) {
    let name = keyword.start + 1..keyword.end - 1;
    let Some(found) = assignment(look, name.clone(), 0) else { return };
    let value = look.slice(found.value.clone());
    if found.name != name || value.len() > 4096 || is_placeholder(value) {
        return;
    }
    let is_pair = STANDARD.decode(value).is_ok_and(|pair| pair.contains(&b':') && pair.is_ascii());
    if is_pair || looks_random(value, 16) {
        look.add(found.value, "registry-auth", Rank::Placed);
    }
}

/// `CREATE USER x IDENTIFIED BY 'secret'`, `IDENTIFIED WITH plugin BY 'secret'`.
pub(crate) fn sql_password(look: &mut Look<'_>, keyword: Range<usize>) {
    let mut start = look.skip_blanks(keyword.end, 4);
    // "the commit identified by 3f2a9c1d" is no password.
    let before = look.before(keyword.start);
    let before = before.get(before.len().saturating_sub(80)..).unwrap_or_default();
    let before = before.to_ascii_lowercase();
    look.spend(before.len());
    let has = |word: &[u8]| memchr::memmem::find(&before, word).is_some();
    let is_about_user = has(b"user ") || has(b"role ");
    if look.slice(keyword).to_ascii_lowercase().ends_with(b"with") {
        let rest = look.from(start);
        let rest = rest.get(..64).unwrap_or(rest).to_ascii_lowercase();
        look.spend(rest.len());
        let is_by = |word: &[u8]| matches!(word, [a, b'b', b'y', z] if *a <= b' ' && *z <= b' ');
        let Some(by) = rest.windows(4).position(is_by) else { return };
        start = look.skip_blanks(start + by + 4, 4);
    }
    let is_quoted = matches!(look.byte(start), Some(b'\'' | b'"'));
    let value = look.value_at(start).range;
    let text = look.slice(value.clone());
    if !is_placeholder(text) && (is_quoted || is_about_user && looks_random(text, 6)) {
        look.add(value, "password", Rank::Placed);
    }
}
