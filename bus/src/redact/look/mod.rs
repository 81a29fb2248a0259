//! A closer look at the places where a keyword was found: what each rule reads around its keyword, and the candidates that
//! come of it.

mod assignment;
mod command;
mod credentials;
mod header;
mod manifest;
mod name;
mod pem;
mod plausible;
mod text;
mod url;
mod value;

pub(super) use assignment::{Assignment, Operator, assignment};
pub(super) use command::{COMMANDS, Command};
pub(super) use credentials::{docker_auth, sql_password};
pub(super) use header::{authorization, bearer, cookies};
pub(super) use manifest::kubernetes_secret;
pub(super) use name::{NAME_KEYWORDS, named_secret, words};
pub(super) use pem::private_key;
pub(super) use plausible::is_placeholder;
pub(super) use text::{Candidate, Look, Rank};
pub(super) use url::{url_keywords, url_password};
