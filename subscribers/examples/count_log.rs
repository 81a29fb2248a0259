//! Counts the calls of each tool, from the log of a home: `count_log ~/.hookbus counts.db`

#![expect(clippy::disallowed_methods, reason = "a database of its own")]

use std::error::Error;
use std::path::Path;

use hookbus::event::Seq;
use hookbus::log::{LogPath, LogReader, Query};
use rusqlite::{Connection, OptionalExtension};

const TABLES: &str = "CREATE TABLE IF NOT EXISTS positions (bus TEXT PRIMARY KEY, seq INTEGER);
                      CREATE TABLE IF NOT EXISTS tools (tool TEXT PRIMARY KEY, calls INTEGER);";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, counts] = arguments.as_slice() else { return Err("name a home and a file".into()) };
    let log = LogReader::open(&LogPath::in_home(Path::new(home)))?;
    let bus = log.bus()?.to_string();
    let mut db = Connection::open(counts)?;
    db.execute_batch(TABLES)?;
    loop {
        let last = "SELECT seq FROM positions WHERE bus = ?1";
        let last: Option<i64> = db.query_row(last, [&bus], |row| row.get(0)).optional()?;
        let rows = log.after(&Query::default(), last.map(Seq::from_i64), 1000)?;
        let Some(end) = rows.last() else { return Ok(()) };
        // One transaction for the position and for what is counted.
        let transaction = db.transaction()?;
        for row in rows.iter().filter(|row| row.kind == "tool.before") {
            let add = "INSERT INTO tools VALUES (?1, 1) ON CONFLICT (tool) DO UPDATE SET calls = calls + 1";
            transaction.execute(add, [&row.tool])?;
        }
        let position = "INSERT OR REPLACE INTO positions VALUES (?1, ?2)";
        transaction.execute(position, (&bus, end.seq.as_i64()))?;
        transaction.commit()?;
    }
}
