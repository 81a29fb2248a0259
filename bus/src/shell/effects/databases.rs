//! Databases: hosts of the servers, files of sqlite.

use super::address::Address;
use super::uses::{Below, Uses, is_url};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::{Access, Invocation};

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
    reading.values("file").for_each(|path| uses.file(path, access, Below::No));
    for option in ["output", "log-file", "result-file", "tee", "out", "rdb"] {
        reading.values(option).for_each(|path| uses.write(path));
    }
    for option in ["defaults-file", "defaults-extra-file", "cert", "key", "dir"] {
        reading.values(option).for_each(|path| uses.read(path));
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
    reading.values("init").for_each(|path| uses.read(path));
    for sql in sql {
        dot_commands(sql, uses);
    }
}

/// Whether any statement is not one that only reads.
fn may_write(sql: &str) -> bool {
    const READS: [&str; 5] = ["select", "explain", "values", "with", "pragma"];
    const WRITES: [&str; 9] =
        ["insert", "update", "delete", "drop", "create", "alter", "replace", "vacuum", "reindex"];
    let sql = sql.to_lowercase();
    let writes = |statement: &str| {
        let mut words = statement.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
        let first = words.find(|word| !word.is_empty()).unwrap_or_default();
        match first {
            "with" => words.any(|word| WRITES.contains(&word)),
            "pragma" => statement.contains('='),
            _ if first.starts_with('.') => matches!(first, ".import" | ".restore" | ".read"),
            _ => !first.is_empty() && !READS.contains(&first),
        }
    };
    sql.split([';', '\n']).any(writes)
        && (WRITES.iter().any(|word| sql.contains(word))
            || sql.contains('.')
            || sql.contains("attach")
            || sql.contains("pragma")
            || sql.contains('\u{FFFC}'))
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
