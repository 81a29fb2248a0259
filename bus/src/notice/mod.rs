//! Notices: what the user of an agent is told about the bus itself. A hook that is not in force, a hook that failed,
//! an event that no hook could look at and a policy that changed are told at the start of a session and with the
//! first event that they affect, once per session. Where nothing is wrong, this costs nothing and says nothing.

mod collect;
mod finding;
mod policy;
mod told;

pub use collect::{Situation, notice, notice_of_failures};
pub use told::Told;
