//! Where events come from: the log of this machine, or the NATS stream of all buses. Both return the
//! rows of each bus in order, starting after a position, and wait a moment for more at the end.

mod event_source;
mod log;
mod log_watch;
mod stream;

pub(crate) use event_source::{EventSource, SourceEvent};
pub(crate) use log::{LogSource, start_in_log};
pub(crate) use stream::{StreamSource, fetch_payload};
