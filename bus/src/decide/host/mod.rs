//! Running Hermes' own plugin and gateway hook directories, unmodified, as hooks of any agent: one warm
//! process per directory, so that one cannot hurt another.

mod ask;
mod checkup;
mod folder;
mod log;
mod lying;
mod manifests;
mod moment;
mod plugin;
mod process;
mod shelf;

pub(super) use ask::{Stand, Told, ask, tell};
pub use checkup::{Ailment, Attempt, Checkup, Exam};
pub(super) use checkup::{Asks, Manner as CheckupManner, check, log_of};
pub(super) use folder::needs;
pub use log::make_room;
pub(super) use lying::{
    Form, Lists, Loaded, MANIFESTS, Names, Resting, absent, is_hidden, loaded, lying, roll,
};
pub use lying::{LoadedPlugin, is_bridge};
pub(super) use manifests::Manifests;
pub(super) use moment::can_gateway_hooks_answer;
pub(super) use plugin::{LEFT_ALONE, Plugin, Time};
pub(super) use process::Launch;
pub(super) use shelf::{Meant, Shelf};
