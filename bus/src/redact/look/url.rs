//! Passwords in URLs: `https://user:password@host`. Only the password is replaced.

use super::plausible::{is_placeholder, looks_random};
use super::{Look, Rank};

/// How much of a URL is read.
const MAX_AUTHORITY: usize = 1024;

/// `a://` to `z://`, and the digits: every scheme ends in one of them.
pub(crate) fn url_keywords() -> impl Iterator<Item = [u8; 4]> {
    (b'a'..=b'z').chain(b'0'..=b'9').map(|last| [last, b':', b'/', b'/'])
}

/// The password in the URL whose authority starts at `at`.
pub(crate) fn url_password(look: &mut Look<'_>, at: usize) {
    let rest = look.from(at);
    let ends = |byte: &u8| *byte <= b' ' || b"/?#\"'<>`\\|".contains(byte);
    let len = rest.iter().take(MAX_AUTHORITY).take_while(|byte| !ends(byte)).count();
    look.spend(len);
    let authority = rest.get(..len).unwrap_or_default();
    let Some(sign) = memchr::memrchr(b'@', authority) else { return };
    match memchr::memchr(b':', authority).filter(|colon| *colon < sign) {
        Some(colon) => {
            let password = at + colon + 1..at + sign;
            let text = look.slice(password.clone());
            if text.len() >= 3 && !is_placeholder(text) && !text.starts_with(b"%s") {
                look.add(password, "url-password", Rank::Placed);
            }
        }
        // `https://<token>@github.com`
        None if looks_random(authority.get(..sign).unwrap_or_default(), 16) => {
            look.add(at..at + sign, "url-token", Rank::Placed);
        }
        None => {}
    }
}
