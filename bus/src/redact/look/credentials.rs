//! Credentials with a form of their own: `"auth"` of Docker's configuration.

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
