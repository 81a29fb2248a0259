//! The host for Hermes' own plugin and gateway hook directories: it finds them, runs each unmodified in a
//! long-lived process of its own, and calls them about events of any agent. Whether a plugin may start is not
//! decided here: the caller passes [`MayStart`] in.

mod call;
mod code_files;
mod discovery;
mod event_mapping;
mod instance;
mod inventory;
mod log;
mod manifest;
mod plugin_dir;
mod pool;
mod probe;
mod process;

pub use call::{CallContext, MayStart, PluginAnswer, call, notify};
pub(crate) use code_files::{CodeExtent, CodeFile, CodeFiles};
pub(crate) use discovery::loaded_dirs;
pub use discovery::{LoadedPlugin, PluginForm, is_bridge};
pub(crate) use event_mapping::can_gateway_hooks_answer;
pub use instance::{BACKING_OFF, CallTimeout, PluginInstance};
pub use inventory::{
    EmptyPluginEntry, NothingLoaded, empty_entries, loaded_for, missing_plugins, nothing_loaded,
};
pub(crate) use manifest::ManifestCache;
pub use plugin_dir::required_variables;
pub use pool::{PluginPool, PluginSelection};
pub use probe::{PluginFault, ProbeCall, ProbeEvents, ProbeReport};
pub(crate) use probe::{ProbeScope, ProbeSettings, log_path, probe};
