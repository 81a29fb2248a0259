//! The analytics subscriber: projections of the log in a database of their own, which can be rebuilt from the log at any
//! time.
//!
//! Rows go in by bus, in log order ([`AnalyticsDatabase::add`]). The position of each bus, everything that is needed
//! between two rows (open tool calls, the turn that is going on) and the projections are written in one transaction, so
//! that redelivery and kills change nothing. What is in the database of a bus follows from the rows of that bus alone:
//! rows of many buses give the same in any order, from the log or from NATS.

mod error;

mod schema;

mod open;

mod reading;

mod figures;
mod scope;

mod call;
mod session;
mod turn;
mod usage;

mod pruned;

mod count_call;
mod count_decision;
mod count_event;

mod projection;

mod load;
mod write;

mod database;

mod catch_up;
mod rebuild;

mod stats;
mod views;

mod query;

#[cfg(test)]
mod tests;

pub use catch_up::{CatchUp, catch_up};
pub use database::{AnalyticsDatabase, AnalyticsRow};
pub use error::AnalyticsError;
pub use query::{QueryError, QueryLimits, QueryResult, Querying, SqlValue};
pub use rebuild::rebuild;
pub use stats::{By, Stats};
pub use views::{Column, ColumnKind, VIEWS, View};
