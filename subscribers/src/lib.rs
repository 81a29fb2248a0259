//! The observer runtime: hooks that only look on, as processes of their own.
//!
//! [`observe`] is the map: claim, read, deliver, save. An observer has a name and a place under it;
//! it sees every event at least once and in order per bus, from the log or from NATS, under the same
//! contract. An event that fails to its last try is set aside as a dead letter and never lost from
//! sight. Nothing here writes to the log.

mod position;

mod line;

mod source;

mod ledger;

mod dead;

mod deliver;

mod part;

mod report;

mod share;

mod work;

mod setting;

mod copy;

mod redrive;

mod grave;

pub use copy::copy_stream;
pub use dead::DeadLetter;
pub use grave::{DeadLetters, Kept};
pub use ledger::{Ledger, Trouble};
pub use redrive::{Redelivery, ReplayPublisher, observe_replay};
pub use setting::{Assignment, Reading};
pub use work::{Stop, Tally, observe, retry};
