//! `hookbus connect` and `hookbus disconnect`: connect an agent to the bus, and undo that. Both make a plan, show it,
//! and write nothing until the user has agreed. `connect` records what each file held; `disconnect` restores a file
//! that has not changed since byte for byte, and otherwise takes out only what is ours.

mod connect_command;
mod disconnect_command;

mod connect_plan;
mod disconnect_plan;
mod orphaned;

mod bridge;
mod bridge_files;
mod consent;
mod gemini;
mod hermes;
mod hooks_move;
mod local_edits;
mod record;
mod shell_hooks;
mod shell_wire;
mod temporary;

mod double_loading;
mod health;

mod files;
mod report;

pub(crate) use self::connect_command::{Agent as ConnectedAgent, Connect, connect};
pub(crate) use self::disconnect_command::{Disconnect, disconnect};
pub(crate) use self::double_loading::{DoubleLoaded, double_loaded};
pub(crate) use self::gemini::{GeminiHealth, health as gemini_health};
pub(crate) use self::health::{Health, health};
pub(crate) use self::hermes::is_bridged;

use crate::{confirm, yaml};
