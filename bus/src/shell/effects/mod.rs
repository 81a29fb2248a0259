//! Which files the programs of a line read, write and delete, and which hosts they talk to, by what is known about
//! each program. Redirections of the shell are not here: they belong to the line, not to a program.

mod uses;

mod address;
mod archives;
mod clouds;
mod containers;
mod copies;
mod databases;
mod editing;
mod find;
mod git;
mod keys;
mod links;
mod mounts;
mod network;
mod packages;
mod patches;
mod remote_copies;
mod rules;
mod rules_table;
mod search;
mod transfers;

mod add;

#[cfg(test)]
mod tests;

pub(super) use add::add_effects;
pub(super) use address::host_of_url;
pub(super) use links::add_links;
pub(super) use mounts::on_this_machine;
