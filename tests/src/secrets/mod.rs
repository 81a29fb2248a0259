//! Secrets and ordinary strings to try redaction with. The lists are in `tests/secrets/`; the values are made when a test runs, so
//! that nothing in this repository looks like a credential that a service could accept.
//!
//! Written without looking at the detectors: from what public scanners know and what the services document.

mod cases;
mod form;
mod leak;
mod ordinary;
mod payload;
mod pem;

pub use cases::{Case, places, tokens, values_of_names};
pub use form::{Dice, Secret, make};
pub use leak::{Leak, leak};
pub use ordinary::ordinary_strings;
pub use payload::{SHAPES, wrap};
pub use pem::private_keys;
