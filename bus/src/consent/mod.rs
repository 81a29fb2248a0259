//! Consent: what the user has approved, and whether an entry may run. It is drift detection: an approval
//! covers the entry's text, the files its command names, a plugin's code and the entry's `files:`. It is not
//! a boundary against a program that runs as the same user.

mod check;
mod evidence;
mod item;
mod logged;
mod record;
mod script_paths;
mod store;

pub use check::ApprovalCheck;
pub use item::{ApprovalItem, FileChanges};
pub(crate) use script_paths::script_paths;
pub use store::{ApprovalStore, StoreError};
