//! What is recorded of an event's payload: all of it, less, or only its outline. Pure; `config/` reads which of them, and
//! `pipeline/` applies it. Hooks always see the whole payload.

mod choice;
mod leave_out;
mod mark;

pub use choice::{FieldPath, RecordChoice};
pub use leave_out::{Columns, leave_out};
pub use mark::Omitted;
