//! Programs whose operands are hosts: ssh, sftp, nc, telnet, socat, ping.

use super::address::Address;
use super::uses::{Below, Uses, is_url};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::{Access, Invocation};
use crate::shell::word::Word;

pub(super) fn hosts(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    if matches!(reading.name, "sftp" | "ftp" | "lftp" | "tnftp" | "tftp") {
        let scripts = reading.values("e").chain(reading.values("c")).map(|value| value.text);
        scripts.chain(invocation.stdin_text.as_ref().map(Word::as_str)).for_each(|script| {
            uploads(script, uses);
        });
    }
    match reading.name {
        "ssh" | "mosh" | "autossh" => ssh(reading, uses),
        "sftp" | "ssh-copy-id" => sftp(reading, uses),
        "socat" => socat(reading, uses),
        "nc" => netcat(reading, uses),
        name => {
            let scheme = match name {
                "telnet" | "ftp" | "tftp" => name,
                "lftp" => "ftp",
                _ => "",
            };
            // `dig @server name`, `nslookup name server`: every operand is one; ports and types are not.
            let is_name = |text: &str| text.contains(['.', ':']) || text == "localhost";
            for (index, word) in reading.operands().into_iter().enumerate() {
                let text = word.text.trim_start_matches('@');
                if index == 0 || is_name(text) {
                    uses.url(word.part(text), scheme);
                }
            }
        }
    }
}

/// A key is read; the host is the first operand; `-J`, `-W` and tunnels name others.
fn ssh(reading: &Reading<'_>, uses: &mut Uses) {
    for option in ["i", "F"] {
        uses.reads(reading.values(option));
    }
    uses.writes(reading.values("E"));
    for jumps in reading.values("J") {
        for jump in jumps.text.split(',') {
            uses.url(jumps.part(jump), "ssh");
        }
    }
    if let Some(host) = reading.operands().first() {
        uses.url(*host, "ssh");
    }
}

/// `sftp user@host:path`; `ssh-copy-id -i key user@host`.
fn sftp(reading: &Reading<'_>, uses: &mut Uses) {
    for option in ["i", "F", "b"] {
        uses.reads(reading.values(option));
    }
    if let Some(target) = reading.operands().first() {
        match Address::from_remote_path(target.text) {
            Some(address) if !is_url(target.text) => uses.address(*target, address),
            Some(_) | None => uses.url(*target, "ssh"),
        }
    }
}

/// `put file`, `mput files`: what the commands of a session send.
fn uploads(script: &str, uses: &mut Uses) {
    for line in script.split(['\n', ';']).take(64) {
        let mut words = line.split_whitespace();
        let sends = matches!(words.next(), Some("put" | "mput" | "reput" | "append" | "mirror"));
        let mut paths = words.filter(|word| !word.starts_with('-')).take(64);
        if sends && let Some(path) = paths.next() {
            uses.word(Word::literal(path.trim_matches(['"', '\''])), Access::Read, Below::Yes);
        }
    }
}

/// `nc host port`; with `-l` it listens, with `-U` the operand is a socket.
fn netcat(reading: &Reading<'_>, uses: &mut Uses) {
    let operands = reading.operands();
    uses.writes(reading.values("output"));
    if reading.has("U") {
        return uses.writes(operands);
    }
    reading.values("proxy").for_each(|proxy| uses.url(proxy, ""));
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(host) = operands.first().filter(|host| !is_port(host.text))
        && !reading.has("listen")
    {
        uses.url(*host, if reading.has("udp") { "udp" } else { "tcp" });
    }
}

/// `TCP:host:port`, `OPENSSL:host:port`, `OPEN:file`, …
fn socat(reading: &Reading<'_>, uses: &mut Uses) {
    for word in reading.operands() {
        let Some((kind, rest)) = word.text.split_once(':') else { continue };
        let target = rest.split(',').next().unwrap_or(rest);
        match kind.to_ascii_uppercase().as_str() {
            "TCP" | "TCP4" | "TCP6" | "TCP-CONNECT" | "SOCKS4" | "SOCKS4A" | "PROXY" => {
                uses.address(word, Address::new("tcp", target));
            }
            "UDP" | "UDP4" | "UDP6" | "UDP-CONNECT" | "UDP-SENDTO" | "UDP-DATAGRAM" => {
                uses.address(word, Address::new("udp", target));
            }
            "OPENSSL" | "SSL" | "OPENSSL-CONNECT" => {
                uses.address(word, Address::new("tls", target));
            }
            "OPEN" | "FILE" | "GOPEN" => uses.read(word.part(target)),
            "CREATE" | "CREAT" | "UNIX-LISTEN" | "UNIX-CONNECT" | "UNIX" => {
                uses.write(word.part(target));
            }
            _ => {}
        }
    }
}

/// A registry or another host without a scheme, if the word has one: `ghcr.io/a/b`.
pub(super) fn registry(word: Text<'_>, default: &str, uses: &mut Uses) {
    let first = word.text.split('/').next().unwrap_or_default();
    let has_host = word.text.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    if is_url(word.text) || has_host {
        uses.url(word, "https");
    } else {
        uses.address(word, Address::new("https", default));
    }
}
