//! Databases: hosts of the servers, files of sqlite.

use super::address::Address;
use super::uses::{Below, Uses, is_url};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::{Access, Invocation};
use crate::shell::word::UNKNOWN;

/// psql, mysql, mongosh, redis-cli: `-h host`, or a URL.
pub(super) fn servers(reading: &Reading<'_>, uses: &mut Uses) {
    let scheme = match reading.name {
        "psql" | "pgcli" | "pg_dump" | "pg_dumpall" | "dropdb" | "createdb" => "postgres",
        "mongosh" | "mongodump" | "mongorestore" => "mongodb",
        "redis-cli" | "valkey-cli" => "redis",
        _ => "mysql",
    };
    let host = if scheme == "redis" { "h" } else { "host" };
    for value in reading.values(host) {
        // A path is the directory of a socket.
        if !value.text.starts_with('/') {
            uses.address(value, Address::new(scheme, value.text));
        }
    }
    let urls = reading.values("dbname").chain(reading.values("uri")).chain(reading.values("u"));
    let urls = urls.chain(reading.operands()).filter(|word| is_url(word.text));
    urls.for_each(|url| uses.url(url, scheme));
    let writes_file = matches!(reading.name, "pg_dump" | "pg_dumpall");
    let access = if writes_file { Access::Write } else { Access::Read };
    uses.files(reading.values("file"), access, Below::No);
    for option in ["output", "log-file", "result-file", "tee", "out", "rdb"] {
        uses.writes(reading.values(option));
    }
    for option in ["defaults-file", "defaults-extra-file", "cert", "key", "dir"] {
        uses.reads(reading.values(option));
    }
}

/// `sqlite3 file [SQL]`: the file is written unless the SQL only reads.
pub(super) fn sqlite(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    let words = reading.operands();
    let Some((database, statements)) = words.split_first() else { return };
    let options = reading.values("cmd").chain(reading.values("c"));
    let mut sql: Vec<Text<'_>> = statements.iter().copied().chain(options).collect();
    sql.extend(invocation.stdin_text.as_ref().map(Text::from));
    let unseen = sql.is_empty() && !reading.has("readonly") && !invocation.stdin_from.is_empty();
    let writes = unseen || sql.iter().any(|sql| may_write(sql.text));
    let access = if writes && !reading.has("readonly") { Access::Write } else { Access::Read };
    if database.text != ":memory:" {
        uses.file(*database, access, Below::No);
    }
    uses.reads(reading.values("init"));
    for sql in sql {
        dot_commands(sql, uses);
    }
}

/// Whether the SQL has a word that writes, or an unknown part. A word inside a string counts too.
fn may_write(sql: &str) -> bool {
    const WRITES: [&str; 13] = [
        "insert", "update", "delete", "drop", "create", "alter", "vacuum", "reindex", "attach",
        "detach", ".import", ".restore", ".read",
    ];
    let sql = sql.to_lowercase();
    let mut words = sql.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    let sets_pragma = sql.contains("pragma") && sql.contains('=');
    words.any(|word| WRITES.contains(&word))
        || sets_pragma
        || sql.contains("replace into")
        || sql.contains(UNKNOWN)
}

/// `.read file`, `.output file`, `.backup file`, …
fn dot_commands(sql: Text<'_>, uses: &mut Uses) {
    for line in sql.text.lines() {
        let mut words = line.split_whitespace();
        let (command, path) = (words.next().unwrap_or_default(), words.last());
        let Some(path) = path.map(|path| path.trim_matches(['\'', '"'])) else { continue };
        match command {
            ".read" | ".restore" => uses.read(sql.part(path)),
            ".output" | ".once" | ".backup" | ".save" | ".log" => uses.write(sql.part(path)),
            _ => {}
        }
    }
}
