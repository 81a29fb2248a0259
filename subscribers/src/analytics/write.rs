//! Writes what changed into the tables, in the transaction of the caller. Each statement is prepared once per write.

use std::collections::HashMap;

use hookbus::event::BusId;
use rusqlite::{CachedStatement, Connection, params, params_from_iter};

use super::call::Call;
use super::figures::{ACTIVITY, Figures, HOOKS, TOOLS, TouchedCell};
use super::projection::{BusState, DecisionRow, Projection};
use super::pruned;
use super::session::Session;
use super::turn::Turn;
use super::usage::UsageRow;

/// The largest sum. What no honest agent reports must not stop the count.
const MOST_SUM: i64 = i64::MAX;

/// Writes everything that changed since the last write.
pub(super) fn write(db: &Connection, projection: &mut Projection) -> rusqlite::Result<()> {
    for (scope, number) in projection.scopes.new.drain(..) {
        db.prepare_cached("INSERT INTO scopes VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
            params![number, scope.bus, scope.agent, scope.project, scope.model, scope.host],
        )?;
    }
    for (id, state) in projection.buses.iter_mut().filter(|(_, state)| state.is_changed) {
        bus(db, *id, state)?;
        state.is_changed = false;
    }
    if let Some(mark) = projection.stream {
        db.prepare_cached("INSERT OR REPLACE INTO stream VALUES (1, ?1, ?2)")?
            .execute(params![mark.sequence.cast_signed(), mark.id.as_bytes()])?;
    }
    let mut details = Details::new(db)?;
    for call in projection.finished_calls.drain(..) {
        details.tool_call(&call)?;
    }
    for ended in projection.finished_turns.drain(..) {
        details.turn(&ended)?;
    }
    for told in projection.finished_usage.drain(..) {
        details.usage(&told)?;
    }
    for session in projection.sessions.values_mut().filter(|session| session.is_changed) {
        details.session(session)?;
        session.is_changed = false;
    }
    drop(details);
    decisions(db, &std::mem::take(&mut projection.decisions))?;
    figures(db, std::mem::take(&mut projection.figures))?;
    if !projection.pruned.is_empty() {
        pruned::forget(db, &std::mem::take(&mut projection.pruned))?;
        // What is in memory still has the texts.
        projection.sessions.clear();
    }
    Ok(())
}

fn bus(db: &Connection, id: BusId, state: &BusState) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT OR REPLACE INTO buses VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
        params![state.number, id.to_string(), state.seq.as_i64(), state.row.as_bytes(), state.host],
    )?;
    Ok(())
}

/// The statements that write sessions and what is in them.
struct Details<'db> {
    sessions: CachedStatement<'db>,
    turns: CachedStatement<'db>,
    calls: CachedStatement<'db>,
    usage: CachedStatement<'db>,
}

impl<'db> Details<'db> {
    fn new(db: &'db Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            sessions: replacing(db, "p_sessions", 22)?,
            turns: replacing(db, "p_turns", 15)?,
            calls: replacing(db, "p_tool_calls", 21)?,
            usage: replacing(db, "p_usage", 14)?,
        })
    }

    fn session(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        let open_usage = session.open_usage.as_ref().map(|usage| usage.seq);
        self.sessions.execute(params![
            session.bus,
            session.name,
            session.agent,
            session.project,
            session.model,
            session.first_seq,
            session.last_seq,
            session.started,
            session.active,
            session.ended,
            session.prompt,
            session.events,
            session.turns,
            session.tool_calls,
            session.failed,
            session.decisions,
            session.blocked,
            session.asked,
            session.input_tokens,
            session.output_tokens,
            session.cost,
            open_usage,
        ])?;
        if let Some(going_on) = &session.turn {
            self.turn(going_on)?;
        }
        if let Some(so_far) = &session.open_usage {
            self.usage(so_far)?;
        }
        for call in session.open_calls.values_mut().filter(|call| call.is_changed) {
            self.tool_call(call)?;
            call.is_changed = false;
        }
        Ok(())
    }

    fn turn(&mut self, turn: &Turn) -> rusqlite::Result<()> {
        self.turns.execute(params![
            turn.bus,
            turn.session,
            turn.number,
            turn.id,
            turn.seq,
            turn.started,
            turn.ended,
            turn.prompt,
            turn.events,
            turn.tool_calls,
            turn.failed,
            turn.blocked,
            turn.input_tokens,
            turn.output_tokens,
            turn.cost,
        ])?;
        Ok(())
    }

    fn tool_call(&mut self, call: &Call) -> rusqlite::Result<()> {
        self.calls.execute(params![
            call.bus,
            call.seq,
            call.scope,
            call.session,
            call.turn,
            call.join.id,
            call.join.input_hash,
            call.tool,
            call.tool_class,
            call.about,
            call.started,
            call.ended,
            call.result_seq,
            call.took,
            call.status,
            call.exit_code,
            call.error,
            call.outcome,
            call.hook,
            call.ran_anyway,
            call.is_open,
        ])?;
        Ok(())
    }

    fn usage(&mut self, usage: &UsageRow) -> rusqlite::Result<()> {
        self.usage.execute(params![
            usage.bus,
            usage.seq,
            usage.scope,
            usage.session,
            usage.turn,
            usage.time,
            usage.covers,
            usage.numbers.input,
            usage.numbers.output,
            usage.numbers.cache_read,
            usage.numbers.cache_write,
            usage.numbers.reasoning,
            usage.numbers.total,
            usage.numbers.cost,
        ])?;
        Ok(())
    }
}

fn decisions(db: &Connection, decisions: &[DecisionRow]) -> rusqlite::Result<()> {
    let mut of_decisions = replacing(db, "p_decisions", 13)?;
    let mut of_verdicts = replacing(db, "p_verdicts", 12)?;
    for row in decisions {
        let made = row.decision.as_ref();
        of_decisions.execute(params![
            row.bus,
            row.seq,
            row.cause,
            row.scope,
            row.session,
            row.time,
            row.tool,
            row.tool_class,
            made.map_or("unknown", |made| made.outcome.as_str()),
            made.and_then(|made| made.hook.as_ref()),
            made.and_then(|made| made.reason.as_ref()),
            made.and_then(|made| made.took),
            made.is_none_or(|made| made.waited_for),
        ])?;
        let verdicts = made.map_or(&[][..], |made| &made.verdicts);
        for (verdict, number) in verdicts.iter().zip(1_i64..) {
            of_verdicts.execute(params![
                row.bus,
                row.seq,
                number,
                verdict.hook,
                verdict.verdict,
                verdict.shadow,
                verdict.failed,
                verdict.unapproved,
                verdict.of_project,
                verdict.reason,
                verdict.exit_code,
                verdict.took,
            ])?;
        }
    }
    Ok(())
}

/// The statement that writes a row of `table`, in place of the one with the same key.
fn replacing<'db>(
    db: &'db Connection,
    table: &str,
    columns: usize,
) -> rusqlite::Result<CachedStatement<'db>> {
    db.prepare_cached(&format!("INSERT OR REPLACE INTO {table} VALUES ({})", places(columns)))
}

/// The places for the values of so many columns.
fn places(columns: usize) -> String {
    (1..=columns).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}

fn figures(db: &Connection, figures: Figures) -> rusqlite::Result<()> {
    let mut activity = db.prepare_cached(&adding("f_activity", &["hour", "scope"], &ACTIVITY))?;
    for (cell, counters) in figures.activity {
        activity.execute(params_from_iter([cell.hour, cell.scope].into_iter().chain(counters)))?;
    }
    let keys = ["hour", "scope", "tool", "tool_class"];
    let mut tools = db.prepare_cached(&adding("f_tools", &keys, &TOOLS))?;
    for (key, [calls, failed, denied, unknown, blocked, asked, timed, took]) in figures.tools {
        tools.execute(params![
            key.cell.hour,
            key.cell.scope,
            key.tool,
            key.tool_class,
            calls,
            failed,
            denied,
            unknown,
            blocked,
            asked,
            timed,
            took
        ])?;
    }
    let keys = ["hour", "scope", "hook", "shadow"];
    let mut hooks = db.prepare_cached(&adding("f_hooks", &keys, &HOOKS))?;
    for (key, counters) in figures.hooks {
        let [calls, blocked, asked, rewritten, context, allowed, failed, unapproved, timed, took] =
            counters;
        hooks.execute(params![
            key.cell.hour,
            key.cell.scope,
            key.hook,
            key.shadow,
            calls,
            blocked,
            asked,
            rewritten,
            context,
            allowed,
            failed,
            unapproved,
            timed,
            took
        ])?;
    }
    touched(db, figures.files, figures.hosts)?;
    let keys = ["hour", "scope", "hook", "shadow", "up_to"];
    let mut latency = db.prepare_cached(&adding("f_latency", &keys, &["calls"]))?;
    for ((key, up_to), calls) in figures.latency {
        latency.execute(params![
            key.cell.hour,
            key.cell.scope,
            key.hook,
            key.shadow,
            up_to,
            calls
        ])?;
    }
    Ok(())
}

fn touched(
    db: &Connection,
    files: HashMap<TouchedCell, i64>,
    hosts: HashMap<TouchedCell, i64>,
) -> rusqlite::Result<()> {
    let keys = ["hour", "scope", "session", "path", "access"];
    let mut of_files = db.prepare_cached(&adding("f_files", &keys, &["uses"]))?;
    for (key, uses) in files {
        of_files.execute(params![
            key.cell.hour,
            key.cell.scope,
            key.session,
            key.what,
            key.access,
            uses
        ])?;
    }
    let keys = ["hour", "scope", "session", "host"];
    let mut of_hosts = db.prepare_cached(&adding("f_hosts", &keys, &["uses"]))?;
    for (key, uses) in hosts {
        of_hosts.execute(params![key.cell.hour, key.cell.scope, key.session, key.what, uses])?;
    }
    Ok(())
}

/// The statement that adds counters to the row with these keys.
fn adding(table: &str, keys: &[&str], counters: &[&str]) -> String {
    let columns: Vec<&str> = keys.iter().chain(counters).copied().collect();
    // A sum beyond 64 bits is a REAL, which the table refuses.
    let sum = |name: &&str| format!("{name} = min({name} + excluded.{name}, {MOST_SUM})");
    let sums: Vec<String> = counters.iter().map(sum).collect();
    format!(
        "INSERT INTO {table} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}",
        columns.join(", "),
        places(columns.len()),
        keys.join(", "),
        sums.join(", ")
    )
}
