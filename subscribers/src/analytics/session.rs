//! A session while its rows are read: its counters, the turn that is going on, the calls that wait for a result, and the
//! request to the model whose tokens the next chunk replaces.

use std::collections::BTreeMap;

use super::call::Call;
use super::reading::CallJoin;
use super::turn::Turn;
use super::usage::UsageRow;

/// How many calls of a session wait for a result at most. Older ones are given up: a result that comes so late is
/// counted as a call of its own.
pub(super) const MOST_OPEN: usize = 256;

/// A row of `p_sessions`, and what belongs to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) bus: i64,
    /// The agent's id of it.
    pub(super) name: String,
    pub(super) agent: String,
    pub(super) project: String,
    pub(super) model: String,
    pub(super) first_seq: i64,
    pub(super) last_seq: i64,
    pub(super) started: i64,
    pub(super) active: i64,
    pub(super) ended: Option<i64>,
    pub(super) prompt: Option<String>,
    pub(super) events: i64,
    pub(super) turns: i64,
    pub(super) tool_calls: i64,
    pub(super) failed: i64,
    pub(super) decisions: i64,
    pub(super) blocked: i64,
    pub(super) asked: i64,
    pub(super) input_tokens: i64,
    pub(super) output_tokens: i64,
    pub(super) cost: i64,
    pub(super) open_usage: Option<UsageRow>,
    /// The last turn.
    pub(super) turn: Option<Turn>,
    /// By seq, so that the oldest comes first.
    pub(super) open_calls: BTreeMap<i64, Call>,
    /// The scope of the last event, and the agent and host that it is for.
    pub(super) scope: Option<(String, String, i64)>,
    /// Whether it has to be written.
    pub(super) is_changed: bool,
}

impl Session {
    /// The number of the turn that is going on; 0 before the first.
    pub(super) fn turn_number(&self) -> i64 {
        self.turn.as_ref().map_or(0, |turn| turn.number)
    }

    /// Takes the call that a result belongs to: by its id, else the oldest one of the same tool and input.
    pub(super) fn take_call(&mut self, join: &CallJoin, tool: &str) -> Option<Call> {
        let is_it = |call: &Call| match (&join.id, &call.join.id) {
            (Some(id), Some(known)) => id == known,
            _ => call.tool == tool && call.join.input_hash == join.input_hash,
        };
        let seq = self.open_calls.values().find(|call| is_it(call)).map(|call| call.seq)?;
        self.open_calls.remove(&seq)
    }

    /// Adds a call. Returns one that is given up, if there are too many.
    pub(super) fn add_call(&mut self, call: Call) -> Option<Call> {
        self.open_calls.insert(call.seq, call);
        if self.open_calls.len() <= MOST_OPEN {
            return None;
        }
        self.open_calls.pop_first().map(|(_, call)| Self::give_up(call))
    }

    /// Gives up all calls.
    pub(super) fn give_up_calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.open_calls).into_values().map(Self::give_up).collect()
    }

    fn give_up(call: Call) -> Call {
        Call { is_open: false, is_changed: true, ..call }
    }
}
