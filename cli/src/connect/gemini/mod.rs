//! Gemini CLI: one command hook per event in a `settings.json`, of the user or of a project. The file is edited in place;
//! other hooks, comments and layout stay.

mod commands;

mod connect_plan;
mod disconnect_plan;

mod bus_hooks;
mod location;
mod remarks;
mod settings_text;
mod trust;
mod wire;

mod health;

pub(super) use self::commands::{GeminiOptions, connect, disconnect};
pub(crate) use self::health::{GeminiHealth, health};
