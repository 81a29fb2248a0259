//! Passwords that programs take as arguments: `curl -u user:password`, `mysql -psecret`, `sshpass -p secret`. Options with a
//! telling name (`--password …`) are found by their name.

use std::ops::Range;

use super::plausible::{is_placeholder, is_words, looks_random};
use super::{Look, Rank};

/// A program, and the options that carry its password.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) program: &'static str,
    options: &'static [&'static str],
    form: Form,
}

/// What the argument of an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `user:password`; the password is the secret.
    Pair(u8),
    /// `-p secret`.
    Whole,
    /// `-psecret`: part of the same word.
    Attached,
    /// `-p secret` and `-psecret`.
    Either,
    /// `--value secret`, if it looks random.
    Random,
    /// The argument with this number that is no option, if it looks random.
    Positional(usize),
    /// `user:password` as an argument that is no option, if the password looks random.
    PositionalPair,
}

const fn command(program: &'static str, options: &'static [&'static str], form: Form) -> Command {
    Command { program, options, form }
}

pub(crate) const COMMANDS: [Command; 72] = [
    command("curl", &["-u", "--user", "--proxy-user", "-U"], Form::Pair(b':')),
    command("http ", &["-a", "--auth"], Form::Pair(b':')),
    command("smbclient", &["-U", "--user"], Form::Pair(b'%')),
    command("rpcclient", &["-U", "--user"], Form::Pair(b'%')),
    command("mysql", &["-p"], Form::Attached),
    command("mariadb", &["-p"], Form::Attached),
    command("mysqldump", &["-p"], Form::Attached),
    command("mysqladmin", &["-p"], Form::Attached),
    command("sshpass", &["-p"], Form::Either),
    command("docker login", &["-p"], Form::Either),
    command("podman login", &["-p"], Form::Either),
    command("helm registry login", &["-p"], Form::Either),
    command("oras login", &["-p"], Form::Either),
    command("az login", &["-p"], Form::Either),
    command("mongosh", &["-p"], Form::Either),
    command("mongodump", &["-p"], Form::Either),
    command("mongorestore", &["-p"], Form::Either),
    command("redis-cli", &["-a", "--pass"], Form::Whole),
    command("sqlcmd", &["-P"], Form::Either),
    command("ldapsearch", &["-w"], Form::Either),
    command("ldapmodify", &["-w"], Form::Either),
    command("twine upload", &["-p"], Form::Whole),
    command("7z a", &["-p"], Form::Attached),
    command("unzip", &["-P"], Form::Whole),
    command("curl", &["-b", "--cookie"], Form::Pair(b'=')),
    command("curl", &["--oauth2-bearer"], Form::Whole),
    command("zip ", &["-P"], Form::Whole),
    command("7z x", &["-p"], Form::Attached),
    command("7z e", &["-p"], Form::Attached),
    command("7za ", &["-p"], Form::Attached),
    command("7zz ", &["-p"], Form::Attached),
    command("unrar", &["-p", "-hp"], Form::Attached),
    command("rar a", &["-hp", "-p"], Form::Attached),
    command("lftp", &["-u"], Form::Pair(b',')),
    command("ipmitool", &["-P"], Form::Either),
    command("snmpwalk", &["-A", "-X"], Form::Whole),
    command("snmpget", &["-A", "-X"], Form::Whole),
    command("mosquitto_pub", &["-P", "--pw"], Form::Whole),
    command("mosquitto_sub", &["-P", "--pw"], Form::Whole),
    command("rabbitmqadmin", &["-p"], Form::Whole),
    command("cqlsh", &["-p"], Form::Whole),
    command("mongo ", &["-p"], Form::Either),
    command("mongoimport", &["-p"], Form::Either),
    command("mongoexport", &["-p"], Form::Either),
    command("useradd", &["-p"], Form::Whole),
    command("usermod", &["-p"], Form::Whole),
    command("plink", &["-pw"], Form::Whole),
    command("pscp", &["-pw"], Form::Whole),
    command("evil-winrm", &["-p"], Form::Whole),
    command("xfreerdp", &["/p:"], Form::Attached),
    command("etcdctl", &["--user"], Form::Pair(b':')),
    command("rsync", &["--password"], Form::Whole),
    command("htpasswd", &[], Form::Positional(3)),
    command("wpa_passphrase", &[], Form::Positional(2)),
    command("vault login", &[], Form::Positional(1)),
    command("rabbitmqctl add_user", &[], Form::Positional(2)),
    command("rabbitmqctl change_password", &[], Form::Positional(2)),
    command("net use", &[], Form::Positional(3)),
    command("net user", &[], Form::Positional(2)),
    command("convertto-securestring", &[], Form::Positional(1)),
    command("rclone obscure", &[], Form::Positional(1)),
    command("gh secret set", &["--body", "-b"], Form::Whole),
    command("openssl enc", &["-k"], Form::Whole),
    command("acl setuser", &[">"], Form::Attached),
    command("x11vnc", &["-passwd"], Form::Whole),
    command("enable secret", &[], Form::Positional(2)),
    command("snmp-server community", &[], Form::Positional(1)),
    command("mc alias set", &[], Form::Positional(4)),
    command("poetry config", &[], Form::Positional(3)),
    command("bundle config", &[], Form::PositionalPair),
    command("jenkins-cli.jar", &["-auth"], Form::Pair(b':')),
    command("ssm put-parameter", &["--value"], Form::Random),
];

/// How much of a line is read.
const MAX_LINE: usize = 2048;

impl Command {
    /// The passwords in the line that starts with the program at `keyword`.
    pub(crate) fn find(&self, look: &mut Look<'_>, keyword: &Range<usize>) {
        let before = look.before(keyword.start).last().copied();
        let is_word =
            before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_' && byte != b'.');
        let next = look.byte(keyword.end);
        if !is_word
            || !self.program.ends_with(' ')
                && !next.is_some_and(|byte| b" \t\"'\n\\".contains(&byte))
        {
            return;
        }
        let line = look.from(keyword.end);
        let line = line.get(..MAX_LINE).unwrap_or(line);
        let end = line.windows(2).position(ends_line).unwrap_or(line.len());
        look.spend(end);
        let line = keyword.end..keyword.end + end;
        match self.form {
            Form::Positional(number) => return positional(look, line, number),
            Form::PositionalPair => return positional_pair(look, line),
            Form::Pair(_) | Form::Whole | Form::Attached | Form::Either | Form::Random => {}
        }
        let mut at = keyword.end;
        while at < keyword.end + end {
            let word = look.from(at).iter().take(256).take_while(|byte| !is_gap(**byte)).count();
            if word == 0 {
                at += 1;
                continue;
            }
            if let Some(value) = self.argument(look, at..at + word) {
                at = value.end.max(at + word);
                self.add(look, value);
            } else {
                at += word;
            }
        }
    }

    /// The argument of the option that is the word at `word`.
    fn argument(&self, look: &mut Look<'_>, word: Range<usize>) -> Option<Range<usize>> {
        let text = look.slice(word.clone());
        let option = self.options.iter().find(|option| text.starts_with(option.as_bytes()))?;
        let rest = text.get(option.len()..).unwrap_or_default();
        if rest.is_empty() {
            // `-p'secret'`, `-u user`, and `"-u", "user"` in a list of arguments.
            let is_open = matches!(look.byte(word.end), Some(b'\'' | b'"'));
            let attached = is_open && !matches!(look.byte(word.end + 1), Some(b',' | b' '));
            let closed = word.end + usize::from(is_open && !attached);
            let comma = closed + usize::from(look.byte(closed) == Some(b','));
            let start = look.skip_blanks(comma, 8);
            let apart = start > word.end && self.form != Form::Attached;
            return (apart || attached).then(|| look.value_at(start).range);
        }
        let is_long = option.starts_with("--");
        let equals = rest.first() == Some(&b'=');
        let joined = matches!(self.form, Form::Attached | Form::Either | Form::Pair(_));
        (if is_long { equals } else { joined }).then(|| {
            let start = word.start + option.len() + usize::from(is_long);
            look.value_at(start).range
        })
    }

    fn add(&self, look: &mut Look<'_>, value: Range<usize>) {
        let secret = match self.form {
            Form::Pair(separator) => {
                let Some(colon) = memchr::memchr(separator, look.slice(value.clone())) else {
                    return;
                };
                value.start + colon + 1..value.end
            }
            Form::Random if !looks_random(look.slice(value.clone()), 8) => return,
            Form::Whole
            | Form::Attached
            | Form::Either
            | Form::Random
            | Form::Positional(_)
            | Form::PositionalPair => value,
        };
        let text = look.slice(secret.clone());
        // `mysql -port`, `-path`: words behind a short option are another option.
        let is_option = self.form == Form::Attached && is_words(text) && text.len() < 5;
        if !text.is_empty() && !is_placeholder(text) && !is_option && text.first() != Some(&b'-') {
            look.add(secret, "command-password", Rank::Placed);
        }
    }
}

/// The argument with this number, counted from 1, without options.
fn positional(look: &mut Look<'_>, line: Range<usize>, number: usize) {
    let Some(value) = arguments(look, line).nth(number.saturating_sub(1)) else { return };
    let text = look.slice(value.clone());
    if looks_random(text, 6) && !is_placeholder(text) {
        look.add(value, "command-password", Rank::Placed);
    }
}

/// What follows the colon of an argument.
fn positional_pair(look: &mut Look<'_>, line: Range<usize>) {
    let password = |value: Range<usize>| {
        let colon = memchr::memchr(b':', look.slice(value.clone()))?;
        let password = value.start + colon + 1..value.end;
        let text = look.slice(password.clone());
        (looks_random(text, 6) && !is_placeholder(text)).then_some(password)
    };
    let found = arguments(look, line).find_map(password);
    if let Some(found) = found {
        look.add(found, "command-password", Rank::Placed);
    }
}

/// The arguments in a line that are no options: neither `-x` nor `/x` of Windows.
fn arguments(look: &Look<'_>, line: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = line.start;
    std::iter::from_fn(move || {
        while at < line.end {
            let word = look.from(at).iter().take(256).take_while(|byte| !is_gap(**byte)).count();
            let range = at..at + word;
            at += word.max(1);
            let is_option = match look.slice(range.clone()) {
                [] | [b'-', ..] => true,
                [b'/', rest @ ..] => !rest.contains(&b'/'),
                [_, ..] => false,
            };
            if !is_option {
                return Some(range);
            }
        }
        None
    })
}

fn is_gap(byte: u8) -> bool {
    byte <= b' ' || b"\"',[]".contains(&byte)
}

/// The end of a command, unless the newline is escaped.
fn ends_line(pair: &[u8]) -> bool {
    matches!(pair, [b';' | b'|', _] | [b'&', b'&'])
        || matches!(pair, [before, b'\n'] if *before != b'\\')
}
