//! What a tool call does, as far as its input tells: the programs that it starts, the files that it touches, the hosts that it
//! talks to. The same reading that rules decide on, without a look at the disk.

use std::path::Path;

use serde_json::Value;

use crate::dialect::{Arrival, decode, recorded_wire};
use crate::event::Agent;
use crate::log::Row;
use crate::rule::{Facts, Place, ShellLines};
use crate::shell::Access;

/// More than a person or a projection wants of one call.
const MOST: usize = 200;

/// What a tool call does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// The names of the programs, each once, in the order of the line.
    pub programs: Vec<String>,
    /// The files, each once per access.
    pub files: Vec<FileTouched>,
    /// The hosts, each once.
    pub hosts: Vec<String>,
}

/// A file that a tool call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTouched {
    /// Where it leads; what is written, if that cannot be told before the call.
    pub path: String,
    /// What happens to it.
    pub access: Access,
}

impl Effects {
    /// What the call in this row does; nothing if its payload was removed.
    pub fn of_row(row: &Row) -> Self {
        let Some(agent) = Agent::named(&row.agent).filter(|_| row.removed.is_none()) else {
            return Self::default();
        };
        let context = row.context.as_deref().unwrap_or("{}");
        let event = decode(Arrival {
            id: row.id,
            at: row.at,
            agent,
            wire: recorded_wire(context),
            raw: row.payload.clone().into(),
            session_hint: None,
        });
        let context: Value = serde_json::from_str(context).unwrap_or(Value::Null);
        let (place, lines) = (Place::of_context(&event, &context), ShellLines::default());
        let facts = Facts::new(&event, &place, &lines);
        let mut effects = Self::default();
        let programs = facts.commands().iter().flat_map(|command| &command.view.programs);
        for program in programs.filter(|program| program.program.is_known()) {
            let name = Path::new(program.program.as_str()).file_name();
            add(&mut effects.programs, name.map(|name| name.to_string_lossy().into_owned()));
        }
        for file in facts.files() {
            let path = Some(file.shown()).filter(|path| !path.is_empty());
            add(&mut effects.files, path.map(|path| FileTouched { path, access: file.access }));
        }
        for host in facts.hosts() {
            add(&mut effects.hosts, Some(host.host.to_string()).filter(|host| !host.is_empty()));
        }
        effects
    }
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: Option<T>) {
    if let Some(one) = one.filter(|one| all.len() < MOST && !all.contains(one)) {
        all.push(one);
    }
}
