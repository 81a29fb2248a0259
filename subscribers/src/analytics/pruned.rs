//! What was removed from the log on purpose: the texts of those events go from the database too. The figures stay.

use rusqlite::{Connection, params};
use serde_json::Value;

/// Rows of a bus whose payloads were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PrunedRows {
    pub(super) bus: i64,
    first: i64,
    last: i64,
}

/// The rows that a record of kind `log.pruned` names, as `1-5,9`.
pub(super) fn read(bus: i64, record: &Value) -> Vec<PrunedRows> {
    let seqs =
        ["/payloads/seqs", "/rows/seqs"].iter().filter_map(|at| record.pointer(at)?.as_str());
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(PrunedRows { bus, first: first.parse().ok()?, last: last.parse().ok()? })
    };
    seqs.flat_map(|seqs| seqs.split(',')).filter_map(range).collect()
}

/// Removes the texts of these rows.
pub(super) fn forget(db: &Connection, pruned: &[PrunedRows]) -> rusqlite::Result<()> {
    for rows in pruned {
        for table in [
            "UPDATE p_tool_calls SET about = '', error = NULL WHERE",
            "UPDATE p_decisions SET reason = NULL WHERE",
            "UPDATE p_verdicts SET reason = NULL WHERE",
        ] {
            db.prepare_cached(&format!("{table} bus = ?1 AND seq BETWEEN ?2 AND ?3"))?
                .execute(params![rows.bus, rows.first, rows.last])?;
        }
    }
    let is_pruned = |bus: i64, seq: i64| {
        let covers = |rows: &PrunedRows| rows.bus == bus && (rows.first..=rows.last).contains(&seq);
        pruned.iter().any(covers)
    };
    let keys = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?))
    };
    let read = |sql: &str| -> rusqlite::Result<Vec<(i64, i64, i64, String)>> {
        db.prepare(sql)?.query_map([], keys)?.collect()
    };
    // Results that were removed without their calls.
    for (bus, seq, result, _) in read(
        "SELECT bus, seq, result_seq, '' FROM p_tool_calls WHERE error IS NOT NULL AND result_seq IS NOT NULL",
    )? {
        if is_pruned(bus, result) {
            db.prepare_cached("UPDATE p_tool_calls SET error = NULL WHERE bus = ?1 AND seq = ?2")?
                .execute([bus, seq])?;
        }
    }
    for (bus, seq, turn, session) in
        read("SELECT bus, seq, turn, session FROM p_turns WHERE prompt IS NOT NULL")?
    {
        if is_pruned(bus, seq) {
            let turns =
                "UPDATE p_turns SET prompt = NULL WHERE bus = ?1 AND session = ?2 AND turn = ?3";
            db.prepare_cached(turns)?.execute(params![bus, session, turn])?;
            let sessions = "UPDATE p_sessions SET prompt = NULL WHERE bus = ?1 AND session = ?2";
            db.prepare_cached(sessions)?.execute(params![bus, session])?;
        }
    }
    // Files and hosts are kept by session, and go with it.
    db.execute_batch("CREATE TEMP TABLE IF NOT EXISTS pruned_sessions (bus, session); DELETE FROM pruned_sessions")?;
    for (bus, first, last, session) in
        read("SELECT bus, first_seq, last_seq, session FROM p_sessions")?
    {
        if is_pruned(bus, first) && is_pruned(bus, last) {
            db.prepare_cached("INSERT INTO pruned_sessions VALUES (?1, ?2)")?
                .execute(params![bus, session])?;
        }
    }
    for table in ["f_files", "f_hosts"] {
        db.execute(
            &format!(
                "DELETE FROM {table} WHERE (session, (SELECT bus FROM scopes x WHERE x.scope = {table}.scope)) \
                 IN (SELECT session, bus FROM pruned_sessions)"
            ),
            [],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_names_payloads_and_rows() {
        let record = json!({"payloads": {"seqs": "1-5,9"}, "rows": {"seqs": "12"}, "by": "x"});
        let rows = |first, last| PrunedRows { bus: 1, first, last };
        assert_eq!(read(1, &record), [rows(1, 5), rows(9, 9), rows(12, 12)]);
        assert_eq!(read(1, &json!({"rows": {"seqs": "x-,-"}})), []);
    }
}
