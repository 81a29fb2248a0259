//! Passwords that a shell line gives to a program by its standard input: `echo secret | docker login --password-stdin`.

use std::ops::Range;

use super::plausible::{is_placeholder, looks_random};
use super::{Look, Rank};

/// Options and programs that read a password from standard input.
pub(crate) const READERS: [&str; 6] = [
    "--password-stdin",
    "sudo -s",
    "passwd --stdin",
    "--with-token",
    "chpasswd",
    "--passphrase-fd",
];

/// How far in front of the program the line is read.
const MAX_LINE: usize = 512;

/// What is printed into the program at `keyword`.
pub(crate) fn piped_secret(look: &mut Look<'_>, keyword: Range<usize>) {
    let program = look.slice(keyword.clone());
    if program.starts_with(b"sudo") && !program.ends_with(b"-S") {
        return;
    }
    let behind = look.from(keyword.end);
    let behind = behind.get(..64).unwrap_or(behind);
    if let Some(at) = memchr::memmem::find(behind, b"<<<") {
        let start = look.skip_blanks(keyword.end + at + 3, 4);
        let value = look.value_at(start).range;
        return add(look, value);
    }
    let before = look.before(keyword.start);
    let low = before.len().saturating_sub(MAX_LINE);
    let line = before.get(low..).unwrap_or_default();
    let low = low + memchr::memrchr(b'\n', line).map_or(0, |at| at + 1);
    let line = before.get(low..).unwrap_or_default();
    look.spend(line.len());
    let Some(pipe) = memchr::memrchr(b'|', line) else { return };
    let printed = line.get(..pipe).unwrap_or_default();
    let Some(at) = ["echo ", "printf "].iter().find_map(|printer| {
        memchr::memmem::rfind(printed, printer.as_bytes()).map(|at| low + at + printer.len())
    }) else {
        return;
    };
    let mut start = look.skip_blanks(at, 4);
    while look.byte(start) == Some(b'-') {
        let option = look.from(start).iter().take(8).take_while(|byte| **byte > b' ').count();
        start = look.skip_blanks(start + option, 4);
    }
    let mut value = look.value_at(start).range;
    value.end = value.end.min(low + pipe);
    if program.ends_with(b"chpasswd") {
        let Some(colon) = memchr::memchr(b':', look.slice(value.clone())) else { return };
        value.start += colon + 1;
    }
    add(look, value);
}

fn add(look: &mut Look<'_>, value: Range<usize>) {
    let text = look.slice(value.clone());
    if text.len() >= 4 && !is_placeholder(text) && (looks_random(text, 6) || text.is_ascii()) {
        look.add(value, "command-password", Rank::Placed);
    }
}
