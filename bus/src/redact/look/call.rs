//! Passwords that code hands over beside a user name, without a name of their own: `auth=("jo", "secret")`,
//! `SetBasicAuth("jo", "secret")`, `auth: 'jo:secret'`, `AUTH secret`.

use std::ops::Range;

use super::plausible::{is_placeholder, looks_random};
use super::{Look, Rank};

/// Functions whose last argument is a password.
pub(crate) const FUNCTIONS: [&str; 6] =
    ["basicauth(", "basic_auth(", "networkcredential(", ".login(", "getconnection(", "auth=("];
/// Members that hold `user:password`.
pub(crate) const PAIRS: [&str; 4] = ["auth: '", "auth: \"", "auth='", "auth=\""];

/// The last of at least two arguments, if it is a string that looks random.
pub(crate) fn last_argument(look: &mut Look<'_>, keyword: Range<usize>) {
    let mut at = keyword.end;
    let mut last = None;
    let mut arguments = 0;
    for _ in 0..8 {
        at = look.skip_gap(at, 16);
        arguments += 1;
        last = None;
        if matches!(look.byte(at), Some(b'"' | b'\'' | b'`')) {
            let value = look.quoted(at);
            at = value.end + 1;
            last = Some(value);
        }
        let rest = look.from(at);
        let rest = rest.get(..256).unwrap_or(rest);
        let len = rest.iter().take_while(|byte| !b",)\n".contains(byte)).count();
        look.spend(len + 1);
        at += len;
        if look.byte(at) != Some(b',') {
            break;
        }
        at += 1;
    }
    let Some(value) = last.filter(|_| arguments >= 2 && look.byte(at) == Some(b')')) else {
        return;
    };
    let text = look.slice(value.clone());
    if looks_random(text, 6) && !is_placeholder(text) {
        look.add(value, "password", Rank::Placed);
    }
}

/// What follows the colon in `auth: 'jo:secret'`.
pub(crate) fn user_and_password(look: &mut Look<'_>, keyword: Range<usize>) {
    let value = look.quoted(keyword.end - 1);
    let text = look.slice(value.clone());
    let Some(colon) = memchr::memchr(b':', text) else { return };
    let password = text.get(colon + 1..).unwrap_or_default();
    if looks_random(password, 6) && !is_placeholder(password) && !password.contains(&b' ') {
        look.add(value.start + colon + 1..value.end, "password", Rank::Placed);
    }
}

/// `AUTH secret` and `AUTH user secret` of Redis.
pub(crate) fn redis_auth(look: &mut Look<'_>, keyword: Range<usize>) {
    let is_command = look.slice(keyword.clone()) == b"AUTH "
        && look
            .before(keyword.start)
            .last()
            .is_none_or(|byte| *byte <= b' ' || b"\"'".contains(byte));
    if !is_command {
        return;
    }
    let first = look.value_at(keyword.end).range;
    let second = look.value_at(look.skip_blanks(first.end, 2)).range;
    for value in [first, second] {
        let text = look.slice(value.clone());
        if looks_random(text, 10) && !is_placeholder(text) {
            look.add(value, "command-password", Rank::Placed);
            return;
        }
    }
}
