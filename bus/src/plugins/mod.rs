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

pub(crate) use call::notify;
pub use call::{CallContext, MayStart, PluginAnswer, call};
pub(crate) use code_files::{CodeExtent, CodeFile, CodeFiles};
pub use discovery::{LoadedPlugin, is_bridge};
pub(crate) use discovery::{PluginForm, loaded_dirs};
pub(crate) use event_mapping::can_gateway_hooks_answer;
pub(crate) use instance::BACKING_OFF;
pub use instance::{CallTimeout, PluginInstance};
pub(crate) use inventory::nothing_loaded;
pub use inventory::{EmptyPluginEntry, NothingLoaded, empty_entries, loaded_for, missing_plugins};
pub(crate) use manifest::ManifestCache;
pub use plugin_dir::required_variables;
pub use pool::{PluginPool, PluginSelection};
pub use probe::{PluginFault, ProbeCall, ProbeEvents, ProbeReport};
pub(crate) use probe::{ProbeScope, ProbeSettings, log_path, probe};
