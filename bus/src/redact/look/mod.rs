//! A closer look at the places where a keyword was found: what each rule reads around its keyword, and the candidates that
//! come of it.

mod assignment;
mod call;
mod command;
mod credentials;
mod csv;
mod encoded;
mod header;
mod manifest;
mod name;
mod operator;
mod pem;
mod piped;
mod places;
mod plausible;
mod strength;
mod text;
mod url;
mod value;

pub(super) use assignment::{Assignment, assignment};
pub(super) use call::{FUNCTIONS, PAIRS, last_argument, redis_auth, user_and_password};
pub(super) use command::{COMMANDS, Command};
pub(super) use credentials::{docker_auth, sql_password};
pub(super) use csv::csv_column;
pub(super) use header::{authorization, bearer, cookies, session_cookie};
pub(super) use manifest::kubernetes_secret;
pub(super) use name::{NAME_KEYWORDS, NAME_PHRASES, named_secret};
pub(super) use operator::Operator;
pub(super) use pem::private_key;
pub(super) use piped::{READERS, piped_secret};
pub(super) use places::{
    PARAMETERS, PGPASS_PORTS, go_mysql_login, insert_values, json_web_key, neo4j_auth,
    oracle_login, pgpass, random_password, sent_password, unseal_key, url_parameter,
};
pub(super) use plausible::{is_placeholder, is_words};
pub(super) use strength::words;
pub(super) use text::{Candidate, Look, Rank};
pub(super) use url::{url_keywords, url_password};
