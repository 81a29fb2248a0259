//! Where events come from: the log of this machine, or the NATS stream of all buses. Both return the
//! rows of each bus in order, starting after a position, and wait a moment for more at the end.

mod event_source;
mod large_payload;
mod log;
mod log_watch;
mod stream;

pub(crate) use event_source::{EventSource, SourceEvent};
pub use large_payload::FetchError;
pub(crate) use large_payload::fetch_payload;
pub(crate) use log::{LogSource, start_in_log};
pub(crate) use stream::StreamSource;
