//! Reads what is needed to go on from the database.

use std::collections::BTreeMap;

use hookbus::event::{EventId, Seq};
use rusqlite::{Connection, OptionalExtension, Row};

use super::call::Call;
use super::projection::{BusState, Projection};
use super::reading::CallJoin;
use super::scope::{Scope, Scopes};
use super::session::Session;
use super::turn::Turn;
use super::usage::{Numbers, UsageRow};
use crate::position::StreamMark;

/// Positions and scopes. Sessions are read when a row needs them.
pub(super) fn projection(db: &Connection) -> rusqlite::Result<Projection> {
    let mut projection = Projection { stream: stream(db)?, ..Projection::default() };
    let mut statement = db.prepare_cached("SELECT bus, id, seq, row, host FROM buses")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state = BusState {
            number: row.get(0)?,
            seq: Seq::from_i64(row.get(2)?),
            row: EventId::from_bytes(row.get(3)?),
            host: row.get(4)?,
            is_changed: false,
        };
        // Only we write ids, and each is one; without it the bus would be counted from its start.
        if let Ok(id) = row.get_ref(1)?.as_str()?.parse() {
            projection.buses.insert(id, state);
        }
    }
    projection.scopes = scopes(db)?;
    Ok(projection)
}

fn stream(db: &Connection) -> rusqlite::Result<Option<StreamMark>> {
    let mut statement = db.prepare_cached("SELECT sequence, id FROM stream")?;
    let mark = |row: &Row<'_>| {
        let sequence: i64 = row.get(0)?;
        Ok(StreamMark { sequence: sequence.unsigned_abs(), id: EventId::from_bytes(row.get(1)?) })
    };
    statement.query_row([], mark).optional()
}

fn scopes(db: &Connection) -> rusqlite::Result<Scopes> {
    let mut statement =
        db.prepare_cached("SELECT scope, bus, agent, project, model, host FROM scopes")?;
    let scope = |row: &Row<'_>| {
        let scope = Scope {
            bus: row.get(1)?,
            agent: row.get(2)?,
            project: row.get(3)?,
            model: row.get(4)?,
            host: row.get(5)?,
        };
        Ok((scope, row.get(0)?))
    };
    let known = statement.query_map([], scope)?.collect::<Result<_, _>>()?;
    Ok(Scopes { known, new: Vec::new() })
}

/// A session with what is open in it.
pub(super) fn session(
    db: &Connection,
    bus: i64,
    session: &str,
) -> rusqlite::Result<Option<Session>> {
    let mut statement = db.prepare_cached(
        "SELECT agent, project, model, first_seq, last_seq, started, active, ended, prompt, events, \
         turns, tool_calls, failed, decisions, blocked, asked, input_tokens, output_tokens, cost, \
         open_usage FROM p_sessions WHERE bus = ?1 AND session = ?2",
    )?;
    let read = |row: &Row<'_>| {
        let found = Session {
            bus,
            name: session.to_owned(),
            agent: row.get(0)?,
            project: row.get(1)?,
            model: row.get(2)?,
            first_seq: row.get(3)?,
            last_seq: row.get(4)?,
            started: row.get(5)?,
            active: row.get(6)?,
            ended: row.get(7)?,
            prompt: row.get(8)?,
            events: row.get(9)?,
            turns: row.get(10)?,
            tool_calls: row.get(11)?,
            failed: row.get(12)?,
            decisions: row.get(13)?,
            blocked: row.get(14)?,
            asked: row.get(15)?,
            input_tokens: row.get(16)?,
            output_tokens: row.get(17)?,
            cost: row.get(18)?,
            ..Session::default()
        };
        Ok((found, row.get::<_, Option<i64>>(19)?))
    };
    let Some((mut found, open_usage)) = statement.query_row((bus, session), read).optional()?
    else {
        return Ok(None);
    };
    found.turn = turn(db, bus, session, found.turns)?;
    if let Some(seq) = open_usage {
        found.open_usage = usage(db, bus, seq)?;
    }
    found.open_calls = open_calls(db, bus, session)?;
    Ok(Some(found))
}

fn turn(db: &Connection, bus: i64, session: &str, number: i64) -> rusqlite::Result<Option<Turn>> {
    let mut statement = db.prepare_cached(
        "SELECT id, seq, started, ended, prompt, events, tool_calls, failed, blocked, input_tokens, \
         output_tokens, cost FROM p_turns WHERE bus = ?1 AND session = ?2 AND turn = ?3",
    )?;
    let read = |row: &Row<'_>| {
        Ok(Turn {
            bus,
            session: session.to_owned(),
            number,
            id: row.get(0)?,
            seq: row.get(1)?,
            started: row.get(2)?,
            ended: row.get(3)?,
            prompt: row.get(4)?,
            events: row.get(5)?,
            tool_calls: row.get(6)?,
            failed: row.get(7)?,
            blocked: row.get(8)?,
            input_tokens: row.get(9)?,
            output_tokens: row.get(10)?,
            cost: row.get(11)?,
        })
    };
    statement.query_row((bus, session, number), read).optional()
}

fn usage(db: &Connection, bus: i64, seq: i64) -> rusqlite::Result<Option<UsageRow>> {
    let mut statement = db.prepare_cached(
        "SELECT scope, session, turn, time, covers, input_tokens, output_tokens, cache_read_tokens, \
         cache_write_tokens, reasoning_tokens, total_tokens, cost FROM p_usage \
         WHERE bus = ?1 AND seq = ?2",
    )?;
    let read = |row: &Row<'_>| {
        Ok(UsageRow {
            bus,
            seq,
            scope: row.get(0)?,
            session: row.get(1)?,
            turn: row.get(2)?,
            time: row.get(3)?,
            covers: row.get(4)?,
            numbers: Numbers {
                input: row.get(5)?,
                output: row.get(6)?,
                cache_read: row.get(7)?,
                cache_write: row.get(8)?,
                reasoning: row.get(9)?,
                total: row.get(10)?,
                cost: row.get(11)?,
            },
        })
    };
    statement.query_row((bus, seq), read).optional()
}

fn open_calls(db: &Connection, bus: i64, session: &str) -> rusqlite::Result<BTreeMap<i64, Call>> {
    let mut statement = db.prepare_cached(
        "SELECT seq, scope, turn, call_id, input_hash, tool, tool_class, about, started, ended, \
         result_seq, took, status, exit_code, error, outcome, hook, ran_anyway FROM p_tool_calls \
         WHERE bus = ?1 AND session = ?2 AND is_open = 1",
    )?;
    let read = |row: &Row<'_>| {
        let call = Call {
            bus,
            seq: row.get(0)?,
            scope: row.get(1)?,
            session: session.to_owned(),
            turn: row.get(2)?,
            join: CallJoin { id: row.get(3)?, input_hash: row.get(4)? },
            tool: row.get(5)?,
            tool_class: row.get(6)?,
            about: row.get(7)?,
            started: row.get(8)?,
            ended: row.get(9)?,
            result_seq: row.get(10)?,
            took: row.get(11)?,
            status: row.get(12)?,
            exit_code: row.get(13)?,
            error: row.get(14)?,
            outcome: row.get(15)?,
            hook: row.get(16)?,
            ran_anyway: row.get(17)?,
            is_open: true,
            is_changed: false,
        };
        Ok((call.seq, call))
    };
    statement.query_map((bus, session), read)?.collect()
}
