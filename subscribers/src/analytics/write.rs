//! Writes what changed into the tables, in the transaction of the caller.

use std::collections::HashMap;

use hookbus::event::{BusId, one_line};
use rusqlite::{Connection, params, params_from_iter};

use super::call::Call;
use super::figures::{ACTIVITY, Figures, HOOKS, TOOLS, TouchedCell};
use super::projection::{BusState, DecisionRow, Projection};
use super::pruned;
use super::reading::{NAME, TEXT, micros_of};
use super::session::Session;
use super::turn::Turn;
use super::usage::UsageRow;

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
    for call in projection.finished_calls.drain(..) {
        tool_call(db, &call)?;
    }
    for ended in projection.finished_turns.drain(..) {
        turn(db, &ended)?;
    }
    for told in projection.finished_usage.drain(..) {
        usage(db, &told)?;
    }
    for session in projection.sessions.values_mut().filter(|session| session.is_changed) {
        write_session(db, session)?;
        session.is_changed = false;
    }
    for made in projection.decisions.drain(..) {
        decision(db, &made)?;
    }
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

fn write_session(db: &Connection, session: &mut Session) -> rusqlite::Result<()> {
    let open_usage = session.open_usage.as_ref().map(|usage| usage.seq);
    db.prepare_cached(
        "INSERT OR REPLACE INTO p_sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
         ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
    )?
    .execute(params![
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
        turn(db, going_on)?;
    }
    if let Some(so_far) = &session.open_usage {
        usage(db, so_far)?;
    }
    for call in session.open_calls.values_mut().filter(|call| call.is_changed) {
        tool_call(db, call)?;
        call.is_changed = false;
    }
    Ok(())
}

fn turn(db: &Connection, turn: &Turn) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO p_turns VALUES \
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
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

fn tool_call(db: &Connection, call: &Call) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO p_tool_calls VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
         ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
    )?
    .execute(params![
        call.bus,
        call.seq,
        call.scope,
        call.session,
        call.turn,
        call.agent_id,
        call.input_hash,
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

fn usage(db: &Connection, usage: &UsageRow) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO p_usage VALUES \
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
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

fn decision(db: &Connection, row: &DecisionRow) -> rusqlite::Result<()> {
    let made = row.decision.as_ref();
    let outcome = made.map_or("unknown", |made| made.outcome.as_str());
    let by = |hook: &String| {
        let verdicts = made.map_or(&[][..], |made| &made.verdicts);
        verdicts.iter().find(|verdict| !verdict.shadow && one_line(&verdict.hook, NAME) == *hook)
    };
    let reason = row.hook.as_ref().and_then(by).and_then(|verdict| {
        verdict.failure.as_ref().or(verdict.reason.as_ref()).map(|reason| one_line(reason, TEXT))
    });
    db.prepare_cached(
        "INSERT OR REPLACE INTO p_decisions VALUES \
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        row.bus,
        row.seq,
        row.cause,
        row.scope,
        row.session,
        row.time,
        row.tool,
        row.tool_class,
        outcome,
        row.hook,
        reason,
        made.and_then(|made| micros_of(made.ms)),
        made.is_none_or(|made| made.waited_for),
    ])?;
    let verdicts = made.map_or(&[][..], |made| &made.verdicts);
    for (verdict, number) in verdicts.iter().zip(1_i64..) {
        let reason = verdict.failure.as_ref().or(verdict.reason.as_ref());
        db.prepare_cached(
            "INSERT OR REPLACE INTO p_verdicts VALUES \
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            row.bus,
            row.seq,
            number,
            one_line(&verdict.hook, NAME),
            one_line(&verdict.verdict, NAME),
            verdict.shadow,
            verdict.failure.is_some(),
            verdict.unapproved,
            verdict.of_project,
            reason.map(|reason| one_line(reason, TEXT)),
            verdict.exit,
            micros_of(verdict.ms),
        ])?;
    }
    Ok(())
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
    let places: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    let sums: Vec<String> =
        counters.iter().map(|name| format!("{name} = {name} + excluded.{name}")).collect();
    format!(
        "INSERT INTO {table} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}",
        columns.join(", "),
        places.join(", "),
        keys.join(", "),
        sums.join(", ")
    )
}
