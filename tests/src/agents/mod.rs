//! Real agents, run offline: each one talks to a model that is played from a script, with hook
//! commands wired in, and what happened comes back as a [`Run`]. Nothing here knows the bus: a hook
//! is a command line. The agents are installed by `tests/fetch-agents`.

mod collector;
mod google;
mod group;
mod http;
mod installed;
mod mask;
mod model_server;
mod openai;
mod outcome;
mod process;
mod scratch;
mod settings;
mod stage;
mod step;
mod terminal;

pub mod gateway;
pub mod gemini;
pub mod hermes;
pub mod run;
pub mod talk;

pub use collector::Collector;
pub use gateway::Gateway;
pub use gemini::Gemini;
pub use hermes::Hermes;
pub use installed::{gemini_script, hermes_extras, hermes_plugins, hermes_program, hermes_python};
pub use model_server::ModelServer;
pub use outcome::{Asked, Outcome, Said};
pub use run::Run;
pub use step::{SCRIPT_ENDED, Step};
pub use talk::Talk;
pub use terminal::{Act, before_a_person};
