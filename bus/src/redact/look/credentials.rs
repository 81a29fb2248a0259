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

/// `CREATE USER x IDENTIFIED BY 'secret'`.
pub(crate) fn sql_password(look: &mut Look<'_>, keyword: Range<usize>) {
    let start = look.skip_blanks(keyword.end, 4);
    if look.byte(start) == Some(b'\'') {
        let value = look.quoted(start);
        if !is_placeholder(look.slice(value.clone())) {
            look.add(value, "password", Rank::Placed);
        }
    }
}
