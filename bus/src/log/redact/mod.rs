//! Redacts secrets on purpose that rows of the log still hold, so that the log stays verifiable and the secrets are gone
//! from its files.
//!
//! `clean_row` says what a row would be without its secrets, `batch` replaces rows in one transaction with the `record` that
//! tells of them, and `run` goes through the log, deletes the parts of payloads that are not needed any more and writes the
//! file anew. What a secret is, the caller says.

mod batch;
mod clean_row;
mod error;
mod record;
mod run;

pub(super) use self::record::{RecordedRedactions, binding, read_record};

pub use self::clean_row::{Elsewhere, Found, OtherText};
pub use self::error::RedactError;
pub use self::run::{RedactRequest, RedactedRows, redact_rows};
