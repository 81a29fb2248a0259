//! What was removed from the log on purpose, or redacted: the texts of those events go from the database too. The figures
//! stay.

use std::collections::BTreeMap;

use hookbus::event::Kind;
use hookbus::view::REMOVED;
use rusqlite::{Connection, params};
use serde_json::Value;

/// Rows of a bus whose payloads were removed or redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PrunedRows {
    first: i64,
    last: i64,
    /// Whether they are still there, without their secrets.
    is_redacted: bool,
}

/// The rows that a record of kind `log.pruned` or `log.redacted` names, as `1-5,9`.
pub(super) fn read(record: &Value, kind: Kind) -> Vec<PrunedRows> {
    let is_redacted = kind == Kind::LogRedacted;
    let seqs =
        ["/payloads/seqs", "/rows/seqs"].iter().filter_map(|at| record.pointer(at)?.as_str());
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(PrunedRows { first: first.parse().ok()?, last: last.parse().ok()?, is_redacted })
    };
    seqs.flat_map(|seqs| seqs.split(',')).filter_map(range).collect()
}

/// Ranges of seqs by the number of their bus.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<i64, Vec<(i64, i64)>>);

impl Ranges {
    /// In order, and joined where they overlap.
    fn new(rows: impl Iterator<Item = (i64, PrunedRows)>) -> Self {
        let mut ranges = Self::default();
        let mut rows: Vec<_> = rows.filter(|(_, rows)| rows.first <= rows.last).collect();
        rows.sort_unstable();
        for (bus, PrunedRows { first, last, .. }) in rows {
            let of_bus = ranges.0.entry(bus).or_default();
            match of_bus.last_mut() {
                Some((_, end)) if first <= *end => *end = last.max(*end),
                Some(_) | None => of_bus.push((first, last)),
            }
        }
        ranges
    }

    fn contain(&self, bus: i64, seq: i64) -> bool {
        let Some(ranges) = self.0.get(&bus) else { return false };
        let after = ranges.partition_point(|(first, _)| *first <= seq);
        after.checked_sub(1).is_some_and(|at| seq <= ranges[at].1)
    }
}

/// Removes the texts of these rows, each named with the number of its bus.
pub(super) fn forget(db: &Connection, pruned: &[(i64, PrunedRows)]) -> rusqlite::Result<()> {
    let ranges = Ranges::new(pruned.iter().copied());
    for (bus, of_bus) in &ranges.0 {
        for table in [
            "UPDATE p_tool_calls SET about = ?4, error = NULL WHERE",
            "UPDATE p_decisions SET reason = NULL WHERE ?4 <> '' AND",
            "UPDATE p_verdicts SET reason = NULL WHERE ?4 <> '' AND",
        ] {
            let sql = format!("{table} bus = ?1 AND seq BETWEEN ?2 AND ?3");
            let mut statement = db.prepare_cached(&sql)?;
            for (first, last) in of_bus {
                statement.execute(params![bus, first, last, REMOVED])?;
            }
        }
    }
    results(db, &ranges)?;
    prompts(db, &ranges)?;
    files_and_hosts(db, pruned, &ranges)
}

/// Bus, two numbers and a text of the rows that a query returns.
type Keys = Vec<(i64, i64, i64, String)>;

fn keys(db: &Connection, sql: &str) -> rusqlite::Result<Keys> {
    let keys = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    db.prepare(sql)?.query_map([], keys)?.collect()
}

/// The errors in results that were removed without their calls.
fn results(db: &Connection, ranges: &Ranges) -> rusqlite::Result<()> {
    let with_errors = "SELECT bus, seq, result_seq, '' FROM p_tool_calls \
                       WHERE error IS NOT NULL AND result_seq IS NOT NULL";
    for (bus, seq, result, _) in keys(db, with_errors)? {
        if ranges.contain(bus, result) {
            db.prepare_cached("UPDATE p_tool_calls SET error = NULL WHERE bus = ?1 AND seq = ?2")?
                .execute([bus, seq])?;
        }
    }
    Ok(())
}

/// The prompts of turns. That of a session is the first one that is left.
fn prompts(db: &Connection, ranges: &Ranges) -> rusqlite::Result<()> {
    let with_prompts = "SELECT bus, seq, turn, session FROM p_turns WHERE prompt IS NOT NULL";
    let mut prompts = keys(db, with_prompts)?;
    prompts.retain(|(bus, seq, ..)| ranges.contain(*bus, *seq));
    for (bus, _, turn, session) in &prompts {
        let turns =
            "UPDATE p_turns SET prompt = NULL WHERE bus = ?1 AND session = ?2 AND turn = ?3";
        db.prepare_cached(turns)?.execute(params![bus, session, turn])?;
    }
    for (bus, _, _, session) in &prompts {
        let sessions = "UPDATE p_sessions SET prompt = (SELECT t.prompt FROM p_turns t \
             WHERE t.bus = ?1 AND t.session = ?2 AND t.prompt IS NOT NULL ORDER BY t.turn LIMIT 1) \
             WHERE bus = ?1 AND session = ?2";
        db.prepare_cached(sessions)?.execute(params![bus, session])?;
    }
    Ok(())
}

/// Files and hosts are kept by session. They go if all of it was removed, or if a secret was redacted in one of its calls,
/// which may be in a path.
fn files_and_hosts(
    db: &Connection,
    pruned: &[(i64, PrunedRows)],
    ranges: &Ranges,
) -> rusqlite::Result<()> {
    db.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS forgotten (bus, session); DELETE FROM forgotten",
    )?;
    for (bus, first, last, session) in
        keys(db, "SELECT bus, first_seq, last_seq, session FROM p_sessions")?
    {
        if ranges.contain(bus, first) && ranges.contain(bus, last) {
            db.prepare_cached("INSERT INTO forgotten VALUES (?1, ?2)")?
                .execute(params![bus, session])?;
        }
    }
    let redacted = pruned.iter().copied().filter(|(_, rows)| rows.is_redacted);
    for (bus, of_bus) in &Ranges::new(redacted).0 {
        for (first, last) in of_bus {
            db.prepare_cached(
                "INSERT INTO forgotten SELECT bus, session FROM p_tool_calls \
                 WHERE bus = ?1 AND (seq BETWEEN ?2 AND ?3)",
            )?
            .execute([bus, first, last])?;
        }
    }
    for table in ["f_files", "f_hosts"] {
        let sql = format!(
            "DELETE FROM {table} WHERE (session, (SELECT bus FROM scopes x WHERE x.scope = {table}.scope)) \
             IN (SELECT session, bus FROM forgotten)"
        );
        db.execute(&sql, [])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const fn rows(first: i64, last: i64) -> PrunedRows {
        PrunedRows { first, last, is_redacted: false }
    }

    #[test]
    fn a_record_names_payloads_and_rows() {
        let record = json!({"payloads": {"seqs": "1-5,9"}, "rows": {"seqs": "12"}, "by": "x"});
        assert_eq!(read(&record, Kind::LogPruned), [rows(1, 5), rows(9, 9), rows(12, 12)]);
        assert_eq!(read(&json!({"rows": {"seqs": "x-,-"}}), Kind::LogPruned), []);
        let [redacted] = read(&json!({"rows": {"seqs": "7"}}), Kind::LogRedacted)[..] else {
            panic!("one row");
        };
        assert!(redacted.is_redacted);
    }

    #[test]
    fn ranges_contain_what_one_of_them_contains() {
        let named = [(1, rows(9, 12)), (1, rows(1, 5)), (2, rows(3, 3)), (1, rows(2, 3))];
        let ranges = Ranges::new(named.into_iter().chain([(1, rows(8, 7))]));
        for bus in 1..=3 {
            for seq in 0..=14 {
                let expected = named.iter().any(|(of, rows)| {
                    (*of, true) == (bus, (rows.first..=rows.last).contains(&seq))
                });
                assert_eq!(ranges.contain(bus, seq), expected, "{seq} of bus {bus}");
            }
        }
    }
}
