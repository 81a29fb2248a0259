//! Runs the real agents offline. Each one talks to a scripted model server, with hook commands in its
//! configuration; the result is a [`Run`]. A hook is any command line. `tests/fetch-agents` installs the
//! agents.

mod collector;
mod google;
mod http;
mod installed;
mod mask;
mod model_server;
mod openai;
mod outcome;
mod process;
mod process_group;
mod scratch;
mod settings;
mod setup;
mod step;
mod terminal;

pub mod gateway;
pub mod gemini;
pub mod hermes;
pub mod rpc;
pub mod run;

pub use collector::Collector;
pub use gateway::Gateway;
pub use gemini::Gemini;
pub use hermes::Hermes;
pub use installed::{gemini_script, hermes_extras, hermes_plugins, hermes_program, hermes_python};
pub use model_server::ModelServer;
pub use outcome::{ConversationPart, ModelRequest, Outcome};
pub use rpc::RpcProcess;
pub use run::Run;
pub use step::{SCRIPT_ENDED, Step};
pub use terminal::{Act, run_at_terminal};
